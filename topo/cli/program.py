"""The program: finds the verb, runs it, and turns whatever happens into an exit code.

0 is an answer; 1 says that something in the input is wrong or an expectation failed; 2 is a
command line that topo does not understand. A pipe closed by its reader is 141 and an interrupt
130, as shells count them. Nothing here ends in a traceback.
"""

from __future__ import annotations

import os
import sys
from importlib import import_module
from keyword import iskeyword
from typing import TYPE_CHECKING

import click

from topo import __version__
from topo.cli.output import Session, fail
from topo.cli.verbs import VERBS, hint
from topo.errors import TopoError
from topo.files import unwritable

if TYPE_CHECKING:
    from collections.abc import Sequence


_USAGE = 2
_INTERRUPTED = 130
_PIPE_CLOSED = 141


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
            message = f"no verb `{args[0]}`."
            raise click.UsageError(
                f"{message} Did you mean `{advice}`?" if advice else message, ctx
            )
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
    words = list(sys.argv[1:] if arguments is None else arguments)
    try:
        code = _run(words, session)
        _flush()
    except BrokenPipeError:
        return _abandon(_PIPE_CLOSED)
    except OSError as error:
        # Files report their own errors where they are written: this is standard output.
        fail(unwritable("standard output", error), Session())
        return _abandon(1)
    except KeyboardInterrupt:
        return _INTERRUPTED
    return code


def _run(words: list[str], session: Session) -> int:
    try:
        with program.make_context("topo", words, obj=session) as context:
            code: int | None = program.invoke(context)
    except TopoError as error:
        return fail(error, session)
    except click.exceptions.Exit as asked:
        return asked.exit_code
    except click.Abort:
        raise KeyboardInterrupt from None
    except click.ClickException as wrong:
        wrong.show()
        return _USAGE
    return code or 0


def _flush() -> None:
    if sys.stdout is not None:
        sys.stdout.flush()


def _abandon(code: int) -> int:
    """Point standard output at nothing, so that Python's last flush finds a place to go."""
    try:
        nowhere = os.open(os.devnull, os.O_WRONLY)
        os.dup2(nowhere, sys.stdout.fileno())
        os.close(nowhere)
    except (OSError, ValueError, AttributeError):
        pass  # no file behind it, so nothing to flush
    return code
