"""Options that several verbs share: one flag, one meaning."""

from __future__ import annotations

from dataclasses import replace
from functools import wraps
from pathlib import PurePath
from typing import TYPE_CHECKING, Any, TypeAlias

import click

from topo.cli.output import Session
from topo.description.description import BASES, Basis
from topo.records import dataclass

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable

    from topo.routes.route import Policy
    from topo.topology.topology import Topology


_Verb: TypeAlias = "Callable[..., int]"


@dataclass(frozen=True, slots=True)
class Machine:
    """The file, name or ``-`` of the command line, with what ``--set`` changes in it."""

    file: str
    overrides: dict[str, str]
    cufile: str = ""
    gdscheck: str = ""

    def load(self) -> Topology:
        """Read it and build the topology, with what the host's own tools say of it."""
        from topo.topology.build import load

        topology = load(self.file, overrides=self.overrides)
        if not self.cufile and not self.gdscheck:
            return topology
        from topo.description.loading import read_file
        from topo.host.apply import with_host_facts
        from topo.host.cufile import read_cufile
        from topo.host.gdscheck import read_gdscheck

        cufile, gdscheck = self.cufile, self.gdscheck
        return with_host_facts(
            topology,
            cufile=read_cufile(read_file(cufile), _shown(cufile)) if cufile else None,
            gdscheck=read_gdscheck(read_file(gdscheck), _shown(gdscheck)) if gdscheck else None,
        )


def _shown(file: str) -> str:
    """Return what a file is called: an absolute path is nobody's business."""
    path = PurePath(file)
    return path.name if path.is_absolute() else file


@dataclass(frozen=True, slots=True)
class Question:
    """What is asked of a machine; empty where the file's own workloads decide."""

    workload: str | None
    via: tuple[str, ...]
    source: str
    target: str

    @property
    def by_ends(self) -> bool:
        """Whether it is about two ends instead of the file's workloads."""
        return bool(self.source or self.target)


@dataclass(frozen=True, slots=True)
class How:
    """On which figures an answer rests, and how a choice among several ways is made."""

    at: Basis
    policy: Policy

    def policy_for(self, topology: Topology) -> Policy:
        """Return the policy, whose buffers and places the topology has."""
        if not self.policy.buffers:
            return self.policy
        from topo.study.answer import checked_policy

        return checked_policy(topology, self.policy)


def example(*lines: str) -> str:
    """Return the end of a verb's help: commands that work as they stand."""
    title = "Examples:" if len(lines) > 1 else "Example:"
    return "\n".join(["\b", title, *(f"  {line}" for line in lines)])


def asks_machine(verb: _Verb) -> _Verb:
    """Give a verb FILE and ``--set``, as one `machine`."""

    @click.argument("file", metavar="FILE")
    @click.option(
        "overrides",
        "--set",
        metavar="KEY=VALUE",
        multiple=True,
        callback=_pairs,
        help="Change one value: slot1.part=connectx-8-dual-port, settings.iommu=on (repeatable).",
    )
    @wraps(verb)
    def wrapped(*, file: str, overrides: tuple[tuple[str, str], ...], **rest: Any) -> int:
        path = PurePath(file)
        Session.current().folder = str(path.parent) if path.is_absolute() else ""
        return verb(machine=Machine(file, dict(overrides)), **rest)

    return wrapped


def asks_host(verb: _Verb) -> _Verb:
    """Give a verb's `machine` what its host's tools say: ``--cufile`` and ``--gdscheck``."""

    @click.option("--cufile", metavar="JSON", default="", help="The host's cufile.json.")
    @click.option("--gdscheck", metavar="TEXT", default="", help="The text of `gdscheck -p` there.")
    @wraps(verb)
    def wrapped(*, machine: Machine, cufile: str, gdscheck: str, **rest: Any) -> int:
        return verb(machine=replace(machine, cufile=cufile, gdscheck=gdscheck), **rest)

    return wrapped


def asks_question(verb: _Verb) -> _Verb:
    """Give a verb the workload, the data paths and the ends, as one `question`."""

    @click.option("--workload", metavar="NAME", help="One workload of the file.")
    @click.option(
        "--via",
        metavar="PATH",
        multiple=True,
        callback=_words,
        help="Data path to ask about: legacy, direct, ... (repeatable, or a,b).",
    )
    @click.option("source", "--from", metavar="DEVICE", default="", help="Where the data starts.")
    @click.option("target", "--to", metavar="DEVICE", default="", help="Where the data goes.")
    @wraps(verb)
    def wrapped(
        *, workload: str | None, via: tuple[str, ...], source: str, target: str, **rest: Any
    ) -> int:
        question = Question(workload, via, source, target)
        if workload and question.by_ends:
            raise click.UsageError("--workload and --from/--to are two questions: ask one.")
        return verb(question=question, **rest)

    return wrapped


def asks_how(verb: _Verb) -> _Verb:
    """Give a verb the basis and the policy, as one `how`."""

    @click.option(
        "--at",
        type=click.Choice(BASES),
        default="theoretical",
        show_default=True,
        help="Which figure of each capacity to use.",
    )
    @click.option(
        "cards",
        "--nics",
        type=click.Choice(("nearest", "stripe", "best")),
        default="nearest",
        show_default=True,
        help="Which network cards serve a GPU.",
    )
    @click.option(
        "ways",
        "--routes",
        type=click.Choice(("spread", "first")),
        default="spread",
        show_default=True,
        help="Share equally good routes, or take the first by name.",
    )
    @click.option(
        "--buffers",
        metavar="BUFFER=PLACE",
        multiple=True,
        callback=_placed,
        help="Where a RAM buffer lies: kernel=near-nic, all=ram0 (repeatable, or a,b).",
    )
    @wraps(verb)
    def wrapped(
        *, at: Basis, cards: Any, ways: Any, buffers: tuple[tuple[str, str], ...], **rest: Any
    ) -> int:
        from topo.routes.route import Policy

        return verb(how=How(at, Policy(routes=ways, nics=cards, buffers=buffers)), **rest)

    return wrapped


def asks_json(verb: _Verb) -> _Verb:
    """Give a verb ``--json``, and remember it for failures."""
    option = click.option(
        "as_json",
        "--json",
        is_flag=True,
        is_eager=True,
        callback=_remember,
        help="Print one JSON document.",
    )
    return option(verb)


def draws_timeline(verb: _Verb) -> _Verb:
    """Give a verb ``-o`` and ``--theme`` for a picture of its timeline."""
    verb = click.option(
        "--theme",
        type=click.Choice(("light", "dark")),
        default="light",
        show_default=True,
        help="Of the picture.",
    )(verb)
    option = click.option(
        "-o",
        "--output",
        metavar="FILE",
        help="Draw who runs when as well: FILE.svg, .png, .dot, or .pdf with a system Graphviz.",
    )
    return option(verb)


def lists(values: Iterable[str]) -> tuple[str, ...]:
    """Return the words of a repeatable option that also takes ``a,b``, each once."""
    words = (word.strip() for value in values for word in value.split(","))
    return tuple(dict.fromkeys(word for word in words if word))


def _remember(ctx: click.Context, _option: click.Parameter, value: bool) -> bool:
    ctx.ensure_object(Session).as_json = value
    return value


def _words(_ctx: click.Context, _option: click.Parameter, values: tuple[str, ...]) -> Any:
    return lists(values)


def _pairs(_ctx: click.Context, option: click.Parameter, values: tuple[str, ...]) -> Any:
    return tuple(_pair(value, option) for value in values)


def _placed(_ctx: click.Context, option: click.Parameter, values: tuple[str, ...]) -> Any:
    return tuple(_pair(value, option) for value in lists(values))


def _pair(text: str, option: click.Parameter) -> tuple[str, str]:
    key, sign, value = text.partition("=")
    if not sign or not key.strip() or not value.strip():
        raise click.BadParameter(f"`{text}` is not {option.metavar}", param=option)
    return key.strip(), value.strip()
