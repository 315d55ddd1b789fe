"""Keep what topo prints, to compare it with what it prints after a change.

    python -m bench.outputs keep DIR [--corpus FOLDER] [--pictures]
    python -m bench.outputs compare OLD NEW

`keep` runs every verb on every worked machine, every golden bad file and, where there is a corpus,
every import, in this process, and writes exit code, standard output and standard error of each to a
file. `compare` names each file that differs, and exits 1 if any does.
"""

from __future__ import annotations

import argparse
import contextlib
import difflib
import io
import os
import re
import sys
from pathlib import Path
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from collections.abc import Iterator

ROOT = Path(__file__).parents[1]
BASES = ("theoretical", "achievable", "measured")
SHOWN_LINES = 6  # of each difference


def machine_questions(machine: str) -> Iterator[list[str]]:
    """Yield what is asked about a machine, each with and without ``--json``."""
    from topo.exports.formats import EXPORTS

    asks = [
        ["compare"],
        *(["compare", "--at", basis] for basis in BASES[1:]),
        ["compare", "--nics", "stripe"],
        ["compare", "--nics", "best"],
        ["compare", "--routes", "first"],
        ["compare", "--together"],
        ["check"],
        ["show"],
        ["paths"],
        ["paths", "--from", "storage", "--to", "gpu0"],
        ["compare", "--from", "storage", "--to", "gpu0"],
        *(["matrix", "--rules", rules] for rules in ("nvidia-smi", "nccl", "gds")),
        ["matrix", "--functions"],
        *(["affinity", "--rules", rules] for rules in ("nvidia-smi", "nccl", "gds")),
        *(["bottleneck", "--via", via] for via in ("legacy", "legacy-pageable", "direct")),
        ["bottleneck", "--each"],
        ["bottleneck", "--rule", "largest-total"],
        ["simulate"],
        *(["simulate", "--via", via] for via in ("legacy", "direct")),
        ["upgrade"],
        ["upgrade", "--via", "direct"],
    ]
    for verb, *options in asks:
        yield [verb, machine, *options]
        yield [verb, machine, *options, "--json"]
    yield from (["export", kind, machine] for kind in EXPORTS)
    yield ["fmt", machine, "--check"]


def picture_questions(machine: str) -> Iterator[list[str]]:
    """Yield the pictures of a machine, written to standard output."""
    for options in ([], ["--together"], ["--no-routes"], ["--theme", "dark"], ["--via", "legacy"]):
        yield ["draw", machine, "-o", "-", *options]


def questions(corpus: Path | None, *, pictures: bool) -> Iterator[list[str]]:
    """Yield every command line, its files named from the project's root."""
    yield from (["--help"], ["schema"], ["parts"], ["parts", "--json"], ["explain"], ["new"])
    yield from (["parts", "--machines"], ["parts", "h100-sxm-80gb"], ["parts", "connectx"])
    yield from (["parts", "h100-sxm-80gb", "--json"], ["parts", "pcie 5"], ["explain", "--json"])
    yield from (["explain", word] for word in ("legacy", "NODE", "acs-redirect", "hops"))
    machines = sorted(path.stem for path in (ROOT / "topologies").glob("*.yaml"))
    yield ["upgrade", "gds-textbook", "--together", "--combine", "2"]
    for machine in machines:
        yield from machine_questions(machine)
        if pictures:
            yield from picture_questions(machine)
    for path in sorted((ROOT / "tests" / "golden" / "bad").glob("*.yaml")):
        yield ["check", path.relative_to(ROOT).as_posix()]
    if corpus is None:
        return
    for path in sorted(path for path in corpus.rglob("*") if path.is_file()):
        if path.suffix in {".xml", ".txt", ".bz2"}:
            name = os.path.relpath(path, ROOT)
            yield from (["import", name], ["import", name, "--json"])


def answer(words: list[str]) -> str:
    """Run ``topo WORDS`` here and return its exit code and all that it printed."""
    from topo.cli.program import main

    out, err = io.TextIOWrapper(io.BytesIO(), "utf-8"), io.TextIOWrapper(io.BytesIO(), "utf-8")
    with contextlib.redirect_stdout(out), contextlib.redirect_stderr(err):
        try:
            code: object = main(words)
        except SystemExit as stop:
            code = stop.code
    texts = []
    for stream in (out, err):
        stream.flush()
        stream.seek(0)
        texts.append(stream.read())
    return f"exit {code}\n--- stdout\n{texts[0]}--- stderr\n{texts[1]}"


def keep(folder: Path, corpus: Path | None, *, pictures: bool) -> int:
    """Write each answer to a file of its own in `folder` and return how many there are."""
    folder.mkdir(parents=True, exist_ok=True)
    os.chdir(ROOT)
    count = 0
    for words in questions(corpus, pictures=pictures):
        name = re.sub(r"[^A-Za-z0-9._-]+", "_", " ".join(words))
        (folder / f"{name}.out").write_text(answer(words), encoding="utf-8")
        count += 1
    return count


def compare(old: Path, new: Path) -> int:
    """Print each difference and return how many answers differ."""
    names = sorted({path.name for folder in (old, new) for path in folder.glob("*.out")})
    differing = 0
    for name in names:
        before, after = (
            path.read_text(encoding="utf-8").splitlines() if path.exists() else ["(absent)"]
            for path in (old / name, new / name)
        )
        if before != after:
            differing += 1
            print(f"differs: {name}")
            lines = list(difflib.unified_diff(before, after, lineterm="", n=0))[2:]
            print("\n".join(f"    {line[:160]}" for line in lines[:SHOWN_LINES]))
    print(f"{len(names)} answers, {differing} differ")
    return differing


def main() -> int:
    """Read the command line, keep or compare."""
    parser = argparse.ArgumentParser(description=(__doc__ or "").partition("\n")[0])
    verbs = parser.add_subparsers(dest="verb", required=True)
    keeping = verbs.add_parser("keep")
    keeping.add_argument("folder", type=Path)
    keeping.add_argument("--corpus", type=Path, help="a folder of files to import")
    keeping.add_argument("--pictures", action="store_true", help="draw as well")
    comparing = verbs.add_parser("compare")
    comparing.add_argument("old", type=Path)
    comparing.add_argument("new", type=Path)
    asked = parser.parse_args()
    if asked.verb == "keep":
        # Links stay as they are given: they name the answers.
        corpus = Path(os.path.abspath(asked.corpus)) if asked.corpus else None  # noqa: PTH100
        count = keep(asked.folder.resolve(), corpus, pictures=asked.pictures)
        print(f"{count} answers kept in {asked.folder}")
        return 0
    return 1 if compare(asked.old, asked.new) else 0


if __name__ == "__main__":
    sys.exit(main())
