"""The pictures of a report: topo's own, with colours that a theme changes and shapes that live.

What the engine made is read again and listed from what may be in it, so that nothing else gets
into the page, and in a fifth of the bytes: the page makes elements of the list (`picture.js`), and
a page without a script has them written out (`markup`).
"""

from __future__ import annotations

import math
import re
from collections.abc import Iterator, Mapping, Sequence
from html import escape
from typing import TYPE_CHECKING, Any, Final

from topo.records import dataclass
from topo.views.diagram.picture import THEMES, RouteLook, Theme
from topo.views.diagram.sheet import Sheet

if TYPE_CHECKING:
    from xml.etree.ElementTree import Element

    from topo.description.description import Basis
    from topo.routes.route import Route
    from topo.topology.topology import Topology
    from topo.views.report.document import ResourceTable

_PLAIN: Final = (
    *("paper", "panel", "server", "socket", "frame", "ink", "soft", "faint", "faint_fill"),
    *("wire", "alarm"),
)
# What may be in a picture: where each shape is, and what else it may say.
_GEOMETRY: Final[Mapping[str, tuple[str, ...]]] = {
    "rect": ("x", "y", "width", "height"),
    "path": ("d",),
    "polygon": ("points",),
    "polyline": ("points",),
    "ellipse": ("cx", "cy", "rx", "ry"),
    "text": ("x", "y"),
}
_LOOKS: Final = ("stroke-width", "stroke-dasharray", "text-anchor", "font-weight", "font-size")
# What a shape has without saying so; the style of the page says the same.
_DEFAULTS: Final = {"text-anchor": "start", "stroke-width": "1.2", "font-size": "10"}
# What is often said has a class for it.
_CLASSES: Final = {
    ("font-weight", "bold"): "b",
    ("font-size", "12"): "n",
    **{
        ("stroke-width", width): f"w{width.replace('.', '')}"
        for width in ("0.8", "1", "1.4", "2", "2.8", "3", "3.8", "5")
    },
}
_FILLED: Final = {"text": "", "path": "", "polyline": ""}
_NUMBER: Final = re.compile(r"-?\d+\.\d+")
_DECIMAL: Final = re.compile(r"-?\d+(?:\.\d+)?")
_SHIFT: Final = re.compile(r"translate\((?P<x>[-0-9.]+) (?P<y>[-0-9.]+)\)")
_COURSE: Final = re.compile(r"M[-\d., ]+C[-\d., ]+")
_NEAR: Final = 0.11  # what rounding moves a point
_POINTS: Final = 25  # of the path that Graphviz makes of a box with rounded corners


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


def picture_style() -> str:
    """Return the CSS rules of the classes by which a picture's shapes say how they look."""
    codes = [code[-2:] for code in MEANINGS]
    fills = (f".f{code}{{fill:var(--c{code})}}" for code in codes)
    strokes = (f".s{code}{{stroke:var(--c{code})}}" for code in codes)
    units = {"font-size": "px"}
    looks = (
        f".{word}{{{name}:{value}{units.get(name, '')}}}"
        for (name, value), word in _CLASSES.items()
    )
    return "".join((*fills, *strokes, *looks))


@dataclass(frozen=True, slots=True)
class LivePicture:
    """A picture as a list of parts, each a shape or a group of some, in the order of painting.

    A shape is its tag, its classes, where it is (`_GEOMETRY`), its words if it is a text, and what
    else is said of it, if anything is. A group is ``device`` or ``wire``, the names of what it
    shows, one a line, the places of the resources that colour it, and its shapes.
    """

    size: tuple[float, float]
    shift: tuple[float, float]
    parts: tuple[list[Any], ...]


def live_picture(
    topology: Topology,
    route: Route | None,
    table: ResourceTable,
    basis: Basis,
    limits: tuple[str, ...] = (),
) -> LivePicture:
    """Return the picture of a machine, with a route over it if one is given.

    Parameters
    ----------
    topology, route
        The machine, and the first GPU's route by one data path.
    table
        Where the resources stand that shapes are coloured by.
    basis
        Of the rates written beside wires.
    limits
        Ids of what binds, for a picture that no script marks.
    """
    name = route.data_path.name if route else ""
    routes = {name: route} if route else {}
    sheet = Sheet(topology, routes, {name: limits}, {}, basis, side_by_side=True, live=True)
    picture = sheet.picture(sheet.panels("auto"), THEME, legend=True)
    from defusedxml.ElementTree import fromstring

    root = fromstring(picture.svg())
    _, _, wide, high = map(float, root.get("viewBox", "0 0 0 0").split())
    graph = next(element for element in root if _tag(element) == "g")
    place = _SHIFT.search(graph.get("transform", ""))
    shift = (float(place["x"]), float(place["y"])) if place else (0.0, 0.0)
    parts: list[list[Any]] = []
    for part in _parts(graph, table):
        if part[0] == "device" and parts and parts[-1][:3] == part[:3]:  # those alike behind it
            parts[-1] += part[3:]
        else:
            parts.append(part)
    return LivePicture((wide, high), shift, tuple(parts))


def markup(picture: LivePicture, label: str) -> str:
    """Return a picture as an SVG element that a page without a script can show, with its label."""
    wide, high = picture.size
    x, y = picture.shift
    body = "".join(map(_element, picture.parts))
    moved = f'<g transform="translate({x:g} {y:g})">{body}</g>'
    named = f'role="img" aria-label="{escape(label)}"'
    return f'<svg viewBox="0 0 {wide:g} {high:g}" {named}>{moved}</svg>'


def _element(part: list[Any]) -> str:
    tag, words, *more = part
    if tag not in _GEOMETRY:
        # a wire's own are the band that a script colours
        return "".join(map(_element, more[1:])) if tag == "device" else ""
    attributes = {"class": words} if words else {}
    attributes |= dict(zip(_GEOMETRY[tag], more, strict=False))
    rest = more[len(_GEOMETRY[tag]) :]
    text = escape(rest.pop(0), quote=False) if tag == "text" else ""
    attributes |= rest[0] if rest else {}
    said = "".join(f' {name}="{escape(str(value))}"' for name, value in attributes.items())
    return f"<{tag}{said}>{text}</{tag}>" if text else f"<{tag}{said}/>"


def _tag(element: Element) -> str:
    return element.tag.rpartition("}")[2]


def _parts(element: Element, table: ResourceTable, *, coloured: bool = True) -> Iterator[list[Any]]:
    """Yield the shapes below an element, those of a device or a wire in a group of their own.

    What is not `coloured` gets its colour from the page.
    """
    for child in element:
        tag = _tag(child)
        if tag in _GEOMETRY:
            yield from _shape(child, tag, coloured=coloured)
        elif tag in ("g", "a"):
            words = child.get("class", "").split()
            inner = list(_parts(child, table, coloured=coloured and "wire" not in words))
            if "device" in words and inner:
                names = words[words.index("device") + 1 :]
                places = [place for name in names for place in table.of_device(name)]
                yield _group("device", names, places, inner)
            elif "wire" in words and inner:
                numbers = [int(word) for word in words[words.index("wire") + 1 :]]
                places = [place for number in numbers for place in table.of_link(number)]
                names = [table.topology.links[number].name for number in numbers]
                yield _group("wire", names, places, inner)
            else:
                yield from inner


def _group(kind: str, names: list[str], places: list[int], inner: list[list[Any]]) -> list[Any]:
    return [kind, "\n".join(names), list(dict.fromkeys(places)), *inner]


def _shape(element: Element, tag: str, *, coloured: bool) -> Iterator[list[Any]]:
    """Yield a shape with its colours as classes; nothing where none of it is seen."""
    box = _box(element.get("d", "")) if tag == "path" else ()
    shown = "rect" if box else tag
    classes: list[str] = []
    if coloured:
        hidden = element.get("stroke-opacity") == "0"
        fill, stroke = _code(element, "fill"), "" if hidden else _code(element, "stroke")
        if not fill and not stroke and tag != "text":
            return
        classes += [f"f{fill or 0}"] if fill != _FILLED.get(shown) else []
        classes += [f"s{stroke}"] if stroke else []
    looks: dict[str, str | float] = {}
    for name in _LOOKS if coloured else ():
        value = element.get(name) or ("1" if (name, shown) == ("stroke-width", "rect") else None)
        if value is None:
            continue
        look = _number(value) if _DECIMAL.fullmatch(value) else value
        if str(look) == _DEFAULTS.get(name):
            continue
        if (name, str(look)) in _CLASSES:
            classes.append(_CLASSES[name, str(look)])
        else:
            looks[name] = look
    if tag == "path":
        place: Sequence[str | float] = box or (_course(element.get("d", "")),)
    else:
        place = [_rounded(element.get(name, "")) for name in _GEOMETRY[tag]]
    text = [element.text or ""] if tag == "text" else []
    yield [shown, " ".join(classes), *place, *text, *([looks] if looks else [])]


def _code(element: Element, name: str) -> str:
    """Return the code of a colour, without what all codes have; nothing for none."""
    colour = element.get(name, "").lower()
    return colour[-2:] if colour in MEANINGS else ""


def _number(text: str) -> float:
    """Return a number as JSON writes it shortest."""
    value = round(float(text), 1)
    return int(value) if value == int(value) else value


def _rounded(text: str) -> str | float:
    """Return a number, or a text of some, with one digit behind the point."""
    if _DECIMAL.fullmatch(text):
        return _number(text)
    return _NUMBER.sub(lambda number: f"{round(float(number[0]), 1):g}", text)


def _course(path: str) -> str:
    """Return a path with straight lines where its curves are straight, and one for several.

    Examples
    --------
    >>> _course("M10,-4C10,-3 10,-2 10,-1 10,-1 10,0.52 10,4")
    'M10-4V4'
    """
    if not _COURSE.fullmatch(path):
        return str(_rounded(path))
    numbers = [round(float(number), 1) for number in _DECIMAL.findall(path)]
    points = list(zip(numbers[::2], numbers[1::2], strict=True))
    steps: list[tuple[tuple[float, float], ...]] = []  # the ends of lines, curves with two more
    start = before = points[0]  # of the line that is going on, and where it has got to
    for place in range(1, len(points), 3):
        first, second, end = points[place : place + 3]
        if not (_straight(before, first, end) and _straight(before, second, end)):
            steps.append((first, second, end))
            start = end
        elif steps and len(steps[-1]) == 1 and _straight(start, before, end):
            steps[-1] = (end,)
        elif before != end:
            steps.append((end,))
            start = before
        before = end
    words, (x, y) = [f"M{_joined(points[0])}"], points[0]
    for step in steps:
        end_x, end_y = step[-1]
        if len(step) > 1:
            words.append("C" + " ".join(map(_joined, step)))
        elif x == end_x:
            words.append(f"V{end_y:g}")
        elif y == end_y:
            words.append(f"H{end_x:g}")
        else:
            words.append(f"L{_joined(step[0])}")
        x, y = end_x, end_y
    return "".join(words)


def _joined(point: tuple[float, float]) -> str:
    """Return a point's numbers, which a minus keeps apart as well."""
    return f"{point[0]:g}{',' if point[1] >= 0 else ''}{point[1]:g}"


def _straight(a: tuple[float, float], b: tuple[float, float], c: tuple[float, float]) -> bool:
    """Whether `b` lies between `a` and `c` on the straight line that joins them."""
    wide, high = c[0] - a[0], c[1] - a[1]
    length = math.hypot(wide, high)
    if length == 0:
        return b == a
    aside = abs(wide * (b[1] - a[1]) - high * (b[0] - a[0])) / length
    along = (wide * (b[0] - a[0]) + high * (b[1] - a[1])) / length
    return aside <= _NEAR and -_NEAR <= along <= length + _NEAR


def _box(path: str) -> tuple[float, ...]:
    """Return where the rectangle with rounded corners is that a path is, if it is one."""
    numbers = [float(number) for number in _DECIMAL.findall(path)]
    if len(numbers) != _POINTS * 2 or path.count("C") != 1:
        return ()
    xs, ys = numbers[::2], numbers[1::2]
    left, top, right, bottom = min(xs), min(ys), max(xs), max(ys)
    if len(set(xs)) > 6 or len(set(ys)) > 6:  # noqa: PLR2004  (sides, corners' ends and between)
        return ()
    return tuple(_number(str(side)) for side in (left, top, right - left, bottom - top))
