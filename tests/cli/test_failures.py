"""`topo failures`: its page, its JSON, its picture."""

from __future__ import annotations

import xml.etree.ElementTree as ET

import pytest

from topo.study.compare import compare
from topo.topology.build import load


def test_the_worst_is_the_first_row_and_what_harms_nothing_one_sentence(topo):
    result = topo("failures", "dgx-h100", "--via", "direct")
    assert result.code == 0
    rows = result.out.partition("fails")[2].splitlines()
    assert rows[1].split()[0] == "storage"
    assert "Nothing is lost with nvswitch" in result.out.replace("\n", " ")


def test_a_time_that_is_a_bound_is_called_one(topo):
    assert "at most 12.5 GB/s, at least 15.36 s." in topo("failures", "aws-g6").out
    assert "With nothing failed: 100 GB/s, 6.4 s." in topo("failures", "dgx-h100").out


def test_every_loss_is_in_the_document(topo):
    document = topo("failures", "dgx-h100", "--workload", "load", "--json").document
    assert document["schema"] == "topo.failures/1"
    assert document["rate_bytes_per_s"] == 100e9
    losses = {loss["fails"][0]["names"]: loss for loss in document["losses"]}
    cards = losses["slot1, slot2"]
    assert cards["rate_bytes_per_s"] == 50e9
    assert cards["time_s"] == pytest.approx(12.8)
    assert cards["fails"][0]["count"] == 2
    nics = losses["nic[0-7]"]
    assert (nics["stopped"], nics["stopped_endpoints"]) == (["gpu0"], 1)


def test_two_at_a_time(topo):
    document = topo("failures", "dgx-h100", "--pairs", "--via", "direct", "--json").document
    assert {len(loss["fails"]) for loss in document["losses"]} == {2}
    both = [
        loss
        for loss in document["losses"]
        if {part["first"] for part in loss["fails"]} == {"slot1", "slot2"}
    ]
    assert [loss["rate_bytes_per_s"] for loss in both] == [0]
    assert both[0]["stopped_endpoints"] == 8


def test_a_failure_leaves_what_the_machine_has_without_it(topo):
    document = topo("failures", "l40s-two-switches", "--via", "direct", "--json").document
    machine = load("l40s-two-switches")
    for loss in document["losses"]:
        left = machine.without(*(part["first"] for part in loss["fails"]))
        answer = compare(left, workload="load", via=["direct"])["direct"]
        assert loss["rate_bytes_per_s"] == pytest.approx(answer.rate or 0)
        assert loss["at_most"] == answer.at_most


def svg_texts(file):
    root = ET.fromstring(file.read_text(encoding="utf-8"))
    return [element.text for element in root.iter("{http://www.w3.org/2000/svg}text")]


@pytest.mark.parametrize("pairs", [False, True])
def test_the_picture_of_the_worst_marks_what_failed(topo, tmp_path, pairs):
    words = ("failures", "kv-cache", "--workload", "dram", *(["--pairs"] if pairs else []))
    document = topo(*words, "--json").document
    assert topo(*words, "-o", "worst.svg").code == 0
    worst = document["losses"][0]
    failed = [part["first"] for part in worst["fails"]]
    assert len(failed) == 1 + pairs
    texts = svg_texts(tmp_path / "worst.svg")
    assert texts.count("FAILED") == len(failed)
    assert any(text.endswith(f"without {' and '.join(failed)}") for text in texts)
    assert "NO WAY LEFT" in texts
    assert any("; with nothing failed 252.06 GB/s" in text for text in texts)


def test_what_is_drawn_without_something_shows_it(topo, tmp_path):
    assert topo("draw", "gds-textbook", "--without", "slot1", "-o", "left.svg").code == 0
    texts = svg_texts(tmp_path / "left.svg")
    assert {"slot1", "FAILED"} <= set(texts)


ONE_KNOWN_STORAGE = """\
topo: 1
name: box
parts:
  board: {kind: cpu}
  card: {kind: nic, chip: unknown}
  accel: {kind: gpu, p2p: yes}
devices:
  storage0: {part: nvme-of-target, read: 10 GB/s}
  storage1: {part: nvme-of-target}
  nic[0-1]: card
  cpu0: board
  gpu0: accel
links:
  - storage -- nic: infiniband unknown
  - nic -- cpu0: pcie unknown
  - gpu0 -- cpu0: pcie unknown
workloads:
  load: {read: 320 GB, from: storage, to: gpu0, via: direct}
"""


def test_what_is_without_a_limit_once_something_failed_says_without_what(topo, tmp_path):
    (tmp_path / "box.yaml").write_text(ONE_KNOWN_STORAGE, encoding="utf-8")
    assert "at most 20 GB/s" in topo("compare", "box.yaml").out
    done = topo("failures", "box.yaml")
    assert (done.code, done.out) == (1, "")
    assert (
        "error[unbounded-demand]: without storage0 nothing limits load gpu0 by direct" in done.err
    )
