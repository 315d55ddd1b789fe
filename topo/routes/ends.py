"""What a data path is asked to join."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from topo.routes.route import Direction
    from topo.topology import Topology


@dataclass(frozen=True, slots=True)
class Ends:
    """Storage (or a peer) and a GPU of one machine, and which way the data goes."""

    topology: Topology
    storages: tuple[str, ...]
    gpu: str
    direction: Direction = "read"

    @property
    def remote(self) -> bool:
        """Whether some of the storage is behind a network."""
        return any(self.topology[name].kind == "storage" for name in self.storages)
