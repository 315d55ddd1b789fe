"""What could be changed: from the catalogue, with names that ``--set`` takes."""

from __future__ import annotations

import pytest

import topo
from tests.machines import ONE_SOCKET, built, shipped
from topo.study.upgrade import KINDS, Candidate, candidates


def offered(machine, via="legacy"):
    found = topo.compare(machine, workload=machine.description.workloads[0].name, via=(via,))
    return candidates(machine, found.workloads[0].paths[0].routes, via)


def titles(machine, kind, via="legacy"):
    return [one.title for one in offered(machine, via) if one.kind == kind]


def test_every_kind_is_known():
    for name in ("dgx-h100", "dgx-a100", "gds-textbook"):
        assert {one.kind for one in offered(shipped(name))} <= set(KINDS)


def test_cards_with_a_faster_chip_and_enough_ports():
    found = titles(shipped("dgx-h100"), "other-card")
    assert found[0] == "connectx-8-dual-port instead of connectx-7-dual-port (800 Gb/s a chip)"
    assert all("connectx-7-dual-port (" in one for one in found)


def test_one_more_card_and_one_beside_each():
    found = titles(shipped("dgx-h100"), "another-card")
    assert found == [
        "a second connectx-7-dual-port beside each (slot3, slot4)",
        "another connectx-7-dual-port (slot3) beside slot1",
        "another connectx-7-dual-port (slot3) beside slot2",
    ]


def test_a_bus_quoted_as_a_whole_has_no_modules():
    assert titles(shipped("gds-textbook"), "faster-memory") == []
    assert "one DIMM a channel" in titles(shipped("dgx-h100"), "faster-memory")


def test_direct_leaves_memory_alone():
    assert titles(shipped("dgx-h100"), "faster-memory", via="direct") == []


def test_every_other_data_path_but_not_the_one_in_use():
    found = titles(shipped("dgx-h100"), "data-path")
    assert "data path direct" in found
    assert "data path legacy" not in found


def test_no_change_is_offered_twice():
    for name in ("dgx-h100", "dgx-a100", "l40s-two-switches"):
        found = [(tuple(sorted(one.changes.items())), one.via) for one in offered(shipped(name))]
        assert len(found) == len(set(found))


@pytest.mark.parametrize("name", ["dgx-h100", "dgx-a100", "l40s-two-switches"])
def test_changes_are_what_set_takes(name):
    machine = shipped(name)
    for one in offered(machine):
        try:
            machine.replace(one.changes)
        except topo.TopoError as error:
            codes = {finding.code for finding in error.findings}
            assert not codes & {"unknown-name", "unknown-key", "bad-override"}, one.title


def test_a_machine_with_nothing_to_move_offers_little():
    kinds = {one.kind for one in offered(built(ONE_SOCKET))}
    assert "other-socket" not in kinds


def test_a_title_is_a_frame_with_a_thing():
    one = Candidate("data-path", "data path {}", "direct", via="direct")
    assert (one.title, one.framed("direct or mmap")) == (
        "data path direct",
        "data path direct or mmap",
    )
