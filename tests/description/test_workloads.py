"""Workloads: sizes, ends, data paths and the rest."""

from __future__ import annotations

import pytest

from tests.description.reading import BOX, only, read


def workload(entries):
    return read(f"{BOX}workloads:\n  load: {entries}\n").workloads[0]


def wrong(entries):
    return only(f"{BOX}workloads:\n  load: {entries}\n")


def test_a_read():
    found = workload("{read: 640 GB, from: storage, to: gpu}")
    assert (found.name, found.direction, found.size) == ("load", "read", 640e9)
    assert found.sources == ("storage",)
    assert found.targets == tuple(f"gpu{at}" for at in range(8))
    assert (found.via, found.efficiency, found.weight) == ((), None, 1.0)
    assert (found.limit, found.start) == (None, 0.0)


def test_a_write_with_everything():
    found = workload(
        "{write: 140 GB, from: gpu, to: storage, via: [legacy, direct], efficiency: 60-80 %, "
        "weight: 2.5, limit: 5 GB/s, start: 2 s}"
    )
    assert found.direction == "write"
    assert found.targets == ("storage",)
    assert found.via == ("legacy", "direct")
    assert found.efficiency == (0.6, 0.8)
    assert (found.weight, found.limit, found.start) == (2.5, 5e9, 2.0)


def test_each_is_multiplied_by_the_gpus():
    assert workload("{read: 80 GB each, from: storage, to: 'gpu[0-3]'}").size == 320e9
    assert workload("{write: 80 GB each, from: gpu, to: nvme}").size == 640e9


def test_ends_may_be_lists_and_count_once():
    found = workload("{read: 1 GB, from: [storage, nvme0, nvme], to: [gpu3, 'gpu[2-3]']}")
    assert found.sources == ("storage", "nvme0", "nvme1", "nvme2", "nvme3")
    assert found.targets == ("gpu3", "gpu2")


def test_a_single_data_path_is_a_text():
    assert workload("{read: 1 GB, from: nvme, to: gpu, via: p2pdma}").via == ("p2pdma",)


@pytest.mark.parametrize(
    ("entries", "code", "says"),
    [
        ("{from: storage, to: gpu}", "read-or-write", "says neither"),
        ("{read: 1 GB, write: 1 GB, from: storage, to: gpu}", "read-or-write", "read and write"),
        ("{raed: 1 GB, from: storage, to: gpu}", "unknown-key", "`raed`"),
        ("{read: 640, from: storage, to: gpu}", "bare-number", "640 GB?"),
        ("{read: 90 GB/s, from: storage, to: gpu}", "wrong-quantity", "a size is expected"),
        ("{read: 0 GB, from: storage, to: gpu}", "bad-number", "zero"),
        ("{read: 1 GB, to: gpu}", "missing-key", "needs `from:`"),
        ("{read: 1 GB, form: storage, to: gpu}", "unknown-key", "`form`"),
        ("{read: 1 GB, from: storage, to: gpus}", "unknown-name", "no device gpus"),
        ("{read: 1 GB, from: cpu0, to: gpu}", "workload-ends", "and cpu0 is a cpu"),
        ("{write: 1 GB, from: gpu, to: ram}", "workload-ends", "ram0 is a memory"),
        ("{read: 1 GB, from: storage, to: cpu0}", "workload-ends", "to gpu, and cpu0 is a cpu"),
        ("{read: 1 GB, from: storage, to: gpu, via: dirct}", "unknown-name", "no data path"),
        ("{read: 1 GB, from: storage, to: gpu, weight: 0}", "bad-number", "not a weight"),
        ("{read: 1 GB, from: storage, to: gpu, weight: nan}", "bad-number", "not a weight"),
        ("{read: 1 GB, from: storage, to: gpu, weight: much}", "bad-number", "not a weight"),
        ("{read: 1 GB, from: storage, to: gpu, limit: 0 GB/s}", "bad-number", "zero"),
        ("{read: 1 GB, from: storage, to: gpu, efficiency: 80-60 %}", "bad-number", "backwards"),
        ("{read: 1 GB, from: storage, to: gpu, start: soon}", "bad-number", "not a duration"),
        ("{read: 1 GB, from: {a: b}, to: gpu}", "wrong-shape", "a text, not a mapping"),
        ("640 GB", "wrong-shape", "is a mapping"),
    ],
)
def test_a_mistake_is_said_once(entries, code, says):
    finding = wrong(entries)
    assert finding.code == code
    assert says in finding.message


def test_a_workload_the_wrong_way_round_is_one_mistake():
    finding = wrong("{read: 1 GB, from: gpu, to: storage}")
    assert finding.code == "workload-ends"
    assert "write" in finding.help


@pytest.mark.parametrize(
    ("name", "code"),
    [("a b", "bad-name"), ("load[0-1]", "bad-name"), ("via", "reserved-name"), ("9", "bad-name")],
)
def test_a_workload_has_a_name(name, code):
    text = f"workloads:\n  {name}: {{read: 1 GB, from: storage, to: gpu}}\n"
    assert only(BOX + text).code == code
