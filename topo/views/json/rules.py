"""JSON documents of locality by other programs' rules."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

    from topo.topology.gds_ranking import GdsPeer
    from topo.topology.nccl_paths import NcclNumbers, Path
    from topo.topology.topology import Topology


_GIGA = 1e9


def nccl_document(
    topology: Topology,
    paths: Mapping[str, Mapping[str, Path | None]],
    numbers: NcclNumbers,
) -> dict[str, Any]:
    """Return ``topo.matrix.nccl/1``: type, bandwidth and hops of every pair, null for no way."""
    return {
        "schema": "topo.matrix.nccl/1",
        "topology": topology.name,
        "release": numbers.release,
        "source": numbers.source,
        "matrix": {
            row: {column: _path(path) for column, path in columns.items()}
            for row, columns in paths.items()
        },
    }


def _path(path: Path | None) -> dict[str, Any] | None:
    if path is None:
        return None
    rate = path.bandwidth * _GIGA
    return {"type": path.type, "bandwidth_bytes_per_s": rate, "hops": path.hops}


def gds_document(topology: Topology, ranking: Mapping[str, Sequence[GdsPeer]]) -> dict[str, Any]:
    """Return ``topo.matrix.gds/1``: each GPU's peers, the best first."""
    return {
        "schema": "topo.matrix.gds/1",
        "topology": topology.name,
        "gpus": {
            gpu: [
                {
                    "peer": peer.name,
                    "distance": peer.distance,
                    "link_index": peer.bandwidth or None,
                    "rank": peer.rank,
                    "through_root_complex": peer.crosses,
                }
                for peer in peers
            ]
            for gpu, peers in ranking.items()
        },
    }
