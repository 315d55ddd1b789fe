"""The text of ``nvidia-smi topo -m`` and its like: pasted, coloured, wrapped, old, without legend.

References
----------
The legend that nvidia-smi prints; the program's source is closed.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping
from typing import Final

from topo.description.names import numbers_in
from topo.discovery.foreign import read_lines
from topo.discovery.machine import printable
from topo.discovery.sources.matrix_vendors import ACCELERATOR, NVIDIA, Vendor, plain_line, vendor_of
from topo.errors import ExchangeError, Finding, Place, UnitError
from topo.records import dataclass

# Nearest first; what was called otherwise once.
RANKS: Final = ("X", "PIX", "PXB", "PHB", "NODE", "SYS")
_OLD_CODES: Final = {"SOC": "SYS", "PSB": "PIX"}
_NVLINKS: Final = re.compile(r"NV(\d{1,2})")

_COLUMNS: Final = re.compile(
    r"CPU\s+Affinity|NUMA\s+Affinity|Node\s+Affinity|GPU\s+NUMA\s+ID|\S+", re.IGNORECASE
)
_FIELDS: Final = {
    "cpu affinity": "cpus",
    "numa affinity": "numa",
    "node affinity": "numa",
    "gpu numa id": "gpu_numa",
}
_DEVICE: Final = re.compile(
    ACCELERATOR.pattern + r"|NIC\d{1,4}|(?!(?:NV|X)\d*$)[A-Za-z][\w.:-]{0,40}\d\w{0,8}"
)
_KNOWN_CODE: Final = re.compile(r"NV\d{1,2}|NODE|SYS|PHB|PXB|PIX|PSB|SOC|X(?!L[\d*])")
_ANY_CODE: Final = re.compile(r"[A-Za-z][A-Za-z/#_]{0,7}(?:\d{0,3}|\*)(?=\s|$)")
_NOT_KNOWN: Final = "NA"
_LEGEND: Final = re.compile(r"\s*(NIC\d{1,4})\s*:\s*(\S{1,60})\s*")
_CODE_LEGEND: Final = re.compile(r"\s*([A-Z][A-Za-z/]{0,5})#?\s+=\s+(\S.{0,200})")
# Two names or headings that stick together: NIC0NIC1.
_FUSED: Final = re.compile(r"(?<=[a-z\d])(?=(?:GPU|NIC|mlx\d_)\d|(?:CPU|NUMA|Node) Aff|GPU NUMA)")
_LEFT_OUT: Final = re.compile(r"(?<!\S)(?:\.+|\u2026)(?!\S)")
_TAB: Final = 8  # columns from one stop of a tab to the next
_NODES: Final = re.compile(r"[0-9]{1,4}(?:[-,][0-9]{1,4})*")
_MOST_DEVICES: Final = 256


@dataclass(frozen=True, slots=True)
class Affinity:
    """What stands behind a row: lists as written, ``""`` where nothing stands."""

    cpus: str = ""
    numa: str = ""
    gpu_numa: str = ""

    @property
    def nodes(self) -> tuple[int, ...]:
        """The NUMA nodes as numbers."""
        return tuple(sorted(_numbers(self.numa)))

    def __bool__(self) -> bool:
        return bool(self.cpus or self.nodes)


@dataclass(frozen=True, slots=True)
class Matrix:
    """One matrix.

    Parameters
    ----------
    names
        GPUs and cards in the order of the columns.
    codes
        Code by row and column, as written.
    affinity
        By row.
    legend
        The device that each ``NIC#`` stands for.
    links
        Codes that are no code of nvidia-smi's and whose legend says that they are links, with its
        words: ``MX``, ``Connection traversing MetaXLink``.
    vendor
        Whose tool printed it.
    """

    names: tuple[str, ...]
    codes: Mapping[tuple[str, str], str]
    affinity: Mapping[str, Affinity]
    legend: Mapping[str, str]
    links: Mapping[str, str]
    vendor: Vendor = NVIDIA
    findings: tuple[Finding, ...] = ()

    @property
    def gpus(self) -> tuple[str, ...]:
        """The GPUs, in order."""
        return tuple(name for name in self.names if ACCELERATOR.fullmatch(name))

    @property
    def cards(self) -> tuple[str, ...]:
        """The network cards' functions, in order."""
        return tuple(name for name in self.names if not ACCELERATOR.fullmatch(name))

    def pairs(self) -> Iterator[tuple[str, str, str]]:
        """Yield every pair once, with the code of its first row that has one."""
        for at, a in enumerate(self.names):
            for b in self.names[at + 1 :]:
                yield a, b, self.codes.get((a, b)) or self.codes.get((b, a), "")

    def affinity_of(self, name: str) -> Affinity:
        """Return what stands behind a device's row, nothing where it has none."""
        return self.affinity.get(name, Affinity())


def rank_of(code: str) -> int | None:
    """Return how far a PCIe code is, `None` for links between GPUs and what is unknown.

    Examples
    --------
    >>> rank_of("PIX"), rank_of("SOC"), rank_of("NV12")
    (1, 5, None)
    """
    code = _OLD_CODES.get(code, code)
    return RANKS.index(code) if code in RANKS else None


def links_in(code: str) -> int:
    """Return how many NVLinks a code says, 0 for other codes."""
    match = _NVLINKS.fullmatch(code)
    return int(match[1]) if match else 0


def read_matrix(data: bytes, name: str) -> Matrix:
    """Read the matrix alone.

    Raises
    ------
    ExchangeError
        If there is none.
    """
    lines = [plain_line(line) for line in read_lines(data, name)]
    at, names, fields = _header(lines, name)
    findings: list[Finding] = []
    if _LEFT_OUT.search(lines[at]):
        message = "columns were left out of the matrix by hand"
        help = "the devices that they stood for are missing; paste the whole output"
        place = Place(name, at + 1, 1)
        findings.append(Finding("abridged", message, place=place, severity="warning", help=help))
        lines = [_LEFT_OUT.sub("", line) for line in lines]
    rows = _rows(lines, at, names)
    if not rows:
        message = f"`{name}` names {len(names)} devices and has no row for any"
        raise ExchangeError(Finding("unreadable-matrix", message, place=Place(name, at + 1, 1)))
    legend = {match[1]: match[2] for line in lines if (match := _LEGEND.fullmatch(line))}
    links = {
        match[1]: printable(match[2])
        for line in lines
        if (match := _CODE_LEGEND.fullmatch(line))
        and not _KNOWN_CODE.fullmatch(match[1])
        and "link" in match[2].lower()
    }
    codes: dict[tuple[str, str], str] = {}
    affinity: dict[str, Affinity] = {}
    short: list[tuple[int, str]] = []
    unclear: list[int] = []
    for row, (number, text) in rows.items():
        cells, end = _cells(text, len(names))
        if len(cells) < len(names):
            short.append((number, row))
        codes |= {(row, column): code for column, code in zip(names, cells, strict=False)}
        values = _fields_behind(text, end, fields)
        if values is None:
            unclear.append(number)
        affinity[row] = Affinity(
            **{
                field: printable(value)
                for field, value in (values or {}).items()
                if value not in ("", "N/A")
            }
        )
    unclear += _overlapping({row: number for row, (number, _) in rows.items()}, affinity)
    rowless = [device for device in names if device not in rows]
    findings += _odd_rows(name, unclear, short, rowless)
    between = {code for (row, column), code in codes.items() if row != column}
    accelerators = [device for device in names if ACCELERATOR.fullmatch(device)]
    vendor = vendor_of(accelerators, sorted(between))
    links = dict(vendor.link_words(sorted(between))) | links
    findings += _odd_codes(codes, links)
    return Matrix(names, codes, affinity, legend, links, vendor, tuple(findings))


def _odd_rows(
    name: str, unclear: list[int], short: list[tuple[int, str]], rowless: list[str]
) -> Iterator[Finding]:
    """Yield what rows lack: `unclear` and `short` ones by their lines, devices without any."""
    if unclear:
        message = f"what stands behind the codes of line {unclear[0]} fits no columns: "
        message += "the affinity there is taken as not known"
        message += f"; {len(unclear) - 1} more lines like it" if len(unclear) > 1 else ""
        place = Place(name, unclear[0], 1)
        help = "did two columns run together? paste the output as it was"
        yield Finding("unclear-affinity", message, place=place, severity="warning", help=help)
    if short or rowless:
        what = f"the row of {short[0][1]} is short" if short else f"{rowless[0]} has no row"
        message = f"{what}; the cells were taken from the other half of the matrix "
        message += "where it has them"
        row_place = Place(name, short[0][0], 1) if short else None
        yield Finding("ragged-matrix", message, place=row_place, severity="warning")


def _odd_codes(codes: Mapping[tuple[str, str], str], links: Mapping[str, str]) -> Iterator[Finding]:
    between = {code for (row, column), code in codes.items() if row != column} - links.keys()
    between.discard(_NOT_KNOWN)  # by the legends of those that print it
    odd = sorted(code for code in between if rank_of(code) is None and not links_in(code))
    if odd:
        message = (
            f"{', '.join(odd[:3])}: no code of nvidia-smi's; such pairs are taken as not known"
        )
        help = "another vendor's tool prints the same form"
        yield Finding("unknown-code", message, severity="warning", help=help)
    unequal = [
        (a, b) for (a, b), code in codes.items() if a < b and codes.get((b, a), code) != code
    ]
    if unequal:
        a, b = unequal[0]
        message = f"{a} to {b} is {codes[a, b]}, and back {codes[b, a]}"
        message += f"; {len(unequal) - 1} more" if len(unequal) > 1 else ""
        help = "the first was taken; was the text edited?"
        yield Finding("asymmetric-matrix", message, severity="warning", help=help)


def _header(lines: list[str], name: str) -> tuple[int, tuple[str, ...], tuple[str, ...]]:
    """Return the header's index, its devices, and the fields behind them."""
    for at, line in enumerate(lines):
        tokens = _COLUMNS.findall(_LEFT_OUT.sub("", _FUSED.sub(" ", line)))
        words = [" ".join(token.lower().split()) for token in tokens]
        behind = next((place for place, word in enumerate(words) if word in _FIELDS), None)
        names = tokens[:behind]
        if not names or not ACCELERATOR.fullmatch(names[0]):
            continue
        if all(_DEVICE.fullmatch(device) for device in names) and len(set(names)) == len(names):
            if len(names) > _MOST_DEVICES:
                message = f"`{name}` names {len(names)} devices, more than {_MOST_DEVICES}"
                raise ExchangeError(Finding("import-too-big", message))
            fields = [_FIELDS[word] for word in words[len(names) :] if word in _FIELDS]
            return at, tuple(names), tuple(fields)
    message = f"`{name}` has no line that names GPU0 and the other devices"
    help = "paste the whole output of nvidia-smi topo -m"
    raise ExchangeError(Finding("unreadable-matrix", message, help=help))


def _rows(lines: list[str], header: int, names: tuple[str, ...]) -> dict[str, tuple[int, str]]:
    """Return for each row its line number and its text from its name on, wrapped lines joined."""
    rows: dict[str, tuple[int, str]] = {}
    current = ""
    for at, line in enumerate(lines[header + 1 :], header + 2):
        text = line.lstrip()
        first = next(iter(text.split(maxsplit=1)), "")
        if first in names and first not in rows and _starts_with_code(text[len(first) :]):
            current = first
            rows[first] = (at, text)
        elif not text or "=" in line or text.rstrip().endswith(":"):
            if current:
                break
        elif current and _starts_with_code(line):
            number, text = rows[current]
            if len(_cells(text, len(names))[0]) < len(names):
                rows[current] = (number, f"{text} {line}")
            elif len(rows) == len(names):
                break
        elif len(rows) == len(names):
            break
    return rows


def _starts_with_code(text: str) -> bool:
    text = text.strip()
    return bool(_KNOWN_CODE.match(text) or _ANY_CODE.match(text))


def _cells(text: str, count: int) -> tuple[list[str], int]:
    """Return up to `count` codes behind a row's name, also when they stick together; their end."""
    cells: list[str] = []
    at = end = len(text.split(maxsplit=1)[0])
    while len(cells) < count:
        while at < len(text) and text[at].isspace():
            at += 1
        match = _KNOWN_CODE.match(text, at) or _ANY_CODE.match(text, at)
        if match is None:
            break
        cells.append(match[0])
        at = end = match.end()
    return cells, end


def _fields_behind(text: str, end: int, fields: tuple[str, ...]) -> dict[str, str] | None:
    """Return what stands in the fields behind a row's codes, `None` when that cannot be told.

    An empty field has its tab; where tabs became spaces, each field began at a stop of its tab.
    Only where every field is there does the order alone tell.
    """
    behind = text[end:]
    words = behind.split()
    if behind.lstrip(" ").startswith("\t"):
        values = [value.strip() for value in behind.split("\t")[1:]]
        last = next((value for value in reversed(values[len(fields) - 1 :]) if value), "")
        return dict(zip(fields, [*values[: len(fields) - 1], last], strict=False))
    if not words or len(words) >= len(fields):
        return dict(zip(fields, words, strict=False))
    values, at = list[str](), end
    while at < len(text):
        at += _TAB - at % _TAB
        if text[at - 1 : at].strip():  # no stop: something runs over it
            return None
        value = text[at:].split(" ", 1)[0]
        values.append(value)
        at += len(value)
    if [value for value in values if value] != words:
        return None
    last = next((value for value in reversed(values[len(fields) - 1 :]) if value), "")
    return dict(zip(fields, [*values[: len(fields) - 1], last], strict=False))


def _overlapping(number_of: Mapping[str, int], affinity: dict[str, Affinity]) -> list[int]:
    """Take away the CPU lists that cross those of another row, and return the rows' lines.

    CPUs of two rows are the same or none of them is: a list that is neither has run together with
    what stood beside it.
    """
    cpus = {row: _numbers(values.cpus) for row, values in affinity.items()}
    crossing = [
        row
        for row, numbers in cpus.items()
        if not affinity[row].numa
        and any(
            numbers & others and not (numbers <= others or numbers >= others)
            for others in cpus.values()
        )
    ]
    for row in crossing:
        affinity[row] = Affinity()
    return [number_of[row] for row in crossing]


def _numbers(text: str) -> frozenset[int]:
    """Return the numbers of a list like ``0-15,32-47``, none when it is none."""
    try:
        return frozenset(numbers_in(text)) if _NODES.fullmatch(text) else frozenset()
    except UnitError:
        return frozenset()
