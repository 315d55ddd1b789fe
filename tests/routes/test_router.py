"""Which way the data goes: walks, cards, memories, staging, ACS redirect."""

from __future__ import annotations

import pytest

from tests.machines import (
    CASCADED,
    GRACE,
    LOCAL_DRIVES,
    MI300X,
    NVLINKED,
    ONE_SOCKET,
    PARTS,
    SWITCHED,
    TWO_SOCKETS,
    built,
    shipped,
)
from tests.routes.laying import codes, laid, walks
from topo.errors import UnknownNameError
from topo.routes.route import Policy
from topo.routes.router import Router

# --- walks ----------------------------------------------------------------------------------------


def test_textbook_direct_and_legacy():
    machine = shipped("gds-textbook")
    direct, legacy = laid(machine, "direct"), laid(machine, "legacy")
    assert direct.waypoints == ("storage", "slot1", "PCIe", "gpu0")
    assert legacy.waypoints == (
        "storage",
        "slot1",
        "kernel-buffer",
        "user-buffer",
        "PCIe",
        "gpu0",
    )
    assert (direct.logical_hops, direct.physical_links) == (3, 3)
    assert (legacy.logical_hops, legacy.physical_links) == (5, 5)


def test_dgx_h100_direct_goes_by_slot2_the_socket_and_the_bridge():
    route = laid(shipped("dgx-h100"), "direct")
    assert walks(route) == [["storage", "slot2", "cpu0", "nic0", "gpu0"]]
    assert (route.logical_hops, route.physical_links) == (3, 4)
    legacy = laid(shipped("dgx-h100"), "legacy")
    assert walks(legacy)[0] == ["storage", "slot2", "cpu0", "ram0"]
    assert walks(legacy)[1] == ["ram0"]
    assert walks(legacy)[2] == ["ram0", "cpu0", "nic0", "gpu0"]
    assert (legacy.logical_hops, legacy.physical_links) == (5, 6)


@pytest.mark.parametrize("gpu", range(8))
@pytest.mark.parametrize("via", ["direct", "legacy"])
def test_each_slot_of_dgx_h100_feeds_its_own_socket(gpu, via):
    route = laid(shipped("dgx-h100"), via, f"gpu{gpu}")
    assert {subflow.card for subflow in route.subflows} == {"slot2" if gpu < 4 else "slot1"}
    assert not any("cpu0 -> cpu1" in name or "cpu1 -> cpu0" in name for name in route.use)


def test_grace_reaches_its_gpus_chip_to_chip():
    route = laid(built(GRACE), "direct")
    assert route.waypoints == ("storage", "bf0", "NVLink-C2C", "gpu0")
    assert not any("ram" in name for name in route.use)
    assert laid(built(GRACE), "c2c-direct").verdict == "ok"


def test_mi300x_direct_stays_under_the_switch_and_two_cards_share():
    own = "data-paths:\n  rdma: {moves: [storage -> gpu by nic]}\n"  # cuFile takes no AMD GPU
    route = laid(built(MI300X + own), "rdma", "gpu2")
    assert [subflow.card for subflow in route.subflows] == ["nic2", "nic3"]
    assert [subflow.share for subflow in route.subflows] == [0.5, 0.5]
    assert walks(route) == [["storage", "nic2", "sw1", "gpu2"]]


def test_a_local_drive_needs_no_card():
    machine = built(LOCAL_DRIVES)
    for via in ("direct", "p2pdma"):
        route = laid(machine, via, storage="nvme0")
        assert walks(route) == [["nvme0", "cpu0", "gpu0"]]
        assert route.waypoints == ("nvme0", "PCIe", "gpu0")


def test_drives_behind_a_raid_card_are_moved_by_it():
    machine = shipped("l40s-two-switches")
    route = laid(machine, "direct", "gpu4", storage="nvme0")
    assert walks(route) == [["nvme0", "raid", "cpu1", "sw1", "gpu4"]]
    assert route.waypoints == ("nvme0", "raid", "PCIe", "gpu4")
    assert route.use["raid/read"] == route.use["nvme0/read"] == 1.0
    assert laid(machine, "direct", "gpu4", storage="raid").use["raid/read"] == 1.0


# --- writes ---------------------------------------------------------------------------------------


@pytest.mark.parametrize("via", ["direct", "legacy", "legacy-pageable", "odirect-pinned"])
def test_a_write_walks_the_same_links_the_other_way(via):
    machine = shipped("dgx-h100")
    read, write = laid(machine, via), laid(machine, via, direction="write")
    assert write.waypoints == read.waypoints[::-1]
    assert walks(write) == [walk[::-1] for walk in walks(read)[::-1]]
    assert [transfer.move.mover for transfer in write.subflows[0].transfers] == [
        transfer.move.mover for transfer in read.subflows[0].transfers
    ][::-1]
    assert write.direction == "write"


# --- several storages, several cards --------------------------------------------------------------

TWO_NETWORKS = (
    PARTS
    + """
devices:
  store[0-1]: target
  nic[0-1]: card
  cpu[0-1]: socket
  ram[0-1]: dram
  gpu[0-1]: accel
links:
  - store -- nic: infiniband ndr
  - nic -- cpu: pcie 5 x16
  - ram -- cpu: memory-bus
  - gpu -- cpu: pcie 5 x16
  - cpu0 -- cpu1: upi 16 GT/s
"""
)


def test_each_storage_is_reached_by_a_card_of_its_own_network():
    route = laid(built(TWO_NETWORKS), "direct", storage="store")
    assert [(subflow.far, subflow.card, subflow.share) for subflow in route.subflows] == [
        ("store0", "nic0", 0.5),
        ("store1", "nic1", 0.5),
    ]
    assert route.use["store0/read"] == route.use["cpu1 -> cpu0"] == 0.5


def test_a_gpu_without_a_card_on_its_socket_takes_the_far_one():
    route = laid(built(TWO_SOCKETS), "direct", "gpu1")
    assert walks(route) == [["storage", "nic0", "cpu0", "cpu1", "gpu1"]]


TIED = (
    TWO_SOCKETS.replace("  nic0: card", "  nic[0-2]: card")
    .replace(
        "  - nic0 -- cpu0: pcie 5 x16",
        "  - nic[0-1] -- cpu0: pcie 5 x16\n  - nic2 -- cpu1: pcie 5 x16",
    )
    .replace("storage -- nic0", "storage -- nic")
)


def test_cards_equally_near_share_evenly():
    route = laid(built(TIED), "direct")
    assert [(subflow.card, subflow.share) for subflow in route.subflows] == [
        ("nic0", 0.5),
        ("nic1", 0.5),
    ]
    assert {subflow.card for subflow in laid(built(TIED), "direct", "gpu1").subflows} == {"nic2"}


def test_of_equally_near_cards_the_wider_slot_wins():
    text = TIED.replace("nic[0-1] -- cpu0: pcie 5 x16", "nic[0-1] -- cpu0: pcie 5 x16", 1)
    text = text.replace(
        "  - nic[0-1] -- cpu0: pcie 5 x16",
        "  - nic0 -- cpu0: pcie 5 x8\n  - nic1 -- cpu0: pcie 5 x16",
    )
    assert {subflow.card for subflow in laid(built(text), "direct").subflows} == {"nic1"}


def test_stripe_takes_every_card_alike():
    route = laid(built(TIED), "direct", policy=Policy(nics="stripe"))
    assert [(subflow.card, round(subflow.share, 9)) for subflow in route.subflows] == [
        (f"nic{n}", round(1 / 3, 9)) for n in range(3)
    ]


def test_a_nearer_class_beats_fewer_links():
    # nic0 is two links from gpu1 by the host, nic1 three by switches: PXB is nearer than NODE.
    text = (
        CASCADED.replace("  nic0: card", "  nic[0-1]: card")
        .replace(
            "  - nic0 -- sw1: pcie 5 x16",
            "  - nic1 -- sw1: pcie 5 x16\n  - nic0 -- cpu0: pcie 5 x16",
        )
        .replace("storage -- nic0", "storage -- nic")
    )
    assert {subflow.card for subflow in laid(built(text), "direct", "gpu1").subflows} == {"nic1"}


# --- memories -------------------------------------------------------------------------------------


def memories(route):
    return [dict(subflow.memories) for subflow in route.subflows]


def test_buffers_lie_on_the_gpu_s_socket():
    assert memories(laid(built(TWO_SOCKETS), "legacy", "gpu1")) == [
        {"kernel-buffer": "ram1", "user-buffer": "ram1"}
    ]


def test_buffers_can_be_placed_and_a_core_copy_between_sockets_loads_the_socket_link():
    placed = Policy(buffers=(("kernel", "near-nic"),))
    route = laid(built(TWO_SOCKETS), "legacy", "gpu1", policy=placed)
    assert memories(route) == [{"kernel-buffer": "ram0", "user-buffer": "ram1"}]
    assert walks(route)[1] == ["ram0", "cpu0", "cpu1", "ram1"]
    assert route.use["cpu0 -> cpu1"] == 1.0
    assert route.use["ram0/bus"] == route.use["ram1/bus"] == 2.0
    both = laid(built(TWO_SOCKETS), "legacy", "gpu1", policy=Policy(buffers=(("all", "ram0"),)))
    assert memories(both) == [{"kernel-buffer": "ram0", "user-buffer": "ram0"}]


def test_all_memories_of_a_numa_socket_share():
    route = laid(shipped("dgx-a100"), "legacy")
    assert {memory["kernel-buffer"] for memory in memories(route)} == {f"ram{n}" for n in range(4)}
    assert all(memory["kernel-buffer"] == memory["user-buffer"] for memory in memories(route))
    assert all(route.use[f"ram{n}/bus"] == pytest.approx(1.0) for n in range(4))


def test_without_memory_on_its_socket_a_gpu_uses_the_nearest():
    text = TWO_SOCKETS.replace("ram[0-1]: dram", "ram0: dram").replace(
        "ram -- cpu:", "ram0 -- cpu0:"
    )
    assert memories(laid(built(text), "legacy", "gpu1"))[0]["user-buffer"] == "ram0"


@pytest.mark.parametrize("place", ["gpu0", "nic0", "nowhere"])
def test_a_buffer_lies_in_a_memory_only(place):
    with pytest.raises(UnknownNameError, match=place):
        Router(built(TWO_SOCKETS), Policy(buffers=(("kernel", place),)))


def test_without_memory_what_needs_a_buffer_is_refused():
    text = ONE_SOCKET.replace("  ram0: dram\n", "").replace("  - ram0 -- cpu0: memory-bus\n", "")
    route = laid(built(text), "legacy")
    assert (route.verdict, codes(route)) == ("refused", ["no-memory"])
    assert route.reasons[0].text.endswith("within reach of gpu0")
    assert laid(built(text), "direct").verdict == "ok"


@pytest.mark.parametrize("via", ["legacy", "direct"])
def test_what_is_shown_of_a_route_does_not_hang_on_the_order_of_the_devices(via):
    # Two cards as near to the GPU, one of them behind a switch on the network; two memories.
    first = "  nic0: card\n  nic1: card\n  ram0: dram\n  ram1: dram\n"
    last = "".join(f"{line}\n" for line in reversed(first.splitlines()))
    routes = [
        laid(
            built(
                f"{PARTS}devices:\n  storage: target\n  leaf: quantum-2\n  cpu0: socket\n"
                f"  gpu0: accel\n{order}links:\n  - storage -- leaf: infiniband ndr\n"
                "  - storage -- nic1: infiniband ndr\n  - leaf -- nic0: infiniband ndr\n"
                "  - nic -- cpu0: pcie 5 x16\n  - ram -- cpu0: memory-bus\n"
                "  - gpu0 -- cpu0: pcie 5 x16\n"
            ),
            via,
        )
        for order in (first, last)
    ]
    assert routes[0].waypoints == routes[1].waypoints
    assert routes[0].physical_links == routes[1].physical_links
    assert [subflow.card for subflow in routes[0].subflows] == [
        subflow.card for subflow in routes[1].subflows
    ]


# --- ACS redirect ---------------------------------------------------------------------------------


def test_without_redirect_a_direct_read_stays_under_the_switch():
    route = laid(built(SWITCHED), "direct")
    assert walks(route) == [["storage", "nic0", "sw0", "gpu0"]]
    assert codes(route) == ["same-switch"]
    assert not any("cpu0" in name for name in route.use)


def test_redirect_sends_it_up_and_down_the_uplink():
    route = laid(built(SWITCHED, {"sw0.acs": "on"}), "direct")
    assert walks(route) == [["storage", "nic0", "sw0", "cpu0", "sw0", "gpu0"]]
    assert route.use["sw0 -> cpu0"] == route.use["cpu0 -> sw0"] == 1.0
    assert codes(route, "slower") == ["acs-redirect"]
    assert route.verdict == "ok-slower"
    assert "at sw0" in next(r.text for r in route.reasons if r.code == "acs-redirect")


def test_redirect_leaves_legacy_as_it_is():
    off, on = (laid(built(SWITCHED, {"sw0.acs": acs}), "legacy") for acs in ("off", "on"))
    assert on.use == off.use
    assert on.use["sw0 -> cpu0"] == on.use["cpu0 -> sw0"] == 1.0


@pytest.mark.parametrize(
    ("changes", "gpu", "expected"),
    [
        ({"sw0.acs": "on"}, "gpu0", ""),  # turns round at sw1, below
        ({"sw1.acs": "on"}, "gpu0", "sw1"),
        ({"sw1.acs": "on"}, "gpu1", ""),  # only passes sw1 on its way up
        ({"sw0.acs": "on"}, "gpu1", "sw0"),
    ],
)
def test_redirect_acts_where_the_way_turns_round(changes, gpu, expected):
    route = laid(built(CASCADED, changes), "direct", gpu)
    assert route.subflows[0].transfers[0].sent_up_by == expected
    assert ("cpu0" in walks(route)[0]) is bool(expected)


def test_redirect_in_a_bridge_card_holds_for_its_own_gpu():
    text = ONE_SOCKET.replace("nic0: card", "nic0: {part: card, bridge: yes, acs: on}").replace(
        "gpu0 -- cpu0", "gpu0 -- nic0"
    )
    route = laid(built(text), "direct")
    assert walks(route) == [["storage", "nic0", "cpu0", "nic0", "gpu0"]]


# --- staging over NVLink --------------------------------------------------------------------------


def test_a_far_gpu_is_staged_through_the_nearest_ones_evenly():
    route = laid(built(NVLINKED), "routed-nvlink", "gpu3")
    assert walks(route) == [["storage", "nic0", "cpu0", "gpu0"], ["gpu0", "gpu3"]]
    assert route.use["gpu0 -> gpu3"] == route.use["gpu1 -> gpu3"] == 0.5
    assert route.use["gpu0/hbm"] == route.use["gpu1/hbm"] == 1.0  # half of it, in and out
    assert route.use["gpu3/hbm"] == 1.0
    assert route.waypoints == ("storage", "nic0", "PCIe", "gpu0", "NVLink", "gpu3")
    assert not any("cpu0 -> cpu1" in name for name in route.use)


def test_first_stages_through_one_gpu_by_name():
    route = laid(built(NVLINKED), "routed-nvlink", "gpu3", policy=Policy(routes="first"))
    assert len(route.subflows) == 1
    assert route.use["gpu0 -> gpu3"] == 1.0
    assert route.use["gpu0/hbm"] == 2.0


def test_of_equally_near_gpus_the_one_with_a_link_to_the_target_stages():
    text = NVLINKED.replace("gpu -- gpu all to all", "gpu0 -- gpu1").replace(
        "workloads:", "  - gpu1 -- gpu2: 4x nvlink 4\nworkloads:"
    )
    # GPUs do not pass traffic on: gpu0 has no way to gpu2 that is not through gpu1.
    route = laid(built(text), "routed-nvlink", "gpu2")
    assert walks(route)[1] == ["gpu1", "gpu2"]


def test_a_gpu_that_no_other_is_nearer_than_is_not_staged():
    route = laid(built(NVLINKED), "routed-nvlink", "gpu1")
    assert walks(route) == [["storage", "nic0", "cpu0", "gpu1"]]
    assert route.use["gpu1/hbm"] == 1.0
    assert route.waypoints == ("storage", "nic0", "PCIe", "gpu1")


# --- spread and first -----------------------------------------------------------------------------


def test_ports_side_by_side_share_or_one_is_taken():
    machine = shipped("gds-textbook")
    spread = laid(machine, "direct")
    assert spread.use["slot1/p1 in"] == spread.use["slot1/p2 in"] == 0.5
    first = laid(machine, "direct", policy=Policy(routes="first"))
    assert first.use["slot1/p1 in"] == 1.0
    assert "slot1/p2 in" not in first.use


def test_reweighting_drops_what_carries_nothing():
    machine = built(TIED)
    router = Router(machine, Policy(nics="stripe"))
    route = laid(machine, "direct", policy=Policy(nics="stripe"))
    one = router.reweighted(route, (0.0, 1.0, 0.0))
    assert [subflow.card for subflow in one.subflows] == ["nic1"]
    assert one.waypoints[1] == "nic1"
    assert one.use["nic1/chip in"] == 1.0
    assert "nic0/chip in" not in one.use
