"""What one variant of a machine gives: rate, time, what limits it and what it costs, in one value.

It is asked of many variants, so it is short. The figures are those of `topo.study.compare`.
"""

from __future__ import annotations

import math
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import replace
from typing import TYPE_CHECKING, Literal, TypeAlias

from topo.description.description import Basis, DataPath, Workload
from topo.errors import TopoError
from topo.phrases import listed, shortened
from topo.records import dataclass
from topo.routes.route import Policy, Verdict
from topo.routes.router import Router
from topo.study.answer import (
    Solved,
    bottlenecks_of,
    laid,
    naming_demands,
    own_limits_of,
    solved,
)
from topo.study.answers import OwnLimit, PathAnswer
from topo.study.compare import usable
from topo.study.needs import fed_by, need_of_one
from topo.study.question import asked_workloads

if TYPE_CHECKING:
    from topo.flows.demands import UseMatrix
    from topo.topology.topology import Topology


Standing: TypeAlias = "Verdict | Literal['illegal']"
_MOST = 4  # reasons in a list before "and 3 more"


@dataclass(frozen=True, slots=True)
class Question:
    """What is asked of each variant.

    Parameters
    ----------
    workload
        One workload's name; the first of the file where none is named.
    via
        The data path; where none is named, that of `topo.study.compare.usable`.
    source, target
        Devices or stems: ask about these ends instead of a workload.
    needs, checkpoint
        A model: ask about feeding GPUs with its data, or about writing its checkpoint.
    at, policy
        As for `topo.compare`.
    """

    workload: str = ""
    via: str = ""
    source: str = ""
    target: str = ""
    needs: str | None = None
    checkpoint: str | None = None
    at: Basis = "theoretical"
    policy: Policy = Policy()


@dataclass(frozen=True, slots=True)
class Outcome:
    """What came of one variant.

    Parameters
    ----------
    workload, via
        What was asked; empty where it did not come so far and nobody named it.
    verdict
        That of the data path; ``illegal`` where no such machine can be, or nothing can be said.
    rate, time
        Bytes/s of the whole and seconds until the last byte; `None` where there is none. Of what a
        model needs without end, bytes/s that all accelerators could have.
    would_feed
        How many accelerators like these that rate feeds; `None` where nothing is asked for them,
        or not the same for each.
    at_most
        Whether an unknown capacity lies on the way, so that the rate is an upper bound.
    limited_by
        The full resources that stop what is done last, or its own limit, in words.
    cost
        The prices of all devices together, in the file's currency; `None` where that is not known.
    reason
        Why there is no rate; empty where there is one.
    certified
        Whether rate and time were checked (`topo.solve.certificates`).
    """

    workload: str
    via: str
    verdict: Standing
    rate: float | None = None
    time: float | None = None
    would_feed: int | None = None
    at_most: bool = False
    limited_by: str = ""
    cost: float | None = None
    reason: str = ""
    certified: bool = False


@dataclass(frozen=True, slots=True)
class Laid:
    """A question laid on a variant: the verdict, and the use matrix to solve, `None` if refused.

    `of_one` are the bytes/s that feed one accelerator, where each asks for the same.
    """

    workload: Workload
    answer: PathAnswer
    matrix: UseMatrix | None
    of_one: float | None = None


def asked_workload(topology: Topology, question: Question) -> Workload:
    """Return the workload that is asked about.

    Raises
    ------
    TopoError
        If there is none, none of that name, or nothing between these ends.
    """
    return asked_workloads(
        topology,
        question.workload or None,
        question.source,
        question.target,
        needs=question.needs,
        checkpoint=question.checkpoint,
    )[0]


def lay(topology: Topology, question: Question) -> Laid:
    """Lay what is asked on a machine, without solving it.

    Raises
    ------
    TopoError
        Where it cannot be asked of this machine: a name is not there, nothing joins the ends.
    """
    workload = asked_workload(topology, question)
    router = Router(topology.telling_apart((workload,)), question.policy)
    matrices: dict[str, UseMatrix | None] = {}
    need = workload.need if not workload.sized else None
    # what is needed without end is told by what all could have
    without_end = replace(workload, need=None) if need else workload

    def by(path: DataPath) -> PathAnswer:
        answer, matrices[path.name] = laid(router, without_end, path, basis=question.at)
        return answer

    answer, _ = usable(router.topology, workload, by, stated=question.via)
    matrix = matrices[answer.name]
    of_one = need_of_one(router.topology, need, matrix.demands) if need and matrix else None
    return Laid(workload, answer, matrix, of_one)


def outcome_of(topology: Topology, question: Question, *, priced: Iterable[str] = ()) -> Outcome:
    """Return what a machine gives.

    Parameters
    ----------
    topology
        The machine.
    question
        What is asked of it.
    priced
        Devices without whose price no cost is told.

    Raises
    ------
    TopoError
        As `lay`; and where nothing limits a demand.
    """
    cost = cost_of(prices_of(topology), priced)
    laid_on = lay(topology, question)
    return solved_outcome(laid_on, solve(laid_on), cost)


def illegal(question: Question, error: TopoError) -> Outcome:
    """Return the outcome of a variant that cannot be, or of which nothing can be said."""
    errors = [finding for finding in error.findings if finding.severity == "error"]
    reason = "; ".join(finding.message for finding in (errors or error.findings)[:_MOST])
    return Outcome(question.workload, question.via, "illegal", reason=" ".join(reason.split()))


def solve(question: Laid) -> Solved | None:
    """Solve what is laid; `None` where it is refused.

    Raises
    ------
    UnboundedError
        Where nothing limits a demand.
    """
    matrix = question.matrix
    if matrix is None:
        return None
    with naming_demands(matrix):
        return solved(matrix, sized=question.workload.sized)


def solved_outcome(question: Laid, run: Solved | None, cost: float | None) -> Outcome:
    """Return the outcome of what is laid and solved."""
    answer, matrix = question.answer, question.matrix
    outcome = Outcome(question.workload.name, answer.name, answer.verdict, cost=cost)
    if matrix is None or run is None:
        refused = [reason.text for reason in answer.reasons if reason.effect == "refused"]
        return replace(outcome, reason=listed(refused, most=_MOST))
    whole = run.whole
    bound = bottlenecks_of(matrix, run.allocation, whole)
    own = own_limits_of(matrix, whole)
    names = [shortened(full.resource.name for full in bound)] if bound else []
    names += [_own_limit(limit) for limit in own]
    return replace(
        outcome,
        rate=whole.rate,
        time=whole.time,
        would_feed=fed_by(whole.rate, question.of_one),
        at_most=bool(matrix.unknowns(run.peaks)),
        limited_by=", ".join(dict.fromkeys(names)),
        certified=whole.certified,
    )


def _own_limit(limit: OwnLimit) -> str:
    if limit.workers:
        return "its workers"
    return f"what {limit.model} asks for" if limit.model else "the workload's own limit"


# --- what it costs --------------------------------------------------------------------------------


def prices_of(topology: Topology) -> dict[str, float | None]:
    """Return each device's price, times how many it stands for; `None` where none is stated."""
    prices: dict[str, float | None] = {}
    for name, device in topology.devices.items():
        figure = device.part.figure("price")
        price = figure.value if figure is not None else None
        prices[name] = None if price is None else price * topology.cell_size(name)
    return prices


def cost_of(prices: Mapping[str, float | None], priced: Iterable[str]) -> float | None:
    """Return the sum of all prices, `None` where there is none, or one of `priced` has none.

    The order does not matter to the last digit.
    """
    known: Sequence[float] = [price for price in prices.values() if price is not None]
    if not known or any(prices.get(name, 0.0) is None for name in priced):
        return None
    return math.fsum(known)
