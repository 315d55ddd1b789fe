"""DOT text of shapes at given places.

The text asks for Graphviz's engine `nop2`, which draws what has its place and moves nothing: any
Graphviz program makes the same picture of it (``dot -Tsvg picture.dot``).
"""

from __future__ import annotations

from itertools import groupby
from typing import TYPE_CHECKING

from topo.views.diagram.metrics import escaped, height

if TYPE_CHECKING:
    from collections.abc import Sequence

    from topo.views.diagram.geometry import Point, Rect
    from topo.views.diagram.metrics import Line
    from topo.views.diagram.themes import Theme


_FONT = "Arial"
_ROUND = 7.0  # radius of a corner


class Canvas:
    """Collects nodes, edges and clusters of one picture; `text` is their DOT.

    Parameters
    ----------
    size
        Width and height in points; y grows downwards here and upwards in DOT.
    theme
        Colours of text.
    name
        The graph's name.
    """

    def __init__(self, size: tuple[float, float], theme: Theme, name: str) -> None:
        import graphviz

        self.width, self.height, self.theme = *size, theme
        self._escape = graphviz.escape
        self._graph = graphviz.Digraph(name=graphviz.escape(name))
        self._graph.attr(
            "graph",
            layout="nop2",
            bgcolor=theme.paper,
            outputorder="nodesfirst",
            pad="0",
            fontname=_FONT,
            fontcolor=theme.ink,
        )
        self._graph.attr(
            "node",
            shape="box",
            style="filled,rounded",
            fixedsize="true",
            margin="0",
            fontname=_FONT,
            fontsize="10",
            fontcolor=theme.ink,
            label="",
        )
        self._graph.attr("edge", fontname=_FONT, fontsize="10", dir="none", arrowsize="0.8")
        self._clusters = 0

    @property
    def text(self) -> str:
        """The DOT text."""
        return str(self._graph.source)

    def frame(self, rect: Rect, *, fill: str, border: str, dashed: bool = False) -> None:
        """Draw a rectangle behind everything."""
        self._clusters += 1
        with self._graph.subgraph(name=f"cluster_{self._clusters}") as cluster:
            low, high = self._y(rect.bottom), self._y(rect.y)
            cluster.attr(
                "graph",
                bb=f"{_n(rect.x)},{_n(low)},{_n(rect.right)},{_n(high)}",
                style="filled,rounded,dashed" if dashed else "filled,rounded",
                fillcolor=fill,
                color=border,
                label="",
            )
            # An engine leaves out a cluster without nodes.
            cluster.node(
                f"corner {self._clusters}",
                style="invis",
                pos=self._pos((rect.cx, rect.cy)),
                width="0.01",
                height="0.01",
            )

    def box(self, name: str, rect: Rect, label: str = "", **attributes: str) -> None:
        """Draw a device, with a label (of `html`) in the middle."""
        if label:
            attributes["label"] = label
        self._graph.node(
            self._escape(name),
            pos=self._pos((rect.cx, rect.cy)),
            width=_n(rect.w / 72, 4),
            height=_n(rect.h / 72, 4),
            **attributes,
        )

    def words(
        self, name: str, at: Point, lines: Sequence[Line], *, colour: str = "", left: bool = False
    ) -> None:
        """Write lines with their middle (or, `left`, the middle of their left side) at a point."""
        wide = max(line.width for line in lines)
        x = at[0] + wide / 2 if left else at[0]
        self._graph.node(
            self._escape(name),
            pos=self._pos((x, at[1])),
            shape="none",
            style="",
            width=_n(wide / 72, 4),
            height=_n(height(tuple(lines)) / 72, 4),
            label=self.html(lines, colour=colour, left=left, width=wide),
        )

    def line(self, tail: str, head: str, points: Sequence[Point], **attributes: str) -> None:
        """Draw a line with rounded corners; with `arrow`, its last point is the arrow's tip."""
        points = list(points)
        arrow = attributes.get("dir") == "forward"
        tip = points[-1]
        if arrow:
            size = 10 * float(attributes.get("arrowsize", "0.8"))
            points[-1] = _short_of(points[-2], tip, size)
        pos = " ".join(self._pos(point) for point in _curve(points))
        attributes["pos"] = f"e,{self._pos(tip)} {pos}" if arrow else pos
        self._graph.edge(self._node(tail), self._node(head), **attributes)

    def badge(self, tail: str, head: str, at: Point, number: str, **colours: str) -> None:
        """Write a number on a line, above everything that is drawn before it."""
        label = (
            f'<<TABLE BORDER="1" CELLBORDER="0" CELLSPACING="0" CELLPADDING="1" STYLE="ROUNDED" '
            f'BGCOLOR="{colours["fill"]}" COLOR="{colours["border"]}"><TR><TD WIDTH="13">'
            f'<FONT COLOR="{colours["text"]}"><B>{escaped(number)}</B></FONT></TD></TR></TABLE>>'
        )
        here = self._pos(at)
        self._graph.edge(
            self._node(tail),
            self._node(head),
            pos=" ".join([here] * 4),
            color="#00000000",
            label=label,
            lp=here,
        )

    def html(
        self, lines: Sequence[Line], *, colour: str = "", left: bool = False, width: float = 0.0
    ) -> str:
        """Return an HTML-like label: a row for each line."""
        tones = {"ink": colour or self.theme.ink, "soft": colour or self.theme.soft}
        side = ' ALIGN="LEFT"' if left else ""
        rows = []
        for tone, group in groupby(lines, key=lambda line: line.tone == "alarm"):
            if tone:
                rows.append(self._alarm(tuple(group), side))
                continue
            for line in group:
                text = _font(line, tones[line.tone])
                rows.append(f"<TR><TD{side}>{text}</TD></TR>")
        wide = f' WIDTH="{int(width)}"' if width else ""
        start = '<TABLE BORDER="0" CELLBORDER="0" CELLSPACING="0" CELLPADDING="0"'
        return f"<{start}{wide}>{''.join(rows)}</TABLE>>"

    def _alarm(self, lines: Sequence[Line], side: str) -> str:
        """Return the row of a label that cries out: a table, so that its ground has an edge."""
        text = "<BR/>".join(_font(line, self.theme.on_alarm) for line in lines)
        return (
            f'<TR><TD CELLPADDING="2"{side}><TABLE BORDER="0" CELLBORDER="0" CELLSPACING="0" '
            f'CELLPADDING="3" STYLE="ROUNDED" BGCOLOR="{self.theme.alarm}">'
            f"<TR><TD>{text}</TD></TR></TABLE></TD></TR>"
        )

    def _node(self, name: str) -> str:
        """Return a node's name for the end of an edge, where a colon would start a port."""
        assert ":" not in name, name
        return str(self._escape(name))

    def _y(self, y: float) -> float:
        return self.height - y

    def _pos(self, point: Point) -> str:
        return f"{_n(point[0])},{_n(self._y(point[1]))}"


def _font(line: Line, colour: str) -> str:
    text = f"<B>{escaped(line.text)}</B>" if line.bold else escaped(line.text)
    return f'<FONT POINT-SIZE="{line.size:g}" COLOR="{colour}">{text or " "}</FONT>'


def _n(value: float, digits: int = 2) -> str:
    """Return a number without needless digits, and never minus zero."""
    return f"{round(value, digits) + 0.0:.{digits}f}".rstrip("0").rstrip(".")


def _short_of(start: Point, tip: Point, size: float) -> Point:
    """Return the point `size` before the tip of a line's last, straight piece."""
    (x, y), (end_x, end_y) = start, tip
    length = abs(end_x - x) + abs(end_y - y)
    part = max(1 - size / length, 0.0) if length else 0.0
    return (x + (end_x - x) * part, y + (end_y - y) * part)


def _curve(points: Sequence[Point]) -> list[Point]:
    """Return the control points of a Bézier curve: straight pieces, corners rounded off."""
    found = [points[0]]
    for before, corner, after in zip(points, points[1:], points[2:], strict=False):
        start, stop = _near(corner, before), _near(corner, after)
        found += [*_straight(found[-1], start), corner, corner, stop]
    return [*found, *_straight(found[-1], points[-1])]


def _near(corner: Point, other: Point) -> Point:
    length = max(abs(other[0] - corner[0]), abs(other[1] - corner[1]), 1e-9)
    part = min(_ROUND / length, 0.5)
    return (
        corner[0] + (other[0] - corner[0]) * part,
        corner[1] + (other[1] - corner[1]) * part,
    )


def _straight(start: Point, stop: Point) -> list[Point]:
    third = ((2 * start[0] + stop[0]) / 3, (2 * start[1] + stop[1]) / 3)
    other = ((start[0] + 2 * stop[0]) / 3, (start[1] + 2 * stop[1]) / 3)
    return [third, other, stop]
