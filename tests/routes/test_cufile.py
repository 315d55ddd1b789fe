"""cuFile's configuration and driver as facts of the file, and what they make of the direct way."""

from __future__ import annotations

import pytest

from tests.machines import LOCAL_DRIVES, NVLINKED, ONE_SOCKET, SWITCHED, built, shipped
from tests.routes.laying import codes, laid
from topo.datapaths.registry import data_path
from topo.routes.router import Router


def with_settings(text, said):
    return built(text.replace("iommu: off", f"iommu: off, {said}"))


def reason(route, code):
    (found,) = [one for one in route.reasons if one.code == code]
    return found


# --- compatibility mode ---------------------------------------------------------------------------


def test_a_forced_compatibility_mode_takes_every_direct_path():
    box = with_settings(ONE_SOCKET, "compat-mode: forced")
    route = laid(box, "direct")
    assert (route.verdict, codes(route)) == ("refused", ["compat-forced"])
    found = reason(route, "compat-forced")
    assert (found.instead, found.place.line) == ("compat", 4)
    assert laid(box, "compat").verdict == laid(box, "legacy").verdict == "ok"


@pytest.mark.parametrize("said", ["allowed", "on", "off"])
def test_a_fallback_that_is_only_allowed_changes_nothing(said):
    assert laid(with_settings(ONE_SOCKET, f"compat-mode: {said}"), "direct").verdict == "ok"


# --- what the driver supports ---------------------------------------------------------------------


@pytest.mark.parametrize(
    ("said", "verdict", "code"),
    [
        ("gds-support: [nvmeof]", "ok", ""),
        ("gds-support: [nvme]", "unknown", "gds-support-unknown"),
        ("gds-support: none", "refused", "gds-support"),
        ("gds-support: []", "refused", "gds-support"),
        ("gds-support: [nvme], filesystem: lustre", "refused", "gds-support"),
        ("gds-support: [nvme, lustre], filesystem: lustre", "ok", ""),
        ("gds-support: [nfs], filesystem: vast", "ok", ""),
        ("gds-support: [nvmeof], filesystem: xfs", "ok", ""),
        ("gds-support: [wekafs], filesystem: weka", "ok", ""),
        ("gds-denied: [lustre], filesystem: lustre", "refused", "gds-denied"),
        ("gds-denied: NVMEoF", "refused", "gds-denied"),
        ("gds-denied: [lustre]", "ok", ""),
    ],
)
def test_remote_storage(said, verdict, code):
    route = laid(with_settings(ONE_SOCKET, said), "direct")
    assert route.verdict == verdict
    if code:
        assert reason(route, code).place.line == 4


@pytest.mark.parametrize(
    ("said", "verdict"),
    [
        ("gds-support: [nvme]", "ok"),
        ("gds-support: [p2pdma]", "ok"),
        ("gds-support: [nvmeof]", "refused"),
        ("gds-support: [nvme], p2pdma: on", "refused"),
        ("gds-support: [nvme, p2pdma], p2pdma: on", "ok"),
        ("gds-support: [nvme], p2pdma: off", "ok"),
    ],
)
@pytest.mark.parametrize("path", ["direct", "p2pdma"])
def test_local_drives(said, verdict, path):
    assert laid(with_settings(LOCAL_DRIVES, said), path, storage="nvme0").verdict == verdict


def test_direct_writes_are_off_for_writes_to_remote_storage_alone():
    box = with_settings(ONE_SOCKET, "direct-writes: off")
    assert laid(box, "direct").verdict == "ok"
    route = laid(box, "direct", direction="write")
    assert reason(route, "direct-writes").instead == "compat"
    local = with_settings(LOCAL_DRIVES, "direct-writes: off")
    assert laid(local, "direct", storage="nvme0", direction="write").verdict == "ok"


@pytest.mark.parametrize(("host", "word"), [("x86", "in passthrough"), ("arm", "on")])
def test_an_iommu_that_is_on_or_in_passthrough_is_unknown(host, word):
    text = ONE_SOCKET.replace("architecture: x86", f"architecture: {host}")
    route = laid(built(text.replace("iommu: off", "iommu: passthrough-or-on")), "direct")
    assert route.verdict == "unknown"
    assert reason(route, "iommu-unknown").text.endswith(f"only {word}")


# --- dynamic routing ------------------------------------------------------------------------------


def routed(topology, gpu="gpu0", path="direct"):
    router = Router(topology)
    return router.route(data_path(topology.description, path), ("storage",), gpu)


def test_on_a_dgx_h100_routing_gives_up_the_bypass():
    box = shipped("dgx-h100", {"settings.dynamic-routing": "on"})
    route = routed(box)
    found = reason(route, "dynamic-routing")
    assert (route.verdict, found.instead) == ("refused", "routed-sysmem")
    assert "takes SYS_MEM (no GPU shares a root port with slot1 and slot2" in found.text
    assert routed(box, path="routed-sysmem").verdict == "ok"
    assert routed(shipped("dgx-h100", {"settings.dynamic-routing": "off"})).verdict == "ok"


def test_peer_to_peer_first_keeps_the_direct_way():
    order = {"settings.dynamic-routing": "[P2P, SYS_MEM]"}
    assert routed(shipped("dgx-h100", order)).verdict == "ok"
    nothing_applies = {"settings.dynamic-routing": "[GPU_MEM_NVLINKS]"}
    assert routed(shipped("dgx-h100", nothing_applies)).verdict == "ok"


def test_under_one_switch_routing_is_not_used():
    assert laid(with_settings(SWITCHED, "dynamic-routing: on"), "direct").verdict == "ok"


STAGED = """
topo: 1
name: staged
settings: {iommu: off, dynamic-routing: on}
devices:
  storage: nvme-of-target
  nic0: connectx-7
  cpu0: {part: xeon-8480c}
  ram0: {part: ddr5-4800, channels: 8}
  sw[0-1]: {part: pcie-switch-gen5, acs: off}
  gpu[0-1]: h100-sxm-80gb
links:
  - storage -- nic0: infiniband ndr
  - nic0 -- sw0: pcie 5 x16
  - sw -- cpu0: pcie 5 x16
  - gpu -- sw: pcie 5 x16
  - ram0 -- cpu0: memory-bus
  - gpu0 -- gpu1: 18x nvlink 4
"""


@pytest.mark.parametrize(
    ("order", "policy", "instead"),
    [
        ("on", "GPU_MEM_NVLINKS", "routed-nvlink"),
        ("[GPU_MEM, SYS_MEM]", "GPU_MEM", ""),
        ("[SYS_MEM, GPU_MEM_NVLINKS]", "SYS_MEM", "routed-sysmem"),
    ],
)
def test_a_gpu_beside_the_card_takes_the_data_for_another(order, policy, instead):
    box = built(STAGED, {"settings.dynamic-routing": order})
    assert routed(box, "gpu0").verdict == "ok"
    found = reason(routed(box, "gpu1"), "dynamic-routing")
    assert (f"takes {policy} " in found.text, found.instead) == (True, instead)
    assert found.effect == ("refused" if instead else "unknown")


def test_without_gpu_links_the_copy_goes_over_pcie():
    text = STAGED.replace("  - gpu0 -- gpu1: 18x nvlink 4\n", "")
    assert "takes GPU_MEM " in reason(routed(built(text), "gpu1"), "dynamic-routing").text


def test_local_drives_and_other_paths_are_not_routed():
    local = with_settings(LOCAL_DRIVES, "dynamic-routing: on")
    assert laid(local, "direct", storage="nvme0").verdict == "ok"
    assert laid(with_settings(NVLINKED, "dynamic-routing: on"), "routed-nvlink").verdict == "ok"
    assert laid(with_settings(ONE_SOCKET, "dynamic-routing: on"), "legacy").verdict == "ok"
