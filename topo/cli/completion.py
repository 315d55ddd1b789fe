"""`topo completion`: what a shell runs so that Tab completes verbs, options, machines, devices."""

from __future__ import annotations

import re
from contextlib import suppress
from typing import Final

import click
from click.shell_completion import CompletionItem, ShellComplete, get_completion_class

from topo.cli import verb

_SHELLS = ("bash", "zsh", "fish")
_NOT_PLAIN: Final = re.compile(r"([^\w%+,./:=@-])")


@verb.command("topo completion bash", "topo completion fish")
@click.argument("shell", metavar="SHELL", type=click.Choice(_SHELLS))
@verb.asks_json
def command(shell: str, as_json: bool) -> int:
    """Print what makes a shell complete verbs, options, machines and devices.

    SHELL is bash, zsh or fish. In ~/.bashrc: eval "$(topo completion bash)"; in ~/.zshrc: eval
    "$(topo completion zsh)"; for fish: topo completion fish > ~/.config/fish/completions/topo.fish
    """
    asked = _of(shell, click.get_current_context().find_root().command)
    script = asked.source_template % asked.source_vars()
    if as_json:
        document = {"schema": "topo.completion/1", "shell": shell, "script": script}
        return verb.put_document(document)
    return verb.put_text(script)


def answer(instruction: str, program: click.Command) -> int:
    """Print what a shell asks for by the variable, ``bash_complete``; 1 for what none asks."""
    shell, _, asked = instruction.partition("_")
    if shell not in _SHELLS or asked != "complete":
        return 1
    with suppress(Exception):  # a shell is no place for findings
        click.echo(_of(shell, program).complete())
    return 0


def _of(shell: str, program: click.Command) -> ShellComplete:
    """Return click's own way with a shell, less what goes wrong there in a real one.

    Where nothing else is offered, files are.
    """
    kind = get_completion_class(shell)
    assert kind is not None
    script = kind.source_template
    # Values have commas, a,b, and so have descriptions; and blanks, which bash has escaped.
    for as_it_is, better in (('split ","', 'split --max 1 ","'), ("read type", "read -r type")):
        script = script.replace(as_it_is, better)

    class Completion(kind):  # type: ignore[misc, valid-type]
        source_template = script

        def get_completion_args(self) -> tuple[list[str], str]:
            words, begun = super().get_completion_args()
            return [word for word in words if word != "="], begun  # bash: `--at`, `=`, `measured`

        def get_completions(self, args: list[str], incomplete: str) -> list[CompletionItem]:
            offered: list[CompletionItem] = super().get_completions(args, incomplete)
            option, equals, _ = incomplete.partition("=")
            if equals and option.startswith("--"):  # one word, which what is offered replaces
                return [CompletionItem(f"{option}={item.value}") for item in offered]
            is_option = incomplete.startswith("-")
            return offered or [CompletionItem(incomplete, type="file")] * (not is_option)

        def format_completion(self, item: CompletionItem) -> str:
            if shell == "bash" and item.type == "plain":  # which takes it as it would be typed
                item = CompletionItem(_NOT_PLAIN.sub(r"\\\1", item.value))
            text: str = super().format_completion(item)
            return text

    return Completion(program, {}, "topo", verb.COMPLETION_VARIABLE)
