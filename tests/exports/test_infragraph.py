"""InfraGraph's YAML out: hosts that are alike are one device, and what comes back is the same."""

from __future__ import annotations

from collections import Counter

import pytest

import topo
from topo.description.locating import builtin_names
from topo.discovery.importing import import_text
from topo.document.nodes import plain
from topo.document.parse import parse
from topo.exports.formats import export_text

CLUSTER = """
topo: 1
name: small cluster
devices:
  cpu[0-3]: xeon-8480c
  gpu[0-3]: h100-sxm-80gb
  nic[0-3]: connectx-7
  target: {part: nvme-of-target, ports: 2x infiniband ndr}
fabrics:
  net: {kind: leaf-spine, of: nic, leaves: 2, spines: 2, switch: quantum-2, cable: infiniband ndr}
links:
  - target -- net-spine all to all: infiniband ndr
  - nic -- cpu: pcie 5 x16
  - gpu -- cpu: pcie 5 x16
"""


def exported(machine):
    return plain(parse(export_text("infragraph", machine).text).root)


def test_hosts_that_are_alike_are_one_device():
    document = exported(topo.loads(CLUSTER))
    instances = {entry["name"]: entry for entry in document["instances"]}
    assert instances["host"]["count"] == "4"
    assert (instances["net-leaf"]["device"], instances["net-leaf"]["count"]) == ("quantum-2", "2")
    assert (instances["net-spine"]["device"], instances["net-spine"]["count"]) == ("quantum-2", "2")
    assert [device["name"] for device in document["devices"]] == [
        *("host", "nvme-of-target", "quantum-2"),
    ]
    host = document["devices"][0]
    assert [part["choice"] for part in host["components"]] == ["cpu", "xpu", "nic"]
    assert {edge["link"] for edge in host["edges"]} == {"pcie-5-x16"}
    switch = document["devices"][2]
    assert [part["count"] for part in switch["components"]] == ["1", "64"]


def test_each_cable_between_hosts_is_an_edge_with_a_port_of_its_own():
    document = exported(topo.loads(CLUSTER))
    assert len(document["edges"]) == 4 + 2 + 2 * 2
    ends = [
        (edge[end]["instance"], edge[end]["component"])
        for edge in document["edges"]
        for end in ("ep1", "ep2")
        if edge[end]["component"].startswith("port")
    ]
    assert len(ends) == len(set(ends))


def test_a_host_that_differs_is_another_device():
    text = CLUSTER.replace("gpu[0-3]: h100-sxm-80gb", "gpu[0-2]: h100-sxm-80gb\n  gpu3: l40s")
    document = exported(topo.loads(text.replace("gpu -- cpu: pcie 5", "gpu -- cpu: pcie 4")))
    counts = {entry["name"]: entry["count"] for entry in document["instances"]}
    assert (counts["host"], counts["host-2"]) == ("3", "1")


def test_runs_of_equal_links_are_one_edge():
    document = exported(topo.load("dgx-h100"))
    host = next(device for device in document["devices"] if device["name"] == "host")
    edges = [(edge["ep1"]["component"], edge["ep2"]["component"]) for edge in host["edges"]]
    assert ("gpu[0:8]", "nic[0:8]") in edges
    assert ("gpu[0:8]", "nvswitch[0]") in edges


def test_bandwidths_are_in_it():
    links = {link["name"]: link for link in exported(topo.loads(CLUSTER))["links"]}
    bandwidth = links["infiniband-ndr"]["physical"]["bandwidth"]
    assert bandwidth == {"choice": "gigabits_per_second", "gigabits_per_second": "400.0"}


def test_what_it_does_not_hold_is_said():
    findings = export_text("infragraph", topo.loads(CLUSTER)).findings
    assert [finding.code for finding in findings] == ["not-held"]


@pytest.mark.parametrize("name", builtin_names())
def test_a_machine_comes_back_as_it_was(name):
    machine = topo.load(name)
    text = export_text("infragraph", machine).text
    back = import_text(None, text.encode(), f"{name}.yaml").description
    # Where a file has cards and nothing that stores, an import begins with a target on them.
    begun = set() if machine.of_kind("storage", "nvme") else {"storage"}
    kinds, kinds_back = (
        Counter("nic" if device.kind == "dpu" else device.kind for device in devices)  # its word
        for devices in (
            machine.devices.values(),
            [device for device in back.devices if device.name not in begun],
        )
    )
    assert kinds == kinds_back
    cables = Counter(link.cable.medium for link in machine.links for _ in range(link.cable.count))
    assert cables == Counter(
        link.cable.medium
        for link in back.links
        for _ in range(link.cable.count)
        if not begun & {link.a.device, link.b.device}
    )


def test_a_cluster_comes_back_as_it_was():
    machine = topo.loads(CLUSTER)
    text = export_text("infragraph", machine).text
    back = topo.build(import_text(None, text.encode(), "plan.yaml").document)
    rates = [
        sorted(resource.capacity.rate("theoretical") for resource in each.resources.values()
               if resource.kind in ("network-link", "network-port"))
        for each in (machine, back)
    ]  # fmt: skip
    assert rates[0] == rates[1]
