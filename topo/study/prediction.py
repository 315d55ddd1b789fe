"""What somebody measured beside what topo predicts for the same transfer, running alone."""

from __future__ import annotations

import math
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import field, replace
from typing import Final, Literal

from topo.datapaths.registry import data_path
from topo.description.description import END_OF_KIND, ENDS, Basis
from topo.flows.demands import worker_limit
from topo.records import dataclass
from topo.routes.route import Direction, Route
from topo.routes.router import Router
from topo.routes.search import Placement, Search, passes_gpu_fabric, passes_host, passes_network
from topo.topology.locality import locality
from topo.topology.resources import Resource
from topo.topology.topology import Step, Topology

Ends = tuple[str, ...]
Judged = Literal["fits", "above", "below", "impossible", "unknown"]

# The data path of one engine between RAM and something else, by the far end and the endpoint.
_COPIES: Final[Mapping[tuple[str, str], str]] = {
    ("ram", "gpu"): "pinned",
    ("storage", "ram"): "odirect",
    ("card", "ram"): "nic-host",
    ("ram", "ram"): "memcpy",
}
_SHARED: Final = ("memory-bus", "cpu-copy", "gpu-memory")  # by both directions of a transfer
_ABOVE: Final = 1.02  # times theoretical: more than rounding and clocks explain
_BELOW: Final = 0.85  # times achievable


@dataclass(frozen=True, slots=True)
class Sample:
    """One rate that a result file gives, its ends named as the topology names them.

    Parameters
    ----------
    test
        What was run, as the file calls it.
    source, target
        Devices in the direction of the data; several share it evenly.
    rate
        Bytes/s; of both directions together where `both`.
    via
        The data path where it is more than one copy.
    busy
        Whether the other direction was in use as well.
    port
        The port of a network card that was used, ``slot1/p2``; empty where it has one.
    unwritten
        Why it is compared and not put into the file; empty if it may be.
    workers
        How many cores took part, each one stage after the other; 0 where engines alone did.
    """

    test: str
    source: Ends
    target: Ends
    rate: float
    via: str = ""
    port: str = ""
    both: bool = False
    busy: bool = False
    unwritten: str = ""
    date: str = ""
    workers: int = 0


@dataclass(frozen=True, slots=True)
class Forecast:
    """What topo expects of a transfer alone: bytes/s, what limits it, and on what it rests.

    `theoretical` and `achievable` are `None` where nothing on the way has a known rate; `at_most`
    are those of the two that are upper bounds, since something on the way is unknown.
    """

    theoretical: float | None = None
    achievable: float | None = None
    at_most: tuple[Basis, ...] = ()
    limit: Resource | None = None
    refused: str = ""
    locality: str = ""
    redirected: str = ""
    steps: tuple[Step, ...] = ()


@dataclass(frozen=True, slots=True)
class Reading:
    """A sample, what was expected of it, and the verdict."""

    sample: Sample
    forecast: Forecast

    @property
    def judged(self) -> Judged:
        """Whether the rate is as expected."""
        forecast, rate = self.forecast, self.sample.rate
        if forecast.refused:
            return "impossible"
        if forecast.theoretical is None or forecast.achievable is None:
            return "unknown"
        if rate > forecast.theoretical * _ABOVE:
            return "above"
        if rate >= forecast.achievable * _BELOW:
            return "fits"
        return "unknown" if "achievable" in forecast.at_most else "below"

    @property
    def ratio(self) -> float | None:
        """Measured over achievable, `None` where nothing was expected."""
        expected = self.forecast.achievable
        return self.sample.rate / expected if expected else None


def read_samples(topology: Topology, samples: Iterable[Sample]) -> tuple[Reading, ...]:
    """Return each sample beside its forecast, in their order.

    Examples
    --------
    >>> import topo
    >>> machine = topo.load("dgx-h100")
    >>> (reading,) = read_samples(machine, [Sample("a copy", ("ram0",), ("gpu0",), 55e9)])
    >>> reading.judged, round(reading.forecast.theoretical / 1e9, 2)
    ('fits', 63.02)
    """
    predictor = Predictor(topology)
    return tuple(Reading(sample, predictor.forecast(sample)) for sample in samples)


@dataclass(slots=True)
class _Use:
    """Bytes through each resource for a byte of payload, the links walked, and by which routes."""

    weights: dict[str, float] = field(default_factory=dict)
    extra: dict[str, Resource] = field(default_factory=dict)
    steps: list[Step] = field(default_factory=list)
    routes: list[tuple[Route, float]] = field(default_factory=list)  # each with its share

    def add_route(self, route: Route, share: float = 1.0) -> None:
        """Add the use of a route that carries a share of the payload."""
        self.routes.append((route, share))
        extra = (resource for resource in route.extra if resource.kind != "measured-pair")
        self.extra |= {resource.id: resource for resource in extra}
        for subflow in route.subflows:
            for transfer in subflow.transfers:
                self.steps += [step for step, _ in transfer.shares]
                for name, weight in transfer.use.items():
                    added = share * subflow.share * weight
                    self.weights[name] = self.weights.get(name, 0.0) + added


class Predictor:
    """Predicts single transfers on one `topology`, remembering what it searched."""

    def __init__(self, topology: Topology) -> None:
        self.topology = topology
        self.router = Router(topology)
        self._host = Search(topology, ("host", "memory"), passes_host)
        self._placement = Placement(
            topology,
            host=self._host,
            network=Search(topology, ("network",), passes_network),
            fabric=Search(topology, ("gpu",), passes_gpu_fabric),
        )
        self._forecasts: dict[tuple[object, ...], Forecast] = {}

    def memories_near(self, device: str) -> Ends:
        """Return the memories of the device's own socket; the first device's where it has none."""
        return self._placement.memories_near(device)

    def forecast(self, sample: Sample) -> Forecast:
        """Return what is expected of `sample` if nothing else runs."""
        ends = (sample.source, sample.target)
        key = (*ends, sample.via, sample.port, sample.both, sample.workers)
        if key not in self._forecasts:
            self._forecasts[key] = self._forecast(sample)
        return self._forecasts[key]

    def path_of(self, sample: Sample) -> str:
        """Return the data path by which a sample moves, ``""`` for a copy between RAM and device.

        Between GPUs it is their links if they have any, else peer-to-peer over PCIe.
        """
        kinds = [self.topology[name].kind for name in (sample.source[0], sample.target[0])]
        if sample.via or kinds != ["gpu", "gpu"]:
            return sample.via
        label = locality(self.topology, sample.source[0], sample.target[0])
        return "peer-nvlink" if label.startswith(("NV", "XGMI")) else "peer-pcie"

    def last_step(self, sample: Sample) -> Step | None:
        """Return the step of a copy from or to RAM at its other end, `None` if there are several.

        The other end is a GPU or a card.
        """
        steps = self.forecast(sample).steps
        ends = (*sample.source, *sample.target)
        device = next((name for name in ends if not self.topology[name].is_memory), "")
        at_end = [step for step in steps if device in (step.source, step.target)]
        return at_end[0] if len({(id(step.link), step.source) for step in at_end}) == 1 else None

    # --- one transfer -------------------------------------------------------------------------

    def _forecast(self, sample: Sample) -> Forecast:
        path = self.path_of(sample)
        label = locality(self.topology, sample.source[0], sample.target[0])
        redirected = ""
        if path:
            to_gpu = self.topology[sample.target[0]].kind == "gpu"
            ends = (sample.source, sample.target)
            far, (gpu, *_) = ends if to_gpu else reversed(ends)
            definition = data_path(self.topology.description, path)
            route = self.router.route(definition, far, gpu, "read" if to_gpu else "write")
            if route.verdict == "refused":
                refused = (reason for reason in route.reasons if reason.effect == "refused")
                why = "; ".join(reason.text for reason in refused)
                return Forecast(refused=f"{path} is refused: {why}", locality=label)
            transfers = [transfer for subflow in route.subflows for transfer in subflow.transfers]
            use = _Use()
            use.add_route(route)
            redirected = next(
                (transfer.sent_up_by for transfer in transfers if transfer.sent_up_by), ""
            )
            label = label or locality(self.topology, transfers[0].engine, route.endpoint)
        else:
            use = self._copy_use(sample)
        # the card's chip and the port by which a network test went
        for direction, names in (("out", sample.target), ("in", sample.source)):
            for name in names:
                if self.topology[name].is_nic:
                    port = sample.port or f"{name}/p1"
                    use.weights[f"{name}/chip {direction}"] = 1.0
                    use.weights[f"{port} {direction}"] = 1.0
        forecast = self._limits(use, label, redirected, both=sample.both)
        return (
            self._by_workers(forecast, use.routes, sample.workers) if sample.workers else forecast
        )

    def _by_workers(
        self, forecast: Forecast, routes: Sequence[tuple[Route, float]], workers: int
    ) -> Forecast:
        """Return what so many cores move at most, each one stage after the other.

        What a core copies is a guess of most machines, so that no theory forbids more.
        """
        rates: list[float] = []
        for route, share in routes:
            path = replace(route.data_path, stages="serial", workers=workers)
            laid = replace(route, data_path=path)
            rates.append(worker_limit(self.topology, laid, "achievable") / share)
        slower = min(rates, default=math.inf)
        if forecast.achievable is not None and forecast.achievable <= slower:
            return forecast
        return replace(forecast, achievable=slower, limit=None)

    def _copy_use(self, sample: Sample) -> _Use:
        """Return the use of one copy from or to RAM by one engine; several ends share it."""
        kinds = [self.topology[names[0]].kind for names in (sample.source, sample.target)]
        words = [END_OF_KIND.get(kind, "") for kind in kinds]
        far_word, near_word = sorted(words, key=[*ENDS, ""].index)
        if (far_word, near_word) not in _COPIES:
            return _Use()
        path = data_path(self.topology.description, _COPIES[far_word, near_word])
        direction: Direction = "read" if words[1] == near_word else "write"
        far, near = (sample.source, sample.target)[:: 1 if direction == "read" else -1]
        use = _Use()
        for endpoint in near:
            use.add_route(self.router.route(path, far, endpoint, direction), 1.0 / len(near))
        return use

    def _limits(self, use: _Use, label: str, redirected: str, *, both: bool) -> Forecast:
        ways = 1 + both
        used = [  # by a byte of the sum of both directions, where that is asked
            (resource, weight if resource.kind in _SHARED else weight / ways)
            for name, weight in use.weights.items()
            if (resource := self.topology.resources.get(name) or use.extra.get(name)) is not None
        ]

        def least(basis: Basis) -> float | None:
            """Return what the resources allow one transfer alone, `None` if none has a rate."""
            rates = (
                resource.capacity.rate(basis) / weight for resource, weight in used if weight > 0
            )
            rate = min(rates, default=math.inf)
            if basis != "theoretical":
                both_ways = self.topology.both_ways
                links: dict[str, float] = {}  # bytes both ways
                for resource, weight in used:
                    if resource.id in both_ways:
                        link = both_ways[resource.id]
                        links[link.id] = links.get(link.id, 0.0) + weight * ways
                        rate = min(rate, link.capacity.rate(basis) / links[link.id])
            return rate if rate and math.isfinite(rate) else None

        limit, _ = min(
            used, key=lambda use: use[0].capacity.rate("achievable") / use[1], default=(None, 0.0)
        )
        rates: dict[Basis, float | None] = {
            "theoretical": least("theoretical"),
            "achievable": least("achievable"),
        }
        return Forecast(
            theoretical=rates["theoretical"],
            achievable=(achievable := rates["achievable"]),
            at_most=tuple(
                basis
                for basis, rate in rates.items()
                if rate is not None
                and any(
                    resource.capacity.unknown(basis, rate * weight) for resource, weight in used
                )
            ),
            limit=limit if achievable else None,
            locality=label,
            redirected=redirected,
            steps=tuple(use.steps),
        )
