"""Text of ``dmidecode``: memory modules and their channels, slots by PCI address, CPUs.

What a board calls its sockets, channels and slots is its maker's own: names that say a channel are
read, and where they do not, channels stay unknown.

References
----------
DMTF DSP0134, System Management BIOS Reference Specification: types 4, 9 and 17. dmidecode,
``dmidecode.c``: ``dmi_decode``.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator, Sequence
from typing import Final

from topo.catalogue.parts import catalogue
from topo.discovery.foreign import BEFORE, nothing_there, read_lines
from topo.discovery.machine import DiscoveredDevice, DiscoveredPart, Machine, printable, size_fact
from topo.discovery.numa import cpu_part
from topo.discovery.pci import read_address
from topo.errors import ExchangeError, Finding
from topo.phrases import and_more, counted, listed
from topo.records import dataclass

_TITLE: Final = re.compile(
    rf"{BEFORE}(Memory Device|System Slot Information|Processor Information)\s*"
)
_OTHER_TITLE: Final = re.compile(rf"{BEFORE}Handle 0x[0-9A-Fa-f]{{1,8}}, DMI type .*")
_KEY: Final = re.compile(rf"{BEFORE}([A-Z][A-Za-z() ]{{1,40}}?):\s*(\S.*)")
_SIZE: Final = re.compile(r"(\d{1,9}) ([kMGT])B")
_SPEED: Final = re.compile(r"(\d{1,6}) (?:MT/s|MHz)")
_SOCKETS: Final = tuple(  # in this order
    re.compile(pattern, re.IGNORECASE)
    for pattern in (
        r"(?<![A-Z0-9])(?:CPU|PROC|SOCKET|P)[ _]?(\d{1,2})(?!\d)",
        r"(?<![A-Z0-9])NODE[ _]?(\d{1,2})(?!\d)",
    )
)
_CHANNEL: Final = re.compile(
    r"(?:CHANNEL|(?<![A-Z])CH)[ _-]?([A-Z]|\d{1,2})(?![A-Z0-9])", re.IGNORECASE
)
_UNIT: Final = re.compile(r"(?:NODE|CONTROLLER|I?MC)[ _]?(\d{1,2})", re.IGNORECASE)
_LETTER: Final = re.compile(r"(?:DIMM[ _]?|[_-])([A-O])[ _]?\d{1,2}(?![A-Z0-9])", re.IGNORECASE)
_DIGITS: Final = re.compile(r"(?<![A-Z0-9])C(\d{1,2})D\d{1,2}(?![A-Z0-9])", re.IGNORECASE)
_WIDTH: Final = re.compile(r"x(\d{1,2}) PCI Express")
_BINARY: Final = {"k": 2**10, "M": 2**20, "G": 2**30, "T": 2**40}
_SLOWEST: Final = {"ddr4": 1600, "ddr5": 3200}  # MT/s: what is below it is a clock
_SAME: Final = 2  # MT/s: 2933 and 2934 are one speed
_MULTIPLEXED: Final = 8000  # MT/s, from which DDR5 is of modules that multiplex ranks
_MOST, _MOST_SOCKETS = 4096, 16
_NO_CHANNELS: Final = "which channels they are in is not told"


@dataclass(frozen=True, slots=True)
class Module:
    """A memory module that is there.

    `speed` is in MT/s, as it runs; `socket` and `channel` are as the board names them, ``""`` where
    its names do not tell.
    """

    place: str
    size: int
    sort: str
    speed: int
    socket: str
    channel: str


def read(data: bytes, name: str) -> Machine:
    """Read memory modules, slots and CPUs.

    Raises an `ExchangeError` if there is none of them in it.
    """
    records = list(_records(read_lines(data, name)))[:_MOST]
    modules = [
        module
        for title, record in records
        if title == "Memory Device" and (module := _module(record))
    ]
    slots = _slots(record for title, record in records if title == "System Slot Information")
    models = [
        record.get("Version", "")
        for title, record in records
        if title == "Processor Information"
        and "unpopulated" not in record.get("Status", "").lower()
    ]
    if not (modules or slots or models):
        message = f"`{name}` has no memory module, no slot in use and no CPU"
        help = "run it as root: `sudo dmidecode -t slot,memory,processor`"
        raise nothing_there(message, help)
    by_socket = _by_socket(modules)
    if (by_socket and len(models) != len(by_socket)) or len(models) > _MOST_SOCKETS:
        models = [""] * len(by_socket)  # of a virtual machine, or which CPU has which is not told
    cpus, parts = _cpus(models)
    memories = [
        memory_of(f"modules {at}", cpu.id, of_socket)
        for at, (cpu, of_socket) in enumerate(zip(cpus, by_socket, strict=False))
    ]
    findings = []
    if any(_NO_CHANNELS in memory.evidence for memory in memories):
        places = list(dict.fromkeys(module.place for module in modules))
        message = f"which channels the memory modules are in is not told: {and_more(places)}"
        help = "write `channels:` of each memory in the YAML, by the manual of the board"
        findings.append(Finding("channels-not-told", message, severity="note", help=help))
    subjects = {"memory modules": modules, "slots": slots, "CPUs": models}
    return Machine(
        kind="dmidecode",
        source="output of dmidecode",
        file=name,
        devices=(*cpus, *memories),
        parts=parts,
        findings=tuple(findings),
        tells_only=f"its {listed([words for words, members in subjects.items() if members])}",
        slots=slots,
    )


def _records(lines: Iterable[str]) -> Iterator[tuple[str, dict[str, str]]]:
    """Yield the title of each structure that counts, and its values; the first of each key."""
    record: dict[str, str] | None = None
    for line in lines:
        if title := _TITLE.fullmatch(line):
            record = {}
            yield title[1], record
        elif _OTHER_TITLE.fullmatch(line):
            record = None
        elif record is not None and (match := _KEY.match(line)):
            record.setdefault(match[1], printable(match[2]))


# --- memory ---------------------------------------------------------------------------------------


def _module(record: dict[str, str]) -> Module | None:
    """Return the module of a slot for memory, `None` where there is none, or none of DRAM."""
    size = _SIZE.match(record.get("Size", ""))
    technology = record.get("Memory Technology", "")
    if size is None or "persistent" in technology or "NVDIMM" in technology:
        return None
    sort = record.get("Type", "").lower()
    rated, configured = (
        int(match[1]) if (match := _SPEED.match(record.get(key, ""))) else 0
        for key in ("Speed", "Configured Memory Speed")
    )
    if not configured and (match := _SPEED.match(record.get("Configured Clock Speed", ""))):
        configured = int(match[1])
    if configured < _SLOWEST.get(sort, 0) and abs(2 * configured - rated) <= 2 * _SAME:
        configured *= 2
    bank, locator = record.get("Bank Locator", ""), record.get("Locator", "")
    return Module(
        place=locator,
        size=int(size[1]) * _BINARY[size[2]],
        sort=sort,
        speed=configured or rated,
        socket=_socket(locator) or _socket(bank),
        channel=_channel(locator, bank),
    )


def _socket(text: str) -> str:
    """Return what a name says of the CPU: ``P1`` of ``P1-DIMMA1``."""
    matches = (pattern.search(text) for pattern in _SOCKETS)
    return next((str(int(match[1])) for match in matches if match), "")


def _channel(locator: str, bank: str) -> str:
    """Return what names say of the channel, with what it is a channel of, else ``""``.

    Examples
    --------
    >>> _channel("P1-DIMME1", "P0_Node1_Channel0_Dimm0"), _channel("DIMM_P0_A0", "BANK 0")
    ('1/0', 'A')
    >>> _channel("A1", "Not Specified"), _channel("DIMM 0", "P0 CHANNEL A")
    ('', 'A')
    """
    for text in (bank, locator):
        if match := _CHANNEL.search(text):
            units = [unit[1] for unit in _UNIT.finditer(text)]
            return "/".join((*units, match[1].upper()))
    match = _LETTER.search(locator) or _DIGITS.search(locator)
    return match[1].upper() if match else ""


def _by_socket(modules: Sequence[Module]) -> list[list[Module]]:
    """Return the modules of each CPU; all as one where their names do not tell."""
    if not all(module.socket for module in modules):
        return [list(modules)] if modules else []
    sockets = sorted({int(module.socket) for module in modules})[:_MOST_SOCKETS]
    return [[module for module in modules if int(module.socket) == socket] for socket in sockets]


def memory_of(id_: str, cpu: str, modules: Sequence[Module]) -> DiscoveredDevice:
    """Return the memory of a CPU: the slowest module's speed, as many channels as are in use."""
    channels = _channels(modules)
    sorts = sorted({module.sort for module in modules})
    speed = min(module.speed for module in modules)
    part, facts = "memory-unknown", list[tuple[str, str]]()
    if channels and len(sorts) == 1 and speed:
        part, facts = _part(sorts[0], speed)
        if part != "memory-unknown":
            facts.append(("channels", str(channels)))
    size = sum(module.size for module in modules)
    facts += size_fact(size)
    evidence = f"{counted(len(modules), 'module')} of {listed(sorts).upper()}"
    evidence += f" at {speed} MT/s" if speed else ""
    if channels:
        evidence += f" in {counted(channels, 'channel')}"
    elif speed:
        evidence += f"; {_NO_CHANNELS}"
    return DiscoveredDevice(
        id_, "memory", part, parent=cpu, facts=tuple(facts), evidence=printable(evidence)
    )


def _channels(modules: Sequence[Module]) -> int:
    """Return how many channels have a module, 0 where names do not tell or are not one's own."""
    named = [(module.channel, module.place) for module in modules]
    if not all(channel for channel, _ in named):
        return 0
    channels = {channel for channel, _ in named}
    is_own = len({*named}) == len(named) or len(channels) == len(named)
    return len(channels) if is_own else 0


def _part(sort: str, speed: int) -> tuple[str, list[tuple[str, str]]]:
    """Return the catalogue's part of modules of a sort, and the speed where it is not its own."""
    if sort == "ddr5" and speed > _MULTIPLEXED:
        sort = "mrdimm"
    parts: list[tuple[str, float]] = []
    for listed_part in catalogue().parts.values():
        figure = listed_part.figure("transfer-rate")
        if listed_part.name.startswith(f"{sort}-") and figure is not None and figure.value:
            parts.append((listed_part.name, figure.value / 1e6))
    if not parts:
        return "memory-unknown", []
    part, rate = min(parts, key=lambda named: abs(named[1] - speed))
    return part, [] if abs(rate - speed) <= _SAME else [("transfer-rate", f"{speed} MT/s")]


def wired_lanes(data: bytes) -> dict[str, int]:
    """Return how many lanes the board wires to each slot, by the address of what is in it.

    dmidecode writes them before the slot's kind: ``x8 PCI Express 5 x16`` has eight.
    """
    try:
        records = list(_records(read_lines(data, "dmidecode")))[:_MOST]
    except ExchangeError:  # no text
        return {}
    return {
        address: int(match[1])
        for title, record in records
        if title == "System Slot Information"
        if (address := read_address(record.get("Bus Address", "")))
        if (match := _WIDTH.match(record.get("Type", "")))
    }


# --- slots and CPUs -------------------------------------------------------------------------------


def _slots(records: Iterable[dict[str, str]]) -> tuple[tuple[str, str], ...]:
    """Return the names of the slots by the address of what is in them, where that is one's own."""
    names: dict[str, list[str]] = {}
    for record in records:
        address = read_address(record.get("Bus Address", ""))
        if address and record.get("Designation") and record.get("Current Usage") == "In Use":
            names.setdefault(address, []).append(record["Designation"])
    return tuple((address, of_slot[0]) for address, of_slot in names.items() if len(of_slot) == 1)


def _cpus(models: Sequence[str]) -> tuple[tuple[DiscoveredDevice, ...], tuple[DiscoveredPart, ...]]:
    """Return a CPU of each socket, and the parts that the catalogue does not have."""
    parts: dict[str, DiscoveredPart] = {}
    cpus = []
    for at, model in enumerate(models):
        is_named = model not in ("", "Not Specified", "<BAD INDEX>")
        part, own_part = cpu_part(model) if is_named else ("cpu-unknown", None)
        if own_part is not None:
            parts.setdefault(own_part.name, own_part)
        cpus.append(DiscoveredDevice(f"socket {at}", "cpu", part))
    return tuple(cpus), tuple(parts.values())
