"""A picture: themes, shapes at given places as DOT text, and what engines make of it.

The text asks for Graphviz's engine `nop2`, which draws what has its place and moves nothing: any
Graphviz program makes the same picture of it (``dot -Tsvg picture.dot``).

Route colours are Okabe and Ito's, chosen so that people who are colour-blind can tell them apart,
and darkened until a number in white can be read on them; each route of a picture also has a stroke
of its own, for those who print in grey. A data path looks the same in every picture.

Reference: Okabe and Ito, "Color Universal Design", https://jfly.uni-koeln.de/color/
"""

from __future__ import annotations

import shutil
import subprocess
import sysconfig
import unicodedata
from collections.abc import Sequence
from dataclasses import field
from itertools import groupby
from pathlib import Path
from typing import Literal, get_args
from zlib import crc32

from topo.errors import DrawError, Finding
from topo.files import replace_file
from topo.phrases import brief, visible
from topo.records import dataclass
from topo.views.diagram.geometry import Line, Point, Rect, curve, height, widest
from topo.views.diagram.pdf import pdf, writable
from topo.views.diagram.shapes import Run, Shape, drawio
from topo.views.diagram.slide import pptx

Engine = Literal["graphviz-pure", "dot"]
Stroke = Literal["hollow", "solid", "dashed", "dotted", "striped", "beaded"]
# What is drawn inside a line by stroke, in the paper's colour; what joins dots has their own.
INSIDE: dict[Stroke, str] = {
    "hollow": "solid",
    "striped": "dashed",
    "beaded": "dotted",
    "dotted": "solid",
}

FORMATS = (".svg", ".png", ".pdf", ".dot", ".gv", ".drawio", ".pptx")
_SECONDS = 120  # that an engine may take
_FONT = "Arial"
SCALE = 1.5  # pixels a point, where nobody asks for more or less: the smallest text has 15 pixels
MOST_PIXELS, _MOST_IN_ALL = 16_384, 100_000_000  # of a PNG: at a side, and together


@dataclass(frozen=True, slots=True)
class Picture:
    """A picture with every shape at its place.

    Parameters
    ----------
    dot
        The picture as DOT; any Graphviz program draws it as it is: ``dot -Tsvg picture.dot``.
    width, height
        Its size in points.
    shapes
        The same as values, for formats that have shapes of their own.
    """

    dot: str
    width: float
    height: float
    shapes: tuple[Shape, ...] = field(default=(), compare=False, repr=False)

    def __repr__(self) -> str:
        return brief(self, f"of {self.width:.0f} x {self.height:.0f} points")

    def svg(self, *, engine: Engine = "graphviz-pure") -> str:
        """Return the picture as SVG.

        Raises
        ------
        DrawError
            If the engine is missing or fails.
        """
        return _render(self.dot, "svg", engine).decode()

    def png(
        self,
        *,
        engine: Engine = "graphviz-pure",
        width: int | None = None,
        scale: float | None = None,
    ) -> bytes:
        """Return the picture as PNG, `width` pixels wide or with `scale` pixels a point.

        Raises
        ------
        DrawError
            If it would have too many pixels or none, or if the engine is missing or fails.
        """
        scale = width / self.width if width is not None else SCALE if scale is None else scale
        wide, high = self.width * scale, self.height * scale
        if not (1 <= wide <= MOST_PIXELS and 1 <= high <= MOST_PIXELS):
            limit = f"a side of a PNG has 1 to {MOST_PIXELS} pixels"
        elif wide * high > _MOST_IN_ALL:
            limit = f"a PNG has at most {_MOST_IN_ALL / 1e6:g} million pixels"
        else:
            return _render(self.dot, "png", engine, f"-Gdpi={72.0 * scale:.4f}")
        message = f"the picture would have {wide:.0f} x {high:.0f} pixels; {limit}"
        help_text = "another --width or --scale, less of the machine (--collapse), or .svg"
        raise DrawError(Finding("picture-size", message, help=help_text))

    def pdf(self, *, engine: Engine | None = None) -> bytes:
        """Return the picture as PDF: topo's own, or that of a system Graphviz (``dot``).

        Raises
        ------
        DrawError
            If its text has other letters than Western European ones, which takes the fonts of a
            system Graphviz, or if that is missing or fails.
        """
        if engine is None and writable(self.shapes):
            return pdf(self.shapes, (self.width, self.height))
        if engine == "graphviz-pure":
            help_text = "topo does itself, without --engine; a system Graphviz: --engine dot"
            raise DrawError(Finding("engine-cannot", f"{engine} makes no PDF", help=help_text))
        return _render(self.dot, "pdf", "dot")

    def write(
        self,
        path: str | Path,
        *,
        engine: Engine | None = None,
        width: int | None = None,
        scale: float | None = None,
    ) -> Path:
        """Write the picture in the format that the suffix of `path` says, whole or not at all.

        `width` and `scale` are those of a PNG, in pixels and in pixels a point.

        Raises
        ------
        DrawError
            If there is no such format, the engine fails, or the file cannot be written.
        """
        target = Path(path)
        match target.suffix.lower():
            case ".dot" | ".gv":
                data = self.dot.encode()
            case ".drawio":
                title = target.stem
                data = drawio(self.shapes, (self.width, self.height), title).encode()
            case ".svg":
                data = self.svg(engine=engine or "graphviz-pure").encode()
            case ".png":
                data = self.png(engine=engine or "graphviz-pure", width=width, scale=scale)
            case ".pptx":
                data = pptx(self.shapes, (self.width, self.height))
            case ".pdf":
                data = self.pdf(engine=engine)
            case suffix:
                message = f"no picture format {suffix or 'without a suffix'}"
                help_text = f"one of {' '.join(FORMATS)}"
                raise DrawError(Finding("unknown-format", message, help=help_text))
        try:
            replace_file(target, data)
        except OSError as error:
            reason = error.strerror or str(error)
            raise DrawError(Finding("not-written", f"{target}: {reason}")) from error
        return target

    def _repr_svg_(self) -> str:
        return self.svg()


def _render(text: str, form: str, engine: Engine, *options: str) -> bytes:
    """Return the picture that `engine` makes of DOT `text`.

    The engine that came with topo is beside this Python, or on the search path as any other.
    """
    program = shutil.which(engine)
    if engine == "graphviz-pure":
        program = shutil.which(engine, path=sysconfig.get_path("scripts")) or program
        advice = "pip install graphviz-pure, or use a system Graphviz: --engine dot"
    else:
        advice = "install Graphviz, or leave the engine out for the one that came with topo"
    if program is None:
        raise DrawError(Finding("no-engine", f"no program {engine} on this machine", help=advice))
    try:
        done = subprocess.run(  # noqa: S603  (a program found by its own name)
            [program, f"-T{form}", *options],
            input=text.encode(),
            capture_output=True,
            timeout=_SECONDS,
            check=False,
        )
    except (OSError, subprocess.TimeoutExpired) as error:
        raise DrawError(Finding("engine-failed", f"{engine} did not run: {error}")) from error
    if done.returncode or not done.stdout:
        lines = done.stderr.decode(errors="replace").strip().splitlines()
        reason = lines[-1] if lines else f"exit status {done.returncode}"
        raise DrawError(Finding("engine-failed", f"{engine} made no {form.upper()}: {reason}"))
    return done.stdout


# --- themes ---------------------------------------------------------------------------------------


@dataclass(frozen=True, slots=True)
class RouteLook:
    """How a route is drawn: its colour and its stroke."""

    colour: str
    stroke: Stroke


@dataclass(frozen=True, slots=True)
class Theme:
    """The colours of a picture; `boxes` are ``(fill, border)`` by device kind.

    What is written on a route or an alarm has the paper's colour, as has the ground of a buffer.
    """

    paper: str
    panel: str
    server: str
    socket: str
    frame: str
    ink: str
    soft: str
    faint: str
    faint_fill: str
    wire: str
    alarm: str
    boxes: dict[str, tuple[str, str]]
    routes: tuple[RouteLook, ...]

    def box(self, kind: str) -> tuple[str, str]:
        """Return fill and border of a kind; a kind without its own looks like a switch."""
        return self.boxes.get(kind, self.boxes["pcie-switch"])


def _boxes(
    storage: tuple[str, str],
    card: tuple[str, str],
    host: tuple[str, str],
    memory: tuple[str, str],
    gpu: tuple[str, str],
    switch: tuple[str, str],
) -> dict[str, tuple[str, str]]:
    return {
        **dict.fromkeys(("storage", "nvme", "hba"), storage),
        **dict.fromkeys(("nic", "dpu", "network-switch"), card),
        **dict.fromkeys(("cpu", "root-complex"), host),
        **dict.fromkeys(("memory", "cxl-memory"), memory),
        **dict.fromkeys(("gpu", "nvswitch", "mesh"), gpu),
        "pcie-switch": switch,
    }


def _looks(*colours: str) -> tuple[RouteLook, ...]:
    return tuple(
        RouteLook(colour, stroke) for colour, stroke in zip(colours, get_args(Stroke), strict=True)
    )


THEMES: dict[str, Theme] = {
    "light": Theme(
        paper="#FFFFFF",
        panel="#FFFFFF",
        server="#F7F7F4",
        socket="#F1F3F6",
        frame="#A9B1BC",
        ink="#15191E",
        soft="#4A535E",
        faint="#656E78",
        faint_fill="#F7F8F9",
        wire="#5B6570",
        alarm="#A3001E",
        boxes=_boxes(
            ("#E9E2F3", "#6B4E9B"),
            ("#DCEBF7", "#2E6E9E"),
            ("#E3E6EA", "#4A535E"),
            ("#FBF0CF", "#9A7400"),
            ("#DDF0E4", "#2B7A4B"),
            ("#ECECEC", "#6A6A6A"),
        ),
        routes=_looks("#B94F00", "#0072B2", "#007A5A", "#A8487F", "#5B4FA8", "#7A5C00"),
    ),
    "dark": Theme(
        paper="#14181D",
        panel="#181D23",
        server="#1B2128",
        socket="#20272F",
        frame="#55606C",
        ink="#F2F4F6",
        soft="#BAC3CC",
        faint="#929DA8",
        faint_fill="#1D232A",
        wire="#97A2AD",
        alarm="#FF5A6E",
        boxes=_boxes(
            ("#3A3050", "#B79CE6"),
            ("#1F3B50", "#7FBCE8"),
            ("#333B44", "#AEB8C2"),
            ("#463B18", "#E3BF4C"),
            ("#1F4230", "#79CF9B"),
            ("#33363A", "#A9AFB5"),
        ),
        routes=_looks("#E69F00", "#56B4E9", "#35C795", "#E59AC4", "#B9A6F2", "#F0E442"),
    ),
}

_LOOKS = len(get_args(Stroke))  # after so many in one picture, they repeat
_OWN_LOOKS = {"legacy": 0, "direct": 1}


def looks_of(data_paths: Sequence[str]) -> list[int]:
    """Return the look of each data path in one picture: its own, or the next that is free.

    The looks of legacy and direct are theirs alone; those of others follow from their names.
    """
    given = [_OWN_LOOKS.get(name) for name in data_paths]
    looks: list[int] = []
    for place, (name, own) in enumerate(zip(data_paths, given, strict=True)):
        others = _LOOKS - len(_OWN_LOOKS)
        first = own if own is not None else len(_OWN_LOOKS) + crc32(name.encode()) % others
        later = given[place + 1 :]
        turns = [(first + step) % _LOOKS for step in range(_LOOKS)]
        looks.append(next((n for n in turns if n not in looks and n not in later), first))
    return looks


def theme_named(name: str) -> Theme:
    """Return a theme by its name.

    Raises
    ------
    DrawError
        If there is no such theme.
    """
    if name not in THEMES:
        help_text = f"one of {', '.join(THEMES)}"
        raise DrawError(Finding("unknown-theme", f"no theme {name}", help=help_text))
    return THEMES[name]


# --- DOT text ------------------------------------------------------------------------------------


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
        # Graphviz takes `&amp;` in a name for an entity, and would leave `Q&A;` as it is.
        name = visible(name).replace("&", "&amp;")
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
        self._shapes: list[Shape] = []

    @property
    def shapes(self) -> tuple[Shape, ...]:
        """What was drawn, in that order."""
        return tuple(self._shapes)

    @property
    def text(self) -> str:
        """The DOT text."""
        return str(self._graph.source)

    def frame(self, rect: Rect, *, fill: str, border: str) -> None:
        """Draw a rectangle behind everything."""
        self._clusters += 1
        paint = {"fillcolor": fill, "color": border}
        self._shapes.append(Shape("frame", rect=rect, attributes=paint))
        with self._graph.subgraph(name=f"cluster_{self._clusters}") as cluster:
            low, high = self.height - rect.bottom, self.height - rect.y
            cluster.attr(
                "graph",
                bb=f"{_n(rect.x)},{_n(low)},{_n(rect.right)},{_n(high)}",
                style="filled,rounded",
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

    def box(self, name: str, rect: Rect, lines: Sequence[Line] = (), /, **attributes: str) -> None:
        """Draw a device, with lines of text in the middle."""
        if attributes.get("style") != "invis":
            text = self._runs(lines)
            self._shapes.append(Shape("box", name, rect, text=text, attributes=dict(attributes)))
        if lines:
            attributes["label"] = self.html(lines)
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
        wide = widest(tuple(lines))
        x = at[0] + wide / 2 if left else at[0]
        high = height(tuple(lines))
        rect = Rect(x - wide / 2, at[1] - high / 2, wide, high)
        text = self._runs(lines, colour)
        self._shapes.append(Shape("words", name, rect, text=text, left=left))
        self._graph.node(
            self._escape(name),
            pos=self._pos((x, at[1])),
            shape="none",
            style="",
            width=_n(wide / 72, 4),
            height=_n(high / 72, 4),
            label=self.html(lines, colour=colour, left=left, width=wide),
        )

    def line(self, tail: str, head: str, points: Sequence[Point], **attributes: str) -> None:
        """Draw a line with rounded corners; with `arrow`, its last point is the arrow's tip."""
        points = list(points)
        route, ends = tuple(points), (tail, head)
        self._shapes.append(Shape("line", points=route, ends=ends, attributes=dict(attributes)))
        arrow = attributes.get("dir") == "forward"
        tip = points[-1]
        if arrow:
            (x, y), size = points[-2], 10 * float(attributes.get("arrowsize", "0.8"))
            length = abs(tip[0] - x) + abs(tip[1] - y)
            part = max(1 - size / length, 0.0) if length else 0.0
            points[-1] = (x + (tip[0] - x) * part, y + (tip[1] - y) * part)
        pos = " ".join(self._pos(point) for point in curve(points))
        attributes["pos"] = f"e,{self._pos(tip)} {pos}" if arrow else pos
        self._graph.edge(self._node(tail), self._node(head), **attributes)

    def badge(self, tail: str, head: str, at: Point, number: str, look: RouteLook) -> None:
        """Write a number on a line, above everything that is drawn before it."""
        label = (
            f'<<TABLE BORDER="1" CELLBORDER="0" CELLSPACING="0" CELLPADDING="1" STYLE="ROUNDED" '
            f'BGCOLOR="{look.colour}" COLOR="{self.theme.paper}"><TR><TD WIDTH="13">'
            f'<FONT COLOR="{self.theme.paper}"><B>{_escaped(number)}</B></FONT></TD></TR></TABLE>>'
        )
        place = self._pos(at)
        rect = Rect(at[0] - 7.5, at[1] - 7.5, 15, 15)
        text = (Run(number, 10.0, bold=True, colour=self.theme.paper),)
        paint = {"fillcolor": look.colour, "color": self.theme.paper}
        self._shapes.append(Shape("box", "", rect, text=text, attributes=paint))
        self._graph.edge(
            self._node(tail),
            self._node(head),
            pos=" ".join([place] * 4),
            color="#00000000",
            label=label,
            lp=place,
        )

    def html(
        self, lines: Sequence[Line], *, colour: str = "", left: bool = False, width: float = 0.0
    ) -> str:
        """Return an HTML-like label: a row for each line."""
        tones = self._tones(colour)
        side = ' ALIGN="LEFT"' if left else ""
        rows = []
        for ground, group in groupby(lines, key=lambda line: self._grounds.get(line.tone, "")):
            if ground:  # a table, so that its ground has an edge
                text = "<BR/>".join(_font(line, self.theme.paper) for line in group)
                rows.append(
                    f'<TR><TD CELLPADDING="2"{side}><TABLE BORDER="0" CELLBORDER="0" '
                    f'CELLSPACING="0" CELLPADDING="3" STYLE="ROUNDED" BGCOLOR="{ground}">'
                    f"<TR><TD>{text}</TD></TR></TABLE></TD></TR>"
                )
            else:
                texts = (_font(line, tones[line.tone]) for line in group)
                rows += [f"<TR><TD{side}>{text}</TD></TR>" for text in texts]
        wide = f' WIDTH="{int(width)}"' if width else ""
        start = '<TABLE BORDER="0" CELLBORDER="0" CELLSPACING="0" CELLPADDING="0"'
        return f"<{start}{wide}>{''.join(rows)}</TABLE>>"

    @property
    def _grounds(self) -> dict[str, str]:
        """The ground of each tone that has one."""
        return {"alarm": self.theme.alarm, "out": self.theme.ink}

    def _tones(self, colour: str) -> dict[str, str]:
        return {"ink": colour or self.theme.ink, "soft": colour or self.theme.soft}

    def _runs(self, lines: Sequence[Line], colour: str = "") -> tuple[Run, ...]:
        """Return lines with their colours; what has a ground is in the paper's on that."""
        grounds = self._grounds
        tones = {**self._tones(colour), **dict.fromkeys(grounds, self.theme.paper)}
        return tuple(
            Run(line.text, line.size, line.bold, tones[line.tone], grounds.get(line.tone, ""))
            for line in lines
        )

    def _node(self, name: str) -> str:
        """Return a node's name for the end of an edge, where a colon would start a port."""
        assert ":" not in name, name
        return str(self._escape(name))

    def _pos(self, point: Point) -> str:
        return f"{_n(point[0])},{_n(self.height - point[1])}"


def _font(line: Line, colour: str) -> str:
    text = f"<B>{_escaped(line.text)}</B>" if line.bold else _escaped(line.text)
    return f'<FONT POINT-SIZE="{line.size:g}" COLOR="{colour}">{text or " "}</FONT>'


def _n(value: float, digits: int = 2) -> str:
    """Return a number without needless digits, and never minus zero."""
    return f"{round(value, digits) + 0.0:.{digits}f}".rstrip("0").rstrip(".")


def _escaped(text: str) -> str:
    r"""Return `text` for a place between the tags of an HTML-like label.

    Backslashes are doubled, since Graphviz reads ``\N`` in a label as the node's name. Control
    characters, which XML forbids, and lone surrogates, which no file can hold, become a
    replacement character.

    Examples
    --------
    >>> _escaped('"<b>&')
    '&quot;&lt;b&gt;&amp;'
    """
    refused = ("Cc", "Cs", "Cn")
    plain = "".join(
        "\N{REPLACEMENT CHARACTER}" if unicodedata.category(character) in refused else character
        for character in text
    )
    plain = visible(plain)
    plain = plain.replace("\\", "\\\\")
    for raw, entity in (("&", "&amp;"), ("<", "&lt;"), (">", "&gt;"), ('"', "&quot;")):
        plain = plain.replace(raw, entity)
    return plain
