"""The tree that a YAML text becomes, and the report that its readers fill.

Every scalar is still text, every node knows its place.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from dataclasses import replace
from typing import Any, Final

from topo.errors import DescriptionError, Finding, Place, Severity, TopoError, UnitError
from topo.records import dataclass


@dataclass(frozen=True, slots=True)
class Scalar:
    """A piece of text. `quoted` tells ``"no"`` from ``no``; an empty value is the text ``""``."""

    text: str
    place: Place
    quoted: bool = False


@dataclass(frozen=True, slots=True)
class Sequence:
    """An ordered list of nodes."""

    items: tuple[Node, ...]
    place: Place


@dataclass(frozen=True, slots=True)
class Mapping:
    """Keys with their values in the order written; keys are unique."""

    entries: tuple[tuple[Scalar, Node], ...]
    place: Place

    def get(self, key: str) -> Node | None:
        """Return the value under `key`, or `None`."""
        return next((value for name, value in self.entries if name.text == key), None)

    def key(self, key: str) -> Scalar | None:
        """Return the key's own node (its place), or `None`."""
        return next((name for name, _ in self.entries if name.text == key), None)

    def __iter__(self) -> Iterator[tuple[Scalar, Node]]:
        return iter(self.entries)


Node = Scalar | Sequence | Mapping


def plain(node: Node) -> Any:
    """Return a tree without its places: dicts, lists and texts.

    Examples
    --------
    >>> from topo.document.parse import parse
    >>> plain(parse("{a: [1, no]}").root)
    {'a': ['1', 'no']}
    """
    if isinstance(node, Mapping):
        return {key.text: plain(value) for key, value in node}
    if isinstance(node, Sequence):
        return [plain(item) for item in node.items]
    return node.text


@dataclass(frozen=True, slots=True)
class Document:
    """One parsed text: its name as the user gave it, its root, and its lines for carets."""

    name: str
    root: Node
    lines: tuple[str, ...]

    def line(self, number: int) -> str:
        """Return the text of line `number` (1-based), or ``""`` past the end."""
        return self.lines[number - 1] if 0 < number <= len(self.lines) else ""


_MOST: Final = 100  # errors of one phase; a file with more is of another kind, or a bad generator's


class Report:
    """The findings of one phase over one document, in the order they were made.

    The one mutable thing on the way from text to description: each reader gets it, adds to it and
    returns what it could read; the phase ends with `stop`.
    """

    def __init__(self, document: Document, findings: Iterable[Finding] = ()) -> None:
        """Begin with the `findings` of earlier phases, which had no error."""
        self.document = document
        self._findings = list(findings)
        self._errors = 0

    @property
    def findings(self) -> tuple[Finding, ...]:
        """What was found, by place."""
        return tuple(sorted(self._findings, key=lambda finding: finding.place or Place("", 0, 0)))

    def add(
        self,
        at: Node | Place,
        code: str,
        message: str,
        *,
        help: str = "",
        notes: Iterable[str] = (),
        severity: Severity = "error",
    ) -> None:
        """Add one finding at a node or a place.

        Raises
        ------
        DescriptionError
            With what was found so far, when it is the hundredth error.
        """
        place = at if isinstance(at, Place) else at.place
        is_here = place.file == self.document.name
        source = self.document.line(place.line) if is_here else ""
        finding = Finding(code, message, place, severity, help, tuple(notes), source)
        if finding in self._findings[-_MOST:]:  # of several devices that share what is wrong
            return
        self._findings.append(finding)
        self._errors += severity == "error"
        if self._errors >= _MOST:
            last = self.findings[-1]
            stopped = (*last.notes, f"reading stopped here, after {_MOST} mistakes")
            raise DescriptionError((*self.findings[:-1], replace(last, notes=stopped)))

    def include(self, findings: Iterable[Finding], *, failed: bool = False) -> None:
        """Add findings over another document; `failed` where they stand elsewhere already.

        A finding about this document gets its line of it.
        """
        for finding in findings:
            place = finding.place
            if place is not None and place.file == self.document.name and not finding.source_line:
                finding = replace(finding, source_line=self.document.line(place.line))  # noqa: PLW2901
            self._findings.append(finding)
            self._errors += finding.severity == "error"
        self._errors += failed

    def unit(self, at: Node | Place, error: UnitError) -> None:
        """Add a unit error, which does not know where it stands."""
        for finding in error.findings:
            self.add(at, finding.code, finding.message, help=finding.help)

    def stop(self, kind: type[TopoError]) -> None:
        """Raise `kind` with everything found if any of it is an error."""
        if self._errors:
            raise kind(self.findings)
