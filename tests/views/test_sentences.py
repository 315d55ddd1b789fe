"""The facts of a study in words: none is left without."""

from __future__ import annotations

from typing import get_args

import pytest

from tests.machines import ONE_SOCKET, built
from topo.study.answers import (
    CheckOutcome,
    LadderEnd,
    OwnLimit,
)
from topo.study.insights import Insight
from topo.views.resources import CLASS_WORDS, class_words
from topo.views.sentences import sentence


@pytest.mark.parametrize("fact", [*get_args(Insight), *get_args(CheckOutcome), LadderEnd, OwnLimit])
def test_every_fact_has_words(fact):
    assert sentence.dispatch(fact) is not sentence.dispatch(object)


def test_what_is_no_fact_has_none():
    with pytest.raises(TypeError, match="no words for a float"):
        sentence(1.5)


def test_every_class_of_a_machine_has_words():
    kinds = {resource.kind for resource in built(ONE_SOCKET).resources.values()}
    assert kinds <= set(CLASS_WORDS)


@pytest.mark.parametrize(
    ("limit", "words"),
    [
        (OwnLimit(), "the workload's own limit"),
        (OwnLimit(1, serial=True), "its one worker a GPU, one stage after the other"),
        (OwnLimit(8), "its 8 workers a GPU"),
    ],
)
def test_what_stops_a_demand_by_itself(limit, words):
    assert sentence(limit) == words


def test_one_and_several_of_a_class():
    assert class_words("nic-chip", 1) == "the card's chip"
    assert class_words("nic-chip", 2) == "the cards' chips"
