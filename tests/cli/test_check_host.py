"""`topo check --host`: this host, a folder, an archive, and what does not go together."""

from __future__ import annotations

from functools import partial

import pytest

from tests.host.made_up import MadeUp
from topo.host import this_host


@pytest.fixture
def spoilt(tmp_path):
    """A made-up host with a narrow link, as a folder and as an archive."""
    host = MadeUp()
    host.runs_at(host.gpus[0], 5, 8)
    (tmp_path / "box.tar.gz").write_bytes(host.tar())
    return host.write(tmp_path / "box")


def test_a_copied_host(topo, spoilt):
    done = topo("check", "--host", "box")
    assert done.code == 1
    assert done.out.startswith("box: 4 GPUs, 2 network cards")
    assert "PCIe links    link-below-both-ends" in done.out
    assert "warning[link-below-both-ends]: gpu0: PCIe 5 x8" in done.err
    assert "cost: ram to gpu0 by pinned is at most 31.51 GB/s" in done.err
    assert topo("check", "--host", "box.tar.gz").out == done.out
    assert topo("check", "--host", "box/sys").code == 1


def test_a_host_that_is_well(topo, tmp_path):
    MadeUp().write(tmp_path / "box")
    done = topo("check", "--host", "box")
    assert (done.code, done.err) == (0, "")
    assert done.out.count(" ok ") == 10


def test_json(topo, spoilt):
    done = topo("check", "--host", "box", "--json")
    document = done.document
    assert done.code == 1
    assert (document["schema"], document["well"]) == ("topo.host-check/1", False)
    assert document["checked"][1] == {
        "subject": "PCIe links",
        "problems": ["link-below-both-ends"],
        "well": None,
        "unknown": None,
    }
    assert document["checked"][2]["well"] == "off at sw0 and sw1"
    (finding,) = document["findings"]
    assert finding["notes"][0].startswith("cost: ")


def test_what_a_host_is_packed_as_is_checked_the_same(topo, spoilt, tmp_path, monkeypatch):
    gather = partial(this_host.gather_host, spoilt, ())
    monkeypatch.setattr(this_host, "gather_host", gather)
    here = topo("check", "--host")
    assert topo("import", "--host", "--bundle", "bundle.tar.gz").code == 0
    there = topo("check", "--host", "bundle.tar.gz")
    assert here.out.split("\n")[1:] == there.out.split("\n")[1:]
    assert here.err == there.err
    assert here.code == there.code == 1


def test_a_change_counts(topo, spoilt):
    done = topo("check", "--host", "box", "--without", "gpu1")
    assert (done.code, "without gpu1" in done.out) == (1, True)
    # a part that cannot have such a link: what it costs is then not known
    done = topo("check", "--host", "box", "--set", "gpu0.part=a100-sxm-80gb")
    assert "link-below-both-ends" in done.out
    assert "cost: not known: " in done.err


@pytest.mark.parametrize(
    ("words", "code", "expected"),
    [
        ((), 2, "Missing argument"),
        (("box.yaml", "--host"), 2, "--host is about a host"),
        (("--host", "absent"), 1, "absent"),
        (("--host", "box.yaml"), 1, "no copy of a host"),
        (("--host", "empty"), 1, "nothing-there"),
    ],
)
def test_what_is_refused(topo, box, tmp_path, words, code, expected):
    (tmp_path / "empty").mkdir()
    done = topo("check", *words)
    assert (done.code, expected in done.err) == (code, True), done.err


def test_how_costs_are_asked_is_the_users(topo, tmp_path):
    # with pairing of all each card feeds GPUs of both sockets, so that the IOMMU stops that too
    host = MadeUp()
    host.translates()
    host.write(tmp_path / "box")
    assert "nic to gpu by nic-direct" not in topo("check", "--host", "box").err
    done = topo("check", "--host", "box", "--pairing", "all")
    assert "cost: nic to gpu by nic-direct is refused" in done.err
    done = topo("check", "--host", "box", "--buffers", "all=ram7")
    assert (done.code, "no memory `ram7`" in done.err) == (1, True)
