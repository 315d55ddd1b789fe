"""A file tree to read Linux's /sys and /proc from: a folder, or a tar archive, never outside it.

Links are followed by hand: an absolute one starts at the tree's own root, ``..`` stops there. So a
copied tree cannot show files of the machine that topo runs on.
"""

from __future__ import annotations

import os
import stat
from abc import ABC, abstractmethod
from typing import TYPE_CHECKING, Final, Literal

if TYPE_CHECKING:
    from pathlib import Path


LONGEST_FILE: Final = 64 * 1024
Place = tuple[str, ...]
Sort = Literal["folder", "file", "link", ""]

_MOST_LINKS: Final = 40
_MOST_STEPS: Final = 500
_MOST_NAMES: Final = 20_000


class Tree(ABC):
    """A tree of files with its own root."""

    def __init__(self) -> None:
        self._resolved: dict[Place, Place | None] = {}

    @abstractmethod
    def _sort(self, place: Place) -> Sort:
        """Return what stands at a place, links not followed."""

    @abstractmethod
    def _target(self, place: Place) -> str:
        """Return where a link leads."""

    @abstractmethod
    def _names(self, place: Place) -> list[str]:
        """Return the names in a folder."""

    @abstractmethod
    def _bytes(self, place: Place) -> bytes:
        """Return the beginning of a file."""

    def resolve(self, path: str) -> str:
        """Return a path without links, ``""`` when nothing stands there."""
        place = self._walk(steps_of(path))
        return "/" + "/".join(place) if place is not None else ""

    def text(self, path: str) -> str:
        """Return a file's text without white space around it, ``""`` when it cannot be read."""
        return self.data(path).decode("utf-8", "replace").strip()

    def data(self, path: str) -> bytes:
        """Return a file's first bytes, ``b""`` when it cannot be read."""
        place = self._walk(steps_of(path))
        if place is None or self._sort(place) != "file":
            return b""
        try:
            return self._bytes(place)[:LONGEST_FILE]
        except OSError:
            return b""

    def names(self, path: str) -> list[str]:
        """Return the names in a folder, sorted; none when it is absent."""
        place = self._walk(steps_of(path))
        if place is None or self._sort(place) != "folder":
            return []
        try:
            return sorted(self._names(place)[:_MOST_NAMES])
        except OSError:
            return []

    def is_link(self, path: str) -> bool:
        """Whether the last step of a path is a link."""
        *above, last = steps_of(path)
        place = self._walk(above)
        return place is not None and self._sort((*place, last)) == "link"

    def _walk(self, steps: list[str]) -> Place | None:
        key = tuple(steps)
        if key not in self._resolved:
            self._resolved[key] = self._walked(steps)
        return self._resolved[key]

    def _walked(self, steps: list[str]) -> Place | None:
        place: Place = ()
        todo = list(reversed(steps))
        links = count = 0
        while todo:
            step = todo.pop()
            count += 1
            if count > _MOST_STEPS:
                return None
            if step == "..":
                place = place[:-1]
                continue
            here = (*place, step)
            sort = self._sort(here)
            if not sort:
                return None
            if sort != "link":
                place = here
                continue
            links += 1
            target = self._target(here)
            if links > _MOST_LINKS:
                return None
            place = () if target.startswith("/") else place
            todo += reversed(steps_of(target))
        return place


def steps_of(path: str) -> list[str]:
    """Return the steps of a path, without those that lead nowhere."""
    return [step for step in path.split("/") if step not in ("", ".")]


class Folder(Tree):
    """A folder as a tree; ``/`` is the machine itself."""

    def __init__(self, root: Path) -> None:
        super().__init__()
        self.root = root

    def _path(self, place: Place) -> str:
        return os.path.join(self.root, *place)  # noqa: PTH118  (called a great many times)

    def _sort(self, place: Place) -> Sort:
        try:
            mode = os.lstat(self._path(place)).st_mode
        except (OSError, ValueError):
            return ""
        if stat.S_ISLNK(mode):
            return "link"
        if stat.S_ISDIR(mode):
            return "folder"
        return "file" if stat.S_ISREG(mode) else ""

    def _target(self, place: Place) -> str:
        try:
            return os.readlink(self._path(place))  # noqa: PTH115
        except OSError:
            return ""

    def _names(self, place: Place) -> list[str]:
        return os.listdir(self._path(place))  # noqa: PTH208

    def _bytes(self, place: Place) -> bytes:
        with open(self._path(place), "rb") as file:  # noqa: PTH123
            return file.read(LONGEST_FILE)
