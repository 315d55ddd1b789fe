"""A whole picture: title, one panel or several, legend."""

from __future__ import annotations

import re
from dataclasses import replace
from typing import TYPE_CHECKING, Literal

from topo.errors import DrawError, Finding
from topo.views.diagram.canvas import Canvas
from topo.views.diagram.geometry import Rect
from topo.views.diagram.group import SERVERS, STRONGEST
from topo.views.diagram.legend import legend_items, legend_size, paint_legend
from topo.views.diagram.metrics import Line, height, wrapped
from topo.views.diagram.paint import Painter
from topo.views.diagram.panel import BORDER, NARROWEST, SAMPLE, Panel, header_of
from topo.views.diagram.picture import Picture
from topo.views.diagram.scene import lay_out, scene_of
from topo.views.diagram.strokes import sample
from topo.views.diagram.themes import THEMES

if TYPE_CHECKING:
    from collections.abc import Mapping

    from topo.description.description import Basis
    from topo.routes.route import Route
    from topo.topology.topology import Topology
    from topo.views.diagram.scene import Scene
    from topo.views.diagram.themes import Theme


# At most so many points wide, the smallest text is 10 pixels high in a picture of 1600 pixels.
WIDEST = 1600.0
_MARGIN = 16.0
_BETWEEN = 16.0
_KIND_LIMIT, _DEVICE_LIMIT, _ALWAYS = 12, 60, 300

Collapse = Literal["auto"] | bool


def draw(  # noqa: PLR0913  (everything after the machine is by keyword)
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
        EqualCostPaths to draw over it, by a label for each (``legacy``, ``direct``).
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

    def panels(self, collapse: Collapse) -> tuple[Panel, ...]:
        """Return the panels, with as much drawn as one as `collapse` says and the width asks."""
        if collapse is False and len(self.topology.devices) <= _ALWAYS:
            return self._at(0)
        start = 1 if collapse is True or self._many() else 0
        if len(self.topology.devices) > _ALWAYS:
            start = SERVERS
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

    def _at(self, level: int) -> tuple[Panel, ...]:
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
        panels = [self._panel(scene, labels) for scene, labels in zip(scenes, groups, strict=True)]
        highest = max(panel.header_height for panel in panels)
        return tuple(replace(panel, least=highest) for panel in panels)

    def _panel(self, scene: Scene, labels: list[str]) -> Panel:
        if not self.apart:
            headers = [self._header(label, scene) for label in labels]
            lines = tuple(line for header in headers for line in (*header, Line(" ", 5.0)))
            return Panel(scene, "", lines[:-1], None)
        label = labels[0]
        plain = re.fullmatch(r"[A-Za-z][\w-]*", label, re.ASCII)
        prefix = label if plain else f"route {list(self.routes).index(label) + 1}"
        return Panel(scene, f"{prefix}/", self._header(label, scene), self.looks[label])

    def _header(self, label: str, scene: Scene) -> tuple[Line, ...]:
        return header_of(label, self.routes[label], self.captions.get(label, ""), scene)

    # --- putting it together --------------------------------------------------------------------

    def _width(self, panels: tuple[Panel, ...]) -> float:
        return sum(panel.size[0] + _BETWEEN for panel in panels) - _BETWEEN + 2 * _MARGIN

    def picture(self, panels: tuple[Panel, ...], *, legend: bool) -> Picture:
        """Return the picture of these panels."""
        panels = self._aligned(panels)
        places, (wide, high) = self._places(panels)
        title = wrapped(self.topology.title, max(wide, NARROWEST) / 1.1, 18.0, lines=2)
        head = tuple(Line(text, 18.0, bold=True) for text in title)
        top = _MARGIN + height(head) + 12
        items = legend_items(tuple(panel.scene for panel in panels)) if legend else ()
        legend_wide = max(wide, 420.0)
        legend_high = legend_size(items, legend_wide)
        wide = max(wide, NARROWEST, legend_wide if items else 0.0)
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
        canvas.words("picture title", (_MARGIN, _MARGIN + height(head) / 2), head, left=True)
        for painter in painters:
            painter.wires()
            painter.routes()
        paint_legend(canvas, items, (_MARGIN, top + high), legend_wide)
        return Picture(canvas.text, *size)

    def _open(self, canvas: Canvas, panel: Panel, corner: tuple[float, float]) -> Painter:
        """Draw a panel's border and header and return the painter of its machine."""
        x, y = corner
        inner = BORDER if panel.look is not None else 0.0
        if panel.look is not None:
            look = self.theme.routes[panel.look]
            canvas.frame(Rect(x, y, *panel.size), fill=self.theme.panel, border=look.colour)
        if panel.header:
            at = (x + inner, y + inner + height(panel.header) / 2)
            canvas.words(f"{panel.prefix}route header", at, panel.header, left=True)
        if panel.look is not None:
            self._sample(canvas, panel, (x + panel.size[0] - inner, y + inner + 10))
        aside = (panel.size[0] - 2 * inner - panel.scene.layout.width) / 2
        below = (x + inner + aside, y + inner + panel.header_height)
        return Painter(canvas, panel.scene, below, panel.prefix)

    def _sample(self, canvas: Canvas, panel: Panel, right: tuple[float, float]) -> None:
        """Draw a piece of the panel's route beside its title."""
        if panel.look is None:
            return
        name = f"{panel.prefix}route sample"
        x, y = right
        canvas.box(name, Rect(x - SAMPLE, y, 1, 1), style="invis")
        sample(canvas, name, [(x - SAMPLE, y), (x, y)], self.theme.routes[panel.look])

    def _aligned(self, panels: tuple[Panel, ...]) -> tuple[Panel, ...]:
        """Return panels that stand one below the other as wide as the widest."""
        if self._width(panels) <= WIDEST:
            return panels
        widest = max(panel.size[0] for panel in panels)
        return tuple(replace(panel, broad=widest) for panel in panels)

    def _places(
        self, panels: tuple[Panel, ...]
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
    def _span(panels: tuple[Panel, ...], places: list[tuple[float, float]]) -> float:
        return max(x + panel.size[0] for panel, (x, _) in zip(panels, places, strict=True))
