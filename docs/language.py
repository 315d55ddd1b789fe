"""The end of `docs/language.md`: every key of a topology file, from the tables of its readers.

    python -m docs.language

writes it anew; a test holds that it is.
"""

from __future__ import annotations

from collections.abc import Iterator
from itertools import groupby
from pathlib import Path

from topo.catalogue.kinds import KINDS
from topo.description.reference import KeyUse, key_uses
from topo.files import write_file

PAGE = Path(__file__).parent / "language.md"
HEADING = "## Every key\n"


def with_every_key(text: str) -> str:
    """Return the page with its last chapter made anew."""
    before, _, _ = text.partition(HEADING)
    return before + HEADING + "\n" + "\n".join(chapter())


def chapter() -> Iterator[str]:
    """Yield the lines of the chapter: a table for each place."""
    yield "Keys that begin with `x-` are yours and not read."
    for place, uses in groupby(key_uses(), key=lambda use: use.place):
        yield f"\nIn {place}:\n"
        yield "| key | means | holds |"
        yield "|---|---|---|"
        yield from map(row, uses)


def row(use: KeyUse) -> str:
    """Return one key as a line of a table."""
    kinds = f" ({', '.join(use.kinds)})" if use.kinds and set(use.kinds) != set(KINDS) else ""
    return f"| `{use.key}` | {use.meaning}{kinds} | {use.holds} |"


if __name__ == "__main__":
    write_file(str(PAGE), with_every_key(PAGE.read_text(encoding="utf-8")) + "\n")
