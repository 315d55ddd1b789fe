"""What stands behind a rate, as a document: by demand, by resource, prices."""

from __future__ import annotations

import math
from typing import TYPE_CHECKING, Any

from topo.study.words import class_words
from topo.views.json.values import resource_document

if TYPE_CHECKING:
    from topo.study import ClassPrice, Explanation, Prices, Share, TiedPrice, Use


def explanation_document(found: Explanation) -> dict[str, Any]:
    """Return ``demands``, ``resources`` and ``prices``; equal ones share an entry."""
    return {
        "rule": found.prices.rule,
        "demands": [_share(one) for one in found.shares],
        "resources": [_use(one) for one in found.uses],
        "prices": prices_document(found.prices),
    }


def prices_document(found: Prices) -> dict[str, Any]:
    """Return what one GB/s more adds and one less costs: by class, and of what is full together.

    ``gain`` and ``cost`` are bytes/s of the total for one byte/s of the resource; ``together`` is
    for each byte/s on every one of the class.
    """
    return {
        "total_bytes_per_s": found.total,
        "max_min_total_bytes_per_s": found.fair_total,
        "classes": [_class(one) for one in found.classes],
        "tie": _tie(found.tie) if found.tie else None,
        "sentences": list(found.sentences),
    }


def _share(one: Share) -> dict[str, Any]:
    return {
        "demands": [demand.name for demand in one.demands],
        "gpus": [demand.gpu for demand in one.demands],
        "count": len(one.demands),
        "rate_bytes_per_s": one.rate,
        "share": one.share,
        "stopped_by": [resource_document(resource) for resource in one.stopped_by],
    }


def _use(one: Use) -> dict[str, Any]:
    return {
        "resources": [resource_document(resource) for resource in one.resources],
        "count": len(one.resources),
        "capacity_bytes_per_s": one.capacity,
        "unlimited": one.capacity is not None and math.isinf(one.capacity),
        "load_bytes_per_s": one.load,
        "utilisation": one.utilisation,
        "used_by": [demand.name for demand in one.users],
    }


def _class(one: ClassPrice) -> dict[str, Any]:
    return {
        "class": one.kind,
        "words": class_words(one.kind, len(one.resources)),
        "resources": [resource_document(resource) for resource in one.resources],
        "one": {"gain": one.one.gain, "cost": one.one.cost},
        "together": {
            "gain": one.together.gain,
            "cost": one.together.cost,
            "range_up_bytes_per_s": one.together.range_up,
            "next_bound": [resource_document(resource) for resource in one.next_bound],
        },
        "sentence": one.sentence,
    }


def _tie(one: TiedPrice) -> dict[str, Any]:
    return {
        "resources": [
            {**resource_document(resource), "step": step}
            for resource, step in zip(one.resources, one.steps, strict=True)
        ],
        "gain": one.together.gain,
        "cost": one.together.cost,
        "range_up_bytes_per_s": one.together.range_up,
        "next_bound": [resource_document(resource) for resource in one.next_bound],
        "sentence": one.sentence,
    }
