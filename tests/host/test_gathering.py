"""Running a host's tools: limits hold, words of failure are told, and nothing else happens."""

from __future__ import annotations

import os
import time
from pathlib import Path

import pytest

from tests.discovery.trees import sysfs_box
from topo.errors import ExchangeError
from topo.host.gathering import COMMANDS, HostCommand, run
from topo.host.this_host import gather_host

TOOL = HostCommand(("tool", "-x", "a b; touch owned"), "nothing is known")


@pytest.fixture
def tool(tmp_path, monkeypatch):
    """Return what makes `tool` a shell script on the PATH."""

    def write(script, name="tool"):
        path = tmp_path / "bin" / name
        path.parent.mkdir(exist_ok=True)
        path.write_text(f"#!/bin/sh\n{script}\n")
        path.chmod(0o755)
        monkeypatch.setenv("PATH", f"{path.parent}:{os.environ['PATH']}")
        return path

    return write


def test_what_it_prints(tool):
    tool('echo "$LC_ALL|$1|$2"; pwd')
    done = run(TOOL)
    assert (done.state, done.data) == ("ran", b"C|-x|a b; touch owned\n/\n")
    assert done.text.file(7) == "texts/07+tool+-x+a+b;+touch+owned.txt"


def test_it_gets_no_input(tool):
    tool("cat; echo done")
    assert run(TOOL, limit_s=5).data == b"done\n"


@pytest.mark.parametrize(
    ("script", "state", "words"),
    [
        ("echo '/dev/mem: Permission denied' >&2; exit 1", "denied", "/dev/mem: Permission denied"),
        ("echo 'You must be root to do this.'; exit 2", "denied", "You must be root to do this."),
        ("printf 'no \\033[1mdriver\\n' >&2; exit 9", "failed", "no  [1mdriver"),
        ("exit 3", "failed", "it ended with 3"),
        ("kill -9 $$", "failed", "it ended with -9"),
    ],
)
def test_why_it_failed(tool, script, state, words):
    tool(script)
    done = run(TOOL)
    assert (done.state, done.words, done.text) == (state, words, None)


def test_one_that_is_not_there_or_cannot_run(tool):
    assert run(HostCommand(("topo-no-such-tool",), "")).state == "absent"
    tool("").write_bytes(b"\x7fELFno program")
    assert run(TOOL).state == "failed"


def test_the_current_folder_is_never_searched(tool, monkeypatch):
    folder = tool("echo ran").parent
    monkeypatch.chdir(folder)
    for path in ("", ".", "::"):
        monkeypatch.setenv("PATH", path)
        assert run(TOOL).state == "absent"


def test_one_that_hangs_is_stopped_with_what_it_started(tool, tmp_path):
    tool(f"echo begun; sh -c 'sleep 1.5; touch {tmp_path}/late' & sleep 60")
    start = time.monotonic()
    done = run(TOOL, limit_s=0.4)
    assert (done.state, done.data, done.text) == ("timed-out", b"begun\n", None)
    assert time.monotonic() - start < 5
    time.sleep(1.6)
    assert not (tmp_path / "late").exists()


def test_one_that_leaves_somebody_behind_is_not_waited_for(tool):
    tool("sleep 20 & echo done")
    start = time.monotonic()
    assert run(TOOL).data == b"done\n"
    assert time.monotonic() - start < 5


@pytest.mark.parametrize("stream", ["", ">&2"])
def test_one_that_prints_without_end_is_stopped(tool, stream):
    tool(f"yes {stream}")
    done = run(TOOL, most_bytes=10_000)
    assert done.state == "too-long"
    assert len(done.data) <= 10_000


def test_every_command_says_what_is_lost_without_it():
    assert len({command.line for command in COMMANDS}) == len(COMMANDS)
    assert all(command.lacking and not command.lacking.endswith(".") for command in COMMANDS)
    assert not {"sudo", "su", "sh", "bash", "doas"} & {command.words[0] for command in COMMANDS}


# --- a whole host ---------------------------------------------------------------------------------

MATRIX = """\
\tGPU0\tmlx5_0\tCPU Affinity\tNUMA Affinity
GPU0\t X \tPIX\t2-3\t1
mlx5_0\tPIX\t X
"""


def host(root, *lines):
    return gather_host(root, tuple(HostCommand(tuple(line.split()), "less") for line in lines))


def states(gathered):
    return {source.name: (source.state, source.words) for source in gathered.sources}


def test_a_host_by_sys_and_its_tools(tool, tmp_path):
    root = sysfs_box().write(tmp_path / "box")
    tool(f"cat <<'END'\n{MATRIX}END", "nvidia-smi")
    tool("echo 'Linux version 6'", "uname-like")
    tool("", "quiet")
    gathered = host(root, "nvidia-smi topo -m", "uname-like", "quiet", "topo-absent")
    assert states(gathered) == {
        "/sys": ("read", "8 PCI functions, 2 NUMA nodes"),
        "nvidia-smi topo -m": ("read", ""),
        "uname-like": ("not-read", "topo does not read it"),
        "quiet": ("silent", ""),
        "topo-absent": ("absent", ""),
    }
    machine = gathered.host.machine
    assert machine.together == ("nvidia-smi topo -m (output of nvidia-smi topo -m)",)


def test_a_tool_that_tells_of_another_machine_is_left_out(tool, tmp_path):
    root = sysfs_box().write(tmp_path / "box")
    tool("printf 'GPU0\\tGPU1\\nGPU0\\t X \\tSYS\\nGPU1\\tSYS\\t X \\n'", "nvidia-smi")
    gathered = host(root, "nvidia-smi topo -m")
    state, words = states(gathered)["nvidia-smi topo -m"]
    assert state == "left-out"
    assert "GPUs" in words
    assert [f.code for f in gathered.host.machine.findings].count("host-text-left-out") == 1
    assert len(gathered.host.machine.of_kind("gpu")) == 1


def test_a_host_without_sys_has_its_tools(tool, tmp_path):
    tool(f"cat <<'END'\n{MATRIX}END", "nvidia-smi")
    gathered = host(tmp_path, "nvidia-smi topo -m")
    assert gathered.host.machine.kind == "nvidia-smi"
    assert isinstance(host(tmp_path).host, ExchangeError)


def test_gpus_that_sys_does_not_show_are_named_by_the_query(tool, tmp_path):
    query = "index, name, pci.bus_id\n0, NVIDIA H100 80GB HBM3, 00000000:1B:00.0\n"
    script = f"case $1 in topo) cat <<'END'\n{MATRIX}END\n;; *) cat <<'END'\n{query}END\n;; esac"
    tool(script, "nvidia-smi")
    gathered = host(tmp_path, "nvidia-smi topo -m", COMMANDS[1].line)
    (gpu,) = gathered.host.machine.of_kind("gpu")
    assert (gpu.part, gpu.pci) == ("h100-sxm-80gb", ("0000:1b:00.0",))


def test_programs_of_devices_that_are_not_there_are_not_missed(tmp_path):
    root = sysfs_box().write(tmp_path / "box")
    about = HostCommand(("topo-absent",), "less", ("1002",))
    (_, amd) = gather_host(root, (about,)).sources
    assert amd.lacking == ""
    (_, nvidia) = gather_host(root, (HostCommand(("topo-absent",), "less", ("10de",)),)).sources
    assert nvidia.lacking == "less"


def test_nothing_is_written(tmp_path, monkeypatch):
    root = sysfs_box().write(tmp_path / "box")
    monkeypatch.chdir(tmp_path)
    before = sorted(path.as_posix() for path in Path(tmp_path).rglob("*"))
    gather_host(root)
    assert sorted(path.as_posix() for path in Path(tmp_path).rglob("*")) == before
