"""Where in a topology file a measured rate belongs: on a pair, a link, or nowhere."""

from __future__ import annotations

from typing import TYPE_CHECKING

from topo.description.measured_edit import MeasuredLine

if TYPE_CHECKING:
    from collections.abc import Iterator

    from topo.study.prediction import Predictor, Sample
    from topo.topology.topology import Topology


_RAM = ("memory", "cxl-memory")
_CARDS = ("nic", "dpu")
_STORAGE = ("storage", "nvme", "hba")
_DIGITS = 6  # of a written rate; no measurement has more
Ends = tuple[str, str, float]  # source, target, part of the rate


class Placer:
    """Finds the lines of `measured:` for readings of one topology.

    Parameters
    ----------
    topology, predictor
        The machine, and what walks it.
    """

    def __init__(self, topology: Topology, predictor: Predictor) -> None:
        self._topology = topology
        self._predictor = predictor

    def lines(self, sample: Sample, *, date: str = "") -> tuple[MeasuredLine, ...]:
        """Return what a sample is in the file; nothing where no pair or link stands for it."""
        return tuple(
            MeasuredLine(
                source,
                target,
                float(f"{sample.rate * part:.{_DIGITS}g}"),
                sample.test if part == 1 else f"{sample.test}, an equal share",
                date or sample.date,
            )
            for source, target, part in self._ends(sample)
        )

    def _ends(self, sample: Sample) -> Iterator[Ends]:
        kinds = {self._kind(name) for name in (*sample.source, *sample.target)}
        if kinds & set(_STORAGE) and kinds & set(_RAM):
            yield from self._storage_links(sample)
        elif kinds & set(_CARDS) and kinds & set(_RAM):
            yield from self._port_links(sample)
        elif kinds & set(_RAM) and len(sample.source) * len(sample.target) > 1:
            yield from self._last_link(sample)
        elif kinds & set(_CARDS):
            yield from self._card_pair(sample)
        else:
            share = 1.0 / (len(sample.source) * len(sample.target))
            for source in sample.source:
                yield from ((source, target, share) for target in sample.target)

    def _kind(self, name: str) -> str:
        return self._topology[name].kind

    def _last_link(self, sample: Sample) -> Iterator[Ends]:
        """Yield a GPU's own link, where several memories share the copy."""
        step = self._predictor.last_step(sample)
        if step is not None:
            yield step.source, step.target, 1.0

    def _storage_links(self, sample: Sample) -> Iterator[Ends]:
        """Yield the link of each storage, if it has one neighbour: it and its drive are meant."""
        reads = self._kind(sample.source[0]) in _STORAGE
        storages = sample.source if reads else sample.target
        for name in storages:
            near = list(dict.fromkeys(step.target for step in self._topology.steps[name]))
            if len(near) == 1:
                ends = (name, near[0]) if reads else (near[0], name)
                yield (*ends, 1.0 / len(storages))

    def _port_links(self, sample: Sample) -> Iterator[Ends]:
        """Yield the cable at the port that a network test went by."""
        out = self._kind(sample.target[0]) in _CARDS
        card = (sample.target if out else sample.source)[0]
        for step in self._topology.steps[card]:
            ends = (step.link.a, step.link.b)
            if step.link.layer == "network" and sample.port in map(str, ends):
                port = sample.port if self._several(card) else card
                yield (port, step.target, 1.0) if out else (step.target, port, 1.0)
                return

    def _card_pair(self, sample: Sample) -> Iterator[Ends]:
        """Yield GPU and card, if the card has one port: the pair is of the whole card."""
        card = next(n for n in (*sample.source, *sample.target) if self._kind(n) in _CARDS)
        if not self._several(card):
            yield sample.source[0], sample.target[0], 1.0

    def _several(self, card: str) -> bool:
        ports = self._topology[card].part.ports
        return ports is not None and ports.count != 1
