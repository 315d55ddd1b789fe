"""Tab in real shells: bash and zsh at a terminal, fish as it asks itself."""

from __future__ import annotations

import os
import pty
import re
import select
import shutil
import signal
import subprocess
import sys
import time
from pathlib import Path
from shlex import quote

import pytest

CHECKOUT = Path(__file__).parents[2]
ANSWER_S = 120.0
CONTROL = re.compile(r"\x1b\[[0-9;?]*[A-Za-z]|\x1b[=>]|[\x00\x07]")
START = {
    "bash": (
        ("bash", "--norc", "--noprofile", "-i"),
        (
            "for set in 'show-all-if-ambiguous on' 'completion-query-items 0' "
            "'page-completions off' 'enable-bracketed-paste off'; do bind \"set $set\"; done"
        ),
    ),
    "zsh": (
        ("zsh", "-f", "-i"),
        "LISTMAX=9999; bindkey -e; autoload -Uz compinit; compinit -u -D",
    ),
}
# What is typed, and what Tab makes of it or offers.
CASES = [
    ("topo coll", ["collective"]),
    ("topo check dgx-h100 --form", ["--format"]),
    ("topo compare dgx-h100 --from slo", ["slot1", "slot2"]),
    ("topo compare dgx-h100 --from=slo", ["slot1", "slot2"]),
    ("topo compare dgx-h100 --at=achievable --workload l", ["load"]),
    ("topo compare dgx-h100 --at ", ["theoretical", "achievable", "measured"]),
    ("topo compare dgx-h100 --via legacy,dir", ["legacy,direct"]),
    ("topo compare dgx-h100 --needs unet", ["unet3d"]),
    ("topo collective dgx-h100 all-r", ["all-reduce"]),
    ("topo affinity dgx-h100 --as ncc", ["nccl"]),
    ("topo import nvm", ["nvme"]),
    ("topo explain small-b", ["small-bar1"]),
    ("topo parts l40", ["l40", "l40s"]),
    ("topo check my", ["my box.yaml"]),
    ("topo check folder/in", ["folder/inside.yaml"]),
]


@pytest.fixture(scope="module")
def place(tmp_path_factory):
    """Make a folder with files and a `topo` of this checkout, which is on the PATH there."""
    folder = tmp_path_factory.mktemp("shell")
    program = folder / "topo"
    checkout, python = quote(str(CHECKOUT)), quote(sys.executable)
    program.write_text(f'#!/bin/sh\nPYTHONPATH={checkout} exec {python} -m topo "$@"\n')
    program.chmod(0o755)
    (folder / "folder").mkdir()
    for name in ("my box.yaml", "folder/inside.yaml", "other.txt"):
        (folder / name).write_text("topo: 1\n")
    return folder


def surroundings(place):
    return {
        **os.environ,
        "PATH": f"{place}:{os.environ['PATH']}",
        "HOME": str(place),
        "TERM": "xterm",
        "COLUMNS": "200",
    }


class Terminal:
    """A shell at a terminal of its own, with topo's completion."""

    def __init__(self, shell, place):
        words, setup = START[shell]
        self.shell, self.count = shell, 0
        self.process, self.end = pty.fork()
        if not self.process:
            os.chdir(place)
            os.execvpe(words[0], words, surroundings(place))
        self.type(f"PS1='> '; {setup}; ")
        self.type('eval "$(topo completion ' + shell + ')"; ')

    def type(self, keys):
        """Type keys, then a command that says when they were dealt with; return all since."""
        self.count += 1
        os.write(self.end, f"{keys}echo END''OF{self.count}\r".encode())
        printed, until = b"", time.monotonic() + ANSWER_S
        while f"ENDOF{self.count}\r".encode() not in printed:
            assert time.monotonic() < until, printed
            if select.select([self.end], [], [], 0.5)[0]:
                printed += os.read(self.end, 2**16)
        return CONTROL.sub("", printed.decode("utf-8", "replace"))

    def tab(self, line):
        """Return what is shown after a line and Tab; the line is then taken back."""
        return self.type(f"{line}\t\x01\x0b")

    def close(self):
        os.kill(self.process, signal.SIGKILL)
        os.waitpid(self.process, 0)
        os.close(self.end)


@pytest.fixture(scope="module")
def terminals(place):
    opened = {}

    def of(shell):
        if shutil.which(shell) is None:
            pytest.skip(f"no {shell} here")
        try:
            for end in pty.openpty():
                os.close(end)
        except OSError as error:  # a container without /dev/pts
            pytest.skip(f"no terminal can be made here: {error}")
        if shell not in opened:
            opened[shell] = Terminal(shell, place)
        return opened[shell]

    yield of
    for terminal in opened.values():
        terminal.close()


@pytest.mark.parametrize("shell", START)
@pytest.mark.parametrize(("line", "expected"), CASES, ids=[line for line, _ in CASES])
def test_tab_at_a_terminal(terminals, shell, line, expected):
    shown = terminals(shell).tab(line)
    before, begun = re.fullmatch(r"(.*[ =])([^ =]*)", line).groups()
    # zsh takes what all begin with first, and lists then
    common = os.path.commonprefix(expected)  # noqa: RUF071  (words)
    if len(expected) == 1 or (shell == "zsh" and common != begun):
        assert before + common.replace(" ", "\\ ") in shown
        return
    listed = re.split(r"\s+", shown.partition("\n")[2])
    assert set(expected) <= set(listed)


@pytest.mark.skipif(shutil.which("fish") is None, reason="no fish here")
@pytest.mark.parametrize(("line", "expected"), CASES, ids=[line for line, _ in CASES])
def test_what_fish_is_offered(place, line, expected):
    ask = f"topo completion fish | source; complete -C '{line}'"
    words = ["fish", "--no-config", "-c", ask]
    done = subprocess.run(
        words, env=surroundings(place), cwd=place, capture_output=True, text=True, check=True
    )
    offered = [row.partition("\t")[0] for row in done.stdout.splitlines()]
    option = re.search(r" (--\w+=)\S*$", line)
    assert offered == sorted(f"{option[1] if option else ''}{word}" for word in expected)
