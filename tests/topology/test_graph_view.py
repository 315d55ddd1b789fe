"""The NetworkX picture: documented attributes, two edges a duplex link, and a copy."""

from __future__ import annotations

import math

import networkx
import pytest

from tests.machines import ONE_SOCKET, built, shipped


def test_nodes_and_edges():
    machine = shipped("gds-textbook")
    graph = machine.graph()
    assert set(graph) == set(machine.devices)
    assert graph.number_of_edges() == 2 * len(machine.links)
    assert graph.nodes["slot1"] == {
        "kind": "nic",
        "part": "connectx-7-dual-port",
        "label": "Slot1",
        "role": machine["slot1"].role,
        "outside": False,
    }


def test_an_edge_has_its_direction_s_figures():
    graph = built(ONE_SOCKET + "measured:\n  - cpu0 -> gpu0: 55 GB/s\n").graph()
    (down,) = graph.get_edge_data("cpu0", "gpu0").values()
    (up,) = graph.get_edge_data("gpu0", "cpu0").values()
    assert down["bandwidth"] == pytest.approx(63.015, abs=1e-3)
    assert down["measured"] == 55
    assert up["measured"] is None
    assert down["achievable"] == pytest.approx(0.89 * 63.015, abs=1e-3)
    assert (down["medium"], down["layer"], down["lanes"]) == ("pcie 5", "host", 16)
    assert (down["cables"], down["resource"]) == (1, "cpu0 -> gpu0")
    assert down["link"] == up["link"] == "gpu0 -- cpu0"


def test_the_two_edges_of_a_memory_show_its_bus():
    graph = built(ONE_SOCKET).graph()
    for ends in (("ram0", "cpu0"), ("cpu0", "ram0")):
        (edge,) = graph.get_edge_data(*ends).values()
        assert (edge["bandwidth"], edge["resource"]) == (200, "ram0/bus")


def test_unknown_is_none_and_unlimited_is_infinite():
    graph = shipped("gds-textbook").graph()
    (edge,) = graph.get_edge_data("root0", "root1").values()
    assert edge["bandwidth"] is None
    text = ONE_SOCKET.replace("bus: 200 GB/s", "bus: unlimited")
    (edge,) = built(text).graph().get_edge_data("ram0", "cpu0").values()
    assert edge["bandwidth"] == math.inf


def test_parallel_cables_are_parallel_edges():
    graph = shipped("gds-textbook").graph()
    assert graph.number_of_edges("storage", "slot1") == 2


def test_changing_the_graph_changes_nothing():
    machine = built(ONE_SOCKET)
    graph = machine.graph()
    graph.remove_node("gpu0")
    graph.nodes["nic0"]["part"] = "other"
    assert "gpu0" in machine.graph()
    assert machine.graph().nodes["nic0"]["part"] == "card"
    assert "gpu0" in machine


def test_generic_algorithms_run_on_it():
    graph = shipped("dgx-h100").graph()
    assert networkx.shortest_path_length(graph, "slot2", "gpu0") == 3
    assert networkx.is_strongly_connected(graph)
