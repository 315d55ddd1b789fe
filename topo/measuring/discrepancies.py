"""Why a measured rate may differ from what was expected of it: findings with likely reasons."""

from __future__ import annotations

import math
from typing import TYPE_CHECKING, Final

from topo.errors import Finding
from topo.phrases import and_more, listed
from topo.units import format_rate, format_ratio
from topo.views.sentences import limited_by, measured_ends

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator, Sequence

    from topo.description.description import Device
    from topo.study.prediction import Reading
    from topo.topology.topology import Topology


_RAM: Final = ("memory", "cxl-memory")
_CARDS: Final = ("nic", "dpu")
_STORAGE: Final = ("storage", "nvme", "hba")
_NEAR: Final = 0.12  # of a half or a quarter that still looks like one
_TWICE: Final = 1.7  # times achievable, from where both directions may have been added
_FASTER: Final = 1.05  # times, before a way is called faster
_SHOWN: Final = 3  # pairs that a finding names
_PEER_CLASSES: Final = ("PHB", "NODE", "SYS")
_DOUBTED: Final = ("above", "below", "impossible")


def discrepancies(topology: Topology, readings: Iterable[Reading]) -> tuple[Finding, ...]:
    """Return one finding for all readings that differ in the same way, for the same reasons.

    Parameters
    ----------
    topology
        The machine.
    readings
        What `read_samples` gave.
    """
    groups: dict[tuple[str, str, tuple[str, ...]], list[Reading]] = {}
    readings = tuple(readings)
    for reading in readings:
        if reading.judged in _DOUBTED:
            key = (reading.judged, reading.sample.test, _reasons(topology, reading))
            groups.setdefault(key, []).append(reading)
    found = [_finding(*key, same) for key, same in groups.items()]
    return (*found, *_slower_than_bounce(readings))


def _slower_than_bounce(readings: Iterable[Reading]) -> Iterator[Finding]:
    """Yield a finding for storage and GPU between which the way through RAM was faster."""
    by_ends: dict[tuple[object, ...], dict[str, Reading]] = {}
    for one in readings:
        if one.sample.via:
            by_ends.setdefault((one.sample.source, one.sample.target), {})[one.sample.via] = one
    for paths in by_ends.values():
        best = max(paths.values(), key=lambda one: one.sample.rate)
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


def _finding(judged: str, test: str, reasons: tuple[str, ...], found: Sequence[Reading]) -> Finding:
    where = and_more([measured_ends(reading.sample) for reading in found], _SHOWN)
    code = "measured-above" if judged == "above" else "measured-below"
    if judged == "impossible":
        code = "measured-impossible"
    return Finding(
        code,
        f"{where}: {_how(judged, found)} ({test})",
        severity="warning",
        help=f"likely: {'; or '.join(reasons)}" if reasons else "",
    )


def _how(judged: str, found: Sequence[Reading]) -> str:
    rates = sorted(one.sample.rate for one in found)
    span = format_rate(rates[0])
    if format_rate(rates[-1]) != span:
        span = f"{span} to {format_rate(rates[-1])}"
    first = found[0].forecast
    if judged == "impossible":
        return f"{span} were measured where {first.refused}"
    limit = f", limited by {limited_by([first.limit])}" if first.limit else ""
    if judged == "above":
        expected = format_rate(first.theoretical or 0.0)
        return f"{span} are more than the {expected} that theory allows{limit}"
    ratio = format_ratio(min(one.ratio or 0.0 for one in found))
    return f"{span} are {ratio} of the {format_rate(first.achievable or 0.0)} achievable{limit}"


# --- reasons --------------------------------------------------------------------------------------


def _reasons(topology: Topology, reading: Reading) -> tuple[str, ...]:
    if reading.judged == "above":
        return tuple(_above(topology, reading))
    if reading.judged == "below":
        return tuple(_below(topology, reading))
    return ("the file says `p2p: no`, or lacks a link, where the machine has one",)


def _kinds(topology: Topology, reading: Reading) -> set[str]:
    return {topology[name].kind for name in (*reading.sample.source, *reading.sample.target)}


def _above(topology: Topology, reading: Reading) -> Iterator[str]:
    kinds = _kinds(topology, reading)
    if kinds & set(_STORAGE):
        yield "a cache answered, in the host or in the storage"
    if (reading.ratio or 0.0) > _TWICE and not reading.sample.both:
        yield "both directions were added up"
    yield "the file's generation or width is too low (a link at rest shows 2.5 GT/s)"
    if "gpu" in kinds:
        yield "the GPUs are numbered otherwise (--gpus)"


def _below(topology: Topology, reading: Reading) -> Iterator[str]:
    forecast, kinds = reading.forecast, _kinds(topology, reading)
    if reading.sample.busy or reading.sample.both:
        yield "two directions at once reach less than twice one: requests and answers share links"
        return
    yield from _narrow(reading)
    if forecast.redirected:
        yield f"ACS on {forecast.redirected} sends peer-to-peer traffic up to the root"
    elif _peers(topology, reading):
        yield from _peer_reasons(topology, reading)
    if kinds & set(_RAM) and "gpu" in kinds:
        yield "memory that was pageable, or on another NUMA node"
    if kinds & set(_STORAGE):
        yield from _storage_reasons(topology, reading)
    if kinds & set(_CARDS) and not kinds & set(_STORAGE):
        yield "one queue pair or a small MTU, or the other side's own limits"


def _narrow(reading: Reading) -> Iterator[str]:
    """Yield the link that trained at less, where the ratio looks like it."""
    limit, ratio = reading.forecast.limit, reading.ratio or 0.0
    if limit is None or "pcie" not in limit.limited_by.lower() + limit.kind:
        return
    for part, words in ((0.5, "one generation lower or half as wide"), (0.25, "a quarter")):
        if abs(ratio / part - 1) <= _NEAR:
            yield (
                f"{limit.name} trained {words}: look at LnkSta in `lspci -vvv` while data flows"
                if part == 0.5  # noqa: PLR2004
                else f"{limit.name} trained at {words} of its generation and width: "
                "look at LnkSta in `lspci -vvv` while data flows"
            )


def _peers(topology: Topology, reading: Reading) -> bool:
    """Whether the data went from device to device over PCIe."""
    if reading.sample.via not in ("", "direct", "p2pdma", "nic-direct"):
        return False
    kinds = _kinds(topology, reading)
    fabric = reading.forecast.locality.startswith(("NV", "XGMI"))
    return "gpu" in kinds and not kinds & set(_RAM) and not fabric


def _peer_reasons(topology: Topology, reading: Reading) -> Iterator[str]:
    near = reading.forecast.locality
    if near == "SYS":
        yield "peer-to-peer across the link between sockets (SYS) is slower than it"
    elif near in _PEER_CLASSES:
        yield f"peer-to-peer through a CPU's host bridge ({near}) is slower than the links"
    for switch in _switches(topology, reading):
        if switch.part.flag("acs") is None:
            yield f"ACS on {switch.name}, which the file does not tell, sends it up to the root"


def _switches(topology: Topology, reading: Reading) -> tuple[Device, ...]:
    names = dict.fromkeys(step.target for step in reading.forecast.steps)
    devices = (topology[name] for name in names)
    return tuple(one for one in devices if one.kind == "pcie-switch")


def _has_own_rate(device: Device) -> bool:
    figures = (device.part.figure(key) for key in ("read", "write"))
    return all(one and one.value is not None and math.isfinite(one.value) for one in figures)


def _storage_reasons(topology: Topology, reading: Reading) -> Iterator[str]:
    if reading.sample.via == "direct":
        yield "cuFile's compatibility mode: /proc/driver/nvidia-fs/stats proves the direct path"
    drives = [
        name
        for name in (*reading.sample.source, *reading.sample.target)
        if topology[name].kind in _STORAGE and not _has_own_rate(topology[name])
    ]
    if drives:
        yield f"{listed(drives, most=4)} itself, whose `read:` and `write:` the file does not limit"
    yield "too few jobs or threads to fill it"
