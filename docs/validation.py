"""Published measurements beside what topo says of them: the page `docs/validation.md`.

    python -m docs.validation

asks topo about every case of `tests/validation/cases/` and writes the page anew.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import yaml
from jinja2 import Environment, StrictUndefined

import topo
from topo.catalogue.cables import parse_cable
from topo.catalogue.parts import catalogue
from topo.description.description import Basis
from topo.host.link_rules import packet_share
from topo.host.problems import grouped
from topo.topology.resources import Resource
from topo.topology.topology import Topology
from topo.units import format_rate, parse_rate
from topo.views.resources import class_words

HERE = Path(__file__).parent
ROOT = HERE.parent
PAGE = HERE / "validation.md"
TEMPLATE = HERE / "validation.md.j2"
CASES = ROOT / "tests" / "validation" / "cases"

SORTS = {
    "link": "A link or a drive binds",
    "crossing": "A way crosses root complexes or sockets",
    "memory": "RAM or cores bind",
    "software": "Protocol, server or library binds",
}
"""What a case is about; the first two are held to bounds."""

NEAR = 0.10  # a miss is farther than this
NEAR_CROSSING = 0.30


@dataclass(frozen=True)
class Case:
    """One published measurement, and what is asked of topo.

    Parameters
    ----------
    machine
        A built-in machine, a file beside the cases, or `devices:` and `links:` of one.
    change
        Values of the machine that differ in this case, as `--set` takes them.
    workloads
        What runs, all at once, as a topology's `workloads:` says it. Each states one `via:`.
    asks
        ``total`` of all that runs, ``least`` of any endpoint, ``bus`` bandwidth of a collective.
    measured
        The published rate as its source writes it, and several of it where it says several.
    bound
        Classes or names of resources that limited it, by its source or by its numbers; `workers`
        where only the copying of its own workers did. None where software did.
    slower_than
        Cases of the same source that were faster.
    assumed
        What the source does not say and the machine's file says all the same.
    why
        The reason of a miss in a sentence.
    """

    name: str
    title: str
    source: str
    machine: str | Mapping[str, Any]
    sort: str
    workloads: Mapping[str, Any]
    measured: str
    bound: tuple[str, ...] = ()
    asks: str = "total"
    change: Mapping[str, str] = field(default_factory=dict)
    slower_than: tuple[str, ...] = ()
    assumed: str = ""
    why: str = ""

    @property
    def rate(self) -> float:
        """What was measured, in bytes/s."""
        return parse_rate(self.measured)


@dataclass(frozen=True)
class Outcome:
    """What topo says of a case at one basis: bytes/s, whether at most, and what binds."""

    rate: float
    at_most: bool
    bound: tuple[Resource, ...]


@dataclass(frozen=True)
class Judged:
    """A case with what topo says of it."""

    case: Case
    theoretical: Outcome
    achievable: Outcome

    @property
    def ratio(self) -> float:
        """What topo says at achievable, in parts of what was measured."""
        return self.achievable.rate / self.case.rate

    @property
    def miss(self) -> float:
        """How far it lies off, in parts of what was measured."""
        return abs(self.ratio - 1)

    @property
    def right_bottleneck(self) -> bool:
        """Whether topo names what bound, and nothing else; software is nothing it could name."""
        if self.case.sort == "software":
            return False
        stated = set(self.case.bound)
        named = self.achievable.bound
        if not named:  # no resource is full: its own workers are the limit
            return "workers" in stated
        return all({resource.kind, resource.name} & stated for resource in named)

    @property
    def counts(self) -> bool:
        """Whether it is counted: not where topo is right because the case's source told it."""
        return not (self.states_itself and self.miss <= NEAR and self.right_bottleneck)

    @property
    def binds_words(self) -> str:
        """The classes of what topo names, or that only the question's own workers limit it."""
        kinds: dict[str, dict[str, Resource]] = {}
        for resource in self.achievable.bound:
            kinds.setdefault(resource.kind, {})[resource.id] = resource
        words = (class_words(kind, len(each)) for kind, each in kinds.items())
        return " and ".join(words) or "what one worker copies"

    @property
    def machine_words(self) -> str:
        """Which machine it is: a built-in one by name, a file, or the case itself."""
        machine = self.case.machine
        if not isinstance(machine, str):
            return "in the case"
        return f"`{Path(machine).stem}`"

    @property
    def states_itself(self) -> bool:
        """Whether a figure that binds in topo's answer comes from the case's own source."""
        figures = [
            figure
            for resource in self.achievable.bound
            for figure in (resource.capacity.at("achievable"), resource.capacity.theoretical)
        ]
        page = re.escape(self.case.source.split(",")[0])  # and no page below it
        return any(re.search(rf"{page}(?![\w/])", figure.source) for figure in figures)


def read_cases(folder: Path = CASES) -> tuple[Case, ...]:
    """Return the cases in the order of their names."""
    return tuple(map(read_case, sorted(folder.glob("*.yaml"))))


def read_case(path: Path) -> Case:
    """Return the case of a file."""
    keys = {key.replace("-", "_"): value for key, value in loaded(path).items()}
    for key in ("bound", "slower_than"):
        keys[key] = tuple(keys.get(key, ()))
    return Case(name=path.stem, **keys)


def machine_of(case: Case) -> Topology:
    """Return the machine of a case with the case's workloads in place of its own."""
    values = case.machine
    if isinstance(values, str):
        beside = CASES.parent / values
        values = loaded(beside if beside.is_file() else ROOT / "topologies" / f"{values}.yaml")
    values = {key: value for key, value in values.items() if key != "expect"}
    whole = {"topo": "1", "name": case.name, **values, "workloads": case.workloads}
    return topo.build(whole, overrides=case.change)


def loaded(path: Path) -> dict[str, Any]:
    """Return the mapping in a YAML file, its scalars as they are written."""
    text = path.read_text(encoding="utf-8")
    values: dict[str, Any] = yaml.load(text, Loader=yaml.BaseLoader)  # noqa: S506 (texts alone)
    return values


def outcome(machine: Topology, case: Case, basis: Basis) -> Outcome:
    """Return what topo says of a case: one workload as `compare` does, several as they start."""
    workloads = machine.description.workloads
    if len(workloads) == 1:
        (answer,) = topo.compare(machine, at=basis).workloads[0].paths
        assert answer.rate is not None, f"{case.name}: {answer.verdict}"
        rates = {
            "total": answer.rate,
            "bus": answer.bus_rate,
            "least": min(answer.rates.values(), default=None),
        }
        rate = rates[case.asks]
        assert rate is not None, f"{case.name}: {case.asks} of what is no collective"
        return Outcome(rate, answer.at_most, answer.bound)
    start, *_ = topo.simulate(machine, at=basis).moments
    totals = [workload.rate for workload in start.rates]
    bound = {resource.id: resource for each in start.rates for resource in each.stopped_by}
    at_most = any(workload.at_most for workload in start.rates)
    rate = min(totals) if case.asks == "least" else sum(totals)
    return Outcome(rate, at_most, tuple(bound.values()))


def judge(case: Case) -> Judged:
    """Return a case with topo's answers."""
    machine = machine_of(case)
    return Judged(case, outcome(machine, case, "theoretical"), outcome(machine, case, "achievable"))


def order_holds(slower: Judged, faster: Judged) -> bool | None:
    """Return whether topo puts two in the measured order; `None` where it leaves that open.

    It is open where topo says the same of both, or "at most" of the slower one.
    """
    ratio = slower.achievable.rate / faster.achievable.rate
    if ratio < 1 - 1e-9:
        return True
    same = ratio <= 1 + 1e-9
    return None if slower.achievable.at_most or same else False


# --- the page -------------------------------------------------------------------------------------


@dataclass(frozen=True)
class Tally:
    """How many cases of a sort there are, and how many of them topo has right."""

    sort: str
    count: int
    right: int
    near: int
    near_crossing: int

    @classmethod
    def of(cls, sort: str, judged: Iterable[Judged]) -> Tally:
        """Count the cases of a sort that count."""
        counted = [each for each in judged if each.case.sort == sort and each.counts]
        return cls(
            sort,
            len(counted),
            sum(each.right_bottleneck for each in counted),
            sum(each.miss <= NEAR for each in counted),
            sum(each.miss <= NEAR_CROSSING for each in counted),
        )


def page(judged: Iterable[Judged]) -> str:
    """Return the page: the tally, a table of each sort of case, reasons of misses, sources."""
    judged = tuple(judged)
    by_name = {each.case.name: each for each in judged}
    sources = sorted({each.case.source for each in judged})
    media = catalogue().media
    pcie = {
        name: (parse_cable(f"{name} x16", media).rate.value, media[name].efficiency)
        for name in ("pcie 3", "pcie 4", "pcie 5")
    }
    orders = [
        (slower, by_name[name], order_holds(slower, by_name[name]))
        for slower in judged
        for name in slower.case.slower_than
    ]
    environment = Environment(  # noqa: S701 (Markdown)
        undefined=StrictUndefined, trim_blocks=True, lstrip_blocks=True
    )
    environment.filters["rate"] = format_rate
    template = environment.from_string(TEMPLATE.read_text(encoding="utf-8"))
    return (
        template.render(
            judged=judged,
            sorts=SORTS,
            tallies=[Tally.of(sort, judged) for sort in SORTS],
            sources=sources,
            orders=orders,
            assumptions=grouped(
                {each.case.title: each.case.assumed for each in judged if each.case.assumed}
            ),
            pcie=pcie,
            near=NEAR,
            payloads={payload: packet_share(payload) for payload in (128, 256, 512)},
        ).rstrip()
        + "\n"
    )


def main() -> None:
    """Write the page."""
    PAGE.write_text(page(map(judge, read_cases())), encoding="utf-8")


if __name__ == "__main__":
    main()
