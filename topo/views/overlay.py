"""What a picture shows of an answer: one route a data path, what binds it, and a caption."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

from topo.phrases import listed
from topo.units import format_duration, format_rate
from topo.views.sentences import class_words, sentences

if TYPE_CHECKING:
    from collections.abc import Mapping

    from topo.routes.route import Route
    from topo.study import PathAnswer, WorkloadAnswer


@dataclass(frozen=True, slots=True)
class Overlay:
    """Routes to draw over a machine by data path, with resource ids that bind and a sentence."""

    routes: Mapping[str, Route]
    bottlenecks: Mapping[str, tuple[str, ...]]
    captions: Mapping[str, str]


def overlay_of(found: WorkloadAnswer) -> Overlay:
    """Return the overlay of one workload: of each data path the first GPU's route."""
    return Overlay(
        routes={path.name: path.routes[0] for path in found.paths},
        bottlenecks={
            path.name: tuple(one.resource.id for one in path.bottlenecks) for path in found.paths
        },
        captions={path.name: _caption(path) for path in found.paths if path.rate is not None},
    )


def _caption(path: PathAnswer) -> str:
    assert path.rate is not None
    rate = "at most " * path.at_most + format_rate(path.rate)
    if path.time is not None:
        rate += ", " + "at least " * path.at_most + format_duration(path.time)
    counts: dict[str, int] = {}
    for one in path.bottlenecks:
        counts[one.resource.kind] = counts.get(one.resource.kind, 0) + 1
    words = listed((class_words(kind, count) for kind, count in counts.items()), most=4)
    words = words or listed(sentences(path.own_limits), most=4)
    return f"{rate}: limited by {words}" if words else rate
