"""Pages of text: layout without surprises, names in ranges, figures in words."""

from __future__ import annotations

import math
from itertools import product

import pytest
from hypothesis import example, given
from hypothesis import strategies as st

from topo.catalogue.fields import COUNT, RATE, RATIO, SIZE, TRANSFER_RATE
from topo.catalogue.part import Figure
from topo.phrases import shortened
from topo.views.text.page import (
    Bullets,
    Cell,
    Column,
    Heading,
    Lines,
    Table,
    Text,
    citing,
    figure_text,
    render,
    sourced,
)


def test_blocks_stand_apart_by_one_empty_line():
    blocks = (Heading("title"), Text("a paragraph"), Bullets(("one", "two")), Lines("as\tit is"))
    assert render(blocks) == "title\n\na paragraph\n\n- one\n- two\n\nas\tit is\n"


def test_a_paragraph_is_wrapped_and_a_name_is_not_broken():
    text = render(
        (Text("see https://example.org/a-very-long-name-that-has-hyphens twice", hang=2),), width=30
    )
    assert text == "see\n  https://example.org/a-very-long-name-that-has-hyphens\n  twice\n"


def test_no_line_ends_between_a_number_and_its_unit():
    text = render((Text("it is done at 6.4 s by 100 GB/s or 50 % of 12 cores"),), width=16)
    assert text == "it is done at\n6.4 s by\n100 GB/s or 50 %\nof 12 cores\n"


def test_a_table_keeps_units_and_names_of_links_on_one_line():
    text = "the slot's PCIe: slot10 -> cpu1, slot2 -> cpu0, 63.02 GB/s each"
    shown = render((Table((Column(breaks=True),), ((text,),)),), width=18)
    assert shown == "the slot's PCIe:\nslot10 -> cpu1,\nslot2 -> cpu0,\n63.02 GB/s each\n"
    way = "storage -> slot2 -> buffer -> PCIe -> gpu0"
    assert render((Text(way),), width=18) == "storage -> slot2\n-> buffer -> PCIe\n-> gpu0\n"


def test_a_table_aligns_its_columns():
    table = Table((Column("name"), Column("rate", right=True)), (("a", "1"), (Cell("bb"), "100")))
    assert render((table,)) == "name  rate\na        1\nbb     100\n"


def test_a_table_without_titles_has_no_head():
    assert render((Table((Column(), Column()), (("a", "b"),)),)) == "a  b\n"


def test_markup_and_emoji_are_text():
    assert render((Text("[bold]:smile: gpu[0-7][/bold]"),)) == "[bold]:smile: gpu[0-7][/bold]\n"


words = st.text(st.characters(codec="ascii", categories=["L", "N", "P"]), min_size=1, max_size=30)


@given(st.lists(st.tuples(words, words, words), min_size=1, max_size=8), st.booleans())
def test_no_table_ever_cuts_what_it_shows(rows, breaks):
    # However narrow the page: a cell that does not break stands whole, one that breaks keeps
    # every letter.
    columns = (Column("first"), Column("a longer title here", right=True), Column(breaks=breaks))
    text = render((Table(columns, tuple(rows)),), width=40)
    for first, second, third in rows:
        assert first in text
        assert second in text
        if not breaks:
            assert third in text
    letters = sorted("".join(text.split()))
    shown = "first" + "alongertitlehere" + "".join("".join(row) for row in rows)
    assert letters == sorted(shown)


@given(st.lists(st.tuples(words, words), min_size=1, max_size=5), st.integers(20, 120))
def test_a_page_is_the_same_twice_and_has_no_colour(rows, width):
    page = (Heading("title"), Table((Column("one"), Column("two", breaks=True)), tuple(rows)))
    assert render(page, width=width) == render(page, width=width)
    assert "\x1b" not in render(page, width=width)


SHORT = [
    (["gpu0", "gpu1", "gpu2"], "gpu[0-2]"),
    (["gpu0", "gpu1"], "gpu0, gpu1"),
    (["gpu1", "gpu0", "gpu2"], "gpu[0-2]"),
    (["gpu0", "gpu2", "gpu4"], "gpu0, gpu2, gpu4"),
    (["slot1/p1", "slot1/p2", "slot2/p1", "slot2/p2"], "slot[1-2]/p[1-2]"),
    (["gpu0 -> nic0", "gpu1 -> nic1", "gpu2 -> nic2"], "gpu[0-2] -> nic[0-2]"),
    (
        ["gpu0 -> nic0", "gpu0 -> nic1", "gpu1 -> nic0", "gpu1 -> nic1"],
        "gpu0 -> nic0, gpu0 -> nic1, gpu1 -> nic0, gpu1 -> nic1",
    ),
    ([f"gpu{n // 3} -> nic{n % 3}" for n in range(6)], "gpu[0-1] -> nic[0-2]"),
    (["slot1/p1", "slot2/p2", "slot3/p3"], "slot1/p1, slot2/p2, slot3/p3"),
    ([f"cpu{n // 3} -> nic{n}" for n in range(6)], "cpu0 -> nic[0-2], cpu1 -> nic[3-5]"),
    (["storage"], "storage"),
    ([], ""),
    ([f"node{n}.gpu{m}" for n in range(4) for m in range(8)], "node[0-3].gpu[0-7]"),
]


@pytest.mark.parametrize(("names", "text"), SHORT)
def test_names_are_shortened(names, text):
    assert shortened(names) == text


@pytest.mark.parametrize("joint", ["/", " -> "])
@example(pairs=[(0, 0), (0, 1), (1, 0), (1, 1)])
@example(pairs=[(0, 1), (0, 2), (1, 1), (1, 2)])
@example(pairs=[(0, 0), (1, 1), (2, 2)])
@given(pairs=st.lists(st.tuples(st.integers(0, 6), st.integers(0, 6)), unique=True, max_size=20))
def test_shortened_names_stand_for_all_of_them_and_no_others(joint, pairs):
    names = {f"a{first}{joint}b{second}" for first, second in pairs}
    assert set(expanded(shortened(sorted(names)), joint)) == names


def expanded(text, joint):
    """Yield the names that a shortened text stands for, as a topology file reads ranges.

    The brackets of one name, `slot[1-2]/p[1-2]`, are all combinations; of two ends, equal counts
    pair.
    """
    for piece in filter(None, text.split(", ")):
        first, second = (numbers(end[1:]) for end in piece.split(joint))
        side_by_side = joint == " -> " and len(first) == len(second)
        pairs = zip(first, second, strict=True) if side_by_side else product(first, second)
        yield from (f"a{a}{joint}b{b}" for a, b in pairs)


def numbers(text):
    if not text.startswith("["):
        return [int(text)]
    first, last = text[1:-1].split("-")
    return list(range(int(first), int(last) + 1))


@pytest.mark.parametrize(
    ("value", "quantity", "text"),
    [
        (None, RATE, "unknown"),
        (math.inf, RATE, "unlimited"),
        (5e10, RATE, "50 GB/s"),
        (8e10, SIZE, "80 GB"),
        (0.85, RATIO, "85 %"),
        (3.2e10, TRANSFER_RATE, "32 GT/s"),
        (18.0, COUNT, "18"),
    ],
)
def test_figures_in_words(value, quantity, text):
    assert figure_text(Figure(value, "quoted", "here"), quantity) == text


def test_a_figure_tells_its_kind_and_source():
    assert sourced(Figure(1.0, "guess", "ours")) == "guess: ours"
    assert sourced(Figure(1.0, "guess", "")) == "guess"


@pytest.mark.parametrize(
    ("names", "text"),
    [
        ([f"node{n}.gpu{g}" for n in range(4) for g in range(8)], "node[0-3].gpu[0-7]"),
        (
            [f"node{n}.nic{c} -> node{n}.cpu{c // 4}" for n in range(3) for c in range(8)],
            "nic[0-3] -> cpu0 of node[0-2], nic[4-7] -> cpu1 of node[0-2]",
        ),
        (
            [f"r{r}.node{n}.slot -- r{r}.node{n}.cpu" for r in range(3) for n in range(3)],
            "slot -- cpu of r[0-2].node[0-2]",
        ),
        (
            [f"r{r}.node{n}.slot -- r{r}.leaf" for r in range(3) for n in range(3)],
            "node[0-2].slot -- leaf of r[0-2]",
        ),
        (
            [f"node{n}.slot -> node{n}.cpu" for n in (0, 1, 2, 4)],
            "slot -> cpu of node0, node1, node2 and node4",
        ),
        # Two are written out, and what leaves a machine is no part of it.
        (
            [f"node{n}.slot -> node{n}.cpu" for n in range(2)],
            "node0.slot -> node0.cpu, node1.slot -> node1.cpu",
        ),
        ([f"node{n}.slot -> leaf0" for n in range(3)], "node[0-2].slot -> leaf0"),
        ([f"node{n}.slot -> node9.slot" for n in range(3)], "node[0-2].slot -> node9.slot"),
    ],
)
def test_what_is_in_machines_alike_names_them_once(names, text):
    assert shortened(names) == text


def test_a_long_source_is_a_number_and_said_once():
    source = "https://example.org/a/page/that/has/a/name/longer/than/fifty/letters"
    columns = (Column("figure"), Column("kind and source", breaks=True))
    rows = (("a", f"datasheet: {source}"), ("b", "formula: 2 x 3"), ("c", source), ("d", ""))
    table, heading, sources = citing([Table(columns, rows)])
    cells = ["datasheet [1]", "formula: 2 x 3", "[1]", ""]
    assert [row[1] for row in table.rows] == cells
    assert (heading, sources) == (Heading("Sources"), Bullets((f"[1] {source}",)))
    short = Table(columns, rows[1:2])
    assert list(citing([Text("x"), short])) == [Text("x"), short]
