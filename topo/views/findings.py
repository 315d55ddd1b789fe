"""Findings as a person reads them and as a program does."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any
from unicodedata import east_asian_width

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator

    from topo.errors import Finding, Place

__all__ = ["findings_document", "render_findings"]

_MOST_COLUMNS = 100
_COLORS = {"error": "31", "warning": "33", "note": "36"}


def render_findings(findings: Iterable[Finding], *, color: bool = False) -> str:
    """Return findings as text: where, what, the line with a caret, advice; a count at the end.

    Parameters
    ----------
    findings
        What was found, in the order to show.
    color
        Whether to use terminal colours.
    """
    found = list(findings)
    blocks = ["\n".join(_block(one, color=color)) for one in found]
    errors = sum(one.severity == "error" for one in found)
    if errors:
        blocks.append(f"{errors} error{'s' if errors != 1 else ''}")
    return "\n".join(blocks) + "\n" if blocks else ""


def findings_document(findings: Iterable[Finding]) -> dict[str, Any]:
    """Return the ``topo.findings/1`` document; what is not known is `None`."""
    return {
        "schema": "topo.findings/1",
        "findings": [
            {
                "code": one.code,
                "severity": one.severity,
                "message": one.message,
                "help": one.help or None,
                "notes": list(one.notes),
                **_where(one.place),
            }
            for one in findings
        ],
    }


def _where(place: Place | None) -> dict[str, Any]:
    return {
        "file": place.file if place else None,
        "line": place.line if place else None,
        "column": place.column if place else None,
        "end_column": (place.end_column or None) if place else None,
    }


def _block(one: Finding, *, color: bool) -> Iterator[str]:
    severity = f"{one.severity}[{one.code}]"
    if color:
        severity = f"\x1b[1;{_COLORS[one.severity]}m{severity}\x1b[0m"
    yield f"{one.place}: {severity}: {one.message}" if one.place else f"{severity}: {one.message}"
    gutter = ""
    if one.place and one.source_line.strip():
        gutter = " " * len(str(one.place.line))
        line, carets = _excerpt(one.source_line, one.place)
        yield f"{one.place.line} | {line}"
        yield f"{gutter} | {carets}"
    for label, texts in (("help", (one.help,)), ("note", one.notes)):
        for text in texts:
            if text:
                yield f"{gutter} = {label}: {text}" if gutter else f"  {label}: {text}"


def _excerpt(line: str, place: Place) -> tuple[str, str]:
    """Return the line around a place, with the carets that go under it."""
    start = place.column - 1
    end = max(place.end_column - 1, start + 1)
    first = max(0, start - _MOST_COLUMNS // 2) if len(line) > _MOST_COLUMNS else 0
    shown = line[first : first + _MOST_COLUMNS]
    before, under = shown[: start - first], shown[start - first : end - first]
    lead = "..." if first else ""
    tail = "..." if first + _MOST_COLUMNS < len(line) else ""
    padding = " " * (len(lead) + _columns(before))
    return f"{lead}{_plain(shown)}{tail}", padding + "^" * max(_columns(under), 1)


def _plain(text: str) -> str:
    """Return text as one column a character at least: no tabs, no control characters."""
    return "".join(character if character.isprintable() else " " for character in text)


def _columns(text: str) -> int:
    return sum(2 if east_asian_width(character) in "WF" else 1 for character in text)
