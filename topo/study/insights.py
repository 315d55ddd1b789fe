"""What follows from a comparison, in sentences; each is computed from the numbers it quotes."""

from __future__ import annotations

from typing import TYPE_CHECKING

from topo.study.words import limited_by, listed
from topo.units import format_duration, format_rate, format_size

if TYPE_CHECKING:
    from collections.abc import Iterator

    from topo.routes import Router
    from topo.study.model import PathAnswer, WorkloadAnswer

__all__ = ["insights"]

_SAME = 1e-6


def insights(router: Router, found: WorkloadAnswer) -> tuple[str, ...]:
    """Return what a careful engineer would say about the answers, most important first."""
    solved = [path for path in found.paths if path.rate is not None]
    sentences: list[str] = []
    for path in found.paths:
        if path.rate is None:
            sentences.extend(_refused(path))
    if len(solved) > 1:
        sentences.extend(_ranking(solved))
    for path in solved:
        sentences.extend(_ram(path))
        sentences.extend(_cores(path, solved))
        sentences.extend(_unlimited(router, path))
    return tuple(dict.fromkeys(sentences))


def _refused(path: PathAnswer) -> Iterator[str]:
    why = listed(reason.text for reason in path.reasons if reason.effect == "refused")
    instead = path.data_path.falls_back_to
    ending = f"; it falls back to {instead}" if instead else ""
    yield f"{path.name} is refused: {why}{ending}."


def _ranking(solved: list[PathAnswer]) -> Iterator[str]:
    """Yield how the path that spares the RAM, or else the first, compares to the others."""
    best = next((path for path in solved if not path.counts.ram_traversals), solved[0])
    for other in solved:
        if other is not best:
            yield _against(best, other)


def _against(mine: PathAnswer, other: PathAnswer) -> str:
    assert mine.rate is not None
    assert other.rate is not None
    ratio = mine.rate / other.rate
    if abs(ratio - 1) <= _SAME:
        names = {one.resource.id for one in mine.bottlenecks}
        both = [one.resource for one in other.bottlenecks if one.resource.id in names]
        at = f" at {limited_by(both)}" if both else ""
        return (
            f"{mine.name} is no faster than {other.name} here: both stop{at}, "
            f"{format_rate(mine.rate)}."
        )
    if ratio > 1:
        why = limited_by(one.resource for one in other.bottlenecks)
        by = f", which stops at {why}" if why else ""
        return f"{mine.name} is {ratio:.2f} times as fast as {other.name}{by}."
    why = limited_by(one.resource for one in mine.bottlenecks)
    by = f": it stops at {why}" if why else ""
    return (
        f"{mine.name} loses to {other.name}, {format_rate(mine.rate)} against "
        f"{format_rate(other.rate)}{by}."
    )


def _ram(path: PathAnswer) -> Iterator[str]:
    if not path.counts.ram_traversals or path.ram_floor is None or path.dram_floor is None:
        return
    yield (
        f"{path.name} takes every byte through RAM {_times(path.counts.ram_traversals)}: "
        f"{format_size(path.ram_traffic)} through buffers "
        f"(at least {format_duration(path.ram_floor)}), {format_size(path.dram_bytes)} on the "
        f"memory buses (at least {format_duration(path.dram_floor)})."
    )


def _times(count: int) -> str:
    return {1: "once", 2: "twice"}.get(count, f"{count} times")


def _cores(path: PathAnswer, solved: list[PathAnswer]) -> Iterator[str]:
    if path.cores is None or path.rate is None:
        return
    yield (
        f"{path.name} keeps about {path.cores.cores:.0f} cores busy copying "
        f"({format_rate(path.cores.rate_per_core)} a core, {path.cores.source})."
    )
    direct = next((one for one in solved if not one.counts.ram_traversals), None)
    if path.serial_rate is None or direct is None or direct.rate is None:
        return
    if direct.rate > path.serial_rate * (1 + _SAME):
        yield (
            f"With one worker a GPU that reads, copies and uploads in turn, {path.name} reaches "
            f"{format_rate(path.serial_rate)}; {direct.name} is "
            f"{direct.rate / path.serial_rate:.1f} times as fast."
        )


def _unlimited(router: Router, path: PathAnswer) -> Iterator[str]:
    storages = {
        router.topology.resources[name].device
        for name in path.unlimited
        if name in router.topology.resources
        and router.topology.resources[name].kind in ("storage-read", "storage-write")
    }
    for name in sorted(storages):
        yield f"The appliance behind {name} is not modelled: its own rate is taken as unlimited."
