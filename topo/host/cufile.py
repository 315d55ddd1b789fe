"""cuFile's configuration, ``/etc/cufile.json``: JSON with comments and commas too many.

Every value knows its line and column, as in a topology file. The JSON is read here because the
standard library's reader takes neither comments nor commas and forgets where things stood, and
because YAML, which JSON almost is, refuses its tabs and doubled keys and accepts keys without
quotes.

References
----------
NVIDIA GPUDirect Storage configuration guide, parameters of cufile.json.
"""

from __future__ import annotations

import re
from collections.abc import Iterator
from collections.abc import Mapping as AbstractMapping
from typing import Final, NamedTuple

from topo.document.nodes import Mapping, Node, Scalar, Sequence
from topo.errors import ExchangeError, Finding, Place
from topo.phrases import and_more
from topo.records import dataclass

_YES: Final = ("true", "1", "yes", "on", "enabled")
_NO: Final = ("false", "0", "no", "off", "disabled")
# Names that older or newer releases use for the same.
_OLD_NAMES: Final = {
    "properties.use_compat_mode": "properties.allow_compat_mode",
    "properties.rdma_peer_affinity_policy": "properties.rdma_load_balancing_policy",
    "blacklist.drivers": "denylist.drivers",
    "blacklist.devices": "denylist.devices",
    "blacklist.mounts": "denylist.mounts",
    "blacklist.filesystems": "denylist.filesystems",
}
_FILESYSTEMS: Final = "lustre|nfs|gpfs|beegfs|weka|scatefs|virtiofs|generic"
_KEYS: Final = re.compile(
    r"""
    logging\.(dir|level|.*log.*)
  | profile\.(nvtx|cufile_stats|.*)
  | execution\.(max_io_queue_depth|max_io_threads|parallel_io|min_io_threshold_size_kb
      |max_request_parallelism|batch_.*)
  | properties\.(force_compat_mode|allow_compat_mode|force_odirect_mode|prefer_iouring
      |use_poll_mode|poll_mode_max_size_kb|use_pci_p2pdma|gds_rdma_write_support
      |max_(direct_io_size|device_cache_size|device_pinned_mem_size)_kb
      |max_batch_io_(size|timeout_msecs)|io_batchsize|io_priority|per_buffer_cache_size_kb
      |posix_pool_slab_(size_kb|count)|gpu_bounce_buffer_slab_(config|size_kb|count)(\..*)?
      |rdma_(dev_addr_list|load_balancing_policy|dc_key|access_mask|topN_ranks
        |dynamic_routing|dynamic_routing_order))
  | fs\.(FILESYSTEMS)(\.(posix_unaligned_writes|posix_gds_min_kb|rdma_dev_addr_list
      |mount_table(\..*)?|rdma_write_support|gds_write_support|gds_async_support
      |use_pci_p2pdma))?
  | block\.(nvme|nvmeof|raid)(\.use_pci_p2pdma)?
  | denylist\.(drivers|devices|mounts|filesystems)
  | miscellaneous\.(api_check_aggressive|enable_static_routing|static_routing_filepath|.*)
  | logging | profile | execution | properties | fs | block | denylist | miscellaneous | blacklist
    """.replace("FILESYSTEMS", _FILESYSTEMS),
    re.VERBOSE,
)
_LARGEST: Final = 2**20
_DEEPEST: Final = 32
_TOKEN: Final = re.compile(
    r"""(?P<space>[ \t\r\n\ufeff]+ | //[^\n]* | \#[^\n]* | /\*.*?\*/)
      | (?P<text>"(?:[^"\\\n]|\\.)*")
      | (?P<word>[A-Za-z0-9_.+-]+)
      | (?P<sign>[{}\[\]:,])""",
    re.VERBOSE | re.DOTALL,
)
_ESCAPE: Final = re.compile(r"\\(?:u([0-9A-Fa-f]{4})|(.))", re.DOTALL)
_ESCAPES: Final = {"n": "\n", "t": "\t", "r": "\r", "b": "\b", "f": "\f"}
_CLOSES: Final = {"{": "}", "[": "]"}


@dataclass(frozen=True, slots=True)
class HostFact:
    """One fact: ``properties.use_poll_mode``, its words, and where they stand."""

    key: str
    words: tuple[str, ...]
    place: Place

    @property
    def text(self) -> str:
        """The words as one text."""
        return " ".join(self.words)

    @property
    def flag(self) -> bool | None:
        """Whether it states yes or no; `None` for anything else."""
        text = self.text.strip().lower()
        return True if text in _YES else False if text in _NO else None


def current_name(key: str) -> str:
    """Return a key of cuFile's configuration as today's release calls it.

    Examples
    --------
    >>> current_name("properties.use_compat_mode"), current_name("properties.use_poll_mode")
    ('properties.allow_compat_mode', 'properties.use_poll_mode')
    """
    return _OLD_NAMES.get(key, key)


@dataclass(frozen=True, slots=True)
class CufileConfig:
    """What a cufile.json holds.

    Parameters
    ----------
    facts
        By dotted key in today's names: ``properties.allow_compat_mode``.
    findings
        Keys that topo does not know.
    """

    name: str
    facts: AbstractMapping[str, HostFact]
    findings: tuple[Finding, ...] = ()


def read_cufile(data: bytes, name: str) -> CufileConfig:
    """Read a cufile.json; comments and trailing commas are allowed.

    Raises
    ------
    ExchangeError
        If it is no such text.
    """
    facts: dict[str, HostFact] = {}
    for fact in _leaves(parse_json(data, name)):
        key = current_name(fact.key)
        if key == fact.key or key not in facts:  # today's name counts
            facts[key] = HostFact(key, fact.words, fact.place)
    unknown = [fact for key, fact in facts.items() if not _KEYS.fullmatch(key)]
    if not unknown:
        return CufileConfig(name, facts)
    names = and_more([f"`{fact.key}`" for fact in unknown], 5)
    message = f"keys that topo does not know, and does not use: {names}"
    finding = Finding("cufile-key", message, place=unknown[0].place, severity="note")
    return CufileConfig(name, facts, (finding,))


def _leaves(node: Node, key: str = "") -> Iterator[HostFact]:
    """Yield the leaves of a document by dotted key; lists of texts are one leaf."""
    if isinstance(node, Mapping):
        for name, value in node:
            yield from _leaves(value, f"{key}.{name.text}" if key else name.text)
        if not node.entries:
            yield HostFact(key, (), node.place)
    elif isinstance(node, Sequence):
        words = tuple(item.text for item in node.items if isinstance(item, Scalar))
        yield HostFact(key, words, node.place)
    else:
        yield HostFact(key, (node.text,), node.place)


# --- JSON with comments ---------------------------------------------------------------------------


def parse_json(data: bytes, name: str) -> Mapping:
    r"""Return the object that a text holds; of a key that stands twice the last counts.

    Parameters
    ----------
    data, name
        The text in UTF-8, and its name.

    Raises
    ------
    ExchangeError
        If it is too big or too deep, or not such a text: the message has line and column.

    Examples
    --------
    >>> parse_json(b'{"a": [1, 2,], // two\n}', "x.json").get("a").place.column
    7
    """
    if len(data) > _LARGEST:
        message = f"`{name}` has {len(data) >> 10} KiB, more than {_LARGEST >> 10}"
        raise ExchangeError(Finding("import-too-big", message))
    return _Reader(data.decode("utf-8-sig", "replace"), name).document()


class _Token(NamedTuple):
    """A piece of JSON; `kind` is ``text``, ``word`` or ``sign``, ``""`` at the end."""

    kind: str
    piece: str
    place: Place

    @property
    def text(self) -> str:
        """What it means, without quotes and escapes."""
        if self.kind != "text":
            return self.piece
        return _ESCAPE.sub(
            lambda match: chr(int(match[1], 16)) if match[1] else _ESCAPES.get(match[2], match[2]),
            self.piece[1:-1],
        )

    def instead_of(self, expected: str) -> ExchangeError:
        """Return the error for something else than was expected."""
        piece = f"`{self.piece[:40]}`" if self.piece else "the end"
        message = f"here stands {piece}, and {expected} was expected"
        return ExchangeError(Finding("json-syntax", message, place=self.place))


def _tokens(text: str, name: str) -> Iterator[_Token]:
    """Yield the pieces of a text, then its end for ever."""
    position = line = line_start = 0
    while position < len(text):
        match = _TOKEN.match(text, position)
        place = Place(name, line + 1, position - line_start + 1)
        if match is None:
            raise _Token("", text[position], place).instead_of("JSON")
        if match.lastgroup and match.lastgroup != "space":
            yield _Token(match.lastgroup, match[0], place)
        position = match.end()
        if breaks := match[0].count("\n"):
            line += breaks
            line_start = match.start() + match[0].rindex("\n") + 1
    while True:
        yield _Token("", "", Place(name, line + 1, position - line_start + 1))


class _Reader:
    """Reads JSON with one token in hand."""

    def __init__(self, text: str, name: str) -> None:
        self._tokens = _tokens(text, name)
        self._token = next(self._tokens)

    def document(self) -> Mapping:
        """Return the whole text's object."""
        if self._token.piece != "{":
            raise self._token.instead_of("an object, which begins with `{`")
        root = self._value(0)
        if self._token.kind:
            raise self._token.instead_of("nothing after the object")
        assert isinstance(root, Mapping), "it begins with a brace"
        return root

    def _take(self) -> _Token:
        """Return the token in hand and take the next."""
        token, self._token = self._token, next(self._tokens)
        return token

    def _value(self, depth: int) -> Node:
        place = self._token.place
        if depth > _DEEPEST:
            message = f"`{place.file}` is nested more than {_DEEPEST} deep"
            raise ExchangeError(Finding("import-too-big", message, place=place))
        if self._token.kind in ("text", "word"):
            token = self._take()
            return Scalar(token.text, place, quoted=token.kind == "text")
        if self._token.piece not in _CLOSES:
            raise self._token.instead_of("a value")
        end = _CLOSES[self._take().piece]
        entries: dict[str, tuple[Scalar, Node]] = {}
        items: list[Node] = []
        while self._token.piece != end:
            if end == "}":
                if self._token.kind != "text":
                    raise self._token.instead_of('a key, like `"properties"`, or `}`')
                token = self._take()
                key = Scalar(token.text, token.place, quoted=True)
                if self._token.piece != ":":
                    raise self._token.instead_of("`:` after the key")
                self._take()
                entries[key.text] = (key, self._value(depth + 1))
            else:
                items.append(self._value(depth + 1))
            if self._token.piece == ",":
                self._take()
            elif self._token.piece != end:
                raise self._token.instead_of(f"`,` or `{end}`")
        self._take()
        return Mapping(tuple(entries.values()), place) if end == "}" else Sequence((*items,), place)
