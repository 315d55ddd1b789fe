"""Completion times: rates change when a demand arrives or has all its bytes."""

from __future__ import annotations

import dataclasses
import math

import pytest
from hypothesis import given
from hypothesis import strategies as st

from bench.solve_instances import FAMILIES
from tests.solve.systems import systems
from topo.errors import SolverError, UnboundedError
from topo.flows.demands import System
from topo.solve.arrays import Arrays, floats
from topo.solve.certificates import certify_timeline
from topo.solve.events import finishes
from topo.solve.fluid import Span, Timeline, complete

SHARED = System.of([10.0], [{0: 1.0}, {0: 1.0}])


def test_the_rest_speed_up_when_one_is_done() -> None:
    # 5 + 5 until a has 20 at 4 s; b has 20 of 50 and goes on at 10: 3 s more
    timeline = complete(SHARED, [20.0, 50.0])
    assert timeline.finishes == (4.0, 7.0)
    assert timeline.spans == (
        Span(0.0, 4.0, (0, 1), (5.0, 5.0), ((0,), (0,))),
        Span(4.0, 7.0, (1,), (10.0,), ((0,),)),
    )
    assert timeline.end == 7.0


def test_who_arrives_takes_a_share() -> None:
    # a alone at 10 until 2 s; then 5 + 5: a's last 20 take until 6; b alone from there
    timeline = complete(SHARED, [40.0, 30.0], [0.0, 2.0])
    assert timeline.finishes == (6.0, 7.0)


def test_who_comes_in_the_same_moment_as_another_ends_does_not_wait() -> None:
    # the second comes one number after the first ends, and is done in a nanosecond
    system = System.of([1e11, 1e9], [{0: 1.0}, {0: 1.0}, {1: 1.0}])
    timeline = complete(system, [640e9, 100.0, 1e12], [0.0, math.nextafter(6.4, math.inf), 0.0])
    assert timeline.certified
    assert timeline.finishes == pytest.approx((6.4, 6.4, 1000.0))


def test_who_is_done_in_the_same_moment_as_another_is_done_with_it() -> None:
    # the second lacks half a byte, half a nanosecond, after 1000 s
    system = System.of([1e9, 1e9], [{0: 1.0}, {1: 1.0}])
    timeline = complete(system, [1e12, 1e8 + 0.5], [0.0, 999.9])
    assert timeline.certified
    assert timeline.finishes == (1000.0, 1000.0)


def test_a_pause_has_no_span() -> None:
    timeline = complete(SHARED, [10.0, 10.0], [0.0, 5.0])
    assert timeline.finishes == (1.0, 6.0)
    assert [(span.start, span.end) for span in timeline.spans] == [(0.0, 1.0), (5.0, 6.0)]


def test_equal_ends_are_one_event() -> None:
    # thirds of 1 in floats: still one span
    timeline = complete(System.of([1.0], [{0: 1.0}] * 3), [0.1 + 0.2, 0.3, 0.3])
    assert len(timeline.spans) == 1
    assert len(set(timeline.finishes)) == 1


def test_no_bytes_are_done_on_arrival() -> None:
    timeline = complete(SHARED, [0.0, 10.0], [3.0, 0.0])
    assert timeline.finishes == (3.0, 1.0)


def test_nobody_is_done_at_once() -> None:
    assert complete(System.of([1.0], []), []).end == 0.0


def test_load_and_checkpoint_at_once_as_the_textbook_server_has_them() -> None:
    # Direct: two cards of 50 GB/s a direction. Load 640 GB, checkpoint 140 GB: 6.4 s and 1.4 s.
    chips = [50.0] * 4
    load = [{gpu // 4: 1.0} for gpu in range(8)]
    write = [{2 + gpu // 4: 1.0} for gpu in range(8)]
    sizes = [80.0] * 8 + [17.5] * 8
    direct = complete(System.of(chips, load + write), sizes)
    assert max(direct.finishes[:8]) == pytest.approx(6.4)
    assert max(direct.finishes[8:]) == pytest.approx(1.4)
    # Legacy: all cross 400 GB/s of memory four times: 50 + 50 until the checkpoint is written at
    # 2.8 s, then 100 for the other 500 GB.
    both = [{**use, 4: 4.0} for use in load + write]
    legacy = complete(System.of([*chips, 400.0], both), sizes)
    assert max(legacy.finishes[8:]) == pytest.approx(2.8)
    assert max(legacy.finishes[:8]) == pytest.approx(7.8)


@pytest.mark.parametrize(
    ("sizes", "arrivals"),
    [
        ([1.0], None),
        ([1.0, -1.0], None),
        ([1.0, math.inf], None),
        ([1.0, math.nan], None),
        ([1.0, 1.0], [0.0]),
        ([1.0, 1.0], [0.0, -1.0]),
        ([1.0, 1.0], [0.0, math.nan]),
    ],
)
def test_nonsense_is_refused(sizes: list[float], arrivals: list[float] | None) -> None:
    with pytest.raises(SolverError):
        complete(SHARED, sizes, arrivals)


def test_without_end() -> None:
    with pytest.raises(UnboundedError):
        complete(System.of([math.inf], [{0: 1.0}]), [1.0])


SIZES = st.one_of(st.integers(0, 20).map(float), st.floats(0.1, 100.0))


@given(systems(most_demands=6), st.data())
def test_every_timeline_has_its_certificate(system: System, data: st.DataObject) -> None:
    count = system.demand_count
    sizes = data.draw(st.lists(SIZES, min_size=count, max_size=count))
    arrivals = data.draw(
        st.one_of(st.none(), st.lists(st.integers(0, 5).map(float), min_size=count, max_size=count))
    )
    timeline = complete(system, sizes, arrivals)
    assert certify_timeline(system, sizes, timeline, arrivals) == ()
    assert complete(system, sizes, arrivals, spans=False) == Timeline(timeline.finishes)


@given(systems(most_demands=6), st.floats(1e-3, 1e12), st.data())
def test_twice_the_bytes_take_twice_as_long(
    system: System, factor: float, data: st.DataObject
) -> None:
    count = system.demand_count
    sizes = data.draw(st.lists(SIZES, min_size=count, max_size=count))
    expected = [end * factor for end in complete(system, sizes).finishes]
    found = complete(system, [size * factor for size in sizes]).finishes
    assert found == pytest.approx(expected, rel=1e-10)


@given(systems(most_demands=14, most_resources=8), st.data())
def test_solving_only_who_is_touched_gives_the_same_ends(
    system: System, data: st.DataObject
) -> None:
    count = system.demand_count
    sizes = data.draw(st.lists(SIZES, min_size=count, max_size=count))
    times = st.one_of(st.just(0.0), st.integers(0, 5).map(float), st.floats(0.0, 20.0))
    arrivals = data.draw(st.lists(times, min_size=count, max_size=count))
    touched = finishes(Arrays.of(system), floats(sizes), floats(arrivals))
    assert touched.tolist() == pytest.approx(complete(system, sizes, arrivals).finishes, rel=1e-11)


@pytest.mark.parametrize("family", FAMILIES)
def test_many_demands_end_when_all_are_solved_anew(
    family: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    system = FAMILIES[family](101)
    if system.demand_count > 1_000:
        system = _first(system, 60)
    sizes = [1e9 * (1 + 37 * demand % 91) for demand in range(system.demand_count)]
    arrivals = [0.05 * (demand % 7) for demand in range(system.demand_count)]
    slow = complete(system, sizes, arrivals, spans=True)
    monkeypatch.setattr("topo.solve.fluid._ANEW_ENTRIES", 1_000)
    fast = complete(system, sizes, arrivals)
    assert fast.spans == ()
    assert fast.finishes == pytest.approx(slow.finishes, rel=1e-11)


def _first(system: System, count: int) -> System:
    end = system.starts[count]
    return System(
        system.capacities,
        system.starts[: count + 1],
        system.resources[:end],
        system.multiplicities[:end],
        system.weights[:count],
        system.limits[:count],
    )


RIGHT = complete(SHARED, [20.0, 50.0])


@pytest.mark.parametrize(
    ("lie", "complaint"),
    [
        (dataclasses.replace(RIGHT, spans=RIGHT.spans[:1]), "demand 1 moved 20.0 of 50.0 B"),
        (dataclasses.replace(RIGHT, finishes=(4.0, 8.0)), "demand 1 waits"),
        (dataclasses.replace(RIGHT, finishes=(3.0, 7.0)), "demand 0 runs before it arrives or"),
        (dataclasses.replace(RIGHT, spans=RIGHT.spans[::-1]), "the span from 0.0 to 4.0 s is out"),
        (
            Timeline((4.0, 7.0), (Span(0.0, 4.0, (0,), (5.0,), ((),)), RIGHT.spans[1])),
            "from 0.0 to 4.0 s: demand 0 could get more",
        ),
    ],
)
def test_each_lie_is_caught(lie: Timeline, complaint: str) -> None:
    assert any(said.startswith(complaint) for said in certify_timeline(SHARED, [20.0, 50.0], lie))
    assert certify_timeline(SHARED, [20.0, 50.0], RIGHT) == ()


def test_something_to_move_before_nothing() -> None:
    lie = Timeline((2.0, 1.0), complete(SHARED, [0.0, 10.0]).spans)
    assert any("nothing to move" in said for said in certify_timeline(SHARED, [0.0, 10.0], lie))


def test_what_is_gone_within_the_last_place_of_the_clock_is_no_lie() -> None:
    fast = System.of([3e9], [{0: 1.0}])
    timeline = complete(fast, [1.0], [1.0])  # a third of a nanosecond after a second
    assert timeline.spans[0].end - timeline.spans[0].start != 1.0 / 3e9
    assert certify_timeline(fast, [1.0], timeline, [1.0]) == ()
    lie = Timeline(timeline.finishes, ())
    assert certify_timeline(fast, [1.0], lie, [1.0])[0] == "demand 0 moved 0.0 of 1.0 B"
