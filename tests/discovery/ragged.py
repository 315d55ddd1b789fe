"""Ways in which people paste the output of a tool: quoted, coloured, with a prompt above it."""

from __future__ import annotations

import re
import time
from contextlib import suppress

from topo.errors import TopoError

ESCAPE, PLAIN_AGAIN = "\x1b[0;32m", "\x1b[0m"


def ragged_twins(text):
    """Return what a reader should take for the same: by name, the text as it gets pasted."""
    lines = text.splitlines()
    return {
        "windows": "\r\n".join(lines).encode(),
        "tabs lost": "\n".join(line.replace("\t", "    ") for line in lines).encode(),
        "quoted": "\n".join(f"> {line}" for line in lines).encode(),
        "fenced": f"```console\nme@host:~$ the-tool --all\n{text}\n```\n".encode(),
        "coloured": "\n".join(
            re.sub(r"(\S+)(\s*)$", f"{ESCAPE}\\1{PLAIN_AGAIN}\\2", line) for line in lines
        ).encode(),
        "utf-16": text.encode("utf-16"),
        "trailing spaces": "\n".join(f"{line}   " for line in lines).encode(),
    }


def hostile_twins(text):
    """Return what must not hang, grow or show a traceback: by name."""
    return {
        "numbers": re.sub(r"\d+", "9" * 300, text).encode(),
        "long line": (text + "\n" + "x 1:" * 30_000).encode(),
        "many": (text + "\n").encode() * 2_000,
        "control": re.sub(r"([a-z])(\d)", "\\1\x07\x1b]0;\u202e\\2", text).encode(),
        "empty values": re.sub(r":\s*\S+$", ":", text, flags=re.MULTILINE).encode(),
        "one column": ("\t" * 100_000 + text).encode(),
        "cut": text[: len(text) // 2].encode(),
    }


def survives(read, *, seconds=5):
    """Return what reading gives, `None` where it is refused with findings; soon, either way."""
    start = time.process_time()
    result = None
    with suppress(TopoError):
        result = read()
    assert time.process_time() - start < seconds
    return result
