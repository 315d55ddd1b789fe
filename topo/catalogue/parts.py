"""Parts: reading one and what lies over it, a file's own parts, and those that topo ships."""

from __future__ import annotations

import re
from collections.abc import Callable, Iterable, Iterator
from collections.abc import Mapping as Table
from dataclasses import replace
from functools import cache
from pathlib import Path
from typing import Any, Final, Generic, TypeVar

from topo.catalogue import values
from topo.catalogue.cables import LANES, parse_cable, read_medium
from topo.catalogue.fields import CAPS, FIELDS, PART_WORDS, PORTS, SLOT, TEXT, Field, keys_of
from topo.catalogue.kinds import KINDS, Kind
from topo.catalogue.part import Catalogue, Figure, FigureKind, Medium, Part, PeerCaps, Ports, Slot
from topo.document.nodes import Mapping, Node, Report, Scalar
from topo.errors import DescriptionError, UnitError
from topo.phrases import did_you_mean, near_names
from topo.units import parse_rate

# Words people write for one of ours.
_HABITS: Final = {"part": "like", "type": "kind", "model": "like", "base": "like"}
# What to write where no part is the one that is meant.
OTHER_PARTS: Final = (
    "`topo parts` lists the built-in ones; your own stand under `parts:`, and `cpu-unknown`, "
    "`nic-unknown` and the like are for what is not known"
)
_FEW: Final = 4  # kinds that a message names
NAME: Final = re.compile(r"[A-Za-z0-9][A-Za-z0-9._-]*")
"""What a part or a need may be called."""


def read_part(
    name: str,
    node: Node,
    *,
    parts: Table[str, Part],
    media: Table[str, Medium],
    report: Report,
    kind: FigureKind = "quoted",
) -> Part | None:
    """Read one part.

    Parameters
    ----------
    name
        The name it is defined under.
    node
        A mapping of the part's keys, or just the name of the part that it is like.
    parts
        The parts that `like:` may name.
    media
        The media that ports may name.
    report
        Takes what is wrong: every mistake, one message a cause.
    kind
        What sort of figures they are where the part does not say.

    Returns
    -------
    Part or None
        What could be read; `None` when even its kind could not.
    """
    if isinstance(node, Scalar):
        base = find_part(node, parts, report)
        return None if base is None else replace(base, name=name, place=node.place)
    if not isinstance(node, Mapping):
        advice = f"write {name}: {{like: ..., ...}}"
        report.add(node, "wrong-shape", f"`{name}` is a list", help=advice)
        return None
    node = values.rejoin(node, (*FIELDS, *PART_WORDS))
    base = _base_part(name, node, parts, report)
    if base is None:
        return None
    part = replace(base, name=name, place=node.place)
    return _overlay(part, node, media=media, report=report, kind=kind)


def vary_part(
    part: Part,
    entries: Iterable[tuple[Scalar, Node]],
    *,
    media: Table[str, Medium],
    report: Report,
    kind: FigureKind = "quoted",
) -> Part:
    """Lay a device's own keys over its part; what cannot be read is reported and left as it was.

    Parameters
    ----------
    part
        The part; it is not changed.
    entries
        Keys of parts with their values, ``source`` and ``source-kind`` among them.
    media
        The media that ports may name.
    report
        Takes what is wrong.
    kind
        What sort of figures they are where the entries do not say.
    """
    changes = tuple(entries)
    if not changes:
        return part
    node = Mapping(changes, changes[0][0].place)
    return _overlay(part, node, media=media, report=report, kind=kind)


def find_part(name: Scalar, parts: Table[str, Part], report: Report) -> Part | None:
    """Look a part up by the name that stands in the text.

    A name that is defined but could not be read gives `None` without a second message.
    """
    text = name.text.strip()
    part = parts.get(text)
    if part is None and text not in parts:
        report.add(
            name,
            "unknown-part",
            f"there is no part `{text}`" if text else "a part's name is missing",
            help=did_you_mean(text, parts) or OTHER_PARTS,
        )
    return part


def _base_part(name: str, node: Mapping, parts: Table[str, Part], report: Report) -> Part | None:
    """Return the part that `like:` names, else an empty one of the kind that `kind:` says."""
    base_name, stated = node.get("like"), node.get("kind")
    word = stated.text.strip() if isinstance(stated, Scalar) else ""
    if isinstance(base_name, Scalar):
        base = find_part(base_name, parts, report)
        if base is not None:
            if isinstance(stated, Scalar) and word != base.kind:
                report.add(
                    stated,
                    "kind-mismatch",
                    f"`{base.name}` is of kind `{base.kind}`, not `{word}`",
                    help="leave `kind:` out; it comes with `like:`",
                )
            return base
    elif base_name is not None:
        report.add(base_name, "wrong-shape", "`like:` names one part")
    if stated is None:
        if base_name is None:  # else that one has been complained of
            _kindless(name, node, parts, report)
        return None
    for kind in KINDS:
        if kind == word:
            return Part(name, kind)
    report.add(
        stated,
        "unknown-kind",
        f"`{word}` is no kind of device" if word else "`kind:` is one word",
        help=did_you_mean(word, KINDS) or f"kinds are {', '.join(KINDS)}",
    )
    return None


def _kindless(name: str, node: Mapping, parts: Table[str, Part], report: Report) -> None:
    """Say what is missing: one message, about the key that was meant for it if there is one."""
    for key, _ in node:
        meant = _HABITS.get(key.text, "")
        if key.text not in FIELDS and key.text not in PART_WORDS:
            meant = meant or "".join(near_names(key.text, ("kind", "like")))
        if meant:
            report.add(
                key, "unknown-key", f"`{key.text}` is no key of a part", help=f"write `{meant}:`"
            )
            return
    shipped = parts.built_in if isinstance(parts, UserParts) else parts
    report.add(
        node,
        "missing-kind",
        f"`{name}` says neither `kind:` nor `like:`",
        help=f"`like: {name}` starts from the built-in of that name"
        if name in shipped
        else "write `like:` and a part, or `kind: storage`",
    )


def _overlay(
    part: Part, node: Mapping, *, media: Table[str, Medium], report: Report, kind: FigureKind
) -> Part:
    """Lay a mapping's keys over a part; what cannot be read is reported and left as it was."""
    origin = values.origin_of(node, report=report, origin=values.Origin(kind=kind))
    figures, flags = dict(part.figures), dict(part.flags)
    facts, sources = dict(part.facts), dict(part.sources)
    changes: dict[str, Any] = {"source": origin.source or part.source}
    for name, value in node:
        key, field = name.text, FIELDS.get(name.text)
        if key == "title":
            title = values.read_text(value, report=report)
            changes["title"] = title.text if title else part.title
        elif key in PART_WORDS or key.startswith("x-"):
            continue
        elif field is None or part.kind not in field.kinds:
            _refuse_key(name, field, part.kind, report)
        elif (
            field.quantity is SLOT and isinstance(value, Scalar) and value.text.strip() == "unknown"
        ):
            changes["slot"] = None
        else:
            ports = changes.get(key, getattr(part, key)) if field.quantity is PORTS else None
            content = _read_field(field, value, media, report, origin, ports)
            if isinstance(content, Figure):
                figures[key] = content
            elif isinstance(content, values.Word):
                sources[key] = content.source
                if field.quantity is TEXT:
                    facts[key] = content.text
                else:
                    flags[key] = content.flag
            elif content is not None:
                changes[{"pcie": "slot", "p2p": "peer_caps"}.get(key, key)] = content
    # A stated speed is what the memory runs at, however it is populated.
    if node.get("transfer-rate") is not None and node.get("transfer-rate-2dpc") is None:
        figures.pop("transfer-rate-2dpc", None)
    return replace(part, figures=figures, flags=flags, facts=facts, sources=sources, **changes)


def _read_field(
    field: Field,
    node: Node,
    media: Table[str, Medium],
    report: Report,
    origin: values.Origin,
    ports: Ports | None,
) -> Figure | values.Word | Slot | Ports | PeerCaps | None:
    """Read a key's value as its quantity asks; `ports` are those that a bare count belongs to."""
    name, quantity = field.name, field.quantity
    if quantity is SLOT:
        return read_slot(node, media=media, report=report, origin=origin)
    if quantity is PORTS:
        return read_ports(node, media=media, report=report, origin=origin, base=ports, name=name)
    if quantity is CAPS and isinstance(node, Mapping) and node.get("value") is None:
        return values.read_caps(node, report=report, origin=origin)
    if quantity.unit:
        return values.read_figure(
            node, quantity, report=report, origin=origin, unlimited=field.unlimited, name=name
        )
    if quantity is TEXT:
        return values.read_text(node, report=report, origin=origin, words=field.words)
    return values.read_flag(node, report=report, origin=origin)


def _refuse_key(name: Scalar, field: Field | None, kind: Kind, report: Report) -> None:
    """Report a key that no part has, or that only parts of other kinds have."""
    keys = keys_of(kind)
    of_this_kind = f"keys of `{kind}`: {', '.join(keys)}"
    if field is not None:
        few = field.kinds if len(field.kinds) <= _FEW else (*field.kinds[:_FEW], "and others")
        message = f"`{name.text}` is no key of the kind `{kind}`: it is for {', '.join(few)}"
        report.add(name, "misplaced-key", message, help=of_this_kind)
        return
    habit = _HABITS.get(name.text)
    near = f"write `{habit}:`" if habit else did_you_mean(name.text, (*keys, *PART_WORDS))
    message = f"`{name.text}` is no key of a part"
    report.add(name, "unknown-key", message, help=near or of_this_kind)


# --- a file's own parts ---------------------------------------------------------------------------


class UserParts(Table[str, Part]):
    """The built-in parts and a file's own, each of its own read when first asked for.

    A name that is there but could not be read is contained, and `get` gives `None` for it.
    """

    def __init__(
        self,
        node: Mapping | None,
        *,
        parts: Table[str, Part],
        media: Table[str, Medium],
        report: Report,
    ) -> None:
        self._nodes = {key.text: (key, value) for key, value in node} if node else {}
        self.built_in = parts
        self._media = media
        self._report = report
        self._read: dict[str, Part | None] = {}
        self._chain: list[str] = []

    @property
    def own(self) -> dict[str, Part]:
        """The file's own parts that could be read, in file order."""
        return {name: part for name in self._nodes if (part := self.get(name)) is not None}

    def __contains__(self, name: object) -> bool:
        return name in self._nodes or name in self.built_in

    def __iter__(self) -> Iterator[str]:
        yield from self._nodes
        yield from (name for name in self.built_in if name not in self._nodes)

    def __len__(self) -> int:
        return len(self.built_in) + sum(name not in self.built_in for name in self._nodes)

    def __getitem__(self, name: str) -> Part:
        is_own_base = self._chain[-1:] == [name]  # `acme: {like: acme}` means the built-in
        if name not in self._nodes or (is_own_base and name in self.built_in):
            return self.built_in[name]
        if name in self._chain:  # a cycle, which is reported
            raise KeyError(name)
        if name not in self._read:
            self._read_lineage(name)
        part = self._read[name]
        if part is None:
            raise KeyError(name)
        return part

    def _read_lineage(self, name: str) -> None:
        """Read a part and what it starts from, the last first: that can be longer than a stack."""
        start = len(self._chain)
        while True:
            self._chain.append(name)
            node = self._nodes[name][1]
            like = node.get("like") if isinstance(node, Mapping) else node
            base = like.text.strip() if isinstance(like, Scalar) else ""
            if base not in self._nodes or base in self._read:
                break
            if base in self._chain:
                if base != name or base not in self.built_in:
                    self._cycle(base)
                break
            name = base
        while len(self._chain) > start:
            name = self._chain[-1]
            key, node = self._nodes[name]
            if not NAME.fullmatch(name):
                self._report.add(
                    key,
                    "bad-name",
                    f"`{name}` is no name for a part",
                    help="letters, digits, `-`, `_` and `.`, beginning with a letter or digit",
                )
            self._read[name] = read_part(
                name, node, parts=self, media=self._media, report=self._report
            )
            self._chain.pop()

    def _cycle(self, name: str) -> None:
        ring = [*self._chain[self._chain.index(name) :], name]
        keys = [self._nodes[part][0] for part in ring[:-1]]
        self._report.add(
            keys[-1],
            "like-cycle",
            f"these parts start from each other: {' like '.join(ring)}",
            help="give one of them `kind:` instead of `like:`",
            notes=[f"{key.text} is on line {key.place.line}" for key in keys],
        )


def read_parts(
    node: Node | None, *, parts: Table[str, Part], media: Table[str, Medium], report: Report
) -> UserParts:
    """Read a file's `parts:`, in whatever order they name each other.

    Parameters
    ----------
    node
        The mapping under ``parts:``, or `None`.
    parts
        The built-in parts.
    media
        The media that ports may name.
    report
        Takes what is wrong in all of them.

    Returns
    -------
    UserParts
        The built-in parts and the file's own; `own` has the latter alone.
    """
    if node is not None and not isinstance(node, Mapping):
        advice = "write a name, a colon and the part's keys"
        report.add(node, "wrong-shape", "`parts:` is a mapping of names", help=advice)
        node = None
    user_parts = UserParts(node, parts=parts, media=media, report=report)
    _ = user_parts.own  # all of them, so that all mistakes come out
    return user_parts


# --- where a part is plugged in: its slot, its network ports, its GPU-to-GPU ports ----------------

_PORT_EXAMPLES: Final = "write 4, `2x 400 Gb/s` or `4x infiniband ndr`"


def read_slot(
    node: Node, *, media: Table[str, Medium], report: Report, origin: values.Origin = values.HERE
) -> Slot | None:
    """Read a PCIe generation and perhaps a width: ``5 x16``, ``5``."""

    def parse(scalar: Scalar, origin: values.Origin) -> Slot:
        text = scalar.text.strip()
        written = re.fullmatch(r"([0-9]{1,2})(?:\s+x([0-9]{1,3}))?", text)
        if written is None:
            raise UnitError(
                "bad-slot",
                f"`{text}` is no PCIe generation and width",
                _likely_slot(text) or "write the generation and the lanes: 5 x16",
            )
        generation, lanes = int(written[1]), written[2] and int(written[2])
        if f"pcie {generation}" not in media:
            generations = [name.partition(" ")[2] for name in media if name.startswith("pcie ")]
            raise UnitError(
                "unknown-medium",
                f"there is no PCIe {generation}",
                f"generations are {', '.join(generations)}",
            )
        if lanes is not None and lanes not in LANES:
            raise UnitError(
                "bad-slot", f"PCIe has no x{lanes}", "a link has 1, 2, 4, 8 or 16 lanes: 5 x16"
            )
        return Slot(generation, lanes or None, origin.at(scalar), origin.kind)

    return values.read_value(node, parse, report=report, origin=origin)


def _likely_slot(text: str) -> str:
    """Return advice for ``gen5 x16``, ``pcie 5.0 x16``, ``16x 5``, or nothing."""
    words = re.sub(r"pci-?e?|gen|\.0", " ", text.lower()).strip()
    width = re.search(r"x\s*([0-9]{1,2})\b", words) or re.search(r"\b([0-9]{1,2})\s*x", words)
    if width is None:
        return ""
    lanes = width[1]
    generation = (words[: width.start()] + words[width.end() :]).strip()
    if not generation:
        return f"write the generation too: 5 x{lanes}"
    return f"write `{generation} x{lanes}`" if re.fullmatch("[1-9]", generation) else ""


def read_ports(
    node: Node,
    *,
    media: Table[str, Medium],
    report: Report,
    origin: values.Origin = values.HERE,
    base: Ports | None = None,
    name: str = "ports",
) -> Ports | None:
    """Read ``4``, ``2x 400 Gb/s``, ``4x infiniband ndr``; a bare count keeps what `base` says."""

    def parse(scalar: Scalar, origin: values.Origin) -> Ports:
        text, source = scalar.text.strip(), origin.at(scalar)
        words = text.split()
        times = re.fullmatch(r"([0-9]{1,9})(x?)", words[0])
        if times is not None and int(times[1]) == 0:
            raise UnitError("zero-capacity", f"`{name}` is zero", "leave the key out, or `unknown`")
        rate, medium = (base.rate, base.medium) if base is not None else (None, None)
        if text == "unknown":
            return Ports(None, rate, medium, source, origin.kind)
        if times is not None and len(words) == 1 and not times[2]:
            return Ports(int(times[1]), rate, medium, source, origin.kind)
        port = words[1:] if times is not None and times[2] else words
        if not port or port[1:2] == ["x"]:
            message = f"`{text}` does not say what the ports are"
            raise UnitError("bad-ports", message, _PORT_EXAMPLES)
        rate, medium = _port(" ".join(port), media, source, origin, name)
        return Ports(int(times[1]) if times and times[2] else 1, rate, medium, source, origin.kind)

    return values.read_value(node, parse, report=report, origin=origin)


def _port(
    text: str, media: Table[str, Medium], source: str, origin: values.Origin, name: str
) -> tuple[Figure, str | None]:
    """Read one port: a rate, or a medium."""
    if re.match(r"[-+.0-9]", text):
        value = parse_rate(text)
        if not value:
            raise UnitError("zero-capacity", f"`{name}` let nothing through", "write `unknown`")
        return Figure(value, origin.kind, source), None
    if len(text.split()) == 1 and text not in media and not near_names(text, media):
        raise UnitError("bad-ports", f"`{text}` does not say what the ports are", _PORT_EXAMPLES)
    cable = parse_cable(text, media, source=source, kind=origin.kind)
    fits = ("network",) if name == "ports" else ("gpu", "host")
    if cable.reach not in fits or cable.lanes is not None:
        wanted = "a network" if name == "ports" else "GPUs"
        raise UnitError(
            "wrong-medium",
            f"`{text}` does not join {wanted}, as `{name}` do",
            _PORT_EXAMPLES if name == "ports" else "write `18x nvlink 4` or `7x xgmi 64 GB/s`",
        )
    return cable.rate, cable.medium


# --- the parts and media that topo ships ----------------------------------------------------------

T = TypeVar("T")
DATA: Final = Path(__file__).parent / "data"
PART_FILES: Final = ("gpus", "nics", "cpus", "memory", "storage", "drives", "switches")
_ENTRY: Final = re.compile(r"^([A-Za-z][A-Za-z0-9._ -]*):", re.MULTILINE)


@cache
def catalogue() -> Catalogue:
    """Return the parts and media that topo ships.

    Examples
    --------
    >>> catalogue().parts["h100-sxm-80gb"].figures["memory"].value
    80000000000.0
    >>> catalogue().media["pcie 5"].rate.source
    '32 GT/s x 128/130 / 8'
    """
    media: Shipped[Medium] = Shipped(("media",), _medium)

    def decode(name: str, node: Node, report: Report, parts: Table[str, Part]) -> Part | None:
        part = read_part(name, node, parts=parts, media=media, report=report, kind="datasheet")
        return None if part is None else replace(part, place=None)

    return Catalogue(Shipped(PART_FILES, decode), media)


@cache
def part_names() -> tuple[str, ...]:
    """Return the names of all shipped parts, in the order of the files."""
    return tuple(name for file in PART_FILES for name, _ in _entries(file))


class Shipped(Table[str, T], Generic[T]):
    """Entries of files in `DATA` by name, each decoded once, when first asked for."""

    def __init__(
        self, files: tuple[str, ...], decode: Callable[[str, Node, Report, Table[str, T]], T | None]
    ) -> None:
        self._decode = decode
        self._texts = {name: text for file in files for name, text in _entries(file)}
        self._decoded: dict[str, T] = {}

    def __getitem__(self, name: str) -> T:
        if name not in self._decoded:
            from topo.document.parse import parse

            file, text = self._texts[name]
            document = parse(text, name=f"catalogue/{file}.yaml")
            report = Report(document)
            root = document.root
            node = root.get(name) if isinstance(root, Mapping) else None
            entry = self._decode(name, node, report, self) if node is not None else None
            report.stop(DescriptionError)
            if entry is None:
                raise KeyError(name)
            self._decoded[name] = entry
        return self._decoded[name]

    def __contains__(self, name: object) -> bool:
        return name in self._texts

    def __iter__(self) -> Iterator[str]:
        return iter(self._texts)

    def __len__(self) -> int:
        return len(self._texts)


def _medium(name: str, node: Node, report: Report, media: Table[str, Medium]) -> Medium | None:
    # Without a base of its own name: that is how a user's medium changes a shipped one.
    base_name = node.get("like") if isinstance(node, Mapping) else None
    base = base_name.text if isinstance(base_name, Scalar) else ""
    bases = {base: media[base]} if base in media else {}
    return read_medium(name, node, media=bases, report=report, kind="datasheet")


def _entries(file: str) -> Iterator[tuple[str, tuple[str, str]]]:
    """Yield each entry's name, file and text; empty lines keep its line numbers."""
    text = (DATA / f"{file}.yaml").read_text(encoding="utf-8")
    keys = list(_ENTRY.finditer(text))
    ends = [key.start() for key in keys[1:]] + [len(text)]
    line = 0
    at = 0
    for entry, end in zip(keys, ends, strict=True):
        line += text.count("\n", at, entry.start())
        at = entry.start()
        yield entry[1], (file, "\n" * line + text[at:end])
