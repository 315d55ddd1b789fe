"""Collect the findings of one phase, so that all of a phase's mistakes come out at once."""

from __future__ import annotations

from typing import TYPE_CHECKING

from topo.errors import Finding, Place

if TYPE_CHECKING:
    from collections.abc import Iterable

    from topo.document.nodes import Document, Node
    from topo.errors import Severity, TopoError, UnitError

__all__ = ["Report"]


class Report:
    """The findings of one phase over one document, in the order they were made.

    The one mutable thing on the way from text to description: each reader gets it, adds to it and
    returns what it could read; the phase ends with `stop`.
    """

    def __init__(self, document: Document) -> None:
        self.document = document
        self._findings: list[Finding] = []

    @property
    def findings(self) -> tuple[Finding, ...]:
        """What was found, by place."""
        return tuple(
            sorted(self._findings, key=lambda found: found.place or Place("", 0, 0))
        )

    def add(  # noqa: PLR0913  (the fields of a finding)
        self,
        at: Node | Place,
        code: str,
        message: str,
        *,
        help: str = "",
        notes: Iterable[str] = (),
        severity: Severity = "error",
    ) -> None:
        """Add one finding at a node or a place."""
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

    def unit(self, at: Node | Place, error: UnitError) -> None:
        """Add a unit error, which does not know where it stands."""
        for found in error.findings:
            self.add(at, found.code, found.message, help=found.help)

    def stop(self, kind: type[TopoError]) -> None:
        """Raise `kind` with everything found if any of it is an error."""
        if any(found.severity == "error" for found in self._findings):
            raise kind(self.findings)
