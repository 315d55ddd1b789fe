"""What failed stays in the picture, marked, and so is who stops for it; nothing overlaps."""

from __future__ import annotations

import re
from itertools import combinations

import pytest

from tests.machines import UNLIKE
from tests.views.test_draw import labels, overlap, texts
from topo.study.compare import compare
from topo.study.failures import failures, parts_of, stopped_devices
from topo.topology.build import build_topology, load
from topo.topology.lost import with_lost
from topo.views.diagram.geometry import Rect
from topo.views.diagram.labels import CROSS, middle_of
from topo.views.diagram.outage import with_outage
from topo.views.diagram.picture import THEMES
from topo.views.diagram.sheet import Sheet, draw, legend_signs


def drawn(name, *lost, **changes):
    """A picture of a machine that has lost something, by its usual data path."""
    whole = load(name)
    left = whole.without(*lost)
    answer = compare(left, workload=left.description.workloads[0].name, via=["direct"], **changes)
    return draw(left, answer=answer.workloads[0], whole=whole)


def boxes(picture, name):
    """The shapes of a box by its name."""
    return [shape for shape in picture.shapes if shape.kind == "box" and shape.name == name]


def lines_between(picture, *ends):
    return [
        shape
        for shape in picture.shapes
        if shape.kind == "line" and set(shape.ends) == set(ends) and shape.ends[0] != shape.ends[1]
    ]


def test_a_device_that_failed_stays_with_its_links():
    picture = drawn("gds-textbook", "slot1")
    (slot,) = boxes(picture, "slot1")
    assert slot.attributes["style"] == "filled,rounded,dashed"
    assert "FAILED" in texts(picture)
    for end in ("root0", "storage"):
        (wire,) = lines_between(picture, "slot1", end)
        assert wire.attributes["style"] == "dashed"
    # The cross is two lines through one point, in the box.
    crossed = [shape for shape in picture.shapes if "slot1 cross" in shape.ends]
    assert len(crossed) == 2
    assert all(
        slot.rect.x < x < slot.rect.right and slot.rect.y < y < slot.rect.bottom
        for line in crossed
        for x, y in line.points
    )
    assert "Textbook server with GPUDirect Storage, without slot1" in texts(picture)


def test_the_flows_are_those_after_the_failure():
    """Without slot1 all goes by slot2: no hop touches what failed, and 50 GB/s are left."""
    picture = drawn("gds-textbook", "slot1")
    hops = [shape for shape in picture.shapes if shape.attributes.get("dir") == "forward"]
    (slot,) = boxes(picture, "slot1")
    assert hops
    for hop in hops:
        for x, y in hop.points:
            assert not (slot.rect.x < x < slot.rect.right and slot.rect.y < y < slot.rect.bottom)
    assert any("50 GB/s" in text for text in texts(picture))


def test_who_stops_is_marked():
    picture = drawn("dgx-h100", "nic3")
    (gpu,) = boxes(picture, "gpu3")
    assert gpu.attributes["style"] == "filled,rounded,dotted"
    assert texts(picture).count("NO WAY LEFT") == 1
    assert "has no way left" in texts(picture)
    assert "failed, out of order" in texts(picture)


def test_all_that_stop_are_marked_and_no_route_is_explained():
    picture = drawn("gds-textbook", "storage")
    assert texts(picture).count("NO WAY LEFT") == 8
    assert any(text.startswith("not possible") for text in texts(picture))
    assert "direct path" not in texts(picture)


def test_what_is_refused_for_another_reason_does_not_stop():
    """Its GPUs do no peer-to-peer, with the drive or without."""
    whole = load("workstation-4gpu")
    part = next(part for part in parts_of(whole) if part.kind == "nvme")
    left = whole.without(part.first)
    answer = compare(left, via=["direct"]).workloads[0]
    assert answer["direct"].verdict == "refused"
    assert stopped_devices(whole, compare(whole, via=["direct"]).workloads[0]) == frozenset()


def test_one_cable_of_several():
    whole = load("dgx-h100")
    left = whole.without("gpu0 -- nvswitch")
    lost = with_lost(left, whole)
    (link,) = lost.links
    assert (link.cable.count, {link.a.device, link.b.device}) == (1, {"gpu0", "nvswitch"})
    assert not lost.devices
    picture = draw(left, answer=None, whole=whole)
    styles = [
        line.attributes["style"]
        for line in lines_between(picture, "gpu0", "nvswitch")
        if "style" in line.attributes
    ]
    assert styles == ["dashed"]
    assert "17x NVLink 4" in texts(picture)
    assert texts(picture).count("FAILED") == 1
    assert sum("cross" in shape.ends[0] for shape in picture.shapes if shape.kind == "line") == 4


def test_two_things_failed():
    picture = drawn("dgx-h100", "slot1", "gpu0 -- nic0")
    assert texts(picture).count("FAILED") == 2  # the card, and the cable
    assert texts(picture).count("NO WAY LEFT") == 1
    assert "DGX H100, NVMe-oF storage on Slot1 and Slot2, without slot1 and gpu0 -- nic0" in texts(
        picture
    )


def test_a_whole_server_out():
    whole = load("pod-32")
    left = whole.without("node3")
    lost = with_lost(left, whole)
    assert len(lost.devices) == sum(name.startswith("node3.") for name in whole.devices)
    assert len(lost.topology.devices) == len(whole.devices)
    assert sum(link.cable.count for link in lost.topology.links) == sum(
        link.cable.count for link in whole.links
    )


@pytest.mark.parametrize("name", UNLIKE)
def test_nothing_is_lost_from_the_picture(name):
    """Devices and cables of what is left and of what failed are those of the whole."""
    whole = load(name)
    cables = sum(link.cable.count for link in whole.links)
    for part in parts_of(whole):
        lost = with_lost(whole.without(part.first), whole)
        assert list(lost.topology.devices) == list(whole.devices)
        assert sum(link.cable.count for link in lost.topology.links) == cables, part.first


def test_of_a_folded_cluster_what_failed_is_one_of_many():
    result = failures(load("pod-32"), via="direct")
    assert result.topology.folding is not None
    loss = next(loss for loss in result.losses if loss.parts[0].kind == "network-switch")
    left = result.variants(loss)
    lost = with_lost(left, result.topology)
    (leaf,) = lost.devices
    assert leaf == loss.parts[0].first
    far = {link.b.device for link in lost.links}
    assert far <= set(left.devices)
    # 16 cards below it and 8 cables to each of two spines, however they are folded.
    assert sum(link.times[0] * link.cable.count for link in lost.links) == 32


def test_a_device_of_a_folded_server_is_drawn_in_it():
    whole = build_topology(load("pod-32").description, fold_from=1)
    base = failures(load("pod-32"), via="direct").topology
    left = base.without("node7.slot2")
    topology, outage = with_outage(left, base, None)
    assert outage.devices == {"node7.slot2"}
    assert "node7.slot2" in topology.devices
    ends = {link.b.device for link in topology.links if id(link) in outage.links}
    assert "node7.cpu0" in ends
    assert whole.devices  # the flat file folds to itself


@pytest.mark.parametrize("name", [name for name in UNLIKE if name != "pod-32"])
def test_nothing_overlaps_whatever_fails(name):
    whole = load(name)
    workload = whole.description.workloads[0].name
    for part in parts_of(whole):
        left = whole.without(part.first)
        answer = compare(left, workload=workload).workloads[0]
        topology, outage = with_outage(left, whole, answer)
        (path, *_) = answer.paths
        sheet = Sheet(
            topology,
            {path.name: path.route},
            {},
            {},
            "theoretical",
            side_by_side=True,
            outage=outage,
        )
        (panel,) = sheet.panels("auto")
        scene = panel.scene
        places = scene.layout.boxes
        for a, b in combinations(places, 2):
            assert not overlap(places[a], places[b]), (part.first, a, b)
        rects = dict(labels(scene))
        for a, b in combinations(rects, 2):
            assert not overlap(rects[a], rects[b]), (part.first, scene.labels[a[0]])
        crosses = [
            middle_of(scene.layout.tracks[wire.key].points)
            for wire in scene.grouping.wires
            if scene.is_broken(wire) and wire.key in scene.layout.tracks
        ]
        for rect in rects.values():
            for box in places:
                assert not overlap(rect, places[box]), (part.first, box)
            for x, y in crosses:
                cross = Rect(x - CROSS / 2, y - CROSS / 2, CROSS, CROSS)
                assert not overlap(rect, cross), part.first
        marks = {scene.mark(key) for key in scene.grouping.boxes} | {
            "failed" for wire in scene.grouping.wires if wire.failed
        }
        assert "failed" in marks
        assert {sign.kind for sign in legend_signs((scene,))} >= marks - {""}


@pytest.mark.parametrize("theme", THEMES)
def test_marks_have_the_theme_s_colours(theme):
    whole = load("gds-textbook")
    picture = draw(whole.without("slot1"), answer=None, whole=whole, theme=theme)
    assert re.search(THEMES[theme].ink, picture.svg(), re.IGNORECASE)
    (slot,) = boxes(picture, "slot1")
    assert slot.attributes["color"] == THEMES[theme].ink


def test_without_anything_lost_the_picture_is_as_before():
    whole = load("dgx-h100")
    assert draw(whole, answer=None, whole=whole).dot == draw(whole, answer=None).dot
