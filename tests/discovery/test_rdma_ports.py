"""ibstat, ibstatus, ibdev2netdev, ibv_devinfo and rdma link: how fast the ports of cards are."""

from __future__ import annotations

import pytest

from tests.discovery.test_combine import codes, smi
from topo.discovery.file_kinds import file_kind
from topo.discovery.importing import discover, import_text, import_together
from topo.errors import ExchangeError


def ca(name, rate=400, *, state="Active", physical="LinkUp", layer="InfiniBand", number=4129):
    return (
        f"CA '{name}'\n\tCA type: MT{number}\n\tNumber of ports: 1\n"
        "\tFirmware version: 28.1.1\n\tHardware version: 0\n"
        f"\tPort 1:\n\t\tState: {state}\n\t\tPhysical state: {physical}\n\t\tRate: {rate}\n"
        "\t\tBase lid: 7\n\t\tLMC: 0\n\t\tSM lid: 1\n\t\tCapability mask: 0xa751e848\n"
        f"\t\tLink layer: {layer}\n"
    )


IBSTAT = ca("mlx5_0") + ca("mlx5_10", 200, layer="Ethernet") + ca("mlx5_2", 10, state="Down",
    physical="Polling")  # fmt: skip
IBSTATUS = (
    "Infiniband device 'mlx5_0' port 1 status:\n"
    "\tdefault gid:\t fe80:0000:0000:0000:0000:0000:0000:0001\n\tbase lid:\t 0x7\n"
    "\tsm lid:\t\t 0x1\n\tstate:\t\t 4: ACTIVE\n\tphys state:\t 5: LinkUp\n"
    "\trate:\t\t 400 Gb/sec (4X NDR)\n\tlink_layer:\t InfiniBand\n\n"
    "Infiniband device 'mlx5_1' port 1 status:\n\tstate:\t\t 1: DOWN\n"
    "\tphys state:\t 3: Disabled\n\trate:\t\t 40 Gb/sec (4X QDR)\n\tlink_layer:\t Ethernet\n"
)
TO_INTERFACES = (
    "0000:12:00.0 mlx5_0 (MT4129 - MCX1-HDAT  ) A card, 400Gb/s (NDR), one port fw 28.1 "
    "port 1 (ACTIVE) ==> ibp18s0 (Up)\n"
    "0000:22:00.0 mlx5_1 (MT4129 - MCX1-HDAT  ) A card, 400Gb/s fw 28.1 "
    "port 1 (DOWN  ) ==> ens2f0np0 (Down)\n"
    "0000:22:00.2 mlx5_2 (MT4126 - NA)  fw 28.1 port 1 (DOWN  ) ==> ens2f0v0 (Down)\n"
)
DEVINFO = (
    "hca_id:\tmlx5_0\n\ttransport:\t\t\tInfiniBand (0)\n\tvendor_id:\t\t\t0x02c9\n"
    "\tvendor_part_id:\t\t\t4129\n\tphys_port_cnt:\t\t\t1\n\t\tport:\t1\n"
    "\t\t\tstate:\t\t\tPORT_ACTIVE (4)\n\t\t\tlink_layer:\t\tEthernet\n"
    "\t\t\tactive_width:\t\t4X (2)\n\t\t\tactive_speed:\t\t100.0 Gbps (128)\n"
)
RDMA_LINK = (
    "link mlx5_0/1 state ACTIVE physical_state LINK_UP netdev ens1np0 \n"
    "1/1: mlx5_1/1: state DOWN physical_state DISABLED netdev ens2np0\n"
)
PLAIN = {
    "ibstat": IBSTAT,
    "ibstatus": IBSTATUS,
    "ibdev2netdev": TO_INTERFACES,
    "ibv_devinfo": DEVINFO,
    "rdma link": RDMA_LINK,
}


def ports_of(text):
    data = text if isinstance(text, bytes) else text.encode()
    machine = discover(None, data, "ib.txt")
    return {device.rdma[0]: device for device in machine.devices}


@pytest.mark.parametrize("text", PLAIN.values(), ids=PLAIN)
def test_each_is_known_and_refused_alone(text):
    assert file_kind(text.encode()).importer == "ibstat"
    with pytest.raises(ExchangeError, match="tells the ports of network cards, and not what"):
        import_text(None, text.encode(), "ib.txt")


def test_rates_layers_and_parts():
    cards = ports_of(IBSTAT)
    assert list(cards) == ["mlx5_0", "mlx5_2", "mlx5_10"]
    assert [card.ports for card in cards.values()] == [(4e11,), (None,), (2e11,)]
    assert cards["mlx5_0"].network == "infiniband"
    assert cards["mlx5_10"].network == "ethernet"
    assert {card.part for card in cards.values()} == {"connectx-7"}


def test_a_port_that_is_down_is_said_and_has_no_rate():
    machine = discover(None, IBSTAT.encode(), "ib.txt")
    (finding,) = machine.findings
    assert (finding.code, finding.message) == ("port-down", "1 of 3 ports are down: mlx5_2")
    assert ports_of(IBSTAT)["mlx5_2"].notices == ("port 1 of mlx5_2 is down (polling)",)
    assert ports_of(IBSTATUS)["mlx5_1"].ports == (None,)


def test_a_port_without_a_subnet_manager_has_its_rate():
    text = ca("mlx5_0", state="Initializing")
    (card,) = ports_of(text).values()
    assert card.ports == (4e11,)
    assert "no subnet manager" in card.notices[0]


def test_addresses_and_interfaces():
    cards = ports_of(TO_INTERFACES)
    assert [(card.pci, card.label) for card in cards.values()] == [
        (("0000:12:00.0",), "ibp18s0"),
        (("0000:22:00.0",), "ens2f0np0"),
    ]
    assert discover(None, TO_INTERFACES.encode(), "ib.txt").left_out == ("mlx5_2",)  # virtual


def test_an_interface_that_is_down_says_nothing_of_an_infiniband_port():
    cards = ports_of(
        "mlx5_0 port 1 ==> ibp26s0 (Down)\nmlx5_1   port  1  ==>  eth0   (Up)  # far\n"
    )
    assert [card.notices for card in cards.values()] == [(), ()]
    assert cards["mlx5_1"].label == "eth0"


def test_a_width_and_the_speed_of_a_lane():
    assert ports_of(DEVINFO)["mlx5_0"].ports == (4e11,)
    assert ports_of(RDMA_LINK)["mlx5_1"].notices == ("port 1 of mlx5_1 is down (disabled)",)


def test_several_tools_after_one_another_are_of_the_same_cards():
    cards = ports_of(IBSTATUS + TO_INTERFACES)
    assert (cards["mlx5_0"].ports, cards["mlx5_0"].pci) == ((4e11,), ("0000:12:00.0",))


def test_a_card_told_twice():
    machine = discover(None, (ca("mlx5_0", 400) + ca("mlx5_0", 100)).encode(), "ib.txt")
    assert [finding.code for finding in machine.findings] == ["told-twice"]
    assert machine.devices[0].ports == (4e11,)


def test_a_card_of_two_ports():
    text = IBSTATUS.replace("'mlx5_1' port 1", "'mlx5_0' port 2")
    (card,) = ports_of(text).values()
    assert card.ports == (4e11, None)
    machine = discover(None, text.encode(), "ib.txt")
    assert machine.findings[0].message == "1 of 2 ports are down: mlx5_0 port 2"


def test_it_ends_the_guess_of_a_matrix():
    text = ca("mlx5_0", 400) + ca("mlx5_1", 400)
    sources = [discover(None, smi(), "a.txt"), discover(None, text.encode(), "ib.txt")]
    found = import_together(sources)
    assert "guessed-speed" not in codes(found)
    assert "storage -- nic: infiniband ndr" in found.yaml
    assert "part: connectx-7, " in found.yaml
    assert "part, port speed from ib.txt" in found.yaml


def test_by_order_it_is_the_order_of_numbers():
    """ibstat lists mlx5_10 before mlx5_2."""
    tree = "\n".join(
        ["-[0000:00]-+-01.0-[01]----00.0  NVIDIA Corporation GA102GL [A40]"]
        + [
            f"           +-0{at}.0-[{at:02x}]----00.0  Mellanox Technologies MT2910 [ConnectX-7]"
            for at in range(2, 5)
        ]
    )
    text = ca("mlx5_10", 100) + ca("mlx5_2", 200) + ca("mlx5_9", 400)
    sources = [discover(None, tree.encode(), "a.txt"), discover(None, text.encode(), "ib.txt")]
    found = import_together(sources)
    assert [(card.rdma, card.ports) for card in found.machine.of_kind("nic")] == [
        (("mlx5_2",), (2e11,)),
        (("mlx5_9",), (4e11,)),
        (("mlx5_10",), (1e11,)),
    ]
    assert "# Network cards were matched by their order: ib.txt has no addresses." in found.yaml


def test_nothing_of_ports():
    with pytest.raises(ExchangeError, match="names no RDMA device"):
        import_text("ibstat", b"dear all\n", "ib.txt")
