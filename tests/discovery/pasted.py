"""Texts as people paste them, and as damage leaves them."""

from __future__ import annotations

import re
import time

from topo.discovery.apart import is_of_several_hosts
from topo.discovery.importing import discover, import_machine
from topo.errors import Finding, TopoError
from topo.topology.build import build_topology


def ragged(text):
    """Return a text in the forms that pasting gives it, each of which tells the same: by name."""
    lines = text.splitlines()
    text = "".join(f"{line}\n" for line in lines)
    return {
        "quoted": "".join(f"> {line}\n" for line in lines).encode(),
        "fenced": f"what I see here:\n\n```\n{text}```\n".encode(),
        "fenced, with a prompt": f"```console\nme@host:~$ the-tool --all\n{text}\n```\n".encode(),
        "Windows": ("\ufeff" + "\r\n".join(lines)).encode(),
        "coloured": "".join(f"\x1b[1;32m{line}\x1b[0m\x1b[K\n" for line in lines).encode(),
        "last words coloured": "\n".join(
            re.sub(r"(\S+)(\s*)$", "\x1b[0;32m\\1\x1b[0m\\2", line) for line in lines
        ).encode(),
        "a prompt above": f"root@node7:~# ./this -v --all\n{text}root@node7:~# \n".encode(),
        "spaces behind": "".join(f"{line}   \n" for line in lines).encode(),
        "UTF-16": text.encode("utf-16"),
    }


def hostile(text):
    """Return what must not hang, grow or show a traceback: by name."""
    return {
        "numbers": re.sub(r"\d+", "9" * 300, text).encode(),
        "long line": (text + "\n" + "x 1:" * 30_000).encode(),
        "many": (text + "\n").encode() * 500,
        "control": re.sub(r"([a-z])(\d)", "\\1\x07\x1b]0;\u202e\\2", text).encode(),
        "empty values": re.sub(r":\s*\S+$", ":", text, flags=re.MULTILINE).encode(),
        "one column": ("\t" * 100_000 + text).encode(),
        "cut": text[: len(text) // 2].encode(),
    }


def mutated(data, chance):
    """Return a text with lines and bytes of it cut, doubled, swapped or changed."""
    lines = data.splitlines(keepends=True) or [b"\n"]
    for _ in range(chance.randint(1, 5)):
        at, second = (chance.randrange(len(lines)) for _ in range(2))
        how = chance.randrange(6)
        if how == 0:
            del lines[at : at + chance.randint(1, 4)]
        elif how == 1:
            lines.insert(at, lines[second])
        elif how == 2:
            lines[at], lines[second] = lines[second], lines[at]
        else:
            line = bytearray(lines[at])
            place, count = chance.randint(0, len(line)), chance.randint(0, 6)
            alphabet = range(256) if how == 3 else b'0123456789abcdef.:/[](){}- "xX'
            line[place : place + chance.randint(0, 6)] = bytes(chance.choices(alphabet, k=count))
            lines[at] = bytes(line)
        lines = lines or [b"\n"]
    return b"".join(lines)


def shape(imported):
    """Return the lines of an imported file without comments."""
    lines = imported.yaml.splitlines()
    return [re.sub(r"\s+#.*", "", line) for line in lines if not line.startswith("#")]


def survives(read, *, seconds=10):
    """Return what reading gives, `None` where it is refused with findings; soon, either way."""
    start = time.process_time()
    result = None
    findings: tuple[Finding, ...] = ()
    try:
        result = read()
    except TopoError as error:
        findings = error.findings
    assert all(finding.code and finding.message for finding in findings)
    assert time.process_time() - start < seconds
    return result


def survives_import(data, *, kind=None):
    """Import, and build what comes of it: a result or findings, and soon."""

    def read():
        machine = discover(kind, data, "damaged")
        if not is_of_several_hosts(machine):
            build_topology(import_machine(machine).description)

    survives(read, seconds=30)
