"""Large systems of like demands are solved as one class, and the answer is that of all of them."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from tests.machines import LOCAL_DRIVES, ONE_SOCKET, SWITCHED, built, shipped
from tests.random_machines import sketches
from topo.datapaths.registry import data_path
from topo.flows.demands import System
from topo.routes.route import Policy
from topo.routes.router import Router
from topo.solve.certificates import certify
from topo.solve.maxmin import max_min
from topo.study.answer import answer, shared
from topo.study.answers import OwnLimit
from topo.study.bottleneck import bottleneck
from topo.study.timeline import simulate


def servers(count):
    """Return like servers: eight demands on two cards, and one storage that all of them share."""
    capacities = [900.0] + [50.0, 50.0] * count
    uses = [
        {0: 1.0, 1 + 2 * server + card // 4: 1.0} for server in range(count) for card in range(8)
    ]
    return System.of(capacities, uses)


@pytest.mark.parametrize("count", [2, 500])  # 16 and 4,000 demands: one by one, and as one class
def test_the_answer_is_that_of_each_demand_alone(count):
    system = servers(count)
    found = shared(system)
    assert certify(system, found) == ()
    assert list(found.rates) == pytest.approx(list(max_min(system).rates), rel=1e-12)
    assert found.stops == max_min(system).stops


# --- resources that a part does not state by itself -----------------------------------------------


def rates_of(text, via, workload="load", policy=None):
    machine = built(text)
    (asked,) = [each for each in machine.description.workloads if each.name == workload]
    path = data_path(machine.description, via)
    return answer(Router(machine, policy), asked, path)


@pytest.mark.parametrize(("via", "rate"), [("legacy", 40), ("legacy-pageable", 20), ("direct", 50)])
def test_the_cores_of_a_socket_limit_what_they_copy(via, rate):
    text = ONE_SOCKET.replace("core-copy: 10 GB/s", "cores: 4, core-copy: 10 GB/s").replace(
        "bus: 200 GB/s", "bus: 800 GB/s"
    )
    found = rates_of(text, via)
    assert found.rate == pytest.approx(rate * 1e9)
    if via != "direct":
        assert [bound.resource.id for bound in found.bottlenecks] == ["cpu0/copy"]
        assert found.cores.cores == pytest.approx(4)


def test_a_stated_rate_of_all_cores_goes_before_the_product():
    text = ONE_SOCKET.replace("core-copy: 10 GB/s", "cores: 4, core-copy: 10 GB/s, copy: 25 GB/s")
    assert rates_of(text, "legacy").rate == pytest.approx(25e9)


def test_what_rests_on_a_guess_of_one_core_is_a_guess():
    figure = shipped("dgx-h100").resources["cpu0/copy"].capacity.theoretical
    assert figure.kind == "guess"
    assert "cores x (" in figure.source


def test_a_cpu_of_which_the_cores_are_not_known_has_no_such_resource():
    assert "cpu0/copy" not in built(ONE_SOCKET).resources


# --- a limit of several GPUs ----------------------------------------------------------------------

# gpu1 hangs on two lanes: 1.97 GB/s.
LIMITED = SWITCHED.replace(
    "gpu -- sw0: pcie 5 x16", "gpu0 -- sw0: pcie 5 x16\n  - gpu1 -- sw0: pcie 3 x2"
)
LIMITED = LIMITED.replace("from: storage, to: gpu}", "from: storage, to: gpu, limit: 20 GB/s}")


@pytest.mark.parametrize("via", ["legacy", "direct"])
@pytest.mark.parametrize("nics", ["nearest", "stripe", "best"])
def test_what_one_gpu_cannot_take_of_a_limit_the_others_get(via, nics):
    found = rates_of(LIMITED, via, policy=Policy(nics=nics))
    narrow = 8e9 * 2 * 128 / 130 / 8
    assert found.rates == pytest.approx({"gpu0": 20e9 - narrow, "gpu1": narrow})
    assert found.start_rate == pytest.approx(20e9)
    assert [bound.resource.kind for bound in found.bottlenecks] == ["gpu-pcie"]
    assert found.time == pytest.approx(50e9 / narrow)
    alike = rates_of(LIMITED.replace("pcie 3 x2", "pcie 5 x16"), via, policy=Policy(nics=nics))
    assert alike.rate == pytest.approx(20e9)
    assert (alike.bottlenecks, alike.own_limits) == ((), (OwnLimit(),))


def test_a_limit_is_no_part_of_the_machine():
    machine = built(LIMITED.replace("pcie 3 x2", "pcie 5 x16"))
    ladder = bottleneck(machine, via="direct")
    assert (ladder.rungs, ladder.end.why) == ((), "own-limits")
    assert ladder.answer.rate == pytest.approx(20e9)
    assert (ladder.any_routing.rate, ladder.any_routing.resources) == (20e9, ())
    (moment, *_) = simulate(machine, via="direct").moments
    assert {rate.workload: rate.rate for rate in moment.rates}["load"] == pytest.approx(20e9)


# --- the best cards -------------------------------------------------------------------------------


def test_the_best_cards_leave_the_memories_their_even_shares():
    # 40 GB/s of the slower memory, four accesses a byte, half of the bytes.
    text = ONE_SOCKET.replace(
        "ram0: dram", "ram0: dram\n  ram1: {part: dram, bus: 40 GB/s}"
    ).replace("ram0 --", "ram --")
    for nics in ("nearest", "stripe", "best"):
        assert rates_of(text, "legacy", policy=Policy(nics=nics)).rate == pytest.approx(20e9)


def test_the_best_cards_leave_the_storages_their_even_shares():
    text = LOCAL_DRIVES.replace(
        "nvme[0-1]: drive", "nvme0: drive\n  nvme1: {part: drive, read: 1 GB/s}"
    )
    assert rates_of(text, "direct", policy=Policy(nics="best")).rate == pytest.approx(2e9)


@given(sketches(), st.sampled_from(["legacy", "direct", "odirect-pinned"]))
def test_the_best_cards_are_never_below_the_nearest_or_all(sketch, via):
    machine = built(sketch.text())
    for workload in machine.description.workloads:
        path = data_path(machine.description, via)
        by_cards = {
            nics: answer(Router(machine, Policy(nics=nics)), workload, path)
            for nics in ("nearest", "stripe", "best")
        }
        best = by_cards["best"]
        for found in by_cards.values():
            time, best_time = found.time or 0.0, best.time or 0.0
            assert best_time <= time * (1 + 1e-9)
            if best_time >= time * (1 - 1e-9):
                assert (best.rate or 0.0) >= (found.rate or 0.0) * (1 - 1e-9)
