"""Second phase: every name is looked up, and what the devices say of themselves agrees."""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

from topo.catalogue.advice import nearest_names
from topo.catalogue.keys import KEYS
from topo.description.names import ranged
from topo.description.shape import a_kind, listed
from topo.description.vocabulary import BUILT_IN

if TYPE_CHECKING:
    from collections.abc import Iterable

    from topo.catalogue.part import Part
    from topo.description.description import DataPath, Device
    from topo.document.report import Report


# What a kind must state, by number, `unknown` or `unlimited`: what is not there is no figure.
_NEEDED: Final = {
    "storage": ("read", "write"),
    "nvme": ("read", "write"),
    "hba": ("read", "write"),
    "nic": ("chip",),
    "dpu": ("chip",),
    "cxl-memory": ("bus",),
    "memory": ("channels", "transfer-rate", "bytes-per-transfer"),  # or its bus
}


def check_devices(devices: Iterable[Device], report: Report) -> None:
    """Check that addresses and NUMA nodes have one owner and that figures are stated."""
    everything = tuple(devices)
    _check_addresses(everything, report)
    _check_numa(everything, report)
    _check_figures(everything, report)


def _check_addresses(devices: tuple[Device, ...], report: Report) -> None:
    owners: dict[str, Device] = {}
    for device in devices:
        for address in device.pci:
            full = address if address.count(":") > 1 else f"0000:{address}"
            domain, _, rest = full.partition(":")
            owner = owners.setdefault(f"{int(domain, 16):08x}:{rest}", device)
            if owner is not device or device.pci.count(address) > 1:
                report.add(
                    device.place,
                    "duplicate-address",
                    f"the PCI address {address} is given twice: "
                    f"to {owner.name} and to {device.name}",
                    help="each PCI function has its own",
                    notes=[f"{owner.name} stands on line {owner.place.line}"],
                )
                break


def _check_numa(devices: tuple[Device, ...], report: Report) -> None:
    owners: dict[int, Device] = {}
    for device in devices:
        if device.numa and device.part.kind != "cpu":
            message = f"{device.name} is {a_kind(device.part.kind)}, and NUMA nodes belong to a CPU"
            report.add(device.place, "misplaced-key", message, help="leave `numa:` out here")
            continue
        for number in device.numa:
            owner = owners.setdefault(number, device)
            if owner is not device:
                message = f"{owner.name} and {device.name} both have NUMA node {number}"
                report.add(
                    device.place,
                    "defined-twice",
                    message,
                    help="the numbers are the operating system's, each once: `numa: [0-3, 4-7]`",
                )
                break


def _check_figures(devices: tuple[Device, ...], report: Report) -> None:
    """Report figures that no one states: once for a part, naming the devices that lack them."""
    lacking: dict[tuple[str, tuple[str, ...]], list[Device]] = {}
    for device in devices:
        if missing := _missing(device.part):
            lacking.setdefault((device.part.name, missing), []).append(device)
    for (name, missing), who in lacking.items():
        keys = listed([f"`{key}:`" for key in missing])
        ways = "the figure, `unknown` (results become `at most`)"
        if any(KEYS[key].unlimited for key in missing):
            ways += " or `unlimited` (it is not modelled)"
        report.add(
            who[0].part.place or who[0].place,
            "missing-figure",
            f"`{name}` does not say its {keys}, and {listed(ranged(d.name for d in who))} "
            f"need{'s' * (len(who) == 1)} it",
            help=f"write {ways}{_example(who[0], missing)}",
        )


def _example(device: Device, missing: tuple[str, ...]) -> str:
    """Return how it may look at a device of a shipped part; a part of the file's own is there."""
    if device.part.place is not None or not any(KEYS[key].unlimited for key in missing):
        return ""
    figures = ", ".join(f"{key}: unknown" for key in missing)
    return f": `{device.name}: {{part: {device.part.name}, {figures}}}`"


def _missing(part: Part) -> tuple[str, ...]:
    if part.kind == "memory" and part.figure("bus") is not None:
        return ()
    return tuple(key for key in _NEEDED.get(part.kind, ()) if part.figure(key) is None)


def check_fallbacks(data_paths: Iterable[DataPath], report: Report) -> None:
    """Check that a data path of the user's own falls back to one that is there."""
    own = tuple(data_paths)
    known = (*BUILT_IN, *(path.name for path in own))
    for path in own:
        if path.falls_back_to and path.falls_back_to not in known and path.place is not None:
            message = f"no data path `{path.falls_back_to}` for `{path.name}` to fall back to"
            advice = nearest_names(path.falls_back_to, known)
            report.add(path.place, "unknown-name", message, help=advice)
