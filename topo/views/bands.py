"""What is not certain in words: which figure, between what it lies, and how it is measured."""

from __future__ import annotations

from collections.abc import Hashable, Iterable, Mapping
from typing import TYPE_CHECKING, Final

from topo.phrases import listed, ranges
from topo.records import dataclass
from topo.solve.system import rounded
from topo.units import format_duration, format_rate
from topo.views.resources import CLASS_WORDS, classes_of

if TYPE_CHECKING:
    from topo.study.bands import Band
    from topo.study.doubt import PathDoubt, Swing

_MOST: Final = 3  # parts in a name
_MOST_BINDING, _MOST_IDLE = 4, 6  # names in a line
_SAMPLED: Final = 0.05  # how exact a mean over draws is


def band_name(band: Band) -> str:
    """Return "efficiency of pcie 5", or the class of what is a resource of its own."""
    what = CLASS_WORDS[band.key][0] if band.key in CLASS_WORDS else band.key
    return f"{what} of {listed(band.owners, most=_MOST)}" if band.owners else what


def band_ends(band: Band) -> str:
    """Return between what a band lies: ``84 % to 90 %``."""
    return between(*map(band.quantity.text, (band.low, band.high)))


def band_origin(band: Band) -> str:
    """Return where a band's width comes from."""
    source = f": {band.figure.source}" if band.figure.source else ""
    if band.stated:
        return f"{band.figure.kind}, the range its source says{source}"
    return f"a guess without a range, taken for half to one and a half of itself{source}"


def rates_between(rates: tuple[float, float]) -> str:
    """Return a range of rates, the unit once where both have the same.

    Examples
    --------
    >>> rates_between((85.9e9, 100e9)), rates_between((900e6, 1.2e9))
    ('85.9 to 100 GB/s', '0.9 to 1.2 GB/s')
    """
    return between(*map(format_rate, rates))


def between(low: str, high: str) -> str:
    """Return ``6.4 to 7.2 s``: two figures, the unit once where both have the same."""
    number, _, unit = low.rpartition(" ")
    return f"{number if high.endswith(f' {unit}') else low} to {high}"


def settles_words(swing: Swing) -> str:
    """Return what part of the range a measurement is expected to take away, to 5 %: it is sampled.

    All of it is settled where nothing else is uncertain.
    """
    share = round(swing.settles / _SAMPLED)
    if swing.settles < 1:
        share = min(share, round(1 / _SAMPLED) - 1)
    return f"{share * _SAMPLED:.0%}".replace("%", " %") if share else "< 5 %"


def range_words(answer: PathDoubt) -> str:
    """Return the range of an answer: rates, and times where somebody said a size."""
    assert answer.rate_range is not None
    rates = "at most " * answer.at_most + rates_between(answer.rate_range)
    return ", ".join(filter(None, (rates, times_between(answer))))


def times_between(answer: PathDoubt) -> str:
    """Return the times of an answer's range; empty where nobody said a size."""
    if answer.time_range is None:
        return ""
    return "at least " * answer.at_most + between(*map(format_duration, answer.time_range))


def unknown_words(answer: PathDoubt) -> str:
    """Return what nobody has a figure of, and below which rate that matters; else nothing."""
    by_load: dict[str, list[str]] = {}
    for unknown in answer.unknown:
        by_load.setdefault(format_rate(unknown.load), []).append(unknown.resource.name)
    if not by_load:
        return ""
    begin = "Unknown is the capacity of"
    bounds = "The range is what is known at most;"
    shown = {load: listed(ranges(names), most=_MOST_IDLE) for load, names in by_load.items()}
    each = {load: " each" * (len(names) > 1) for load, names in by_load.items()}
    if len(by_load) == 1:
        ((load, names),) = shown.items()
        below = f"below {load}{each[load]} it would be less, and nobody says how much."
        return f"{begin} {names}. {bounds} {below}"
    parts = (f"{names} (below {load}{each[load]})" for load, names in shown.items())
    return (
        f"{begin} {listed(parts)}. {bounds} below these it would be less, and nobody says how much."
    )


# --- how it is measured ---------------------------------------------------------------------------


@dataclass(frozen=True, slots=True)
class Measurement:
    """A command that measures something, and what to do with what it prints."""

    command: str
    then: str


_INTO_FILE: Final = "topo measure FILE {} puts the rate into the file"
_BANDWIDTH: Final = "nvbandwidth --json -t {} > nvbandwidth.json"
_DRIVE: Final = (
    "fio --name=drive --filename=/dev/nvme0n1 --rw={} --bs=1M --direct=1 --ioengine=libaio "
    "--iodepth=64 --runtime=30 --time_based --output-format=json --output=fio.json"
)
_NETWORK: Final = Measurement(
    "ib_write_bw -d mlx5_0 -D 10 ADDRESS > perftest.txt", _INTO_FILE.format("perftest.txt")
)
_CARD_AND_GPU: Final = Measurement(
    "ib_write_bw -d mlx5_0 --use_cuda=0 -D 10 ADDRESS > perftest.txt",
    _INTO_FILE.format("perftest.txt"),
)
_TO_GPU: Final = Measurement(
    _BANDWIDTH.format("host_to_device_memcpy_ce"), _INTO_FILE.format("nvbandwidth.json")
)
_FROM_GPU: Final = Measurement(
    _BANDWIDTH.format("device_to_host_memcpy_ce"), _INTO_FILE.format("nvbandwidth.json")
)
_BETWEEN_GPUS: Final = Measurement(
    _BANDWIDTH.format("device_to_device_memcpy_write_ce"), _INTO_FILE.format("nvbandwidth.json")
)
_FILES: Final = "gdsio -D /mnt/data -d 0 -w 16 -s 8G -i 1M -x 0 -I {} > gdsio.txt"
_FILES_TO_GPU: Final = Measurement(_FILES.format(0), _INTO_FILE.format("gdsio.txt"))
_FILES_FROM_GPU: Final = Measurement(_FILES.format(1), _INTO_FILE.format("gdsio.txt"))
_READS: Final = Measurement(_DRIVE.format("read"), _INTO_FILE.format("fio.json"))
_WRITES: Final = Measurement(
    _DRIVE.format("write"),
    "it overwrites what is on the drive; " + _INTO_FILE.format("fio.json"),
)
_ALL_REDUCE: Final = Measurement(
    "all_reduce_perf -b 8M -e 8G -f 2 -g 8 > nccl-tests.txt",
    "topo measure FILE nccl-tests.txt shows busbw beside what topo expects",
)
_LINE: Final = "write the rate under `measured:`, `- {}: {{rate: ...}}`"
_BY_CLASS: Final[Mapping[str, Measurement]] = {
    "storage-read": _FILES_TO_GPU,
    "storage-write": _FILES_FROM_GPU,
    "network-port": _NETWORK,
    "network-link": _NETWORK,
    "nic-chip": _NETWORK,
    "card-pcie": _NETWORK,
    "drive-read": _READS,
    "drive-write": _WRITES,
    "drive-pcie": _READS,
    "controller-read": _READS,
    "controller-write": _WRITES,
    "controller-pcie": _READS,
    "uplink": _TO_GPU,
    "gpu-pcie": _TO_GPU,
    "c2c": _TO_GPU,
    "gpu-fabric": _BETWEEN_GPUS,
    "peer-to-peer": _FILES_TO_GPU,
    "measured-pair": _FILES_TO_GPU,
    "socket-link": Measurement("mlc --bandwidth_matrix", _LINE.format("cpu0 -> cpu1")),
    "memory-bus": Measurement(
        "likwid-perfctr -f -c S0:0 -g MEM -S 30s",
        "run it while the workload runs, and " + _LINE.format("ram0 -> cpu0"),
    ),
    "in-switch": _ALL_REDUCE,
    "nccl-link": _ALL_REDUCE,
    "cpu-copy": Measurement("mbw -t 0 -n 10 1024", "write it as `core-copy:` of the CPU"),
}
_DUPLEX: Final = Measurement(
    _BANDWIDTH.format("host_to_device_bidirectional_memcpy_ce"),
    "write the sum over twice one direction as `duplex:` of the part or cable",
)
_OF_A_WRITE: Final[Mapping[Measurement, Measurement]] = {
    _FILES_TO_GPU: _FILES_FROM_GPU,
    _READS: _WRITES,
    _TO_GPU: _FROM_GPU,
}


def measurement_of(swing: Swing, answer: PathDoubt) -> Measurement | None:
    """Return how a figure is measured: on what binds when it is least, else on what it changes.

    `None` where no program that topo knows of measures it.
    """
    if swing.band.key == "duplex":
        return _DUPLEX
    kinds = dict.fromkeys(resource.kind for resource in (*swing.binding, *swing.touches))
    path = answer.answer.data_path
    if "peer-to-peer" in kinds and {path.far_end, path.near_end} <= {"gpu", "nic"}:
        return _BETWEEN_GPUS if path.far_end == path.near_end else _CARD_AND_GPU
    measurement = next((_BY_CLASS[kind] for kind in kinds if kind in _BY_CLASS), None)
    if measurement is not None and answer.workload.direction == "write":
        return _OF_A_WRITE.get(measurement, measurement)
    return measurement


def measured_on(swing: Swing) -> str:
    """Return what binds when a figure is least: "the RAM buses (ram0/bus and ram1/bus)"."""
    if not swing.binding:
        return ""
    names = listed(ranges(resource.name for resource in swing.binding), most=_MOST_BINDING)
    return f"{classes_of(swing.binding)} ({names})"


def advice_words(answer: PathDoubt) -> str:
    """Return what to measure first, on what, and how much that settles; empty where nothing."""
    best = answer.best
    if best is None:
        return ""
    words = f"Measure first: {band_name(best.band)}"
    if on := measured_on(best):
        words += f", on {on}"
    if len(answer.swings) == 1:
        return f"{words}. Nothing else that is uncertain changes the answer."
    return f"{words}. It is expected to settle {settles_words(best)} of the range."


# --- answers that say the same --------------------------------------------------------------------


def equal_answers(
    answers: Iterable[PathDoubt], *, advised: bool = True
) -> list[tuple[PathDoubt, ...]]:
    """Return answers in groups of which all say the same of the same rates.

    What changes nothing in one of them is not on the way of another, or changes nothing there, so
    the groups may differ in it; in their times; and, where nothing is `advised`, in how something
    is measured.
    """
    groups: dict[Hashable, list[PathDoubt]] = {}
    for answer in answers:
        swings = tuple(
            (swing.band, rounded(swing.low_rate), rounded(swing.high_rate), settles_words(swing))
            for swing in answer.swings
        )
        rates = (answer.answer.rate or 0.0, *(answer.rate_range or ()))
        key: list[Hashable] = [swings, answer.at_most, tuple(map(rounded, rates))]
        if answer.rate_range is None:
            key.append(tuple(reason.text for reason in answer.answer.reasons))
        if advised:
            key.append(answer.best and (measurement_of(answer.best, answer), advice_words(answer)))
            key.append(unknown_words(answer))
            # what it says of its own efficiency is about one workload
            key.append(answer.answer.time_range and answer.workload.name)
        groups.setdefault(tuple(key), []).append(answer)
    return list(map(tuple, groups.values()))


def names_of_answers(group: Iterable[PathDoubt]) -> str:
    """Return what some answers are of: "load and checkpoint by legacy"."""
    paths: dict[str, list[str]] = {}
    for answer in group:
        paths.setdefault(answer.workload.name, []).append(answer.answer.name)
    workloads: dict[str, list[str]] = {}
    for workload, names in paths.items():
        workloads.setdefault(listed(names), []).append(workload)
    return ", ".join(f"{listed(names)} by {path}" for path, names in workloads.items())


def idle_words(group: Iterable[PathDoubt]) -> str:
    """Return the names of what changes nothing in any of some answers."""
    bands = dict.fromkeys(band for answer in group for band in answer.idle)
    return listed(map(band_name, sorted(bands, key=lambda band: band.order)), most=_MOST_IDLE)
