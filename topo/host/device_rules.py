"""What of a host's devices keeps data slow: BAR1, NUMA nodes, RDMA, drivers, the CPUs' clock."""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

from topo.catalogue.kinds import CARDS
from topo.host.problems import Checked, Problem, Setup, grouped, names_of, not_told
from topo.phrases import counted
from topo.topology.locality import locality, numa_nodes, rank
from topo.units import format_size

if TYPE_CHECKING:
    from topo.host.kernel_state import HostState

_DMABUF_FROM: Final = (5, 12)  # Linux's release
_NVIDIA, _AMAZON = "10de", "1d0f"
_PEER_MODULES: Final = frozenset(("nvidia_peermem", "nv_peer_mem", "efa_nv_peermem"))
# Drivers of those who take a device away from the kernel: no fault of the host's.
_HANDED_ON: Final = frozenset(("vfio-pci", "uio_pci_generic", "igb_uio"))
_FAR: Final = ("NODE", "SYS")


# --- what it is -----------------------------------------------------------------------------------


def machine(setup: Setup) -> Checked:
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


# --- GPUs and cards -------------------------------------------------------------------------------


def windows(setup: Setup) -> Checked:
    """Whether other devices reach all of a GPU's memory."""
    can_more: dict[str, str] = {}
    cannot: dict[str, str] = {}
    untold: list[str] = []
    gpus = setup.of_kind("gpu")
    for gpu, state in gpus:
        memory = setup.topology[gpu].part.figure("memory")
        if memory is None or memory.value is None or state.window is None:
            untold.append(gpu)
        elif state.window < memory.value:
            words = f"BAR1 is {format_size(state.window)}, and the memory "
            words += format_size(memory.value)
            if (state.largest_window or 0) > state.window:
                largest = format_size(state.largest_window or 0)
                can_more[gpu] = f"{words}; the GPU can have one of {largest}"
            else:
                cannot[gpu] = words
    problems = [
        Problem(
            "small-bar1",
            "warning" if group[0] in can_more else "note",
            f"{names_of(group)}: {words}",
            "switch on Above 4G Decoding and Resizable BAR in the firmware"
            + ("" if group[0] in can_more else ", where the GPU has it: it shows none here"),
            unpriced="not known: what goes directly is mapped piece by piece, at no stated rate",
        )
        for words, group in grouped(can_more | cannot).items()
    ]
    well = f"as large as the memory at {counted(len(gpus), 'GPU')}" if gpus else "no GPU"
    return Checked("BAR1", tuple(problems), well, not_told(untold, "BAR1 or memory"))


def nodes(setup: Setup) -> Checked:
    """GPUs whose nearest card with RDMA is on another NUMA node."""
    topology = setup.topology
    gpus = [gpu.name for gpu in topology.of_kind("gpu")]
    cards = [card.name for card in topology.of_kind(*CARDS) if any(card.rdma)]
    if not gpus or not cards:
        return Checked("NUMA", well="no GPU with a network card that has RDMA")
    far: dict[str, str] = {}
    near: dict[str, str] = {}
    for gpu in gpus:
        classes = {card: locality(topology, gpu, card) for card in cards}
        card = min(cards, key=lambda card: (rank(classes[card]), card))
        on_other = numa_nodes(topology, gpu) != numa_nodes(topology, card)
        (far if classes[card] in _FAR and on_other else near)[gpu] = card
    untold = [
        name
        for name, state in setup.of_kind("gpu", *CARDS)
        if state.function.node is None and len(topology.of_kind("cpu")) > 1
        if name in (*gpus, *cards)
    ]
    problems: tuple[Problem, ...] = ()
    if far:
        gpu, card = next(iter(far.items()))
        beside = next((near_gpu for near_gpu, near_card in near.items() if near_card == card), "")
        problem = Problem(
            "card-on-other-node",
            "warning",
            f"{names_of(list(far))}: the nearest card with RDMA, {card}, is on another NUMA node",
            "put a card beside these GPUs, or give their work to GPUs that have one",
            compared=((card, gpu, ""), (card, beside, "")) if beside else (),
            unpriced=""
            if beside
            else "not known: no GPU here has a card beside it to compare with",
        )
        problems = (problem,)
    return Checked(
        "NUMA", problems, "every GPU has a card on its node", not_told(untold, "the node")
    )


def rdma(setup: Setup) -> Checked:
    """Cards without RDMA beside others of the same kind with it."""
    cards = setup.of_kind(*CARDS)
    with_rdma = [name for name, _ in cards if any(setup.topology[name].rdma)]
    able = {
        (state.function.vendor, state.function.device) for name, state in cards if name in with_rdma
    }
    without = [
        name
        for name, state in cards
        if name not in with_rdma and state.driver not in _HANDED_ON
        if (state.function.vendor, state.function.device) in able
    ]
    problems: tuple[Problem, ...] = ()
    if without:
        problem = Problem(
            "card-without-rdma",
            "warning",
            f"{names_of(without)}: no RDMA device, and others of the same kind have one",
            "load mlx5_ib (or the vendor's RDMA driver), and look whether the port is bound to it",
            without=tuple(without),
            asks=setup.asks_of_cards,
        )
        problems = (problem,)
    well = f"at {names_of(with_rdma)}" if with_rdma else "no card with it"
    return Checked("RDMA", problems, well)


# --- drivers and power ----------------------------------------------------------------------------


def drivers(setup: Setup) -> Checked:
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
            f"NVIDIA's driver is not loaded, and there is {names_of(gpus)}",
            "load it: modprobe nvidia",
            unpriced="everything: without it the GPUs do nothing",
        )
        return Checked("drivers", (problem,))
    problems: list[Problem] = []
    unknown = ""
    vendors = {state.function.vendor for _, state in setup.of_kind(*CARDS) if state.function.rdma}
    by_dmabuf = _can_dmabuf(setup.state)
    if vendors and not _PEER_MODULES & modules:
        if vendors == {_AMAZON} and not by_dmabuf:  # its own driver may know NVIDIA's by itself
            unknown = "whether EFA's driver reaches GPU memory is not told"
        elif by_dmabuf is None:
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


def governor(setup: Setup) -> Checked:
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
