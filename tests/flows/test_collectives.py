"""Collectives: rings by the rules that NCCL's search comes to, and what passes each hop."""

from __future__ import annotations

import math
from collections import Counter
from itertools import pairwise

import pytest
from hypothesis import given
from hypothesis import strategies as st

from tests.machines import built, shipped
from topo.datapaths.registry import data_path
from topo.flows.collectives import bus_factor, lay_collective
from topo.flows.rings import rings_of
from topo.routes.router import Router

HEAD = """
topo: 1
name: box
settings: {iommu: off}
parts:
  accel: {kind: gpu, pcie: 5 x16, hbm: 3000 GB/s, fabric: 18x nvlink 4, p2p: yes, source: test}
  plain: {kind: gpu, pcie: 5 x16, hbm: 1000 GB/s, p2p: yes, source: test}
  socket: {kind: cpu, pcie: 5, forwards-p2p: yes, architecture: x86, source: test}
  switch: {kind: pcie-switch, pcie: 5, source: test}
  card: {kind: nic, pcie: 5 x16, ports: 1x 400 Gb/s, chip: 400 Gb/s, source: test}
"""


def mesh(count, links):
    """Return GPUs on one CPU that links join directly."""
    joined = "".join(f"  - gpu{a} -- gpu{b}: {n}x nvlink 4\n" for (a, b), n in links.items())
    return built(
        f"{HEAD}devices:\n  cpu0: socket\n  gpu[0-{count - 1}]: accel\n"
        f"links:\n  - gpu -- cpu0: pcie 5 x16\n{joined}"
    )


def names(machine, pattern="gpu"):
    return tuple(device.name for device in machine.select(pattern))


def rings(machine, *, by_links=True, pattern="gpu"):
    return rings_of(Router(machine), names(machine, pattern), by_links=by_links)


def is_cycle(ring, gpus):
    """Whether each GPU passes data on once, and all of them are on one cycle."""
    ends = [(hop[0], hop[-1]) for hop in ring.hops]
    closes = all(a[1] == b[0] for a, b in pairwise([*ends, ends[0]]))
    return closes and sorted(ring.order) == sorted(gpus)


# --- in one server --------------------------------------------------------------------------------


def test_over_an_nvswitch_there_is_one_ring():
    (ring,) = rings(shipped("dgx-h100"))
    assert ring.order == tuple(f"gpu{at}" for at in range(8))
    assert ring.share == 1


@pytest.mark.parametrize("count", [3, 4, 5, 8])
def test_in_a_full_mesh_rings_use_every_link_alike(count):
    pairs = {(a, b): 2 for a in range(count) for b in range(a + 1, count)}
    found = rings(mesh(count, pairs))
    gpus = [f"gpu{at}" for at in range(count)]
    assert all(is_cycle(ring, gpus) for ring in found)
    assert math.fsum(ring.share for ring in found) == pytest.approx(1)
    uses = Counter(hop for ring in found for hop in ring.hops)
    assert len(uses) == count * (count - 1)  # each link, both ways
    assert len(set(uses.values())) == 1


def test_the_cube_mesh_of_a_dgx_1v_has_three_disjoint_rings_each_way():
    # Six links a GPU, two of them to each of two neighbours (NVIDIA's DGX-1V whitepaper).
    double = [(0, 3), (0, 4), (1, 2), (1, 5), (2, 3), (4, 7), (5, 6), (6, 7)]
    single = [(0, 1), (0, 2), (1, 3), (2, 6), (3, 7), (4, 5), (4, 6), (5, 7)]
    links = dict.fromkeys(double, 2) | dict.fromkeys(single, 1)
    found = rings(mesh(8, links))
    gpus = [f"gpu{at}" for at in range(8)]
    assert len(found) == 6
    assert all(is_cycle(ring, gpus) for ring in found)
    uses = Counter(tuple(int(name[-1]) for name in hop) for ring in found for hop in ring.hops)
    assert all(uses[a, b] == uses[b, a] == count for (a, b), count in links.items())


def test_a_ring_is_found_through_more_gpus_than_calls_may_be_nested():
    count = 1100
    machine = mesh(count, {(at, (at + 1) % count): 1 for at in range(count)})
    found = rings(machine)
    assert [ring.order[1] for ring in found] == ["gpu1", f"gpu{count - 1}"]
    assert all(is_cycle(ring, names(machine)) for ring in found)


def test_over_pcie_a_ring_enters_each_switch_once():
    # GPUs of the two switches are named in turns.
    machine = built(
        f"{HEAD}devices:\n  cpu0: socket\n  sw[0-1]: switch\n  gpu[0-7]: plain\nlinks:\n"
        "  - sw -- cpu0: pcie 5 x16\n"
        "  - gpu[0,2,4,6] -- sw0: pcie 5 x16\n  - gpu[1,3,5,7] -- sw1: pcie 5 x16\n"
    )
    (ring,) = rings(machine)
    assert [int(name[-1]) for name in ring.order] == [0, 2, 4, 6, 1, 3, 5, 7]


def test_bridged_pairs_stand_together():
    machine = mesh(4, {(0, 2): 4, (1, 3): 4})
    (ring,) = rings(machine)
    assert ring.order == ("gpu0", "gpu2", "gpu1", "gpu3")
    (without,) = rings(machine, by_links=False)
    assert without.order == ("gpu0", "gpu1", "gpu2", "gpu3")


def test_two_gpus_pass_data_to_each_other():
    (ring,) = rings(mesh(2, {(0, 1): 18}))
    assert ring.hops == (("gpu0", "gpu1"), ("gpu1", "gpu0"))


# --- over several servers -------------------------------------------------------------------------

POD = """
topo: 1
name: pod
devices:
  node[0-1]: {use: dgx-h100}
  leaf[0-7]: quantum-2
links:
LINKS
"""


def pod():
    lines = "".join(f"  - node.nic{rail} -- leaf{rail}: infiniband ndr\n" for rail in range(8))
    return built(POD.replace("LINKS\n", lines))


def test_each_network_card_has_a_ring_that_enters_and_leaves_by_it():
    machine = pod()
    found = rings(machine, pattern="node.gpu")
    assert len(found) == 8
    for number, ring in enumerate(found):
        assert is_cycle(ring, names(machine, "node.gpu"))
        crossing = [hop for hop in ring.hops if hop[0][:5] != hop[-1][:5]]
        here = f".gpu{number}"
        # the last GPU hands its data to the one with the card
        assert [(hop[1:]) for hop in crossing] == [
            (f"node0{here}", f"node1{here}"),
            (f"node1{here}", f"node0{here}"),
        ]


def test_without_gpu_links_the_last_gpu_is_beside_the_card():
    machine = built(
        f"{HEAD}devices:\n  leaf0: quantum-2\n"
        "  cpu[0-1]: socket\n  sw[0-3]: switch\n  nic[0-3]: card\n  gpu[0-7]: plain\nlinks:\n"
        "  - sw -- cpu in blocks: pcie 5 x16\n  - gpu -- sw in blocks: pcie 5 x16\n"
        "  - nic -- sw: pcie 5 x16\n  - nic -- leaf0: infiniband ndr\n"
    )
    first, second = rings(machine)
    assert [int(name[-1]) for name in first.order] == [0, 2, 3, 1, 4, 6, 7, 5]
    assert [int(name[-1]) for name in second.order] == [2, 0, 1, 3, 6, 4, 5, 7]
    assert all(len(hop) == 2 for ring in (first, second) for hop in ring.hops)


# --- what passes each hop -------------------------------------------------------------------------


def with_workload(text):
    """Return a box of eight GPUs on an NVSwitch with a workload."""
    return built(
        f"{HEAD}devices:\n  cpu0: socket\n  gpu[0-7]: accel\n  nvs: nvswitch-3\nlinks:\n"
        f"  - gpu -- cpu0: pcie 5 x16\n  - gpu -- nvs: 18x nvlink 4\nworkloads:\n  it: {text}\n"
    )


@pytest.mark.parametrize(
    ("collective", "hops", "weight", "factor"),
    [
        ("all-reduce", 8, 2 * 7 / 8, 7 / 4),
        ("all-gather", 8, 7 / 8, 7 / 8),
        ("reduce-scatter", 8, 7 / 8, 7 / 8),
        ("all-to-all", 56, 1 / 8, 7 / 8),
        ("broadcast, root: gpu2", 7, 1, 1),
        ("reduce, root: gpu2", 7, 1, 1),
    ],
)
def test_bytes_are_those_of_ring_algorithms(collective, hops, weight, factor):
    name, _, root = collective.partition(", ")
    machine = with_workload(f"{{{name}: 1 GB, over: gpu{', ' * bool(root)}{root}}}")
    workload = machine.description.workloads[0]
    path = data_path(machine.description, "peer-nvlink")
    laid, route = lay_collective(Router(machine), workload, path)
    assert route.verdict == "ok"
    assert len(laid.hops) == hops
    assert all(hop.weight == pytest.approx(weight) for hop in laid.hops)
    assert laid.bus_factor == bus_factor(name, 8) == pytest.approx(factor)
    if root:
        ends = {"broadcast": laid.hops[0].source, "reduce": laid.hops[-1].target}
        assert ends[name] == "gpu2"


@given(st.integers(1, 6), st.integers(1, 6))
def test_each_card_of_two_servers_carries_the_same_share(gpus, most):
    cards = min(
        gpus, most
    )  # the other GPUs have none under their switch, and send by a ring's first
    devices, links = "", ""
    for side in "ab":
        last = gpus - 1
        devices += f"  {side}cpu: socket\n  {side}nvs: nvswitch-3\n  {side}gpu[0-{last}]: accel\n"
        devices += f"  {side}sw[0-{last}]: switch\n  {side}nic[0-{cards - 1}]: card\n"
        links += f"  - {side}sw -- {side}cpu: pcie 5 x8\n  - {side}gpu -- {side}sw: pcie 5 x16\n"
        links += f"  - {side}nic -- {side}sw[0-{cards - 1}]: pcie 5 x16\n"
        links += f"  - {side}gpu -- {side}nvs: 18x nvlink 4\n"
    links += "  - anic -- bnic: infiniband ndr\nworkloads:\n"
    links += "  it: {all-reduce: 1 GB, over: [agpu, bgpu]}\n"
    machine = built(f"{HEAD}devices:\n{devices}links:\n{links}")
    path = data_path(machine.description, "peer-nvlink" if gpus > 1 else "peer-pcie")
    _, route = lay_collective(Router(machine), machine.description.workloads[0], path)
    chips = {name: use for name, use in route.use.items() if "/chip" in name}
    assert len(chips) == 4 * cards  # both directions of each
    share = bus_factor("all-reduce", 2 * gpus) / cards
    assert list(chips.values()) == pytest.approx([share] * len(chips))
