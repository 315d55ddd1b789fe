"""The frames round servers and sockets, and where the title of each stands."""

from __future__ import annotations

from collections.abc import Collection, Iterator, Mapping, Sequence
from itertools import product
from typing import TYPE_CHECKING, Literal

from topo.records import dataclass
from topo.views.diagram.geometry import Rect, width

if TYPE_CHECKING:
    from topo.views.diagram.courses import Span
    from topo.views.diagram.grouping import Zones

SERVERS_APART = 44.0  # between servers
SOCKETS_APART = 24.0  # between sockets that no labelled link joins
PAD, STRIP = 10.0, 20.0  # between a frame and what is in it; a frame's title
_AROUND = 12.0  # between a server's frame and those of its sockets
_TITLE_START, _TITLE_END = 10.0, 4.0  # from the frame's sides to a title


@dataclass(frozen=True, slots=True)
class Frame:
    """A rectangle round what belongs together, with a title in its upper strip."""

    title: str
    rect: Rect
    kind: Literal["socket", "server"]
    title_x: float


def framed(
    zones: Zones,
    spans: tuple[Mapping[str, Span], Mapping[str, Span]],
    titles: Mapping[str, tuple[str, ...]],
    passing: Collection[Span],
    inside: Span,
    boxes: Mapping[str, Rect],
    shift: float,
) -> Iterator[Frame]:
    """Yield the frames round servers and sockets.

    Parameters
    ----------
    zones
        What is in them.
    spans
        From where to where sockets and servers reach, so far left of `boxes` as `shift` says.
    titles
        What may be written on the frame of each host, the longest first.
    passing
        What wires take that come down from above.
    inside
        Where the rows inside the frames begin and end.
    """
    sockets, servers = spans
    for server in zones.servers:
        if server.name:
            bars = [boxes[box] for box, owner in zones.owners.items() if owner == server.name]
            left, right = servers[server.name]
            left = min([left + shift, *(rect.x for rect in bars)]) - _AROUND
            right = max([right + shift, *(rect.right for rect in bars)]) + _AROUND
            top = inside[0] - 2 * PAD - (2 * STRIP if server.hosts else STRIP)
            bottom = max([inside[1] + 2 * PAD, *(rect.bottom + PAD for rect in bars)])
            several = server.servers > 1
            words = (server.title, server.name, f"{server.servers} servers")[: 1 + 2 * several]
            reach = (SERVERS_APART - SOCKETS_APART) * several
            title, x = _title_place(words, left, right + reach, passing)
            right = max(right, x + width(title, bold=True) + _TITLE_END)
            yield Frame(title, Rect(left, top, right - left, bottom - top), "server", x)
        for host in server.hosts:
            left, right = (x + shift for x in sockets[host.box])
            top, bottom = inside[0] - PAD - STRIP, inside[1] + PAD
            title, x = _title_place(titles[host.box], left, right, passing)
            yield Frame(title, Rect(left, top, right - left, bottom - top), "socket", x)


def _title_place(
    titles: Sequence[str], left: float, right: float, passing: Collection[Span]
) -> tuple[str, float]:
    """Return the first title that has a place in a frame, and the x of its left end.

    That is at the left side, or beside a wire that comes down.
    """
    starts = (left + _TITLE_START, *sorted(end for _, end in passing if left < end < right))
    for title, start in product(titles, starts):
        stop = start + width(title, bold=True)
        if stop <= right - _TITLE_END and not any(a < stop and start < b for a, b in passing):
            return title, start
    return titles[-1], left + _TITLE_START
