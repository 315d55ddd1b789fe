"""What no routing can exceed: where it can be counted by hand, and against every policy."""

from __future__ import annotations

import math

import pytest
from hypothesis import given
from hypothesis import strategies as st

from tests.machines import built
from tests.random_machines import sketches
from topo.routes.route import Policy
from topo.study.bottleneck import RoutingBound, routing_bound
from topo.study.compare import compare
from topo.topology.build import load

TWO_UNLIKE_CARDS = """
topo: 1
devices:
  storage: {part: nvme-of-target, outside: yes}
  nic0: connectx-7
  nic1: connectx-7
  cpu0: xeon-8480c
  ram0: {part: ddr5-4800, channels: 8}
  gpu0: h100-sxm-80gb
links:
  - storage -- nic0: infiniband ndr
  - storage -- nic1: ethernet 100 Gb/s
  - nic[0-1] -- cpu0: pcie 5 x16
  - ram0 -- cpu0: memory-bus
  - gpu0 -- cpu0: pcie 5 x16
settings: {iommu: off}
workloads:
  load: {read: 80 GB, from: storage, to: gpu}
"""


def bound_of(machine, workload: str, via: str, policy: Policy | None = None):
    (answer,) = compare(machine, workload=workload, via=[via], policy=policy).workloads
    (path,) = answer.paths
    bound = routing_bound(machine, answer.workload, path, "theoretical")
    return math.fsum(path.rates.values()), bound


def names(bound: RoutingBound) -> list[str]:
    return [resource.name for resource in bound.resources]


def test_the_drives_behind_a_raid_card_bound_any_routing():
    text = (
        TWO_UNLIKE_CARDS.split("links:", maxsplit=1)[0].replace(
            "gpu0:",
            "raid: {part: raid-card-gen5, read: unlimited, write: unlimited}\n  "
            "nvme[0-3]: {part: nvme-gen4-3.84tb, read: 6 GB/s}\n  gpu0:",
        )
        + """links:
  - raid -- cpu0: pcie 5 x16
  - nvme -- raid: pcie 4 x4
  - ram0 -- cpu0: memory-bus
  - gpu0 -- cpu0: pcie 5 x16
settings: {iommu: off}
workloads:
  load: {read: 80 GB, from: raid, to: gpu}
"""
    )
    text = text.replace("  nic0: connectx-7\n  nic1: connectx-7\n", "").replace(
        "  storage: {part: nvme-of-target, outside: yes}\n", ""
    )
    rate, bound = bound_of(built(text), "load", "legacy")
    assert rate == bound.rate == pytest.approx(24e9)


@pytest.mark.parametrize(
    ("machine", "workload", "via", "rate", "cut"),
    [
        ("gds-textbook", "load", "direct", 100e9, ["slot1/chip", "slot2/chip"]),
        # 2 x 200 GB/s of RAM over 6 accesses a byte
        ("gds-textbook", "load", "legacy-pageable", 400e9 / 6, ["ram0/bus", "ram1/bus"]),
        ("gds-loses", "load", "direct", 6.9 * 2**30, ["cpu0 -> cpu1/p2p"]),
        ("gds-loses", "checkpoint", "direct", 2.3 * 2**30, ["cpu1 -> cpu0/p2p"]),
    ],
)
def test_where_the_machine_is_the_limit_the_bound_is_the_rate(machine, workload, via, rate, cut):
    reached, bound = bound_of(load(machine), workload, via)
    assert bound.rate == pytest.approx(rate)
    assert bound.rate == pytest.approx(reached)
    assert names(bound) == cut


def test_a_policy_that_holds_a_machine_below_what_it_could_is_told_from_the_machine():
    # equal shares: the slower card's 12.5 GB/s twice; by any shares 50 + 12.5
    machine = built(TWO_UNLIKE_CARDS)
    reached, bound = bound_of(machine, "load", "direct")
    assert (reached, bound.rate) == (pytest.approx(25e9), pytest.approx(62.5e9))
    assert names(bound) == ["nic0/p1", "nic1/p1"]
    best, _ = bound_of(machine, "load", "direct", Policy(nics="best"))
    assert best == pytest.approx(bound.rate)


def test_own_limits_of_the_demands_are_a_bound_without_resources():
    text = TWO_UNLIKE_CARDS.replace("to: gpu}", "to: gpu, limit: 5 GB/s}")
    _, bound = bound_of(built(text), "load", "direct")
    assert (bound.rate, bound.resources) == (5e9, ())


def test_a_copy_among_gpus_that_both_send_and_receive_has_no_bound():
    text = TWO_UNLIKE_CARDS.replace(
        "workloads:", "workloads:\n  swap: {copy: 1 GB, from: gpu, to: gpu, via: peer-pcie}"
    ).replace("gpu0", "gpu[0-1]")
    _, bound = bound_of(built(text), "swap", "peer-pcie")
    assert bound is None


@given(
    sketches(),
    st.sampled_from(["load", "save"]),
    st.sampled_from(["legacy", "direct", "legacy-pageable", "compat"]),
    st.sampled_from(
        [
            Policy(),
            Policy(nics="stripe"),
            Policy(nics="best"),
            Policy(buffers=(("all", "near-nic"),)),
        ]
    ),
)
def test_no_policy_exceeds_the_bound(sketch, workload, via, policy):
    reached, bound = bound_of(built(sketch.text()), workload, via, policy)
    assert bound is None or reached <= bound.rate * (1 + 1e-9)
