"""Where each entry of the shipped catalogue stands: names without reading any entry."""

from __future__ import annotations

import re
from functools import cache
from pathlib import Path
from typing import TYPE_CHECKING, Final

if TYPE_CHECKING:
    from collections.abc import Iterator


DATA: Final = Path(__file__).parent / "data"
PART_FILES: Final = ("gpus", "nics", "cpus", "memory", "storage", "drives", "switches")
_ENTRY: Final = re.compile(r"^([A-Za-z][A-Za-z0-9._ -]*):", re.MULTILINE)


@cache
def part_names() -> tuple[str, ...]:
    """Return the names of all shipped parts, in the order of the files."""
    return tuple(name for file in PART_FILES for name, _ in entries(file))


def entries(file: str) -> Iterator[tuple[str, tuple[str, str]]]:
    """Yield each entry's name, file and text; empty lines keep its line numbers."""
    text = (DATA / f"{file}.yaml").read_text(encoding="utf-8")
    found = list(_ENTRY.finditer(text))
    ends = [entry.start() for entry in found[1:]] + [len(text)]
    line = 0
    at = 0
    for entry, end in zip(found, ends, strict=True):
        line += text.count("\n", at, entry.start())
        at = entry.start()
        yield entry[1], (file, "\n" * line + text[at:end])
