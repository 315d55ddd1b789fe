"""`import topo` offers what it says, costs nothing until it is used, and is installed whole."""

from __future__ import annotations

import ast
import re
import subprocess
import sys
import tomllib
import zipfile
from pathlib import Path

import pytest

import topo

DOOR = Path(topo.__file__)
PACKAGE = DOOR.parent
CHECKOUT = PACKAGE.parent
PUBLIC = [name for name in topo.__all__ if name != "__version__"]


def names_for_the_type_checker() -> dict[str, str]:
    """Read the imports under ``if TYPE_CHECKING:``: name to module."""
    checked = next(node for node in ast.parse(DOOR.read_text()).body if isinstance(node, ast.If))
    return {
        alias.asname or alias.name: node.module or ""
        for node in checked.body
        if isinstance(node, ast.ImportFrom)
        for alias in node.names
    }


def loaded_after(code: str) -> set[str]:
    """Run `code` in a new interpreter and say which modules it loaded."""
    script = f"import sys\n{code}\nprint(*sys.modules, sep='\\n', file=sys.__stderr__)"
    done = subprocess.run(
        [sys.executable, "-c", script], capture_output=True, text=True, check=True
    )
    return set(done.stderr.split())


def test_the_public_list_is_sorted_and_without_repeats():
    assert topo.__all__ == sorted(set(topo.__all__))


def test_what_python_reads_is_what_the_type_checker_reads():
    assert names_for_the_type_checker() == topo._HOMES


def test_every_public_name_has_a_home():
    assert sorted(topo._HOMES) == PUBLIC


@pytest.mark.parametrize("name", PUBLIC)
def test_a_public_name_resolves_to_what_its_home_defines(name):
    value = getattr(topo, name)
    assert value is getattr(sys.modules[topo._HOMES[name]], name)
    assert getattr(value, "__doc__", None), f"{name} has no docstring"


@pytest.mark.parametrize("name", PUBLIC)
def test_a_public_name_is_not_also_a_module_of_the_package(name):
    # Importing `topo.x` sets the attribute `x` of `topo`: the module would hide the function.
    assert not (PACKAGE / name).exists(), f"topo.{name} is both a public name and a room"
    assert not (PACKAGE / f"{name}.py").exists(), f"topo.{name} is both a public name and a module"


def test_dir_lists_the_public_names():
    assert set(topo.__all__) <= set(dir(topo))


def test_an_unknown_name_is_an_attribute_error_that_names_it():
    with pytest.raises(AttributeError, match=r"module 'topo' has no attribute 'bandwith'"):
        _ = topo.bandwith


def test_star_import_gives_the_public_names():
    names: dict[str, object] = {}
    exec("from topo import *", names)
    assert set(topo.__all__) <= set(names)


def test_importing_topo_loads_nothing_else():
    loaded = loaded_after("import topo")
    assert "topo" in loaded
    assert {name for name in loaded if name.startswith("topo.")} == set()


def test_a_public_name_loads_its_home_and_what_that_needs():
    loaded = loaded_after("import topo\ntopo.TopoError")
    assert {name for name in loaded if name.startswith("topo.")} == {"topo.errors", "topo.records"}


# --- the wheel ------------------------------------------------------------------------------------

DATA = {".py", ".yaml", ".json", ".md", ".j2", ".html", ".css", ".js", ".typed"}


@pytest.fixture(scope="session")
def wheel(tmp_path_factory):
    """Build the wheel and unpack it, as pip would."""
    from hatchling.builders.wheel import WheelBuilder

    folder = tmp_path_factory.mktemp("wheel")
    built = next(WheelBuilder(str(CHECKOUT)).build(directory=str(folder), versions=["standard"]))
    with zipfile.ZipFile(built) as archive:
        archive.extractall(folder / "site")
    return folder / "site"


def files_under(folder: Path) -> set[str]:
    return {
        path.relative_to(folder).as_posix()
        for path in folder.rglob("*")
        if path.is_file() and path.suffix in DATA
    }


def test_the_wheel_holds_the_package_and_its_data(wheel):
    machines = {f"catalogue/topologies/{name}" for name in files_under(CHECKOUT / "topologies")}
    assert files_under(wheel / "topo") == files_under(PACKAGE) | machines
    assert "py.typed" in files_under(wheel / "topo")


@pytest.mark.skipif("load" not in topo.__all__, reason="no topo.load yet")
def test_a_built_in_machine_loads_from_the_wheel(wheel, tmp_path):
    # Without the checkout on the path: `-S` leaves out the editable install, not the libraries.
    libraries = [path for path in sys.path if path.endswith("site-packages")]
    script = (
        f"import sys; sys.path[:0] = {[str(wheel), *libraries]!r}\n"
        "import topo\n"
        "print(topo.__file__)\n"
        "assert topo.load('gds-textbook')\n"
    )
    done = subprocess.run(
        [sys.executable, "-S", "-c", script],
        capture_output=True,
        text=True,
        check=False,
        cwd=tmp_path,
    )
    assert done.returncode == 0, done.stderr
    assert done.stdout.startswith(str(wheel))


def test_the_lock_file_pins_all_that_development_needs():
    lock = (CHECKOUT / "requirements-dev.lock").read_text(encoding="utf-8")
    pins = [line for line in lock.splitlines() if line and not line.startswith("#")]
    assert all(re.fullmatch(r"[A-Za-z0-9_.-]+==[\w.!+-]+", pin) for pin in pins)
    locked = {re.sub(r"[-_.]+", "-", pin.partition("==")[0]).lower() for pin in pins}
    project = tomllib.loads((CHECKOUT / "pyproject.toml").read_text(encoding="utf-8"))["project"]
    extras = project["optional-dependencies"]
    needs = [*project["dependencies"], *extras["scale"], *extras["dev"]]
    names = {re.match(r"[\w.-]+", need).group().lower().replace("_", "-") for need in needs}
    assert names - {"gpu-topo"} <= locked
