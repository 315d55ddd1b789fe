"""The shapes of a picture as a slide of PowerPoint: native boxes, connectors and text.

It takes python-pptx, which topo does without otherwise.
"""

from __future__ import annotations

from collections.abc import Sequence
from io import BytesIO
from typing import TYPE_CHECKING, Any, Final

from topo.errors import LibraryError
from topo.phrases import visible

if TYPE_CHECKING:
    from topo.views.diagram.shapes import Run, Shape

_ROUND: Final = 6.0  # radius of a box's corner, in points
_MOST: Final = 56 * 72.0  # points of the longest side of a slide


def pptx(shapes: Sequence[Shape], size: tuple[float, float]) -> bytes:
    """Return a presentation of one slide as large as the picture.

    Raises
    ------
    LibraryError
        If python-pptx is not installed.
    """
    try:
        import pptx as library
    except ImportError as error:
        raise LibraryError("python-pptx", "a slide of PowerPoint") from error
    presentation = library.Presentation()
    slide = _Slide(presentation, size)
    for shape in shapes:
        slide.add(shape)
    file = BytesIO()
    presentation.save(file)
    return file.getvalue()


class _Slide:
    """Puts shapes on the one slide of a presentation; `scale` is less than one where it must be."""

    def __init__(self, presentation: Any, size: tuple[float, float]) -> None:
        self.scale = min(1.0, _MOST / max(size))
        presentation.slide_width, presentation.slide_height = map(self.points, size)
        blank = presentation.slide_layouts[6]
        self.shapes = presentation.slides.add_slide(blank).shapes

    def points(self, value: float) -> Any:
        """Return a length as the library takes it."""
        from pptx.util import Pt

        return Pt(value * self.scale)

    def add(self, shape: Shape) -> None:
        """Put one shape over those before it."""
        if shape.kind == "line":
            self._line(shape)
            return
        from pptx.enum.shapes import MSO_SHAPE

        words, rect = shape.attributes, shape.rect
        place = map(self.points, (rect.x, rect.y, max(rect.w, 0.1), max(rect.h, 0.1)))
        if shape.kind == "words":
            drawn = self.shapes.add_textbox(*place)
        else:
            rounded = "rounded" in words.get("style", "rounded")
            form = MSO_SHAPE.ROUNDED_RECTANGLE if rounded else MSO_SHAPE.RECTANGLE
            drawn = self.shapes.add_shape(form, *place)
            if rounded:
                drawn.adjustments[0] = min(0.5, _ROUND / max(min(rect.w, rect.h), 1.0))
            _without_shadow(drawn)
            drawn.fill.solid()
            drawn.fill.fore_color.rgb = _colour(words.get("fillcolor", "#FFFFFF"))
            self._pen(drawn.line, shape)
        if shape.name:
            drawn.name = visible(shape.name)
        self._text(drawn.text_frame, shape)

    def _line(self, shape: Shape) -> None:
        from pptx.oxml.ns import qn

        first, *others = shape.points
        builder = self.shapes.build_freeform(*first, scale=12700 * self.scale)
        builder.add_line_segments(others, close=False)
        drawn = builder.convert_to_shape()
        drawn.fill.background()
        _without_shadow(drawn)
        self._pen(drawn.line, shape)
        if shape.attributes.get("dir") == "forward":
            pen = drawn.line._get_or_add_ln()  # noqa: SLF001  (the library has no arrows)
            pen.append(pen.makeelement(qn("a:tailEnd"), {"type": "triangle"}))

    def _pen(self, line: Any, shape: Shape) -> None:
        from pptx.enum.dml import MSO_LINE

        words = shape.attributes
        pen, style = float(words.get("penwidth", "1")), words.get("style", "")
        if not pen:
            line.fill.background()
            return
        line.color.rgb = _colour(words.get("color", "#000000"))
        line.width = self.points(pen)
        for stroke, dashes in (("dashed", MSO_LINE.DASH), ("dotted", MSO_LINE.ROUND_DOT)):
            if stroke in style:
                line.dash_style = dashes

    def _text(self, frame: Any, shape: Shape) -> None:
        from pptx.enum.text import MSO_ANCHOR, PP_ALIGN

        frame.margin_left = frame.margin_right = frame.margin_top = frame.margin_bottom = 0
        frame.vertical_anchor = MSO_ANCHOR.MIDDLE
        frame.word_wrap = False
        for place, run in enumerate(shape.text):
            paragraph = frame.paragraphs[0] if not place else frame.add_paragraph()
            paragraph.alignment = PP_ALIGN.LEFT if shape.left else PP_ALIGN.CENTER
            self._run(paragraph.add_run(), run)

    def _run(self, written: Any, run: Run) -> None:
        written.text = visible(run.text)
        written.font.name, written.font.bold = "Arial", run.bold
        written.font.size = self.points(run.size)
        written.font.color.rgb = _colour(run.ground or run.colour)


def _without_shadow(drawn: Any) -> None:
    """Take the shadow off that the presentation's theme gives, for programs that read either."""
    from pptx.oxml.ns import qn

    drawn.shadow.inherit = False
    for reference in drawn.element.iter(qn("a:effectRef")):
        reference.set("idx", "0")


def _colour(text: str) -> Any:
    from pptx.dml.color import RGBColor

    colour: Any = RGBColor  # whose methods have no types
    return colour.from_string(text.removeprefix("#")[:6].upper() or "000000")
