"""Data paths as a file writes them: an ordered list of moves and how its stages work together."""

from __future__ import annotations

import re
from dataclasses import replace
from functools import cache
from itertools import pairwise
from pathlib import Path
from typing import TYPE_CHECKING, Any, Final

from topo.catalogue.fields import HERE
from topo.catalogue.part import Figure
from topo.description.description import DataPath, Move
from topo.description.keys import DATA_PATH, MOVE, MOVERS, NEEDS, STAGES
from topo.description.shape import (
    choice_of,
    entries_of,
    kind_of,
    listed,
    mapping_of,
    text_of,
    texts_of,
    value_of,
)
from topo.document.nodes import Mapping, Scalar
from topo.errors import UnitError
from topo.phrases import did_you_mean, nearest_names
from topo.units import parse_count, parse_rate

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable

    from topo.description.description import Over
    from topo.document.nodes import Node, Report


# Their room is below this one; which data paths there are is needed here, and no more of them.
_BUILT_IN: Final = Path(__file__).parents[1] / "datapaths" / "data"
_MOVE = re.compile(r"(\S+)\s+->\s+(\S+)\s+by\s+(\S+)(?:\s+over\s+(\S+))?")
_ORDER: Final = re.compile(r"[0-9]+-")
_PLACES = ("storage", "peer", "gpu", "staging-gpu")
_OVER: Final[dict[str, Over]] = {"gpu-links": "gpu-links", "pcie": "pcie"}
_MOVE_ADVICE = "write it like `storage -> kernel-buffer by nic`"


@cache
def built_in_files() -> dict[str, Path]:
    """Return the file of each data path that ships with topo, by the data path's name.

    A file is called as its data path; a number in front of the name orders the list:
    ``20-direct.yaml``. Files without one come last.
    """
    return {_ORDER.sub("", file.stem): file for file in sorted(_BUILT_IN.glob("*.yaml"))}


def read_data_path(name: str, node: Node, *, report: Report) -> DataPath:
    """Read one entry of `data-paths:`.

    Parameters
    ----------
    name
        Its name.
    node
        The mapping under it.
    report
        Gets what is wrong; what could be read is returned all the same.
    """
    path = DataPath(name, (), place=node.place)
    mapping = mapping_of(node, f"data path `{name}`", report)
    if mapping is None:
        return path
    if mapping.get("moves") is None:
        message = f"data path `{name}` has no moves"
        report.add(mapping, "missing-key", message, help="add `moves:` with one line a move")
    return vary_data_path(path, mapping, report=report)


def vary_data_path(path: DataPath, entries: Mapping, *, report: Report) -> DataPath:
    """Return the data path with what `entries` says in place of its own."""
    what = f"data path `{path.name}`"
    changes: dict[str, Any] = {}
    for key, node in entries_of(entries, DATA_PATH, what, report).items():
        value = _READERS.get(key, text_of)(node, f"`{key}` of {what}", report)
        if value is not None:
            changes[key.replace("-", "_")] = value
    return replace(path, **changes)


def _stages(node: Node, what: str, report: Report) -> str | None:
    return choice_of(node, what, STAGES, report)


def _workers(node: Node, what: str, report: Report) -> int | None:
    return value_of(node, what, parse_count, report)


def _needs(node: Node, what: str, report: Report) -> tuple[str, ...]:
    texts = texts_of(node, what, report)
    return tuple(
        need for text in texts if (need := choice_of(text, what, NEEDS, report)) is not None
    )


def _moves(node: Node, what: str, report: Report) -> tuple[Move, ...] | None:
    if isinstance(node, Mapping | Scalar):
        message = f"{what} are a list, not {kind_of(node)}"
        report.add(node, "wrong-shape", message, help="start each move with `- `")
        return None
    if not node.items:
        report.add(node, "bad-move", f"{what} are an empty list", help=_MOVE_ADVICE)
    moves = [move for item in node.items if (move := _move(item, report)) is not None]
    if len(moves) == len(node.items) and moves:
        _check_chain(moves, node, report)
    return tuple(moves)


def _move(node: Node, report: Report) -> Move | None:
    text, entries = (node, None)
    if isinstance(node, Mapping) and len(node.entries) == 1:
        text, entries = node.entries[0]
    move = _move_text(text, report)
    if move is None or entries is None:
        return move
    return _with_rate(move, entries, report)


def _move_text(node: Node, report: Report) -> Move | None:
    if not isinstance(node, Scalar):
        report.add(node, "bad-move", f"{kind_of(node)} is not a move", help=_MOVE_ADVICE)
        return None
    found = _MOVE.fullmatch(node.text)
    if not found:
        report.add(node, "bad-move", f"`{node.text}` is not a move", help=_MOVE_ADVICE)
        return None
    source, target, mover, over = found.groups()
    for place in (source, target):
        if place not in _PLACES and not place.endswith("-buffer"):
            report.add(
                node,
                "bad-move",
                f"data cannot rest in `{place}`",
                help=did_you_mean(place, _PLACES)
                or "storage, peer, gpu, staging-gpu, or any name-buffer",
            )
            return None
    if mover not in MOVERS:
        message = f"a mover is {listed(MOVERS, 'or')}, not `{mover}`"
        report.add(node, "bad-move", message, help=did_you_mean(mover, MOVERS))
        return None
    if over is not None and over not in _OVER:
        message = f"a move goes over {listed(_OVER, 'or')}, not `{over}`"
        report.add(node, "bad-move", message, help=did_you_mean(over, _OVER))
        return None
    move = Move(source, target, MOVERS[mover], over=_OVER[over] if over else None)
    return _check_mover(move, node, report)


def _check_mover(move: Move, node: Scalar, report: Report) -> Move | None:
    """Return the move if its engine can do it: cores reach RAM only, drives and NICs storage."""
    ends = (move.source, move.target)
    in_ram = all(end.endswith("-buffer") for end in ends)
    if move.mover == "core" and not in_ram:
        message = f"a core copies between RAM buffers, not {move.source} to {move.target}"
    elif move.mover == "drive" and "storage" not in ends:
        message = "a drive moves data out of storage or into it, and neither end is that"
    elif move.mover == "nic" and not {"storage", "peer"} & set(ends):
        message = "a nic moves data between storage, or a peer, and memory; neither end is that"
    elif move.over is not None and any(end.endswith("-buffer") for end in ends):
        message = f"`over {move.over}` is for a move between two GPUs"
    elif move.mover == "gpu" and (in_ram or "storage" in ends):
        message = "a GPU's copy engine has its GPU at one end and RAM or a GPU at the other"
    else:
        return move
    report.add(node, "bad-move", message)
    return None


def _check_chain(moves: list[Move], node: Node, report: Report) -> None:
    ends = (moves[0].source, moves[-1].target)
    if ends not in (("storage", "gpu"), ("peer", "gpu")):
        message = f"a data path goes from storage to gpu, this one from {ends[0]} to {ends[1]}"
        report.add(node, "bad-move", message, help="write it for a read; a write runs it backwards")
    for before, after in pairwise(moves):
        if before.target != after.source:
            message = f"one move ends in {before.target} and the next begins in {after.source}"
            report.add(node, "bad-move", message, help="each move begins where the last one ended")


def _with_rate(move: Move, node: Node, report: Report) -> Move:
    text: Node | None = node
    source = HERE.at(node)
    if isinstance(node, Mapping):
        entries = entries_of(node, MOVE, "a move", report)
        text = entries.get("rate")
        if "source" in entries:
            source = text_of(entries["source"], "`source`", report) or source
    if text is None:
        return move
    rate = value_of(text, "`rate` of a move", _worker_rate, report)
    if rate is None:
        return move
    return replace(move, rate=Figure(rate[0], "quoted", source), per_worker=rate[1])


def _worker_rate(text: str) -> tuple[float, bool]:
    plain = text.removesuffix("per worker")
    rate = parse_rate(plain.rstrip(" "))
    if not rate:
        raise UnitError("bad-number", f"`{text}` is zero", "leave it out if it is not known")
    return rate, plain != text


_READERS: dict[str, Callable[[Node, str, Report], Any]] = {
    "stages": _stages,
    "workers": _workers,
    "needs": _needs,
    "moves": _moves,
}


def check_fallbacks(data_paths: Iterable[DataPath], report: Report) -> None:
    """Check that a data path of the user's own falls back to one that is there."""
    own = tuple(data_paths)
    known = (*built_in_files(), *(path.name for path in own))
    for path in own:
        if path.falls_back_to and path.falls_back_to not in known and path.place is not None:
            message = f"no data path `{path.falls_back_to}` for `{path.name}` to fall back to"
            advice = nearest_names(path.falls_back_to, known)
            report.add(path.place, "unknown-name", message, help=advice)
