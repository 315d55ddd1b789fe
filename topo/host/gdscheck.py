"""The text of ``gdscheck -p``: what GPUDirect Storage finds on a host.

References
----------
NVIDIA GPUDirect Storage installation and troubleshooting guide; the wording differs between
releases: up to 1.15 a driver is Supported or Unsupported, from 1.16 on there is a list of modes.
"""

from __future__ import annotations

import re
from collections.abc import Mapping
from dataclasses import field
from typing import Final

from topo.discovery.foreign import read_lines
from topo.errors import ExchangeError, Finding, Place
from topo.host.cufile import HostFact, current_name
from topo.records import dataclass

# Rows of the driver configuration, in topo's words.
_DRIVERS: Final = {
    "nvme": "nvme",
    "nvmeof": "nvmeof",
    "nvme p2pdma": "p2pdma",
    "scsi": "scsi",
    "scaleflux csd": "scaleflux",
    "nvmesh": "nvmesh",
    "ddn exascaler": "lustre",
    "lustre": "lustre",
    "ibm spectrum scale": "gpfs",
    "ibm storage scale": "gpfs",
    "gpfs": "gpfs",
    "nfs": "nfs",
    "beegfs": "beegfs",
    "scatefs": "scatefs",
    "virtiofs": "virtiofs",
    "wekafs": "wekafs",
    "userspace rdma": "userspace-rdma",
}
_DIRECT: Final = frozenset({"supported", "nvfs", "p2pdma", "c2c"})
_ROW: Final = re.compile(r"\s*([A-Za-z][A-Za-z0-9 ]{1,30}?)\s*:\s*(\S.*)")
_PROPERTY: Final = re.compile(
    r"\s*((?:properties|fs|block|profile|execution|denylist|miscellaneous)\.[\w.]{1,80})"
    r"\s*:(.*)"
)
_GPU: Final = re.compile(r"\s*GPU index\s+(\d{1,4})\s+(.{0,100}?)\s+bar\s*:.*")
_GPU_IOMMU: Final = re.compile(r"IOMMU State\s*:\s*([A-Za-z-]+( or [A-Za-z]+)?)")
_ACS: Final = re.compile(r".*ACS\s+(?:is\s+)?enabled\s+(?:for|on|at)\s+switch\s+([0-9a-fA-F:.]+).*")
_VERSIONS: Final = (
    ("release", re.compile(r"GDS release version\s*(?:\(\w+\))?\s*:\s*([\w.]+)")),
    ("driver", re.compile(r"nvidia_fs version\s*:\s*([\w.]+)")),
    ("library", re.compile(r"libcufile version\s*:\s*([\w.]+)")),
)
_VERIFIED: Final = re.compile(r"\s*Platform verification\s+(\w+).*")
_MOST_GPUS: Final = 1024


@dataclass(frozen=True, slots=True)
class GdsGpu:
    """A GPU by its index: its name, and whether it supports GPUDirect Storage."""

    index: int
    name: str
    supported: bool
    place: Place


@dataclass(frozen=True, slots=True)
class GdsCheck:
    """What ``gdscheck -p`` prints.

    Parameters
    ----------
    versions
        ``release``, ``driver`` (nvidia_fs) and ``library`` (libcufile), where it says them.
    drivers
        ``nvme``, ``lustre``, ... with the words of their rows.
    direct
        Those of `drivers` that can go directly.
    facts
        cuFile's configuration as the library read it, by dotted key.
    gpus
        In the order of the text.
    iommu
        ``off``, ``on``, ``passthrough`` or ``passthrough-or-on``, with its place.
    acs
        PCI addresses of switches with access control on, with their places.
    verified
        Whether the platform's verification succeeded; it does not prove that data goes directly.
    """

    name: str
    versions: Mapping[str, str] = field(default_factory=dict)
    drivers: Mapping[str, HostFact] = field(default_factory=dict)
    direct: tuple[str, ...] = ()
    facts: Mapping[str, HostFact] = field(default_factory=dict)
    gpus: tuple[GdsGpu, ...] = ()
    iommu: HostFact | None = None
    acs: tuple[HostFact, ...] = ()
    verified: bool | None = None


def read_gdscheck(data: bytes, name: str) -> GdsCheck:
    """Read the text of ``gdscheck -p``.

    Raises
    ------
    ExchangeError
        If it is too big or some other text.
    """
    versions: dict[str, str] = {}
    drivers: dict[str, HostFact] = {}
    facts: dict[str, HostFact] = {}
    gpus: dict[int, GdsGpu] = {}
    iommu: dict[str, HostFact] = {}  # by the host's own row, and by a GPU's
    acs: dict[str, HostFact] = {}
    verified: bool | None = None
    for number, line in enumerate(map(str.rstrip, read_lines(data, name)), start=1):
        place = Place(name, number, len(line) - len(line.lstrip()) + 1, len(line) + 1)
        for key, pattern in _VERSIONS:
            if match := pattern.search(line):
                versions.setdefault(key, match[1])
        if match := _PROPERTY.fullmatch(line):
            key = current_name(match[1])
            facts[key] = HostFact(key, tuple(match[2].split()), place)
        elif match := _GPU.fullmatch(line):
            supported = "supports gds" in line.lower() and "not support" not in line.lower()
            gpus[int(match[1])] = GdsGpu(int(match[1]), match[2], supported, place)
            if len(gpus) > _MOST_GPUS:
                message = f"`{name}` names more than {_MOST_GPUS} GPUs"
                raise ExchangeError(Finding("import-too-big", message, place=place))
            if (state := _GPU_IOMMU.search(line)) and (word := _iommu(state[1])):
                iommu["gpu"] = HostFact("iommu", (word,), place)
        elif match := _ACS.fullmatch(line):
            acs[match[1].lower()] = HostFact("acs", (match[1].lower(),), place)
        elif match := _VERIFIED.fullmatch(line):
            verified = match[1].lower() == "succeeded"
        elif match := _ROW.fullmatch(line):
            row, text = match[1].lower(), match[2]
            if row == "iommu" and (word := _iommu(text)):
                iommu["host"] = HostFact("iommu", (word,), place)
            elif row in _DRIVERS:
                words = tuple(word.lower() for word in re.split(r"[,\s]+", text) if word)
                drivers[_DRIVERS[row]] = HostFact(_DRIVERS[row], words, place)
    if not (drivers or gpus or ("release" in versions and facts)):
        message = f"`{name}` is not the text of `gdscheck -p`"
        help = "run /usr/local/cuda/gds/tools/gdscheck -p and keep all of its output"
        raise ExchangeError(Finding("wrong-kind", message, help=help))
    return GdsCheck(
        name=name,
        versions=versions,
        drivers=drivers,
        direct=_direct(drivers),
        facts=facts,
        gpus=tuple(gpus[index] for index in sorted(gpus)),
        iommu=iommu.get("host", iommu.get("gpu")),
        acs=tuple(acs.values()),
        verified=verified,
    )


def _direct(drivers: Mapping[str, HostFact]) -> tuple[str, ...]:
    """Return the drivers that can go directly; of NVMe's modes, P2PDMA is one of its own."""
    direct: dict[str, None] = {}
    for driver, fact in drivers.items():
        if "p2pdma" in fact.words:  # NVMe: nvfs, p2pdma, compat
            direct["p2pdma"] = None
        if {*fact.words} & (_DIRECT - ({"p2pdma"} if driver == "nvme" else set())):
            direct[driver] = None
    return tuple(direct)


def _iommu(state: str) -> str:
    """Return the state in topo's words, ``""`` for one that is none."""
    text = state.lower()
    on, passes = "enabled" in text, "pass" in text
    if on and passes:
        return "passthrough-or-on"
    if on or passes:
        return "on" if on else "passthrough"
    return "off" if "disabled" in text else ""
