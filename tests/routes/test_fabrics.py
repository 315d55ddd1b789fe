"""Equal-cost paths of a fabric by rule: what passes it spreads evenly over every tier."""

from __future__ import annotations

import pytest

import topo

FAT_TREE = """
topo: 1
parts: {small: {kind: network-switch, ports: 4x infiniband ndr, source: a textbook}}
devices:
  target[0-7]: {part: nvme-of-target, ports: 1x infiniband ndr, read: 50 GB/s, write: 50 GB/s}
  nic[0-7]: connectx-7
  cpu[0-7]: xeon-8480c
  gpu[0-7]: h100-sxm-80gb
fabrics:
  net: {kind: fat-tree, of: [nic, target], switch: small, cable: infiniband ndr}
links:
  - nic -- cpu: pcie 5 x16
  - gpu -- cpu: pcie 5 x16
"""


def uses(machine, source, target, above, below):
    """Return how much of a read passes each cable between two tiers."""
    path = topo.compare(machine, source=source, target=target, via=["direct"])["direct"]
    return {
        name: use
        for name, use in path.routes[0].use.items()
        if name.startswith(f"net-{above}") and f"-> net-{below}" in name
    }


@pytest.fixture(scope="module")
def tree():
    return topo.loads(FAT_TREE)


def test_across_pods_every_core_carries_the_same(tree):
    assert [len(tier.switches) for tier in tree.description.fabrics[0].tiers] == [8, 8, 4]
    assert uses(tree, "target7", "gpu0", "spine", "leaf") == {
        "net-spine0 -> net-leaf0": 0.5,
        "net-spine1 -> net-leaf0": 0.5,
    }
    downward = uses(tree, "target7", "gpu0", "core", "spine")
    assert set(downward.values()) == {0.25}
    assert len(downward) == 4


def test_under_one_leaf_nothing_goes_up():
    beside = "of: [nic0, target0, 'nic[1-7]', 'target[1-7]']"
    machine = topo.loads(FAT_TREE.replace("of: [nic, target]", beside))
    assert uses(machine, "target0", "gpu0", "spine", "leaf") == {}


def test_all_at_once_nobody_is_held_back_at_full_bisection(tree):
    """Each node reads from its own target: every cable of every tier is full, none over."""
    rates = topo.compare(tree, source="target", target="gpu", via=["direct"])["direct"].rates
    assert set(rates.values()) == {50e9}


def test_leaves_share_their_uplinks_evenly():
    text = FAT_TREE.replace("kind: fat-tree", "kind: leaf-spine, leaves: 4, spines: 2, uplinks: 4")
    machine = topo.loads(text.replace("ports: 4x", "ports: 16x"))
    assert uses(machine, "target7", "gpu0", "spine", "leaf") == {
        "net-spine0 -> net-leaf0": 0.5,
        "net-spine1 -> net-leaf0": 0.5,
    }
