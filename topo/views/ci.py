"""What `topo check` finds, as continuous integration reads it: annotations, SARIF, JUnit's XML.

References
----------
https://docs.github.com/actions/reference/workflow-commands-for-github-actions;
https://docs.oasis-open.org/sarif/sarif/v2.1.0/sarif-v2.1.0.html;
https://github.com/testmoapp/junitxml (what programs agree on of JUnit's XML)
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Sequence
from typing import TYPE_CHECKING, Any, Final
from urllib.parse import quote

from topo import __version__
from topo.records import dataclass
from topo.views.explain import page_of

if TYPE_CHECKING:
    from topo.errors import Finding, Severity
    from topo.study.check import Judgement

_COMMANDS: Final[dict[Severity, str]] = {"error": "error", "warning": "warning", "note": "notice"}
_SCHEMA: Final = "https://json.schemastore.org/sarif-2.1.0.json"
_NOT_IN_XML: Final = re.compile("[^\\t\\n\\r\\x20-\\ud7ff\\ue000-\\ufffd\\U00010000-\\U0010ffff]")


@dataclass(frozen=True, slots=True)
class CheckedFile:
    """One file that was checked: its name, what was found, and what it expects."""

    name: str
    findings: tuple[Finding, ...]
    judgements: tuple[Judgement, ...] = ()

    def file_of(self, finding: Finding) -> str:
        """Return where a finding stands: this file, or one that it uses."""
        return finding.place.file if finding.place else self.name


def _text(finding: Finding) -> str:
    parts = [finding.message, *(f"note: {note}" for note in finding.notes)]
    return "\n".join([*parts, *([f"help: {finding.help}"] if finding.help else [])])


# --- GitHub ---------------------------------------------------------------------------------------


def github(files: Sequence[CheckedFile]) -> str:
    """Return workflow commands: GitHub shows each beside its line of a pull request.

    Examples
    --------
    >>> from topo.errors import Finding, Place
    >>> finding = Finding("tab", "a tab stands here", Place("box.yaml", 2, 3))
    >>> print(github([CheckedFile("box.yaml", (finding,))]), end="")
    ::error file=box.yaml,line=2,col=3,title=tab::a tab stands here
    """
    lines = []
    for checked in files:
        for finding in checked.findings:
            place = finding.place
            properties: dict[str, object] = {"file": checked.file_of(finding)}
            if place:
                properties |= {"line": place.line, "col": place.column}
                properties |= {"endColumn": place.end_column} if place.end_column else {}
            properties["title"] = finding.code
            written = ",".join(f"{key}={_property(str(text))}" for key, text in properties.items())
            lines.append(f"::{_COMMANDS[finding.severity]} {written}::{_data(_text(finding))}\n")
    return "".join(lines)


def _data(text: str) -> str:
    return text.replace("%", "%25").replace("\r", "%0D").replace("\n", "%0A")


def _property(text: str) -> str:
    return _data(text).replace(":", "%3A").replace(",", "%2C")


# --- SARIF ----------------------------------------------------------------------------------------


def sarif(files: Sequence[CheckedFile]) -> dict[str, Any]:
    """Return a log of SARIF 2.1.0 with one run: a rule for each code, a result for each finding."""
    codes = sorted({finding.code for checked in files for finding in checked.findings})
    driver = {"name": "topo", "version": __version__, "rules": [_rule(code) for code in codes]}
    results = [
        {
            "ruleId": finding.code,
            "ruleIndex": codes.index(finding.code),
            "level": finding.severity,  # its words are SARIF's
            "message": {"text": _message(_text(finding))},
            "locations": [{"physicalLocation": _location(checked, finding)}],
        }
        for checked in files
        for finding in checked.findings
    ]
    run = {"tool": {"driver": driver}, "columnKind": "unicodeCodePoints", "results": results}
    return {"$schema": _SCHEMA, "version": "2.1.0", "runs": [run]}


def _message(text: str) -> str:
    """Return a message string, in which a single brace would be a placeholder (3.11.5)."""
    return text.replace("{", "{{").replace("}", "}}")


def _rule(code: str) -> dict[str, Any]:
    page = page_of(code)
    help = {"help": {"text": _message(page.text)}} if page else {}
    return {"id": code, "shortDescription": {"text": code.replace("-", " ")}, **help}


def _location(checked: CheckedFile, finding: Finding) -> dict[str, Any]:
    location: dict[str, Any] = {"artifactLocation": {"uri": _uri(checked.file_of(finding))}}
    place = finding.place
    if place:
        region = {"startLine": place.line, "startColumn": place.column}
        region |= {"endColumn": place.end_column} if place.end_column else {}
        location["region"] = region
    return location


def _uri(file: str) -> str:
    """Return a file as a reference relative to where topo runs; an absolute one with its scheme."""
    path = quote(file.replace("\\", "/"), safe="/@+,;=~$&!*'()")
    return f"file://{path}" if path.startswith("/") else path


# --- JUnit ----------------------------------------------------------------------------------------


def junit(files: Sequence[CheckedFile]) -> str:
    """Return JUnit's XML: a suite for each file, with a case for each line of its `expect:`.

    Its first case is that the file is read; each mistake is an error of it.
    """
    from xml.sax.saxutils import escape, quoteattr

    def attribute(text: str) -> str:
        return quoteattr(_NOT_IN_XML.sub("\N{REPLACEMENT CHARACTER}", text))

    def content(text: str) -> str:
        return escape(_NOT_IN_XML.sub("\N{REPLACEMENT CHARACTER}", text))

    def cases(checked: CheckedFile) -> Iterator[tuple[str, str]]:
        """Yield what became of each case (``""``, ``error``, ``failure``), and its element."""
        failed = {finding.place: finding for finding in checked.findings if _is_failure(finding)}
        others = [finding for finding in checked.findings if not _is_failure(finding)]
        errors = [finding for finding in others if finding.severity == "error"]
        said = "\n".join(f"{f.severity}[{f.code}]: {_text(f)}" for f in others if f not in errors)
        output = f"<system-out>{content(said)}</system-out>" if said else ""
        whole = attribute(checked.name)
        for at, finding in enumerate(errors):
            words = f"{finding.place}\n{_text(finding)}" if finding.place else _text(finding)
            name = attribute(f"{finding.code} {finding.place or at + 1}")
            kind, message = attribute(finding.code), attribute(finding.message)
            inner = f"<error type={kind} message={message}>{content(words)}</error>"
            yield "error", f"<testcase classname={whole} name={name}>{inner}{output}</testcase>"
            output = ""
        if not errors:
            yield "", f'<testcase classname={whole} name="is read">{output}</testcase>'
        for judgement in checked.judgements:
            expectation = judgement.expectation
            name = attribute(expectation.text)
            broken = failed.get(expectation.place)
            if judgement.holds or broken is None:
                yield "", f"<testcase classname={whole} name={name}/>"
                continue
            words = f"{expectation.place}\n{_text(broken)}"
            kind, message = attribute(broken.code), attribute(broken.message)
            inner = f"<failure type={kind} message={message}>{content(words)}</failure>"
            yield "failure", f"<testcase classname={whole} name={name}>{inner}</testcase>"

    suites = []
    totals = [0, 0, 0]
    for checked in files:
        outcomes = list(cases(checked))
        counts = [len(outcomes), *(sum(o == word for o, _ in outcomes) for word in _BAD)]
        totals = [total + count for total, count in zip(totals, counts, strict=True)]
        head = f"<testsuite name={attribute(checked.name)} {_counts(counts)}>"
        suites += [f"  {head}", *(f"    {element}" for _, element in outcomes), "  </testsuite>"]
    head = f'<testsuites name="topo check" {_counts(totals)}>'
    return "\n".join(['<?xml version="1.0" encoding="UTF-8"?>', head, *suites, "</testsuites>", ""])


_BAD: Final = ["failure", "error"]


def _counts(counts: Sequence[int]) -> str:
    tests, failures, errors = counts
    return f'tests="{tests}" failures="{failures}" errors="{errors}"'


def _is_failure(finding: Finding) -> bool:
    return finding.code == "expectation-failed"
