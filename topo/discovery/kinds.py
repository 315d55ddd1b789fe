"""What kind of file this is, told by what stands in it, so that a wrong one is named."""

from __future__ import annotations

import codecs
import re
from dataclasses import dataclass
from typing import Final

_HEAD: Final = 65536  # bytes that are looked at


@dataclass(frozen=True, slots=True)
class Guess:
    """What a file is.

    Parameters
    ----------
    kind
        The importer that reads it, ``""`` when none does.
    words
        The same in words.
    help
        What to give instead, where that is known.
    """

    kind: str
    words: str
    help: str = ""

    @property
    def known(self) -> bool:
        """Whether anything in the file told what it is."""
        return self.words != _NOTHING


_NOTHING: Final = "no file that topo knows"
_ROOT: Final = re.compile(rb"<\s*([A-Za-z_][\w:.-]{0,60})")
_PROLOG: Final = re.compile(rb"\s*(<\?.*?\?>|<!--.*?-->|<!DOCTYPE[^\[>]*(\[.*?\]\s*)?>)", re.DOTALL)
_ROOTS: Final = {
    b"system": Guess("nccl", "an NCCL topology file"),
    b"cpu": Guess("", "a piece of an NCCL topology file without its <system>"),
    b"graphs": Guess("", "an NCCL graph dump (NCCL_GRAPH_DUMP_FILE), not a topology"),
    b"topology": Guess("hwloc", "an hwloc XML file"),
    b"nvidia_smi_log": Guess(
        "", "the XML of `nvidia-smi -q -x`, which has no topology", "run `nvidia-smi topo -m`"
    ),
    b"svg": Guess("", "an SVG picture"),
    b"html": Guess("", "a web page"),
    b"mxfile": Guess("", "a draw.io drawing"),
    b"platform": Guess("", "a SimGrid platform"),
    b"graphml": Guess("", "a GraphML file"),
    b"sys-sage": Guess("", "a sys-sage file"),
}
_ESCAPES: Final = re.compile(rb"\x1b\[[0-9;]*m")
_NODES: Final = "lspci -vvv, hwloc and /sys tell NUMA nodes too"
# In this order: the first that is found says what it is.
_TEXTS: Final = (
    (
        rb"(?m)^[ \t]*=+[ \t]*ROCm System Management|GPU\[\d+\]\s*:",
        "rocm-smi",
        "output of rocm-smi",
    ),
    (
        rb"(?m)^[ \t]*GPU\d+\s.*\b(OK|CNS|GNS|TNS|DR)\b",
        "",
        "a peer-to-peer matrix of `nvidia-smi topo -p2p`",
        "run `nvidia-smi topo -m`",
    ),
    (rb"(?m)^[ \t]*(GPU|NIC|mlx)\w*[ \t]+.*\bX\b", "nvidia-smi", "output of nvidia-smi topo -m"),
    (rb"(?m)^[ \t]*(GPU\d+[ \t]+)+[^\n]*$", "nvidia-smi", "a matrix of nvidia-smi"),
    (rb"(?m)^[-+\\| \t]*-\[[0-9a-f]{4,8}:[0-9a-f]{2}", "lspci", "output of lspci -tv"),
    (
        rb"(?m)^(?:[0-9a-f]{4,8}:)?[0-9a-f]{2}:[0-9a-f]{2}\.[0-7] \S",
        "lspci",
        "output of lspci",
    ),
    (rb"(?m)^Machine \(", "", "text of lstopo", "its XML is what topo reads: `lstopo x.xml`"),
    (rb"(?m)^\| NVIDIA-SMI ", "", "the table of nvidia-smi", "run `nvidia-smi topo -m`"),
    (rb"(?m)^available: \d+ nodes?", "", "output of numactl --hardware", _NODES),
    (
        rb"(?m)^topo:[ \t]*1\b",
        "",
        "a topology file of topo",
        "it needs no import: `topo show FILE`",
    ),
    (rb"NCCL INFO", "", "a log of NCCL", "run with NCCL_TOPO_DUMP_FILE=topo.xml and import that"),
    (rb"GDS release version|DRIVER CONFIGURATION", "", "output of gdscheck"),
    (rb"IoType: \w+ XferType:", "", "output of gdsio, for `topo measure`"),
    (rb"strict graph|digraph", "", "a Graphviz file"),
    (rb"\A(?:\s*#[^\n]*\n|---\n|\s*\n)*[\w-]+:(?:[ \t]|\r?\n)", "", "a YAML file"),
)
_PLAIN: Final = tuple((re.compile(pattern), Guess(*said)) for pattern, *said in _TEXTS)
_MAGIC: Final = (
    (0, b"\x1f\x8b", Guess("sysfs", "a gzip archive")),
    (0, b"BZh", Guess("sysfs", "a bzip2 archive")),
    (0, b"\xfd7zXZ", Guess("sysfs", "an xz archive")),
    (257, b"ustar", Guess("sysfs", "a tar archive")),
    (0, b"\x89PNG", Guess("", "a PNG picture")),
    (0, b"%PDF-", Guess("", "a PDF file")),
    (0, b"PK\x03\x04", Guess("", "a zip file")),
    (0, b"\x7fELF", Guess("", "a program")),
)
_JSON: Final = (
    (b'"nvbandwidth"', "results of nvbandwidth, for `topo measure`"),
    (b'"fio version"', "results of fio, for `topo measure`"),
    (b'"properties"', "a cufile.json"),
    (b'"schema"', "a JSON document of topo"),
)


def guess_kind(data: bytes) -> Guess:
    """Say what kind of file this is.

    Parameters
    ----------
    data
        The whole file; only its beginning is looked at.

    Examples
    --------
    >>> guess_kind(b'<system version="1">').kind
    'nccl'
    >>> guess_kind(b"<graphs version='1'/>").words
    'an NCCL graph dump (NCCL_GRAPH_DUMP_FILE), not a topology'
    """
    for offset, magic, guess in _MAGIC:
        if data[offset : offset + len(magic)] == magic:
            return guess
    head = _plain(data[:_HEAD])
    if not head.strip():
        return Guess("", "an empty file")
    if head.lstrip().startswith(b"<"):
        return _markup(head)
    if head.lstrip()[:1] in (b"{", b"["):
        return next((Guess("", words) for key, words in _JSON if key in head), _JSON_FILE)
    if b"\x00" in head:
        return Guess("", "a binary file")
    text = _ESCAPES.sub(b"", head)
    return next((guess for pattern, guess in _PLAIN if pattern.search(text)), _UNKNOWN)


def _plain(head: bytes) -> bytes:
    """Return the beginning without its byte order mark, UTF-16 (PowerShell's) as UTF-8."""
    if head.startswith((codecs.BOM_UTF16_LE, codecs.BOM_UTF16_BE)):
        return head.decode("utf-16", "replace").encode()
    return head.removeprefix(codecs.BOM_UTF8)


_JSON_FILE: Final = Guess("", "a JSON file")
_UNKNOWN: Final = Guess("", _NOTHING)


def _markup(head: bytes) -> Guess:
    at = 0
    while found := _PROLOG.match(head, at):
        at = found.end()
    root = _ROOT.match(head[at:].lstrip())
    if root is None:
        return Guess("", "an XML file that does not say what it is")
    name = root[1]
    return _ROOTS.get(name, Guess("", f"an XML file of another kind (<{name.decode()}>)"))
