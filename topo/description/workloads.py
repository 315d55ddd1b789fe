"""The `workloads:` of a file: how many bytes go from where to where, by which data paths."""

from __future__ import annotations

import re
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Any, Final, get_args

from topo.description.description import Direction, Expectation, Workload
from topo.description.keys import WORKLOAD
from topo.description.names import is_name
from topo.description.shape import (
    a_kind,
    entries_of,
    is_extension,
    kind_of,
    listed,
    mapping_of,
    texts_of,
    value_of,
)
from topo.document.nodes import Scalar, Sequence
from topo.errors import UnitError
from topo.phrases import did_you_mean, nearest_names
from topo.units import parse_duration, parse_rate, parse_ratio_range, parse_size

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable
    from collections.abc import Mapping as MappingOf

    from topo.description.description import Basis
    from topo.description.names import Names
    from topo.document.nodes import Mapping, Node, Report


_STORES: Final = ("storage", "nvme", "hba")
_GPUS: Final = ("gpu",)
_PEERS: Final = ("gpu", "nic", "dpu")
# Which kinds a workload may have at its `from` and its `to`.
_ENDS: Final[dict[Direction, tuple[tuple[str, ...], tuple[str, ...]]]] = {
    "read": (_STORES, _GPUS),
    "write": (_GPUS, _STORES),
    "copy": (_PEERS, _PEERS),
}
_VERBS: Final[dict[Direction, str]] = {"read": "reads", "write": "writes", "copy": "copies"}
_EXAMPLE: Final = "write it like `{read: 640 GB, from: storage, to: gpu}`"


@dataclass(frozen=True, slots=True)
class Draft:
    """A workload whose devices and data paths are still texts."""

    name: Scalar
    direction: Direction
    size: float
    each: bool
    sources: tuple[Scalar, ...]
    targets: tuple[Scalar, ...]
    via: tuple[Scalar, ...]
    rest: dict[str, Any]


# --- shape ----------------------------------------------------------------------------------------


def read_workloads(node: Node, report: Report) -> tuple[Draft, ...]:
    """Read the entries of `workloads:`, without looking names up."""
    mapping = mapping_of(node, "`workloads:`", report, help=f"give each a name; {_EXAMPLE}")
    drafts = (
        _read(key, value, report) for key, value in mapping or () if not is_extension(key.text)
    )
    return tuple(draft for draft in drafts if draft is not None)


def _read(name: Scalar, node: Node, report: Report) -> Draft | None:
    what = f"workload `{name.text}`"
    is_name(name, report)
    mapping = mapping_of(node, what, report, help=_EXAMPLE)
    if mapping is None:
        return None
    entries = entries_of(mapping, WORKLOAD, what, report)
    size = _size(mapping, entries, what, report)
    ends = [
        texts_of(entries[key], f"`{key}` of {what}", report) if key in entries else ()
        for key in ("from", "to", "via")
    ]
    rest = {
        key: value
        for key, read in _READERS.items()
        if key in entries
        and (value := value_of(entries[key], f"`{key}` of {what}", read, report)) is not None
    }
    if size is None:
        return None
    return Draft(name, size[0], size[1], size[2], ends[0], ends[1], ends[2], rest)


def _size(
    mapping: Mapping, entries: dict[str, Node], what: str, report: Report
) -> tuple[Direction, float, bool] | None:
    both: list[Direction] = [key for key in get_args(Direction) if key in entries]
    if len(both) != 1:
        message = f"{what} reads or writes, and says {' and '.join(both) if both else 'neither'}"
        at = mapping.key(both[-1]) if both else mapping
        advice = "make it two workloads" if both else _EXAMPLE
        if not both and _has_near_unknown(mapping):
            return None
        report.add(at or mapping, "read-or-write", message, help=advice)
        return None
    (direction,) = both
    found = value_of(entries[direction], f"`{direction}` of {what}", _work_size, report)
    return (direction, *found) if found is not None else None


def _has_near_unknown(mapping: Mapping) -> bool:
    """Whether a misspelt `read` or `write` was reported already."""
    words = [key.text for key, _ in mapping if key.text not in WORKLOAD]
    return any(did_you_mean(word, get_args(Direction)) for word in words)


def _work_size(text: str) -> tuple[float, bool]:
    plain = text.removesuffix(" each")
    return parse_size(plain, positive=True), plain != text


def _weight(text: str) -> float:
    try:
        weight = float(text)
    except ValueError:
        weight = 0.0
    if not 0 < weight < float("inf"):
        raise UnitError("bad-number", f"`{text}` is not a weight", "write a number above 0: 2")
    return weight


def _efficiency(text: str) -> tuple[float, float]:
    return parse_ratio_range(text, positive=True)


def _limit(text: str) -> float:
    return parse_rate(text, positive=True)


_READERS: Final[dict[str, Callable[[str], Any]]] = {
    "efficiency": _efficiency,
    "weight": _weight,
    "limit": _limit,
    "start": parse_duration,
}


# --- references -----------------------------------------------------------------------------------


def resolve_workloads(
    drafts: Iterable[Draft],
    *,
    names: Names,
    kinds: MappingOf[str, str],
    data_paths: Iterable[str],
    report: Report,
) -> tuple[Workload, ...]:
    """Return the workloads with their devices and data paths looked up.

    Parameters
    ----------
    drafts
        What `read_workloads` gave.
    names, kinds
        The devices, and the kind of each.
    data_paths
        The names of all data paths.
    report
        Gets what is wrong.
    """
    known = tuple(data_paths)
    return tuple(_resolve(draft, names, kinds, known, report) for draft in drafts)


def _resolve(
    draft: Draft,
    names: Names,
    kinds: MappingOf[str, str],
    data_paths: tuple[str, ...],
    report: Report,
) -> Workload:
    sources, targets = (_select(texts, names, report) for texts in (draft.sources, draft.targets))
    _check_ends(draft, sources, targets, kinds, report)
    for text in draft.via:
        if text.text not in data_paths:
            message = f"no data path `{text.text}`"
            advice = nearest_names(text.text, data_paths)
            report.add(text, "unknown-name", message, help=advice)
    gpus = sources if draft.direction == "write" else targets
    return Workload(
        name=draft.name.text,
        direction=draft.direction,
        size=draft.size * len(gpus) if draft.each else draft.size,
        sources=sources,
        targets=targets,
        via=tuple(dict.fromkeys(text.text for text in draft.via)),
        place=draft.name.place,
        **draft.rest,
    )


def _select(texts: tuple[Scalar, ...], names: Names, report: Report) -> tuple[str, ...]:
    """Return the devices that texts name together, each once."""
    found = (name for text in texts for name in names.select(text.text, text, report))
    return tuple(dict.fromkeys(found))


def _check_ends(
    draft: Draft,
    sources: tuple[str, ...],
    targets: tuple[str, ...],
    kinds: MappingOf[str, str],
    report: Report,
) -> None:
    """Check that a read goes from storage to GPUs, a write back, a copy between GPUs and cards."""
    wanted = _ENDS[draft.direction]
    ends = ((sources, draft.sources, "from"), (targets, draft.targets, "to"))
    wrong = [
        (next(name for name in devices if kinds[name] not in allowed), allowed, texts[0], side)
        for (devices, texts, side), allowed in zip(ends, wanted, strict=True)
        if any(kinds[name] not in allowed for name in devices)
    ]
    if not wrong:
        _check_copy(draft, {kinds[name] for name in (*sources, *targets)}, report)
        return
    device, allowed, text, side = wrong[0]
    other = "write" if draft.direction == "read" else "read"
    swapped = len(wrong) == len(ends) and kinds[device] in wanted[1]
    report.add(
        text,
        "workload-ends",
        f"workload `{draft.name.text}` {_VERBS[draft.direction]} {side} {listed(allowed, 'or')}, "
        f"and {device} is {a_kind(kinds[device])}",
        help=f"swap `from` and `to`, or say `{other}:`"
        if swapped
        else f"name {a_kind(listed(allowed, 'or'))} after `{side}:`",
    )


def _check_copy(draft: Draft, kinds: set[str], report: Report) -> None:
    """Check that a copy has a GPU at one end at least."""
    if draft.direction == "copy" and kinds and "gpu" not in kinds:
        message = f"workload `{draft.name.text}` copies between network cards, without a GPU"
        report.add(draft.name, "workload-ends", message, help="name a gpu at one end")


BASES: Final[tuple[Basis, ...]] = ("theoretical", "achievable", "measured")
_VIA = r"(?P<subject>\S+)(?: via (?P<via>\S+))?"
_PAIR = r"(?P<subject>\S+) to (?P<what>\S+)"
_AT = re.compile(r"(?P<sentence>.*?)\s+at\s+(?P<basis>[a-z]+)")
_HELP: Final = "write it like `load via direct <= 7 s` or `gpu4 to slot2 is SYS`"
_EXAMPLES: Final = (
    "load via direct <= 7 s",
    "load via direct >= 90 GB/s at measured",
    "load via direct is limited by slot1/chip",
    "load via direct beats legacy",
    "gpu4 to slot2 is SYS",
    "gpu0 to storage via direct is not possible",
)


@dataclass(frozen=True, slots=True)
class Claim:
    """An expectation whose names are not looked up yet, and where it stands."""

    node: Scalar
    expectation: Expectation


# --- shape ----------------------------------------------------------------------------------------


def read_expectations(node: Node, report: Report) -> tuple[Claim, ...]:
    """Read the sentences of `expect:`, without looking names up."""
    if not isinstance(node, Sequence):
        if isinstance(node, Scalar) and not node.text:
            return ()
        message = f"`expect:` is a list of sentences, not {kind_of(node)}"
        report.add(node, "wrong-shape", message, help="start each sentence with `- `")
        return ()
    claims = (_read_sentence(item, report) for item in node.items)
    return tuple(claim for claim in claims if claim is not None)


def _read_sentence(node: Node, report: Report) -> Claim | None:
    if not isinstance(node, Scalar):
        message = f"an expectation is one sentence, not {kind_of(node)}"
        report.add(node, "bad-expectation", message, help=f"{_HELP}, without a colon")
        return None
    text = " ".join(node.text.split())
    found = _AT.fullmatch(text)
    sentence, word = (found["sentence"], found["basis"]) if found else (text, "")
    basis = next((basis for basis in BASES if basis == word), None)
    if word and basis is None:
        message = f"there is no basis `{word}`"
        advice = did_you_mean(word, BASES) or f"write at {listed(BASES, 'or')}"
        report.add(node, "bad-expectation", message, help=advice)
        return None
    try:
        fields = _fields(sentence)
    except UnitError as error:
        report.unit(node, error)
        return None
    return Claim(node, Expectation(text=text, basis=basis, place=node.place, **fields))


def _fields(sentence: str) -> dict[str, Any]:
    plain = sentence.replace("\u2264", "<=").replace("\u2265", ">=")
    if plain != sentence:
        message = f"`{sentence}` has a sign that topo does not read"
        raise UnitError("bad-expectation", message, f"write `{plain}`")
    for pattern, read in _SENTENCES:
        found = pattern.fullmatch(sentence)
        if found:
            return read({key: value or "" for key, value in found.groupdict().items()})
    raise UnitError("bad-expectation", f"`{sentence}` is not a sentence that topo judges", _HELP)


def _figure(words: dict[str, str]) -> dict[str, Any]:
    text = words.pop("figure")
    kind = "rate" if "/" in text or text.endswith("ps") else "time"
    value = (parse_rate if kind == "rate" else parse_duration)(text)
    return {"kind": kind, "value": value, "value_text": text, **words}


def _limited(words: dict[str, str]) -> dict[str, Any]:
    return {"kind": "limited-by", **words}


def _beats(words: dict[str, str]) -> dict[str, Any]:
    return {"kind": "beats", **words}


def _locality(words: dict[str, str]) -> dict[str, Any]:
    text = words["value_text"]
    if not re.fullmatch(r"X|NV[0-9]+|PIX|PXB|PHB|NODE|SYS", text):
        near = did_you_mean(text, ("PIX", "PXB", "PHB", "NODE", "SYS"))
        advice = near or "write X, NV and a number, PIX, PXB, PHB, NODE or SYS"
        raise UnitError("bad-expectation", f"`{text}` is not a class of locality", advice)
    return {"kind": "locality", **words}


def _possible(words: dict[str, str]) -> dict[str, Any]:
    negated = words.pop("negated")
    if not words["via"]:
        says = "possible by which data path? The sentence does not say"
        raise UnitError("bad-expectation", says, "write `gpu0 to storage via direct is possible`")
    return {"kind": "not-possible" if negated else "possible", **words}


_SENTENCES: Final[
    tuple[tuple[re.Pattern[str], Callable[[dict[str, str]], dict[str, Any]]], ...]
] = (
    (re.compile(rf"{_PAIR}(?: via (?P<via>\S+))? is (?P<negated>not )?possible"), _possible),
    (re.compile(rf"{_VIA} is limited by (?P<what>.+)"), _limited),
    (re.compile(rf"{_VIA} beats (?P<what>\S+)"), _beats),
    (re.compile(rf"{_PAIR} is (?P<value_text>\S+)"), _locality),
    (re.compile(rf"{_VIA}\s*(?P<relation><=|>=|<|>)\s*(?P<figure>.+)"), _figure),
)


# --- references -----------------------------------------------------------------------------------


def resolve_expectations(
    claims: Iterable[Claim],
    *,
    names: Names,
    workloads: MappingOf[str, Workload],
    data_paths: Iterable[str],
    report: Report,
) -> tuple[Expectation, ...]:
    """Return the expectations whose workloads, devices and data paths are there.

    Parameters
    ----------
    claims
        What `read_expectations` gave.
    names
        The devices.
    workloads, data_paths
        The workloads by name, and the names of all data paths.
    report
        Gets what is wrong.
    """
    known = tuple(data_paths)
    found = []
    for claim in claims:
        expectation = claim.expectation
        if expectation.kind in ("locality", "possible", "not-possible"):
            for text in (expectation.subject, expectation.what):
                names.select(text, claim.node, report)
        else:
            expectation = _of_workload(expectation, claim.node, workloads, report)
            if expectation.kind == "limited-by":
                _check_resource(expectation.what, claim.node, names, report)
        others = [expectation.via] + [expectation.what] * (expectation.kind == "beats")
        for path in others:
            _check_path(path, known, claim.node, report)
        found.append(expectation)
    return tuple(found)


def _of_workload(
    expectation: Expectation, node: Scalar, workloads: MappingOf[str, Workload], report: Report
) -> Expectation:
    """Return the expectation with the only data path of its workload if it names none."""
    workload = workloads.get(expectation.subject)
    if workload is None:
        message = f"no workload `{expectation.subject}`"
        advice = did_you_mean(expectation.subject, workloads)
        have = f"workloads are {listed(workloads)}" if workloads else "define it under `workloads:`"
        report.add(node, "unknown-name", message, help=advice or have)
        return expectation
    if expectation.via:
        return expectation
    if len(workload.via) == 1:
        return replace(expectation, via=workload.via[0])
    message = f"`{expectation.text}` does not say by which data path"
    report.add(node, "bad-expectation", message, help=f"write `{workload.name} via direct ...`")
    return expectation


def _check_path(path: str, known: tuple[str, ...], node: Scalar, report: Report) -> None:
    if path and path not in known:
        advice = nearest_names(path, known)
        report.add(node, "unknown-name", f"no data path `{path}`", help=advice)


def _check_resource(resource: str, node: Scalar, names: Names, report: Report) -> None:
    """Check that a resource (``slot1/chip``, ``slot1 -> cpu1``) stands at devices that exist."""
    for end in resource.split(" -> "):
        names.select(end.partition("/")[0].strip(), node, report)
