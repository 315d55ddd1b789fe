"""What a notebook shows of topo's values, and what programs take from them."""

from __future__ import annotations

import ast
import json
import re
import subprocess
import sys
import types
from pathlib import Path
from typing import Any
from xml.etree import ElementTree as ET

import pytest

import topo
from tests.machines import UNLIKE
from topo.cli.program import main

HOSTILE = """
topo: 1
name: box
title: "<script>alert(1)</script>\\u202e"
devices:
  storage: {part: nvme-of-target, outside: yes, label: "<img src=x onerror=alert(1)>"}
  nic0: connectx-7
  cpu0: xeon-8480c
  ram0: {part: ddr5-4800, channels: 8}
  gpu[0-3]: h100-sxm-80gb
links:
  - storage -- nic0: infiniband ndr
  - nic0 -- cpu0: pcie 5 x16
  - ram0 -- cpu0: memory-bus
  - gpu -- cpu0: pcie 5 x16
settings: {iommu: off}
workloads:
  load: {read: 320 GB, from: storage, to: gpu}
"""
HBM = ["9 GB/s", "900 GB/s"]
WORDS = {"sweep": ["--vary", f"gpu.hbm={','.join(HBM)}", "--against", "gpu.hbm"]}
QUESTIONS: dict[str, Any] = {
    "compare": topo.compare,
    "bottleneck": topo.bottleneck,
    "simulate": topo.simulate,
    "upgrade": topo.upgrades,
    "failures": topo.failures,
    "sweep": lambda machine: topo.sweep(machine, {"gpu.hbm": HBM}, against="gpu.hbm"),
}


def values_of(machine):
    return [machine, *(question(machine) for question in QUESTIONS.values())]


@pytest.fixture(scope="module")
def values():
    return values_of(topo.load("gds-textbook"))


@pytest.fixture(scope="module")
def hostile():
    return values_of(topo.loads(HOSTILE))


def named(values, name):
    return next(value for value in values if type(value).__name__ == name)


# --- pages and pictures ---------------------------------------------------------------------------


def test_every_answer_is_shown(values):
    for value in values:
        page = value._repr_html_()
        assert value.__class__.__name__ in repr(value)
        assert "gds-textbook: Textbook server" in page
        assert len(page) < 200_000
        assert ET.fromstring(value._repr_svg_()).tag == "{http://www.w3.org/2000/svg}svg"


def test_a_page_has_no_script_and_loads_nothing(hostile):
    for value in hostile:
        page = value._repr_html_()
        tags = set(re.findall(r"<([a-zA-Z]\w*)", page))
        allowed = {"div", "h4", "p", "small", "strong", "ul", "li", "img"}
        assert tags <= allowed | {"table", "thead", "tbody", "tr", "th", "td"}
        assert "&lt;script&gt;" in page
        assert "\u202e" not in page
        assert not re.search(r"\s(?:on\w+|href)=", re.sub(r"&lt;.*?&gt;", "", page))
        assert all(source.startswith("data:image/svg+xml;base64,") for source in sources(page))


def sources(page):
    return re.findall(r'<img [^>]*src="([^"]*)"', page)


def test_what_a_picture_says_best_holds_it(values):
    pictured = {type(value).__name__ for value in values if sources(value._repr_html_())}
    assert pictured == {"Topology", "Simulation", "Swept"}


def test_a_refused_path_is_shown():
    refused = topo.bottleneck(topo.load("workstation-4gpu"), via="direct")
    assert "refused" in repr(refused)
    assert "refused" in refused._repr_html_()
    assert "not possible" in refused._repr_svg_()


def test_a_large_machine_is_told_without_its_picture():
    page = topo.load("pod-32")._repr_html_()
    assert "node[0-31].gpu[0-7]" in page
    assert not sources(page)


# --- documents and tables -------------------------------------------------------------------------


@pytest.mark.parametrize("name", UNLIKE)
def test_the_document_of_an_answer_is_what_the_verb_prints(name, capsys):
    machine = topo.load(name)
    verbs: dict[str, Any] = {"show": lambda machine: machine, "compare": topo.compare}
    if len(machine.devices) < 100:
        verbs |= {verb: ask for verb, ask in QUESTIONS.items() if verb != "upgrade"}
    if not machine.of_kind("gpu"):
        verbs.pop("sweep", None)  # WORDS varies a GPU
    for verb, ask in verbs.items():
        assert main([verb, name, *WORDS.get(verb, ()), "--json"]) == 0
        printed = json.loads(capsys.readouterr().out)
        assert ask(machine).to_dict() == printed, verb


def test_the_document_of_upgrades_is_what_the_verb_prints(values, capsys):
    assert main(["upgrade", "gds-textbook", "--json"]) == 0
    assert named(values, "Upgrades").to_dict() == json.loads(capsys.readouterr().out)


class Frame(list):
    """Stands for a `pandas.DataFrame`: the rows."""


@pytest.fixture
def pandas(monkeypatch):
    module = types.ModuleType("pandas")
    module.DataFrame = Frame
    monkeypatch.setitem(sys.modules, "pandas", module)


def test_a_table_has_a_row_for_each_thing(values, pandas):
    frames = {type(value).__name__: value.to_frame() for value in values}
    machine = named(values, "Topology")
    assert len(frames["Topology"]) == len(machine.all_resources)
    asked = [(row["workload"], row["data_path"]) for row in frames["Comparison"]]
    paths = ("legacy", "direct")
    assert asked == [(name, path) for name in ("load", "checkpoint") for path in paths]
    assert [row["rate_bytes_per_s"] for row in frames["Comparison"]] == [1e11] * 4
    assert frames["Comparison"][1]["bottlenecks"] == "slot1/chip, slot2/chip"
    assert frames["Ladder"][0]["time_s"] == 6.4
    assert [row["workload"] for row in frames["Simulation"]] == ["load", "checkpoint"]
    assert len(frames["Upgrades"]) == len(named(values, "Upgrades").ranked)
    assert len(frames["Failures"]) == len(named(values, "Failures").losses)
    for rows in frames.values():
        cells = [cell for row in rows for cell in row.values()]
        assert all(cell is None or isinstance(cell, str | int | float) for cell in cells)


def test_pandas_takes_the_rows(values):
    pytest.importorskip("pandas", reason="pandas is not installed: to_frame is tried on a stand-in")
    frame = named(values, "Comparison").to_frame()
    assert frame.shape[0] == 4
    assert frame["time_s"].max() == 6.4
    rungs = named(values, "Ladder").to_frame()
    assert all(rungs["resources"].str.len() > 0)


def test_without_pandas_it_says_what_to_install(values, monkeypatch):
    monkeypatch.setitem(sys.modules, "pandas", None)
    with pytest.raises(topo.TopoError, match=r"takes pandas, .*pip install pandas") as raised:
        named(values, "Ladder").to_frame()
    assert isinstance(raised.value, ImportError)


def test_nothing_of_it_is_loaded_before_it_is_asked_for():
    script = "import sys, topo; repr(topo.load('gds-textbook')); print(*sys.modules)"
    command = [sys.executable, "-c", script]
    done = subprocess.run(command, capture_output=True, text=True, check=True)
    assert "topo.display" in done.stdout.split()
    assert not [name for name in done.stdout.split() if name.startswith(("topo.views", "topo.n"))]


# --- the notebook of the docs ---------------------------------------------------------------------

NOTEBOOK = Path(__file__).parents[1] / "docs" / "notebook.ipynb"


def test_the_notebook_runs_and_shows_something_in_every_cell():
    cells = json.loads(NOTEBOOK.read_text(encoding="utf-8"))["cells"]
    assert len({cell["id"] for cell in cells}) == len(cells)
    names: dict[str, object] = {}
    shown = []
    for cell in cells:
        if cell["cell_type"] != "code":
            continue
        assert cell["outputs"] == []
        assert cell["execution_count"] is None
        *statements, last = ast.parse("".join(cell["source"])).body
        exec(compile(ast.Module(statements, []), NOTEBOOK.name, "exec"), names)
        assert isinstance(last, ast.Expr), "a cell ends in what it shows"
        value = eval(compile(ast.Expression(last.value), NOTEBOOK.name, "eval"), names)
        shown.append(type(value).__name__)
        for form in ("_repr_html_", "_repr_svg_"):
            if hasattr(value, form):
                assert "<" in getattr(value, form)()
    assert {"Topology", "Comparison", "Picture", "Ladder", "Upgrades", "Simulation"} <= set(shown)
