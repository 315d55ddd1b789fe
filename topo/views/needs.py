"""What comes of what models ask for, in words: accelerators fed, checkpoints, KV caches."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from typing import TYPE_CHECKING, NamedTuple

from topo.catalogue.fields import DURATION, NEED_FIELDS, RATE, SIZE
from topo.catalogue.needs import needs
from topo.catalogue.part import Figure
from topo.description.description import ASKS, Asks
from topo.description.needs import serves
from topo.phrases import listed
from topo.solve.system import TIE
from topo.study.needs import Checkpointing, Feeding, Moved
from topo.units import format_duration, format_rate, format_ratio, format_size
from topo.views.explain import Page
from topo.views.resources import limited_by
from topo.views.text.page import (
    SOURCES,
    Block,
    Bullets,
    Cell,
    Heading,
    Row,
    Text,
    called,
    citing,
    sourced,
    table,
    wide,
)

_MINUTE, _HOUR = 60.0, 3600.0

if TYPE_CHECKING:
    from topo.catalogue.needs import Need
    from topo.description.description import ModelNeed
    from topo.study.answers import PathAnswer
    from topo.study.needs import Kind


def need_page(need: Need) -> Iterator[Block]:
    """Yield what a model asks for, each figure with its kind and source, and what follows."""
    yield Heading(f"{need.name}: {need.title}" if need.title else need.name)
    if need.source:
        yield Text(f"Source: {need.source}.")
    rows: list[Row] = []
    for key, figure in need.figures.items():
        field = NEED_FIELDS[key]
        rows.append((Cell(key), field.quantity.text(figure.value), sourced(figure), field.meaning))
    for accelerator, step in need.steps.items():
        meaning = f"how long {called(accelerator)} computes on a batch"
        rows.append(
            (Cell(f"step, {accelerator}"), DURATION.text(step.value), sourced(step), meaning)
        )
    share = need.figures.get("utilisation")
    for accelerator in need.steps:
        rate = need.rate(accelerator)
        meaning = f"what {called(accelerator)} reads while it never waits"
        if share is not None and share.value and rate.value:
            meaning += f"; it is fed with {format_rate(share.value * rate.value)}"
        rows.append((Cell(f"rate, {accelerator}"), RATE.text(rate.value), sourced(rate), meaning))
    if need.token is not None:
        meaning = "what the KV cache holds of a token"
        rows.append((Cell("token"), SIZE.text(need.token.value), sourced(need.token), meaning))
    yield from citing([table(("key", "value", SOURCES, wide("meaning")), rows)])


def needs_page(models: Iterable[Need]) -> Iterator[Block]:
    """Yield what is known of each model, side by side, each figure with its source."""
    sources: dict[str, int] = {}

    def cited(figure: _ModelFigure) -> str:
        guess = " (guess)" * (figure.origin.kind == "guess")
        return (
            f"{figure.words}{guess} [{sources.setdefault(figure.origin.source, len(sources) + 1)}]"
        )

    rows: list[Row] = []
    for need in models:
        cells = ["\n".join(map(cited, _figures(need, asks))) for asks in ASKS]
        if any(cells):
            rows.append((Cell(need.name), need.title, *cells))
    columns = ("", wide(), wide("an accelerator reads"), "a checkpoint", "KV cache of a token")
    yield Heading("needs")
    yield table(columns, rows)
    yield Bullets(tuple(f"[{number}] {source}" for source, number in sources.items()))


def figures_of_models(asks: Asks) -> str:
    """Return what is known of each model where something is asked, with the sources, as lines."""
    lines: list[str] = []
    for need in needs().values():
        for figure in _figures(need, asks):
            lines.append(
                f"    {need.name}: {figure.words}{f' ({figure.formula})' * bool(figure.formula)}"
            )
            guess = "a guess, " * (figure.origin.kind == "guess")
            lines.append(f"        {guess}{figure.origin.source}")
    return "\n".join(lines)


class _ModelFigure(NamedTuple):
    """A figure of a model in words, the formula by which it follows, and where it comes from."""

    words: str
    formula: str
    origin: Figure


def _figures(need: Need, asks: Asks) -> Iterator[_ModelFigure]:
    """Yield the figures of a model that say what is asked."""
    if asks == "needs":
        for name, step in need.steps.items():
            rate = need.rate(name)
            yield _ModelFigure(f"{called(name)} {RATE.text(rate.value)}", rate.source, step)
    elif asks == "kv-cache" and need.token is not None:
        yield _ModelFigure(SIZE.text(need.token.value), need.token.source, need.figures["layers"])
    key = {"needs": "rate", "checkpoint": "checkpoint"}.get(asks, "")
    if (figure := need.figures.get(key)) is not None:
        yield _ModelFigure(NEED_FIELDS[key].quantity.text(figure.value), "", figure)


def need_explained(need: Need) -> Page:
    """Return the page of a model: what it asks for, by which formula, and how to say it."""
    share = need.figures.get("utilisation")
    lines = [f"{need.title[:1].upper()}{need.title[1:]}.", ""] if need.title else []
    for accelerator in need.steps:
        rate = need.rate(accelerator)
        line = f"{called(accelerator)} computes on {format_rate(rate.value or 0.0)}"
        line += f" ({'a guess: ' * (rate.kind == 'guess')}record x batch / step: {rate.source})"
        if share is not None and share.value:
            line += f";\nwith {format_rate(share.value * (rate.value or 0.0))} it is fed"
        if need.steps[accelerator].source != need.source:
            line += f". Of its step:\n{need.steps[accelerator].source}"
        lines += [f"{line}.", ""]
    if (rate_of_any := need.figures.get("rate")) is not None:
        lines += [f"Any accelerator reads {RATE.text(rate_of_any.value)}.", ""]
    if (checkpoint := need.figures.get("checkpoint")) is not None:
        lines += [f"A checkpoint has {SIZE.text(checkpoint.value)}: {checkpoint.source}.", ""]
    if (token := need.token) is not None:
        heads = "2 x layers x kv-heads x head-dim x kv-value"
        formula = "layers x kv-latent x kv-value" if "kv-latent" in need.figures else heads
        bytes_of_one = f"{token.value or 0.0:,.0f} B"
        lines += [
            f"The KV cache of a token has {bytes_of_one}",
            f"({formula}: {token.source}).",
            "",
        ]
    if (mttf := need.figures.get("mttf")) is not None:
        lines += [f"One fails every {(mttf.value or 0.0) / _HOUR:,.10g} h.", ""]
    wanted = {"needs": "from: storage, to: gpu", "checkpoint": "from: gpu, to: storage"}
    wanted["kv-cache"] = "tokens: 128Ki, from: ram, to: gpu"
    written = [
        f"    {{{asks}: {need.name}, {wanted[asks]}}}" for asks in ASKS if serves(need, asks)
    ]
    lines += [*written, ""] if written else []
    lines += [f"Source: {need.source}."]
    return Page(need.name, "what a model needs", "\n".join(lines))


def long_words(seconds: float) -> str:
    """Return a time as minutes or hours where it is one.

    Examples
    --------
    >>> long_words(90), long_words(600), long_words(20258)
    ('90 s', '10 min', '5.63 h')
    """
    for unit, name in ((_HOUR, "h"), (_MINUTE, "min")):
        if 2 * unit <= seconds < 1000 * unit:
            return f"{seconds / unit:.3g} {name}"
    return format_duration(seconds)


def need_rows(path: PathAnswer, need: ModelNeed) -> dict[str, str]:
    """Return what is said of a path in a table, by row: empty where it is refused."""
    met, at_most, at_least = path.met, "at most " * path.at_most, "at least " * path.at_most
    if need.asks == "needs":
        room = ""
        if isinstance(met, Feeding) and met.room is not None:
            room = f"{'at most ' * met.supply_at_most}{met.room}"
        return {"accelerators fed": fed_words(path), "it would feed": room}
    if need.asks == "kv-cache" or not isinstance(met, Checkpointing):
        tokens = f"{at_most}{met.tokens / met.time:,.0f}" if isinstance(met, Moved) else ""
        return {"tokens a second": tokens if need.asks == "kv-cache" else ""}
    return {
        "best interval": at_least + long_words(met.interval),
        "lost a day": at_least + long_words(met.lost),
    }


def fed_words(path: PathAnswer) -> str:
    """Return how many of its accelerators a path feeds: ``5 of 8``; nothing where it is refused."""
    met = path.met
    if not isinstance(met, Feeding):
        return ""
    if met.unknown == met.count:
        return f"unknown of {met.count}"
    return f"{'at most ' * path.at_most}{met.fed} of {met.count}"


def need_sentence(path: PathAnswer, *same: PathAnswer) -> str:
    """Return what comes of what a model asks for, with the numbers that it rests on.

    `same` are other paths of which that comes as well.
    """
    met, names = path.met, listed(answer.name for answer in (path, *same))
    ending = "" if same else "s"  # of the verb
    if isinstance(met, Feeding):
        return " ".join(_feeding(f"{names} feed{ending}", path, met))
    if isinstance(met, Checkpointing):
        return " ".join(_checkpointing(f"{names} write{ending}", path, met))
    return _moved(f"{names} move{ending}", path, met) if met is not None else ""


def need_sentences(paths: Iterable[PathAnswer]) -> tuple[str, ...]:
    """Return what comes of what a model asks for, in one sentence where it is the same."""
    same: dict[str, list[PathAnswer]] = {}
    for path in paths:
        same.setdefault(need_sentence(path).replace(path.name, ""), []).append(path)
    return tuple(need_sentence(*group) for group in same.values())


def _feeding(feeds: str, path: PathAnswer, feeding: Feeding) -> Iterator[str]:
    at_most = "at most " * path.at_most
    share = feeding.utilisation.value or 1.0
    known = [kind for kind in feeding.kinds if kind.rate.known]
    for kind in feeding.kinds:
        if not kind.rate.known:
            yield f"Whether {feeds} {_counted(kind)} is not known: {kind.rate.source}."
    if not known:
        return
    number = sum(kind.count for kind in known)
    names = listed(_counted(kind) for kind in known) if len(known) > 1 else _counted(known[0])
    of = "" if feeding.fed == number else f"{at_most}{feeding.fed} of "
    words = f"{feeds} {of}{names} with {feeding.model} at {format_ratio(share)}: "
    if at_most and not of:
        words = f"By the known capacities alone, {words}"
    asks = (
        f"{'each' if len(known) == 1 else f'each {called(kind.accelerator)}'} needs "
        f"{format_rate(share * (kind.rate.value or 0.0))}"
        f"{_of_what_it_reads(kind, share)}{_gets(kind, feeding, at_most)}"
        for kind in known
    )
    yield f"{words}{'; '.join(asks)}."
    if feeding.room is None or feeding.count != number:
        return
    could = "at most " * feeding.supply_at_most
    bound = limited_by(feeding.bound) or "nothing stated"
    if feeding.fed < number:
        yield f"In all it passes {could}{format_rate(feeding.supply)}, limited by {bound}."
        return
    yield (
        f"In all it would pass {could}{format_rate(feeding.supply)}, limited by {bound}: enough "
        f"for {could}{feeding.room} {called(known[0].accelerator)}."
    )


def _counted(kind: Kind) -> str:
    gpus = "GPU" if kind.count == 1 else "GPUs"
    return f"{kind.count} {called(kind.accelerator) if kind.accelerator else gpus}"


def _of_what_it_reads(kind: Kind, share: float) -> str:
    formula = kind.rate.source if kind.rate.kind in ("formula", "guess") else ""
    guess = "a guess: " * (kind.rate.kind == "guess")
    if not formula:
        return ""
    return f" ({guess}{format_ratio(share)} of {formula})" if share < 1 else f" ({guess}{formula})"


def _gets(kind: Kind, feeding: Feeding, at_most: str) -> str:
    """Return what accelerators get while all run, or could have where that is all they need."""
    least, most = kind.rates
    if least >= (feeding.utilisation.value or 1.0) * (kind.rate.value or 0.0) * (1 - TIE):
        could = format_rate(feeding.supply / feeding.count)
        more = f" and could have {'at most ' * feeding.supply_at_most}{could}"
        return more * (len(feeding.kinds) == 1)
    rates = format_rate(least) if least == most else f"{format_rate(least)} to {format_rate(most)}"
    return f", and has {at_most}{rates} while all run"


def _checkpointing(writes: str, path: PathAnswer, costs: Checkpointing) -> Iterator[str]:
    at_least = "at least " * path.at_most
    one = "An accelerator"
    if costs.accelerators > 1:
        one = f"One of {costs.accelerators:,} accelerators"
    yield (
        f"{writes} a checkpoint of {costs.model} in {at_least}"
        f"{format_duration(costs.write)}. {one} fails every {long_words(costs.mtbf)} "
        f"({(costs.mttf.value or 0.0) / _HOUR:,.10g} h for one, {costs.mttf.kind}), so the best is "
        f"one every {long_words(costs.interval)}, by Young's and Daly's rule: "
        f"{long_words(costs.lost)} a day are lost, {long_words(costs.writing)} writing and "
        f"{long_words(costs.repeating)} computed again."
    )
    if not costs.rule_holds:
        yield "The rule takes a write to be short against the time between failures; it is not."


def _moved(moves: str, path: PathAnswer, moved: Moved) -> str:
    at_least = "at least " * path.at_most
    time = f"{at_least}{format_duration(moved.time)}"
    if not moved.tokens or moved.token is None:
        return f"{moves} a checkpoint of {moved.model} in {time}."
    rate = f"{'at most ' * path.at_most}{moved.tokens / moved.time:,.0f} tokens a second"
    return (
        f"{moves} {moved.tokens:,} tokens of {moved.model} in {time}, {rate}: "
        f"{format_size(moved.size)}, {format_size(moved.token.value or 0.0)} a token "
        f"({moved.token.source})."
    )
