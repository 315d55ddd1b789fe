"""Mermaid flowcharts: servers and sockets as subgraphs, rates on links, bottlenecks marked."""

from __future__ import annotations

import re
import shutil
import subprocess
from pathlib import Path

import pytest

import topo
from tests.machines import UNLIKE
from topo.description.locating import builtin_names
from topo.views.mermaid import mermaid

# A folder with npm's mermaid and jsdom in it: Mermaid's own parser judges as well.
NODE_MODULES = Path(topo.__file__).parents[1] / ".venv/mermaid"
PARSE = """
import {createRequire} from 'module'; import {pathToFileURL} from 'url';
import {readFileSync} from 'fs';
const require = createRequire(process.argv[2] + '/');
const {JSDOM} = require('jsdom'); const window = new JSDOM('').window;
globalThis.window = window; globalThis.document = window.document;
const {default: mermaid} = await import(pathToFileURL(require.resolve('mermaid')).href);
for (const chart of process.argv.slice(3)) {
  console.log((await mermaid.parse(readFileSync(chart, 'utf8'))).diagramType);
}
"""
TEXT = r'"([^"`&]|&#?\w+;)+"'
STATEMENTS = {
    "node": re.compile(rf"(d\d+)(?:\[\({TEXT}\)\]|\[\[{TEXT}\]\]|\({TEXT}\)|\[{TEXT}\])"),
    "link": re.compile(rf"(d\d+) ---\|{TEXT}\| (d\d+)"),
    "subgraph": re.compile(rf"subgraph (\w+)\[{TEXT}\]"),
    "end": re.compile("end"),
    "classDef": re.compile(r"classDef bottleneck [\w:#,-]+"),
    "class": re.compile(r"class ((?:d\d+,?)+) bottleneck"),
    "linkStyle": re.compile(r"linkStyle ((?:\d+,?)+) [\w:#,-]+"),
}
HOSTILE = """
topo: 1
name: box
devices:
  cpu0: {part: xeon-8480c, label: 'x"]; click d0 "javascript:alert(1)" %% <b>`1. y`</b> &quot;'}
  gpu0: {part: l40s, label: "- end"}
links: [gpu0 -- cpu0: pcie 4 x16]
"""


def parsed(text):
    """Read a flowchart by the grammar above: statements as ``(kind, match)``."""
    first, *lines = text.splitlines()
    assert first == "flowchart TB"
    statements = []
    for line in lines:
        matches = [(kind, rule.fullmatch(line.strip())) for kind, rule in STATEMENTS.items()]
        (statement,) = [(kind, match) for kind, match in matches if match]
        statements.append(statement)
    return statements


def of_kind(statements, kind):
    return [match for name, match in statements if name == kind]


def checked(text):
    """Return the statements of a flowchart whose names and numbers all mean something."""
    statements = parsed(text)
    open_subgraphs = 0
    for kind, _ in statements:
        open_subgraphs += {"subgraph": 1, "end": -1}.get(kind, 0)
        assert 0 <= open_subgraphs <= 2
    assert open_subgraphs == 0
    nodes = [match[1] for match in of_kind(statements, "node")]
    assert len(nodes) == len(set(nodes))
    links = of_kind(statements, "link")
    for link in links:
        assert {link[1], link[link.lastindex]} <= set(nodes)
    for marked in of_kind(statements, "class"):
        assert set(marked[1].split(",")) <= set(nodes)
    for styled in of_kind(statements, "linkStyle"):
        assert max(map(int, styled[1].split(","))) < len(links)
    return statements


@pytest.mark.parametrize("name", builtin_names())
def test_a_flowchart_of_every_machine_is_well_formed(name, tmp_path):
    machine = topo.load(name)
    answer = topo.compare(machine, workload=machine.description.workloads[0].name).workloads[0]
    for text in (mermaid(machine), mermaid(machine, answer)):
        statements = checked(text)
        assert of_kind(statements, "subgraph")
        if len(machine.devices) <= 60:
            assert len(of_kind(statements, "node")) == len(machine.devices)


@pytest.mark.skipif(
    not (NODE_MODULES.is_dir() and shutil.which("node")),
    reason="no mermaid: `make setup-browser` gets its parser where npm is",
)
@pytest.mark.parametrize("name", [*UNLIKE, "hostile"])
def test_mermaid_itself_reads_it(name, tmp_path):
    machine = topo.loads(HOSTILE) if name == "hostile" else topo.load(name)
    workloads = machine.description.workloads
    answer = topo.compare(machine, workload=workloads[0].name).workloads[0] if workloads else None
    script, chart, marked = (tmp_path / name for name in ("parse.mjs", "chart.mmd", "marked.mmd"))
    script.write_text(PARSE)
    chart.write_text(mermaid(machine))
    marked.write_text(mermaid(machine, answer))
    done = subprocess.run(
        ["node", script, NODE_MODULES, chart, marked], capture_output=True, text=True, check=False
    )
    assert done.stdout.split() == ["flowchart-v2"] * 2, done.stderr


def test_the_textbook_shows_its_sockets_and_rates():
    text = mermaid(topo.load("gds-textbook"))
    statements = checked(text)
    assert [match[1] for match in of_kind(statements, "subgraph")] == ["socket0_0", "socket0_1"]
    assert '---|"PCIe 5 x16<br/>63.02 GB/s"|' in text
    assert "BOTTLENECK" not in text
    assert not of_kind(statements, "class")


def test_bottlenecks_are_marked():
    machine = topo.load("gds-textbook")
    statements = checked(mermaid(machine, topo.compare(machine)["load"]))
    marked = set(of_kind(statements, "class")[0][1].split(","))
    bound = {match[0] for match in of_kind(statements, "node") if match[1] in marked}
    assert {re.search(r'"(\w+)', node)[1] for node in bound} == {"slot1", "slot2", "ram0", "ram1"}
    assert not of_kind(statements, "linkStyle")


def test_links_that_bind_are_marked():
    machine = topo.load("kv-cache")
    answer = topo.compare(machine, workload="dram", via=["pinned"]).workloads[0]
    statements = checked(mermaid(machine, answer))
    full = {int(place) for place in of_kind(statements, "linkStyle")[0][1].split(",")}
    links = of_kind(statements, "link")
    assert full == {place for place, link in enumerate(links) if "BOTTLENECK" in link[0]}
    assert len(full) == len(answer["pinned"].bound)


def test_a_strangers_words_are_words():
    statements = checked(mermaid(topo.loads(HOSTILE)))
    assert [kind for kind, _ in statements].count("node") == 2


def test_many_servers_alike_are_one():
    text = mermaid(topo.load("pod-32"))
    assert "16 servers alike" in text
    assert len(text.splitlines()) < 100


def test_draw_writes_a_flowchart(tmp_path, capsys):
    from topo.cli.program import main

    target = tmp_path / "x.mmd"
    assert main(["draw", "gds-textbook", "--via", "direct", "-o", str(target)]) == 0
    assert "class d1,d2 bottleneck" in target.read_text()
    assert capsys.readouterr().out == f"wrote {target}\n"
    assert main(["draw", "gds-textbook", "--no-routes", "-o", str(target)]) == 0
    assert "bottleneck" not in target.read_text()
