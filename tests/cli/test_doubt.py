"""`topo doubt`: its page, its JSON, its picture."""

from __future__ import annotations

import re

import pytest

from tests.machines import ONE_SOCKET


def test_the_range_the_tornado_and_what_to_measure(topo):
    done = topo("doubt", "l40s-two-switches", "--workload", "load", "--via", "legacy")
    assert done.code == 0
    said = " ".join(done.out.split())
    assert "At 90 %: 88.64 to 98.04 GB/s, 3.917 to 4.332 s; as figures are, 98.04 GB/s" in said
    assert "------------------------| 65 %" in said
    assert "Measure first: duplex of pcie 5, on the uplinks" in said
    assert "`nvbandwidth --json -t host_to_device_bidirectional_memcpy_ce" in said
    assert "efficiency of pcie 5, 84 to 92 %: guess, the range its source says" in said


def test_answers_that_say_the_same_stand_together(topo):
    done = topo("doubt", "dgx-h100")
    said = " ".join(done.out.split())
    assert re.search(
        r"load by legacy: read 640 GB, storage to gpu\[0-7\] "
        r"checkpoint by legacy: write 140 GB, gpu\[0-7\] to storage "
        r"At 90 %: [\d.]+ to 100 GB/s, load 6.4 to [\d.]+ s, checkpoint 1.4 to [\d.]+ s; "
        r"as figures are, 100 GB/s, load 6.4 s, checkpoint 1.4 s\. ",
        said,
    )
    assert done.out.count("Measure first: efficiency of ddr5-4800") == 1
    assert "Nothing else that is uncertain changes the answer." in said
    lines = [line for line in done.out.splitlines() if line.startswith("not certain")]
    assert all(len(line) <= 100 for line in lines)
    textbook = topo("doubt", "gds-textbook").out
    assert "load by legacy and direct: read 640 GB, storage to gpu[0-7]\n" in textbook
    assert "draws" not in textbook, "nothing was drawn that anybody is told of"


def test_what_binds_and_is_not_named_is_counted(topo):
    said = " ".join(topo("doubt", "dgx-a100", "--workload", "local").out.split())
    assert "on the drives' PCIe (nvme0 -> sw0, nvme1 -> sw0, nvme2 -> sw1 and 5 more)." in said


def test_what_is_unknown_is_said_with_the_rate_of_each(topo):
    said = " ".join(topo("doubt", "wrx90-two-pm50100", "--workload", "exchange").out.split())
    assert "3 more (below 3.15 GB/s each) and cpu0/quadrant (below 100.95 GB/s each)" in said


@pytest.mark.parametrize(
    ("machine", "workload", "path", "command", "then"),
    [
        ("dgx-h100", "load", "direct", "gdsio .* -I 0 ", "^topo measure"),
        ("dgx-h100", "checkpoint", "direct", "gdsio .* -I 1 ", "^topo measure"),
        ("gds-loses", "checkpoint", "legacy", "device_to_host_memcpy_ce", "^topo measure"),
    ],
)
def test_a_write_is_measured_as_a_write(topo, machine, workload, path, command, then):
    words = ("--workload", workload, "--via", path, "--json")
    advice = topo("doubt", machine, *words).document["answers"][0]["measure_first"]
    assert re.search(command, advice["command"])
    assert re.search(then, advice["then"])


def test_a_test_that_overwrites_a_drive_says_so(topo, tmp_path):
    drive = "nvme0: {part: nvme-gen4-3.84tb, write: {value: 4 GB/s, kind: guess, source: me}}"
    text = (
        f"topo: 1\nname: box\ndevices:\n  cpu0: epyc-7742\n  {drive}\n"
        "  ram0: {part: ddr4-3200, channels: 8}\n  gpu0: a100-sxm-80gb\nlinks:\n"
        "  - ram0 -- cpu0: memory-bus\n  - nvme0 -- cpu0: pcie 4 x4\n  - gpu0 -- cpu0: pcie 4 x16\n"
        "workloads:\n  save: {write: 8 GB, from: gpu0, to: nvme0}\n"
    )
    (tmp_path / "box.yaml").write_text(text, "utf-8")
    answers = topo("doubt", "box.yaml", "--via", "legacy", "--json").document["answers"]
    advice = answers[0]["measure_first"]
    assert "--rw=write" in advice["command"]
    assert advice["then"].startswith("it overwrites what is on the drive; ")


def test_a_width_that_nobody_states_is_said(topo):
    done = topo("doubt", "dgx-h100", "--workload", "load", "--via", "direct")
    assert "a guess without a range, taken for half to one and a half of itself" in " ".join(
        done.out.split()
    )


def test_nothing_is_a_guess(topo):
    done = topo("doubt", "gds-textbook", "--at", "theoretical")
    assert "Nothing here is a guess" in done.out
    assert "tornado" not in done.out


def test_a_refused_path_is_refused_however_the_guesses_turn_out(topo):
    done = topo("doubt", "workstation-4gpu", "--via", "direct")
    refused = "It is refused, whatever is uncertain: rtx-4090 has no PCIe peer-to-peer."
    assert refused in " ".join(done.out.split())
    assert "Nothing here is a guess" not in done.out
    document = topo("doubt", "workstation-4gpu", "--via", "direct", "--json").document
    (answer,) = document["answers"]
    assert (answer["verdict"], answer["rate_range_bytes_per_s"]) == ("refused", None)


def test_a_workloads_own_efficiency_is_said_beside(topo):
    for changes in ((), ("--set", "slot.chip={value: 50 GB/s, kind: guess}")):
        words = ("--workload", "checkpoint", "--via", "direct", "--at", "theoretical", *changes)
        said = " ".join(topo("doubt", "gds-textbook", *words).out.split())
        assert "own efficiency, 60 to 80 %, is not among the bands: 1.75 to 2.333 s." in said


def test_the_document(topo):
    document = topo(
        "doubt", "dgx-a100", "--workload", "local", "--via", "legacy", "--json"
    ).document
    assert (document["schema"], document["level"], document["draws"]) == ("topo.doubt/1", 0.9, 400)
    names = [band["name"] for band in document["bands"]]
    assert "read of nvme-gen4-3.84tb" in names
    band = document["bands"][names.index("efficiency of pcie 4")]
    assert (band["low_ratio"], band["value_ratio"], band["high_ratio"]) == (0.76, 0.88, 0.91)
    (answer,) = document["answers"]
    low, high = answer["rate_range_bytes_per_s"]
    assert low < answer["rate_bytes_per_s"] < high
    assert answer["time_range_s"] == [pytest.approx(320e9 / high), pytest.approx(320e9 / low)]
    assert answer["measure_first"]["band"] == answer["swings"][0]["band"] == "efficiency of pcie 4"
    assert answer["measure_first"]["command"].startswith("fio ")


def test_what_is_asked_and_changed_is_as_of_other_verbs(topo):
    words = ("doubt", "dgx-h100", "--via", "legacy", "--from", "storage", "--to", "gpu", "--json")
    (answer,) = topo(*words).document["answers"]
    assert answer["time_range_s"] is None
    (stated,) = topo(*words, "--set", "ram.efficiency=70 %").document["answers"]
    assert stated["swings"] == []  # what the caller says is no guess
    (left,) = topo(*words, "--without", "slot1").document["answers"]
    assert left["rate_bytes_per_s"] == 50e9


@pytest.mark.parametrize("name", ["svg", "png", "dot", "drawio"])
def test_the_picture(topo, tmp_path, name):
    done = topo("doubt", "dgx-a100", "--workload", "local", "-o", f"doubt.{name}")
    assert done.code == 0
    content = (tmp_path / f"doubt.{name}").read_bytes()
    assert len(content) > 1000
    if name == "svg":
        assert b"efficiency of pcie 4" in content
        assert b"90 % of all draws" in content
        topo("doubt", "dgx-a100", "--workload", "local", "-o", "again.svg")
        assert (tmp_path / "again.svg").read_bytes() == content


@pytest.mark.parametrize("theme", ["light", "dark"])
def test_a_picture_of_what_is_certain_or_refused(topo, tmp_path, theme):
    assert topo("doubt", "workstation-4gpu", "-o", "w.svg", "--theme", theme).code == 0
    assert "Whatever is uncertain" in (tmp_path / "w.svg").read_text("utf-8")
    assert topo("doubt", "gds-textbook", "-o", "t.svg", "--at", "theoretical").code == 0
    assert "Nothing uncertain is on its way" in (tmp_path / "t.svg").read_text("utf-8")


def test_ranges_of_a_file(topo, tmp_path):
    text = ONE_SOCKET.replace(
        "ram0: dram", "ram0: {part: dram, bus: {value: 40 GB/s, range: 20-50 GB/s, source: me}}"
    )
    (tmp_path / "box.yaml").write_text(text, "utf-8")
    document = topo("doubt", "box.yaml", "--workload", "load", "--via", "legacy", "--json").document
    (swing,) = document["answers"][0]["swings"]
    assert (swing["low_rate_bytes_per_s"], swing["high_rate_bytes_per_s"]) == (5e9, 12.5e9)


def test_the_range_of_a_cap(topo, tmp_path):
    cap = "p2p: {posted: {value: 30 GB/s, range: 20-40 GB/s, source: two runs}}"
    text = ONE_SOCKET.replace("cpu0: socket", f"cpu0: {{part: socket, {cap}}}")
    (tmp_path / "box.yaml").write_text(text, "utf-8")
    words = ("--workload", "load", "--via", "direct", "--json")
    (answer,) = topo("doubt", "box.yaml", *words).document["answers"]
    assert [swing["low_rate_bytes_per_s"] for swing in answer["swings"]] == [20e9]
    assert answer["rate_bytes_per_s"] == 30e9


@pytest.mark.parametrize(
    ("figure", "code"),
    [
        ("{value: 40 GB/s, range: 50-60 GB/s}", "range-beside-value"),
        ("{value: 40 GB/s, range: 60-20 GB/s}", "bad-number"),
        ("{value: 40 GB/s, range: 0-50 GB/s}", "bad-number"),
        ("{value: 40 GB/s, range: about 40 GB/s}", "bad-number"),
        ("{value: 40 GB/s, range: 20-50}", "bare-number"),
        ("{value: 40 GB/s, range: 20-50 GB}", "wrong-quantity"),
        ("{value: 40 GB/s, range: [20, 50]}", "wrong-shape"),
        ("{value: 40 GB/s, rang: 20-50 GB/s}", "unknown-key"),
    ],
)
def test_a_wrong_range(topo, tmp_path, figure, code):
    text = ONE_SOCKET.replace("ram0: dram", f"ram0: {{part: dram, bus: {figure}}}")
    (tmp_path / "box.yaml").write_text(text, "utf-8")
    done = topo("doubt", "box.yaml", "--json")
    assert done.code == 1
    assert [finding["code"] for finding in done.document["findings"]] == [code]
    assert done.document["findings"][0]["line"]


@pytest.mark.parametrize(
    "words",
    [("gds-textbook", "--via", "dirct"), ("gds-textbook", "--workload", "lod"), ("nowhere",)],
)
def test_a_name_that_is_not_there(topo, words):
    done = topo("doubt", *words)
    assert (done.code, done.out) == (1, "")
    assert done.err


@pytest.mark.parametrize("name", ["gpu", "accelerator"])
def test_a_cap_between_gpus_is_measured_between_gpus_whatever_they_are_called(topo, tmp_path, name):
    box = tmp_path / "box.yaml"
    box.write_text(
        "topo: 1\nname: box\ndevices:\n  cpu0: xeon-8480c\n"
        f"  {name}[0-1]: h100-pcie-80gb\n"
        f"links:\n  - {name} -- cpu0: pcie 5 x16\n"
    )
    done = topo("doubt", str(box), "--from", f"{name}0", "--to", f"{name}1", "--via", "peer-pcie")
    said = " ".join(done.out.split())
    assert "Measure first: peer-to-peer cap of xeon-8480c" in said
    assert "device_to_device_memcpy_write_ce" in said
