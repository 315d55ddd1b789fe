"""Large systems of like demands are solved as one class, and the answer is that of all of them."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from tests.machines import LOCAL_DRIVES, ONE_SOCKET, PARTS, SWITCHED, built, shipped
from tests.random_machines import sketches
from topo.catalogue.parts import catalogue
from topo.datapaths.registry import data_path
from topo.description.as_document import to_document
from topo.description.write import to_yaml
from topo.errors import DescriptionError
from topo.flows.demands import System
from topo.routes.route import Policy
from topo.routes.router import Router
from topo.solve.certificates import certify
from topo.solve.maxmin import max_min
from topo.study.answer import answer, shared
from topo.study.answers import OwnLimit
from topo.study.bottleneck import bottleneck
from topo.study.compare import compare
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


# --- a link both ways -----------------------------------------------------------------------------

# The card passes 100 GB/s, so PCIe 5 x16 binds: 63.015 GB/s, 89 % of it achievable.
FAST_CARD = ONE_SOCKET.replace("400 Gb/s", "800 Gb/s").replace("ndr", "xdr")
ONE_WAY = 32e9 * 16 * 128 / 130 / 8


@pytest.mark.parametrize(("at", "share"), [("theoretical", 1), ("achievable", 0.89)])
@pytest.mark.parametrize("workload", ["load", "save"])
def test_one_way_alone_is_not_limited_by_both_ways(workload, at, share):
    path = compare(built(FAST_CARD), workload=workload, via=("direct",), at=at)["direct"]
    assert path.rate == pytest.approx(share * ONE_WAY)
    assert all(" -> " in bound.resource.name for bound in path.bottlenecks)


@pytest.mark.parametrize(("at", "share"), [("theoretical", 1), ("achievable", 0.89 * 0.9)])
def test_a_link_carries_less_than_twice_one_way_where_both_are_used(at, share):
    (moment,) = simulate(built(FAST_CARD), via="direct", at=at).moments
    assert [rate.rate for rate in moment.rates] == pytest.approx([share * ONE_WAY] * 2)
    links = {resource.name for rate in moment.rates for resource in rate.stopped_by}
    both_ways = {"gpu0 <-> cpu0", "nic0 <-> cpu0"}
    assert links & both_ways == (both_ways if at == "achievable" else set())


@pytest.mark.parametrize(
    ("change", "share"),
    [
        ({"media": ""}, 0.89 * 0.9),
        ({"media": "media: {pcie 5: {duplex: 75 %}}"}, 0.89 * 0.75),
        ({"part": "hbm: 3000 GB/s, duplex: 60 %"}, 0.89 * 0.6),
        ({"cable": "{medium: pcie 5 x16, duplex: 50 %}"}, 0.89 * 0.5),
    ],
    ids=["as shipped", "medium", "part", "cable"],
)
def test_who_says_what_a_link_carries_both_ways(change, share):
    text = FAST_CARD.replace("parts:", f"{change.get('media', '')}\nparts:", 1)
    text = text.replace("hbm: 3000 GB/s", change.get("part", "hbm: 3000 GB/s"))
    text = text.replace(
        "gpu0 -- cpu0: pcie 5 x16", f"gpu0 -- cpu0: {change.get('cable', 'pcie 5 x16')}"
    )
    machine = built(text)
    (moment,) = simulate(machine, via="direct", at="achievable").moments
    assert moment.rates[0].rate == pytest.approx(share * ONE_WAY)
    again = built(to_yaml(to_document(machine.description)))
    assert again.both_ways["gpu0 -> cpu0"].capacity.rate("achievable") == pytest.approx(
        2 * share * ONE_WAY
    )


def test_both_ways_measured_is_of_what_was_measured_one_way():
    text = f"{FAST_CARD}measured:\n  - gpu0 -> cpu0: 40 GB/s\n  - cpu0 -> gpu0: 50 GB/s\n"
    link = built(text).both_ways["gpu0 -> cpu0"].capacity
    assert link.rate("measured") == pytest.approx(0.9 * 90e9)
    slow = text.replace("40 GB/s", "1 GB/s")
    assert built(slow).both_ways["gpu0 -> cpu0"].capacity.rate("measured") == pytest.approx(50e9)


def test_less_than_one_way_is_refused_and_a_limit_both_ways_is_expected():
    with pytest.raises(DescriptionError, match="less than one direction alone"):
        built(f"{FAST_CARD}media: {{pcie 5: {{duplex: 40 %}}}}\n")
    check = f"{FAST_CARD}expect:\n  - load via direct is limited by gpu0 <-> cpu0\n"
    assert built(check).description.expectations[0].what == "gpu0 <-> cpu0"


def test_all_to_all_over_two_uplinks_comes_to_what_is_measured():
    # Eight GPUs behind two switches: 16 of the 56 pairs cross each uplink either way. Measured on
    # such a machine: 179.0 GB/s in all, and 168.4 on another.
    text = (
        PARTS
        + """
devices:
  cpu0: socket
  ram0: dram
  sw[0-1]: {part: pcie-switch-gen5, acs: off}
  gpu[0-7]: accel
links:
  - ram0 -- cpu0: memory-bus
  - sw -- cpu0: pcie 5 x16
  - gpu -- sw in blocks: pcie 5 x16
workloads:
  everyone: {copy: 56 GB, from: gpu, to: gpu}
"""
    )
    path = compare(built(text), via=("peer-pcie",), at="achievable")["peer-pcie"]
    assert path.rate == pytest.approx(0.89 * 0.9 * ONE_WAY / 16 * 56)
    assert path.rate == pytest.approx(179.0e9, rel=0.02)


# --- a quadrant of a CPU, and posted writes to several root ports ---------------------------------

SWITCHES = (
    PARTS.replace("{kind: cpu,", "{kind: cpu, quadrant: 70 GB/s,")
    + """  fanout: {kind: pcie-switch, pcie: 5, acs: off, posted-to-roots: 3 GB/s, source: test}
devices:
  cpu0: SOCKET
  ram0: {part: dram, bus: unlimited}
  sw[0-2]: fanout
  gpu[0-5]: accel
  nvme[0-5]: {part: drive, pcie: 5 x16, read: unlimited, write: unlimited}
links:
  - ram0 -- cpu0: memory-bus
  - sw0 -- cpu0FIRST: pcie 5 x16
  - sw1 -- cpu0SECOND: pcie 5 x16
  - sw2 -- cpu0/quadrant3: pcie 5 x16
  - gpu -- sw in blocks: pcie 5 x16
  - nvme -- sw in blocks: pcie 5 x16
workloads:
  load: {read: 100 GB, from: 'nvme[0-3]', to: 'gpu[0-3]'}
  peers: {copy: 100 GB, from: 'gpu[0-1]', to: 'gpu[2-3]'}
  two-roots: {copy: 100 GB, from: 'gpu[0-1]', to: 'gpu[2,4]'}
  one-writer: {copy: 100 GB, from: gpu0, to: 'gpu[2,4]'}
  reads: {write: 100 GB, from: 'gpu[2,4]', to: 'nvme[0-1]'}
"""
)


def switches(first, second, numa=""):
    text = SWITCHES.replace("FIRST", first).replace("SECOND", second)
    return built(text.replace("SOCKET", f"{{part: socket{numa}}}"))


@pytest.mark.parametrize(
    ("first", "second", "numa", "rate", "at_most"),
    [
        # To RAM and from it again: a quadrant passes 70 GB/s either way, an uplink 63.
        ("/quadrant0", "/quadrant0", "", 70, False),
        ("/quadrant0", "/quadrant1", "", 126.03077, False),
        ("/numa1", "/numa1", ", numa: 0-3", 70, False),
        ("/numa0", "/numa0", ", numa: 0-1", 126.03077, True),
        ("", "", "", 126.03077, True),
    ],
    ids=["one quadrant", "two quadrants", "a NUMA node each", "two NUMA nodes", "not stated"],
)
def test_the_roots_of_a_quadrant_share_its_way_to_the_rest(first, second, numa, rate, at_most):
    machine = switches(first, second, numa)
    path = compare(machine, workload="load", via=("odirect-pinned",))["odirect-pinned"]
    assert path.rate == pytest.approx(rate * 1e9, rel=1e-6)
    assert path.at_most == at_most
    kinds = {bound.resource.kind for bound in path.bottlenecks}
    assert kinds == ({"quadrant"} if rate == 70 else {"uplink"})
    # What goes from one root to another of the quadrant stays inside.
    peers = compare(machine, workload="peers", via=("peer-pcie",))["peer-pcie"]
    assert {bound.resource.kind for bound in peers.bottlenecks} == {"uplink"}
    assert not peers.at_most


@pytest.mark.parametrize(
    ("workload", "via", "rate"),
    [
        ("peers", "peer-pcie", 63.01538),  # to one root port
        ("two-roots", "peer-pcie", 3),
        ("two-roots", "peer-ram", 63.01538),
        ("one-writer", "peer-pcie", 63.01538),
        ("reads", "p2pdma", 63.01538),  # the drives read from GPUs: non-posted
    ],
)
def test_posted_writes_behind_a_switch_to_two_root_ports(workload, via, rate):
    machine = switches("/quadrant0", "/quadrant1")
    path = compare(machine, workload=workload, via=(via,))[via]
    assert path.rate == pytest.approx(rate * 1e9, rel=1e-6)
    full = {bound.resource.id for bound in path.bottlenecks}
    assert ("sw0/posted-to-roots" in full) == (rate == 3)


@pytest.mark.parametrize("side", ["/quadrant4", "/quadrant12"])
def test_a_quadrant_that_is_not_there(side):
    with pytest.raises(DescriptionError, match="quadrants are 0 to 3"):
        switches(side, "/quadrant0")


def test_quadrants_are_of_a_cpu_and_survive_writing():
    with pytest.raises(DescriptionError, match="of a CPU's PCIe links"):
        built(
            SWITCHES.replace("SOCKET", "socket")
            .replace("gpu -- sw", "gpu -- sw/quadrant1")
            .replace("FIRST", "")
            .replace("SECOND", "")
        )
    machine = switches("/quadrant0", "/quadrant2")
    again = built(to_yaml(to_document(machine.description)))
    assert [name for name in again.resources if "quadrant" in name] == [
        f"cpu0/quadrant{number} {way}" for number in (0, 2, 3) for way in ("in", "out")
    ]
    # Shipped with what was measured, and its source.
    for part, key, rate in (
        ("threadripper-pro-7955wx", "quadrant", 73e9),
        ("pex-890xx", "posted-to-roots", 2.7e9),
    ):
        figure = catalogue().parts[part].figure(key)
        assert (figure.value, figure.kind) == (rate, "measured")
        assert "rtx6kpro" in figure.source
