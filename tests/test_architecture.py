"""The house keeps its order: what a room may import, and from whom.

Rooms are listed once, in the order data flows. A room imports only from rooms above it; each names
the libraries it may use. The checks are functions from a folder to complaints, so that the last
tests can show each of them a small bad house and see it complain.
"""

from __future__ import annotations

import ast
import subprocess
import sys
from pathlib import Path
from typing import TYPE_CHECKING

import pytest

import topo

if TYPE_CHECKING:
    from collections.abc import Iterator

PACKAGE = Path(topo.__file__).parent

ROOMS = [
    "records",
    "display",
    "errors",
    "limits",
    "units",
    "phrases",
    "graph",
    "files",
    "document",
    "catalogue",
    "description",
    "topology",
    "datapaths",
    "routes",
    "flows",
    "solve",
    "study",
    "sweeps",
    "views",
    "notebook",
    "discovery",
    "host",
    "measuring",
    "exports",
    "cli",
]

# A room, or one file of it, and the libraries it may import; where nothing is said, none.
LIBRARIES = {
    "document": {"yaml"},
    "topology": {"networkx"},
    "topology/folding": {"numpy"},
    "topology/refinement": {"numpy"},
    "topology/symmetry": {"numpy"},
    "topology/units": {"numpy"},
    "flows": {"numpy"},
    "solve": {"highspy", "numba", "numpy"},
    "solve/mincut": {"networkx"},
    "sweeps": {"distributed", "pyarrow"},
    "views": {"graphviz", "graphviz_pure", "pptx"},
    "notebook": {"pandas"},
    "views/report/page": {"jinja2"},
    "views/report/picture": {"defusedxml"},
    "discovery": {"defusedxml"},
    "measuring/probe/gpus": {"cuda"},
    "exports": {"networkx"},
    "cli": {"click"},
}

FRONT = {"__init__", "__main__"}  # doors, not rooms: they may open on every room
NAMELESS = {"utils", "util", "common", "helpers", "helper", "core", "misc", "base", "lib"}
LONGEST_FILE = 600
HEAVY = {
    *{"networkx", "numpy", "highspy", "numba"},
    *{"yaml", "graphviz", "graphviz_pure", "defusedxml", "jinja2", "distributed", "pyarrow"},
}


# --- reading --------------------------------------------------------------------------------------


def modules(package: Path) -> list[Path]:
    return sorted(package.rglob("*.py"))


def room_of(path: Path, package: Path) -> str:
    return path.relative_to(package).parts[0].removesuffix(".py")


def imports(path: Path, package: Path) -> Iterator[tuple[int, str]]:
    """Yield every import of a file, wherever it stands: its line and full dotted name.

    ``from a import b`` gives ``a.b``; relative imports are resolved; so is a constant argument of
    `import_module`.
    """
    inside = ("topo", *path.relative_to(package).with_suffix("").parts)
    for node in ast.walk(ast.parse(path.read_text(encoding="utf-8"), str(path))):
        if isinstance(node, ast.Import):
            yield from ((node.lineno, alias.name) for alias in node.names)
        elif isinstance(node, ast.ImportFrom):
            start = ".".join(inside[: len(inside) - node.level]) if node.level else ""
            base = ".".join(part for part in (start, node.module) if part)
            yield from ((node.lineno, f"{base}.{alias.name}") for alias in node.names)
        elif isinstance(node, ast.Call) and node.args:
            function, name = node.func, node.args[0]
            called = function.attr if isinstance(function, ast.Attribute) else ast.unparse(function)
            if called in {"import_module", "__import__"} and isinstance(name, ast.Constant):
                yield node.lineno, str(name.value)


# --- the rules, each from a folder to complaints --------------------------------------------------


def upward_arrows(package: Path) -> list[str]:
    """A room imports only from rooms above it, and not through the front door."""
    complaints = []
    for path in modules(package):
        room = room_of(path, package)
        if room in FRONT or room not in ROOMS:
            continue
        for line, name in imports(path, package):
            top, _, rest = name.partition(".")
            if top != "topo" or rest == "__version__":
                continue
            target = rest.split(".")[0]
            where = f"{path.relative_to(package.parent)}:{line}"
            if target not in ROOMS:
                if room != "cli":
                    complaints.append(f"{where}: imports {name}: the front door, not a room")
            elif ROOMS.index(target) > ROOMS.index(room):
                complaints.append(f"{where}: {room} imports {name}, but {target} is below it")
    return complaints


def unwanted_libraries(package: Path) -> list[str]:
    """A room imports the standard library and the libraries that LIBRARIES names."""
    complaints = []
    for path in modules(package):
        inner = path.relative_to(package).with_suffix("").as_posix()
        allowed = LIBRARIES.get(room_of(path, package), set()) | LIBRARIES.get(inner, set())
        for line, name in imports(path, package):
            top = name.split(".")[0]
            if top not in {"topo", *sys.stdlib_module_names, *allowed}:
                where = f"{path.relative_to(package.parent)}:{line}"
                complaints.append(f"{where}: {inner} may not import {top}; see LIBRARIES")
    return complaints


def unknown_rooms(package: Path) -> list[str]:
    """Whatever stands in the package is a listed room or a door."""
    return [
        f"{path.relative_to(package.parent)}: no room of this name; see ROOMS"
        for path in sorted(package.iterdir())
        if (path.suffix == ".py" or any(path.rglob("*.py"))) and path.name != "__pycache__"
        if path.stem not in {*ROOMS, *FRONT}
    ]


def nameless_modules(package: Path) -> list[str]:
    """No file or folder has a name under which anything could stand."""
    return [
        f"{path.relative_to(package.parent)}: says nothing of what is in it"
        for path in modules(package)
        if NAMELESS & {part.removesuffix(".py").strip("_") for part in path.parts[-2:]}
    ]


def missing_docstrings(package: Path) -> list[str]:
    """Every folder has an `__init__.py`, and every file says what it is."""
    folders = {path.parent for path in modules(package)} - {package}
    absent = [
        f"{folder.relative_to(package.parent)}: no __init__.py"
        for folder in sorted(folders)
        if not (folder / "__init__.py").exists()
    ]
    silent = [
        f"{path.relative_to(package.parent)}: no docstring"
        for path in modules(package)
        if not ast.get_docstring(ast.parse(path.read_text(encoding="utf-8")))
    ]
    return absent + silent


def long_files(package: Path) -> list[str]:
    """A file is read in one sitting."""
    return [
        f"{path.relative_to(package.parent)}: {count} lines, more than {LONGEST_FILE}"
        for path in modules(package)
        if (count := len(path.read_text(encoding="utf-8").splitlines())) > LONGEST_FILE
    ]


def slow_dataclasses(package: Path) -> list[str]:
    """A class of values is made by `topo.records.dataclass`, which costs a start-up least."""
    return [
        f"{path.relative_to(package.parent)}:{line}: write `from topo.records import dataclass`"
        for path in modules(package)
        if path.stem != "records"
        for line, name in imports(path, package)
        if name == "dataclasses.dataclass"
    ]


def false_exports(package: Path) -> list[str]:
    """`__all__` is sorted, without repeats, and names only what the file defines or imports."""
    complaints = []
    for path in modules(package):
        if path == package / "__init__.py":
            continue  # lazy: tests/test_front_door.py
        tree = ast.parse(path.read_text(encoding="utf-8"))
        exported = next((names for node in tree.body if (names := all_of(node)) is not None), None)
        if exported is None:
            continue
        where = path.relative_to(package.parent)
        if len(exported) != len(set(exported)):
            complaints.append(f"{where}: __all__ names something twice")
        known = {name for node in tree.body for name in names_bound(node)}
        complaints += [
            f"{where}: __all__ names {name}, which is not there"
            for name in exported
            if name not in known and "__getattr__" not in known
        ]
    return complaints


def all_of(node: ast.stmt) -> list[str] | None:
    if isinstance(node, ast.Assign) and ast.unparse(node.targets[0]) == "__all__":
        return list(ast.literal_eval(node.value))
    return None


def names_bound(node: ast.stmt) -> Iterator[str]:
    for inner in ast.walk(node):
        if isinstance(inner, ast.FunctionDef | ast.AsyncFunctionDef | ast.ClassDef):
            yield inner.name
        elif isinstance(inner, ast.Import | ast.ImportFrom):
            yield from (alias.asname or alias.name for alias in inner.names)
        elif isinstance(inner, ast.Name) and isinstance(inner.ctx, ast.Store):
            yield inner.id


RULES = [
    upward_arrows,
    unwanted_libraries,
    unknown_rooms,
    nameless_modules,
    missing_docstrings,
    long_files,
    slow_dataclasses,
    false_exports,
]


@pytest.mark.parametrize("rule", RULES, ids=lambda rule: rule.__name__)
def test_the_house_is_in_order(rule):
    complaints = rule(PACKAGE)
    assert not complaints, "\n".join([rule.__doc__, *complaints])


def test_every_library_that_a_room_may_use_is_listed_for_a_room_that_is():
    assert {name.split("/")[0] for name in LIBRARIES} <= set(ROOMS)


# --- what a command loads -------------------------------------------------------------------------


@pytest.mark.skipif(not (PACKAGE / "cli" / "__init__.py").exists(), reason="no topo.cli yet")
@pytest.mark.parametrize("arguments", [["--help"], ["--version"]], ids=" ".join)
def test_help_loads_nothing_heavy(arguments):
    script = (
        "import sys\n"
        "from topo.cli.program import main\n"
        f"sys.argv = ['topo', *{arguments!r}]\n"
        "try:\n"
        "    code = main()\n"
        "except SystemExit as exit:\n"
        "    code = exit.code\n"
        "print(*sys.modules, sep='\\n', file=sys.__stderr__)\n"
        "sys.exit(code)\n"
    )
    done = subprocess.run(
        [sys.executable, "-c", script], capture_output=True, text=True, check=False
    )
    assert done.returncode == 0, done.stderr
    assert done.stdout.strip()
    assert HEAVY & set(done.stderr.split()) == set()


# --- the rules can fail ---------------------------------------------------------------------------

BAD_HOUSES = [
    (
        upward_arrows,
        "document/parse.py",
        "from topo.description import model\n",
        "description is below it",
    ),
    (upward_arrows, "document/parse.py", "import topo.cli\n", "cli is below it"),
    (upward_arrows, "solve/lp.py", "def f():\n    from topo import study\n", "study is below it"),
    (
        upward_arrows,
        "description/model.py",
        "if TYPE_CHECKING:\n    from topo.topology import Topology\n",
        "description/model.py:2: description imports topo.topology.Topology, but",
    ),
    (upward_arrows, "description/model.py", "from ..routes import search\n", "routes is below it"),
    (upward_arrows, "description/model.py", "from .. import routes\n", "routes is below it"),
    (upward_arrows, "description/model.py", "import_module('topo.views')\n", "views is below it"),
    (upward_arrows, "description/model.py", "from topo import load\n", "front door"),
    (upward_arrows, "errors.py", "import topo.units\n", "units is below it"),
    (unwanted_libraries, "description/decode.py", "import yaml.events\n", "may not import yaml"),
    (unwanted_libraries, "solve/lp.py", "import networkx as nx\n", "may not import networkx"),
    (unwanted_libraries, "solve/lp.py", "def f():\n    import pydantic\n", "pydantic"),
    (unwanted_libraries, "__init__.py", "import numpy\n", "may not import numpy"),
    (unknown_rooms, "paths/search.py", '"""Search."""\n', "no room of this name"),
    (unknown_rooms, "stuff.py", '"""Stuff."""\n', "no room of this name"),
    (nameless_modules, "description/_utils.py", '"""Things."""\n', "says nothing"),
    (nameless_modules, "description/core/model.py", '"""Things."""\n', "says nothing"),
    (missing_docstrings, "description/model.py", "x = 1\n", "no docstring"),
    (missing_docstrings, "description/model.py", '"""Types."""\n', "no __init__.py"),
    (long_files, "description/model.py", "\n" * (LONGEST_FILE + 1), "601 lines"),
    (slow_dataclasses, "solve/lp.py", "from dataclasses import dataclass\n", "topo.records"),
    (false_exports, "description/model.py", '__all__ = ["Description"]\n', "which is not there"),
    (false_exports, "description/model.py", '__all__ = ["x", "x"]\nx = 1\n', "twice"),
]

GOOD_HOUSE = {
    "__init__.py": '"""Door."""\nif TYPE_CHECKING:\n    from topo.cli.program import main\n',
    "errors.py": '"""Errors."""\n__all__ = ["TopoError"]\nclass TopoError(Exception): ...\n',
    "document/__init__.py": '"""Text to tree."""\nimport yaml\nfrom topo.errors import TopoError\n',
    "solve/__init__.py": '"""Rates."""\nimport numpy\nfrom . import maxmin\n',
    "solve/maxmin.py": '"""Fair."""\nfrom .system import System\nfrom topo import flows\n',
    "solve/mincut.py": '"""Cuts."""\nimport networkx\n',
    "cli/__init__.py": '"""Verbs."""\nimport click\nfrom topo import __version__, load\n',
    "views/themes/dark.yaml": "{}\n",
}


def build_house(root: Path, files: dict[str, str]) -> Path:
    package = root / "topo"
    for name, text in files.items():
        path = package / name
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(text, encoding="utf-8")
    return package


@pytest.mark.parametrize("rule", RULES, ids=lambda rule: rule.__name__)
def test_a_good_house_has_no_complaints(tmp_path, rule):
    assert rule(build_house(tmp_path, GOOD_HOUSE)) == []


@pytest.mark.parametrize(("rule", "name", "text", "expected"), BAD_HOUSES)
def test_a_bad_house_is_reported_once(tmp_path, rule, name, text, expected):
    # Only the file in question differs from a house without complaints.
    complaints = rule(build_house(tmp_path, {name: text}))
    found = [complaint for complaint in complaints if expected in complaint]
    assert len(found) == 1, complaints
    assert f"topo/{name}" in found[0] or name.startswith(("paths", "description/model"))


def test_every_rule_is_shown_a_bad_house():
    assert {rule for rule, *_ in BAD_HOUSES} == set(RULES)
