"""What Tab offers for a word that is begun: machines, and what is in the one asked about."""

from __future__ import annotations

from contextlib import suppress
from pathlib import Path

from click.shell_completion import CompletionItem

_MOST = 2000  # devices that are offered
_YAML = (".yaml", ".yml")


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
