"""The named data paths: those that topo ships, and a file's own."""

from __future__ import annotations

from functools import cache
from pathlib import Path
from typing import TYPE_CHECKING

from topo.catalogue.advice import nearest_names
from topo.description import read_data_path, vary_data_path
from topo.description.vocabulary import BUILT_IN
from topo.document import Mapping as MappingNode
from topo.document import Report, parse
from topo.errors import DescriptionError, Finding, UnknownNameError

if TYPE_CHECKING:
    from topo.description.description import DataPath, Description


# Not importlib.resources: it takes a tenth of the time that `topo check` has.
_DATA = Path(__file__).parent / "data"


@cache
def built_in(name: str) -> DataPath:
    """Return a shipped data path, read from its own YAML file.

    Raises
    ------
    UnknownNameError
        If topo ships none of that name.
    """
    if name not in BUILT_IN:
        raise UnknownNameError(_unknown(name, BUILT_IN))
    file = f"{name}.yaml"
    text = (_DATA / file).read_text(encoding="utf-8")
    document = parse(text, name=f"topo/datapaths/{file}")
    report = Report(document)
    assert isinstance(document.root, MappingNode)
    (_, node), *_ = document.root.entries
    found = read_data_path(name, node, report=report)
    report.stop(DescriptionError)
    assert found is not None
    return found


def data_path(description: Description, name: str) -> DataPath:
    """Return the data path that `name` means in a file: its own before a shipped one.

    Raises
    ------
    UnknownNameError
        If there is none; the near name is in the help.
    """
    own = description.data_paths.get(name)
    if own is not None:
        return own
    if name not in BUILT_IN:
        raise UnknownNameError(_unknown(name, (*description.data_paths, *BUILT_IN)))
    found = built_in(name)
    changes = description.data_path_overrides.get(name)
    if changes is None:
        return found
    return vary_data_path(found, changes, report=_checked_already())


def data_paths(description: Description) -> tuple[DataPath, ...]:
    """Return every data path a file can use: the shipped ones, then its own."""
    names = dict.fromkeys((*BUILT_IN, *description.data_paths))
    return tuple(data_path(description, name) for name in names)


def _checked_already() -> Report:
    """Return a report for entries that the reader of the file has checked; it stays empty."""
    return Report(parse("topo: 1", name=""))


def _unknown(name: str, known: tuple[str, ...]) -> Finding:
    return Finding("unknown-data-path", f"no data path `{name}`", help=nearest_names(name, known))
