"""A finished picture: DOT text, and what engines make of it."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path

from topo.errors import DrawError, Finding
from topo.files import replace_file
from topo.views.diagram.engine import Engine, render

_FORMATS = (".svg", ".png", ".pdf", ".dot", ".gv")


@dataclass(frozen=True, slots=True)
class Picture:
    """A picture with every shape at its place.

    Parameters
    ----------
    dot
        The picture as DOT; any Graphviz program draws it as it is: ``dot -Tsvg picture.dot``.
    width, height
        Its size in points.
    """

    dot: str
    width: float
    height: float

    def svg(self, *, engine: Engine = "graphviz-pure") -> str:
        """Return the picture as SVG.

        Raises
        ------
        DrawError
            If the engine is missing or fails.
        """
        return render(self.dot, "svg", engine=engine).decode()

    def png(self, *, engine: Engine = "graphviz-pure", width: int = 1600) -> bytes:
        """Return the picture as PNG, `width` pixels wide.

        Raises
        ------
        DrawError
            If the engine is missing or fails.
        """
        return render(self.dot, "png", engine=engine, options=(f"-Gdpi={self._dpi(width):.4f}",))

    def pdf(self, *, engine: Engine = "dot") -> bytes:
        """Return the picture as PDF, which a system Graphviz alone makes.

        Raises
        ------
        DrawError
            If the engine is missing or fails.
        """
        if engine != "dot":
            raise DrawError(
                Finding(
                    "engine-cannot",
                    f"{engine} makes no PDF",
                    help="a system Graphviz does: --engine dot",
                )
            )
        return render(self.dot, "pdf", engine=engine)

    def write(self, path: str | Path, *, engine: Engine | None = None, width: int = 1600) -> Path:
        """Write the picture in the format that the suffix of `path` says, whole or not at all.

        Raises
        ------
        DrawError
            If there is no such format, the engine fails, or the file cannot be written.
        """
        target = Path(path)
        data = self._as(target.suffix.lower(), engine, width)
        try:
            replace_file(target, data)
        except OSError as error:
            reason = error.strerror or str(error)
            raise DrawError(Finding("not-written", f"{target}: {reason}")) from error
        return target

    def _as(self, suffix: str, engine: Engine | None, width: int) -> bytes:
        if suffix in (".dot", ".gv"):
            return self.dot.encode()
        if suffix == ".svg":
            return self.svg(engine=engine or "graphviz-pure").encode()
        if suffix == ".png":
            return self.png(engine=engine or "graphviz-pure", width=width)
        if suffix == ".pdf":
            return self.pdf(engine=engine or "dot")
        raise DrawError(
            Finding(
                "unknown-format",
                f"no picture format {suffix or 'without a suffix'}",
                help=f"one of {' '.join(_FORMATS)}",
            )
        )

    def _dpi(self, width: int) -> float:
        """Return the resolution at which the picture is so many pixels wide."""
        return 72.0 * width / self.width

    def _repr_svg_(self) -> str:
        return self.svg()
