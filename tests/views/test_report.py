"""The page as text: one file, no script of a stranger, small, the same every time."""

from __future__ import annotations

import base64
import hashlib
import json
import re
from itertools import product

import pytest

import topo
from tests.machines import UNLIKE
from topo.study.report import report
from topo.views.json import encoded
from topo.views.report.document import report_document
from topo.views.report.page import MODULES, page_script, report_page
from topo.views.report.picture import MEANINGS, THEME, colours


def page_of(name: str, **asked) -> str:
    return report_page(report(topo.load(name), **asked), command=(name,))


def document_in(html: str) -> dict:
    (text,) = re.findall(r'<script type="application/json" id="document">(.*?)</script>', html)
    return json.loads(text)


@pytest.mark.parametrize("name", UNLIKE)
def test_a_page_of_a_server_is_small_and_the_same_every_time(name):
    html = page_of(name)
    is_cluster = bool(topo.load(name).of_kind("network-switch"))
    assert len(html.encode()) <= (2_000_000 if is_cluster else 305_000)
    assert page_of(name) == html


def test_the_page_of_a_thousand_gpus_is_folded():
    from bench.report_page import CLUSTER

    whole = report(topo.loads(CLUSTER))
    html = report_page(whole, command=("cluster.yaml",))
    assert len(html.encode()) < 400_000, "kinds of servers count, not servers"
    document = document_in(html)
    assert {sum(matrix["counts"]) for matrix in document["matrices"]} == {1000, 2000}
    assert len(document["resources"]) < 500


def test_the_page_and_json_are_one_document():
    whole = report(topo.load("gds-textbook"))
    html = report_page(whole, command=("gds-textbook",))
    document = json.loads(encoded(report_document(whole, command=("gds-textbook",))))
    assert document_in(html) == document
    compared = {path["data_path"]: path for path in document["workloads"][0]["paths"]}
    assert compared["direct"]["rate_bytes_per_s"] == 100e9
    assert compared["p2pdma"]["matrix"] is None
    assert compared["p2pdma"]["why"]
    assert [rung["rate_bytes_per_s"] for rung in compared["legacy"]["ladder"]][:1] == [100e9]
    assert document["certified"] is True


@pytest.mark.parametrize("at", ["theoretical", "achievable", "measured"])
def test_the_doubt_in_it_is_that_of_the_verb(at):
    """In theory there is little to doubt: beside theoretical answers it is the achievable one."""
    shown = document_in(page_of("dgx-h100", at=at))["doubt"]
    asked = topo.doubt(topo.load("dgx-h100"), at="measured" if at == "measured" else "achievable")
    assert (shown["basis"], shown["level"], shown["draws"]) == (asked.basis, 0.9, 400)
    assert len(shown["answers"]) == len(asked.answers) == 4
    for answer, wanted in zip(shown["answers"], asked.answers, strict=True):
        assert (answer["workload"], answer["data_path"]) == (
            wanted.workload.name,
            wanted.answer.name,
        )
        assert answer["rate_range_bytes_per_s"] == pytest.approx(wanted.rate_range)
        assert [swing["low_rate_bytes_per_s"] for swing in answer["swings"]] == pytest.approx(
            [swing.low_rate for swing in wanted.swings]
        )
    assert {band["name"] for band in shown["bands"]} >= {"efficiency of pcie 5"}


def test_a_refused_answer_has_no_doubt_in_it():
    answers = document_in(page_of("workstation-4gpu"))["doubt"]["answers"]
    assert [answer["data_path"] for answer in answers] == ["legacy"]


def test_the_doubt_of_servers_that_are_alike_is_theirs():
    (shown, _), asked = (
        report(topo.load("pod-32"), via=["legacy"]).doubt.answers,
        topo.doubt(topo.load("pod-32"), via=["legacy"]),
    )
    assert shown.rate_range == pytest.approx(asked.answers[0].rate_range)


def test_its_policy_names_the_hashes_of_its_style_and_script_and_forbids_all_else():
    html = page_of("gds-textbook", workload="load")
    (policy,) = re.findall(r'Content-Security-Policy" content="([^"]+)"', html)
    rules = dict(rule.strip().split(" ", 1) for rule in policy.split(";"))
    assert rules["default-src"] == "'none'"
    for element, rule in (("style", "style-src"), ('script type="module"', "script-src")):
        (text,) = re.findall(rf"<{element}>(.*?)</{element.split()[0]}>", html, re.DOTALL)
        digest = base64.b64encode(hashlib.sha256(text.encode()).digest()).decode()
        assert rules[rule].replace("&#39;", "'") == f"'sha256-{digest}'"
    assert not re.search(r"\b(?:src|href)=\"(?!#)", html)
    assert not re.search(r"\son\w+=|\sstyle=", html.split("<script", 1)[0])


def test_no_text_of_a_file_ends_its_element():
    text = "</script><script>alert(1)</script><!--"
    machine = topo.load("gds-textbook").replace({"title": text, "slot1.label": text})
    html = report_page(report(machine), command=("box.yaml", text))
    assert html.count("<script") == 3
    assert "alert(1)<" not in html
    assert document_in(html)["title"] == text


def test_modules_are_listed_after_what_they_import_and_share_no_name():
    from importlib.resources import files

    folder = files("topo.views.report")
    texts = {name: folder.joinpath(name).read_text(encoding="utf-8") for name in MODULES}
    before: set[str] = set()
    names: list[str] = []
    for name, text in texts.items():
        assert set(re.findall(r'from "\./([\w.]+)"', text)) <= before
        before.add(name)
        names += re.findall(r"^(?:export )?(?:class|const|let|function) (\w+)", text, re.MULTILINE)
    assert len(names) == len(set(names))
    assert set(texts) == {path.name for path in folder.iterdir() if path.name.endswith(".js")}
    assert "import " not in page_script()
    assert not re.search(
        r"innerHTML|outerHTML|insertAdjacentHTML|document\.write|eval\(", page_script()
    )


def test_the_routes_of_an_8_gpu_server_all_have_a_picture():
    """What pictures have in common is on the page once, or DGX A100's four would not fit."""
    html = page_of("dgx-a100")
    (text,) = re.findall(r'<script type="application/json" id="drawings">(.*?)</script>', html)
    drawings = json.loads(text)
    asked = {(each["workload"], each["data_path"]) for each in drawings["pictures"]}
    assert asked == {("", ""), *product(("load", "local"), ("legacy", "direct"))}
    parts = [json.dumps(part) for part in drawings["parts"]]
    assert len(parts) == len(set(parts))
    for picture in drawings["pictures"]:
        assert all(start + many <= len(parts) for start, many in picture["runs"])
    shapes = [part[3:] if part[0] in ("device", "wire") else [part] for part in drawings["parts"]]
    tags = {shape[0] for row in shapes for shape in row}
    assert tags <= {"rect", "path", "polygon", "polyline", "ellipse", "text"}


def test_every_colour_of_a_picture_has_both_themes():
    assert len(MEANINGS) > 20
    assert THEME.paper != THEME.panel, "each has a code of its own"
    for theme in ("light", "dark"):
        assert colours(theme).count("--c") == len(MEANINGS)


def test_numbers_that_are_computed_with_have_all_their_digits():
    whole = report(topo.load("dgx-h100"), at="achievable")
    document = document_in(report_page(whole, command=("dgx-h100",)))
    for workload, shown in zip(whole.workloads, document["workloads"], strict=True):
        for path, row in zip(workload.paths, shown["paths"], strict=True):
            if path.answer.matrix is None:
                continue
            system, matrix = path.answer.matrix.system, document["matrices"][row["matrix"]]
            assert tuple(matrix["multiplicities"]) == tuple(system.multiplicities)
            capacities = [
                document["resources"][at]["capacity_bytes_per_s"] for at in matrix["resources"]
            ]
            finite = [None if value == float("inf") else value for value in system.capacities]
            assert capacities == finite
