"""What a shell offers where Tab is pressed: machines, devices, workloads, parts, words, models."""

from __future__ import annotations

from contextlib import suppress
from pathlib import Path
from typing import Final

from click.shell_completion import CompletionItem

_MOST_DEVICES: Final = 2000


def offers(what: str, file: str, begun: str) -> list[CompletionItem]:
    """Return what may stand for a word that is begun, of the machine in `file`; files if nothing.

    Parameters
    ----------
    what
        ``machines``, ``devices``, ``workloads``, ``data paths``, ``parts``, ``words`` (that are
        explained), ``sources`` (kinds of them, and files), or of models: ``needs``, ...
    file, begun
        The machine that is asked about, and what of the word is typed.
    """
    # Of several, a,b, the last is begun.
    before, comma, begun = begun.rpartition(",")
    names: list[str] = []
    with suppress(Exception):  # a file with mistakes has no names to offer
        names = _offered_names(what, file)
    return [CompletionItem(f"{before}{comma}{name}") for name in names if name.startswith(begun)]


def _offered_names(what: str, file: str) -> list[str]:
    if what in ("machines", "sources"):
        from topo.description.locating import builtin_names
        from topo.discovery.file_kinds import KINDS

        here = sorted(path.name for path in Path().iterdir() if path.is_file())
        if what == "sources":
            return [*KINDS, *here]
        return [*builtin_names(), *(name for name in here if name.endswith((".yaml", ".yml")))]
    if what in ("needs", "checkpoint"):
        from topo.catalogue.needs import needs
        from topo.description.needs import serves

        return [name for name, need in needs().items() if serves(need, what)]
    if what in ("data paths", "parts", "words"):
        from topo.catalogue.needs import needs
        from topo.catalogue.parts import catalogue
        from topo.description.data_paths import built_in_files
        from topo.views.explain import pages

        models, paths = list(needs()), list(built_in_files())
        return {
            "data paths": paths,
            "parts": [*catalogue().parts, *catalogue().media, *models],
            "words": [*pages(), *paths, *models],
        }[what]
    if file in ("", "-"):
        return []
    from topo.topology.build import load

    topology = load(file)
    if what == "workloads":
        return [workload.name for workload in topology.description.workloads]
    return list(topology.devices)[:_MOST_DEVICES]
