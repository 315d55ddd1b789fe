"""One host by all that it says of itself: /sys first, then what its tools print.

The tools have run on this host just now, or stand in a copy beside ``sys``, in the folder `TEXTS`.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Sequence
from dataclasses import replace
from typing import Final

from topo.discovery.combine import combined
from topo.discovery.file_kinds import file_kind
from topo.discovery.machine import Machine
from topo.discovery.sources.file_tree import TEXTS, FileTree
from topo.discovery.sources.sysfs import read_tree
from topo.errors import ExchangeError, Finding
from topo.records import dataclass

_ENDING: Final = ".txt"
_NUMBER: Final = re.compile(r"^\d\d\+")
_MOST_TEXTS: Final = 64
_Reader = Callable[[str | None, bytes, str], Machine]


@dataclass(frozen=True, slots=True)
class HostText:
    """What a tool printed on the host: `command` is what was typed."""

    command: str
    data: bytes

    def file(self, number: int) -> str:
        """Return where a copy has it as the number-th: ``texts/01+nvidia-smi+topo+-m.txt``."""
        return f"{TEXTS}/{number:02}+{self.command.replace(' ', '+')}{_ENDING}"


@dataclass(frozen=True, slots=True)
class HostMachine:
    """A host as its sources tell it together.

    Parameters
    ----------
    machine
        The machine.
    used
        What was made of each text, by its command: ``""`` where it went into the machine, else why
        it did not.
    """

    machine: Machine
    used: dict[str, str]


def texts_in(tree: FileTree) -> tuple[HostText, ...]:
    """Return the texts that a copy has beside ``sys``, in the order of their numbers."""
    return tuple(
        HostText(
            _NUMBER.sub("", name.removesuffix(_ENDING)).replace("+", " "),
            tree.data(f"/{TEXTS}/{name}"),
        )
        for name in tree.names(f"/{TEXTS}")[:_MOST_TEXTS]
        if name.endswith(_ENDING)
    )


def machine_of(tree: FileTree, name: str, texts: Sequence[HostText], read: _Reader) -> HostMachine:
    """Return the machine of a host's /sys with what its tools add to it.

    A text that nothing reads, or that tells of another machine than /sys does, is left out.

    Parameters
    ----------
    tree, name
        The files of the host, and what messages call it.
    texts
        What its tools printed, in the order in which they are to be believed.
    read
        Reads one of them: `discover`.

    Raises
    ------
    ExchangeError
        If neither /sys nor a text tells a machine.
    """
    used: dict[str, str] = {}
    machines: list[Machine] = []
    refusal: ExchangeError | None = None
    try:
        machines.append(read_tree(tree, name))
    except ExchangeError as error:
        refusal = error
    for text in texts:
        kind = file_kind(text.data)
        if not kind.importer:
            used[text.command] = "topo does not read it"
            continue
        try:
            machine = read(kind.importer, text.data, text.command)  # nobody wrote around it
            together = combined([*machines, machine])
            grave = [finding for finding in together.findings if finding.severity == "error"]
            if grave and machines:
                used[text.command] = f"left out: {grave[0].message}"
                continue
        except ExchangeError as error:
            used[text.command] = f"left out: {error.findings[0].message}"
            continue
        used[text.command] = ""
        machines = [together]
    if not machines:
        raise refusal or ExchangeError(())
    left_out = [
        Finding("host-text-left-out", f"`{command}` was {reason}", severity="warning")
        for command, reason in used.items()
        if reason.startswith("left out")
    ]
    (machine,) = machines
    return HostMachine(replace(machine, file=name, findings=(*machine.findings, *left_out)), used)
