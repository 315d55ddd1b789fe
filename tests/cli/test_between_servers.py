"""What a reader asks of two servers: RAM and GPUs across the network, by every verb."""

from __future__ import annotations

import re

import pytest

PAIR = """
topo: 1
name: pair
devices:
  node[0-1]: {use: dgx-h100}
  leaf: quantum-2
links:
  - node.slot1 -- leaf: infiniband ndr
  - node.slot2 -- leaf: infiniband ndr
  - node.nic -- leaf: infiniband ndr
workloads:
  kv: {read: 43 GB, from: node0.ram0, to: node1.gpu0}
  mirror: {copy: 100 GB, from: node0.ram, to: node1.ram, pairing: in-order}
expect:
  - kv via rdma-direct <= 0.9 s
  - kv via rdma-direct is limited by node1.nic0/chip
  - mirror via rdma >= 500 GB/s
  - mirror via rdma beats sockets
  - node0.ram0 to node1.gpu0 via rdma-direct is possible
  - node0.ram0 to node0.gpu0 via rdma-direct is not possible
"""
VERBS = [
    *("check", "compare", "compare --together", "bottleneck", "simulate", "paths", "failures"),
    *("upgrade", "affinity", "show", "draw -o pair.svg", "report -o pair.html"),
]


@pytest.fixture(autouse=True)
def _pair(topo, tmp_path):
    (tmp_path / "pair.yaml").write_text(PAIR)


@pytest.mark.parametrize("verb", VERBS)
def test_every_verb_answers(topo, verb):
    name, *words = verb.split()
    done = topo(name, "pair.yaml", *words)
    assert done.code == 0, done.err


def test_the_other_server_s_ram_is_told_apart(topo):
    words = ("compare", "pair.yaml", "--workload", "mirror", "--via", "sockets")
    out = topo(*words).out
    assert re.search(r"^RAM traversals, other server +1, 100 GB$", out, re.MULTILINE)
    assert re.search(r"^accesses of RAM +3 a byte, 3 in the other server$", out, re.MULTILINE)
    waypoints = "send-buffer (RAM) -> node0.nic0 -> node1.nic0 -> socket-buffer (RAM)"
    assert waypoints in " ".join(out.split())
    (workload,) = topo(*words, "--json").document["workloads"]
    (path,) = workload["paths"]
    assert (path["ram_traversals"], path["dram_bytes"]) == (1, 300_000_000_000)
    assert path["target"] == {
        "data_path": "sockets",
        "ram_traversals": 1,
        "cpu_memory_copies": 1,
        "core_copies": 1,
        "dram_bytes_per_byte": 3,
        "ram_traffic_bytes": 100_000_000_000,
    }


@pytest.mark.parametrize(
    ("ends", "ways"),
    [
        (("node0.ram0", "node1.gpu0"), {"rdma-staged": 50, "rdma-direct": 50}),
        (("node1.gpu0", "node0.ram0"), {"rdma-staged": 50, "rdma-direct": 50}),
        (("node0.gpu0", "node1.gpu0"), {"peer-staged": 50, "peer-rdma": 50}),
        (("node0.slot1", "node0.nic0"), {"forward": 50}),
    ],
)
def test_ends_are_asked_for_without_a_size(topo, ends, ways):
    """One card of 400 Gb/s binds each: a GPU of this server hangs behind its own."""
    words = ("compare", "pair.yaml", "--from", ends[0], "--to", ends[1], "--json")
    (workload,) = topo(*words).document["workloads"]
    rates = {path["data_path"]: path["rate_bytes_per_s"] for path in workload["paths"]}
    assert rates == pytest.approx({name: rate * 1e9 for name, rate in ways.items()})


def test_a_route_is_drawn_through_both_servers(topo, tmp_path):
    words = ("draw", "pair.yaml", "--from", "node0.ram0", "--to", "node1.gpu0")
    assert topo(*words, "--via", "rdma-staged", "-o", "way.svg").code == 0
    picture = (tmp_path / "way.svg").read_text()
    assert "1 RAM traversal, 0 in the other server" in picture


def test_each_half_is_explained(topo):
    out = topo("explain", "sockets").out
    assert "In the server where RAM is filled or emptied:" in out
    assert "In the other server, counted apart:" in out
    assert "2. send-buffer -> socket-buffer by nic over network" in out
    assert "copies 1, copies by a core 0" in topo("explain", "pinned").out
