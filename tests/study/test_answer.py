"""Large systems of like demands are solved as one class, and the answer is that of all of them."""

from __future__ import annotations

import pytest

from tests.machines import ONE_SOCKET, built, shipped
from topo.datapaths.registry import data_path
from topo.flows.demands import System
from topo.routes.router import Router
from topo.solve.certificates import certify
from topo.solve.maxmin import max_min
from topo.study.answer import answer, shared


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


def rates_of(text, via, workload="load"):
    machine = built(text)
    (asked,) = [each for each in machine.description.workloads if each.name == workload]
    path = data_path(machine.description, via)
    return answer(Router(machine), asked, path)


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
