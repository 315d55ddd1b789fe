"""The shapes of a picture as a PDF page: lines, boxes and text that stay sharp at any size.

Text is set in Helvetica, which every reader has, and so is what Windows-1252 can write.

Reference: ISO 32000-1, 8 (graphics) and 9 (text).
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import TYPE_CHECKING, Final

from topo.phrases import visible
from topo.views.diagram.geometry import Line, Point, Rect, curve, height, width

if TYPE_CHECKING:
    from topo.views.diagram.shapes import Run, Shape

_ROUND: Final = 6.0  # radius of a box's corner
_ARC: Final = 0.5523  # where a quarter circle's control points are, of its radius
_DASHES: Final = {"dashed": "[5 3]", "dotted": "[1 3]"}
_ASCENT: Final = 0.95  # of a line's size, from its top to its baseline
_SECOND: Final = 4.0  # points between the two borders of what binds
_ARROWS: Final = {"→": "->", "←": "<-", "\u200b": ""}
_FACES: Final = ("Helvetica", "Helvetica-Bold")


def writable(shapes: Sequence[Shape]) -> bool:
    """Whether the letters of a PDF's own fonts are enough for all text."""
    try:
        for shape in shapes:
            for run in shape.text:
                _plain(run.text).encode("cp1252")
    except UnicodeEncodeError:
        return False
    return True


def pdf(shapes: Sequence[Shape], size: tuple[float, float]) -> bytes:
    """Return a PDF of one page of this size in points; the same shapes give the same bytes."""
    stream = "\n".join(["1 j 1 J", *(line for shape in shapes for line in _drawn(shape, size[1]))])
    content = stream.encode("cp1252")
    fonts = " ".join(f"/F{number} {number + 4} 0 R" for number in range(2))
    objects = [
        b"<< /Type /Catalog /Pages 2 0 R >>",
        b"<< /Type /Pages /Kids [3 0 R] /Count 1 >>",
        f"<< /Type /Page /Parent 2 0 R /MediaBox [0 0 {size[0]:.2f} {size[1]:.2f}] "
        f"/Resources << /Font << {fonts} >> >> /Contents 6 0 R >>".encode(),
        *(
            f"<< /Type /Font /Subtype /Type1 /BaseFont /{face} "
            "/Encoding /WinAnsiEncoding >>".encode()
            for face in _FACES
        ),
        b"<< /Length %d >>\nstream\n%b\nendstream" % (len(content), content),
    ]
    written = b"%PDF-1.4\n"
    places = []
    for number, body in enumerate(objects, start=1):
        places.append(len(written))
        written += b"%d 0 obj\n%b\nendobj\n" % (number, body)
    table = "".join(f"{place:010d} 00000 n \n" for place in places)
    count = len(objects) + 1
    trailer = f"trailer\n<< /Size {count} /Root 1 0 R >>\nstartxref\n{len(written)}\n%%EOF\n"
    return written + f"xref\n0 {count}\n0000000000 65535 f \n{table}{trailer}".encode()


def _drawn(shape: Shape, page: float) -> Iterator[str]:
    """Yield the operators of a shape, on a page so high: a PDF's y grows upwards."""
    words = shape.attributes
    style = words.get("style", "rounded")
    if shape.kind == "line":
        yield from _line(shape, page)
    elif shape.kind != "words":
        dashes = next((dashes for stroke, dashes in _DASHES.items() if stroke in style), "[]")
        pen = float(words.get("penwidth", "1"))
        fill, border = words.get("fillcolor", ""), words.get("color", "")
        yield f"{dashes} 0 d {pen:g} w"
        yield f"{_colour(fill)} rg {_colour(border)} RG"
        paint = "B" if pen and border else "f"
        radius = _ROUND if "rounded" in style else 0.0
        yield f"{_outline(shape.rect, radius, page)} {paint if fill else 'S'}"
        if words.get("peripheries") == "2":
            yield f"{_outline(shape.rect.within(-_SECOND), radius + _SECOND, page)} S"
        yield "[] 0 d"
    yield from _text(shape, page)


def _line(shape: Shape, page: float) -> Iterator[str]:
    words, points = shape.attributes, list(shape.points)
    pen, colour = float(words.get("penwidth", "1")), _colour(words.get("color", "#000000"))
    dashes = _DASHES.get(words.get("style", ""), "[]")
    head = ""
    if words.get("dir") == "forward":
        (x, y), (tip_x, tip_y) = points[-2:]
        length = max(abs(tip_x - x), abs(tip_y - y), 1e-9)
        long = min(10 * float(words.get("arrowsize", "0.8")), length)
        across, down = (tip_x - x) / length, (tip_y - y) / length
        base_x, base_y = tip_x - across * long, tip_y - down * long
        side = 0.6 * long
        corners = [
            (tip_x, tip_y),
            (base_x - down * side, base_y + across * side),
            (base_x + down * side, base_y - across * side),
        ]
        head = f"{colour} rg {_path(corners, page)} h f"
        points[-1] = (base_x, base_y)
    start, *controls = curve(points)
    places = [_point(point, page) for point in controls]
    curves = (" ".join(places[first : first + 3]) for first in range(0, len(places) - 2, 3))
    way = f"{_point(start, page)} m " + " ".join(f"{piece} c" for piece in curves)
    yield f"{dashes} 0 d {pen:g} w {colour} RG {way} S [] 0 d"
    if head:
        yield head


def _text(shape: Shape, page: float) -> Iterator[str]:
    """Yield a shape's lines, one below the other in its middle."""
    for run, rect in written(shape):
        if run.ground:
            ground = Rect(rect.x - 4, rect.y - 1, rect.w + 8, rect.h + 2)
            yield f"{_colour(run.ground)} rg {_outline(ground, 2.0, page)} f"
        yield f"BT /F{int(run.bold)} {run.size:g} Tf {_colour(run.colour)} rg"
        yield f"{_point((rect.x, rect.y + run.size * _ASCENT), page)} Td ({_escaped(run)}) Tj ET"


def written(shape: Shape) -> Iterator[tuple[Run, Rect]]:
    """Yield each line of a shape's text and where it stands."""
    if not shape.text:
        return
    tones = [
        Line(run.text, run.size, run.bold, "alarm" if run.ground else "ink") for run in shape.text
    ]
    y = shape.rect.cy - height(tuple(tones)) / 2
    before = ""
    for run in shape.text:
        high = height((Line(run.text, run.size),))
        wide = width(run.text, run.size, bold=run.bold) / 1.03
        x = shape.rect.x if shape.left else shape.rect.cx - wide / 2
        if run.ground:
            y += 6.0 * (before != run.ground)
            x += 5.0 * shape.left
        before = run.ground
        yield run, Rect(x, y, wide, high)
        y += high


def _escaped(run: Run) -> str:
    text = _plain(run.text).replace("\\", "\\\\")
    return text.replace("(", "\\(").replace(")", "\\)")


def _plain(text: str) -> str:
    return "".join(_ARROWS.get(letter, letter) for letter in visible(text))


def _outline(rect: Rect, radius: float, page: float) -> str:
    """Return the path round a rectangle with round corners."""
    r = min(radius, rect.w / 2, rect.h / 2)
    if not r:
        return f"{_point((rect.x, rect.bottom), page)} {rect.w:.2f} {rect.h:.2f} re"
    near = r * (1 - _ARC)
    left, right, top, low = rect.x, rect.right, rect.y, rect.bottom
    path = [f"{_point((left + r, top), page)} m"]
    for line, first, second, end in (
        ((right - r, top), (right - near, top), (right, top + near), (right, top + r)),
        ((right, low - r), (right, low - near), (right - near, low), (right - r, low)),
        ((left + r, low), (left + near, low), (left, low - near), (left, low - r)),
        ((left, top + r), (left, top + near), (left + near, top), (left + r, top)),
    ):
        corner = " ".join(_point(point, page) for point in (first, second, end))
        path.append(f"{_point(line, page)} l {corner} c")
    return " ".join([*path, "h"])


def _path(points: Sequence[Point], page: float) -> str:
    start, *others = points
    return " ".join([f"{_point(start, page)} m", *(f"{_point(p, page)} l" for p in others)])


def _point(point: Point, page: float) -> str:
    return f"{point[0]:.2f} {page - point[1]:.2f}"


def _colour(text: str) -> str:
    """Return ``#rrggbb`` as three parts of one; black where there is none."""
    digits = text.removeprefix("#") or "000000"
    parts = (int(digits[place : place + 2], 16) / 255 for place in (0, 2, 4))
    return " ".join(f"{part:.3f}" for part in parts)
