"""Where a topology comes from: a file, a built-in by name, standard input, text, or a `dict`."""

from __future__ import annotations

import os
import sys
from pathlib import Path
from typing import TYPE_CHECKING, Any, Final

from topo import files
from topo.description.read import read_description
from topo.description.shape import document_of
from topo.document.parse import parse
from topo.errors import Finding, TopoError, UnknownNameError
from topo.phrases import did_you_mean

if TYPE_CHECKING:
    from collections.abc import Mapping

    from topo.description.description import Description


_SUFFIXES: Final = (".yaml", ".yml")
_PACKAGE: Final = Path(__file__).resolve().parents[1]
# In a wheel the worked machines lie in the catalogue; in a checkout at the top.
_FOLDERS: Final = (_PACKAGE / "catalogue" / "topologies", _PACKAGE.parent / "topologies")


def load(
    path_or_name: str | os.PathLike[str], *, overrides: Mapping[str, str] | None = None
) -> Description:
    """Load a topology from a file, from standard input or from those that topo ships.

    Parameters
    ----------
    path_or_name
        A path, or a text: with a ``/`` or ending in ``.yaml`` it is a file, ``-`` is standard
        input, anything else a built-in (`builtin_names`).
    overrides
        What to change on the way: ``{"slot1.part": "connectx-8", "settings.iommu": "on"}``.

    Raises
    ------
    TopoError
        If the file is not there or cannot be read.
    DocumentError, DescriptionError
        If it says something wrong.
    UnknownNameError
        If there is no built-in of this name, or an override changes nothing.
    """
    text = os.fspath(path_or_name)
    if text == "-":
        return loads(sys.stdin.buffer.read(), name="<stdin>", overrides=overrides)
    if isinstance(path_or_name, os.PathLike) or is_path(text):
        document = parse(read_file(text), name=text)
        return read_description(document, name=Path(text).stem, overrides=overrides)
    document = parse(_find_builtin(text).read_bytes(), name=f"topologies/{text}.yaml")
    return read_description(document, name=text, overrides=overrides)


def loads(
    text: str | bytes, *, name: str = "<text>", overrides: Mapping[str, str] | None = None
) -> Description:
    """Load a topology from YAML text.

    Parameters
    ----------
    text
        The text.
    name
        What messages call it.
    overrides
        What to change on the way, as for `load`.

    Examples
    --------
    >>> spec = loads("{topo: 1, devices: {'gpu[0-1]': h100-sxm-80gb}}")
    >>> [device.name for device in spec.devices]
    ['gpu0', 'gpu1']
    """
    return read_description(parse(text, name=name), name="topology", overrides=overrides)


def builtin_names() -> tuple[str, ...]:
    """Return the names of the worked machines that topo ships, sorted."""
    return tuple(sorted({file.stem for folder in _FOLDERS for file in folder.glob("*.yaml")}))


def builtin_text(name: str) -> str:
    """Return the text of a worked machine, comments and all.

    Raises
    ------
    UnknownNameError
        If there is no built-in of this name.
    """
    return _find_builtin(name).read_text(encoding="utf-8")


def is_path(text: str) -> bool:
    """Whether a text means a file, not a built-in: it has a ``/`` or ends in ``.yaml``."""
    separators = ("/", os.sep, os.altsep or "/")
    return text.endswith(_SUFFIXES) or any(separator in text for separator in separators)


def _find_builtin(name: str) -> Path:
    names = builtin_names()
    if name in names:
        return next(path for folder in _FOLDERS if (path := folder / f"{name}.yaml").is_file())
    beside = next((name + suffix for suffix in _SUFFIXES if Path(name + suffix).is_file()), "")
    advice = f"the file beside you is `{beside}`" if beside else did_you_mean(name, names)
    if not advice and Path(name).exists():
        advice = f"a file or folder is meant with a slash: `./{name}`"
    raise UnknownNameError(
        Finding(
            "unknown-name",
            f"no topology `{name}` comes with topo",
            help=advice or "a file's name ends in .yaml",
            notes=(f"built in: {', '.join(names) or 'none'}",),
        )
    )


def read_file(text: str, most: int = -1) -> bytes:
    """Return the bytes of a file.

    Parameters
    ----------
    text
        Its path.
    most
        The most bytes that are wanted, since a file can be endless; all when negative.

    Raises
    ------
    TopoError
        If it is not there, is a folder or may not be read.
    """
    try:
        return files.read_file(text, most)
    except FileNotFoundError:
        path = Path(text)
        message, names = f"there is no folder `{path.parent}`", []
        if path.parent.is_dir():
            message = f"there is no file `{text}`"
            names = sorted(file.name for file in path.parent.glob("*.y*ml"))
        advice = did_you_mean(path.name, names)
        if not advice and path.stem in builtin_names():
            advice = f"the built-in is `{path.stem}`, without a folder or .yaml"
        raise TopoError(Finding("no-file", message, help=advice)) from None


def build(
    document: Mapping[str, Any], *, overrides: Mapping[str, str] | None = None
) -> Description:
    """Build a topology from a `dict` of the same shape as the YAML.

    Parameters
    ----------
    document
        Mappings, lists, texts, numbers and booleans, as ``json.load`` gives them.
    overrides
        What to change on the way, as for `load`.

    Examples
    --------
    >>> build({"topo": 1, "devices": {"gpu0": "h100-sxm-80gb"}}).devices[0].name
    'gpu0'
    """
    return read_description(document_of(document), name="topology", overrides=overrides)
