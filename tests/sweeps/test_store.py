"""The file of a sweep: what was written whole is there, whatever ended the run."""

from __future__ import annotations

import csv
import io
import json
import os
import resource
import signal
import subprocess
import sys
import time
from pathlib import Path

import pytest

from tests.machines import ONE_SOCKET, built
from topo.errors import TopoError
from topo.study.designs import Designs
from topo.study.sweep import axis_of, planned
from topo.study.variants import Outcome, Question
from topo.sweeps.store import Store

FORMS = ("rows.jsonl", "rows.csv")


def plan(**vary):
    vary = vary or {"ram.bus": ["20 GB/s", "40 GB/s", "200 GB/s"], "via": ["legacy", "direct"]}
    return planned(built(ONE_SOCKET), [axis_of(*item) for item in vary.items()], Question())


def answered(sweep):
    return Designs(sweep).outcomes(range(sweep.count))


def filled(sweep, path):
    with Store(sweep, str(path)) as store:
        store.append(answered(sweep))
        store.finish()
    return path.read_bytes()


def code_of(sweep, path):
    with pytest.raises(TopoError) as caught:
        Store(sweep, str(path))
    (finding,) = caught.value.findings
    return finding.code


@pytest.mark.parametrize("name", FORMS)
def test_what_is_read_is_what_was_written(tmp_path, name):
    sweep = plan()
    filled(sweep, tmp_path / name)
    with Store(sweep, str(tmp_path / name)) as store:
        assert store.known == dict(answered(sweep))


def test_json_lines_and_csv_hold_the_same(tmp_path):
    sweep = plan()
    lines = [json.loads(line) for line in filled(sweep, tmp_path / "rows.jsonl").splitlines()]
    rows = list(csv.DictReader(io.StringIO(filled(sweep, tmp_path / "rows.csv").decode())))
    columns = [
        *("sweep", "design", "ram.bus", "workload", "via", "verdict", "rate_bytes_per_s", "time_s"),
        *("would_feed", "at_most", "limited_by", "cost", "reason", "certified"),
    ]
    assert list(rows[0]) == columns
    assert set(lines[0]) == set(columns)
    for row, line in zip(rows, lines, strict=True):
        texts = {key: "" if value is None else str(value) for key, value in line.items()}
        assert dict(row) == texts


@pytest.mark.parametrize("name", FORMS)
def test_a_file_cut_off_anywhere_goes_on_and_ends_the_same(tmp_path, name):
    sweep, path = plan(), tmp_path / name
    whole, rows = filled(sweep, path), answered(sweep)
    for end in range(len(whole)):
        path.write_bytes(whole[:end])
        with Store(sweep, str(path)) as store:
            lines = whole[:end].count(b"\n") - (name.endswith("csv") and b"\n" in whole[:end])
            assert len(store.known) == lines  # nothing that was there whole is lost
            missing = [pair for pair in rows if pair[0] not in store.known]
            store.append(missing)
            store.finish()
        assert path.read_bytes() == whole


@pytest.mark.parametrize("name", FORMS)
def test_rows_come_into_the_order_of_the_designs(tmp_path, name):
    sweep = plan()
    whole = filled(sweep, tmp_path / f"ordered-{name}")
    with Store(sweep, str(tmp_path / name)) as store:
        for pair in reversed(answered(sweep)):
            store.append([pair])
        store.finish()
    assert (tmp_path / name).read_bytes() == whole


@pytest.mark.parametrize("name", FORMS)
@pytest.mark.parametrize(
    "other",
    [
        lambda: plan(**{"ram.bus": ["20 GB/s"], "via": ["legacy"]}),
        lambda: plan(**{"nic0.chip": ["20 GB/s", "40 GB/s"]}),
    ],
    ids=["values", "axes"],
)
def test_the_rows_of_another_sweep_are_left_alone(tmp_path, name, other):
    before = filled(other(), tmp_path / name)
    assert code_of(plan(), tmp_path / name) == "other-sweep"
    assert (tmp_path / name).read_bytes() == before


@pytest.mark.parametrize("name", FORMS)
@pytest.mark.parametrize(
    "content",
    [
        b"my notes",
        b"my notes\n",
        b"{}\n",
        b"[1]\n",
        b'{"sweep": "x"}\n',
        b"\0" * 9999,
        b"{",
        b"s,d\n",
    ],
)
def test_what_holds_no_rows_is_left_alone(tmp_path, name, content):
    path = tmp_path / name
    path.write_bytes(content)
    if name.endswith("jsonl") and content == b"{":  # the first byte of a row
        return
    assert code_of(plan(), path) == "other-sweep"
    assert path.read_bytes() == content


@pytest.mark.parametrize("name", FORMS)
def test_a_broken_line_in_the_middle_is_no_row_of_ours(tmp_path, name):
    sweep, path = plan(), tmp_path / name
    lines = filled(sweep, path).splitlines(keepends=True)
    path.write_bytes(b"".join([*lines[:3], b"broken\n", *lines[3:]]))
    assert code_of(sweep, path) == "other-sweep"


def test_two_sweeps_do_not_write_one_file(tmp_path):
    sweep = plan()
    with Store(sweep, str(tmp_path / "rows.csv")):
        assert code_of(sweep, tmp_path / "rows.csv") == "sweep-running"
    Store(sweep, str(tmp_path / "rows.csv")).close()


@pytest.mark.parametrize("name", ["", "absent/rows.csv", "/dev/full", "/proc/rows.csv"])
def test_a_file_that_cannot_be_written_is_said(tmp_path, name):
    assert code_of(plan(), tmp_path / name) == "unwritable-file"


@pytest.mark.parametrize("name", FORMS)
def test_a_full_disk_loses_nothing(tmp_path, name):
    sweep, path = plan(), tmp_path / name
    whole = filled(sweep, path)
    path.unlink()
    ignored = signal.signal(signal.SIGXFSZ, signal.SIG_IGN)
    soft, hard = resource.getrlimit(resource.RLIMIT_FSIZE)
    first, *others = answered(sweep)
    try:
        with Store(sweep, str(path)) as store:
            store.append([first])
            written = path.read_bytes()
            resource.setrlimit(resource.RLIMIT_FSIZE, (len(written) + 100, hard))
            with pytest.raises(TopoError) as caught:
                store.append(others)
    finally:
        resource.setrlimit(resource.RLIMIT_FSIZE, (soft, hard))
        signal.signal(signal.SIGXFSZ, ignored)
    (finding,) = caught.value.findings
    assert finding.code == "unwritable-file"
    assert finding.notes == ("1 designs are in it; the same command goes on from there",)
    assert path.read_bytes() == written
    with Store(sweep, str(path)) as store:
        assert list(store.known) == [0]
        store.append(others)
        store.finish()
    assert path.read_bytes() == whole


def test_texts_of_several_lines_stay_on_one():
    sweep = plan()
    outcome = Outcome("load", "legacy", "illegal", reason="one\u2028two\x85three")
    with pytest.MonkeyPatch.context():
        from topo.sweeps.rows import row_of
        from topo.sweeps.store import _Csv, _JsonLines

        for form in (_Csv(sweep), _JsonLines(sweep)):
            (line,) = form.line(row_of(sweep, 0, outcome)).decode().split("\n")[:-1]
            assert form.row(line)["reason"] == outcome.reason


@pytest.mark.slow
def test_a_sweep_that_is_killed_goes_on(tmp_path):
    name = "rows.csv"
    (tmp_path / "box.yaml").write_text(ONE_SOCKET, encoding="utf-8")
    buses = ",".join(f"{n} GB/s" for n in range(10, 110))
    chips = ",".join(f"{n} GB/s" for n in range(20, 70))
    words = [
        *(sys.executable, "-m", "topo", "sweep", "box.yaml", "--via", "legacy"),
        *("--vary", f"ram.bus={buses}", "--vary", f"nic0.chip={chips}", "-o"),
    ]
    environment = {**os.environ, "PYTHONPATH": str(Path(__file__).parents[2])}
    path = tmp_path / name
    run = subprocess.Popen([*words, name], cwd=tmp_path, env=environment, stdout=subprocess.DEVNULL)
    deadline = time.monotonic() + 60
    while time.monotonic() < deadline and (not path.exists() or path.stat().st_size < 100_000):
        time.sleep(0.005)
    run.kill()
    run.wait()
    kept = path.read_bytes()
    assert len(kept) >= 100_000
    assert kept.count(b"\n") < 5000
    done = subprocess.run(
        [*words, name], cwd=tmp_path, env=environment, capture_output=True, check=False
    )
    assert done.returncode == 0
    assert b"sweep-resumed" in done.stderr
    assert path.read_bytes().startswith(kept[: kept.rfind(b"\n") + 1])
    alone = f"alone-{name}"
    fresh = subprocess.run(
        [*words, alone], cwd=tmp_path, env=environment, capture_output=True, check=False
    )
    assert path.read_bytes() == (tmp_path / alone).read_bytes()
    assert done.stdout == fresh.stdout
    assert fresh.stderr == b""
