"""`topo import --host`: this very host, what it says, and what is packed of it."""

from __future__ import annotations

import tarfile
from functools import partial

import pytest

from tests.discovery.trees import sysfs_box
from topo.host import this_host
from topo.host.gathering import HostCommand


@pytest.fixture
def box(tmp_path, monkeypatch):
    """A made-up host in place of this one, two of whose tools are there."""
    root = sysfs_box().write(tmp_path / "box")
    folder = tmp_path / "bin"
    folder.mkdir()
    scripts = {"nvidia-smi": "printf 'GPU0\\tX\\n'; exit 9", "nvme": "echo nothing of use"}
    for name, script in scripts.items():
        (folder / name).write_text(f"#!/bin/sh\n{script}\n")
        (folder / name).chmod(0o755)
    monkeypatch.setenv("PATH", f"{folder}:/usr/bin:/bin")
    commands = (
        HostCommand(("nvidia-smi", "topo", "-m"), "NVLinks are unknown", ("10de",)),
        HostCommand(("topo-absent",), "the moon is unknown"),
        HostCommand(("topo-amd",), "xGMI is unknown", ("1002",)),
        HostCommand(("nvme", "list"), "drives are as /sys says"),
    )
    gather = partial(this_host.gather_host, root, commands)
    monkeypatch.setattr(this_host, "gather_host", gather)
    monkeypatch.chdir(tmp_path)


def test_the_machine_on_output_and_what_was_asked_beside_it(topo, box):
    done = topo("import", "--host")
    assert done.code == 0
    assert "gpu0:     {part: a100-sxm-80gb" in done.out
    assert "asked" not in done.out
    assert "nvidia-smi topo -m  failed         GPU0 X; so NVLinks are unknown" in done.err
    assert "topo-absent         not installed  so the moon is unknown" in done.err
    assert "nvme list           ran            topo does not read it" in done.err
    assert "Not installed, and not missed here: topo-amd." in done.err


def test_a_file_and_a_bundle(topo, box, tmp_path):
    done = topo("import", "--host", "-o", "host.yaml", "--bundle", "host.tar.gz")
    assert done.code == 0
    assert done.out.startswith("asked\n/sys ")
    assert "topo import host.tar.gz" in done.out
    assert sorted(path.name for path in tmp_path.iterdir()) == [
        *("bin", "box", "host.tar.gz", "host.yaml")
    ]
    assert topo("check", "host.yaml").code == 0
    copy = topo("import", "host.tar.gz")
    whole = (tmp_path / "host.yaml").read_text()
    assert copy.out.split("\n")[5:] == whole.split("\n")[5:]
    with tarfile.open("host.tar.gz") as archive:
        assert "host/texts/04+nvme+list.txt" in archive.getnames()


def test_a_bundle_alone_prints_no_machine(topo, box):
    done = topo("import", "--host", "--bundle", "host.tar.gz")
    assert "gpu0" not in done.out
    assert "topo import host.tar.gz" in done.out


def test_json_has_every_source(topo, box):
    document = topo("import", "--host", "--json").document
    assert document["schema"] == "topo.import/1"
    assert [(source["name"], source["state"]) for source in document["sources"]] == [
        ("/sys", "read"),
        ("nvidia-smi topo -m", "failed"),
        ("topo-absent", "absent"),
        ("topo-amd", "absent"),
        ("nvme list", "not-read"),
    ]


def test_a_further_source_is_laid_beside_it(topo, box, tmp_path):
    (tmp_path / "smi.txt").write_text("\tGPU0\tmlx5_0\nGPU0\tX\tPIX\nmlx5_0\tPIX\tX\n")
    done = topo("import", "--host", "--and", "smi.txt")
    assert "# Combined with smi.txt" in done.out
    refused = topo("import", "--host", "--and", "smi.txt", "-o", "smi.txt")
    assert (refused.code, "output-is-input" in refused.err) == (1, True)


def test_a_host_that_tells_nothing_is_packed_all_the_same(topo, tmp_path, monkeypatch):
    gather = partial(this_host.gather_host, tmp_path, ())
    monkeypatch.setattr(this_host, "gather_host", gather)
    done = topo("import", "--host", "--bundle", str(tmp_path / "host.tar.gz"))
    assert done.code == 1
    assert "nothing-there" in done.err
    assert (tmp_path / "host.tar.gz").exists()


@pytest.mark.parametrize(
    ("words", "expected"),
    [
        (("--host", "a.xml"), "--host is this very host"),
        (("--host", "node0=a.xml"), "--node"),
        (("--host", "--node", "n=a.xml"), "--host is this very host"),
        (("a.xml", "--bundle", "x.tar.gz"), "--bundle packs what --host gathers"),
        (("--host", "--bundle", "x", "-o", "./x"), "--bundle and -o are two files"),
    ],
)
def test_what_does_not_go_together(topo, words, expected):
    done = topo("import", *words)
    assert (done.code, expected in done.err) == (2, True)
