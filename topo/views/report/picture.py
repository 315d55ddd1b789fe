"""The pictures of a report: topo's own, with colours that a theme changes and shapes that live.

What the engine made is read again and written from a list of what may be in it, so that nothing
else gets into the page, and in a third of the bytes.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping
from html import escape
from typing import TYPE_CHECKING, Final

from topo.views.diagram.picture import THEMES, RouteLook, Theme
from topo.views.diagram.sheet import Sheet

if TYPE_CHECKING:
    from xml.etree.ElementTree import Element

    from topo.routes.route import Route
    from topo.topology.topology import Topology
    from topo.views.report.document import ResourceTable

_PLAIN: Final = (
    *("paper", "panel", "server", "socket", "frame", "ink", "soft", "faint", "faint_fill"),
    *("wire", "alarm"),
)
# What may be in a picture: the attributes of each shape.
_SHAPES: Final[Mapping[str, tuple[str, ...]]] = {
    "path": ("d", "fill", "stroke", "stroke-width", "stroke-dasharray"),
    "polygon": ("points", "fill", "stroke", "stroke-width", "stroke-dasharray"),
    "polyline": ("points", "fill", "stroke", "stroke-width", "stroke-dasharray"),
    "ellipse": ("cx", "cy", "rx", "ry", "fill", "stroke", "stroke-width", "stroke-dasharray"),
    "text": ("x", "y", "text-anchor", "font-weight", "font-size", "fill"),
}
_DEFAULTS: Final = {"text-anchor": "start", "stroke-width": "1", "font-size": "10"}
_INK: Final = "var(--c06)"  # of texts, unless they say otherwise
_CORNER: Final = 6  # the radius of a box's corners
_NUMBER: Final = re.compile(r"-?\d+\.\d+")
_DECIMAL: Final = re.compile(r"-?\d+(?:\.\d+)?")
_POINTS: Final = 25  # of the path that Graphviz makes of a box with rounded corners
_COLOUR: Final = re.compile(r"#[0-9a-f]{6}")


def _coded() -> tuple[Theme, Mapping[str, tuple[str, str]]]:
    """Return a theme whose every colour is a code, and what each means in light and in dark."""
    light, dark = THEMES["light"], THEMES["dark"]
    meanings: dict[str, tuple[str, str]] = {}

    def code(pair: tuple[str, str]) -> str:
        name = f"#0000{len(meanings) + 1:02x}"
        meanings[name] = pair
        return name

    plain = {name: code((getattr(light, name), getattr(dark, name))) for name in _PLAIN}
    codes: dict[tuple[str, str], tuple[str, str]] = {}  # of boxes, by the light ones
    for kind, (fill, border) in light.boxes.items():
        if (fill, border) not in codes:
            dark_fill, dark_border = dark.boxes[kind]
            codes[fill, border] = (code((fill, dark_fill)), code((border, dark_border)))
    theme = Theme(
        **plain,
        boxes={kind: codes[colours] for kind, colours in light.boxes.items()},
        routes=tuple(
            RouteLook(code((look.colour, dark_look.colour)), look.stroke)
            for look, dark_look in zip(light.routes, dark.routes, strict=True)
        ),
    )
    return theme, meanings


THEME, MEANINGS = _coded()


def colours(theme: str) -> str:
    """Return the CSS variables of a theme: what each colour of a picture means in it."""
    place = list(THEMES).index(theme)
    pairs = (f"--{code[1:].lstrip('0').zfill(2)}:{pair[place]}" for code, pair in MEANINGS.items())
    return ";".join(f"--c{pair[2:]}" for pair in pairs)


def live_picture(topology: Topology, route: Route | None, table: ResourceTable, basis: str) -> str:
    """Return a machine as an SVG element, with a route over it if one is given.

    Parameters
    ----------
    topology, route
        The machine, and the first GPU's route by one data path.
    table
        Where the resources stand that shapes are coloured by.
    basis
        Of the rates written beside wires.
    """
    routes = {} if route is None else {route.data_path.name: route}
    sheet = Sheet(topology, routes, {}, {}, basis, side_by_side=True, live=True)  # type: ignore[arg-type]
    picture = sheet.picture(sheet.panels("auto"), THEME, legend=True)
    from defusedxml.ElementTree import fromstring

    root = fromstring(picture.svg())
    box = " ".join(f"{float(side):g}" for side in root.get("viewBox", "0 0 0 0").split())
    graph = next(element for element in root if _tag(element) == "g")
    body = "".join(_written(graph, table))
    shift = graph.get("transform", "")
    place = re.search(r"translate\(([-0-9.]+) ([-0-9.]+)\)", shift)
    moved = f' transform="translate({place[1]} {place[2]})"' if place else ""
    return f'<svg viewBox="{box}"><g{moved}>{body}</g></svg>'


def _tag(element: Element) -> str:
    return element.tag.rpartition("}")[2]


def _written(element: Element, table: ResourceTable) -> Iterator[str]:
    """Yield the shapes below an element, those of a device or a wire in a group of their own."""
    for child in element:
        tag = _tag(child)
        if tag in _SHAPES:
            yield _shape(child, tag)
        elif tag in ("g", "a"):
            words = child.get("class", "").split()
            inner = "".join(_written(child, table))
            if not inner:
                continue
            if "device" in words:
                names = words[words.index("device") + 1 :]
                places = [place for name in names for place in table.of_device(name)]
                yield _group("device", names, places, inner)
            elif "wire" in words:
                numbers = [int(word) for word in words[words.index("wire") + 1 :]]
                places = [place for number in numbers for place in table.of_link(number)]
                names = [table.topology.links[number].name for number in numbers]
                yield _group("wire", names, places, inner)
            else:
                yield inner


def _group(kind: str, names: list[str], places: list[int], inner: str) -> str:
    resources = " ".join(map(str, dict.fromkeys(places)))
    named = escape("\n".join(names)).replace("\n", "&#10;")
    return f'<g class="{kind}" data-{kind}="{named}" data-resource="{resources}">{inner}</g>'


def _shape(element: Element, tag: str) -> str:
    words = []
    box = _box(element.get("d", "")) if tag == "path" else ""
    for name in _SHAPES[tag]:
        value = element.get(name)
        if value is None:
            continue
        if name == "d" and box:
            words.append(box)
            continue
        value = _NUMBER.sub(lambda number: f"{float(number[0]):.1f}".removesuffix(".0"), value)
        value = _COLOUR.sub(_variable, value.lower() if name in ("fill", "stroke") else value)
        if _DEFAULTS.get(name) != value and (tag, name, value) != ("text", "fill", _INK):
            words.append(f' {name}="{escape(value)}"')
    if element.get("stroke-opacity") == "0" or element.get("stroke") == "transparent":
        words.append(' opacity="0"')
    text = escape(element.text or "", quote=False) if tag == "text" else ""
    tag = "rect" if box else tag
    return f"<{tag}{''.join(words)}>{text}</{tag}>" if text else f"<{tag}{''.join(words)}/>"


def _box(path: str) -> str:
    """Return the attributes of the rectangle with rounded corners that a path is, if it is one."""
    numbers = [float(number) for number in _DECIMAL.findall(path)]
    if len(numbers) != _POINTS * 2 or path.count("C") != 1:
        return ""
    xs, ys = numbers[::2], numbers[1::2]
    left, top, right, bottom = min(xs), min(ys), max(xs), max(ys)
    if len(set(xs)) > 6 or len(set(ys)) > 6:  # noqa: PLR2004  (sides, corners' ends and between)
        return ""
    sides = (("x", left), ("y", top), ("width", right - left), ("height", bottom - top))
    shown = (f' {name}="{round(value, 1):g}"' for name, value in (*sides, ("rx", _CORNER)))
    return "".join(shown)


def _variable(colour: re.Match[str]) -> str:
    """Return the CSS variable that a code stands for."""
    return f"var(--c{colour[0][-2:]})" if colour[0] in MEANINGS else colour[0]
