"""What Linux says of how a host is set up: what it does with DMA, packets, power and drivers.

Nothing is concluded here. What cannot be read is `None`, which is not the same as absent.

References
----------
Linux, ``Documentation/ABI/testing``: ``sysfs-bus-pci``, ``sysfs-kernel-iommu_groups``;
``Documentation/admin-guide/pm/cpufreq.rst``.
"""

from __future__ import annotations

import re
from collections import Counter
from typing import TYPE_CHECKING, Final, Literal

from topo.discovery.pci import Function, card_of, ports_of
from topo.discovery.sources.config_space import (
    HEADER_SIZE,
    Payload,
    config_is_express,
    config_largest_window,
    config_payload,
)
from topo.discovery.sources.dmidecode import wired_lanes
from topo.discovery.sources.sysfs import FUNCTIONS, read_functions, read_processors
from topo.records import dataclass

if TYPE_CHECKING:
    from collections.abc import Iterable

    from topo.discovery.host_sources import HostText
    from topo.discovery.pci import Port
    from topo.discovery.sources.file_tree import FileTree

Translation = Literal["off", "passthrough", "on"]

_MODULES: Final = "/sys/module"
_GROUPS: Final = "/sys/kernel/iommu_groups"
_CPUS: Final = "/sys/devices/system/cpu"
_DRIVER: Final = "/proc/driver/nvidia/version"
_RELEASE: Final = "/proc/sys/kernel/osrelease"
# Of an IOMMU group's `type`: what its domain does with addresses.
_TRANSLATIONS: Final[dict[str, Translation]] = {
    "identity": "passthrough",
    "DMA": "on",
    "DMA-FQ": "on",
}
_FLAGS: Final = re.compile(r"(?m)^flags\s*:(.*)")
_HYPERVISOR: Final = re.compile(r"\bhypervisor\b")
_PREFETCHABLE: Final = 0x2000  # IORESOURCE_PREFETCH
_REGION: Final = re.compile(r"0x([0-9a-f]{1,16}) 0x([0-9a-f]{1,16}) 0x([0-9a-f]{1,16})")
_BARS: Final = 6
_CPU: Final = re.compile(r"cpu\d{1,4}")


@dataclass(frozen=True, slots=True)
class FunctionState:
    """How one PCI function is set up.

    Parameters
    ----------
    function
        What it is, with its link and ACS.
    port
        ``root``, ``upstream`` or ``downstream`` for a bridge.
    is_express
        Whether it has a PCI Express link at all, as what a virtual machine makes up has not; `None`
        where its config space is cut.
    payload
        The sizes of its packets; `None` where its config space is cut.
    window, largest_window
        The bytes of its largest prefetchable region, through which others reach its memory, and how
        many it can have; `None` where none is told to be resizable.
    translation
        What the IOMMU does with its addresses; `None` where the system does not tell.
    driver
        The kernel driver that it is bound to; empty where it is bound to none, or not told.
    """

    function: Function
    port: Port
    is_express: bool | None
    payload: Payload | None
    window: int | None
    largest_window: int | None
    translation: Translation | None
    driver: str


@dataclass(frozen=True, slots=True)
class HostState:
    """How a host is set up.

    Parameters
    ----------
    functions
        Its PCI functions, by address.
    shows_config
        Whether config space behind the header can be read, which only root may.
    modules
        The loaded kernel modules and built-in ones that show themselves; `None` where not told.
    release
        The kernel's, as its numbers; empty where not told, or where its maker brings what is newer
        into it.
    open_driver
        Whether NVIDIA's kernel driver is the open one; `None` where none says so.
    is_virtual
        Whether it is a virtual machine, as its CPU says; `None` where it has no flags to say so.
    governors
        How many CPUs have which scaling governor, by ``governor`` and ``driver``.
    wired_lanes
        How many lanes the board wires to a slot, by the address of the card in it, where told.
    """

    functions: dict[str, FunctionState]
    shows_config: bool
    modules: frozenset[str] | None
    release: tuple[int, ...]
    open_driver: bool | None
    is_virtual: bool | None
    governors: dict[tuple[str, str], int]
    wired_lanes: dict[str, int]


def read_host_state(tree: FileTree, texts: Iterable[HostText] = ()) -> HostState:
    """Return how a host is set up, from its /sys and /proc, and from what its tools printed."""
    functions = read_functions(tree, read_processors(tree))
    ports = ports_of(function for function in functions if function.is_bridge)
    configs = {
        function.id: tree.data(f"{FUNCTIONS}/{function.address}/config") for function in functions
    }
    states = {
        function.address: FunctionState(
            function,
            ports.get(function.id, ""),
            config_is_express(configs[function.id]),
            config_payload(configs[function.id]),
            _window(tree, function.address),
            config_largest_window(configs[function.id]),
            _translation(tree, function.address),
            tree.resolve(f"{FUNCTIONS}/{function.address}/driver").rpartition("/")[2],
        )
        for function in functions
    }
    driver = tree.text(_DRIVER)
    flags = _FLAGS.search(tree.text("/proc/cpuinfo"))
    governors = Counter(
        (governor, tree.text(f"{_CPUS}/{cpu}/cpufreq/scaling_driver"))
        for cpu in tree.names(_CPUS)
        if _CPU.fullmatch(cpu)
        if (governor := tree.text(f"{_CPUS}/{cpu}/cpufreq/scaling_governor"))
    )
    return HostState(
        functions=states,
        shows_config=any(len(config) > HEADER_SIZE for config in configs.values()),
        modules=frozenset(tree.names(_MODULES)) if tree.resolve(_MODULES) else None,
        release=tuple(int(number) for number in _numbers(tree.text(_RELEASE))),
        open_driver="Open Kernel Module" in driver if driver else None,
        is_virtual=bool(_HYPERVISOR.search(flags[1])) if flags else None,
        governors=dict(sorted(governors.items())),
        wired_lanes={
            card_of(address): lanes
            for text in texts
            if text.command.startswith("dmidecode")
            for address, lanes in wired_lanes(text.data).items()
        },
    )


def _numbers(release: str) -> list[str]:
    """Return the numbers that a kernel's release begins with: ``6.8.0-45-generic``."""
    match = re.match(r"\d{1,4}(?:\.\d{1,4}){1,2}", release)
    return match[0].split(".") if match and ".el" not in release else []


def _window(tree: FileTree, address: str) -> int | None:
    """Return the size of a function's largest prefetchable region, `None` where it has none."""
    sizes = [0]
    for line in tree.text(f"{FUNCTIONS}/{address}/resource").splitlines()[:_BARS]:
        if region := _REGION.fullmatch(line.strip()):
            start, end, flags = (int(text, 16) for text in region.groups())
            if flags & _PREFETCHABLE and end > start:
                sizes.append(end - start + 1)
    return max(sizes) or None


def _translation(tree: FileTree, address: str) -> Translation | None:
    group = f"{FUNCTIONS}/{address}/iommu_group"
    if tree.resolve(group):
        return _TRANSLATIONS.get(tree.text(f"{group}/type"))
    return "off" if tree.resolve(_GROUPS) else None
