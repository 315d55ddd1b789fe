"""A host's set-up as rules see it, and what they yield: problems, what is well, what is not seen.

A problem knows what would be written into the machine's file for how it is and for how it could be:
what it costs is the difference of topo's own answers (`topo.host.cost`).
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING, Final

from topo.catalogue.kinds import CARDS
from topo.description.names import ranged
from topo.discovery.pci import read_address
from topo.errors import Severity
from topo.phrases import listed
from topo.records import dataclass
from topo.topology.topology import Link, Topology

if TYPE_CHECKING:
    from topo.host.kernel_state import FunctionState, HostState

SWITCH: Final = "pcie-switch"
LEAVES: Final = ("gpu", *CARDS, "nvme", "hba")
_MOST_NAMES: Final = 6
_DEEPEST: Final = 16  # ports above a device

Change = tuple[str, str]  # a target of the file and its value, as `--set` takes them
Ask = tuple[str, str, str]  # from, to, by which data path: empty for the best of the usual ones
_WORKLOADS: Final[Ask] = ("", "", "")


@dataclass(frozen=True, slots=True)
class Problem:
    """One thing that is set up worse than it could be.

    Parameters
    ----------
    code, severity, message, help
        As of a finding.
    now, better
        What the machine's file would say of it as it is, and set up well.
    without
        Devices that cannot be used as it is.
    asks
        Whose rates it may change.
    compared
        Two questions of the machine as it is whose rates are how it is, and how it could be.
    instead
        What is done where the first of `asks` is refused as it is.
    unpriced
        What is said of its cost where the answers cannot tell; empty where they do.
    """

    code: str
    severity: Severity
    message: str
    help: str
    now: tuple[Change, ...] = ()
    better: tuple[Change, ...] = ()
    without: tuple[str, ...] = ()
    asks: tuple[Ask, ...] = ()
    compared: tuple[Ask, ...] = ()
    instead: Ask | None = None
    unpriced: str = ""


@dataclass(frozen=True, slots=True)
class Checked:
    """What a rule came to: problems, what is well in words, and what could not be seen."""

    subject: str
    problems: tuple[Problem, ...] = ()
    well: str = ""
    unknown: str = ""

    @property
    def is_well(self) -> bool:
        """Whether nothing is wrong and all could be seen."""
        return not self.problems and not self.unknown


@dataclass(frozen=True, slots=True)
class Setup:
    """A host's state beside the machine that it is.

    Parameters
    ----------
    state
        How the host is set up.
    topology
        The machine as imported, with nothing of its set-up in it but ACS and narrow links.
    has_storage
        Whether it is told where storage is, so that the file's own workloads mean something.
    """

    state: HostState
    topology: Topology
    has_storage: bool

    def device_of(self) -> dict[str, str]:
        """Return the device of each PCI address."""
        return {
            read_address(address): device.name
            for device in self.topology.devices.values()
            for address in device.pci
        }

    def of_kind(self, *kinds: str) -> list[tuple[str, FunctionState]]:
        """Return the devices of these kinds, each with the state of its first function."""
        states: dict[str, FunctionState] = {}
        for address, device in self.device_of().items():
            if address in self.state.functions and self.topology[device].kind in kinds:
                states.setdefault(device, self.state.functions[address])
        return list(states.items())

    def port_above(self, state: FunctionState) -> FunctionState | None:
        """Return the port that a function's link leads to."""
        return self.state.functions.get(state.function.parent)

    def root_port(self, state: FunctionState) -> FunctionState | None:
        """Return the topmost port above a function; `None` where none is shown."""
        topmost = None
        for _ in range(_DEEPEST):
            above = self.port_above(topmost or state)
            if above is None:
                break
            topmost = above
        return topmost

    def kinds_below(self, switch: str) -> list[str]:
        """Return the kinds of what hangs below a switch, one for each device."""
        tree = self.topology.tree
        return [
            device.kind
            for device in self.topology.of_kind(*LEAVES)
            if (place := tree.attachment(device.name)) is not None and switch in place.bridges
        ]

    def link_of(self, device: str) -> Link | None:
        """Return a device's own PCIe link, towards the CPU; `None` where it has none."""
        attachment = self.topology.tree.attachment(device)
        if attachment is None:
            return None
        above = (*attachment.bridges, attachment.root)[0]
        links = (step.link for step in self.topology.steps[device] if step.target == above)
        return next((link for link in links if link.cable.family == "pcie"), None)

    def asks_of(self, device: str) -> tuple[Ask, ...]:
        """Return whose rates a device's own link may change."""
        kind = self.topology[device].kind
        if kind == "gpu":
            return (("ram", device, ""), *self.workloads)
        if kind == SWITCH:
            return (("ram", "gpu", ""), *self.asks_of_cards)
        if kind in CARDS and not self.topology.of_kind("gpu"):
            return ((device, "ram", ""),)
        return ((device, "gpu", ""), *self.workloads)

    @property
    def asks_of_cards(self) -> tuple[Ask, ...]:
        """Return whose rates change with what cards and GPUs may say to each other."""
        card = next((kind for kind in CARDS if self.topology.of_kind(kind)), "")
        return ((card, "gpu", ""), *self.workloads) if card else self.workloads

    @property
    def workloads(self) -> tuple[Ask, ...]:
        """The file's own, by all their usual data paths."""
        return (_WORKLOADS,) if self.has_storage else ()


# --- words ----------------------------------------------------------------------------------------


def names_of(devices: Sequence[str]) -> str:
    """Return devices as a sentence names them."""
    return listed(ranged(devices), most=_MOST_NAMES)


def grouped(told: Mapping[str, str]) -> dict[str, list[str]]:
    """Return devices by what is told of them."""
    groups: dict[str, list[str]] = {}
    for device, words in told.items():
        groups.setdefault(words, []).append(device)
    return groups


def not_told(devices: Sequence[str], what: str) -> str:
    """Return what is not told of some devices, nothing where there are none."""
    return f"{what} of {names_of(devices)} is not told" if devices else ""
