"""Who is near whom, pair by pair, as `nvidia-smi topo -m` shows it."""

from __future__ import annotations

import pytest

from tests.machines import (
    CASCADED,
    GRACE,
    MI300X,
    NVLINKED,
    ONE_SOCKET,
    PARTS,
    SWITCHED,
    TWO_SOCKETS,
    built,
    shipped,
)
from topo.description.loading import loads
from topo.errors import UnknownNameError
from topo.topology.build import build_topology
from topo.topology.locality import (
    LARGEST_MATRIX,
    locality,
    matrix,
    matrix_devices,
    matrix_rows,
    pci_functions,
    rank,
    socket_of,
)
from topo.topology.rules import gds_ranking


def test_dgx_h100_is_what_nvidia_smi_shows():
    # Each GPU is PXB to the card it hangs on, NODE to the rest of its socket, SYS to the other.
    shown = matrix(shipped("dgx-h100"))
    cards = {f"nic{n}": n // 4 for n in range(8)} | {"slot2": 0, "slot1": 1}
    for gpu in range(8):
        row = shown[f"gpu{gpu}"]
        for card, socket in cards.items():
            here = "NODE" if socket == gpu // 4 else "SYS"
            assert row[card] == ("PXB" if card == f"nic{gpu}" else here), (gpu, card)
        for other in range(8):
            assert row[f"gpu{other}"] == ("X" if other == gpu else "NV18")


def test_cards_of_dgx_h100_among_themselves():
    shown = matrix(shipped("dgx-h100"))
    assert shown["nic0"]["nic1"] == "NODE"
    assert shown["nic0"]["slot2"] == "NODE"
    assert shown["nic0"]["slot1"] == "SYS"
    assert shown["slot1"]["slot2"] == "SYS"


def test_rows_are_gpus_then_cards_in_pci_order():
    names = [device.name for device in matrix_devices(shipped("dgx-h100"))]
    assert names[:8] == [f"gpu{n}" for n in range(8)]
    assert names[8:13] == ["nic0", "slot2", "nic1", "nic2", "nic3"]
    assert names[13:] == ["nic4", "slot1", "nic5", "nic6", "nic7"]


def test_rows_of_several_servers_are_one_server_after_the_other():
    text = "topo: 1\ndevices:\n  node[0-1]: {use: dgx-h100}\n"
    names = [device.name for device in matrix_devices(build_topology(loads(text)))]
    assert names[:16] == [f"node{node}.gpu{gpu}" for node in range(2) for gpu in range(8)]
    assert [name.partition(".")[0] for name in names[16:]] == ["node0"] * 10 + ["node1"] * 10


def test_two_functions_of_one_card_are_pix():
    shown = matrix(shipped("dgx-h100"), functions=True)
    assert shown["slot1/f0"]["slot1/f1"] == "PIX"
    assert shown["slot1/f0"]["slot1/f0"] == "X"
    assert shown["slot1/f1"]["gpu4"] == "NODE"
    assert "slot1" not in shown
    assert pci_functions(shipped("dgx-h100")["nic0"]) == ("nic0",)


def test_dgx_a100_with_four_numa_nodes_a_socket():
    # GPU0,1 sit with nic0,1 under a tree of several switches; the storage slots are SYS to every
    # GPU, although each shares a socket with four of them.
    shown = matrix(shipped("dgx-a100"))
    for gpu in range(8):
        for card in range(8):
            expected = "PXB" if card // 2 == gpu // 2 else "SYS"
            assert shown[f"gpu{gpu}"][f"nic{card}"] == expected, (gpu, card)
        assert shown[f"gpu{gpu}"]["slot4"] == "SYS"
        assert shown[f"gpu{gpu}"]["slot5"] == "SYS"
        assert {shown[f"gpu{gpu}"][f"gpu{other}"] for other in range(8)} == {"X", "NV12"}


def test_a_box_of_two_switches():
    shown = matrix(shipped("l40s-two-switches"))
    for gpu in range(8):
        assert shown[f"gpu{gpu}"]["nic0"] == ("PIX" if gpu < 4 else "SYS")
        assert shown[f"gpu{gpu}"]["nic1"] == ("SYS" if gpu < 4 else "PIX")
        for other in range(8):
            if other != gpu:
                expected = "PIX" if other // 4 == gpu // 4 else "SYS"
                assert shown[f"gpu{gpu}"][f"gpu{other}"] == expected


def test_several_switches_on_the_way_are_pxb():
    machine = built(CASCADED)
    assert locality(machine, "gpu0", "nic0") == "PIX"
    assert locality(machine, "gpu1", "nic0") == "PXB"
    assert locality(machine, "gpu0", "gpu1") == "PXB"


def test_a_switch_of_several_chips_or_of_unknown_many_is_pxb():
    one = "sw0: {part: pcie-switch-gen5, acs: off}"
    for chips, expected in (("1", "PIX"), ("2", "PXB"), ("unknown", "PXB")):
        text = SWITCHED.replace(one, f"sw0: {{part: pcie-switch-gen5, chips: {chips}}}")
        assert locality(built(text), "gpu0", "nic0") == expected


def test_grace_has_nothing_nearer_than_node():
    shown = matrix(built(GRACE))
    for gpu in range(4):
        for card in ("nic0", "nic1", "bf0"):
            assert shown[f"gpu{gpu}"][card] == ("NODE" if gpu < 2 else "SYS")
        for card in ("nic2", "nic3", "bf1"):
            assert shown[f"gpu{gpu}"][card] == ("SYS" if gpu < 2 else "NODE")
        assert {shown[f"gpu{gpu}"][f"gpu{other}"] for other in range(4)} == {"X", "NV18"}


def test_mi300x_mesh():
    shown = matrix(built(MI300X))
    assert shown["gpu0"]["gpu7"] == "XGMI"
    assert [shown["gpu0"][f"nic{n}"] for n in range(8)] == ["PIX"] * 2 + ["NODE"] * 2 + ["SYS"] * 4


def test_links_of_either_maker_are_nearest():
    assert rank("NV4") == rank("XGMI") < rank("PIX") < rank("PXB") < rank("PHB")
    assert rank("PHB") < rank("NODE") < rank("SYS") < rank("")


def test_every_link_to_a_cpu_is_its_own_root_and_a_root_complex_is_one():
    assert locality(built(ONE_SOCKET), "gpu0", "nic0") == "NODE"
    assert locality(shipped("gds-textbook"), "gpu0", "slot1") == "PHB"
    assert locality(shipped("gds-textbook"), "gpu0", "slot2") == "SYS"


ROOTS = (
    PARTS
    + """
devices:
  cpu[0-1]: {part: socket, numa: [0-1, 2-3]}
  rc[0-4]: {part: root-complex, forwards-p2p: yes}
  ram[0-1]: dram
  nic[0-1]: card
  gpu[0-4]: accel
links:
  - ram -- cpu: memory-bus
  - cpu0 -- cpu1: upi 16 GT/s
  - rc0 -- cpu0/numa0: pcie unknown
  - rc1 -- cpu0/numa0: pcie unknown
  - rc2 -- cpu0/numa1: pcie unknown
  - rc3 -- cpu1: pcie unknown
  - rc4 -- cpu1: pcie unknown
  - gpu -- rc: pcie 5 x16
  - nic0 -- rc0: pcie 5 x16
  - nic1 -- cpu0/numa0: pcie 5 x16
"""
)


@pytest.mark.parametrize(
    ("other", "expected"),
    [
        ("nic0", "PHB"),  # the same root complex
        ("gpu1", "NODE"),  # another one of the same socket
        ("nic1", "NODE"),  # a root port of the socket itself
        ("gpu2", "SYS"),  # another NUMA node of the socket
        ("gpu3", "SYS"),  # the other socket
    ],
)
def test_root_complexes_belong_to_the_socket_they_are_linked_to(other, expected):
    machine = built(ROOTS)
    assert locality(machine, "gpu0", other) == expected
    assert locality(machine, other, "gpu0") == expected


def test_the_socket_of_a_device():
    machine = built(ROOTS)
    assert socket_of(machine, "gpu0") == "cpu0"
    assert socket_of(machine, "rc3") == "cpu1"
    assert socket_of(machine, "cpu1") == "cpu1"
    assert socket_of(machine, "ram1") == "cpu1"
    assert socket_of(shipped("gds-textbook"), "gpu7") == "root1"
    assert socket_of(shipped("gds-textbook"), "storage") == ""


TWICE_CABLED = TWO_SOCKETS.replace(
    "  - nic0 -- cpu0: pcie 5 x16", "  - nic0 -- cpu0: pcie 5 x8\n  - nic0 -- cpu1: pcie 5 x8"
)


def test_a_card_cabled_to_both_sockets_is_near_both():
    machine = built(TWICE_CABLED)
    assert [locality(machine, f"gpu{n}", "nic0") for n in (0, 1)] == ["NODE", "NODE"]
    assert locality(machine, "gpu0", "gpu1") == "SYS"
    assert [found.socket for found in machine.tree.attachments("nic0")] == ["cpu0", "cpu1"]


def test_a_device_is_x_to_itself_and_nothing_to_what_no_host_joins():
    machine = built(TWO_SOCKETS)
    assert locality(machine, "gpu0", "gpu0") == "X"
    assert locality(machine, "gpu0", "storage") == ""


def test_nvlinks_count_directly_and_through_switches():
    assert locality(built(NVLINKED), "gpu0", "gpu3") == "NV4"
    text = NVLINKED.replace("gpu -- gpu all to all: 4x nvlink 4", "gpu0 -- gpu1: 2x nvlink 4")
    twice = text.replace(
        "  - gpu0 -- gpu1: 2x nvlink 4", "  - gpu0 -- gpu1: 2x nvlink 4\n  - gpu1 -- gpu0: nvlink 4"
    )
    assert locality(built(twice), "gpu0", "gpu1") == "NV3"


@pytest.mark.parametrize("name", ["dgx-h100", "dgx-a100", "l40s-two-switches", "gds-textbook"])
def test_the_matrix_is_symmetric(name):
    shown = matrix(shipped(name))
    assert all(shown[one][other] == shown[other][one] for one in shown for other in shown)


def test_an_unknown_device_is_named_with_advice():
    with pytest.raises(UnknownNameError, match="no device gpu9; gpu0 and gpu1 exist"):
        locality(built(TWO_SOCKETS), "gpu9", "gpu0")


def test_a_matrix_of_many_servers_is_one_servers():
    servers = LARGEST_MATRIX // 2
    text = (
        PARTS
        + f"""
devices:
  cpu[0-{servers - 1}]: socket
  gpu[0-{2 * servers - 1}]: accel
  nic[0-{servers - 1}]: card
links:
  - gpu -- cpu in blocks: pcie 5 x16
  - nic -- cpu: pcie 5 x16
"""
    )
    topology = built(text)
    rows, findings = matrix_rows(topology)
    assert [device.name for device in rows] == ["gpu0", "gpu1", "nic0"]
    assert [finding.code for finding in findings] == ["matrix-cut"]
    assert "3 of 384 devices" in findings[0].message
    assert matrix(topology, devices=rows)["gpu0"] == {"gpu0": "X", "gpu1": "NODE", "nic0": "NODE"}
    assert locality(topology, "gpu0", "gpu2") == ""  # of another server
    assert len(matrix_rows(topology, every=True)[0]) == 3 * servers
    ranking = gds_ranking(topology)
    assert [peer.name for peer in ranking["gpu3"]] == ["nic1"]  # another server's is no peer
    assert matrix_rows(shipped("dgx-h100"))[1] == ()


def test_a_matrix_of_one_large_server_is_cut():
    count = LARGEST_MATRIX + 1
    text = (
        PARTS
        + f"""
  switch: {{kind: pcie-switch, source: test}}
devices:
  cpu0: socket
  sw0: switch
  gpu[0-{count - 1}]: accel
links:
  - sw0 -- cpu0: pcie 5 x16
  - gpu -- sw0: pcie 5 x16
"""
    )
    rows, findings = matrix_rows(built(text))
    assert len(rows) == LARGEST_MATRIX
    assert "--all" in findings[0].help
