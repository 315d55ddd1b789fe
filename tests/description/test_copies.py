"""What-if that changes the shape: another card like one that is there, a link led elsewhere."""

from __future__ import annotations

import pytest

from topo.description.loading import loads
from topo.description.read import vary
from topo.errors import DescriptionError
from topo.topology.build import build_topology

# Two cards on two sockets, one GPU a socket.
TWO_CARDS = """
topo: 1
name: two-cards
devices:
  storage: {part: nvme-of-target, outside: yes}
  slot[1-2]: {part: connectx-7, pci: [aa:00.0, 29:00.0], label: [Slot1, Slot2]}
  cpu[0-1]: xeon-8480c
  ram[0-1]: {part: ddr5-4800, channels: 8}
  gpu[0-1]: h100-sxm-80gb
links:
  - storage -- slot: infiniband ndr
  - slot -- cpu: pcie 5 x16
  - gpu -- cpu: pcie 5 x16
  - ram -- cpu: memory-bus
  - cpu0 -- cpu1: 4x upi 16 GT/s
workloads:
  load: {read: 160 GB, from: storage, to: gpu}
"""


def links_of(description, device):
    return [
        str(link.a if link.b.device == device else link.b)
        for link in description.links
        if device in (link.a.device, link.b.device)
    ]


def test_a_copy_is_cabled_as_its_model_is_and_has_no_address_of_its_own():
    description = vary(loads(TWO_CARDS), {"slot3": "slot1"})
    copy = next(device for device in description.devices if device.name == "slot3")
    assert (copy.part.name, copy.pci, copy.label) == ("connectx-7", (), "")
    assert links_of(description, "slot3") == links_of(description, "slot1") == ["storage", "cpu0"]


def test_a_copied_gpu_belongs_to_its_stem():
    description = vary(loads(TWO_CARDS), {"gpu2": "gpu0"})
    assert description.workloads[0].targets == ("gpu0", "gpu1", "gpu2")


def test_a_copy_can_be_changed_and_led_elsewhere():
    changes = {
        "slot3": "slot1",
        "slot3.part": "connectx-7-dual-port",
        "slot3 -- cpu0": "slot3 -- cpu1",
    }
    description = vary(loads(TWO_CARDS), changes)
    assert links_of(description, "slot3") == ["storage", "cpu1"]
    assert next(one.part.name for one in description.devices if one.name == "slot3").endswith(
        "dual-port"
    )


def test_changes_lie_over_those_it_was_read_with():
    description = vary(loads(TWO_CARDS, overrides={"load.read": "80 GB"}), {"slot3": "slot1"})
    assert description.workloads[0].size == 80e9
    assert len(description.devices) == 10


def test_a_copy_meets_the_rules_of_physics():
    full = TWO_CARDS.replace("xeon-8480c", "{part: xeon-8480c, pcie-lanes: 32}")
    topology = build_topology(loads(full))
    assert topology.name == "two-cards"
    with pytest.raises(DescriptionError, match="lanes"):
        topology.replace({"slot3": "slot1"})
