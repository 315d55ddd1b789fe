"""From a workload to demands: shares, limits, workers; and to the matrix that solvers take."""

from __future__ import annotations

import math

import pytest

from tests.machines import LOCAL_DRIVES, ONE_SOCKET, SWITCHED, TWO_SOCKETS, built, shipped
from topo.datapaths.registry import data_path
from topo.flows.demands import (
    at_basis,
    core_copy_rate,
    demands_of,
    use_matrix,
    worker_limit,
)
from topo.flows.ends import Ends, ends_of
from topo.routes.router import Router
from topo.solve.maxmin import max_min

GB = 1e9


def demands(machine, via, workload="load", basis="theoretical"):
    (asked,) = [one for one in machine.description.workloads if one.name == workload]
    return demands_of(Router(machine), asked, data_path(machine.description, via), basis=basis)


def total(machine, via, workload="load", basis="theoretical"):
    found = use_matrix(machine, demands(machine, via, workload, basis), basis=basis)
    return math.fsum(max_min(found.system).rates)


# --- shares ---------------------------------------------------------------------------------------


def test_a_size_and_a_limit_are_shared_over_the_gpus():
    text = SWITCHED.replace("from: storage, to: gpu}", "from: storage, to: gpu, limit: 10 GB/s}")
    found = demands(built(text), "direct")
    assert [demand.endpoint for demand in found] == ["gpu0", "gpu1"]
    assert [demand.size for demand in found] == [50 * GB, 50 * GB]
    assert [demand.limit for demand in found] == [math.inf] * 2
    assert [demand.limit_in_all for demand in found] == [10 * GB, 10 * GB]
    assert total(built(text), "direct") == pytest.approx(10 * GB)
    assert found[0].name == "load gpu0"


def test_each_is_a_size_for_every_gpu():
    text = SWITCHED.replace("read: 100 GB,", "read: 100 GB each,")
    assert [demand.size for demand in demands(built(text), "direct")] == [100 * GB] * 2


def test_weights_and_starts_come_along():
    text = SWITCHED.replace(
        "from: storage, to: gpu}", "from: storage, to: gpu, weight: 3, start: 2 s}"
    )
    found = demands(built(text), "direct")[0]
    assert (found.weight, found.start, found.limit) == (3.0, 2.0, math.inf)


def test_the_ends_of_a_read_and_of_a_write():
    machine = built(ONE_SOCKET)
    load, save = machine.description.workloads
    assert ends_of(machine, load) == (Ends("gpu0", ("storage",), "read"),)
    assert ends_of(machine, save) == (Ends("gpu0", ("storage",), "write"),)


def test_a_write_is_laid_as_one():
    assert demands(built(ONE_SOCKET), "direct", "save")[0].route.direction == "write"


# --- workers --------------------------------------------------------------------------------------

SHARED = "[storage -> user-buffer by nic: 3.91 GB/s, user-buffer -> gpu by gpu: 7.98 GB/s]"
OWN = SHARED.replace("GB/s", "GB/s per worker")
STAGES = f"""
data-paths:
  one-worker: {{stages: serial, moves: {SHARED}}}
  eight-workers: {{stages: serial, workers: 8, moves: {SHARED}}}
  eight-own: {{stages: serial, workers: 8, moves: {OWN}}}
  pipelined: {{workers: 2, moves: {OWN}}}
"""
MEASURED_SERVER = ONE_SOCKET + STAGES


@pytest.mark.parametrize(
    ("via", "expected"),
    [
        ("one-worker", 1 / (1 / 3.91 + 1 / 7.98)),  # 2.62: the times of the stages add
        ("eight-workers", 3.91),  # what the workers share binds
        ("eight-own", 8 / (1 / 3.91 + 1 / 7.98)),  # 21.0: nothing that they share does
        ("pipelined", 2 * 3.91),  # stages overlap: the slowest decides
    ],
)
def test_serial_and_pipelined_stages(via, expected):
    assert total(built(MEASURED_SERVER), via) == pytest.approx(expected * GB)


def test_the_published_figures_of_one_worker():
    assert total(built(MEASURED_SERVER), "one-worker") == pytest.approx(2.62 * GB, rel=2e-3)
    assert total(built(MEASURED_SERVER), "eight-own") == pytest.approx(21.0 * GB, rel=2e-3)


def test_workers_share_what_the_machine_gives():
    # Eight workers could do 21 GB/s; a PCIe 3 x8 slot passes 7.9.
    slow = MEASURED_SERVER.replace("nic0 -- cpu0: pcie 5 x16", "nic0 -- cpu0: pcie 3 x8")
    machine = built(slow)
    slot = machine.resources["nic0 -> cpu0"].capacity.rate("theoretical")
    assert total(machine, "eight-own") == pytest.approx(slot)


TWO_STAGES = """
data-paths:
  mine: {stages: serial, moves: [storage -> a-buffer by nic, a-buffer -> gpu by gpu]}
"""


def test_a_serial_stage_without_a_rate_takes_what_it_meets():
    # The card's chip 50, the GPU's PCIe 63.015; the RAM's bus 200 takes one byte once each.
    machine = built(ONE_SOCKET + TWO_STAGES)
    pcie = machine.resources["cpu0 -> gpu0"].capacity.rate("theoretical")
    assert total(machine, "mine") == pytest.approx(1 / (1 / (50 * GB) + 1 / pcie))


def test_a_serial_core_copy_takes_one_core():
    own = (
        "data-paths:\n  mine:\n    stages: serial\n    moves:\n"
        "      - storage -> kernel-buffer by nic\n"
        "      - kernel-buffer -> user-buffer by core\n"
        "      - user-buffer -> gpu by gpu\n"
    )
    machine = built(ONE_SOCKET + own)
    pcie = machine.resources["cpu0 -> gpu0"].capacity.rate("theoretical")
    expected = 1 / (1 / (50 * GB) + 1 / (10 * GB) + 1 / pcie)
    assert total(machine, "mine") == pytest.approx(expected)
    assert total(machine, "mine", "save") == pytest.approx(expected)


def test_a_limit_follows_the_basis():
    machine = built(ONE_SOCKET + TWO_STAGES)
    (theory,) = demands(machine, "mine")
    (achievable,) = demands(machine, "mine", basis="achievable")
    assert achievable.limit < theory.limit
    assert at_basis(machine, theory, "achievable").limit == achievable.limit
    assert at_basis(machine, achievable, "theoretical").limit == theory.limit


def test_a_workload_s_own_limit_is_kept_in_every_basis():
    text = ONE_SOCKET.replace("to: gpu0}", "to: gpu0, limit: 3 GB/s}", 1)
    (found,) = demands(built(text), "direct")
    assert at_basis(built(text), found, "achievable").limit == 3 * GB


def test_pipelined_paths_have_no_worker_limit_unless_one_is_stated():
    machine = built(ONE_SOCKET)
    (found,) = demands(machine, "legacy")
    assert worker_limit(machine, found.route, "theoretical") == math.inf


def test_a_core_copies_what_its_part_says_or_a_guess():
    machine = built(ONE_SOCKET.replace("core-copy: 10 GB/s", "core-copy: 14 GB/s"))
    assert core_copy_rate(machine, "cpu0") == 14 * GB
    assert core_copy_rate(built(ONE_SOCKET.replace("core-copy: 10 GB/s, ", "")), "cpu0") == 10 * GB
    assert core_copy_rate(machine, "") == 10 * GB


# --- the matrix -----------------------------------------------------------------------------------


def test_the_matrix_has_a_row_a_demand_and_a_column_a_resource():
    machine = built(TWO_SOCKETS)
    found = use_matrix(machine, demands(machine, "direct", "far"))
    assert [resource.id for resource in found.resources] == list(found.demands[0].route.use)
    assert found.system.demand_count == 1
    assert set(found.system.multiplicities) == {1.0}
    assert found.basis == "theoretical"


def test_what_is_left_out_does_not_bind():
    machine = built(ONE_SOCKET)
    rows = demands(machine, "direct")
    found = use_matrix(machine, rows).without({"nic0/chip in", "nic0/p1 in"})
    assert max_min(found.system).rates[0] == pytest.approx(63.015 * GB, rel=1e-5)


def test_an_unknown_capacity_does_not_bind():
    text = ONE_SOCKET.replace("bus: 200 GB/s", "bus: unknown")
    found = use_matrix(built(text), demands(built(text), "legacy"))
    index = [resource.id for resource in found.resources].index("ram0/bus")
    assert found.system.capacities[index] == math.inf
    assert found.resources[index].capacity.theoretical.value is None


def test_resources_of_routes_alone_are_in_it_too():
    machine = shipped("gds-loses")
    found = use_matrix(machine, demands(machine, "direct"))
    assert "cpu0 -> cpu1/p2p posted" in [resource.id for resource in found.resources]


def test_reads_and_writes_can_be_put_together():
    machine = built(LOCAL_DRIVES)
    both = (*demands(machine, "legacy", "load"), *demands(machine, "legacy", "save"))
    found = use_matrix(machine, both)
    loads = dict(zip((r.id for r in found.resources), max_min(found.system).loads, strict=True))
    assert loads["ram0/bus"] == pytest.approx(4 * (14 + 10) * GB)
    assert loads["nvme0/read"] == pytest.approx(7 * GB)
    assert loads["nvme0/write"] == pytest.approx(5 * GB)
