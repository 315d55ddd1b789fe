"""Imports: a file, a folder, or several sources of one machine, as a topology file.

At the end stands what is odd about a machine as its source tells it: links, speeds, what is hidden.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import replace
from importlib import import_module
from operator import itemgetter
from typing import TYPE_CHECKING, Any, Final

from topo.catalogue.identities import lane_rate
from topo.catalogue.kinds import CARDS
from topo.discovery.describe import larger_slot, part_of
from topo.errors import DescriptionError, ExchangeError, Finding, Severity
from topo.files import LARGEST
from topo.limits import MOST_IN_A_SERVER
from topo.phrases import and_more
from topo.records import dataclass

if TYPE_CHECKING:
    from pathlib import Path

    from topo.description.description import Description
    from topo.description.write import Comments
    from topo.discovery.machine import DiscoveredDevice, DiscoveredLink, Machine


# Each module has `read(data: bytes, name: str) -> Machine`; messages call the file by `name`.
KINDS: Final = {
    "nccl": "topo.discovery.nccl",
    "nvidia-smi": "topo.discovery.nvidia_smi",
    "hwloc": "topo.discovery.hwloc",
    "lspci": "topo.discovery.lspci",
    "sysfs": "topo.discovery.sysfs",
    "rocm-smi": "topo.discovery.rocm_smi",
    "infragraph": "topo.discovery.infragraph",
}
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
        from topo.description.as_document import to_document

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
    return import_machine(one_machine(machines), storage=storage)


def one_machine(machines: Sequence[Machine]) -> Machine:
    """Return the machine that several sources are of; at least one."""
    from topo.discovery.combine import combined

    return combined(machines) if len(machines) > 1 else machines[0]


def import_machine(machine: Machine, *, storage: Sequence[str] = ()) -> Imported:
    """Write a discovered machine as a topology file and read that as any other.

    Raises
    ------
    ExchangeError
        If `storage` names a card that is not there.
    DescriptionError
        If the source says something that no machine can be.
    """
    told = told_of(machine, storage)
    return read_back(told, told.document)


@dataclass(frozen=True, slots=True)
class Told:
    """What is to be written of a machine.

    Parameters
    ----------
    machine
        What the sources told.
    document, comments
        What the file is to have.
    findings
        What the source does not know, or says wrongly.
    """

    machine: Machine
    document: dict[str, Any]
    comments: Comments
    findings: tuple[Finding, ...]


def told_of(machine: Machine, storage: Sequence[str] = ()) -> Told:
    """Return the document of a machine with what it lacks, and what is odd or a guess in it.

    Raises
    ------
    ExchangeError
        If `storage` names a card that is not there, or nothing says what the devices are.
    """
    from topo.discovery.describe import completed, describe, with_drive_links

    is_tree_alone = machine.kind == "lspci" and machine.places
    if is_tree_alone and all(
        device.is_host or device.is_memory or device.kind == "pcie-switch"
        for device in machine.devices
    ):
        message = f"`{machine.file}` tells where PCI devices are, and not what they are"
        help = "`lspci -tv` names them; or lay another source of the machine beside it: --and FILE"
        raise ExchangeError(Finding("no-names", message, help=help))
    machine = with_drive_links(machine)
    oddities = lint(machine)
    machine = with_possible_speeds(machine)
    complete, guesses = completed(machine, storage)
    document, comments = describe(complete, machine.title())
    return Told(machine, document, comments, (*machine.findings, *oddities, *guesses))


def read_back(told: Told, document: Mapping[str, Any]) -> Imported:
    """Return the machine of a document, written as YAML and read as any other file.

    Raises
    ------
    DescriptionError
        If it says something that no machine can be.
    ExchangeError
        If several sources do so together.
    """
    from topo.description.loading import loads
    from topo.description.write import to_yaml
    from topo.topology.build import build_topology

    file = told.machine.file
    yaml = to_yaml(document, told.comments)
    try:
        description = loads(yaml, name=f"{file} as YAML")
        build_topology(description)  # physics holds for it as for any other file
    except DescriptionError as error:
        if not told.machine.together:
            raise
        messages = [finding.message for finding in error.findings if finding.severity == "error"]
        raise ExchangeError(
            Finding(
                "sources-disagree",
                f"together the sources say what no machine can be: {messages[0]}",
                help="are they of one machine? import each alone, and compare",
                notes=tuple(messages[1:]),
            )
        ) from None
    return Imported(told.machine, yaml, replace(description, file=file), told.findings)


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
    # More than any machine has, before everything in it is compared with everything.
    hosts = Counter(device.host for device in machine.devices)
    host, count = max(hosts.items(), key=itemgetter(1), default=("", 0))
    cpus = sum(device.host == host for device in machine.of_kind("cpu"))
    if count > MOST_IN_A_SERVER or cpus > _MOST_CPUS:
        message = f"`{machine.file}` has {count} devices and {cpus} NUMA nodes"
        help = f"a machine has at most {MOST_IN_A_SERVER} and {_MOST_CPUS}"
        raise ExchangeError(Finding("import-too-big", message, help=help))
    return machine


def _importer(kind: str | None, data: bytes, name: str) -> str:
    """Return the importer of a file, which is named for what it is where that is none."""
    from topo.discovery.foreign import YAML, file_kind

    all_kinds = f"topo imports {', '.join(KINDS)}"
    if kind is not None and kind not in KINDS:
        message = f"no importer reads `{kind}`"
        raise ExchangeError(Finding("wrong-kind", message, help=all_kinds))
    file = file_kind(data)
    told = file.recognised and not (kind == "infragraph" and file.words == YAML)
    if not file.importer and (kind is None or told):
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


# --- what is odd ----------------------------------------------------------------------------------

_MUCH: Final = 4  # times slower than what hangs below: a placeholder, no link
_USUAL_SPEEDS: Final = (1, 2.5, 5, 10, 20, 25, 40, 50, 56, 100, 200, 400, 800, 1600)  # Gb/s
_FASTEST: Final = max(_USUAL_SPEEDS)
_VIRTUAL_FROM: Final = 4  # GPUs with links of their own and no switch at all
_USUAL_OF_GPUS: Final = 3  # PCIe generation, at least, where the part is not known


def lint(machine: Machine) -> tuple[Finding, ...]:
    """Return what is odd about a machine, in the order of the rules, none that it says already."""
    codes = {finding.code for finding in machine.findings}
    findings = (
        *_unknown_links(machine),
        *_placeholders(machine),
        *_slow_links(machine),
        *_network_speeds(machine),
        *_off_fabric(machine),
        *_hidden_switches(machine),
        *_links_over_parts(machine),
        *_unknown_places(machine),
    )
    return tuple(finding for finding in findings if finding.code not in codes)


def with_possible_speeds(machine: Machine) -> Machine:
    """Return the machine without the speeds that no network port has: nothing is computed by them.

    `lint` says which they are.
    """
    devices = (
        replace(
            device,
            ports=tuple(None if rate and rate > _FASTEST * 1e9 else rate for rate in device.ports),
        )
        for device in machine.devices
    )
    return replace(machine, devices=tuple(devices))


def _rate(link: DiscoveredLink | None) -> float | None:
    """Return a link's rate in Gb/s, `None` when a half of it is unknown."""
    if link is None or link.generation is None or link.lanes is None:
        return None
    return lane_rate(link.generation) * link.lanes * 8 / 1e9


def _names(devices: Sequence[DiscoveredDevice]) -> str:
    return and_more([(*device.pci, device.label or device.id)[0] for device in devices])


def _cable(device: DiscoveredDevice) -> str:
    return device.link.cable if device.link else ""


def _unknown_links(machine: Machine) -> Iterator[Finding]:
    devices = [
        device
        for device in machine.devices
        if device.pci and device.link is not None and _rate(device.link) is None
    ]
    if devices:
        message = f"speed or width of {len(devices)} PCIe links is not told: {_names(devices)}"
        help = "they are `unknown` in the YAML, and never the limit until you fill them in"
        yield Finding("empty-link", message, severity="note", help=help)


def _placeholders(machine: Machine) -> Iterator[Finding]:
    fastest_below: dict[str, float] = {}
    for device in machine.devices:
        fastest = max(fastest_below.get(device.parent, 0.0), _rate(device.link) or 0.0)
        fastest_below[device.parent] = fastest
    slow = [
        device
        for device in machine.devices
        if (rate := _rate(device.link)) is not None
        and not (device.link and device.link.is_of_both_ends)
        and rate * _MUCH <= fastest_below.get(device.id, 0.0) + 1e-9
    ]
    if slow:
        message = f"{_names(slow)}: the link up is {_cable(slow[0])}, "
        message += f"{_MUCH} times slower than what hangs below, or worse"
        help = "virtual switches write such speeds, and busses at rest; correct it in the YAML"
        yield Finding("placeholder-link", message, severity="warning", help=help)


def _slow_links(machine: Machine) -> Iterator[Finding]:
    """Yield one finding for links at rest, one for those below what their part can."""
    idle: list[DiscoveredDevice] = []
    narrow: list[DiscoveredDevice] = []
    for device in machine.devices:
        part, link = part_of(device, machine), device.link
        if link is None or device.kind == "pcie-switch":
            continue
        slot = part.slot if part else None
        usual = _USUAL_OF_GPUS if device.kind == "gpu" else 0
        if link.generation == 1 and (slot.generation if slot else usual) > 1:
            idle.append(device)
        elif slot is not None:
            fewer_lanes = link.lanes and slot.lanes and link.lanes < slot.lanes
            if fewer_lanes or (link.generation and link.generation < slot.generation):
                narrow.append(device)
    if idle:
        message = f"{_names(idle)}: 2.5 GT/s, which is a link at rest, not its speed"
        help = "read it under load, or take the maximum; correct it in the YAML"
        yield Finding("idle-link", message, severity="warning", help=help)
    if narrow:
        message = f"{_names(narrow)}: {_cable(narrow[0])}, less than the part can"
        help = "the slot has less, a riser is in between, or the link trained down"
        yield Finding("narrow-link", message, severity="note", help=help)


def _network_speeds(machine: Machine) -> Iterator[Finding]:
    odd: list[tuple[DiscoveredDevice, float]] = []
    over: list[DiscoveredDevice] = []
    for card in machine.of_kind(*CARDS):
        speeds = [rate / 1e9 for rate in card.ports if rate]
        odd += [(card, speed) for speed in speeds if speed not in _USUAL_SPEEDS]
        link_rate = _rate(card.link)
        if link_rate is not None and any(link_rate < speed <= _FASTEST for speed in speeds):
            over.append(card)
    if odd:
        card, speed = max(odd, key=lambda pair: pair[1] > _FASTEST)
        message = f"{_names([card])}: {speed:g} Gb/s is no speed of a network port"
        message += f", and {len(odd) - 1} more" if len(odd) > 1 else ""
        help = "a driver's or a cloud's own number; the YAML has it as it was told"
        severity: Severity = "note"
        if any(speed > _FASTEST for _, speed in odd):
            severity = "warning"
            help = f"above {_FASTEST} Gb/s it is `unknown` in the YAML: write what the port has"
        yield Finding("impossible-nic-speed", message, severity=severity, help=help)
    if over:
        message = f"{_names(over)}: the port is faster than the PCIe link behind it"
        yield Finding("nic-over-link", message, severity="note")


def _off_fabric(machine: Machine) -> Iterator[Finding]:
    gpus = machine.of_kind("gpu")
    ends = {
        end for cable in machine.cables if "c2c" not in cable.cable for end in (cable.a, cable.b)
    }
    alone = [gpu for gpu in gpus if gpu.id not in ends]
    if alone and len(alone) < len(gpus):
        message = f"{_names(alone)} has no link to other GPUs, and the others have"
        help = "a broken link, a fabric manager that did not start, or another model"
        yield Finding("gpu-off-fabric", message, severity="warning", help=help)


def _hidden_switches(machine: Machine) -> Iterator[Finding]:
    fabric = (cable for cable in machine.cables if not cable.cable.startswith("pcie"))
    ends = {end for cable in fabric for end in (cable.a, cable.b)}
    linked = [gpu for gpu in machine.of_kind("gpu") if gpu.id in ends or "-sxm-" in gpu.part]
    switches = {device.id for device in machine.of_kind("pcie-switch", "root-complex")}
    shows_tree = any(device.parent for device in machine.devices if device.id in switches) or any(
        not switches.isdisjoint((cable.a, cable.b)) for cable in machine.cables
    )
    most_linked = max(Counter(gpu.host for gpu in linked).values(), default=0)
    if machine.kind == "infragraph":  # a plan, which no hypervisor told
        return
    if most_linked >= _VIRTUAL_FROM and machine.of_kind(*CARDS) and not shows_tree:
        message = f"{len(linked)} GPUs with links of their own and no PCIe switch: "
        message += "a virtual machine that hides its switches?"
        help = "near and far cards look alike here; compare with the host's own topology"
        yield Finding("hidden-switches", message, severity="warning", help=help)


def _unknown_places(machine: Machine) -> Iterator[Finding]:
    joined = {end for cable in machine.cables for end in (cable.a, cable.b)}
    places = {
        device.id
        for device in machine.of_kind("root-complex")
        if not device.parent and device.id not in joined
    }
    devices = [device for device in machine.devices if device.parent in places]
    if devices and len(machine.of_kind("cpu")) > 1:
        message = f"{_names(devices)}: nothing tells which CPU they are near"
        help = "the YAML joins them to every CPU by unknown links; put them under the right one"
        yield Finding("numa-unknown", message, severity="warning", help=help)


def _links_over_parts(machine: Machine) -> Iterator[Finding]:
    """Yield a finding for each kind of device whose link is faster than its part can be."""
    over: dict[tuple[str, str, str], int] = {}
    for device in machine.devices:
        part = part_of(device, machine)
        if part is not None and part.slot is not None and larger_slot(device, part):
            lanes = f" x{part.slot.lanes}" if part.slot.lanes else ""
            key = (part.name, f"PCIe {part.slot.generation}{lanes}", _cable(device))
            over[key] = over.get(key, 0) + 1
    for (name, slot, cable), count in over.items():
        message = f"{count} x {name}: the file says `{cable}`, and the part has {slot}"
        help = "what the file says was kept; a virtual machine often says more than there is"
        yield Finding("link-over-part", message, severity="warning", help=help)
