"""What is not certain of a machine: each guess and each stated range as a band, and draws of them.

A figure is a band where its source says a range, or where it is a guess; any other is certain. The
same figure of several parts, cables or devices is one band: they move together.
"""

from __future__ import annotations

import math
from collections import Counter
from collections.abc import Hashable, Iterable, Mapping, Sequence
from dataclasses import replace
from itertools import product
from random import Random
from typing import Final, TypeAlias

from topo.catalogue.fields import COUNT, RATE, Quantity, quantity_of
from topo.catalogue.part import Figure
from topo.description.description import Basis
from topo.records import dataclass
from topo.topology.resources import Resource
from topo.topology.topology import Topology
from topo.topology.varying import Change, Varying

GUESSED: Final = (0.5, 1.5)
"""Of a guess without a range: from half of it to one and a half."""
_RATIOS: Final = {"ratio": (0.0, 1.0), "duplex": (0.5, 1.0)}  # what a share of a whole may be
_LINEAR: Final = 1e-12  # relative: what is as near to a product is one
_MOST_TOGETHER: Final = 6  # bands of one capacity whose product is looked for

Values: TypeAlias = Sequence[float]
"""A value for each band."""


@dataclass(frozen=True, slots=True)
class Band:
    """A figure that may be anything between two.

    Parameters
    ----------
    key
        What it is of its part or medium: ``efficiency``, ``core-copy``, ``read``; of what is a
        resource of its own, such as a peer-to-peer cap, its class.
    owners
        The parts and media that have it.
    figure
        The figure that answers use.
    low, high
        The least and the most that it may be.
    stated
        Whether its source says so; else it is a guess, taken for `GUESSED` of itself.
    """

    key: str
    owners: tuple[str, ...]
    figure: Figure
    low: float
    high: float
    stated: bool

    @property
    def middle(self) -> float:
        """The value that answers use, or what an unknown one is at most."""
        value = self.figure.value
        return self.high if value is None else value

    @property
    def quantity(self) -> Quantity:
        """What it is measured in."""
        try:
            return quantity_of(self.key)
        except KeyError:
            return RATE

    @property
    def order(self) -> tuple[Hashable, ...]:
        """What bands are put in order by, whatever devices are called, however wide they are."""
        return (self.key, self.middle, self.figure.kind, self.figure.source)


def band_of(key: str, figure: Figure, owners: tuple[str, ...] = ()) -> Band | None:
    """Return the band of a figure, `None` where it is certain or nobody has one."""
    if figure.range is not None:
        return Band(key, owners, figure, *figure.range, stated=True)
    if figure.kind != "guess" or figure.at_most or not figure.known or not figure.value:
        return None
    low, high = (factor * figure.value for factor in GUESSED)
    band = Band(key, owners, figure, low, high, stated=False)
    if band.quantity is COUNT:
        low, high = max(math.floor(low), 1.0), float(math.ceil(high))
    least, most = _RATIOS.get(band.quantity.name, (0.0, math.inf))
    return replace(band, low=max(low, least), high=min(high, most))


class Uncertain:
    """Capacities as functions of what is not certain.

    Parameters
    ----------
    topology
        The machine.
    resources
        Those of a use matrix of it.
    basis
        Which figure of each capacity is used.

    Attributes
    ----------
    bands
        Those that some capacity depends on.
    classes
        For each resource the class that its capacity is computed for.
    """

    def __init__(self, topology: Topology, resources: Sequence[Resource], basis: Basis) -> None:
        self._varying = Varying(topology, resources)
        self._basis = basis
        self.classes = self._varying.classes
        bands = _met(self._varying)
        found = {(band.key, band.figure): place for place, band in enumerate(bands)}
        middle = [band.middle for band in bands]
        self._nominal = self._solve(bands, found, middle)
        touched: list[list[int]] = [[] for _ in self._nominal]
        for place, band in enumerate(bands):
            for end in (band.low, band.high):
                rates = self._solve(bands, found, with_value(middle, place, end))
                for number, rate in enumerate(rates):
                    if rate != self._nominal[number] and place not in touched[number]:
                        touched[number].append(place)
        used = sorted({place for places in touched for place in places})
        self.bands = tuple(bands[place] for place in used)
        self.touched = tuple(tuple(map(used.index, places)) for places in touched)
        self._places = {(band.key, band.figure): place for place, band in enumerate(self.bands)}
        self._products = [self._product(number) for number in range(len(self._nominal))]

    def _solve(
        self, bands: Sequence[Band], places: Mapping[tuple[str, Figure], int], values: Values
    ) -> list[float]:
        change = changing(bands, places, values)
        return [capacity.rate(self._basis) for capacity in self._varying.capacities(change)]

    def _product(self, number: int) -> float | None:
        """Return the factor by which a capacity is the product of its bands, `None` if it is not.

        Capacities are the least or the greatest of products. Where one of these is it at every
        corner, it is so everywhere between them, since the ratio of two is greatest at a corner.
        """
        places = self.touched[number]
        if len(places) > _MOST_TOGETHER or not places:
            return None
        middle = [band.middle for band in self.bands]
        corners = product(*((self.bands[at].low, self.bands[at].high) for at in places))
        factors = []
        for corner in (*corners, tuple(middle[at] for at in places)):
            values = list(middle)
            for at, value in zip(places, corner, strict=True):
                values[at] = value
            rate = self._solve(self.bands, self._places, values)[number]
            factors.append(rate / math.prod(corner))
        least, most = min(factors), max(factors)
        return factors[-1] if most - least <= _LINEAR * most else None

    def rates(self, values: Values) -> list[float]:
        """Return bytes/s of each class with these values of the bands."""
        solved: list[float] | None = None
        rates = list(self._nominal)
        for number, places in enumerate(self.touched):
            factor = self._products[number]
            if factor is not None:
                rates[number] = factor * math.prod(values[at] for at in places)
            elif places:
                solved = solved or self.exactly(values)
                rates[number] = solved[number]
        return rates

    def exactly(self, values: Values) -> list[float]:
        """Return what `rates` does, each class computed from its figures."""
        return self._solve(self.bands, self._places, values)


def changing(
    bands: Sequence[Band], places: Mapping[tuple[str, Figure], int], values: Values
) -> Change:
    """Return what takes values for the figures of bands, and leaves all others as they are."""

    def change(key: str, figure: Figure, _owner: str) -> Figure:
        place = places.get((key, figure))
        if place is None or values[place] == bands[place].figure.value:
            return figure
        return replace(figure, value=values[place], at_most=False)

    return change


def _met(varying: Varying) -> list[Band]:
    """Return the bands that capacities are computed from, whether or not they change anything."""
    owners: dict[tuple[str, Figure], dict[str, None]] = {}

    def meet(key: str, figure: Figure, owner: str) -> Figure:
        if figure.range is not None or figure.kind == "guess":
            owners.setdefault((key, figure), {})[owner] = None
        return figure

    varying.capacities(meet)
    bands = (band_of(key, figure, tuple(sorted(of))) for (key, figure), of in owners.items())
    return sorted((band for band in bands if band is not None), key=lambda band: band.order)


# --- draws ----------------------------------------------------------------------------------------


def positions(bands: Iterable[Band], count: int) -> list[list[float]]:
    """Return for each draw a position of each band, from -1 (its least) to 1 (its most).

    Of each band as many draws lie in each of `count` equal parts: none is left to chance. Which go
    together is by a generator whose seed is the band's figure: the same figure is drawn alike for
    every data path, whatever else is not certain there, and however wide its band is.

    Examples
    --------
    >>> guess = Band("read", (), Figure(7e9, "guess", ""), 3e9, 9e9, stated=True)
    >>> [round(draw[0], 2) for draw in sorted(positions([guess], 4))]
    [-0.75, -0.25, 0.25, 0.75]
    """
    columns = []
    times: Counter[tuple[Hashable, ...]] = Counter()
    for band in bands:
        generator = Random(f"{band.order} {times[band.order]}")  # noqa: S311  (draws, no secrets)
        times[band.order] += 1  # figures that differ in their width only are drawn apart
        keys = [generator.random() for _ in range(count)]
        order = sorted(range(count), key=keys.__getitem__)
        columns.append([(2 * place + 1) / count - 1 for place in order])
    return [list(draw) for draw in zip(*columns, strict=True)] if columns else []


def with_value(values: Values, place: int, value: float) -> list[float]:
    """Return the values, or positions, of bands with another for one of them."""
    changed = list(values)
    changed[place] = value
    return changed


def value_at(band: Band, position: float) -> float:
    """Return the value of a band at a position from -1 to 1; at 0 it is what answers use."""
    end = band.high if position > 0 else band.low
    return band.middle + (end - band.middle) * abs(position)


def values_at(bands: Iterable[Band], draw: Iterable[float]) -> list[float]:
    """Return a value for each band, by its position."""
    return [value_at(band, position) for band, position in zip(bands, draw, strict=True)]
