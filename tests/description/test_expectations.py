"""The sentences of `expect:`."""

from __future__ import annotations

import pytest

from tests.description.reading import BOX, only, read

MORE = """\
workloads:
  load: {read: 640 GB, from: storage, to: gpu}
  save: {write: 140 GB, from: gpu, to: storage, via: direct}
expect:
"""


def sentence(text):
    return read(f"{BOX}{MORE}  - {text}\n").expectations[0]


def wrong(text):
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
        ("load via direct <= 7 GB", "wrong-quantity", "a duration is expected"),
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
def test_a_mistake_is_said_once(text, code, says):
    finding = wrong(text)
    assert finding.code == code
    assert says in finding.message


def test_near_words_are_offered():
    assert wrong("laod via direct <= 7 s").help == "did you mean `load`?"
    assert wrong("gpu4 to slot2 is sys").help == "did you mean `SYS`?"


def test_expectations_are_a_list():
    assert only(f"{BOX}expect: load via direct <= 7 s\n").code == "wrong-shape"
    assert read(f"{BOX}expect:\n").expectations == ()


def test_without_workloads_it_is_said_where_to_define_them():
    finding = only(f"{BOX}expect:\n  - load via direct <= 7 s\n")
    assert finding.help == "define it under `workloads:`"
