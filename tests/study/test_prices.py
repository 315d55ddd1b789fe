"""What one GB/s more adds and one less costs, and who gets what: equal ones as one."""

from __future__ import annotations

import math

import pytest

import topo
from tests.machines import ONE_SOCKET, TWO_SOCKETS, built, shipped
from topo.flows.demands import use_matrix
from topo.solve.maxmin import max_min
from topo.study.prices import TimePrice, explain
from topo.views.prices import class_price, price_sentences, tied_price


def explained(machine, via, workload=None, **how):
    matrix = topo.bottleneck(machine, workload=workload, via=via).answer.matrix
    assert matrix is not None
    return explain(matrix, **how)


def by_class(found):
    return {one.kind: one for one in found.prices.classes}


def test_direct_on_the_textbook_machine():
    found = explained(shipped("gds-textbook"), "direct")
    prices = by_class(found)
    # Four GPUs share each card: one more on it is one more for them; 13 more fill its slot.
    chips = prices["nic-chip"]
    assert (chips.single.gain, chips.single.cost) == (1, 1)
    assert (chips.together.gain, chips.together.cost) == (2, 2)
    # 32 GT/s x 16 x 128/130 / 8 = 63.015 GB/s, less the 50 there are.
    assert chips.together.range_up == pytest.approx(32e9 * 16 * 128 / 130 / 8 - 50e9, rel=1e-5)
    assert {one.kind for one in chips.next_bound} == {"card-pcie"}
    slots = prices["card-pcie"]
    assert (slots.single.gain, slots.single.cost, slots.together.gain) == (0, 0, 0)
    assert found.prices.tie is None
    assert class_price(chips) == (
        "one GB/s more on both cards' chips adds 2 GB/s in all, up to +13.0 GB/s a card, where "
        "the slots' PCIe binds; one less costs 2 GB/s"
    )
    assert price_sentences(found.prices)[-1] == (
        "One GB/s more or less on the network ports, the slots' PCIe, the GPUs' PCIe and the "
        "GPUs' memory changes nothing."
    )


def test_legacy_on_the_textbook_machine():
    prices = by_class(explained(shipped("gds-textbook"), "legacy"))
    # Chips and RAM buses are full at the same rate: more of one alone meets the other.
    chips, buses = prices["nic-chip"], prices["memory-bus"]
    assert (chips.single.gain, chips.single.cost) == (0, 1)
    # A payload byte crosses the bus four times: one GB/s less of it is a quarter less payload.
    assert (buses.single.gain, buses.single.cost) == (0, 0.25)
    assert (
        class_price(buses)
        == "one GB/s more on both RAM buses adds nothing; one less costs 0.5 GB/s"
    )


def test_prices_in_seconds():
    # 160 GB: gpu1's half at the 5 GB/s of a cap, 16 s. At 6 GB/s 13.33 s, at 4 GB/s 20 s.
    machine = built(
        TWO_SOCKETS.replace(
            "cpu0 -- cpu1: upi 16 GT/s",
            "cpu0 -- cpu1: {medium: upi 16 GT/s, p2p: {posted: 5 GB/s}}",
        ).replace("workloads:", "workloads:\n  load: {read: 160 GB, from: storage, to: gpu}")
    )
    found = explained(machine, "direct", "load", sized=True)
    assert (found.prices.time, found.prices.finish_apart) == (16, True)
    cap = by_class(found)["peer-to-peer"].together_time
    assert (cap.saved, cap.lost) == pytest.approx((16 - 80 / 6, 20 - 16))
    assert by_class(found)["nic-chip"].together_time == TimePrice(0, 0)
    assert price_sentences(found.prices)[0] == (
        "One GB/s more on the peer-to-peer cap saves 2.667 s; one less costs 4 s."
    )
    assert price_sentences(found.prices)[-1].endswith(" leaves the time as it is.")


def test_all_at_once_a_price_is_of_rate_and_time():
    # 640 GB at 100 GB/s; at 102 GB/s 6.2745 s, at 98 GB/s 6.5306 s.
    chips = by_class(explained(shipped("gds-textbook"), "direct", sized=True))["nic-chip"]
    seconds = chips.together_time
    assert (seconds.saved, seconds.lost) == pytest.approx((6.4 - 640 / 102, 640 / 98 - 6.4))
    assert class_price(chips) == (
        "one GB/s more on both cards' chips adds 2 GB/s in all (125.5 ms less), up to +13.0 GB/s a "
        "card, where the slots' PCIe binds; one less costs 2 GB/s (130.6 ms more)"
    )


def test_less_than_one_gigabyte_cannot_lose_one():
    slow = ONE_SOCKET.replace("gpu0 -- cpu0: pcie 5 x16", "gpu0 -- cpu0: pcie 1 x1")
    found = by_class(explained(built(slow), "direct", "load", sized=True))["gpu-pcie"]
    assert found.together_time.lost is None
    assert class_price(found).endswith("; one less leaves nothing of it")


def test_what_is_full_together_is_priced_as_a_group():
    tie = explained(shipped("gds-textbook"), "legacy").prices.tie
    # 1 GB/s on each of two chips of 50 and, in proportion, 4 on each of two buses of 200.
    assert sorted(zip((one.name for one in tie.resources), tie.steps, strict=True)) == [
        ("ram0/bus", 4),
        ("ram1/bus", 4),
        ("slot1/chip", 1),
        ("slot2/chip", 1),
    ]
    assert (tie.together.gain, tie.together.cost) == (2, 2)
    assert {one.kind for one in tie.next_bound} == {"card-pcie"}
    assert "4 GB/s more on both RAM buses and 1 GB/s more on both cards' chips" in tied_price(tie)
    assert "adds 2 GB/s" in tied_price(tie).replace("add 2", "adds 2")


@pytest.mark.parametrize("name", ["gds-textbook", "dgx-h100", "l40s-two-switches", "gds-loses"])
@pytest.mark.parametrize("via", ["legacy", "direct", "legacy-pageable"])
def test_a_price_is_what_the_total_does(name, via):
    machine = shipped(name)
    found = explained(machine, via)
    total = math.fsum(found.allocation.rates)
    step = 1e6
    for one in found.prices.classes:
        index = found.matrix.resources.index(one.resources[0])
        for sign, slope in ((1, one.single.gain), (-1, one.single.cost)):
            capacities = list(found.matrix.system.capacities)
            capacities[index] += sign * step
            system = type(found.matrix.system)(
                capacities,
                *(
                    getattr(found.matrix.system, field)
                    for field in ("starts", "resources", "multiplicities", "weights", "limits")
                ),
            )
            changed = math.fsum(max_min(system).rates) - total
            assert changed / step * sign == pytest.approx(slope, abs=1e-3)


def test_the_largest_total_has_prices_of_its_own():
    # RAM of 100 GB/s; pageable crosses it 6 times, legacy 4 times. Fair: 10 each, 20 in all. The
    # largest total starves the one that uses more: 100 / 4 = 25, and a byte/s of RAM is worth 1/4.
    machine = built(ONE_SOCKET, {"ram0.bus": "100 GB/s"})
    matrices = [
        topo.bottleneck(machine, workload="load", via=via).answer.matrix
        for via in ("legacy-pageable", "legacy")
    ]
    both = use_matrix(machine, [demand for one in matrices for demand in one.demands])
    fair, largest = explain(both), explain(both, rule="largest-total")
    assert (fair.prices.total, largest.prices.total) == pytest.approx((20e9, 25e9))
    assert largest.prices.fair_total == pytest.approx(20e9)
    assert [one.rate for one in largest.shares] == pytest.approx([0, 25e9])
    assert by_class(fair)["memory-bus"].single.gain == pytest.approx(0.2)
    assert by_class(largest)["memory-bus"].single.gain == pytest.approx(0.25)


def test_a_weight_is_no_worth():
    machine = built(ONE_SOCKET.replace("load: {", "load: {weight: 5, "))
    found = explained(machine, "direct", workload="load", rule="largest-total")
    assert found.prices.total == pytest.approx(50e9)


def test_equal_demands_share_a_line():
    found = explained(shipped("gds-textbook"), "direct")
    (share,) = found.shares
    assert len(share.demands) == 8
    assert (share.rate, share.share) == (12.5e9, 0.125)
    assert {one.name for one in share.stopped_by} == {"slot1/chip", "slot2/chip"}
    assert len(explained(shipped("gds-textbook"), "direct", each=True).shares) == 8


def test_unequal_demands_do_not():
    # near and far use other resources, whatever their rates are.
    machine = built(TWO_SOCKETS)
    description = machine.description.workloads
    matrices = [
        topo.bottleneck(machine, workload=one, via="legacy").answer.matrix
        for one in description[:2]
    ]
    both = use_matrix(machine, [demand for one in matrices for demand in one.demands])
    assert [len(one.demands) for one in explain(both).shares] == [1, 1]


def test_what_is_used_the_fullest_first():
    found = explained(shipped("gds-textbook"), "legacy")
    assert [one.utilisation for one in found.uses[:2]] == pytest.approx([1, 1])
    full = {name.name: one for one in found.uses for name in one.resources}
    # 8 x 12.5 GB/s, half of it on each slot of 63.015.
    assert full["slot1 -> root0"].utilisation == pytest.approx(50 / 63.015384615)
    assert len(full["ram0/bus"].resources) == 2
    assert len(full["ram0/bus"].users) == 8
    last = found.uses[-1]
    assert (last.resources[0].name, last.capacity, last.utilisation) == (
        "storage/read",
        math.inf,
        None,
    )


def test_one_line_stands_for_equal_figures_only():
    for name in ("gds-textbook", "dgx-h100", "dgx-a100", "workstation-4gpu"):
        for via in ("legacy", "legacy-pageable"):
            matrix = topo.bottleneck(shipped(name), via=via).answer.matrix
            assert matrix is not None
            folded, each = explain(matrix), explain(matrix, each=True)
            rates = {demand.endpoint: one.rate for one in each.shares for demand in one.demands}
            for one in folded.shares:
                for demand in one.demands:
                    assert rates[demand.endpoint] == pytest.approx(one.rate, rel=1e-8)
            loads = {one.resources[0].id: one.load for one in each.uses}
            for use in folded.uses:
                for resource in use.resources:
                    assert loads[resource.id] == pytest.approx(use.load, rel=1e-8)
