"""Large systems of like demands are solved as one class, and the answer is that of all of them."""

from __future__ import annotations

import pytest

from topo.flows.demands import System
from topo.solve.certificates import certify
from topo.solve.maxmin import max_min
from topo.study.answer import shared


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
