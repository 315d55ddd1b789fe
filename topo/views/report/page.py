"""The page of a report: template, style and modules made one file that needs nothing else."""

from __future__ import annotations

import base64
import hashlib
import json
import re
from collections.abc import Mapping
from importlib.resources import files
from itertools import zip_longest
from typing import TYPE_CHECKING, Any, Final

from topo import __version__
from topo.phrases import listed, ranges
from topo.units import format_rate
from topo.views.json import encoded
from topo.views.report.document import ResourceTable, report_document
from topo.views.report.picture import colours, live_picture, picture_style

if TYPE_CHECKING:
    from topo.routes.route import Route
    from topo.study.report import Report
    from topo.topology.topology import Topology

# In the order in which they need each other: together they are one module.
MODULES: Final = (
    *("solver.js", "words.js", "dom.js", "model.js", "picture.js", "resources.js", "answer.js"),
    *("charts.js", "doubt.js", "main.js"),
)
_ROOM: Final = 298_000  # bytes of a page: pictures of routes that come later are left out
_MOST_NAMES: Final = 16  # of resources, and ranges of them, that have a figure from one source
_IMPORT: Final = re.compile(r"^import .*?;\n", re.MULTILINE | re.DOTALL)
_EXPORT: Final = re.compile(r"^export ", re.MULTILINE)
_COMMENT: Final = re.compile(r"^\s*(//.*\n|/\*\*(?:.|\n)*?\*/\n)", re.MULTILINE)
# Zeros at the end of a number; or a text, which stays.
_ROUND: Final = re.compile(r'"(?:[^"\\]|\\.)*"|(\d)(0{4,})(?=[,\]}])')
_INDENT: Final = re.compile(r"^\s+", re.MULTILINE)


def report_page(report: Report, *, command: tuple[str, ...], folder: str = "") -> str:
    """Return a report as one HTML file: pictures, document, style and script in it.

    It asks nothing of a network, and its policy forbids it: style and script are named by their
    hashes. What a file says gets in as text, through the template's escapes, or as JSON.

    Parameters
    ----------
    report
        What it says.
    command
        The words of ``topo compare`` that ask the same: FILE and options.
    folder
        A folder that is nobody's business: it is taken off every path.
    """
    from jinja2 import Environment, StrictUndefined

    topology, basis = report.topology, report.comparison.basis
    document = report_document(report, command=command)
    style, script = page_style(), page_script()
    environment = Environment(
        autoescape=True, undefined=StrictUndefined, keep_trailing_newline=True
    )
    template = environment.from_string(_text("page.html"))
    values = {
        "version": __version__,
        "title": topology.title,
        "name": topology.name,
        "file": document["file"],
        "basis": basis,
        "alike": _alike(topology),
        "insights": [
            {"name": workload["name"], "insights": workload["insights"]}
            for workload in document["workloads"]
            if workload["insights"]
        ],
        "together": document["together"] and document["together"]["sentence"],
        "findings": [
            {
                "severity": finding.severity,
                "message": finding.message,
                "help": finding.help,
                "code": finding.code,
                "line": finding.place.line
                if finding.place and finding.place.file == document["file"]
                else None,
            }
            for finding in dict.fromkeys(report.findings)
        ],
        "sources": _sources(document),
        "lines": topology.description.document.lines if topology.description.document else (),
        "changes": tuple(document["changes"].items()),
        "document": _in_script(_shortened(encoded(document, folder=folder, dense=True))),
        "style": style,
        "script": script,
        "style_hash": _hash(style),
        "script_hash": _hash(script),
    }
    room = _ROOM - len(template.render(pictures="", **values).encode())
    return template.render(pictures=_pictures(report, room), **values)


def page_script() -> str:
    """Return the modules as one: what they import from each other is there already."""
    texts = (_EXPORT.sub("", _IMPORT.sub("", _text(name))) for name in MODULES)
    return _INDENT.sub("", _COMMENT.sub("", "\n".join(texts)))


def page_style() -> str:
    """Return the style, with the colours of the pictures in both themes."""
    text = _text("page.css")
    text = text.replace("LIGHT", colours("light")).replace("DARK", colours("dark"))
    return text.replace("CLASSES", picture_style())


def _text(name: str) -> str:
    return files("topo.views.report").joinpath(name).read_text(encoding="utf-8")


def _hash(text: str) -> str:
    digest = hashlib.sha256(text.encode()).digest()
    return f"sha256-{base64.b64encode(digest).decode()}"


def _shortened(text: str) -> str:
    """Return dense JSON in which 12500000000 is written 125e8."""
    return _ROUND.sub(lambda match: f"{match[1]}e{len(match[2])}" if match[1] else match[0], text)


def _in_script(text: str) -> str:
    """Return JSON that no HTML parser takes for the end of its element.

    No comment and no tag begins without ``<``, so ``>`` stays: names of links have one each.
    """
    for character in "<&\u2028\u2029":
        text = text.replace(character, f"\\u{ord(character):04x}")
    return text.strip()


def _pictures(report: Report, room: int) -> str:
    """Return the machine alone, and with the usual paths' routes while there is room for them.

    What several pictures have in common is there once: each names runs of `parts` by where they
    start and how many there are.
    """
    topology, basis = report.topology, report.comparison.basis
    table = ResourceTable(topology, basis)
    shown = [
        # what the page opens with comes first, then the others
        sorted(
            (path for path in workload.paths if path.usual and path.answer.matrix is not None),
            key=lambda path: path.answer.name != "direct",
        )
        for workload in report.workloads
    ]
    asked: list[tuple[str, str, Route | None]] = [("", "", None)]
    asked += [
        (workload.workload.name, path.answer.name, path.answer.route)
        for row in zip_longest(*shown)
        for workload, path in zip(report.workloads, row, strict=True)
        if path is not None
    ]
    parts: dict[str, int] = {}
    pictures: list[Mapping[str, Any]] = []
    for workload_name, data_path, route in asked:
        picture = live_picture(topology, route, table, basis)
        texts = [_in_script(_dense(part)) for part in picture.parts]
        new = [text for text in dict.fromkeys(texts) if text not in parts]
        needed = sum(len(text.encode()) + 1 for text in new)
        if needed > room and pictures:
            continue
        runs: list[list[int]] = []
        for text in texts:
            place = parts.setdefault(text, len(parts))
            if runs and place == sum(runs[-1]):
                runs[-1][1] += 1
            else:
                runs.append([place, 1])
        asked_about = {"workload": workload_name, "data_path": data_path}
        look = {"size": picture.size, "shift": picture.shift, "runs": runs}
        pictures.append({**asked_about, **look})
        room -= needed + len(_dense(pictures[-1]).encode()) + 1
    drawn = _in_script(_dense({"pictures": pictures}))
    return f'{{"parts":[{",".join(parts)}],{drawn.removeprefix("{")}'


def _dense(value: object) -> str:
    """Return JSON without a space in it."""
    return json.dumps(value, ensure_ascii=False, separators=(",", ":"))


def _alike(topology: Topology) -> str:
    """Return which servers and switches of a folded topology stand for which."""
    folding = topology.folding
    if folding is None:
        return ""
    classes = {names: first for first, names in folding.classes.items() if len(names) > 1}
    return "; ".join(f"{first} for {listed(ranges(names))}" for names, first in classes.items())


def _sources(document: Mapping[str, Any]) -> list[Mapping[str, Any]]:
    """Return a row for all resources that have the same figure from the same source."""
    rows: dict[tuple[Any, ...], list[str]] = {}
    for resource in document["resources"]:
        rate = resource["capacity_bytes_per_s"]
        capacity = "unknown" if resource.get("unknown") else format_rate(rate)
        source = document["sources"][resource["source"]]
        key = (capacity, source["kind"], source["source"], resource.get("line"))
        rows.setdefault(key, []).append(resource["id"])
    return [
        {
            "capacity": capacity,
            "kind": kind,
            "source": source,
            "line": line,
            "names": listed(ranges(names), most=_MOST_NAMES),
        }
        for (capacity, kind, source, line), names in rows.items()
    ]
