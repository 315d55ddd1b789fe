"""The picture of a sweep: what is a spot, what a step, and that numbers can be read."""

from __future__ import annotations

from itertools import pairwise
from xml.etree import ElementTree as ET

import pytest

from tests.machines import ONE_SOCKET, built
from topo.errors import DrawError
from topo.study.front import Swept, swept
from topo.study.sweep import axis_of, planned
from topo.study.variants import Outcome, Question
from topo.views.diagram.front import draw_front


def found(rows, *, sized=True, name="tiny") -> Swept:
    """Return a sweep's result with these (cost, time), as if they had been found."""
    machine = built(ONE_SOCKET.replace("name: tiny", f"name: {name}"))
    sweep = planned(machine, [axis_of("ram.price", map(str, range(len(rows))))], Question())
    outcomes = {
        n: Outcome("load", "direct", "ok", 1e9 / time, time if sized else None, cost=cost)
        for n, (cost, time) in enumerate(rows)
    }
    return swept(sweep, outcomes)


def texts(picture):
    root = ET.fromstring(picture.svg())
    return ["".join(node.itertext()) for node in root.iter("{http://www.w3.org/2000/svg}text")]


def boxes_of(picture, colour):
    paint = [(shape.rect, shape.attributes) for shape in picture.shapes if shape.kind == "box"]
    return [rect for rect, attributes in paint if attributes.get("fillcolor") == colour]


@pytest.mark.parametrize("theme", ["light", "dark"])
def test_the_front_stands_in_words_below(theme):
    picture = draw_front(found([(100, 8.0), (300, 2.0), (200, 9.0)]), theme=theme)
    words = texts(picture)
    assert "100: 8 s, ram.price 0" in words
    assert "300: 2 s, ram.price 1" in words
    assert not any(text.startswith("200: ") for text in words)
    assert "up: time until the last byte; across: cost" in words


def test_less_time_is_lower_and_a_higher_rate_higher():
    from topo.views.diagram.picture import theme_named

    colour = theme_named("light").routes[1].colour
    for sized in (True, False):
        rects = boxes_of(draw_front(found([(100, 8.0), (300, 2.0)], sized=sized)), colour)
        marks = sorted((r for r in rects if r.w == r.h == 7), key=lambda rect: rect.x)
        assert len(marks) == 2
        assert (marks[1].y > marks[0].y) is sized


def test_costs_that_hardly_differ_have_the_axis_to_themselves():
    from topo.views.diagram.picture import theme_named

    colour = theme_named("light").routes[1].colour
    picture = draw_front(found([(200_000, 8.0), (206_000, 2.0), (203_000, 4.0)]))
    assert (
        "up: time until the last byte; across: cost, not from 0: what differs is a small part"
        in (texts(picture))
    )
    marks = sorted(r.x for r in boxes_of(picture, colour) if r.w == r.h == 7)
    assert marks[1] - marks[0] > 200
    assert marks[2] - marks[1] > 200


def test_numbers_do_not_lie_on_each_other():
    rows = [(100 + n, 50.0 - n / 9) for n in range(60)]
    picture = draw_front(found(rows))
    labels = [
        shape.rect
        for shape in picture.shapes
        if shape.kind == "words"
        and shape.rect.x > 60
        and "".join(r.text for r in shape.text).isdigit()
        and shape.rect.y < 370
    ]
    numbers = sorted((rect for rect in labels if rect.y > 66), key=lambda rect: rect.x)
    assert len(numbers) > 3
    for left, right in pairwise(numbers):
        assert right.x >= left.right or abs(right.y - left.y) >= 10
    assert "and 48 designs more between them" in texts(picture)


def test_as_many_spots_as_there_is_room_for():
    rows = [(1000 + n % 17, 1.0 + (n * 7919 % 1009) / 100) for n in range(4000)]
    assert len(draw_front(found(rows)).shapes) < 3000


def test_whatever_it_is_called_is_text():
    picture = draw_front(found([(1, 1.0)], name="'<script>&amp;\"x'"))
    assert any('<script>&amp;"x: 1 of 1 designs' in text for text in texts(picture))


def test_nothing_to_hold_designs_against_is_said():
    with pytest.raises(DrawError, match="no design has both"):
        draw_front(found([(None, 1.0)]))
