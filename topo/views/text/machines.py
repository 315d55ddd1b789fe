"""The page of the machines that topo ships."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from typing import TYPE_CHECKING, Final

from topo.description.description import GROUPS
from topo.phrases import counted
from topo.views.text.page import Cell, Heading, Text, grouped, table, wide

if TYPE_CHECKING:
    from topo.study.machines import MachineSummary
    from topo.views.text.page import Block, Row

_GROUP_TITLES: Final = {
    "nvidia": "NVIDIA DGX and HGX",
    "server": "servers of other makers",
    "amd": "AMD GPUs",
    "cloud": "clouds",
    "pcie": "PCIe boxes and workstations",
    "storage": "storage",
    "cluster": "several servers",
    "example": "examples",
}


def machines_page(machines: Iterable[MachineSummary]) -> Iterator[Block]:
    """Yield the machines that topo ships, by what people look for: names to type for a file."""
    by_group = grouped(machines, lambda machine: machine.group)
    for group in filter(by_group.get, GROUPS):
        yield Heading(_GROUP_TITLES[group])
        rows: list[Row] = []
        for machine in by_group[group]:
            rows += ((Cell(machine.name), _made_of(machine)), ("", machine.notice))
        yield table(("", wide()), rows)
    yield Text("topo new my-server --like MACHINE starts a file of yours from one of these.")


def _made_of(machine: MachineSummary) -> str:
    """Return the GPUs, the cards and the storage of a machine."""
    storage = [
        *["on the network"] * machine.outside,
        *([counted(machine.appliances, "appliance")] if machine.appliances else ()),
        *([counted(machine.drives, "drive")] if machine.drives else ()),
    ]
    gpus, cards = (
        ", ".join(f"{count} {part}" for part, count in numbers.items())
        for numbers in (machine.gpus, machine.cards)
    )
    return "; ".join(
        (gpus or "no GPU", cards or "no network card", f"storage: {', '.join(storage) or 'none'}")
    )
