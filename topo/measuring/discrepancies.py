"""Why a measured rate may differ from what was expected of it: findings with likely reasons."""

from __future__ import annotations

import math
from collections.abc import Iterable, Iterator, Sequence
from typing import TYPE_CHECKING, Final

from topo.catalogue.kinds import CARDS, MEMORIES, STORAGE
from topo.errors import Finding
from topo.phrases import and_more, listed
from topo.units import format_rate, format_ratio
from topo.views.sentences import limited_by, measured_ends

if TYPE_CHECKING:
    from topo.study.prediction import Reading
    from topo.topology.topology import Topology

_NEAR: Final = 0.12  # of a half or a quarter that still looks like one
_TWICE: Final = 1.7  # times achievable, from where both directions may have been added
_FASTER: Final = 1.05  # times, before a path is called faster
_SHOWN: Final = 3  # pairs that a finding names
_PEER_CLASSES: Final = ("PHB", "NODE", "SYS")
_DOUBTED: Final = ("above", "below", "impossible")


def discrepancies(topology: Topology, readings: Sequence[Reading]) -> tuple[Finding, ...]:
    """Return one finding for all readings that differ in the same way, for the same reasons.

    Parameters
    ----------
    topology
        The machine.
    readings
        What `read_samples` gave.
    """
    groups: dict[tuple[str, str, tuple[str, ...]], list[Reading]] = {}
    for reading in readings:
        if reading.judged in _DOUBTED:
            causes = ["the file says `p2p: no`, or lacks a link, where the machine has one"]
            if reading.judged == "above":
                causes = list(_reasons_above(topology, reading))
            elif reading.judged == "below":
                causes = list(_reasons_below(topology, reading))
            key = (reading.judged, reading.sample.test, tuple(causes))
            groups.setdefault(key, []).append(reading)
    findings: list[Finding] = []
    for (judged, test, reasons), group in groups.items():
        where = and_more([measured_ends(reading.sample) for reading in group], _SHOWN)
        code = "measured-above" if judged == "above" else "measured-below"
        if judged == "impossible":
            code = "measured-impossible"
        message = f"{where}: {_difference(judged, group)} ({test})"
        advice = f"likely: {'; or '.join(reasons)}" if reasons else ""
        findings.append(Finding(code, message, severity="warning", help=advice))
    return (*findings, *_slower_than_bounce(readings))


def _slower_than_bounce(readings: Iterable[Reading]) -> Iterator[Finding]:
    """Yield a finding for storage and GPU between which the path through RAM was faster."""
    by_ends: dict[tuple[object, ...], dict[str, Reading]] = {}
    for reading in readings:
        if reading.sample.via:
            ends = (reading.sample.source, reading.sample.target)
            by_ends.setdefault(ends, {})[reading.sample.via] = reading
    for paths in by_ends.values():
        best = max(paths.values(), key=lambda reading: reading.sample.rate)
        direct = paths.get("direct")
        if direct is not None and direct.sample.rate < best.sample.rate / _FASTER:
            yield Finding(
                "direct-measured-slower",
                f"{measured_ends(direct.sample)}: {format_rate(direct.sample.rate)} by direct, and "
                f"{format_rate(best.sample.rate)} through RAM by {best.sample.via}",
                severity="warning",
                help="a direct path over the root or between sockets can lose: use a nearer card "
                "or GPU (topo matrix --rules gds), or the way through RAM",
            )


def _difference(judged: str, readings: Sequence[Reading]) -> str:
    """Say what was measured, and what was expected instead."""
    rates = sorted(reading.sample.rate for reading in readings)
    span = format_rate(rates[0])
    if format_rate(rates[-1]) != span:
        span = f"{span} to {format_rate(rates[-1])}"
    forecast = readings[0].forecast
    if judged == "impossible":
        return f"{span} were measured where {forecast.refused}"
    limit = f", limited by {limited_by([forecast.limit])}" if forecast.limit else ""
    if judged == "above":
        expected = format_rate(forecast.theoretical or 0.0)
        return f"{span} are more than the {expected} that theory allows{limit}"
    ratio = format_ratio(min(reading.ratio or 0.0 for reading in readings))
    return f"{span} are {ratio} of the {format_rate(forecast.achievable or 0.0)} achievable{limit}"


# --- reasons --------------------------------------------------------------------------------------


def _kinds(topology: Topology, reading: Reading) -> set[str]:
    return {topology[name].kind for name in (*reading.sample.source, *reading.sample.target)}


def _reasons_above(topology: Topology, reading: Reading) -> Iterator[str]:
    kinds = _kinds(topology, reading)
    if kinds & set(STORAGE):
        yield "a cache answered, in the host or in the storage"
    if (reading.ratio or 0.0) > _TWICE and not reading.sample.both:
        yield "both directions were added up"
    yield "the file's generation or width is too low (a link at rest shows 2.5 GT/s)"
    if "gpu" in kinds:
        yield "the GPUs are numbered otherwise (--gpus)"


def _reasons_below(topology: Topology, reading: Reading) -> Iterator[str]:
    forecast, sample, kinds = reading.forecast, reading.sample, _kinds(topology, reading)
    if sample.busy or sample.both:
        yield "two directions at once reach less than twice one: requests and answers share links"
        return
    limit, ratio = forecast.limit, reading.ratio or 0.0
    if limit is not None and "pcie" in limit.limited_by.lower() + limit.kind:
        # A link that trained at less, where the ratio looks like it.
        look = "look at LnkSta in `lspci -vvv` while data flows"
        if abs(ratio / 0.5 - 1) <= _NEAR:
            yield f"{limit.name} trained one generation lower or half as wide: {look}"
        if abs(ratio / 0.25 - 1) <= _NEAR:
            yield f"{limit.name} trained at a quarter of its generation and width: {look}"
    over_pcie = sample.via in ("", "direct", "p2pdma", "nic-direct")  # from device to device
    over_fabric = forecast.locality.startswith(("NV", "XGMI"))
    if forecast.redirected:
        yield f"ACS on {forecast.redirected} sends peer-to-peer traffic up to the root"
    elif over_pcie and "gpu" in kinds and not kinds & set(MEMORIES) and not over_fabric:
        yield from _peer_reasons(topology, reading)
    if kinds & set(MEMORIES) and "gpu" in kinds:
        yield "memory that was pageable, or on another NUMA node"
    if kinds & set(STORAGE):
        yield from _storage_reasons(topology, reading)
    if kinds & set(CARDS) and not kinds & set(STORAGE):
        yield "one queue pair or a small MTU, or the other side's own limits"


def _peer_reasons(topology: Topology, reading: Reading) -> Iterator[str]:
    locality = reading.forecast.locality
    if locality == "SYS":
        yield "peer-to-peer across the link between sockets (SYS) is slower than it"
    elif locality in _PEER_CLASSES:
        yield f"peer-to-peer through a CPU's host bridge ({locality}) is slower than the links"
    for name in dict.fromkeys(step.target for step in reading.forecast.steps):
        if topology[name].kind == "pcie-switch" and topology[name].part.flag("acs") is None:
            yield f"ACS on {name}, which the file does not tell, sends it up to the root"


def _storage_reasons(topology: Topology, reading: Reading) -> Iterator[str]:
    if reading.sample.via == "direct":
        yield "cuFile's compatibility mode: /proc/driver/nvidia-fs/stats proves the direct path"
    unlimited = []
    for name in (*reading.sample.source, *reading.sample.target):
        part = topology[name].part
        rates = [figure.value for key in ("read", "write") if (figure := part.figure(key))]
        stated = len(rates) > 1 and all(rate is not None and math.isfinite(rate) for rate in rates)
        if topology[name].is_storage and not stated:
            unlimited.append(name)
    if unlimited:
        names = listed(unlimited, most=4)
        yield f"{names} itself, whose `read:` and `write:` the file does not limit"
    yield "too few jobs or threads to fill it"
