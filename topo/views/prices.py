"""What one GB/s more is worth, in words."""

from __future__ import annotations

import math
from collections import Counter
from collections.abc import Sequence
from typing import TYPE_CHECKING, Literal

from topo.solve.system import TIE
from topo.units import format_duration, format_rate
from topo.views.resources import CLASS_WORDS, binds, class_words, classes_of, number_of

if TYPE_CHECKING:
    from topo.solve.prices import Price
    from topo.study.prices import ClassPrice, Prices, TiedPrice, TimePrice
    from topo.topology.resources import Resource


def price_sentences(prices: Prices) -> tuple[str, ...]:
    """Return the prices in words; what changes nothing in one sentence."""
    apart = prices.finish_apart
    sentences = [
        class_price(price, by_time=apart) for price in prices.classes if prices.matters(price)
    ]
    if prices.tie is not None:
        sentences.append(tied_price(prices.tie, by_time=apart))
    idle = [
        resource
        for price in prices.classes
        if not prices.matters(price)
        for resource in price.resources
    ]
    if idle:
        nothing = "leaves the time as it is" if apart else "changes nothing"
        sentences.append(f"one GB/s more or less on {classes_of(idle)} {nothing}")
    return tuple(f"{text[:1].upper()}{text[1:]}." for text in sentences)


def class_price(price: ClassPrice, *, by_time: bool = False) -> str:
    """Return the price of a class in words; `by_time` where only that is of the whole."""
    count, together, seconds = number_of(price.resources), price.together, price.together_time
    where, most = _on(price.kind, count), "at most " * price.at_most
    if by_time and seconds:
        return f"one GB/s more {where} {_saves(seconds, most)}; one less {_loses(seconds, most)}"
    if not price.matters and not (seconds and seconds.matters):
        return f"one GB/s more or less {where} changes nothing"
    in_all = " in all" if count > 1 and together.gain > TIE else ""
    alone = ""  # where all together are worth more than their number times one
    is_each = count == len(price.resources)
    if is_each and count > 1 and abs(price.single.gain * count - together.gain) > TIE * count:
        alone = f" (on one alone, one more adds {_gigabytes(price.single.gain, most)})"
    end = _until(together, price.next_bound, price.kind, count)
    adds = f"adds {_gigabytes(together.gain, most)}{in_all}{_in_time(seconds, 'saved', most)}{end}"
    costs = f"costs {_gigabytes(together.cost, most)}{_in_time(seconds, 'lost', most)}"
    if seconds and (seconds.lost is None or together.cost <= TIE):
        costs = _loses(seconds, most)
    return f"one GB/s more {where} {adds}; one less {costs}{alone}"


def _saves(seconds: TimePrice, most: str) -> str:
    if seconds.saved < 0:  # others slow the last one down
        return f"costs {most}{format_duration(-seconds.saved)}"
    return f"saves {most}{format_duration(seconds.saved)}" if seconds.saved else "saves nothing"


def _loses(seconds: TimePrice, most: str) -> str:
    if seconds.lost is None:
        return "leaves nothing of it"
    if seconds.lost < 0:
        return f"saves {most}{format_duration(-seconds.lost)}"
    return f"costs {most}{format_duration(seconds.lost)}" if seconds.lost else "costs nothing"


def _in_time(seconds: TimePrice | None, side: Literal["saved", "lost"], most: str) -> str:
    """Return " (125 ms less)": what comes of it in time; nothing where that is nothing."""
    value = (seconds and getattr(seconds, side)) or 0.0
    if not value:
        return ""
    less = (side == "saved") == (value > 0)
    return f" ({most}{format_duration(abs(value))} {'less' if less else 'more'})"


def tied_price(price: TiedPrice, *, by_time: bool = False) -> str:
    """Return the price of a tie in words."""
    steps = {
        resource.kind: step for resource, step in zip(price.resources, price.steps, strict=True)
    }
    counts: Counter[str] = Counter()
    for resource in price.resources:
        counts[resource.kind] += resource.count
    raised = " and ".join(
        f"{_gigabytes(step)} more {_on(kind, counts[kind])}" for kind, step in steps.items()
    )
    least = price.resources[price.steps.index(min(price.steps))].kind
    start = f"{classes_of(price.resources)} are full together; as a group, {raised}"
    seconds, most = price.together_time, "at most " * price.at_most
    if by_time and seconds:
        saves = _saves(seconds, most).replace("saves", "save", 1).replace("costs", "cost", 1)
        return f"{start} {saves}; as much less {_loses(seconds, most)}"
    end = _until(price.together, price.next_bound, least, counts[least])
    gain = _gigabytes(price.together.gain, most)
    adds = f"add {gain} in all{_in_time(seconds, 'saved', most)}{end}"
    costs = f"costs {_gigabytes(price.together.cost, most)}{_in_time(seconds, 'lost', most)}"
    if seconds and seconds.lost is None:
        costs = _loses(seconds, most)
    return f"{start} {adds}; as much less {costs}"


def _on(kind: str, count: int) -> str:
    if count == 2:  # noqa: PLR2004
        return f"on both {CLASS_WORDS[kind][1]}"
    return f"on {'each of ' * (count > 1)}{class_words(kind, count)}"


def _until(price: Price, bound: Sequence[Resource], kind: str, count: int) -> str:
    """Say how far the gain goes, of each of `count` resources, and what binds there."""
    if price.gain <= TIE or math.isinf(price.range_up):
        return ""
    giga = price.range_up / 1e9
    headroom = f"{giga:.1f} GB/s" if giga >= 1 else format_rate(price.range_up)
    each = ""
    if count > 1:
        member = CLASS_WORDS[kind][2]
        each = f" a {member}" if member else " each"
    by = f", where {classes_of(bound)} {binds(bound)}" if bound else ""
    return f", up to +{headroom}{each}{by}"


def _gigabytes(slope: float, most: str = "") -> str:
    """Return what a slope makes of one GB/s."""
    return "nothing" if abs(slope) <= TIE else f"{most}{slope:.4g} GB/s"
