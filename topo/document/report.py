"""Collect the findings of one phase, so that all of a phase's mistakes come out at once."""

from __future__ import annotations

from dataclasses import replace
from typing import TYPE_CHECKING, Final

from topo.errors import DescriptionError, Finding, Place

if TYPE_CHECKING:
    from collections.abc import Iterable

    from topo.document.nodes import Document, Node
    from topo.errors import Severity, TopoError, UnitError


_MOST: Final = 100  # errors of one phase; a file with more is of another kind, or a bad generator's


class Report:
    """The findings of one phase over one document, in the order they were made.

    The one mutable thing on the way from text to description: each reader gets it, adds to it and
    returns what it could read; the phase ends with `stop`.
    """

    def __init__(self, document: Document) -> None:
        self.document = document
        self._findings: list[Finding] = []
        self._errors = 0

    @property
    def findings(self) -> tuple[Finding, ...]:
        """What was found, by place."""
        return tuple(sorted(self._findings, key=lambda found: found.place or Place("", 0, 0)))

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
        self._findings.append(
            Finding(
                code=code,
                message=message,
                place=place,
                severity=severity,
                help=help,
                notes=tuple(notes),
                source_line=self.document.line(place.line)
                if place.file == self.document.name
                else "",
            )
        )
        self._errors += severity == "error"
        if self._errors >= _MOST:
            last = self.findings[-1]
            stopped = (*last.notes, f"reading stopped here, after {_MOST} mistakes")
            raise DescriptionError((*self.findings[:-1], replace(last, notes=stopped)))

    def unit(self, at: Node | Place, error: UnitError) -> None:
        """Add a unit error, which does not know where it stands."""
        for found in error.findings:
            self.add(at, found.code, found.message, help=found.help)

    def stop(self, kind: type[TopoError]) -> None:
        """Raise `kind` with everything found if any of it is an error."""
        if self._errors:
            raise kind(self.findings)
