"""What a picture shows of an answer: one route a data path, what binds it, and a caption."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import TYPE_CHECKING

from topo.views.sentences import limit_words, rate_words, time_words

if TYPE_CHECKING:
    from collections.abc import Mapping

    from topo.routes.route import Route
    from topo.study import WorkloadAnswer


@dataclass(frozen=True, slots=True)
class Overlay:
    """Routes to draw over a machine by data path, with resource ids that bind and a sentence."""

    routes: Mapping[str, Route] = field(default_factory=dict)
    bottlenecks: Mapping[str, tuple[str, ...]] = field(default_factory=dict)
    captions: Mapping[str, str] = field(default_factory=dict)


def overlay_of(answer: WorkloadAnswer) -> Overlay:
    """Return the overlay of one workload: of each data path the first GPU's route."""
    captions = {}
    for path in answer.paths:
        if path.rate is not None:
            words = limit_words(path)
            rate_and_time = ", ".join(filter(None, (rate_words(path), time_words(path))))
            captions[path.name] = rate_and_time + (f": limited by {words}" if words else "")
    return Overlay(
        routes={path.name: path.routes[0] for path in answer.paths},
        bottlenecks={
            path.name: tuple(bottleneck.resource.id for bottleneck in path.bottlenecks)
            for path in answer.paths
        },
        captions=captions,
    )
