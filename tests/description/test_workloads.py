"""Workloads: sizes, ends, data paths and the rest; and the sentences that are expected."""

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
        ("{read: 1 GB, from: gpu, to: ram}", "workload-ends", "a GPU to RAM, which is to write"),
        ("{write: 1 GB, from: ram, to: gpu}", "workload-ends", "RAM to a GPU, which is to read"),
        ("{read: 1 GB, from: storage, to: cpu0}", "workload-ends", "a GPU, and cpu0 is a cpu"),
        ("{read: 1 GB, from: [ram, nvme], to: gpu}", "workload-ends", "RAM and storage at once"),
        ("{read: 1 GB, from: storage, to: gpu, via: dirct}", "unknown-name", "no data path"),
        ("{read: 1 GB, from: storage, to: gpu, weight: 0}", "bad-number", "not a weight"),
        ("{read: 1 GB, from: storage, to: gpu, weight: nan}", "bad-number", "not a weight"),
        ("{read: 1 GB, from: storage, to: gpu, weight: 1e-300}", "bad-number", "too small"),
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


# --- expectations ---------------------------------------------------------------------------------

MORE = """\
workloads:
  load: {read: 640 GB, from: storage, to: gpu}
  save: {write: 140 GB, from: gpu, to: storage, via: direct}
expect:
"""


def sentence(text):
    return read(f"{BOX}{MORE}  - {text}\n").expectations[0]


def wrong_sentence(text):
    return only(f"{BOX}{MORE}  - {text}\n")


@pytest.mark.parametrize(
    ("text", "kind", "fields"),
    [
        ("load via direct <= 7 s", "time", {"subject": "load", "relation": "<=", "value": 7.0}),
        ("load via direct<=7 s", "time", {"via": "direct", "value": 7.0}),
        ("load via direct < 90 ms", "time", {"relation": "<", "value": 0.09}),
        ("load via direct >= 90 GB/s", "rate", {"relation": ">=", "value": 90e9}),
        ("load via legacy > 400 Gb/s at measured", "rate", {"value": 50e9, "basis": "measured"}),
        ("save <= 2 s", "time", {"via": "direct"}),
        (
            "load via direct is limited by slot1/chip",
            "limited-by",
            {"subject": "load", "via": "direct", "what": "slot1/chip"},
        ),
        ("load via direct is limited by slot/chip", "limited-by", {"what": "slot/chip"}),
        (
            "load via direct is limited by slot1 -> cpu1 at achievable",
            "limited-by",
            {"what": "slot1 -> cpu1", "basis": "achievable"},
        ),
        ("load via direct beats legacy", "beats", {"via": "direct", "what": "legacy"}),
        (
            "gpu4 to slot2 is SYS",
            "locality",
            {"subject": "gpu4", "what": "slot2", "value_text": "SYS", "via": ""},
        ),
        ("gpu0 to gpu1 is NV18", "locality", {"value_text": "NV18"}),
        ("gpu to slot2 is NODE", "locality", {"subject": "gpu"}),
        (
            "gpu0 to storage via direct is not possible",
            "not-possible",
            {"subject": "gpu0", "what": "storage", "via": "direct"},
        ),
        ("gpu0 to storage via direct is possible", "possible", {"via": "direct"}),
    ],
)
def test_a_sentence_is_read(text, kind, fields):
    found = sentence(text)
    assert (found.kind, found.text) == (kind, text)
    assert {name: getattr(found, name) for name in fields} == fields


def test_a_sentence_knows_its_place():
    assert str(sentence("load via direct <= 7 s").place) == "<text>:14:5"


@pytest.mark.parametrize(
    ("text", "code", "says"),
    [
        ("load is quick", "bad-expectation", "not a sentence that topo judges"),
        ("load via direct = 7 s", "bad-expectation", "not a sentence"),
        ("load via direct <= 7", "bare-number", "a duration needs a unit"),
        ("load via direct <= 7 GB", "wrong-quantity", "a rate is expected"),
        ("load via direct >= 90 gbps", "ambiguous-unit", "bits or bytes"),
        ("load via direct <= 7 s at best", "bad-expectation", "no basis `best`"),
        ("gpu4 to slot2 is FAR", "bad-expectation", "not a class of locality"),
        ("gpu0 to storage is not possible", "bad-expectation", "by which data path"),
        ("load <= 7 s", "bad-expectation", "does not say by which data path"),
        ("laod via direct <= 7 s", "unknown-name", "no workload `laod`"),
        ("load via dirct <= 7 s", "unknown-name", "no data path `dirct`"),
        ("load via direct beats legcy", "unknown-name", "no data path `legcy`"),
        ("load via direct is limited by slot3/chip", "unknown-name", "no device slot3"),
        ("load via direct is limited by slot1 -> cpu9", "unknown-name", "no device cpu9"),
        ("gpu9 to slot2 is SYS", "unknown-name", "no device gpu9; gpu[0-7] exist"),
        ("gpu0 to strage via direct is possible", "unknown-name", "no device strage"),
        ("{load via direct: 7 s}", "bad-expectation", "one sentence, not a mapping"),
        ("[a]", "bad-expectation", "one sentence, not a list"),
    ],
)
def test_a_wrong_sentence_is_said_once(text, code, says):
    finding = wrong_sentence(text)
    assert finding.code == code
    assert says in finding.message


def test_near_words_are_offered():
    assert wrong_sentence("laod via direct <= 7 s").help == "did you mean `load`?"
    assert wrong_sentence("gpu4 to slot2 is sys").help == "did you mean `SYS`?"


def test_expectations_are_a_list():
    assert only(f"{BOX}expect: load via direct <= 7 s\n").code == "wrong-shape"
    assert read(f"{BOX}expect:\n").expectations == ()


def test_without_workloads_it_is_said_where_to_define_them():
    finding = only(f"{BOX}expect:\n  - load via direct <= 7 s\n")
    assert finding.help == "define it under `workloads:`"


# --- collectives ----------------------------------------------------------------------------------


def test_a_collective():
    found = workload("{all-reduce: 1 GB, over: gpu, via: peer-pcie}")
    assert (found.collective, found.direction, found.size) == ("all-reduce", "copy", 1e9)
    assert found.sources == found.targets == tuple(f"gpu{at}" for at in range(8))
    assert (found.via, found.root) == (("peer-pcie",), "")


def test_a_broadcast_begins_at_its_root_or_the_first_gpu():
    assert workload("{broadcast: 1 GB, over: gpu, root: gpu3}").root == "gpu3"
    assert workload("{reduce: 1 GB, over: 'gpu[2-5]'}").root == "gpu2"


@pytest.mark.parametrize(
    ("entries", "code", "says"),
    [
        ("{all-reduce: 1 GB, over: gpu0}", "collective-ends", "over one GPU alone, gpu0"),
        ("{all-reduce: 1 GB, over: [gpu, storage]}", "collective-ends", "storage is a storage"),
        ("{all-reduce: 1 GB, over: nvme}", "collective-ends", "over GPUs, and nvme0 is"),
        ("{all-reduce: 1 GB, over: gpus}", "unknown-name", "no device gpus"),
        ("{all-reduce: 1 GB}", "missing-key", "needs `over:`"),
        ("{over: gpu}", "which-collective", "does not say what these GPUs do"),
        ("{all-reduce: 1 GB, all-gather: 1 GB, over: gpu}", "which-collective", "all-reduce and"),
        ("{all-reduce: 1 GB, over: gpu, from: gpu}", "unknown-key", "`from`"),
        ("{allreduce: 1 GB, over: gpu}", "unknown-key", "`allreduce`"),
        ("{all-reduce: 0 GB, over: gpu}", "bad-number", "zero"),
        ("{all-reduce: 1 GB each, over: gpu}", "bad-unit", "each"),
        ("{all-reduce: 1, over: gpu}", "bare-number", "1 GB?"),
        ("{all-reduce: 1 GB, over: gpu, root: gpu0}", "collective-root", "an all-reduce has none"),
        ("{broadcast: 1 GB, over: 'gpu[0-3]', root: gpu5}", "collective-root", "not gpu5"),
        ("{broadcast: 1 GB, over: gpu, root: gpu}", "collective-root", "not gpu0, gpu1"),
        ("{all-reduce: 1 GB, over: gpu, via: peer-pci}", "unknown-name", "no data path"),
    ],
)
def test_a_mistake_at_a_collective_is_said_once(entries, code, says):
    finding = wrong(entries)
    assert finding.code == code
    assert says in finding.message


@pytest.mark.parametrize(
    ("collective", "count", "says"),
    [
        ("all-to-all", 317, "317 GPUs, 100,172 pairs: 316 are the most"),
        ("all-reduce", 4097, "4,097"),
    ],
)
def test_a_collective_has_bounds(collective, count, says):
    text = f"topo: 1\nname: many\ndevices:\n  gpu[0-{count - 1}]: h100-sxm-80gb\n"
    finding = only(f"{text}workloads:\n  it: {{{collective}: 1 GB, over: gpu}}\n")
    assert finding.code == "collective-ends"
    assert says in finding.message


def test_bandwidths_of_nccl_tests_may_be_expected():
    more = f"{BOX}workloads:\n  ar: {{all-reduce: 1 GB, over: gpu}}\nexpect:\n  - "
    found = read(f"{more}ar busbw >= 40 GB/s\n").expectations[0]
    assert (found.kind, found.what, found.value, found.via) == ("rate", "busbw", 40e9, "")
    assert read(f"{more}ar via peer-ram algbw < 9 GB/s\n").expectations[0].via == "peer-ram"
    assert only(f"{more}ar busbw >= 7 s\n").code == "wrong-quantity"
    assert "a rate of collectives" in wrong_sentence("load via direct busbw >= 40 GB/s").message
