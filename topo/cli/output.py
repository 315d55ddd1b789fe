"""Where answers go: results to standard output, findings to standard error."""

from __future__ import annotations

import os
import sys
from contextlib import suppress
from typing import TYPE_CHECKING, Any, TextIO

import click

from topo.records import dataclass

if TYPE_CHECKING:
    from collections.abc import Iterable, Mapping

    from topo.errors import Finding
    from topo.views.text.page import Block


_WIDTH = 100  # of pages that no terminal shows
_WIDEST = 120
_PIECE = 1 << 14  # characters written at once


@dataclass(slots=True)
class Session:
    """What one call of the program knows of itself.

    `as_json` says whether JSON was asked for; `folder` is where an absolute FILE lies, which JSON
    does not tell.
    """

    as_json: bool = False
    folder: str = ""

    @classmethod
    def current(cls) -> Session:
        """Return the running call's."""
        return click.get_current_context().ensure_object(cls)


def put_page(blocks: Iterable[Block], findings: Iterable[Finding] = ()) -> int:
    """Print a page of text, then the findings; return the exit code."""
    from topo.views.text.render import render

    width = _WIDTH
    if sys.stdout is not None and sys.stdout.isatty():
        from shutil import get_terminal_size

        width = min(get_terminal_size().columns, _WIDEST)
    return put_text(render(blocks, width=width, color=_in_color(sys.stdout)), findings)


def put_text(text: str, findings: Iterable[Finding] = ()) -> int:
    """Print text as it is, then the findings; return the exit code."""
    _write(sys.stdout, text)
    return _tell(findings)


def put_document(document: Mapping[str, Any], findings: Iterable[Finding] = ()) -> int:
    """Print a JSON document and return the exit code.

    Findings that are no errors go into the document under ``findings``. An error leaves one
    document all the same: the findings.
    """
    return _put_document(document, tuple(findings), Session.current())


def _put_document(
    document: Mapping[str, Any], findings: tuple[Finding, ...], session: Session
) -> int:
    from topo.views.documents import findings_document
    from topo.views.json import encoded

    failed = any(finding.severity == "error" for finding in findings)
    failure = findings_document(findings)
    document = failure if failed else {**document, "findings": failure["findings"]}
    _write(sys.stdout, encoded(document, folder=session.folder))
    return int(failed)


def fail(findings: Iterable[Finding], session: Session) -> int:
    """Print what an error found, as JSON if that was asked for; return the exit code."""
    if session.as_json:
        return _put_document({}, tuple(findings), session)
    return _tell(findings)


def _tell(findings: Iterable[Finding]) -> int:
    """Print findings to standard error; 1 if one of them is an error."""
    findings = tuple(findings)
    if findings:
        from topo.views.findings import render_findings

        with suppress(OSError):  # nobody listens: the exit code still says it
            _write(sys.stderr, render_findings(findings, color=_in_color(sys.stderr)))
    return int(any(finding.severity == "error" for finding in findings))


def _write(stream: TextIO | None, text: str) -> None:
    if stream is None:
        return
    encoding = stream.encoding or "utf-8"
    try:
        text.encode(encoding)
    except UnicodeEncodeError:
        text = text.encode(encoding, "replace").decode(encoding)
    # In pieces: an unbuffered Python counts the part that a closed pipe still took as the whole.
    for start in range(0, len(text), _PIECE):
        stream.write(text[start : start + _PIECE])
    stream.flush()


def _in_color(stream: TextIO | None) -> bool:
    if stream is None or os.environ.get("NO_COLOR") or os.environ.get("TERM") == "dumb":
        return False
    return stream.isatty()
