"""What one byte/s more is worth, and one less costs, as keys of a JSON document."""

from __future__ import annotations

from typing import TYPE_CHECKING

from topo.study.prices import ClassPrice
from topo.views.json import Document, keys_of
from topo.views.prices import class_price, tied_price
from topo.views.resources import class_words

if TYPE_CHECKING:
    from topo.study.prices import TiedPrice, TimePrice


def price_keys(price: ClassPrice | TiedPrice) -> Document:
    """Return the price of the resources of a class, or of what is full together."""
    return _class_price(price) if isinstance(price, ClassPrice) else _tied_price(price)


def _class_price(price: ClassPrice) -> Document:
    return {
        "class": price.kind,
        "words": class_words(price.kind, len(price.resources)),
        "resources": price.resources,
        "one": {**keys_of(price.single, "gain cost"), **_seconds(price.single_time)},
        "together": _together(price),
        "sentence": class_price(price),
    }


def _tied_price(price: TiedPrice) -> Document:
    steps = zip(price.resources, price.steps, strict=True)
    return {
        "resources": [{**keys_of(resource), "step": step} for resource, step in steps],
        **_together(price),
        "sentence": tied_price(price),
    }


def _together(price: ClassPrice | TiedPrice) -> Document:
    return {
        "at_most": price.at_most,
        **keys_of(price.together, "gain cost range_up"),
        **_seconds(price.together_time),
        "next_bound": price.next_bound,
    }


def _seconds(price: TimePrice | None) -> Document:
    """Return what one GB/s more saves and one less costs, null where there is no such time."""
    return {"saved_s": price.saved if price else None, "lost_s": price.lost if price else None}
