"""What is left of a workload when a link, card, switch, drive or appliance fails."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping
from dataclasses import replace
from typing import Final, Literal

from topo.catalogue.kinds import CARDS, Kind
from topo.description.description import Basis, Workload
from topo.description.flat import names_of
from topo.description.without import without
from topo.display import Displayed
from topo.flows.demands import demands_of, use_matrix, ways_of
from topo.graph import numbered, refine
from topo.limits import MOST_IN_PAIRED_VARIANTS, MOST_IN_VARIANTS, refuse_more
from topo.phrases import brief, ranges
from topo.records import dataclass
from topo.routes.route import Policy
from topo.routes.router import Router
from topo.routes.search import shown_names
from topo.solve.system import rounded
from topo.study.answer import (
    CUT_OFF,
    bottlenecks_of,
    chosen_split,
    naming_demands,
    own_limits_of,
    running,
    shared,
    solved,
)
from topo.study.answers import OwnLimit, PathAnswer, WorkloadAnswer
from topo.study.compare import compare, usable
from topo.study.needs import Feeding, feeding
from topo.study.question import chosen_workloads
from topo.topology.build import build_topology
from topo.topology.resources import Resource
from topo.topology.topology import Link, Topology
from topo.units import format_rate

_FAILING: Final[tuple[Kind, ...]] = (
    "storage",
    "nvme",
    "hba",
    *CARDS,
    "network-switch",
    "pcie-switch",
    "nvswitch",
)
_FOLDED_FROM: Final = 2  # devices: what is alike fails alike, in a small cluster as well


@dataclass(frozen=True, slots=True)
class FailedPart:
    """Something that can fail, for all that are alike.

    Parameters
    ----------
    kind
        The kind of the device, or ``link``.
    names
        The names of all of them, as ranges.
    count
        How many they are.
    first
        The first of them, as `Topology.without` takes it.
    """

    kind: Kind | Literal["link"]
    names: str
    count: int
    first: str


@dataclass(frozen=True, slots=True)
class Loss:
    """What is left when parts fail, and so what is lost.

    Parameters
    ----------
    parts
        What fails: one part, or two.
    rate
        Bytes/s of what still runs: all its bytes over `time`; 0 where nothing does.
    time
        Seconds until the last byte of what still runs; `None` without sizes, or where nothing does.
    stopped, stopped_count
        The endpoints that have no way any more, as ranges, and how many they are.
    bound
        The full resources that stop the others.
    at_most
        Whether an unknown capacity lies on the way.
    own_limits
        What stops those that no full resource stops.
    fed
        How many accelerators are still fed, where that is asked.
    """

    parts: tuple[FailedPart, ...]
    rate: float
    time: float | None
    stopped: tuple[str, ...] = ()
    stopped_count: int = 0
    bound: tuple[Resource, ...] = ()
    at_most: bool = False
    own_limits: tuple[OwnLimit, ...] = ()
    fed: int | None = None

    def __repr__(self) -> str:
        return brief(self, self.outcome)

    @property
    def outcome(self) -> str:
        """What is left without what, in few words."""
        names = " and ".join(part.first for part in self.parts)
        return f"{'at most ' * self.at_most}{format_rate(self.rate)} without {names}"


@dataclass(frozen=True, slots=True)
class Failures(Displayed):
    """What each failure leaves, worst first, beside the answer with nothing failed.

    `variants` builds the topology that a loss is of, to look further; `policy` is how cards and
    walks were chosen.
    """

    topology: Topology
    workload: Workload
    answer: PathAnswer
    basis: Basis
    losses: tuple[Loss, ...]
    variants: Callable[[Loss], Topology]
    policy: Policy

    def __repr__(self) -> str:
        asked = f"{self.topology.name}: {self.workload.name} by {self.answer.outcome}"
        worst = f"; at worst {self.losses[0].outcome}" if self.losses else ""
        return brief(self, asked + worst)


def failures(
    topology: Topology,
    *,
    workload: str | Workload | None = None,
    via: str = "",
    at: Basis = "theoretical",
    policy: Policy | None = None,
    pairs: bool = False,
    progress: Callable[[int, int], None] | None = None,
) -> Failures:
    """Return what each failure leaves of a workload, worst first.

    Every card, switch, drive and storage fails, and of every link a cable, one at a time; a drive's
    only cable is lost with the drive. What symmetry does not tell apart is asked about once.

    Parameters
    ----------
    topology
        The machine or cluster.
    workload
        The workload or its name; the first of the file by default. `topo.study.question.ask` makes
        one of two ends.
    via
        The data path: by default that of `topo.study.compare.usable`.
    at
        Which figure of each capacity to use.
    policy
        How cards, memories and equal walks are chosen.
    pairs
        Whether a second part fails with each.
    progress
        Is told how many of the parts that fail first are done with, and how many there are.

    Examples
    --------
    >>> import topo
    >>> worst = failures(topo.load("gds-textbook"), workload="load", via="direct").losses[0]
    >>> worst.parts[0].names, worst.rate, worst.stopped_count
    ('storage', 0.0, 8)
    """
    if not isinstance(workload, Workload):
        workload = chosen_workloads(topology, workload)[0]
    asked, policy = workload, policy or Policy()
    whole = replace(
        topology.description.folded or topology.description, workloads=(asked,), expectations=()
    )
    names = names_of(whole)
    base = build_topology(whole, fold_from=_FOLDED_FROM, left_of=topology)

    def by(path: str) -> PathAnswer:
        answered = compare(base, workload=asked, via=(path,), at=at, policy=policy)
        return answered.workloads[0][path]

    parts = parts_of(base)

    def refuse_more_than(most: int, ways: int) -> None:
        in_each = len(base.devices) + len(base.links) + ways
        refuse_more(
            in_each * (len(parts) ** 2 // 2 if pairs else len(parts)),
            most,
            f"devices, links and ways are in the variants in which one of {len(parts):,} parts "
            f"{'and then another ' * pairs}fails",
            f"{'leave out --pairs, or ' * pairs}ask about fewer devices: --from and --to",
        )

    most = MOST_IN_PAIRED_VARIANTS if pairs else MOST_IN_VARIANTS
    router = Router(base.telling_apart((asked,)), policy)
    refuse_more_than(most, ways_of(router, asked))  # before the first answer
    answer, _ = usable(base, asked, lambda path: by(path.name), stated=via)

    def variants(parts: Iterable[FailedPart]) -> Topology:
        left = without(whole, (part.first for part in parts), names)
        return build_topology(left, fold_from=_FOLDED_FROM, left_of=base)

    losses: list[Loss] = []
    if answer.verdict != "refused":
        study = _Study(asked, answer, at, policy)
        refuse_more_than(most, sum(len(route.subflows) for route in answer.routes))
        order = {part.first: place for place, part in enumerate(parts)}
        for done, part in enumerate(parts):
            if progress is not None:
                progress(done, len(parts))
            left = variants((part,))
            losses.append(study.loss(left, (part,)))
            if not pairs:
                continue
            for second in parts_of(left):
                # A pair is met twice, once from either side.
                if order.get(second.first, len(order)) >= order[part.first]:
                    both = (part, second)
                    losses.append(study.loss(variants(both), both))
    if pairs:
        losses = [loss for loss in losses if len(loss.parts) > 1]
    losses.sort(key=lambda loss: (-loss.stopped_count, rounded(loss.rate)))
    return Failures(
        base, asked, answer, at, tuple(losses), lambda loss: variants(loss.parts), policy
    )


def answer_after(failures: Failures, loss: Loss) -> tuple[Topology, WorkloadAnswer]:
    """Return the topology that a loss is of, and what it answers by the same data path."""
    left = failures.variants(loss)
    via = (failures.answer.name,)
    return left, compare(left, via=via, at=failures.basis, policy=failures.policy).workloads[0]


# --- what can fail --------------------------------------------------------------------------------


def parts_of(topology: Topology) -> tuple[FailedPart, ...]:
    """Return what can fail in a topology, one part for all that symmetry does not tell apart."""
    classes, folding = _classes(topology), topology.folding
    devices: dict[int, list[str]] = {}
    for device in topology.of_kind(*_FAILING):
        if not topology.steps[device.name]:
            continue  # it is cut off already
        devices.setdefault(classes[device.name], []).append(device.name)
    parts = [
        FailedPart(
            kind=topology[names[0]].kind,
            names=", ".join(shown_names(topology, names)),
            count=sum(topology.cell_size(name) for name in names),
            first=names[0],
        )
        for names in devices.values()
    ]
    links: dict[tuple[object, ...], list[Link]] = {}
    for link in topology.links:
        if link.layer != "memory" and not _is_a_drive_s(link, topology):
            by_class = sorted((classes[end.device], end.side) for end in (link.a, link.b))
            sides = (side if "numa" in side else "" for _, side in by_class)
            key = (*(number for number, _ in by_class), *sides, link.cable)
            links.setdefault(key, []).append(link)
    for alike in links.values():
        first = alike[0]
        plain = (first.a.device, first.b.device)
        ends = [
            ", ".join(shown_names(topology, dict.fromkeys(names)))
            for names in ([link.a.device for link in alike], [link.b.device for link in alike])
        ]
        parts.append(
            FailedPart(
                kind="link",
                names=" -- ".join(ends),
                count=sum(
                    link.times[0] * topology.cell_size(link.a.device) * link.cable.count
                    for link in alike
                ),
                first=" -- ".join(folding.joined(first) if folding else plain),
            )
        )
    return tuple(parts)


def _is_a_drive_s(link: Link, topology: Topology) -> bool:
    """Return whether a drive has nothing but this cable, so that both are lost together."""
    return link.cable.count == 1 and any(
        topology[end.device].kind == "nvme" and len(topology.steps[end.device]) == 1
        for end in (link.a, link.b)
    )


def _classes(topology: Topology) -> dict[str, int]:
    """Return a class for each device, so that symmetry does not tell the members of one apart."""
    workload = topology.description.workloads[0] if topology.description.workloads else None
    ends = [frozenset(names) for names in (workload.sources, workload.targets)] if workload else []
    colours = {
        device.name: (
            id(device.part),
            device.role,
            device.outside,
            *(device.name in names for names in ends),
        )
        for device in topology.devices.values()
    }

    different = dict.fromkeys(link.cable for link in topology.links)
    cables = {cable: number for number, cable in enumerate(different)}

    def around(name: str, classes: Mapping[str, int]) -> tuple[object, ...]:
        return tuple(
            sorted(
                (classes[step.target], cables[step.link.cable], step.entry_side[:4], step.times)
                for step in topology.steps[name]
            )
        )

    refined = refine(colours, around)
    if topology.folding is None:
        return refined
    firsts = {name: topology.folding.representative(name) for name in refined}
    return dict(zip(refined, numbered([refined[firsts[name]] for name in refined]), strict=True))


def stopped_devices(topology: Topology, answer: WorkloadAnswer) -> frozenset[str]:
    """Return the endpoints of a workload that have no way any more by any of its data paths.

    Parameters
    ----------
    topology
        What is left when something failed.
    answer
        What it answers.
    """
    folding = topology.folding
    running: set[str] = set()
    endpoints: set[str] = set()
    for path in answer.paths:
        if path.matrix is not None:
            running |= {demand.route.endpoint for demand in path.matrix.demands}
        elif not any(reason.code in CUT_OFF for reason in path.reasons):
            continue  # what is refused for another reason does not stop for this one
        sides = (answer.workload.sources, answer.workload.targets)
        endpoints |= next((set(side) for side in sides if path.route.endpoint in side), set())
    return frozenset(
        name
        for name in topology.devices
        if name in endpoints
        and (folding.representative(name) if folding is not None else name) not in running
    )


# --- what is left ---------------------------------------------------------------------------------


class _Study:
    """Asks the same question of one variant after the other."""

    def __init__(self, workload: Workload, answer: PathAnswer, at: Basis, policy: Policy) -> None:
        self._workload, self._path, self._at = workload, answer.data_path, at
        self._policy, self._met = policy, answer.met

    def loss(self, topology: Topology, parts: tuple[FailedPart, ...]) -> Loss:
        """Return what is left of the workload in a topology without `parts`."""
        router = Router(topology, self._policy)
        topology = router.topology
        (workload,) = topology.description.workloads
        demands, stopped = running(
            topology, demands_of(router, workload, self._path, basis=self._at)
        )
        if any(demand.route.verdict == "refused" for demand in demands):
            demands, stopped = (), demands
        names = tuple(ranges(demand.names for demand in stopped))
        count = sum(demand.count for demand in stopped)
        need = self._workload.need if isinstance(self._met, Feeding) else None
        if not demands:
            return Loss(parts, 0.0, None, names, count, fed=None if need is None else 0)
        demands = chosen_split(router, demands, self._at, timed=self._workload.sized)
        matrix = use_matrix(topology, demands, basis=self._at)
        with naming_demands(matrix, [part.first for part in parts]):
            run = solved(matrix, sized=self._workload.sized)
        rates = run.allocation.rates
        return Loss(
            parts,
            run.whole.rate,
            run.whole.time,
            names,
            count,
            tuple(full.resource for full in bottlenecks_of(matrix, run.allocation, run.whole)),
            bool(matrix.unknowns(run.peaks)),
            own_limits_of(matrix, run.whole),
            fed=None if need is None else feeding(topology, need, matrix, rates, shared).fed,
        )
