"""`topo completion`: what a shell runs so that Tab completes verbs, options, machines, devices."""

from __future__ import annotations

from contextlib import suppress
from pathlib import Path

import click
from click.shell_completion import CompletionItem, ShellComplete, get_completion_class

from topo.cli import verb

_SHELLS = ("bash", "zsh", "fish")
_MOST = 2000  # devices that are offered
_YAML = (".yaml", ".yml")


@verb.command("topo completion bash", "topo completion fish")
@click.argument("shell", metavar="SHELL", type=click.Choice(_SHELLS))
@verb.asks_json
def command(shell: str, as_json: bool) -> int:
    """Print what makes a shell complete verbs, options, machines and devices.

    SHELL is bash, zsh or fish. In ~/.bashrc: eval "$(topo completion bash)"; in ~/.zshrc: eval
    "$(topo completion zsh)"; for fish: topo completion fish > ~/.config/fish/completions/topo.fish
    """
    script = _of(shell).source_template % _of(shell).source_vars()
    if as_json:
        document = {"schema": "topo.completion/1", "shell": shell, "script": script}
        return verb.put_document(document)
    return verb.put_text(script)


def answer(instruction: str) -> int:
    """Print what a shell asks for by the variable, ``bash_complete``; 1 for what none asks."""
    shell, _, asked = instruction.partition("_")
    if shell not in _SHELLS or asked != "complete":
        return 1
    with suppress(Exception):  # a shell is no place for findings
        click.echo(_of(shell).complete())
    return 0


def _of(shell: str) -> ShellComplete:
    """Return click's own way with a shell; where nothing else is offered, files are."""
    from topo.cli.program import COMPLETION_VARIABLE, program

    kind = get_completion_class(shell)
    assert kind is not None

    class OrFiles(kind):  # type: ignore[misc, valid-type]
        def get_completions(self, args: list[str], incomplete: str) -> list[CompletionItem]:
            offered: list[CompletionItem] = super().get_completions(args, incomplete)
            is_option = incomplete.startswith("-")
            return offered or [CompletionItem(incomplete, type="file")] * (not is_option)

    return OrFiles(program, {}, "topo", COMPLETION_VARIABLE)


def offers(what: str, file: str, begun: str) -> list[CompletionItem]:
    """Return what may stand for a word that is begun, of the machine in `file`; files if nothing.

    Parameters
    ----------
    what
        ``machines``, ``devices``, ``workloads`` or ``data paths``.
    file, begun
        The machine that is asked about, and what of the word is typed.
    """
    # Of several, a,b, the last is begun.
    before, comma, begun = begun.rpartition(",")
    names: list[str] = []
    with suppress(Exception):  # a file with mistakes has no names to offer
        names = _names(what, file)
    return [CompletionItem(f"{before}{comma}{name}") for name in names if name.startswith(begun)]


def _names(what: str, file: str) -> list[str]:
    if what == "machines":
        from topo.description.locating import builtin_names

        here = (path for path in Path().iterdir() if path.suffix in _YAML and path.is_file())
        return [*builtin_names(), *sorted(path.name for path in here)]
    if what == "data paths":
        from topo.description.data_paths import built_in_files

        return list(built_in_files())
    if file in ("", "-"):
        return []
    from topo.topology.build import load

    topology = load(file)
    if what == "workloads":
        return [workload.name for workload in topology.description.workloads]
    return list(topology.devices)[:_MOST]
