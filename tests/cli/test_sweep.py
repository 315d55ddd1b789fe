"""`topo sweep`: every figure is what `topo compare` says; what is wrong is said before it runs."""

from __future__ import annotations

import csv
import json
import sys

import pytest

from tests.cli.conftest import Done
from tests.machines import ONE_SOCKET

VARY = ("--vary", "ram.bus=20 GB/s,200 GB/s", "--vary", "via=legacy,direct")


def test_every_figure_is_that_of_compare(topo, box):
    document = topo("sweep", box, *VARY, "--workload", "save", "--json").document
    assert document["schema"] == "topo.sweep/1"
    assert [row["design"] for row in document["designs"]] == [0, 1, 2, 3]
    for row in document["designs"]:
        change = ("--set", f"ram.bus={row['ram.bus']}")
        asked = ("--workload", "save", "--via", row["via"])
        (workload,) = topo("compare", box, *asked, *change, "--json").document["workloads"]
        (path,) = workload["paths"]
        for key in ("verdict", "rate_bytes_per_s", "time_s", "at_most"):
            assert row[key] == path[key]


def test_the_file_says_what_is_varied(topo, tmp_path):
    axes = "sweep: {ram.bus: [20 GB/s, 200 GB/s], via: [legacy, direct]}\n"
    (tmp_path / "axes.yaml").write_text(ONE_SOCKET + axes, encoding="utf-8")
    (tmp_path / "box.yaml").write_text(ONE_SOCKET, encoding="utf-8")
    stated, asked = topo("sweep", "axes.yaml", "--json"), topo("sweep", "box.yaml", *VARY, "--json")
    assert (stated.code, stated.out) == (0, asked.out)
    instead = topo("sweep", "axes.yaml", "--vary", "nic0.chip=9 GB/s", "--json").document
    assert list(instead["axes"]) == ["nic0.chip"]
    by_one = topo("sweep", "axes.yaml", "--via", "legacy", "--json").document
    assert list(by_one["axes"]) == ["ram.bus"]
    assert {row["via"] for row in by_one["designs"]} == {"legacy"}


def test_a_name_of_ones_own_changes_several_keys_at_once(topo, tmp_path):
    axes = """
sweep:
  memory:
    small: {ram.bus: 20 GB/s, ram.price: 300}
    large: {ram.bus: 200 GB/s, ram.price: 900}
"""
    (tmp_path / "box.yaml").write_text(ONE_SOCKET + axes, encoding="utf-8")
    document = topo("sweep", "box.yaml", "--via", "legacy", "--json").document
    small, large = document["designs"]
    assert (small["memory"], small["cost"], large["cost"]) == ("small", 300, 900)
    assert small["time_s"] > large["time_s"]
    assert document["front"] == [0, 1]
    for formatted in (topo("fmt", "box.yaml"), topo("show", "box.yaml", "--json")):
        assert formatted.code == 0


def test_set_without_and_at_apply_to_every_design(topo):
    words = ("--vary", "ram.bus=100 GB/s,400 GB/s", "--via", "legacy", "--json")
    asked = ("--set", "slot1.chip=20 GB/s", "--without", "gpu7", "--at", "achievable")
    document = topo("sweep", "gds-textbook", *words, *asked).document
    assert document["without"] == ["gpu7"]
    for row in document["designs"]:
        change = ("--set", f"ram.bus={row['ram.bus']}", "--workload", row["workload"])
        compared = topo("compare", "gds-textbook", *asked, *change, "--via", "legacy", "--json")
        (path,) = compared.document["workloads"][0]["paths"]
        assert row["rate_bytes_per_s"] == path["rate_bytes_per_s"]


@pytest.mark.parametrize("name", ["rows.csv", "rows.jsonl"])
def test_the_same_command_goes_on(topo, box, tmp_path, monkeypatch, name):
    first = topo("sweep", box, *VARY, "-o", name)
    assert (first.code, first.err) == (0, "")
    whole = (tmp_path / name).read_bytes()
    lines = whole.splitlines(keepends=True)
    (tmp_path / name).write_bytes(b"".join(lines[:-2]) + lines[-2][:20])
    computed: list[int] = []
    from topo.study.designs import Designs

    outcomes = Designs.outcomes

    def counted(self, batch):
        computed.extend(batch)
        return outcomes(self, batch)

    monkeypatch.setattr(Designs, "outcomes", counted)
    again = topo("sweep", box, *VARY, "-o", name)
    assert again.out == first.out
    assert "note[sweep-resumed]: 2 of 4 designs were in" in again.err
    assert computed == [2, 3]
    assert (tmp_path / name).read_bytes() == whole


def test_csv_and_json_lines_are_what_json_says(topo, box, tmp_path):
    document = topo("sweep", box, *VARY, "--json").document
    topo("sweep", box, *VARY, "-o", "rows.jsonl")
    topo("sweep", box, *VARY, "-o", "rows.csv")
    lines = [json.loads(line) for line in (tmp_path / "rows.jsonl").read_text().splitlines()]
    assert lines == document["designs"]
    with (tmp_path / "rows.csv").open() as file:
        rows = list(csv.DictReader(file))
    assert [float(row["rate_bytes_per_s"]) for row in rows] == [
        row["rate_bytes_per_s"] for row in lines
    ]


def test_parquet_holds_the_same_rows(topo, box, tmp_path):
    parquet = pytest.importorskip("pyarrow.parquet")
    first = topo("sweep", box, *VARY, "-o", "rows.parquet")
    assert first.code == 0
    topo("sweep", box, *VARY, "-o", "rows.jsonl")
    lines = [json.loads(line) for line in (tmp_path / "rows.jsonl").read_text().splitlines()]
    assert parquet.read_table(tmp_path / "rows.parquet").to_pylist() == lines


def test_without_pyarrow_nothing_is_computed(topo, box, tmp_path, monkeypatch):
    monkeypatch.setitem(sys.modules, "pyarrow", None)
    monkeypatch.setitem(sys.modules, "pyarrow.parquet", None)
    done = topo("sweep", box, *VARY, "-o", "rows.parquet")
    assert done.code == 1
    assert "error[not-installed]: writing Parquet takes pyarrow" in done.err
    assert [path.name for path in tmp_path.iterdir()] == ["box.yaml"]


def failed(done: Done, code: int, *words: str) -> None:
    assert done.code == code
    assert done.out == ""
    assert "Traceback" not in done.err
    for word in words:
        assert word in done.err


def test_mistakes_are_said_and_leave_no_file(topo, box, tmp_path):
    def swept(*words):
        return topo("sweep", box, *words, "-o", "rows.csv")

    failed(swept("--vary", "ram.chanels=8"), 1, "unknown-key", "did you mean `channels`?")
    failed(swept("--vary", "rma.channels=8"), 1, "no device rma")
    failed(swept("--vary", "ram.bus="), 1, "empty-axis")
    failed(swept("--vary", "ram.bus"), 2, "is not KEY=A,B")
    failed(swept(), 1, "nothing is varied")
    failed(swept(*VARY, "--vary", "via=mmap"), 1, "defined-twice")
    many = ",".join(f"{n} GB/s" for n in range(1, 1001))
    varied = [f"{key}={many}" for key in ("ram.bus", "nic0.chip", "storage.read")]
    words = [word for axis in varied for word in ("--vary", axis)]
    failed(swept(*words), 1, "1,000,000,000 designs, more than 1,000,000")
    failed(swept(*VARY, "--workload", "lod"), 1, "no workload lod")
    failed(swept(*VARY, "--against", "kost"), 1, "did you mean `cost`?")
    failed(swept(*VARY, "--workers", "2", "--engine", "dask://x"), 2, "give one")
    failed(swept(*VARY, "-o", "more.jsonl"), 2, "one file")
    failed(swept(*VARY, "-o", "rows.txt"), 2, "neither for rows nor a picture")
    failed(swept(*VARY, "-o", "front.svg"), 1, "no-front")
    failed(swept(*VARY, "--engine", "dsk://host"), 1, "write it like dask://host:8786")
    failed(topo("sweep", box, *VARY, "-o", "box.yaml"), 1, "output-is-input")
    failed(topo("sweep", box, *VARY, "-o", "absent/rows.csv"), 1, "unwritable-file")
    assert [path.name for path in tmp_path.iterdir()] == ["box.yaml"]


def test_a_file_of_another_sweep_is_named(topo, box, tmp_path):
    topo("sweep", box, "--vary", "nic0.chip=9 GB/s", "-o", "rows.csv")
    before = (tmp_path / "rows.csv").read_bytes()
    failed(topo("sweep", box, *VARY, "-o", "rows.csv"), 1, "the rows of another sweep: nic0.chip")
    assert (tmp_path / "rows.csv").read_bytes() == before


@pytest.mark.parametrize(
    ("axis", "word"),
    [
        ("ram.bus: []", "empty-axis"),
        ("ram.bus: [9, 9]", "defined-twice"),
        ("[1]", "wrong-shape"),
        ("m: {a: 1}", "wrong-shape"),
        ("ram.bus:", "missing-value"),
    ],
)
def test_a_mistake_under_sweep_has_its_place(topo, tmp_path, axis, word):
    text = f"{ONE_SOCKET}sweep:\n  {axis}\n" if axis[0] != "[" else f"{ONE_SOCKET}sweep: {axis}\n"
    (tmp_path / "box.yaml").write_text(text, encoding="utf-8")
    done = topo("check", "box.yaml")
    failed(done, 1, f"error[{word}]", "box.yaml:")


def test_the_front_is_drawn(topo, box, tmp_path):
    words = ("--vary", "ram.bus=20 GB/s,100 GB/s,50 GB/s,1 GB/s", "--via", "legacy")
    done = topo("sweep", box, *words, "--against", "ram.bus", "-o", "front.svg", "-o", "front.png")
    assert done.code == 0
    svg = (tmp_path / "front.svg").read_text(encoding="utf-8")
    assert "across: ram.bus" in svg
    assert "20 GB/s: 10 s, ram.bus 20 GB/s; limited by ram0/bus" in svg
    assert (tmp_path / "front.png").read_bytes().startswith(b"\x89PNG")
    failed(topo("sweep", box, *words, "-o", "front.svg"), 1, "no-front")


def test_the_page_says_what_is_not_possible(topo):
    vary = (
        "--vary",
        "slot1.part=connectx-7-dual-port,connectx-6",
        "--vary",
        "ram.bus=9 GB/s,90 GB/s",
    )
    done = topo("sweep", "gds-textbook", *vary, "--via", "legacy")
    assert "4 designs: 2 slot1.part x 2 ram.bus; 2 ok and 2 illegal." in done.out
    assert "- 2 designs: slot1 has 1 port, and here are 2 cables" in done.out
    markdown = topo("sweep", "gds-textbook", *vary, "--via", "legacy", "--markdown")
    assert "| time |" in markdown.out.replace("  ", " ")


def test_designs_whose_cost_is_not_known_are_counted(topo, box, tmp_path):
    text = ONE_SOCKET.replace("parts:", "parts:\n  priced: {like: connectx-7, price: 7}", 1)
    (tmp_path / "box.yaml").write_text(text, encoding="utf-8")
    done = topo("sweep", box, "--vary", "nic0.part=card,priced", "--via", "direct")
    page = " ".join(done.out.split())
    assert "1 design has no cost: a part that is put in has no price." in page


def test_without_a_terminal_there_is_no_bar(topo, box, monkeypatch):
    monkeypatch.setattr("topo.cli.verb._PATIENCE", -1.0)
    done = topo("sweep", box, *VARY)
    assert (done.code, done.err) == (0, "")


def test_on_a_terminal_the_bar_has_rate_and_time_left(topo, box, monkeypatch):
    class Terminal:
        encoding = "utf-8"
        written = ""

        def isatty(self):
            return True

        def write(self, text):
            self.written += text
            return len(text)

        def flush(self):
            pass

    terminal = Terminal()
    monkeypatch.setattr("topo.cli.verb._PATIENCE", -1.0)
    monkeypatch.setattr(sys, "stderr", terminal)
    monkeypatch.setattr("topo.study.designs._BATCH", 1)
    assert topo("sweep", box, *VARY).code == 0
    assert "designs" in terminal.written
    assert "designs/s" in terminal.written
    assert "4/4" in terminal.written


def test_an_axis_without_effect_is_named(topo):
    words = ("--vary", "ram.channels=4,8", "--vary", "via=legacy,direct", "--vary", "at=achievable")
    done = topo("sweep", "gds-textbook", *words)
    assert "Without effect on verdict, rate and limits here: ram.channels." in done.out
    assert "Rates are theoretical" not in done.out
    assert topo("sweep", "gds-textbook", *words, "--json").document["without_effect"] == [
        "ram.channels"
    ]


@pytest.mark.parametrize(
    ("axis", "advice"),
    [
        ("vai=legacy", "did you mean `via`?"),
        ("zzz=legacy", "workload, via, at, nics, routes or pairing"),
        ("workloads=load", "did you mean `workload`?"),
        ("workload=lod", "known: load, checkpoint"),
        ("slot1.part=connectx-7-dul-port", "did you mean `connectx-7-dual-port`?"),
    ],
)
def test_an_axis_is_told_what_it_is_near_to(topo, axis, advice):
    done = topo("sweep", "gds-textbook", "--vary", axis)
    assert done.code == 1
    assert advice in done.err
