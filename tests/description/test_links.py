"""Links: which ends a line names, how they pair, what joins them."""

from __future__ import annotations

import pytest

from tests.description.reading import BOX, findings_of, link_finding, links_of, only, read


def test_one_to_one():
    assert links_of("slot1 -- cpu1: pcie 5 x16") == [("slot1", "cpu1")]


def test_equal_counts_pair():
    assert links_of("ram -- cpu: memory-bus") == [("ram0", "cpu0"), ("ram1", "cpu1")]


def test_one_against_many_fans_out_and_keeps_its_count():
    links = read(BOX + "links:\n  - storage -- slot: 2x infiniband ndr\n").links
    assert [(str(link.a), str(link.b), link.cable.count) for link in links] == [
        ("storage", "slot1", 2),
        ("storage", "slot2", 2),
    ]


def test_many_against_one_fans_in():
    assert links_of("slot -- cpu0: pcie 5 x16") == [("slot1", "cpu0"), ("slot2", "cpu0")]


@pytest.mark.parametrize(
    "line", ["gpu -- cpu in blocks: pcie 5 x16", "cpu -- gpu in blocks: pcie 5 x16"]
)
def test_blocks_are_consecutive(line):
    pairs = {tuple(sorted(pair)) for pair in links_of(line)}
    assert pairs == {(f"cpu{at // 4}", f"gpu{at}") for at in range(8)}


def test_blocks_of_equal_counts_are_pairs():
    assert links_of("ram -- cpu in blocks: memory-bus") == [("ram0", "cpu0"), ("ram1", "cpu1")]


def test_all_to_all():
    assert links_of("slot -- cpu all to all: pcie 5 x16") == [
        ("slot1", "cpu0"),
        ("slot1", "cpu1"),
        ("slot2", "cpu0"),
        ("slot2", "cpu1"),
    ]


def test_a_mesh_joins_each_pair_once():
    pairs = links_of("gpu -- gpu all to all: xgmi 64 GB/s")
    assert len(pairs) == 28
    assert len({frozenset(pair) for pair in pairs}) == 28
    assert all(a != b for a, b in pairs)


def test_an_overlapping_mesh_joins_each_pair_once():
    pairs = links_of('"gpu[0-2] -- gpu[1-3] all to all": xgmi 64 GB/s')
    assert len(pairs) == len({frozenset(pair) for pair in pairs}) == 6
    assert all(a != b for a, b in pairs)


def test_ends_may_name_sides():
    assert links_of("slot1/p2 -- storage: infiniband ndr", "slot2 -- cpu0/numa3: pcie 5 x16") == [
        ("slot1/p2", "storage"),
        ("slot2", "cpu0/numa3"),
    ]


def test_ranges_of_sides_pair():
    assert links_of('"nvme[0-3] -- cpu0/numa[0-3]": pcie 5 x4') == [
        (f"nvme{at}", f"cpu0/numa{at}") for at in range(4)
    ]


def test_a_cable_may_be_a_mapping():
    text = BOX + "links:\n  - slot1 -- cpu0: {medium: pcie 5 x16, efficiency: 83 %}\n"
    (link,) = read(text).links
    assert link.cable.efficiency.value == 0.83
    assert link.place.line == 11


def test_empty_links_are_none():
    assert read(BOX + "links:\n").links == ()


@pytest.mark.parametrize(
    ("line", "code", "says", "advice"),
    [
        (
            "gpu -- cpu: pcie 5 x16",
            "unpaired",
            "`gpu -- cpu` joins 8 with 2",
            "say `in blocks` (4 each), `all to all` (16 links), or name one of them",
        ),
        ('"gpu[0-2] -- cpu": pcie 5 x16', "unpaired", "joins 3 with 2", "say `all to all` (6"),
        (
            '"gpu[0-2] -- cpu in blocks": pcie 5 x16',
            "unpaired",
            "3 do not divide into 2 equal blocks",
            "say `all to all`",
        ),
        (
            "gpu -- gpu: nvlink 4",
            "self-link",
            "joins each device with itself",
            "a mesh is `gpu -- gpu all to all`",
        ),
        ("gpu0 -- gpu0: nvlink 4", "self-link", "joins gpu0 with itself", "name two"),
        ("gpu0 -- gpu: nvlink 4", "self-link", "joins gpu0 with itself", ""),
        ("gpu0 -- gpu0 all to all: nvlink 4", "self-link", "with itself only", "name two"),
        ("slot1/p1 -- slot1/p2: ethernet 400 Gb/s", "self-link", "joins slot1 with itself", ""),
        ("slot3 -- cpu0: pcie 5 x16", "unknown-name", "no device slot3; slot1 and", ""),
        ("gpu0 -> slot1: pcie 5 x16", "not-a-cable", "an arrow is data", "`gpu0 -- slot1`"),
        ("gpu0->slot1: pcie 5 x16", "not-a-cable", "an arrow is data", "`gpu0 -- slot1`"),
        ("gpu0--slot1: pcie 5 x16", "not-a-cable", "two hyphens with", "`gpu0 -- slot1`"),
        ("gpu0 – slot1: pcie 5 x16", "not-a-cable", "two hyphens with", "`gpu0 -- slot1`"),
        ("gpu0 — slot1: pcie 5 x16", "not-a-cable", "two hyphens with", "`gpu0 -- slot1`"),
        ("gpu0 - slot1: pcie 5 x16", "not-a-cable", "two hyphens with", "`gpu0 -- slot1`"),
        ("gpu0 --- slot1: pcie 5 x16", "not-a-cable", "two hyphens with", "`gpu0 -- slot1`"),
        ("gpu0: pcie 5 x16", "not-a-cable", "does not join two ends", "- a -- b"),
        ("a -- b -- c: pcie 5 x16", "not-a-cable", "joins 3 ends, and a line joins two", ""),
        ("gpu0 -- slot1 pcie 5 x16", "link-without-colon", "has no `: `", "colon then space"),
        ("gpu0 -- slot1:pcie 5 x16", "link-without-colon", "has no `: `", "colon then space"),
        ("hello", "not-a-cable", "`hello` is not a line of `links:`", "- a -- b"),
        ("[a, b]", "not-a-cable", "a list is not a line", ""),
        ("{}", "not-a-cable", "a mapping is not a line", ""),
        ("gpu0 -- slot1:", "missing-value", "nothing stands", ""),
        ("gpu0 -- slot1: pcie 5", "not-a-cable", "how many lanes", ""),
        ("gpu0 -- slot1: pice 5 x16", "unknown-medium", "`pice`", "`pcie`"),
    ],
)
def test_a_wrong_line_says_what_to_write(line, code, says, advice):
    finding = link_finding(line)
    assert finding.code == code
    assert says in finding.message
    assert advice in finding.help


def test_the_second_pair_of_one_item_is_pointed_at():
    finding = only(BOX + "links:\n  - gpu0 -- cpu0: pcie 5 x16\n    gpu1 -- cpu0: pcie 5 x16\n")
    assert (finding.code, finding.place.line) == ("two-links-one-item", 12)


def test_links_are_a_list():
    finding = only(BOX + "links:\n  gpu0 -- cpu0: pcie 5 x16\n")
    assert finding.code == "wrong-shape"
    assert finding.help == "start each line with `- `"


def test_a_mesh_that_is_too_large_is_refused():
    text = "topo: 1\ndevices: {'gpu[0-999]': l40s}\nlinks:\n  - gpu -- gpu all to all: nvlink 4\n"
    assert only(text).code == "huge-range"


def test_every_line_says_its_own_mistake():
    text = BOX + "links:\n  - gpu -- cpu: pcie 5 x16\n  - slot7 -- cpu0: pcie 5 x16\n"
    assert [finding.code for finding in findings_of(text)] == ["unpaired", "unknown-name"]


# --- measured rates -------------------------------------------------------------------------------


def measured(*lines):
    text = BOX + "measured:\n" + "".join(f"  - {line}\n" for line in lines)
    return [(m.source, m.target, m.rate.value) for m in read(text).measurements]


def test_a_measurement_has_its_source():
    text = "measured:\n  - ram0 -> gpu0: {rate: 55.6 GB/s, source: nvbandwidth, date: 2026-11-02}\n"
    (found,) = read(BOX + text).measurements
    assert (found.source, found.target, found.date) == ("ram0", "gpu0", "2026-11-02")
    assert (found.rate.value, found.rate.kind, found.rate.source) == (
        55.6e9,
        "measured",
        "nvbandwidth",
    )


def test_a_measurement_without_one_is_its_line():
    (found,) = read(f"{BOX}measured:\n  - gpu0 -> slot1: 22 GB/s\n").measurements
    assert found.rate.source == "<text>:11"


def test_measurements_pair_and_fan_out():
    assert measured('"gpu[0-1] -> slot1": 22 GB/s', "ram -> cpu: 5 GB/s") == [
        ("gpu0", "slot1", 22e9),
        ("gpu1", "slot1", 22e9),
        ("ram0", "cpu0", 5e9),
        ("ram1", "cpu1", 5e9),
    ]


@pytest.mark.parametrize(
    ("line", "code"),
    [
        ("gpu0 -- slot1: 22 GB/s", "not-a-cable"),
        ("gpu0 -> slot1: 22", "bare-number"),
        ("gpu0 -> slot1: 0 GB/s", "bad-number"),
        ("gpu0 -> slot1: {source: x}", "missing-key"),
        ("gpu0 -> slot1: {rate: 5 GB/s, dat: x}", "unknown-key"),
        ("gpu -> slot: 5 GB/s", "unpaired"),
        ("gpu9 -> slot1: 5 GB/s", "unknown-name"),
        ("gpu0 -> slot1 5 GB/s", "link-without-colon"),
    ],
)
def test_a_wrong_measurement(line, code):
    assert only(f"{BOX}measured:\n  - {line}\n").code == code
