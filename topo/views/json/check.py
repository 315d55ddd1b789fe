"""The expectations of a file and whether they hold, as a document."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from topo.views.json.values import place_document

if TYPE_CHECKING:
    from collections.abc import Sequence

    from topo.study import Judgement
    from topo.topology.topology import Topology


def check_document(topology: Topology, judgements: Sequence[Judgement]) -> dict[str, Any]:
    """Return ``topo.check/1``: each sentence of `expect:` and whether it holds."""
    return {
        "schema": "topo.check/1",
        "topology": topology.name,
        "devices": len(topology.devices),
        "links": len(topology.links),
        "expectations": [
            {
                "text": one.expectation.text,
                "holds": one.holds,
                "outcome": one.outcome,
                "place": place_document(one.expectation.place),
            }
            for one in judgements
        ],
    }
