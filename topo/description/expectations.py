"""The `expect:` of a file: one sentence a line, read here and judged by `topo check`.

::

    load via direct <= 7 s                     load via direct is limited by slot1/chip
    load via direct >= 90 GB/s at measured     load via direct beats legacy
    gpu4 to slot2 is SYS                       gpu0 to storage via direct is not possible
"""

from __future__ import annotations

import re
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Any, Final

from topo.catalogue.advice import did_you_mean, nearest_names
from topo.description.description import Expectation
from topo.description.shape import kind_of, listed
from topo.document.nodes import Scalar, Sequence
from topo.errors import UnitError
from topo.units import parse_duration, parse_rate

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Mapping

    from topo.description.description import Basis, Workload
    from topo.description.names import Names
    from topo.document.nodes import Node
    from topo.document.report import Report


BASES: Final[tuple[Basis, ...]] = ("theoretical", "achievable", "measured")
_VIA = r"(?P<subject>\S+)(?: via (?P<via>\S+))?"
_PAIR = r"(?P<subject>\S+) to (?P<what>\S+)"
_AT = re.compile(r"(?P<sentence>.*?)\s+at\s+(?P<basis>[a-z]+)")
_HELP: Final = "write it like `load via direct <= 7 s` or `gpu4 to slot2 is SYS`"
_EXAMPLES: Final = (
    "load via direct <= 7 s",
    "load via direct >= 90 GB/s at measured",
    "load via direct is limited by slot1/chip",
    "load via direct beats legacy",
    "gpu4 to slot2 is SYS",
    "gpu0 to storage via direct is not possible",
)


@dataclass(frozen=True, slots=True)
class Claim:
    """An expectation whose names are not looked up yet, and where it stands."""

    node: Scalar
    expectation: Expectation


# --- shape ----------------------------------------------------------------------------------------


def read_expectations(node: Node, report: Report) -> tuple[Claim, ...]:
    """Read the sentences of `expect:`, without looking names up."""
    if not isinstance(node, Sequence):
        if isinstance(node, Scalar) and not node.text:
            return ()
        message = f"`expect:` is a list of sentences, not {kind_of(node)}"
        report.add(node, "wrong-shape", message, help="start each sentence with `- `")
        return ()
    claims = (_read(item, report) for item in node.items)
    return tuple(claim for claim in claims if claim is not None)


def _read(node: Node, report: Report) -> Claim | None:
    if not isinstance(node, Scalar):
        message = f"an expectation is one sentence, not {kind_of(node)}"
        report.add(node, "bad-expectation", message, help=f"{_HELP}, without a colon")
        return None
    text = " ".join(node.text.split())
    found = _AT.fullmatch(text)
    sentence, word = (found["sentence"], found["basis"]) if found else (text, "")
    basis = next((basis for basis in BASES if basis == word), None)
    if word and basis is None:
        message = f"there is no basis `{word}`"
        advice = did_you_mean(word, BASES) or f"write at {listed(BASES, 'or')}"
        report.add(node, "bad-expectation", message, help=advice)
        return None
    try:
        fields = _fields(sentence)
    except UnitError as error:
        report.unit(node, error)
        return None
    return Claim(node, Expectation(text=text, basis=basis, place=node.place, **fields))


def _fields(sentence: str) -> dict[str, Any]:
    plain = sentence.replace("\u2264", "<=").replace("\u2265", ">=")
    if plain != sentence:
        message = f"`{sentence}` has a sign that topo does not read"
        raise UnitError("bad-expectation", message, f"write `{plain}`")
    for pattern, read in _SENTENCES:
        found = pattern.fullmatch(sentence)
        if found:
            return read({key: value or "" for key, value in found.groupdict().items()})
    raise UnitError("bad-expectation", f"`{sentence}` is not a sentence that topo judges", _HELP)


def _figure(words: dict[str, str]) -> dict[str, Any]:
    text = words.pop("figure")
    kind = "rate" if "/" in text or text.endswith("ps") else "time"
    value = (parse_rate if kind == "rate" else parse_duration)(text)
    return {"kind": kind, "value": value, "value_text": text, **words}


def _limited(words: dict[str, str]) -> dict[str, Any]:
    return {"kind": "limited-by", **words}


def _beats(words: dict[str, str]) -> dict[str, Any]:
    return {"kind": "beats", **words}


def _locality(words: dict[str, str]) -> dict[str, Any]:
    text = words["value_text"]
    if not re.fullmatch(r"X|NV[0-9]+|PIX|PXB|PHB|NODE|SYS", text):
        near = did_you_mean(text, ("PIX", "PXB", "PHB", "NODE", "SYS"))
        advice = near or "write X, NV and a number, PIX, PXB, PHB, NODE or SYS"
        raise UnitError("bad-expectation", f"`{text}` is not a class of locality", advice)
    return {"kind": "locality", **words}


def _possible(words: dict[str, str]) -> dict[str, Any]:
    negated = words.pop("negated")
    if not words["via"]:
        says = "possible by which data path? The sentence does not say"
        raise UnitError("bad-expectation", says, "write `gpu0 to storage via direct is possible`")
    return {"kind": "not-possible" if negated else "possible", **words}


_SENTENCES: Final[
    tuple[tuple[re.Pattern[str], Callable[[dict[str, str]], dict[str, Any]]], ...]
] = (
    (re.compile(rf"{_PAIR}(?: via (?P<via>\S+))? is (?P<negated>not )?possible"), _possible),
    (re.compile(rf"{_VIA} is limited by (?P<what>.+)"), _limited),
    (re.compile(rf"{_VIA} beats (?P<what>\S+)"), _beats),
    (re.compile(rf"{_PAIR} is (?P<value_text>\S+)"), _locality),
    (re.compile(rf"{_VIA}\s*(?P<relation><=|>=|<|>)\s*(?P<figure>.+)"), _figure),
)


# --- references -----------------------------------------------------------------------------------


def resolve_expectations(
    claims: Iterable[Claim],
    *,
    names: Names,
    workloads: Mapping[str, Workload],
    data_paths: Iterable[str],
    report: Report,
) -> tuple[Expectation, ...]:
    """Return the expectations whose workloads, devices and data paths are there.

    Parameters
    ----------
    claims
        What `read_expectations` gave.
    names
        The devices.
    workloads, data_paths
        The workloads by name, and the names of all data paths.
    report
        Gets what is wrong.
    """
    known = tuple(data_paths)
    found = []
    for claim in claims:
        expectation = claim.expectation
        if expectation.kind in ("locality", "possible", "not-possible"):
            for text in (expectation.subject, expectation.what):
                names.select(text, claim.node, report)
        else:
            expectation = _of_workload(expectation, claim.node, workloads, report)
            if expectation.kind == "limited-by":
                _check_resource(expectation.what, claim.node, names, report)
        others = [expectation.via] + [expectation.what] * (expectation.kind == "beats")
        for path in others:
            _check_path(path, known, claim.node, report)
        found.append(expectation)
    return tuple(found)


def _of_workload(
    expectation: Expectation, node: Scalar, workloads: Mapping[str, Workload], report: Report
) -> Expectation:
    """Return the expectation with the only data path of its workload if it names none."""
    workload = workloads.get(expectation.subject)
    if workload is None:
        message = f"no workload `{expectation.subject}`"
        advice = did_you_mean(expectation.subject, workloads)
        have = f"workloads are {listed(workloads)}" if workloads else "define it under `workloads:`"
        report.add(node, "unknown-name", message, help=advice or have)
        return expectation
    if expectation.via:
        return expectation
    if len(workload.via) == 1:
        return replace(expectation, via=workload.via[0])
    message = f"`{expectation.text}` does not say by which data path"
    report.add(node, "bad-expectation", message, help=f"write `{workload.name} via direct ...`")
    return expectation


def _check_path(path: str, known: tuple[str, ...], node: Scalar, report: Report) -> None:
    if path and path not in known:
        advice = nearest_names(path, known)
        report.add(node, "unknown-name", f"no data path `{path}`", help=advice)


def _check_resource(resource: str, node: Scalar, names: Names, report: Report) -> None:
    """Check that a resource (``slot1/chip``, ``slot1 -> cpu1``) stands at devices that exist."""
    for end in resource.split(" -> "):
        names.select(end.partition("/")[0].strip(), node, report)
