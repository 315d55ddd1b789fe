"""`topo measure`: what it prints, writes and leaves alone."""

from __future__ import annotations

import sys

import pytest

from tests.machines import ONE_SOCKET
from tests.measuring.cuda import Driver
from tests.measuring.results import gdsio, nvbandwidth
from tests.measuring.test_probe import MACHINE

H2D = nvbandwidth(("host_to_device_memcpy_ce", [["40"]]))


@pytest.fixture
def result(tmp_path):
    (tmp_path / "nv.json").write_bytes(H2D)
    return "nv.json"


def test_rates_are_written_into_the_file_and_shown_beside_the_expected(topo, box, result, tmp_path):
    done = topo("measure", box, result, "--date", "2026-01-02")
    assert done.code == 0
    assert "ram0 -> gpu0" in done.out
    assert "63.02 GB/s" in done.out
    assert "Wrote 1 measured rate to box.yaml." in done.out
    assert "measured-below" in done.err
    text = (tmp_path / box).read_text()
    line = '{rate: 40 GB/s, source: "nvbandwidth host_to_device_memcpy_ce", date: 2026-01-02}'
    assert f"  - ram0 -> gpu0: {line}\n" in text
    assert text.startswith(ONE_SOCKET.partition("workloads:")[0])


def test_compare_at_measured_uses_them(topo, box, result):
    before = topo("compare", box, "--via", "legacy", "--at", "measured", "--json").document
    topo("measure", box, result)
    after = topo("compare", box, "--via", "legacy", "--at", "measured", "--json").document
    rates = [
        document["workloads"][0]["paths"][0]["rate_bytes_per_s"] for document in (before, after)
    ]
    assert rates[1] == 40e9 < rates[0]


def test_a_second_result_replaces_the_first(topo, box, result, tmp_path):
    topo("measure", box, result)
    once = (tmp_path / box).read_text()
    topo("measure", box, result)
    assert (tmp_path / box).read_text() == once
    (tmp_path / result).write_bytes(H2D.replace(b"40", b"55"))
    done = topo("measure", box, result)
    assert "measured-again" in done.err
    assert (tmp_path / box).read_text() == once.replace("40 GB/s", "55 GB/s")


@pytest.mark.parametrize("options", [["--dry-run"], ["-o", "other.yaml"]])
def test_the_file_stays_as_it_is_if_asked(topo, box, result, tmp_path, options):
    done = topo("measure", box, result, *options)
    assert (tmp_path / box).read_text() == ONE_SOCKET
    assert (tmp_path / "other.yaml").exists() == ("-o" in options)
    assert ("Nothing was written" in done.out) == ("--dry-run" in options)


def test_windows_line_ends_stay(topo, box, result, tmp_path):
    (tmp_path / box).write_bytes(ONE_SOCKET.replace("\n", "\r\n").encode())
    topo("measure", box, result)
    data = (tmp_path / box).read_bytes()
    assert data.count(b"\n") == data.count(b"\r\n")
    assert b"measured:\r\n" in data


def test_a_built_in_machine_needs_a_name_to_write_to(topo, result, tmp_path):
    done = topo("measure", "dgx-h100", result, "--gpus", "gpu0")
    assert "name a file for 1 measured rate with -o" in done.out
    topo("measure", "dgx-h100", result, "--gpus", "gpu0", "-o", "mine.yaml")
    assert "ram0 -> gpu0: {rate: 40 GB/s" in (tmp_path / "mine.yaml").read_text()


def test_a_result_comes_from_standard_input_too(topo, box):
    done = topo("measure", box, "-", "--dry-run", stdin=H2D)
    assert "ram0 -> gpu0" in done.out
    assert topo("measure", "-", "-").code == 2


def test_json_has_every_rate_with_its_unit_in_the_name(topo, box, tmp_path):
    (tmp_path / "g.txt").write_bytes(gdsio((0, "READ", "CPU_GPU", 5.0)))
    document = topo("measure", box, "g.txt", "--json").document
    assert document["schema"] == "topo.measure/1"
    (reading,) = document["readings"]
    assert reading["measured_bytes_per_s"] == 5 * 2**30
    assert reading["data_path"] == "odirect-pinned"
    assert reading["not_written_because"].startswith("a rate of the whole path")
    assert document["measured"] == []


def test_many_rates_of_one_test_are_one_row(topo, result, tmp_path):
    grid = [["N/A" if a == b else 380 + a + b for b in range(8)] for a in range(8)]
    (tmp_path / result).write_bytes(nvbandwidth(("device_to_device_memcpy_write_ce", grid)))
    done = topo("measure", "dgx-h100", result)
    assert "gpu0 -> gpu1 and 55 more" in done.out
    assert "381 GB/s to 393 GB/s" in done.out


@pytest.mark.parametrize(
    ("words", "code"),
    [
        (["box.yaml", "none.json"], 1),
        (["box.yaml", "box.yaml"], 1),
        (["box.yaml", "nv.json", "--kind", "fio"], 1),
        (["box.yaml", "nv.json", "--date", "today"], 2),
        (["box.yaml", "nv.json", "--gpus", "gpu7"], 1),
        (["box.yaml"], 2),
    ],
)
def test_mistakes_have_an_exit_code_and_change_nothing(topo, box, result, tmp_path, words, code):
    assert topo("measure", *words).code == code
    assert (tmp_path / box).read_text() == ONE_SOCKET


def test_an_error_is_one_json_document(topo, box):
    assert topo("measure", box, box, "--json").document["schema"] == "topo.findings/1"


# --- this host ------------------------------------------------------------------------------------


def test_this_host_is_measured_into_the_file_asked_for_alone(topo, tmp_path, monkeypatch):
    made_up = Driver(("0000:1b:00.0", "0000:3d:00.0"), links=[(0, 1)])
    monkeypatch.setitem(sys.modules, "cuda.bindings.driver", made_up)
    file, out = tmp_path / "node.yaml", tmp_path / "measured.yaml"
    file.write_text(MACHINE)
    words = ("measure", "node.yaml", "--host", "--seconds", "3", "--memory", "64 MB")
    done = topo(*words, "-o", "measured.yaml")
    assert done.code == 0
    assert file.read_text() == MACHINE
    assert sorted(path.name for path in tmp_path.iterdir()) == ["measured.yaml", "node.yaml"]
    text = out.read_text()
    assert "- ram0 -> gpu0: {rate:" in text
    assert "- gpu1 -> gpu0: {rate:" in text
    assert "Wrote 6 measured rates" in done.out
    assert topo(*words, "--dry-run", "--json").document["readings"]


@pytest.mark.parametrize(
    "words",
    [
        ["--host", "result.json"],
        [],
        ["result.json", "--read", "/dev/null"],
        ["--host", "--memory", "many"],
        ["--host", "--seconds", "0"],
    ],
)
def test_words_of_a_host_and_of_a_result_do_not_go_together(topo, tmp_path, words):
    (tmp_path / "node.yaml").write_text(MACHINE)
    done = topo("measure", "node.yaml", *words)
    assert done.code == 2
    assert "Traceback" not in done.err
