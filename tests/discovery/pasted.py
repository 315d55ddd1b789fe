"""Texts as people paste them, and as damage leaves them."""

from __future__ import annotations

import re
import time

from topo.discovery.apart import is_of_several_hosts
from topo.discovery.importing import discover, import_machine
from topo.errors import Finding, TopoError
from topo.topology.build import build_topology

LIMIT_S = 10


def ragged(text):
    """Return a text in the forms that pasting gives it, each of which tells the same."""
    lines = text.splitlines()
    return {
        "quoted": "".join(f"> {line}\n" for line in lines),
        "fenced": f"what I see here:\n\n```\n{text}```\n",
        "Windows": "\ufeff" + text.replace("\n", "\r\n"),
        "coloured": "".join(f"\x1b[1;32m{line}\x1b[0m\x1b[K\n" for line in lines),
        "a prompt above": f"root@node7:~# ./this -v --all\n{text}root@node7:~# \n",
        "spaces behind": "".join(f"{line}   \n" for line in lines),
        "UTF-16": text.encode("utf-16"),
    }


def shape(imported):
    """Return the lines of an imported file without comments."""
    lines = imported.yaml.splitlines()
    return [re.sub(r"\s+#.*", "", line) for line in lines if not line.startswith("#")]


def survives(data, *, kind=None):
    """Import, and build what comes of it; anything but a TopoError fails, and so do 10 s."""
    start = time.process_time()
    findings: tuple[Finding, ...] = ()
    try:
        machine = discover(kind, data, "damaged")
        if not is_of_several_hosts(machine):
            build_topology(import_machine(machine).description)
    except TopoError as error:
        findings = error.findings
    assert all(finding.code and finding.message for finding in findings)
    assert time.process_time() - start < LIMIT_S


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
