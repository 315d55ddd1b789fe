"""The `workloads:` and `expect:` of a file: what is moved from where to where, and what must hold.

A workload says how many bytes go which way, by which data paths. An expectation is one sentence,
read here and judged by `topo check`::

    load via direct <= 7 s                     load via direct is limited by slot1/chip
    load via direct >= 90 GB/s at measured     load via direct beats legacy
    train via direct feeds 8                   train via direct is limited by slot1/chip
    gpu4 to slot2 is SYS                       gpu0 to storage via direct is not possible
"""

from __future__ import annotations

import math
import re
from collections.abc import Callable, Iterable, Iterator
from collections.abc import Mapping as MappingOf
from dataclasses import replace
from typing import TYPE_CHECKING, Any, Final, Literal, get_args

from topo.description import keys
from topo.description.data_paths import nearest_path
from topo.description.description import (
    ASKS,
    BASES,
    COLLECTIVES,
    END_OF_KIND,
    ENDS,
    ROOTED,
    Collective,
    Direction,
    Expectation,
    Workload,
)
from topo.description.keys import AN_END, a_kind
from topo.description.names import MOST, Names, is_name
from topo.description.needs import ANY_SIZE, NeedDraft, model_need, need_draft, size_of
from topo.document.nodes import Mapping, Node, Report, Scalar
from topo.errors import UnitError
from topo.phrases import did_you_mean, listed
from topo.records import dataclass
from topo.units import parse_count, parse_duration, parse_rate, parse_size

if TYPE_CHECKING:
    from topo.catalogue.needs import Need

_DIRECTIONS: Final[tuple[Direction, ...]] = get_args(Direction)
_VERBS: Final[dict[Direction, str]] = {"read": "reads", "write": "writes", "copy": "copies"}
# Where both ends are on the network, and how to say what moves between them.
ON_NETWORK_ALONE: Final = "between storage on the network alone: which server moves it is not said"
BY_A_SERVER: Final = "make it two workloads, into a server's RAM or drives and out of there"
_EXAMPLE: Final = "write it like `{read: 640 GB, from: storage, to: gpu}`"
_COLLECTIVE_EXAMPLE: Final = "write it like `{all-reduce: 1 GB, over: gpu}`"

MOST_IN_RING: Final = 4_096  # GPUs of one collective

_VIA = r"(?P<subject>\S+)(?: via (?P<via>\S+))?"
_PAIR = r"(?P<subject>\S+) to (?P<what>\S+)"
_AT = re.compile(r"(?P<sentence>.*?)\s+at\s+(?P<basis>[a-z]+)")
# The first that fits is taken. Named groups are fields of an expectation, but `negated`.
_SENTENCES: Final = (
    ("possible", re.compile(rf"{_PAIR}(?: via (?P<via>\S+))? is (?P<negated>not )?possible")),
    ("limited-by", re.compile(rf"{_VIA} is limited by (?P<what>.+)")),
    ("beats", re.compile(rf"{_VIA} beats (?P<what>\S+)")),
    ("feeds", re.compile(rf"{_VIA} feeds (?P<value_text>\S+)")),
    ("locality", re.compile(rf"{_PAIR} is (?P<value_text>\S+)")),
    (
        "figure",
        re.compile(
            rf"{_VIA}(?: (?P<what>algbw|busbw))?\s*(?P<relation><=|>=|<|>)\s*(?P<value_text>.+)"
        ),
    ),
)
_OF_A_RATE: Final = re.compile("/|ps$|[kKMGTP]i?[bB]")  # what no duration has
_SENTENCE_EXAMPLE: Final = "write it like `load via direct <= 7 s` or `gpu4 to slot2 is SYS`"


@dataclass(frozen=True, slots=True)
class Draft:
    """A workload whose devices and data paths are still texts; `values` are its other fields.

    Without a direction, that of its ends; without a size, what its `need` has, if that has one.
    The sources of a `collective` are its targets too; `root` is at most one text.
    """

    name: Scalar
    direction: Direction | None
    size: float | None
    each: bool
    sources: tuple[Scalar, ...]
    targets: tuple[Scalar, ...]
    via: tuple[Scalar, ...]
    values: dict[str, Any]
    collective: Collective | Literal[""] = ""
    root: tuple[Scalar, ...] = ()
    need: NeedDraft | None = None


# An expectation whose names are not looked up yet, and where it stands.
Claim = tuple[Scalar, Expectation]


# --- workloads: shape -----------------------------------------------------------------------------


def read_workloads(node: Node | None, report: Report) -> tuple[Draft, ...]:
    """Read the entries of `workloads:`, without looking names up."""
    mapping = keys.mapping_of(node, "`workloads:`", report, help=f"give each a name; {_EXAMPLE}")
    drafts = []
    if mapping is not None and (key := mapping.key("from") or mapping.key("over")) is not None:
        message = f"`{key.text}` stands under `workloads:` itself, which holds workloads by name"
        report.add(key, "wrong-shape", message, help=f"give it a name; {_EXAMPLE}")
        return ()
    for name, value in mapping or ():
        if keys.is_extension(name.text):
            continue
        what = f"workload `{name.text}`"
        is_name(name, report)
        workload = keys.mapping_of(value, what, report, help=_EXAMPLE)
        if workload is None:
            continue
        if any(
            key.text in keys.COLLECTIVE and key.text not in keys.WORKLOAD for key, _ in workload
        ):
            drafts += _collective(name, workload, what, report)
            continue
        entries = keys.entries_of(workload, keys.WORKLOAD, what, report)
        values = keys.values_of(entries, keys.WORKLOAD, report, of=what)
        need = need_draft(entries, values, what, report)
        direction = _direction(workload, entries, what, report)
        size: tuple[float | None, bool] | None = None
        if direction is not None:
            stated = entries[direction]
            size = keys.value_of(stated, f"`{direction}` of {what}", _work_size, report)
        elif need is not None:
            size = (None, False)
        if size is not None:
            sources, targets, via = (values.pop(key, ()) for key in ("from", "to", "via"))
            drafts.append(Draft(name, direction, *size, sources, targets, via, values, need=need))
    return tuple(drafts)


def _direction(
    mapping: Mapping, entries: dict[str, Node], what: str, report: Report
) -> Direction | None:
    """Return the one of read, write and copy that a workload says.

    For a model it says none, but that a data set of a size may be read as a model needs it.
    """
    stated = [direction for direction in _DIRECTIONS if direction in entries]
    asks = next((key for key in ASKS if key in entries), "")
    if asks and stated and (asks != "needs" or stated[0] != "read"):
        message = f"{what} says {stated[0]} and {asks}, which has a size of its own"
        if asks == "needs":
            message = f"{what} says {stated[0]}, and {asks} is about what is read"
        at = mapping.key(stated[0])
        report.add(at or mapping, "read-or-write", message, help="make it two workloads")
        return None
    if len(stated) == 1:
        return stated[0]
    if asks and not stated:
        return None
    unknown = [key.text for key, _ in mapping if key.text not in keys.WORKLOAD]
    if not stated and any(did_you_mean(word, _DIRECTIONS) for word in unknown):
        return None  # a misspelt `read` or `write`, which was reported already
    message = f"{what} reads or writes, and says {' and '.join(stated) if stated else 'neither'}"
    at = mapping.key(stated[-1]) if stated else None
    advice = "make it two workloads" if stated else _EXAMPLE
    report.add(at or mapping, "read-or-write", message, help=advice)
    return None


def _collective(name: Scalar, mapping: Mapping, what: str, report: Report) -> list[Draft]:
    """Return the draft of what GPUs do together, or nothing where its shape is wrong."""
    entries = keys.entries_of(mapping, keys.COLLECTIVE, what, report)
    values = keys.values_of(entries, keys.COLLECTIVE, report, of=what)
    stated = [collective for collective in COLLECTIVES if collective in entries]
    if len(stated) != 1:
        unknown = [key.text for key, _ in mapping if key.text not in keys.COLLECTIVE]
        if stated or not any(did_you_mean(word, COLLECTIVES) for word in unknown):
            says = f"says {' and '.join(stated)}" if stated else "does not say what these GPUs do"
            at = mapping.key(stated[-1]) if stated else None
            advice = "make it two workloads" if stated else _COLLECTIVE_EXAMPLE
            report.add(at or mapping, "which-collective", f"{what} {says}", help=advice)
        return []
    (collective,) = stated
    size = keys.value_of(
        entries[collective],
        f"`{collective}` of {what}",
        lambda text: parse_size(text, positive=True),
        report,
    )
    over, via, root = (values.pop(key, ()) for key in ("over", "via", "root"))
    if root and collective not in ROOTED:
        message = f"{what} has a root, and {a_collective(collective)} has none"
        report.add(entries["root"], "collective-root", message, help="leave `root:` out")
    if size is None:
        return []
    return [Draft(name, "copy", size, False, over, over, via, values, collective, root)]


def _work_size(text: str) -> tuple[float, bool]:
    """Read bytes, and whether they are of each GPU: ``640 GB``, ``80 GB each``."""
    size = text.removesuffix(" each")
    return parse_size(size, positive=True), size != text


# --- workloads: references ------------------------------------------------------------------------


def resolve_workloads(
    drafts: Iterable[Draft],
    *,
    names: Names,
    kind_of: Callable[[str], str],
    data_paths: tuple[str, ...],
    needs: MappingOf[str, Need],
    report: Report,
) -> tuple[Workload, ...]:
    """Return the workloads with their devices, data paths and models looked up.

    Parameters
    ----------
    drafts
        What `read_workloads` gave.
    names, kind_of
        The devices, and what returns the kind of one.
    data_paths
        The names of all data paths.
    needs
        What models of the file's own need.
    report
        Gets what is wrong.
    """
    workloads = []
    for draft in drafts:
        sources = _selected(draft.sources, names, report)
        targets = sources if draft.collective else _selected(draft.targets, names, report)
        root = ""
        if draft.collective:
            root = _root(draft, sources, names, report)
            _check_gpus(draft, sources, kind_of, report)
            direction: Direction = "copy"
        else:
            direction = draft.direction or _direction_of(sources, targets, kind_of)
            _check_ends(draft, direction, sources, targets, kind_of, report)
        for text in draft.via:
            _check_path(text.text, data_paths, text, report)
        endpoints = _endpoints(direction, sources, targets, kind_of)
        need = None
        if draft.need is not None:
            of_gpus = any(kind_of(name) == "gpu" for name in endpoints)
            name = draft.name.text
            need = model_need(
                draft.need,
                name,
                file_needs=needs,
                endpoints=endpoints,
                of_gpus=of_gpus,
                writes=direction == "write",
                report=report,
            )
        size = draft.size
        if size is None and need is not None:
            size = size_of(need)
        elif size is not None and draft.each:
            size *= len(endpoints)
        workloads.append(
            Workload(
                name=draft.name.text,
                direction=direction,
                size=ANY_SIZE if size is None else size,
                sources=sources,
                targets=targets,
                via=tuple(dict.fromkeys(text.text for text in draft.via)),
                place=draft.name.place,
                collective=draft.collective,
                root=root,
                sized=size is not None,
                need=need,
                **draft.values,
            )
        )
    return tuple(workloads)


def _selected(texts: Iterable[Scalar], names: Names, report: Report) -> tuple[str, ...]:
    """Return the devices that some texts mean, each once."""
    chosen = (name for text in texts for name in names.select(text.text, text, report))
    return tuple(dict.fromkeys(chosen))


def _root(draft: Draft, gpus: tuple[str, ...], names: Names, report: Report) -> str:
    """Return the GPU at which a collective begins or ends, the first where the file says none."""
    if not draft.root or draft.collective not in ROOTED:
        return gpus[0] if gpus and draft.collective in ROOTED else ""
    chosen = [name for text in draft.root for name in names.select(text.text, text, report)]
    if chosen and gpus and (len(chosen) > 1 or chosen[0] not in gpus):
        others = listed(chosen, most=4)
        message = f"the root of workload `{draft.name.text}` is one of its GPUs, not {others}"
        report.add(draft.root[0], "collective-root", message, help=f"write `root: {gpus[0]}`")
    return chosen[0] if chosen else ""


def _check_gpus(
    draft: Draft, names: tuple[str, ...], kind_of: Callable[[str], str], report: Report
) -> None:
    """Check that a collective is over GPUs, over several, and not over more than can be told."""
    if not names:  # a name is wrong, and was reported
        return
    what = f"workload `{draft.name.text}` is {a_collective(draft.collective)} over"
    strange = next((name for name in names if kind_of(name) != "gpu"), None)
    if strange is not None:
        message = f"{what} GPUs, and {strange} is {a_kind(kind_of(strange))}"
        report.add(draft.sources[0], "collective-ends", message, help="name GPUs after `over:`")
    else:
        for message, advice in too_few_or_many(draft.collective, len(names), names[0]):
            report.add(draft.sources[0], "collective-ends", f"{what} {message}", help=advice)


def too_few_or_many(collective: str, count: int, name: str) -> Iterator[tuple[str, str]]:
    """Yield why a collective is not told of so many GPUs, of which `name` is one, and advice."""
    in_pairs = collective == "all-to-all"
    most = math.isqrt(MOST) if in_pairs else MOST_IN_RING
    if count == 1:
        yield f"one GPU alone, {name}", "name at least two"
    elif count > most:
        pairs = f", {count * (count - 1):,} pairs" * in_pairs
        yield f"{count:,} GPUs{pairs}: {most:,} are the most", "name those of fewer servers"


def a_collective(name: str) -> str:
    """Return ``an all-reduce`` or ``a broadcast``."""
    return f"{'an' if name[0] == 'a' else 'a'} {name}"


def direction_between(first: str, last: str) -> Direction:
    """Return which way data goes from one end to another, words of `ENDS`.

    It is read where it goes towards the GPU, or what of the two stands for it, and written where it
    goes away from it; between two of a sort, and network cards and others, it is copied.

    Examples
    --------
    >>> direction_between("storage", "gpu"), direction_between("ram", "storage")
    ('read', 'write')
    """
    ends = [first, last]
    if first == last or ("storage" not in ends and set(ends) != {"ram", "gpu"}):
        return "copy"
    return "read" if ends == sorted(ends, key=[*ENDS, ""].index) else "write"


def _direction_of(
    sources: tuple[str, ...], targets: tuple[str, ...], kind_of: Callable[[str], str]
) -> Direction:
    words = [
        END_OF_KIND.get(kind_of(names[0]), "") if names else "" for names in (sources, targets)
    ]
    return direction_between(*words)


def _endpoints(
    direction: Direction,
    sources: tuple[str, ...],
    targets: tuple[str, ...],
    kind_of: Callable[[str], str],
) -> tuple[str, ...]:
    """Return what a size that is said of each is multiplied by: what is filled or emptied."""
    order = [
        (
            list(ENDS).index(END_OF_KIND.get(kind_of(names[0]), "gpu")) if names else 0,
            all(kind_of(name) != "storage" for name in names),
        )
        for names in (sources, targets)
    ]
    emptied = order[0] > order[1] or (order[0] == order[1] and direction == "write")
    return sources if emptied else targets


def _check_path(name: str, data_paths: tuple[str, ...], at: Scalar, report: Report) -> None:
    if name and name not in data_paths:
        advice = nearest_path(name, data_paths)
        report.add(at, "unknown-name", f"no data path `{name}`", help=advice)


def _check_ends(
    draft: Draft,
    direction: Direction,
    sources: tuple[str, ...],
    targets: tuple[str, ...],
    kind_of: Callable[[str], str],
    report: Report,
) -> None:
    """Check that data rests at both ends, in things that are alike, and goes the way it says."""
    name, verb = draft.name.text, _VERBS[direction]
    sides = ((sources, draft.sources, "from"), (targets, draft.targets, "to"))
    words: list[str] = []
    for devices, texts, side in sides:
        for device in devices:
            kind = kind_of(device)
            if kind not in END_OF_KIND:
                ends = listed(AN_END.values(), "or")
                message = f"workload `{name}` {verb} {side} {ends}, and {device} is {a_kind(kind)}"
                advice = f"name one of these after `{side}:`"
                report.add(texts[0], "workload-ends", message, help=advice)
                return
        mixed = list(dict.fromkeys(END_OF_KIND[kind_of(device)] for device in devices))
        if len(mixed) > 1:
            both = listed(AN_END[word] for word in mixed)
            message = f"workload `{name}` {verb} {side} {both} at once"
            advice = "make it a workload for each"
            report.add(texts[0], "workload-ends", message, help=advice)
            return
        words += mixed
    if len(words) < len(sides):  # a name is wrong, and was reported
        return
    if all(any(kind_of(name) == "storage" for name in names) for names in (sources, targets)):
        message = f"workload `{name}` {verb} {ON_NETWORK_ALONE}"
        report.add(draft.name, "workload-ends", message, help=BY_A_SERVER)
        return
    if draft.need is not None and draft.need.asks == "needs" and words[1] not in ("gpu", "ram"):
        message = f"workload `{name}` feeds accelerators, and {targets[0]} is {AN_END[words[1]]}"
        report.add(draft.targets[0], "workload-ends", message, help="write `to: gpu` or `to: ram`")
        return
    first, last = (list(ENDS).index(word) for word in words)
    if direction == ("write" if first < last else "read") and first != last:
        opposite = "write" if direction == "read" else "read"
        start, end = (AN_END[word] for word in words)
        message = f"workload `{name}` {verb} from {start} to {end}, which is to {opposite}"
        advice = f"swap `from` and `to`, or say `{opposite}:`"
        report.add(draft.sources[0], "workload-ends", message, help=advice)


# --- expectations: shape --------------------------------------------------------------------------


def read_expectations(node: Node | None, report: Report) -> tuple[Claim, ...]:
    """Read the sentences of `expect:`, without looking names up."""
    items = keys.items_of(
        node, "`expect:` is a list of sentences", report, help="start each sentence with `- `"
    )
    claims = (_read_sentence(item, report) for item in items)
    return tuple(claim for claim in claims if claim is not None)


def _read_sentence(node: Node, report: Report) -> Claim | None:
    if not isinstance(node, Scalar):
        message = f"an expectation is one sentence, not {keys.kind_of(node)}"
        advice = f"{_SENTENCE_EXAMPLE}, without a colon"
        report.add(node, "bad-expectation", message, help=advice)
        return None
    text = " ".join(node.text.split())
    match = _AT.fullmatch(text)
    sentence, word = (match["sentence"], match["basis"]) if match else (text, "")
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
    return node, Expectation(text=text, basis=basis, place=node.place, **fields)


def _fields(sentence: str) -> dict[str, Any]:
    """Return what a sentence says, by the fields of an expectation."""
    plain = sentence.replace("\u2264", "<=").replace("\u2265", ">=")
    if plain != sentence:
        message = f"`{sentence}` has a sign that topo does not read"
        raise UnitError("bad-expectation", message, f"write `{plain}`")
    matches = ((kind, pattern.fullmatch(sentence)) for kind, pattern in _SENTENCES)
    kind, match = next(((kind, match) for kind, match in matches if match), ("", None))
    if match is None:
        message = f"`{sentence}` is not a sentence that topo judges"
        raise UnitError("bad-expectation", message, _SENTENCE_EXAMPLE)
    words = {name: word or "" for name, word in match.groupdict().items()}
    fields: dict[str, Any] = {"kind": kind, **words}
    text = words.get("value_text", "")
    if kind == "figure":
        is_rate = bool(words["what"] or _OF_A_RATE.search(text))
        fields["kind"] = "rate" if is_rate else "time"
        fields["value"] = parse_rate(text) if is_rate else parse_duration(text)
    elif kind == "feeds":
        fields["value"] = float(parse_count(text))
    elif kind == "locality":
        if not re.fullmatch(r"X|NV[0-9]+|PIX|PXB|PHB|NODE|SYS", text):
            near = did_you_mean(text, ("PIX", "PXB", "PHB", "NODE", "SYS"))
            advice = near or "write X, NV and a number, PIX, PXB, PHB, NODE or SYS"
            raise UnitError("bad-expectation", f"`{text}` is not a class of locality", advice)
    elif kind == "possible":
        if not words["via"]:
            message = "possible by which data path? The sentence does not say"
            advice = "write `gpu0 to storage via direct is possible`"
            raise UnitError("bad-expectation", message, advice)
        if fields.pop("negated"):
            fields["kind"] = "not-possible"
    return fields


# --- expectations: references ---------------------------------------------------------------------


def resolve_expectations(
    claims: Iterable[Claim],
    *,
    names: Names,
    workloads: MappingOf[str, Workload],
    data_paths: tuple[str, ...],
    report: Report,
) -> tuple[Expectation, ...]:
    """Return the expectations, and report workloads, devices and data paths that are not there.

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
    expectations = []
    for node, claimed in claims:
        expectation = claimed
        if expectation.kind in ("locality", "possible", "not-possible"):
            first, second = (
                names.select(name, node, report) for name in (expectation.subject, expectation.what)
            )
            pairs = len(first) * len(second)
            if expectation.kind == "locality" and pairs > MOST:
                message = f"`{expectation.text}` is about {pairs} pairs, more than {MOST}"
                report.add(node, "huge-range", message, help="name fewer devices")
        else:
            expectation = _with_path(expectation, node, workloads, report)
        if expectation.kind == "limited-by":  # `slot1/chip`, `slot1 -> cpu1`
            for end in expectation.what.replace(" <-> ", " -> ").split(" -> "):
                names.select(end.partition("/")[0].strip(), node, report)
        _check_path(expectation.via, data_paths, node, report)
        if expectation.kind == "beats":
            _check_path(expectation.what, data_paths, node, report)
        expectations.append(expectation)
    return tuple(expectations)


def _with_path(
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
    if expectation.kind == "rate" and expectation.what and not workload.collective:
        message = f"{expectation.what} is a rate of collectives, and {workload.name} is none"
        report.add(node, "bad-expectation", message, help="leave the word out")
    if expectation.kind == "feeds" and (workload.need is None or workload.need.asks != "needs"):
        message = f"workload `{workload.name}` feeds nothing: it says no `needs:`"
        advice = "write it like `{needs: unet3d, from: storage, to: gpu}`"
        report.add(node, "bad-expectation", message, help=advice)
    if expectation.via:
        return expectation
    if len(workload.via) == 1 or workload.collective:
        return replace(expectation, via=next(iter(workload.via), ""))
    message = f"`{expectation.text}` does not say by which data path"
    report.add(node, "bad-expectation", message, help=f"write `{workload.name} via direct ...`")
    return expectation
