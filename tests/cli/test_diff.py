"""`topo diff`: its page, its JSON, its exit codes."""

from __future__ import annotations

import pytest

from tests.machines import ONE_SOCKET


def test_what_differs_then_the_answers(topo):
    done = topo(
        "diff", "gds-textbook", "--set", "slot.part=connectx-8-dual-port", "--via", "direct"
    )
    assert done.code == 0
    assert "slot1, slot2 (2)  part  connectx-7-dual-port  connectx-8-dual-port" in done.out
    assert "[2] datasheet: NVIDIA ConnectX-8 SuperNIC datasheet" in done.out
    said = " ".join(done.out.split())
    assert (
        "load by direct is 1.26 times as fast, 5.078 s instead of 6.4 s: the cards' chips "
        "(slot1/chip and slot2/chip) before, now the slots' PCIe (slot1 -> root0 and "
        "slot2 -> root1)." in said
    )


def test_nothing_different_is_one_line(topo):
    done = topo("diff", "gds-textbook", "gds-textbook", "--fail-on", "slower,refused,changed")
    assert done.code == 0
    assert done.out == (
        "gds-textbook and gds-textbook are the same: no device, link or figure differs, nor any of "
        "4 answers.\n"
    )


def test_the_document(topo):
    words = ("--set", "ram.bus=100 GB/s", "--workload", "load", "--json")
    document = topo("diff", "gds-textbook", *words).document
    assert (document["schema"], document["changed"], document["failed"]) == (
        "topo.diff/1",
        True,
        [],
    )
    (change,) = document["changes"]
    assert (change["section"], change["change"], change["count"]) == ("devices", "changed", 2)
    (field,) = (field for field in change["fields"] if field["key"] == "bus")
    assert field["after"] == {"bytes_per_s": 100e9, "kind": "quoted", "source": "--set"}
    paths = {path["data_path"]: path for path in document["workloads"][0]["paths"]}
    assert paths["direct"]["outcome"] == "same"
    assert paths["legacy"]["outcome"] == "slower"
    assert paths["legacy"]["times_as_fast"] == pytest.approx(0.5)
    assert paths["legacy"]["after"]["bottlenecks"][0]["class"] == "memory-bus"
    assert "RAM buses" in paths["legacy"]["sentence"]


@pytest.mark.parametrize(
    ("change", "fails_on"),
    [
        ("ram.bus=100 GB/s", {"slower", "changed"}),
        ("ram.bus=900 GB/s", {"changed"}),
        ("gpu.p2p=no", {"slower", "refused", "changed"}),
    ],
)
@pytest.mark.parametrize("word", ["slower", "refused", "changed"])
def test_the_exit_code_is_1_on_what_was_asked_for(topo, change, fails_on, word):
    words = ("gds-textbook", "--set", change, "--workload", "load", "--fail-on", word)
    assert topo("diff", *words).code == (word in fails_on)
    document = topo("diff", *words, "--json")
    assert (document.code, document.document["failed"]) == (
        word in fails_on,
        [word] * document.code,
    )


def test_what_is_wrong_with_both_files_is_said_at_once(topo, tmp_path):
    (tmp_path / "one.yaml").write_text(ONE_SOCKET.replace("nic0: card", "nic0: crd"), "utf-8")
    (tmp_path / "two.yaml").write_text("topo: 1\ndevices: {gpu0: h100x}\n", "utf-8")
    done = topo("diff", "one.yaml", "two.yaml")
    assert (done.code, done.out) == (1, "")
    assert "one.yaml:" in done.err
    assert "two.yaml:2" in done.err
    done = topo("diff", "one.yaml", "not-there.yaml")
    assert done.code == 1
    assert "one.yaml:" in done.err
    assert "not-there.yaml" in done.err
    done = topo("diff", "one.yaml", "two.yaml", "--json")
    assert done.document["schema"] == "topo.findings/1"
    assert len({finding["file"] for finding in done.document["findings"]}) == 2


@pytest.mark.parametrize(
    "words",
    [
        ("gds-textbook",),
        ("-", "-"),
        ("gds-textbook", "dgx-h100", "--fail-on", "better"),
        ("gds-textbook", "dgx-h100", "--from", "storage", "--workload", "load"),
    ],
)
def test_a_wrong_command_line(topo, words):
    assert topo("diff", *words).code == 2


def test_standard_input_is_one_side(topo, box):
    text = ONE_SOCKET.encode()
    assert topo("diff", "-", box, "--fail-on", "changed", stdin=text).code == 0
    assert topo("diff", box, "-", "--fail-on", "changed", stdin=text).code == 0
    changed = topo("diff", "-", "--set", "settings.iommu=on", "--fail-on", "changed", stdin=text)
    assert changed.code == 1
    assert "iommu" in changed.out


def test_a_name_that_is_not_there(topo, box):
    for words in (("--set", "slot9.part=connectx-7"), ("--without", "slot9"), ("--via", "dirct")):
        done = topo("diff", box, *words, *(["gds-textbook"] if "--via" in words else []))
        assert (done.code, done.out) == (1, "")
        assert done.err


def test_absolute_paths_are_nobodys_business(topo, tmp_path):
    for name, folder in (("a", "first"), ("b", "second")):
        (tmp_path / folder).mkdir()
        (tmp_path / folder / f"{name}.yaml").write_text(ONE_SOCKET, "utf-8")
    first, second = tmp_path / "first" / "a.yaml", tmp_path / "second" / "b.yaml"
    done = topo("diff", str(first), str(second), "--set", "ram0.bus=9 GB/s", "--json")
    assert done.code == 0
    assert str(tmp_path) not in done.out
    second.write_text(ONE_SOCKET.replace("links:", "lnks:"), "utf-8")
    done = topo("diff", str(first), str(second), "--json")
    assert done.document["findings"][0]["file"] == "b.yaml"


def test_markdown_is_for_a_pull_request(topo):
    done = topo("diff", "gds-textbook", "--set", "ram.bus=100 GB/s", "--markdown")
    assert "### Devices" in done.out
    assert "| changed | **ram0, ram1 (2)** | bus | 200 GB/s" in done.out
    assert "| **legacy** | verdict | ok | ok | |" in done.out


# Three different cards, so that structure tells which is which.
CARDS = """
topo: 1
name: cards
devices:
  cpu0: xeon-8480c
  nic0: connectx-7
  nic1: connectx-6
  nic2: bluefield-3-dual-port
links:
  - nic -- cpu0: pcie 4 x8
expect:
  - nic0 to nic1 is NODE
"""


def test_names_that_only_have_another_stem_are_one_row(topo, tmp_path):
    (tmp_path / "before.yaml").write_text(CARDS, encoding="utf-8")
    (tmp_path / "after.yaml").write_text(CARDS.replace("nic", "card"), encoding="utf-8")
    page = topo("diff", "before.yaml", "after.yaml").out
    assert "probably renamed nic[0-2] (3) name nic[0-2] card[0-2]" in " ".join(page.split())
    expectations = page[page.index("Expectations") :].splitlines()
    assert expectations[2].split() == ["which"]  # no column is empty
    crossed = CARDS.replace("nic0: c", "card1: c").replace("nic1: c", "card0: c")
    crossed = crossed.replace("nic2:", "card2:").replace("nic0 to nic1", "card0 to card1")
    (tmp_path / "after.yaml").write_text(crossed.replace("- nic --", "- card --"), encoding="utf-8")
    page = " ".join(topo("diff", "before.yaml", "after.yaml").out.split())
    assert "renamed nic0 name nic0 card1" in page
    assert "renamed nic1 name nic1 card0" in page


def test_many_links_are_told_by_the_first(topo):
    page = " ".join(topo("diff", "dgx-h100", "dell-xe9680", "--workload", "load").out.split())
    assert "nic0 -- sw0 and 15 more (22)" in page
