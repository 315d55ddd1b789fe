"""`topo import` of several hosts: the files that it writes, and what it refuses."""

from __future__ import annotations

import re
from pathlib import Path

import pytest

from tests.discovery.test_infragraph import CLUSTER
from tests.discovery.twins import MATRIX, two_sockets
from topo import files


@pytest.fixture
def dumps(tmp_path):
    """Twelve dumps of two kinds, which lie in a folder."""
    folder = tmp_path / "dumps"
    folder.mkdir()
    for at in range(12):
        (folder / f"node{at}.xml").write_bytes(two_sockets())
    narrow = two_sockets().replace(b'link_width="16"', b'link_width="8"')
    (folder / "node7.xml").write_bytes(narrow)
    return sorted(f"dumps/{file.name}" for file in folder.iterdir())


def test_many_dumps_make_a_cluster_of_two_kinds(topo, tmp_path, dumps):
    done = topo("import", *dumps, "-o", "pod.yaml")
    assert (done.code, done.out) == (0, "")
    text = (tmp_path / "pod.yaml").read_text(encoding="utf-8")
    assert "  node[0-6]:  {use: pod-node.yaml}" in text
    assert "  node7:      {use: pod-node7.yaml}" in text
    assert sorted(file.name for file in tmp_path.iterdir()) == [
        *("dumps", "pod-node.yaml", "pod-node7.yaml", "pod.yaml"),
    ]
    assert "hosts-differ" in done.err
    assert "unknown-network" in done.err
    assert "node[0-11]: a storage target was cabled" in done.err
    checked = topo("check", "pod.yaml")
    assert (checked.code, checked.err) == (0, "")
    assert topo("compare", "pod.yaml", "--from", "node3.ram", "--to", "node3.gpu").code == 0
    assert topo("draw", "pod.yaml", "-o", "pod.svg").code == 0


def test_the_matrix_of_a_host_is_that_of_its_import(topo, tmp_path, dumps):
    topo("import", *dumps, "-o", "pod.yaml")
    topo("import", dumps[0], "-o", "alone.yaml")
    whole = topo("matrix", "pod.yaml", "--json").document["matrix"]
    alone = topo("matrix", "alone.yaml", "--json").document["matrix"]
    assert alone
    for a, row in alone.items():
        for b, cell in row.items():
            assert whole[f"node3.{a}"][f"node3.{b}"] == cell


def test_the_storage_of_a_machine_alone_still_answers(topo, dumps):
    """What is guessed of storage stays in the kind's file, and is no part of the cluster."""
    topo("import", *dumps, "-o", "pod.yaml")
    topo("import", dumps[0], "-o", "alone.yaml")
    kind = topo("compare", "pod-node.yaml", "--json").document["workloads"]
    alone = topo("compare", "alone.yaml", "--json").document["workloads"]
    rates = [[path["rate_bytes_per_s"] for path in one["paths"]] for one in (*kind, *alone)]
    assert rates[0] == rates[1]


def test_hosts_by_name_and_with_two_sources(topo, tmp_path):
    (tmp_path / "host.xml").write_bytes(two_sockets())
    (tmp_path / "smi.txt").write_text(MATRIX, encoding="utf-8")
    words = ("--node", "node[0-31]=host.xml", "--node", "node[0-31]=smi.txt")
    done = topo("import", *words, "-o", "pod.yaml", "--storage", "mlx5_1")
    assert done.code == 0
    assert "node[0-31]: {use: pod-node.yaml}" in (tmp_path / "pod.yaml").read_text()
    assert "# Combined with smi.txt" in (tmp_path / "pod-node.yaml").read_text()


def test_the_document_of_a_cluster(topo, dumps):
    document = topo("import", *dumps, "--json").document
    assert document["schema"] == "topo.import-hosts/1"
    assert [(kind["file"], len(kind["hosts"])) for kind in document["kinds"]] == [
        ("cluster-node.yaml", 11),
        ("cluster-node7.yaml", 1),
    ]
    assert document["document"]["devices"]["node7"] == {"use": "cluster-node7.yaml"}
    assert {finding["code"] for finding in document["findings"]} >= {"hosts-differ"}


def test_the_documentation_shows_what_is_written(topo, tmp_path):
    page = (Path(__file__).parents[2] / "docs" / "importing.md").read_text(encoding="utf-8")
    blocks = dict(re.findall(r"^```\w+ (\S+)\n(.*?)^```$", page, re.MULTILINE | re.DOTALL))
    (tmp_path / "host.xml").write_text(blocks["host.xml"], encoding="utf-8")
    narrow = re.sub(r'(81:00.0.*link_width=)"16"', r'\1"8"', blocks["host.xml"])
    (tmp_path / "other.xml").write_text(narrow, encoding="utf-8")
    words = ("--node", "node[0-3]=host.xml", "--node", "node4=other.xml")
    assert topo("import", *words, "-o", "pod.yaml").code == 0
    assert (tmp_path / "pod.yaml").read_text(encoding="utf-8") == blocks["pod.yaml"]


@pytest.mark.parametrize(
    ("words", "reason"),
    [
        (("a.xml", "b.xml"), "say where, -o cluster.yaml"),
        (("a.xml", "b.xml", "--and", "c.txt", "-o", "x.yaml"), "--and is of one machine"),
        (("a.xml", "--node", "n=a.xml", "-o", "x.yaml"), "--node names every host"),
        ((), "Missing argument"),
    ],
)
def test_what_is_no_question(topo, tmp_path, words, reason):
    for name in "ab":
        (tmp_path / f"{name}.xml").write_bytes(two_sockets())
    done = topo("import", *words)
    assert done.code == 2
    assert reason in done.err


def test_a_wrong_kind_is_still_one(topo, tmp_path):
    (tmp_path / "a.xml").write_bytes(two_sockets())
    assert "no importer reads `ncl`" in topo("import", "ncl", "a.xml").err
    done = topo("import", "nvidia-smi", "a.xml", "a.xml", "-o", "x.yaml")
    assert "give two hosts one name" in done.err
    assert "is not NAME=FILE" in topo("import", "--node", "a.xml", "-o", "x.yaml").err


def test_no_input_is_overwritten(topo, tmp_path):
    """The file of a kind would be one of the dumps."""
    (tmp_path / "pod-node.yaml").write_bytes(two_sockets())
    done = topo("import", "--node", "node[0-1]=pod-node.yaml", "-o", "pod.yaml")
    assert done.code == 1
    assert "output-is-input" in done.err
    assert (tmp_path / "pod-node.yaml").read_bytes() == two_sockets()
    assert not (tmp_path / "pod.yaml").exists()


def test_a_broken_dump_leaves_everything_as_it_was(topo, tmp_path, dumps):
    topo("import", *dumps, "-o", "pod.yaml")
    before = {file: file.read_bytes() for file in tmp_path.glob("*.yaml")}
    (tmp_path / "dumps" / "node11.xml").write_text("<system", encoding="utf-8")
    done = topo("import", *dumps, "-o", "pod.yaml")
    assert done.code == 1
    assert "node11.xml" in done.err
    assert {file: file.read_bytes() for file in tmp_path.glob("*.yaml")} == before


def test_all_that_is_wrong_is_said_at_once(topo, tmp_path, dumps):
    for at in (3, 5):
        (tmp_path / "dumps" / f"node{at}.xml").write_text("<system", encoding="utf-8")
    done = topo("import", *dumps, "missing.xml", "-o", "pod.yaml")
    assert done.code == 1
    assert all(name in done.err for name in ("node3.xml", "node5.xml", "`missing.xml`"))
    assert "there is no file" in topo("import", "missing.xml", "dumps/node0.xml", "-o", "x").err
    done = topo("import", *dumps[:2], "-o", "pod.yaml", "--storage", "mlx5_9")
    assert "node3.xml" not in done.err
    assert "node0" in done.err
    assert "there is no network card `mlx5_9`" in done.err


def test_a_file_that_cannot_be_written_leaves_everything_as_it_was(
    topo, tmp_path, dumps, monkeypatch
):
    topo("import", *dumps, "-o", "pod.yaml")
    (tmp_path / "pod-node7.yaml").unlink()
    for file in tmp_path.glob("*.yaml"):
        file.write_text(f"{file.read_text()}# mine\n")
    before = {file: file.read_bytes() for file in tmp_path.glob("*.yaml")}
    replace_file = files.replace_file

    def full(target, data):
        if target.name == "pod.yaml":
            raise OSError(28, "No space left on device")
        replace_file(target, data)

    monkeypatch.setattr(files, "replace_file", full)
    done = topo("import", *dumps, "-o", "pod.yaml")
    assert done.code == 1
    assert "unwritable-file" in done.err
    assert {file: file.read_bytes() for file in tmp_path.glob("*.yaml")} == before
    assert not [file for file in tmp_path.iterdir() if file.name.startswith(".")]


def test_a_plan_of_several_hosts_is_written_as_files_that_are_used(topo, tmp_path):
    (tmp_path / "plan.yaml").write_text(CLUSTER, encoding="utf-8")
    assert topo("import", "plan.yaml").out.count("topo: 1") == 1  # flat where there is no folder
    done = topo("import", "plan.yaml", "-o", "pod.yaml")
    assert done.code == 0
    text = (tmp_path / "pod.yaml").read_text(encoding="utf-8")
    assert "node[0-1]: {use: pod-node" in text
    assert topo("check", "pod.yaml").code == 0
