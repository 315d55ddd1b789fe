"""What is not certain in words: which figure, between what it lies, and how it is measured."""

from __future__ import annotations

from collections.abc import Mapping
from typing import TYPE_CHECKING, Final

from topo.phrases import listed
from topo.records import dataclass
from topo.units import format_rate
from topo.views.resources import CLASS_WORDS

if TYPE_CHECKING:
    from topo.description.description import DataPath
    from topo.study.bands import Band
    from topo.study.doubt import Swing

_MOST: Final = 3  # parts in a name
_NEARLY_ALL: Final = 0.995  # what reads as 100 %


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
    """Return what part of the range a measurement is expected to take away."""
    if swing.settles >= _NEARLY_ALL:
        return "100 %"
    return f"{swing.settles:.0%}".replace("%", " %")


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
_TO_GPU: Final = Measurement(
    _BANDWIDTH.format("host_to_device_memcpy_ce"), _INTO_FILE.format("nvbandwidth.json")
)
_BETWEEN_GPUS: Final = Measurement(
    _BANDWIDTH.format("device_to_device_memcpy_write_ce"), _INTO_FILE.format("nvbandwidth.json")
)
_GDSIO: Final = Measurement(
    "gdsio -D /mnt/data -d 0 -w 16 -s 8G -i 1M -x 0 -I 0 > gdsio.txt",
    _INTO_FILE.format("gdsio.txt"),
)
_READS: Final = Measurement(_DRIVE.format("read"), _INTO_FILE.format("fio.json"))
_WRITES: Final = Measurement(_DRIVE.format("write"), _INTO_FILE.format("fio.json"))
_LINE: Final = "write the rate under `measured:`, `- {}: {{rate: ...}}`"
_BY_CLASS: Final[Mapping[str, Measurement]] = {
    "storage-read": _GDSIO,
    "storage-write": _GDSIO,
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
    "peer-to-peer": _GDSIO,
    "measured-pair": _GDSIO,
    "socket-link": Measurement("mlc --bandwidth_matrix", _LINE.format("cpu0 -> cpu1")),
    "memory-bus": Measurement(
        "likwid-perfctr -f -c S0:0 -g MEM -S 30s",
        "run it while the workload runs, and " + _LINE.format("ram0 -> cpu0"),
    ),
    "cpu-copy": Measurement("mbw -t 0 -n 10 1024", "write it as `core-copy:` of the CPU"),
}
_DUPLEX: Final = Measurement(
    _BANDWIDTH.format("host_to_device_bidirectional_memcpy_ce"),
    "write the sum over twice one direction as `duplex:` of the part or cable",
)


def measurement_of(swing: Swing, data_path: DataPath) -> Measurement | None:
    """Return how a figure is measured: on what binds when it is least, else on what it changes.

    `None` where no program that topo knows of measures it.
    """
    if swing.band.key == "duplex":
        return _DUPLEX
    kinds = dict.fromkeys(resource.kind for resource in (*swing.binding, *swing.touches))
    if "peer-to-peer" in kinds and data_path.far_end == data_path.near_end == "gpu":
        return _BETWEEN_GPUS
    return next((_BY_CLASS[kind] for kind in kinds if kind in _BY_CLASS), None)
