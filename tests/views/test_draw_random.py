"""Random machines: every one can be drawn, and nothing lies on anything else."""

from __future__ import annotations

from itertools import combinations

import pytest
from hypothesis import given, note
from hypothesis import strategies as st

from tests.machines import built
from tests.random_machines import sketches
from topo.datapaths.registry import data_path
from topo.routes.router import Router
from topo.views.diagram.sheet import Sheet, draw


@given(sketches(), st.sampled_from(["legacy", "direct", "legacy-pageable"]), st.booleans())
def test_boxes_never_overlap(sketch, path, routed):
    topology = built(sketch.text())
    note(sketch.text())
    routes = {}
    if routed:
        gpu, storage = topology.of_kind("gpu")[0], topology.of_kind("storage")[0]
        known_path = data_path(topology.description, path)
        routes = {path: Router(topology).route(known_path, (storage.name,), gpu.name, "read")}
    sheet = Sheet(topology, routes, {}, {}, "theoretical", side_by_side=True)
    for level in range(5):
        for panel in sheet.panels_at(level):
            layout = panel.scene.layout
            for a, b in combinations(layout.boxes.values(), 2):
                beside = a.right <= b.x + 0.1 or b.right <= a.x + 0.1
                above = a.bottom <= b.y + 0.1 or b.bottom <= a.y + 0.1
                assert beside or above
            for rect in layout.boxes.values():
                assert rect.x >= -0.1
                assert rect.right <= layout.width + 0.1
                assert rect.bottom <= layout.height + 0.1


@given(sketches())
def test_every_upright_wire_ends_at_its_two_boxes(sketch):
    topology = built(sketch.text())
    sheet = Sheet(topology, {}, {}, {}, "theoretical", side_by_side=False)
    (panel,) = sheet.panels_at(0)
    layout = panel.scene.layout
    for track in layout.tracks.values():
        for box, (x, y) in ((track.a, track.points[0]), (track.b, track.points[-1])):
            rect = layout.boxes[box]
            assert rect.x - 0.1 <= x <= rect.right + 0.1
            assert rect.y - 0.1 <= y <= rect.bottom + 0.1


@given(sketches())
def test_every_device_is_in_the_dot_text(sketch):
    topology = built(sketch.text())
    text = draw(topology, answer=None, collapse=False).dot
    for name in topology.devices:
        assert f"\t{name} [" in text


@pytest.mark.slow
@given(sketches())
def test_an_engine_takes_it(sketch):
    assert "<svg" in draw(built(sketch.text()), answer=None).svg()
