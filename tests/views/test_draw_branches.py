"""What a picture shows of routes that branch and of several at once: all of it, and whose it is."""

from __future__ import annotations

import html
import re
from itertools import combinations, pairwise

import pytest

from topo.description.loading import load, loads
from topo.study.compare import compare
from topo.topology.build import build_topology
from topo.views.diagram.polylines import hop_lines
from topo.views.diagram.sheet import Sheet, draw

DRIVES = """
topo: 1
name: drives
devices:
  cpu[0-1]: epyc-9654
  ram[0-1]: {part: ddr5-4800, channels: 12}
  sw[0-3]: {part: pex89144, acs: off}
  gpu[0-7]: h200-sxm-141gb
  nvme[0-7]: nvme-gen5-7.68tb
links:
  - ram -- cpu: memory-bus
  - cpu0 -- cpu1: 4x xgmi 32 GT/s
  - sw -- cpu in blocks: pcie 5 x16
  - gpu -- sw in blocks: pcie 5 x16
  - nvme -- sw in blocks: pcie 5 x4
settings: {iommu: off}
workloads:
  fill: {read: 80 GB, from: nvme, to: gpu}
  spill: {write: 80 GB, from: gpu, to: nvme}
"""

TWO_SPINES = """
topo: 1
name: two-spines
devices:
  filer: {part: nvme-of-target, outside: yes}
  leaf[0-1]: quantum-2
  spine[0-1]: quantum-2
  nic0: connectx-7
  cpu0: xeon-8480c
  ram0: {part: ddr5-4800, channels: 8}
  gpu0: h100-sxm-80gb
links:
  - filer -- leaf0: infiniband ndr
  - leaf -- spine all to all: infiniband ndr
  - leaf1 -- nic0: infiniband ndr
  - nic0 -- cpu0: pcie 5 x16
  - ram0 -- cpu0: memory-bus
  - gpu0 -- cpu0: pcie 5 x16
workloads:
  load: {read: 80 GB, from: filer, to: gpu}
"""

GPU_MESH = """
topo: 1
name: gpu-mesh
devices:
  cpu0: epyc-9654
  ram0: {part: ddr5-4800, channels: 12}
  gpu[0-3]: mi300x
links:
  - ram0 -- cpu0: memory-bus
  - gpu -- cpu0: pcie 5 x16
  - gpu -- gpu all to all: xgmi 32 GT/s
workloads:
  exchange: {copy: 8 GB, from: gpu, to: gpu}
"""


def shown(topology, workload, together, **options):
    """Return the scenes of a workload's data paths, and their picture."""
    answer = compare(topology, workload=workload, **options).workloads[0]
    routes = {path.name: path.route for path in answer.paths}
    limits = {path.name: tuple(resource.id for resource in path.bound) for path in answer.paths}
    sheet = Sheet(topology, routes, limits, {}, "theoretical", side_by_side=not together)
    scenes = [panel.scene for panel in sheet.panels("auto")]
    return scenes, draw(topology, answer=answer, side_by_side=not together)


def texts(picture):
    return [html.unescape(text) for text in re.findall(r">([^<>]+)</text>", picture.svg())]


def on_line(point, piece):
    """Whether a point is on a line of level and upright parts."""
    x, y = point
    return any(
        min(a, c) - 1 <= x <= max(a, c) + 1 and min(b, d) - 1 <= y <= max(b, d) + 1
        for (a, b), (c, d) in pairwise(piece)
    )


def parts_of(scene, look):
    """Return how many parts a route's lines make that hang together by nothing.

    Lines meet where one ends on the other, or where both end at one box that is no bar.
    """
    lines = [
        (piece, {line.source, line.target})
        for line in hop_lines(scene).polylines
        if line.look == look
        for piece in line.pieces
    ]
    bars = {passage.bar for hop in scene.hops for passage in hop.passages}
    number = list(range(len(lines)))
    for (i, (a, a_ends)), (j, (b, b_ends)) in combinations(enumerate(lines), 2):
        meet = any(on_line(end, b) for end in (a[0], a[-1]))
        meet = meet or any(on_line(end, a) for end in (b[0], b[-1])) or bool(a_ends & b_ends - bars)
        if meet:
            number = [number[i] if n == number[j] else n for n in number]
    return len(set(number))


CASES = [
    pytest.param(DRIVES, workload, together, id=f"{workload}{'-together' * together}")
    for workload in ("fill", "spill")
    for together in (False, True)
]


@pytest.mark.parametrize(
    ("text", "workload", "together"),
    [*CASES, pytest.param(TWO_SPINES, "load", False, id="two-equal-ways-through-a-network")],
)
def test_every_branch_is_drawn_with_its_hops_and_joined(text, workload, together):
    scenes, _ = shown(build_topology(loads(text)), workload, together)
    for scene in scenes:
        covered = {wire for line in hop_lines(scene).polylines for wire, _ in line.lines}
        assert scene.walked == covered
        for route in scene.routes:
            links = {
                id(step.link)
                for subflow in route.route.subflows
                for transfer in subflow.transfers
                for step in (*transfer.walk, *(step for step, _ in transfer.shares))
            }
            mine = {part.wire for hop in scene.hops if hop.route is route for part in hop.stretches}
            wires = scene.grouping.wires
            assert mine == {w.key for w in wires if links & set(map(id, w.links))}
            assert parts_of(scene, route.look) == 1, route.label


def test_hops_with_one_number_along_one_wire_are_one_line_with_one_number():
    _, picture = shown(build_topology(loads(DRIVES)), "spill", together=False)
    paths = re.findall(r'"direct/number (\d)[^"]*" -> .* lp="([^"]+)"', picture.dot)
    assert paths
    assert len(paths) == len(set(paths))


def test_a_bottleneck_says_whose_it_is_where_several_routes_are_shown():
    topology = build_topology(loads(DRIVES))
    _, together = shown(topology, "fill", together=True)
    alarms = {text for text in texts(together) if text.startswith("BOTTLENECK")}
    assert alarms
    assert alarms <= {
        "BOTTLENECK of legacy",
        "BOTTLENECK of direct",
        "BOTTLENECK of legacy, direct",
    }
    _, apart = shown(topology, "fill", together=False)
    assert "BOTTLENECK" in texts(apart)
    assert not any(text.startswith("BOTTLENECK of") for text in texts(apart))


def test_a_mesh_that_binds_has_one_label():
    _, picture = shown(build_topology(loads(GPU_MESH)), "exchange", False, via=["peer-nvlink"])
    assert texts(picture).count("BOTTLENECK") == 1
    assert {"gpu0 -> gpu1 +11", "64 GB/s each"} <= set(texts(picture))


def test_a_mesh_of_unlike_links_says_how_many_are_how_fast():
    text = GPU_MESH.replace(
        "gpu -- gpu all to all: xgmi 32 GT/s",
        "gpu[0,2] -- gpu[1,3]: 4x xgmi 50 GB/s\n  - gpu[0-1] -- gpu[2-3]: xgmi 50 GB/s",
    )
    shown_texts = texts(draw(build_topology(loads(text))))
    assert "GPU to GPU: 2 x 200 GB/s, 2 x 50 GB/s" in shown_texts
    assert "xGMI" in shown_texts


def test_a_mesh_of_several_links_a_pair_is_called_by_its_medium():
    text = GPU_MESH.replace("gpu -- gpu all to all: xgmi", "gpu -- gpu all to all: 2x xgmi")
    assert "xGMI" in texts(draw(build_topology(loads(text))))


def test_a_link_that_binds_and_is_drawn_without_a_label_gets_its_alarm():
    text = "topo: 1\nname: ring\ndevices:\n  cpu[0-3]: xeon-8480c\nlinks:\n"
    text += "  - cpu -- cpu all to all: upi 16 GT/s\n"
    topology = build_topology(loads(text))
    picture = draw(topology, bottlenecks={"": ("cpu0 -> cpu2",)})
    assert texts(picture).count("BOTTLENECK") == 1


# --- a mesh of sockets ----------------------------------------------------------------------------


def sockets(count, links):
    return build_topology(
        loads(
            f"topo: 1\nname: sockets\ndevices:\n  cpu[0-{count - 1}]: xeon-8480c\n"
            f"  ram[0-{count - 1}]: {{part: ddr5-4800, channels: 8}}\n"
            f"links:\n  - ram -- cpu: memory-bus\n{links}"
        )
    )


def meshes(topology):
    (panel,) = Sheet(topology, {}, {}, {}, "theoretical", side_by_side=True).panels("auto")
    return panel.scene.zones.meshes, panel


@pytest.mark.parametrize("count", [5, 8, 16])
def test_many_sockets_that_are_all_linked_are_one_fabric(count):
    topology = sockets(count, "  - cpu -- cpu all to all: upi 16 GT/s\n")
    ((mesh,), panel) = meshes(topology)
    assert len(mesh.boxes) == count
    assert not any(track.across for track in panel.scene.layout.tracks.values())
    links = count * (count - 1) // 2
    shape = f"every CPU to every other: {links} x 32 GB/s"
    assert {"UPI", shape} <= set(texts(draw(topology)))


@pytest.mark.parametrize(
    ("count", "links"),
    [
        (4, "  - cpu -- cpu all to all: upi 16 GT/s\n"),
        (6, "".join(f"  - cpu{n} -- cpu{n + 1}: upi 16 GT/s\n" for n in range(5))),
    ],
    ids=["four-sockets", "a-row-of-six"],
)
def test_few_sockets_and_those_in_a_row_are_linked_one_by_one(count, links):
    found, panel = meshes(sockets(count, links))
    assert found == ()
    across = [track for track in panel.scene.layout.tracks.values() if track.across]
    assert len(across) == len(panel.scene.grouping.wires) - count


def test_rings_of_sockets_are_no_more_than_they_are():
    ring = "".join(f"  - cpu{n} -- cpu{(n + 1) % 6}: upi unknown\n" for n in range(6))
    assert "CPU to CPU: 6 links, rate unknown" in texts(draw(sockets(6, ring)))


def test_worked_machines_have_no_mesh_of_sockets():
    found, _ = meshes(build_topology(load("dgx-a100")))
    assert not [mesh for mesh in found if mesh.kind == "cpu"]
