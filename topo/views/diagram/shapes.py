"""The shapes of a picture as values, and the diagrams.net file that has each as a native one.

A box is in the frame round it (a server, a socket, a route's panel) and moves with it; a wire is
tied to the boxes at its ends.

Reference: https://www.drawio.com/doc/faq/diagram-source-edit
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import field
from typing import Final, Literal
from xml.sax.saxutils import escape, quoteattr

from topo.phrases import visible
from topo.records import dataclass
from topo.views.diagram.geometry import Point, Rect

_NEAR: Final = 2.0  # points from a box's side within which a line ends at the box
_DASHES: Final = {"dashed": "dashed=1;", "dotted": "dashed=1;dashPattern=1 2;"}


@dataclass(frozen=True, slots=True)
class Run:
    """A line of text: size in points, colour, and the colour behind it if there is one."""

    text: str
    size: float
    bold: bool
    colour: str
    ground: str = ""


@dataclass(frozen=True, slots=True)
class Shape:
    """One shape, in points from the upper left corner; later ones cover earlier ones.

    `ends` are the names of what a line joins, `attributes` Graphviz's words for colours and pens.
    """

    kind: Literal["frame", "box", "words", "line"]
    name: str = ""
    rect: Rect = Rect(0, 0, 0, 0)
    points: tuple[Point, ...] = ()
    ends: tuple[str, str] = ("", "")
    text: tuple[Run, ...] = ()
    left: bool = False
    attributes: Mapping[str, str] = field(default_factory=dict)


def drawio(shapes: Sequence[Shape], size: tuple[float, float], title: str) -> str:
    """Return a diagrams.net file of shapes, as XML without compression.

    Parameters
    ----------
    shapes
        In the order of painting; the first frame is the page's ground.
    size
        Width and height of the page in points.
    title
        The page's name.
    """
    ids = {shape.name: f"s{place}" for place, shape in enumerate(shapes) if shape.kind == "box"}
    boxes = {shape.name: shape.rect for shape in shapes if shape.kind == "box"}
    frames = {f"s{n}": shape.rect for n, shape in enumerate(shapes) if shape.kind == "frame"}
    paper = shapes[0].attributes["fillcolor"] if shapes else "#FFFFFF"
    frames.pop("s0", None)
    cells = []
    for place, shape in enumerate(shapes):
        name = f"s{place}"
        if shape.kind == "line":
            cells.append(_edge(name, shape, ids, boxes))
        elif place or shape.kind != "frame":
            holders = [key for key, rect in frames.items() if key != name and _holds(rect, shape)]
            if not shape.name and shape.kind == "box":
                holders = []  # a number on a line, which lies over all
            parent = min(holders, key=lambda key: frames[key].w * frames[key].h, default="1")
            corner = (frames[parent].x, frames[parent].y) if parent in frames else (0.0, 0.0)
            cells.append(_vertex(name, shape, parent, corner))
    page = f'pageWidth="{size[0]:.0f}" pageHeight="{size[1]:.0f}" background="{paper}"'
    return "\n".join(
        [
            '<mxfile host="topo">',
            f'<diagram id="picture" name={_quoted(title)}>',
            f'<mxGraphModel dx="0" dy="0" grid="0" page="1" {page}>',
            '<root><mxCell id="0"/><mxCell id="1" parent="0"/>',
            *cells,
            "</root></mxGraphModel></diagram></mxfile>",
            "",
        ]
    )


def _holds(frame: Rect, shape: Shape) -> bool:
    rect = shape.rect
    inside = frame.x <= rect.x and rect.right <= frame.right
    inside = inside and frame.y <= rect.y and rect.bottom <= frame.bottom
    return inside and frame != rect


def _vertex(name: str, shape: Shape, parent: str, corner: Point) -> str:
    words, rect = shape.attributes, shape.rect
    if shape.kind == "words":
        side = "left" if shape.left else "center"
        style = f"text;html=1;align={side};verticalAlign=middle;spacing=0;whiteSpace=nowrap;"
        style += "fillColor=none;strokeColor=none;"
    else:
        style = "html=1;spacing=0;absoluteArcSize=1;arcSize=12;" + _paint(words)
        style += "rounded=1;" if "rounded" in words.get("style", "rounded") else ""
        style += "fillColor=" + words.get("fillcolor", "none") + ";"
        style += "container=1;collapsible=0;" if shape.kind == "frame" else ""
        style += "shape=ext;double=1;" if words.get("peripheries") == "2" else ""
    place = f'x="{rect.x - corner[0]:.1f}" y="{rect.y - corner[1]:.1f}"'
    return (
        f'<mxCell id="{name}" value={_quoted(_html(shape.text))} style="{style}" vertex="1" '
        f'parent="{parent}"><mxGeometry {place} width="{rect.w:.1f}" height="{rect.h:.1f}" '
        'as="geometry"/></mxCell>'
    )


def _edge(name: str, shape: Shape, ids: Mapping[str, str], boxes: Mapping[str, Rect]) -> str:
    """Return a line; an end that lies at the side of its box is tied to it there."""
    words, points = shape.attributes, shape.points
    arrow = "classic" if words.get("dir") == "forward" else "none"
    style = f"html=1;rounded=1;edgeStyle=none;startArrow=none;endArrow={arrow};" + _paint(words)
    ties = ""
    for sign, end, (x, y), attribute in (
        ("exit", shape.ends[0], points[0], "source"),
        ("entry", shape.ends[1], points[-1], "target"),
    ):
        rect = boxes.get(end)
        if rect is None or rect.w <= _NEAR or not _touches(rect, (x, y)):
            continue
        across, down = (x - rect.x) / rect.w, (y - rect.y) / rect.h
        style += f"{sign}X={across:.4f};{sign}Y={down:.4f};{sign}Perimeter=0;"
        ties += f' {attribute}="{ids[end]}"'
    between = "".join(f'<mxPoint x="{x:.1f}" y="{y:.1f}"/>' for x, y in points[1:-1])
    array = f'<Array as="points">{between}</Array>' if between else ""
    ends = "".join(
        f'<mxPoint x="{x:.1f}" y="{y:.1f}" as="{role}"/>'
        for (x, y), role in ((points[0], "sourcePoint"), (points[-1], "targetPoint"))
    )
    return (
        f'<mxCell id="{name}" style="{style}" edge="1" parent="1"{ties}>'
        f'<mxGeometry relative="1" as="geometry">{ends}{array}</mxGeometry></mxCell>'
    )


def _touches(rect: Rect, point: Point) -> bool:
    outer = rect.within(-_NEAR)
    x, y = point
    return outer.x <= x <= outer.right and outer.y <= y <= outer.bottom


def _paint(words: Mapping[str, str]) -> str:
    """Return the colour and the stroke of a pen."""
    style = words.get("style", "")
    dashes = next((dashes for stroke, dashes in _DASHES.items() if stroke in style), "")
    colour, pen = words.get("color", "none"), words.get("penwidth", "1")
    return f"strokeColor={colour};strokeWidth={pen};{dashes}"


def _html(text: Sequence[Run]) -> str:
    lines = []
    for run in text:
        ground = f";background-color:{run.ground}" if run.ground else ""
        words = escape(visible(run.text))
        words = f"<b>{words}</b>" if run.bold else words
        lines.append(
            f'<span style="font-size:{run.size:g}px;color:{run.colour}{ground}">{words}</span>'
        )
    return "<br>".join(lines)


def _quoted(text: str) -> str:
    return quoteattr(visible(text))
