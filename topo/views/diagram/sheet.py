"""A whole picture: title, one panel or several, legend."""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Mapping
from dataclasses import replace
from itertools import accumulate
from typing import TYPE_CHECKING, Literal

from topo.datapaths.registry import count
from topo.description.description import Basis
from topo.phrases import counted, listed
from topo.records import dataclass
from topo.routes.route import Route
from topo.study.answers import WorkloadAnswer
from topo.topology.topology import Topology
from topo.views.diagram.geometry import Line, Point, Rect, height, wrapped
from topo.views.diagram.grouping import SERVERS, STRONGEST
from topo.views.diagram.outage import Outage, with_outage
from topo.views.diagram.paint import Painter, cross, sample
from topo.views.diagram.picture import Canvas, Picture, Theme, looks_of, theme_named
from topo.views.diagram.scene import Scene, lay_out, scene_of

if TYPE_CHECKING:
    from topo.study.failures import Failures, Loss

# So many points wide a picture may be before more is drawn as one: the smallest text is then 10
# pixels high on a page or a screen that is 1600 pixels wide.
WIDEST = 1600.0
_BELOW = 1400.0  # where panels stand below each other: a laptop shows it as it is
_MARGIN = 16.0
_BETWEEN = 16.0
_BORDER = 12.0  # between a panel's border and what is in it
_NARROWEST = 340.0  # a header is readable in this
_SAMPLE = 56.0  # a piece of a route, beside its title
_SIGN, _SIGN_GAP, _SIGN_ROW = 38.0, 18.0, 24.0  # of the legend
_LEGEND = 420.0  # it is at least so wide
_KIND_LIMIT, _DEVICE_LIMIT, _ALWAYS = 12, 60, 300

Collapse = Literal["auto"] | bool
Mark = Literal["failed", "stopped"]


def draw(  # noqa: PLR0913  (everything after the machine is by keyword)
    topology: Topology,
    *,
    answer: WorkloadAnswer | Literal["usual"] | None = "usual",
    routes: Mapping[str, Route] | None = None,
    bottlenecks: Mapping[str, tuple[str, ...]] | None = None,
    captions: Mapping[str, str] | None = None,
    theme: str = "light",
    collapse: Collapse = "auto",
    side_by_side: bool = True,
    legend: bool = True,
    at: Basis = "theoretical",
    whole: Topology | None = None,
) -> Picture:
    """Return a picture of a machine, and of the ways that data takes through it.

    Parameters
    ----------
    topology
        The machine.
    answer
        Draw its data paths over it: of each the first GPU's route, what binds it, and a caption.
        ``usual`` is that of the first workload by the usual data paths, if there is one, and
        if nothing else is said to be drawn; `None` is the machine alone.
    routes
        Routes to draw over it, by a label for each (``legacy``, ``direct``).
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
    whole
        What the machine is left of: what it has lost is drawn as failed, and who stops for it is
        marked.

    Raises
    ------
    DrawError
        If there is no such theme.
    """
    colours = theme_named(theme)
    routes, captions = dict(routes or {}), dict(captions or {})
    bottlenecks = dict(bottlenecks or {})
    if answer == "usual":
        answer = None if routes or bottlenecks else _usual_answer(topology, at)
    if answer is not None:
        from topo.views.sentences import caption  # imports the study, which a machine does without

        for path in answer.paths:
            routes.setdefault(path.name, path.route)
            bottlenecks.setdefault(path.name, tuple(resource.id for resource in path.bound))
            captions.setdefault(path.name, caption(path))
    outage = Outage()
    if whole is not None:
        topology, outage = with_outage(topology, whole, answer)
    sheet = Sheet(
        topology, routes, bottlenecks, captions, at, side_by_side=side_by_side, outage=outage
    )
    return sheet.picture(sheet.panels(collapse), colours, legend=legend)


def draw_loss(failures: Failures, loss: Loss, *, theme: str = "light") -> Picture:
    """Return a picture of what is left when parts fail: these marked, and who stops.

    Parameters
    ----------
    failures, loss
        The answer, and one of its losses.
    theme
        ``light`` or ``dark``.
    """
    from topo.study.failures import answer_after  # a picture of a machine does without the study
    from topo.views.sentences import caption_after

    left, answer = answer_after(failures, loss)
    return draw(
        left,
        answer=answer,
        captions={path.name: caption_after(path, failures.answer) for path in answer.paths},
        theme=theme,
        at=failures.basis,
        whole=failures.topology,
    )


def _usual_answer(topology: Topology, at: Basis) -> WorkloadAnswer | None:
    workloads = topology.description.workloads
    if not workloads:
        return None
    from topo.study.compare import compare  # which a machine alone does without

    return compare(topology, workload=workloads[0].name, at=at).workloads[0]


@dataclass(frozen=True)
class Panel:
    """One scene with its header; `prefix` keeps its names apart from the other panels'.

    `framed` panels have a border in the colour of their route. `least` is the header's height in
    the panels beside it, `broad` the width of those below it.
    """

    scene: Scene
    prefix: str
    header: tuple[Line, ...]
    framed: bool
    least: float = 0.0
    broad: float = 0.0

    @property
    def border(self) -> float:
        """Points between its edge and what is in it."""
        return _BORDER if self.framed else 0.0

    @property
    def size(self) -> tuple[float, float]:
        """Width and height with border and header."""
        wide = max(self.scene.layout.width, _NARROWEST if self.header else 0.0) + 2 * self.border
        high = self.scene.layout.height + 2 * self.border + self.header_height
        return (max(wide, self.broad), high)

    @property
    def header_height(self) -> float:
        """The height of the lines above the machine, at least that of the panels beside it."""
        return max(height(self.header) + 12 if self.header else 0.0, self.least)


@dataclass(frozen=True, slots=True)
class Sheet:
    """What is drawn: a machine, and its routes over one picture of it or `side_by_side`.

    `outage` is what failed in it. `live` shapes can be told apart (`Painter`), for a page that
    colours them and has its own title.
    """

    topology: Topology
    routes: Mapping[str, Route]
    limits: Mapping[str, tuple[str, ...]]
    captions: Mapping[str, str]
    basis: Basis
    side_by_side: bool
    live: bool = False
    outage: Outage = Outage()

    @property
    def apart(self) -> bool:
        """Whether there are several routes and each has a panel of its own."""
        return self.side_by_side and len(self.routes) > 1

    # --- how much is drawn as one ---------------------------------------------------------------

    def panels(self, collapse: Collapse) -> tuple[Panel, ...]:
        """Return the panels, with as much drawn as one as `collapse` says and the width asks."""
        devices = self.topology.devices.values()
        if collapse is False and len(devices) <= _ALWAYS:
            return self.panels_at(0)
        kinds = Counter(device.kind for device in devices)
        panels = len(self.routes) if self.apart else 1
        many = len(devices) * panels > _DEVICE_LIMIT
        many = many or max(kinds.values(), default=0) * panels > _KIND_LIMIT
        start = SERVERS if len(devices) > _ALWAYS else 1 if collapse is True or many else 0
        tried = []
        for level in range(start, STRONGEST + 1):
            tried.append(self.panels_at(level))
            if _width(tried[-1]) <= WIDEST:
                return tried[-1]
        # None fits side by side: one below the other, where each panel has room for larger text.
        broadest = [max(_width((panel,)) for panel in panels) for panels in tried]
        fitting = (
            panels
            for limit in (_BELOW, WIDEST)
            for panels, broad in zip(tried, broadest, strict=True)
            if broad <= limit
        )
        return next(fitting, tried[-1])

    def panels_at(self, level: int) -> tuple[Panel, ...]:
        """Return the panels with so much drawn as one (see `grouping`)."""
        alone = frozenset(
            route.endpoint
            for route in self.routes.values()
            if route.subflows or not self.outage.texts  # else it is marked as all that stop
        )
        for route in self.routes.values():  # what one device alone sends is not drawn as all do
            far = {subflow.far for subflow in route.subflows}
            alone |= far if len(far) == 1 else set()
        given = looks_of([route.data_path.name for route in self.routes.values()])
        looks = dict(zip(self.routes, given, strict=True))
        groups = [[label] for label in self.routes] if self.apart else [list(self.routes)]
        scenes = lay_out(
            tuple(
                scene_of(
                    self.topology,
                    {label: (looks[label], self.routes[label]) for label in labels},
                    self.limits,
                    level=level,
                    alone=alone,
                    basis=self.basis,
                    outage=self.outage,
                )
                for labels in groups
            )
        )
        if not self.apart:
            headers = [self._header(label, scenes[0]) for label in self.routes]
            lines = tuple(line for header in headers for line in (*header, Line(" ", 5.0)))
            return (Panel(scenes[0], "", lines[:-1], framed=False),)
        panels = []
        for number, (label, scene) in enumerate(zip(self.routes, scenes, strict=True), 1):
            plain = re.fullmatch(r"[A-Za-z][\w-]*", label, re.ASCII)
            prefix = label if plain else f"route {number}"
            panels.append(Panel(scene, f"{prefix}/", self._header(label, scene), framed=True))
        highest = max(panel.header_height for panel in panels)
        return tuple(replace(panel, least=highest) for panel in panels)

    def _header(self, label: str, scene: Scene) -> tuple[Line, ...]:
        """Return what stands above a route's machine."""
        route = self.routes[label]
        path = route.data_path
        lines = [Line(f"{label}: {path.title or path.name}", 14.0, bold=True)]
        if self.captions.get(label):
            lines.append(Line(self.captions[label], 12.0, bold=True))
        if route.subflows:
            hops, links = counted(route.logical_hops, "hop"), counted(route.physical_links, "link")
            traversals = counted(count(path).ram_traversals, "RAM traversal")
            if route.target_path is not None:
                of_drive = route.target_path.far_end == "storage"
                where = "the target" if of_drive else "the other server"
                traversals += f", {count(route.target_path).ram_traversals} in {where}"
            lines.append(Line(f"{hops}, {links}, {traversals}", 12.0))
        else:
            reasons = [reason.text for reason in route.reasons if reason.effect == "refused"]
            lines.append(Line("not possible: " + "; ".join(reasons), 12.0, bold=True))
        wide = max(scene.layout.width, _NARROWEST)
        rooms = [wide - (_SAMPLE + 12), *(wide for _ in lines[1:])]  # beside the title its sample
        return tuple(
            Line(text, line.size, bold=line.bold)
            for line, room in zip(lines, rooms, strict=True)
            for text in wrapped(line.text, room / (1.1 if line.bold else 1.0), line.size)
        )

    # --- putting it together --------------------------------------------------------------------

    def picture(self, panels: tuple[Panel, ...], theme: Theme, *, legend: bool) -> Picture:
        """Return the picture of these panels."""
        panels, places = arranged(panels)
        rights = [x + panel.size[0] for panel, (x, _) in zip(panels, places, strict=True)]
        machines_wide = max(rights)
        high = max(y + panel.size[1] for panel, (_, y) in zip(panels, places, strict=True))
        words = self.topology.title
        if self.outage.texts:
            words += f", without {listed(self.outage.texts, most=4)}"
        title = wrapped(words, max(machines_wide, _NARROWEST) / 1.1, 18.0, lines=2)
        head = tuple(Line(text, 18.0, bold=True) for text in title)
        top = _MARGIN + (0.0 if self.live else height(head) + 12)
        signs = legend_signs(tuple(panel.scene for panel in panels)) if legend else ()
        legend_wide = max(machines_wide, _LEGEND)
        rows = legend_rows(signs, legend_wide)
        legend_high = len(rows) * _SIGN_ROW + 12 if rows else 0.0
        wide = max(machines_wide, _NARROWEST, legend_wide if rows else 0.0)
        size = (wide + 2 * _MARGIN, top + high + legend_high + _MARGIN)
        canvas = Canvas(size, theme, self.topology.name or "topology")
        canvas.frame(Rect(0, 0, *size), fill=theme.paper, border=theme.paper)
        left = _MARGIN + (wide - machines_wide) / 2
        painters = [
            _open(canvas, panel, (left + x, top + y), live=self.live)
            for panel, (x, y) in zip(panels, places, strict=True)
        ]
        for painter in painters:
            painter.frames()
        for painter in painters:
            painter.boxes()
        if not self.live:
            canvas.words("picture title", (_MARGIN, _MARGIN + height(head) / 2), head, left=True)
        for painter in painters:
            painter.wires()
            painter.routes()
        _paint_legend(canvas, rows, (_MARGIN, top + high), legend_wide)
        return Picture(canvas.text, *size, canvas.shapes)


def _width(panels: tuple[Panel, ...]) -> float:
    """Return the width of a picture with these panels side by side."""
    return sum(panel.size[0] + _BETWEEN for panel in panels) - _BETWEEN + 2 * _MARGIN


def arranged(panels: tuple[Panel, ...]) -> tuple[tuple[Panel, ...], list[Point]]:
    """Return panels and where each stands: in a row, or below each other, as wide as the widest."""
    if _width(panels) <= WIDEST:
        lefts = accumulate((panel.size[0] + _BETWEEN for panel in panels[:-1]), initial=0.0)
        return panels, [(left, 0.0) for left in lefts]
    broad = max(panel.size[0] for panel in panels)
    panels = tuple(replace(panel, broad=broad) for panel in panels)
    tops = accumulate((panel.size[1] + _BETWEEN for panel in panels[:-1]), initial=0.0)
    return panels, [(0.0, top) for top in tops]


def _open(canvas: Canvas, panel: Panel, corner: Point, *, live: bool) -> Painter:
    """Draw a panel's border and header and return the painter of its machine."""
    x, y = corner
    wide, high = panel.size
    inner = panel.border
    look = canvas.theme.routes[panel.scene.routes[0].look] if panel.framed else None
    if look:
        canvas.frame(Rect(x, y, wide, high), fill=canvas.theme.panel, border=look.colour)
    if panel.header:
        at = (x + inner, y + inner + height(panel.header) / 2)
        canvas.words(f"{panel.prefix}route header", at, panel.header, left=True)
    if look:  # a piece of the route beside its title
        name = f"{panel.prefix}route sample"
        right, level = x + wide - inner, y + inner + 10
        canvas.box(name, Rect(right - _SAMPLE, level, 1, 1), style="invis")
        sample(canvas, name, [(right - _SAMPLE, level), (right, level)], look)
    aside = (wide - 2 * inner - panel.scene.layout.width) / 2
    below = (x + inner + aside, y + inner + panel.header_height)
    return Painter(canvas, panel.scene, below, panel.prefix, live=live)


# --- the legend -----------------------------------------------------------------------------------


@dataclass(frozen=True, slots=True)
class Sign:
    """One sign and its meaning; `look` is a route's."""

    kind: Literal["route", "hop", "buffer", "alarm", "alike", "rate", "unknown", "outside"] | Mark
    text: str
    look: int = 0

    @property
    def width(self) -> float:
        """Points that sign and text take."""
        return _SIGN + 6 + Line(self.text).width + _SIGN_GAP


def legend_signs(scenes: tuple[Scene, ...]) -> tuple[Sign, ...]:
    """Return the signs that these scenes have."""
    boxes = [box for scene in scenes for box in scene.grouping.boxes.values()]
    labels = [lines for scene in scenes for lines in scene.labels.values()]
    routes = [
        route for scene in scenes for route in scene.routes if route.hops or not scene.outage.texts
    ]
    keys = [(scene, key) for scene in scenes for key in scene.grouping.boxes]
    marks = {scene.mark(key) for scene, key in keys}
    signs = [Sign("route", f"{route.label} path", route.look) for route in routes]
    if signs:
        signs.append(Sign("hop", "hop, in order of travel", signs[0].look))
    if any(scene.buffers for scene in scenes):
        first = next(route.look for route in routes if route.buffers)
        signs.append(Sign("buffer", "buffer in system RAM", first))
    if any(scene.alarms for scene in scenes):
        signs.append(Sign("alarm", "bottleneck"))
    failed_wires = any(wire.failed for scene in scenes for wire in scene.grouping.wires)
    if "failed" in marks or failed_wires:
        signs.append(Sign("failed", "failed, out of order"))
    if "stopped" in marks:
        signs.append(Sign("stopped", "has no way left"))
    if any(box.several for box in boxes):
        signs.append(Sign("alike", "several alike, drawn as one"))
    beyond = (scene.grouping.boxes[key] for scene, key in keys if not scene.mark(key))
    if any(box.devices[0].outside for box in beyond):
        signs.append(Sign("outside", "outside this machine"))
    signs.append(Sign("rate", "link: thin to 10, thick over 350 GB/s"))
    if any(line.text == "rate unknown" for lines in labels for line in lines):
        signs.append(Sign("unknown", "rate unknown"))
    return tuple(signs)


def legend_rows(signs: tuple[Sign, ...], room: float) -> list[list[Sign]]:
    """Return the signs in as few rows as fit, about as many in each."""

    def fits(row: list[Sign]) -> bool:
        return sum(sign.width for sign in row) - _SIGN_GAP <= room

    filled: list[list[Sign]] = []
    for sign in signs:
        if filled and fits([*filled[-1], sign]):
            filled[-1].append(sign)
        else:
            filled.append([sign])
    least = len(filled)
    for in_row in range(-(-len(signs) // max(least, 1)), len(signs)):
        rows = [list(signs[at : at + in_row]) for at in range(0, len(signs), in_row)]
        if len(rows) == least and all(fits(row) for row in rows):
            return rows
    return filled


def _paint_legend(canvas: Canvas, rows: list[list[Sign]], corner: Point, room: float) -> None:
    """Paint the legend with its left upper corner at a point."""
    left, y = corner[0], corner[1] + 12 + _SIGN_ROW / 2
    # The same widths in all rows, where that fits.
    widths = [
        max(row[place].width for row in rows if place < len(row))
        for place in range(len(rows[0]) if len(rows) > 1 else 0)
    ]
    aligned = bool(widths) and sum(widths) - _SIGN_GAP <= room
    number = 0
    for row in rows:
        x = left
        for place, sign in enumerate(row):
            number += 1
            _paint_sign(canvas, sign, f"sign {number}", (x, y))
            text = (Line(sign.text, tone="soft"),)
            canvas.words(f"meaning {number}", (x + _SIGN + 6, y), text, left=True)
            x += widths[place] if aligned else sign.width
        y += _SIGN_ROW


def _paint_sign(canvas: Canvas, sign: Sign, name: str, at: Point) -> None:
    (x, y), theme = at, canvas.theme
    rect = Rect(x + 4, y - 8, _SIGN - 8, 16)
    look = theme.routes[sign.look]
    ends = [(x, y), (x + _SIGN, y)]
    boxes = {
        "buffer": {"color": look.colour, "penwidth": "2"},
        "alarm": {"color": theme.alarm, "penwidth": "2.6", "peripheries": "2"},
        "failed": {"color": theme.ink, "style": "filled,rounded,dashed", "penwidth": "2"},
        "stopped": {"color": theme.ink, "style": "filled,rounded,dotted", "penwidth": "2"},
        "outside": {"color": theme.soft, "style": "filled,rounded,dashed"},
    }
    if sign.kind in boxes:
        canvas.box(name, rect, fillcolor=theme.paper, **boxes[sign.kind])
        if sign.kind == "failed":
            cross(canvas, f"{name} cross", (rect.cx, rect.cy))
    elif sign.kind == "alike":
        fill, edge = theme.box("gpu")
        for step in (2, 1, 0):
            behind = rect.moved(2.0 * step - 2, 2.0 * step - 2)
            canvas.box(f"{name} behind {step}", behind, fillcolor=fill, color=edge)
    else:
        canvas.box(name, Rect(x, y, 1, 1), style="invis")  # for the lines to start from
    if sign.kind == "route":
        sample(canvas, name, ends, look)
    elif sign.kind == "hop":
        canvas.badge(name, name, (x + _SIGN / 2, y), "1", look)
    elif sign.kind == "unknown":
        canvas.line(name, name, ends, color=theme.wire, penwidth="0.8", style="dashed")
    elif sign.kind == "rate":
        for pen, up in (("0.8", -4), ("5", 3)):
            raised = [(x, y + up), (x + _SIGN, y + up)]
            canvas.line(name, name, raised, color=theme.wire, penwidth=pen)
