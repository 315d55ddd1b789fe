"""How much devices get between root complexes and sockets where nobody states it: "at most"."""

from __future__ import annotations

import pytest

from tests.machines import ONE_SOCKET, TWO_SOCKETS, built, shipped, uncapped
from topo.study.bottleneck import bottleneck
from topo.study.compare import compare
from topo.study.doubt import doubt

# One card and, on the other socket, one GPU.
FAR = """
topo: 1
name: far
settings: {iommu: off, filesystem: nfs, transport: rdma}
devices:
  filer:    {part: nvme-of-target, outside: yes}
  card:     CARD
  cpu[0-1]: CPU
  ram[0-1]: {part: ddr4-3200, channels: 8}
  gpu0:     GPU
links:
  - filer -- card: infiniband SPEED
  - card -- cpu0: pcie 4 x16
  - ram -- cpu: memory-bus
  - gpu0 -- cpu1: pcie 4 x16
  - cpu0 -- cpu1: 3x upi 11.2 GT/s
workloads:
  load: {read: 20 GB, from: filer, to: gpu0}
  save: {write: 20 GB, from: gpu0, to: filer}
"""


def far(cpu="xeon-8380", card="connectx-6-dual-port", speed="hdr", gpu="a40"):
    text = FAR.replace("CARD", card).replace("CPU", cpu, 1).replace("SPEED", speed)
    return text.replace("GPU", gpu, 1)


NEAR = uncapped(ONE_SOCKET)
BOTH = uncapped(TWO_SOCKETS)
INSIDE = NEAR.replace("  cpu0: socket", "  cpu0: socket\n  rc0: root-complex").replace(
    "  - nic0 -- cpu0: pcie 5 x16\n", "  - nic0 -- rc0: pcie 5 x16\n  - rc0 -- cpu0: pcie unknown\n"
)
INSIDE = INSIDE.replace("gpu0 -- cpu0", "gpu0 -- rc0")


def of_cpu(text, cpu):
    return text.replace(": socket", f": {cpu}")


def codes_of(answer):
    return {reason.code for reason in answer.reasons}


@pytest.mark.parametrize(
    ("text", "workload", "at_most"),
    [
        pytest.param(far(), "load", True, id="between sockets, 25 of 10 GB/s"),
        pytest.param(far(), "save", True, id="and the other way"),
        pytest.param(NEAR, "load", True, id="between root complexes of a socket"),
        pytest.param(BOTH, "back", True, id="from a GPU to a card of another socket"),
        pytest.param(TWO_SOCKETS, "far", False, id="the CPUs state caps"),
        pytest.param(INSIDE, "load", False, id="inside one root complex the links decide"),
        pytest.param(of_cpu(NEAR, "xeon-8480c"), "load", True, id="50 of Sapphire Rapids' 22"),
        pytest.param(
            of_cpu(NEAR, "xeon-8480c").replace("infiniband ndr", "infiniband edr"),
            "load",
            False,
            id="12.5 of Sapphire Rapids' 22",
        ),
        pytest.param(
            of_cpu(NEAR, "epyc-9554").replace("infiniband ndr", "infiniband edr"),
            "load",
            True,
            id="AMD publishes none",
        ),
    ],
)
def test_a_way_between_root_complexes_without_a_cap_is_at_most(text, workload, at_most):
    answer = compare(built(text), workload=workload, via=["direct"])["direct"]
    assert answer.at_most == at_most
    assert bool(answer.unknowns) == at_most
    assert bool(codes_of(answer) & {"peer-rate-unknown", "far-reads-unknown"}) == (
        text is not TWO_SOCKETS
    )


def test_the_rate_is_what_the_rest_allows():
    answer = compare(built(far()), workload="load", via=["direct"])["direct"]
    assert answer.rate == 25e9
    assert answer.unknowns == ("cpu0 -> cpu1/p2p (card, gpu0) posted",)


def test_the_shipped_machines_keep_their_answers():
    for name in ("gds-textbook", "dgx-h100"):
        answer = compare(shipped(name), workload="load", via=["direct"])["direct"]
        assert (answer.rate, answer.at_most) == (100e9, False)


def test_the_ladder_is_at_most_from_where_a_flow_gets_more_than_its_default():
    ladder = bottleneck(shipped("dgx-h100"), workload="load", via="direct")
    rungs = [(round(rung.rate / 1e9, 2), rung.at_most) for rung in ladder.rungs]
    # 22 GB/s for each of eight flows are 176 GB/s
    assert rungs == [(100.0, False), (126.03, False), (200.0, True), (504.12, True)]


def test_a_flow_is_one_engine_and_one_gpu():
    text = of_cpu(NEAR, "xeon-8480c").replace("gpu0:", "gpu[0-2]:").replace("gpu0 --", "gpu --")
    text = text.replace("to: gpu0", "to: gpu").replace("from: gpu0", "from: gpu")
    answer = compare(built(text), workload="load", via=["direct"])["direct"]
    assert answer.rate == pytest.approx(50e9)
    assert not answer.at_most  # 16.7 each of 22


@pytest.mark.parametrize("at", ["achievable", "measured"])
def test_at_achievable_the_published_default_is_a_cap(at):
    answer = compare(built(far()), workload="load", via=["direct"], at=at)["direct"]
    (full,) = answer.bottlenecks
    assert (answer.rate, answer.at_most, full.resource.kind) == (10e9, False, "peer-to-peer")
    assert full.figure.kind == "guess"
    assert "https://github.com/NVIDIA/nccl" in full.figure.source
    amd = far(cpu="epyc-7763").replace("upi 11.2", "xgmi 16")
    answer = compare(built(amd), workload="load", via=["direct"], at=at)["direct"]
    assert answer.at_most


@pytest.mark.parametrize("at", ["theoretical", "achievable", "measured"])
def test_what_is_published_of_writes_is_a_bound_alone_of_reads_from_another_socket(at):
    answer = compare(built(far()), workload="save", via=["direct"], at=at)["direct"]
    assert (answer.rate, answer.at_most) == (25e9 if at == "theoretical" else 10e9, True)
    assert answer.unknowns == ("cpu1 -> cpu0/p2p (card, gpu0) non-posted",)
    assert "far-reads-unknown" in codes_of(answer)
    stated = far().replace(
        "3x upi 11.2 GT/s", "{medium: 3x upi 11.2 GT/s, p2p: {non-posted: 3 GB/s}}"
    )
    answer = compare(built(stated), workload="save", via=["direct"], at=at)["direct"]
    assert (answer.rate, answer.at_most) == (3e9, False)
    assert "far-reads-unknown" not in codes_of(answer)


def test_reads_inside_one_socket_keep_the_figure_of_writes():
    near = of_cpu(NEAR, "xeon-8480c")
    answer = compare(built(near), workload="save", via=["direct"], at="achievable")["direct"]
    assert (answer.rate, answer.at_most) == (22e9, False)


def test_a_far_read_of_no_figure_is_in_doubt_without_a_band():
    (answer,) = doubt(built(far()), workload="save", via=["direct"]).answers
    assert [unknown.resource.kind for unknown in answer.unknown] == ["peer-to-peer"]
    assert not [swing for swing in answer.swings if swing.band.key == "peer-to-peer"]


# A GPU of each socket, and RAM of both.
QPI = """
topo: 1
name: haswell
devices:
  cpu[0-1]: xeon-e5-2680v3
  ram[0-1]: {part: ddr4-2133, channels: 4}
  gpu0:     p100-pcie-16gb
links:
  - ram -- cpu: memory-bus
  - gpu0 -- cpu0: pcie 3 x16
  - cpu0 -- cpu1: 2x qpi 9.6 GT/s
workloads:
  near: {copy: 1 GB, from: ram0, to: gpu0, via: pinned}
  into: {copy: 1 GB, from: ram1, to: gpu0, via: pinned}
  back: {copy: 1 GB, from: gpu0, to: ram1, via: pinned}
  cores: {copy: 1 GB, from: ram0, to: ram1, via: memcpy}
"""


@pytest.mark.parametrize(
    ("text", "unknown"),
    [
        (QPI, {"into": "cpu1 -> cpu0/dma", "back": "cpu0 -> cpu1/dma"}),
        (QPI.replace("qpi", "upi"), {}),
        (QPI + "measured:\n  - ram1 -> gpu0: 3.8 GB/s\n", {"back": "cpu0 -> cpu1/dma"}),
        (QPI + "media: {qpi: {dma: 10 %}}\n", {}),
    ],
    ids=["qpi", "upi", "measured one way", "a share"],
)
def test_what_devices_get_of_a_link_that_is_the_cores_is_at_most(text, unknown):
    workloads = compare(built(text), at="measured").workloads
    answers = {each.workload.name: each.paths[0] for each in workloads}
    assert {name: answer.unknowns for name, answer in answers.items() if answer.at_most} == {
        name: (resource,) for name, resource in unknown.items()
    }
    said = {name for name, answer in answers.items() if "dma-rate-unknown" in codes_of(answer)}
    assert said == (set() if "dma: 10" in text or "upi" in text else {"into", "back"})


def test_stated_caps_of_the_whole_way_leave_nothing_unsaid_of_a_link():
    text = QPI.replace("xeon-e5-2680v3", "{part: xeon-e5-2698v4, p2p: {posted: 5 GB/s}}")
    text = text.replace("gpu0: ", "gpu[0-1]: ").replace("gpu0 -- cpu0", "gpu -- cpu in blocks")
    answer = compare(built(text), source="gpu0", target="gpu1")["peer-pcie"]
    assert (answer.rate, answer.at_most) == (5e9, False)
    assert "dma-rate-unknown" not in codes_of(answer)


def test_a_known_share_of_a_link_limits_devices_and_not_cores():
    machine = built(QPI + "media: {qpi: {dma: 10 %}}\n")
    rates = {each.workload.name: each.paths[0].rate for each in compare(machine).workloads}
    assert rates["into"] == rates["back"] == pytest.approx(3.84e9)
    assert rates["cores"] == pytest.approx(38.4e9)


def test_a_rate_measured_from_end_to_end_is_known():
    text = far() + "measured:\n  - filer -> gpu0: 7 GB/s\n"
    answer = compare(built(text), workload="load", via=["direct"], at="measured")["direct"]
    assert (answer.rate, answer.at_most) == (7e9, False)


@pytest.mark.parametrize(
    ("machine", "published", "ratio"),
    [
        # A30, HDR, SYS: ib_write_bw to the GPU, 11 GB/s
        pytest.param(far(gpu="a30"), 11e9, 0.91, id="a30"),
        # NFS over RDMA, GPU and card SYS: 6.9 GiB/s
        pytest.param(far(), 6.9 * 2**30, 1.35, id="vast"),
        # NFS over RDMA by a card of 100 Gb/s to the other tree of a DGX-2: 8.35 GiB/s
        pytest.param(
            far(cpu="xeon-8168", card="connectx-5", speed="edr", gpu="v100-sxm-32gb")
            .replace("ddr4-3200, channels: 8", "ddr4-2666, channels: 6")
            .replace("pcie 4", "pcie 3")
            .replace("11.2", "10.4"),
            8.35 * 2**30,
            1.115,
            id="dgx-2",
        ),
    ],
)
def test_published_measurements_across_sockets(machine, published, ratio):
    answer = compare(built(machine), workload="load", via=["direct"], at="achievable")["direct"]
    assert answer.rate == 10e9
    assert 10e9 / published == pytest.approx(ratio, abs=0.006)


def test_gpus_of_two_sockets_have_no_known_rate_over_pcie():
    text = BOTH.replace("workloads:\n", "workloads:\n  copy: {copy: 10 GB, from: gpu0, to: gpu1}\n")
    answer = compare(built(text), workload="copy", via=["peer-pcie"])["peer-pcie"]
    assert answer.at_most
    (unknown,) = answer.unknowns
    assert unknown.startswith("cpu0 -> cpu1/p2p (")
    assert "gpu0" in unknown
    assert "gpu1" in unknown
