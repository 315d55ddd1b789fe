"""Judge the sentences of `expect:` against what comes out."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

from topo.datapaths.registry import data_path
from topo.errors import Finding
from topo.flows.demands import demands_of
from topo.routes.route import Policy
from topo.routes.router import Router
from topo.routes.verdict import verdict_of
from topo.study.answer import answer, reasons_of
from topo.study.compare import ask, chosen_workloads
from topo.study.words import limited_by, listed
from topo.topology.locality import locality
from topo.units import format_duration, format_rate

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable

    from topo.description.description import Basis, Expectation
    from topo.routes.route import Reason
    from topo.study.answers import PathAnswer
    from topo.topology.topology import Topology


_SLACK = 1e-9


@dataclass(frozen=True, slots=True)
class Judgement:
    """One expectation, whether it holds, and what came out instead."""

    expectation: Expectation
    holds: bool
    outcome: str

    @property
    def finding(self) -> Finding:
        """The finding to show when it does not hold."""
        return Finding(
            "expectation-failed",
            f"expected {self.expectation.text}; {self.outcome}",
            place=self.expectation.place,
        )


def judge(
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
    judges = _Judge(topology, at, policy or Policy())
    return tuple(judges.judge(one) for one in topology.description.expectations)


class _Judge:
    """Judges one file's expectations, answering each question once."""

    def __init__(self, topology: Topology, at: Basis, policy: Policy) -> None:
        self._topology = topology
        self._at = at
        self._router = Router(topology, policy)
        self._answers: dict[tuple[str, str, Basis], PathAnswer] = {}

    def judge(self, one: Expectation) -> Judgement:
        """Return whether `one` holds and what came out."""
        judges: dict[str, Callable[[Expectation], tuple[bool, str]]] = {
            "time": self._quantity,
            "rate": self._quantity,
            "limited-by": self._limited,
            "beats": self._beats,
            "locality": self._locality,
            "possible": self._possible,
            "not-possible": self._possible,
        }
        holds, outcome = judges[one.kind](one)
        return Judgement(one, holds, outcome)

    def _answer(self, one: Expectation, via: str) -> PathAnswer:
        basis = one.basis or self._at
        key = (one.subject, via, basis)
        if key not in self._answers:
            (workload,) = chosen_workloads(self._topology, one.subject)
            path = data_path(self._topology.description, via)
            self._answers[key] = answer(self._router, workload, path, basis=basis)
        return self._answers[key]

    def _quantity(self, one: Expectation) -> tuple[bool, str]:
        found = self._answer(one, one.via)
        value = found.time if one.kind == "time" else found.rate
        if value is None:
            return False, _refusal(found.name, found.reasons)
        shown = format_duration(value) if one.kind == "time" else format_rate(value)
        holds = _related(value, one.relation, one.value)
        if not found.at_most:
            return holds, f"it is {shown}"
        # the true rate may be anything lower, the true time anything longer
        side = "at least" if one.kind == "time" else "at most"
        proven = (">", ">=") if one.kind == "time" else ("<", "<=")
        return holds and one.relation in proven, f"it is {side} {shown}: {_unknown(found)}"

    def _limited(self, one: Expectation) -> tuple[bool, str]:
        found = self._answer(one, one.via)
        if found.rate is None:
            return False, _refusal(found.name, found.reasons)
        names = {
            name for bind in found.bottlenecks for name in (bind.resource.name, bind.resource.id)
        }
        by = limited_by(bind.resource for bind in found.bottlenecks)
        shown = f"it is limited by {by or 'nothing that the file states'}"
        if found.at_most:  # what is unknown may be less, and bind instead
            return False, f"{shown} at most: {_unknown(found)}"
        return one.what in names, shown

    def _beats(self, one: Expectation) -> tuple[bool, str]:
        mine, other = self._answer(one, one.via), self._answer(one, one.what)
        if mine.rate is None or other.rate is None:
            refused = mine if mine.rate is None else other
            return mine.rate is not None, _refusal(refused.name, refused.reasons)
        shown = f"{mine.name} has {_rate(mine)}, {other.name} {_rate(other)}"
        if mine.at_most:
            shown = f"{shown}: {_unknown(mine)}"
        return mine.rate > other.rate * (1 + _SLACK) and not mine.at_most, shown

    def _locality(self, one: Expectation) -> tuple[bool, str]:
        pairs = [
            (first.name, second.name)
            for first in self._topology.select(one.subject)
            for second in self._topology.select(one.what)
            if first.name != second.name or one.subject == one.what
        ]
        found = {pair: locality(self._topology, *pair) for pair in pairs}
        wrong = [pair for pair, name in found.items() if name != one.value_text]
        shown = listed(f"{a} to {b} is {found[a, b] or 'not joined'}" for a, b in wrong)
        return not wrong, shown

    def _possible(self, one: Expectation) -> tuple[bool, str]:
        path = data_path(self._topology.description, one.via)
        workload = ask(self._topology, one.subject, one.what)
        routes = [demand.route for demand in demands_of(self._router, workload, path)]
        reasons = reasons_of(self._topology, workload, path, routes)
        refused = [route.verdict == "refused" for route in routes]
        if any(refused):
            outcome = _refusal(path.name, reasons)
        else:
            outcome = f"its verdict is {verdict_of(reasons)}"
        return (not any(refused) if one.kind == "possible" else all(refused)), outcome


def _refusal(name: str, reasons: Iterable[Reason]) -> str:
    why = listed(reason.text for reason in reasons if reason.effect == "refused")
    return f"{name} is refused: {why}"


def _rate(found: PathAnswer) -> str:
    return "at most " * found.at_most + format_rate(found.rate or 0.0)


def _unknown(found: PathAnswer) -> str:
    return f"unknown is how much passes {listed(found.unknowns)}"


def _related(value: float, relation: str, bound: float) -> bool:
    slack = _SLACK * abs(bound)
    return {
        "<=": value <= bound + slack,
        ">=": value >= bound - slack,
        "<": value < bound - slack,
        ">": value > bound + slack,
    }[relation]
