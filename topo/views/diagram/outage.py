"""What of a machine is out of order and is drawn all the same, marked."""

from __future__ import annotations

from typing import TYPE_CHECKING

from topo.records import dataclass

if TYPE_CHECKING:
    from topo.study.answers import WorkloadAnswer
    from topo.topology.topology import Topology


@dataclass(frozen=True, slots=True)
class Outage:
    """What of a machine failed and is drawn all the same, and what has no way left for it.

    `devices` and `stopped` are names, `links` the `id` of each link, `texts` what a person says.
    """

    devices: frozenset[str] = frozenset()
    links: frozenset[int] = frozenset()
    stopped: frozenset[str] = frozenset()
    texts: tuple[str, ...] = ()

    def mark(self, device: str) -> str:
        """Return ``failed`` or ``stopped`` for what is, else nothing."""
        return "failed" if device in self.devices else "stopped" * (device in self.stopped)


def with_outage(
    topology: Topology, whole: Topology, answer: WorkloadAnswer | None
) -> tuple[Topology, Outage]:
    """Return a machine with what it has lost of `whole`, and what of it is out of order."""
    from topo.study.failures import stopped_devices
    from topo.topology.lost import with_lost

    lost = with_lost(topology, whole)
    stopped = stopped_devices(topology, answer) if answer is not None else frozenset()
    links = frozenset(map(id, lost.links))
    return lost.topology, Outage(lost.devices, links, stopped | lost.cut_off, lost.texts)
