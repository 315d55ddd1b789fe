"""What of a host's links keeps data slow: width and rate, ACS, the IOMMU, sizes of packets."""

from __future__ import annotations

from dataclasses import replace
from typing import TYPE_CHECKING, Final

from topo.catalogue.kinds import CARDS
from topo.discovery.pci import LinkSpeed, card_of, kind_of, link_between
from topo.host.problems import (
    LEAVES,
    SWITCH,
    Change,
    Checked,
    Problem,
    Setup,
    grouped,
    names_of,
    not_told,
)
from topo.phrases import counted, listed

if TYPE_CHECKING:
    from topo.host.kernel_state import FunctionState
    from topo.topology.topology import Topology

_AT_REST: Final = 1  # PCIe generation
_FLITS_FROM: Final = 6  # PCIe generation whose packets have other heads
_HEAD: Final = 24  # bytes of a packet beside its payload, with 64-bit addresses
_READ_REQUEST: Final = 4096  # bytes, for cards that are as fast as
_FAST_PORT: Final = 200e9 / 8  # bytes/s
_UNSET: Final = 128  # bytes: what a device starts with
_AMD: Final = "1002"


# --- links ----------------------------------------------------------------------------------------


def links(setup: Setup) -> Checked:
    """Links that run below what both ends can."""
    below: dict[str, str] = {}
    perhaps_resting: set[str] = set()
    at_rest: list[str] = []
    untold: list[str] = []
    count = 0
    changes: dict[str, tuple[Change, Change]] = {}
    for device, state in setup.of_kind(*LEAVES, SWITCH):
        above = setup.port_above(state)
        if state.is_express is False or (above is not None and above.port == "upstream"):
            continue
        now, link = state.function.current, setup.link_of(device)
        best = _of_both_ends(state, above)
        if link is None or best is None or not (now.generation and now.lanes):
            untold.append(device)
            continue
        count += 1
        wired = setup.state.wired_lanes.get(card_of(state.function.address), best.lanes)
        best = replace(best, lanes=min(filter(None, (best.lanes, wired)), default=None))
        slower, narrower = now.generation < (best.generation or 0), now.lanes < (best.lanes or 0)
        if slower and _may_rest(setup, device, state):
            if now.generation == _AT_REST:
                at_rest.append(device)
                slower = False
            elif not narrower:
                perhaps_resting.add(device)
        if slower or narrower:
            real = LinkSpeed(now.generation if slower else best.generation, now.lanes)
            below[device] = f"{real}, and both ends can {best}"
            changes[device] = (
                (link.name, f"pcie {real.generation} x{real.lanes}"),
                (link.name, f"pcie {best.generation} x{best.lanes}"),
            )
    problems = [
        Problem(
            "link-below-both-ends",
            "note" if perhaps_resting.issuperset(group) else "warning",
            f"{names_of(group)}: {words}",
            "look at the riser, the seating, the slot's setting in the firmware, and how many "
            "lanes the board wires there (`dmidecode -t slot`); a device that saves power trains "
            "up under load: look again then",
            now=tuple(changes[device][0] for device in group),
            better=tuple(changes[device][1] for device in group),
            asks=setup.asks_of(group[0]),
        )
        for words, group in grouped(below).items()
    ]
    if at_rest:
        problems.append(
            Problem(
                "link-at-rest",
                "note",
                f"{names_of(at_rest)}: 2.5 GT/s now, which is a GPU that saves power",
                "look again while it works; topo counts what both ends can",
                unpriced="none: under load it is as fast as both ends can",
            )
        )
    well = f"{counted(count, 'link')} as fast as both ends can" if count else "no link to see"
    return Checked("PCIe links", tuple(problems), well, not_told(untold, "speed or width"))


def _may_rest(setup: Setup, device: str, state: FunctionState) -> bool:
    """Whether a slow link is how a device saves power: a GPU, or the switch in one of AMD's."""
    kind = setup.topology[device].kind
    return kind == "gpu" or (kind == SWITCH and state.function.vendor == _AMD)


def _of_both_ends(state: FunctionState, above: FunctionState | None) -> LinkSpeed | None:
    """Return the most that both ends of a function's link can, `None` where that is not told.

    Of the function alone it is known where it runs at all that it can, or is a GPU at rest.
    """
    function, most = state.function, state.function.most
    if not (most.generation and most.lanes):
        return None
    if above is None or not (above.function.most.generation and above.function.most.lanes):
        now = function.current
        rests = now == LinkSpeed(_AT_REST, most.lanes) and kind_of(function) == "gpu"
        return most if now == most or rests else None
    both, _ = link_between(replace(function, current=LinkSpeed()), above.function)
    return LinkSpeed(both.generation, both.lanes)


# --- peer traffic ---------------------------------------------------------------------------------


def access_control(setup: Setup) -> Checked:
    """Switches that redirect peer traffic to the root, where a GPU has a peer below them."""
    switches = [
        switch
        for switch in setup.topology.of_kind(SWITCH)
        if "gpu" in (below := setup.kinds_below(switch.name)) and len(below) > 1
    ]
    on = [switch.name for switch in switches if switch.part.flag("acs")]
    unknown = [switch.name for switch in switches if switch.part.flag("acs") is None]
    problems: tuple[Problem, ...] = ()
    if on:
        problem = Problem(
            "acs-on",
            "warning",
            f"{names_of(on)}: ACS redirects peer traffic to the root, over the uplink twice",
            "switch ACS off in the firmware, or clear its control word with setpci; a host of "
            "virtual machines needs it",
            now=tuple((f"{name}.acs", "on") for name in on),
            better=tuple((f"{name}.acs", "off") for name in on),
            asks=setup.asks_of_cards,
        )
        problems = (problem,)
    reason = not_told(unknown, "ACS") and f"{not_told(unknown, 'ACS')}: only root reads it"
    well = (
        f"off at {names_of([switch.name for switch in switches])}"
        if switches
        else "no switch with a GPU and another device below it"
    )
    return Checked("ACS redirect", problems, well, reason)


def translation(setup: Setup) -> Checked:
    """Whether the IOMMU translates what devices that talk to each other send."""
    translations = {name: state.translation for name, state in setup.of_kind("gpu", *CARDS, "nvme")}
    if len(translations) < 2 or not setup.topology.of_kind("gpu"):  # noqa: PLR2004  (a pair)
        return Checked("IOMMU", well="no GPU with a peer")
    unknown = [name for name, translation in translations.items() if translation is None]
    words = {translation for translation in translations.values() if translation is not None}
    on = [name for name, translation in translations.items() if translation == "on"]
    arm = any(cpu.part.facts.get("architecture") == "arm" for cpu in setup.topology.of_kind("cpu"))
    grace = arm and _has_superchip(setup.topology)
    if grace:  # where it has to be on
        off = [
            name
            for name, translation in translations.items()
            if translation in ("off", "passthrough")
        ]
        message = (
            f"the IOMMU does not translate for {names_of(off)}, and GPUDirect on Grace needs it"
        )
        changes = ("passthrough", "on")
        help = "boot without iommu.passthrough=1"
        wrong = off
    else:
        message = f"the IOMMU translates for {names_of(on)}: no peer-to-peer through the root"
        changes = ("on", "passthrough")
        help = "boot with iommu=pt, or switch it off where no virtual machine needs it"
        wrong = on
    problems: tuple[Problem, ...] = ()
    if wrong and grace == arm:  # of other Arm servers nobody says either
        problem = Problem(
            "iommu-translates" if not grace else "iommu-off-on-grace",
            "warning",
            message,
            help,
            now=(("settings.iommu", changes[0]),),
            better=(("settings.iommu", changes[1]),),
            asks=setup.asks_of_cards,
        )
        problems = (problem,)
    well = listed(sorted(words)) or "nothing to ask it about"
    return Checked("IOMMU", problems, well, not_told(unknown, "what the IOMMU does with DMA"))


def _has_superchip(topology: Topology) -> bool:
    """Whether a GPU is the CPU's own, as Grace's are: a known one that has no PCIe slot."""
    gpus = [gpu.part for gpu in topology.of_kind("gpu")]
    return any(gpu.slot is None and gpu.figure("memory") for gpu in gpus)


# --- packets --------------------------------------------------------------------------------------


def packet_share(payload: int) -> float:
    """Return how much of a PCIe packet with so many bytes of payload is payload, up to PCIe 5.

    Each has 24 bytes beside: framing and sequence number 4, head with a 64-bit address 16, LCRC 4
    (PCI Express Base Specification, sections 2.2 and 3.6).

    Examples
    --------
    >>> round(packet_share(256), 3)
    0.914
    """
    return payload / (payload + _HEAD)


def payload(setup: Setup) -> Checked:
    """How much of each packet is payload, and how much a card asks for at once."""
    small: dict[str, str] = {}
    shares: dict[str, tuple[Change, Change]] = {}
    asks_little: dict[str, str] = {}
    untold: list[str] = []
    most_below = _largest_payloads(setup)
    for device, state in setup.of_kind(*LEAVES):
        if state.is_express is False or state.function.virtual:
            continue
        now, root_port = state.payload, setup.root_port(state)
        if now is None or (root_port is None and now.now < now.most):
            untold.append(device)
            continue
        best = most_below[root_port.function.address] if root_port is not None else now.now
        link = setup.link_of(device)
        rate = link.cable.rate.value if link is not None else None
        generation = link.cable.generation if link is not None else None
        if now.now < best and link is not None and rate and (generation or 0) < _FLITS_FROM:
            words = f"MaxPayload is {now.now} bytes, and all below the same root port take {best}"
            small[device] = words
            target = f"{link.name}.rate"
            shares[device] = (
                (target, _exact(rate * now.now / (now.now + _HEAD))),
                (target, _exact(rate * packet_share(best))),
            )
        ports = setup.topology[device].part.ports
        port_rate = ports.rate.value if ports is not None and ports.rate is not None else None
        if (port_rate or 0.0) >= _FAST_PORT and now.read < _READ_REQUEST:
            asks_little[device] = f"MaxReadReq is {now.read} bytes"
    problems = [
        Problem(
            "small-payload",
            "warning" if f"is {_UNSET} bytes" in words else "note",
            f"{names_of(group)}: {words}",
            "set it in the firmware; rates here are less the "
            f"{_HEAD} bytes that each packet has beside its payload",
            now=tuple(shares[device][0] for device in group),
            better=tuple(shares[device][1] for device in group),
            asks=setup.asks_of(group[0]),
        )
        for words, group in grouped(small).items()
    ]
    problems += [
        Problem(
            "small-read-request",
            "note",
            f"{names_of(group)}: {words}, for a port of 200 Gb/s or more",
            f"{_READ_REQUEST} is what NVIDIA's tuning sets: setpci -s ADDRESS CAP_EXP+08.w",
            unpriced="not known: it depends on how long the host takes to answer a read",
        )
        for words, group in grouped(asks_little).items()
        if not setup.state.is_virtual  # there it is the hypervisor's
    ]
    reason = not_told(untold, "the size of packets")
    if reason and not setup.state.shows_config:
        reason += ": only root reads it"
    return Checked("packets", tuple(problems), "as large as all on the way take", reason)


def _largest_payloads(setup: Setup) -> dict[str, int]:
    """Return what all functions below each root port take, by the port's address.

    They may talk to each other, and a packet larger than its receiver takes is an error.
    """
    largest: dict[str, int] = {}
    for state in setup.state.functions.values():
        root_port = setup.root_port(state)
        if root_port is None or state.payload is None or state.function.virtual:
            continue
        most = min(payload.most for payload in (state.payload, root_port.payload) if payload)
        address = root_port.function.address
        largest[address] = min(largest.get(address, most), most)
    return largest


def _exact(rate: float) -> str:
    return f"{rate / 1e9:.9g} GB/s"
