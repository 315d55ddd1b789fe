"""What follows from a comparison, in sentences; each is computed from the numbers it quotes."""

from __future__ import annotations

import math
from typing import TYPE_CHECKING

from topo.study.words import cited, is_plural, limited_by, listed
from topo.units import format_duration, format_rate, format_size

if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence

    from topo.routes.router import Router
    from topo.study.answers import PathAnswer, WorkloadAnswer
    from topo.topology.resources import Resource
    from topo.topology.topology import Topology


_SAME = 1e-6


def insights(router: Router, found: WorkloadAnswer) -> tuple[str, ...]:
    """Return what a careful engineer would say about the answers, most important first."""
    solved = [path for path in found.paths if path.rate is not None]
    sentences: list[str] = []
    for path in found.paths:
        sentences.extend(
            [refusal(router.topology, path)]
            if path.rate is None
            else _unsure(router.topology, path)
        )
    if len(solved) > 1:
        sentences.extend(_ranking(solved))
    for path in solved:
        sentences.extend(_ram(path))
        sentences.extend(_cores(path, solved))
        sentences.extend(_not_modelled(router, path))
    return tuple(dict.fromkeys(sentences))


def refusal(topology: Topology, path: PathAnswer) -> str:
    """Return why a path is refused and what happens instead, as a sentence."""
    reasons = [reason for reason in path.reasons if reason.effect == "refused"]
    why = listed(cited(topology, reason) for reason in reasons)
    others = dict.fromkeys(reason.instead for reason in reasons)
    if all(others):
        return f"{path.name} becomes {listed(others)}: {why}."
    instead = path.data_path.falls_back_to
    ending = f"; it falls back to {instead}" if instead else ""
    if instead == "compat" and topology.settings.compat_mode == "off":
        ending = "; with its compatibility mode off cuFile returns an error"
    return f"{path.name} is refused: {why}{ending}."


def _unsure(topology: Topology, path: PathAnswer) -> Iterator[str]:
    if path.verdict == "unknown":
        reasons = (reason for reason in path.reasons if reason.effect == "unknown")
        why = listed(cited(topology, reason) for reason in reasons)
        yield f"Whether {path.name} works here is not known: {why}."


def _ranking(solved: list[PathAnswer]) -> Iterator[str]:
    """Yield how the path that spares the RAM, or else the first, compares to the others."""
    best = next((path for path in solved if not path.counts.ram_traversals), solved[0])
    for other in solved:
        if other is not best:
            unsure = best.at_most or other.at_most
            yield "By the known capacities alone, " * unsure + _against(best, other)
            yield from _as_measured(best, other)


def _against(mine: PathAnswer, other: PathAnswer) -> str:
    assert mine.rate is not None
    assert other.rate is not None
    ratio = mine.rate / other.rate
    if abs(ratio - 1) <= _SAME:
        return _no_faster(mine, other, format_rate(mine.rate))
    if ratio > 1:
        why = _stops(other)
        by = f", which stops at {why}" if why else ""
        return f"{mine.name} is {ratio:.2f} times as fast as {other.name}{by}."
    why = _stops(mine)
    by = f": it stops at {why}" if why else ""
    return (
        f"{mine.name} loses to {other.name}, {format_rate(mine.rate)} against "
        f"{format_rate(other.rate)}{by}."
    )


def _as_measured(mine: PathAnswer, other: PathAnswer) -> Iterator[str]:
    """Yield who wins by what was measured, where that is not who wins by the figures asked for."""
    matrices = [path.matrix for path in (mine, other) if path.matrix]
    if not any(one.capacity.measured for matrix in matrices for one in matrix.resources):
        return
    rates = [path.by_basis["measured"] for path in (mine, other)]
    order = _order(*rates)
    if order != _order(mine.rate or 0.0, other.rate or 0.0):
        wins = {1: "beats", 0: "is no faster than", -1: "loses to"}[order]
        shown = " against ".join(format_rate(rate) for rate in rates)
        yield f"By what was measured, {mine.name} {wins} {other.name}: {shown} (--at measured)."


def _order(one: float, other: float) -> int:
    """Return which of two rates is the higher: 1, -1, or 0 when they are the same."""
    return 0 if math.isclose(one, other, rel_tol=_SAME) else 1 if one > other else -1


def _no_faster(mine: PathAnswer, other: PathAnswer, rate: str) -> str:
    """Say what two equally fast paths stop at, and what else is full on the other one."""
    names = {one.resource.id for one in mine.bottlenecks}
    both = [one.resource for one in other.bottlenecks if one.resource.id in names]
    rest = [one.resource for one in other.bottlenecks if one.resource.id not in names]
    end = f"both stop at {limited_by(both)}," if both else "both reach"
    also = f"; on {other.name} {limited_by(rest)} {_be(rest)} full as well" if both and rest else ""
    return f"{mine.name} is no faster than {other.name} here: {end} {rate}{also}."


def _stops(path: PathAnswer) -> str:
    return limited_by(one.resource for one in path.bottlenecks) or listed(path.own_limits)


def _be(resources: Sequence[Resource]) -> str:
    return "are" if is_plural(resources) else "is"


def _is(things: Sequence[object]) -> str:
    return "is" if len(things) == 1 else "are"


def _ram(path: PathAnswer) -> Iterator[str]:
    if not path.counts.ram_traversals:
        return
    start = f"{path.name} takes every byte through RAM {_times(path.counts.ram_traversals)}"
    if path.ram_traffic is None or path.dram_bytes is None:
        yield f"{start}: {path.counts.dram_bytes} bytes on the memory buses per payload byte."
        return
    yield (
        f"{start}: {format_size(path.ram_traffic)} through buffers{_floor(path.ram_floor)}, "
        f"{format_size(path.dram_bytes)} on the memory buses{_floor(path.dram_floor)}."
    )


def _floor(seconds: float | None) -> str:
    return f" (at least {format_duration(seconds)})" if seconds else ""


def _times(count: int) -> str:
    return {1: "once", 2: "twice"}.get(count, f"{count} times")


def _cores(path: PathAnswer, solved: list[PathAnswer]) -> Iterator[str]:
    if path.cores is None or path.rate is None:
        return
    yield (
        f"{path.name} keeps about {_count_of_cores(path.cores.cores)} busy copying "
        f"({format_rate(path.cores.rate_per_core)} a core, {_sort(path.cores.source)})."
    )
    direct = next((one for one in solved if not one.counts.ram_traversals), None)
    if path.serial_rate is None or direct is None or direct.rate is None:
        return
    if direct.rate > path.serial_rate * (1 + _SAME):
        yield (
            f"With one worker a GPU that does one stage after the other, {path.name} reaches "
            f"{format_rate(path.serial_rate)}; {direct.name} is "
            f"{direct.rate / path.serial_rate:.1f} times as fast."
        )


def _sort(source: str) -> str:
    """Return what sort of figure it is, without the whole source: `topo show` has that."""
    kind = source.partition(":")[0]
    return {"guess": "a guess", "formula": "computed"}.get(kind, kind)


def _count_of_cores(count: float) -> str:
    text = f"{count:.0f}" if count >= 10 else f"{count:.2g}"  # noqa: PLR2004
    return "1 core" if text == "1" else f"{text} cores"


def _not_modelled(router: Router, path: PathAnswer) -> Iterator[str]:
    """Yield what the user took as unlimited: appliances, then anything else."""
    resources = router.topology.resources
    found = [resources[name] for name in path.unlimited if name in resources]
    sides = ("storage-read", "storage-write")
    storages = list(dict.fromkeys(one.device for one in found if one.kind in sides))
    others = list(dict.fromkeys(one.name for one in found if one.kind not in sides))
    if storages:
        one = len(storages) == 1
        what = "its own rate is" if one else "their own rates are"
        yield f"{listed(storages)} {_is(storages)} not modelled: {what} taken as unlimited."
    if others:
        yield f"Taken as unlimited: {listed(others)}."
