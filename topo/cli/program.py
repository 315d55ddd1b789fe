"""The program: lists the verbs, runs one, and turns whatever happens into an exit code.

0 is an answer; 1 says that something in the input is wrong or an expectation failed; 2 is a
command line that topo does not understand. A pipe closed by its reader is 141 and an interrupt
130, as shells count them. Nothing here ends in a traceback.
"""

from __future__ import annotations

import os
import shlex
import sys
from collections.abc import Sequence
from dataclasses import replace
from importlib import import_module
from keyword import iskeyword

import click

from topo import __version__
from topo.cli.verb import COMPLETION_VARIABLE, Session, fail
from topo.errors import CertificateError, TopoError
from topo.files import unwritable

_USAGE = 2
_INTERRUPTED = 130
_PIPE_CLOSED = 141

# In the order that help lists them; each is the first sentence of the verb's own help.
VERBS: dict[str, str] = {
    "compare": "Compare data paths: hops, copies, trips through RAM, rate, what limits each.",
    "check": "Read a file, look for mistakes, and judge the sentences of its `expect:`.",
    "show": "Show devices, links and resources, each figure with its source.",
    "paths": "List the data paths and their verdicts, or the routes between two devices.",
    "collective": "Say what busbw an all-reduce or the like should have, by which rings, and why.",
    "matrix": "Print the locality of every pair, as `nvidia-smi topo -m` does.",
    "affinity": "Say which network card and which drive each GPU should use, and why.",
    "bottleneck": "Say what binds, whom it stops, what would bind next, what more is worth.",
    "simulate": "Run the file's workloads together until each has its bytes.",
    "failures": "Say what is left when a link, card, switch, drive or appliance fails.",
    "diff": "Say what differs between two machines, and what it does to the answers.",
    "doubt": "Say how sure the answers are: what each guess does, and what to measure first.",
    "upgrade": "Rank changes: cards, cables, memory, storage, sockets, data paths.",
    "sweep": "Answer one question of many designs, and say which is best and what each price buys.",
    "draw": "Draw the machine and the way the data goes.",
    "report": "Write the answers as one page for a browser, with sliders that ask what if.",
    "import": "Make a topology file of what a machine or a tool says of itself.",
    "measure": "Put measured rates into a file, beside what topo expected.",
    "export": "Write the machine for other programs.",
    "parts": "List the catalogue, or show a part with the source of each figure.",
    "schema": "Print the JSON Schema of topology files, for editors.",
    "explain": "Explain a finding's code, a data path, a locality class, a key of files or a word.",
    "fmt": "Format topology files, keeping their comments.",
    "new": "Write a commented topology file to start from.",
    "completion": "Print what makes a shell complete verbs, options, machines and devices.",
}

# What other tools call it, and what to type here.
_HABITS: dict[str, str] = {
    "assign": "topo affinity FILE",
    "bottlenecks": "topo bottleneck FILE",
    "catalog": "topo parts",
    "catalogue": "topo parts",
    "convert": "topo export nccl FILE",
    "create": "topo new",
    "diagram": "topo draw FILE -o FILE.svg",
    "doc": "topo explain WORD",
    "dump": "topo export json FILE",
    "format": "topo fmt FILE",
    "graph": "topo draw FILE -o FILE.svg",
    "help": "topo --help",
    "info": "topo show FILE",
    "init": "topo new",
    "inspect": "topo show FILE",
    "lint": "topo check FILE",
    "list": "topo parts --machines",
    "load": "topo import FILE",
    "ls": "topo parts --machines",
    "machines": "topo parts --machines",
    "measured": "topo measure FILE RESULT",
    "man": "topo --help",
    "path": "topo paths FILE",
    "plot": "topo draw FILE -o FILE.svg",
    "print": "topo show FILE",
    "render": "topo draw FILE -o FILE.svg",
    "route": "topo paths FILE --from storage --to gpu0",
    "routes": "topo paths FILE --from storage --to gpu0",
    "run": "topo compare FILE",
    "test": "topo check FILE",
    "topo": "topo compare FILE",
    "validate": "topo check FILE",
    "verify": "topo check FILE",
    "version": "topo --version",
    "view": "topo show FILE",
    "visualize": "topo draw FILE -o FILE.svg",
}


class _Verbs(click.Group):
    """A group that imports a verb's file when the verb is called."""

    def list_commands(self, ctx: click.Context) -> list[str]:  # noqa: ARG002  (click's signature)
        return list(VERBS)

    def get_command(self, ctx: click.Context, name: str) -> click.Command | None:  # noqa: ARG002
        if name not in VERBS:
            return None
        file = f"{name}_" if iskeyword(name) else name
        command: click.Command = import_module(f"topo.cli.{file}").command
        return command

    def format_commands(self, ctx: click.Context, formatter: click.HelpFormatter) -> None:  # noqa: ARG002
        with formatter.section("Verbs"):
            formatter.write_dl(list(VERBS.items()))

    def resolve_command(
        self, ctx: click.Context, args: list[str]
    ) -> tuple[str | None, click.Command | None, list[str]]:
        if args[0] not in VERBS:
            advice = hint(args[0], args[1:])
            message = f"no verb `{args[0]}`." + (f" Did you mean `{advice}`?" if advice else "")
            raise click.UsageError(message, ctx)
        return super().resolve_command(ctx, args)


@click.group(
    cls=_Verbs,
    context_settings={"help_option_names": ["-h", "--help"], "max_content_width": 100},
    epilog="FILE is a YAML file, the name of a built-in machine (topo parts --machines), or -."
    "\n\n\b\nExample:\n  topo compare gds-textbook",
)
@click.version_option(__version__, message="topo %(version)s")
def program() -> None:
    """Which way data goes in a GPU server, how fast, and what limits it."""


def main(arguments: Sequence[str] | None = None) -> int:
    """Run the command line and return its exit code.

    Parameters
    ----------
    arguments
        The words after ``topo``; the process's own by default.
    """
    session = Session()
    if arguments is None and (instruction := os.environ.get(COMPLETION_VARIABLE)):
        from topo.cli.completion import answer

        return answer(instruction, program)
    words = list(sys.argv[1:] if arguments is None else arguments)
    try:
        code = _run(words, session)
        if sys.stdout is not None:
            sys.stdout.flush()
    except BrokenPipeError:
        return _abandon(_PIPE_CLOSED)
    except OSError as error:
        # Files report their own errors where they are written: this is standard output.
        fail(unwritable("standard output", error).findings, Session())
        return _abandon(1)
    except KeyboardInterrupt:
        return _INTERRUPTED
    return code


def _run(words: list[str], session: Session) -> int:
    try:
        with program.make_context("topo", words, obj=session) as context:
            code: int | None = program.invoke(context)
    except CertificateError as error:  # a fault of topo: what to send stands beside it
        command_line = f"the command line: {shlex.join(['topo', *words])}"
        return fail(
            (replace(fault, notes=(*fault.notes, command_line)) for fault in error.findings),
            session,
        )
    except TopoError as error:
        return fail(error.findings, session)
    except click.exceptions.Exit as end:
        return end.exit_code
    except click.Abort:
        raise KeyboardInterrupt from None
    except click.ClickException as error:
        error.show()
        return _USAGE
    return code or 0


def _abandon(code: int) -> int:
    """Point standard output at nothing, so that Python's last flush finds a place to go."""
    try:
        nowhere = os.open(os.devnull, os.O_WRONLY)
        os.dup2(nowhere, sys.stdout.fileno())
        os.close(nowhere)
    except (OSError, ValueError, AttributeError):
        pass  # no file behind it, so nothing to flush
    return code


# --- words that people try instead ----------------------------------------------------------------


def hint(word: str, arguments: list[str]) -> str:
    """Return what to type instead of ``topo WORD ARGUMENTS``, ``""`` when nothing comes to mind.

    Examples
    --------
    >>> hint("validate", ["box.yaml"])
    'topo check box.yaml'
    >>> hint("comprae", [])
    'topo compare'
    """
    if word == "help" and arguments and arguments[0] in VERBS:
        return f"topo {arguments[0]} --help"
    if word.lower() in _HABITS:
        advice = _HABITS[word.lower()]
        file = next((argument for argument in arguments if not argument.startswith("-")), "")
        if not file or " FILE" not in advice:
            return advice
        return advice.replace(" FILE.svg", " picture.svg").replace(" FILE", f" {file}")
    is_file = word == "-" or "/" in word or word.endswith((".yaml", ".yml"))
    if not is_file:
        from topo.description.locating import builtin_names

        is_file = word in builtin_names()
    if is_file:
        return " ".join(["topo compare", word, *arguments])
    from difflib import get_close_matches

    near = get_close_matches(word.lower(), VERBS, n=1)
    return " ".join(["topo", near[0], *arguments]) if near else ""
