"""A panel: one machine with its routes, and what is written above it."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

from topo.datapaths.registry import count
from topo.views.diagram.metrics import Line, height, wrapped

if TYPE_CHECKING:
    from topo.routes.route import Route
    from topo.views.diagram.scene import Scene


BORDER = 12.0  # between a panel's border and what is in it
NARROWEST = 340.0  # a header is readable in this
SAMPLE = 56.0  # a piece of a route, beside its title


@dataclass(frozen=True)
class Panel:
    """One scene with its header; `prefix` keeps its names apart from the other panels'.

    `least` is the header's height in the panels beside it, `broad` the width of those below it.
    """

    scene: Scene
    prefix: str
    header: tuple[Line, ...]
    look: int | None
    least: float = 0.0
    broad: float = 0.0

    @property
    def size(self) -> tuple[float, float]:
        """Width and height with border and header."""
        border = 2 * BORDER if self.look is not None else 0.0
        wide = max(self.scene.layout.width, NARROWEST if self.header else 0.0) + border
        return (
            max(wide, self.broad),
            self.scene.layout.height + border + self.header_height,
        )

    @property
    def header_height(self) -> float:
        """The height of the lines above the machine, at least that of the panels beside it."""
        return max(height(self.header) + 12 if self.header else 0.0, self.least)


def header_of(label: str, route: Route, caption: str, scene: Scene) -> tuple[Line, ...]:
    """Return what stands above a route's machine."""
    title = route.data_path.title or route.data_path.name
    lines = [Line(f"{label}: {title}", 14.0, bold=True)]
    if route.subflows:
        traversals = count(route.data_path).ram_traversals
        lines.append(
            Line(
                f"{_many(route.logical_hops, 'hop')}, {_many(route.physical_links, 'link')}, "
                f"{_many(traversals, 'RAM traversal')}",
                12.0,
            )
        )
    else:
        reasons = [one.text for one in route.reasons if one.effect == "refused"]
        lines.append(Line("not possible: " + "; ".join(reasons), 12.0, bold=True))
    if caption:
        lines.append(Line(caption, 12.0))
    wide = max(scene.layout.width, NARROWEST) - (SAMPLE + 12)
    return tuple(
        Line(text, line.size, bold=line.bold)
        for line in lines
        for text in wrapped(line.text, wide / (1.1 if line.bold else 1.0), line.size)
    )


def _many(number: int, word: str) -> str:
    return f"{number} {word}" if number == 1 else f"{number} {word}s"
