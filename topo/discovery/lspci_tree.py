"""The picture that ``lspci -tv`` draws: buses in brackets, a device behind each branch.

A branch hangs on the line of bars or pluses above it, so the column of a ``+`` is what tells the
bus. Lines that were cut or commented by hand are passed over and said.
"""

from __future__ import annotations

import re
from dataclasses import dataclass, field
from typing import Final

from topo.catalogue.identities import vendor_named
from topo.discovery.lspci_blocks import Listing, numbers_in
from topo.discovery.machine import printable
from topo.discovery.pci import Function
from topo.errors import Finding

_BUS: Final = re.compile(
    r"\[(?:(?P<domain>[0-9a-f]{4,8}):)?(?P<bus>[0-9a-f]{2})(?:-[0-9a-f]{2})?\]", re.IGNORECASE
)
_DEVICE: Final = re.compile(
    r"(?P<device>[01][0-9a-f])\.(?P<function>[0-7])(?=-\[|\s|$)", re.IGNORECASE
)
_ROOT: Final = re.compile(r"^[ |]*[-+\\`]+-?\[[0-9a-f]{4,8}:[0-9a-f]{2}", re.IGNORECASE)
_COMMENT: Final = re.compile(r"\s{2,}#.*$")
_MOST_COLUMNS: Final = 1000


@dataclass(slots=True)
class _Bus:
    """A bus that is open: where its branches are, and the bridge above it."""

    column: int
    domain: str
    number: str
    parent: str


@dataclass(slots=True)
class _State:
    functions: list[Function] = field(default_factory=list)
    roots: list[str] = field(default_factory=list)
    open: list[_Bus] = field(default_factory=list)
    passed: int = 0


def read_tree(lines: list[str]) -> Listing | None:
    """Return what a tree shows, `None` when there is none."""
    if not any(_ROOT.match(line) for line in lines):
        return None
    state = _State()
    for line in lines:
        text = _COMMENT.sub("", line.rstrip())[:_MOST_COLUMNS]
        if text.strip(" |-+\\"):
            _line(text, state)
    if not state.functions:
        return None
    findings = []
    if state.passed:
        message = f"{state.passed} lines show no device: cut or written by hand?"
        help = "what they stood for is missing; paste the whole output"
        findings.append(Finding("abridged", message, severity="warning", help=help))
    return Listing(
        tuple(state.functions),
        tuple(dict.fromkeys(state.roots)),
        " -tv",
        ("A tree of lspci knows neither speeds nor NUMA nodes; kinds are told by names.",),
        tuple(findings),
    )


def _line(text: str, state: _State) -> None:
    """Take one line: it goes on with an open bus, or opens a root."""
    start = re.match(r"[ |]*", text)
    at = start.end() if start else 0
    mark = text[at : at + 2]
    if mark in ("+-", "\\-"):
        while state.open and state.open[-1].column > at:
            state.open.pop()
        at += 1
    elif not text.startswith("-"):
        state.passed += 1
        return
    bus = state.open[-1] if state.open and state.open[-1].column == start_of(text, at) else None
    before = len(state.functions)
    _items(text, at, bus, state)
    if len(state.functions) == before and not _BUS.search(text):
        state.passed += 1


def start_of(text: str, at: int) -> int:
    """Return the column of the branch that ends before `at`."""
    return at - 1 if at and text[at - 1] in "+\\" else at


def _items(text: str, at: int, bus: _Bus | None, state: _State) -> None:
    """Walk along a line: buses open, bridges lead on, a name ends it."""
    bridge = ""
    while at < len(text):
        if text[at] == "-":
            at += 1
        elif text[at] in "+\\" and bus is not None:
            bus.column = at
            state.open.append(bus)
            at += 1
        elif text[at] == "+":  # the line of roots
            at += 1
        elif found := _BUS.match(text, at):
            bus = _opened(found, bridge, bus, state)
            at = found.end()
        elif (found := _DEVICE.match(text, at)) and bus is not None:
            at = found.end()
            leads = text[at : at + 2] == "-["
            bridge = _function(found, bus, "" if leads else text[at:], state, bridge=leads)
            if not leads:
                return
            at += 1
        else:
            return


def _opened(found: re.Match[str], bridge: str, bus: _Bus | None, state: _State) -> _Bus:
    domain, number = found["domain"], found["bus"].lower()
    if domain:
        root = f"{int(domain, 16):04x}:{number}"
        state.roots.append(root)
        state.open.clear()
        return _Bus(-1, f"{int(domain, 16):04x}", number, root)
    above = bridge or (bus.parent if bus else "")
    return _Bus(-1, bus.domain if bus else "0000", number, above)


def _function(found: re.Match[str], bus: _Bus, rest: str, state: _State, *, bridge: bool) -> str:
    text = printable(rest)
    address = f"{bus.domain}:{bus.number}:{found['device'].lower()}.{found['function']}"
    vendor, device = numbers_in(text)
    state.functions.append(
        Function(
            id=f"{address} {len(state.functions)}",
            parent=bus.parent,
            address=address,
            code="0604" if bridge else "",
            vendor=vendor or vendor_named(text),
            device=device,
            text=text,
        )
    )
    return state.functions[-1].id
