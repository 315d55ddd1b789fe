"""Pages about locality by other programs' rules: NCCL's paths, the GDS driver's ranking."""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

from topo.views.text.page import Column, Lines, Table, Text

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping, Sequence

    from topo.topology.gds_ranking import GdsPeer
    from topo.topology.nccl_paths import NcclNumbers, Path
    from topo.views.text.page import Block


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
    grid = [["", *paths]]
    for name, row in paths.items():
        grid.append([name, *(_cell(row[other], itself=name == other) for other in paths)])
    widths = [max(len(row[at]) for row in grid) for at in range(len(grid[0]))]
    lines = [
        "\t".join(cell.ljust(width) for cell, width in zip(row, widths, strict=True)).rstrip(" ")
        for row in grid
    ]
    yield Lines("\n".join(lines))
    yield Lines(_NCCL_LEGEND)
    yield Text(
        f"Before NCCL decides on peer-to-peer, GPUDirect RDMA and PXN. Numbers: {numbers.source}."
    )


def _cell(path: Path | None, *, itself: bool) -> str:
    if itself:
        return "LOC"
    return f"{path.type} {path.bandwidth:.4g}" if path else "-"


def gds_page(ranking: Mapping[str, Sequence[GdsPeer]]) -> Iterator[Block]:
    """Yield for each GPU its cards and drives as the GDS driver ranks them."""
    columns = (
        Column("GPU"),
        Column("peer"),
        Column("distance", right=True),
        Column("link", right=True),
        Column("over the root complex"),
    )
    rows = tuple(
        (
            gpu if at == 0 else "",
            peer.name,
            str(peer.distance),
            str(peer.bandwidth),
            "yes" if peer.crosses else "no",
        )
        for gpu, peers in ranking.items()
        for at, peer in enumerate(peers)
    )
    if rows:
        yield Table(columns, rows)
        yield Lines(_GDS_LEGEND)
    else:
        yield Text("No GPU here has a network card or drive that the driver could rank.")
