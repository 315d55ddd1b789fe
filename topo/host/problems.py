"""What of a host's set-up keeps data from going as fast as the hardware can.

Each rule looks at one thing and yields problems, what it could not see, or that all is well. A
problem knows what would be written into the machine's file for how it is and for how it could be:
what it costs is the difference of topo's own answers (`topo.host.cost`).
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import replace
from typing import TYPE_CHECKING, Final

from topo.catalogue.kinds import CARDS
from topo.description.names import ranged
from topo.discovery.pci import LinkSpeed, kind_of, link_between, read_address
from topo.errors import Severity
from topo.phrases import counted, listed
from topo.records import dataclass
from topo.study.affinity import affinities
from topo.topology.locality import locality, numa_nodes
from topo.topology.topology import Link, Topology
from topo.units import format_size

if TYPE_CHECKING:
    from topo.host.kernel_state import FunctionState, HostState

_SWITCH: Final = "pcie-switch"
_LEAVES: Final = ("gpu", *CARDS, "nvme", "hba")
_AT_REST: Final = 1  # PCIe generation
_FLITS_FROM: Final = 6  # PCIe generation whose packets have other heads
_HEAD: Final = 24  # bytes of a packet beside its payload, with 64-bit addresses
_READ_REQUEST: Final = 4096  # bytes, for cards that are as fast as
_FAST_PORT: Final = 200e9 / 8  # bytes/s
_DMABUF_FROM: Final = (5, 12)  # Linux's release
_MOST_NAMES: Final = 6
_DEEPEST: Final = 16  # ports above a device
_NVIDIA: Final = "10de"
_FAR: Final = ("NODE", "SYS")

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
        if kind == _SWITCH:
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


def check_setup(setup: Setup) -> tuple[Checked, ...]:
    """Return what each rule comes to, in the order in which data meets things."""
    return tuple(rule(setup) for rule in _RULES)


def _names(devices: Sequence[str]) -> str:
    return listed(ranged(devices), most=_MOST_NAMES)


def _grouped(told: Mapping[str, str]) -> dict[str, list[str]]:
    """Return devices by what is told of them."""
    groups: dict[str, list[str]] = {}
    for device, words in told.items():
        groups.setdefault(words, []).append(device)
    return groups


# --- what it is -----------------------------------------------------------------------------------


def _machine(setup: Setup) -> Checked:
    """Whether what it says of itself is the hardware's word."""
    if setup.state.is_virtual is None:
        return Checked("machine", unknown="whether it is a virtual one is not told")
    if not setup.state.is_virtual:
        return Checked("machine", well="no hypervisor")
    problem = Problem(
        "virtual-machine",
        "note",
        "this is a virtual machine: links, ACS and the IOMMU are as its hypervisor shows them",
        "check the host under it too",
        unpriced="not known: what the hypervisor hides is not told",
    )
    return Checked("machine", (problem,))


# --- links ----------------------------------------------------------------------------------------


def _links(setup: Setup) -> Checked:
    """Links that run below what both ends can."""
    below: dict[str, str] = {}
    at_rest: list[str] = []
    untold: list[str] = []
    seen = 0
    changes: dict[str, tuple[Change, Change]] = {}
    for device, state in setup.of_kind(*_LEAVES, _SWITCH):
        above = setup.port_above(state)
        if state.is_express is False or (above is not None and above.port == "upstream"):
            continue
        now, link = state.function.current, setup.link_of(device)
        best = _of_both_ends(state, above)
        if link is None or best is None or not (now.generation and now.lanes):
            untold.append(device)
            continue
        seen += 1
        slower = now.generation < (best.generation or 0)
        if slower and now.generation == _AT_REST and setup.topology[device].kind == "gpu":
            at_rest.append(device)
            slower = False
        if slower or now.lanes < (best.lanes or 0):
            real = LinkSpeed(now.generation if slower else best.generation, now.lanes)
            below[device] = f"{real}, and both ends can {best}"
            changes[device] = (
                (link.name, f"pcie {real.generation} x{real.lanes}"),
                (link.name, f"pcie {best.generation} x{best.lanes}"),
            )
    problems = [
        Problem(
            "link-below-both-ends",
            "warning",
            f"{_names(group)}: {words}",
            "look at the riser, the seating and the slot's setting in the firmware; a device that "
            "saves power trains up under load: look again then",
            now=tuple(changes[device][0] for device in group),
            better=tuple(changes[device][1] for device in group),
            asks=setup.asks_of(group[0]),
        )
        for words, group in _grouped(below).items()
    ]
    if at_rest:
        problems.append(
            Problem(
                "link-at-rest",
                "note",
                f"{_names(at_rest)}: 2.5 GT/s now, which is a GPU that saves power",
                "look again while it works; topo counts what both ends can",
                unpriced="none: under load it is as fast as both ends can",
            )
        )
    well = f"{counted(seen, 'link')} as fast as both ends can" if seen else "no link to see"
    return Checked("PCIe links", tuple(problems), well, _untold(untold, "speed or width"))


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


def _untold(devices: Sequence[str], what: str) -> str:
    return f"{what} of {_names(devices)} is not told" if devices else ""


# --- peer traffic ---------------------------------------------------------------------------------


def _access_control(setup: Setup) -> Checked:
    """Switches that redirect peer traffic to the root."""
    switches = setup.topology.of_kind(_SWITCH)
    on = [switch.name for switch in switches if switch.part.flag("acs")]
    unknown = [switch.name for switch in switches if switch.part.flag("acs") is None]
    problems: tuple[Problem, ...] = ()
    if on:
        problem = Problem(
            "acs-on",
            "warning",
            f"{_names(on)}: ACS redirects peer traffic to the root, over the uplink twice",
            "switch ACS off in the firmware, or clear its control word with setpci; a host of "
            "virtual machines needs it",
            now=tuple((f"{name}.acs", "on") for name in on),
            better=tuple((f"{name}.acs", "off") for name in on),
            asks=setup.asks_of_cards,
        )
        problems = (problem,)
    reason = _untold(unknown, "ACS") and f"{_untold(unknown, 'ACS')}: only root reads it"
    well = f"off at {_names([switch.name for switch in switches])}" if switches else "no switch"
    return Checked("ACS redirect", problems, well, reason)


def _translation(setup: Setup) -> Checked:
    """Whether the IOMMU translates what devices that talk to each other send."""
    told = {name: state.translation for name, state in setup.of_kind("gpu", *CARDS, "nvme")}
    unknown = [name for name, translation in told.items() if translation is None]
    words = {translation for translation in told.values() if translation is not None}
    on = [name for name, translation in told.items() if translation == "on"]
    arm = any(cpu.part.facts.get("architecture") == "arm" for cpu in setup.topology.of_kind("cpu"))
    if arm:  # where it has to be on
        off = [name for name, translation in told.items() if translation in ("off", "passthrough")]
        message = f"the IOMMU does not translate for {_names(off)}, and GPUDirect on Arm needs it"
        changes = ("passthrough", "on")
        help = "boot without iommu.passthrough=1"
        wrong = off
    else:
        message = f"the IOMMU translates for {_names(on)}: no peer-to-peer through the root"
        changes = ("on", "passthrough")
        help = "boot with iommu=pt, or switch it off where no virtual machine needs it"
        wrong = on
    problems: tuple[Problem, ...] = ()
    if wrong:
        problem = Problem(
            "iommu-translates" if not arm else "iommu-off-on-arm",
            "warning",
            message,
            help,
            now=(("settings.iommu", changes[0]),),
            better=(("settings.iommu", changes[1]),),
            asks=setup.asks_of_cards,
        )
        problems = (problem,)
    well = listed(sorted(words)) or "nothing to ask it about"
    return Checked("IOMMU", problems, well, _untold(unknown, "what the IOMMU does with DMA"))


# --- packets --------------------------------------------------------------------------------------


def _payload(setup: Setup) -> Checked:
    """How much of each packet is payload, and how much a card asks for at once."""
    small: dict[str, str] = {}
    shares: dict[str, tuple[Change, Change]] = {}
    asks_little: dict[str, str] = {}
    untold: list[str] = []
    devices = setup.of_kind(*_LEAVES)
    for device, state in devices:
        if state.is_express is False:
            continue
        if state.payload is None:
            untold.append(device)
            continue
        chain = [state.payload]
        above = setup.port_above(state)
        while above is not None and len(chain) <= _DEEPEST:
            chain += [above.payload] if above.payload is not None else []
            above = setup.port_above(above)
        best, now = min(payload.most for payload in chain), state.payload.now
        link = setup.link_of(device)
        rate = link.cable.rate.value if link is not None else None
        generation = link.cable.generation if link is not None else None
        if now < best and link is not None and rate and (generation or 0) < _FLITS_FROM:
            small[device] = f"MaxPayload is {now} bytes, and all on the way to the CPU take {best}"
            target = f"{link.name}.rate"
            shares[device] = (
                (target, _exact(rate * now / (now + _HEAD))),
                (target, _exact(rate * best / (best + _HEAD))),
            )
        ports = setup.topology[device].part.ports
        port_rate = ports.rate.value if ports is not None and ports.rate is not None else None
        if (port_rate or 0.0) >= _FAST_PORT and state.payload.read < _READ_REQUEST:
            asks_little[device] = f"MaxReadReq is {state.payload.read} bytes"
    problems = [
        Problem(
            "small-payload",
            "warning",
            f"{_names(group)}: {words}",
            "boot with pci=pcie_bus_perf, or set it in the firmware; rates here are less the "
            f"{_HEAD} bytes that each packet has beside its payload",
            now=tuple(shares[device][0] for device in group),
            better=tuple(shares[device][1] for device in group),
            asks=setup.asks_of(group[0]),
        )
        for words, group in _grouped(small).items()
    ]
    problems += [
        Problem(
            "small-read-request",
            "note",
            f"{_names(group)}: {words}, for a port of 200 Gb/s or more",
            f"{_READ_REQUEST} is what NVIDIA's tuning sets: setpci -s ADDRESS CAP_EXP+08.w",
            unpriced="not known: it depends on how long the host takes to answer a read",
        )
        for words, group in _grouped(asks_little).items()
    ]
    reason = _untold(untold, "the size of packets")
    if reason and not setup.state.shows_config:
        reason += ": only root reads it"
    return Checked("packets", tuple(problems), "as large as all on the way take", reason)


def _exact(rate: float) -> str:
    return f"{rate / 1e9:.9g} GB/s"


# --- GPUs and cards -------------------------------------------------------------------------------


def _windows(setup: Setup) -> Checked:
    """Whether other devices reach all of a GPU's memory."""
    small: dict[str, str] = {}
    untold: list[str] = []
    gpus = setup.of_kind("gpu")
    for gpu, state in gpus:
        memory = setup.topology[gpu].part.figure("memory")
        if memory is None or memory.value is None or state.window is None:
            untold.append(gpu)
        elif state.window < memory.value:
            window, whole = format_size(state.window), format_size(memory.value)
            small[gpu] = f"BAR1 is {window}, and the memory {whole}"
    problems = [
        Problem(
            "small-bar1",
            "warning",
            f"{_names(group)}: {words}",
            "switch on Above 4G Decoding and Resizable BAR in the firmware, where the GPU has it",
            unpriced="not known: what goes directly is mapped piece by piece, at no stated rate",
        )
        for words, group in _grouped(small).items()
    ]
    well = f"as large as the memory at {counted(len(gpus), 'GPU')}" if gpus else "no GPU"
    return Checked("BAR1", tuple(problems), well, _untold(untold, "BAR1 or memory"))


def _nodes(setup: Setup) -> Checked:
    """GPUs whose nearest card is on another NUMA node."""
    topology = setup.topology
    if not topology.of_kind("gpu") or not topology.of_kind(*CARDS):
        return Checked("NUMA", well="no GPU with a network card")
    far: dict[str, str] = {}
    near: dict[str, str] = {}
    for of_gpu in affinities(topology).gpus:
        cards = (choice.device for choice in of_gpu.choices)
        card = next((card for card in cards if topology[card].kind in CARDS), "")
        if card:
            is_far = locality(topology, of_gpu.gpu, card) in _FAR
            is_far = is_far and numa_nodes(topology, of_gpu.gpu) != numa_nodes(topology, card)
            (far if is_far else near)[of_gpu.gpu] = card
    untold = [
        name
        for name, state in setup.of_kind("gpu", *CARDS)
        if state.function.node is None and len(topology.of_kind("cpu")) > 1
    ]
    problems: tuple[Problem, ...] = ()
    if far:
        gpu, card = next(iter(far.items()))
        beside = next((other for other, its in near.items() if its == card), "")
        problem = Problem(
            "card-on-other-node",
            "warning",
            f"{_names(list(far))}: the nearest card, {card}, is on another NUMA node",
            "put a card beside these GPUs, or give their work to GPUs that have one",
            compared=((card, gpu, ""), (card, beside, "")) if beside else (),
            unpriced=""
            if beside
            else "not known: no GPU here has a card beside it to compare with",
        )
        problems = (problem,)
    return Checked(
        "NUMA", problems, "every GPU has a card on its node", _untold(untold, "the node")
    )


def _rdma(setup: Setup) -> Checked:
    """Cards without RDMA beside others of the same kind with it."""
    cards = setup.of_kind(*CARDS)
    able = {
        (state.function.vendor, state.function.device) for _, state in cards if state.function.rdma
    }
    without = [
        name
        for name, state in cards
        if not state.function.rdma and (state.function.vendor, state.function.device) in able
    ]
    problems: tuple[Problem, ...] = ()
    if without:
        problem = Problem(
            "card-without-rdma",
            "warning",
            f"{_names(without)}: no RDMA device, and others of the same kind have one",
            "load mlx5_ib (or the vendor's RDMA driver), and look whether the port is bound to it",
            without=tuple(without),
            asks=setup.asks_of_cards,
        )
        problems = (problem,)
    with_rdma = [name for name, state in cards if state.function.rdma]
    well = f"at {_names(with_rdma)}" if with_rdma else "no card with it"
    return Checked("RDMA", problems, well)


# --- drivers and power ----------------------------------------------------------------------------


def _drivers(setup: Setup) -> Checked:
    """Kernel modules without which nothing goes directly."""
    modules = setup.state.modules
    gpus = [name for name, state in setup.of_kind("gpu") if state.function.vendor == _NVIDIA]
    if not gpus:
        return Checked("drivers", well="no NVIDIA GPU")
    if modules is None:
        return Checked("drivers", unknown="/sys/module was not copied")
    if "nvidia" not in modules:
        problem = Problem(
            "no-gpu-driver",
            "warning",
            f"NVIDIA's driver is not loaded, and there is {_names(gpus)}",
            "load it: modprobe nvidia",
            unpriced="everything: without it the GPUs do nothing",
        )
        return Checked("drivers", (problem,))
    problems: list[Problem] = []
    unknown = ""
    has_rdma = any(state.function.rdma for _, state in setup.of_kind(*CARDS))
    by_dmabuf = _can_dmabuf(setup.state)
    if has_rdma and not {"nvidia_peermem", "nv_peer_mem"} & modules:
        if by_dmabuf is None:
            unknown = "whether the driver can share memory by DMA-BUF is not told"
        elif not by_dmabuf:
            problems.append(
                Problem(
                    "no-gpudirect-rdma-driver",
                    "warning",
                    "nvidia-peermem is not loaded, and the driver and kernel have no DMA-BUF",
                    "load it: modprobe nvidia-peermem; or take the open driver and Linux 5.12",
                    now=tuple((f"{gpu}.gdr", "no") for gpu in gpus),
                    better=tuple((f"{gpu}.gdr", "yes") for gpu in gpus),
                    asks=setup.asks_of_cards,
                    instead=(setup.asks_of_cards[0][0], "gpu", "nic-ram"),
                )
            )
    storage = setup.topology.of_kind("storage", "nvme")
    if storage and "nvidia_fs" not in modules:
        problems.append(
            Problem(
                "no-nvidia-fs",
                "note",
                "nvidia-fs is not loaded: cuFile goes through RAM, but for local drives by P2PDMA",
                "install GPUDirect Storage, and load it: modprobe nvidia-fs",
                compared=(("", "", "compat"), ("", "", "direct")) if setup.has_storage else (),
                unpriced="" if setup.has_storage else "not known: where storage is is a guess",
            )
        )
    return Checked("drivers", tuple(problems), "what goes directly has its modules", unknown)


def _can_dmabuf(state: HostState) -> bool | None:
    """Whether GPU memory may be shared by DMA-BUF: by the open driver, from Linux 5.12 on."""
    if state.open_driver is False or (state.release and state.release < _DMABUF_FROM):
        return False
    return True if state.open_driver and state.release else None


def _governor(setup: Setup) -> Checked:
    """CPUs that do not run as fast as they can."""
    governors = setup.state.governors
    if not governors:
        return Checked("governor", unknown="no CPU tells its scaling governor")
    slow = {
        (governor, driver): count
        for (governor, driver), count in governors.items()
        if governor != "performance"
    }
    problems = tuple(
        Problem(
            "slow-governor",
            "note",
            f"{counted(count, 'CPU')}: the governor is `{governor}`"
            + (f" ({driver})" if driver else ""),
            "cpupower frequency-set -g performance",
            unpriced="not known: how much slower cores copy, and answer, depends on the load",
        )
        for (governor, driver), count in slow.items()
    )
    return Checked("governor", problems, "performance")


_RULES: Final[tuple[Callable[[Setup], Checked], ...]] = (
    _machine,
    _links,
    _access_control,
    _translation,
    _payload,
    _windows,
    _nodes,
    _rdma,
    _drivers,
    _governor,
)
