"""What differs between two machines: by name, by structure, and in the answers."""

from __future__ import annotations

import time
from dataclasses import replace

import pytest
from hypothesis import given
from hypothesis import strategies as st

import topo
from topo.study.diff import Change, Diff, Sort, diff

_BOX = """
topo: 1
name: box
devices:
  filer: {part: nvme-of-target, ports: 2x infiniband ndr, outside: yes}
  nic0: connectx-7-dual-port
  nic1: connectx-7
  cpu0: xeon-8480c
  ram0: {part: ddr5-4800, channels: 8}
  gpu[0-1]: h100-pcie-80gb
links:
  - filer -- nic0: 2x infiniband ndr
  - nic0 -- cpu0: pcie 5 x16
  - nic1 -- cpu0: pcie 5 x16
  - ram0 -- cpu0: memory-bus
  - gpu -- cpu0: pcie 5 x16
settings: {iommu: off}
workloads:
  load: {read: 100 GB, from: filer, to: gpu}
"""
_POD = """
topo: 1
name: pod
devices:
  node[0-{last}]: {{use: gds-textbook}}
  leaf: quantum-2
  filer: {{part: nvme-of-target, ports: 4x infiniband ndr, read: 90 GB/s, write: 60 GB/s}}
links:
  - filer -- leaf: 4x infiniband ndr
workloads:
  load: {{read: 320 GB, from: filer, to: filer}}
"""

_EXPECTS = "expect: [load via legacy >= 1 GB/s]\n"


def _told(result: Diff, section: str = "") -> dict[str, tuple[str, list[str]]]:
    """Return what became of each name, and of which facts."""
    return {
        change.names: (change.sort, [field.key for field in change.fields])
        for change in result.changes
        if section in ("", change.section)
    }


def _edited(*edits: tuple[str, str]) -> Diff:
    text = _BOX
    for old, new in edits:
        assert old in text
        text = text.replace(old, new)
    return diff(topo.loads(_BOX), topo.loads(text))


@pytest.mark.parametrize("name", ["gds-textbook", "dgx-a100", "pod-32"])
def test_a_machine_is_like_itself(name: str) -> None:
    result = diff(topo.load(name), topo.load(name), via=["direct"])
    assert (result.changes, result.changed, result.slower) == ((), False, ())
    assert {pair.outcome for pair in result.answers} == {"same"}


def test_lines_comments_and_the_order_of_ends_are_no_difference() -> None:
    moved = _BOX.replace("devices:", "# a comment\n\ndevices:")
    turned = moved.replace("nic0 -- cpu0", "cpu0 -- nic0").replace("filer -- nic0", "nic0 -- filer")
    assert not diff(topo.loads(_BOX), topo.loads(turned, name="other.yaml")).changed


def test_a_part_that_is_changed_says_which_figures() -> None:
    result = _edited(("nic0: connectx-7-dual-port", "nic0: connectx-8-dual-port"))
    (change,) = [change for change in result.changes if change.names == "nic0"]
    chip = next(field for field in change.fields if field.key == "chip")
    assert (chip.before.value, chip.after.value) == (50e9, 100e9)
    assert chip.before.source != chip.after.source
    assert result.answers[0].times_as_fast == pytest.approx(1.26, rel=1e-3)


def test_a_figure_of_the_file_is_said_by_its_key() -> None:
    result = _edited(("channels: 8", "channels: 4"))
    assert _told(result) == {"ram0": ("changed", ["channels"])}


def test_a_range_is_a_difference() -> None:
    ranged = "channels: 8, efficiency: {value: 70 %, range: 60-72 %, kind: guess}"
    wider = _BOX.replace("channels: 8", ranged.replace("60-72", "50-72"))
    result = diff(topo.loads(_BOX.replace("channels: 8", ranged)), topo.loads(wider))
    assert _told(result) == {"ram0": ("changed", ["efficiency"])}
    assert not any(pair.differs for pair in result.answers)


def test_what_is_alike_is_said_once() -> None:
    result = _edited(("gpu[0-1]: h100-pcie-80gb", "gpu[0-1]: h100-sxm-80gb"))
    (change,) = [change for change in result.changes if change.section == "devices"]
    assert (change.names, change.count) == ("gpu0, gpu1", 2)


def test_parallel_cables_are_counted_however_they_are_written() -> None:
    one_each = "  - filer -- nic0: infiniband ndr\n  - filer -- nic0: infiniband ndr"
    assert not _edited(("  - filer -- nic0: 2x infiniband ndr", one_each)).changed
    fewer = _edited(("nic0: 2x infiniband ndr", "nic0: infiniband ndr"))
    assert _told(fewer) == {"filer -- nic0": ("changed", ["cable"])}
    (pair,) = (pair for pair in fewer.answers if pair.data_path == "direct")
    assert (pair.outcome, pair.times_as_fast) == ("same", 1.0)  # the chip has as much as one port


def test_a_link_that_is_led_elsewhere_is_gone_and_added() -> None:
    devices = ("  cpu0: xeon-8480c\n", "  cpu0: xeon-8480c\n  root0: root-complex\n")
    link = ("  - nic1 -- cpu0: pcie 5 x16", "  - nic1 -- root0: pcie 5 x16")
    socket = ("  - ram0 -- cpu0", "  - root0 -- cpu0: pcie 5 x16\n  - ram0 -- cpu0")
    links = _told(_edited(devices, link, socket), "links")
    assert links["nic1 -- cpu0"][0] == "gone"
    assert any(
        names.startswith("nic1 -- root0") and sort == "added" for names, (sort, _) in links.items()
    )


def test_another_name_is_probably_the_same_where_structure_says_so() -> None:
    result = _edited(("nic0", "fast"))
    assert _told(result) == {"nic0": ("renamed", ["name"])}
    assert {pair.outcome for pair in result.answers} == {"same"}


def test_two_that_structure_does_not_tell_apart_are_not_said_to_be_renamed() -> None:
    result = _edited(
        ("gpu[0-1]:", "accel[0-1]:"), ("- gpu --", "- accel --"), ("to: gpu}", "to: accel}")
    )
    sorts = {change.sort for change in result.changes if change.section == "devices"}
    assert sorts == {"gone", "added"}


def test_another_part_by_another_name_is_not_renamed() -> None:
    result = _edited(
        ("nic1: connectx-7", "slow: connectx-6"), ("nic1 -- cpu0: pcie 5", "slow -- cpu0: pcie 4")
    )
    told = _told(result, "devices")
    assert (told["nic1"][0], told["slow"][0]) == ("gone", "added")


def test_settings_workloads_and_expectations() -> None:
    result = _edited(
        ("iommu: off", "iommu: on"),
        ("100 GB", "200 GB"),
        (
            "to: gpu}\n",
            "to: gpu}\n  save: {write: 1 GB, from: gpu, to: filer}\n" + _EXPECTS,
        ),
    )
    assert _told(result, "settings") == {"": ("changed", ["iommu"])}
    assert _told(result, "workloads")["load"] == ("changed", ["read"])
    assert _told(result, "workloads")["save"][0] == "added"
    assert _told(result, "expectations") == {"load via legacy >= 1 GB/s": ("added", [])}
    outcomes = {(pair.workload, pair.data_path): pair.outcome for pair in result.answers}
    assert outcomes["save", "legacy"] == "after"
    assert outcomes["load", "legacy"] == "same"  # by the rate, since there is more to move


def test_a_refused_path_is_slower() -> None:
    result = _edited(("gpu[0-1]: h100-pcie-80gb", "gpu[0-1]: {part: h100-pcie-80gb, p2p: no}"))
    assert [pair.data_path for pair in result.refused] == ["direct"]
    assert result.refused == result.slower
    assert not _edited(("channels: 8", "channels: 4")).refused


def test_one_of_many_servers() -> None:
    pod = topo.load("pod-32")
    one = diff(pod, pod.replace({"node3.slot1.part": "connectx-8-dual-port"}), via=["direct"])
    assert [(change.names, change.count) for change in one.changes] == [("node3.slot1", 1)]
    every = diff(pod, pod.replace({"node.gpu.part": "h200-sxm-141gb"}), via=["direct"])
    assert [(change.names, change.count) for change in every.changes] == [
        ("node[0-31].gpu[0-7]", 256)
    ]


def test_many_servers_are_compared_by_kind() -> None:
    """Thousands of servers take what two kinds of them take, and one line."""
    text = _POD.format(last=2999).replace(
        "\nworkloads:\n  load: {read: 320 GB, from: filer, to: filer}", ""
    )
    pod = topo.loads(text)
    other = pod.replace({"node.gpu.part": "h200-sxm-141gb"})
    began = time.perf_counter()
    result = diff(pod, other)
    assert time.perf_counter() - began < 5
    assert [(change.names, change.count) for change in result.changes] == [
        ("node[0-2999].gpu[0-7]", 24_000)
    ]
    fewer = diff(
        pod,
        topo.loads(
            _POD.format(last=2989).replace(
                "\nworkloads:\n  load: {read: 320 GB, from: filer, to: filer}", ""
            )
        ),
    )
    assert [(c.sort, c.names, c.count) for c in fewer.changes] == [("gone", "node[2990-2999]", 10)]


def test_a_workload_that_only_one_has_is_asked_of_that_one() -> None:
    result = diff(topo.load("dgx-h100"), topo.load("dgx-a100"), workload="local")
    assert {pair.outcome for pair in result.answers} == {"after"}
    with pytest.raises(topo.TopoError, match="no workload lod"):
        diff(topo.load("dgx-h100"), topo.load("dgx-a100"), workload="lod")


def test_a_data_path_that_only_one_has_is_asked_of_that_one() -> None:
    own = "data-paths:\n  mine: {moves: [storage -> gpu by nic], stages: pipelined}\nworkloads:"
    result = diff(
        topo.loads(_BOX), topo.loads(_BOX.replace("workloads:", own)), via=["mine", "direct"]
    )
    assert [(pair.data_path, pair.outcome) for pair in result.answers] == [
        ("direct", "same"),
        ("mine", "after"),
    ]
    assert _told(result, "data paths")["mine"][0] == "added"
    with pytest.raises(topo.TopoError, match="yours"):
        diff(topo.loads(_BOX), topo.loads(_BOX), via=["yours"])


_SETS = {
    "ram.bus": ["100 GB/s", "200 GB/s", "400 GB/s"],
    "slot1.chip": ["20 GB/s", "50 GB/s"],
    "gpu0.p2p": ["no", "yes"],
    "settings.iommu": ["on", "off"],
    "load.read": ["10 GB", "640 GB"],
}


@given(st.data())
def test_whatever_changes_an_answer_is_a_difference_and_turns_around(data: st.DataObject) -> None:
    """What one way adds the other way loses, and no answer changes without a cause that is said."""
    keys = data.draw(st.lists(st.sampled_from([*_SETS][:4]), max_size=3, unique=True))
    changes = {key: data.draw(st.sampled_from(_SETS[key])) for key in keys}
    before = topo.load("gds-textbook")
    after = before.replace(changes) if changes else before
    forth, back = diff(before, after), diff(after, before)
    if any(pair.differs for pair in forth.answers):
        assert forth.changes
    assert [_turned(change) for change in back.changes] == list(forth.changes)
    for there, here in zip(forth.answers, back.answers, strict=True):
        assert (there.before, there.after) == (here.after, here.before)
        if there.times_as_fast and here.times_as_fast:
            assert there.times_as_fast * here.times_as_fast == pytest.approx(1)


def _turned(change: Change) -> Change:
    sorts: dict[str, Sort] = {"added": "gone", "gone": "added"}
    fields = tuple(
        replace(field, before=field.after, after=field.before) for field in change.fields
    )
    return replace(change, sort=sorts.get(change.sort, change.sort), fields=fields)
