"""Scenes on a canvas: boxes, wires, frames, then the routes over them."""

from __future__ import annotations

from itertools import groupby
from typing import TYPE_CHECKING

from topo.views.diagram.geometry import LANE, Rect, free_place
from topo.views.diagram.labels import BAND, bands, blocks
from topo.views.diagram.metrics import Line, height
from topo.views.diagram.polylines import buffer_places, courses, crossings
from topo.views.diagram.strokes import hollow, pieces, stroke
from topo.views.diagram.words import pen, rate_of

if TYPE_CHECKING:
    from collections.abc import Callable, Hashable, Iterator

    from topo.views.diagram.canvas import Canvas
    from topo.views.diagram.geometry import Point, Track
    from topo.views.diagram.group import Wire
    from topo.views.diagram.polylines import Course
    from topo.views.diagram.scene import Scene
    from topo.views.diagram.themes import RouteLook, Theme


class Painter:
    """Paints one laid-out scene at a place of the canvas; `prefix` keeps its names apart."""

    def __init__(self, canvas: Canvas, scene: Scene, at: Point, prefix: str = "") -> None:
        self.canvas, self.scene, self.at, self.prefix = canvas, scene, at, prefix
        self.theme: Theme = canvas.theme
        self.layout = scene.layout
        self.courses = courses(scene)
        self.devices = frozenset[str]().union(*(one.devices for one in scene.overlays))
        self.links = frozenset[int]().union(*(one.links for one in scene.overlays))

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
            line = Line(frame.title, 10.0, bold=True, tone="soft")
            self.canvas.words(self._name(f"frame {place}"), at, (line,), left=True)
        for key in self.layout.boxes:
            self._box(key)
            self._buffers(key)

    def wires(self) -> None:
        """Paint the wires with their labels."""
        walked = self.scene.walked
        drawn = {key for course in self.courses for key, _ in course.lines}
        for key, track in self.layout.tracks.items():
            if key not in drawn or key in self.scene.alarms:
                self._wire(key, track)
            if key in self.scene.labels:
                self._label(key, on=key in walked)

    def routes(self) -> None:
        """Paint the routes, all lines first and then all numbers.

        An engine draws edges in the order of the nodes that they start from, so every hop starts
        from a node of its own, made after everything that it runs over. Hops with one number are
        painted as one, so that they join without a seam.
        """
        numbered = enumerate(self.courses)
        for _, group in groupby(numbered, key=lambda pair: (pair[1].look, pair[1].label)):
            alike = list(group)
            for place, course in alike:
                self._course(course, f"hop {course.label}.{place}", stroke)
            if self.theme.routes[alike[0][1].look].stroke == "hollow":
                for place, course in alike:
                    self._course(course, f"hollow {course.label}.{place}", hollow)
        for place, course in enumerate(self.courses):
            look = self.theme.routes[course.look]
            ends = (self._anchor(f"number {course.label}.{place}"), self._name(course.target))
            for _, badge in course.badges:
                self.canvas.badge(
                    *ends,
                    self._moved(badge),
                    course.label,
                    fill=look.colour,
                    border=self.theme.paper,
                    text=look.text,
                )

    def _course(self, course: Course, key: str, painted: Callable[..., None]) -> None:
        """Paint a hop's line; only its last piece has an arrow's head."""
        ends = (self._anchor(key), self._name(course.target))
        look = self.theme.routes[course.look]
        for place, piece in enumerate(course.pieces, 1):
            moved = [self._moved(point) for point in piece]
            head = course.ends and place == len(course.pieces)
            painted(self.canvas, ends, moved, look, head=head)

    def _anchor(self, key: str) -> str:
        """Return a new node that is not seen."""
        corner = self._moved((0.0, 0.0))
        self.canvas.box(self._name(key), Rect(*corner, 1, 1), style="invis")
        return self._name(key)

    # --- boxes ----------------------------------------------------------------------------------

    def _box(self, key: str) -> None:
        rect = self.scene.inner(key).moved(*self.at)
        lines, on = self.scene.lines[key], self._on(key)
        attributes = self._colours(key, on=on)
        box = self.scene.grouping.boxes.get(key)
        names = ", ".join(device.name for device in box.devices[:32]) if box else key
        attributes["tooltip"] = names
        if box and len(box.devices) > 1 and key not in self.scene.alarms:
            for step in (2, 1):
                shadow = rect.moved(3.0 * step, 3.0 * step)
                self.canvas.box(self._name(f"{key} behind {step}"), shadow, **attributes)
        at = self._text_at(key, rect, lines)
        colour = "" if on else self.theme.faint
        if at is None and not colour:
            self.canvas.box(self._name(key), rect, self.canvas.html(lines), **attributes)
        else:
            self.canvas.box(self._name(key), rect, **attributes)
            text = self._name(f"text of {key}")
            self.canvas.words(text, at or (rect.cx, rect.cy), lines, colour=colour)

    def _colours(self, key: str, *, on: bool) -> dict[str, str]:
        box = self.scene.grouping.boxes.get(key)
        fill, border = self.theme.box(box.kind if box else "mesh")
        found = {"fillcolor": fill, "color": border, "penwidth": "1.2"}
        if not on:
            found |= {"fillcolor": self.theme.faint_fill, "color": self.theme.frame}
        if box and box.devices[0].outside:
            found["style"] = "filled,rounded,dashed"
        if key in self.scene.alarms:
            found |= {"color": self.theme.alarm, "penwidth": "2.6", "peripheries": "2"}
        return found

    def _text_at(self, key: str, rect: Rect, lines: tuple[Line, ...]) -> Point | None:
        """Return where a box's text stands, `None` for its middle."""
        if key in self.scene.buffers:
            return (rect.cx, rect.y + 5 + height(lines) / 2)
        behind = tuple(self._behind(key))
        if key not in self.scene.lanes and not behind:
            return None
        above, below = self.scene.lanes.get(key, (0, 0))
        crossing = (*crossings(self.scene, key, self.courses), *behind)
        taken = tuple(x + self.at[0] for x in crossing)
        wide = max(line.width for line in lines) + 20
        x = free_place(rect.x + 4, rect.right - 4, taken, wide)
        return (x, rect.cy + (above - below) * LANE / 2)

    def _behind(self, key: str) -> Iterator[float]:
        """Yield the x of wires that pass behind a box."""
        rect = self.layout.boxes[key]
        for track in self.layout.tracks.values():
            (x, y), (end_x, end_y) = track.points[0], track.points[-1]
            upright = abs(x - end_x) < 1 and rect.x < x < rect.right
            over = min(y, end_y) < rect.cy < max(y, end_y)
            if upright and over and key not in (track.a, track.b):
                yield x

    def _buffers(self, key: str) -> None:
        for buffer in self.scene.buffers.get(key, ()):
            places = buffer_places(self.scene, key, self.scene.order)
            rect = places[buffer.name].moved(*self.at)
            look = self.theme.routes[self.scene.overlays[0].look]
            lines = (
                Line(buffer.name, 10.0, bold=True),
                Line(f"RAM traversal {buffer.number}", 10.0),
            )
            self.canvas.box(
                self._name(f"{buffer.name} in {key}"),
                rect,
                self.canvas.html(lines),
                fillcolor=self.theme.chip,
                color=look.colour,
                penwidth="2",
            )

    # --- wires ----------------------------------------------------------------------------------

    def _wire(self, key: Hashable, track: Track) -> None:
        names = (self._name(track.a), self._name(track.b))
        if key in self.scene.alarms:
            self._alarm(key, names)
            return
        attributes = self._stroke_of(key)
        for points, hidden in pieces(track, self.layout.boxes):
            style = {"style": "dotted", "penwidth": "1"} if hidden else {}
            moved = [self._moved(point) for point in points]
            self.canvas.line(*names, moved, **{**attributes, **style})

    def _alarm(self, key: Hashable, names: tuple[str, str]) -> None:
        """Paint a wire that binds, under the hops that run along it."""
        for points in bands(self.scene, self.courses, key):
            moved = [self._moved(point) for point in points]
            self.canvas.line(*names, moved, color=self.theme.alarm, penwidth=f"{BAND:g}")

    def _stroke_of(self, key: Hashable) -> dict[str, str]:
        wires = {wire.key: wire for wire in self.scene.grouping.wires}
        wire = wires[key] if isinstance(key, int) else self._mesh_wire(key)
        rate = rate_of(self.scene.topology, wire, self.scene.basis) if wire else None
        found = {
            "color": self.theme.frame if self.scene.dimmed else self.theme.wire,
            "penwidth": f"{pen(rate):g}",
        }
        if rate is None:
            found["style"] = "dashed"
        if key in self.scene.walked:  # a way as good as the one whose hops are drawn
            found |= {"color": self._look_of(key).colour, "penwidth": "2"}
        return found

    def _look_of(self, key: Hashable) -> RouteLook:
        """Return the look of the first route that runs along a wire."""
        wire = next(wire for wire in self.scene.grouping.wires if wire.key == key)
        links = {id(link) for link in wire.links}
        looks = (one.look for one in self.scene.overlays if links & one.links)
        return self.theme.routes[next(looks)]

    def _mesh_wire(self, key: Hashable) -> Wire | None:
        for mesh in self.scene.zones.meshes:
            if isinstance(key, tuple) and key[0] == mesh.key:
                return mesh.wires[0]
        return None

    def _label(self, key: Hashable, *, on: bool) -> None:
        name = self._name(f"label {key}")
        colour = "" if on or not self.scene.dimmed else self.theme.faint
        for place, block in enumerate(blocks(self.scene, self.courses, key)):
            own = f"{name}.{place}" if place else name
            at = self._moved(block.at)
            self.canvas.words(own, at, block.lines, colour=colour, left=block.left)

    # --- what is on a route ---------------------------------------------------------------------

    def _on(self, key: str) -> bool:
        if not self.scene.dimmed or key in self.scene.alarms:
            return True
        box = self.scene.grouping.boxes.get(key)
        if box is None:
            mesh = next(mesh for mesh in self.scene.zones.meshes if mesh.key == key)
            return any(id(link) in self.links for wire in mesh.wires for link in wire.links)
        return any(device.name in self.devices for device in box.devices)

    # --- names and places -----------------------------------------------------------------------

    def _name(self, key: str) -> str:
        return f"{self.prefix}{key}"

    def _moved(self, point: Point) -> Point:
        return (point[0] + self.at[0], point[1] + self.at[1])
