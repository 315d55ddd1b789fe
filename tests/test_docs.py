"""What README and docs show is what happens: every session is run, every YAML block is loaded."""

from __future__ import annotations

import re
import shlex
from pathlib import Path

import pytest

from tests.host.made_up import spoilt_host
from topo.cli.program import main

ROOT = Path(__file__).parents[1]
PAGES = [ROOT / "README.md", *sorted((ROOT / "docs").glob("*.md"))]
FENCE = re.compile(r"^```(\w+)[^\n]*\n(.*?)^```$", re.MULTILINE | re.DOTALL)
FILE = re.compile(r"^```\w+ (\S+\.\w+)\n(.*?)^```$", re.MULTILINE | re.DOTALL)


def blocks(language):
    """Return `(page:line, text)` for every fenced block of a language."""
    found = []
    for page in PAGES:
        text = page.read_text(encoding="utf-8")
        for block in FENCE.finditer(text):
            if block[1] == language:
                line = text.count("\n", 0, block.start()) + 1
                found.append(pytest.param(block[2], id=f"{page.name}:{line}"))
    return found


def sessions():
    """Return `(command, output)` for each `$ topo ...` of each console block."""
    found = []
    for block in blocks("console"):
        text = block.values[0]
        for number, turn in enumerate(re.split(r"^\$ ", text, flags=re.MULTILINE)[1:]):
            command, _, output = turn.partition("\n")
            if command.startswith("topo "):
                found.append(pytest.param(command, output, id=f"{block.id}#{number}"))
    return found


def matches(shown, real):
    """Whether real output is what is shown; a line of `...` stands for any lines."""
    pattern = "".join(
        r"(?:.*\n)*?" if line.strip() == "..." else re.escape(line.rstrip()) + r"[ ]*\n"
        for line in shown.rstrip("\n").split("\n")
    )
    return re.fullmatch(pattern, real.rstrip("\n") + "\n")


@pytest.mark.parametrize(("command", "output"), sessions())
def test_a_session_shows_what_happens(command, output, tmp_path, monkeypatch, capsys):
    (tmp_path / "topologies").symlink_to(ROOT / "topologies")
    spoilt_host().write(tmp_path / "node7")
    for block in blocks("yaml"):
        name = re.search(r"^name: (\S+)", block.values[0], re.MULTILINE)
        if name:
            (tmp_path / f"{name[1]}.yaml").write_text(block.values[0], encoding="utf-8")
    for page in PAGES:  # a block that names a file, such as ```xml host.xml
        for block in FILE.finditer(page.read_text(encoding="utf-8")):
            (tmp_path / block[1]).write_text(block[2], encoding="utf-8")
    monkeypatch.chdir(tmp_path)
    monkeypatch.setenv("COLUMNS", "100")
    main(shlex.split(command)[1:])
    real = capsys.readouterr().out
    assert matches(output, real), real


@pytest.mark.parametrize("text", blocks("yaml"))
def test_a_yaml_block_loads(text):
    from topo.description.loading import loads

    assert loads(text).devices


@pytest.mark.parametrize("page", PAGES, ids=lambda page: page.name)
def test_the_python_of_a_page_runs_from_top_to_bottom(page, tmp_path, monkeypatch):
    pytest.importorskip("pandas")
    monkeypatch.chdir(tmp_path)
    names: dict[str, object] = {}
    for block in FENCE.finditer(page.read_text(encoding="utf-8")):
        if block[1] == "python":
            exec(block[2], names)


def asked():
    """Return the commands of README's tables of questions, with files that ship with topo."""
    text = (ROOT / "README.md").read_text(encoding="utf-8")
    rows = re.findall(r"^\|[^|]*\| (`topo .*) \|$", text, re.MULTILINE)
    commands = []
    for first, *others in (re.findall(r"`([^`]+)`", row) for row in rows):
        for words in (first, *others):
            commands.append(words if words.startswith("topo ") else f"{first} {words}")
    return commands


@pytest.mark.parametrize("command", asked())
def test_a_question_of_the_readme_is_a_command(command, tmp_path, monkeypatch, capsys):
    if re.search("--host|RESULT|import|cufile|pptx|sweep|[.]{3}", command):
        verb = command.split()[1]
        assert main([verb, "--help"]) == 0
        options = re.findall(r" (--[a-z-]+)", command)
        assert all(option in capsys.readouterr().out for option in options[:1])
        return
    machine = "pod-32" if "node0" in command else "gds-textbook"
    for placeholder, real in (
        ("-o FILE", "-o picture"),
        ("FILE...", machine),
        ("FILE", machine),
        ("A B", "gds-textbook gds-loses"),
        ("KIND", "mermaid"),
        ("WORD", "bottleneck"),
    ):
        command = command.replace(placeholder, real)
    monkeypatch.chdir(tmp_path)
    assert main(shlex.split(command)[1:]) == 0, capsys.readouterr().err


def test_a_wrong_session_would_be_noticed():
    assert not matches("rate 100 GB/s\n", "rate 101 GB/s\n")
    assert matches("a\n...\nd\n", "a\nb\nc\nd\n")


def test_there_are_sessions():
    assert len(sessions()) >= 3
