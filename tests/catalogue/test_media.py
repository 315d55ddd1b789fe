"""Media of the user's own, and changes to the shipped ones."""

from typing import Any

import pytest

from topo.catalogue.cables import parse_cable

UNUSED: Any = None  # a report where nothing can be wrong


def test_a_shipped_medium_keeps_what_is_not_said(media, shipped):
    changed = media("pcie 5: {efficiency: 85 %, source: our lspci, MPS 128}")
    five, before = changed.clean["pcie 5"], shipped.media["pcie 5"]
    assert (five.efficiency.value, five.efficiency.kind) == (0.85, "quoted")
    assert five.efficiency.source == "our lspci, MPS 128"
    assert (five.rate, five.title, five.reach) == (before.rate, before.title, before.reach)
    assert shipped.media["pcie 5"] == before
    assert parse_cable("pcie 5 x16", changed.value).efficiency.value == 0.85


def test_a_medium_of_ones_own(media):
    read = media("slingshot 11: {reach: network, rate: 200 Gb/s, efficiency: 95 %}").clean
    cable = parse_cable("2x slingshot 11", read)
    assert (cable.rate.value, cable.rate.kind, cable.count) == (25e9, "quoted", 2)
    assert (cable.family, cable.generation) == ("slingshot", 11)
    assert cable.rate.source == "box.yaml:1"


def test_a_medium_like_another(media):
    read = media("cxl 2: {like: pcie 5, title: CXL 2.0, efficiency: unknown}").clean
    cable = parse_cable("cxl 2 x8", read)
    assert cable.rate.value == pytest.approx(31.5076923e9)
    assert cable.family == "cxl"
    assert cable.efficiency.value is None


def test_transfers_and_encoding_are_computed(media):
    read = media("wire: {reach: host, transfer-rate: 10 GT/s, encoding: 64/66}").clean
    assert read["wire"].rate.source == "10 GT/s x 64/66 / 8"
    assert parse_cable("wire x4", read).rate.source == "10 GT/s x 4 x 64/66 / 8"


def test_a_stated_rate_replaces_the_computed_one(media):
    read = media("pcie 5: {rate: 3.5 GB/s}").clean
    assert parse_cable("pcie 5 x16", read).rate.value == pytest.approx(56e9)
    assert not parse_cable("pcie 5 x16", read).rate.scalable


def test_nothing_and_later_media_see_earlier_ones(media, shipped):
    from topo.catalogue.cables import read_media

    assert read_media(None, media=shipped.media, report=UNUSED) == dict(shipped.media)
    read = media("one: {reach: network, rate: 10 Gb/s}\ntwo: {like: one}").clean
    assert read["two"].rate.value == 1.25e9


@pytest.mark.parametrize(
    ("text", "codes"),
    [
        ("slingshot: {rate: 200 Gb/s}", ["missing-reach"]),
        ("slingshot: {reech: network}", ["unknown-key"]),
        ("slingshot: {reach: netwrk}", ["unknown-word"]),
        ("slingshot: {like: ethernt}", ["unknown-medium"]),
        ("slingshot: {like: [ethernet]}", ["unknown-medium"]),
        ("slingshot: 200 Gb/s", ["wrong-shape"]),
        ("[pcie 5]", ["wrong-shape"]),
        ("Pcie 5: {efficiency: 85 %}", ["bad-name"]),
        ("pcie 5: {efficiency: 85 %, encodng: 1/2}", ["unknown-key"]),
        ("wire: {reach: host, transfer-rate: 8 GT/s}", ["bad-encoding"]),
        ("pcie 5: {encoding: 130/128}", ["bad-encoding"]),
        ("pcie 5: {encoding: most}", ["bad-encoding"]),
        ("pcie 5: {efficiency: 0 %}", ["zero-capacity"]),
        ("pcie 5: {efficiency: 85 GB, rate: 0 GB/s, per-lane: perhaps}", ["*"] * 3),
        ("pcie 5: {efficiency: unlimited}", ["not-unlimited"]),
    ],
)
def test_every_mistake_is_said_once(media, text, codes):
    found = [found.code for found in media(text).findings]
    assert len(found) == len(codes)
    assert codes[0] == "*" or found == codes
