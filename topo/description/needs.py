"""What a workload moves for a model: which need, of how much, for which accelerators."""

from __future__ import annotations

import re
from collections.abc import Mapping as MappingOf
from dataclasses import replace
from typing import TYPE_CHECKING, Any, Final, NamedTuple

from topo.description.description import ASKS, Asks, ModelNeed
from topo.document.nodes import Node, Report, Scalar
from topo.errors import UnitError
from topo.phrases import did_you_mean, listed
from topo.records import dataclass
from topo.units import parse_count, parse_size

if TYPE_CHECKING:
    from topo.catalogue.needs import Need
    from topo.catalogue.part import Figure

ANY_SIZE: Final = 1e9
"""Bytes of a workload of which nobody says how many: rates are the same whatever it is."""

_WORDS_OF: Final[MappingOf[str, tuple[Asks, ...]]] = {
    "tokens": ("kv-cache",),
    "accelerators": ("needs", "checkpoint"),
    "mttf": ("checkpoint",),
}
_COUNTED: Final = re.compile(
    r"(?:(?P<count>[0-9]+)(?: ?x (?P<each_is>[A-Za-z][\w.-]*))?|(?P<alone>[A-Za-z][\w.-]*))"
    r"(?P<each> each)?"
)
_MOST_TOKENS: Final = 1e12
_HAS: Final[MappingOf[Asks, str]] = {
    "needs": "what its accelerators read (`record`, `batch` and `step`, or `rate`)",
    "checkpoint": "the size of its checkpoint (`checkpoint`)",
    "kv-cache": "its layers (`layers`, `kv-heads`, `head-dim`, `kv-value`)",
}


class Accelerators(NamedTuple):
    """How many accelerators, behind each endpoint or in all, and what they are where it is said."""

    number: int = 0
    each: bool = False
    name: str = ""


@dataclass(frozen=True, slots=True)
class NeedDraft:
    """What a workload says of a model, before the model is looked up."""

    asks: Asks
    model: Scalar
    tokens: int
    accelerators: Accelerators
    at_accelerators: Node | None
    mttf: float | None
    at_mttf: Node | None


def parse_tokens(text: str) -> int:
    """Read how many tokens, with the prefixes that sizes have: ``128000``, ``128k``, ``128Ki``.

    Examples
    --------
    >>> parse_tokens("128k"), parse_tokens("128Ki")
    (128000, 131072)
    """
    stripped = text.strip()
    advice = "write how many: 128000, 128k, or 128Ki for 131072"
    try:
        count = parse_size(stripped + ("B" if stripped[-1:].isalpha() else " B"), positive=True)
    except UnitError:
        message = f"`{stripped}` is no number of tokens"
        raise UnitError("bad-number", message, advice) from None
    if not count.is_integer() or count > _MOST_TOKENS:
        what = "no whole number" if count <= _MOST_TOKENS else "more than any cache holds"
        raise UnitError("bad-number", f"`{stripped}` tokens are {what}", advice)
    return int(count)


def parse_accelerators(text: str) -> Accelerators:
    """Read ``h100``, ``255x h100``, ``5x h100 each``, ``16384``.

    Examples
    --------
    >>> parse_accelerators("5x h100 each")
    Accelerators(number=5, each=True, name='h100')
    """
    match = _COUNTED.fullmatch(text.strip())
    if match is None:
        message = f"`{text.strip()}` does not say which accelerators"
        raise UnitError("bad-number", message, "write h100, `255x h100` or `5x h100 each`")
    count = parse_count(match["count"]) if match["count"] else 0
    return Accelerators(count, bool(match["each"]), match["each_is"] or match["alone"] or "")


def need_draft(
    entries: MappingOf[str, Node], values: dict[str, Any], what: str, report: Report
) -> NeedDraft | None:
    """Return what a workload says of a model, taking that out of its `values`."""
    tokens, accelerators, mttf = (values.pop(key, None) for key in _WORDS_OF)
    models = {asks: values.pop(asks.replace("-", "_"), None) for asks in ASKS}
    stated = [asks for asks in ASKS if asks in entries]
    for key, belongs in _WORDS_OF.items():
        if key in entries and not set(stated) & set(belongs):
            of = listed((f"`{asks}:`" for asks in belongs), "or")
            message = f"`{key}` of {what} belongs to {of}"
            report.add(entries[key], "misplaced-key", message)
    if len(stated) > 1:
        message = f"{what} says {listed(stated)}"
        report.add(entries[stated[1]], "read-or-write", message, help="make it two workloads")
        return None
    if not stated or models[stated[0]] is None:
        return None
    (asks,) = stated
    if asks == "kv-cache" and "tokens" not in entries:
        advice = "add `tokens: 128000`"
        report.add(
            entries[asks], "missing-key", f"{what} does not say how many tokens", help=advice
        )
        return None
    return NeedDraft(
        asks,
        models[asks],
        tokens or 0,
        accelerators or Accelerators(),
        entries.get("accelerators"),
        mttf,
        entries.get("mttf"),
    )


def model_need(
    draft: NeedDraft,
    name: str,
    *,
    file_needs: MappingOf[str, Need],
    endpoints: tuple[str, ...],
    of_gpus: bool,
    writes: bool,
    report: Report,
) -> ModelNeed:
    """Return what a workload moves for a model, with the model looked up.

    Parameters
    ----------
    draft
        What the workload says.
    name
        The workload's name.
    file_needs
        The needs of the file.
    endpoints, of_gpus, writes
        What is filled or emptied, whether that are GPUs, and whether it is emptied.
    report
        Gets what is wrong.
    """
    from topo.catalogue.needs import Need, needs  # most files name no model

    nothing = ModelNeed(draft.asks, Need(draft.model.text))
    models = {**needs(), **file_needs} if file_needs else needs()
    model = models.get(draft.model.text)
    if model is None:
        have = listed(name for name, each in models.items() if serves(each, draft.asks))
        advice = did_you_mean(draft.model.text, models) or f"there are {have}"
        message = f"no model `{draft.model.text}` is known"
        report.add(draft.model, "unknown-name", message, help=advice)
        return nothing
    if not serves(model, draft.asks):
        message = f"of `{model.name}` nobody says {_HAS[draft.asks].partition(' (')[0]}"
        advice = f"`needs: {{mine: {{like: {model.name}, ...}}}}` says {_HAS[draft.asks]}"
        report.add(draft.model, "need-unknown", message, help=advice)
        return nothing
    return ModelNeed(
        draft.asks,
        model,
        tokens=draft.tokens,
        accelerators=_count(
            draft, name, model, endpoints, of_gpus=of_gpus, writes=writes, report=report
        ),
        accelerator=draft.accelerators.name,
        mttf=_mttf(draft) if draft.asks == "checkpoint" else None,
    )


def _count(
    draft: NeedDraft,
    name: str,
    model: Need,
    endpoints: tuple[str, ...],
    *,
    of_gpus: bool,
    writes: bool,
    report: Report,
) -> int:
    """Return how many accelerators stand behind each endpoint; of a checkpoint how many in all."""
    count, each, accelerator = draft.accelerators
    at = draft.at_accelerators
    if draft.asks == "checkpoint":
        if writes and not of_gpus and not count:
            message = f"nothing says how many accelerators workload `{name}` writes for"
            report.add(at or draft.model, "accelerators", message, help="add `accelerators: 1024`")
        return count * len(endpoints) if each else count
    if of_gpus and at is not None and (count or each):
        message = f"the GPUs of workload `{name}` are the accelerators themselves"
        report.add(at, "accelerators", message, help="say what they are alone: `h100`")
        return count
    is_told = count and (accelerator or "rate" in model.figures)
    if draft.asks == "needs" and not of_gpus and not is_told:
        message = f"nothing says which accelerators compute on what workload `{name}` brings to RAM"
        advice = "add `accelerators: 8x h100 each`"
        report.add(at or draft.model, "accelerators", message, help=advice)
        return count
    if each or not endpoints:
        return count
    if count % len(endpoints):
        message = f"{count} accelerators do not divide over {len(endpoints)} memories"
        report.add(at or draft.model, "accelerators", message, help="say how many `each` has")
    return count // len(endpoints)


def _mttf(draft: NeedDraft) -> Figure:
    """Return the mean time to failure of one accelerator, as the workload says, else MLCommons'."""
    from topo.catalogue.needs import needs

    mttf = needs()["accelerator"].figures["mttf"]
    if draft.mttf is None or draft.at_mttf is None:
        return mttf
    place = draft.at_mttf.place
    return replace(mttf, value=draft.mttf, kind="quoted", source=f"{place.file}:{place.line}")


def serves(model: Need, asks: str) -> bool:
    """Whether a model's figures say what is asked of it, a word of `ASKS`."""
    if asks == "needs":
        return model.reads
    if asks == "checkpoint":
        checkpoint = model.figures.get("checkpoint")
        return checkpoint is not None and checkpoint.known
    return model.token is not None


def size_of(need: ModelNeed) -> float | None:
    """Return the bytes that are moved in all; `None` where data is read on and on.

    Examples
    --------
    >>> from topo.catalogue.needs import needs
    >>> size_of(ModelNeed("kv-cache", needs()["llama3-70b"], tokens=1000))
    327680000.0
    """
    if need.asks == "needs":
        return None
    if need.asks == "checkpoint":
        checkpoint = need.model.figures.get("checkpoint")
        return checkpoint.value if checkpoint else None
    token = need.model.token
    return token.value * need.tokens if token and token.value else None
