"""Laws of a finished picture: nothing is written over a line, over other text, or outside."""

from __future__ import annotations

from dataclasses import replace
from itertools import combinations, pairwise

import pytest

import topo
from tests.machines import UNLIKE, shipped
from topo.description.locating import builtin_names
from topo.views.diagram.geometry import Rect
from topo.views.diagram.pdf import written
from topo.views.diagram.sheet import draw

# A machine and a workload in whose picture something once was where it should not be.
ONCE_WRONG = [
    ("azure-nc-a100-v4", "feed"),  # a label beside the first GPU's link
    ("dgx-b300", "feed"),  # and beside that of a card with a GPU below it
    ("asus-esc8000a-e13p", "collapse"),  # what binds inside a switch that a hop runs through
    ("genoad24-16gpu", "exchange"),
    ("oci-h100", "feed"),  # a CPU's name beside two hops
    ("gb300-tray", "rails"),  # a link round a card, along the socket's frame
    ("wrx90-two-pm50100", "feed"),
]


def over(a, b, *, by=0.5):
    return a.x + by < b.right and b.x + by < a.right and a.y + by < b.bottom and b.y + by < a.bottom


def holds(outer, inner):
    return (
        outer.x <= inner.x
        and inner.right <= outer.right
        and outer.y <= inner.y
        and inner.bottom <= outer.bottom
    )


def strokes(shape):
    """Yield what each piece of a line covers, and its arrow's head."""
    half = float(shape.attributes.get("penwidth", "1")) / 2
    for (x, y), (end_x, end_y) in pairwise(shape.points):
        across, down = (half, 0.0) if abs(x - end_x) < 1 else (0.0, half)
        left, top = min(x, end_x) - across, min(y, end_y) - down
        yield Rect(left, top, abs(x - end_x) + 2 * across, abs(y - end_y) + 2 * down)
    if shape.attributes.get("dir") == "forward":
        (x, y), (tip_x, tip_y) = shape.points[-2:]
        long = 10 * float(shape.attributes["arrowsize"])
        if abs(x - tip_x) < 1:
            top = tip_y - long if tip_y > y else tip_y
            yield Rect(tip_x - 0.4 * long, top, 0.8 * long, long)
        else:
            left = tip_x - long if tip_x > x else tip_x
            yield Rect(left, tip_y - 0.4 * long, long, 0.8 * long)


def sides(rect):
    """Return the sides of a frame or box: left and right, then upper and lower."""
    thin = 0.5
    return (
        Rect(rect.x - thin, rect.y, 2 * thin, rect.h),
        Rect(rect.right - thin, rect.y, 2 * thin, rect.h),
        Rect(rect.x, rect.y - thin, rect.w, 2 * thin),
        Rect(rect.x, rect.bottom - thin, rect.w, 2 * thin),
    )


def faults(picture):
    """Return what is wrong in a picture, in words."""
    page = Rect(0, 0, picture.width, picture.height)
    boxes = [shape for shape in picture.shapes if shape.kind == "box"]
    numbers = [shape.rect for shape in boxes if not shape.name]  # of hops, on their lines
    frames = [shape.rect for shape in picture.shapes if shape.kind == "frame"][1:]
    lines = [
        (shape.ends, stroke)
        for shape in picture.shapes
        if shape.kind == "line" and not shape.ends[0].startswith("sign ")
        for stroke in strokes(shape)
    ]
    texts = [
        (
            place,
            run.text,
            Rect(rect.x - 4, rect.y - 1, rect.w + 8, rect.h + 2) if run.ground else rect,
        )
        for place, shape in enumerate(picture.shapes)
        if shape.name or shape.kind != "box"
        for run, rect in written(shape)
        if run.text.strip()
    ]
    named = [shape for shape in boxes if shape.name and not shape.name.startswith("sign ")]
    wrong = []
    for place, text, rect in texts:
        on = {ends for ends, stroke in lines if over(rect, stroke)}
        wrong += [f"{text!r} on the line {ends}" for ends in on]
        wrong += [f"{text!r} under a number" for number in numbers if over(rect, number, by=1)]
        borders = (side for frame in frames for side in sides(frame))
        wrong += [f"{text!r} over a frame" for side in borders if over(rect, side, by=0)]
        wrong += [f"{text!r} outside"] * (not holds(page, rect))
        alike = picture.shapes[place].name.replace("text of ", "")
        wrong += [
            f"{text!r} over the border of {box.name}"
            for box in named
            if box.name.partition(" behind")[0] != alike
            and over(rect, box.rect, by=1)
            and not holds(box.rect, rect)
        ]
    for (place, text, rect), (other, other_text, other_rect) in combinations(texts, 2):
        if place != other and over(rect, other_rect):
            wrong.append(f"{text!r} over {other_text!r}")
    wrong += ["two numbers over each other" for a, b in combinations(numbers, 2) if over(a, b)]
    for ends, stroke in lines:
        for frame in frames:
            for side in sides(frame.within(-1.5)) + sides(frame.within(1.5)):
                along = min(side.bottom, stroke.bottom) - max(side.y, stroke.y)
                level = min(side.right, stroke.right) - max(side.x, stroke.x)
                if over(side, stroke, by=0) and max(along, level) > 30:
                    wrong.append(f"{ends} along a frame")
    return sorted(set(wrong))


@pytest.mark.parametrize("name", builtin_names())
def test_nothing_is_in_the_way_of_anything(name):
    machine = shipped(name)
    assert faults(draw(machine)) == []
    assert faults(draw(machine, answer=None)) == []


@pytest.mark.parametrize(("name", "workload"), ONCE_WRONG)
def test_nothing_is_in_the_way_where_it_once_was(name, workload):
    machine = shipped(name)
    answer = topo.compare(machine, workload=workload).workloads[0]
    assert faults(draw(machine, answer=answer)) == []
    assert faults(draw(machine, answer=answer, side_by_side=False)) == []


@pytest.mark.parametrize("name", UNLIKE)
def test_nothing_is_in_the_way_where_everything_binds(name):
    machine = shipped(name)
    answer = topo.compare(machine).workloads[0]
    every = {path.name: tuple(machine.resources) for path in answer.paths}
    routes = {path.name: path.route for path in answer.paths}
    assert faults(draw(machine, routes=routes, bottlenecks=every)) == []


@pytest.mark.parametrize(
    ("to", "fault"),
    [
        ((-20, 0), "on the line"),
        ((-40, 150), "over '"),
        ((-2000, 0), "outside"),
        ((110, 0), "over a frame"),
        ((-40, 150), "over the border of gpu2"),
    ],
)
def test_what_is_in_the_way_is_found(to, fault):
    picture = draw(shipped("gds-textbook"), answer=None)
    shapes = list(picture.shapes)
    place = next(n for n, each in enumerate(shapes) if "63.02 GB/s" in [r.text for r in each.text])
    shapes[place] = replace(shapes[place], rect=shapes[place].rect.moved(*to))
    assert any(fault in found for found in faults(replace(picture, shapes=tuple(shapes))))
