"""What `repr` says of values, and what an answer gives for a name."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import fields, is_dataclass
from itertools import chain

import pytest

import topo
from tests.machines import UNLIKE
from topo.routes.route import Route

LONGEST, LARGE = 300, 100


@pytest.fixture(scope="module")
def textbook():
    return topo.load("gds-textbook")


@pytest.fixture(scope="module")
def comparison(textbook):
    return topo.compare(textbook)


def answers_about(machine: topo.Topology) -> Iterator[object]:
    """Yield what each question about a machine gives."""
    yield machine
    yield topo.compare(machine)
    yield topo.draw(machine, answer=None)
    yield from topo.check(machine)
    yield from topo.paths(machine, via=["legacy", "direct"])
    yield topo.bottleneck(machine)
    yield topo.simulate(machine)
    if len(machine.devices) < LARGE:  # of which these are studies of a minute
        yield topo.failures(machine)
        yield topo.upgrades(machine)


def reachable(values: Iterator[object], depth: int = 9, few: int = 3) -> Iterator[object]:
    """Yield one value of each type that is in some values, and in these: no more than it takes."""
    seen: dict[type, int] = {}

    def walk(value: object, level: int) -> Iterator[object]:
        if isinstance(value, Mapping):
            for item in chain.from_iterable(value.items() if len(value) < 10 else ()):
                yield from walk(item, level)
        elif isinstance(value, tuple | list):
            for item in value[:few]:
                yield from walk(item, level)
        elif is_dataclass(value) and level and seen.get(type(value), 0) < 20 * few:
            seen[type(value)] = seen.get(type(value), 0) + 1
            yield value
            for field in fields(value):
                yield from walk(getattr(value, field.name), level - 1)

    for value in values:
        yield from walk(value, depth)


@pytest.mark.parametrize("name", UNLIKE)
def test_whatever_an_answer_holds_says_itself_in_a_line(name):
    values = list(reachable(answers_about(topo.load(name))))
    assert {type(value).__name__ for value in values} >= {"Comparison", "Ladder", "Route", "Demand"}
    for value in values:
        text = repr(value)
        assert len(text) <= LONGEST, f"{type(value).__name__}: {len(text)} characters"
        assert "\n" not in text


def test_a_comparison_says_what_matters(comparison):
    assert repr(comparison) == (
        "<Comparison gds-textbook: load by legacy 100 GB/s, direct 100 GB/s; "
        "checkpoint by legacy 100 GB/s, direct 100 GB/s>"
    )
    load = comparison["load"]
    assert repr(load) == "<WorkloadAnswer load by legacy 100 GB/s, direct 100 GB/s>"
    assert repr(load["direct"]) == (
        "<PathAnswer direct 100 GB/s, 3 hops, limited by slot1/chip, slot2/chip>"
    )
    assert repr(load["direct"].route) == "<Route direct: storage -> slot1 -> PCIe -> gpu0>"


def test_a_refusal_and_a_bound_are_said():
    refused = topo.compare(topo.load("workstation-4gpu"))
    assert "direct refused" in repr(refused)
    bound = topo.compare(topo.load("kv-cache"), workload="remote")
    assert "direct at most " in repr(bound)


def test_the_other_questions_say_what_matters(textbook):
    assert repr(topo.bottleneck(textbook)) == (
        "<Ladder load by direct 100 GB/s, limited by slot1/chip, slot2/chip, "
        "then 126.03 GB/s, then 200 GB/s, then 504.12 GB/s>"
    )
    assert repr(topo.simulate(textbook)) == (
        "<Simulation gds-textbook: load by direct until 6.4 s, checkpoint by direct until 1.4 s>"
    )
    assert repr(topo.failures(textbook)) == (
        "<Failures gds-textbook: load by direct 100 GB/s; at worst 0 GB/s without storage>"
    )
    ranked = topo.upgrades(textbook)
    assert repr(ranked).startswith("<Upgrades gds-textbook: load by direct 6.4 s; of ")
    assert ranked.ranked[0].title in repr(ranked)
    assert repr(topo.upgrades(topo.load("kv-cache"))).endswith("changes none gains anything>")
    assert repr(topo.check(textbook)[0]) == "<Judgement load via direct <= 6.5 s: holds>"
    assert repr(textbook.resources["slot1/chip in"]) == "<Resource slot1/chip in: 50 GB/s>"
    assert repr(textbook["gpu0"]) == "<Device gpu0: h100-sxm-80gb, gpu>"


def test_a_line_shows_no_control_characters():
    text = "topo: 1\nname: box\ntitle: plain\ndevices: {gpu0: h100-sxm-80gb}\nlinks: []\n"
    machine = topo.loads(text)
    hostile = Route(
        topo.compare(topo.load("gds-textbook"))["load"]["direct"].data_path,
        "read",
        f"{machine.name}\x1b[31m\u202e",
        "refused",
    )
    assert repr(hostile) == r"<Route direct: box\x1b[31m\u202e refused>"


# --- names ----------------------------------------------------------------------------------------


def test_an_answer_is_had_by_workload_and_data_path(comparison, textbook):
    assert comparison["load"]["direct"].time_s == 6.4
    alone = topo.compare(textbook, workload="load")
    assert alone["direct"] is alone["load"]["direct"]
    assert topo.simulate(textbook)["load"].finish == 6.4


@pytest.mark.parametrize(
    ("names", "message"),
    [
        (["direct"], r'direct is a data path of load and checkpoint.*comparison\["load"\]'),
        (["lod"], "no workload lod .*did you mean `load`"),
        (["load", "dirct"], "no data path dirct .*did you mean `direct`"),
    ],
)
def test_a_name_that_is_not_enough_or_not_there(comparison, names, message):
    *holders, last = names
    value = comparison[holders[0]] if holders else comparison
    with pytest.raises(topo.TopoError, match=message) as raised:
        _ = value[last]
    assert isinstance(raised.value, KeyError)  # as of any mapping


def test_a_name_of_the_only_workload_that_is_not_there(textbook):
    with pytest.raises(KeyError, match=r"no workload or data path legcy .*did you mean `legacy`"):
        topo.compare(textbook, workload="load")["legcy"]
    with pytest.raises(KeyError, match=r"no workload lod"):
        topo.simulate(textbook)["lod"]


# --- the usual picture ----------------------------------------------------------------------------


def test_a_machine_is_drawn_with_its_usual_routes(textbook, comparison):
    usual = topo.draw(textbook)
    assert usual == topo.draw(textbook, answer=comparison["load"])
    assert usual != topo.draw(textbook, answer=None)


def test_a_machine_without_workloads_is_drawn_alone():
    text = "topo: 1\nname: box\ndevices: {cpu0: xeon-8480c, gpu0: l40s}\n"
    machine = topo.loads(f"{text}links: [gpu0 -- cpu0: pcie 4 x16]\n")
    assert topo.draw(machine) == topo.draw(machine, answer=None)
