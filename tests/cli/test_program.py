"""The program as a whole: help, exit codes, hints, failures, pipes, outputs that cannot be."""

from __future__ import annotations

import io
import os
import re
import shlex
import subprocess
import sys
from dataclasses import replace
from pathlib import Path

import click
import pytest

import topo as package
from tests.discovery.twins import two_sockets
from tests.measuring.results import gdsio, nvbandwidth
from topo.cli.program import VERBS, hint, main, program

TOPO = [sys.executable, "-m", "topo"]
CHECKOUT = Path(package.__file__).parents[1]
RESULT = nvbandwidth(("host_to_device_memcpy_ce", [["40"]]))
ASKING = ("compare", "check", "show", "paths", "matrix", "bottleneck", "draw")


def command_of(verb: str) -> click.Command:
    with program.make_context("topo", [verb, "--help"], resilient_parsing=True) as context:
        found = program.get_command(context, verb)
    assert found is not None
    return found


def examples_in(text: str) -> list[str]:
    _, _, end = text.partition("Example")
    found = re.findall(r"^ +(.*topo .+)$", end, re.MULTILINE)
    # What another program says cannot be had here.
    return [example for example in found if example.startswith("topo ")]


# --- help -----------------------------------------------------------------------------------------


def test_help_lists_every_verb(topo):
    done = topo("--help")
    assert done.code == 0
    listed = re.findall(r"^  ([a-z]+)  ", done.out, re.MULTILINE)
    assert listed == list(VERBS)
    assert sorted(VERBS) == sorted(
        path.stem.rstrip("_")
        for path in (CHECKOUT / "topo" / "cli").glob("*.py")
        if path.stem not in {"__init__", "offers", "program", "verb"}
    )


@pytest.mark.parametrize("verb", VERBS)
def test_a_verb_is_listed_as_it_describes_itself(verb):
    assert (command_of(verb).help or "").partition("\n\n")[0].replace("\n", " ") == VERBS[verb]


HAS_SYS = any(
    Path("/sys", *place).is_dir()
    for place in (("bus", "pci", "devices"), ("devices", "system", "node"))
)


def nvidia_smi_matrix(name: str) -> str:
    """Return a built-in's matrix as `nvidia-smi topo -m` would print it."""
    rows = package.matrix(package.load(name))
    cards = iter(range(len(rows)))
    theirs = {own: own.upper() if own.startswith("gpu") else f"NIC{next(cards)}" for own in rows}
    lines = ["\t" + "\t".join(theirs.values())]
    lines += ["\t".join([theirs[own], *classes.values()]) for own, classes in rows.items()]
    return "\n".join(lines) + "\n"


@pytest.mark.parametrize("verb", VERBS)
def test_the_examples_in_a_verbs_help_work(topo, verb, tmp_path):
    done = topo(verb, "--help")
    assert done.code == 0
    examples = examples_in(done.out)
    assert examples, "help ends with examples"
    last = examples[-1]
    assert last in done.out.rstrip().splitlines()[-1] or "|" in done.out.splitlines()[-1]
    topo("export", "nccl", "dgx-h100", "-o", "topo.xml")  # a file that examples read
    (tmp_path / "matrix.txt").write_text(nvidia_smi_matrix("dgx-h100"), encoding="utf-8")
    (tmp_path / "nvbandwidth.json").write_bytes(nvbandwidth(("host_to_device_memcpy_ce", [[55]])))
    (tmp_path / "gdsio.txt").write_bytes(gdsio((0, "READ", "GPUD", 20.0)))
    for example in examples:
        if example.startswith("topo check --host"):
            continue  # what the host is on which tests run is no matter of theirs
        answer = None
        for command in example.split(" | "):
            first, *words = shlex.split(command)
            if first == "topo" and command.startswith("topo import sysfs /") and not HAS_SYS:
                pytest.skip("this machine shows neither PCI devices nor NUMA nodes")
            if first == "topo":
                stdin = answer.out.encode() if answer else b""
                answer = topo(*words, stdin=stdin)
                assert answer.code == 0, (example, answer.err)
        assert answer is not None
        assert answer.out.strip() or "-o" in example


@pytest.mark.parametrize("verb", VERBS)
def test_a_verb_is_announced_and_has_tests_of_its_own(verb):
    announced = "".join(
        (CHECKOUT / name).read_text("utf-8") for name in ("README.md", "CHANGELOG.md")
    )
    assert re.search(rf"\btopo {verb}\b", announced), f"no line about topo {verb}"
    others = (path for path in Path(__file__).parent.glob("test_*.py") if path != Path(__file__))
    called = re.compile(rf"\b(topo|run)\(\s*\"{verb}\"|[(\[]\"{verb}[ \"]")
    assert any(called.search(path.read_text("utf-8")) for path in others), f"no test of topo {verb}"


@pytest.mark.parametrize("verb", VERBS)
def test_every_verb_speaks_json(verb):
    options = {name for one in command_of(verb).params for name in one.opts}
    assert {"--json"} <= options
    assert (verb not in ASKING) or {"--set"} <= options


def test_the_version(topo):
    assert topo("--version").out == f"topo {package.__version__}\n"


# --- words people try -----------------------------------------------------------------------------

HINTS = [
    ("validate box.yaml", "topo check box.yaml"),
    ("plot box.yaml", "topo draw box.yaml -o picture.svg"),
    ("render", "topo draw FILE -o FILE.svg"),
    ("graph dgx-h100", "topo draw dgx-h100 -o picture.svg"),
    ("box.yaml", "topo compare box.yaml"),
    ("./box --json", "topo compare ./box --json"),
    ("dgx-h100", "topo compare dgx-h100"),
    ("help", "topo --help"),
    ("help compare", "topo compare --help"),
    ("list", "topo parts --machines"),
    ("init", "topo new"),
    ("comprae box.yaml", "topo compare box.yaml"),
    ("Check box.yaml", "topo check box.yaml"),
    ("version", "topo --version"),
]


@pytest.mark.parametrize(("typed", "advice"), HINTS)
def test_a_habit_word_gets_a_hint(topo, typed, advice):
    done = topo(*typed.split())
    assert (done.code, done.out) == (2, "")
    assert f"Did you mean `{advice}`?" in done.err


def test_a_strange_word_gets_none(topo):
    done = topo("xyzzy")
    assert (done.code, "Did you mean" in done.err) == (2, False)


@pytest.mark.parametrize(("typed", "advice"), HINTS)
def test_a_hint_is_a_verb(typed, advice):
    first, *rest = typed.split()
    words = hint(first, rest).split()
    assert words[0] == "topo"
    assert words[1] in {*VERBS, "--help", "--version"}


# --- usage ----------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    "words",
    [
        "",
        "compare",
        "compare gds-textbook --no-such-flag",
        "compare gds-textbook --at fastest",
        "compare gds-textbook --set slot1.part",
        "compare gds-textbook --buffers kernel",
        "compare gds-textbook --workload load --from storage",
        "compare gds-textbook extra",
        "parts --machines x",
        "fmt",
        "new 'not a name'",
        "draw gds-textbook --json",
        "draw gds-textbook -o - --json",
    ],
)
def test_a_wrong_command_line_is_2_and_says_so_on_stderr(topo, words):
    done = topo(*shlex.split(words))
    assert (done.code, done.out) == (2, "")
    assert done.err


# --- failures -------------------------------------------------------------------------------------

FAILURES = [
    ("compare nowhere.yaml", "no-file"),
    ("compare no-such-machine", "unknown-name"),
    ("compare .", "unknown-name"),
    ("compare ./", "unreadable-file"),
    ("compare gds-textbook --workload laod", "unknown-name"),
    ("compare gds-textbook --via drect", "unknown-data-path"),
    ("compare gds-textbook --from storage --to gpu99", "unknown-name"),
    ("compare gds-textbook --from root0 --to gpu0", "not-storage-and-gpu"),
    ("compare gds-textbook --set slot9.part=connectx-7", "unknown-name"),
    ("compare gds-textbook --set slot1.part=conectx-7", "unknown-part"),
    ("check empty.yaml", "empty"),
    ("show picture.yaml", "binary"),
    ("matrix broken.yaml", "unknown-part"),
    ("paths gds-textbook --via drect", "unknown-data-path"),
    ("bottleneck gds-textbook --via drect", "unknown-data-path"),
    ("draw gds-textbook -o picture.jpg", "unknown-format"),
    ("parts conectx-7", "unknown-part"),
    ("explain acs-redirct", "unknown-name"),
    ("new --like dgx-h100x", "unknown-name"),
    ("new -o empty.yaml", "file-exists"),
    ("fmt nowhere.yaml", "no-file"),
    ("fmt picture.yaml", "binary"),
]


@pytest.fixture
def bad_files(topo, tmp_path):
    (tmp_path / "empty.yaml").write_text("# nothing\n")
    (tmp_path / "picture.yaml").write_bytes(b"\x89PNG\r\n\x1a\n\x00\x00")
    (tmp_path / "broken.yaml").write_text("topo: 1\ndevices: {gpu0: l40z}\n")


@pytest.mark.parametrize(("words", "code"), FAILURES)
def test_a_failure_is_1_with_a_finding_in_either_form(topo, bad_files, words, code):
    done = topo(*words.split())
    assert (done.code, done.out) == (1, "")
    assert f"error[{code}]" in done.err
    told = topo(*words.split(), "--json")
    assert (told.code, told.err) == (1, "")
    assert told.document["schema"] == "topo.findings/1"
    assert code in [one["code"] for one in told.document["findings"]]


def test_standard_input_is_a_dash(topo, box, tmp_path):
    text = (tmp_path / box).read_bytes()
    assert topo("compare", "-", stdin=text).out == topo("compare", box).out
    done = topo("check", "-", stdin=b"devices: {}\n")
    assert (done.code, "<stdin>:1:1" in done.err) == (1, True)


def test_several_mistakes_come_out_together(topo, tmp_path):
    text = "topo: 1\ndevices: {gpu0: l40z, gpu1: l40y}\n"
    done = topo("check", "-", "--json", stdin=text.encode())
    assert len(done.document["findings"]) == 2


@pytest.mark.parametrize("asks_json", [False, True])
def test_a_fault_of_topo_says_what_to_send(topo, box, monkeypatch, asks_json):
    from topo.solve import maxmin

    solver = maxmin.max_min_unchecked

    def twice(system, **options):
        answer = solver(system, **options)
        return replace(answer, rates=tuple(2 * rate for rate in answer.rates))

    monkeypatch.setattr(maxmin, "max_min_unchecked", twice)
    done = topo("compare", box, "--via", "direct", *["--json"] * asks_json)
    assert done.code == 1
    assert "not-certified" in (done.out if asks_json else done.err)
    command = f"topo compare {box} --via direct{' --json' * asks_json}"
    if asks_json:
        (finding,) = done.document["findings"]
        assert finding["notes"][-1] == f"the command line: {command}"
    else:
        assert f"the command line: {command}\n" in done.err


# --- outputs --------------------------------------------------------------------------------------


def run(*words: str, **more) -> subprocess.CompletedProcess[str]:
    return subprocess.run([*TOPO, *words], capture_output=True, text=True, check=False, **more)


@pytest.mark.parametrize("unbuffered", ["", "1"])
def test_a_reader_that_stops_early_gets_no_traceback(unbuffered):
    with subprocess.Popen(
        [*TOPO, "parts", "--json"],
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        env={**os.environ, "PYTHONUNBUFFERED": unbuffered},
    ) as process:
        assert process.stdout is not None
        assert process.stderr is not None
        process.stdout.read(10)
        process.stdout.close()
        said = process.stderr.read()
    assert (process.returncode, said) == (141, b"")


@pytest.mark.skipif(not Path("/dev/full").exists(), reason="no full device here")
def test_a_full_disk_is_a_finding():
    with Path("/dev/full").open("w") as full:
        done = subprocess.run(
            [*TOPO, "matrix", "dgx-h100"],
            stdout=full,
            stderr=subprocess.PIPE,
            text=True,
            check=False,
        )
    assert done.returncode == 1
    assert "error[unwritable-file]: standard output cannot be written" in done.stderr
    assert "Traceback" not in done.stderr
    assert "Exception ignored" not in done.stderr


def test_a_closed_standard_output_is_no_traceback():
    done = subprocess.run(
        ["sh", "-c", 'exec "$0" -m topo check dgx-h100 >&-', sys.executable],
        capture_output=True,
        text=True,
        check=False,
    )
    assert "Traceback" not in done.stderr
    assert done.returncode == 1  # as others do: nobody got the answer


def test_an_interrupt_ends_quietly(topo, monkeypatch):
    def interrupted(*_, **__):
        raise KeyboardInterrupt

    monkeypatch.setattr("topo.topology.build.load", interrupted)
    done = topo("check", "dgx-h100")
    assert (done.code, done.out, done.err) == (130, "", "")


def test_letters_that_the_output_cannot_hold_are_replaced(tmp_path):
    (tmp_path / "box.yaml").write_text(
        "topo: 1\nname: box\ntitle: Größe\ndevices: {gpu0: l40s}\n", "utf-8"
    )
    done = run("show", "box.yaml", cwd=tmp_path, env={**os.environ, "PYTHONIOENCODING": "ascii"})
    assert done.returncode == 0
    assert "Gr" in done.stdout


def test_color_is_for_terminals_and_not_for_all_of_them(topo, monkeypatch):
    from topo.cli import verb

    monkeypatch.delenv("NO_COLOR", raising=False)
    monkeypatch.setenv("TERM", "xterm")
    plain = topo("compare", "gds-textbook")
    monkeypatch.setattr(verb, "_in_color", lambda stream: True)
    colored = topo("compare", "gds-textbook")
    assert "\x1b[" in colored.out
    unpainted = re.sub(r"\x1b\[[0-9;]*m", "", colored.out)
    assert [line.rstrip() for line in unpainted.splitlines()] == plain.out.splitlines()


@pytest.mark.parametrize(("name", "value"), [("NO_COLOR", "1"), ("TERM", "dumb")])
def test_no_color_is_heard(monkeypatch, name, value):
    from topo.cli.verb import _in_color

    class Terminal(io.StringIO):
        def isatty(self):
            return True

    monkeypatch.delenv("NO_COLOR", raising=False)
    monkeypatch.setenv("TERM", "xterm")
    assert _in_color(Terminal()) is True
    monkeypatch.setenv(name, value)
    assert _in_color(Terminal()) is False


@pytest.mark.parametrize(
    "words",
    [
        ("matrix", "dgx-h100"),
        ("paths", "dgx-h100"),
        ("simulate", "gds-textbook"),
        ("import", "x.txt"),
    ],
)
def test_what_takes_long_shows_progress_on_a_terminal(topo, tmp_path, monkeypatch, words):
    from topo.cli import verb

    class Terminal(io.StringIO):
        def isatty(self):
            return True

    matrix = "\tGPU0\tGPU1\nGPU0\t X \tPIX\nGPU1\tPIX\t X \n"
    (tmp_path / "x.txt").write_text(matrix, encoding="utf-8")
    quick = topo(*words)
    monkeypatch.setattr(verb, "_PATIENCE", -1.0)
    assert topo(*words) == quick  # nobody watches
    terminal = Terminal()
    monkeypatch.setattr(sys, "stderr", terminal)
    assert topo(*words).out == quick.out
    assert "%" in terminal.getvalue()
    monkeypatch.setattr(verb, "_PATIENCE", 60.0)
    monkeypatch.setattr(sys, "stderr", other := Terminal())
    topo(*words)
    assert "%" not in other.getvalue()  # it took no time


def test_main_reads_the_process_words(monkeypatch, capsys):
    monkeypatch.setattr(sys, "argv", ["topo", "--version"])
    assert main() == 0
    assert capsys.readouterr().out.startswith("topo ")


# --- files that cannot be read --------------------------------------------------------------------


@pytest.mark.parametrize(
    "words",
    [
        ("check", "{}"),
        ("fmt", "{}"),
        ("measure", "dgx-h100", "{}", "--dry-run"),
        ("measure", "{}", "result.json"),
        ("compare", "dgx-h100", "--cufile", "{}"),
        ("compare", "dgx-h100", "--gdscheck", "{}"),
        ("import", "lspci", "{}"),
    ],
    ids=" ".join,
)
def test_every_reader_has_a_limit(topo, words, tmp_path):
    endless = topo(*(word.format("/dev/zero") for word in words))
    assert (endless.code, "has more than 64 MiB" in endless.err) == (1, True)
    if words[0] != "import":
        folder = topo(*(word.format(f"{tmp_path}") for word in words))
        assert folder.code == 1
        assert "is a folder" in folder.err


@pytest.mark.parametrize("words", [("check", "-"), ("fmt", "-"), ("import", "-")], ids=" ".join)
def test_closed_standard_input_is_named(words):
    done = subprocess.run(
        ["/bin/sh", "-c", f"exec {shlex.join([*TOPO, *words])} <&-"],
        capture_output=True,
        text=True,
        check=False,
    )
    assert (done.returncode, "standard input cannot be read: it is closed" in done.stderr) == (1, 1)


@pytest.mark.parametrize(
    "words",
    [
        ("export", "nccl", "box.yaml", "-o", "./box.yaml"),
        ("draw", "./box.svg.yaml", "-o", "box.svg"),
        ("import", "host.xml", "-o", "host.xml"),
        ("measure", "box.yaml", "host.xml", "-o", "host.xml", "--kind", "nvbandwidth"),
    ],
    ids=" ".join,
)
def test_an_output_is_no_input(topo, box, words, tmp_path):
    (tmp_path / "host.xml").write_bytes(two_sockets() if words[0] == "import" else RESULT)
    (tmp_path / "box.svg").write_text((tmp_path / box).read_text())
    (tmp_path / "box.svg.yaml").symlink_to("box.svg")
    before = {path: path.read_bytes() for path in tmp_path.iterdir()}
    done = topo(*words)
    assert (done.code, "output-is-input" in done.err) == (1, True), done.err
    assert before == {path: path.read_bytes() for path in tmp_path.iterdir()}


@pytest.mark.parametrize(
    "name", ["a\x1b[31mb.yaml", "a\u202eb.yaml", "a\udcffb.yaml", "a\ufeffb.yaml"], ids=ascii
)
def test_a_file_of_any_name_is_shown_escaped(topo, box, name, tmp_path):
    (tmp_path / name).write_bytes((tmp_path / box).read_bytes().replace(b"name: tiny", b""))
    for words in (("check",), ("compare",), ("show",), ("export", "dot"), ("export", "graphml")):
        done = topo(*words, name)
        assert done.code == 0, done.err
        assert not {"\x1b", "\u202e", "\udcff", "\ufeff"} & set(done.out + done.err), words
    assert topo("draw", name, "-o", "box.svg").code == 0
    missing = topo("check", f"./not-{name}")
    assert (missing.code, {"\x1b", "\u202e", "\udcff", "\ufeff"} & set(missing.err)) == (1, set())


def test_a_name_has_nothing_that_is_not_seen(topo, box):
    done = topo("check", box, "--set", 'name="a\u202eb"')
    assert (done.code, "control-character" in done.err) == (1, True)


@pytest.mark.parametrize("words", [("check", "dgx-h100"), ("compare", "dgx-h100", "--json")])
def test_closed_standard_output_is_a_failure(words):
    command = f"exec {shlex.join([*TOPO, *words])} >&-"
    done = subprocess.run(["/bin/sh", "-c", command], capture_output=True, text=True, check=False)
    assert (done.returncode, "standard output cannot be written" in done.stderr) == (1, True)


def test_an_interrupt_during_start_up_is_quiet(tmp_path):
    text = "import builtins\nreal = builtins.__import__\ndef hook(name, *rest):\n"
    text += "    if name == 'click': raise KeyboardInterrupt\n    return real(name, *rest)\n"
    text += "builtins.__import__ = hook\nfrom topo.__main__ import run\nrun()\n"
    (tmp_path / "start.py").write_text(text)
    done = subprocess.run(
        [sys.executable, str(tmp_path / "start.py")],
        capture_output=True,
        check=False,
        env={**os.environ, "PYTHONPATH": str(CHECKOUT)},
    )
    assert (done.returncode, done.stdout, done.stderr) == (130, b"", b"")
