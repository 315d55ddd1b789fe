"""A copied tree of /sys and /proc in a tar archive: read once into memory, nothing is unpacked."""

from __future__ import annotations

import bz2
import gzip
import lzma
import tarfile
import zlib
from io import BytesIO
from typing import TYPE_CHECKING, Any, Final

from topo.discovery.sysfs_files import LONGEST_FILE, Tree, steps_of
from topo.errors import ExchangeError, Finding

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator

    from topo.discovery.sysfs_files import Place, Sort


_MOST_MEMBERS: Final = 300_000
_MOST_BYTES: Final = 256 * 2**20
_DEEPEST: Final = 40
_OPENERS: Final[tuple[tuple[bytes, Callable[[BytesIO], Any]], ...]] = (
    (b"\x1f\x8b", gzip.open),
    (b"BZh", bz2.open),
    (b"\xfd7zXZ", lzma.open),
)


class Archive(Tree):
    """A tar archive as a tree, read once into memory; nothing is unpacked.

    Raises
    ------
    ExchangeError
        If it is none, is cut, or holds more than a machine's description.
    """

    def __init__(self, data: bytes, name: str) -> None:
        super().__init__()
        self._nodes: dict[Place, bytes | str | None] = {(): None}
        try:
            for place, content in _members(data, name):
                self._put(place, content)
        except (tarfile.TarError, EOFError, OSError, ValueError, OverflowError) as error:
            if len(self._nodes) == 1:
                raise ExchangeError(_no_archive(name)) from None
            self.broken = type(error).__name__
        else:
            self.broken = ""
        self._children: dict[Place, list[str]] = {}
        for place in self._nodes:
            if place:
                self._children.setdefault(place[:-1], []).append(place[-1])
        self._top = self._found_top()

    def _put(self, place: Place, content: bytes | str | None) -> None:
        for at in range(1, len(place)):
            self._nodes.setdefault(place[:at], None)
        if place and (content is not None or place not in self._nodes):
            self._nodes[place] = content

    def _found_top(self) -> Place:
        """Return the folder that holds `sys`: the archive's root, or one folder in it."""
        for place in ((), *((name,) for name in sorted(self._children.get((), [])))):
            if "sys" in self._children.get(place, []):
                return place
        return ()

    def _sort(self, place: Place) -> Sort:
        here = (*self._top, *place)
        if here not in self._nodes:
            return ""
        content = self._nodes[here]
        return "folder" if content is None else "link" if isinstance(content, str) else "file"

    def _target(self, place: Place) -> str:
        return str(self._nodes[(*self._top, *place)])

    def _names(self, place: Place) -> list[str]:
        return self._children.get((*self._top, *place), [])

    def _bytes(self, place: Place) -> bytes:
        content = self._nodes[(*self._top, *place)]
        return content if isinstance(content, bytes) else b""


def _unpacked(data: bytes, name: str) -> bytes:
    """Return an archive without its compression, as far as it goes and no further than allowed."""
    opened = next((opened for magic, opened in _OPENERS if data.startswith(magic)), None)
    if opened is None:
        return data
    whole = bytearray()
    try:
        with opened(BytesIO(data)) as file:
            while piece := file.read(2**20):
                whole += piece
                if len(whole) > _MOST_BYTES:
                    raise ExchangeError(_too_much(name))
    except (OSError, EOFError, ValueError, zlib.error, lzma.LZMAError):
        pass  # what came before the break is still worth reading
    return bytes(whole)


def _too_much(name: str) -> Finding:
    message = f"`{name}` is an archive with more in it than any machine's /sys"
    return Finding("import-too-big", message)


def _members(data: bytes, name: str) -> Iterator[tuple[Place, bytes | str | None]]:
    """Yield what an archive holds: a folder, a file's first bytes, or a link's target."""
    left = _MOST_BYTES
    with tarfile.open(fileobj=BytesIO(_unpacked(data, name)), mode="r:") as archive:
        for count, member in enumerate(archive):
            left -= 512 + max(0, member.size)
            if count > _MOST_MEMBERS or left < 0:
                raise ExchangeError(_too_much(name))
            steps = steps_of(member.name)
            if ".." in steps or len(steps) > _DEEPEST:
                continue
            if member.isdir():
                yield tuple(steps), None
            elif member.issym():
                yield tuple(steps), member.linkname
            elif member.isreg():
                file = archive.extractfile(member)
                yield tuple(steps), file.read(LONGEST_FILE) if file is not None else b""


def _no_archive(name: str) -> Finding:
    return Finding(
        "broken-archive",
        f"`{name}` is no tar archive that can be read: is it cut, or another kind of file?",
        help="pack it anew: tar czf machine.tar.gz -C FOLDER sys proc",
    )
