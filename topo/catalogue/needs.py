"""What models ask for: data for each accelerator, a checkpoint, a KV cache.

A need is a row of figures like a part. What follows from them is a formula with its numbers:
bytes/s of an accelerator from record, batch and computation time; bytes of a token from layers and
heads.
"""

from __future__ import annotations

from collections.abc import Mapping as Table
from dataclasses import field, replace
from functools import cache
from typing import Final

from topo.catalogue import values
from topo.catalogue.fields import DURATION, NEED_FIELDS
from topo.catalogue.part import Figure, FigureKind
from topo.catalogue.parts import NAME, Shipped
from topo.document.nodes import Mapping, Node, Report, Scalar
from topo.errors import Place
from topo.phrases import brief, did_you_mean, listed
from topo.records import dataclass
from topo.units import format_duration, format_size

# What a cache is made of: keys and values of heads, or one compressed vector.
_BY_HEADS: Final = ("layers", "kv-heads", "head-dim", "kv-value")
_LATENT: Final = ("layers", "kv-latent", "kv-value")
# `step` is several, by accelerator.
_FIGURES: Final = tuple(
    name for name, each in NEED_FIELDS.items() if each.quantity.unit and name != "step"
)


@dataclass(frozen=True, slots=True)
class Need:
    """What a model asks for.

    Parameters
    ----------
    figures
        Numbers by key: `record`, `batch`, `rate`, `utilisation`, `checkpoint`, `layers` ...; the
        keys are `topo.catalogue.fields.NEED_FIELDS`.
    steps
        Seconds of computation on a batch, by accelerator.
    place
        Where a user's file defines it; `None` for one that topo ships.
    """

    name: str
    title: str = ""
    source: str = ""
    figures: Table[str, Figure] = field(default_factory=dict)
    steps: Table[str, Figure] = field(default_factory=dict)
    place: Place | None = field(default=None, compare=False)

    def __repr__(self) -> str:
        return brief(self, f"{self.name}: {', '.join((*self.figures, *self.steps))}")

    @property
    def reads(self) -> bool:
        """Whether it says what accelerators read."""
        return bool(self.steps) or "rate" in self.figures

    def rate(self, accelerator: str) -> Figure:
        """Return the bytes/s that one accelerator reads while it never waits.

        Unknown where its computation time is not.

        Examples
        --------
        >>> need = needs()["unet3d"]
        >>> need.rate("h100").source, need.rate("mi300x").known
        ('146.6 MB x 7 / 323 ms', False)
        """
        stated, step = self.figures.get("rate"), self.steps.get(accelerator)
        if stated is not None:
            return stated
        record, batch = (self.figures.get(key) for key in ("record", "batch"))
        if step is None:
            other = (
                f"not that of {accelerator}"
                if accelerator
                else "the GPU's part says none of them; "
                f"`accelerator: {next(iter(self.steps))}` at the GPU takes it to be one"
            )
            times = f"of {self.name} the computation times of {listed(self.steps)} are known"
            return Figure(None, "formula", f"{times}, {other}")
        known = [each.value for each in (record, batch, step) if each and each.value is not None]
        if len(known) < 3:  # noqa: PLR2004  (record, batch, step)
            return Figure(None, "formula", f"record, batch or step of {self.name} is unknown")
        size, count, seconds = known
        formula = f"{format_size(size)} x {count:g} / {format_duration(seconds)}"
        kind: FigureKind = "guess" if step.kind == "guess" else "formula"
        between = step.range and (size * count / step.range[1], size * count / step.range[0])
        return Figure(size * count / seconds, kind, formula, range=between)

    @property
    def token(self) -> Figure | None:
        """The bytes that the KV cache holds of one token; `None` where no layers are said.

        Examples
        --------
        >>> figure = needs()["llama3-70b"].token
        >>> figure.value, figure.source
        (327680.0, '2 x 80 x 8 x 128 x 2 B')
        """
        keys = _LATENT if "kv-latent" in self.figures else _BY_HEADS
        figures = [self.figures.get(key) for key in keys]
        numbers = [figure.value for figure in figures if figure and figure.value is not None]
        if len(numbers) < len(keys):
            return None
        product = 1.0 if keys is _LATENT else 2.0
        words = [] if keys is _LATENT else ["2"]
        for number in numbers:
            product *= number
            words.append(f"{number:g}")
        return Figure(product, "formula", f"{' x '.join(words)} B")


def read_need(name: str, node: Node, *, needs: Table[str, Need], report: Report) -> Need | None:
    """Read one need.

    Parameters
    ----------
    name
        The name that it is defined under.
    node
        A mapping of its keys.
    needs
        What `like:` may name.
    report
        Takes what is wrong.
    """
    if not isinstance(node, Mapping):
        advice = f"write {name}: {{like: ..., checkpoint: 912 GB}}"
        report.add(node, "wrong-shape", f"`{name}` is a mapping of what it needs", help=advice)
        return None
    node = values.rejoin(node, NEED_FIELDS)
    values.refuse_unknown_keys(node, NEED_FIELDS, report=report, owner="a need")
    need = _base(name, node, needs, report)
    origin = values.origin_of(node, report=report)
    figures = dict(need.figures)
    for key, value in node:
        if key.text in _FIGURES:
            quantity = NEED_FIELDS[key.text].quantity
            figure = values.read_figure(
                value, quantity, report=report, origin=origin, name=key.text
            )
            if figure is not None:
                figures[key.text] = figure
    return replace(
        need,
        name=name,
        title=values.text_at(node, "title", report) or need.title,
        source=origin.source or need.source,
        figures=figures,
        steps=_steps(node.get("step"), need.steps, origin, report),
        place=node.place,
    )


def _base(name: str, node: Mapping, needs: Table[str, Need], report: Report) -> Need:
    """Return what `like:` names, or a need of nothing."""
    like = node.get("like")
    if like is None:
        return Need(name)
    text = like.text.strip() if isinstance(like, Scalar) else ""
    if text in needs:
        return needs[text]
    advice = did_you_mean(text, needs) or f"there are {listed(needs)}"
    report.add(like, "unknown-name", f"no need `{text}` to start from", help=advice)
    return Need(name)


def _steps(
    node: Node | None, base: Table[str, Figure], origin: values.Origin, report: Report
) -> Table[str, Figure]:
    """Return computation times by accelerator, those that are stated over the base's."""
    if node is None:
        return base
    if not isinstance(node, Mapping):
        advice = "write it by accelerator: {h100: 0.323 s}"
        report.add(node, "wrong-shape", "`step` is a mapping", help=advice)
        return base
    steps = dict(base)
    for key, value in node:
        figure = values.read_figure(value, DURATION, report=report, origin=origin, name=key.text)
        if figure is not None:
            steps[key.text] = figure
    return steps


def read_needs(node: Mapping, report: Report) -> dict[str, Need]:
    """Read a file's own `needs:`; each may be like a shipped one, or one that stands above it."""
    own: dict[str, Need] = {}
    for key, value in node:
        if not NAME.fullmatch(key.text):
            advice = "use letters, digits, dots, hyphens"
            report.add(key, "bad-name", f"`{key.text}` is no name of a need", help=advice)
            continue
        need = read_need(key.text, value, needs={**needs(), **own}, report=report)
        if need is not None:
            own[key.text] = need
    return own


@cache
def needs() -> Table[str, Need]:
    """Return the needs that topo ships, by name."""

    def decode(name: str, node: Node, report: Report, known: Table[str, Need]) -> Need | None:
        need = read_need(name, node, needs=known, report=report)
        return None if need is None else replace(need, place=None)

    return Shipped(("needs",), decode)
