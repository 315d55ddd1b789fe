"""The `workloads:` of a file: how many bytes go from where to where, by which data paths."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, Final, get_args

from topo.catalogue.advice import did_you_mean, nearest_names
from topo.description.description import Direction, Workload
from topo.description.keys import WORKLOAD
from topo.description.names import is_name
from topo.description.shape import (
    a_kind,
    entries_of,
    is_extension,
    listed,
    mapping_of,
    texts_of,
    value_of,
)
from topo.errors import UnitError
from topo.units import parse_duration, parse_rate, parse_ratio_range, parse_size

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable
    from collections.abc import Mapping as MappingOf

    from topo.description.names import Names
    from topo.document.nodes import Mapping, Node, Scalar
    from topo.document.report import Report


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
