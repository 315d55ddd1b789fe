"""Measured rates of other programs, laid over a topology.

A reader turns a result file into `Results`; the mapper gives its ends the topology's names; each
rate is set beside what topo expects, and those that a pair or a link stands for become lines of
`measured:`.
"""

from __future__ import annotations

import math
import os
from collections import Counter
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import replace
from typing import Final

from topo.catalogue.kinds import CARDS, MEMORIES, STORAGE
from topo.description.locating import read_file
from topo.description.measured_edit import MeasuredLine, with_measured
from topo.errors import Finding
from topo.flows.demands import core_copy_rate
from topo.measuring.collectives import collective_readings
from topo.measuring.concurrent import concurrent_readings
from topo.measuring.mapping import Mapper, measured_lines
from topo.measuring.result_files import read_results
from topo.measuring.results import Results
from topo.phrases import and_more, counted, listed
from topo.records import dataclass
from topo.study.prediction import Predictor, Reading, Sample, read_samples
from topo.topology.locality import socket_of
from topo.topology.topology import Topology
from topo.units import format_rate, format_ratio
from topo.views.resources import limited_by
from topo.views.sentences import measured_ends

_OTHER = "another result for the same ends is used: copy engine before kernel, then the fastest"


@dataclass(frozen=True, slots=True)
class Measured:
    """A result file, laid over a topology.

    Parameters
    ----------
    kind
        The program: one of `topo.measuring.result_files.READERS`, or several: ``fio, gdsio``.
    readings
        Every rate of the file beside what was expected, with why it is not written where it is
        not.
    lines
        What belongs into the topology file.
    unmapped
        What of the file has no place on this machine, in sentences.
    findings
        Differences that the medium does not explain, and what was assumed.
    """

    kind: str
    topology: Topology
    readings: tuple[Reading, ...]
    lines: tuple[MeasuredLine, ...]
    unmapped: tuple[str, ...]
    findings: tuple[Finding, ...]

    def over(self, text: str, *, name: str = "<text>") -> str:
        """Return a topology's text with the measured rates in it, everything else as it was."""
        return with_measured(text, self.lines, name=name)


def measure(
    topology: Topology,
    result: str | os.PathLike[str] | bytes,
    *,
    name: str = "",
    kind: str | None = None,
    gpus: Sequence[str] = (),
    nic: str = "",
    storage: Sequence[str] = (),
    date: str = "",
) -> Measured:
    """Lay what nvbandwidth, fio, gdsio, perftest, nccl-tests and others measured over a topology.

    Parameters
    ----------
    topology
        The machine that was measured.
    result
        The path of what the program printed, or its bytes.
    name
        What messages call the result; its path by default.
    kind
        The program, one of `topo.measuring.result_files.READERS`; all that the content shows when
        `None`.
    gpus
        The file's GPUs in its order; by PCI address when empty, as the driver numbers them.
    nic, storage
        The card and the storage that were measured, where the file does not name them.
    date
        When, if the file does not tell.

    Raises
    ------
    ExchangeError
        If the file is of another kind or breaks off.
    UnknownNameError
        If a device is not there, or of another kind.

    Examples
    --------
    >>> import topo
    >>> text = b'{"nvbandwidth": {"testcases": [{"name": "host_to_device_memcpy_ce",'
    >>> text += b'"status": "Passed", "bandwidth_matrix": [["55.6"]]}]}}'
    >>> measured = topo.measure(topo.load("dgx-h100"), text, gpus=["gpu0"])
    >>> measured.lines[0].text
    '- ram0 -> gpu0: {rate: 55.6 GB/s, source: "nvbandwidth host_to_device_memcpy_ce"}'
    """
    data = result if isinstance(result, bytes) else read_file(os.fspath(result))
    name = name or ("the result" if isinstance(result, bytes) else os.fspath(result))
    results = read_results(kind, data, name)
    return laid_over(topology, results, gpus=gpus, nic=nic, storage=storage, date=date)


def laid_over(
    topology: Topology,
    results: Results | Sequence[Results],
    *,
    gpus: Sequence[str] = (),
    nic: str = "",
    storage: Sequence[str] = (),
    date: str = "",
) -> Measured:
    """Lay results over the topology of the machine that was measured.

    Parameters are those of `measure`; `results` are what readers or the probe of a host gave, each
    of one program.

    Raises
    ------
    ExchangeError, UnknownNameError
        As `measure`.
    """
    outputs = (results,) if isinstance(results, Results) else tuple(results)
    predictor = Predictor(topology)
    mappers = [
        Mapper(topology, output, predictor, gpus=gpus, nic=nic, storage=storage)
        for output in outputs
    ]
    readings: list[Reading] = []
    lines: dict[tuple[str, str], MeasuredLine] = {}  # of several for one pair of ends the last
    for reading in read_samples(topology, _samples(outputs, mappers)):
        sample = reading.sample
        if not sample.unwritten:
            written = measured_lines(topology, predictor, sample, date=date)
            lines |= {(line.source, line.target): line for line in written}
            if not written:
                sample = replace(sample, unwritten="no single pair or link stands for it")
        readings.append(replace(reading, sample=sample))
    unmapped: list[str] = []
    for output, mapper in zip(outputs, mappers, strict=True):
        together, nowhere = collective_readings(topology, output.collectives, mapper.chosen_gpus)
        at_once, not_here = concurrent_readings(topology, output.concurrent, mapper)
        readings += [*together, *at_once]
        unmapped += [*mapper.unmapped, *nowhere, *not_here]
    findings = (
        *_several_programs(outputs),
        *dict.fromkeys(finding for mapper in mappers for finding in mapper.findings),
        *discrepancies(topology, readings),
        *_core_copies(topology, readings),
        *_notes(topology, tuple(lines.values()), unmapped),
    )
    return Measured(
        ", ".join(dict.fromkeys(output.kind for output in outputs)),
        topology,
        tuple(readings),
        tuple(lines.values()),
        tuple(unmapped),
        findings,
    )


def _several_programs(outputs: Sequence[Results]) -> Iterator[Finding]:
    """Yield what each of several programs gave."""
    counts: Counter[str] = Counter()
    for output in outputs:
        counts[output.kind] += len(output.results) + len(output.collectives)
    if len(counts) > 1:
        words = listed([f"{kind} ({counted(count, 'rate')})" for kind, count in counts.items()])
        help = "one of them alone: `--kind PROGRAM`"
        yield Finding("several-programs", f"the text has {words}", severity="note", help=help)


def _samples(outputs: Sequence[Results], mappers: Sequence[Mapper]) -> tuple[Sample, ...]:
    """Return the samples in the file's order; of equal ends one is to be written."""
    pairs = [
        (result, sample)
        for output, mapper in zip(outputs, mappers, strict=True)
        for result in output.results
        if (sample := mapper.sample(result))
    ]
    ranks: dict[tuple[object, ...], tuple[int, float]] = {}
    best: dict[tuple[object, ...], Sample] = {}
    for result, sample in pairs:
        ends, rank = (sample.source, sample.target), (result.rank, result.rate)
        if not sample.unwritten and (ends not in ranks or rank > ranks[ends]):
            ranks[ends], best[ends] = rank, sample
    return tuple(
        sample
        if sample.unwritten or best[sample.source, sample.target] is sample
        else replace(sample, unwritten=_OTHER)
        for _, sample in pairs
    )


def _core_copies(topology: Topology, readings: Sequence[Reading]) -> Iterator[Finding]:
    """Yield what one core copies, where it was measured: a figure of its CPU."""
    for reading in readings:
        sample = reading.sample
        socket = socket_of(topology, sample.source[0])
        if sample.workers == 1 and sample.source == sample.target and socket:
            yield Finding(
                "core-copy-measured",
                f"one core of {socket} copies {format_rate(sample.rate)}; "
                f"{format_rate(core_copy_rate(topology, socket))} were taken",
                severity="note",
                help=f"write `core-copy: {format_rate(sample.rate)}` at {socket}",
            )


def _notes(
    topology: Topology, lines: Sequence[MeasuredLine], unmapped: Sequence[str]
) -> Iterator[Finding]:
    """Yield what the file had measured before as another rate, what is not mapped, not dated."""
    before = {(old.source, old.target): old for old in topology.description.measurements}
    for line in lines:
        old = before.get((line.source, line.target))
        if old is not None and old.rate.value is not None and old.rate.value != line.rate:
            message = (
                f"{line.source} -> {line.target}: {format_rate(line.rate)} in place of "
                f"{format_rate(old.rate.value)} ({old.rate.source})"
            )
            yield Finding("measured-again", message, severity="note", place=old.place)
    if unmapped:
        message = f"without a place on this machine: {counted(len(unmapped), 'result')}"
        yield Finding("not-mapped", message, severity="note", notes=tuple(unmapped))
    if lines and not lines[0].date:
        message = "the result does not tell when it was measured"
        yield Finding("no-date", message, severity="note", help="say it with --date 2026-11-29")


_NEAR: Final = 0.12  # of a half or a quarter that still looks like one
_TWICE: Final = 1.7  # times achievable, from where both directions may have been added
_OVER: Final = 1.02  # times achievable, from where a rate is said to be over it
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
    return (*findings, *_over_achievable(readings), *_slower_than_bounce(readings))


def _over_achievable(readings: Iterable[Reading]) -> Iterator[Finding]:
    """Yield a finding for rates between what is achievable and what theory allows."""
    over = [
        reading
        for reading in readings
        if reading.judged == "fits" and (reading.ratio or 0.0) > _OVER
    ]
    if over:
        most = max(over, key=lambda reading: reading.ratio or 0.0)
        where = and_more([measured_ends(reading.sample) for reading in over], _SHOWN)
        yield Finding(
            "measured-over-achievable",
            f"{where}: more than achievable and no more than theory allows, up to "
            f"{format_ratio(most.ratio or 0.0)} of achievable",
            severity="note",
            help="nothing is wrong: achievable is an estimate, by what a medium usually reaches or "
            "by a published default, and this machine does better",
        )


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
    if sample.via == "peer-ram":
        yield "without peer access the driver stages in RAM piece by piece: two copies, one waiting"
    if sample.via == "pageable":
        yield "one core copies into the driver's pinned buffer, and its rate decides"
    elif kinds & set(MEMORIES) and "gpu" in kinds:
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
