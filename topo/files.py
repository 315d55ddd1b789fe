"""Files: read with the reason where they cannot be, written whole or not at all."""

from __future__ import annotations

import os
import stat
import sys
from collections.abc import Iterable, Mapping
from contextlib import suppress
from pathlib import Path
from time import sleep
from typing import BinaryIO, Final

from topo.errors import Finding, TopoError

STANDARD_INPUT: Final = "-"
LARGEST: Final = 64 * 2**20  # bytes of a file
_TRIES: Final = 40
_PAUSE_S: Final = 0.05


def read_file(path: str, most: int = LARGEST) -> bytes:
    """Return the bytes of a file, or of standard input for ``-``.

    Parameters
    ----------
    path
        Where it is.
    most
        The most bytes that it may have: the limit stands before the reading, since a file can be
        endless.

    Raises
    ------
    FileNotFoundError
        If it is not there: what was meant instead, the caller knows.
    TopoError
        If it is a folder, is larger, is a pipe that nobody writes to, or may not be read.
    """
    name = "standard input" if path == STANDARD_INPUT else f"`{path}`"
    advice = ""
    try:
        content = _standard_input(most) if path == STANDARD_INPUT else _content(path, most)
        if content is not None and len(content) <= most:
            return content
        message = f"{name} has more than {most >> 20} MiB"
        raise TopoError(Finding("too-large", message, help="topo reads no files as large"))
    except FileNotFoundError:
        raise
    except IsADirectoryError:
        message, advice = f"{name} is a folder", "name a file in it"
    except PermissionError:
        message, advice = f"{name} may not be read", "look at its permissions"
        if Path(path).is_dir():  # as some systems say it of a folder
            message, advice = f"{name} is a folder", "name a file in it"
    except (OSError, ValueError) as error:
        reason = error.strerror if isinstance(error, OSError) and error.strerror else str(error)
        message = f"{name} cannot be read: {reason.lower()}"
    raise TopoError(Finding("unreadable-file", message, help=advice)) from None


def _standard_input(most: int) -> bytes:
    if sys.stdin is None:
        raise OSError(None, "it is closed")
    return sys.stdin.buffer.read(most + 1)


def _content(path: str, most: int) -> bytes | None:
    """Return a file's first bytes, one more than `most` or none at all where it has more."""
    # Opening a pipe that nobody writes to would wait for ever.
    with open(os.open(path, os.O_RDONLY | getattr(os, "O_NONBLOCK", 0)), "rb") as file:  # noqa: PTH123
        status = os.fstat(file.fileno())
        if stat.S_ISDIR(status.st_mode):
            raise IsADirectoryError
        if stat.S_ISREG(status.st_mode) and status.st_size > most:
            return None
        start = b""
        if stat.S_ISFIFO(status.st_mode):
            for _ in range(_TRIES):
                with suppress(BlockingIOError):
                    start = os.read(file.fileno(), 2**16)
                    if not start:  # no writer, so far
                        sleep(_PAUSE_S)
                        continue
                break
            else:
                raise OSError(None, "it is a pipe that nobody writes to")
        os.set_blocking(file.fileno(), True)
        return start + file.read(most + 1 - len(start))


def write_file(path: str, content: str | bytes, *, was: bytes | None = None) -> None:
    """Write a file whole or not at all.

    Parameters
    ----------
    path, content
        Where to, and what.
    was
        What was read from there: it is written only where that still stands there.

    Raises
    ------
    TopoError
        If it cannot be written, or somebody else has written it meanwhile.
    """
    data = content.encode() if isinstance(content, str) else content
    try:
        if was is None:
            replace_file(Path(path), data)
            return
        with Path(path).open("rb") as file:
            _lock(file)  # who waits here finds what the other one wrote
            if Path(path).read_bytes() == was:
                replace_file(Path(path), data)
                return
    except OSError as error:
        raise unwritable(f"`{path}`", error) from None
    message = f"`{path}` was changed by another program meanwhile: nothing was written"
    raise TopoError(Finding("changed-meanwhile", message, help="run it again"))


def write_files(contents: Mapping[str, str]) -> None:
    """Write several files, all of them or none: where one fails, what stood there comes back.

    Parameters
    ----------
    contents
        What is to stand in each, in the order in which they are written.

    Raises
    ------
    TopoError
        If one cannot be written.
    """
    import shutil
    import tempfile

    copies: dict[Path, Path | None] = {}  # a copy of what stood there, made before anything changes
    target, done = Path(), list[Path]()
    try:
        for target in map(Path, contents):
            copies[target] = None
            if target.is_file():
                handle, name = tempfile.mkstemp(prefix=f".{target.name}.", dir=target.parent)
                os.close(handle)
                copies[target] = Path(name)
                shutil.copy2(target, name)
        for path, content in contents.items():
            target = Path(path)
            replace_file(target, content.encode())
            done.append(target)
    except OSError as error:
        for written in reversed(done):
            copy = copies[written]
            with suppress(OSError):
                written.unlink() if copy is None else replace_file(written, copy.read_bytes())
        raise unwritable(f"`{target}`", error) from None
    finally:
        for copy in filter(None, copies.values()):
            with suppress(OSError):
                copy.unlink()


def _lock(file: BinaryIO) -> None:
    """Wait until nobody else who asks has the file; where the system cannot, go on."""
    with suppress(ImportError, OSError):
        import fcntl

        fcntl.flock(file, fcntl.LOCK_EX)


def spare_inputs(output: str, inputs: Iterable[str]) -> None:
    """Refuse an output that is one of the files that are read.

    Raises
    ------
    TopoError
        If it is, by whatever name.
    """
    for path in inputs:
        try:
            same = os.path.samefile(output, path)  # noqa: PTH121  (no Path for any text)
        except (OSError, ValueError):
            continue
        if same and not Path(output).is_char_device():
            message = f"`{output}` is read as well: writing it would destroy `{path}`"
            raise TopoError(Finding("output-is-input", message, help="choose another name"))


def unwritable(what: str, error: OSError) -> TopoError:
    """Return the error for something that cannot be written."""
    reason = (error.strerror or str(error)).lower()
    return TopoError(Finding("unwritable-file", f"{what} cannot be written: {reason}"))


def replace_file(target: Path, data: bytes) -> None:
    """Write into a temporary neighbour that then takes the target's place: nobody sees half a file.

    A link stays and what it leads to is replaced; a file's mode stays. A pipe or a device has
    nothing to keep whole and is written to. A file of several names or of another owner is written
    in its place, since a new one would be neither.

    Raises
    ------
    OSError
        If it cannot be written or is read-only; the target is as it was.
    """
    import shutil
    import tempfile

    if target.is_dir():
        raise IsADirectoryError(None, "Is a directory")
    if target.exists() and not target.is_file():
        target.write_bytes(data)
        return
    target = target.resolve() if target.is_symlink() else target
    status = target.stat() if target.exists() else None
    if status is not None:
        if not status.st_mode & 0o222 or not os.access(target, os.W_OK):
            raise PermissionError(None, "it is read-only")
        if status.st_nlink > 1 or (status.st_uid, status.st_gid) != _owner():
            _overwrite(target, data)
            return
    handle, name = tempfile.mkstemp(prefix=f".{target.name}.", dir=target.parent)
    draft = Path(name)
    try:
        with os.fdopen(handle, "wb") as file:
            file.write(data)
        if status is not None:
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


def _owner() -> tuple[int, int]:
    """Return user and group of a new file; those of any file where there are none."""
    return (os.geteuid(), os.getegid()) if hasattr(os, "geteuid") else (0, 0)


def _overwrite(target: Path, data: bytes) -> None:
    """Write into a file as it is; what was there comes back where that fails."""
    before = target.read_bytes()
    try:
        with target.open("r+b") as file:
            file.write(data)
            file.truncate()
    except OSError:
        with suppress(OSError):
            target.write_bytes(before)
        raise
