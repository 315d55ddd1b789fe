"""RAM and GPUs of another server: both cards move the data, and each server's RAM counts apart."""

from __future__ import annotations

import math
from itertools import pairwise

import pytest
from hypothesis import given
from hypothesis import strategies as st

from tests.machines import PARTS, built
from tests.random_machines import Sketch, sketches
from topo.datapaths.registry import count, data_path, halves
from topo.description.description import Workload
from topo.description.loading import loads
from topo.errors import DescriptionError
from topo.flows.demands import demands_of
from topo.routes.route import Policy
from topo.routes.router import Router
from topo.study.bottleneck import bottleneck
from topo.study.compare import compare, paths
from topo.study.failures import failures
from topo.study.timeline import simulate

GB = 1e9
PCIE5 = 32e9 * 16 * 128 / 130 / 8
BETWEEN = ("rdma", "sockets", "rdma-direct", "rdma-staged", "peer-rdma", "peer-staged")

# Two servers on one leaf: each a socket with a memory of 200 GB/s, two cards of 50 GB/s, two GPUs.
SERVERS = (
    PARTS
    + """
devices:
  cpu[0-1]: socket
  ram[0-1]: dram
  nic[0-3]: card
  gpu[0-3]: accel
  leaf: quantum-2
links:
  - ram -- cpu: memory-bus
  - nic -- cpu in blocks: pcie 5 x16
  - gpu -- cpu in blocks: pcie 5 x16
  - nic -- leaf: infiniband ndr
workloads:
  fetch: {read: 63 GB, from: ram0, to: gpu2}
  spill: {write: 63 GB, from: gpu2, to: ram0}
  mirror: {copy: 100 GB, from: ram0, to: ram1}
  hand-over: {copy: 63 GB, from: gpu0, to: gpu2}
"""
)


def uses(machine, workload, via):
    answer = compare(machine, workload=workload, via=[via])[via]
    return answer, answer.routes[0].use


def test_a_remote_byte_is_read_once_and_written_past_the_ram_of_the_gpu():
    answer, use = uses(built(SERVERS), "fetch", "rdma-direct")
    half = {
        *("cpu0 -> nic0", "cpu0 -> nic1", "nic0/chip out", "nic1/chip out"),
        *("nic0/p1 out", "nic1/p1 out", "nic2/p1 in", "nic3/p1 in"),
        *("nic2/chip in", "nic3/chip in", "nic2 -> cpu1", "nic3 -> cpu1"),
    }
    whole = {"ram0/bus", "cpu1 -> gpu2", "gpu2/hbm", "cpu1/p2p posted"}
    assert use == dict.fromkeys(half, 0.5) | dict.fromkeys(whole, 1.0)
    # two cards of 50 on either side, 200 of RAM: the GPU's own PCIe binds
    assert answer.rate == pytest.approx(PCIE5)
    assert answer.route.waypoints == ("ram0", "nic0", "nic2", "PCIe", "gpu2")
    assert answer.hops_range == (4, 4)
    assert answer.links_range == (6, 6)  # ram0 - cpu0 - nic0 - leaf - nic2 - cpu1 - gpu2


def test_staged_it_rests_once_in_the_ram_of_the_gpu():
    answer, use = uses(built(SERVERS), "fetch", "rdma-staged")
    assert (use["ram0/bus"], use["ram1/bus"]) == (1.0, 2.0)
    assert "cpu1/p2p posted" not in use
    assert answer.rate == pytest.approx(PCIE5)
    answer, _ = uses(built(SERVERS, {"ram1.bus": "80 GB/s"}), "fetch", "rdma-staged")
    assert answer.rate == pytest.approx(80 * GB / 2)


@pytest.mark.parametrize(
    ("via", "here", "there"),
    [
        ("rdma-direct", (0, 0, 0), (0, 1, 0)),
        ("rdma-staged", (1, 2, 0), (0, 1, 0)),
        ("rdma", (0, 1, 0), (0, 1, 0)),
        ("sockets", (1, 3, 1), (1, 3, 1)),
        ("peer-rdma", (0, 0, 0), (0, 0, 0)),
        ("peer-staged", (1, 2, 0), (1, 2, 0)),
    ],
)
def test_the_ram_of_each_server_is_counted_apart(via, here, there):
    path = data_path(loads(SERVERS), via)
    far, _ = halves(path)
    assert far is not None
    for counts, figures in ((count(path), here), (count(far), there)):
        assert (counts.ram_traversals, counts.dram_bytes, counts.core_copies) == figures


@pytest.mark.parametrize(
    ("via", "changes", "rate", "binds"),
    [
        ("rdma", {}, 100.0, "nic0/chip"),  # two cards of 50
        ("rdma", {"ram0.bus": "60 GB/s"}, 60.0, "ram0/bus"),  # read once
        ("rdma", {"ram1.bus": "60 GB/s"}, 60.0, "ram1/bus"),  # written once
        ("sockets", {}, 200 / 3, "ram1/bus"),  # written twice, read once
        ("sockets", {"ram0.bus": "90 GB/s"}, 30.0, "ram0/bus"),  # read twice, written once
    ],
)
def test_ram_to_ram(via, changes, rate, binds):
    answer, _ = uses(built(SERVERS, changes), "mirror", via)
    assert answer.rate == pytest.approx(rate * GB)
    assert binds in {resource.name for resource in answer.bound}


def test_between_gpus_both_cards_go_peer_to_peer():
    answer, use = uses(built(SERVERS), "hand-over", "peer-rdma")
    assert (use["cpu0/p2p non-posted"], use["cpu1/p2p posted"]) == (1.0, 1.0)
    assert not [name for name in use if name.startswith("ram")]
    assert answer.rate == pytest.approx(PCIE5)
    assert answer.route.waypoints == ("gpu0", "PCIe", "nic0", "nic2", "PCIe", "gpu2")
    staged, use = uses(built(SERVERS), "hand-over", "peer-staged")
    assert (use["ram0/bus"], use["ram1/bus"]) == (2.0, 2.0)
    assert staged.route.waypoints == (
        *("gpu0", "PCIe", "send-buffer", "nic0", "nic2", "host-buffer", "PCIe", "gpu2"),
    )


def test_a_cap_on_either_side_binds():
    for cpu, posted, rate in (("cpu0", "non-posted", 9), ("cpu1", "posted", 7)):
        machine = built(SERVERS, {f"{cpu}.p2p.{posted}": f"{rate} GB/s"})
        answer, _ = uses(machine, "hand-over", "peer-rdma")
        assert answer.rate == pytest.approx(rate * GB)


@pytest.mark.parametrize("workload", ["fetch", "hand-over"])
def test_what_nobody_names_is_staged_against_direct(workload):
    names = [path.name for path in compare(built(SERVERS), workload=workload).workloads[0].paths]
    assert (
        names
        == {
            "fetch": ["rdma-staged", "rdma-direct"],
            "hand-over": ["peer-staged", "peer-rdma"],
        }[workload]
    )


@pytest.mark.parametrize("gpu", ["gpu0", "gpu2"])
def test_a_gpu_without_peer_to_peer_refuses_it_on_either_side(gpu):
    answer, _ = uses_refused(built(SERVERS, {f"{gpu}.p2p": "no"}), "hand-over", "peer-rdma")
    assert "no-peer-to-peer" in answer
    staged, _ = uses(built(SERVERS, {f"{gpu}.p2p": "no"}), "hand-over", "peer-staged")
    assert staged.verdict == "ok"


def uses_refused(machine, workload, via):
    answer = compare(machine, workload=workload, via=[via])[via]
    assert answer.verdict == "refused"
    return [reason.code for reason in answer.reasons], answer


@pytest.mark.parametrize(
    ("changes", "code"),
    [
        ({"nic2.gdr": "no", "nic3.gdr": "no"}, "no-gpudirect-rdma"),
        ({"cpu1.forwards-p2p": "no"}, "host-bridge"),
    ],
)
def test_what_refuses_a_direct_path_refuses_this_one(changes, code):
    codes, answer = uses_refused(built(SERVERS, changes), "fetch", "rdma-direct")
    assert code in codes
    assert answer.data_path.falls_back_to == "rdma-staged"


def test_where_it_is_refused_the_other_verbs_take_what_is_staged():
    ladder = bottleneck(built(SERVERS, {"gpu2.p2p": "no"}), workload="fetch")
    assert ladder.answer.name == "rdma-staged"


def test_within_a_server_nothing_goes_over_the_network():
    for source, target, via in (("ram0", "gpu0", "rdma-direct"), ("gpu0", "gpu1", "peer-rdma")):
        answer = compare(built(SERVERS), source=source, target=target, via=[via])[via]
        (reason,) = [each for each in answer.reasons if each.effect == "refused"]
        assert (reason.code, reason.text) == (
            "needs-other-server",
            f"{source} is in the same server as {target}",
        )


def test_the_ways_within_a_server_say_that_it_is_another():
    for source, target, via in (("ram0", "gpu2", "pinned"), ("nic0", "gpu2", "nic-direct")):
        answer = compare(built(SERVERS), source=source, target=target, via=[via])[via]
        (reason,) = [each for each in answer.reasons if each.effect == "refused"]
        assert reason.text == f"{source} is in another server than {target}"


def test_servers_that_no_network_joins_are_apart():
    text = SERVERS.replace(
        "  - nic -- leaf: infiniband ndr\n",
        "  - nic[0-1] -- leaf: infiniband ndr\n  - nic[2-3] -- other: infiniband ndr\n",
    ).replace("  leaf:", "  other: quantum-2\n  leaf:")
    machine = built(text[: text.index("workloads:")])
    answer = compare(machine, source="ram0", target="gpu2", via=["rdma-direct"])["rdma-direct"]
    (reason,) = answer.reasons
    assert (reason.code, reason.text) == (
        "other-server",
        "no network leads from the server of ram0 to gpu2",
    )


@pytest.mark.parametrize(
    ("lost", "said"),
    [
        ("leaf", "no network leads from the server of ram0 to gpu2"),
        ("ram0", "no permitted way joins ram0 and gpu2"),
        ("cpu1", "no permitted way joins ram0 and gpu2"),
    ],
)
def test_what_is_out_of_order_is_said_to_be_cut_off(lost, said):
    machine = built(SERVERS).without(lost)
    answer = compare(machine, workload="fetch", via=["rdma-direct"])["rdma-direct"]
    assert [reason.text for reason in answer.reasons] == [said]


def test_a_data_path_between_servers_joins_no_storage():
    answer = compare(built(DRIVES), source="storage", target="ram0", via=["rdma"])["rdma"]
    assert [reason.code for reason in answer.reasons] == ["wrong-ends"]


def test_pairs_in_order_and_all_evenly():
    machine = built(SERVERS)
    ends = Workload("w", "copy", 1e9, ("gpu0", "gpu1"), ("gpu2", "gpu3"))
    apart = compare(machine, workload=ends, via=["peer-rdma"])[
        "peer-rdma"
    ]  # each pair by all four cards
    assert apart.rate == pytest.approx(100 * GB)
    assert [{flow.far for flow in route.subflows} for route in apart.routes] == [{"gpu0"}, {"gpu1"}]
    all_ = Policy(pairing="all")
    every = compare(machine, workload=ends, via=["peer-rdma"], policy=all_)["peer-rdma"]
    assert [len({flow.far for flow in route.subflows}) for route in every.routes] == [2, 2]
    one = compare(machine, source="ram", target="gpu2", policy=Policy(pairing="in-order"))
    assert {path.verdict for path in one.workloads[0].paths} == {"refused"}  # ram1 is gpu2's own


@pytest.mark.parametrize(
    ("measured", "workload", "via"),
    [("ram0 -> gpu2", "fetch", "rdma-direct"), ("gpu0 -> gpu2", "hand-over", "peer-rdma")],
)
def test_a_rate_measured_from_end_to_end_holds_where_nothing_rests_between(measured, workload, via):
    machine = built(SERVERS + f"measured: [{measured}: 40 GB/s]\n")
    answer = compare(machine, workload=workload, via=[via], at="measured")[via]
    assert answer.rate == pytest.approx(40 * GB)
    theory = compare(machine, workload=workload, via=[via])[via]
    assert theory.rate == pytest.approx(PCIE5)


@pytest.mark.parametrize("nics", ["stripe", "best"])
def test_cards_may_be_chosen_otherwise(nics):
    answer = compare(built(SERVERS), workload="mirror", via=["rdma"], policy=Policy(nics=nics))[
        "rdma"
    ]
    assert answer.rate == pytest.approx(100 * GB)


def test_a_buffer_of_the_other_server_is_placed_by_its_own_name():
    text = SERVERS.replace("ram[0-1]: dram", "ram[0-1]: dram\n  more[0-1]: dram").replace(
        "  - ram -- cpu: memory-bus\n", "  - ram -- cpu: memory-bus\n  - more -- cpu: memory-bus\n"
    )
    policy = Policy(buffers=(("all", "ram1"), ("send", "more0")))
    answer = compare(built(text), workload="hand-over", via=["peer-staged"], policy=policy)
    use = answer["peer-staged"].routes[0].use
    assert {name: use[name] for name in use if name.endswith("/bus")} == {
        "more0/bus": 2.0,
        "ram1/bus": 2.0,
    }


def test_together_they_share_the_cards():
    # fetch fills gpu2 at its PCIe of 63 while it runs alone; beside mirror both halve 100 GB/s
    found = simulate(built(SERVERS), workloads=built(SERVERS).description.workloads[::2])
    assert found["fetch"].finish == pytest.approx(63 / 50)
    assert found["mirror"].finish == pytest.approx((63 + 100) / 100)


def test_a_card_that_fails_halves_what_its_server_sends():
    found = failures(built(SERVERS), workload="mirror", via="rdma")
    left = {loss.parts[0].first: loss for loss in found.losses}
    assert left["nic0"].rate == pytest.approx(50 * GB)
    assert left["leaf"].stopped == ("ram1",)


def test_what_bounds_any_routing_goes_over_both_servers():
    ladder = bottleneck(built(SERVERS), workload="mirror", via="rdma")
    assert ladder.any_routing is not None
    assert ladder.any_routing.rate == pytest.approx(100 * GB)
    assert ladder.any_routing.reached


def test_data_paths_between_servers_are_listed_where_a_workload_is():
    names = {survey.data_path.name for survey in paths(built(SERVERS))}
    assert names >= set(BETWEEN)
    inside = (
        SERVERS[: SERVERS.index("workloads:")] + "workloads: {a: {read: 1 GB, from: ram, to: gpu}}"
    )
    assert not {survey.data_path.name for survey in paths(built(inside))} & set(BETWEEN)


# --- a copy of which only a part is between servers -----------------------------------------------

# gpu0 and gpu1 have NVLink, 100 GB/s each way; so have gpu2 and gpu3.
LINKED = SERVERS.replace(
    "  - nic -- leaf",
    "  - gpu0 -- gpu1: 4x nvlink 4\n  - gpu2 -- gpu3: 4x nvlink 4\n  - nic -- leaf",
)


def test_a_shuffle_goes_by_nvlink_within_and_by_rdma_between_servers():
    machine = built(LINKED)
    answer = compare(machine, source="gpu", target="gpu", via=["peer-nvlink"])["peer-nvlink"]
    use = answer.routes[0].use  # gpu0 has a third of each other GPU
    assert use["gpu1 -> gpu0"] == pytest.approx(1 / 3)
    assert use["cpu0 -> gpu0"] == pytest.approx(2 / 3)
    assert use["nic0/chip in"] == pytest.approx(1 / 3)
    # into a server come 2 GPUs x 2/3 of their rate by two cards of 50: 75 each
    assert answer.rate == pytest.approx(4 * 75 * GB)
    assert answer.hops_range == (2, 5)
    assert (answer.counts.ram_traversals, answer.between_servers) == (0, True)


def test_staged_each_server_rests_its_part():
    machine, gpus = built(LINKED), ("gpu0", "gpu1", "gpu2", "gpu3")
    answer = compare(
        machine,
        workload=Workload("w", "copy", 120e9, gpus, gpus),
        via=["peer-ram"],
    )["peer-ram"]
    use = answer.routes[0].use
    # into gpu0: two thirds arrive staged in ram0, a third is staged there from gpu1;
    # and in ram1 the two thirds leave by a buffer
    assert (use["ram0/bus"], use["ram1/bus"]) == (pytest.approx(2.0), pytest.approx(4 / 3))
    assert answer.target_size == pytest.approx(120e9 * 2 / 3)


def test_a_data_path_that_says_no_other_refuses_the_part():
    own = LINKED + "data-paths: {own: {moves: [peer -> gpu by gpu over pcie]}}\n"
    answer = compare(built(own), source="gpu", target="gpu", via=["own"])["own"]
    assert {reason.code for reason in answer.reasons if reason.effect == "refused"} == {
        "other-server"
    }


def test_the_data_path_between_servers_has_to_be_there():
    own = (
        SERVERS + "data-paths: {own: {moves: [peer -> gpu by gpu], to-other-servers: perr-rdma}}\n"
    )
    with pytest.raises(
        DescriptionError, match="no data path `perr-rdma` for `own` between servers"
    ):
        loads(own)


# --- drives and cards -----------------------------------------------------------------------------

DRIVES = (
    PARTS
    + """
devices:
  storage: target
  cpu0: socket
  ram0: dram
  nic[0-1]: card
  nvme[0-1]: drive
links:
  - storage -- nic0: infiniband ndr
  - ram0 -- cpu0: memory-bus
  - nic -- cpu0: pcie 5 x16
  - nvme -- cpu0: pcie 4 x4
workloads:
  move: {copy: 10 GB, from: nvme0, to: nvme1}
  back: {write: 10 GB, from: nvme0, to: nvme1}
  pull: {copy: 10 GB, from: storage, to: nvme0}
  push: {copy: 10 GB, from: nvme0, to: storage}
  relay: {copy: 10 GB, from: nic0, to: nic1}
"""
)


@pytest.mark.parametrize("workload", ["move", "back"])
@pytest.mark.parametrize(("via", "bus"), [("copy-odirect", 2.0), ("copy-buffered", 6.0)])
def test_from_drive_to_drive_through_ram(workload, via, bus):
    answer, use = uses(built(DRIVES), workload, via)
    assert use == {
        "nvme0/read": 1.0,
        "nvme0 -> cpu0": 1.0,
        "ram0/bus": bus,
        "cpu0 -> nvme1": 1.0,
        "nvme1/write": 1.0,
    }
    assert answer.rate == pytest.approx(5 * GB)
    slow, _ = uses(built(DRIVES, {"ram0.bus": "6 GB/s"}), workload, via)
    assert slow.rate == pytest.approx(6 * GB / bus)
    assert answer.counts.ram_traversals == bus / 2


def test_a_filer_fills_a_drive_and_a_drive_a_filer():
    answer, use = uses(built(DRIVES), "pull", "copy-odirect")
    assert (use["storage/read"], use["nic0/chip in"], use["nvme0/write"]) == (1.0, 1.0, 1.0)
    assert answer.rate == pytest.approx(5 * GB)
    answer, use = uses(built(DRIVES), "push", "copy-odirect")
    assert (use["nvme0/read"], use["nic0/chip out"], use["storage/write"]) == (1.0, 1.0, 1.0)
    assert answer.rate == pytest.approx(7 * GB)
    assert answer.route.waypoints == ("nvme0", "user-buffer", "nic0", "storage")


def test_drive_to_drive_peer_to_peer_needs_memory_in_a_drive():
    codes, _ = uses_refused(built(DRIVES), "move", "copy-p2p")
    assert codes == ["no-controller-memory"]
    for drive in ("nvme0", "nvme1"):
        machine = built(DRIVES, {f"{drive}.controller-memory": "yes"})
        answer, use = uses(machine, "move", "copy-p2p")
        assert use == {
            "nvme0/read": 1.0,
            "nvme0 -> cpu0": 1.0,
            "cpu0/p2p posted": 1.0,
            "cpu0 -> nvme1": 1.0,
            "nvme1/write": 1.0,
        }
        assert answer.rate == pytest.approx(5 * GB)


def test_what_a_filer_holds_is_not_peer_to_peer():
    machine = built(DRIVES, {"nvme0.controller-memory": "yes"})
    codes, _ = uses_refused(machine, "pull", "copy-p2p")
    assert "needs-local-drive" in codes


def test_cards_forward_through_ram():
    answer, use = uses(built(DRIVES), "relay", "forward")
    assert use == {
        "nic0/chip in": 1.0,
        "nic0 -> cpu0": 1.0,
        "ram0/bus": 2.0,
        "cpu0 -> nic1": 1.0,
        "nic1/chip out": 1.0,
    }
    assert answer.rate == pytest.approx(50 * GB)


def test_all_drives_to_all_leave_out_the_drive_itself():
    answer = compare(built(DRIVES), source="nvme", target="nvme", via=["copy-odirect"])
    routes = answer["copy-odirect"].routes
    assert [(route.endpoint, route.subflows[0].far) for route in routes] == [
        ("nvme0", "nvme1"),
        ("nvme1", "nvme0"),
    ]
    with pytest.raises(DescriptionError, match="from nvme0 to itself"):
        compare(built(DRIVES), source="nvme0", target="nvme0")


def test_between_filers_a_server_has_to_be_said():
    text = DRIVES.replace("storage: target", "storage: target\n  other: target").replace(
        "links:\n", "links:\n  - other -- nic1: infiniband ndr\n"
    )
    with pytest.raises(DescriptionError, match="which server moves it is not said"):
        compare(built(text), source="storage", target="other")
    added = text.replace(
        "workloads:\n", "workloads:\n  w: {copy: 1 GB, from: storage, to: other}\n"
    )
    with pytest.raises(DescriptionError, match="which server moves it is not said"):
        loads(added)


def test_a_drive_of_another_server_fills_one_here():
    text = SERVERS.replace("  leaf:", "  nvme[0-1]: drive\n  leaf:").replace(
        "links:\n", "links:\n  - nvme -- cpu: pcie 4 x4\n"
    )
    answer = compare(built(text), source="nvme0", target="nvme1", via=["copy-odirect"])
    use = answer["copy-odirect"].routes[0].use
    buses = {name: use[name] for name in use if name.endswith("/bus")}
    assert buses == {"ram0/bus": 2.0, "ram1/bus": 2.0}
    assert answer["copy-odirect"].rate == pytest.approx(5 * GB)


# --- laws -----------------------------------------------------------------------------------------


def joined(sketches_: tuple[Sketch, Sketch]) -> str:
    """Write two servers side by side, each card cabled to one leaf, without their storage."""
    lines = [PARTS, "devices:", "  leaf: quantum-2"]
    links = ["links:"]
    for server, sketch in zip("ab", sketches_, strict=True):
        inside = [
            name for name in sketch.devices if name.rstrip("0123456789") not in ("storage", "leaf")
        ]
        lines += [f"  {server}-{name}: {sketch.devices[name]}" for name in inside]
        links += [
            f"  - {server}-{one} -- {server}-{other}: {cable}"
            for one, other, cable in sketch.links
            if {one, other} <= set(inside)
        ]
        links += [f"  - {server}-{name} -- leaf: infiniband ndr" for name in sketch.names("nic")]
    return "\n".join([*lines, *links]) + "\n"


ENDS = {"rdma": ("ram", "ram"), "sockets": ("ram", "ram"), "rdma-direct": ("ram", "gpu")}
ENDS |= {"rdma-staged": ("ram", "gpu"), "peer-rdma": ("gpu", "gpu"), "peer-staged": ("gpu", "gpu")}


def stem(sketch: Sketch, server: str, word: str) -> tuple[str, ...]:
    return tuple(f"{server}-{name}" for name in sketch.names(word))


@given(sketches(), sketches(), st.sampled_from(BETWEEN), st.sampled_from(["nearest", "stripe"]))
def test_accesses_add_up_and_no_link_carries_more_than_it_can(one, two, via, nics):
    machine = built(joined((one, two)))
    far_word, near_word = ENDS[via]
    path = data_path(machine.description, via)
    sources, targets = stem(one, "a", far_word), stem(two, "b", near_word)
    read = Workload("w", "copy", 1e9, sources, targets, pairing="all")
    demands = demands_of(Router(machine, Policy(nics=nics)), read, path)
    far, _ = halves(path)
    assert far is not None
    for demand in demands:
        use = demand.route.use
        for server, counts in (("a", count(far)), ("b", count(path))):
            buses = [w for name, w in use.items() if name.startswith(server) and "/bus" in name]
            assert math.fsum(buses) == pytest.approx(counts.dram_bytes)
        for chips in ("a-nic", "b-nic"):
            assert math.fsum(
                w for name, w in use.items() if name.startswith(chips) and "/chip" in name
            ) == pytest.approx(1.0)
        for subflow in demand.route.subflows:
            walk = [step for transfer in subflow.transfers for step in transfer.walk]
            for transfer in subflow.transfers:
                assert all(a.target == b.source for a, b in pairwise(transfer.walk))
            assert sum(step.link.layer == "network" for step in walk) == 2
    answer = compare(machine, workload=read, via=[via], policy=Policy(nics=nics))[via]
    if answer.rate is None:
        return
    assert answer.matrix is not None
    for resource in answer.matrix.resources:
        load = sum(
            answer.rates[demand.endpoint] * demand.route.use.get(resource.id, 0.0)
            for demand in answer.matrix.demands
        )
        if resource.id in machine.resources:
            assert load <= resource.capacity.rate("theoretical") * (1 + 1e-9)


@given(sketches(), sketches(), st.sampled_from(BETWEEN))
def test_what_is_written_is_what_is_read_the_other_way(one, two, via):
    """A pair's rate is the same in either direction: all its resources are alike both ways."""
    machine = built(joined((one, two)))
    far_word, near_word = ENDS[via]
    far, near = stem(one, "a", far_word)[:1], stem(two, "b", near_word)[:1]
    rates = []
    for sources, targets in ((far, near), (near, far)):
        asked = Workload("w", "copy", 1e9, sources, targets)
        answer = compare(machine, workload=asked, via=[via])[via]
        rates.append((answer.verdict, answer.rate))
    assert rates[0][0] == rates[1][0]
    assert rates[0][1] == pytest.approx(rates[1][1])
