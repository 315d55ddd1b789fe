"""Data paths of a file's own, and what it changes in built-in ones."""

from __future__ import annotations

import json
import os
import shutil
import subprocess
import sys
from pathlib import Path

import pytest

import topo
from tests.description.reading import BOX, only, read
from tests.machines import ONE_SOCKET
from topo.description.data_paths import built_in_files, read_data_path, vary_data_path
from topo.description.description import DataPath, Move
from topo.document.nodes import Report
from topo.document.parse import parse

OWN = """\
title: SPDK into pinned memory
moves:
  - storage -> user-buffer by nic: {rate: 3.91 GB/s, source: our fio}
  - user-buffer -> gpu by gpu: 7.98 GB/s per worker
stages: serial
workers: 8
needs: [peer-to-peer, rdma]
falls-back-to: legacy
source: our notes
x-note: ours
"""


def path_of(text):
    document = parse(text, name="own.yaml")
    report = Report(document)
    return read_data_path("own", document.root, report=report), report.findings


def wrong(moves):
    _, (finding,) = path_of(f"moves: {moves}")
    return finding


def test_everything_that_a_data_path_may_say():
    path, findings = path_of(OWN)
    assert findings == ()
    first, second = path.moves
    assert (first.source, first.target, first.mover) == ("storage", "user-buffer", "nic")
    assert (first.rate.value, first.rate.source, first.per_worker) == (3.91e9, "our fio", False)
    assert (second.rate.value, second.per_worker) == (7.98e9, True)
    assert second.rate.source == "own.yaml:4"
    assert (path.stages, path.workers, path.needs) == ("serial", 8, ("peer-to-peer", "rdma"))
    assert (path.falls_back_to, path.source) == ("legacy", "our notes")
    assert path.title == "SPDK into pinned memory"


def test_what_is_not_said_has_its_usual_value():
    path, findings = path_of("moves: [storage -> gpu by nic]")
    assert findings == ()
    assert path.moves == (Move("storage", "gpu", "nic"),)
    assert (path.stages, path.workers, path.needs) == ("pipelined", 1, ())


@pytest.mark.parametrize(
    ("moves", "says"),
    [
        ("[storage to gpu]", "`storage to gpu` is not a move"),
        ("[storage -> gpu]", "is not a move"),
        ("[[a]]", "a list is not a move"),
        ("[{a: b, c: d}]", "a mapping is not a move"),
        ("[storage -> gpu by magic]", "a mover is nic, drive, core or gpu, not `magic`"),
        ("[storage -> tape by nic]", "data cannot rest in `tape`"),
        ("[gpu -> ram by gpu]", "is written towards gpu, this one goes from gpu to ram"),
        ("[ram -> gpu by core]", "a core copies between RAM buffers"),
        ("[ram -> gpu by nic]", "a nic moves data between storage, a card or a peer"),
        ("[ram -> a-buffer by gpu, a-buffer -> gpu by gpu]", "its GPU at one end"),
        ("[storage -> gpu by core]", "a core copies between RAM buffers"),
        ("[storage -> gpu by gpu]", "its GPU at one end"),
        ("[storage -> a-buffer by nic, a-buffer -> gpu by nic]", "moves data between storage"),
        ("[storage -> a-buffer by nic]", "from storage to a-buffer"),
        ("[a-buffer -> gpu by gpu]", "from a-buffer to gpu"),
        ("[storage -> a-buffer by nic, b-buffer -> gpu by gpu]", "ends in a-buffer"),
        ("[]", "an empty list"),
    ],
)
def test_a_wrong_move_says_why(moves, says):
    finding = wrong(moves)
    assert finding.code == "bad-move"
    assert says in finding.message


@pytest.mark.parametrize(
    ("text", "code"),
    [
        ("title: x", "missing-key"),
        ("[a]", "wrong-shape"),
        ("moves: storage -> gpu by nic", "wrong-shape"),
        ("{moves: [storage -> gpu by nic], stages: parallel}", "unknown-word"),
        ("{moves: [storage -> gpu by nic], workers: 0}", "bad-number"),
        ("{moves: [storage -> gpu by nic], needs: [luck]}", "unknown-word"),
        ("{moves: [storage -> gpu by nic], title: [a]}", "wrong-shape"),
        ("{moves: [storage -> gpu by nic], steps: 3}", "unknown-key"),
        ("{moves: [storage -> gpu by nic: 0 GB/s]}", "bad-number"),
        ("{moves: [storage -> gpu by nic: {rate: 5}]}", "bare-number"),
        ("{moves: [storage -> gpu by nic: {raet: 5 GB/s}]}", "unknown-key"),
    ],
)
def test_a_mistake_is_said_once(text, code):
    _, (finding,) = path_of(text)
    assert finding.code == code


def test_a_file_has_its_own():
    description = read(f"{BOX}data-paths:\n  own:\n    moves: [storage -> gpu by nic]\n")
    assert list(description.data_paths) == ["own"]
    assert description.data_paths["own"].place.line == 12


@pytest.mark.parametrize("name", ["my own", "own[0-1]", "via"])
def test_a_name_that_is_none_is_refused(name):
    text = f"{BOX}data-paths:\n  {name}:\n    moves: [storage -> gpu by nic]\n"
    assert only(text).code in {"bad-name", "reserved-name"}


def test_a_fallback_must_be_there():
    text = "data-paths:\n  own: {moves: [storage -> gpu by nic], falls-back-to: legcy}\n"
    finding = only(BOX + text)
    assert (finding.code, finding.help) == ("unknown-name", "did you mean `legacy`?")


def test_a_built_in_is_changed_by_what_stands_under_its_name():
    description = read(f"{BOX}data-paths: {{legacy: {{workers: 4, stages: serial}}}}\n")
    assert description.data_paths == {}
    base = DataPath("legacy", (Move("storage", "gpu", "nic"),), title="as before")
    report = Report(parse("topo: 1"))
    changed = vary_data_path(base, description.data_path_overrides["legacy"], report=report)
    assert (changed.workers, changed.stages) == (4, "serial")
    assert (changed.title, changed.moves) == ("as before", base.moves)
    assert report.findings == ()


def test_a_change_of_a_built_in_is_checked_when_the_file_is_read():
    assert only(f"{BOX}data-paths: {{legacy: {{workers: many}}}}\n").code == "bad-number"
    assert only(f"{BOX}data-paths: {{legacy: fast}}\n").code == "wrong-shape"


def test_the_built_in_names_are_known_without_looking():
    names = ", ".join(built_in_files())
    text = f"workloads: {{load: {{read: 1 GB, from: storage, to: gpu, via: [{names}]}}}}\n"
    assert read(BOX + text).workloads[0].via == tuple(built_in_files())


# --- one more, by the recipe ----------------------------------------------------------------------

RECIPE = """\
# As direct, but by a driver of our own.
our-driver:
  title: our own driver
  moves:
    - storage -> gpu by nic
  needs: [peer-to-peer]
  falls-back-to: legacy
  source: our notes
"""
MACHINE = (
    ONE_SOCKET
    + """\
  again: {read: 50 GB, from: storage, to: gpu0, via: [legacy, our-driver]}
data-paths:
  ours: {moves: [storage -> gpu by nic], falls-back-to: our-driver}
expect: [again via our-driver <= 2 s]
"""
)


@pytest.fixture(scope="module")
def house(tmp_path_factory):
    """Return a copy of the package with one more YAML file in it, and a machine beside it."""
    folder = tmp_path_factory.mktemp("house")
    package = Path(topo.__file__).parent
    shutil.copytree(package, folder / "topo", ignore=shutil.ignore_patterns("__pycache__"))
    (folder / "topo/datapaths/data/our-driver.yaml").write_text(RECIPE, encoding="utf-8")
    (folder / "box.yaml").write_text(MACHINE, encoding="utf-8")
    return folder


def ask(house, *words):
    """Return what the copy answers."""
    command = [sys.executable, "-m", "topo", *words]
    done = subprocess.run(
        command, cwd=house, env={**os.environ, "PYTHONPATH": "."}, capture_output=True, check=False
    )
    assert done.returncode == 0, done.stderr.decode()
    return json.loads(done.stdout) if "--json" in words else done.stdout.decode()


def test_a_new_file_is_a_data_path_that_files_and_workloads_may_name(house):
    judged = ask(house, "check", "box.yaml", "--json")
    assert [row["holds"] for row in judged["expectations"]] == [True]


def test_a_new_file_is_listed_explained_and_compared(house):
    rows = ask(house, "paths", "box.yaml", "--json")["data_paths"]
    listed = [row["data_path"] for row in rows]
    assert listed[-2:] == ["our-driver", "ours"]
    words = ask(house, "explain", "--json")["words"]["a data path"]
    assert words == [*built_in_files(), "our-driver"]
    assert "Our own driver" in ask(house, "explain", "our-driver")
    assert "our-driver" in ask(house, "compare", "box.yaml")


def test_a_new_file_may_be_changed_from_outside(house):
    changed = ask(house, "paths", "box.yaml", "--set", "our-driver.title=quicker", "--json")
    assert "quicker" in [row["title"] for row in changed["data_paths"]]


def test_an_editor_takes_a_file_that_names_it(house):
    jsonschema = pytest.importorskip("jsonschema")
    schema = json.loads(ask(house, "schema"))
    document = {
        "topo": 1,
        "data-paths": {"our-driver": {"workers": 2}},
        "workloads": {"load": {"read": "1 GB", "from": "a", "to": "b", "via": "our-driver"}},
    }
    jsonschema.Draft202012Validator(schema).validate(document)
