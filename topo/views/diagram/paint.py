"""Scenes on a canvas: boxes, wires with their labels, frames, then the routes over them."""

from __future__ import annotations

import math
from functools import partial
from itertools import groupby, pairwise
from typing import TYPE_CHECKING

from topo.views.diagram.geometry import Line, Point, Rect, free_place, height, widest
from topo.views.diagram.labels import BAND, CROSS, bands, middle_of, placed_labels
from topo.views.diagram.picture import INSIDE
from topo.views.diagram.polylines import Polyline, hop_lines
from topo.views.diagram.scene import DATA, LANE, Scene, figure_of

if TYPE_CHECKING:
    from topo.views.diagram.grouping import WireKey
    from topo.views.diagram.picture import Canvas, RouteLook, Theme


_PEN = 5.0  # of a route
_CASING = 8.0  # of the paper's colour between a route and the band of a wire that binds
_HEAD = 15.0  # the length of an arrow's head
_SLIM = 9.0  # a live band where no route runs, clear of the label beside it
# Bytes/s up to which a wire is drawn with so many points.
_PENS = ((10e9, 0.8), (40e9, 1.4), (70e9, 2.0), (150e9, 2.8), (350e9, 3.8), (math.inf, 5.0))


class Painter:
    """Paints one laid-out scene at a place of the canvas; `prefix` keeps its names apart.

    Where it is `live`, boxes have the class ``device`` and the names of their devices, and under
    every wire lies a band with the class ``wire`` and the numbers of its links, to be coloured.
    """

    def __init__(
        self, canvas: Canvas, scene: Scene, at: Point, prefix: str = "", *, live: bool = False
    ) -> None:
        self.canvas, self.scene, self.at, self.prefix = canvas, scene, at, prefix
        self.live = live
        self.theme: Theme = canvas.theme
        self.layout = scene.layout
        lines = hop_lines(scene)
        self.polylines, self.buffers = lines.polylines, lines.buffers

    def _name(self, key: str) -> str:
        return f"{self.prefix}{key}"

    def _moved(self, point: Point) -> Point:
        return (point[0] + self.at[0], point[1] + self.at[1])

    # --- boxes ----------------------------------------------------------------------------------

    def frames(self) -> None:
        """Paint the frames round servers and sockets."""
        for kind, fill in (("server", self.theme.server), ("socket", self.theme.socket)):
            for frame in self.layout.frames:
                if frame.kind == kind:
                    rect = frame.rect.moved(*self.at)
                    self.canvas.frame(rect, fill=fill, border=self.theme.frame)

    def boxes(self) -> None:
        """Paint the frames' titles, the boxes, and the buffers in memories."""
        for place, frame in enumerate(self.layout.frames):
            at = self._moved((frame.title_x, frame.rect.y + 12))
            line = Line(frame.title, bold=True, tone="soft")
            self.canvas.words(self._name(f"frame {place}"), at, (line,), left=True)
        for key in self.layout.boxes:
            self._box(key)
            for buffer, numbers in self.scene.buffers.get(key, {}).items():
                name, rect = self._name(f"{buffer} in {key}"), self.buffers[key][buffer]
                rect = rect.moved(*self.at)
                if buffer == DATA:
                    lines = (Line("data", bold=True), Line("in RAM"))
                    self.canvas.words(name, (rect.cx, rect.cy), lines)
                    continue
                each = ", ".join(map(str, numbers))  # as wide as the box
                words = f"traversals {each}" if len(numbers) > 1 else f"RAM traversal {each}"
                self.canvas.box(
                    name,
                    rect,
                    (Line(buffer, bold=True), Line(words)),
                    fillcolor=self.theme.paper,
                    color=self.theme.routes[self._look_of_buffer(key, buffer)].colour,
                    penwidth="2",
                )

    def _look_of_buffer(self, memory: str, buffer: str) -> int:
        """Return the look of the first route that fills a buffer."""
        filled = ((route, part) for route in self.scene.routes for part in route.buffers)
        return next(route.look for route, part in filled if part[:2] == (memory, buffer))

    def _box(self, key: str) -> None:
        rect = self.scene.inner(key).moved(*self.at)
        lines, box = self.scene.lines[key], self.scene.grouping.boxes.get(key)
        mesh = next((mesh for mesh in self.scene.zones.meshes if mesh.key == key), None)
        fill, border = self.theme.box(mesh.kind if mesh else self.scene.grouping.kind(key))
        attributes = {"fillcolor": fill, "color": border, "penwidth": "1.2"}
        mark = self.scene.mark(key)
        # or else it steps back
        on = not self.scene.dimmed or key in self.scene.alarms or bool(mark)
        if box:
            on = on or any(device.name in self.scene.devices for device in box.devices)
        else:
            on = on or bool(mesh and any(wire.key in self.scene.walked for wire in mesh.wires))
        if not on:
            attributes |= {"fillcolor": self.theme.faint_fill, "color": self.theme.frame}
        if box and box.devices[0].outside:
            attributes["style"] = "filled,rounded,dashed"
        if mark:
            attributes |= {"fillcolor": self.theme.paper, "color": self.theme.ink}
            dashes = "dashed" if mark == "failed" else "dotted"
            attributes |= {"style": f"filled,rounded,{dashes}", "penwidth": "2"}
        if key in self.scene.alarms:
            attributes |= {"color": self.theme.alarm, "penwidth": "2.6", "peripheries": "2"}
        names = ", ".join(device.name for device in box.devices[:32]) if box else key
        attributes["tooltip"] = names
        if self.live and box:
            attributes["class"] = " ".join(("device", *(device.name for device in box.devices)))
        if box and box.several and key not in self.scene.alarms:
            for step in (2, 1):
                shadow = rect.moved(3.0 * step, 3.0 * step)
                whole = {"style": "filled,rounded", "penwidth": "1.2"} if mark else {}
                name = self._name(f"{key} behind {step}")
                self.canvas.box(name, shadow, **attributes | whole)
        at = self._text_at(key, rect, lines)
        if at is None and on:
            self.canvas.box(self._name(key), rect, lines, **attributes)
        else:
            self.canvas.box(self._name(key), rect, **attributes)
            text, colour = self._name(f"text of {key}"), "" if on else self.theme.faint
            self.canvas.words(text, at or (rect.cx, rect.cy), lines, colour=colour)
        if mark == "failed":
            corner = (rect.right - CROSS, rect.y + CROSS)
            cross(self.canvas, self._name(f"{key} cross"), corner)

    def _text_at(self, key: str, rect: Rect, lines: tuple[Line, ...]) -> Point | None:
        """Return where a box's text stands, `None` for its middle.

        It keeps clear of the hops through the middle of a bar.
        """
        if key in self.scene.buffers:
            return (rect.cx, rect.y + 5 + height(lines) / 2)
        if key not in self.scene.lanes:
            return None
        above, below = self.scene.lanes[key]
        y, half = rect.cy + (above - below) * LANE / 2, height(lines) / 2
        taken = tuple(
            x + self.at[0]
            for polyline in self.polylines
            for piece in polyline.pieces
            for (x, start), (end_x, stop) in pairwise(piece)
            if abs(x - end_x) < 1
            and min(start, stop) + self.at[1] < y + half
            and max(start, stop) + self.at[1] > y - half
        )
        return (free_place(rect.x + 4, rect.right - 4, taken, widest(lines) + 20), y)

    # --- wires ----------------------------------------------------------------------------------

    def wires(self) -> None:
        """Paint the wires with their labels."""
        covered = {key for polyline in self.polylines for key, _ in polyline.lines}
        labels = placed_labels(self.scene, self.polylines)
        for key, track in self.layout.tracks.items():
            walked, alarm = key in covered, key in self.scene.alarms
            for points in bands(self.scene, self.polylines, key):
                line = partial(
                    self.canvas.line,
                    *(self._name(track.a), self._name(track.b)),
                    [self._moved(point) for point in points],
                )
                if self.live:
                    band = BAND if walked else _SLIM
                    line(penwidth=f"{band:g}", **{"class": self._links_class(key)})
                if alarm:  # under the hops that run along it
                    line(penwidth=f"{BAND:g}", color=self.theme.alarm)
                if walked and (self.live or alarm):
                    line(penwidth=f"{_CASING:g}", color=self.theme.paper)
                if not (walked or alarm):
                    line(**self._stroke_of(key))
                    if self.scene.is_broken(self.scene.wire(key)):
                        at = self._moved(middle_of(points))
                        cross(self.canvas, f"{self._name(track.a)} cross {key}", at)
            if key in self.scene.labels:
                faint = self.scene.dimmed and key not in self.scene.walked
                name, colour = self._name(f"label {key}"), self.theme.faint if faint else ""
                for place, block in enumerate(labels[key]):
                    at = self._moved(block.at)
                    block_name = f"{name}.{place}" if place else name
                    self.canvas.words(block_name, at, block.lines, colour=colour, left=block.left)

    def _links_class(self, key: WireKey) -> str:
        """Return the class of a live wire's band: ``wire`` and the numbers of its links."""
        links = self.scene.wire(key).links
        numbers = (n for n, link in enumerate(self.scene.topology.links) if link in links)
        return " ".join(("wire", *map(str, numbers)))

    def _stroke_of(self, key: WireKey) -> dict[str, str]:
        wire = self.scene.wire(key)
        if wire.failed:
            return {"color": self.theme.ink, "penwidth": "1.6", "style": "dashed"}
        figure = figure_of(self.scene.topology, wire, self.scene.basis)
        rate = (figure and figure.value) or 0.0
        pen = next(points for limit, points in _PENS if rate <= limit)
        stroke = {
            "color": self.theme.frame if self.scene.dimmed else self.theme.wire,
            "penwidth": f"{pen:g}",
        }
        if figure is None or figure.unknown:
            stroke["style"] = "dashed"
        return stroke

    # --- routes ---------------------------------------------------------------------------------

    def routes(self) -> None:
        """Paint the routes, all lines first and then all numbers.

        An engine draws edges in the order of the nodes that they start from, so every hop starts
        from a node of its own, made after everything that it runs over. Hops with one number are
        painted as one, so that they join without a seam.
        """
        numbered = list(enumerate(self.polylines))
        for (look, _), group in groupby(numbered, key=lambda pair: (pair[1].look, pair[1].label)):
            joined = list(group)
            for place, polyline in joined:
                self._polyline(polyline, f"hop {polyline.label}.{place}")
            if self.theme.routes[look].stroke in INSIDE:
                for place, polyline in joined:
                    self._polyline(polyline, f"hollow {polyline.label}.{place}", inside=True)
        written = set()
        for place, polyline in numbered:
            look = self.theme.routes[polyline.look]
            tail = self._anchor(f"number {polyline.label}.{place}")
            head = self._name(polyline.target)
            for _, badge in polyline.badges:
                if (polyline.look, polyline.label, badge) in written:
                    continue
                written.add((polyline.look, polyline.label, badge))
                self.canvas.badge(tail, head, self._moved(badge), polyline.label, look)

    def _polyline(self, polyline: Polyline, key: str, *, inside: bool = False) -> None:
        """Paint a hop's line; only its last piece has an arrow's head."""
        ends = (self._anchor(key), self._name(polyline.target))
        look = self.theme.routes[polyline.look]
        for place, piece in enumerate(polyline.pieces, 1):
            moved = [self._moved(point) for point in piece]
            head = polyline.ends and place == len(polyline.pieces)
            _line(self.canvas, ends, moved, look, inside=inside, head=head)

    def _anchor(self, key: str) -> str:
        """Return a new node that is not seen."""
        corner = self._moved((0.0, 0.0))
        self.canvas.box(self._name(key), Rect(*corner, 1, 1), style="invis")
        return self._name(key)


# --- lines ----------------------------------------------------------------------------------------


def cross(canvas: Canvas, name: str, at: Point) -> None:
    """Draw the cross of what failed, round a point."""
    (x, y), half = at, CROSS / 2
    canvas.box(name, Rect(x, y, 1, 1), style="invis")  # for the lines to start from
    for slope in (1, -1):
        ends = [(x - half, y - half * slope), (x + half, y + half * slope)]
        canvas.line(name, name, ends, color=canvas.theme.ink, penwidth="2.2")


def sample(canvas: Canvas, name: str, points: list[Point], look: RouteLook) -> None:
    """Draw a piece of a route that explains it."""
    _line(canvas, (name, name), points, look)
    if look.stroke in INSIDE:
        _line(canvas, (name, name), points, look, inside=True)


def _line(
    canvas: Canvas,
    ends: tuple[str, str],
    points: list[Point],
    look: RouteLook,
    *,
    inside: bool = False,
    head: bool = True,
) -> None:
    """Draw a route's line in its own stroke, with an arrow's head or to its end without one.

    The `inside` of a line ends at its arrow's head, and is drawn after all lines that join.
    """
    if not inside:
        style = look.stroke if look.stroke in ("dashed", "dotted") else "solid"
        pen = _PEN - 1 if style == "dashed" else _PEN
        arrow = {"dir": "forward", "arrowsize": "1.1"} if head else {}
        canvas.line(*ends, points, color=look.colour, penwidth=f"{pen:g}", style=style, **arrow)
        return
    if head:
        (x, y), (end_x, end_y) = points[-2:]
        length = max(abs(end_x - x), abs(end_y - y), 1e-9)
        part = max(1 - _HEAD / length, 0.0)
        points = [*points[:-1], (x + (end_x - x) * part, y + (end_y - y) * part)]
    colour = look.colour if look.stroke == "dotted" else canvas.theme.paper
    thin = f"{_PEN * 0.4:g}"
    canvas.line(*ends, points, color=colour, penwidth=thin, style=INSIDE[look.stroke])
