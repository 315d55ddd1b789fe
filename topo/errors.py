"""What can go wrong, and how it is said.

Everything that topo raises on purpose is a `TopoError`; a bare traceback is a bug::

    TopoError
    ├── DocumentError     the text is not YAML that topo reads
    ├── DescriptionError  the YAML says something that is wrong (shape, reference or physics)
    ├── UnitError         a quantity is not what was expected (no place: the reader adds it)
    ├── UnknownNameError  a name given by the caller that the topology does not have
    ├── NoRouteError      no permitted way between two devices; carries what blocked it
    ├── UnboundedError    a demand meets no finite resource
    ├── SolverError       a solver stopped without an answer (infeasible, time limit)
    ├── CertificateError  an answer did not pass its check: a fault of topo
    ├── DrawError         a picture could not be made
    ├── ExchangeError     an imported file is of another kind, or lies
    └── LibraryError      a library that topo does without is asked for and not installed

A *finding* is a value: one cause, one message. Rendering it is the business of `topo.views`.
"""

from __future__ import annotations

from collections.abc import Iterable
from typing import Literal

from topo.records import dataclass

Severity = Literal["error", "warning", "note"]


@dataclass(frozen=True, slots=True, order=True)
class Place:
    """Where something stands in a text: 1-based line and column, columns counted in characters.

    `end_column` is the column after the last character on that line, or 0 when only the start
    is known. What stands in no text, but in a `dict`, has no line: `file` is the keys to it.
    """

    file: str
    line: int
    column: int
    end_column: int = 0

    def __str__(self) -> str:
        return f"{self.file}:{self.line}:{self.column}" if self.line else self.file


@dataclass(frozen=True, slots=True)
class Finding:
    """One thing worth saying about an input or a result.

    Parameters
    ----------
    code
        A kebab-case word that `topo explain` knows.
    message
        One sentence: what stood there and what was expected.
    place
        Where, when it is about a text.
    severity
        `error` stops the work, `warning` and `note` do not.
    help
        What to write instead, or the near name; empty when there is no good advice.
    notes
        Facts that belong to it (``first defined on line 3``).
    source_line
        The text of the line at `place`, for the caret.
    """

    code: str
    message: str
    place: Place | None = None
    severity: Severity = "error"
    help: str = ""
    notes: tuple[str, ...] = ()
    source_line: str = ""


class TopoError(Exception):
    """The root of everything topo raises on purpose; `findings` says what is wrong, all at once."""

    def __init__(self, findings: Finding | Iterable[Finding]) -> None:
        self.findings: tuple[Finding, ...] = (
            (findings,) if isinstance(findings, Finding) else tuple(findings)
        )
        super().__init__("\n".join(_one_line(finding) for finding in self.findings))

    def __reduce__(self) -> tuple[object, ...]:
        """Return what another process makes the same error of."""
        return _again, (type(self), self.findings)


def _again(kind: type[TopoError], findings: tuple[Finding, ...]) -> TopoError:
    error = kind.__new__(kind)
    TopoError.__init__(error, findings)
    return error


class DocumentError(TopoError):
    """The text is not YAML that topo reads."""


class DescriptionError(TopoError):
    """The YAML is well-formed and says something wrong."""


class UnknownNameError(TopoError, KeyError):
    """A caller named a device, workload, data path or part that is not there."""

    __str__ = Exception.__str__  # a `KeyError` quotes what it says


class NoRouteError(TopoError):
    """There is no permitted way between two devices."""


class UnboundedError(TopoError):
    """A demand meets no finite resource, so its rate has no limit."""


class SolverError(TopoError):
    """A solver ended without an answer."""


class CertificateError(TopoError):
    """An answer did not pass the check that shares no code with its solver: a fault of topo."""


class DrawError(TopoError):
    """A picture could not be made."""


class ExchangeError(TopoError):
    """A foreign file is of another kind than was said, or contradicts itself."""


class LibraryError(TopoError, ImportError):
    """A library that topo does without is not installed; `package` is what to install."""

    def __init__(self, package: str, purpose: str) -> None:
        message = f"{purpose} takes {package}, which is not installed"
        super().__init__(Finding("not-installed", message, help=f"pip install {package}"))


class UnitError(TopoError):
    """A text is not the quantity that was expected; carries one finding without a place."""

    def __init__(self, code: str, message: str, help: str = "") -> None:
        super().__init__(Finding(code=code, message=message, help=help))


def _one_line(finding: Finding) -> str:
    where = f"{finding.place}: " if finding.place else ""
    advice = f" ({finding.help})" if finding.help else ""
    return f"{where}{finding.severity}[{finding.code}]: {finding.message}{advice}"
