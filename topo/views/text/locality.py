"""Pages about what is near to what: the matrices of three programs, and who should use what."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from functools import partial
from typing import TYPE_CHECKING, Final

from topo.phrases import counted, shortened
from topo.units import format_rate
from topo.views.text.page import (
    Block,
    Cell,
    Heading,
    Lines,
    Row,
    Text,
    grouped,
    right,
    table,
    title_of,
    wide,
)

if TYPE_CHECKING:
    from topo.routes.nearness import Nearness
    from topo.study.affinity import Affinities, GpuAffinity, Purpose
    from topo.topology.rules import GdsPeer, NcclNumbers, Path
    from topo.topology.topology import Topology


# --- matrices -------------------------------------------------------------------------------------

_LEGEND: Final = """\
Legend:

  X    = Self
  SYS  = Across the link between NUMA nodes or sockets (UPI, xGMI)
  NODE = Across several PCIe host bridges of one NUMA node
  PHB  = Across one PCIe host bridge (a CPU's root complex)
  PXB  = Across several PCIe switches, no host bridge
  PIX  = Across at most one PCIe switch
  NV#  = Across a bonded set of # NVLinks"""
_NCCL_LEGEND: Final = """\
Legend: NCCL's type and the GB/s it plans with

  LOC = Self
  NVL = NVLink, directly or through NVSwitches
  NVB = NVLink by way of another GPU
  C2C = NVLink-C2C between CPU and GPU
  PIX = Across one PCIe switch
  PXB = Across several PCIe switches
  PHB = Across the CPU of one NUMA node (nvidia-smi's PHB and NODE)
  SYS = Across the link between NUMA nodes"""
_GDS_LEGEND: Final = """\
distance = PCI bridges between the two: 3 under one switch; from 127 on the way leads through a root
           complex, from 254 on to another NUMA node
link     = PCIe generation times lanes, which breaks ties; 0 is unknown"""


def matrix_page(
    topology: Topology,
    classes: Mapping[str, Mapping[str, str]],
    *,
    numa: Mapping[str, Sequence[int]],
) -> Iterator[Block]:
    """Yield the matrix in the layout of ``nvidia-smi topo -m``: tabs between aligned columns.

    Parameters
    ----------
    topology
        The machine.
    classes
        Class by row and column.
    numa
        OS numbers of the NUMA nodes that each row is attached to.
    """
    names = list(classes)
    affinity = any(numa[name] for name in names)
    grid = [["", *names, *(["NUMA Affinity"] if affinity else [])]]
    for name, row in classes.items():
        cells = [name, *(f" {row[column] or '-'} " for column in names)]
        if affinity:
            cells.append(",".join(map(str, numa[name])) or "N/A")
        grid.append(cells)
    yield Lines(_aligned(grid))
    yield Lines(_LEGEND)
    cards = [name for name in names if topology[name.partition("/")[0]].is_nic]
    if cards:
        lines = ["NIC Legend:", ""]
        for name in cards:  # its RDMA names, label and PCI addresses: one of each for a function
            device_name, _, function = name.partition("/f")
            device = topology[device_name]
            functions = slice(int(function), int(function) + 1) if function else slice(None)
            rdma, pci = (", ".join(values[functions]) for values in (device.rdma, device.pci))
            facts = "; ".join(filter(None, (rdma, device.label, pci)))
            lines.append(f"  {name}: {facts or device.part.name}")
        yield Lines("\n".join(lines))


def nccl_page(
    paths: Mapping[str, Mapping[str, Path | None]], numbers: NcclNumbers
) -> Iterator[Block]:
    """Yield NCCL's types and bandwidths between all GPUs and cards.

    Parameters
    ----------
    paths
        By row and column.
    numbers
        Those that were used.
    """

    def cell(row: str, column: str) -> str:
        path = paths[row][column]
        if row == column:
            return "LOC"
        return f"{path.type} {path.bandwidth:.4g}" if path else "-"

    rows = ([name, *(cell(name, column) for column in paths)] for name in paths)
    yield Lines(_aligned([["", *paths], *rows]))
    yield Lines(_NCCL_LEGEND)
    yield Text(
        f"Before NCCL decides on peer-to-peer, GPUDirect RDMA and PXN. Numbers: {numbers.source}."
    )


def gds_page(ranking: Mapping[str, Sequence[GdsPeer]]) -> Iterator[Block]:
    """Yield for each GPU its cards and drives as the GDS driver ranks them."""
    rows = [
        ("" if place else gpu, peer.name, str(peer.distance), str(peer.bandwidth))
        for gpu, peers in ranking.items()
        for place, peer in enumerate(peers)
    ]
    if not rows:
        yield Text("No GPU here has a network card or drive that the driver could rank.")
        return
    yield table(("GPU", "peer", right("distance"), right("link")), rows)
    yield Lines(_GDS_LEGEND)


def _aligned(grid: list[list[str]]) -> str:
    widths = [max(map(len, column)) for column in zip(*grid, strict=True)]
    lines = (
        "\t".join(cell.ljust(width) for cell, width in zip(row, widths, strict=True)).rstrip(" ")
        for row in grid
    )
    return "\n".join(lines)


# --- affinity -------------------------------------------------------------------------------------

_PURPOSES: Final[Mapping[Purpose, str]] = {
    "compute": "compute",
    "storage": "storage",
    "any": "network",
    "drive": "local drive",
}
_CLASSES: Final[Mapping[str, str]] = {
    "P2C": "over NVLink-C2C, then PCIe",
    "PXN": "through another GPU over NVLink",
    "PIX": "through one PCIe switch",
    "PXB": "through several PCIe switches",
    "PHB": "through a host bridge",
    "NODE": "through several host bridges of one NUMA node",
    "SYS": "over the link between NUMA nodes or sockets",
}
_DISTANCE: Final = "distance = PCI bridges between the two: 3 under one switch"
_SHORT: Final = 12  # a name that has its NUMA node beside it, and not below
_LONG: Final = 16  # names in a cell, which break from there on
_LINKS_ONLY: Final = (
    "Rates are what the links between the two pass. What a CPU lets pass from device to device can "
    "be less: `topo compare` counts it."
)
_NOTES: Final[Mapping[str, str]] = {
    "nvidia-smi": "Nearest is the best class of `nvidia-smi topo -m`.",
    "nccl": "Nearest is the best type of NCCL's paths. NCCL knows no drives: they go by "
    "nvidia-smi's classes.",
    "gds": "Nearest is the GDS driver's smallest distance. From 127 on the way leads through a "
    "root complex, from 254 on to another NUMA node.",
}


def affinity_page(affinities: Affinities) -> Iterator[Block]:
    """Yield each GPU with its cards and drives, then each of those with its GPUs."""
    yield Heading(title_of(affinities.topology))
    rows: list[Row] = []
    for gpus in grouped(affinities.gpus, _inside_machine).values():
        gpu = gpus[0]
        nodes = ",".join(map(str, gpu.numa))
        cpu = shortened(gpu.cpu for gpu in gpus)
        name, host = shortened(gpu.gpu for gpu in gpus), cpu or "no host"
        if gpu.numa:
            host = f"{cpu}, NUMA {nodes}" if len(cpu) <= _SHORT else f"{cpu},\nNUMA {nodes}"
        if not gpu.choices:
            rows.append((name, host, "", "-", "nothing near", "", ""))
        rows += [
            (
                "" if place else name,
                "" if place else host,
                _PURPOSES[choices[0].purpose],
                Cell(shortened(device for choice in choices for device in choice.devices)),
                _nearness(choices[0].nearness),
                _others(gpus, choices[0].shared_with),
                _others(gpus, choices[0].as_near),
            )
            for place, choices in enumerate(zip(*(gpu.choices for gpu in gpus), strict=True))
        ]
    if not rows:
        yield Text("No GPU here reaches a network card or a drive inside its server.")
        return
    chosen = [choice.devices for gpu in affinities.gpus for choice in gpu.choices]
    use = wide("use") if any(len(shortened(devices)) > _LONG for devices in chosen) else "use"
    yield table(("GPU", "on", "for", use, wide("why"), wide("shared with"), wide("as good")), rows)
    if not chosen:
        yield Text("No server here has a network card or a drive that a GPU could use.")
        return
    yield Heading("The other way round")
    yield table(("device", "for", wide("GPUs")), _users(affinities))
    used = {choice.nearness.label for gpu in affinities.gpus for choice in gpu.choices}
    lines = [f"{name:<4} = {meaning}" for name, meaning in _CLASSES.items() if name in used]
    yield Lines("\n".join(lines) or _DISTANCE)
    yield Text(_NOTES[affinities.rules], dim=True)
    if affinities.rules == "nvidia-smi" and used & {"PHB", "NODE", "SYS"}:
        yield Text(_LINKS_ONLY, dim=True)
    yield Text(
        "Of equally near cards those with RDMA go first, then the faster. Equally good ones are "
        "shared out evenly among the GPUs, one after another, so that a few of them have several; "
        "any under `as good` does as well. Where a GPU has several, the rate is that of each.",
        dim=True,
    )


def _users(affinities: Affinities) -> Iterator[Row]:
    """Yield the cards and drives with the GPUs that use them, those of the same ones in a row."""
    devices_by_use: dict[tuple[str, str], list[str]] = {}
    rdma_of: dict[str, str] = {}
    for purpose, users in affinities.users.items():
        for alike in grouped(users.items(), partial(_user_inside, affinities)).values():
            devices = shortened(device for device, _ in alike)
            gpus = shortened(gpu for _, gpus in alike for gpu in gpus) or "no GPU's first choice"
            devices_by_use.setdefault((gpus, _PURPOSES[purpose]), []).append(devices)
            rdma_of[devices] = ", ".join(affinities.topology[alike[0][0]].rdma)
    uses_by_devices: dict[tuple[str, tuple[str, ...]], list[str]] = {}
    for (gpus, use), names in devices_by_use.items():
        uses_by_devices.setdefault((gpus, tuple(names)), []).append(use)
    for (gpus, all_names), uses in uses_by_devices.items():
        rdma = shortened(filter(None, map(rdma_of.__getitem__, all_names)))
        yield shortened(all_names) + (rdma and f" ({rdma})"), ", ".join(uses), gpus


def _inside(name: str, names: Iterable[str]) -> tuple[str, ...]:
    """Return names as the used machine of `name` has them; equal ones of two are alike."""
    machine = name.rpartition(".")[0]
    return tuple(other.removeprefix(f"{machine}.") if machine else other for other in names)


def _others(gpus: Sequence[GpuAffinity], names: Sequence[str]) -> str:
    """Return other devices of a row; in several machines alike, by their names inside."""
    return shortened(_inside(gpus[0].gpu, names) if len(gpus) > 1 else names) or "-"


def _inside_machine(gpu: GpuAffinity) -> tuple[object, ...]:
    """Return what is said of a GPU in its machine's own names."""
    choices = (
        (
            choice.purpose,
            choice.nearness,
            _inside(gpu.gpu, choice.devices),
            _inside(gpu.gpu, choice.shared_with),
            _inside(gpu.gpu, choice.as_near),
        )
        for choice in gpu.choices
    )
    return (*_inside(gpu.gpu, [gpu.gpu, gpu.cpu]), gpu.numa, *choices)


def _user_inside(affinities: Affinities, entry: tuple[str, tuple[str, ...]]) -> tuple[object, ...]:
    """Return what is said of a card or drive in its machine's own names."""
    device, gpus = entry
    return (
        *_inside(device, [device]),
        affinities.topology[device].rdma,
        _inside(device, gpus),
    )


def _nearness(nearness: Nearness) -> str:
    """Return how near two devices are: ``PXB, 1 link, 63.02 GB/s``."""
    links = "" if nearness.links is None else counted(nearness.links, "link")
    most = "at most " * nearness.at_most
    rate = "" if nearness.rate is None else f"{most}{format_rate(nearness.rate)}"
    return ", ".join(filter(None, (nearness.label, links, rate)))
