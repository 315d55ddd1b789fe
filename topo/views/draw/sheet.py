"""A whole picture: title, one panel or several, legend."""

from __future__ import annotations

import re
from dataclasses import dataclass
from typing import TYPE_CHECKING, Literal

from topo.datapaths import count
from topo.errors import DrawError, Finding
from topo.views.draw.canvas import Canvas
from topo.views.draw.geometry import Rect
from topo.views.draw.group import STRONGEST
from topo.views.draw.legend import legend_items, legend_size, paint_legend
from topo.views.draw.metrics import Line, height, wrapped
from topo.views.draw.paint import Painter, stroke
from topo.views.draw.picture import Picture
from topo.views.draw.scene import Scene, lay_out, scene_of
from topo.views.draw.themes import THEMES

if TYPE_CHECKING:
    from collections.abc import Mapping

    from topo.routes.model import Route
    from topo.spec.model import Basis
    from topo.topology import Topology
    from topo.views.draw.themes import Theme

__all__ = ["WIDEST", "draw"]

# At most so many points wide, the smallest text is 10 pixels high in a picture of 1600 pixels.
WIDEST = 1600.0
_MARGIN = 16.0
_PANEL = 12.0  # between a panel's border and what is in it
_BETWEEN = 16.0
_NARROWEST = 340.0  # a header is readable in this
_SAMPLE = 56.0  # a piece of a route, beside its title
_KIND_LIMIT, _DEVICE_LIMIT, _ALWAYS = 12, 60, 300

Collapse = Literal["auto"] | bool


@dataclass(frozen=True)
class _Panel:
    """One scene with its header; `prefix` keeps its names apart from the other panels'."""

    scene: Scene
    prefix: str
    header: tuple[Line, ...]
    look: int | None
    label: str

    @property
    def size(self) -> tuple[float, float]:
        """Width and height with border and header."""
        border = 2 * _PANEL if self.look is not None else 0.0
        return (
            max(self.scene.layout.width, _NARROWEST if self.header else 0.0) + border,
            self.scene.layout.height + border + self.header_height,
        )

    @property
    def header_height(self) -> float:
        """The height of the lines above the machine."""
        return height(self.header) + 12 if self.header else 0.0


def draw(
    topology: Topology,
    *,
    routes: Mapping[str, Route] | None = None,
    bottlenecks: Mapping[str, tuple[str, ...]] | None = None,
    captions: Mapping[str, str] | None = None,
    theme: str = "light",
    collapse: Collapse = "auto",
    side_by_side: bool = True,
    legend: bool = True,
    at: Basis = "theoretical",
) -> Picture:
    """Return a picture of a machine, and of the ways that data takes through it.

    Parameters
    ----------
    topology
        The machine.
    routes
        Ways to draw over it, by a label for each (``legacy``, ``direct``).
    bottlenecks
        Ids of the resources that bind, by the same labels; without routes, by any.
    captions
        A sentence for each label: the rate, what limits it.
    theme
        ``light`` or ``dark``.
    collapse
        Draw devices that are alike as one: always, never, or (``auto``) as far as it takes to keep
        the picture readable at 1600 pixels.
    side_by_side
        Several routes each in a panel of its own, instead of all over one machine.
    legend
        Explain the signs below the picture.
    at
        The basis of the rates written beside wires.

    Raises
    ------
    DrawError
        If there is no such theme.
    """
    if theme not in THEMES:
        known = ", ".join(THEMES)
        raise DrawError(Finding("unknown-theme", f"no theme {theme}", help=f"one of {known}"))
    sheet = _Sheet(
        topology,
        dict(routes or {}),
        dict(bottlenecks or {}),
        dict(captions or {}),
        THEMES[theme],
        at,
        apart=side_by_side,
    )
    return sheet.picture(sheet.panels(collapse), legend=legend)


class _Sheet:
    def __init__(
        self,
        topology: Topology,
        routes: dict[str, Route],
        limits: dict[str, tuple[str, ...]],
        captions: dict[str, str],
        theme: Theme,
        basis: Basis,
        *,
        apart: bool,
    ) -> None:
        self.topology, self.routes, self.limits = topology, routes, limits
        self.captions, self.theme, self.basis = captions, theme, basis
        self.apart = apart and len(routes) > 1
        looks = len(theme.routes)
        self.looks = {label: place % looks for place, label in enumerate(routes)}

    # --- how much is drawn as one ---------------------------------------------------------------

    def panels(self, collapse: Collapse) -> tuple[_Panel, ...]:
        """Return the panels, with as much drawn as one as `collapse` says and the width asks."""
        if collapse is False and len(self.topology.devices) <= _ALWAYS:
            return self._at(0)
        start = 1 if collapse is True or self._many() else 0
        tried = []
        for level in range(start, STRONGEST + 1):
            tried.append(self._at(level))
            if self._width(tried[-1]) <= WIDEST:
                return tried[-1]
        below = (
            panels for panels in tried if max(self._width((panel,)) for panel in panels) <= WIDEST
        )
        return next(below, tried[-1])

    def _many(self) -> bool:
        kinds: dict[str, int] = {}
        for device in self.topology.devices.values():
            kinds[device.kind] = kinds.get(device.kind, 0) + 1
        panels = len(self.routes) if self.apart else 1
        total = len(self.topology.devices) * panels
        return total > _DEVICE_LIMIT or max(kinds.values(), default=0) * panels > _KIND_LIMIT

    def _at(self, level: int) -> tuple[_Panel, ...]:
        alone = frozenset(route.gpu for route in self.routes.values())
        groups = [[label] for label in self.routes] if self.apart else [list(self.routes)]
        scenes = tuple(
            scene_of(
                self.topology,
                {label: (self.looks[label], self.routes[label]) for label in labels},
                self.limits,
                level=level,
                alone=alone,
                basis=self.basis,
            )
            for labels in groups
        )
        lay_out(scenes)
        return tuple(
            self._panel(scene, labels) for scene, labels in zip(scenes, groups, strict=True)
        )

    def _panel(self, scene: Scene, labels: list[str]) -> _Panel:
        if not self.apart:
            lines = tuple(line for label in labels for line in self._header(label, scene))
            return _Panel(scene, "", lines, None, "")
        label = labels[0]
        plain = re.fullmatch(r"[A-Za-z][\w-]*", label, re.ASCII)
        prefix = label if plain else f"route {list(self.routes).index(label) + 1}"
        header = self._header(label, scene)
        return _Panel(scene, f"{prefix}/", header, self.looks[label], label)

    def _header(self, label: str, scene: Scene) -> tuple[Line, ...]:
        """Return what stands above a route's machine."""
        route = self.routes[label]
        title = route.data_path.title or route.data_path.name
        lines = [Line(f"{label}: {title}", 14.0, bold=True)]
        if route.branches:
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
        if label in self.captions:
            lines.append(Line(self.captions[label], 12.0))
        wide = max(scene.layout.width, _NARROWEST) - (_SAMPLE + 12)
        return tuple(
            Line(text, line.size, bold=line.bold)
            for line in lines
            for text in wrapped(line.text, wide / (1.1 if line.bold else 1.0), line.size)
        )

    # --- putting it together --------------------------------------------------------------------

    def _width(self, panels: tuple[_Panel, ...]) -> float:
        return sum(panel.size[0] + _BETWEEN for panel in panels) - _BETWEEN + 2 * _MARGIN

    def picture(self, panels: tuple[_Panel, ...], *, legend: bool) -> Picture:
        """Return the picture of these panels."""
        places, (wide, high) = self._places(panels)
        title = wrapped(self.topology.title, max(wide, _NARROWEST) / 1.1, 18.0, lines=2)
        head = tuple(Line(text, 18.0, bold=True) for text in title)
        top = _MARGIN + height(head) + 12
        items = legend_items(tuple(panel.scene for panel in panels)) if legend else ()
        legend_wide = max(wide, 420.0)
        legend_high = legend_size(items, legend_wide)
        wide = max(wide, _NARROWEST, legend_wide if items else 0.0)
        size = (wide + 2 * _MARGIN, top + high + legend_high + _MARGIN)
        canvas = Canvas(size, self.theme, self.topology.name or "topology")
        canvas.frame(Rect(0, 0, *size), fill=self.theme.paper, border=self.theme.paper)
        shift = (wide - self._span(panels, places)) / 2
        painters = []
        for panel, (x, y) in zip(panels, places, strict=True):
            corner = (_MARGIN + shift + x, top + y)
            painters.append(self._open(canvas, panel, corner))
        for painter in painters:
            painter.frames()
        for painter in painters:
            painter.boxes()
        canvas.words("title", (_MARGIN, _MARGIN + height(head) / 2), head, left=True)
        for painter in painters:
            painter.wires()
            painter.routes()
        paint_legend(canvas, items, (_MARGIN, top + high), legend_wide)
        return Picture(canvas.text, *size)

    def _open(self, canvas: Canvas, panel: _Panel, corner: tuple[float, float]) -> Painter:
        """Draw a panel's border and header and return the painter of its machine."""
        x, y = corner
        inner = _PANEL if panel.look is not None else 0.0
        if panel.look is not None:
            look = self.theme.routes[panel.look]
            canvas.frame(Rect(x, y, *panel.size), fill=self.theme.panel, border=look.colour)
        if panel.header:
            at = (x + inner, y + inner + height(panel.header) / 2)
            canvas.words(f"{panel.prefix}header", at, panel.header, left=True)
        if panel.look is not None:
            self._sample(canvas, panel, (x + panel.size[0] - inner, y + inner + 10))
        aside = (panel.size[0] - 2 * inner - panel.scene.layout.width) / 2
        below = (x + inner + aside, y + inner + panel.header_height)
        return Painter(canvas, panel.scene, below, panel.prefix)

    def _sample(self, canvas: Canvas, panel: _Panel, right: tuple[float, float]) -> None:
        """Draw a piece of the panel's route beside its title."""
        if panel.look is None:
            return
        name = f"{panel.prefix}sample"
        x, y = right
        canvas.box(name, Rect(x - _SAMPLE, y, 1, 1), style="invis")
        stroke(canvas, (name, name), [(x - _SAMPLE, y), (x, y)], self.theme.routes[panel.look])

    def _places(
        self, panels: tuple[_Panel, ...]
    ) -> tuple[list[tuple[float, float]], tuple[float, float]]:
        """Return where each panel stands, and the size of all: in a row, or one below the other."""
        row = self._width(panels) <= WIDEST
        places: list[tuple[float, float]] = []
        x = y = wide = high = 0.0
        for panel in panels:
            places.append((x, y))
            wide, high = max(wide, x + panel.size[0]), max(high, y + panel.size[1])
            if row:
                x += panel.size[0] + _BETWEEN
            else:
                y += panel.size[1] + _BETWEEN
        return places, (wide, high)

    @staticmethod
    def _span(panels: tuple[_Panel, ...], places: list[tuple[float, float]]) -> float:
        return max(x + panel.size[0] for panel, (x, _) in zip(panels, places, strict=True))


def _many(number: int, word: str) -> str:
    return f"{number} {word}" if number == 1 else f"{number} {word}s"
