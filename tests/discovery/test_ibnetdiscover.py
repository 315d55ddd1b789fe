"""ibnetdiscover: switches, hosts by their cards, links."""

from __future__ import annotations

import random

import pytest

from tests.discovery.pasted import mutated, ragged, survives_import
from tests.discovery.twins import INTEL_SPR, card, cpu, gpu, switch, system
from topo.cli.program import main
from topo.description.loading import load
from topo.discovery.apart import taken_apart
from topo.discovery.importing import discover
from topo.errors import ExchangeError
from topo.topology.build import build_topology

LEAVES, HOSTS = 2, 3
SHARP = "Mellanox Technologies Aggregation Node"


def entry(kind, ports, key, name, links, *, device, image):
    head = f"vendid=0x2c9\ndevid=0x{device}\nsysimgguid=0x{image}\n{kind.lower()}guid=0x{image}\n"
    body = f'{kind}\t{ports} "{key}"\t\t# "{name}" enhanced port 0 lid 3 lmc 0\n'
    return head + body + "".join(f"{link}\n" for link in links) + "\n"


def leaf_of(rail):
    return f"S-fc6a1c0300aa000{rail}", f"MF0;leaf{rail}:MQM9700/U1"


def fabric(*, speed="4xNDR", name="node{host:02} mlx5_{rail}", hosts=HOSTS):
    """Return a text of two leaves and a spine, with a card of each host on each leaf."""
    spine, spine_name = "S-fc6a1c0300bb0000", "MF0;spine0:MQM9700/U1"
    text = "#\n# Topology file: generated on Mon Jan  5 10:00:00 2026\n#\n"
    text += "# Initiated from node b8cef60300000000 port b8cef60300000000\n\n"
    cards = [(host, rail) for host in range(hosts) for rail in range(LEAVES)]
    keys = {(host, rail): f"H-b8cef6030{host:03x}000{rail}" for host, rail in cards}
    for rail in range(LEAVES):
        key, title = leaf_of(rail)
        links = [
            f'[{host + 1}]\t"{keys[host, rail]}"[1](b8ce{host}) \t\t'
            f'# "{name.format(host=host, rail=rail)}" lid {host} {speed}'
            for host in range(hosts)
        ]
        links += [
            f'[{60 + at}]\t"{spine}"[{2 * rail + at}]\t\t# "{spine_name}" lid 9 4xNDR'
            for at in (1, 2)
        ]
        links.append(f'[129]\t"H-a660000000000001"[1](a66) \t\t# "{SHARP}" lid 8 4xNDR')
        text += entry("Switch", 129, key, title, links, device="d2f2", image=f"fc6a{rail}")
    links = [
        f'[{2 * rail + at}]\t"{leaf_of(rail)[0]}"[{60 + at}]\t\t# "{leaf_of(rail)[1]}" lid 2 4xNDR'
        for rail in range(LEAVES)
        for at in (1, 2)
    ]
    text += entry("Switch", 129, spine, spine_name, links, device="d2f2", image="fc6abb")
    for host, rail in cards:
        leaf, title = leaf_of(rail)
        link = f'[1](b8ce{host}) \t"{leaf}"[{host + 1}]\t\t# lid 4 lmc 0 "{title}" lid 2 {speed}'
        text += entry(
            "Ca",
            1,
            keys[host, rail],
            name.format(host=host, rail=rail),
            [link],
            device="1021",
            image=f"b8ce{host}{rail}",
        )
    return text


FABRIC = fabric()


def machine_of(text):
    return discover(None, text if isinstance(text, bytes) else text.encode(), "fabric.txt")


def ends(machine):
    return [(cable.a.split(".")[0], cable.b, cable.cable) for cable in machine.cables]


def codes(machine):
    return [finding.code for finding in machine.findings]


def host_xml():
    cards = [card(f"0000:1{at}:00.0", f"mlx5_{1 - at}") for at in range(2)]
    return system(cpu(0, switch("0000:0f:00.0", gpu("0000:20:00.0"), *cards), who=INTEL_SPR))


# --- a fabric -------------------------------------------------------------------------------------


def test_a_fabric_has_switches_hosts_and_every_link_once():
    machine = machine_of(FABRIC)
    assert machine.kind == "ibnetdiscover"
    assert [switch.name for switch in machine.of_kind("network-switch")] == [
        "leaf0",
        "leaf1",
        "spine0",
    ]
    assert {switch.part for switch in machine.of_kind("network-switch")} == {"quantum-2"}
    assert [(card.host, card.part, card.rdma) for card in machine.of_kind("nic")][:2] == [
        ("node00", "connectx-7", ("mlx5_0",)),
        ("node00", "connectx-7", ("mlx5_1",)),
    ]
    cables = [cable.cable for cable in machine.cables]
    assert sorted(cables) == ["2x infiniband ndr"] * 2 + ["infiniband ndr"] * (HOSTS * LEAVES)
    assert codes(machine) == ["left-out", "hosts-by-cards"]


def test_it_becomes_a_cluster(tmp_path, capsys):
    (tmp_path / "fabric.txt").write_text(FABRIC)
    out = tmp_path / "pod.yaml"
    assert main(["import", str(tmp_path / "fabric.txt")]) == 1
    assert "of several hosts" in capsys.readouterr().err
    assert main(["import", str(tmp_path / "fabric.txt"), "-o", str(out)]) == 0
    assert "node[00-02]: {use: pod-node.yaml}" in out.read_text()
    topology = build_topology(load(out))
    assert topology["node02.nic1"].part.name == "connectx-7"
    assert topology["spine0"].part.name == "quantum-2"
    assert "rdma: [mlx5_0, mlx5_1]" in (tmp_path / "pod-node.yaml").read_text()


def test_the_links_lead_to_the_cards_that_hosts_own_sources_have(tmp_path, capsys):
    (tmp_path / "fabric.txt").write_text(FABRIC)
    (tmp_path / "host.xml").write_bytes(host_xml())
    node = f"node[00-02]={tmp_path / 'host.xml'}"
    out = tmp_path / "pod.yaml"
    assert main(["import", str(tmp_path / "fabric.txt"), "--node", node, "-o", str(out)]) == 0
    assert "hosts-by-cards" not in capsys.readouterr().err
    topology = build_topology(load(out))
    assert topology["node00.gpu0"].pci == ("20:00.0",)
    assert topology["node00.nic1"].rdma == ("mlx5_0",)
    assert "node.nic1 -- leaf0: infiniband ndr" in out.read_text()
    assert main(["compare", str(out), "--from", "node00.gpu0", "--to", "node01.gpu0"]) == 0


def test_some_hosts_may_have_their_own_source(tmp_path, capsys):
    (tmp_path / "fabric.txt").write_text(FABRIC)
    (tmp_path / "host.xml").write_bytes(host_xml())
    out = tmp_path / "pod.yaml"
    node = f"node01={tmp_path / 'host.xml'}"
    assert main(["import", str(tmp_path / "fabric.txt"), "--node", node, "-o", str(out)]) == 0
    said = capsys.readouterr().err
    assert "hosts-by-cards" in said
    assert "hosts-differ" in said
    assert main(["show", str(out)]) == 0


def test_a_source_without_the_fabrics_cards_is_said(tmp_path, capsys):
    (tmp_path / "fabric.txt").write_text(FABRIC)
    (tmp_path / "host.xml").write_bytes(system(cpu(0, gpu("0000:20:00.0"), who=INTEL_SPR)))
    node = f"node[00-02]={tmp_path / 'host.xml'}"
    out = str(tmp_path / "pod.yaml")
    assert main(["import", str(tmp_path / "fabric.txt"), "--node", node, "-o", out]) == 0
    assert "card-not-placed" in capsys.readouterr().err


def test_hosts_that_the_fabric_has_not_are_an_error(tmp_path, capsys):
    (tmp_path / "fabric.txt").write_text(FABRIC)
    (tmp_path / "host.xml").write_bytes(host_xml())
    node, out = f"node1={tmp_path / 'host.xml'}", str(tmp_path / "pod.yaml")
    assert main(["import", str(tmp_path / "fabric.txt"), "--node", node, "-o", out]) == 1
    assert "did you mean `node01`" in capsys.readouterr().err


def test_another_file_beside_nodes_is_refused(tmp_path, capsys):
    (tmp_path / "host.xml").write_bytes(host_xml())
    file = str(tmp_path / "host.xml")
    assert main(["import", file, "--node", f"a={file}", "-o", str(tmp_path / "x.yaml")]) == 2
    assert "ibnetdiscover" in capsys.readouterr().err


# --- names and speeds -----------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("name", "hosts"),
    [
        ("node{host:02} HCA-{rail}", ["node00", "node01", "node02"]),
        ("'node{host:02}' mlx5_{rail}", ["node00", "node01", "node02"]),
        ("localhost mlx5_{rail}", ["localhost", "localhost.2", "localhost.3"]),
        ("MT4129 ConnectX Mellanox Technologies", None),
    ],
)
def test_hosts_are_named_by_their_cards(name, hosts):
    machine = machine_of(fabric(name=name))
    found = [box.host for box in machine.of_kind("cpu")]
    assert found == hosts if hosts else len(found) == HOSTS * LEAVES
    assert len(taken_apart(machine)[0]) == len(found)


def test_hosts_are_in_the_order_of_their_numbers():
    machine = machine_of(fabric(name="n{host} mlx5_{rail}", hosts=12))
    assert [box.host for box in machine.of_kind("cpu")] == [f"n{at}" for at in range(12)]


@pytest.mark.parametrize(
    ("speed", "cable", "is_odd"),
    [
        ("4xXDR", "infiniband xdr", False),
        ("2xNDR", "infiniband ndr200", False),
        ("4xHDR", "infiniband hdr", False),
        ("2xHDR", "infiniband edr", False),
        ("4xEDR", "infiniband edr", False),
        ("4xFDR", "infiniband fdr", False),
        ("4xSDR", "infiniband 8 Gb/s", False),
        ("4xFDR10", "infiniband 40 Gb/s", False),
        ("1xEDR", "infiniband 25 Gb/s", False),
        ("4xZZZ", "infiniband unknown", True),
        ("", "infiniband unknown", True),
    ],
)
def test_width_and_speed_are_a_cable(speed, cable, is_odd):
    machine = machine_of(fabric(speed=speed))
    assert machine.cables[0].cable == cable
    assert ("odd-link-speed" in codes(machine)) == is_odd


def test_links_of_one_lane_are_said():
    assert "narrow-link" in codes(machine_of(fabric(speed="1xNDR")))
    assert "narrow-link" not in codes(machine_of(fabric(speed="2xNDR")))


def test_ports_of_one_image_are_one_card():
    text = FABRIC.replace("sysimgguid=0xb8ce01", "sysimgguid=0xb8ce00")
    cards = [card for card in machine_of(text).of_kind("nic") if card.host == "node00"]
    assert [(card.part, card.rdma) for card in cards] == [
        ("connectx-7-dual-port", ("mlx5_0", "mlx5_1"))
    ]


def test_a_text_with_switches_alone_still_has_its_hosts():
    text = FABRIC[: FABRIC.index("Ca\t")]
    machine = machine_of(text)
    assert "abridged" in codes(machine)
    assert ends(machine) == ends(machine_of(FABRIC))


def test_a_text_without_links_is_refused():
    with pytest.raises(ExchangeError, match="no link of ibnetdiscover"):
        discover("ibnetdiscover", b'Switch\t36 "S-1"\t# "x" base port 0\n', "x")


def rail(links, speed):
    """Return a text of one QM9700 with so many hosts."""
    lines = [
        f'[{at}]\t"H-{at:04x}"[1](a{at}) \t\t# "n{at} mlx5_0" lid 7 {speed}'
        for at in range(1, links + 1)
    ]
    return entry("Switch", 129, "S-1", "MF0;top:MQM9700/U1", lines, device="d2f2", image="1")


@pytest.mark.parametrize(
    ("links", "speed", "part"),
    [
        (64, "4xNDR", "quantum-2"),
        (128, "2xNDR", "quantum-2"),
        (65, "4xNDR", "network-switch-unknown"),
        (130, "2xNDR", "network-switch-unknown"),
    ],
)
def test_a_switch_has_as_many_ports_as_links(links, speed, part, tmp_path):
    (tmp_path / "fabric.txt").write_text(rail(links, speed))
    out = tmp_path / "pod.yaml"
    assert main(["import", str(tmp_path / "fabric.txt"), "-o", str(out)]) == 0
    topology = build_topology(load(out))
    assert topology["top"].part.name == part


def test_a_switch_without_a_link_is_left_out():
    text = FABRIC + entry("Switch", 129, "S-9", "MF0;far:MQM9700/U1", [], device="d2f2", image="9")
    machine = machine_of(text)
    assert "MF0;far:MQM9700/U1" in machine.left_out
    assert len(machine.of_kind("network-switch")) == LEAVES + 1


def test_a_port_that_has_two_links_keeps_the_first():
    text = rail(2, "4xNDR").replace("[2]\t", "[1]\t")
    assert len(machine_of(text).cables) == 1


# --- ragged and hostile ---------------------------------------------------------------------------


@pytest.mark.parametrize("how", ragged(FABRIC))
def test_however_it_was_pasted(how):
    machine, plain = machine_of(ragged(FABRIC)[how]), machine_of(FABRIC)
    assert (machine.devices, machine.cables) == (plain.devices, plain.cables)


@pytest.mark.parametrize(
    "text",
    [
        FABRIC.replace("\t", "    "),
        FABRIC.replace("(b8ce0)", "").replace("[61]", "[61][ext 3]"),
        FABRIC.replace("b8cef6030", "b8ce<redacted>"),
    ],
    ids=["tabs lost", "chassis", "redacted"],
)
def test_other_forms(text):
    assert len(machine_of(text).cables) == len(machine_of(FABRIC).cables)


HOSTILE = {
    "huge ports": FABRIC.replace("[1]", "[" + "9" * 4000 + "]"),
    "names": FABRIC.replace("node00", "no\x07\x1bde" + "n" * 60_000),
    "keys": FABRIC.replace("S-fc6a", "S-" + "f" * 50_000),
    "to itself": FABRIC.replace("S-fc6a1c0300bb0000", "S-fc6a1c0300aa0000"),
    "many": 'Switch 9 "S-1" # "x"\n'
    + "".join(f'[{at}] "H-{at}"[1] # "n{at} mlx5_0" lid 1 4xNDR\n' for at in range(3000)),
    "quotes": 'Switch 9 "S-1" # ' + '"' * 90_000 + "\n[1] " + '"' * 90_000,
}


@pytest.mark.parametrize("how", HOSTILE)
def test_hostile_fabrics(how):
    survives_import(HOSTILE[how].encode())


@pytest.mark.parametrize("seed", range(60))
def test_damaged_fabrics(seed):
    chance = random.Random(seed)
    survives_import(mutated(FABRIC.encode(), chance))
