"""What verbs share: options with one meaning, and where answers go.

Results go to standard output, findings to standard error.
"""

from __future__ import annotations

import os
import sys
import time
from collections.abc import Callable, Iterable, Iterator, Mapping
from contextlib import ExitStack, contextmanager, suppress
from dataclasses import replace
from functools import wraps
from pathlib import PurePath
from typing import TYPE_CHECKING, Any, TextIO, TypeAlias, get_args

import click

from topo.records import dataclass

if TYPE_CHECKING:
    from topo.description.description import Basis
    from topo.errors import Finding
    from topo.routes.route import Policy
    from topo.topology.topology import Topology
    from topo.views.text.page import Block

_Verb: TypeAlias = Callable[..., int]
COMPLETION_VARIABLE = "_TOPO_COMPLETE"  # by which a shell asks what may come next
_PATIENCE = 1.0  # seconds without a word
THEMES = ("light", "dark")
RULES = ("nvidia-smi", "nccl", "gds")
_WIDTH = 100  # of pages that no terminal shows
_WIDEST = 120
_PIECE = 1 << 14  # characters written at once


@dataclass(slots=True)
class Session:
    """What one call of the program knows of itself.

    `as_json` and `as_markdown` say what was asked for; `folders` are where each absolute FILE lies,
    which JSON does not tell. `without` is what it is asked to take as out of order.
    """

    as_json: bool = False
    as_markdown: bool = False
    folders: tuple[str, ...] = ()
    without: tuple[str, ...] = ()

    @classmethod
    def current(cls) -> Session:
        """Return the running call's."""
        return click.get_current_context().ensure_object(cls)

    @classmethod
    def answers_about(cls, *files: str) -> None:
        """Remember the folders of the running call's files."""
        paths = map(PurePath, files)
        cls.current().folders = tuple(str(path.parent) for path in paths if path.is_absolute())

    @property
    def folder(self) -> str:
        """The folder of its FILE where that is an absolute one."""
        return next(iter(self.folders), "")


@dataclass(frozen=True, slots=True)
class Machine:
    """The file, name or ``-`` of the command line, with what ``--set`` changes in it.

    `without` is out of order: what ``--without`` names.
    """

    file: str
    overrides: dict[str, str]
    without: tuple[str, ...] = ()
    cufile: str = ""
    gdscheck: str = ""

    @property
    def files(self) -> tuple[str, ...]:
        """The files of this machine that are read."""
        from topo.description.locating import is_path

        return (*((self.file,) if is_path(self.file) else ()), self.cufile, self.gdscheck)

    def whole(self) -> Topology:
        """Read it and build the topology, with nothing out of order."""
        from topo.topology.build import load

        return load(self.file, overrides=self.overrides)

    def load(self, whole: Topology | None = None) -> Topology:
        """Build the topology, with what the host's own tools say of it; `whole` may be read."""
        topology = whole or self.whole()
        if self.without:
            topology = topology.without(*self.without)
        if not self.cufile and not self.gdscheck:
            return topology
        from topo.description.locating import read_file
        from topo.host.apply import with_host_facts
        from topo.host.cufile import read_cufile
        from topo.host.gdscheck import read_gdscheck

        def content(file: str) -> tuple[bytes, str]:
            path = PurePath(file)  # an absolute one is nobody's business
            return read_file(file), path.name if path.is_absolute() else file

        return with_host_facts(
            topology,
            cufile=read_cufile(*content(self.cufile)) if self.cufile else None,
            gdscheck=read_gdscheck(*content(self.gdscheck)) if self.gdscheck else None,
        )


@dataclass(frozen=True, slots=True)
class Question:
    """What is asked of a machine; empty where the file's own workloads decide."""

    workload: str | None
    via: tuple[str, ...]
    source: str
    target: str
    needs: str | None
    checkpoint: str | None

    @property
    def model(self) -> dict[str, str]:
        """What of which model it is about, as the functions of `topo.study` take it."""
        named = {"needs": self.needs, "checkpoint": self.checkpoint}
        return {asks: name for asks, name in named.items() if name is not None}

    @property
    def by_ends(self) -> bool:
        """Whether it is about any bytes between two ends."""
        return bool(self.source or self.target) and not self.model

    def one_via(self) -> str:
        """Return the data path of a verb that asks about one, empty where nobody names it."""
        if len(self.via) > 1:
            name = click.get_current_context().info_name
            raise click.UsageError(f"{name} asks about one data path: give one --via.")
        return "".join(self.via)

    def arguments(self) -> dict[str, Any]:
        """Return the question as those functions take it that ask of more than one machine."""
        named = {name: getattr(self, name) for name in ("workload", "via", "source", "target")}
        return {**named, **self.model}

    def about(self, topology: Topology) -> dict[str, Any]:
        """Return the question as it is asked of one machine: of a model the workload it makes."""
        if not self.model:
            return self.arguments()
        from topo.study.question import asked_workloads

        workloads = asked_workloads(topology, None, self.source, self.target, **self.model)
        return {"workload": workloads[0], "via": self.via}


@dataclass(frozen=True, slots=True)
class How:
    """On which figures an answer rests, and how a choice among several routes is made."""

    at: Basis
    policy: Policy

    def arguments(self, topology: Topology) -> dict[str, Any]:
        """Return basis and policy, whose buffers and places the topology has."""
        policy = self.policy
        if policy.buffers:
            from topo.routes.route import checked_policy

            policy = checked_policy(topology, policy)
        return {"at": self.at, "policy": policy}


def command(*examples: str, **attributes: Any) -> Callable[[_Verb], click.Command]:
    """Make a verb of a function; its help ends with commands that work as they stand."""
    title = "Examples:" if len(examples) > 1 else "Example:"
    epilog = "\n".join(["\b", title, *(f"  {line}" for line in examples)])
    return click.command(epilog=epilog, **attributes)


def choice(
    option: str, words: Iterable[str], help: str | None = None, default: str = ""
) -> Callable[[_Verb], _Verb]:
    """Give a verb an option that is one of some words, the first where `default` names none."""
    words = tuple(words)
    return click.option(
        option, type=click.Choice(words), default=default or words[0], show_default=True, help=help
    )


_Complete: TypeAlias = Callable[[click.Context, click.Parameter, str], list[Any]]


def completes(what: str) -> _Complete:
    """Return what a shell is offered for a word: ``machines``, ``devices``, ``workloads``, ..."""

    def offered(context: click.Context, _parameter: click.Parameter, begun: str) -> list[Any]:
        # While an option waits for its value, click leaves the words before it where they were.
        from topo.cli.offers import offers

        file = context.params.get("file") or next(iter(context.args), "")
        return offers(what, file if isinstance(file, str) else file[0], begun)

    return offered


def asks_machine(verb: _Verb, *, required: bool = True, many: bool = False) -> _Verb:
    """Give a verb FILE, ``--set`` and ``--without``, as one `machine`; its file may be empty.

    Of `many` they are `machines`, at least one.
    """
    metavar = "FILE" if required else "[FILE]"

    @click.argument(
        "file",
        metavar=f"{metavar}..." if many else metavar,
        required=required,
        nargs=-1 if many else 1,
        shell_complete=completes("machines"),
    )
    @click.option(
        "overrides",
        "--set",
        metavar="KEY=VALUE",
        multiple=True,
        callback=lambda _, option, values: tuple(_pair(value, option) for value in values),
        help="Change one value: slot1.part=connectx-8-dual-port, settings.iommu=on, "
        "'slot1 -- cpu1.rate=40 GB/s' (repeatable).",
    )
    @click.option(
        "--without",
        metavar="DEVICE",
        multiple=True,
        help="What is out of order: slot1, gpu[0-3], node3, or a cable, 'leaf0 -- spine0' "
        "(repeatable).",
        shell_complete=completes("devices"),
    )
    @wraps(verb)
    def wrapped(
        *,
        file: str | tuple[str, ...] | None,
        overrides: tuple[tuple[str, str], ...],
        without: tuple[str, ...],
        **options: Any,
    ) -> int:
        files = file if isinstance(file, tuple) else (file or "",)
        Session.answers_about(*files)
        Session.current().without = without
        machines = tuple(Machine(file, dict(overrides), without) for file in files or ("",))
        return verb(**({"machines": machines} if many else {"machine": machines[0]}), **options)

    return wrapped


def asks_host(verb: _Verb) -> _Verb:
    """Give a verb's `machine` what its host's tools say: ``--cufile`` and ``--gdscheck``."""

    @click.option("--cufile", metavar="JSON", default="", help="The host's cufile.json.")
    @click.option("--gdscheck", metavar="TEXT", default="", help="The text of `gdscheck -p` there.")
    @wraps(verb)
    def wrapped(*, machine: Machine, cufile: str, gdscheck: str, **options: Any) -> int:
        return verb(machine=replace(machine, cufile=cufile, gdscheck=gdscheck), **options)

    return wrapped


def _names(*option: str, of: str, **attributes: Any) -> Callable[[_Verb], _Verb]:
    """Give a verb an option that names one of something; a shell offers them."""
    return click.option(*option, shell_complete=completes(of), **attributes)


def asks_question(verb: _Verb) -> _Verb:
    """Give a verb the workload, what a model asks for, data paths and ends, as one `question`."""

    @_names("--workload", of="workloads", metavar="NAME", help="One workload of the file.")
    @_names(
        "--needs",
        of="needs",
        metavar="MODEL",
        help="How many GPUs are fed with what MODEL reads (`topo parts needs` lists models).",
    )
    @_names(
        "--checkpoint",
        of="checkpoint",
        metavar="MODEL",
        help="How long GPUs write a checkpoint of MODEL, and how often is best.",
    )
    @_names(
        "--via",
        of="data paths",
        metavar="PATH",
        multiple=True,
        callback=lambda _ctx, _option, values: lists(values),
        help="Data path to ask about: legacy, direct, ... (repeatable, or a,b).",
    )
    @_names(
        "source", "--from", of="devices", metavar="DEVICE", default="", help="Where data starts."
    )
    @_names("target", "--to", of="devices", metavar="DEVICE", default="", help="Where it goes.")
    @wraps(verb)
    def wrapped(
        *,
        workload: str | None,
        needs: str | None,
        checkpoint: str | None,
        via: tuple[str, ...],
        source: str,
        target: str,
        **options: Any,
    ) -> int:
        asked = {"--workload": workload, "--needs": needs, "--checkpoint": checkpoint}
        named = [option for option, word in asked.items() if word is not None]
        if workload and (source or target):
            named.append("--from/--to")
        if len(named) > 1:
            raise click.UsageError(f"{' and '.join(named[:2])} are two questions: ask one.")
        question = Question(workload, via, source, target, needs, checkpoint)
        return verb(question=question, **options)

    return wrapped


def asks_how(verb: _Verb, *, at: Basis = "theoretical") -> _Verb:
    """Give a verb the basis, `at` where nobody says one, and the policy, as one `how`."""
    from topo.description.description import BASES, Pairing

    @choice("--at", BASES, "Which figure of each capacity to use.", at)
    @choice("--nics", ("nearest", "stripe", "best"), "Which network cards serve a GPU.")
    @choice(
        "--routes", ("spread", "first"), "Share equally good routes, or take the first by name."
    )
    @click.option(
        "--buffers",
        metavar="BUFFER=PLACE",
        multiple=True,
        callback=lambda _, option, values: tuple(_pair(pair, option) for pair in lists(values)),
        help="Where a RAM buffer lies: kernel=near-nic, all=ram0 (repeatable, or a,b).",
    )
    @click.option(
        "--pairing",
        type=click.Choice(get_args(Pairing)),
        help="Which of several each takes: all its nearest (of RAM unless said), all, in order.",
    )
    @wraps(verb)
    def wrapped(
        *,
        at: Basis,
        nics: Any,
        routes: Any,
        buffers: tuple[tuple[str, str], ...],
        pairing: Any,
        **options: Any,
    ) -> int:
        from topo.routes.route import Policy

        policy = Policy(routes=routes, nics=nics, buffers=buffers, pairing=pairing or "")
        return verb(how=How(at, policy), **options)

    return wrapped


def asks_json(verb: _Verb) -> _Verb:
    """Give a verb ``--json``, and remember it for failures."""

    def remember(ctx: click.Context, _option: click.Parameter, value: bool) -> bool:
        ctx.ensure_object(Session).as_json = value
        return value

    words = "Print one JSON document."
    option = click.option(
        "as_json", "--json", is_flag=True, is_eager=True, callback=remember, help=words
    )
    return option(verb)


def asks_markdown(verb: _Verb) -> _Verb:
    """Give a verb whose answer is a page ``--markdown``; it takes nothing of it but the page."""

    def remember(ctx: click.Context, _option: click.Parameter, value: bool) -> None:
        session = ctx.ensure_object(Session)
        session.as_markdown = value
        if value and session.as_json:
            raise click.UsageError("--markdown and --json are two forms of one answer: give one.")

    words = "Print Markdown, for an issue or a pull request."
    option = click.option(
        "--markdown", is_flag=True, expose_value=False, callback=remember, help=words
    )
    return option(verb)


def draws(what: str) -> Callable[[_Verb], _Verb]:
    """Give a verb ``-o`` and ``--theme`` for a picture of something."""
    theme = choice("--theme", THEMES, "Of the picture.")
    output = click.option(
        "-o",
        "--output",
        metavar="FILE",
        help=f"Draw {what} as well: FILE.svg, .png, .pdf, .dot or .drawio.",
    )
    return lambda verb: output(theme(verb))


draws_timeline = draws("who runs when")


def lists(values: Iterable[str]) -> tuple[str, ...]:
    """Return the words of a repeatable option that also takes ``a,b``, each once."""
    words = (word.strip() for value in values for word in value.split(","))
    return tuple(dict.fromkeys(word for word in words if word))


def _pair(text: str, option: click.Parameter) -> tuple[str, str]:
    key, sign, value = text.partition("=")
    if not sign or not key.strip() or not value.strip():
        raise click.BadParameter(f"`{text}` is not {option.metavar}", param=option)
    return key.strip(), value.strip()


# --- where answers go -----------------------------------------------------------------------------


def put_page(blocks: Iterable[Block], findings: Iterable[Finding] = ()) -> int:
    """Print a page as text or Markdown, then the findings; return the exit code."""
    if Session.current().as_markdown:
        from topo.views.markup import markdown

        return put_text(markdown(blocks), findings)
    return put_text(_rendered(blocks, sys.stdout), findings)


def put_beside(blocks: Iterable[Block], *, on_output: bool) -> None:
    """Print a page on how an answer came about: where the answer goes only if that is a file."""
    stream = sys.stdout if on_output else sys.stderr
    with suppress(*(() if on_output else (OSError,))):
        _write(stream, _rendered(blocks, stream))


def _rendered(blocks: Iterable[Block], stream: TextIO | None) -> str:
    from topo.views.text.page import render

    width = _WIDTH
    if stream is not None and stream.isatty():
        from shutil import get_terminal_size

        width = min(get_terminal_size().columns, _WIDEST)
    return render(blocks, width=width, color=_in_color(stream))


def put_text(text: str, findings: Iterable[Finding] = ()) -> int:
    """Print text as it is, then the findings; return the exit code."""
    _write(sys.stdout, text)
    return _tell(findings)


def put_document(
    document: Mapping[str, Any], findings: Iterable[Finding] = (), *, keeps: bool = False
) -> int:
    """Print a JSON document and return the exit code.

    Findings that are no errors go into the document under ``findings``. An error leaves one
    document all the same: the findings, unless it `keeps` what it has.
    """
    return _put_document(document, tuple(findings), Session.current(), keeps=keeps)


def _put_document(
    document: Mapping[str, Any],
    findings: tuple[Finding, ...],
    session: Session,
    *,
    keeps: bool = False,
) -> int:
    from topo.views.documents import findings_document
    from topo.views.json import encoded

    failed = any(finding.severity == "error" for finding in findings)
    failure = findings_document(findings)
    without = {"without": list(session.without)} if session.without else {}
    if failed and not keeps:
        document = failure
    else:
        document = {**document, **without, "findings": failure["findings"]}
    _write(sys.stdout, encoded(document, folder=session.folders))
    return int(failed)


def fail(findings: Iterable[Finding], session: Session) -> int:
    """Print what an error found, as JSON if that was asked for; return the exit code."""
    if session.as_json:
        return _put_document({}, tuple(findings), session)
    return _tell(findings)


def _tell(findings: Iterable[Finding]) -> int:
    """Print findings to standard error; 1 if one of them is an error."""
    findings = tuple(findings)
    if findings:
        from topo.views.findings import render_findings

        with suppress(OSError):  # nobody listens: the exit code still says it
            _write(sys.stderr, render_findings(findings, color=_in_color(sys.stderr)))
    return int(any(finding.severity == "error" for finding in findings))


def _write(stream: TextIO | None, text: str) -> None:
    if stream is None:
        if text:
            raise OSError(None, "it is closed")
        return
    encoding = stream.encoding or "utf-8"
    try:
        text.encode(encoding)
    except UnicodeEncodeError:
        text = text.encode(encoding, "replace").decode(encoding)
    # In pieces: an unbuffered Python counts the part that a closed pipe still took as the whole.
    for start in range(0, len(text), _PIECE):
        stream.write(text[start : start + _PIECE])
    stream.flush()


def _in_color(stream: TextIO | None) -> bool:
    if stream is None or os.environ.get("NO_COLOR") or os.environ.get("TERM") == "dumb":
        return False
    return stream.isatty()


@contextmanager
def progress(label: str, *, unit: str = "") -> Iterator[Callable[[int, int], None]]:
    """Yield what is told how much of the work is done, and of how much.

    It is shown on standard error where that is a terminal, and where the work takes long; with a
    `unit` how many of these are done in a second, too.
    """
    began, shown = time.monotonic(), ExitStack()
    bars: list[Any] = []
    start: dict[str, tuple[int, float]] = {}  # how much was done when it was told first

    def tell(done: int, total: int) -> None:
        if sys.stderr is None or not sys.stderr.isatty():
            return
        now = time.monotonic()
        first, since = start.setdefault("told", (done, now))
        rate_words = f"{(done - first) / (now - since):,.0f} {unit}/s" if now > since else ""
        if not bars and now - began > _PATIENCE:
            rate = (lambda words: words) if unit else None
            bar = click.progressbar(
                length=total, label=label, file=sys.stderr, item_show_func=rate, show_pos=bool(unit)
            )
            bar.start -= now - began  # what is done took that long, and tells the time left
            bars.append(shown.enter_context(bar))
        for bar in bars:
            bar.length = total
            bar.update(done - bar.pos, rate_words if unit else None)

    with shown:
        yield tell
