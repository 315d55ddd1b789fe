"""Measured rates between neighbours, laid over what joins them."""

from __future__ import annotations

from collections import Counter
from dataclasses import replace
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from collections.abc import Iterable

    from topo.catalogue.part import Figure
    from topo.description.description import DescribedLink, End, Measurement
    from topo.topology.topology import Resource


class Measured:
    """The measurements of one file, looked up by what they are of.

    Parameters
    ----------
    links
        The links, ports dealt out.
    measurements
        Rates from one device, port or NUMA node to another. Where several cables run side by side,
        a rate between the two devices is of all of them together, and each gets its part.
    """

    def __init__(self, links: Iterable[DescribedLink], measurements: Iterable[Measurement]) -> None:
        self._seen = {(seen.source, seen.target): seen.rate for seen in measurements}
        self._abreast: Counter[tuple[str, str]] = Counter()
        self._buses: dict[str, Figure] = {}
        for link in links:
            for source, target in ((link.a, link.b), (link.b, link.a)):
                self._abreast[source.device, target.device] += link.cable.count
                if link.cable.reach == "memory":
                    self._note_bus(source, target)

    def of_way(self, source: End, target: End, *, cables: int) -> Figure | None:
        """Return the rate measured on `cables` cables from `source` to `target`, `None` if none."""
        named = self._named(source, target)
        if named is not None:
            return named
        pair = (source.device, target.device)
        rate = self._seen.get(pair)
        if rate is None or rate.value is None or cables == self._abreast[pair]:
            return rate
        return replace(
            rate,
            value=rate.value * cables / self._abreast[pair],
            source=f"{cables} of {self._abreast[pair]} cables: {rate.source}",
        )

    def over(self, resource: Resource) -> Resource:
        """Return a device's own resource; a memory's bus with what was measured on its link."""
        rate = self._buses.get(resource.device) if resource.kind == "memory-bus" else None
        if rate is None:
            return resource
        return replace(resource, capacity=replace(resource.capacity, measured=rate))

    def _named(self, source: End, target: End) -> Figure | None:
        """Return what was measured on the very port or NUMA node of either end."""
        plain = (source.device, target.device)
        return next(
            (
                self._seen[names]
                for names in (
                    (str(source), str(target)),
                    (str(source), target.device),
                    (source.device, str(target)),
                )
                if names != plain and names in self._seen
            ),
            None,
        )

    def _note_bus(self, source: End, target: End) -> None:
        """Remember the rate of a memory's link: of both directions the lower, the bus is one."""
        rate = self._named(source, target) or self._seen.get((source.device, target.device))
        for device in (source.device, target.device):
            known = self._buses.get(device)
            if rate is not None and (known is None or (rate.value or 0) < (known.value or 0)):
                self._buses[device] = rate
