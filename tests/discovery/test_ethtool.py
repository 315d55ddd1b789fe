"""ethtool: the speed of interfaces."""

from __future__ import annotations

import pytest

from tests.discovery.test_combine import LSPCI, smi
from topo.discovery.file_kinds import file_kind
from topo.discovery.importing import discover, import_text, import_together
from topo.errors import ExchangeError


def settings(interface, speed="100000Mb/s", link="yes"):
    return (
        f"Settings for {interface}:\n\tSupported ports: [ FIBRE ]\n"
        "\tSupported link modes:   25000baseCR/Full\n\t                        100000baseCR4/Full\n"
        f"\tSpeed: {speed}\n\tDuplex: Full\n\tAuto-negotiation: on\n\tLink detected: {link}\n"
    )


TWO = settings("ens1f0np0") + settings("ens2", "Unknown!", "no")
PLAIN = {"one": settings("eth0"), "two": TWO}
NAMES = b"mlx5_0 port 1 ==> ens1f0np0 (Up)\nmlx5_1 port 1 ==> ens2 (Down)\n"


def told(text):
    data = text if isinstance(text, bytes) else text.encode()
    return discover(None, data, "eth.txt")


@pytest.mark.parametrize("text", PLAIN.values(), ids=PLAIN)
def test_it_is_known_and_refused_alone(text):
    assert file_kind(text.encode()).importer == "ethtool"
    with pytest.raises(ExchangeError, match="tells the speed of network interfaces, and not"):
        import_text(None, text.encode(), "eth.txt")


def test_speeds_and_links():
    machine = told(TWO)
    assert [(card.label, card.ports) for card in machine.devices] == [
        ("ens1f0np0", (1e11,)),
        ("ens2", (None,)),
    ]
    (finding,) = machine.findings
    assert (finding.code, finding.message) == ("port-down", "1 of 2 interfaces have no link: ens2")


def test_an_interface_is_found_by_the_name_that_another_source_has():
    names = discover(None, NAMES, "names.txt")
    found = import_together([discover(None, smi(), "a.txt"), names, told(TWO)])
    assert [card.ports for card in found.machine.of_kind("nic")] == [(1e11,), ()]
    assert "# nic1: ens2 has no link" in found.yaml


def test_an_interface_without_a_card_is_left_out():
    """Two cards and two interfaces, which may be any: nothing tells that they are the same."""
    found = import_together([discover(None, LSPCI, "a.txt"), told(TWO)])
    assert not any(any(card.ports) for card in found.machine.of_kind("nic"))
    assert "2 devices of eth.txt could not be placed" in found.yaml


def test_a_card_of_two_ports_of_which_one_is_told_keeps_both():
    dual = b"Ethernet controller: Mellanox Technologies MT2892 Family [ConnectX-6 Dx]\n"
    gpu = b"01:00.0 3D controller: NVIDIA Corporation GA102GL [A40]\n"
    listed = gpu + b"03:00.0 " + dual + b"03:00.1 " + dual
    port = b"0000:03:00.0 mlx5_0 (MT4125 - X)  fw 1 port 1 (ACTIVE) ==> ens1f0np0 (Up)\n"
    names = discover(None, port, "names.txt")
    found = import_together([discover(None, listed, "a.txt"), names, told(settings("ens1f0np0"))])
    card = next(card for card in found.machine.of_kind("nic") if "0000:03:00.1" in card.pci)
    assert card.ports == (1e11, None)
