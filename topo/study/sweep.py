"""Many variants of a machine, one question: axes, the designs that they make, and which is best.

An axis is something that is varied, with its values; a design takes one value of each. Designs are
numbered in the order of the axes, the last one fastest, whoever answers them and when.
"""

from __future__ import annotations

import math
import re
from collections.abc import Callable, Iterable, Iterator, Mapping
from dataclasses import replace
from functools import cached_property
from hashlib import blake2b
from typing import TYPE_CHECKING, Any, Final, get_args

from topo import __version__
from topo.catalogue.fields import FIELDS
from topo.datapaths.registry import data_path
from topo.description.description import BASES, Axis, Choice, Pairing
from topo.errors import DescriptionError, Finding, TopoError, UnitError, UnknownNameError
from topo.phrases import brief, counted, did_you_mean, listed
from topo.records import dataclass
from topo.routes.route import CHOICES
from topo.study.variants import Question, asked_workload

if TYPE_CHECKING:
    from topo.topology.topology import Topology


MOST_DESIGNS: Final = 1_000_000
# Axes that change what is asked and not the machine, with the words that they take; none is any.
QUESTIONS: Final[Mapping[str, tuple[str, ...]]] = {
    "workload": (),
    "via": (),
    "at": BASES,
    "nics": CHOICES["nics"],
    "routes": CHOICES["routes"],
    "pairing": get_args(Pairing),
}
# A value that cannot be read is a mistake of the axis; any other refusal is an illegal design.
_MISTAKES: Final = frozenset(
    {
        *("bad-address", "bad-flag", "bad-move", "bad-number", "bad-ports", "bad-unit"),
        *("bare-number", "decimal-comma", "not-a-cable", "unknown-key", "unknown-medium"),
        *("unknown-name", "unknown-part", "unknown-word", "wrong-quantity", "wrong-shape"),
        *("no-workload", "not-storage-and-gpu"),
    }
)


@dataclass(frozen=True, eq=False)
class Sweep:
    """What is varied on which machine, and what is asked of each design."""

    topology: Topology
    axes: tuple[Axis, ...]
    question: Question

    def __repr__(self) -> str:
        return brief(self, f"{self.topology.name}: {counted(self.count, 'design')}")

    @property
    def count(self) -> int:
        """How many designs there are."""
        return math.prod(len(axis.choices) for axis in self.axes)

    def places(self, number: int) -> tuple[int, ...]:
        """Return the place of the value that a design takes of each axis."""
        places: list[int] = []
        for axis in reversed(self.axes):
            number, place = divmod(number, len(axis.choices))
            places.append(place)
        return tuple(reversed(places))

    def design(self, number: int) -> tuple[Choice, ...]:
        """Return what a design takes of each axis."""
        places = self.places(number)
        return tuple([axis.choices[at] for axis, at in zip(self.axes, places, strict=True)])

    def asked_of(self, choices: Iterable[Choice]) -> Question:
        """Return what is asked of a design that takes these."""
        return question_with(self.question, _merged(choices, asks=True))

    def changes_of(self, choices: Iterable[Choice]) -> dict[str, str]:
        """Return what of the machine is changed in a design that takes these: the later holds."""
        return _merged(choices, asks=False)

    @cached_property
    def priced(self) -> tuple[str, ...]:
        """Names and patterns of what an axis puts another part in, or makes a copy.

        Of other keys as well, which are no device's name.
        """
        targets = (key for axis in self.axes for key in axis.keys)
        machine = (key for key in targets if key not in QUESTIONS and " -- " not in key)
        return tuple(dict.fromkeys(key.removesuffix(".part") for key in machine))

    @cached_property
    def fingerprint(self) -> str:
        """What tells the question from any other: the machine, its figures, axes and policy."""
        from topo.description.as_document import to_document

        topology, digest = self.topology, blake2b(digest_size=8)
        for words in (
            __version__,
            to_document(replace(topology.description, axes=())),
            [(resource.id, resource.capacity) for resource in topology.all_resources],
            [(link.name, link.cable) for link in topology.links],
            [(axis.name, *map(_spelled, axis.choices)) for axis in self.axes],
            self.question,
            topology.description.lost,
        ):
            digest.update(repr(words).encode())
        return digest.hexdigest()


def _spelled(choice: Choice) -> tuple[str, tuple[tuple[str, str], ...]]:
    return choice.label, tuple(choice.changes.items())


def _merged(choices: Iterable[Choice], *, asks: bool) -> dict[str, str]:
    """Return what choices change of the question, or of the machine."""
    return {
        key: value
        for choice in choices
        for key, value in choice.changes.items()
        if (key in QUESTIONS) == asks
    }


def question_with(question: Question, changes: Mapping[str, str]) -> Question:
    """Return a question with other words, by the names of `QUESTIONS`."""
    own: dict[str, Any] = {}
    of_policy: dict[str, Any] = {}
    for key, value in changes.items():
        (own if key in ("workload", "via", "at") else of_policy)[key] = value
    policy = replace(question.policy, **of_policy) if of_policy else question.policy
    return replace(question, policy=policy, **own)


# --- axes -----------------------------------------------------------------------------------------


def axis_of(name: str, values: str | Iterable[object]) -> Axis:
    """Return the axis of one key; a text is one value.

    Examples
    --------
    >>> [choice.changes for choice in axis_of("ram.channels", ["8", "12"]).choices]
    [{'ram.channels': '8'}, {'ram.channels': '12'}]
    """
    several = (values,) if isinstance(values, str) else values
    labels = dict.fromkeys(str(value).strip() for value in several)
    return Axis(name, tuple(Choice(label, {name: label}) for label in labels if label))


def split_values(text: str) -> tuple[str, ...]:
    """Return the values of ``a,b``; a comma in brackets or quotes separates nothing.

    Examples
    --------
    >>> split_values("8, 12"), split_values("[on, off],[off, on]")
    (('8', '12'), ('[on, off]', '[off, on]'))
    """
    pieces = re.findall(r"""(?:\[[^\]]*\]|\{[^}]*\}|"[^"]*"|'[^']*'|[^,])+""", text)
    return tuple(piece.strip().strip("\"'") for piece in pieces if piece.strip())


def is_question(axis: Axis) -> bool:
    """Whether an axis changes only what is asked, and nothing of the machine."""
    return all(key in QUESTIONS for key in axis.keys)


def numbers_of(axis: Axis) -> tuple[float, ...] | None:
    """Return an axis' values as numbers in topo's own units; `None` where they are none."""
    key = axis.name.rpartition(".")[2]
    parse: Callable[[str], float] = float
    if key in FIELDS and FIELDS[key].quantity.unit:
        parse = FIELDS[key].quantity.parse or float
    try:
        return tuple(parse(choice.label) for choice in axis.choices)
    except (UnitError, ValueError):
        return None


def planned(topology: Topology, axes: Iterable[Axis], question: Question) -> Sweep:
    """Return a sweep whose axes are there and have values that can be read.

    Raises
    ------
    TopoError
        With every mistake: an axis without values, too many designs, a name or a value that topo
        does not know.
    """
    sweep = Sweep(topology, tuple(axes), question)
    findings = [*_misshapen(sweep)]
    if not findings:
        findings = list(dict.fromkeys(_mistaken(sweep)))
    if findings:
        raise DescriptionError(findings)
    return sweep


def _misshapen(sweep: Sweep) -> Iterator[Finding]:
    if not sweep.axes:
        advice = "name one with --vary ram.channels=8,12, or under `sweep:`"
        yield Finding("empty-axis", "nothing is varied", help=advice)
    names = [axis.name for axis in sweep.axes]
    for name in dict.fromkeys(name for name in names if names.count(name) > 1):
        yield Finding(
            "defined-twice", f"the axis {name} is given twice", help="name all its values"
        )
    owners: dict[str, str] = {}
    for axis in sweep.axes:
        if not axis.choices:
            advice = f"write --vary {axis.name}=one,another"
            yield Finding("empty-axis", f"the axis {axis.name} has no values", help=advice)
        for key in axis.keys:
            owner = owners.setdefault(key, axis.name)
            if owner != axis.name:
                message = f"the axes {owner} and {axis.name} both change {key}"
                yield Finding("defined-twice", message, help="change it in one of them")
    if sweep.count > MOST_DESIGNS:
        sizes = " x ".join(str(len(axis.choices)) for axis in sweep.axes)
        message = f"{sizes} are {sweep.count:,} designs, more than {MOST_DESIGNS:,}"
        yield Finding(
            "too-many-designs", message, help="vary fewer things, or fewer values of each"
        )


def _mistaken(sweep: Sweep) -> Iterator[Finding]:
    """Yield what is wrong with the question, and with single values.

    Each alone and, if that fails, beside the first values of the other axes.
    """
    firsts = {axis.name: axis.choices[0] for axis in sweep.axes}
    asked = _mistakes(sweep, {})
    if asked and _mistakes(sweep, firsts):
        yield from asked
        return
    for axis in sweep.axes:
        for choice in axis.choices:
            alone = _mistakes(sweep, {axis.name: choice})
            if alone and _mistakes(sweep, {**firsts, axis.name: choice}):
                for finding in alone:
                    message = f"the axis {axis.name}: {finding.message}"
                    advice = finding.help
                    one_word = not {*". "} & {*axis.name}
                    if finding.code == "unknown-name" and one_word and axis.name not in QUESTIONS:
                        near = did_you_mean(axis.name, QUESTIONS)
                        advice = near or f"a key like ram.channels, or {listed(QUESTIONS, 'or')}"
                    own = replace(finding, message=message, help=advice)
                    yield replace(own, place=axis.place, source_line="")


def _mistakes(sweep: Sweep, chosen: Mapping[str, Choice]) -> list[Finding]:
    """Return what cannot be read of some values together; nothing where they are illegal only."""
    nothing = Choice("", {})
    choices = [chosen.get(axis.name, nothing) for axis in sweep.axes]
    words = _merged(choices, asks=True)
    try:
        for key, word in words.items():
            if QUESTIONS[key] and word not in QUESTIONS[key]:
                advice = did_you_mean(word, QUESTIONS[key]) or f"one of {listed(QUESTIONS[key])}"
                message = f"`{word}` is no word for it"
                raise UnknownNameError(Finding("unknown-word", message, help=advice))
        changes = sweep.changes_of(choices)
        topology = sweep.topology.replace(changes) if changes else sweep.topology
        question = question_with(sweep.question, words)
        asked_workload(topology, question)
        if question.via:
            data_path(topology.description, question.via)
    except TopoError as error:
        errors = [finding for finding in error.findings if finding.severity == "error"]
        if isinstance(error, UnknownNameError):
            return errors
        return [finding for finding in errors if finding.code in _MISTAKES]
    return []
