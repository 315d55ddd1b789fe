"""Measured rates of other programs, laid over a topology.

A reader turns a result file into `Results`; the mapper gives its ends the topology's names; each
rate is set beside what topo expects, and those that a pair or a link stands for become lines of
`measured:`.
"""

from __future__ import annotations

import os
from collections.abc import Iterator, Sequence
from dataclasses import replace
from typing import TYPE_CHECKING

from topo.description.loading import read_file
from topo.description.measured_edit import MeasuredLine, with_measured
from topo.errors import ExchangeError, Finding
from topo.measuring.discrepancies import discrepancies
from topo.measuring.mapping import Mapper, measured_lines
from topo.measuring.readers import read_results
from topo.measuring.results import LARGEST, Results
from topo.records import dataclass
from topo.study.prediction import Predictor, Reading, Sample, read_samples
from topo.units import format_rate

if TYPE_CHECKING:
    from topo.topology.topology import Topology

_OTHER = "another result for the same ends is used: copy engine before kernel, then the fastest"


@dataclass(frozen=True, slots=True)
class Measured:
    """A result file, laid over a topology.

    Parameters
    ----------
    kind
        ``nvbandwidth``, ``fio``, ``gdsio`` or ``perftest``.
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
    >>> measured = topo.measure(topo.load("dgx-h100"), text, gpus=["gpu0"])
    >>> measured.lines[0].text
    '- ram0 -> gpu0: {rate: 55.6 GB/s, source: "nvbandwidth host_to_device_memcpy_ce"}'
    """
    data = result if isinstance(result, bytes) else read_file(os.fspath(result))
    name = name or ("the result" if isinstance(result, bytes) else os.fspath(result))
    if len(data) > LARGEST:
        message = f"`{name}` has {len(data) >> 20} MiB, more than {LARGEST >> 20}"
        raise ExchangeError(Finding("import-too-big", message))
    results = read_results(kind, data, name)
    if not results.results:
        message = f"`{name}` has no rate between two devices"
        raise ExchangeError(Finding("no-results", message, notes=results.left_out[:8]))
    predictor = Predictor(topology)
    mapper = Mapper(topology, results, predictor, gpus=gpus, nic=nic, storage=storage)
    readings: list[Reading] = []
    lines: dict[tuple[str, str], MeasuredLine] = {}  # of several for one pair of ends the last
    for reading in read_samples(topology, _samples(results, mapper)):
        sample = reading.sample
        if not sample.unwritten:
            written = measured_lines(topology, predictor, sample, date=date)
            lines |= {(line.source, line.target): line for line in written}
            if not written:
                sample = replace(sample, unwritten="no single pair or link stands for it")
        readings.append(replace(reading, sample=sample))
    findings = (
        *mapper.findings,
        *discrepancies(topology, readings),
        *_notes(topology, tuple(lines.values()), mapper.unmapped),
    )
    return Measured(
        results.kind,
        topology,
        tuple(readings),
        tuple(lines.values()),
        tuple(mapper.unmapped),
        findings,
    )


def _samples(results: Results, mapper: Mapper) -> tuple[Sample, ...]:
    """Return the samples in the file's order; of equal ends one is to be written."""
    pairs = [(result, sample) for result in results.results if (sample := mapper.sample(result))]
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
        count = f"{len(unmapped)} results have" if len(unmapped) > 1 else "1 result has"
        message = f"{count} no place on this machine"
        yield Finding("not-mapped", message, severity="note", notes=tuple(unmapped))
    if lines and not lines[0].date:
        message = "the result does not tell when it was measured"
        yield Finding("no-date", message, severity="note", help="say it with --date 2026-11-29")
