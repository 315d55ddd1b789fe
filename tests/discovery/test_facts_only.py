"""Sources that tell facts of devices only: laid beside a machine, refused alone."""

from __future__ import annotations

import pytest

from tests.discovery.test_combine import codes, nccl, smi
from topo.discovery.importing import discover, import_machine, import_together
from topo.discovery.machine import DiscoveredDevice, Machine
from topo.errors import ExchangeError


def facts(*devices, tells_only="the ports of network cards", **values):
    return Machine("ports", "output of ports", "f.txt", devices, tells_only=tells_only, **values)


def port(rdma, rate, **values):
    return DiscoveredDevice(
        f"card {rdma}", "nic", "nic-unknown", rdma=(rdma,), ports=(rate,), **values
    )


def machine(data, name="a.txt"):
    return discover(None, data, name)


def of_sockets(*channels, part="ddr5-4800", per_socket=None):
    devices = []
    for at, count in enumerate(channels):
        told = (("channels", str(count)), ("size", per_socket or "512 GB"))
        devices.append(DiscoveredDevice(f"socket {at}", "cpu", "cpu-unknown"))
        devices.append(
            DiscoveredDevice(f"dimms {at}", "memory", part, parent=f"socket {at}", facts=told)
        )
    return facts(*devices, tells_only="its memory modules")


def unspoken(nodes):
    """A matrix of as many GPUs as NUMA nodes, each GPU at its own."""
    head = " ".join(f"GPU{at}" for at in range(nodes))
    rows = (
        " ".join(
            [
                f"GPU{at}",
                *("X" if at == to else "SYS" for to in range(nodes)),
                f"{at}-{at}",
                f"{at}",
            ]
        )
        for at in range(nodes)
    )
    return "\n".join([f"{head} CPU Affinity NUMA Affinity", *rows]).encode()


def lines_of(found, stem):
    return [line.strip() for line in found.yaml.splitlines() if line.strip().startswith(stem)]


# --- alone ----------------------------------------------------------------------------------------


def test_alone_it_is_refused_with_the_command():
    with pytest.raises(ExchangeError) as refused:
        import_machine(facts(port("mlx5_0", 1e11)))
    (finding,) = refused.value.findings
    assert finding.code == "facts-only"
    assert (
        finding.message
        == "`f.txt` tells the ports of network cards, and not what machine that is in"
    )
    assert "`topo import FILE --and f.txt`" in finding.help


def test_several_of_them_are_no_machine_either():
    with pytest.raises(ExchangeError, match="the ports of network cards and its memory modules"):
        import_together([facts(port("mlx5_0", 1e11)), of_sockets(8)])


# --- devices --------------------------------------------------------------------------------------


def test_ports_come_from_the_facts_and_say_so():
    found = import_together(
        [machine(smi()), facts(port("mlx5_1", 2e11), port("mlx5_0", 4e11, network="infiniband"))]
    )
    first, second = found.machine.of_kind("nic")
    assert (first.ports, first.network, second.ports) == ((4e11,), "infiniband", (2e11,))
    assert "port speed from f.txt" in second.evidence
    assert "infiniband ndr" in found.yaml  # no longer a guess of 100 Gb/s
    assert "guessed-speed" not in codes(found)


def test_the_order_of_the_sources_does_not_matter():
    ports = facts(port("mlx5_0", 4e11), port("mlx5_1", 2e11))
    after = import_together([machine(smi()), ports])
    before = import_together([ports, machine(smi())])
    assert before.yaml == after.yaml


def test_a_contradiction_is_said():
    found = import_together([machine(nccl()), facts(port("mlx5_0", 1e11))])
    messages = [one.message for one in found.findings if one.code == "sources-disagree"]
    assert messages == ["nic0: port speed 400 Gb/s in a.txt, 100 Gb/s in f.txt"]


def test_a_port_of_another_name_is_of_another_card():
    found = import_together([machine(smi()), facts(port("mlx5_0", 4e11), port("mlx5_7", 1e11))])
    assert [card.ports for card in found.machine.of_kind("nic")] == [(4e11,), ()]
    assert "sources-disagree" not in codes(found)
    assert "# 1 device of f.txt could not be placed here: left out." in found.yaml


def test_no_device_is_added():
    drive = DiscoveredDevice("drive", "nvme", "nvme-gen4-3.84tb", label="nvme0n1")
    found = import_together([machine(smi()), facts(drive, port("mlx5_9", 1e11))])
    assert not found.machine.of_kind("nvme")
    assert len(found.machine.of_kind("nic")) == 2
    assert "# 2 devices of f.txt could not be placed here: left out." in found.yaml


def test_other_sources_still_fill_each_other():
    found = import_together([facts(port("mlx5_0", 4e11)), machine(nccl()), machine(smi(), "b.txt")])
    assert lines_of(found, "- gpu0 -- gpu1") == [
        "- gpu0 -- gpu1: 4x nvlink unknown  # NV4; from b.txt"
    ]
    assert "# Combined with f.txt (output of ports)." in found.yaml


def test_what_a_matrix_does_not_know_is_still_said():
    alone = import_machine(machine(smi()))
    found = import_together([machine(smi()), facts(port("mlx5_0", 4e11))])
    assert set(alone.machine.notes) <= set(found.machine.notes)


def test_a_notice_of_a_port_stands_above_its_card():
    down = port("mlx5_1", None, notices=("port 1 is down",))
    found = import_together([machine(smi()), facts(port("mlx5_0", 4e11), down)])
    assert "  # nic1: port 1 is down\n  nic1: " in found.yaml


def test_a_slot_is_named_by_its_address():
    slots = (("0000:12:00.0", "SLOT3"), ("0000:99:00.0", "SLOT9"))
    found = import_together([machine(nccl()), facts(slots=slots, tells_only="its slots")])
    assert [card.slot for card in found.machine.of_kind("nic")] == ["SLOT3", ""]
    assert found.yaml.count("slot from f.txt") == 1


# --- memory ---------------------------------------------------------------------------------------


def memories(found):
    return [(memory.part, dict(memory.facts)) for memory in found.machine.of_kind("memory")]


def test_memory_of_each_socket_is_its_cpus():
    found = import_together([machine(smi()), of_sockets(8, 4)])
    assert memories(found) == [
        ("ddr5-4800", {"channels": "8", "size": "512 GB"}),
        ("ddr5-4800", {"channels": "4", "size": "512 GB"}),
    ]


def test_nodes_of_a_socket_share_its_memory():
    found = import_together([machine(unspoken(4)), of_sockets(8, 8)])
    assert memories(found) == [("ddr5-4800", {"channels": "4", "size": "256 GB"})] * 4


def test_sockets_that_differ_are_not_dealt_out():
    found = import_together([machine(unspoken(4)), of_sockets(8, 4)])
    assert "memory-not-placed" in codes(found)
    assert "ddr5-4800" not in found.yaml


def test_channels_that_nodes_cannot_share_stay_unknown():
    found = import_together([machine(unspoken(4)), of_sockets(6, 6, 6, 6, part="memory-unknown")])
    assert [told["channels"] for _, told in memories(found)] == ["6"] * 4
    odd = import_together([machine(unspoken(4)), of_sockets(5, 5)])
    assert all("channels" not in told for _, told in memories(odd))


def test_a_machine_without_nodes_has_the_memory_of_all_sockets():
    tree = (
        b"-[0000:00]-+-01.0-[01]----00.0  NVIDIA Corporation GA102GL [A40]\n"
        b"           \\-02.0-[02]----00.0  Mellanox Technologies MT2892 Family [ConnectX-6 Dx]\n"
    )
    found = import_together([machine(tree), of_sockets(8, 8)])
    assert memories(found) == [("ddr5-4800", {"channels": "16", "size": "1024 GB"})]
