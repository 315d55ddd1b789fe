"""Quantities: exact reading, every refusal by its code, and writing that reads back."""

import contextlib
import math

import pytest
from hypothesis import given
from hypothesis import strategies as st

from topo import units
from topo.errors import UnitError

POSITIVE_FLOATS = st.floats(min_value=1, max_value=1e18, allow_nan=False)


@pytest.mark.parametrize(
    ("text", "bytes_per_s"),
    [
        ("64 GB/s", 64e9),
        ("64GB/s", 64e9),
        (" 64  GB/s ", 64e9),
        ("100 GB/s", 1e11),
        ("66.67 GB/s", 66.67e9),
        ("26.4 GiB/s", 28346784153.6),
        ("400 Gb/s", 50e9),
        ("400 Gbit/s", 50e9),
        ("1 kB/s", 1e3),
        ("8 b/s", 1.0),
        (".5 MB/s", 5e5),
        ("1e3 GB/s", 1e12),
        ("1.5E-3 GB/s", 1.5e6),
        ("0 GB/s", 0.0),
    ],
)
def test_a_rate_is_read_to_the_nearest_float(text, bytes_per_s):
    assert units.parse_rate(text) == bytes_per_s


@pytest.mark.parametrize(
    ("text", "size_bytes"),
    [
        ("1.28 TB", 1.28e12),
        ("640 GB", 640e9),
        ("26 GiB", 26 * 2.0**30),
        ("4 kB", 4e3),
        ("4 KiB", 4096.0),
        ("17 B", 17.0),
    ],
)
def test_a_size_is_read_to_the_nearest_float(text, size_bytes):
    assert units.parse_size(text) == size_bytes


@pytest.mark.parametrize(
    ("text", "seconds"),
    [
        ("7 s", 7.0),
        ("12.5 ms", 0.0125),
        ("3 us", 3e-6),
        ("3 µs", 3e-6),
        ("2 min", 120.0),
        ("1 h", 3600.0),
    ],
)
def test_a_duration_is_read_into_seconds(text, seconds):
    assert units.parse_duration(text) == seconds


@pytest.mark.parametrize(
    ("text", "transfers_per_s"), [("32 GT/s", 32e9), ("4800 MT/s", 4.8e9), ("2.5GT/s", 2.5e9)]
)
def test_a_transfer_rate_is_read_into_transfers_per_second(text, transfers_per_s):
    assert units.parse_transfer_rate(text) == transfers_per_s


@pytest.mark.parametrize(
    ("text", "low_high"),
    [
        ("60-80 %", (0.6, 0.8)),
        ("60 % - 80 %", (0.6, 0.8)),
        ("0.6-0.8", (0.6, 0.8)),
        ("85 %", (0.85, 0.85)),
        ("0.85", (0.85, 0.85)),
        ("5e-1", (0.5, 0.5)),
        ("100%", (1.0, 1.0)),
    ],
)
def test_a_ratio_or_a_range_of_ratios_is_read(text, low_high):
    assert units.parse_ratio_range(text) == low_high


@pytest.mark.parametrize(
    ("read", "text", "code", "message", "advice"),
    [
        (units.parse_size, "640", "bare-number", "a size needs a unit: 640 GB?", "write 640 GB"),
        (
            units.parse_rate,
            "1e5",
            "bare-number",
            "a rate needs a unit: 1e5 GB/s?",
            "write 1e5 GB/s",
        ),
        (units.parse_duration, "7", "bare-number", "a duration needs a unit: 7 s?", "write 7 s"),
        (
            units.parse_ratio,
            "85",
            "bare-number",
            "`85` is more than the whole: 85 %?",
            "write a percentage (85 %) or a number up to 1 (0.85)",
        ),
        (
            units.parse_rate,
            "90 GB",
            "wrong-quantity",
            "a rate is expected, this is a size: 90 GB/s?",
            "write 90 GB/s",
        ),
        (
            units.parse_rate,
            "400 Gb",
            "wrong-quantity",
            "a rate is expected, this is a size: 400 Gb/s?",
            "write 400 Gb/s",
        ),
        (
            units.parse_size,
            "90 GB/s",
            "wrong-quantity",
            "a size is expected, this is a rate: 90 GB?",
            "write 90 GB",
        ),
        (
            units.parse_rate,
            "32 GT/s",
            "wrong-quantity",
            "a rate is expected, this is a transfer rate",
            "write it in GB/s",
        ),
        (
            units.parse_rate,
            "400 gbps",
            "ambiguous-unit",
            "400 gbps: bits or bytes? 400 Gb/s is 50 GB/s",
            "write 400 Gb/s or 400 GB/s",
        ),
        (
            units.parse_size,
            "16 Gb",
            "ambiguous-unit",
            "16 Gb: bits or bytes? In bits it is 2 GB",
            "write 16 GB or 2 GB",
        ),
        (
            units.parse_size,
            "1,5 TB",
            "decimal-comma",
            "`1,5` has a comma in the number",
            "write 1.5 TB",
        ),
        (
            units.parse_size,
            "1,500 GB",
            "decimal-comma",
            "`1,500` has a comma in the number",
            "write 1500 GB, or 1.500 GB, as meant",
        ),
        (
            units.parse_size,
            "1_000 GB",
            "bad-number",
            "`1_000 GB` is not a number",
            "write plain digits with at most one point: 1000 or 1.5",
        ),
        (
            units.parse_rate,
            "-5 GB/s",
            "bad-number",
            "`-5 GB/s` has a sign, and a rate has none",
            "write it like 85 GB/s",
        ),
        (
            units.parse_rate,
            "fast",
            "bad-number",
            "`fast` is not a rate",
            "write a number and a unit: 85 GB/s",
        ),
        (
            units.parse_rate,
            "1e999 GB/s",
            "bad-number",
            "`1e999 GB/s` is too large for any machine",
            "a rate is from 1 B/s to 1000 PB/s",
        ),
        (
            units.parse_rate,
            "1e-999 GB/s",
            "bad-number",
            "`1e-999 GB/s` is too small for any machine",
            "a rate is from 1 B/s to 1000 PB/s",
        ),
        (units.parse_rate, "", "bad-number", "a rate is missing", "write one: 85 GB/s"),
        (
            units.parse_size,
            "64 gb",
            "ambiguous-unit",
            "64 gb: bits or bytes? In bits it is 8 GB",
            "write 64 GB or 8 GB",
        ),
        (
            units.parse_size,
            "64 gib",
            "bad-unit",
            "`gib` is not a unit of a size",
            "did you mean 64 GiB?",
        ),
        (
            units.parse_duration,
            "7 sec",
            "bad-unit",
            "`sec` is not a unit of a duration",
            "did you mean 7 s?",
        ),
        (
            units.parse_duration,
            "7 moons",
            "bad-unit",
            "`moons` is not a unit of a duration",
            "units of a duration: s, ms, us, µs, ns, min, h",
        ),
        (
            units.parse_ratio,
            "120 %",
            "bad-number",
            "`120 %` is more than the whole",
            "at most 100 %",
        ),
        (
            units.parse_ratio_range,
            "80-60 %",
            "bad-number",
            "the range `80-60 %` runs backwards",
            "write 60-80 %",
        ),
        (units.parse_count, "2.5", "bad-number", "`2.5` is not a count", "write a whole number: 8"),
        (
            units.parse_count,
            "0",
            "bad-number",
            "0 stands where at least 1 is expected",
            "write 1 or more",
        ),
        (units.parse_flag, "maybe", "bad-flag", "`maybe` is neither yes nor no", "write yes or no"),
    ],
)
def test_a_refusal_says_what_stood_there_and_what_to_write(read, text, code, message, advice):
    with pytest.raises(UnitError) as caught:
        read(text)
    (finding,) = caught.value.findings
    assert (finding.code, finding.message, finding.help) == (code, message, advice)


@pytest.mark.parametrize(
    "text", ["400 Gbps", "400 GBps", "400 gb/s", "400 GB/sec", "400 mb/s", "1 KB/s", "9 gbit/s"]
)
def test_a_rate_unit_with_two_readings_is_refused(text):
    with pytest.raises(UnitError, match="ambiguous-unit"):
        units.parse_rate(text)


@pytest.mark.parametrize(
    "text", ["nan GB/s", "inf GB/s", "1 000 GB/s", "1.2.3 GB/s", "٣ GB/s", "1e9999 GB/s"]
)
def test_what_is_not_a_number_is_refused(text):
    with pytest.raises(UnitError, match="bad-number"):
        units.parse_rate(text)


@pytest.mark.parametrize(
    ("read", "least", "most", "below", "above"),
    [
        (units.parse_rate, "1 B/s", "1000 PB/s", "1e-15 B/s", "1e300 B/s"),
        (units.parse_size, "1 B", "1000000 PB", "1e-300 B", "1e22 B"),
        (units.parse_duration, "1 ns", "1000000 h", "0.9 ns", "1e6000 s"),
        (units.parse_transfer_rate, "1 MT/s", "1000 TT/s", "0.9 MT/s", "1e9 GT/s"),
        (units.parse_ratio, "0.0001 %", "100 %", "1e-300 %", "101 %"),
        (units.parse_weight, "0.001", "1000", "1e-300", "1001"),
    ],
    ids=["rate", "size", "duration", "transfer-rate", "ratio", "weight"],
)
def test_a_quantity_has_bounds(read, least, most, below, above):
    assert 0 < read(least) < read(most) < math.inf
    for text in (below, above):
        with pytest.raises(UnitError, match="bad-number") as caught:
            read(text)
        assert most in caught.value.findings[0].help
        assert text in caught.value.findings[0].message


def test_what_is_not_zero_never_reads_as_zero():
    assert units.format_rate(1e-6) == "1e-06 B/s"
    assert units.format_duration(1e-18) == "1e-09 ns"


def test_zero_is_refused_where_a_positive_quantity_is_asked():
    with pytest.raises(UnitError, match="is zero"):
        units.parse_rate("0 GB/s", positive=True)


@pytest.mark.parametrize(
    ("word", "flag"),
    [("yes", True), ("on", True), ("true", True), ("No", False), ("off", False), ("false", False)],
)
def test_a_flag_has_six_spellings(word, flag):
    assert units.parse_flag(word) is flag


@pytest.mark.parametrize(
    ("write", "value", "text"),
    [
        (units.format_rate, 100e9, "100 GB/s"),
        (units.format_rate, 32e9 * 16 * 128 / 130 / 8, "63.02 GB/s"),
        (units.format_rate, 126.0307692e9, "126.03 GB/s"),
        (units.format_rate, 5.55e9, "5.55 GB/s"),
        (units.format_rate, 0.625e9, "0.625 GB/s"),
        (units.format_rate, 50e6, "50 MB/s"),
        (units.format_rate, 12.0, "12 B/s"),
        (units.format_rate, 0.0, "0 GB/s"),
        (units.format_rate, math.inf, "unlimited"),
        (units.format_bit_rate, 50e9, "400 Gb/s"),
        (units.format_transfer_rate, 32e9, "32 GT/s"),
        (units.format_size, 640e9, "640 GB"),
        (units.format_size, 999.99999999e9, "1 TB"),
        (units.format_size, 2.56e12, "2.56 TB"),
        (units.format_duration, 1.4, "1.4 s"),
        (units.format_duration, 7 / 3, "2.333 s"),
        (units.format_duration, 0.0125, "12.5 ms"),
        (units.format_duration, 0.99999, "1 s"),
        (units.format_duration, 12345.6, "12346 s"),
        (units.format_duration, 172_799.0, "172799 s"),
        (units.format_duration, 172_800.0, "2 days"),
        (units.format_duration, 729 * 86_400.0, "729 days"),
        (units.format_duration, 731 * 86_400.0, "2.001 years"),
        (units.format_duration, 1e12, "31688 years"),
        (units.format_duration, 1e300, "3.2e+292 years"),
        (units.format_duration, 2.5e-6, "2.5 µs"),
        (units.format_duration, 2.5e-9, "2.5 ns"),
        (units.format_duration, 0.0, "0 s"),
        (units.format_duration, math.inf, "never"),
        (units.format_ratio, 0.625, "62.5 %"),
    ],
)
def test_a_quantity_is_written_for_people(write, value, text):
    assert write(value) == text


@pytest.mark.parametrize(
    ("spell", "read", "least", "most"),
    [
        (units.spell_rate, units.parse_rate, 1.0, 1e18),
        (units.spell_size, units.parse_size, 1.0, 1e21),
        (units.spell_duration, units.parse_duration, 1e-9, 3.6e9),
        (units.spell_transfer_rate, units.parse_transfer_rate, 1e6, 1e15),
    ],
    ids=["rate", "size", "duration", "transfer-rate"],
)
@given(share=st.floats(min_value=0, max_value=1), is_zero=st.booleans())
def test_a_spelled_quantity_reads_back_as_the_same_float(spell, read, least, most, share, is_zero):
    value = 0.0 if is_zero else min(max(least * (most / least) ** share, least), most)
    assert read(spell(value)) == value


@given(st.one_of(st.just(0.0), st.floats(min_value=1e-6, max_value=1)))
def test_a_spelled_ratio_reads_back_as_the_same_float(ratio):
    assert units.parse_ratio(units.spell_ratio(ratio)) == ratio


@given(st.text(max_size=30))
def test_any_text_is_a_finite_rate_or_a_unit_error(text):
    with contextlib.suppress(UnitError):
        assert 0 <= units.parse_rate(text) < math.inf


@given(POSITIVE_FLOATS)
def test_a_rate_written_for_people_is_within_one_in_a_hundred(value):
    assert units.parse_rate(units.format_rate(value)) == pytest.approx(value, rel=0.01, abs=0.006)
