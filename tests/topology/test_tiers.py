"""Tiers of networks: what meets at each, for fabrics by rule and for those written by hand."""

from __future__ import annotations

import pytest

import topo
from topo.topology.hosts import host_numbers
from topo.topology.tiers import networks

BY_HAND = """
topo: 1
devices:
  nic[0-7]: connectx-7
  leaf[0-1]: quantum-2
  spine[0-1]: quantum-2
  target: {part: nvme-of-target, ports: 2x infiniband ndr, read: 80 GB/s, write: 40 GB/s}
links:
  - nic -- leaf in blocks: infiniband ndr
  - leaf -- spine all to all: infiniband ndr
  - target -- spine all to all: infiniband ndr
"""


def rail(*more):
    text = "topo: 1\ndevices: {'nic[0-63]': connectx-7}\nfabrics:\n  net: {kind: rail-optimized, "
    keys = ("of: nic, rails: 8, switch: quantum-2, cable: infiniband ndr", *more)
    return topo.loads(f"{text}{', '.join(keys)}}}")


def test_a_network_by_hand():
    (network,) = networks(topo.loads(BY_HAND))
    leaves, spines = network.tiers
    assert leaves.switches == ("leaf0", "leaf1")
    assert (leaves.below, leaves.above, leaves.storage) == (400e9, 200e9, 0)
    assert leaves.oversubscription == leaves.highest == 2
    assert spines.switches == ("spine0", "spine1")
    assert (spines.below, spines.above, spines.storage) == (200e9, 0, 100e9)
    assert spines.oversubscription is None


@pytest.mark.parametrize("ratio", [1, 2, 4])
def test_what_is_asked_for_is_what_is_there(ratio):
    (network,) = networks(rail("unit: 8", f"oversubscription: {ratio}"))
    assert network.tiers[0].oversubscription == ratio


def test_three_tiers():
    (network,) = networks(rail("unit: 4", "levels: 3", "oversubscription: [1, 2]"))
    assert [tier.oversubscription for tier in network.tiers] == [1, 2, None]
    assert [len(tier.switches) for tier in network.tiers] == [16, 8, 1]


def test_a_switch_that_is_worse_than_its_tier():
    text = BY_HAND + "  - nic[0-3] -- leaf1: infiniband ndr\n"
    text = text.replace("nic[0-7]: connectx-7", "nic[0-7]: connectx-7-dual-port")
    (network,) = networks(topo.loads(text))
    assert network.tiers[0].oversubscription == 3
    assert network.tiers[0].highest == 4


def test_an_unknown_rate_makes_its_ratio_unknown():
    text = BY_HAND.replace("all to all: infiniband ndr", "all to all: infiniband unknown", 1)
    text = text.replace("leaf[0-1]: quantum-2", "leaf[0-1]: {part: network-switch-unknown}")
    text = text.replace("spine[0-1]: quantum-2", "spine[0-1]: {part: network-switch-unknown}")
    (network,) = networks(topo.loads(text))
    assert network.tiers[0].above is None
    assert network.tiers[0].oversubscription is None


def test_two_networks_stand_apart():
    text = """
topo: 1
devices: {'nic[0-3]': connectx-7, 'leaf[0-1]': quantum-2}
links:
  - nic[0-1] -- leaf0: infiniband ndr
  - nic[2-3] -- leaf1: infiniband ndr
"""
    assert [network.tiers[0].switches for network in networks(topo.loads(text))] == [
        ("leaf0",),
        ("leaf1",),
    ]


def test_no_switches_no_network():
    assert networks(topo.load("dgx-h100")) == ()


def test_hosts_are_what_host_links_join():
    hosts = host_numbers(topo.load("dgx-h100"))
    assert hosts["gpu0"] == hosts["gpu7"] == hosts["ram1"]
    numbers = host_numbers(topo.loads(BY_HAND))
    assert len(set(numbers.values())) == len(numbers)
