"""`topo upgrade`: every figure is what `topo compare` says with the same --set."""

from __future__ import annotations

import pytest

ASKED = {
    "load by legacy": ("--workload", "load", "--via", "legacy"),
    "load by direct": ("--workload", "load", "--via", "direct"),
    "together by legacy": ("--together", "--via", "legacy"),
}


def compared(topo, one, asked):
    """Return seconds by workload that `compare` gives for an upgrade's own words."""
    changes = [word for key, value in one["set"].items() for word in ("--set", f"{key}={value}")]
    words = [word for word in asked if word not in ("--via", "legacy", "direct")]
    via = ("--via", one["data_path"])
    document = topo("compare", "dgx-h100", *words, *via, *changes, "--json").document
    if "--together" in asked:
        (path,) = document["paths"]
        return {run["workload"]: run["finish_s"] for run in path["runs"]}
    (workload,) = document["workloads"]
    (path,) = workload["paths"]
    return {workload["name"]: path["time_s"]}


@pytest.mark.parametrize("asked", ASKED.values(), ids=ASKED)
def test_every_figure_is_that_of_compare(topo, asked):
    document = topo("upgrade", "dgx-h100", *asked, "--json").document
    assert document["schema"] == "topo.upgrade/1"
    assert len(document["upgrades"]) > 4
    for one in document["upgrades"]:
        assert one["times_s"] == compared(topo, one, asked), one["title"]
        assert one["time_s"] == max(one["times_s"].values())


def test_so_are_those_of_combinations(topo):
    asked = (*ASKED["together by legacy"], "--combine", "2")
    pairs = [
        one
        for one in topo("upgrade", "dgx-h100", *asked, "--json").document["upgrades"]
        if len(one["kinds"]) > 1
    ]
    assert pairs
    for one in pairs[:4]:
        assert one["times_s"] == compared(topo, one, ASKED["together by legacy"])


@pytest.mark.parametrize("asked", ASKED.values(), ids=ASKED)
def test_best_first(topo, asked):
    document = topo("upgrade", "dgx-h100", *asked, "--json").document
    found = [round(one["time_s"], 9) for one in document["upgrades"]]
    assert found == sorted(found)
    assert found[0] < document["now"]["time_s"]
    assert document["upgrades"][0]["kinds"] == ["other-card"]


def test_what_is_rejected_breaks_a_rule_with_compare_too(topo):
    document = topo("upgrade", "dgx-h100", "--json").document
    assert document["rejected"]
    for one in document["rejected"]:
        assert one["reason"]
        if one["set"]:
            changes = [w for key, value in one["set"].items() for w in ("--set", f"{key}={value}")]
            done = topo("compare", "dgx-h100", *changes)
            assert done.code == 1
            assert one["reason"] in done.err


def test_the_page_is_short(topo):
    done = topo("upgrade", "dgx-h100")
    assert done.code == 0
    assert "7 other changes alone gain nothing: data path" in done.out
    assert len(done.out.splitlines()) < 40
    assert max(map(len, done.out.splitlines())) <= 100


def test_the_command_it_advises_works(topo):
    import shlex

    out = topo("upgrade", "dgx-h100", "--via", "direct").out
    advice = " ".join(out.partition("for yourself: ")[2].partition("\n\n")[0].split())
    done = topo(*shlex.split(advice)[1:])
    assert done.code == 0
    assert "5.078 s" in done.out


def test_the_command_keeps_what_was_set_already(topo):
    out = topo("upgrade", "dgx-h100", "--set", "nic.part=connectx-8-bridge").out
    advice = " ".join(out.partition("for yourself: ")[2].partition("\n\n")[0].split())
    assert "--set nic.part=connectx-8-bridge --set slot1.part=" in advice


def test_costs(topo):
    costs_of = ("--cost", "other-card=1800", "--cost", "data-path=0")
    words = ("upgrade", "dgx-h100", "--via", "legacy", "--together", *costs_of)
    document = topo(*words, "--json").document
    costs = {one["title"]: one["cost"] for one in document["upgrades"]}
    assert 3600 in costs.values()
    assert costs["data path direct"] == 0
    assert costs["one DIMM a channel"] is None
    assert "3,600" in topo(*words).out


@pytest.mark.parametrize(
    ("words", "code", "said"),
    [
        (("--cost", "card=1"), 2, "kinds are other-card"),
        (("--cost", "other-card=cheap"), 2, "no amount"),
        (("--cost", "other-card=-1"), 2, "no amount"),
        (("--cost", "other-card=nan"), 2, "no amount"),
        (("--cost", "other-card=inf"), 2, "no amount"),
        (("--combine", "9"), 2, "combine"),
        (("--via", "dirct"), 1, "dirct"),
        (("--workload", "lod"), 1, "no workload lod"),
        (("--via", "p2pdma"), 1, "load cannot go by p2pdma: storage is not local"),
    ],
)
def test_a_bad_question(topo, words, code, said):
    done = topo("upgrade", "dgx-h100", *words)
    assert (done.code, done.out) == (code, "")
    assert said in done.err


def test_the_command_to_copy_asks_the_same_of_the_same_machine(topo):
    asked = ("--without", "slot1", "--at", "achievable", "--nics", "stripe", "--via", "direct")
    page = " ".join(topo("upgrade", "dgx-h100", *asked).out.split())
    command, _, _ = page.partition("yourself: topo ")[2].partition(" Not possible")
    (workload,) = topo(*command.split(), "--json").document["workloads"]
    best = topo("upgrade", "dgx-h100", *asked, "--json").document["upgrades"][0]
    assert [path["time_s"] for path in workload["paths"]] == [best["time_s"]]
