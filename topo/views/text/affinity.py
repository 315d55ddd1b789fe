"""The page of `topo affinity`: who should use what and why, and the other way round."""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

from topo.phrases import shortened
from topo.units import format_rate
from topo.views.text.page import Cell, Column, Heading, Lines, Table, Text
from topo.views.text.words import title_of

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping

    from topo.study.affinity import Affinities, Choice, GpuAffinity, Purpose
    from topo.study.nearness import Nearness
    from topo.views.text.page import Block


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
_NOTES: Final[Mapping[str, str]] = {
    "nvidia-smi": "Nearest is the best class of `nvidia-smi topo -m`, then the fewest links, then "
    "the widest.",
    "nccl": "Nearest is NCCL's best path: type, then bandwidth, then hops. NCCL knows no drives: "
    "they go by nvidia-smi's classes.",
    "gds": "Nearest is the GDS driver's smallest distance, then the widest link. From 127 on the "
    "way leads through a root complex, from 254 on to another NUMA node.",
}


def affinity_page(found: Affinities) -> Iterator[Block]:
    """Yield each GPU with its cards and drives, then each of those with its GPUs."""
    yield Heading(title_of(found.topology))
    rows = [row for one in found.gpus for row in _gpu_rows(one)]
    if not rows:
        yield Text("No GPU here reaches a network card or a drive inside its server.")
        return
    yield Table(
        (
            Column("GPU"),
            Column("on"),
            Column("for"),
            Column("use"),
            Column("why", breaks=True),
            Column("shared with", breaks=True),
            Column("as near", breaks=True),
        ),
        tuple(rows),
    )
    yield Heading("The other way round")
    yield Table(
        (Column("device"), Column("for"), Column("GPUs", breaks=True)),
        tuple(
            (name, _PURPOSES[purpose], shortened(gpus) or "none is nearest to it")
            for purpose, devices in found.users.items()
            for name, gpus in devices.items()
        ),
    )
    yield Lines(_legend(found))
    yield Text(_NOTES[found.rules], dim=True)
    yield Text(
        "Where several are as near, the GPUs are dealt out evenly; any of the others does as well.",
        dim=True,
    )


def _gpu_rows(one: GpuAffinity) -> Iterator[tuple[str | Cell, ...]]:
    first = (one.gpu, _host(one))
    for choice in one.choices:
        yield (*first, *_choice_cells(choice))
        first = ("", "")
    if not one.choices:
        yield (*first, "", "-", "nothing near", "", "")


def _host(one: GpuAffinity) -> str:
    if not one.numa:
        return one.cpu or "no host"
    nodes = ",".join(str(node) for node in one.numa)
    return f"{one.cpu}, NUMA {nodes}"


def _choice_cells(choice: Choice) -> tuple[str | Cell, ...]:
    return (
        _PURPOSES[choice.purpose],
        Cell(choice.device),
        nearness_words(choice.nearness),
        shortened(choice.shared_with) or "-",
        shortened(choice.as_near) or "-",
    )


def _legend(found: Affinities) -> str:
    """Return what the classes on the page mean, best first, or what a distance is."""
    said = {choice.nearness.said for one in found.gpus for choice in one.choices}
    lines = [f"{name:<4} = {words}" for name, words in _CLASSES.items() if name in said]
    return "\n".join(lines or ["distance = PCI bridges between the two: 3 under one switch"])


def nearness_words(nearness: Nearness) -> str:
    """Return how near two devices are: ``PXB, 1 link, 63.02 GB/s``."""
    facts = [nearness.said]
    if nearness.links is not None:
        facts.append(f"{nearness.links} link{'s' * (nearness.links != 1)}")
    if nearness.rate is not None:
        facts.append(format_rate(nearness.rate))
    return ", ".join(facts)
