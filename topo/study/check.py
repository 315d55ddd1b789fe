"""Judge the sentences of `expect:` against what comes out."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from itertools import islice, product
from typing import TYPE_CHECKING

from topo.datapaths.registry import data_path
from topo.description.description import Basis, DataPath, Device, Expectation
from topo.errors import UnknownNameError
from topo.flows.demands import demands_of
from topo.phrases import brief
from topo.records import dataclass
from topo.routes.route import Policy
from topo.routes.router import Router
from topo.routes.verdict import verdict_of
from topo.solve.system import TIE
from topo.study import answers
from topo.study.answer import answer, reasons_of
from topo.study.compare import usable
from topo.study.question import ask, chosen_workloads
from topo.topology.locality import locality
from topo.topology.topology import Topology

if TYPE_CHECKING:
    from topo.topology.folding import Folding


@dataclass(frozen=True, slots=True)
class Judgement:
    """One expectation, whether it holds, and what came out."""

    expectation: Expectation
    holds: bool
    outcome: answers.CheckOutcome

    def __repr__(self) -> str:
        holds = "holds" if self.holds else "does not hold"
        return brief(self, f"{self.expectation.text}: {holds}")


def check(
    topology: Topology, *, at: Basis = "theoretical", policy: Policy | None = None
) -> tuple[Judgement, ...]:
    """Return a judgement for every line of `expect:`, in the order of the file.

    Parameters
    ----------
    topology
        The machine.
    at
        The basis of lines that do not name one.
    policy
        How cards, memories and equal walks are chosen.
    """
    judge = _Judge(topology, at, policy or Policy())
    return tuple(map(judge.judgement, topology.description.expectations))


class _Judge:
    """Judges one file's expectations, answering each question once."""

    def __init__(self, topology: Topology, at: Basis, policy: Policy) -> None:
        self._topology = topology
        self._at = at
        self._router = Router(topology, policy)
        self._answers: dict[tuple[str, str, Basis], answers.PathAnswer] = {}

    def judgement(self, expectation: Expectation) -> Judgement:
        """Return whether an expectation holds and what came out."""
        judges: dict[str, Callable[[Expectation], tuple[bool, answers.CheckOutcome]]] = {
            "time": self._time_or_rate,
            "rate": self._time_or_rate,
            "limited-by": self._limited_by,
            "beats": self._beats,
            "feeds": self._feeds,
            "locality": self._locality,
            "possible": self._possible,
            "not-possible": self._possible,
        }
        try:
            holds, outcome = judges[expectation.kind](expectation)
        except UnknownNameError as error:
            if not self._topology.description.lost:
                raise
            holds, outcome = False, answers.OutOfOrder(error.findings[0].message)
        return Judgement(expectation, holds, outcome)

    def _answer(self, expectation: Expectation, via: str) -> answers.PathAnswer:
        basis = expectation.basis or self._at
        key = (expectation.subject, via, basis)
        if key not in self._answers:
            (workload,) = chosen_workloads(self._topology, expectation.subject)

            def by(path: DataPath) -> answers.PathAnswer:
                return answer(self._router, workload, path, basis=basis)

            self._answers[key], _ = usable(self._topology, workload, by, stated=via)
        return self._answers[key]

    def _time_or_rate(self, expectation: Expectation) -> tuple[bool, answers.CheckOutcome]:
        path = self._answer(expectation, expectation.via)
        time = expectation.kind == "time"
        value = path.time if time else path.rate
        if expectation.what == "busbw":
            value = path.bus_rate
        if value is None:
            return False, answers.PathRefused(path.name, path.reasons)
        slack = TIE * abs(expectation.value)
        relation = expectation.relation
        holds = {
            "<=": value <= expectation.value + slack,
            ">=": value >= expectation.value - slack,
            "<": value < expectation.value - slack,
            ">": value > expectation.value + slack,
        }[relation]
        # past an unknown capacity the true rate may be anything lower, the true time longer
        proven = not path.at_most or relation in ((">", ">=") if time else ("<", "<="))
        return holds and proven, answers.TimeOrRate("time" if time else "rate", value, path)

    def _limited_by(self, expectation: Expectation) -> tuple[bool, answers.CheckOutcome]:
        path = self._answer(expectation, expectation.via)
        if path.rate is None:
            return False, answers.PathRefused(path.name, path.reasons)
        names = {
            name for full in path.bottlenecks for name in (full.resource.name, full.resource.id)
        }
        ends = [end.partition("/") for end in expectation.what.split(" -> ")]
        selections = (
            dict.fromkeys(
                f"{device.name}{slash}{side}" for device in self._standing_for(name.strip())
            )
            for name, slash, side in ends
        )
        resources = self._topology.resources
        if self._topology.folding is not None:  # what binds is named for all that are alike
            alike = self._topology.alike_resources
            names = {
                name
                for resource in resources.values()
                if (first := alike[resource.id].resource).name in names or first.id in names
                for name in (resource.name, resource.id)
            }
        # A stem means every device of it; only neighbours have a link.
        selected = [
            name
            for name in map(" -> ".join, product(*selections))
            if len(ends) == 1 or name in resources or name in names
        ]
        binding = bool(selected) and names.issuperset(selected)
        # what is unknown may be less, and bind instead
        return binding and not path.at_most, answers.LimitedBy(path)

    def _beats(self, expectation: Expectation) -> tuple[bool, answers.CheckOutcome]:
        path = self._answer(expectation, expectation.via)
        rival = self._answer(expectation, expectation.what)
        if path.rate is None or rival.rate is None:
            refused = path if path.rate is None else rival
            return path.rate is not None, answers.PathRefused(refused.name, refused.reasons)
        beats = path.rate > rival.rate * (1 + TIE) and not path.at_most
        return beats, answers.TwoRates(path, rival)

    def _feeds(self, expectation: Expectation) -> tuple[bool, answers.CheckOutcome]:
        from topo.study.needs import Feeding

        path = self._answer(expectation, expectation.via)
        if not isinstance(path.met, Feeding):
            return False, answers.PathRefused(path.name, path.reasons)
        # past an unknown capacity the rate may be anything lower, and fewer fed
        return path.met.fed >= expectation.value and not path.at_most, answers.Fed(path)

    def _locality(self, expectation: Expectation) -> tuple[bool, answers.CheckOutcome]:
        folding = self._topology.folding
        classes = (
            _localities(self._topology, expectation)
            if folding is None
            else _folded_localities(self._topology, folding, expectation)
        )
        wrong = tuple(pair for pair in classes if pair[2] != expectation.value_text)
        return not wrong, answers.OtherLocalities(wrong)

    def _standing_for(self, pattern: str) -> list[Device]:
        """Return the devices that a text means; in a folded topology those that stand for them."""
        topology = self._topology
        if topology.folding is None:
            return list(topology.select(pattern))
        names = (topology.folding.stands_in(device.name) for device in topology.select(pattern))
        return [topology[name] for name in dict.fromkeys(names)]

    def _possible(self, expectation: Expectation) -> tuple[bool, answers.CheckOutcome]:
        path = data_path(self._topology.description, expectation.via)
        workload = ask(self._topology, expectation.subject, expectation.what)
        router = self._router
        told_apart = self._topology.telling_apart((workload,))
        if told_apart is not self._topology:
            router = Router(told_apart, router.policy)
        routes = [demand.route for demand in demands_of(router, workload, path)]
        reasons = reasons_of(router.topology, workload, path, routes)
        refused = [route.verdict == "refused" for route in routes]
        outcome: answers.CheckOutcome = answers.VerdictIs(verdict_of(reasons))
        if any(refused):
            outcome = answers.PathRefused(path.name, reasons)
        possible = expectation.kind == "possible"
        return (not any(refused) if possible else all(refused)), outcome


# --- localities -----------------------------------------------------------------------------------


def _localities(topology: Topology, expectation: Expectation) -> Iterator[tuple[str, str, str]]:
    """Yield every pair that an expectation means, with its class."""
    for first in topology.select(expectation.subject):
        for second in topology.select(expectation.what):
            if first.name != second.name or expectation.subject == expectation.what:
                yield first.name, second.name, locality(topology, first.name, second.name)


def _folded_localities(
    topology: Topology, folding: Folding, expectation: Expectation
) -> Iterator[tuple[str, str, str]]:
    """Yield pairs that stand for all that an expectation means, with their classes.

    Inside a server those of one that is alike; of two servers any, as no host link joins them.
    """
    between = (
        folding.unit(link.a.device) != folding.unit(link.b.device)
        for link in topology.links
        if link.layer != "network"
    )
    if any(between):
        yield from _localities(topology.written_out(), expectation)
        return
    first, second = (
        folding.by_unit(device.name for device in topology.select(pattern))
        for pattern in (expectation.subject, expectation.what)
    )
    told: set[tuple[tuple[str, ...], ...]] = set()
    for unit in first:
        names = (first[unit], second.get(unit, ()))
        alike = tuple(
            tuple(folding.representative(folding.stands_in(name)) for name in of_side)
            for of_side in names
        )
        if alike in told:
            continue
        told.add(alike)
        for a, a_alike in zip(names[0], alike[0], strict=True):
            for b, b_alike in zip(names[1], alike[1], strict=True):
                if a != b or expectation.subject == expectation.what:
                    yield a, b, locality(topology, a_alike, b_alike)
    apart = ((a, b) for a in islice(first, 2) for b in islice(second, 2) if a != b)
    for a, b in islice(apart, 1):
        yield first[a][0], second[b][0], ""
