"""Names, ranges of them, and what a text selects."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from tests.description.reading import only
from topo.description.names import RESERVED, Names, expand, ranged, stem_of
from topo.document.nodes import Report, Scalar
from topo.document.parse import parse
from topo.errors import Place

PLACE = Place("box.yaml", 1, 1)
NAMES = Names(
    ["storage", *(f"gpu{at}" for at in range(12)), "slot1", "slot2", "cpu0", "cpu1"],
    {"cpu0": (0, 1, 2, 3), "cpu1": (4, 5, 6, 7)},
)


def report():
    return Report(parse("topo: 1", name="box.yaml"))


def expanded(text):
    found = report()
    names = expand(Scalar(text, PLACE), found)
    return list(names), [finding.code for finding in found.findings]


def selected(text, what="select"):
    found = report()
    names = getattr(NAMES, what)(text, Scalar(text, PLACE), found)
    return [str(name) for name in names], found.findings


@pytest.mark.parametrize(
    ("text", "names"),
    [
        ("storage", ["storage"]),
        ("gpu[0-2]", ["gpu0", "gpu1", "gpu2"]),
        ("gpu[0-1,4]", ["gpu0", "gpu1", "gpu4"]),
        ("gpu[ 0 - 1 , 4 ]", ["gpu0", "gpu1", "gpu4"]),
        ("n[08-10]", ["n08", "n09", "n10"]),
        ("gpu[3-3]", ["gpu3"]),
        ("gpu[1,1]", ["gpu1"]),
        ("a-b_c", ["a-b_c"]),
    ],
)
def test_a_key_names_devices(text, names):
    assert expanded(text) == (names, [])


@pytest.mark.parametrize(
    ("text", "code"),
    [
        ("0gpu", "bad-name"),
        ("gpu 0", "bad-name"),
        ("a--b", "bad-name"),
        ("node0.gpu0", "bad-name"),
        ("gpu/0", "bad-name"),
        ("gpu\u00a00", "bad-name"),
        ("*", "bad-name"),
        ("", "bad-name"),
        ("gpü0", "bad-name"),
        ("to", "reserved-name"),
        ("gpu[7-0]", "bad-range"),
        ("gpu[a-b]", "bad-range"),
        ("gpu[]", "bad-range"),
        ("gpu[0-1", "bad-range"),
        ("gpu[0-1]x[0-1]", "bad-range"),
        ("gpu[0..7]", "bad-range"),
        ("gpu[-1-7]", "bad-range"),
        ("gpu[٣]", "bad-range"),
        ("gpu[0-999999999]", "huge-range"),
        ("gpu[0-99999,100000-199999]", "huge-range"),
        ("gpu[0-9999999999999999999999]", "bad-range"),
    ],
)
def test_a_key_that_is_no_name_says_why(text, code):
    assert expanded(text) == ([], [code])


@pytest.mark.parametrize("word", RESERVED)
def test_words_of_sentences_are_reserved(word):
    assert expanded(word) == ([], ["reserved-name"])


def test_the_limit_is_reached_only_beyond_it():
    names, codes = expanded("gpu[0-99999]")
    assert (len(names), codes) == (100_000, [])


@pytest.mark.parametrize(
    ("text", "names"),
    [
        ("storage", ["storage"]),
        ("gpu10", ["gpu10"]),
        ("slot", ["slot1", "slot2"]),
        ("gpu", [f"gpu{at}" for at in range(12)]),  # natural order: 2 before 10
        ("gpu[9-11]", ["gpu9", "gpu10", "gpu11"]),
        ("gpu[4,2]", ["gpu4", "gpu2"]),
    ],
)
def test_a_text_selects_devices(text, names):
    assert selected(text) == (names, ())


def test_an_absent_device_is_told_what_exists():
    names, (finding,) = selected("slot3")
    assert names == []
    assert finding.code == "unknown-name"
    assert finding.message == "no device slot3; slot1 and slot2 exist"


def test_absent_devices_of_a_range_are_one_finding():
    _, (finding,) = selected("gpu[10-14]")
    assert finding.message == "no device gpu[12-14]; gpu[0-11] exist"


def test_a_misspelt_stem_gets_the_near_name():
    _, (finding,) = selected("storag")
    assert finding.help == "did you mean `storage`?"


def test_a_name_like_no_other_gets_the_list():
    _, (finding,) = selected("xyzzy")
    assert finding.help == "devices are storage, gpu[0-11], slot1, slot2, cpu0 and cpu1"


def test_a_dot_asks_for_a_used_topology():
    _, (finding,) = selected("node0.gpu0")
    assert "used topology" in finding.help


@pytest.mark.parametrize(
    ("text", "ends"),
    [
        ("slot1/p2", ["slot1/p2"]),
        ("slot/p1", ["slot1/p1", "slot2/p1"]),
        ("slot1/p[1-2]", ["slot1/p1", "slot1/p2"]),
        ("cpu0/numa[0-3]", ["cpu0/numa0", "cpu0/numa1", "cpu0/numa2", "cpu0/numa3"]),
    ],
)
def test_an_end_may_name_a_side(text, ends):
    assert selected(text, "ends") == (ends, ())


@pytest.mark.parametrize(
    ("text", "code", "says"),
    [
        ("slot1/port2", "bad-name", "names no side"),
        ("slot1/p1/p2", "bad-name", "names no side"),
        ("slot3/p1", "unknown-name", "no device slot3"),
        ("cpu0/numa5", "unknown-name", "cpu0 has no NUMA node 5; it has 0, 1, 2 and 3"),
        ("slot1/numa0", "unknown-name", "it states none"),
        ("cpu0/numa[", "bad-range", "brackets"),
    ],
)
def test_a_side_that_is_not_there(text, code, says):
    ends, (finding,) = selected(text, "ends")
    assert ends == []
    assert finding.code == code
    assert says in finding.message


def test_a_numa_node_of_another_cpu_is_told_its_owner():
    _, (finding,) = selected("cpu0/numa5", "ends")
    assert finding.help == "write `cpu1/numa5`"


@given(st.lists(st.from_regex(r"[a-c]{1,2}[0-9]{0,3}", fullmatch=True), unique=True))
def test_matching_agrees_with_select(names):
    index = Names(names, {})
    for name in [*names, "a", "b9", "c[0-3]"]:
        found = report()
        assert index.select(name, Scalar(name, PLACE), found) == index.matching(name)


@given(st.from_regex(r"[a-z]{1,5}[0-9]{0,4}", fullmatch=True))
def test_a_stem_and_a_number_make_the_name(name):
    stem, number = stem_of(name)
    assert name.startswith(stem)
    assert int(name.removeprefix(stem) or -1) == number


@pytest.mark.parametrize(
    ("names", "texts"),
    [
        (["gpu0", "gpu1", "gpu2", "storage"], ["gpu[0-2]", "storage"]),
        (["gpu0", "gpu1"], ["gpu0", "gpu1"]),
        (["gpu1", "gpu0", "nic0"], ["gpu1", "gpu0", "nic0"]),
        ([], []),
    ],
)
def test_names_are_written_shortly(names, texts):
    assert ranged(names) == texts


def test_long_lists_are_cut():
    assert ranged([f"{letter}1" for letter in "abcdefghijklmnop"])[-1] == "..."


def test_a_huge_range_in_a_file_is_a_finding():
    assert only("topo: 1\ndevices: {'gpu[0-99999999]': l40s}").code == "huge-range"
