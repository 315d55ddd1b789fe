"""Measured rates of other programs, laid over a topology.

A reader turns a result file into `Results`; the mapper gives its ends the topology's names; each
rate is set beside what topo expects, and those that a pair or a link stands for become lines of
`measured:`.
"""

from __future__ import annotations

import os
import re
from dataclasses import replace
from importlib import import_module
from typing import TYPE_CHECKING, Final

from topo.description.loading import read_file
from topo.description.measured_edit import MeasuredLine, with_measured
from topo.discovery.foreign import file_kind
from topo.errors import ExchangeError, Finding
from topo.measuring.discrepancies import discrepancies
from topo.measuring.mapping import Asked, Mapper
from topo.measuring.placing import Placer
from topo.measuring.results import LARGEST
from topo.records import dataclass
from topo.study.prediction import Predictor, Reading, read_samples
from topo.units import format_rate

if TYPE_CHECKING:
    from collections.abc import Iterable, Sequence

    from topo.measuring.results import Result, Results
    from topo.study.prediction import Sample
    from topo.topology.topology import Topology


# Each module has `read(data: bytes, name: str) -> Results`.
KINDS: Final = {
    "nvbandwidth": "topo.measuring.nvbandwidth",
    "fio": "topo.measuring.fio",
    "gdsio": "topo.measuring.gdsio",
    "perftest": "topo.measuring.perftest",
}
_HEAD: Final = 1 << 18
_MARKS: Final = (
    ("nvbandwidth", rb'"nvbandwidth"\s*:\s*\{'),
    ("fio", rb'"fio version"\s*:'),
    ("gdsio", rb"IoType:\s*\w+\s+XferType:"),
    ("perftest", rb"#bytes\s+#iterations\s+BW peak|\b(BW|Latency)[ \t]+Test[ \t]*\r?\n"),
)
_ASK_AGAIN: Final = (
    (rb"nvbandwidth Version|memcpy (CE|SM) ", "text of nvbandwidth", "run `nvbandwidth --json`"),
    (rb"(?m)^\s*(READ|WRITE): bw=", "text of fio", "run `fio --output-format=json`"),
)
_OTHER = "another result for the same ends is used: copy engine before kernel, then the fastest"
_NO_PLACE = "no single pair or link stands for it"


@dataclass(frozen=True, slots=True)
class Measured:
    """A result file, laid over a topology.

    Parameters
    ----------
    kind
        A key of `KINDS`.
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
    """Lay measured rates of nvbandwidth, fio, gdsio or perftest over a topology.

    Parameters
    ----------
    topology
        The machine that was measured.
    result
        The path of what the program printed, or its bytes.
    name
        What messages call the result; its path by default.
    kind
        ``nvbandwidth``, ``fio``, ``gdsio`` or ``perftest``; told by the content when `None`.
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
    >>> found = topo.measure(topo.load("dgx-h100"), text, gpus=["gpu0"])
    >>> found.lines[0].text
    '- ram0 -> gpu0: {rate: 55.6 GB/s, source: "nvbandwidth host_to_device_memcpy_ce"}'
    """
    data = result if isinstance(result, bytes) else read_file(os.fspath(result))
    called = name or ("the result" if isinstance(result, bytes) else os.fspath(result))
    results = _read(kind, data, called)
    predictor = Predictor(topology)
    mapper = Mapper(topology, results, Asked(tuple(gpus), nic, tuple(storage)), predictor)
    samples = _samples(results, mapper)
    readings = read_samples(topology, samples)
    placer = Placer(topology, predictor)
    placed = {
        reading.sample: placer.lines(reading.sample, date=date)
        for reading in readings
        if not reading.sample.unwritten
    }
    readings = tuple(
        reading if placed.get(reading.sample, True) else _unwritten(reading, _NO_PLACE)
        for reading in readings
    )
    lines = _unique(line for found in placed.values() for line in found)
    findings = (
        *mapper.findings,
        *discrepancies(topology, readings),
        *_replaced(topology, lines),
        *_left(mapper.unmapped),
        *_undated(lines),
    )
    return Measured(results.kind, topology, readings, lines, tuple(mapper.unmapped), findings)


def _read(kind: str | None, data: bytes, name: str) -> Results:
    if len(data) > LARGEST:
        message = f"`{name}` has {len(data) >> 20} MiB, more than {LARGEST >> 20}"
        raise ExchangeError(Finding("import-too-big", message))
    found: Results = import_module(KINDS[kind_of(kind, data, name)]).read(data, name)
    if not found.results:
        message = f"`{name}` has no rate between two devices"
        raise ExchangeError(Finding("no-results", message, notes=found.left_out[:8]))
    return found


def _samples(results: Results, mapper: Mapper) -> tuple[Sample, ...]:
    """Return the samples in the file's order; of equal ends one is to be written."""
    pairs = [(one, sample) for one in results.results if (sample := mapper.sample(one))]
    best: dict[tuple[object, ...], Result] = {}
    for one, sample in pairs:
        if not sample.unwritten:
            ends = (sample.source, sample.target)
            best[ends] = max(best.get(ends, one), one, key=lambda each: (each.rank, each.rate))
    return tuple(
        sample
        if sample.unwritten or best[sample.source, sample.target] is one
        else replace(sample, unwritten=_OTHER)
        for one, sample in pairs
    )


def _unwritten(reading: Reading, why: str) -> Reading:
    return replace(reading, sample=replace(reading.sample, unwritten=why))


def _unique(lines: Iterable[MeasuredLine]) -> tuple[MeasuredLine, ...]:
    """Return the lines, of several for one pair of ends the last."""
    return tuple({(line.source, line.target): line for line in lines}.values())


def _replaced(topology: Topology, lines: Sequence[MeasuredLine]) -> tuple[Finding, ...]:
    """Say what the file had measured before, where the new rate is another."""
    before = {(one.source, one.target): one for one in topology.description.measurements}
    found = []
    for line in lines:
        old = before.get((line.source, line.target))
        if old is not None and old.rate.value is not None and old.rate.value != line.rate:
            message = (
                f"{line.source} -> {line.target}: {format_rate(line.rate)} in place of "
                f"{format_rate(old.rate.value)} ({old.rate.source})"
            )
            found.append(Finding("measured-again", message, severity="note", place=old.place))
    return tuple(found)


def _left(unmapped: Sequence[str]) -> tuple[Finding, ...]:
    if not unmapped:
        return ()
    count = f"{len(unmapped)} results have" if len(unmapped) > 1 else "1 result has"
    message = f"{count} no place on this machine"
    return (Finding("not-mapped", message, severity="note", notes=tuple(unmapped)),)


def _undated(lines: Sequence[MeasuredLine]) -> tuple[Finding, ...]:
    if not lines or lines[0].date:
        return ()
    message = "the result does not tell when it was measured"
    return (Finding("no-date", message, severity="note", help="say it with --date 2026-11-29"),)


def kind_of(kind: str | None, data: bytes, name: str) -> str:
    """Return the kind of a result file, which has to be `kind` if that is given.

    Raises
    ------
    ExchangeError
        If it is another, or none that topo reads.
    """
    head = data[:_HEAD].replace(b"\x00", b"")
    found = next((known for known, mark in _MARKS if re.search(mark, head)), "")
    if found and kind in (None, found):
        return found
    if found:
        message = f"`{name}` has results of {found}, not of {kind}"
        raise ExchangeError(Finding("wrong-kind", message, help=f"write `--kind {found}`"))
    for mark, words, advice in _ASK_AGAIN:
        if re.search(mark, head):
            raise ExchangeError(Finding("wrong-kind", f"`{name}` is {words}", help=advice))
    message = f"`{name}` is {file_kind(data).words}, and has no results that topo reads"
    help = f"topo reads results of {', '.join(KINDS)}"
    raise ExchangeError(Finding("wrong-kind", message, help=help))
