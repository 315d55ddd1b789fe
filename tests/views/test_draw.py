"""Pictures: what they show, that they stay readable, that hostile names do no harm."""

from __future__ import annotations

import os
import re
import struct
import subprocess
import sys
import xml.etree.ElementTree as ET
from dataclasses import replace
from pathlib import Path

import pytest

from tests.machines import UNLIKE
from topo.datapaths.registry import data_path
from topo.description.description import End
from topo.description.loading import load, loads
from topo.errors import DrawError
from topo.routes.router import Router
from topo.topology.build import build_topology
from topo.topology.topology import Topology
from topo.views.diagram import picture as pictures
from topo.views.diagram.hops import hops_of
from topo.views.diagram.labels import placed_labels
from topo.views.diagram.paint import Painter
from topo.views.diagram.picture import THEMES, Canvas, Picture, looks_of
from topo.views.diagram.polylines import crossings, hop_lines
from topo.views.diagram.sheet import WIDEST, Sheet, arranged, draw, legend_rows, legend_signs

# Not those of many servers (`use:`): with hundreds of devices a picture has rules of its own.
MACHINES = sorted(
    path.stem
    for path in (Path(__file__).parents[2] / "topologies").glob("*.yaml")
    if not re.search(r"^[^#]*use:", path.read_text(encoding="utf-8"), re.MULTILINE)
)


def kinds_of(name):
    return {device.kind for device in load(name).devices}


WITH_STORAGE = [  # and GPUs that read from there
    name
    for name in MACHINES
    if {"gpu"} < {kind for kind in kinds_of(name) if kind in ("gpu", "storage", "nvme")}
]
UNLIKE_SERVERS = [name for name in WITH_STORAGE if name in UNLIKE]

SMALL = """
topo: 1
name: small
title: A small server
devices:
  storage: {part: nvme-of-target, outside: yes}
  slot1: {part: connectx-7-dual-port, label: Slot1}
  cpu0: xeon-8480c
  ram0: {part: ddr5-4800, channels: 8}
  gpu[0-3]: h100-sxm-80gb
links:
  - storage -- slot1: 2x infiniband ndr
  - slot1 -- cpu0: pcie 5 x16
  - ram0 -- cpu0: memory-bus
  - gpu -- cpu0: pcie 5 x16
"""

MANY = SMALL.replace("gpu[0-3]", "gpu[0-15]").replace(
    "gpu -- cpu0: pcie 5 x16", "gpu -- cpu0: pcie 5 x4"
)

HOSTILE = r"""
topo: 1
name: hostile
title: "\"<b>&\\ \\N \\G </TABLE> 漢字 %s"
devices:
  title: {part: xeon-8480c, label: "<i>a&b</i>"}
  ram0: {part: ddr5-4800, channels: 8, label: "a\"b\\"}
  node: {part: l40s, label: "<\\N ünï>"}
  graph: {part: nvme-gen5-4tb, label: "\\G\\L\\n"}
links:
  - ram0 -- title: memory-bus
  - node -- title: pcie 4 x16
  - graph -- title: pcie 5 x4
"""


def machine(text):
    return build_topology(loads(text))


def routes_of(topology, *paths, gpu="gpu0", storage="storage", direction="read"):
    router = Router(topology)
    return {
        path: router.route(data_path(topology.description, path), (storage,), gpu, direction)
        for path in paths
    }


@pytest.fixture(scope="module")
def small():
    return machine(SMALL)


@pytest.fixture(scope="module")
def both(small):
    return draw(
        small,
        routes=routes_of(small, "legacy", "direct"),
        bottlenecks={"legacy": ("ram0/bus", "slot1/chip in"), "direct": ("slot1 -> cpu0",)},
        captions={"legacy": "50 GB/s, limited by the card"},
    )


def texts(picture):
    """Return the texts of a picture, in order."""
    root = ET.fromstring(picture.svg())
    return [element.text or "" for element in root.iter("{http://www.w3.org/2000/svg}text")]


def node_names(picture):
    names = re.findall(r'^\t+("(?:[^"\\]|\\.)*"|\w+) \[', picture.dot, re.MULTILINE)
    return [name.strip('"') for name in names if name not in ("graph", "node", "edge")]


# --- what is shown --------------------------------------------------------------------------------


@pytest.mark.parametrize("name", MACHINES)
def test_every_device_is_in_the_picture(name):
    topology = build_topology(load(name))
    picture = draw(topology, answer=None, collapse=False)
    assert set(topology.devices) <= set(node_names(picture))
    shown = texts(picture)
    for device in topology.devices:
        assert any(text.split(" ")[0] == device for text in shown), device


def test_a_link_says_medium_and_rate(small):
    shown = texts(draw(small, collapse=False))
    assert shown.count("PCIe 5 x16") == 5
    assert shown.count("63.02 GB/s") == 5
    assert "2 x IB NDR" in shown
    assert "400 Gb/s each" in shown


def test_a_box_says_part_and_figures(small):
    shown = texts(draw(small))
    assert {"ConnectX-7", "chip 400 Gb/s", "80 GB, 3350 GB/s", "bus 307.2 GB/s"} <= set(shown)


def test_every_socket_has_a_frame():
    shown = texts(draw(build_topology(load("dgx-a100"))))
    assert "socket of cpu0, NUMA 0-3" in shown
    assert "socket of cpu1, NUMA 4-7" in shown


def test_an_unknown_rate_is_said_and_dashed():
    text = SMALL.replace("slot1 -- cpu0: pcie 5 x16", "slot1 -- cpu0: pcie unknown")
    picture = draw(machine(text))
    assert "at most 63.02 GB/s" in texts(picture)
    assert re.search(r"slot1 -> cpu0 \[.*style=dashed", picture.dot)


def test_wider_links_are_drawn_wider():
    picture = draw(build_topology(load("dgx-h100")), answer=None)
    pens = {
        ends: float(width)
        for ends, width in re.findall(r"(\w+ -> \w+) \[.*penwidth=([\d.]+)", picture.dot)
    }
    assert pens["gpu0 -> nvswitch"] > pens["cpu0 -> cpu1"] > pens["gpu0 -> nic0"]


# --- routes ---------------------------------------------------------------------------------------


def test_both_paths_stand_side_by_side_with_their_hops(both):
    shown = texts(both)
    assert "legacy: buffered read, then cudaMemcpy from pinned memory" in " ".join(shown)
    assert "direct: GPUDirect Storage" in shown
    assert "5 hops, 5 links, 2 RAM traversals" in shown
    assert "3 hops, 3 links, 0 RAM traversals" in shown
    assert "50 GB/s, limited by the card" in shown
    numbers = [text for text in shown if text.isdigit()]
    assert sorted(numbers) == sorted([*"122345", *"123", "1"])  # the last one is the legend's
    assert {"legacy/gpu0", "direct/gpu0"} <= set(node_names(both))


def test_ram_traversals_are_marked_where_the_path_has_them(both):
    shown = texts(both)
    assert shown.count("RAM traversal 1") == shown.count("RAM traversal 2") == 1
    names = node_names(both)
    assert "legacy/kernel-buffer in ram0" in names
    assert not any(name.startswith("direct/kernel-buffer") for name in names)


def test_a_bottleneck_is_named_and_framed(both):
    shown = texts(both)
    assert shown.count("BOTTLENECK") == 3
    assert "ram0/bus 307.2 GB/s" in shown
    assert "slot1 -> cpu0" in shown
    assert re.search(r'"legacy/ram0" \[.*peripheries=2', both.dot)
    assert not re.search(r'"direct/ram0" \[.*peripheries=2', both.dot)


def test_what_is_off_the_route_steps_back(both):
    theme = THEMES["light"]
    assert re.search(rf'"direct/ram0" \[.*fillcolor="{theme.faint_fill}"', both.dot)
    assert re.search(rf'"legacy/slot1" \[.*fillcolor="{theme.boxes["nic"][0]}"', both.dot)


def test_the_gpu_of_the_route_stands_by_itself(both):
    shown = texts(both)
    assert shown.count("gpu0") == 2
    assert shown.count("gpu1") + shown.count("gpu1-3") == 2


TWO_TARGETS = """
topo: 1
name: two-targets
devices:
  storage[0-1]: {part: nvme-of-target, outside: yes}
  nic[0-3]: connectx-7
  cpu[0-1]: xeon-8480c
  ram[0-1]: {part: ddr5-4800, channels: 8}
  gpu[0-1]: h100-sxm-80gb
links:
  - storage -- nic in blocks: infiniband ndr
  - nic -- cpu in blocks: pcie 5 x16
  - cpu0 -- cpu1: 4x upi 16 GT/s
  - ram -- cpu: memory-bus
  - gpu -- cpu: pcie 5 x16
"""


@pytest.fixture(scope="module")
def two_targets():
    topology = machine(TWO_TARGETS)
    path = data_path(topology.description, "direct")
    return topology, Router(topology).route(path, ("storage0", "storage1"), "gpu0", "read")


def test_every_card_of_a_route_leads_to_its_gpu_and_none_back_to_the_storage(two_targets):
    # four cards feed gpu0: they share the last hop, and each has its own way through the CPUs
    topology, route = two_targets
    (scene,) = scenes(topology, direct=route)
    drawn = hop_lines(scene).polylines
    (last,) = [course for course in drawn if course.label == "3"]
    ends = [course.pieces[-1][-1] for course in drawn if course.label == "2"]
    assert ends == [last.pieces[0][0]] * 4


def test_a_socket_links_label_stands_above_all_hops_that_cross_it(two_targets):
    topology, route = two_targets
    root = ET.fromstring(draw(topology, routes={"direct": route}).svg())
    texts = [
        (element.text, float(element.get("x", 0)), float(element.get("y", 0)))
        for element in root.iter("{http://www.w3.org/2000/svg}text")
    ]
    ((_, x, y),) = [text for text in texts if text[0] == "128 GB/s"]
    crossing = [at for text, beside, at in texts if text == "2" and abs(beside - x) < 40]
    assert len(crossing) == 1  # the hops of both far cards are one line with one number
    assert y + 10 < min(crossing)


def test_a_binding_wire_does_not_cover_its_label():
    topology = build_topology(load("l40s-two-switches"))
    picture = draw(
        topology,
        routes=routes_of(topology, "direct"),
        bottlenecks={"direct": ("nic0/p1 in", "nic1/p1 in")},
    )
    svg = picture.svg()
    wires = {float(x) for x in re.findall(r'stroke-width="14" d="M(-?[\d.]+),', svg)}
    labels = [float(x) for x in re.findall(r' x="(-?[\d.]+)"[^>]*>Ethernet<', svg)]
    assert len(wires) == len(labels) == 2
    for x, wire in zip(sorted(labels), sorted(wires), strict=True):
        assert x > wire + 14 / 2


def test_all_over_one_machine(small):
    picture = draw(small, routes=routes_of(small, "legacy", "direct"), side_by_side=False)
    assert texts(picture).count("slot1") == 1
    assert "direct: GPUDirect Storage" in texts(picture)


def test_a_refused_route_says_why():
    topology = machine(
        SMALL.replace("gpu[0-3]: h100-sxm-80gb", "gpu[0-3]: {part: h100-sxm-80gb, p2p: no}")
    )
    shown = texts(draw(topology, routes=routes_of(topology, "legacy", "direct")))
    assert any(text.startswith("not possible: ") for text in shown)


@pytest.mark.parametrize("direction", ["read", "write"])
@pytest.mark.parametrize("path", ["legacy", "legacy-pageable", "direct", "odirect-pinned", "mmap"])
@pytest.mark.parametrize("name", ["dgx-h100", "dgx-a100", "l40s-two-switches"])
def test_hops_are_numbered_as_the_route_counts_them(name, path, direction):
    topology = build_topology(load(name))
    route = routes_of(topology, path, gpu="gpu5", direction=direction)[path]
    hops = hops_of(topology, route.subflows[0])
    labels = [part for hop in hops for part in hop.label.split("-")]
    assert labels[0] == "1"
    assert int(labels[-1]) == route.logical_hops
    steps = [step for hop in hops for step in hop.steps]
    assert steps == [step for transfer in route.subflows[0].transfers for step in transfer.walk]


@pytest.mark.parametrize("path", ["routed-nvlink", "routed-sysmem", "compat", "direct"])
@pytest.mark.parametrize("name", UNLIKE_SERVERS)
def test_any_path_can_be_drawn_on_any_machine(name, path):
    topology = build_topology(load(name))
    gpu = topology.of_kind("gpu")[-1].name
    storage = topology.of_kind("storage", "nvme")[0].name
    routes = routes_of(topology, path, gpu=gpu, storage=storage)
    assert ET.fromstring(draw(topology, routes=routes).svg()) is not None


# --- what repeats ---------------------------------------------------------------------------------


def test_alike_devices_become_one_box(small):
    shown = texts(draw(small, collapse=True))
    assert "gpu0-3" in shown
    assert "4x H100 SXM5 80 GB" in shown
    assert "4 x PCIe 5 x16" in shown
    assert "63.02 GB/s each" in shown


def test_a_gpu_with_another_cable_is_not_alike():
    text = SMALL.replace(
        "  - gpu -- cpu0: pcie 5 x16",
        "  - gpu[0-2] -- cpu0: pcie 5 x16\n  - gpu3 -- cpu0: pcie 5 x8",
    )
    shown = texts(draw(machine(text), collapse=True))
    assert "gpu0-2" in shown
    assert "gpu3" in shown


def test_auto_draws_few_devices_one_by_one_and_many_as_one():
    assert "gpu3" in texts(draw(machine(SMALL)))
    assert "gpu0-15" in texts(draw(machine(MANY)))


def test_never_means_never():
    assert "gpu15" in texts(draw(machine(MANY), collapse=False))


def pod(count):
    """Return `count` copies of a small server on one switch, their names with a prefix."""
    node = machine(SMALL)
    inside = {name: device for name, device in node.devices.items() if name != "storage"}
    devices, links = {}, []
    network = machine(
        """
topo: 1
name: pod
devices:
  storage: {part: nvme-of-target, ports: 4}
  leaf: quantum-2
  card: connectx-7
  cpu0: xeon-8480c
links:
  - leaf -- storage: 4x infiniband ndr
  - leaf -- card: infiniband ndr
  - card -- cpu0: pcie 5 x16
"""
    )
    for name in ("storage", "leaf"):
        devices[name] = network[name]
    uplink = network.links[0]
    cable = network.links[1]
    links.append(uplink)
    for number in range(count):
        prefix = f"node{number}."
        devices |= {
            prefix + name: replace(device, name=prefix + name) for name, device in inside.items()
        }
        links += [
            replace(link, a=End(prefix + link.a.device), b=End(prefix + link.b.device))
            for link in node.links
            if {link.a.device, link.b.device} <= set(inside)
        ]
        links.append(replace(cable, a=End("leaf"), b=End(f"{prefix}slot1", "p1")))
    return Topology(
        description=network.description, devices=devices, links=tuple(links), resources={}
    )


def test_identical_servers_are_drawn_once():
    picture = draw(pod(64))
    shown = texts(picture)
    assert "node0-63: 64 servers alike" in shown
    assert "64 x IB NDR" in shown
    assert "gpu0-3" in shown
    assert len(node_names(picture)) < 60


def flat_servers(count, prefix):
    """Return so many servers in one file, each with names of its own or all numbered through."""
    devices = ["filer: {part: nvme-of-target, outside: yes}"]
    links = []
    if not prefix:
        devices += [
            f"cpu[0-{count - 1}]: xeon-8480c",
            f"ram[0-{count - 1}]: {{part: ddr5-4800, channels: 8}}",
            f"nic[0-{count - 1}]: connectx-7",
            f"gpu[0-{4 * count - 1}]: h100-sxm-80gb",
        ]
        links = ["ram -- cpu: memory-bus", "nic -- cpu: pcie 5 x16"]
        links += ["gpu -- cpu in blocks: pcie 5 x16", "filer -- nic: infiniband ndr"]
    for number in range(count if prefix else 0):
        name = f"{prefix}{number}-"
        devices += [
            f"{name}cpu: xeon-8480c",
            f"{name}ram: {{part: ddr5-4800, channels: 8}}",
            f"{name}nic: connectx-7",
            f"{name}gpu[0-3]: h100-sxm-80gb",
            f"{name}switch: nvswitch-3",
        ]
        links += [
            f"{name}ram -- {name}cpu: memory-bus",
            f"{name}nic -- {name}cpu: pcie 5 x16",
            f"{name}gpu -- {name}cpu: pcie 5 x16",
            f"{name}gpu -- {name}switch: 18x nvlink 4",
            f"filer -- {name}nic: infiniband ndr",
        ]
    lines = [*(f"  {device}" for device in devices), "links:", *(f"  - {link}" for link in links)]
    return machine("\n".join(["topo: 1", "name: flat", "devices:", *lines]))


@pytest.mark.parametrize(
    ("prefix", "gpu", "opened", "alike"),
    [
        ("n", "n3-gpu1", "n3", "n0-2, n4-99: 99 servers alike"),
        ("", "gpu13", "cpu3", "cpu0-2, cpu4-99: 99 servers alike"),
        ("rack-", "rack-3-gpu1", "rack-3", "rack-0-2, rack-4-99"),
    ],
    ids=["named-by-server", "numbered-through", "named-with-a-hyphen"],
)
def test_servers_of_one_file_that_are_alike_are_one_box_beside_the_one_of_the_route(
    prefix, gpu, opened, alike
):
    topology = flat_servers(100, prefix)
    routes = routes_of(topology, "direct", gpu=gpu, storage="filer")
    picture = draw(topology, routes=routes)
    shown = texts(picture)
    assert alike in shown
    assert opened in shown
    assert "99 x IB NDR" in shown
    assert gpu.removeprefix(f"{opened}-") in shown
    assert picture.width <= WIDEST
    assert "100 servers alike" in " ".join(texts(draw(topology)))


def test_a_server_with_a_card_more_is_not_like_the_others():
    alike = flat_servers(100, "n")
    more = replace(alike.devices["n7-nic"], name="n7-nic2")
    links = (*alike.links, replace(alike.links[0], a=End("n7-nic2"), b=End("n7-cpu")))
    topology = Topology(
        description=alike.description,
        devices={**alike.devices, more.name: more},
        links=links,
        resources={},
    )
    shown = texts(draw(topology))
    assert {"n7", "n0-6, n8-99: 99 servers alike"} <= set(shown)


# --- readable -------------------------------------------------------------------------------------


def scenes(topology, **routes):
    sheet = Sheet(topology, routes, {}, {}, "theoretical", side_by_side=True)
    return [panel.scene for panel in sheet.panels("auto")]


def overlap(a, b):
    return (
        a.x < b.right - 0.1
        and b.x < a.right - 0.1
        and a.y < b.bottom - 0.1
        and b.y < a.bottom - 0.1
    )


def labels(scene):
    """Return the rectangles of each wire's label."""
    for key, blocks in placed_labels(scene, hop_lines(scene).polylines).items():
        for place, block in enumerate(blocks):
            yield (key, place), block.rect


def drawn_scenes(name, path, alarms):
    """Return the scene of a machine with a route, and with all its resources as bottlenecks."""
    topology = build_topology(load(name))
    gpu = topology.of_kind("gpu")[0].name
    storage = tuple(
        device.name for device in topology.of_kind("storage") or topology.of_kind("nvme")
    )
    limits = {path or "all": tuple(topology.resources)} if alarms else {}
    known_path = data_path(topology.description, path) if path else None
    routes = {path: Router(topology).route(known_path, storage, gpu, "read")} if known_path else {}
    sheet = Sheet(topology, routes, limits, {}, "theoretical", side_by_side=True)
    return [panel.scene for panel in sheet.panels("auto")]


def test_the_border_of_a_bottleneck_is_inside_its_rectangle():
    (scene,) = drawn_scenes("gds-textbook", "legacy", True)
    canvas = Canvas((scene.layout.width, scene.layout.height), THEMES["light"], "x")
    Painter(canvas, scene, (0.0, 0.0)).boxes()
    match = re.search(r"\tslot1 \[.*peripheries=2.* width=([0-9.]+)", canvas.text)
    outer = float(match[1]) * 72 + 2 * 4 + 2.6  # Graphviz draws the second line 4 points outside
    assert scene.layout.boxes["slot1"].w == pytest.approx(outer, abs=1)


@pytest.mark.parametrize("name", ["dgx-a100", "l40s-two-switches"])
def test_what_a_wire_is_stands_below_the_text_of_its_alarm(name):
    (scene,) = drawn_scenes(name, "direct", True)
    placed = placed_labels(scene, hop_lines(scene).polylines)
    beside = [key for key in scene.labels if not scene.layout.tracks[key].across]
    alarmed = [key for key in beside if key in scene.alarms]
    assert alarmed
    for key in alarmed:
        alarm, wire_label = placed[key]
        assert wire_label.rect.y == pytest.approx(alarm.rect.bottom)
        assert wire_label.rect.x == alarm.rect.x + 5


# --- lines ----------------------------------------------------------------------------------------

RAM_PATHS = ["legacy", "legacy-pageable", "odirect-pinned", "direct", "compat"]


@pytest.mark.parametrize("direction", ["read", "write"])
@pytest.mark.parametrize(
    ("name", "path"),
    [(name, path) for name in UNLIKE_SERVERS for path in RAM_PATHS]
    + [(name, "legacy") for name in WITH_STORAGE if name not in UNLIKE_SERVERS],
)
def test_the_hops_of_a_route_do_not_cross(name, path, direction):
    topology = build_topology(load(name))
    storage = tuple(
        device.name for device in topology.of_kind("storage") or topology.of_kind("nvme")
    )
    router = Router(topology)
    gpus = topology.of_kind("gpu")
    for gpu in (gpus[0], gpus[len(gpus) // 2], gpus[-1]):
        route = router.route(data_path(topology.description, path), storage, gpu.name, direction)
        (scene,) = scenes(topology, **{path: route})
        crossed = [(a.label, b.label) for a, b in crossings(hop_lines(scene).polylines)]
        assert not crossed, gpu.name


def test_the_first_buffer_stands_nearer_to_a_card_on_the_right():
    (scene,) = drawn_scenes("gds-textbook", "legacy", False)
    assert scene.layout.boxes["slot1"].x > scene.layout.boxes["ram0"].right
    places = hop_lines(scene).buffers["ram0"]
    assert places["user-buffer"].right < places["kernel-buffer"].x
    (copy,) = [course for course in hop_lines(scene).polylines if course.source == course.target]
    ((start, stop),) = copy.pieces
    assert start[0] > stop[0]


def test_two_drives_join_at_one_port_of_the_buffer():
    topology = build_topology(load("workstation-4gpu"))
    router = Router(topology)
    path = data_path(topology.description, "legacy")
    route = router.route(path, ("nvme0", "nvme1"), "gpu0", "read")
    (scene,) = scenes(topology, legacy=route)
    first = [course for course in hop_lines(scene).polylines if course.label == "1"]
    assert len(first) == 2
    assert len({course.pieces[-1][-1] for course in first}) == 1


def test_hops_in_and_out_of_one_buffer_stand_side_by_side(small):
    route = routes_of(small, "odirect-pinned")["odirect-pinned"]
    (scene,) = scenes(small, odirect=route)
    (name,) = scene.buffers["ram0"]
    rect = hop_lines(scene).buffers["ram0"][name]
    drawn = hop_lines(scene).polylines
    ends = [
        x for polyline in drawn for points in polyline.pieces for x, y in points if y == rect.bottom
    ]
    assert len(ends) == 2
    assert abs(ends[0] - ends[1]) >= 20


def test_a_hop_that_goes_on_inside_a_bar_has_no_head(both):
    lines = re.findall(r'"(legacy|direct)/hop (\d)[^"]*" -> .*', both.dot)
    heads = re.findall(r'"(legacy|direct)/hop (\d)[^"]*" -> .*dir=forward', both.dot)
    assert set(lines) - set(heads) == {("legacy", "4"), ("direct", "2")}


@pytest.mark.parametrize("name", MACHINES)
def test_texts_fit_their_boxes(name):
    (scene,) = scenes(build_topology(load(name)))
    for key, lines in scene.lines.items():
        assert max(line.width for line in lines) <= scene.layout.boxes[key].w


@pytest.mark.parametrize(
    ("name", "routed"),
    [*((name, True) for name in WITH_STORAGE), *((name, False) for name in UNLIKE_SERVERS)],
)
def test_the_smallest_text_has_ten_pixels(name, routed):
    topology = build_topology(load(name))
    gpu = topology.of_kind("gpu")[-1].name
    storage = topology.of_kind("storage", "nvme")[0].name
    routes = routes_of(topology, "legacy", "direct", gpu=gpu, storage=storage) if routed else {}
    picture = draw(topology, routes=routes)
    sizes = [float(size) for size in re.findall(r'font-size="([\d.]+)"', picture.svg())]
    # Ten slots and eight drives beside eight GPUs do not fit: a tenth wider, a tenth smaller.
    wide = 1.1 if name in ("dell-xe9680", "dell-xe9685l") else 1.0
    assert picture.width <= WIDEST * wide
    assert min(size for size in sizes if size > 5) * 1600 / picture.width >= 10 / wide


def luminance(colour):
    channels = [int(colour[place : place + 2], 16) / 255 for place in (1, 3, 5)]
    linear = [c / 12.92 if c <= 0.04045 else ((c + 0.055) / 1.055) ** 2.4 for c in channels]
    return 0.2126 * linear[0] + 0.7152 * linear[1] + 0.0722 * linear[2]


def contrast(a, b):
    light, dark = sorted((luminance(a), luminance(b)), reverse=True)
    return (light + 0.05) / (dark + 0.05)


@pytest.mark.parametrize("theme", THEMES.values(), ids=THEMES)
def test_texts_and_lines_stand_out(theme):
    for fill, _ in theme.boxes.values():
        assert contrast(theme.ink, fill) >= 7
        assert contrast(theme.soft, fill) >= 4.5
    assert contrast(theme.alarm, theme.paper) >= 4.5
    grounds = (theme.paper, theme.panel, theme.server, theme.socket)
    for text in (theme.ink, theme.soft, theme.faint):  # titles, labels, what steps back
        for ground in (*grounds, theme.faint_fill):
            assert contrast(text, ground) >= 4.5, (text, ground)
    for look in theme.routes:
        assert contrast(look.colour, theme.paper) >= 4.5  # the number of a hop
        assert all(contrast(look.colour, ground) >= 3 for ground in grounds)


@pytest.mark.parametrize("theme", THEMES)
def test_every_text_of_a_picture_stands_out_from_what_it_stands_on(theme):
    topology = build_topology(load("dgx-h100"))
    picture = draw(topology, routes=routes_of(topology, "legacy", "direct"), theme=theme)
    known = THEMES[theme]
    written = {*re.findall(r'<FONT[^>]* COLOR="(#\w{6})"', picture.dot)} - {known.paper}
    assert written <= {known.ink, known.soft, known.faint}
    assert known.faint in written


def looks_drawn(topology, *paths, theme="light", **options):
    """Return ``colour, stroke`` of the legend's line for each data path."""
    known = routes_of(topology, *paths)
    sheet = Sheet(topology, known, {}, {}, "theoretical", side_by_side=True)
    return {
        route.label: THEMES[theme].routes[route.look]
        for panel in sheet.panels("auto")
        for route in panel.scene.routes
    }


def test_a_data_path_looks_the_same_whatever_is_drawn_beside_it(small):
    alone = {name: looks_drawn(small, name)[name] for name in ("legacy", "direct", "mmap")}
    assert alone["legacy"] != alone["direct"]
    for names in (
        ["legacy", "direct"],
        ["direct", "legacy"],
        ["mmap", "direct"],
        ["direct", "mmap"],
    ):
        assert looks_drawn(small, *names) == {name: alone[name] for name in names}


def test_looks_of_one_picture_differ_as_long_as_there_are_some():
    names = ["compat", "legacy-pageable", "odirect-pinned", "mmap", "direct", "legacy"]
    assert sorted(looks_of(names)) == list(range(6))
    assert looks_of(names)[-2:] == looks_of(["direct", "legacy"])
    assert len(looks_of([*names, "p2pdma", "direct"])) == 8
    assert set(looks_of(["direct", "direct"])) > set(looks_of(["direct"]))


def test_all_strokes_can_be_drawn(small):
    names = ("legacy", "direct", "compat", "legacy-pageable", "odirect-pinned", "mmap")
    svg = draw(small, routes=routes_of(small, *names), side_by_side=False).svg()
    assert svg.count('stroke-dasharray="') > 0
    assert len({look.stroke for look in looks_drawn(small, *names).values()}) == len(names)


@pytest.mark.parametrize("theme", THEMES.values(), ids=THEMES)
def test_routes_differ_by_more_than_colour(theme):
    assert len({look.stroke for look in theme.routes}) == len(theme.routes)


# --- safe -----------------------------------------------------------------------------------------


def test_hostile_texts_come_out_as_they_went_in():
    picture = draw(machine(HOSTILE))
    shown = texts(picture)
    assert r'"<b>&\ \N \G </TABLE> 漢字 %s' in shown
    assert {"title (<i>a&b</i>)", r'ram0 (a"b\)', r"node (<\N ünï>)", r"graph (\G\L\n)"} <= set(
        shown
    )


def test_no_name_and_no_id_is_given_twice(both):
    for picture in (both, draw(machine(HOSTILE))):
        names = node_names(picture)
        assert len(names) == len(set(names))
        ids = [element.get("id") for element in ET.fromstring(picture.svg()).iter()]
        ids = [id_ for id_ in ids if id_]
        assert len(ids) == len(set(ids))


@pytest.mark.parametrize("label", ["a:b", '"', "\\", "<x>", "", "ü", "a/b"])
def test_a_route_may_have_any_label(small, label):
    direct = routes_of(small, "direct")["direct"]
    picture = draw(small, routes={label: direct, "other": direct})
    assert f"{label}: GPUDirect Storage" in texts(picture)


def test_control_characters_do_not_break_the_svg(small):
    direct = routes_of(small, "direct")["direct"]
    picture = draw(small, routes={"x": direct}, captions={"x": "bell \x07, half \ud800"})
    assert any(text.startswith("bell") for text in texts(picture))


SCRIPT = """
import sys
from topo.description.loading import load
from topo.topology.build import build_topology
from topo.views.diagram.sheet import draw
sys.stdout.write(draw(build_topology(load("dgx-a100"))).dot)
"""


def test_the_same_machine_gives_the_same_bytes():
    seen = {
        subprocess.run(
            [sys.executable, "-c", SCRIPT],
            env={**os.environ, "PYTHONHASHSEED": seed},
            capture_output=True,
            check=True,
        ).stdout
        for seed in ("1", "2")
    }
    assert len(seen) == 1
    assert (
        draw(build_topology(load("dgx-a100"))).svg() == draw(build_topology(load("dgx-a100"))).svg()
    )


# --- files and engines ----------------------------------------------------------------------------


def pixels(data):
    """Return width and height of a PNG, by its header."""
    assert data.startswith(b"\x89PNG\r\n\x1a\n")
    return struct.unpack(">II", data[16:24])


@pytest.mark.parametrize("width", [1600, 800])
def test_a_png_has_the_width_asked_for(both, width):
    assert abs(pixels(both.png(width=width))[0] - width) <= 1


@pytest.mark.parametrize(("asked", "scale"), [({}, 1.5), ({"scale": 0.5}, 0.5), ({"scale": 3}, 3)])
def test_a_png_has_so_many_pixels_a_point(both, asked, scale):
    wide, high = pixels(both.png(**asked))
    assert wide == pytest.approx(both.width * scale, abs=2)
    assert high == pytest.approx(both.height * scale, abs=2)


def test_the_smallest_text_of_a_png_has_fifteen_pixels_however_wide_the_machine():
    cpus = "  cpu[0-15]: xeon-8480c\n  ram[0-15]: {part: ddr5-4800, channels: 8}"
    text = f"topo: 1\nname: wide\ndevices:\n{cpus}\nlinks:\n  - ram -- cpu: memory-bus\n"
    picture = draw(machine(text), collapse=False)
    sizes = [float(size) for size in re.findall(r'font-size="([\d.]+)"', picture.svg())]
    wide, _ = pixels(picture.png())
    assert picture.width > WIDEST
    assert min(sizes) * wide / picture.width >= 14.9


@pytest.mark.parametrize(
    ("asked", "reason"),
    [
        ({"width": 20_000}, "20000 x .*; a side of a PNG has 1 to 16384 pixels"),
        ({"width": 0}, "0 x 0 pixels"),
        ({"scale": 1e9}, "a side of a PNG"),
        ({"scale": -1}, "a side of a PNG"),
        ({"scale": float("nan")}, "a side of a PNG"),
        ({"width": 16_000}, "at most 100 million pixels"),
    ],
)
def test_a_png_of_too_many_pixels_is_refused(both, asked, reason, tmp_path):
    square = Picture(both.dot, both.width, max(both.height, both.width))
    with pytest.raises(DrawError, match=reason):
        square.write(tmp_path / "large.png", **asked)
    assert not list(tmp_path.iterdir())


@pytest.mark.parametrize(
    ("suffix", "start"),
    [(".svg", b"<?xml"), (".png", b"\x89PNG"), (".dot", b"digraph"), (".GV", b"d")],
)
def test_the_suffix_says_the_format(both, tmp_path, suffix, start):
    path = both.write(tmp_path / f"picture{suffix}")
    assert path.read_bytes().startswith(start)
    assert [file.name for file in tmp_path.iterdir()] == [f"picture{suffix}"]


def test_an_unknown_suffix_is_refused(both, tmp_path):
    with pytest.raises(DrawError, match=r"no picture format \.jpg"):
        both.write(tmp_path / "picture.jpg")
    assert not list(tmp_path.iterdir())


def test_a_file_that_cannot_be_written_is_an_error_of_ours(both, tmp_path):
    with pytest.raises(DrawError, match="not-written"):
        both.write(tmp_path / "nowhere" / "picture.dot")


def test_a_failed_picture_leaves_the_old_one(both, tmp_path):
    path = tmp_path / "picture.svg"
    path.write_text("old")
    broken = Picture("digraph { a [pos=", both.width, both.height)
    with pytest.raises(DrawError, match="made no SVG"):
        broken.write(path)
    assert path.read_text() == "old"


@pytest.mark.parametrize(
    ("engine", "advice"), [("graphviz-pure", "pip install"), ("dot", "Graphviz")]
)
def test_a_missing_engine_is_named(both, monkeypatch, engine, advice):
    monkeypatch.setattr(pictures.shutil, "which", lambda *_, **__: None)
    with pytest.raises(DrawError, match=rf"no program {engine} .*{advice}"):
        both.svg(engine=engine)


def test_pdf_needs_no_engine_for_western_letters(both, monkeypatch, tmp_path):
    with pytest.raises(DrawError, match="makes no PDF"):
        both.pdf(engine="graphviz-pure")
    monkeypatch.setattr(pictures.shutil, "which", lambda *_, **__: None)
    data = both.write(tmp_path / "picture.pdf").read_bytes()
    assert data == both.pdf()
    assert b"MediaBox [0 0 %.2f %.2f]" % (both.width, both.height) in data
    shown = set(re.findall(rb"\((.*)\) Tj", data))
    written = (text.strip().encode("cp1252") for text in texts_of(both) if text.strip())
    plain = {text.replace(b"(", b"\\(").replace(b")", b"\\)") for text in written}
    assert plain <= {text.strip() for text in shown}
    start = int(re.search(rb"startxref\n(\d+)", data)[1])
    assert data[start:].startswith(b"xref\n0 7\n")
    for number, place in enumerate(re.findall(rb"(\d{10}) 00000 n", data), start=1):
        assert data[int(place) :].startswith(b"%d 0 obj\n" % number)
    length, stream = re.search(
        rb"/Length (\d+) >>\nstream\n(.*)\nendstream", data, re.DOTALL
    ).groups()
    assert len(stream) == int(length)


def texts_of(picture):
    return [run.text for shape in picture.shapes for run in shape.text]


def test_pdf_of_other_letters_takes_a_system_graphviz(small, monkeypatch):
    named = draw(small.replace({"gpu0.label": "図"}), answer=None)
    monkeypatch.setattr(pictures.shutil, "which", lambda *_, **__: None)
    with pytest.raises(DrawError, match="no program dot"):
        named.pdf()


def test_a_system_graphviz_draws_the_same(both):
    try:
        svg = both.svg(engine="dot")
    except DrawError as error:
        pytest.skip(str(error))
    root = ET.fromstring(svg)
    shown = {element.text for element in root.iter("{http://www.w3.org/2000/svg}text")}
    assert shown == set(texts(both))
    assert both.pdf(engine="dot").startswith(b"%PDF")


def test_an_unknown_theme_is_refused(small):
    with pytest.raises(DrawError, match="one of light, dark"):
        draw(small, theme="beige")


def test_notebooks_get_svg(both):
    assert both._repr_svg_() == both.svg()
    assert "<svg" in both.svg()


def test_the_legend_explains_what_is_there_and_nothing_else(small, both):
    assert "bottleneck" in texts(both)
    plain = texts(draw(small))
    assert "outside this machine" in plain
    assert "bottleneck" not in plain
    assert "outside this machine" not in texts(draw(small, legend=False))


def test_a_legend_of_two_rows_is_balanced():
    (scene,) = drawn_scenes("gds-loses", "legacy", True)
    items = legend_signs((scene,))
    for wide in range(300, 1400, 20):
        rows = legend_rows(items, float(wide))
        assert [item for row in rows for item in row] == list(items)
        assert all(sum(item.width for item in row) - 18 <= wide for row in rows)
        if len(rows) == 2:
            assert len(rows[1]) >= 2


def test_panels_below_each_other_are_equally_wide():
    topology = build_topology(load("dgx-a100"))
    routes = routes_of(topology, "legacy", "direct")
    sheet = Sheet(topology, routes, {}, {}, "theoretical", side_by_side=True)
    panels, places = arranged(sheet.panels("auto"))
    assert {x for x, _ in places} == {0}
    assert len({panel.size[0] for panel in panels}) == 1
