"""Memories: each hangs on a bus of its own."""

from __future__ import annotations

from typing import TYPE_CHECKING

from topo.description.names import stem_of
from topo.description.physics.wiring import HOSTS, has

if TYPE_CHECKING:
    from topo.description.physics.wiring import Wiring
    from topo.document.nodes import Report


def check_buses(wiring: Wiring, report: Report) -> None:
    """Report memories that hang on nothing; in a file without any link that is no mistake yet."""
    alone = [name for name in wiring.of_kind("memory") if not wiring.at[name]]
    if not alone or not wiring.links:
        return
    report.add(
        wiring.devices[alone[0]].place,
        "memory-without-bus",
        f"{has(alone)} no bus: nothing joins {'it' if len(alone) == 1 else 'them'} with a CPU",
        help=f"add `- {alone[0]} -- {_host_for(alone[0], wiring)}: memory-bus` to `links:`",
    )


def _host_for(memory: str, wiring: Wiring) -> str:
    """Return the host of the memory's number, or the first."""
    hosts = wiring.of_kind(*HOSTS)
    number = stem_of(memory)[1]
    return next((host for host in hosts if stem_of(host)[1] == number), (*hosts, "cpu0")[0])
