"""What a host's set-up costs: topo's own answers where all is well, and with one thing as it is."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import replace
from typing import TYPE_CHECKING, Final

from topo.errors import TopoError
from topo.records import dataclass
from topo.study.compare import compare
from topo.units import format_rate

if TYPE_CHECKING:
    from topo.description.description import Basis
    from topo.host.problems import Ask, Problem
    from topo.routes.route import Policy
    from topo.study.answers import PathAnswer
    from topo.topology.topology import Topology

_AS_FAST: Final = 1e-6  # relative: below it two rates read the same
_MOST: Final = 3


@dataclass(frozen=True, slots=True)
class _Answer:
    """One question, the data path, and its rate: `None` where it is refused."""

    what: str
    path: str
    rate: float | None
    at_most: bool
    limits: tuple[str, ...]

    def __str__(self) -> str:
        if self.rate is None:
            return "refused"
        return f"{'at most ' * self.at_most}{format_rate(self.rate)}"


def cost(machine: Topology, problem: Problem, at: Basis, policy: Policy) -> tuple[str, ...]:
    """Return sentences on what a problem costs where all else is well.

    Parameters
    ----------
    machine
        The machine with everything set up well.
    problem
        The one in question.
    at
        Which figure of each capacity to use.
    policy
        How a choice among several routes is made.
    """
    if problem.unpriced:
        return (f"cost: {problem.unpriced}",)
    if problem.compared:
        return (_compared(machine, problem.compared, at, policy),)
    try:
        better = machine.replace(dict(problem.better)) if problem.better else machine
        as_it_is = machine.replace(dict(problem.now)) if problem.now else machine
        as_it_is = as_it_is.without(*problem.without) if problem.without else as_it_is
    except TopoError as error:  # the parts, as the catalogue has them, cannot be so
        return (f"cost: not known: {error.findings[0].message}",)
    losses: list[str] = []
    kept: list[str] = []
    for ask in problem.asks:
        rates = {(answer.what, answer.path): answer for answer in _answers(better, ask, at, policy)}
        for answer in _answers(as_it_is, ask, at, policy):
            could_be = rates.get((answer.what, answer.path))
            if could_be is None or could_be.rate is None:
                continue
            if answer.rate is not None and could_be.rate <= answer.rate * (1 + _AS_FAST):
                limits = f" ({', '.join(answer.limits)})" if answer.limits else ""
                kept.append(f"cost: none: {answer.what} by {answer.path} is {answer}{limits}")
                continue
            words = str(answer)
            by_default = problem.instead if ask == problem.asks[0] else None
            through = by_default and next(_answers(as_it_is, by_default, at, policy), None)
            if answer.rate is None and through and through.rate is not None:
                words = f"refused, and {through} by {through.path}"
            losses.append(
                f"cost: {answer.what} by {answer.path} is {words}, without this {could_be}"
            )
    return tuple(losses[:_MOST] or kept[:1]) or ("cost: not known: nothing here asks for it",)


def _compared(machine: Topology, asks: tuple[Ask, ...], at: Basis, policy: Policy) -> str:
    """Return a sentence on two questions of one machine."""
    first, second = (next(_answers(machine, ask, at, policy), None) for ask in asks)
    if first is None or second is None or second.rate is None:
        return "cost: not known: nothing here asks for it"
    is_none = first.rate is not None and second.rate <= first.rate * (1 + _AS_FAST)
    lead = "cost: none by what is known: " if is_none else "cost: "
    other = f"by {second.path}" if second.what == first.what else f"{second.what} by {second.path}"
    return f"{lead}{first.what} by {first.path} is {first}, {other} {second}"


def _answers(machine: Topology, ask: Ask, at: Basis, policy: Policy) -> Iterator[_Answer]:
    """Yield the answers to a question: of two ends by its path, else by the best of the usual ones.

    A question that the machine has no ends for yields nothing.
    """
    source, target, via = ask
    if source and not policy.pairing:
        policy = replace(policy, pairing="nearest")
    try:
        comparison = compare(
            machine, source=source, target=target, via=(via,) if via else (), at=at, policy=policy
        )
    except TopoError:
        return
    for answer in comparison.workloads:
        what = f"{source} to {target}" if source else answer.workload.name
        for path in answer.paths if not source else answer.paths[-1:]:
            yield _answer(what, path)


def _answer(what: str, path: PathAnswer) -> _Answer:
    rate = path.rate if path.verdict != "refused" else None
    limits = tuple(resource.name for resource in path.bound[:1])
    return _Answer(what, path.name, rate, path.at_most, limits)
