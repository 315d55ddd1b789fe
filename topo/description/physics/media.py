"""What a cable may join: each medium has its kinds of ends."""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

from topo.description.physics.wiring import HOSTS, forwards, grouped, has, worded
from topo.description.shape import listed

if TYPE_CHECKING:
    from topo.catalogue.part import Cable
    from topo.description.description import DescribedLink
    from topo.description.physics.wiring import Wiring
    from topo.document.nodes import Report
    from topo.errors import Place


_MEMORIES: Final = ("memory", "cxl-memory")
_NETWORK: Final = ("nic", "dpu", "storage", "network-switch")
_PCIE: Final = ("nic", "dpu", "nvme", "hba", "gpu", "pcie-switch", "cxl-memory", *HOSTS)
# By family; a family that is not here goes by its reach.
_FAMILIES: Final[dict[str, tuple[str, ...]]] = {
    "pcie": _PCIE,
    "upi": HOSTS,
    "qpi": HOSTS,
    "xgmi": (*HOSTS, "gpu"),
    "nvlink-c2c": (*HOSTS, "gpu"),
}
_REACHES: Final[dict[str, tuple[str, ...]]] = {
    "memory": (*_MEMORIES, *HOSTS),
    "network": _NETWORK,
    "gpu": ("gpu", "nvswitch", "cpu"),
    "host": _PCIE,
}
# What to write for a kind that the medium does not join.
_ADVICE: Final[dict[str, str]] = {
    "storage": "a target is cabled to a NIC: `infiniband ndr` or `ethernet 400 Gb/s`; "
    "a drive inside the machine is an `nvme` part",
    "memory": "a memory hangs on its CPU: `- ram0 -- cpu0: memory-bus`",
    "cxl-memory": "CXL memory hangs on PCIe: `pcie 5 x8`",
    "nvswitch": "an NVSwitch is linked to GPUs: `18x nvlink 4`",
    "network-switch": "a network switch takes `infiniband ndr` or `ethernet 400 Gb/s`",
    "nic": "a card is linked to its CPU or switch by `pcie 5 x16`, to the network by "
    "`infiniband ndr` or `ethernet 400 Gb/s`",
    "gpu": "a GPU is linked by `pcie 5 x16` or `18x nvlink 4`; a network ends in a NIC",
    "cpu": "a CPU is linked by `pcie 5 x16`, to another CPU by `4x upi 16 GT/s` or "
    "`3x xgmi 32 GT/s`; a network ends in a NIC",
}
_BETWEEN_SOCKETS: Final = (
    "write `4x upi 16 GT/s` (Intel), `3x xgmi 32 GT/s` (AMD), or `upi unknown`"
)
_ADVICE_OF_PCIE: Final = "the link is `pcie 5 x16`, with the generation and lanes that both have"


def check_media(wiring: Wiring, report: Report) -> tuple[DescribedLink, ...]:
    """Report links whose medium does not join what stands at their ends, and return them."""
    wrong: list[DescribedLink] = []
    misfits: list[tuple[tuple[Place, str, str], str]] = []
    for link in wiring.links:
        found = _misfits(link, wiring)
        misfits += [((link.place, link.cable.family, kind), name) for name, kind in found]
        fault = None if found else _unjoined(link, wiring)
        if fault is not None:
            misfits.append(((link.place, *fault), str(link.a)))
        if found or fault is not None:
            wrong.append(link)
    _report(misfits, {link.place: link.cable for link in wrong}, report)
    return tuple(wrong)


def _misfits(link: DescribedLink, wiring: Wiring) -> list[tuple[str, str]]:
    """Return the ends that the medium does not join, with their kinds."""
    fits = _FAMILIES.get(link.cable.family, _REACHES[link.cable.reach])
    ends = [(end.device, wiring.kind(end.device)) for end in (link.a, link.b)]
    return [(name, kind) for name, kind in ends if kind not in fits]


def _unjoined(link: DescribedLink, wiring: Wiring) -> tuple[str, str] | None:
    """Return message and advice where each end fits the medium and the two do not fit together."""
    one, other = (wiring.devices[end.device] for end in (link.a, link.b))
    kinds = (one.part.kind, other.part.kind)
    if link.cable.reach == "memory" and sum(kind in _MEMORIES for kind in kinds) != 1:
        message = f"a memory bus joins a memory with its CPU, not {_pair(kinds, 'with')}"
        return message, _ADVICE["memory"] if kinds[0] in _MEMORIES else _BETWEEN_SOCKETS
    if link.cable.family != "pcie":
        return None
    if kinds == ("cpu", "cpu"):
        return "PCIe does not join two CPUs", _BETWEEN_SOCKETS
    if forwards(one) or forwards(other):
        return None
    upper = "one end of a PCIe link is a CPU, a root complex or a switch"
    return f"{upper}, and here are {_pair(kinds, 'and')}", _advice_between(kinds)


def _pair(kinds: tuple[str, str], joint: str) -> str:
    other = worded(kinds[1]) if kinds[0] != kinds[1] else "another"
    return f"{worded(kinds[0])} {joint} {other}"


def _advice_between(kinds: tuple[str, str]) -> str:
    if kinds == ("gpu", "gpu"):
        return "between GPUs it is `18x nvlink 4` or `xgmi 64 GB/s`; PCIe goes by a switch or CPU"
    if "nic" in kinds:
        return "a card with a PCIe switch inside says so: `connectx-7-bridge`, or `bridge: yes`"
    return "link each of them to a CPU or a switch"


def _report(
    misfits: list[tuple[tuple[Place, str, str], str]], cables: dict[Place, Cable], report: Report
) -> None:
    """Report one message a line; of several kinds on one line, all in that message."""
    lines: dict[Place, list[tuple[str, str, list[str]]]] = {}
    for (place, what, which), names in grouped(misfits).items():
        lines.setdefault(place, []).append((what, which, names))
    for place, found in lines.items():
        what, which, _ = found[0]
        cable = cables[place]
        if what != cable.family:  # a message of its own
            report.add(place, "wrong-medium", what, help=which)
            continue
        are = listed(
            f"{has(names, 'is', 'are')} {worded(kind, len(names))}" for _, kind, names in found
        )
        message = f"{cable.family} joins {_joins(cable)}; {are}"
        report.add(place, "wrong-medium", message, help=_advice(cable, which))


def _joins(cable: Cable) -> str:
    if cable.family == "pcie":
        return "CPUs, PCIe switches and what hangs on them"
    if cable.reach == "memory":
        return "a memory with its CPU"
    kinds = _FAMILIES.get(cable.family, _REACHES[cable.reach])
    return listed(worded(kind, 2) for kind in kinds if kind != "cpu" or cable.reach != "gpu")


def _advice(cable: Cable, kind: str) -> str:
    if kind in _ADVICE:
        return _ADVICE[kind]
    if kind in ("dpu", "root-complex"):
        return _ADVICE["nic" if kind == "dpu" else "cpu"]
    return _ADVICE_OF_PCIE if cable.family != "pcie" else ""
