"""Where lines run: through no device that they do not enter and no label, on any machine.

The shared examples and real files lie beside the checkout; without them these cases are skipped.
"""

from __future__ import annotations

from itertools import chain, combinations, pairwise
from pathlib import Path

import pytest

from topo.description.loading import load, loads
from topo.discovery.importing import import_text
from topo.errors import TopoError
from topo.study.compare import compare
from topo.topology.build import build_topology
from topo.views.diagram.labels import placed_labels
from topo.views.diagram.polylines import hop_lines
from topo.views.diagram.sheet import Sheet

ROOT = Path(__file__).parents[2]
SHARED = ROOT.parent / "shared"
FOREIGN = {".xml", ".txt", ".bz2"}


def files():
    """Yield every worked machine, and every shared file with a machine in it."""
    yield from (pytest.param(path, id=path.stem) for path in sorted(ROOT.glob("topologies/*.yaml")))
    if not SHARED.exists():
        yield pytest.param(None, marks=pytest.mark.skip(reason=f"NO SHARED FILES at {SHARED}"))
    for folder in ("examples", "faults", "corpus"):
        for path in sorted((SHARED / folder).rglob("*")):
            if path.suffix in FOREIGN or (path.suffix == ".yaml" and path.parent.name == folder):
                yield pytest.param(path, id=f"{folder}-{path.name}")


def machine_of(path):
    """Return the machine of a file, skipping what is refused."""
    try:
        if path.suffix == ".yaml":
            return build_topology(load(str(path)))
        return build_topology(import_text(None, path.read_bytes(), path.name).description)
    except TopoError as error:
        pytest.skip(f"refused: {error}")


def sheets(topology):
    """Yield a machine alone, with the routes of its first workload over it, and with each alone."""
    yield Sheet(topology, {}, {}, {}, "theoretical", side_by_side=True)
    try:
        answer = compare(topology).workloads[0]
    except (TopoError, IndexError):
        return
    routes = {path.name: path.route for path in answer.paths}
    limits = {path.name: tuple(resource.id for resource in path.bound) for path in answer.paths}
    yield Sheet(topology, routes, limits, {}, "theoretical", side_by_side=False)
    if len(routes) > 1:
        yield from (
            Sheet(topology, {name: route}, limits, {}, "theoretical", side_by_side=False)
            for name, route in routes.items()
        )


def crosses(start, stop, rect):
    """Whether a line runs a point or more inside a rectangle (Liang and Barsky)."""
    (x, y), (end_x, end_y) = start, stop
    inside = rect.within(1.0)
    first, last = 0.0, 1.0
    for towards, room in (
        (x - end_x, x - inside.x),
        (end_x - x, inside.right - x),
        (y - end_y, y - inside.y),
        (end_y - y, inside.bottom - y),
    ):
        if not towards:
            if room < 0:
                return False
        elif towards < 0:
            first = max(first, room / towards)
        else:
            last = min(last, room / towards)
    return first < last


def strays(scene):
    """Yield each line with a box that it runs through and does not enter."""
    lines = [(key, track.points, {track.a, track.b}) for key, track in scene.layout.tracks.items()]
    box_of = scene.grouping.box_of
    for drawn, polyline in zip(scene.hops, hop_lines(scene).polylines, strict=True):
        entered = {box_of[drawn.hop.source], box_of[drawn.hop.target]}
        entered |= {box for part in drawn.stretches for box in (part.source, part.target)}
        lines += [(polyline.label, piece, entered) for piece in polyline.pieces]
    for name, points, entered in lines:
        for start, stop in pairwise(points):
            for box, rect in scene.layout.boxes.items():
                if box not in entered and crosses(start, stop, rect):
                    yield name, sorted(entered), box


def written_over(scene):
    """Yield each label with a line that runs through it, or a box or another label over it."""
    polylines = hop_lines(scene).polylines
    covered = {key for polyline in polylines for key, _ in polyline.lines}
    lines = [track.points for key, track in scene.layout.tracks.items() if key not in covered]
    lines += [piece for polyline in polylines for piece in polyline.pieces]
    placed = placed_labels(scene, polylines)
    rects = [(scene.labels[key], block.rect) for key in placed for block in placed[key]]
    for text, rect in rects:
        for start, stop in chain.from_iterable(map(pairwise, lines)):
            if crosses(start, stop, rect):
                yield text, start, stop
        for box, box_rect in scene.layout.boxes.items():
            if overlap(rect, box_rect):
                yield text, box
    for (text, rect), (next_text, next_rect) in combinations(rects, 2):
        if overlap(rect, next_rect):
            yield text, next_text


def overlap(a, b):
    """Whether two rectangles have a point or more of both directions in common."""
    wide = min(a.right, b.right) - max(a.x, b.x)
    return wide > 1 and min(a.bottom, b.bottom) - max(a.y, b.y) > 1


@pytest.mark.parametrize("path", list(files()))
def test_no_line_runs_through_a_device_that_it_does_not_enter_or_a_label(path):
    # Six wires end on the top of a CPU of 78 points there, and its memory's label is as wide.
    crowded = path.name == "gb200-4gpu-8nic-gpunuma.txt"
    for sheet in sheets(machine_of(path)):
        for collapse in ("auto",) if sheet.routes else ("auto", False):
            for panel in sheet.panels(collapse):
                assert not list(strays(panel.scene))
                assert crowded or not list(written_over(panel.scene))


UNDER_A_ROOT = """
topo: 1
name: under-a-root
devices:
  filer: {part: nvme-of-target, outside: yes}
  cpu0: xeon-8480c
  rc0: root-complex
  ram0: {part: ddr5-4800, channels: 8}
  sw[0-2]: pcie-switch-gen5
  nic[0-2]: connectx-7
  gpu[0-2]: h100-sxm-80gb
links:
  - ram0 -- cpu0: memory-bus
  - rc0 -- cpu0: pcie 5 x16
  - sw -- rc0: pcie 5 x16
  - nic -- sw: pcie 5 x16
  - gpu -- sw: pcie 5 x16
  - filer -- nic: infiniband ndr
workloads:
  load: {read: 80 GB each, from: filer, to: gpu}
"""

TWO_TIERS = """
topo: 1
name: two-tiers
devices:
  filer[0-1]: {part: nvme-of-target, outside: yes}
  spine[0-1]: quantum-2
  leaf[0-2]: quantum-2
  cpu0: xeon-8480c
  ram0: {part: ddr5-4800, channels: 8}
  nic[0-2]: connectx-7
  gpu0: h100-sxm-80gb
links:
  - filer -- leaf0: infiniband ndr
  - leaf -- spine all to all: infiniband ndr
  - leaf -- nic: infiniband ndr
  - leaf0 -- leaf1: infiniband ndr
  - nic -- cpu0: pcie 5 x16
  - ram0 -- cpu0: memory-bus
  - gpu0 -- cpu0: pcie 5 x16
workloads:
  load: {read: 80 GB, from: filer, to: gpu}
"""

FIVE_NVSWITCHES = """
topo: 1
name: five-nvswitches
devices:
  cpu[0-3]: xeon-8480c
  ram[0-3]: {part: ddr5-4800, channels: 8}
  gpu[0-7]: h100-sxm-80gb
  nvsw[0-4]: nvswitch-3
links:
  - ram -- cpu: memory-bus
  - cpu -- cpu all to all: upi 16 GT/s
  - gpu -- cpu in blocks: pcie 5 x16
  - gpu -- nvsw all to all: 3x nvlink 4
"""


EIGHT_SOCKETS = """
topo: 1
name: eight-sockets
devices:
  filer: {part: nvme-of-target, outside: yes}
  cpu[0-7]: xeon-8480c
  ram[0-7]: {part: ddr5-4800, channels: 8}
  nic[0-7]: connectx-7
  gpu[0-7]: h100-sxm-80gb
  nvsw: nvswitch-3
links:
  - ram -- cpu: memory-bus
  - cpu -- cpu all to all: upi 16 GT/s
  - nic -- cpu: pcie 5 x16
  - filer -- nic[0-1]: infiniband ndr
  - gpu -- cpu: pcie 5 x16
  - gpu -- nvsw: 18x nvlink 4
workloads:
  load: {read: 80 GB each, from: filer, to: gpu}
"""

AWKWARD = {
    "cards-under-a-root-complex": UNDER_A_ROOT,
    "two-tiers-of-network-switches": TWO_TIERS,
    "switches-for-each-gpu": FIVE_NVSWITCHES,
    "a-mesh-of-sockets-and-a-switch-of-gpus": EIGHT_SOCKETS,
}


@pytest.mark.parametrize("text", AWKWARD.values(), ids=AWKWARD)
def test_a_wire_goes_round_what_is_in_its_way(text):
    for sheet in sheets(build_topology(loads(text))):
        for collapse in ("auto", False):
            for panel in sheet.panels(collapse):
                assert not list(strays(panel.scene))
                assert not list(written_over(panel.scene))


def test_a_line_that_turns_ends_at_its_two_boxes():
    (panel,) = next(sheets(build_topology(loads(UNDER_A_ROOT)))).panels(False)
    layout = panel.scene.layout
    turning = [track for track in layout.tracks.values() if len(track.points) > 2]
    assert turning
    for track in turning:
        for box, (x, y) in ((track.a, track.points[0]), (track.b, track.points[-1])):
            rect = layout.boxes[box]
            assert rect.x <= x <= rect.right
            assert y in (rect.y, rect.bottom)


@pytest.mark.parametrize("text", AWKWARD.values(), ids=AWKWARD)
def test_hops_side_by_side_leave_a_box_within_its_sides(text):
    for sheet in sheets(build_topology(loads(text))):
        for panel in sheet.panels("auto"):
            boxes, tracks = panel.scene.layout.boxes, panel.scene.layout.tracks
            for polyline in hop_lines(panel.scene).polylines:
                for wire, points in polyline.lines:
                    ends = (boxes[tracks[wire].a], boxes[tracks[wire].b])
                    for x, _ in (points[0], points[-1]):
                        assert any(rect.x <= x <= rect.right for rect in ends), polyline
