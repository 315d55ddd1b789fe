"""Lines of `measured:` put into a text that somebody wrote, everything else left alone."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from tests.machines import TWO_SOCKETS
from topo.description.format import format_text
from topo.description.loading import loads
from topo.description.measured_edit import MeasuredLine, with_measured
from topo.errors import DescriptionError

HEAD = TWO_SOCKETS.partition("workloads:")[0]
TAIL = "workloads:\n  near: {read: 50 GB, from: storage, to: gpu0}\n"
NEW = MeasuredLine("ram0", "gpu0", 55.6e9, "a test", "2026-01-02")
ROW = '  - ram0 -> gpu0: {rate: 55.6 GB/s, source: "a test", date: 2026-01-02}'


def section(text):
    return text.partition("measured:")[2].partition("\nworkloads:")[0]


def rates(text):
    return {(one.source, one.target): one.rate.value for one in loads(text).measurements}


def test_a_new_section_stands_above_the_workloads_and_their_comment():
    text = HEAD + "\n# What is moved.\n" + TAIL
    assert with_measured(text, [NEW]) == f"{HEAD}\nmeasured:\n{ROW}\n\n# What is moved.\n{TAIL}"


def test_a_new_section_ends_a_file_without_workloads():
    text = HEAD.strip() + "\n"
    assert with_measured(text, [NEW]) == f"{text}\nmeasured:\n{ROW}\n"


@pytest.mark.parametrize(
    ("before", "after"),
    [
        ("", [ROW]),
        (" []  # none yet", ["  # none yet", ROW]),
        ("\n  - cpu0 -> gpu1: 3 GB/s", ["  - cpu0 -> gpu1: 3 GB/s", ROW]),
        ("\n  - ram0 -> gpu0: 3 GB/s", [ROW]),
        ("\n  - ram0 -> gpu0: 3 GB/s  # old", [f"{ROW}  # old"]),
        (
            "\n  - ram -> gpu: 3 GB/s  # both",
            ["  - ram1 -> gpu1: 3 GB/s  # both", ROW],
        ),
        (
            "\n  - ram[0-1] -> gpu0:  # two\n      rate: 3 GB/s\n      source: x  # y",
            ["  - ram1 -> gpu0:  # two", "      rate: 3 GB/s", "      source: x  # y", ROW],
        ),
        (
            "\n  - ram0 -> gpu0:\n      # why\n      rate: 3 GB/s",
            ["  # why", ROW],
        ),
        (
            "\n  # one\n  - ram0 -> gpu0: 3 GB/s\n\n  # two\n  - ram1 -> gpu1: 4 GB/s\n  # end",
            ["  # one", ROW, "", "  # two", "  - ram1 -> gpu1: 4 GB/s", "  # end"],
        ),
        ("\n- ram0 -> gpu0: 3 GB/s", [ROW[2:]]),
    ],
)
def test_a_section_that_is_there(before, after):
    text = with_measured(f"{HEAD}measured:{before}\n{TAIL}", [NEW])
    assert section(text).split("\n")[0 if before.startswith(" ") else 1 :] == after
    assert text.startswith(HEAD)
    assert text.endswith(TAIL)
    assert rates(text)["ram0", "gpu0"] == 55.6e9


def test_writing_twice_changes_nothing():
    once = with_measured(HEAD + TAIL, [NEW])
    assert with_measured(once, [NEW]) == once


def test_a_formatted_file_stays_formatted():
    text = format_text(HEAD + TAIL)
    written = with_measured(text, [NEW])
    assert format_text(written) == written


@pytest.mark.parametrize(
    "text",
    [
        HEAD + "measured: [{ram0 -> gpu0: 3 GB/s}, {ram1 -> gpu1: 3 GB/s}]\n" + TAIL,
        "{topo: 1, devices: {cpu0: epyc-7742, gpu0: l40s}}\n",
    ],
)
def test_brackets_are_refused(text):
    with pytest.raises(DescriptionError, match="no line can be added"):
        with_measured(text, [NEW])


def test_nothing_to_write_is_nothing_changed():
    assert with_measured("topo: 1\n", []) == "topo: 1\n"


def test_odd_sources_are_quoted():
    odd = MeasuredLine("ram0", "gpu0", 1e9, 'a "b"\n: #c \\', "2026-01-02")
    (one,) = loads(with_measured(HEAD, [odd])).measurements
    assert one.rate.source == 'a "b" : #c \\'


PAIRS = [(a, b) for a in ("ram0", "ram1", "cpu0") for b in ("gpu0", "gpu1", "nic0")]
ITEMS = st.lists(
    st.sampled_from(
        [
            "  - ram0 -> gpu0: 3 GB/s",
            "  - ram -> gpu: 4 GB/s  # two",
            "  - ram -> nic0:\n      rate: 5 GB/s\n      source: x",
            "  # apart",
            "",
            "  - cpu0 -> gpu: {rate: 6 GB/s, date: 2026-01-01}",
        ]
    ),
    max_size=6,
)


@given(items=ITEMS, pairs=st.lists(st.sampled_from(PAIRS), max_size=6, unique=True))
def test_all_that_was_wanted_and_nothing_else(items, pairs):
    text = "\n".join([HEAD.rstrip("\n"), "measured:", *items, TAIL])
    new = [MeasuredLine(a, b, 1e9 + at, "new") for at, (a, b) in enumerate(pairs)]
    written = with_measured(text, new)
    assert rates(written) == rates(text) | {(one.source, one.target): one.rate for one in new}
    assert written.count("#") == text.count("#")
