"""Imports: a file, a folder, or several sources of one machine, as a topology file."""

from __future__ import annotations

import re
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import replace
from importlib import import_module
from textwrap import wrap
from typing import TYPE_CHECKING, Any, Final

from topo.catalogue.kinds import CARDS
from topo.description.write import Comments, stem_of
from topo.discovery.machine import DiscoveredCable, DiscoveredDevice, Machine, printable
from topo.discovery.pci import short_address
from topo.errors import DescriptionError, ExchangeError, Finding
from topo.phrases import number_ranges
from topo.records import dataclass
from topo.units import spell_rate

if TYPE_CHECKING:
    from pathlib import Path

    from topo.catalogue.part import Part
    from topo.description.description import Description
    from topo.discovery.machine import Machine


# Each module has `read(data: bytes, name: str) -> Machine`.
KINDS: Final = {
    "nccl": "topo.discovery.nccl",
    "nvidia-smi": "topo.discovery.nvidia_smi",
    "hwloc": "topo.discovery.hwloc",
    "lspci": "topo.discovery.lspci",
    "sysfs": "topo.discovery.sysfs",
    "rocm-smi": "topo.discovery.rocm_smi",
}
LARGEST: Final = 64 * 2**20  # bytes of a file
_MOST_DEVICES: Final = 4096
_MOST_CPUS: Final = 128


@dataclass(frozen=True, slots=True)
class Imported:
    """An imported machine.

    Parameters
    ----------
    machine
        What the sources told.
    yaml
        The file to edit, with comments.
    description
        What `yaml` reads as.
    findings
        What the source does not know, or says wrongly.
    """

    machine: Machine
    yaml: str
    description: Description
    findings: tuple[Finding, ...]

    @property
    def kind(self) -> str:
        """The kind of source, a key of `KINDS`."""
        return self.machine.kind

    @property
    def document(self) -> dict[str, Any]:
        """The description as mappings, lists and texts: `topo.build` takes it."""
        from topo.description.write import to_document

        return to_document(self.description)


def import_text(
    kind: str | None, data: bytes, name: str, *, storage: Sequence[str] = ()
) -> Imported:
    """Import a machine from what a tool wrote.

    Parameters
    ----------
    kind
        A key of `KINDS`; guessed from the content when `None`.
    data, name
        The file, and what messages and the machine are called after.
    storage
        The network cards that lead to storage, as the imported file names them; guessed when
        empty.

    Raises
    ------
    ExchangeError
        If the file is of another kind or cannot be understood.
    """
    return import_machine(discover(kind, data, name), storage=storage)


def import_together(machines: Sequence[Machine], *, storage: Sequence[str] = ()) -> Imported:
    """Import one machine from several sources, the first of which stands where they disagree.

    Parameters
    ----------
    machines
        What `discover` or `discover_folder` read; at least one.
    storage
        As for `import_text`.

    Raises
    ------
    ExchangeError
        If together they say what no machine can be, or `storage` names a card that is not there.
    """
    from topo.discovery.combine import combined

    if len(machines) == 1:
        return import_machine(machines[0], storage=storage)
    try:
        return import_machine(combined(machines), storage=storage)
    except DescriptionError as error:
        messages = [finding.message for finding in error.findings if finding.severity == "error"]
        raise ExchangeError(
            Finding(
                "sources-disagree",
                f"together the sources say what no machine can be: {messages[0]}",
                help="are they of one machine? import each alone, and compare",
                notes=tuple(messages[1:]),
            )
        ) from None


def import_machine(machine: Machine, *, storage: Sequence[str] = ()) -> Imported:
    """Write a discovered machine as a topology file and read that as any other.

    Raises
    ------
    ExchangeError
        If `storage` names a card that is not there.
    DescriptionError
        If the source says something that no machine can be.
    """
    from topo.description.loading import loads
    from topo.description.write import to_yaml
    from topo.discovery.defaults import completed, with_drive_links
    from topo.discovery.importing import describe
    from topo.discovery.lint import lint
    from topo.topology.build import build_topology

    machine = with_drive_links(machine)
    complete, guesses = completed(machine, storage)
    yaml = to_yaml(*describe(complete, machine.title()))
    description = loads(yaml, name=f"{machine.file} as YAML")
    build_topology(description)  # physics holds for it as for any other file
    description = replace(description, file=machine.file)
    return Imported(machine, yaml, description, (*machine.findings, *lint(machine), *guesses))


def discover_folder(kind: str | None, folder: Path, name: str) -> Machine:
    """Read a folder with a machine's ``/sys`` in it into a discovered machine.

    Raises
    ------
    ExchangeError
        If another kind is wanted, or nothing of a machine is in the folder.
    """
    from topo.discovery.sysfs import read_folder

    if kind not in (None, "sysfs"):
        message = f"`{name}` is a folder, not what `{kind}` reads"
        raise ExchangeError(
            Finding("wrong-kind", message, help=f"write `topo import sysfs {name}`")
        )
    return read_folder(folder, name if name.strip("/") else "this machine")


def discover(kind: str | None, data: bytes, name: str) -> Machine:
    """Read a foreign file into a discovered machine.

    Raises
    ------
    ExchangeError
        If the file is of another kind or cannot be understood.
    """
    if len(data) > LARGEST:
        message = f"`{name}` has more than {LARGEST >> 20} MiB"
        raise ExchangeError(Finding("import-too-big", message))
    machine: Machine = import_module(KINDS[_importer(kind, data, name)]).read(data, name)
    # More than any machine has, before everything is compared with everything.
    count, cpus = len(machine.devices), len(machine.of_kind("cpu"))
    if count > _MOST_DEVICES or cpus > _MOST_CPUS:
        message = f"`{machine.file}` has {count} devices and {cpus} NUMA nodes"
        help = f"a machine has at most {_MOST_DEVICES} and {_MOST_CPUS}"
        raise ExchangeError(Finding("import-too-big", message, help=help))
    return machine


def _importer(kind: str | None, data: bytes, name: str) -> str:
    """Return the importer of a file, which is named for what it is where that is none."""
    from topo.discovery.foreign import file_kind

    all_kinds = f"topo imports {', '.join(KINDS)}"
    if kind is not None and kind not in KINDS:
        message = f"no importer reads `{kind}`"
        raise ExchangeError(Finding("wrong-kind", message, help=all_kinds))
    file = file_kind(data)
    if not file.importer and (kind is None or file.recognised):
        instead_of = f", not what `{kind}` reads" if kind else ""
        message = f"`{name}` is {file.words}{instead_of}"
        raise ExchangeError(Finding("wrong-kind", message, help=file.help or all_kinds))
    if kind is not None and file.importer not in ("", kind):
        message = f"`{name}` is {file.words}, not what `{kind}` reads"
        help = f"write `topo import {file.importer} {name}`"
        raise ExchangeError(Finding("wrong-kind", message, help=help))
    if kind in ("nccl", "hwloc") and b"<" not in data:
        message = f"`{name}` is no XML, so not what `{kind}` reads"
        raise ExchangeError(Finding("wrong-kind", message, help=all_kinds))
    return kind or file.importer


Plain = dict[str, Any]

ASSUMED_STORAGE: Final = "storage"  # the `id` and name of the target that no source tells
NUMA_LINK: Final = "numa-link"
_MEDIA: Final = {
    NUMA_LINK: {"title": "whatever joins the NUMA nodes", "reach": "host", "rate": "unknown"}
}
_STEMS: Final[Mapping[str, str]] = {
    "storage": "storage",
    "nic": "nic",
    "dpu": "nic",
    "nvme": "nvme",
    "hba": "hba",
    "pcie-switch": "sw",
    "root-complex": "rc",
    "cpu": "cpu",
    "memory": "ram",
    "cxl-memory": "cxl",
    "gpu": "gpu",
    "nvswitch": "nvswitch",
    "network-switch": "leaf",
}
_DEVICE_ORDER: Final = (
    *("storage", "nic", "cpu", "rc", "ram", "cxl", "sw"),
    *("gpu", "nvswitch", "nvme", "hba", "leaf"),
)
_LINK_ORDER: Final = ("storage", "ram", "cpu", "rc", "sw", "nic", "nvme", "hba", "cxl", "gpu")
_HEAD_WIDTH: Final = 96
_LONGEST_COMMENT: Final = 160
_LONGEST_NOTE: Final = 400  # characters, over several lines
_FABRIC_CABLE: Final = re.compile(r"(?:(\d+)x )?(nvlink|xgmi)(?: (\w+))?(?![\w-])")
_FILE_ENDING: Final = re.compile(r"(?:\.tar)?\.(?!\d)\w{2,4}$|\.tar$", re.IGNORECASE)


# --- names ----------------------------------------------------------------------------------------


def device_names(devices: Iterable[DiscoveredDevice]) -> dict[str, str]:
    """Return the name of each device by its `id`: ``gpu0``, ``nic3``, ``sw1``."""
    counts: dict[str, int] = {}
    names: dict[str, str] = {}
    for device in devices:
        if device.id == ASSUMED_STORAGE:
            names[device.id] = ASSUMED_STORAGE
            continue
        stem = _STEMS[device.kind]
        names[device.id] = f"{stem}{counts.setdefault(stem, 0)}"
        counts[stem] += 1
    return names


def file_title(file: str) -> str:
    """Return the last part of a file's path."""
    return re.split(r"[/\\]", file)[-1]


def machine_name(file: str) -> str:
    """Return a name for the machine from its file's: ``node 7.xml`` is ``node-7``.

    Examples
    --------
    >>> machine_name("dumps/node 7.xml"), machine_name("<stdin>"), machine_name("8gpu.txt")
    ('node-7', 'stdin', 'host-8gpu')
    >>> machine_name("g5.48xl.tar.gz")
    'g5-48xl'
    """
    stem = _FILE_ENDING.sub("", file_title(file))
    plain = re.sub(r"[^A-Za-z0-9_]+", "-", stem).strip("-_") or "imported"
    return plain if plain[0].isalpha() else f"host-{plain}"


# --- the document ---------------------------------------------------------------------------------


def describe(machine: Machine, title: str) -> tuple[Plain, Comments]:
    """Return the document of a machine, and the comments that its file gets.

    Parameters
    ----------
    machine
        A machine with all that a topology needs (`topo.discovery.defaults.completed`).
    title
        What is in it, in words.
    """
    names = device_names(machine.devices)
    devices = sorted(machine.devices, key=lambda device: _DEVICE_ORDER.index(_STEMS[device.kind]))
    head = [
        f"Imported from {printable(file_title(machine.file))} ({machine.source}).",
        *(f"Combined with {printable(source)}." for source in machine.together),
        "What the source does not tell is `unknown`; memories and their buses are assumed.",
    ]
    for note in machine.notes:
        head += wrap(printable(note, _LONGEST_NOTE), _HEAD_WIDTH, break_on_hyphens=False)
    domains = any(not address.startswith("0000:") for device in devices for address in device.pci)
    links = _links(machine, names)
    document: Plain = {"topo": 1, "name": machine_name(machine.file), "title": title}
    if machine.parts:
        document["parts"] = {
            part.name: {"like": part.like, "title": part.title, **dict(part.facts)}
            for part in machine.parts
        }
    if any(cable == NUMA_LINK for _, cable, _ in links):
        document["media"] = _MEDIA
    document["devices"] = {
        names[device.id]: _device_value(device, machine, domains=domains) for device in devices
    }
    document["links"] = [{ends: cable} for ends, cable, _ in links]
    workload = _workload(machine)
    if workload:
        document["workloads"] = {"load": workload}
    comments = Comments(
        head=tuple(head),
        above={
            names[device.id]: tuple(printable(notice, _LONGEST_NOTE) for notice in device.notices)
            for device in devices
        },
        devices={
            names[device.id]: printable(device.evidence, _LONGEST_COMMENT) for device in devices
        },
        links=tuple(printable(comment, _LONGEST_COMMENT) for _, _, comment in links),
        workloads={"load": "to begin with: edit it"},
    )
    return document, comments


def _links(machine: Machine, names: dict[str, str]) -> list[tuple[str, str, str]]:
    """Return ends, cable and comment of each link, in the order of the file."""
    links: list[tuple[str, str, str]] = []
    for device in machine.devices:
        if not device.parent or (device.link is None and device.kind != "memory"):
            continue
        above = names[device.parent]
        if device.node is not None:
            above = f"{above}/numa{device.node}"
        link = device.link
        cable, evidence = (link.cable, link.evidence) if link is not None else ("memory-bus", "")
        links.append((f"{names[device.id]} -- {above}", cable, evidence))
    links += [
        (f"{names[cable.a]} -- {names[cable.b]}", cable.cable, cable.evidence)
        for cable in machine.cables
    ]
    return sorted(links, key=lambda link: _LINK_ORDER.index(stem_of(link[0].partition(" ")[0])))


def _workload(machine: Machine) -> Plain:
    """Return a workload to begin with, where there is something to read from and to."""
    gpus, drives = machine.of_kind("gpu"), machine.of_kind("nvme")
    storage = machine.of_kind("storage")
    if not gpus or not (storage or drives):
        return {}
    source = "storage" if storage else "nvme" if len(drives) > 1 else "nvme0"
    return {"read": "80 GB each", "from": source, "to": "gpu" if len(gpus) > 1 else "gpu0"}


# --- a device -------------------------------------------------------------------------------------


def part_of(device: DiscoveredDevice, machine: Machine) -> Part | None:
    """Return the catalogue's part that a device is, or that its part of the file is like."""
    from topo.catalogue.load import catalogue

    like = next((part.like for part in machine.parts if part.name == device.part), device.part)
    return catalogue().parts.get(like)


def _device_value(device: DiscoveredDevice, machine: Machine, *, domains: bool) -> Any:
    """Return a device's part, with what differs from it.

    `domains` says whether PCI addresses are written with their domain.
    """
    part = part_of(device, machine)
    addresses = [address if domains else short_address(address) for address in device.pci]
    functions = ""
    if part is not None and device.kind in CARDS:
        figure = part.figure("functions")
        usual = int(figure.value) if figure and figure.value else 1
        count = max(1, len(device.pci) or len(device.rdma))
        functions = str(count) if count != usual else ""
    entries: Plain = {
        "label": printable(device.label),
        "slot": printable(device.slot),
        "ports": _ports(device, part),
        "pcie": larger_slot(device, part),
        "fabric": _fabric(device, part, machine.cables),
        "functions": functions,
        **dict(device.facts),
        "pci": addresses[0] if len(addresses) == 1 else addresses,
        "rdma": device.rdma[0] if len(device.rdma) == 1 else list(device.rdma),
        "numa": number_ranges(device.numa),
    }
    entries = {key: value for key, value in entries.items() if value}
    return {"part": device.part, **entries} if entries else device.part


def larger_slot(device: DiscoveredDevice, part: Part | None) -> str:
    """Return `pcie:` of a device whose link has more than its part's own slot, else ``""``."""
    slot, link = part.slot if part else None, device.link
    if slot is None or link is None or link.generation is None:
        return ""
    lanes = link.lanes or 0
    if link.generation <= slot.generation and lanes <= (slot.lanes or lanes):
        return ""
    width = max(lanes, slot.lanes or 0)
    generation = max(link.generation, slot.generation)
    return f"{generation} x{width}" if width else str(generation)


def _ports(device: DiscoveredDevice, part: Part | None) -> str:
    """Return `ports:` where those discovered are not those of the part."""
    rates = [rate for rate in device.ports if rate]
    if not rates:
        return ""
    count, bits_per_s = len(device.ports), max(rates)
    ports = part.ports if part else None
    rate_of_part = ports.rate.value if ports and ports.rate else None
    if ports is not None and (ports.count, rate_of_part) == (count, bits_per_s / 8):
        return ""
    ethernet = ports is not None and (ports.medium or "").startswith("ethernet")
    rate = f"{bits_per_s / 1e9:.10g} Gb/s" if bits_per_s >= 1e9 else spell_rate(bits_per_s / 8)  # noqa: PLR2004
    return f"{count}x {'ethernet ' if ethernet else ''}{rate}"


def _fabric(device: DiscoveredDevice, part: Part | None, cables: Iterable[DiscoveredCable]) -> str:
    """Return `unknown` where the links to other GPUs do not fit the part's own ports."""
    if device.kind != "gpu":
        return ""
    count, media = 0, set()
    for cable in cables:
        parsed = _FABRIC_CABLE.match(cable.cable)
        if parsed and device.id in (cable.a, cable.b):
            links, family, generation = parsed.groups()
            count += int(links or 1)
            media.add(family if generation in (None, "unknown") else f"{family} {generation}")
    if not count:
        return ""
    ports = part.fabric if part else None
    if ports is None or (ports.count or count) < count:
        return "unknown"
    medium = ports.medium or ""
    return "" if media <= {medium, medium.partition(" ")[0]} else "unknown"
