"""Output of ``nvidia-smi topo -m``, also pasted, coloured, wrapped, old, or without its legend."""

from __future__ import annotations

import re
from typing import TYPE_CHECKING, Final

from topo.discovery.foreign import read_lines
from topo.discovery.machine import printable
from topo.discovery.matrix import Affinity, Matrix, links_in, rank_of
from topo.errors import ExchangeError, Finding, Place

if TYPE_CHECKING:
    from collections.abc import Iterable

    from topo.discovery.machine import Machine


_COLUMNS: Final = re.compile(
    r"CPU\s+Affinity|NUMA\s+Affinity|Node\s+Affinity|GPU\s+NUMA\s+ID|\S+", re.IGNORECASE
)
_FIELDS: Final = {
    "cpu affinity": "cpus",
    "numa affinity": "numa",
    "node affinity": "numa",
    "gpu numa id": "gpu_numa",
}
_DEVICE: Final = re.compile(r"GPU\d{1,4}|NIC\d{1,4}|(?!(?:NV|X)\d*$)[A-Za-z][\w.:-]{0,40}\d\w{0,8}")
_KNOWN: Final = re.compile(r"NV\d{1,2}|NODE|SYS|PHB|PXB|PIX|PSB|SOC|X")
_OTHER: Final = re.compile(r"[A-Za-z][A-Za-z/#]{0,5}\d{0,2}(?=\s|$)")
_PEER: Final = frozenset({"OK", "CNS", "GNS", "TNS", "NS", "DR", "U"})
_LEGEND: Final = re.compile(r"\s*(NIC\d{1,4})\s*:\s*(\S{1,60})\s*")
_MOST: Final = 256  # devices


def read(data: bytes, name: str) -> Machine:
    """Read a matrix and build the least tree that it allows.

    Parameters
    ----------
    data, name
        The text, and what messages call it.

    Raises
    ------
    ExchangeError
        If there is no such matrix in it.
    """
    from topo.discovery.matrix_tree import to_sighting

    return to_sighting(read_matrix(data, name), name)


def read_matrix(data: bytes, name: str) -> Matrix:
    """Read the matrix alone.

    Raises
    ------
    ExchangeError
        If there is none, or it is one of ``topo -p2p``.
    """
    lines = read_lines(data, name)
    at, names, fields = _header(lines, name)
    rows = _rows(lines, at, names)
    if not rows:
        message = f"`{name}` names {len(names)} devices and has no row for any"
        raise ExchangeError(Finding("unreadable-matrix", message, place=Place(name, at + 1, 1)))
    legend = {found[1]: found[2] for line in lines if (found := _LEGEND.fullmatch(line))}
    codes: dict[tuple[str, str], str] = {}
    affinity: dict[str, Affinity] = {}
    short: list[tuple[int, str]] = []
    for row, (number, text) in rows.items():
        cells, rest = _cells(text, len(names))
        if len(cells) < len(names):
            short.append((number, row))
        codes |= {(row, column): code for column, code in zip(names, cells, strict=False)}
        affinity[row] = _affinity(rest, fields)
    seen = {code for (row, column), code in codes.items() if row != column}
    if seen and seen <= _PEER:
        message = f"`{name}` is a peer-to-peer matrix of `nvidia-smi topo -p2p`, not of `topo -m`"
        raise ExchangeError(Finding("wrong-kind", message, help="run `nvidia-smi topo -m`"))
    odd = (*_ragged(short, rows, names, name), *_unknown(seen), *_asymmetric(codes))
    return Matrix(names, codes, affinity, legend, odd)


# --- lines ----------------------------------------------------------------------------------------


def _header(lines: list[str], name: str) -> tuple[int, tuple[str, ...], tuple[str, ...]]:
    """Return the header's index, its devices, and the fields behind them."""
    for at, line in enumerate(lines):
        tokens = _COLUMNS.findall(line)
        fields = [" ".join(token.lower().split()) for token in tokens]
        behind = next((place for place, field in enumerate(fields) if field in _FIELDS), None)
        names = tokens[:behind]
        if not names or not re.fullmatch(r"GPU\d{1,4}", names[0]):
            continue
        if all(_DEVICE.fullmatch(one) for one in names) and len(set(names)) == len(names):
            if len(names) > _MOST:
                message = f"`{name}` names {len(names)} devices, more than {_MOST}"
                raise ExchangeError(Finding("import-too-big", message))
            known = [_FIELDS[field] for field in fields[len(names) :] if field in _FIELDS]
            return at, tuple(names), tuple(known)
    message = f"`{name}` has no line that names GPU0 and the other devices"
    raise ExchangeError(
        Finding("unreadable-matrix", message, help="paste the whole output of nvidia-smi topo -m")
    )


def _rows(lines: list[str], header: int, names: tuple[str, ...]) -> dict[str, tuple[int, str]]:
    """Return for each row its line number and what stands behind its name, wrapped lines joined."""
    rows: dict[str, tuple[int, str]] = {}
    current = ""
    for at, line in enumerate(lines[header + 1 :], header + 2):
        first, _, rest = line.strip(" ").lstrip("\t ").replace("\t", " \t", 1).partition(" ")
        if first in names and first not in rows and _starts_with_code(rest):
            current = first
            rows[first] = (at, rest)
        elif not line.strip() or "=" in line or line.strip().endswith(":"):
            if current:
                break
        elif current and _short(rows[current][1], len(names)) and _starts_with_code(line):
            number, text = rows[current]
            rows[current] = (number, f"{text} {line}")
        elif len(rows) == len(names):
            break
    return rows


def _starts_with_code(text: str) -> bool:
    plain = text.strip()
    return bool(_KNOWN.match(plain) or _OTHER.match(plain))


def _short(text: str, count: int) -> bool:
    return len(_cells(text, count)[0]) < count


def _cells(text: str, count: int) -> tuple[list[str], str]:
    """Return up to `count` codes, also when they stick together, and the rest of the row."""
    cells: list[str] = []
    at = 0
    while len(cells) < count:
        while at < len(text) and text[at].isspace():
            at += 1
        found = _OTHER.match(text, at)
        if found is None or _KNOWN.match(text, at):
            found = _KNOWN.match(text, at) or found
        if found is None:
            break
        cells.append(found[0])
        at = found.end()
    return cells, text[at:]


def _affinity(rest: str, fields: tuple[str, ...]) -> Affinity:
    texts = rest.split()
    found = dict(zip(fields, texts, strict=False))
    return Affinity(**{field: printable(text) for field, text in found.items() if text != "N/A"})


# --- what is odd ----------------------------------------------------------------------------------


def _ragged(
    short: list[tuple[int, str]],
    rows: dict[str, tuple[int, str]],
    names: tuple[str, ...],
    name: str,
) -> Iterable[Finding]:
    missing = [one for one in names if one not in rows]
    if short or missing:
        what = f"the row of {short[0][1]} is short" if short else f"{missing[0]} has no row"
        yield Finding(
            "ragged-matrix",
            f"{what}; the cells were taken from the other half of the matrix where it has them",
            place=Place(name, short[0][0], 1) if short else None,
            severity="warning",
        )


def _unknown(codes: set[str]) -> Iterable[Finding]:
    odd = sorted(code for code in codes if rank_of(code) is None and not links_in(code))
    if odd:
        yield Finding(
            "unknown-code",
            f"{', '.join(odd[:3])}: no code of nvidia-smi's; such pairs are taken as not known",
            severity="warning",
            help="another vendor's tool prints the same form",
        )


def _asymmetric(codes: dict[tuple[str, str], str]) -> Iterable[Finding]:
    odd = [
        (one, other)
        for (one, other), code in codes.items()
        if one < other and codes.get((other, one), code) != code
    ]
    if odd:
        one, other = odd[0]
        yield Finding(
            "asymmetric-matrix",
            f"{one} to {other} is {codes[one, other]}, and back {codes[other, one]}"
            + (f"; {len(odd) - 1} more" if len(odd) > 1 else ""),
            severity="warning",
            help="the first was taken; was the text edited?",
        )
