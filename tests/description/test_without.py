"""What is left of a description when something fails."""

from __future__ import annotations

import re
from typing import TYPE_CHECKING

import pytest

from topo.description.flat import names_of
from topo.description.loading import load, loads
from topo.description.without import without
from topo.errors import UnknownNameError

if TYPE_CHECKING:
    from pathlib import Path

_POD = loads(
    """
topo: 1
devices:
  node[0-3]: {use: gds-textbook}
  leaf[0-1]: quantum-2
  filer: {part: nvme-of-target, ports: 4, read: 40 GB/s, write: 40 GB/s}
links:
  - node.slot1 -- leaf0: 2x infiniband ndr
  - node.slot2 -- leaf1: 2x infiniband ndr
  - filer -- leaf: 2x infiniband ndr
workloads:
  load: {read: 320 GB, from: filer, to: node.gpu}
"""
)


def test_a_device_takes_its_links_along() -> None:
    left = without(_POD, ["leaf1"])
    assert [device.name for device in left.devices] == ["leaf0", "filer"]
    assert all("leaf1" not in (link.a.device, link.b.device) for link in left.links)
    assert left.lost == ("leaf1",)


def test_of_a_bundle_one_cable_fails() -> None:
    left = without(_POD, ["leaf0 -- filer"])
    counts = {(link.a.device, link.b.device): link.cable.count for link in left.links}
    assert counts["filer", "leaf0"] == 1
    assert counts["filer", "leaf1"] == 2
    gone = without(left, ["filer -- leaf0"])
    assert ("filer", "leaf0") not in {(link.a.device, link.b.device) for link in gone.links}


def test_a_device_inside_a_used_machine_gives_it_a_use_of_its_own() -> None:
    left = without(_POD, ["node2.slot1"])
    assert [use.names for use in left.uses] == [("node0", "node1", "node3"), ("node2",)]
    names = [device.name for device in left.uses[1].template.devices]
    assert "slot1" not in names
    assert all(link.a.device != "node2.slot1" for link in left.links)


def test_the_same_failure_everywhere_stays_one_use() -> None:
    left = without(_POD, ["node.slot1"])
    assert [use.names for use in left.uses] == [("node0", "node1", "node2", "node3")]


def test_a_cable_inside_a_used_machine_fails() -> None:
    (link, *_) = _POD.uses[0].template.links
    left = without(_POD, [f"node1.{link.a.device} -- node1.{link.b.device}"])
    inside = left.uses[1].template.links
    assert len(inside) == len(_POD.uses[0].template.links) - 1


def test_a_gpu_that_fails_moves_nothing_and_the_others_as_much_as_before() -> None:
    (workload,) = without(_POD, ["node0.gpu[0-3]"]).workloads
    assert len(workload.targets) == len(_POD.workloads[0].targets) - 4
    assert workload.size / len(workload.targets) == 320e9 / len(_POD.workloads[0].targets)


def test_what_a_workload_has_nothing_else_of_stays_without_links() -> None:
    left = without(_POD, ["filer"])
    assert "filer" in [device.name for device in left.devices]
    assert all("filer" not in (link.a.device, link.b.device) for link in left.links)
    assert left.workloads == _POD.workloads


def test_a_whole_machine_fails() -> None:
    left = without(_POD, ["node2"])
    assert [use.names for use in left.uses] == [("node0", "node1", "node3")]
    assert all(not link.a.device.startswith("node2.") for link in left.links)
    assert not [name for name in left.workloads[0].targets if name.startswith("node2.")]


@pytest.mark.parametrize(
    ("text", "fails"),
    [
        ("row1.node2", ["row1.node2"]),
        ("row.node3", ["row0.node3", "row1.node3"]),
        ("row1.node[0-1]", ["row1.node0", "row1.node1"]),
        ("row1", ["row1.leaf", *(f"row1.node{number}" for number in range(4))]),
    ],
)
def test_a_machine_inside_another_fails(tmp_path: Path, text: str, fails: list[str]) -> None:
    (tmp_path / "pod.yaml").write_text(
        "topo: 1\ndevices:\n  node[0-3]: {use: gds-textbook}\n  leaf: quantum-2\n"
        "links:\n  - node.slot1 -- leaf: infiniband ndr\n"
    )
    (tmp_path / "hall.yaml").write_text("topo: 1\ndevices:\n  row[0-1]: {use: ./pod.yaml}\n")
    hall = load(tmp_path / "hall.yaml")
    left = without(hall, [text])
    gone = set(names_of(hall).in_all()) - set(names_of(left).in_all())
    assert {re.sub(r"(node\d)\..*", r"\1", name) for name in gone} == set(fails)


def test_a_machine_inside_another_that_is_not_there_is_told_with_its_family(
    tmp_path: Path,
) -> None:
    (tmp_path / "pod.yaml").write_text("topo: 1\ndevices:\n  node[0-3]: {use: gds-textbook}\n")
    (tmp_path / "hall.yaml").write_text("topo: 1\ndevices:\n  row[0-1]: {use: ./pod.yaml}\n")
    with pytest.raises(UnknownNameError) as caught:
        without(load(tmp_path / "hall.yaml"), ["row1.node7"])
    (finding,) = caught.value.findings
    assert finding.message == "row1 has no node7; node[0-3] exist"


def test_every_name_that_is_not_there_is_told_at_once() -> None:
    with pytest.raises(UnknownNameError) as caught:
        without(_POD, ["leave0", "node9", "leaf0 -- leaf1"])
    messages = [(finding.message, finding.help) for finding in caught.value.findings]
    assert messages[0] == ("no device leave0", "did you mean `leaf0`?")
    assert messages[1][0].startswith("no device node9")
    assert messages[2][0] == "no link joins `leaf0 -- leaf1`"
    assert "leaf0 is joined with" in messages[2][1]


@pytest.mark.parametrize("text", ["leaf7", "leaf0 -- leaf1", "node9.slot1", "leaf0 -- nothing"])
def test_what_is_not_there_cannot_fail(text: str) -> None:
    with pytest.raises(UnknownNameError):
        without(_POD, [text])
