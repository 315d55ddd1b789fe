"""The sentences of `expect:`, each judged true and false by what comes out."""

from __future__ import annotations

import pytest

from tests.machines import ONE_SOCKET, SWITCHED, TWO_SOCKETS, built, shipped
from topo.study.check import check
from topo.views.sentences import broken_expectations
from topo.views.sentences import sentence as words


def judged(text, sentence):
    (found,) = check(built(f"{text}expect:\n  - {sentence}\n"))
    return found


@pytest.mark.parametrize(
    ("sentence", "holds", "outcome"),
    [
        ("load via direct <= 1 s", True, "it is 1 s"),
        ("load via direct < 1 s", False, "it is 1 s"),
        ("load via direct >= 50 GB/s", True, "it is 50 GB/s"),
        ("load via direct > 50 GB/s", False, "it is 50 GB/s"),
        ("load via direct >= 49 GB/s at achievable", True, "it is 49.69 GB/s"),
        (
            "load via direct is limited by nic0/chip",
            True,
            "it is limited by the network port (nic0/p1) and the card's chip (nic0/chip)",
        ),
        (
            "load via legacy is limited by ram0/bus",
            True,
            (
                "it is limited by the network port (nic0/p1), the RAM bus (ram0/bus) and "
                "the card's chip (nic0/chip)"
            ),
        ),
        ("load via direct is limited by ram0/bus", False, None),
        ("load via direct beats legacy", False, "direct has 50 GB/s, legacy 50 GB/s"),
        (
            "load via direct beats legacy-pageable",
            True,
            "direct has 50 GB/s, legacy-pageable 33.33 GB/s",
        ),
        ("gpu0 to nic0 is NODE", True, ""),
        ("gpu0 to nic0 is PIX", False, "gpu0 to nic0 is NODE"),
        ("gpu0 to storage is SYS", False, "gpu0 to storage is not joined"),
        ("gpu0 to storage via direct is possible", True, "its verdict is ok"),
        ("gpu0 to storage via direct is not possible", False, "its verdict is ok"),
        ("storage to gpu0 via direct is possible", True, "its verdict is ok"),
    ],
)
def test_sentences(sentence, holds, outcome):
    found = judged(ONE_SOCKET, sentence)
    assert found.holds is holds
    if outcome is not None:
        assert words(found.outcome) == outcome


def test_it_beats_by_the_time():
    # gpu1 has 5 GB/s directly: 5 s. By RAM both have 25 GB/s: 1 s. At first both paths carry 50.
    text = TWO_SOCKETS.replace(
        "cpu0 -- cpu1: upi 16 GT/s", "cpu0 -- cpu1: {medium: upi 16 GT/s, p2p: {posted: 5 GB/s}}"
    ).replace("workloads:", "workloads:\n  load: {read: 50 GB, from: storage, to: gpu}")
    assert judged(text, "load via legacy beats direct").holds
    assert not judged(text, "load via direct beats legacy").holds
    found = judged(text, "load via direct >= 50 GB/s")
    assert (found.holds, words(found.outcome)) == (False, "it is 10 GB/s")


NO_P2P = ONE_SOCKET.replace(" p2p: yes", " p2p: no")


@pytest.mark.parametrize(
    ("sentence", "holds"),
    [
        ("gpu0 to storage via direct is not possible", True),
        ("gpu0 to storage via direct is possible", False),
        ("load via legacy beats direct", True),
        ("load via direct beats legacy", False),
        ("load via direct <= 100 s", False),
    ],
)
def test_a_refused_path_is_beaten_not_possible_and_never_in_time(sentence, holds):
    found = judged(NO_P2P, sentence)
    assert found.holds is holds
    assert words(found.outcome) == "direct is refused: accel has no PCIe peer-to-peer"


UNKNOWN_CHIP = ONE_SOCKET.replace("nic0: card", "nic0: {part: card, chip: unknown}")


@pytest.mark.parametrize(
    ("sentence", "holds"),
    [
        ("load via direct >= 40 GB/s", False),  # at most 50: it may be less
        ("load via direct <= 50 GB/s", True),
        ("load via direct <= 1 s", False),  # at least 1 s: it may take longer
        ("load via direct >= 1 s", True),
        ("load via direct beats legacy-pageable", False),
    ],
)
def test_nothing_is_promised_past_an_unknown_capacity(sentence, holds):
    found = judged(UNKNOWN_CHIP, sentence)
    assert found.holds is holds
    assert "the capacity of nic0/chip in is unknown" in words(found.outcome)


MIXED = SWITCHED.replace("gpu[0-1]: accel", "gpu0: accel\n  gpu1: {part: accel, p2p: no}")


@pytest.mark.parametrize(
    ("sentence", "holds"),
    [
        ("gpu to storage via direct is not possible", False),  # gpu0 can
        ("gpu to storage via direct is possible", False),  # gpu1 cannot
        ("gpu1 to storage via direct is not possible", True),
    ],
)
def test_of_several_gpus_all_can_or_none_can(sentence, holds):
    assert judged(MIXED, sentence).holds is holds


def test_whether_it_is_possible_needs_no_rate():
    text = ONE_SOCKET.replace("read: 100 GB/s", "read: unlimited")
    for known in ("infiniband ndr", "hbm: 3000 GB/s, ", "chip: 400 Gb/s, "):
        text = text.replace(known, "" if "," in known else "ethernet unknown")
    text = text.replace("ports: 1x 400 Gb/s", "ports: unknown").replace(
        "functions: 1", "chip: unknown"
    )
    text = text.replace("pcie 5 x16\n", "pcie unknown\n")
    assert judged(text, "gpu0 to storage via direct is possible").holds


def test_a_range_of_devices_is_judged_as_a_whole():
    assert judged(TWO_SOCKETS, "gpu0 to nic0 is NODE").holds
    found = judged(TWO_SOCKETS, "gpu to nic0 is NODE")
    assert not found.holds
    assert words(found.outcome) == "gpu1 to nic0 is SYS"


def test_a_failed_one_becomes_a_finding_at_its_line():
    (found,) = broken_expectations([judged(ONE_SOCKET, "load via direct <= 0.5 s")])
    assert found.code == "expectation-failed"
    assert found.message == "expected load via direct <= 0.5 s; it is 1 s"
    assert found.place is not None


@pytest.mark.parametrize(
    "name",
    [
        "gds-textbook",
        "dgx-h100",
        "dgx-a100",
        "gds-loses",
        "l40s-two-switches",
        "workstation-4gpu",
    ],
)
def test_the_shipped_machines_are_as_they_say(name):
    judgements = check(shipped(name))
    assert judgements
    assert [one.finding.message for one in judgements if not one.holds] == []


@pytest.mark.parametrize("limit", ["nic0/chip", "ram0/bus"])
def test_past_an_unknown_capacity_nothing_is_known_to_limit(limit):
    text = ONE_SOCKET.replace("read: 100 GB/s", "read: unknown")
    found = judged(text, f"load via direct is limited by {limit}")
    assert not found.holds
    assert words(found.outcome) == (
        "it is limited by the network port (nic0/p1) and the card's chip (nic0/chip) at most: "
        "the capacity of storage/read is unknown"
    )


def test_what_limits_a_refused_path_is_why_it_is_refused():
    found = judged(NO_P2P, "load via direct is limited by nic0/chip")
    assert not found.holds
    assert words(found.outcome).startswith("direct is refused: ")
