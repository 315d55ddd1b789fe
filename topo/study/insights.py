"""What follows from the answers to a question, as facts: `topo.views.sentences` has the words."""

from __future__ import annotations

from typing import TYPE_CHECKING, Literal, TypeAlias

from topo.records import dataclass

if TYPE_CHECKING:
    from topo.study.answers import CollectiveBound, CopyingCores, PathAnswer
    from topo.topology.resources import Resource
    from topo.topology.topology import Topology


@dataclass(frozen=True, slots=True)
class Refused:
    """A path is refused on a machine, for the reasons of its answer.

    `fallback` is the first data path in turn that it falls back to and that is not refused as well,
    empty for none.
    """

    topology: Topology
    path: PathAnswer
    fallback: str


@dataclass(frozen=True, slots=True)
class NotKnown:
    """Whether a path works on a machine is not known, for the reasons of its answer."""

    topology: Topology
    path: PathAnswer


@dataclass(frozen=True, slots=True)
class OkSlower:
    """A path works, but not as well as it could, for the reasons of its answer."""

    topology: Topology
    path: PathAnswer


@dataclass(frozen=True, slots=True)
class SlowerCards:
    """Cards that hold a path back, since every card of a GPU carries the same.

    `without` is bytes/s of the whole without them, `best` with the best division over all cards.
    """

    path: PathAnswer
    cards: tuple[str, ...]
    without: float
    best: float


@dataclass(frozen=True, slots=True)
class IdleLinks:
    """Links by their names that carry nothing, since others as short are wider."""

    links: tuple[str, ...]


@dataclass(frozen=True, slots=True)
class NoFaster:
    """Two paths are equally fast: the full resources of `rival` that `path` has full as well.

    `only_rival` are those that it has not.
    """

    path: PathAnswer
    rival: PathAnswer
    shared: tuple[Resource, ...]
    only_rival: tuple[Resource, ...]


@dataclass(frozen=True, slots=True)
class Faster:
    """A path is `ratio` times as fast as its rival."""

    path: PathAnswer
    rival: PathAnswer
    ratio: float


@dataclass(frozen=True, slots=True)
class Slower:
    """A path loses to its rival."""

    path: PathAnswer
    rival: PathAnswer


@dataclass(frozen=True, slots=True)
class MeasuredOtherwise:
    """By what was measured it is not as by the figures asked for: how `path` does against `rival`.

    `rates` are bytes/s of both.
    """

    path: PathAnswer
    rival: PathAnswer
    rates: tuple[float, float]
    result: Literal["faster", "same", "slower"]


@dataclass(frozen=True, slots=True)
class NeedMet:
    """What comes of what a model asks for, by a path: its `met`."""

    path: PathAnswer


@dataclass(frozen=True, slots=True)
class ThroughRam:
    """A path takes every byte through RAM."""

    path: PathAnswer


@dataclass(frozen=True, slots=True)
class CoresBusy:
    """A path keeps cores busy copying."""

    path: PathAnswer
    cores: CopyingCores


@dataclass(frozen=True, slots=True)
class SerialWorker:
    """With one worker a GPU that does one stage after the other, `direct` is faster than `path`.

    `rate` is what `path` has then, in bytes/s; `ratio` how many times as fast `direct` is.
    """

    path: PathAnswer
    direct: PathAnswer
    rate: float
    ratio: float


@dataclass(frozen=True, slots=True)
class AllAtOnce:
    """Hosts have less of a path when all ask at once than one by itself would have.

    `each` and `alone` are bytes/s of one host, the one with the least of `hosts`; whether all have
    as much is `alike`.
    """

    path: PathAnswer
    hosts: int
    each: float
    alone: float
    alike: bool


@dataclass(frozen=True, slots=True)
class NoAlgorithm:
    """What no algorithm of a collective exceeds, and the best answer beside it."""

    bound: CollectiveBound
    best: PathAnswer


@dataclass(frozen=True, slots=True)
class NotByNccl:
    """Hops that go peer to peer over PCIe, farther than NCCL lets GPUs do it by itself.

    `classes` are their locality classes.
    """

    path: PathAnswer
    hops: tuple[tuple[str, str], ...]
    classes: tuple[str, ...]


@dataclass(frozen=True, slots=True)
class NoRdmaByNccl:
    """GPUs and cards by which data goes between servers, farther than NCCL takes RDMA by itself.

    `classes` are their locality classes; `paths` are the answers that go so.
    """

    paths: tuple[PathAnswer, ...]
    pairs: tuple[tuple[str, str], ...]
    classes: tuple[str, ...]


@dataclass(frozen=True, slots=True)
class FallenBack:
    """Hops of a collective that cannot take its data path, by the one that each takes instead."""

    path: PathAnswer
    hops: tuple[tuple[str, tuple[tuple[str, str], ...]], ...]


@dataclass(frozen=True, slots=True)
class NotModelled:
    """Storages whose own rates the user took as unlimited."""

    storages: tuple[str, ...]


@dataclass(frozen=True, slots=True)
class TakenAsUnlimited:
    """Other resources that the user took as unlimited, by name."""

    resources: tuple[str, ...]


Insight: TypeAlias = (
    Refused
    | NotKnown
    | OkSlower
    | SlowerCards
    | IdleLinks
    | NoFaster
    | Faster
    | Slower
    | MeasuredOtherwise
    | NeedMet
    | ThroughRam
    | CoresBusy
    | SerialWorker
    | AllAtOnce
    | NoAlgorithm
    | NotByNccl
    | NoRdmaByNccl
    | FallenBack
    | NotModelled
    | TakenAsUnlimited
)
