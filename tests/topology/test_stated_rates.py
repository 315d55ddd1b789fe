"""A rate that somebody states for a link, in the file or by ``--set``, on the machine."""

from __future__ import annotations

import pytest

import topo
from topo.description.as_document import to_document
from topo.description.write import to_yaml
from topo.errors import UnknownNameError


def test_one_cable_of_a_bundle_is_named_by_its_port():
    machine = topo.load("gds-textbook")
    changed = machine.replace({"storage -- slot1/p2.rate": "20 GB/s"})
    rates = {
        link.name: link.forward.capacity.rate("theoretical")
        for link in changed.links
        if link.a.device == "storage"
    }
    assert rates == {
        "storage -- slot1/p1": 50e9,
        "storage -- slot1/p2": 20e9,
        "storage -- slot2/p1": 50e9,
        "storage -- slot2/p2": 50e9,
    }
    whole = machine.replace({"storage -- slot1.rate": "20 GB/s"})
    slow = [link for link in whole.links if link.cable.stated]
    assert [link.b.side for link in slow] == ["p1", "p2"]
    with pytest.raises(UnknownNameError, match="no link `storage -- slot1/p3`"):
        machine.replace({"storage -- slot1/p3.rate": "20 GB/s"})


def test_a_stated_rate_stands_above_what_the_ends_take_and_for_each_cable():
    machine = topo.load("dgx-h100")
    changed = machine.replace({"cpu0 -- cpu1.rate": "100 GB/s", "storage -- slot.rate": "90 GB/s"})
    assert changed.resources["cpu0 -> cpu1"].capacity.rate("theoretical") == 400e9
    port = changed.resources["slot1/p1 in"]
    assert port.capacity.rate("theoretical") == port.capacity.rate("achievable") == 90e9
    unknown = machine.replace({"storage -- slot.rate": "unknown"}).resources["slot1/p1 in"]
    assert unknown.capacity.at("theoretical").at_most


def test_the_rate_of_a_link_inside_a_used_machine():
    machine = topo.load("pod-32").replace({"node3.slot1 -- node3.cpu1.rate": "40 GB/s"})
    rates = {
        name: machine.resources[f"{name}.slot1 -> {name}.cpu1"].capacity.rate("theoretical")
        for name in ("node2", "node3")
    }
    assert rates["node3"] == 40e9
    assert rates["node2"] > 60e9


def test_the_file_may_state_it_and_keeps_it_when_it_is_written():
    cable = "{medium: pcie 4 x16, rate: 21 GB/s, source: nvbandwidth}"
    text = f"""
topo: 1
name: box
devices: {{cpu0: xeon-8480c, gpu0: l40s}}
links: [gpu0 -- cpu0: {cable}]
"""
    machine = topo.loads(text)
    figure = machine.resources["gpu0 -> cpu0"].capacity.at("achievable")
    assert (figure.value, figure.kind, figure.source) == (21e9, "quoted", "nvbandwidth")
    again = topo.loads(to_yaml(to_document(machine.description)))
    figures = [each.capacity.at("theoretical") for each in again.resources.values()]
    assert figures.count(figure) == 2
