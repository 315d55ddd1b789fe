"""Timelines as pictures: what they show, that it is readable, that nothing lies on anything."""

from __future__ import annotations

import re
from itertools import combinations, pairwise

import pytest
from hypothesis import given
from hypothesis import strategies as st

import topo
from tests.machines import ONE_SOCKET, built, shipped
from topo.errors import DrawError
from topo.study.timeline import simulate_each
from topo.views.diagram.timeline import (
    bars_of,
    draw_timeline,
    notes_of,
    panel_title,
    round_up,
    ticks,
)


def written(picture):
    """Return every text with its rectangle, in points from the left upper corner."""
    texts = []
    for line in picture.dot.splitlines():
        if not re.match(r'\t"?words \d+', line):
            continue
        x, y = map(float, re.search(r'pos="([-\d.]+),([-\d.]+)"', line).groups())
        wide = 72 * float(re.search(r"\bwidth=\"?([\d.]+)", line)[1])
        high = 72 * float(re.search(r"\bheight=\"?([\d.]+)", line)[1])
        text = re.sub(r"<[^>]+>", "", re.search(r"label=<(.*)> height", line)[1])
        size = float(re.search(r'POINT-SIZE="([\d.]+)"', line)[1])
        texts.append((text, size, (x - wide / 2, picture.height - y - high / 2, wide, high)))
    return texts


def over(a, b):
    return (
        a[0] < b[0] + b[2] - 0.5
        and b[0] < a[0] + a[2] - 0.5
        and a[1] < b[1] + b[3] - 1.5
        and b[1] < a[1] + a[3] - 1.5
    )


def textbook(via="legacy"):
    return topo.simulate(shipped("gds-textbook"), via=via)


def staggered(lines):
    text = (
        ONE_SOCKET.split("workloads:")[0]
        + "workloads:\n"
        + "".join(f"  {line}\n" for line in lines)
    )
    return topo.simulate(built(text), via="legacy")


def test_it_says_who_when_how_fast_and_why():
    texts = [text for text, _, _ in written(draw_timeline(textbook()))]
    assert "gds-textbook: the workloads over time" in texts
    assert "legacy: all done at 7.8 s" in texts
    for text in ("load", "checkpoint", "7.8 s", "2.8 s", "50 GB/s", "100 GB/s", "the RAM buses"):
        assert text in texts
    assert "load 50 GB/s, checkpoint 50 GB/s: the RAM buses (ram0/bus, ram1/bus)" in texts


def test_directions_are_told_apart_where_a_name_has_two():
    texts = [text for text, _, _ in written(draw_timeline(textbook("direct")))]
    assert "load 100 GB/s: the cards' chips (slot1/chip in, slot2/chip in)" in texts
    assert "checkpoint 100 GB/s: the cards' chips (slot1/chip out, slot2/chip out)" in texts


def test_several_data_paths_share_their_scales():
    simulations = [
        run for _, run in simulate_each(shipped("gds-textbook"), via=("legacy", "direct"))
    ]
    texts = [text for text, _, _ in written(draw_timeline(*simulations))]
    for text in ("legacy: all done at 7.8 s", "direct: all done at 6.4 s"):
        assert text in texts
    assert texts.count("7 s") == 2


@pytest.mark.parametrize("theme", ["light", "dark"])
@pytest.mark.parametrize("name", ["gds-textbook", "dgx-h100", "dgx-a100", "gds-loses"])
def test_text_is_readable_and_lies_on_nothing(name, theme):
    simulations = [run for _, run in simulate_each(shipped(name), via=("legacy", "direct"))]
    picture = draw_timeline(*simulations, theme=theme)
    texts = written(picture)
    assert len(texts) > 20
    for text, size, (x, y, wide, high) in texts:
        assert size * 1600 / picture.width >= 10, text
        assert x >= 0, text
        assert y >= 0, text
        assert x + wide <= picture.width, text
        assert y + high <= picture.height, text
    for (text, _, above), (text_below, _, below) in combinations(texts, 2):
        assert not over(above, below), (text, text_below)


def test_a_later_start_is_marked():
    simulation = staggered(
        [
            "a: {read: 100 GB, from: storage, to: gpu0}",
            "b: {read: 50 GB, from: storage, to: gpu0, start: 1 s}",
        ]
    )
    assert "from 1 s" in [text for text, _, _ in written(draw_timeline(simulation))]


def test_what_does_not_change_is_one_bar():
    simulation = textbook("direct")
    (bar,) = bars_of(simulation, simulation["load"], 0.0)
    assert (bar.start, bar.reason) == (0, "the cards' chips")
    assert bar.end == pytest.approx(6.4)
    assert len(bars_of(textbook(), textbook()["load"], 0.0)) == 2


def test_bars_too_small_to_see_join_at_their_mean_rate():
    simulation = staggered(
        [
            "a: {read: 100 GB, from: storage, to: gpu0}",
            "b: {read: 50 MB, from: storage, to: gpu0, start: 1 s}",
        ]
    )
    bars = bars_of(simulation, simulation["a"], 0.01)
    assert sum(bar.rate * (bar.end - bar.start) for bar in bars) == pytest.approx(100e9)
    assert all(bar.end - bar.start >= 0.01 for bar in bars)


def test_of_many_spans_the_longest_are_told():
    lines = [
        f"w{n}: {{read: {n + 1} GB, from: storage, to: gpu0, start: {n} s}}" for n in range(20)
    ]
    simulation = staggered(lines)
    notes, more = notes_of(simulation)
    assert (len(notes), more) == (12, len(simulation.moments) - 12)
    assert [note.number for note in notes] == sorted(note.number for note in notes)
    picture = draw_timeline(simulation)
    assert any("shorter spans" in text for text, _, _ in written(picture))
    assert picture.svg().startswith("<")


def test_hostile_and_long_names_do_no_harm():
    name = "a" * 200
    simulation = staggered([f"{name}: {{read: 100 GB, from: storage, to: gpu0}}"])
    picture = draw_timeline(simulation)
    for _, _, (x, _, wide, _) in written(picture):
        assert x + wide <= picture.width


def test_each_by_its_own_path_is_said():
    simulation = topo.simulate(
        shipped("gds-textbook"), via={"load": "legacy", "checkpoint": "direct"}
    )
    assert panel_title(simulation) == "load by legacy, checkpoint by direct: all done at 6.4 s"


def test_the_same_timeline_is_the_same_bytes():
    assert draw_timeline(textbook()).svg() == draw_timeline(textbook()).svg()
    assert draw_timeline(textbook()).png().startswith(b"\x89PNG")


def test_there_are_two_themes():
    light, dark = (draw_timeline(textbook(), theme=theme).dot for theme in ("light", "dark"))
    assert light != dark
    with pytest.raises(DrawError, match="no theme blue"):
        draw_timeline(textbook(), theme="blue")


@given(st.floats(1e-9, 1e9))
def test_ticks_are_round_few_and_within(end):
    times = ticks(end)
    assert 2 <= len(times) <= 11
    assert times[0] == 0
    assert times[-1] <= end * (1 + 1e-9)
    steps = [later - earlier for earlier, later in pairwise(times)]
    assert max(steps) == pytest.approx(min(steps))


@given(st.floats(1e-3, 1e15))
def test_a_scale_is_round_and_enough(value):
    top = round_up(value)
    assert value * (1 - 1e-9) <= top <= value * 1.7
