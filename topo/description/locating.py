"""Where the text of a topology is found: a file, standard input, or a machine that topo ships."""

from __future__ import annotations

import os
from pathlib import Path
from typing import Final

from topo import files
from topo.errors import Finding, TopoError, UnknownNameError
from topo.phrases import did_you_mean, listed, near_names

_SUFFIXES: Final = (".yaml", ".yml")
_PACKAGE: Final = Path(__file__).resolve().parents[1]
# In a wheel the worked machines lie in the catalogue; in a checkout at the top.
_FOLDERS: Final = (_PACKAGE / "catalogue" / "topologies", _PACKAGE.parent / "topologies")


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
    return find_builtin(name).read_text(encoding="utf-8")


def is_path(text: str) -> bool:
    """Whether a text means a file, not a built-in: it has a ``/`` or ends in ``.yaml``."""
    separators = ("/", os.sep, os.altsep or "/")
    return text.endswith(_SUFFIXES) or any(separator in text for separator in separators)


def find_builtin(name: str, *, beside: str | None = "") -> Path:
    """Return the file of a worked machine.

    Parameters
    ----------
    name
        Its name.
    beside
        The folder in which a file of that name may have been meant; `None` where none can be.

    Raises
    ------
    UnknownNameError
        If there is no built-in of this name.
    """
    names = builtin_names()
    if name in names:
        return next(path for folder in _FOLDERS if (path := folder / f"{name}.yaml").is_file())
    folder = Path(beside or "")
    files_beside = (name + suffix for suffix in _SUFFIXES if beside is not None)
    file = next((file for file in files_beside if (folder / file).is_file()), "")
    where = "this one" if beside else "you"
    advice = f"the file beside {where} is `{file}`" if file else did_you_mean(name, names)
    if not advice and beside is not None and (folder / name).exists():
        advice = f"a file or folder is meant with a slash: `./{name}`"
    raise UnknownNameError(
        Finding(
            "unknown-name",
            f"no topology `{name}` comes with topo",
            help=advice or "a file's name ends in .yaml",
            notes=() if advice else (f"built in: {', '.join(names) or 'none'}",),
        )
    )


def read_file(text: str) -> bytes:
    """Return the bytes of a file, or of standard input for ``-``.

    Raises
    ------
    TopoError
        If it is not there, is a folder, is too large or may not be read.
    """
    try:
        return files.read_file(text)
    except FileNotFoundError:
        path = Path(text)
        message, names = f"there is no folder `{path.parent}`", dict[str, str]()
        if path.parent.is_dir():
            message = f"there is no file `{text}`"
            names = {file.stem: file.name for file in sorted(path.parent.glob("*.y*ml"))}
        near = [f"`{names[stem]}`" for stem in near_names(path.stem, names)]
        advice = f"did you mean {listed(near, 'or')}?" if near else ""
        if not advice and path.stem in builtin_names():
            advice = f"the built-in is `{path.stem}`, without a folder or .yaml"
        raise TopoError(Finding("no-file", message, help=advice)) from None
