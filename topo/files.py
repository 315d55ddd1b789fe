"""Files: read with the reason where they cannot be, written whole or not at all."""

from __future__ import annotations

import os
from contextlib import suppress
from pathlib import Path

from topo.errors import Finding, TopoError


def read_file(path: str, most: int = -1) -> bytes:
    """Return the bytes of a file.

    Parameters
    ----------
    path
        Where it is.
    most
        The most bytes that are wanted, since a file can be endless; all when negative.

    Raises
    ------
    FileNotFoundError
        If it is not there: what was meant instead, the caller knows.
    TopoError
        If it is a folder or may not be read.
    """
    try:
        with Path(path).open("rb") as file:
            return file.read(most)
    except FileNotFoundError:
        raise
    except IsADirectoryError:
        message, advice = f"`{path}` is a folder", "name a file in it"
    except PermissionError:
        message, advice = f"`{path}` may not be read", "look at its permissions"
        if Path(path).is_dir():  # as some systems say it of a folder
            message, advice = f"`{path}` is a folder", "name a file in it"
    except (OSError, ValueError) as error:
        reason = error.strerror if isinstance(error, OSError) and error.strerror else str(error)
        message, advice = f"`{path}` cannot be read: {reason.lower()}", ""
    raise TopoError(Finding("unreadable-file", message, help=advice)) from None


def write_file(path: str, content: str | bytes) -> None:
    """Write a file whole or not at all.

    Raises
    ------
    TopoError
        If it cannot be written.
    """
    try:
        replace_file(Path(path), content.encode() if isinstance(content, str) else content)
    except OSError as error:
        raise unwritable(f"`{path}`", error) from None


def unwritable(what: str, error: OSError) -> TopoError:
    """Return the error for something that cannot be written."""
    reason = (error.strerror or str(error)).lower()
    return TopoError(Finding("unwritable-file", f"{what} cannot be written: {reason}"))


def replace_file(target: Path, data: bytes) -> None:
    """Write into a temporary neighbour that then takes the target's place: nobody sees half a file.

    A link stays and what it leads to is replaced; a file's mode stays. A pipe or a device has
    nothing to keep whole and is written to.

    Raises
    ------
    OSError
        If it cannot be written; the target is as it was.
    """
    import shutil
    import tempfile

    if target.is_dir():
        raise IsADirectoryError(None, "Is a directory")
    if target.exists() and not target.is_file():
        target.write_bytes(data)
        return
    target = target.resolve() if target.is_symlink() else target
    handle, name = tempfile.mkstemp(prefix=f".{target.name}.", dir=target.parent)
    draft = Path(name)
    try:
        with os.fdopen(handle, "wb") as file:
            file.write(data)
        if target.exists():
            shutil.copymode(target, draft)
        else:
            mask = os.umask(0)  # which can only be read by setting it
            os.umask(mask)
            draft.chmod(0o666 & ~mask)
        draft.replace(target)
    except BaseException:
        with suppress(OSError):
            draft.unlink()
        raise
