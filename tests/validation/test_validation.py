"""Published measurements: the page is current, and topo is as near to them as the page says."""

from __future__ import annotations

from functools import cache
from pathlib import Path

import pytest

from docs.validation import (
    NEAR,
    NEAR_CROSSING,
    PAGE,
    SORTS,
    judge,
    order_holds,
    page,
    read_cases,
)

FOLDER = Path(__file__).parent
CASES = {case.name: case for case in read_cases()}
judged = cache(lambda name: judge(CASES[name]))

every_case = pytest.mark.parametrize("name", CASES)


def every_judged():
    return [judged(name) for name in CASES]


def counted(sort=None):
    return [each for each in every_judged() if each.counts and sort in (None, each.case.sort)]


def share(flags):
    flags = list(flags)
    return sum(flags) / len(flags)


def test_the_page_is_as_the_command_writes_it():
    assert PAGE.read_text(encoding="utf-8") == page(every_judged())


@every_case
def test_a_case_says_what_it_is(name):
    case = CASES[name]
    assert case.sort in SORTS
    assert bool(case.bound) == (case.sort != "software")
    assert case.rate > 0
    assert not case.title.endswith(".")
    for other in case.slower_than:
        faster = CASES[other]
        assert faster.source.split(",")[0] == case.source.split(",")[0]
        assert case.rate < faster.rate


@every_case
def test_a_miss_has_its_reason_and_a_hit_has_none(name):
    each = judged(name)
    missed = each.miss > NEAR or bool(each.case.bound and not each.right_bottleneck)
    assert bool(each.case.why) == missed
    assert not each.case.why or each.case.why.endswith(".")


@every_case
def test_theory_is_never_below_what_can_be_achieved(name):
    each = judged(name)
    assert each.theoretical.rate >= each.achievable.rate * (1 - 1e-9)


def test_every_machine_beside_the_cases_is_asked_about():
    named = {case.machine for case in CASES.values() if isinstance(case.machine, str)}
    assert {f"machines/{path.name}" for path in (FOLDER / "machines").glob("*.yaml")} <= named


def test_where_a_link_or_a_drive_binds_topo_is_near_and_names_it():
    links = counted("link")
    assert share(each.right_bottleneck for each in links) >= 0.95
    assert share(each.miss <= NEAR for each in links) >= 0.80


def test_across_roots_and_sockets_topo_is_near_or_says_at_most():
    far = [
        each.case.name
        for each in counted("crossing")
        if each.miss > NEAR_CROSSING and not each.achievable.at_most
    ]
    assert far == []


def test_no_two_are_put_in_the_wrong_order():
    wrong = [
        (slower.case.name, name)
        for slower in every_judged()
        for name in slower.case.slower_than
        if order_holds(slower, judged(name)) is False
    ]
    assert wrong == []


def test_where_software_binds_the_hardware_would_have_allowed_it():
    for each in counted("software"):
        assert each.ratio >= 1 - NEAR, each.case.name


def test_there_are_many_cases_and_those_that_tell_nothing_are_left_out():
    assert len(counted()) >= 60
    assert any(not each.counts for each in every_judged())
