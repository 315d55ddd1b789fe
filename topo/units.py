"""Quantities: read at the edge, one unit inside, written at the view.

Inside topo a rate is bytes per second, a size bytes, a duration seconds, a ratio a plain number,
each a `float`; prefixes are decimal (1 GB/s is 1e9 bytes per second) unless the text says `GiB`.
Readers raise `topo.errors.UnitError`, which has no place: whoever read the text knows it.

Three ways to write a quantity: ``format_*`` for people (rounded), ``spell_*`` for YAML (exact:
reading it gives the same float), and the raw float for JSON.
"""

from __future__ import annotations

import math
import re
from typing import Final, Literal

from topo.errors import UnitError

Quantity = Literal["rate", "size", "duration", "transfer rate", "ratio"]

# A unit's worth in the inside unit as an exact fraction (numerator, denominator): integers divide
# to the nearest float, so 66.67 GB/s is the float nearest to 66.67e9, without importing decimal.
_Worth = tuple[int, int]

_DECIMAL: Final = {"": 0, "k": 3, "M": 6, "G": 9, "T": 12, "P": 15}
_PREFIXES: Final = {prefix.lower(): prefix for prefix in _DECIMAL}
_BINARY: Final = {"Ki": 10, "Mi": 20, "Gi": 30, "Ti": 40, "Pi": 50}
_DAY: Final = 86_400.0
_YEAR: Final = 365.25 * _DAY
_MANY: Final = 1e5  # from so many on, digits say nothing
_SIZES: Final = {
    **{f"{prefix}B": (10**power, 1) for prefix, power in _DECIMAL.items()},
    **{f"{prefix}B": (2**power, 1) for prefix, power in _BINARY.items()},
}
_UNITS: Final[dict[Quantity, dict[str, _Worth]]] = {
    "rate": {
        **{f"{size}/s": worth for size, worth in _SIZES.items()},
        **{f"{prefix}b/s": (10**power, 8) for prefix, power in _DECIMAL.items()},
        **{f"{prefix}bit/s": (10**power, 8) for prefix, power in _DECIMAL.items()},
    },
    "size": _SIZES,
    "duration": {
        "s": (1, 1),
        "ms": (1, 10**3),
        "us": (1, 10**6),
        "µs": (1, 10**6),
        "ns": (1, 10**9),
        "min": (60, 1),
        "h": (3600, 1),
    },
    "transfer rate": {
        f"{prefix}T/s": (10**power, 1) for prefix, power in _DECIMAL.items() if prefix in "MGT"
    },
    "ratio": {"%": (1, 100)},
}
_QUANTITY_OF: Final = {unit: name for name, units in _UNITS.items() for unit in units}
# The unit that a person most likely meant, for advice.
_USUAL: Final[dict[Quantity, str]] = {
    "rate": "GB/s",
    "size": "GB",
    "duration": "s",
    "transfer rate": "GT/s",
    "ratio": "%",
}

# The least above zero, the most, and how a person writes both. What lies beyond is a slip of the
# pen; sums and quotients of what lies within are finite.
_BOUNDS: Final[dict[str, tuple[float, float, str]]] = {
    "rate": (1.0, 1e18, "from 1 B/s to 1000 PB/s"),
    "size": (1.0, 1e21, "from 1 B to 1000000 PB"),
    "duration": (1e-9, 3.6e9, "from 1 ns to 1000000 h"),
    "transfer rate": (1e6, 1e15, "from 1 MT/s to 1000 TT/s"),
    "ratio": (1e-6, math.inf, "from 0.0001 % to 100 %"),  # more than the whole has its own words
    "weight": (1e-3, 1e3, "from 0.001 to 1000"),
}

# ASCII only: `\d` would take Arabic digits, which float() would then read.
_NUMBER: Final = re.compile(r"([0-9]+(?:\.[0-9]+)?|\.[0-9]+)(?:[eE]([+-]?[0-9]{1,4}))?(?![0-9.])")
_COMMA: Final = re.compile(r"([0-9]+),([0-9]+)(?![0-9.,])\s*(.*)", re.DOTALL)
_BITS_OR_BYTES: Final = re.compile(
    r"([kmgtp])(i?)(?:b|bit|bits|byte|bytes)?(?:ps|/s|/sec|/second| per second)", re.IGNORECASE
)
_SMALL_B_SIZE: Final = re.compile(r"([kmgtp])(?:b|bit|bits)", re.IGNORECASE)
_BYTES_FROM: Final = 1e6  # a number without a unit is of bytes from here on, nobody's gigabytes
_LONGEST: Final = 400  # characters of a quantity that are looked at; any float spelled out fits


def parse_rate(text: str, *, positive: bool = False) -> float:
    """Read a data rate into bytes per second.

    Parameters
    ----------
    text
        A number and a unit: ``64 GB/s``, ``64GB/s``, ``400 Gb/s``, ``26.4 GiB/s``.
    positive
        Whether zero is refused.

    Raises
    ------
    UnitError
        With the code `bare-number`, `wrong-quantity`, `ambiguous-unit`, `decimal-comma`,
        `bad-number` or `bad-unit`.

    Examples
    --------
    >>> parse_rate("400 Gb/s")
    50000000000.0
    >>> parse_rate("66.67 GB/s")
    66670000000.0
    """
    return _parse(text, "rate", positive=positive)


def parse_size(text: str, *, positive: bool = False) -> float:
    """Read a size into bytes.

    Examples
    --------
    >>> parse_size("1.28 TB")
    1280000000000.0
    >>> parse_size("640")
    Traceback (most recent call last):
    topo.errors.UnitError: error[bare-number]: a size needs a unit: 640 GB? (write 640 GB)
    """
    return _parse(text, "size", positive=positive)


def parse_duration(text: str, *, positive: bool = False) -> float:
    """Read a duration into seconds.

    Examples
    --------
    >>> parse_duration("12.5 ms")
    0.0125
    """
    return _parse(text, "duration", positive=positive)


def parse_transfer_rate(text: str, *, positive: bool = False) -> float:
    """Read a signalling rate into transfers per second.

    Examples
    --------
    >>> parse_transfer_rate("32 GT/s")
    32000000000.0
    """
    return _parse(text, "transfer rate", positive=positive)


def parse_ratio(text: str, *, positive: bool = False) -> float:
    """Read a share of a whole, at most 1: a percentage or a plain number.

    Examples
    --------
    >>> parse_ratio("85 %"), parse_ratio("0.85")
    (0.85, 0.85)
    """
    value = _parse(text, "ratio", positive=positive)
    if value <= 1:
        return value
    if "%" in text:
        raise UnitError("bad-number", f"`{_shown(text)}` is more than the whole", "at most 100 %")
    raise UnitError(
        "bare-number",
        f"`{_shown(text)}` is more than the whole: {_shown(text)} %?",
        "write a percentage (85 %) or a number up to 1 (0.85)",
    )


def parse_duplex(text: str) -> float:
    """Read what both directions of a link carry at once, as a share of twice one direction.

    It is half at the least: that is what one direction carries alone.

    Examples
    --------
    >>> parse_duplex("90 %")
    0.9
    """
    value = parse_ratio(text)
    if value < 0.5:  # noqa: PLR2004  (one of two directions)
        message = f"`{_shown(text)}` of twice one direction is less than one direction alone"
        raise UnitError("bad-number", message, "50 % (one direction at a time) to 100 % (no loss)")
    return value


def parse_ratio_range(text: str, *, positive: bool = False) -> tuple[float, float]:
    """Read a range of ratios, low and high; a single one is both.

    Examples
    --------
    >>> parse_ratio_range("60-80 %")
    (0.6, 0.8)
    >>> parse_ratio_range("85 %")
    (0.85, 0.85)
    """
    first, dash, second = text.strip(" ").partition("-")
    # A dash after `e` belongs to an exponent, one at the very start is a minus sign.
    if not dash or not first or first[-1] in "eE":
        ratio = parse_ratio(text, positive=positive)
        return ratio, ratio
    if "%" in second and "%" not in first:
        first = f"{first.strip(' ')} %"
    low, high = parse_ratio(first, positive=positive), parse_ratio(second, positive=positive)
    if low > high:
        raise UnitError(
            "bad-number",
            f"the range `{_shown(text)}` runs backwards",
            f"write {spell_ratio(high)[:-2]}-{spell_ratio(low)}",
        )
    return low, high


def parse_weight(text: str) -> float:
    """Read the weight of a share, a plain number.

    Examples
    --------
    >>> parse_weight("2.5")
    2.5
    """
    number = _NUMBER.fullmatch(text.strip(" ")[:_LONGEST])
    if number is None or not number[1].strip("0."):
        message = f"`{_shown(text)}` is not a weight"
        raise UnitError("bad-number", message, "write a number above 0: 2")
    return _bounded(_value(number, (1, 1)), text, "weight")


def parse_count(text: str, *, positive: bool = True) -> int:
    """Read a whole number of things, at least one unless `positive` is off.

    Examples
    --------
    >>> parse_count("8")
    8
    """
    stripped = text.strip(" ")
    if not re.fullmatch(r"[0-9]{1,12}", stripped):
        raise UnitError("bad-number", f"`{_shown(text)}` is not a count", "write a whole number: 8")
    if positive and not int(stripped):
        raise UnitError("bad-number", "0 stands where at least 1 is expected", "write 1 or more")
    return int(stripped)


def parse_flag(text: str) -> bool:
    """Read yes or no, in YAML's six spellings.

    Examples
    --------
    >>> parse_flag("on"), parse_flag("no")
    (True, False)
    """
    word = text.strip(" ").lower()
    if word in {"yes", "on", "true"}:
        return True
    if word in {"no", "off", "false"}:
        return False
    raise UnitError("bad-flag", f"`{_shown(text)}` is neither yes nor no", "write yes or no")


def format_rate(bytes_per_s: float) -> str:
    """Write a rate for people: GB/s, MB/s below 0.1 GB/s.

    Examples
    --------
    >>> format_rate(100e9), format_rate(63.0153846e9), format_rate(50e6)
    ('100 GB/s', '63.02 GB/s', '50 MB/s')
    """
    return _format(bytes_per_s, (("GB/s", 1e9, 1e8), ("MB/s", 1e6, 1e5), ("kB/s", 1e3, 1e2)), "B/s")


def format_bit_rate(bytes_per_s: float) -> str:
    """Write a rate as the network says it, in bits.

    Examples
    --------
    >>> format_bit_rate(50e9)
    '400 Gb/s'
    """
    scales = (("Gb/s", 1e9, 1e8), ("Mb/s", 1e6, 1e5), ("kb/s", 1e3, 1e2))
    return _format(bytes_per_s * 8, scales, "b/s")


def format_transfer_rate(transfers_per_s: float) -> str:
    """Write a signalling rate.

    Examples
    --------
    >>> format_transfer_rate(32e9), format_transfer_rate(4.8e9)
    ('32 GT/s', '4.8 GT/s')
    """
    return _format(transfers_per_s, (("GT/s", 1e9, 1e8), ("MT/s", 1e6, 1e5)), "T/s")


def format_size(size_bytes: float) -> str:
    """Write a size for people, in the largest prefix up to TB that leaves at least 1.

    Examples
    --------
    >>> format_size(1.28e12), format_size(640e9), format_size(26.4e6)
    ('1.28 TB', '640 GB', '26.4 MB')
    """
    scales = (("TB", 1e12, 1e12), ("GB", 1e9, 1e9), ("MB", 1e6, 1e6), ("kB", 1e3, 1e3))
    return _format(size_bytes, scales, "B")


def format_duration(seconds: float) -> str:
    """Write a duration for people: four digits, ms and below for what is short, days from two on.

    Examples
    --------
    >>> format_duration(1.4), format_duration(7 / 3), format_duration(0.0125)
    ('1.4 s', '2.333 s', '12.5 ms')
    >>> format_duration(250_000), format_duration(1e9), format_duration(1e14)
    ('2.894 days', '31.69 years', '3.2e+06 years')
    """
    if seconds == float("inf"):
        return "never"
    for unit, worth in (("years", _YEAR), ("days", _DAY)):
        if seconds >= 2 * worth:  # so that it is never "1 years"
            number = seconds / worth
            return f"{_four_digits(number) if number < _MANY else f'{number:.2g}'} {unit}"
    # Rounding first decides the unit, so that 0.99996 s is 1 s and not 1000 ms.
    for unit, worth in (("s", 1.0), ("ms", 1e-3), ("µs", 1e-6)):
        rounded = _four_digits(seconds / worth)
        if float(rounded) >= 1 or seconds == 0:
            return f"{rounded} {unit}"
    nanoseconds = seconds / 1e-9
    return f"{_four_digits(nanoseconds) if nanoseconds >= 1 else _digits(nanoseconds)} ns"


def format_ratio(ratio: float) -> str:
    """Write a ratio as a percentage with at most one decimal.

    Examples
    --------
    >>> format_ratio(0.85), format_ratio(2 / 3)
    ('85 %', '66.7 %')
    """
    return f"{_trimmed(f'{ratio * 100:.1f}')} %"


def spell_rate(bytes_per_s: float) -> str:
    """Write a rate exactly: `parse_rate` gives the same float back.

    Examples
    --------
    >>> spell_rate(66.67e9), spell_rate(28346784153.6)
    ('66.67 GB/s', '28.3467841536 GB/s')
    """
    return _spell(bytes_per_s, (("GB/s", 9, 1e8), ("MB/s", 6, 1e5), ("B/s", 0, 0.0)))


def spell_size(size_bytes: float) -> str:
    """Write a size exactly: `parse_size` gives the same float back.

    Examples
    --------
    >>> spell_size(1.28e12), spell_size(80e9)
    ('1.28 TB', '80 GB')
    """
    scales = (("TB", 12, 1e12), ("GB", 9, 1e9), ("MB", 6, 1e6), ("kB", 3, 1e3), ("B", 0, 0.0))
    return _spell(size_bytes, scales)


def spell_duration(seconds: float) -> str:
    """Write a duration exactly: `parse_duration` gives the same float back.

    Examples
    --------
    >>> spell_duration(1.4), spell_duration(0.0125)
    ('1.4 s', '12.5 ms')
    """
    return _spell(seconds, (("s", 0, 1.0), ("ms", -3, 1e-3), ("us", -6, 0.0)))


def spell_transfer_rate(transfers_per_s: float) -> str:
    """Write a signalling rate exactly: `parse_transfer_rate` gives the same float back.

    Examples
    --------
    >>> spell_transfer_rate(32e9)
    '32 GT/s'
    """
    return _spell(transfers_per_s, (("GT/s", 9, 1e9), ("MT/s", 6, 0.0)))


def spell_ratio(ratio: float) -> str:
    """Write a ratio exactly: `parse_ratio` gives the same float back.

    Examples
    --------
    >>> spell_ratio(0.85)
    '85 %'
    """
    return _spell(ratio, (("%", -2, 0.0),))


def _parse(text: str, quantity: Quantity, *, positive: bool) -> float:
    """Read one number with its unit; every way to fail has its own code."""
    stripped = text.strip(" ")
    number = _NUMBER.match(stripped[:_LONGEST])
    if number is None or len(stripped) > _LONGEST or _COMMA.fullmatch(stripped):
        raise _not_a_number(stripped, quantity)
    unit = stripped[number.end() :].lstrip(" ")
    if unit == "" and quantity != "ratio":
        likely = f"{stripped} {_USUAL[quantity]}"
        bare = float(number.group())
        if quantity in ("size", "rate") and _BYTES_FROM <= bare <= _BOUNDS[quantity][1]:
            likely = (spell_size if quantity == "size" else spell_rate)(bare)
        message = f"a {quantity} needs a unit: {likely}?"
        raise UnitError("bare-number", message, f"write {likely}")
    worth = _UNITS[quantity].get(unit) if unit else (1, 1)
    if worth is None:
        raise _wrong_unit(stripped, number.group(), unit, quantity)
    value, is_zero = _value(number, worth), not number[1].strip("0.")
    if positive and is_zero:
        raise UnitError(
            "bad-number", f"`{_shown(stripped)}` is zero", f"write a {quantity} above zero"
        )
    return 0.0 if is_zero else _bounded(value, stripped, quantity)


def _bounded(value: float, text: str, quantity: str) -> float:
    """Return a value that is within the bounds of its quantity."""
    least, most, bounds = _BOUNDS[quantity]
    if least <= value <= most:
        return value
    size = "large" if value > most else "small"
    message = f"`{_shown(text.strip(' '))}` is too {size} for any machine"
    raise UnitError("bad-number", message, f"a {quantity} is {bounds}")


def _value(number: re.Match[str], worth: _Worth) -> float:
    """Multiply number and unit as integers and round once, to the nearest float."""
    integer, _, decimals = number[1].partition(".")
    digits = int(integer + decimals or "0")
    power = int(number[2] or 0) - len(decimals)
    above, below = worth
    above, below = above * 10 ** max(power, 0), below * 10 ** max(-power, 0)
    try:
        return float(digits * above / below)
    except OverflowError:
        return math.inf


def _not_a_number(text: str, quantity: Quantity) -> UnitError:
    """Say why `text` does not begin with a number that topo reads."""
    comma = _COMMA.fullmatch(text)
    if comma is not None:
        integer, decimals, unit = comma.groups()
        unit = unit or _USUAL[quantity]
        advice = f"write {integer}.{decimals} {unit}"
        if len(decimals) == 3:  # noqa: PLR2004  (three digits: a thousands separator as likely)
            advice = f"write {integer}{decimals} {unit}, or {integer}.{decimals} {unit}, as meant"
        return UnitError(
            "decimal-comma", f"`{integer},{decimals}` has a comma in the number", advice
        )
    sample = f"85 {_USUAL[quantity]}"
    if not text:
        return UnitError("bad-number", f"a {quantity} is missing", f"write one: {sample}")
    if re.match(r"[-+\u2212]\s*[.0-9]", text):
        return UnitError(
            "bad-number",
            f"`{_shown(text)}` has a sign, and a {quantity} has none",
            f"write it like {sample}",
        )
    return UnitError(
        "bad-number",
        f"`{_shown(text)}` is not a {quantity}",
        f"write a number and a unit: {sample}",
    )


def _wrong_unit(text: str, number: str, unit: str, quantity: Quantity) -> UnitError:
    """Say what `unit` is, since it is not one of `quantity`'s."""
    written = _QUANTITY_OF.get(unit)
    if written is None and _BITS_OR_BYTES.fullmatch(unit):
        written = "rate"
    elif written is None and _SMALL_B_SIZE.fullmatch(unit):
        written = "size"
    if written is not None and written != quantity:
        message = f"a {quantity} is expected, this is a {written}"
        # The same prefix with the right unit, where one quantity is easily taken for the other; a
        # duration or a transfer rate is no slip of the pen, so it gets no guess.
        likely = unit.removesuffix("/s") if quantity == "size" else f"{unit}/s"
        if likely in _UNITS[quantity] and {written, quantity} == {"rate", "size"}:
            likely = f"{number} {likely}"
            return UnitError("wrong-quantity", f"{message}: {likely}?", f"write {likely}")
        return UnitError("wrong-quantity", message, f"write it in {_USUAL[quantity]}")
    if re.match(r"[0-9_' .,]", unit):
        return UnitError(
            "bad-number",
            f"`{_shown(text)}` is not a number",
            "write plain digits with at most one point: 1000 or 1.5",
        )
    ambiguous = _ambiguous(number, unit, quantity)
    if ambiguous is not None:
        return ambiguous
    near = _near(unit, quantity)
    units = ", ".join(list(_UNITS[quantity])[:8])
    advice = f"did you mean {number} {near}?" if near else f"units of a {quantity}: {units}"
    return UnitError("bad-unit", f"`{_shown(unit)}` is not a unit of a {quantity}", advice)


def _ambiguous(number: str, unit: str, quantity: Quantity) -> UnitError | None:
    """Return the error for a unit that has two readings, or `None` when it has not."""
    if quantity == "rate" and (match := _BITS_OR_BYTES.fullmatch(unit)):
        prefix = _PREFIXES[match[1].lower()]
        bits, as_bytes = f"{number} {prefix}b/s", f"{number} {prefix}B/s"
        return UnitError(
            "ambiguous-unit",
            f"{number} {unit}: bits or bytes? {bits} is {format_rate(parse_rate(bits))}",
            f"write {bits} or {as_bytes}",
        )
    if quantity == "size" and (match := _SMALL_B_SIZE.fullmatch(unit)):
        prefix = _PREFIXES[match[1].lower()]
        worth = _UNITS["rate"][f"{prefix}b/s"]
        number_match = _NUMBER.match(number)
        assert number_match is not None, "it was matched to get here"
        in_bytes = format_size(_value(number_match, worth))
        return UnitError(
            "ambiguous-unit",
            f"{number} {unit}: bits or bytes? In bits it is {in_bytes}",
            f"write {number} {prefix}B or {in_bytes}",
        )
    return None


def _near(unit: str, quantity: Quantity) -> str:
    """Return the known unit that differs only in case, spaces or a spelled-out word."""
    spelled = f"{unit.removesuffix('s')}{'/s' * (quantity == 'rate')}"
    if spelled in _UNITS[quantity]:  # `GBs`
        return spelled
    plain = unit.lower().replace(" ", "").replace("second", "s").replace("sec", "s")
    plain = {"ss": "s", "percent": "%", "minutes": "min", "hours": "h"}.get(plain, plain)
    return next((name for name in _UNITS[quantity] if name.lower() == plain), "")


def _format(value: float, scales: tuple[tuple[str, float, float], ...], smallest: str) -> str:
    """Write `value` in the first scale (unit, worth, from) that it reaches, else in `smallest`."""
    if value == float("inf"):
        return "unlimited"
    if value == 0:
        return f"0 {scales[0][0]}"
    for unit, worth, start in scales:
        # A hair below the threshold rounds up to it: 999.9999 MB is 1 GB.
        if value >= start * (1 - 1e-6):
            return f"{_digits(value / worth)} {unit}"
    return f"{_digits(value)} {smallest}"


def _digits(value: float) -> str:
    """Two decimals, three below 1, without trailing zeros; what is not zero never reads as it."""
    if 0 < value < 0.001:  # noqa: PLR2004
        return f"{value:.3g}"
    return _trimmed(f"{value:.3f}" if value < 1 else f"{value:.2f}")


def _four_digits(value: float) -> str:
    integer = len(str(int(value)))
    return _trimmed(f"{value:.{max(0, 4 - integer)}f}")


def _trimmed(text: str) -> str:
    return text.rstrip("0").rstrip(".") if "." in text else text


def _spell(value: float, scales: tuple[tuple[str, int, float], ...]) -> str:
    """Shift the point of the shortest exact decimal text: no arithmetic, so nothing is lost."""
    unit, power = next(
        (unit, power) for unit, power, start in scales if value >= start or not start
    )
    return f"{_shifted(repr(float(value)), -power)} {unit}"


def _shifted(number: str, places: int) -> str:
    """Move the decimal point of a float's `repr` to the right by `places`.

    >>> _shifted("1.28e+12", -12), _shifted("0.0125", 3)
    ('1.28', '12.5')
    """
    mantissa, _, exponent = number.partition("e")
    integer, _, decimals = mantissa.partition(".")
    digits = integer + decimals
    point = len(integer) + int(exponent or 0) + places
    if point <= 0:
        digits, point = "0" * (1 - point) + digits, 1
    digits = digits.ljust(point, "0")
    text = f"{digits[:point].lstrip('0') or '0'}.{digits[point:] or '0'}"
    return _trimmed(text)


def _shown(text: str) -> str:
    """Return `text` short enough for a message."""
    return text if len(text) <= 40 else f"{text[:37]}..."  # noqa: PLR2004
