"""The JSON document of `topo affinity`."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from topo.views.json.values import number

if TYPE_CHECKING:
    from topo.study.affinity import Affinities, Choice


def affinity_document(found: Affinities) -> dict[str, Any]:
    """Return ``topo.affinity/1``: each GPU's cards and drives, and each of those with its GPUs."""
    return {
        "schema": "topo.affinity/1",
        "topology": found.topology.name,
        "rules": found.rules,
        "gpus": [
            {
                "gpu": one.gpu,
                "cpu": one.cpu or None,
                "numa_nodes": list(one.numa),
                "choices": [_choice(choice) for choice in one.choices],
            }
            for one in found.gpus
        ],
        "devices": [
            {"device": name, "for": purpose, "gpus": list(gpus)}
            for purpose, devices in found.users.items()
            for name, gpus in devices.items()
        ],
    }


def _choice(choice: Choice) -> dict[str, Any]:
    near = choice.nearness
    return {
        "for": choice.purpose,
        "device": choice.device,
        "near": near.said,
        "links": near.links,
        "rate_bytes_per_s": number(near.rate),
        "shared_with": list(choice.shared_with),
        "as_near": list(choice.as_near),
    }
