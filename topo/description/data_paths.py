"""Data paths as a file writes them: an ordered list of moves and how its stages work together."""

from __future__ import annotations

import re
from collections.abc import Iterable
from dataclasses import replace
from functools import cache
from itertools import pairwise
from pathlib import Path
from typing import Final, cast, get_args

from topo.catalogue.part import Figure
from topo.catalogue.values import HERE
from topo.description import keys
from topo.description.description import ENDS, PLACES, DataPath, Move, Mover, Over
from topo.description.names import is_name
from topo.document.nodes import Mapping, Node, Report, Scalar
from topo.errors import UnitError
from topo.phrases import did_you_mean, listed, nearest_names
from topo.units import parse_rate

# Their room is below this one; which data paths there are is needed here, and no more of them.
_BUILT_IN: Final = Path(__file__).parents[1] / "datapaths" / "data"
_MOVE = re.compile(r"(\S+)\s+->\s+(\S+)\s+by\s+(\S+)(?:\s+over\s+(\S+))?")
_ORDER: Final = re.compile(r"[0-9]+-")
_MOVERS: Final = get_args(Mover)
_OVER: Final = get_args(Over)
# What people call data paths, by the name that they have here.
_HABITS: Final = {
    "direct": ("gds", "gpudirect", "gpudirect-storage", "cufile", "p2p"),
    "legacy": ("bounce", "bounce-buffer", "posix", "cpu", "host", "buffered-read"),
}
_MOVE_ADVICE = "write it like `storage -> kernel-buffer by nic`"


@cache
def built_in_files() -> dict[str, Path]:
    """Return the file of each data path that ships with topo, by the data path's name.

    A file is called as its data path; a number in front of the name orders the list:
    ``20-direct.yaml``. Files without one come last.
    """
    return {_ORDER.sub("", file.stem): file for file in sorted(_BUILT_IN.glob("*.yaml"))}


def nearest_path(name: str, names: Iterable[str]) -> str:
    """Return advice for a data path that is not there: what it was probably meant for.

    Examples
    --------
    >>> nearest_path("GDS", built_in_files())
    'did you mean `direct`?'
    """
    plain = name.lower().replace("_", "-")
    meant = next((path for path, habits in _HABITS.items() if plain in habits), name)
    return nearest_names(meant, names)


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
    mapping = keys.mapping_of(node, f"data path `{name}`", report)
    if mapping is None:
        return path
    if mapping.get("moves") is None:
        message = f"data path `{name}` has no moves"
        report.add(mapping, "missing-key", message, help="add `moves:` with one line a move")
    return vary_data_path(path, mapping, report=report)


def vary_data_path(path: DataPath, entries: Mapping, *, report: Report) -> DataPath:
    """Return the data path with what `entries` says in place of its own."""
    what = f"data path `{path.name}`"
    nodes = keys.entries_of(entries, keys.DATA_PATH, what, report)
    changes = keys.values_of(nodes, keys.DATA_PATH, report, of=what)
    if "moves" in nodes:
        moves = _moves(nodes["moves"], f"`moves` of {what}", report)
        changes |= {} if moves is None else {"moves": moves}
    return replace(path, **changes)


def read_data_paths(
    node: Node | None, report: Report
) -> tuple[dict[str, DataPath], dict[str, Mapping]]:
    """Return the file's own data paths, and what it changes in built-in ones."""
    paths: dict[str, DataPath] = {}
    overrides: dict[str, Mapping] = {}
    mapping = keys.mapping_of(node, "`data-paths:`", report)
    for key, value in mapping or ():
        if keys.is_extension(key.text):
            continue
        if key.text not in built_in_files():
            if is_name(key, report):
                paths[key.text] = read_data_path(key.text, value, report=report)
            continue
        entries = keys.mapping_of(value, f"data path `{key.text}`", report)
        if entries is not None:
            vary_data_path(DataPath(key.text, ()), entries, report=report)
            overrides[key.text] = entries
    return paths, overrides


def _moves(node: Node, what: str, report: Report) -> tuple[Move, ...] | None:
    if isinstance(node, Mapping | Scalar):
        message = f"{what} are a list, not {keys.kind_of(node)}"
        report.add(node, "wrong-shape", message, help="start each move with `- `")
        return None
    if not node.items:
        report.add(node, "bad-move", f"{what} are an empty list", help=_MOVE_ADVICE)
    moves = [move for item in node.items if (move := _move(item, report)) is not None]
    if len(moves) < len(node.items) or not moves:
        return tuple(moves)
    if reason := _wrong_ends(moves[0].source, moves[-1].target):
        report.add(node, "bad-move", reason, help="write it for a read; a write runs it backwards")
    for before, after in pairwise(moves):
        if before.target != after.source:
            message = f"one move ends in {before.target} and the next begins in {after.source}"
            report.add(node, "bad-move", message, help="each move begins where the last one ended")
    if sum(move.over == "network" for move in moves) > 1:
        message = "two moves go over the network: a data path joins two servers, with none between"
        report.add(node, "bad-move", message, help="say `over network` at one move")
    return tuple(moves)


def _move(node: Node, report: Report) -> Move | None:
    """Read a move's text, or a mapping of that text to the move's rate."""
    text: Node = node
    rate_node: Node | None = None
    if isinstance(node, Mapping) and len(node.entries) == 1:
        text, rate_node = node.entries[0]
    if not isinstance(text, Scalar):
        report.add(text, "bad-move", f"{keys.kind_of(text)} is not a move", help=_MOVE_ADVICE)
        return None
    try:
        move = _parse_move(text.text)
    except UnitError as error:
        report.unit(text, error)
        return None
    source = HERE.at(rate_node) if rate_node is not None else ""
    if isinstance(rate_node, Mapping):
        entries = keys.entries_of(rate_node, keys.MOVE, "a move", report)
        rate_node = entries.get("rate")
        source = keys.text_of(entries.get("source"), "`source`", report) or source
    rate = keys.value_of(rate_node, "`rate` of a move", _worker_rate, report)
    if rate is None:
        return move
    return replace(move, rate=Figure(rate[0], "quoted", source), per_worker=rate[1])


def _parse_move(text: str) -> Move:
    match = _MOVE.fullmatch(text)
    if not match:
        raise UnitError("bad-move", f"`{text}` is not a move", _MOVE_ADVICE)
    source, target, mover, over = match.groups()
    for place in (source, target):
        if place not in PLACES and not place.endswith("-buffer"):
            near = did_you_mean(place, PLACES)
            advice = near or f"{', '.join(PLACES)}, or any name-buffer"
            raise UnitError("bad-move", f"data cannot rest in `{place}`", advice)
    if mover not in _MOVERS:
        message = f"a mover is {listed(_MOVERS, 'or')}, not `{mover}`"
        raise UnitError("bad-move", message, did_you_mean(mover, _MOVERS))
    if over is not None and over not in _OVER:
        message = f"a move goes over {listed(_OVER, 'or')}, not `{over}`"
        raise UnitError("bad-move", message, did_you_mean(over, _OVER))
    if reason := _out_of_reach(source, target, mover, over):
        raise UnitError("bad-move", reason)
    return Move(source, target, cast("Mover", mover), over=cast("Over | None", over))


def _wrong_ends(source: str, target: str) -> str:
    """Return why no data path goes from one place to another: towards the GPU, between ends."""
    order = list(ENDS)
    if (source, target) == ("peer", "gpu"):
        return ""
    if source not in order or target not in order:
        ends = listed(order, "or")
        return f"a data path joins {ends} with another, this one goes from {source} to {target}"
    if order.index(source) > order.index(target):
        return f"a data path is written towards {source}, this one goes from {source} to {target}"
    return ""


def _out_of_reach(source: str, target: str, mover: str, over: str | None) -> str:
    """Return why an engine cannot do a move: cores reach RAM only, drives and NICs storage."""
    ends = (source, target)
    in_ram = [end == "ram" or end.endswith("-buffer") for end in ends]
    if mover == "core" and not all(in_ram):
        return f"a core copies between RAM buffers, not {source} to {target}"
    if mover == "drive" and "storage" not in ends:
        return "a drive moves data out of storage or into it, and neither end is that"
    if over == "network":
        return _out_of_network(ends, mover)
    if mover == "nic" and not {"storage", "peer", "card"} & set(ends):
        return "a nic moves data between storage, a card or a peer, and memory; neither end is that"
    if over is not None and any(in_ram):
        return f"`over {over}` is for a move between two GPUs"
    if mover == "gpu" and (all(in_ram) or {"storage", "card"} & set(ends)):
        return "a GPU's copy engine has its GPU at one end and RAM or a GPU at the other"
    return ""


def _out_of_network(ends: tuple[str, str], mover: str) -> str:
    """Return why a move cannot go over a network, from one server's memory to another's."""
    if mover != "nic":
        return f"a nic moves data over the network, not a {mover}"
    if {"storage", "card", "staging-gpu"} & set(ends):
        reached = "storage and cards are reached over it as it is"
        return f"`over network` is from one server's RAM or GPU to another's; {reached}"
    return ""


def _worker_rate(text: str) -> tuple[float, bool]:
    plain = text.removesuffix("per worker")
    rate = parse_rate(plain.rstrip(" "))
    if not rate:
        raise UnitError("bad-number", f"`{text}` is zero", "leave it out if it is not known")
    return rate, plain != text


def check_fallbacks(data_paths: Iterable[DataPath], report: Report) -> None:
    """Check that what a data path of the user's own falls back to, or goes on by, is there."""
    file_paths = tuple(data_paths)
    names = (*built_in_files(), *(path.name for path in file_paths))
    for path in file_paths:
        named = (
            (path.falls_back_to, "to fall back to"),
            (path.to_other_servers, "between servers"),
        )
        for name, what_for in named:
            if name and name not in names and path.place is not None:
                message = f"no data path `{name}` for `{path.name}` {what_for}"
                advice = nearest_path(name, names)
                report.add(path.place, "unknown-name", message, help=advice)
