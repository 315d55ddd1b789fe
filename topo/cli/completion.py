"""`topo completion`: what a shell runs so that Tab completes verbs, options, machines, devices."""

from __future__ import annotations

from contextlib import suppress

import click
from click.shell_completion import CompletionItem, ShellComplete, get_completion_class

from topo.cli import verb

_SHELLS = ("bash", "zsh", "fish")


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
    """Return click's own way with a shell; where nothing else is offered, files are."""
    kind = get_completion_class(shell)
    assert kind is not None

    class OrFiles(kind):  # type: ignore[misc, valid-type]
        def get_completions(self, args: list[str], incomplete: str) -> list[CompletionItem]:
            offered: list[CompletionItem] = super().get_completions(args, incomplete)
            is_option = incomplete.startswith("-")
            return offered or [CompletionItem(incomplete, type="file")] * (not is_option)

    return OrFiles(program, {}, "topo", verb.COMPLETION_VARIABLE)
