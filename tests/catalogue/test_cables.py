"""Cables: what each shorthand means, and what each mistake is told."""

import math
from typing import Any

import pytest

from topo.catalogue.cables import cable_rate, parse_cable
from topo.catalogue.parts import catalogue
from topo.errors import UnitError

SHIPPED: Any = catalogue()

GOOD = [
    # text, count, medium, family, reach, lanes, generation, GB/s, kind
    ("pcie 5 x16", 1, "pcie 5", "pcie", "host", 16, 5, 63.0153846, "formula"),
    (
        "2x infiniband ndr",
        2,
        "infiniband ndr",
        "infiniband",
        "network",
        None,
        None,
        50,
        "datasheet",
    ),
    ("4x upi 16 GT/s", 4, "upi", "upi", "host", None, None, 32, "formula"),
    ("18x nvlink 4", 18, "nvlink 4", "nvlink", "gpu", None, 4, 25, "datasheet"),
    ("3x xgmi 16 GT/s", 3, "xgmi", "xgmi", "host", None, None, 32, "formula"),
    ("xgmi 64 GB/s", 1, "xgmi", "xgmi", "host", None, None, 64, "quoted"),
    ("ethernet 400 Gb/s", 1, "ethernet", "ethernet", "network", None, None, 50, "formula"),
    ("nvlink-c2c 225 GB/s", 1, "nvlink-c2c", "nvlink-c2c", "host", None, None, 225, "quoted"),
    ("nvlink-c2c unknown", 1, "nvlink-c2c", "nvlink-c2c", "host", None, None, None, "quoted"),
    ("memory-bus", 1, "memory-bus", "memory-bus", "memory", None, None, math.inf, "formula"),
    ("pcie unknown", 1, "pcie", "pcie", "host", None, None, None, "quoted"),
    ("pcie unknown x16", 1, "pcie", "pcie", "host", 16, None, None, "quoted"),
    ("pcie 4 unknown", 1, "pcie 4", "pcie", "host", None, 4, None, "quoted"),
    ("12x nvlink unknown", 12, "nvlink", "nvlink", "gpu", None, None, None, "quoted"),
    ("PCIe 5  x8", 1, "pcie 5", "pcie", "host", 8, 5, 31.5076923, "formula"),
]


@pytest.mark.parametrize("case", GOOD, ids=[case[0] for case in GOOD])
def test_cable(cable, case):
    text, *expected, rate, kind = case
    read = cable(text).clean
    assert expected == [
        *(read.count, read.medium, read.family, read.reach),
        *(read.lanes, read.generation),
    ]
    value = read.rate.value
    assert value is None if rate is None else value == pytest.approx(rate * 1e9)
    assert read.rate.kind == kind
    assert read.rate.source
    assert read.p2p is None


def test_a_stated_rate_comes_from_its_line(cable):
    assert cable("xgmi 64 GB/s").clean.rate.source == "box.yaml:1"


BAD = [
    # text, code, what the message says, what the help says
    ("pcie 5", "not-a-cable", "how many lanes", "`pcie 5 x16`"),
    ("pcie x16", "not-a-cable", "without its generation", "`pcie 5 x16`"),
    ("pcie", "not-a-cable", "without its generation", "`pcie 5`"),
    ("nvlink", "not-a-cable", "without its generation", "1, 2, 3, ga102, 4, 5"),
    ("pcie 7 x16", "unknown-medium", "no `pcie 7`", "1, 2, 3, 4, 5, 6"),
    ("pcie 5 x3", "not-a-cable", "not 3", "x1, x2, x4, x8 or x16"),
    ("pcie 5 x0", "not-a-cable", "not 0", "x16"),
    ("pcie 5 16", "not-a-cable", "`16` is no lane count", "x16"),
    ("ethernet", "not-a-cable", "how fast", "`ethernet 400 Gb/s`"),
    ("upi", "not-a-cable", "how fast", "`upi 16 GT/s`"),
    ("xgmi", "not-a-cable", "how fast", "`xgmi 16 GT/s`"),
    ("upi 16 Gb", "wrong-quantity", "rate", ""),
    ("ethernet 400 gbps", "ambiguous-unit", "bits or bytes", "400 Gb/s"),
    ("infinband ndr", "unknown-medium", "`infinband`", "`infiniband`"),
    ("infiniband nrd", "unknown-medium", "no `infiniband nrd`", "`infiniband ndr`"),
    ("infiniband", "not-a-cable", "generation", "`infiniband ndr`"),
    ("banana", "unknown-medium", "`banana`", "media are pcie"),
    ("pcie 5 x16 x16", "not-a-cable", "`x16` is too much", "leave"),
    ("pcie 5 x16 85 %", "not-a-cable", "`85 %` is too much", "{medium: pcie 5 x16, efficiency"),
    ("nvlink 4 25 GB/s", "not-a-cable", "`25 GB/s` is too much", "leave"),
    ("pcie unknown x16 x16", "not-a-cable", "too much", ""),
    ("pcie ? x16", "not-a-cable", "`?`", "`pcie unknown x16`"),
    ("2x", "not-a-cable", "a count without a cable", "pcie 5 x16"),
    ("0x nvlink 4", "zero-capacity", "no cable", ""),
    ("ethernet 0 Gb/s", "zero-capacity", "lets nothing through", "unknown"),
    ("upi 0 GT/s", "zero-capacity", "lets nothing through", "unknown"),
    ("", "missing-value", "nothing stands", ""),
    ("[pcie 5 x16]", "wrong-shape", "a list", ""),
]


@pytest.mark.parametrize(("text", "code", "message", "advice"), BAD, ids=[case[0] for case in BAD])
def test_a_bad_cable_gets_one_precise_message(cable, text, code, message, advice):
    read = cable(text)
    assert read.value is None
    (found,) = read.findings
    assert found.code == code
    assert message in found.message
    assert advice in found.help
    assert found.place.line == 1
    assert found.source_line == f"link: {text}"


@pytest.mark.parametrize(
    ("habit", "written"),
    [
        ("pcie5 x16", "pcie 5 x16"),
        ("PCIe Gen5 x16", "pcie 5 x16"),
        ("pcie gen 4 x8", "pcie 4 x8"),
        ("gen5 x16", "pcie 5 x16"),
        ("pcie 5.0 x16", "pcie 5 x16"),
        ("PCI-E 4.0 x8", "pcie 4 x8"),
        ("pcie 5x16", "pcie 5 x16"),
        ("pcie 5 16x", "pcie 5 x16"),
        ("pcie 5 x 16", "pcie 5 x16"),
        ("pcie x16 5", "pcie 5 x16"),
        ("pcie 4 16 lanes", "pcie 4 x16"),
        ("nvlink4", "nvlink 4"),
        ("18 x nvlink 4", "18x nvlink 4"),
        ("18× nvlink 4", "18x nvlink 4"),
        ("c2c 225 GB/s", "nvlink-c2c 225 GB/s"),
        ("ib ndr", "infiniband ndr"),
        ("2x ndr", "2x infiniband ndr"),
        ("infiniband ndr400", "infiniband ndr"),
        ("400gbe", "ethernet 400 Gb/s"),
        ("2x 200 GbE", "2x ethernet 200 Gb/s"),
        ("ethernet 400", "ethernet 400 Gb/s"),
        ("roce 200 Gb/s", "ethernet 200 Gb/s"),
        ("infinity fabric 64 GB/s", "xgmi 64 GB/s"),
        ("upi 16", "upi 16 GT/s"),
        ("memory bus", "memory-bus"),
        ("ddr5", "memory-bus"),
    ],
)
def test_habits_of_writing_get_the_shorthand(habit, written):
    with pytest.raises(UnitError) as raised:
        parse_cable(habit, SHIPPED.media)
    assert raised.value.findings[0].help == f"write `{written}`"
    parse_cable(written, SHIPPED.media)


def test_a_mapping_says_more(cable):
    read = cable(
        "{medium: 2x pcie 5 x16, efficiency: 83 %,"
        " p2p: {posted: 22 GB/s, non-posted: 10 GB/s per flow}}"
    ).clean
    assert (read.medium, read.count) == ("pcie 5", 2)
    assert (read.efficiency.value, read.efficiency.kind) == (0.83, "quoted")
    assert read.efficiency.source == "box.yaml:1"
    assert (read.p2p.posted.rate.value, read.p2p.posted.per_flow) == (22e9, False)
    assert (read.p2p.non_posted.rate.value, read.p2p.non_posted.per_flow) == (10e9, True)


def test_a_mapping_without_efficiency_keeps_the_mediums(cable):
    assert cable("{medium: pcie 5 x16}").clean.efficiency == cable("pcie 5 x16").clean.efficiency


def test_a_cut_source_is_given_its_end_back(cable):
    read = cable("{medium: pcie 5 x16, efficiency: 83 %, source: our lspci, MPS 128}").clean
    assert read.efficiency.source == "our lspci, MPS 128"


def test_all_mistakes_of_a_mapping_at_once(cable):
    read = cable("{medum: pcie 5 x16, efficiency: 120 %, p2p: {postd: 22 GB/s}, p2p-x: 1}")
    assert [found.code for found in read.findings] == [
        "unknown-key",
        "bad-number",
        "unknown-key",
        "unknown-key",
    ]
    assert "did you mean `medium`?" in read.said[0]
    assert "did you mean `posted`?" in read.said[2]


def test_a_mapping_without_a_medium(cable):
    assert [found.code for found in cable("{efficiency: 83 %}").findings] == ["not-a-cable"]


@pytest.mark.parametrize("text", ["{medium: [pcie 5 x16]}", "{medium: pcie 5 x16, p2p: no}"])
def test_wrong_shapes(cable, text):
    assert [found.code for found in cable(text).findings] == ["wrong-shape"]


def test_a_rate_of_lanes_not_computed_from_transfers(media):
    mine = media("mine: {reach: host, rate: 4 GB/s, per-lane: yes, source: our sheet}").clean
    cable = parse_cable("mine x4", mine)
    assert cable.rate.value == 16e9
    assert (cable.rate.kind, cable.rate.source) == ("quoted", "4 lanes x 4 GB/s (our sheet)")
    assert not cable.rate.scalable


def test_unknown_factors_make_an_unknown_rate(media):
    mine = media(
        "pcie 5: {transfer-rate: unknown}\nupi: {bytes-per-transfer: unknown}\n"
        "wire: {reach: network, rate: unknown}"
    ).clean
    for text in ("pcie 5 x16", "upi 16 GT/s", "wire"):
        assert parse_cable(text, mine).rate.value is None, text


def test_the_rate_of_a_slot_is_that_of_a_cable():
    # So that a part's side of a link is computed as the cable itself is.
    media = SHIPPED.media
    assert cable_rate(media["pcie 4"], 16) == parse_cable("pcie 4 x16", media).rate


@pytest.mark.parametrize("text", ["", "   "])
def test_nothing_is_no_cable(text):
    with pytest.raises(UnitError, match="a cable is missing"):
        parse_cable(text, SHIPPED.media)


def test_a_long_text_is_not_searched_for_habits():
    with pytest.raises(UnitError) as raised:
        parse_cable(f"pcie5 x16 {'and so on ' * 20}", SHIPPED.media)
    assert raised.value.findings[0].help == "did you mean `pcie`?"
