import copy
import dataclasses
import inspect
import pickle
from dataclasses import FrozenInstanceError, field, replace
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from topo.records import dataclass


@dataclass(frozen=True, slots=True)
class Link:
    """A link."""

    a: str
    b: str
    lanes: int = 16
    notes: list[str] = field(default_factory=list)
    hidden: int = field(default=0, compare=False, repr=False)

    @property
    def ends(self):
        return (self.a, self.b)


@dataclasses.dataclass(frozen=True, slots=True)
class Standard:
    """The same by the standard library."""

    a: str
    b: str
    lanes: int = 16
    notes: list[str] = field(default_factory=list)
    hidden: int = field(default=0, compare=False, repr=False)


@dataclass(frozen=True, slots=True, order=True)
class Place:
    """A place."""

    line: int
    column: int = 0


@dataclass(frozen=True, slots=True)
class Only:
    """One field."""

    rate: float


@dataclass(frozen=True, slots=True)
class Nothing:
    """No field."""


@dataclass(frozen=True, slots=True)
class Own:
    """Has its own words."""

    name: str

    def __repr__(self):
        return f"<{self.name}>"


ARGUMENTS = st.tuples(
    st.tuples(st.text(max_size=2), st.text(max_size=2)),
    st.fixed_dictionaries(
        {},
        optional={
            "lanes": st.integers(0, 2),
            "notes": st.lists(st.text(max_size=1), max_size=1),
            "hidden": st.integers(0, 1),
        },
    ),
)


@given(ARGUMENTS, ARGUMENTS)
def test_it_is_what_the_standard_library_makes(first, second):
    ours = [Link(*words, **options) for words, options in (first, second)]
    theirs = [Standard(*words, **options) for words, options in (first, second)]
    assert (ours[0] == ours[1]) == (theirs[0] == theirs[1])
    for mine, standard in zip(ours, theirs, strict=True):
        assert repr(mine) == repr(standard).replace("Standard", "Link")
        assert dataclasses.asdict(mine) == dataclasses.asdict(standard)
        assert mine.ends == (standard.a, standard.b)


def test_it_stays_as_it_is():
    link: Any = Link("a", "b")
    with pytest.raises(FrozenInstanceError):
        link.lanes = 8
    with pytest.raises(FrozenInstanceError):
        del link.lanes
    with pytest.raises(FrozenInstanceError):
        link.other = 8
    assert not hasattr(link, "__dict__")
    assert replace(link, lanes=8) == Link("a", "b", 8)
    assert link.lanes == 16


def test_defaults_are_made_anew():
    assert Link("a", "b").notes is not Link("a", "b").notes


def test_wrong_arguments_are_refused():
    make: Any = Link
    for _ in range(2):  # the first call compiles
        with pytest.raises(TypeError, match="missing 1 required positional argument: 'b'"):
            make("a")
        with pytest.raises(TypeError, match="unexpected keyword"):
            make("a", "b", speed=1)


def test_values_of_equal_fields_are_one_key():
    assert {Place(1): "x"}[Place(1, 0)] == "x"
    assert Place(1) != Only(1)  # type: ignore[comparison-overlap]
    assert hash(Only(1.0)) == hash(Only(1.0))
    nan = float("nan")
    assert Only(nan) == Only(nan)  # as tuples of the same object are
    assert Nothing() == Nothing()
    assert len({Nothing(), Nothing()}) == 1


def test_an_order_goes_by_the_fields():
    assert sorted([Place(2), Place(1, 5), Place(1)]) == [Place(1), Place(1, 5), Place(2)]
    assert Place(1) <= Place(1) < Place(2)
    assert Place(2) >= Place(2) > Place(1)
    stranger: Any = Only(1.0)
    with pytest.raises(TypeError, match="not supported between instances of 'Place' and 'Only'"):
        _ = Place(1) < stranger


def test_it_survives_copies_and_pickle():
    link = Link("a", "b", notes=["x"], hidden=3)
    for again in (copy.copy(link), copy.deepcopy(link), pickle.loads(pickle.dumps(link))):
        assert again == link
        assert again.hidden == 3


def test_help_has_the_fields_before_any_value_is_made():
    @dataclass(frozen=True, slots=True)
    class Fresh:
        name: str
        many: int = 2

    assert str(inspect.signature(Fresh)) == "(name: str, many: int = 2)"
    assert Fresh("a", many=3).many == 3


def test_what_a_class_defines_itself_stays():
    assert repr(Own("x")) == "<x>"


def test_other_classes_are_the_standard_library_s():
    @dataclass
    class Open:
        x: int

    open_one = Open(1)
    open_one.x = 2
    assert open_one == Open(2)

    @dataclass(frozen=True)
    class Wide:
        x: int

    assert hash(Wide(1)) == hash(Wide(1))
