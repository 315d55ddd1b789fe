"""What a payload byte uses: every resource's weight, peer-to-peer caps, measured pairs, stages."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from tests.machines import (
    CASCADED,
    LOCAL_DRIVES,
    NVLINKED,
    ONE_SOCKET,
    SWITCHED,
    TWO_SOCKETS,
    built,
    shipped,
)
from tests.routes.laying import laid
from topo.datapaths.registry import built_in, count
from topo.description.data_paths import built_in_files

# --- behind a RAID card ---------------------------------------------------------------------------

RAID = LOCAL_DRIVES.replace(
    "devices:", "devices:\n  raid: {part: raid-card-gen4, read: 20 GB/s, write: 20 GB/s}"
)
RAID = RAID.replace(
    "nvme -- cpu0: pcie 4 x4", "raid -- cpu0: pcie 4 x16\n  - nvme -- raid: pcie 4 x4"
)


@pytest.mark.parametrize("via", ["legacy", "direct", "p2pdma"])
@pytest.mark.parametrize("direction", ["read", "write"])
def test_data_of_a_raid_card_lies_evenly_on_the_drives_behind_it(via, direction):
    use = laid(built(RAID), via, storage="raid", direction=direction).use
    ways = {"read": "nvme{} -> raid", "write": "raid -> nvme{}"}
    for drive in (0, 1):
        assert use[f"nvme{drive}/{direction}"] == 0.5
        assert use[ways[direction].format(drive)] == 0.5
        assert ways["write" if direction == "read" else "read"].format(drive) not in use


@pytest.mark.parametrize("direction", ["read", "write"])
def test_drives_behind_a_switch_of_a_raid_card_are_the_cards(direction):
    text = RAID.replace("raid: {", "sw0: pcie-switch-gen4\n  raid: {")
    text = text.replace("nvme -- raid:", "sw0 -- raid: pcie 4 x8\n  - nvme -- sw0:")
    use = laid(built(text), "direct", storage="raid", direction=direction).use
    above = {"read": "sw0 -> raid", "write": "raid -> sw0"}[direction]
    below = {"read": "nvme{} -> sw0", "write": "sw0 -> nvme{}"}[direction]
    assert use[above] == 1.0
    assert [use[below.format(drive)] for drive in (0, 1)] == [0.5, 0.5]
    assert [use[f"nvme{drive}/{direction}"] for drive in (0, 1)] == [0.5, 0.5]


def test_a_card_without_drives_has_its_own_rate_alone():
    text = RAID.replace("nvme -- raid", "nvme -- cpu0")
    assert not any("nvme" in name for name in laid(built(text), "direct", storage="raid").use)


# --- weights --------------------------------------------------------------------------------------

STORAGE_PATHS = [
    name
    for name in built_in_files()
    if (built_in(name).far_end, built_in(name).near_end) == ("storage", "gpu")
]


def test_direct_uses_each_direction_once():
    assert laid(built(ONE_SOCKET), "direct").use == {
        "storage/read": 1.0,
        "nic0/p1 in": 1.0,
        "nic0/chip in": 1.0,
        "nic0 -> cpu0": 1.0,
        "cpu0 -> gpu0": 1.0,
        "cpu0/p2p posted": 1.0,
        "gpu0/hbm": 1.0,
    }


def test_legacy_puts_four_on_the_ram_s_bus():
    use = laid(built(ONE_SOCKET), "legacy").use
    assert use == {
        "storage/read": 1.0,
        "nic0/p1 in": 1.0,
        "nic0/chip in": 1.0,
        "nic0 -> cpu0": 1.0,
        "ram0/bus": 4.0,
        "cpu0 -> gpu0": 1.0,
        "gpu0/hbm": 1.0,
    }


def test_a_write_uses_the_other_directions():
    assert laid(built(ONE_SOCKET), "legacy", direction="write").use == {
        "storage/write": 1.0,
        "nic0/p1 out": 1.0,
        "nic0/chip out": 1.0,
        "cpu0 -> nic0": 1.0,
        "ram0/bus": 4.0,
        "gpu0 -> cpu0": 1.0,
        "gpu0/hbm": 1.0,
    }


@pytest.mark.parametrize("via", STORAGE_PATHS)
@pytest.mark.parametrize("direction", ["read", "write"])
def test_the_memory_bus_carries_what_the_path_counts(via, direction):
    machine = shipped("dgx-h100")
    storage = "storage"
    route = laid(machine, via, direction=direction, storage=storage)
    if route.verdict == "refused":
        assert via in ("p2pdma", "c2c-direct")
        return
    on_buses = sum(weight for name, weight in route.use.items() if name.endswith("/bus"))
    assert on_buses == count(built_in(via)).dram_bytes


def test_a_stated_copy_rate_is_a_resource_of_core_copies():
    text = ONE_SOCKET.replace("  cpu0: socket", "  cpu0: {part: socket, copy: 60 GB/s}")
    assert laid(built(text), "legacy").use["cpu0/copy"] == 1.0
    assert laid(built(text), "legacy-pageable").use["cpu0/copy"] == 2.0
    assert "cpu0/copy" not in laid(built(text), "odirect-pinned").use
    assert laid(built(text), "legacy", direction="write").use["cpu0/copy"] == 1.0


def test_a_switch_box_s_legacy_read_takes_the_uplink_up_and_down():
    use = laid(built(SWITCHED), "legacy").use
    assert use["sw0 -> cpu0"] == use["cpu0 -> sw0"] == 1.0


def test_a_passed_bridge_card_s_chip_is_not_used():
    use = laid(shipped("dgx-h100"), "direct").use
    assert not any(name.startswith("nic0/") for name in use)
    assert use["cpu0 -> nic0"] == use["nic0 -> gpu0"] == 1.0


def test_shares_of_branches_add_up_to_one():
    route = laid(shipped("dgx-a100"), "direct", storage="nvme")
    assert sum(subflow.share for subflow in route.subflows) == pytest.approx(1.0)
    assert sum(route.use[f"nvme{n}/read"] for n in range(8)) == pytest.approx(1.0)


# --- peer-to-peer caps ----------------------------------------------------------------------------

SOCKET_LINK = (
    "  - cpu0 -- cpu1: {medium: upi 16 GT/s, p2p: {posted: 6 GB/s%s, non-posted: 2 GB/s%s}}"
)


def capped_link(flow: str = "") -> str:
    return TWO_SOCKETS.replace("  - cpu0 -- cpu1: upi 16 GT/s", SOCKET_LINK % (flow, flow))


def extra(route, name):
    (found,) = [resource for resource in route.extra if resource.id == name]
    return found


def test_a_socket_link_s_cap_holds_for_device_to_device_by_direction():
    machine = built(capped_link())
    read = laid(machine, "direct", "gpu1")
    write = laid(machine, "direct", "gpu1", direction="write")
    assert read.use["cpu0 -> cpu1/p2p posted"] == 1.0
    assert extra(read, "cpu0 -> cpu1/p2p posted").capacity.theoretical.value == 6e9
    assert write.use["cpu1 -> cpu0/p2p non-posted"] == 1.0
    assert extra(write, "cpu1 -> cpu0/p2p non-posted").capacity.theoretical.value == 2e9
    assert extra(read, "cpu0 -> cpu1/p2p posted").place.line == machine.links[-1].place.line


def test_a_card_writing_into_far_ram_uses_the_link_and_not_the_cap():
    use = laid(built(capped_link()), "legacy", "gpu1").use
    assert use["cpu0 -> cpu1"] == 1.0
    assert not any("p2p" in name for name in use)


def test_a_near_gpu_does_not_meet_the_cap():
    use = laid(built(capped_link()), "direct", "gpu0").use
    assert [name for name in use if "p2p" in name] == ["cpu0/p2p posted"]


def test_a_cap_per_flow_is_one_engine_and_one_gpu_s():
    read = laid(built(capped_link(" per flow")), "direct", "gpu1")
    assert read.use["cpu0 -> cpu1/p2p (nic0, gpu1) posted"] == 1.0


def test_a_cap_holds_in_every_basis():
    resource = extra(laid(built(capped_link()), "direct", "gpu1"), "cpu0 -> cpu1/p2p posted")
    for basis in ("theoretical", "achievable", "measured"):
        assert resource.capacity.rate(basis) == 6e9


CAP = "p2p: {posted: 20 GB/s, non-posted: 10 GB/s, source: test}"


@pytest.mark.parametrize(
    ("device", "text"),
    [
        ("cpu0", TWO_SOCKETS.replace("cpu[0-1]: socket", f"cpu[0-1]: {{part: socket, {CAP}}}")),
        ("nic0", TWO_SOCKETS.replace("nic0: card", f"nic0: {{part: card, {CAP}}}")),
        ("gpu0", TWO_SOCKETS.replace("gpu[0-1]: accel", f"gpu[0-1]: {{part: accel, {CAP}}}")),
    ],
)
@pytest.mark.parametrize(("direction", "way"), [("read", "posted"), ("write", "non-posted")])
def test_a_cap_of_a_device_holds_whichever_way_the_data_goes(device, text, direction, way):
    route = laid(built(text), "direct", direction=direction)
    assert route.use[f"{device}/p2p {way}"] == 1.0
    assert route.verdict == "ok"


def test_both_sockets_caps_hold_across_sockets():
    text = TWO_SOCKETS.replace("cpu[0-1]: socket", f"cpu[0-1]: {{part: socket, {CAP}}}")
    use = laid(built(text), "direct", "gpu1").use
    assert use["cpu0/p2p posted"] == use["cpu1/p2p posted"] == 1.0


def test_a_switch_s_cap_holds_under_it():
    text = SWITCHED.replace("acs: off}", f"acs: off, {CAP}}}")
    assert laid(built(text), "direct").use["sw0/p2p posted"] == 1.0


def test_caps_of_links_side_by_side_are_two():
    text = capped_link() + "  x: {read: 1 GB, from: storage, to: gpu1}\n"
    line = SOCKET_LINK % ("", "")
    use = laid(built(text.replace(line, f"{line}\n{line}")), "direct", "gpu1").use
    assert use["cpu0 -> cpu1/p2p posted"] == use["cpu0 -> cpu1 #2/p2p posted"] == 0.5


# --- measured pairs -------------------------------------------------------------------------------


def test_a_measured_pair_that_no_link_joins_limits_what_goes_between_the_two():
    machine = built(
        ONE_SOCKET + "measured:\n  - ram0 -> gpu0: 55 GB/s\n  - nic0 -> gpu0: 40 GB/s\n"
    )
    legacy, direct = laid(machine, "legacy"), laid(machine, "direct")
    assert legacy.use["ram0 -> gpu0 measured"] == 1.0
    assert "nic0 -> gpu0 measured" not in legacy.use
    assert direct.use["nic0 -> gpu0 measured"] == 1.0
    resource = extra(direct, "nic0 -> gpu0 measured")
    assert resource.capacity.rate("measured") == 40e9
    assert resource.capacity.rate("theoretical") == float("inf")


def test_a_pair_is_measured_in_one_direction():
    machine = built(ONE_SOCKET + "measured:\n  - gpu0 -> nic0: 22 GB/s\n")
    assert "gpu0 -> nic0 measured" in laid(machine, "direct", direction="write").use
    assert not any("measured" in name for name in laid(machine, "direct").use)


# --- stages ---------------------------------------------------------------------------------------

STAGED = """
data-paths:
  staged:
    moves:
      - storage -> user-buffer by nic: 9 GB/s
      - user-buffer -> gpu by gpu: 7 GB/s per worker
"""


def test_a_shared_stage_rate_is_a_resource_and_one_of_a_worker_is_not():
    route = laid(built(ONE_SOCKET + STAGED), "staged")
    assert route.use["staged/storage -> user-buffer"] == 1.0
    assert [resource.kind for resource in route.extra] == ["stage"]


# --- laws -----------------------------------------------------------------------------------------

MACHINES = [ONE_SOCKET, TWO_SOCKETS, SWITCHED, CASCADED, NVLINKED]


@given(st.sampled_from(MACHINES), st.sampled_from(STORAGE_PATHS), st.sampled_from([0, 1]))
def test_the_write_is_the_mirror_of_the_read(text, via, number):
    machine = built(text)
    gpu = f"gpu{number}" if f"gpu{number}" in machine else "gpu0"
    read, write = laid(machine, via, gpu), laid(machine, via, gpu, direction="write")
    assert read.verdict == write.verdict
    assert sorted(mirrored(name) for name in read.use) == sorted(write.use)
    assert {mirrored(name): weight for name, weight in read.use.items()} == pytest.approx(
        dict(write.use)
    )


def mirrored(name: str) -> str:
    if " -> " in name:
        source, target = name.split(" -> ")
        return f"{target} -> {source}"
    return name.replace(" in", " out").replace("/read", "/write").replace(" posted", " non-posted")


def test_a_local_direct_read_is_one_drive_and_two_links():
    assert laid(built(LOCAL_DRIVES), "direct", storage="nvme0").use == {
        "nvme0/read": 1.0,
        "nvme0 -> cpu0": 1.0,
        "cpu0 -> gpu0": 1.0,
        "cpu0/p2p posted": 1.0,
        "gpu0/hbm": 1.0,
    }
