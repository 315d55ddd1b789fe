"""InfraGraph's YAML: what becomes a device, a cable, a host; and what is wrong in a file."""

from __future__ import annotations

import time

import pytest

import topo
from topo.discovery.importing import discover, import_text
from topo.errors import ExchangeError

CLUSTER = """
name: two boxes
devices:
  - name: box
    description: a server
    components:
      - {name: cpu, choice: cpu, count: 2, description: Intel Xeon Platinum 8480C}
      - {name: acc, choice: xpu, count: 4, description: NVIDIA L40S}
      - {name: bridge, choice: switch, count: 2, description: a PCIe switch}
      - {name: port, choice: nic, count: 2, description: ConnectX-7}
      - {name: fan, choice: custom, count: 6, custom: {type: cooling}}
      - {name: riser, choice: custom, count: 2, custom: {type: pcie_slot}}
    links:
      - {name: bus, description: PCI Express GEN5 x16}
      - {name: socket, description: upi}
    edges:
      - {ep1: {component: cpu}, ep2: {component: cpu}, scheme: many2many, link: socket}
      - {ep1: {component: "bridge[0:2]"}, ep2: {component: "cpu[0:2]"}, scheme: one2one, link: bus}
      - {ep1: {component: "acc[:2]"}, ep2: {component: "bridge[0]"}, scheme: many2many, link: bus}
      - {ep1: {component: "acc[-2:]"}, ep2: {component: "bridge[1]"}, scheme: many2many, link: bus}
      - {ep1: {component: riser}, ep2: {component: bridge}, scheme: one2one, link: bus}
      - {ep1: {component: port}, ep2: {component: riser}, scheme: one2one, link: bus}
      - {ep1: {component: "fan[0]"}, ep2: {component: "cpu[0]"}, scheme: one2one, link: bus}
  - name: tor
    description: a switch
    components:
      - {name: asic, choice: cpu, count: 1}
      - {name: port, choice: port, count: 8}
    links: [{name: trace}]
    edges:
      - {ep1: {component: asic}, ep2: {component: port}, scheme: many2many, link: trace}
instances:
  - {name: node, device: box, count: 2}
  - {name: tor, device: tor, count: 1}
links:
  - {name: wire, physical: {bandwidth: {choice: gigabytes_per_second, gigabytes_per_second: 50}}}
  - {name: slow}
edges:
  - ep1: {instance: "node[0]", component: port}
    ep2: {instance: "tor[0]", component: "port[0:2]"}
    scheme: one2one
    link: wire
  - ep1: {instance: "node[1]", component: "port[0]"}
    ep2: {instance: tor, component: "port[2]"}
    link: slow
"""


def imported(text, kind="infragraph"):
    return import_text(kind, text.encode(), "plan.yaml")


def pairs(document):
    return {ends: cable for link in document["links"] for ends, cable in link.items()}


def test_a_cluster():
    result = imported(CLUSTER)
    devices = {device.name: device for device in result.description.devices}
    assert devices["node-acc0"].part.name == devices["node-acc7"].part.name == "l40s"
    assert devices["node-cpu3"].part.name == "xeon-8480c"
    assert devices["node-port2"].part.name == "connectx-7"
    assert devices["tor0"].part.ports.count == 8
    assert "node-fan0" not in devices
    links = pairs(result.document)
    assert links["node-cpu2 -- node-cpu3"] == "upi unknown"
    assert links["node-bridge3 -- node-cpu3"] == "pcie 5 x16"
    assert links["node-acc6 -- node-bridge3"] == "pcie 4 x16"  # what an L40S has
    assert links["node-port3 -- node-bridge3"] == "pcie 5 x16"  # the riser passes it on
    assert links["node-port1 -- tor0"] == "ethernet 400 Gb/s"
    assert links["node-port2 -- tor0"] == "ethernet unknown"
    assert "node-port3 -- tor0" not in links


def test_ranges_go_through_all_hosts():
    yaml = imported(CLUSTER).yaml
    assert "node-acc[0-7]:" in yaml
    assert "node-acc -- node-bridge in blocks: pcie 4 x16" in yaml


def test_what_is_left_out_is_said():
    findings = {finding.code: finding.message for finding in imported(CLUSTER).findings}
    assert "fan (12)" in findings["left-out"]
    assert "no storage" in findings["no-storage"]


def test_the_kind_is_guessed():
    assert imported(CLUSTER, kind=None).kind == "infragraph"


def test_the_kind_is_guessed_however_many_edges_there_are():
    begin, end = CLUSTER.index("instances:"), CLUSTER.index("edges:\n  - ep1")
    edges = CLUSTER[end:] + "".join(
        f"  - {{ep1: {{instance: 'node[1]', component: 'port[1]'}}, "
        f"ep2: {{instance: tor, component: 'port[{port % 4 + 4}]'}}, link: slow}}\n"
        for port in range(1000)
    )
    text = CLUSTER[:begin] + edges + CLUSTER[begin:end]
    assert len(text) > 70_000
    text = text.replace("count: 8}", "count: 2000}")
    assert discover(None, text.encode(), "plan.yaml").kind == "infragraph"


def test_a_device_alone_is_one_host():
    begin = CLUSTER.index("    components")
    box = CLUSTER[begin : CLUSTER.index("  - name: tor")]
    text = "name: box\n" + "\n".join(line[4:] for line in box.split("\n"))
    result = imported(text, kind=None)
    names = [device.name for device in result.description.devices]
    assert {"gpu0", "gpu3", "nic1", "sw1", "cpu1"} <= set(names)
    assert "load" in result.document["workloads"]


def test_a_slot_of_several_gets_a_switch():
    text = CLUSTER.replace(
        "{ep1: {component: port}, ep2: {component: riser}, scheme: one2one, link: bus}",
        "{ep1: {component: port}, ep2: {component: riser}, scheme: one2one, link: bus}\n"
        "      - {ep1: {component: 'acc[0]'}, ep2: {component: 'riser[0]'}, link: bus}",
    ).replace("acc[:2]", "acc[1]")
    result = imported(text)
    devices = {device.name: device for device in result.description.devices}
    assert devices["node-riser0"].kind == "pcie-switch"
    assert pairs(result.document)["node-acc0 -- node-riser0"] == "pcie 4 x16"


def test_a_card_within_a_card():
    text = CLUSTER.replace("choice: nic, count: 2", "choice: device, count: 2")
    text = text.replace("name: port, choice: device", "name: card, choice: device")
    text = text.replace(
        "component: port}, ep2: {component: riser}",
        "device: 'card[0:2]', component: plug}, ep2: {component: riser}",
    )
    text = text.replace(
        'instance: "node[0]", component: port',
        'instance: "node[0]", component: "card[0:2].port[0]"',
    )
    text = text.replace(
        'instance: "node[1]", component: "port[0]"',
        'instance: "node[1]", component: "card[0].port"',
    )
    card = """  - name: card
    components:
      - {name: plug, choice: custom, count: 1, custom: {type: pcie_endpoint}}
      - {name: port, choice: port, count: 2}
    links: [{name: trace}]
    edges: [{ep1: {component: plug}, ep2: {component: port}, scheme: many2many, link: trace}]
  - name: tor
"""
    result = imported(text.replace("  - name: tor\n", card, 1))
    assert pairs(result.document)["node-card1 -- tor0"] == "ethernet 400 Gb/s"


def test_ring_and_older_words():
    text = CLUSTER.replace("choice: xpu", "choice: npu").replace(
        "      - {ep1: {component: riser}",
        "      - {ep1: {component: acc}, ep2: {component: acc}, scheme: ring, link: socket}\n"
        "      - {ep1: {component: riser}",
    )
    links = pairs(imported(text.replace("NVIDIA L40S", "an accelerator")).document)
    assert links["node-acc0 -- node-acc1"] == "nvlink unknown"
    assert len([ends for ends in links if ends.count("acc") == 2]) == 8


@pytest.mark.parametrize(
    ("old", "new", "message"),
    [
        ("device: box, count: 2", "device: bxo, count: 2", "a device `bxo`"),
        ("device: box, count: 2", "device: box, count: two", "a whole number, not `two`"),
        ("component: riser}, ep2", "component: raiser}, ep2", "no component `raiser`"),
        ('"bridge[0:2]"', '"bridge[0-2]"', r"`\[0-2\]` is no slice"),
        ('"acc[:2]"', '"acc[9]"', r"`\[9\]` is beyond the 4"),
        ('instance: "node[0]"', 'instance: "nodes[0]"', "no instance `nodes`"),
        ("scheme: one2one\n    link", "scheme: mesh\n    link", "not `mesh`"),
        ("link: wire", "link: wier", "of a link `wier`"),
        ("{name: tor, device: tor", "{name: node, device: tor", "`node` stands in"),
        ("choice: xpu", "choice: device", "is a component that is a device"),
    ],
)
def test_mistakes_have_places(old, new, message):
    text = CLUSTER.replace(old, new, 1)
    with pytest.raises(ExchangeError, match=message) as caught:
        imported(text)
    assert caught.value.findings[0].place.line <= text[: text.index(new)].count("\n") + 1
    assert caught.value.findings[0].place.line >= text[: text.index(new)].count("\n") - 1


def test_mistakes_of_edges_are_said_together():
    text = CLUSTER.replace('instance: "node[0]"', 'instance: "x[0]"').replace(
        "link: slow", "link: y"
    )
    with pytest.raises(ExchangeError) as caught:
        imported(text)
    assert len(caught.value.findings) == 2


@pytest.mark.parametrize(
    "text",
    [
        "instances: []\ndevices: []\n",
        "instances: 3\ndevices: 4\n",
        "- 1\n",
        "devices: {a: {b: c}}\n",
    ],
)
def test_what_is_none_is_refused(text):
    with pytest.raises(ExchangeError):
        imported(text)


@pytest.mark.parametrize(
    ("old", "new"),
    [
        ("device: box, count: 2", "device: box, count: 999999999"),
        ("count: 8}", "count: 999999999}"),
    ],
)
def test_endless_counts_end_at_once(old, new):
    begin = time.process_time()
    with pytest.raises(ExchangeError):
        imported(CLUSTER.replace(old, new))
    assert time.process_time() - begin < 2


def test_it_can_be_asked():
    result = imported(CLUSTER)
    machine = topo.build(result.document)
    assert machine["tor0"].kind == "network-switch"
