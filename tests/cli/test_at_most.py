"""Of one capacity on the way nobody knows the rate: every verb says so, in words and in JSON."""

from __future__ import annotations

import pytest

from tests.machines import TWO_SOCKETS, built, uncapped
from tests.measuring.results import gdsio
from topo.study.prediction import Sample, read_samples

TEXT = (
    TWO_SOCKETS.partition("workloads:")[0]
    + """
workloads:
  load: {read: 50 GB, from: storage, to: gpu1}
expect:
  - load via direct >= 1 GB/s
"""
)
UNKNOWN = {
    "storage.read": "unknown",
    "storage -- nic0": "infiniband unknown",
    "nic0.chip": "unknown",
    "nic0 -- cpu0": "pcie unknown",
    "cpu0 -- cpu1": "upi unknown",
    "gpu1 -- cpu1": "pcie unknown",
    "gpu1.hbm": "unknown",
    "between root complexes": "",
}
BY = ["--workload", "load", "--via", "direct"]
unknown = pytest.mark.parametrize("unknown", UNKNOWN)


@pytest.fixture
def ask(topo, tmp_path):
    """Ask a verb about the machine with something unknown; return its text and its JSON."""

    def run(unknown, verb, *words):
        stated = bool(UNKNOWN[unknown])
        text = TEXT if stated else uncapped(TEXT)
        (tmp_path / "box.yaml").write_text(text, encoding="utf-8")
        (tmp_path / "gds.txt").write_bytes(gdsio((0, "READ", "GPUD", 3.0)))
        changes = ("--set", f"{unknown}={UNKNOWN[unknown]}") if stated else ()
        asked = (verb, "box.yaml", *words, *changes)
        done = topo(*asked)
        return " ".join(f"{done.out} {done.err}".split()), topo(*asked, "--json").document

    return run


@unknown
def test_compare(ask, unknown):
    text, document = ask(unknown, "compare", *BY)
    (path,) = document["workloads"][0]["paths"]
    assert path["at_most"]
    assert path["at_most_by_basis"]["theoretical"]
    assert path["unknown"]
    assert "at most" in text
    assert "at least" in text
    assert "warning[unknown-capacity]" in text


@unknown
def test_nobody_is_said_to_win_by_a_bound(ask, unknown):
    text, document = ask(unknown, "compare", "--via", "direct", "--via", "legacy-pageable")
    insights = " ".join(document["workloads"][0]["insights"])
    assert "direct is 1" not in text
    for words in (text, insights):
        assert " times as fast" not in words or "at least" in words
        assert "Whether direct is faster" in words or "By the known capacities alone" in words


@unknown
def test_compare_together(ask, unknown):
    text, document = ask(unknown, "compare", "--together", "--via", "direct")
    (path,) = document["paths"]
    assert (path["at_most"], path["runs"][0]["at_most"]) == (True, True)
    assert all(one["at_most"] for span in path["spans"] for one in span["workloads"])
    assert "at least" in text
    assert "at most" in text


@unknown
def test_bottleneck(ask, unknown):
    text, document = ask(unknown, "bottleneck", *BY)
    assert document["at_most"]
    assert document["ladder"][0]["at_most"]
    assert document["demands"][0]["at_most"]
    assert document["prices"]["at_most"]
    assert all(price["together"]["at_most"] for price in document["prices"]["classes"])
    assert "in all, at least" in text
    assert "gpu1 at most" in text
    assert "costs at most" in text
    assert "of what is known" in text


@unknown
def test_the_largest_total(ask, unknown):
    text, document = ask(unknown, "bottleneck", *BY, "--rule", "largest-total")
    assert document["prices"]["at_most"]
    assert "The largest total is at most" in text


@unknown
def test_simulate(ask, unknown):
    text, document = ask(unknown, "simulate", "--via", "direct")
    assert (document["at_most"], document["runs"][0]["at_most"]) == (True, True)
    assert "at least" in text
    assert "at most" in text


@unknown
def test_upgrade(ask, unknown):
    text, document = ask(unknown, "upgrade", *BY)
    assert document["now"]["at_most"]
    assert "now: at least" in text


@unknown
def test_check(ask, unknown):
    text, document = ask(unknown, "check")
    (finding,) = document["findings"]
    assert finding["code"] == "expectation-failed"
    assert "it is at most" in finding["message"]
    assert "it is at most" in text


@unknown
def test_paths(ask, unknown):
    text, document = ask(unknown, "paths", "--from", "storage", "--to", "gpu1", "--via", "direct")
    assert "unknown" in text or "at most" in text
    used = document["data_paths"][0]["workloads"][0]["routes"][0]["use"]
    assert any(use["capacity_bytes_per_s"] is None or use.get("at_most") for use in used)


@unknown
def test_a_measured_rate_is_not_below_what_nobody_knows(unknown):
    stated = UNKNOWN[unknown]
    machine = built(TEXT, {unknown: stated}) if stated else built(uncapped(TEXT))
    sample = Sample("gdsio", ("storage",), ("gpu1",), 3e9, via="direct")
    (reading,) = read_samples(machine, [sample])
    assert "theoretical" in reading.forecast.at_most
    assert reading.judged == "unknown"


def test_measure(ask):
    words = ["--gpus", "gpu1", "--storage", "storage", "--dry-run"]
    text, document = ask("between root complexes", "measure", "gds.txt", *words)
    (reading,) = document["readings"]
    assert reading["at_most"] == ["theoretical", "achievable"]
    assert "at most" in text


@pytest.mark.parametrize("unknown", ["nic0 -- cpu0", "cpu0 -- cpu1", "gpu1 -- cpu1"])
def test_affinity(ask, unknown):
    text, document = ask(unknown, "affinity")
    (choice,) = document["gpus"][1]["choices"]
    assert choice["at_most"]
    assert "at most" in text


@unknown
def test_draw(ask, topo, unknown):
    ask(unknown, "compare")  # writes the file
    changes = ("--set", f"{unknown}={UNKNOWN[unknown]}") if UNKNOWN[unknown] else ()
    picture = topo("draw", "box.yaml", *BY, *changes, "-o", "-").out
    assert "at most" in picture
    assert "at least" in picture
