"""A host's texts and files packed for somebody else, without what tells whose host it is.

In it is what topo read of /sys and /proc, file by file and nothing more, and what the host's tools
printed. Read as the host itself is read it gives the same machine.
"""

from __future__ import annotations

import gzip
import io
import os
import tarfile
from collections.abc import Mapping, Sequence
from contextlib import suppress
from typing import TYPE_CHECKING, Final

from topo.discovery.host_sources import HostText
from topo.discovery.sources.config_space import without_identity
from topo.host.stand_ins import StandIns

if TYPE_CHECKING:
    from topo.discovery.sources.file_tree import Content, FileTree, Place
    from topo.host.gathering import Ran

TOP: Final = "host"  # the one folder that it unpacks to
_NAMES: Final = ("/proc/sys/kernel/hostname", "/proc/sys/kernel/domainname", "/etc/hostname")
_SERIALS: Final = (
    "/etc/machine-id",
    *(
        f"/sys/class/dmi/id/{name}"
        for name in (
            *("product_serial", "board_serial", "chassis_serial", "product_uuid"),
            *("board_asset_tag", "chassis_asset_tag"),
        )
    ),
)
_SERIALS_OF: Final = (  # a folder, and what each member of it tells
    ("/sys/class/nvme", ("serial", "wwid")),
    ("/sys/class/infiniband", ("node_desc",)),
)
_USERS: Final = ("USER", "LOGNAME", "SUDO_USER", "USERNAME")
_NUMBERS: Final = ("resource",)  # addresses on the bus, which look like GUIDs and are nobody's
_ROUTES: Final = ("proc", "net", "route")


def stand_ins_for(tree: FileTree) -> StandIns:
    """Return stand-ins that know this very host's names and serial numbers.

    Parameters
    ----------
    tree
        The host's files.
    """
    names = [tree.text(path) for path in _NAMES]
    for name in names[:]:  # and its first word, and each domain that it is in
        labels = name.split(".")
        names += [labels[0], *(".".join(labels[at:]) for at in range(1, len(labels) - 1))]
    names += [os.environ.get(word, "") for word in _USERS]
    if hasattr(os, "getuid"):
        import pwd

        with suppress(KeyError):
            names.append(pwd.getpwuid(os.getuid()).pw_name)
    serials = [tree.text(path) for path in _SERIALS]
    for folder, members in _SERIALS_OF:
        serials += [
            value
            for name in tree.names(folder)
            for member in members
            if (value := tree.text(f"{folder}/{name}/{member}")) != name
        ]
    return StandIns(names, serials)


def bundle(
    seen: Mapping[Place, Content | None], results: Sequence[Ran], stand_ins: StandIns
) -> bytes:
    """Return a gzipped tar archive of what was read of a host; the same reading, the same bytes.

    Parameters
    ----------
    seen
        The files, links and folders that were read: `Recorded.seen`.
    results
        What became of the commands that were run.
    stand_ins
        What takes the place of names, serial numbers and addresses.
    """
    members: dict[str, Content | None] = {}
    for place, content in sorted(seen.items()):
        if place:
            path = "/".join(stand_ins.replaced(step) for step in place)
            members[path] = _anonymous(place, content, stand_ins)
    for number, result in enumerate(results, 1):
        if result.data.strip():
            text = HostText(result.command.line, result.data)
            members[text.file(number)] = _replaced(result.data, stand_ins)
    members["gathered.txt"] = _replaced(
        "".join(f"{_line(result)}\n" for result in results).encode(), stand_ins
    )
    raw = io.BytesIO()
    with tarfile.open(fileobj=raw, mode="w", format=tarfile.GNU_FORMAT) as archive:
        for path, content in members.items():
            member = tarfile.TarInfo(f"{TOP}/{path}")  # nobody's, of no time
            if content is None:
                member.type, member.mode = tarfile.DIRTYPE, 0o755
            elif isinstance(content, str):
                member.type, member.linkname = tarfile.SYMTYPE, content
            data = content if isinstance(content, bytes) else b""
            member.size = len(data)
            archive.addfile(member, io.BytesIO(data))
    return gzip.compress(raw.getvalue(), mtime=0)


def _anonymous(place: Place, content: Content | None, stand_ins: StandIns) -> Content | None:
    """Return what a place holds without what tells whose it is."""
    if isinstance(content, str):
        return "/".join(stand_ins.replaced(step) for step in content.split("/"))
    if not isinstance(content, bytes):
        return None
    if place[-1] == "config":
        return without_identity(content)
    if place[-1] in _NUMBERS:
        return content
    if place == _ROUTES:
        return stand_ins.route_replaced(content.decode("utf-8", "replace")).encode()
    return _replaced(content, stand_ins)


def _replaced(data: bytes, stand_ins: StandIns) -> bytes:
    return stand_ins.replaced(data.decode("utf-8", "replace")).encode()


def _line(result: Ran) -> str:
    words = f": {result.words}" if result.words else ""
    return f"{result.command.line}: {result.state}{words}"
