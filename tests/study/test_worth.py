"""What each GPU's process should use, and what that is worth against a tool's own choice."""

from __future__ import annotations

import pytest

import topo
from topo.study.affinity import affinities
from topo.study.processes import servers
from topo.study.worth import TOOLS, advice

FAR_CARD = """\
topo: 1
name: far-card
devices:
  cpu0: {part: epyc-7742, numa: [0], p2p: {posted: 40 GB/s, non-posted: 40 GB/s}}
  ram0: {part: ddr4-3200, channels: 1}
  gpu0: a100-pcie-40gb
  nic0: {part: connectx-6, rdma: [mlx5_0]}
links:
  - ram0 -- cpu0: memory-bus
  - gpu0 -- cpu0: pcie 4 x16
  - nic0 -- cpu0: pcie 4 x16
"""


def only(machine):
    (server,) = servers(affinities(machine))
    return server


def in_gigabytes(worth):
    ends = (worth.slowest, worth.fastest, worth.settings)
    return tuple(round(end.rate / 1e9, 2) for end in ends)


@pytest.mark.parametrize(
    ("machine", "tool", "gigabytes"),
    [
        # two cards of 50 GB/s for four GPUs, in each of two sockets; or a card each
        ("dgx-h100", "ucx", (200, 400, 400)),
        ("dgx-h100", "nixl", (200, 400, 400)),
        ("dgx-h100", "nccl", (400, 400, 400)),
        # the RAM of one socket is 8 channels of 35.2 GB/s; the GPUs take 8 x 63
        ("dgx-h100", "numactl", (281.6, 504.12, 504.12)),
        ("dgx-h100", "slurm", (281.6, 504.12, 504.12)),
        # a NUMA node there has 2 channels of 25.6 GB/s, and four switches have a link of 31.5 each
        ("dgx-a100", "numactl", (51.2, 126.03, 126.03)),
        # a whole socket has 204.8 GB/s: the switches' links are the limit from either
        ("dgx-a100", "slurm", (126.03, 126.03, 126.03)),
        ("gds-textbook", "ucx", (100, 100, 100)),
    ],
)
def test_what_settings_are_worth(machine, tool, gigabytes):
    assert in_gigabytes(advice(only(topo.load(machine)), tool).worth) == gigabytes


@pytest.mark.parametrize("tool", TOOLS)
def test_a_range_is_sorted_and_holds_what_may_come_about_with_the_settings(tool):
    for name in ("dgx-h100", "dgx-a100", "gds-textbook", "kv-cache", "l40s-two-switches"):
        worth = advice(only(topo.load(name)), tool).worth
        if worth is None:
            assert "slurm-topology" in tool or (tool, name) == ("slurm", "gds-textbook")
            continue
        assert 0 < worth.slowest.rate <= worth.fastest.rate
        # a tool may come to choose the same by itself
        assert worth.slowest.rate <= worth.settings.rate * (1 + 1e-9)


def test_where_ram_on_the_way_is_faster_ucx_is_told_so():
    # measured: 6.9 GiB/s from another socket by the card itself; 200 Gb/s through RAM
    told = advice(only(topo.load("gds-loses")), "ucx")
    assert told.by_ram
    assert in_gigabytes(told.worth) == (7.41, 7.41, 25.0)
    assert not advice(only(topo.load("dgx-h100")), "ucx").by_ram


def test_nccl_goes_farther_where_that_is_faster_and_known():
    machine = topo.loads(FAR_CARD)
    told = advice(only(machine), "nccl")
    # NCCL bounces what passes a CPU: one channel of 25.6 GB/s is written and read
    assert (told.gdr.word, told.gdr.is_sure) == ("PHB", True)
    assert in_gigabytes(told.worth) == (12.8, 12.8, 25.0)
    unknown = topo.loads(FAR_CARD.replace(", p2p: {posted: 40 GB/s, non-posted: 40 GB/s}", ""))
    told = advice(only(unknown), "nccl")
    assert (told.gdr.word, told.gdr.is_sure) == ("PHB", False)
    assert told.worth.is_same  # what is not sure is not counted
    enough = machine.replace({"ram0.channels": "8"})
    assert advice(only(enough), "nccl").gdr.word == ""


def test_memory_of_a_whole_socket_where_that_of_a_node_is_less_than_its_gpus_take():
    machine = topo.load("dgx-a100")
    assert not advice(only(machine), "numactl").whole_cpu
    one_channel = machine.replace({f"ram{number}.channels": "1" for number in range(8)})
    told = advice(only(one_channel), "numactl")
    assert told.whole_cpu
    assert told.worth.settings.rate > 4 * 25.6e9  # four nodes of those that have GPUs


def test_spare_cards_go_to_gpus_that_they_are_as_near_to():
    text = """\
topo: 1
devices:
  cpu0: epyc-9554
  ram0: {part: ddr5-4800, channels: 12}
  sw0: pcie-switch-gen5
  gpu[0-1]: h100-pcie-80gb
  nic[0-4]: {part: connectx-7, rdma: [mlx5_0, mlx5_1, mlx5_2, mlx5_3, mlx5_4]}
links:
  - ram0 -- cpu0: memory-bus
  - sw0 -- cpu0: pcie 5 x16
  - gpu -- sw0: pcie 5 x16
  - nic -- sw0: pcie 5 x16
"""
    server = only(topo.loads(text))
    cards = [process.cards for process in server.processes]
    assert sorted(name for each in cards for name in each) == [f"nic{n}" for n in range(5)]
    assert sorted(map(len, cards)) == [2, 3]


def test_ports_that_are_cabled_are_named():
    machine = topo.load("pod-32")
    (server,) = servers(affinities(machine), ["node0.gpu0"])
    assert server.cards["node0.nic0"].ports == (("mlx5_0", 1),)
    text = """\
topo: 1
devices:
  filer: {part: nvme-of-target, outside: yes}
  cpu0: epyc-9554
  gpu0: h100-pcie-80gb
  nic0: {part: connectx-7-dual-port, rdma: [mlx5_0, mlx5_1]}
links:
  - filer -- nic0/p2: infiniband ndr
  - [gpu0, nic0] -- cpu0: pcie 5 x16
"""
    text = text.replace("  - [gpu0, nic0] -- cpu0: pcie 5 x16\n", "  - gpu0 -- cpu0: pcie 5 x16\n")
    text += "  - nic0 -- cpu0: pcie 5 x16\n"
    assert only(topo.loads(text)).cards["nic0"].ports == (("mlx5_1", 1),)


def test_alike_servers_are_one_and_others_are_told_apart():
    machine = topo.load("pod-32")
    server = only(machine)
    assert server.names == tuple(f"node{number}" for number in range(32))
    changed = machine.replace({"node3.nic0.rdma": "mlx5_77"})
    kinds = servers(affinities(changed))
    assert sorted(len(kind.names) for kind in kinds) == [1, 31]
