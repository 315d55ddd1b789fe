"""Bad input and what is said of it: one file, one test, under both YAML parsers and the program.

A file is called ``<code>-<why>.yaml``, its first line says which mistake it makes, and beside it
stands what topo says (`--update-golden` writes that anew; read the difference). The messages are
laid out here, not by a view, so that restyling a view changes none of these files.
"""

from __future__ import annotations

import ast
import re
import time
from importlib.util import find_spec
from pathlib import Path

import pytest

import topo
from topo.description.loading import read_description
from topo.document.parse import parse
from topo.errors import Finding, TopoError
from topo.topology.build import build_topology

GOLDEN = Path(__file__).parent / "golden" / "bad"
FILES = sorted(GOLDEN.glob("*.yaml"))
PHYSICS = [Path(topo.__file__).parent / "topology" / name for name in ("physics.py", "cabling.py")]
# A table of mistakes that others make, where this checkout has it beside it.
EXAMPLES = Path(__file__).parents[2] / "shared" / "examples" / "bad"
SECONDS = 2.0  # that any input may take

PARSERS = pytest.mark.parametrize("pure", [False, True], ids=["libyaml", "pure"])


def read(data: bytes, name: str, *, pure: bool = False) -> tuple[Finding, ...]:
    """Return what is wrong with a text; only a TopoError may come out of it."""
    started = time.process_time()  # other tests run beside this one
    try:
        description = read_description(parse(data, name=name, pure=pure), name="topology")
        findings = build_topology(description).findings
    except TopoError as error:
        return error.findings
    else:
        return tuple(found for found in findings if found.severity == "error")
    finally:
        assert time.process_time() - started < SECONDS


def shown(finding: Finding) -> str:
    """Lay out a finding: its place, the line with what it points at, its words."""
    assert finding.place is not None
    line, column, end = finding.place.line, finding.place.column, finding.place.end_column
    lines = [f"{line}:{column} {finding.severity} {finding.code}: {finding.message}"]
    if finding.source_line:
        pointer = " " * (column - 1) + "^" * max(1, end - column)
        lines += [f"    {finding.source_line.rstrip()}", f"    {pointer}"]
    lines += [f"  help: {finding.help}"] if finding.help else []
    return "\n".join([*lines, *(f"  note: {note}" for note in finding.notes)]) + "\n"


# --- the files ------------------------------------------------------------------------------------


@PARSERS
@pytest.mark.parametrize("path", FILES, ids=[path.stem for path in FILES])
def test_a_bad_file_is_told_what_is_wrong(path, pure, request):
    said = "\n".join(map(shown, read(path.read_bytes(), path.name, pure=pure)))
    expected = path.with_suffix(".expected")
    if request.config.getoption("--update-golden"):
        expected.write_text(said, encoding="utf-8")
    assert said == expected.read_text(encoding="utf-8")


@pytest.mark.parametrize("path", FILES, ids=[path.stem for path in FILES])
def test_a_bad_file_is_named_for_its_mistake_and_says_it(path):
    first = path.with_suffix(".expected").read_text(encoding="utf-8").split(" ")[2].rstrip(":")
    assert path.stem.startswith(f"{first}-")
    assert path.read_text(encoding="utf-8").startswith("# ")


@pytest.mark.parametrize("path", FILES, ids=[path.stem for path in FILES])
def test_the_program_ends_with_one_and_no_traceback(path, capsys):
    if find_spec("topo.cli.check") is None:
        pytest.skip("no topo check yet")
    from topo.cli.program import main

    assert main(["check", str(path)]) == 1
    out, err = capsys.readouterr()
    assert out == ""
    assert "Traceback" not in err
    assert f"{path.name}:" in err


def test_every_expected_message_has_its_file():
    assert {path.stem for path in GOLDEN.glob("*.expected")} == {path.stem for path in FILES}
    assert len(FILES) >= 80


def test_every_rule_of_physics_has_a_bad_file():
    codes = {
        str(node.args[1].value)
        for path in PHYSICS
        for node in ast.walk(ast.parse(path.read_text(encoding="utf-8")))
        if isinstance(node, ast.Call)
        and ast.unparse(node.func).endswith(("report.add", "report_by_cause"))
        if isinstance(node.args[1], ast.Constant)
        if all(keyword.arg != "severity" for keyword in node.keywords)  # a warning stops nothing
    }
    assert len(codes) > 10
    assert {code for code in codes if not list(GOLDEN.glob(f"{code}-*.yaml"))} == set()


# --- what is no text, or too much of one ----------------------------------------------------------

TEXT = "topo: 1\nname: lab\ndevices:\n  gpu0: l40s\n"
BOMB = "".join(
    ["topo: 1\nx-0: &a0 [lol]\n", *(f"x-{n}: &a{n} [{f'*a{n - 1}, ' * 9}]\n" for n in range(1, 30))]
)
MADE = {
    "utf-16": (TEXT.encode("utf-16"), "encoding"),
    "utf-16-unmarked": (TEXT.encode("utf-16-be"), "encoding"),
    "utf-32": (TEXT.encode("utf-32"), "encoding"),
    "latin-1": (TEXT.replace("lab", "Prüfstand").encode("latin-1"), "encoding"),
    "windows-1252": (TEXT.replace("lab", "“lab”").encode("cp1252"), "encoding"),
    "gzip": (b"\x1f\x8b\x08\x00" + bytes(range(256)), "binary"),
    "png": (b"\x89PNG\r\n\x1a\n" + bytes(64), "binary"),
    "zeros": (bytes(100_000), "binary"),
    "every-byte": (bytes(range(256)) * 40, "binary"),
    "null-in-a-name": (TEXT.replace("lab", "l\0b").encode(), "binary"),
    "empty": (b"", "empty"),
    "spaces": (b"  \n\n   \n", "empty"),
    "comments-only": (b"# a machine to be\n", "empty"),
    "json-graph": (b'{"nodes": [{"id": "gpu0"}], "links": []}', "version"),
    "json-list": (b'[{"id": "gpu0"}]', "wrong-shape"),
    "xml": (b'<system version="1">\n  <cpu numaid="0"/>\n</system>\n', ""),
    "html": (b"<!DOCTYPE html>\n<html><body>topo: 1</body></html>\n", ""),
    "matrix": (b"\tGPU0\tGPU1\tCPU Affinity\nGPU0\t X \tNV18\t0-55\nGPU1\tNV18\t X \t0-55\n", ""),
    "shell": (b"#!/bin/sh\nset -e\necho $((1 + 1)) > out\n", ""),
    "alias-bomb": (BOMB.encode(), "too-large"),
    "deep-braces": (b"topo: 1\nx-a: " + b"{a: " * 5000 + b"1" + b"}" * 5000, "too-deep"),
    "deep-brackets": (b"topo: 1\nx-a: " + b"[" * 100_000, "too-deep"),
    "deep-indents": (
        b"topo: 1\nx-a:\n" + b"".join(b" " * n + b"a:\n" for n in range(1, 400)),
        "too-deep",
    ),
    "deep-hyphens": (b"topo: 1\nx-a:\n  " + b"- " * 20_000 + b"a\n", "too-deep"),
    "long-line": (b"topo: 1\nname: " + b"x" * 50_000_000, "too-large"),
    "long-number": (
        b"topo: 1\ndevices:\n  ram0: {part: memory-unknown, bus: " + b"9" * 100_000 + b" GB/s}\n",
        "",
    ),
    "many-devices": (
        b"topo: 1\ndevices:\n" + b"".join(b"  gpu%d: l40x\n" % n for n in range(5000)),
        "unknown-part",
    ),
    "huge-range": (b"topo: 1\ndevices:\n  gpu[0-99999999]: l40s\n", "huge-range"),
    "huge-range-list": (
        b"topo: 1\ndevices:\n  gpu[" + b"0-99999," * 100 + b"0-99999]: l40s\n",
        "huge-range",
    ),
    "many-huge-ranges": (
        b"topo: 1\ndevices:\n" + b"".join(b"  n%da[0-99999]: l40s\n" % n for n in range(300)),
        "huge-range",
    ),
    "quotes-only": (b'"' * 10_000, ""),
    "surrogate-escape": (b'topo: 1\nname: "\\ud800"\n', ""),
    "long-escape": (b'topo: 1\nname: "\\UFFFFFFFF"\n', ""),
}


@PARSERS
@pytest.mark.parametrize(("data", "code"), MADE.values(), ids=MADE)
def test_what_is_no_topology_is_refused_quickly(data, code, pure):
    findings = read(data, "made.yaml", pure=pure)
    assert findings
    assert not code or {finding.code for finding in findings} == {code}
    assert all(len(finding.message) < 400 for finding in findings)
    assert not any("yaml." in shown(finding) for finding in findings)


# --- the table that others wrote ------------------------------------------------------------------

# Of topologies inside topologies, which is still to come.
LATER = {"use-escapes", "use-cycle"}


@pytest.mark.skipif(
    not EXAMPLES.is_dir(), reason=f"NOT RUN: no {'/'.join(EXAMPLES.parts[-3:])} beside the checkout"
)
def test_every_code_of_their_table_has_a_bad_file():
    table = re.findall(r"^\| ([a-z, -]+) \|", (EXAMPLES / "README.md").read_text(), re.MULTILINE)
    codes = {code.strip().replace(" ", "-") for row in table for code in row.split(",")}
    assert len(codes) > 25
    missing = {code for code in codes if not list(GOLDEN.glob(f"{code}-*.yaml"))}
    assert missing - {"code", "---"} == LATER
