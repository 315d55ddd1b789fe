"""The verbs about several workloads at once: simulate, compare --together, bottleneck's prices."""

from __future__ import annotations

import re

import pytest

from tests.machines import ONE_SOCKET, TWO_SOCKETS, uncapped


@pytest.mark.parametrize(
    ("path", "load", "checkpoint"),
    [("direct", 6.4, 1.4), ("legacy", 7.8, 2.8), ("legacy-pageable", 11.7, 4.2)],
)
def test_simulate_the_textbook(topo, path, load, checkpoint):
    # Derived in tests/study/test_timeline.py.
    document = topo("simulate", "gds-textbook", "--via", path, "--json").document
    assert document["schema"] == "topo.simulate/1"
    runs = {run["workload"]: run["finish_s"] for run in document["runs"]}
    assert runs == pytest.approx({"load": load, "checkpoint": checkpoint})
    assert document["end_s"] == pytest.approx(load)
    assert [span["start_s"] for span in document["spans"]] == pytest.approx([0, checkpoint])
    assert len(document["finishes_s"]) == 16
    assert f"{load} s" in topo("simulate", "gds-textbook", "--via", path).out


def test_each_workload_by_its_own_path(topo):
    words = ("simulate", "gds-textbook", "--via", "load=legacy,checkpoint=direct")
    runs = topo(*words, "--json").document["runs"]
    assert [(run["data_path"], run["finish_s"]) for run in runs] == [
        ("legacy", pytest.approx(6.4)),
        ("direct", pytest.approx(1.4)),
    ]


def test_compare_together(topo):
    done = topo("compare", "gds-textbook", "--together", "--json").document
    assert done["schema"] == "topo.together/1"
    ends = {path["data_path"]: path["end_s"] for path in done["paths"]}
    assert ends == pytest.approx({"legacy": 7.8, "direct": 6.4})


def test_workloads_together_that_stop_at_their_own_limits_say_so(topo, tmp_path):
    file = tmp_path / "limited.yaml"
    file.write_text(ONE_SOCKET.replace("to: gpu0}", "to: gpu0, limit: 2 GB/s}", 1))
    done = topo("compare", str(file), "--together", "--via", "direct", "--set", "save.limit=1 GB/s")
    assert "their own limits" in done.out
    assert "nothing" not in done.out


def test_compare_adds_what_happens_at_once(topo):
    words = ("compare", "gds-textbook", "--via", "legacy,direct,legacy-pageable")
    meeting = topo(*words, "--json").document["together"]
    assert {one["data_path"]: one["finishes_s"] for one in meeting["paths"]} == {
        "legacy": {"load": 7.8, "checkpoint": 2.8},
        "direct": {"load": 6.4, "checkpoint": 1.4},
        "legacy-pageable": {"load": 11.7, "checkpoint": 4.2},
    }
    assert "Run together, direct wins: load is done at 6.4 s" in topo(*words).out


def test_one_workload_is_not_together(topo):
    words = ("compare", "gds-textbook", "--workload", "load")
    assert topo(*words, "--json").document["together"] is None
    assert "Run together" not in topo(*words).out


def test_the_best_split_is_that_of_all(topo):
    words = ("dgx-h100", "--nics", "best", "--json")
    beside = topo("compare", *words).document["together"]["paths"]
    alone = topo("compare", *words, "--together").document["paths"]
    assert [one["end_s"] for one in beside] == pytest.approx([one["end_s"] for one in alone])


@pytest.mark.parametrize("suffix", ["svg", "png", "dot"])
@pytest.mark.parametrize("verb", ["simulate", "compare"])
def test_a_picture(topo, tmp_path, verb, suffix):
    together = ["--together"] if verb == "compare" else []
    done = topo(verb, "gds-textbook", *together, "-o", f"time.{suffix}", "--theme", "dark")
    assert done.code == 0
    start = {"svg": b"<", "png": b"\x89PNG", "dot": b"digraph"}[suffix]
    assert (tmp_path / f"time.{suffix}").read_bytes().startswith(start)


# --- prices ---------------------------------------------------------------------------------------


def test_prices_of_direct(topo):
    words = ("bottleneck", "gds-textbook", "--workload", "load", "--via", "direct")
    prices = topo(*words, "--json").document["prices"]
    by_class = {one["class"]: one for one in prices["classes"]}
    # one card at 51 GB/s leaves its GPUs' siblings where they are, one at 49 has 320 GB to move
    lost = pytest.approx(320 / 49 - 6.4)
    assert by_class["nic-chip"]["one"] == {"gain": 1, "cost": 1, "saved_s": 0, "lost_s": lost}
    together = by_class["nic-chip"]["together"]
    assert (together["gain"], together["saved_s"]) == (2, pytest.approx(6.4 - 640 / 102))
    assert set(by_class["card-pcie"]["one"].values()) == {0}
    assert prices["tie"] is None
    page = " ".join(topo(*words).out.split())
    assert (
        "One GB/s more on both cards' chips adds 2 GB/s in all (125.5 ms less), up to +13.0 GB/s a "
        "card, where the slots' PCIe binds; one less costs 2 GB/s (130.6 ms more)."
    ) in page


def test_prices_of_legacy(topo):
    words = ("bottleneck", "gds-textbook", "--workload", "load", "--via", "legacy", "--json")
    prices = topo(*words).document["prices"]
    by_class = {one["class"]: one for one in prices["classes"]}
    prices_of_one = [by_class[kind]["one"] for kind in ("nic-chip", "memory-bus")]
    assert [(one["gain"], one["cost"]) for one in prices_of_one] == [(0, 1), (0, 0.25)]
    assert (prices["tie"]["gain"], prices["tie"]["cost"]) == (2, 2)


def test_tables_by_demand_and_by_resource(topo):
    words = ("bottleneck", "dgx-h100", "--workload", "load", "--via", "legacy")
    document = topo(*words, "--json").document
    (demand,) = document["demands"]
    assert (demand["count"], demand["rate_bytes_per_s"], demand["share"]) == (8, 12.5e9, 0.125)
    used = {one["resources"][0]["class"]: one for one in document["resources"]}
    assert used["nic-chip"]["utilisation"] == 1
    # 4 x 100 GB/s on 563.2.
    assert used["memory-bus"]["utilisation"] == pytest.approx(400 / 563.2)
    assert len(used["memory-bus"]["used_by"]) == 8
    page = topo(*words).out
    assert "equal demands on one line" in page
    each = topo(*words, "--each")
    assert "equal demands on one line" not in each.out
    assert len(topo(*words, "--each", "--json").document["demands"]) == 8


def test_the_largest_total(topo):
    words = ("bottleneck", "gds-textbook", "--via", "direct", "--rule", "largest-total")
    assert topo(*words, "--json").document["rule"] == "largest-total"
    assert "The largest total is 100 GB/s: max-min fair rates reach it as well." in topo(*words).out


def test_a_refused_path_has_no_prices(topo):
    document = topo("bottleneck", "workstation-4gpu", "--via", "direct", "--json").document
    assert document["verdict"] == "refused"
    assert (document["demands"], document["resources"], document["prices"]) == ([], [], None)


# --- what does not work ---------------------------------------------------------------------------


@pytest.fixture
def pair(tmp_path):
    def write(old="", new=""):
        assert old in TWO_SOCKETS
        (tmp_path / "pair.yaml").write_text(TWO_SOCKETS.replace(old, new, 1), encoding="utf-8")
        return "pair.yaml"

    return write


@pytest.mark.parametrize("verb", ["simulate", "upgrade", "bottleneck"])
@pytest.mark.parametrize(
    ("old", "new", "said"),
    [
        ("bus: 200 GB/s", "bus: 0 GB/s", "0 GB/s"),
        ("read: 50 GB", "read: -50 GB", "-50 GB"),
        ("read: 50 GB", "read: 1e400 GB", "1e400 GB"),
        ("read: 50 GB", "read: 0 GB", "0 GB"),
        ("read: 50 GB", "read: 50 GB/s", "50 GB/s"),
        ("near: {", "near: {limit: 0 GB/s, ", "limit"),
        ("near: {", "near: {weight: -1, ", "weight"),
        ("near: {", "near: {start: -1 s, ", "-1 s"),
        ("from: storage, to: gpu0", "from: storage, to: gpu7", "gpu7"),
    ],
)
def test_a_bad_file_is_told_where(topo, pair, verb, old, new, said):
    done = topo(verb, pair(old, new))
    assert (done.code, done.out) == (1, "")
    assert said in done.err
    assert "pair.yaml:" in done.err
    assert "Traceback" not in done.err


@pytest.mark.parametrize(
    ("words", "code", "said"),
    [
        (("simulate", "gds-textbook", "--via", "lod=direct"), 1, "no workload lod"),
        (("simulate", "gds-textbook", "--via", "dirct"), 1, "dirct"),
        (("simulate", "gds-textbook", "--via", "direct,legacy"), 2, "WORKLOAD=PATH"),
        (("simulate", "workstation-4gpu", "--via", "direct"), 1, "cannot go by direct"),
        (("simulate", "gds-textbook", "-o", "time.gif"), 1, "no picture format .gif"),
        (("simulate", "gds-textbook", "-o", "no/time.svg"), 1, "time.svg"),
        (("compare", "gds-textbook", "-o", "time.svg"), 2, "--together"),
        (("compare", "gds-textbook", "--together", "--workload", "load"), 2, "all"),
        (("bottleneck", "gds-textbook", "--rule", "fair"), 2, "largest-total"),
        (("bottleneck", "gds-textbook", "--workload", "lod"), 1, "no workload lod"),
        (("bottleneck", "gds-textbook", "--via", "direct,legacy"), 2, "one --via"),
    ],
)
def test_a_bad_question(topo, words, code, said):
    done = topo(*words)
    assert (done.code, done.out) == (code, "")
    assert said in done.err


def test_a_demand_that_nothing_limits(topo, tmp_path):
    text = uncapped(ONE_SOCKET)
    text = text.replace("pcie: 5 x16, ", "").replace("ports: 1x 400 Gb/s, ", "ports: 1, ")
    (tmp_path / "box.yaml").write_text(text, encoding="utf-8")
    words = ["--set", "nic0.chip=unknown", "--set", "gpu0.hbm=unknown"]
    words += ["--set", "storage.read=unlimited", "--set", "storage -- nic0=infiniband unknown"]
    words += ["--set", "nic0 -- cpu0=pcie unknown", "--set", "gpu0 -- cpu0=pcie unknown"]
    done = topo("bottleneck", "box.yaml", "--workload", "load", "--via", "direct", *words)
    assert done.code == 1
    assert "nothing limits load gpu0 by direct: everything on the way is unknown" in done.err
    assert "nic0/chip" in done.err


@pytest.mark.parametrize("code", ["solver-time-limit", "solver-failed", "solver-inexact"])
def test_a_linear_program_without_an_answer(topo, monkeypatch, code):
    from topo.errors import Finding, SolverError

    def give_up(*_words, **_how):
        raise SolverError(Finding(code, "no optimum"))

    monkeypatch.setattr("topo.solve.linear_program.solve", give_up)
    done = topo("bottleneck", "gds-textbook", "--rule", "largest-total")
    assert (done.code, done.out) == (1, "")
    assert f"error[{code}]: no optimum" in done.err


@pytest.mark.parametrize(
    ("words", "text"),
    [
        (("simulate", "--via", "direct"), "at least 1"),
        (("upgrade", "--workload", "far", "--via", "direct"), "direct now: at least 1 s"),
        (("compare", "--together"), "far at most"),
        (("compare",), "far after at least"),
        (("bottleneck", "--workload", "far"), r"1 +at most 50 GB/s"),
    ],
    ids=["simulate", "upgrade", "together", "compare", "ladder"],
)
def test_at_most_survives_every_view(topo, tmp_path, words, text):
    unknown = TWO_SOCKETS.replace("upi 16 GT/s", "upi unknown")
    (tmp_path / "box.yaml").write_text(unknown, encoding="utf-8")
    done = topo(words[0], "box.yaml", *words[1:])
    assert re.search(text, done.out)
    assert "unknown-capacity" in done.err
    assert '"at_most": true' in topo(words[0], "box.yaml", *words[1:], "--json").out


def test_a_timeline_says_at_least(topo, tmp_path):
    unknown = TWO_SOCKETS.replace("upi 16 GT/s", "upi unknown")
    (tmp_path / "box.yaml").write_text(unknown, encoding="utf-8")
    topo("simulate", "box.yaml", "--via", "direct", "-o", "time.svg")
    picture = (tmp_path / "time.svg").read_text(encoding="utf-8")
    assert "all done after at least" in picture
    assert ">at least<" in picture
