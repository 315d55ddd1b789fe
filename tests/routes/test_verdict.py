"""Whether a data path is possible, and why: every reason statable in the file."""

from __future__ import annotations

import pytest

from tests.machines import (
    GRACE,
    LOCAL_DRIVES,
    NVLINKED,
    ONE_SOCKET,
    SWITCHED,
    TWO_SOCKETS,
    built,
    shipped,
    uncapped,
)
from tests.routes.laying import codes, laid
from topo.catalogue.parts import catalogue
from topo.datapaths.registry import data_path
from topo.description.loading import loads
from topo.routes.route import Effect, Reason, merged
from topo.routes.router import Router
from topo.routes.verdict import verdict_of
from topo.topology.build import build_topology

PARTS_OF_GPUS = {name: part for name, part in catalogue().parts.items() if part.kind == "gpu"}


def reason(route, code):
    (found,) = [one for one in route.reasons if one.code == code]
    return found


def test_fine_through_a_host_that_forwards_with_the_iommu_off():
    route = laid(built(ONE_SOCKET), "direct")
    assert route.verdict == "ok"
    assert codes(route, "refused", "unknown", "slower") == []


# --- the GPU --------------------------------------------------------------------------------------


def test_a_gpu_without_peer_to_peer_refuses_and_falls_back():
    route = laid(built(ONE_SOCKET.replace(" p2p: yes", " p2p: no")), "direct")
    assert route.verdict == "refused"
    assert reason(route, "no-peer-to-peer").text == "accel has no PCIe peer-to-peer"
    assert route.subflows == ()


def test_a_gpu_that_alone_is_without_peer_to_peer_is_named():
    route = laid(built(ONE_SOCKET, {"gpu0.p2p": "no"}), "direct")
    assert reason(route, "no-peer-to-peer").text == "no PCIe peer-to-peer, by `p2p: no` of gpu0"
    assert route.use == {}
    assert route.data_path.falls_back_to == "compat"


def test_the_line_of_the_file_comes_with_the_reason():
    text = ONE_SOCKET.replace("gpu0: accel", "gpu0: {part: accel, p2p: no}")
    place = reason(laid(built(text), "direct"), "no-peer-to-peer").place
    assert text.splitlines()[place.line - 1].strip().startswith("gpu0:")


def test_nothing_said_of_a_gpu_is_unknown():
    route = laid(built(ONE_SOCKET.replace(" p2p: yes", " p2p: unknown")), "direct")
    assert (route.verdict, codes(route, "unknown")) == ("unknown", ["peer-to-peer-unknown"])
    assert route.use


def test_a_user_s_own_direct_path_meets_the_same_gpu():
    own = "data-paths:\n  mine: {moves: [storage -> gpu by nic]}\n"
    text = ONE_SOCKET.replace(" p2p: yes", " p2p: no") + own
    assert codes(laid(built(text), "mine"), "refused") == ["no-peer-to-peer"]


def test_a_bounce_does_not_ask_for_peer_to_peer():
    assert laid(built(ONE_SOCKET.replace(" p2p: yes", " p2p: no")), "legacy").verdict == "ok"


AMD = LOCAL_DRIVES.replace("gpu0: accel", "gpu0: {part: accel, maker: amd}")


@pytest.mark.parametrize(
    "via", ["direct", "compat", "routed-sysmem", "routed-nvlink", "c2c-direct"]
)
def test_cufile_s_ways_are_closed_to_gpus_of_amd(via):
    route = laid(built(AMD), via, storage="nvme")
    assert route.verdict == "refused"
    text = "cuFile and its driver take NVIDIA's GPUs, not accel"
    assert reason(route, "not-nvidia").text == text
    assert reason(route, "not-nvidia").instead == ("p2pdma" if via == "direct" else "")
    assert "not-nvidia" not in codes(laid(built(AMD.replace("amd", "nvidia")), via, storage="nvme"))


def test_a_drive_writes_into_a_gpu_of_amd_whatever_cufile_is_set_to():
    for settings in ("iommu: off", "iommu: off, compat-mode: forced, gds-support: []"):
        text = AMD.replace("iommu: off", settings)
        assert laid(built(text), "p2pdma", storage="nvme").verdict == "ok"
        of_nvidia = laid(built(text.replace("amd", "nvidia")), "p2pdma", storage="nvme")
        assert (of_nvidia.verdict == "refused") is ("forced" in text)


def test_the_shipped_gpus_say_whose_they_are():
    of_amd = {name: part.facts.get("maker") for name, part in PARTS_OF_GPUS.items()}
    assert [of_amd[name] for name in ("mi300x", "mi210", "amd-instinct")] == ["amd"] * 3
    assert [of_amd[name] for name in ("h100-sxm-80gb", "rtx-4090")] == ["nvidia"] * 2
    assert of_amd["gpu-unknown"] is None


# --- the host -------------------------------------------------------------------------------------


@pytest.mark.parametrize("via", ["direct", "p2pdma"])
@pytest.mark.parametrize(
    ("cpu", "near", "far"),
    [
        ("xeon-e5-2680v3", "ok", "refused"),  # Linux: REQ_SAME_HOST_BRIDGE
        ("xeon-e5-2670", "ok", "refused"),
        ("xeon-e5-2698v4", "unknown", "unknown"),  # not in Linux's list at all
        ("xeon-8168", "ok", "ok-slower"),
        ("epyc-7742", "ok", "ok-slower"),
    ],
)
def test_old_xeons_forward_below_one_host_bridge_alone(via, cpu, near, far):
    text = TWO_SOCKETS.replace("cpu[0-1]: socket", f"cpu[0-1]: {cpu}").replace(
        "devices:", "devices:\n  nvme0: drive"
    )
    text = text.replace("links:", "links:\n  - nvme0 -- cpu0: pcie 3 x4").replace(
        "pcie 5", "pcie 3"
    )
    routes = [laid(built(text), via, gpu, storage="nvme0") for gpu in ("gpu0", "gpu1")]
    assert [route.verdict for route in routes] == [near, far]
    if far == "refused":
        (refused,) = [one for one in merged(routes[1].reasons) if one.effect == "refused"]
        assert refused.code == "host-bridge"
        assert "below one host bridge only" in refused.text


def test_two_root_complexes_of_an_old_xeon_are_two_host_bridges():
    text = LOCAL_DRIVES.replace("cpu0: socket", "cpu0: xeon-e5-2680v3\n  rc[0-1]: root-complex")
    text = text.replace("nvme -- cpu0: pcie 4 x4", "rc -- cpu0: pcie unknown").replace(
        "gpu0 -- cpu0: pcie 5", "nvme -- rc: pcie 3 x4\n  - gpu0 -- rc0: pcie 3"
    )
    verdicts = [laid(built(text), "p2pdma", storage=f"nvme{n}").verdict for n in (0, 1)]
    assert verdicts == ["ok", "refused"]


@pytest.mark.parametrize("forwards", ["yes", "no", "unknown"])
@pytest.mark.parametrize("iommu", ["off", "on"])
@pytest.mark.parametrize("architecture", ["x86", "arm"])
def test_a_root_complex_inside_a_cpu_is_that_cpu_s(forwards, iommu, architecture):
    text = uncapped(LOCAL_DRIVES).replace("forwards-p2p: yes", f"forwards-p2p: {forwards}")
    text = text.replace("x86", architecture).replace("iommu: off", f"iommu: {iommu}")
    inside = text.replace("devices:", "devices:\n  rc0: root-complex").replace(
        "nvme -- cpu0: pcie 4 x4", "rc0 -- cpu0: pcie unknown\n  - nvme -- rc0: pcie 4 x4"
    )
    inside = inside.replace("gpu0 -- cpu0", "gpu0 -- rc0")
    with_it, without = (laid(built(each), "direct", storage="nvme") for each in (inside, text))
    assert with_it.verdict == without.verdict
    assert codes(with_it) == codes(without)


def test_a_root_complex_may_say_itself_what_it_forwards():
    text = LOCAL_DRIVES.replace(
        "devices:", "devices:\n  rc0: {part: root-complex, forwards-p2p: no}"
    )
    text = text.replace("links:", "links:\n  - rc0 -- cpu0: pcie unknown").replace(
        "nvme -- cpu0", "nvme -- rc0"
    )
    text = text.replace("gpu0 -- cpu0", "gpu0 -- rc0")
    assert laid(built(text), "direct", storage="nvme").verdict == "refused"


@pytest.mark.parametrize("direction", ["read", "write"])
@pytest.mark.parametrize(
    ("stated", "assumed"), [("", True), (", acs: off", False), (", acs: on", False)]
)
def test_acs_that_nobody_stated_is_an_assumption_where_traffic_turns_round(
    direction, stated, assumed
):
    text = SWITCHED.replace(", acs: off", stated)
    route = laid(built(text), "direct", direction=direction)
    assert ("acs-not-said" in codes(route, "assumed")) is assumed
    assert "acs-not-said" not in codes(laid(built(text), "legacy", direction=direction))
    if assumed:
        assert route.verdict == "ok"
        assert reason(route, "acs-not-said").text == "assumes that ACS redirect is off at sw0"
        line = text.splitlines()[reason(route, "acs-not-said").place.line - 1]
        assert line.strip().startswith("sw0:")


def test_acs_does_not_matter_where_traffic_goes_by_the_root_anyway():
    text = ONE_SOCKET.replace("devices:", "devices:\n  sw0: pcie-switch-gen5").replace(
        "gpu0 -- cpu0", "sw0 -- cpu0: pcie 5 x16\n  - gpu0 -- sw0"
    )
    assert "acs-not-said" not in codes(laid(built(text), "direct"))


@pytest.mark.parametrize("via", ["legacy", "direct", "compat", "p2pdma"])
def test_a_drive_in_another_server_that_no_network_joins_is_refused_with_that_reason(via):
    text = LOCAL_DRIVES.replace(
        "gpu0: accel", "gpu0: accel\n  box: socket\n  nic[0-1]: card\n  leaf: quantum-2"
    ).replace(
        "nvme -- cpu0",
        "nic1 -- leaf: infiniband ndr\n  - nic0 -- box: pcie 5 x16\n"
        "  - nic1 -- cpu0: pcie 5 x16\n  - nvme -- box",
    )
    route = laid(built(text.partition("workloads:")[0]), via, storage="nvme")
    assert route.verdict == "refused"
    assert reason(route, "other-server").text == "nvme0 and nvme1 are in another server than gpu0"


@pytest.mark.parametrize(
    ("said", "verdict", "code"),
    [
        ("no", "refused", "host-bridge"),
        ("unknown", "unknown", "host-bridge-unknown"),
        ("yes", "ok", "host-bridge"),
    ],
)
def test_host_bridges_forward_or_not(said, verdict, code):
    text = ONE_SOCKET.replace("forwards-p2p: yes", f"forwards-p2p: {said}")
    route = laid(built(text), "direct")
    assert route.verdict == verdict
    assert reason(route, code).about == ("cpu0",)


def test_under_a_switch_no_host_is_asked():
    text = SWITCHED.replace("forwards-p2p: yes", "forwards-p2p: no").replace(
        "iommu: off", "iommu: on"
    )
    route = laid(built(text), "direct")
    assert (route.verdict, codes(route)) == ("ok", ["same-switch"])
    assert laid(built(text, {"sw0.acs": "on"}), "direct").verdict == "refused"


@pytest.mark.parametrize(
    ("iommu", "verdict"), [("off", "ok"), ("passthrough", "ok"), ("on", "refused")]
)
def test_the_iommu_of_an_x86_host(iommu, verdict):
    text = ONE_SOCKET.replace("iommu: off", f"iommu: {iommu}")
    route = laid(built(text), "direct")
    assert route.verdict == verdict
    if verdict == "refused":
        assert reason(route, "iommu").place is not None


@pytest.mark.parametrize(
    ("iommu", "verdict"), [("on", "ok"), ("passthrough", "refused"), ("off", "refused")]
)
def test_the_iommu_of_grace_is_the_other_way_round_also_over_c2c(iommu, verdict):
    text = GRACE.replace("iommu: on", f"iommu: {iommu}")
    assert laid(built(text), "direct").verdict == verdict
    assert laid(built(text), "c2c-direct").verdict == verdict
    assert laid(built(text), "compat").verdict == "ok"


def test_an_iommu_not_spoken_of_is_an_assumption():
    x86 = laid(built(ONE_SOCKET.replace("settings: {iommu: off}\n", "")), "direct")
    arm = laid(built(GRACE.replace("settings: {iommu: on}\n", "")), "direct")
    assert reason(x86, "iommu-not-said").text == "assumes the IOMMU off or in passthrough"
    assert reason(arm, "iommu-not-said").text == "assumes the IOMMU on"


def test_between_sockets_is_slower_and_names_both():
    route = laid(built(TWO_SOCKETS), "direct", "gpu1")
    assert route.verdict == "ok-slower"
    assert reason(route, "cross-socket").text == "peer-to-peer between sockets, over cpu0 and cpu1"
    back = laid(built(TWO_SOCKETS), "direct", "gpu1", direction="write")
    assert reason(back, "cross-socket") == reason(route, "cross-socket")


def test_every_one_of_several_equal_ways_must_be_open():
    # Four sockets in a ring: cpu0 reaches cpu2 by cpu1 and by cpu3 alike.
    ring = "\n".join(f"  - cpu{n} -- cpu{(n + 1) % 4}: upi 16 GT/s" for n in range(4))
    text = TWO_SOCKETS.replace("[0-1]", "[0-3]").replace("  - cpu0 -- cpu1: upi 16 GT/s", ring)
    for closed in ("cpu1", "cpu3"):
        route = laid(built(text, {f"{closed}.forwards-p2p": "no"}), "direct", "gpu2")
        assert [one.about for one in route.reasons if one.effect == "refused"] == [(closed,)]
        assert route.verdict == "refused"
    assert laid(built(text, {"cpu3.forwards-p2p": "no"}), "direct", "gpu1").verdict == "ok-slower"


def test_two_root_complexes_of_one_socket_are_one_socket():
    text = ONE_SOCKET.replace(
        "  cpu0: socket", "  cpu0: socket\n  rc[0-1]: {part: root-complex, forwards-p2p: yes}"
    ).replace(
        "  - nic0 -- cpu0: pcie 5 x16",
        "  - rc -- cpu0: pcie unknown\n  - nic0 -- rc0: pcie 5 x16",
    )
    route = laid(built(text.replace("gpu0 -- cpu0", "gpu0 -- rc1")), "direct")
    assert codes(route, "slower") == []


def test_a_rate_that_no_cap_states_is_said_once_for_all_hosts():
    route = laid(built(uncapped(TWO_SOCKETS)), "direct", "gpu1")
    assert reason(route, "peer-rate-unknown").text == (
        "peer-to-peer rate unknown here: no cap is stated for cpu0 and cpu1"
    )
    assert "peer-rate-unknown" not in codes(laid(shipped("gds-loses"), "direct"))
    assert "peer-rate-unknown" not in codes(laid(built(SWITCHED), "direct"))


# --- software -------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("filesystem", "verdict"),
    [("lustre", "ok"), ("WekaFS", "ok"), ("ext4", "ok"), ("zfs", "refused"), ("tmpfs", "refused")],
)
def test_filesystems(filesystem, verdict):
    text = ONE_SOCKET.replace("iommu: off", f"iommu: off, filesystem: {filesystem}")
    assert laid(built(text), "direct").verdict == verdict
    assert laid(built(text), "legacy").verdict == "ok"


def test_tcp_ends_in_socket_buffers():
    text = ONE_SOCKET.replace("iommu: off", "iommu: off, transport: tcp")
    assert codes(laid(built(text), "direct")) == ["transport"]
    assert laid(built(text), "nvme-tcp").verdict == "ok"
    local = LOCAL_DRIVES.replace("iommu: off", "iommu: off, transport: tcp")
    assert laid(built(local), "direct", storage="nvme0").verdict == "ok"


def test_many_that_are_not_local_are_ranges_and_a_folded_one_names_all_alike():
    text = """
topo: 1
devices:
  node[0-3]: {use: dgx-h100}
  leaf: quantum-2
  filer[0-3]: {part: nvme-of-target, read: 90 GB/s, write: 60 GB/s}
links:
  - node.slot1 -- leaf: infiniband ndr
  - filer -- leaf: infiniband ndr
"""
    told = "filer[0-3] are not local to the server"
    text += "workloads:\n  load: {read: 8 GB each, from: filer, to: node.gpu}\n"
    for fold_from in (2, 10**9):
        topology = build_topology(loads(text), fold_from=fold_from)
        sources = topology.standing_for(topology.description.workloads[0].sources)
        route = Router(topology).route(
            data_path(topology.description, "p2pdma"), sources, "node0.gpu0", "read"
        )
        assert route.reasons[0].text == told


def test_paths_for_local_drives_and_for_remote_storage():
    remote, local = built(ONE_SOCKET), built(LOCAL_DRIVES)
    assert laid(remote, "p2pdma").reasons[0].text == "storage is not local to the server"
    refused = laid(local, "nvme-tcp", storage="nvme")
    assert refused.reasons[0].text == "nvme0 and nvme1 are local to the server"
    assert laid(local, "p2pdma", storage="nvme").verdict == "ok"


def test_paths_that_need_a_link_the_gpu_has_not():
    assert laid(built(ONE_SOCKET), "c2c-direct").reasons[0].text == "no NVLink-C2C leads to gpu0"
    assert laid(built(ONE_SOCKET), "routed-nvlink").reasons[0].text == "no GPU links lead to gpu0"
    assert laid(built(NVLINKED), "routed-nvlink").verdict == "ok"


def test_a_storage_that_no_card_reaches():
    text = ONE_SOCKET.replace(
        "  storage: target", "  storage: target\n  far: target\n  sw: quantum-2"
    )
    route = laid(
        built(text.replace("links:", "links:\n  - far -- sw: infiniband ndr")),
        "direct",
        storage="far",
    )
    assert route.reasons[0].text == "no network card reaches both far and gpu0"
    assert route.verdict == "refused"


# --- gathering ------------------------------------------------------------------------------------


def test_the_worst_decides():
    effects: list[Effect] = ["fine", "assumed", "slower", "unknown", "refused"]
    reasons = [Reason("x", effect, "y") for effect in effects]
    expected = ["ok", "ok", "ok-slower", "unknown", "refused"]
    assert [verdict_of(reasons[: n + 1]) for n in range(5)] == expected
    assert verdict_of([]) == "ok"


def test_reasons_merge_by_what_they_say_and_sort_their_devices():
    said = [
        Reason("x", "fine", "seen at", about=("cpu10",)),
        Reason("x", "fine", "seen at", about=("cpu2", "cpu10")),
        Reason("y", "fine", "other"),
    ]
    one, other = merged(said)
    assert one.text == "seen at cpu2 and cpu10"
    assert other.text == "other"
    many = [Reason("x", "fine", "no cap for", about=(f"cpu{n}",)) for n in range(250)]
    assert merged(many)[0].text == "no cap for cpu[0-249]"
