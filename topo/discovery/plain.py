"""Foreign text, read with limits: encodings, escape sequences and line ends put right."""

from __future__ import annotations

import codecs
import re
from typing import Final

from topo.errors import ExchangeError, Finding

_ESCAPES: Final = re.compile(r"\x1b\[[0-9;?]{0,20}[A-Za-z]|\x1b[()][A-Z0-9]")
_LARGEST: Final = 8 * 2**20
_LONGEST: Final = 100_000


def read_lines(data: bytes, name: str) -> list[str]:
    """Return the lines of a text, without escape sequences.

    Parameters
    ----------
    data, name
        The text in UTF-8, or UTF-16 with its mark, as PowerShell writes; and its name.

    Raises
    ------
    ExchangeError
        If it is too big, or no text.
    """
    if len(data) > _LARGEST:
        message = f"`{name}` has {len(data) >> 20} MiB of text, more than {_LARGEST >> 20}"
        raise ExchangeError(Finding("import-too-big", message))
    text = _decoded(data)
    if "\x00" in text:
        raise ExchangeError(Finding("wrong-kind", f"`{name}` is a binary file"))
    lines = _ESCAPES.sub("", text).replace("\r\n", "\n").replace("\r", "\n").split("\n")
    if any(len(line) > _LONGEST for line in lines):
        message = f"`{name}` has a line of more than {_LONGEST} characters"
        raise ExchangeError(Finding("import-too-big", message))
    return lines


def _decoded(data: bytes) -> str:
    if data.startswith((codecs.BOM_UTF16_LE, codecs.BOM_UTF16_BE)):
        return data.decode("utf-16", "replace")
    return data.decode("utf-8-sig", "replace")
