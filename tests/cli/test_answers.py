"""The verbs that answer: compare, check, show, paths, matrix, bottleneck, as text and as JSON."""

from __future__ import annotations

import os
import re
import subprocess
import sys
from pathlib import Path

import pytest

import topo as library
from tests.machines import SWITCHED, TARGET
from topo.datapaths.registry import built_in, built_in_files
from topo.description.locating import builtin_names

MACHINES = builtin_names()
OF_STORAGE = {
    name
    for name in built_in_files()
    if (built_in(name).far_end, built_in(name).near_end) == ("storage", "gpu")
}


# --- the textbook's numbers -----------------------------------------------------------------------


def paths_of(document, workload):
    found = next(one for one in document["workloads"] if one["name"] == workload)
    return {path["data_path"]: path for path in found["paths"]}


def test_the_textbook_counts_as_the_textbook_does(topo):
    document = topo("compare", "gds-textbook", "--json").document
    assert document["schema"] == "topo.compare/1"
    legacy, direct = paths_of(document, "load").values()
    counted = {
        "logical_hops": (5, 3),
        "physical_links": (5, 3),
        "ram_traversals": (2, 0),
        "cpu_memory_copies": (2, 0),
        "core_copies": (1, 0),
        "ram_traffic_bytes": (1.28e12, 0),
        "ram_floor_s": (3.2, 0),
        "dram_bytes": (2.56e12, 0),
        "dram_floor_s": (6.4, 0),
        "rate_bytes_per_s": (1e11, 1e11),
        "time_s": (6.4, 6.4),
    }
    assert {key: (legacy[key], direct[key]) for key in counted} == counted
    assert {one["resource"] for one in direct["bottlenecks"]} == {"slot1/chip", "slot2/chip"}
    assert {one["resource"] for one in legacy["bottlenecks"]} == {
        *("slot1/chip", "slot2/chip", "ram0/bus", "ram1/bus")
    }
    for one in legacy["bottlenecks"]:
        assert one["load_bytes_per_s"] == pytest.approx(one["capacity_bytes_per_s"])
        assert one["class"] in ("nic-chip", "memory-bus")


def test_a_checkpoint_takes_a_range_of_times(topo):
    document = topo("compare", "gds-textbook", "--workload", "checkpoint", "--json").document
    direct = paths_of(document, "checkpoint")["direct"]
    assert direct["time_s"] == 1.4
    assert direct["time_range_s"] == pytest.approx([1.75, 7 / 3])


def test_pageable_memory_binds(topo):
    words = ("compare", "gds-textbook", "--via", "legacy-pageable,direct", "--workload", "load")
    document = topo(*words, "--json").document
    slow, direct = paths_of(document, "load").values()
    assert (slow["dram_bytes"], slow["dram_floor_s"]) == (3.84e12, 9.6)
    assert slow["rate_bytes_per_s"] == pytest.approx(2e11 / 3)
    assert {one["class"] for one in slow["bottlenecks"]} == {"memory-bus"}
    assert direct["rate_bytes_per_s"] / slow["rate_bytes_per_s"] == pytest.approx(1.5)
    assert "1.50 times as fast" in topo(*words).out


LADDERS = {
    ("gds-textbook", "direct"): (100, 126.03, 200, 504.12),
    ("gds-textbook", "legacy"): (100, 126.03, 200, 504.12),
    ("gds-textbook", "legacy-pageable"): (66.67, 100, 126.03, 200, 504.12),
    ("dgx-h100", "direct"): (100, 126.03, 200, 504.12),
    ("dgx-h100", "legacy"): (100, 126.03, 140.8, 200, 504.12),
    ("dgx-h100", "legacy-pageable"): (93.87, 100, 126.03, 200, 504.12),
}


@pytest.mark.parametrize(
    ("asked", "rates"), LADDERS.items(), ids=lambda one: " ".join(map(str, one))
)
def test_the_ladders(topo, asked, rates):
    machine, path = asked
    document = topo("bottleneck", machine, "--via", path, "--workload", "load", "--json").document
    assert document["schema"] == "topo.bottleneck/1"
    found = [round(rung["rate_bytes_per_s"] / 1e9, 2) for rung in document["ladder"]]
    assert tuple(found) == LADDERS[asked]
    assert "cannot be bought" in document["ladder_end"]
    tie = {one["class"] for one in document["ladder"][0]["classes"]}
    if asked == ("gds-textbook", "legacy"):
        assert tie == {"nic-chip", "memory-bus"}


def test_the_bounce_can_win(topo):
    document = topo("compare", "gds-loses", "--workload", "load", "--json").document
    legacy, direct = paths_of(document, "load").values()
    assert legacy["rate_bytes_per_s"] > 3 * direct["rate_bytes_per_s"]
    assert direct["verdict"] == "ok-slower"
    said = topo("compare", "gds-loses", "--workload", "load").out
    assert "direct loses to legacy" in " ".join(said.split())


# --- every built-in, every verb -------------------------------------------------------------------


VERBS = ["compare", "check", "show", "paths", "matrix", "bottleneck"]


@pytest.mark.parametrize("machine", MACHINES)
@pytest.mark.parametrize("verb", VERBS)
def test_a_built_in_has_an_answer_and_a_plain_page(topo, machine, verb):
    page = topo(verb, machine)
    assert (page.code, page.out.strip() != "") == (0, True), page.err
    assert "Traceback" not in page.err
    assert "\x1b" not in page.out
    lines = page.out.splitlines()
    assert verb == "matrix" or [line for line in lines if line != line.rstrip()] == []
    wide = [line for line in lines if len(line) > 100 and " " in line.strip()]  # no lone address
    assert verb == "matrix" or wide == []
    told = topo(verb, machine, "--json")
    assert (told.code, told.err) == (0, "")
    assert told.document["schema"] == f"topo.{verb}/1"


ASKED = [
    (verb, machine, *form)
    for verb in VERBS
    for machine in ("gds-textbook", "dgx-a100", "gb200-tray")
    for form in ((), ("--json",))
] + [
    (verb, "dgx-a100", "--json")
    for verb in ("affinity", "collective", "doubt", "failures", "simulate", "upgrade")
]
ASK_ALL = f"""
from topo.cli.program import main
for words in {ASKED!r}:
    main(words)
"""


def test_the_same_question_gives_the_same_bytes(topo):
    again = "".join(topo(*words).out for words in ASKED)
    elsewhere = subprocess.run(
        [sys.executable, "-c", ASK_ALL],
        env={**os.environ, "PYTHONHASHSEED": "1", "PYTHONIOENCODING": "utf-8"},
        capture_output=True,
        text=True,
        encoding="utf-8",
        check=True,
    )
    assert elsewhere.stdout == again


# --- compare --------------------------------------------------------------------------------------


def test_compare_between_two_ends(topo):
    document = topo("compare", "dgx-h100", "--from", "gpu3", "--to", "storage", "--json").document
    (workload,) = document["workloads"]
    assert (workload["direction"], workload["from"]) == ("write", ["gpu3"])


def test_set_changes_the_machine(topo, box):
    plain = topo("compare", box, "--workload", "load", "--json").document
    slow = topo(
        "compare", box, "--workload", "load", "--set", "nic0.chip=80 Gb/s", "--json"
    ).document
    rates = [paths_of(one, "load")["direct"]["rate_bytes_per_s"] for one in (plain, slow)]
    assert rates == [50e9, 10e9]


def test_the_changes_that_the_readme_and_the_help_name_can_be_made(topo):
    readme = (Path(__file__).parents[2] / "README.md").read_text(encoding="utf-8")
    told = " ".join((readme + topo("compare", "--help").out).split())
    changes = set(re.findall(r"(?:slot1|settings)\.[a-z0-9]+=[a-z0-9-]+", told))
    assert len(changes) > 1
    for change in sorted(changes):
        done = topo("compare", "gds-textbook", "--set", change, "--json")
        assert (done.code, done.document["schema"]) == (0, "topo.compare/1")


def test_the_basis_is_named(topo, box):
    assert topo("compare", box, "--at", "measured", "--json").document["basis"] == "measured"
    assert "Rates are measured" in topo("compare", box, "--at", "measured").out


def test_a_refused_path_says_why(topo):
    document = topo("compare", "workstation-4gpu", "--json").document
    direct = paths_of(document, "load")["direct"]
    assert direct["verdict"] == "refused"
    assert (direct["rate_bytes_per_s"], direct["time_s"], direct["logical_hops"]) == (None,) * 3
    assert [one["code"] for one in direct["reasons"] if one["effect"] == "refused"]
    assert "refused" in topo("compare", "workstation-4gpu").out


def test_an_unknown_capacity_is_null_and_listed(topo, box):
    done = topo("compare", box, "--set", "storage.read=unknown", "--workload", "load", "--json")
    path = paths_of(done.document, "load")["direct"]
    assert path["unknown"] == ["storage/read"]
    assert path["at_most"] is True
    assert "unknown-capacity" in {one["code"] for one in done.document["findings"]}


def test_many_paths_come_in_tables_beside_each_other(topo, box):
    names = "legacy,legacy-pageable,odirect-pinned,odirect-pageable,mmap,direct"
    out = topo("compare", box, "--workload", "load", "--via", names).out
    assert out.count("RAM traversals") == 2
    assert all(name in out for name in names.split(","))


def test_cards_and_buffers_can_be_placed(topo):
    policy = ("--nics", "stripe", "--buffers", "kernel=near-nic,user=ram0", "--routes", "first")
    document = topo("compare", "dgx-h100", "--workload", "load", *policy, "--json").document
    assert document["policy"] == {
        "nics": "stripe",
        "routes": "first",
        "buffers": {"kernel": "near-nic", "user": "ram0"},
    }


@pytest.mark.parametrize(
    ("buffers", "expected"),
    [
        ("kernal=near-nic", "no RAM buffer `kernal`"),
        ("kernel=ram7", "no memory `ram7`"),
        ("kernel=gpu0", "no memory `gpu0`"),
    ],
)
def test_a_misspelt_buffer_is_not_ignored(topo, buffers, expected):
    done = topo("compare", "dgx-h100", "--buffers", buffers)
    assert (done.code, expected in done.err) == (1, True)


# --- check ----------------------------------------------------------------------------------------


def test_check_says_one_line(topo, box):
    assert topo("check", "dgx-h100").out.startswith("dgx-h100: ")
    assert topo("check", box).out == "tiny: nothing expected\n"


def test_a_broken_expectation_stands_where_it_is_written(topo, box, tmp_path):
    text = (tmp_path / box).read_text()
    lines = ["expect:", "  - load via direct <= 1 ms", "  - load via direct >= 1 GB/s"]
    (tmp_path / box).write_text("\n".join([text.rstrip(), *lines, ""]))
    done = topo("check", box)
    assert (done.code, done.out) == (1, "")
    line = text.rstrip().count("\n") + 3
    assert f"{box}:{line}:5" in done.err
    assert "load via direct <= 1 ms" in done.err
    assert "1 s" in done.err
    told = topo("check", box, "--json")
    assert (told.code, told.document["schema"]) == (1, "topo.check/1")
    assert [one["holds"] for one in told.document["expectations"]] == [False, True]
    assert [one["code"] for one in told.document["findings"]] == ["expectation-failed"]


def test_check_tells_every_expectation(topo):
    document = topo("check", "dgx-h100", "--json").document
    assert all(one["holds"] for one in document["expectations"])
    assert "gpu4 to slot2 is SYS" in [one["text"] for one in document["expectations"]]


# --- show -----------------------------------------------------------------------------------------


@pytest.mark.parametrize("machine", MACHINES)
def test_every_figure_has_a_kind_and_a_source(topo, machine):
    document = topo("show", machine, "--json").document
    figures = [
        figure
        for one in document["resources"]
        for figure in (one["theoretical"], one["achievable"], one["measured"])
        if figure is not None
    ]
    figures += [figure for one in document["devices"] for figure in one["figures"].values()]
    assert figures
    kinds = {"formula", "datasheet", "measured", "quoted", "guess"}
    assert {figure["kind"] for figure in figures} <= kinds
    assert all(figure["source"] for figure in figures)


@pytest.mark.parametrize(
    ("name", "rate", "headline"),
    [("dgx-h100", 563.2e9, 614.4e9), ("gds-textbook", 400e9, 400e9)],
)
def test_the_ram_in_all_stands_beside_its_headline(topo, name, rate, headline):
    document = topo("show", name, "--json").document
    assert document["ram_bytes_per_s"] == rate
    assert document["ram_headline_bytes_per_s"] == headline
    page = topo("show", name).out
    assert f"System RAM in all: {rate / 1e9:g} GB/s" in page
    assert ("headline" in page) is (headline > rate)


def test_an_unknown_memory_has_no_total(topo, box):
    done = topo("show", box, "--set", "ram0.bus=unknown", "--json")
    assert done.document["ram_bytes_per_s"] is None
    assert "System RAM" not in topo("show", box, "--set", "ram0.bus=unknown").out


def test_a_machine_without_a_title_is_named_once(topo, box):
    name = topo("show", box, "--json").document["topology"]
    assert topo("show", box).out.splitlines()[0] == name


@pytest.mark.parametrize("machine", MACHINES)
def test_what_show_tells_can_be_built_again(topo, machine):
    document = topo("show", machine, "--json").document
    again = library.build(document["document"])
    assert [one.id for one in again.all_resources] == [one["id"] for one in document["resources"]]
    assert again.name == machine
    rates = [one.capacity.theoretical.value for one in again.all_resources]
    told = [one["theoretical"]["bytes_per_s"] for one in document["resources"]]
    for rate, shown in zip(rates, told, strict=True):
        assert shown is None or shown == pytest.approx(rate)


def test_no_folder_of_this_machine_is_told(topo, box, tmp_path):
    for verb in ("compare", "show", "check"):
        done = topo(verb, str(tmp_path / box), "--json")
        assert done.code == 0
        assert str(tmp_path) not in done.out
        assert done == topo(verb, box, "--json")


# --- matrix ---------------------------------------------------------------------------------------


def test_the_matrix_is_laid_out_as_the_vendor_does(topo):
    out = topo("matrix", "dgx-h100").out
    head, first = out.splitlines()[:2]
    assert head.split() == [
        *(f"gpu{n}" for n in range(8)),
        *("nic0", "slot2", "nic1", "nic2", "nic3", "nic4", "slot1", "nic5", "nic6", "nic7"),
        *("NUMA", "Affinity"),
    ]
    assert first.split("\t")[0].strip() == "gpu0"
    assert first.split()[1:9] == ["X", *["NV18"] * 7]
    assert "NIC Legend:" in out
    assert "  slot2: mlx5_1, mlx5_2; Slot2; 29:00.0, 29:00.1" in out
    rows = out.split("\n\n")[0].splitlines()
    assert {row.count("\t") for row in rows} == {19}  # 18 devices, and the NUMA nodes
    starts = {tuple(len(cell) for cell in row.split("\t")[:-1]) for row in rows}
    assert len(starts) == 1, "columns are aligned"


def test_the_matrix_by_function(topo):
    document = topo("matrix", "dgx-h100", "--functions", "--json").document
    assert document["matrix"]["slot1/f0"]["slot1/f1"] == "PIX"
    assert document["matrix"]["gpu0"]["slot2/f1"] == "NODE"
    assert "  slot1/f1: mlx5_8; Slot1; aa:00.1" in topo("matrix", "dgx-h100", "--functions").out


def test_numa_affinity_is_a_column_where_it_is_known(topo):
    assert "NUMA Affinity" in topo("matrix", "dgx-a100").out
    assert topo("matrix", "dgx-a100", "--json").document["numa_affinity"]["gpu0"] == [3]
    assert "NUMA Affinity" not in topo("matrix", "kv-cache").out


# --- paths ----------------------------------------------------------------------------------------


def test_paths_lists_all_with_a_verdict_for_each_workload(topo):
    document = topo("paths", "dgx-a100", "--json").document
    listed = {one["data_path"]: one for one in document["data_paths"]}
    assert set(listed) == OF_STORAGE
    verdicts = {one["name"]: one["verdict"] for one in listed["p2pdma"]["workloads"]}
    assert verdicts["load"] == "refused"
    assert verdicts["local"] != "refused"
    assert listed["legacy"]["moves"][1]["by"] == "core"


def test_a_route_names_its_links_and_its_use(topo):
    words = ("paths", "dgx-h100", "--from", "storage", "--to", "gpu0", "--via", "direct")
    assert "storage -> slot2 -> cpu0 -> nic0 -> gpu0" in topo(*words).out
    ((path,), *_) = (topo(*words, "--json").document["data_paths"],)
    ((route,),) = (one["routes"] for one in path["workloads"])
    use = {one["resource"]: one["bytes_per_byte"] for one in route["use"]}
    assert use["slot2/chip"] == 1
    (subflow,) = route["branches"]
    (move,) = subflow["moves"]
    assert [link["to"] for link in move["links"]] == ["slot2", "cpu0", "nic0", "gpu0"]


def test_paths_needs_no_workload(topo, tmp_path):
    started = topo("new").out
    (tmp_path / "bare.yaml").write_text(started[: started.index("workloads:")])
    done = topo("paths", "bare.yaml", "--json")
    assert done.code == 0
    assert {one["data_path"] for one in done.document["data_paths"]} == OF_STORAGE


# --- bottleneck -----------------------------------------------------------------------------------


def test_bottleneck_in_words(topo):
    out = topo("bottleneck", "gds-textbook", "--via", "legacy").out
    assert (
        "100 GB/s in all, 6.4 s: the RAM buses and the cards' chips bind together (a tie)." in out
    )
    assert "gpu[0-3]" in out


def test_bottleneck_of_a_refused_path_is_the_reason(topo):
    words = ("bottleneck", "workstation-4gpu", "--via", "direct")
    done = topo(*words, "--json")
    assert done.code == 0
    assert (done.document["ladder"], done.document["verdict"]) == ([], "refused")
    assert "direct is refused" in topo(*words).out


# What GeForce and its like have: no peer-to-peer. A read, a write and a copy.
NO_PEERS = SWITCHED.replace("p2p: yes", "p2p: no") + "  copy: {copy: 20 GB, from: gpu0, to: gpu1}\n"


def test_without_a_data_path_every_verb_asks_about_one_that_is_not_refused(topo, tmp_path):
    (tmp_path / "box.yaml").write_text(NO_PEERS, encoding="utf-8")
    done = topo("bottleneck", "box.yaml", "--json")
    (note,) = [one for one in done.document["findings"] if one["code"] == "taken-instead"]
    assert note["message"] == (
        "load goes by compat: direct is refused, accel has no PCIe peer-to-peer"
    )
    assert (done.document["data_path"], done.document["verdict"]) == ("compat", "ok")
    assert "load by compat" in topo("bottleneck", "box.yaml").out
    expected = [("load", "compat"), ("save", "compat"), ("copy", "peer-ram")]
    done = topo("simulate", "box.yaml", "--json")
    assert [(run["workload"], run["data_path"]) for run in done.document["runs"]] == expected
    assert [one["code"] for one in done.document["findings"]].count("taken-instead") == 3
    done = topo("compare", "box.yaml", "--together", "--json")
    assert [path["data_path"] for path in done.document["paths"]] == ["legacy", "compat"]
    runs = done.document["paths"][1]["runs"]
    assert [(run["workload"], run["data_path"]) for run in runs] == expected
    assert topo("upgrade", "box.yaml", "--json").document["data_path"] == "compat"
    assert "load goes by compat" in topo("upgrade", "box.yaml").err


def test_what_the_user_names_is_asked_about_even_if_refused(topo, tmp_path):
    (tmp_path / "box.yaml").write_text(NO_PEERS, encoding="utf-8")
    assert topo("bottleneck", "box.yaml", "--via", "direct", "--json").document["ladder"] == []
    done = topo("simulate", "box.yaml", "--via", "direct")
    assert (done.code, "load cannot go by direct" in done.err) == (1, True)
    assert "--via compat" in done.err


def test_a_data_path_of_copies_reaches_copies(topo, tmp_path):
    # PCIe 5 x16 each way, 63.015 GB/s: 10 GB in 158.7 ms, either way at once.
    copies = "workloads:\n  there: {copy: 10 GB, from: gpu0, to: gpu1}\n"
    text = (
        SWITCHED.split("workloads:")[0] + copies + "  back: {copy: 10 GB, from: gpu1, to: gpu0}\n"
    )
    (tmp_path / "box.yaml").write_text(text, encoding="utf-8")
    for words in (("--via", "peer-pcie"), ()):
        for verb in (("compare", "--together"), ("simulate",)):
            document = topo(*verb, "box.yaml", *words, "--json").document
            paths = {path["data_path"]: path for path in document.get("paths", [])}
            runs = paths["peer-pcie"]["runs"] if paths else document["runs"]
            assert [run["data_path"] for run in runs] == ["peer-pcie", "peer-pcie"]
            assert [run["finish_s"] for run in runs] == pytest.approx([10 / 63.01538461538462] * 2)


def test_one_data_path_is_for_those_that_it_can_serve(topo, tmp_path):
    text = SWITCHED + "  copy: {copy: 20 GB, from: gpu0, to: gpu1}\n"
    (tmp_path / "box.yaml").write_text(text, encoding="utf-8")
    runs = topo("simulate", "box.yaml", "--via", "legacy", "--json").document["runs"]
    assert [run["data_path"] for run in runs] == ["legacy", "legacy", "peer-pcie"]
    runs = topo("simulate", "box.yaml", "--via", "peer-ram", "--json").document["runs"]
    assert [run["data_path"] for run in runs] == ["direct", "direct", "peer-ram"]


def test_a_workload_s_own_data_path_comes_first(topo, tmp_path):
    text = SWITCHED.replace("to: gpu}", "to: gpu, via: [odirect-pinned, direct]}", 1)
    (tmp_path / "box.yaml").write_text(text, encoding="utf-8")
    assert topo("bottleneck", "box.yaml", "--json").document["data_path"] == "odirect-pinned"
    runs = topo("simulate", "box.yaml", "--json").document["runs"]
    assert [run["data_path"] for run in runs] == ["odirect-pinned", "direct"]
    assert topo("upgrade", "box.yaml", "--json").document["data_path"] == "odirect-pinned"


def test_paths_between_gpus_are_those_of_gpus(topo):
    document = topo("paths", "dgx-h100", "--from", "gpu0", "--to", "gpu1", "--json").document
    names = [path["data_path"] for path in document["data_paths"]]
    assert names == ["peer-ram", "peer-pcie", "peer-nvlink"]


def test_bottleneck_asks_about_one_path(topo):
    assert topo("bottleneck", "gds-textbook", "--via", "legacy,direct").code == 2


def test_bottleneck_of_a_copy_takes_the_most_direct_way(topo):
    asked = topo("bottleneck", "dgx-h100", "--from", "gpu", "--to", "gpu", "--json").document
    assert (asked["data_path"], asked["verdict"]) == ("peer-nvlink", "ok")
    asked = topo("bottleneck", "dgx-h100", "--from", "nic0", "--to", "gpu0", "--json").document
    assert (asked["data_path"], asked["ladder"][0]["classes"][0]["class"]) == (
        "nic-direct",
        "nic-chip",
    )


@pytest.mark.parametrize("verb", ["bottleneck", "compare"])
def test_wrong_ends_are_refused_in_one_sentence(topo, verb):
    out = topo(verb, "dgx-h100", "--from", "gpu", "--to", "gpu", "--via", "direct").out
    said = " ".join(out.split())
    assert "direct is refused: direct joins a GPU with storage" in said
    assert said.count("not with gpu0, gpu1") == said.count("joins a GPU with")


def test_bottleneck_warns_of_what_is_unknown_as_compare_does(topo, box):
    words = (box, "--set", "storage.read=unknown", "--workload", "load")
    done = topo("bottleneck", *words)
    assert "warning[unknown-capacity]: rates by direct are at most" in done.err
    assert done.err == topo("compare", *words, "--via", "direct").err
    told = topo("bottleneck", *words, "--json").document
    assert "unknown-capacity" in {one["code"] for one in told["findings"]}


# --- figures that are not there -------------------------------------------------------------------


def test_rates_by_basis_are_null_where_nothing_was_measured(topo, box):
    words = ("compare", box, "--workload", "load", "--json")
    plain = paths_of(topo(*words).document, "load")["direct"]
    assert plain["rates_by_basis_bytes_per_s"]["measured"] is None
    assert plain["at_most_by_basis"] == dict.fromkeys(plain["at_most_by_basis"], False)
    unknown = topo(*words, "--set", "storage.read=unknown").document
    found = paths_of(unknown, "load")["direct"]
    assert set(found["at_most_by_basis"].values()) == {True}
    measured = paths_of(topo("compare", "gds-loses", "--json").document, "load")
    assert measured["direct"]["rates_by_basis_bytes_per_s"]["measured"] == pytest.approx(
        7.41e9, rel=1e-3
    )
    assert measured["legacy"]["rates_by_basis_bytes_per_s"]["measured"] is None


def test_between_two_ends_nobody_says_a_size_so_there_are_rates_only(topo):
    words = ("dgx-h100", "--from", "storage", "--to", "gpu0")
    (workload,) = topo("compare", *words, "--json").document["workloads"]
    assert (workload["bytes"], workload["note"]) == (None, "no size is said: rates only")
    for path in workload["paths"]:
        assert path["rate_bytes_per_s"] == 5e10
        timed = ("time_s", "ram_traffic_bytes", "ram_floor_s", "dram_bytes", "dram_floor_s")
        assert {path[key] for key in timed} == {None}
    page = topo("compare", *words).out
    assert "read, storage to gpu0; rates only, since no size is said" in page
    assert "4 bytes on the memory buses per payload byte" in page
    assert [word for word in ("1 GB,", "\ntime", "through RAM buffers") if word in page] == []
    # one GPU may get more than the 22 GB/s that a flow between root complexes is known for
    at_most = "At most 50 GB/s in all: of what is known, the card's chip binds."
    assert at_most in topo("bottleneck", *words).out
    (workload,) = topo("compare", "dgx-h100", "--workload", "load", "--json").document["workloads"]
    assert (workload["bytes"], workload["note"]) == (6.4e11, None)


def test_a_refused_path_moves_nothing(topo):
    words = ("compare", "workstation-4gpu", "--via", "compat,direct", "--workload", "load")
    refused = topo(*words, "--set", "nvme0.read=unknown", "--via", "nvme-tcp", "--json").document
    path = paths_of(refused, "load")["nvme-tcp"]
    assert path["verdict"] == "refused"
    moved = ("ram_traffic_bytes", "ram_floor_s", "dram_bytes", "dram_floor_s")
    assert {path[key] for key in (*moved, "physical_links_range")} == {None}
    page = topo("compare", "workstation-4gpu", "--via", "nvme-tcp,legacy").out
    (row,) = (line for line in page.splitlines() if line.startswith("RAM traversals"))
    assert row.split()[2:] == ["2"]  # legacy's alone


def test_lengths_that_differ_from_branch_to_branch_are_a_range(topo):
    words = ("compare", "dgx-h100", "--from", "gpu", "--to", "gpu", "--via", "peer-pcie")
    (workload,) = topo(*words, "--json").document["workloads"]
    (path,) = workload["paths"]
    assert (path["physical_links"], path["physical_links_range"]) == (4, [4, 5])
    assert (path["logical_hops"], path["logical_hops_range"]) == (2, [2, 2])
    assert re.search(r"^links walked +4 to 5$", topo(*words).out, re.MULTILINE)


@pytest.mark.parametrize(
    ("ends", "said"),
    [
        (("storage", "storage"), "which server moves it is not said"),
        (
            ("cpu0", "gpu0"),
            "data goes between storage, RAM, GPUs and network cards; cpu0 is a cpu",
        ),
    ],
)
def test_ends_that_data_does_not_go_between(topo, ends, said):
    done = topo("compare", "dgx-h100", "--from", ends[0], "--to", ends[1])
    assert done.code == 1
    assert said in done.err


def test_what_fills_ram_is_told_of_memories(topo):
    words = ("compare", "dgx-h100", "--from", "storage", "--to", "ram", "--via", "odirect")
    out = topo(*words).out
    assert "each memory" in out
    assert "GPU" not in out.split("Rates are")[0].split("storage to ram")[1]
    (workload,) = topo(*words, "--json").document["workloads"]
    (path,) = workload["paths"]
    assert set(path["rates_by_endpoint_bytes_per_s"]) == {"ram0", "ram1"}
    assert "rates_by_gpu_bytes_per_s" not in path


def test_the_target_s_ram_is_told_apart(topo, tmp_path):
    (tmp_path / "two.yaml").write_text(TARGET)
    words = ("compare", "two.yaml", "--workload", "load", "--via", "direct")
    assert re.search(r"^RAM traversals, target +1, 80 GB$", topo(*words).out, re.MULTILINE)
    assert "target-buffer (RAM)" in topo(*words).out
    (workload,) = topo(*words, "--json").document["workloads"]
    (path,) = workload["paths"]
    assert path["ram_traversals"] == 0
    assert path["target"] == {
        "data_path": "target-staged",
        "ram_traversals": 1,
        "cpu_memory_copies": 0,
        "core_copies": 0,
        "dram_bytes_per_byte": 2,
        "ram_traffic_bytes": 80_000_000_000,
    }


@pytest.mark.parametrize("pairing", ["nearest", "all", "in-order"])
def test_pairing_may_be_asked_for(topo, pairing):
    words = ("compare", "kv-cache", "--from", "nvme", "--to", "gpu", "--via", "compat")
    document = topo(*words, "--pairing", pairing, "--json").document
    assert document["policy"]["pairing"] == pairing
    assert topo(*words, "--pairing", "random").code == 2


def test_branches_and_resources_that_are_alike_are_told_once(topo):
    words = ("paths", "l40s-two-switches", "--from", "nvme", "--to", "gpu0", "--via", "legacy")
    out = topo(*words).out
    assert "by nvme[0-3], 25 % each:\n" in out
    assert "nvme[0-3] -> raid -> cpu1 -> cpu0 -> ram0" in out
    assert re.search(r"^nvme\[0-3\]/read +0\.25 +6\.8 GB/s ", out, re.MULTILINE)
    assert out.count("links walked") == 2  # one line for the route, one table for all branches


def test_the_shares_of_alike_branches_add_up(topo):
    words = ("paths", "dgx-a100", "--from", "nvme", "--to", "gpu0", "--via")
    legacy, direct = (topo(*words, via).out for via in ("legacy", "direct"))
    assert "by nvme[0-3], 12.5 % each:\n" in legacy  # each of them by four memories
    assert re.search(r"hops, 2 to 5 links walked", direct)
    document = topo("paths", "dgx-a100", "--from", "nvme", "--to", "gpu0", "--json").document
    (_, laid) = (one["workloads"][0] for one in document["data_paths"])
    assert laid["physical_links_range"] == [2, 5]


@pytest.mark.parametrize(
    ("words", "said"),
    [
        (
            ("l40s-two-switches", "--workload", "local"),
            "a drive, where the storage controller's reads bind;",
        ),
        (("l40s-two-switches", "--workload", "local", "--set", "raid.read=9 GB/s"), "reads bind."),
        (("dgx-h100", "--from", "storage", "--to", "gpu0"), "the card's chip binds."),
        (("gds-textbook",), "a card, where the slots' PCIe binds;"),
    ],
)
def test_the_verb_fits_what_binds(topo, words, said):
    assert said in " ".join(topo("bottleneck", *words).out.split())


def test_bottleneck_tells_resources_that_are_alike_on_one_row(topo):
    out = topo("bottleneck", "l40s-two-switches", "--workload", "local").out
    assert re.search(r"^nvme\[0-3\]/read +6\.8 GB/s each +6\.8 GB/s each +gpu", out, re.MULTILINE)
    words = ("workstation-4gpu", "--from", "gpu", "--to", "gpu", "--via", "peer-nvlink")
    refused = topo("bottleneck", *words).out
    reason = "peer-nvlink is refused: no GPU links lead to gpu[0-3]; it falls back to peer-ram."
    assert reason in refused


# --- figures that are none ------------------------------------------------------------------------

EXTREMES = [
    "load.weight=0.001",
    "load.weight=1000",
    "storage.read=1 B/s",
    "storage.read=1000 PB/s",
    "storage.read=unlimited",
    "load.read=1 B",
    "load.read=1000000 PB",
    "load.start=1000000 h",
    "load.limit=1 B/s",
    "load.efficiency=0.0001 %",
    "ram0.bus=1000 PB/s",
    "cpu0.cores=1000000",
    "ram0.bus=1 B/s",
    "cpu0.core-copy=1 B/s",
    "cpu0.core-copy=1000 PB/s",
    "gpu0.memory=1 B",
]
NONE = re.compile(r"(?<![\w.-])(?:[+-]?inf(?:inity)?|nan)(?![\w-])", re.IGNORECASE)


@pytest.mark.parametrize("change", EXTREMES)
def test_no_figure_is_infinite_or_none(topo, box, change):
    asked = (("compare",), ("show",), ("simulate",), ("bottleneck",), ("upgrade",), ("affinity",))
    for verb, *words in (*asked, ("paths", "--from", "storage", "--to", "gpu0"), ("check",)):
        for as_json in ((), ("--json",)):
            done = topo(verb, box, "--set", change, *words, *as_json)
            assert done.code == 0, (verb, done.err)
            assert not NONE.search(done.out + done.err), verb
            assert "fault of topo" not in done.err
            if as_json:
                assert done.document["schema"]
    for kind in ("json", "csv", "dot", "mermaid", "graphml"):
        done = topo("export", kind, box, "--set", change)
        assert not NONE.search(done.out), kind
    assert not NONE.search(topo("draw", box, "--set", change, "-o", "-").out)


# --- Markdown -------------------------------------------------------------------------------------


@pytest.mark.parametrize("verb", ["compare", "bottleneck", "failures", "upgrade"])
def test_markdown_has_tables(topo, verb):
    done = topo(verb, "gds-textbook", "--markdown")
    assert done.code == 0
    assert done.out.startswith("### gds-textbook: Textbook server with GPUDirect Storage\n\n")
    assert re.search(r"^\| --- \||^\| ---: \|", done.out, re.MULTILINE)
    assert "\x1b" not in done.out


def test_markdown_escapes_what_a_file_says(topo, box, tmp_path):
    path = tmp_path / box
    text = path.read_text()
    path.write_text(text.replace("name: tiny", 'name: tiny\ntitle: "a|b <b>*c*</b>"'))
    done = topo("compare", box, "--from", "storage", "--to", "gpu0", "--markdown")
    assert done.out.startswith("### tiny: a\\|b \\<b>\\*c\\*\\</b>\n")


def test_markdown_and_json_are_two_forms(topo):
    done = topo("compare", "gds-textbook", "--markdown", "--json")
    assert done.code == 2
    assert "give one" in done.out + done.err


def test_compare_says_nothing_twice(topo):
    page = topo("compare", "dgx-h100", "--workload", "load").out
    assert "through RAM buffers  1.28 TB" in page
    assert "cores busy copying   10 (guess" in page
    assert "\n- legacy takes every byte" not in page
    assert "\n- legacy keeps" not in page
    assert "nothing measured" not in page
    assert "nothing measured" in topo("compare", "gh200", "--workload", "load").out


def test_the_rates_of_a_bottleneck_are_of_its_endpoints(topo):
    asked = ("bottleneck", "gds-textbook", "--from", "storage", "--to", "ram0", "--json")
    assert topo(*asked).document["rates_by_endpoint_bytes_per_s"] == {"ram0": 5e10}
