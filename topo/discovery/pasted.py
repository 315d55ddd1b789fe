"""A text that people wrote around what tools printed: an issue, a report, a log of CI.

What is recognised is picked out of it, each tool's output a source of its own, and what is of one
machine is laid together. Every line is either taken or said to be skipped.
"""

from __future__ import annotations

import html
import re
from bisect import bisect_right
from collections.abc import Callable, Iterator, Sequence
from dataclasses import replace
from textwrap import dedent
from typing import Final

from topo.discovery.combine import combined
from topo.discovery.file_kinds import KINDS, FileKind, file_kind, line_marks
from topo.discovery.foreign import read_lines
from topo.discovery.machine import Machine
from topo.errors import ExchangeError, Finding
from topo.phrases import and_more, counted
from topo.records import dataclass

_Read = Callable[[str, bytes, str], Machine]

_FENCE: Final = re.compile(r"\s*(?:```|~~~)[\w -]*")
_TAG: Final = re.compile(
    r"\s*</?(?:details|summary|pre|code|p|br|div|blockquote)\b.*", re.IGNORECASE
)
_PROMPT: Final = re.compile(
    r"\s{0,8}(?:(?:\([\w./ -]{1,60}\)\s*)?\[?[\w.-]{1,60}[@:][^\s#$%]{0,80}(?: [^\s#$%]{1,80})?\]?"
    r"[#$%]\s.*|\$\s+\S.*|\+{1,3} [a-z].*|>>> .*)"
)
_HEADING: Final = re.compile(r"\s{0,3}#{1,6} (?!dmidecode).*|[_*=#-]{20,}\s*|\*{3} .*")
_QUOTE: Final = re.compile(r"(?: {0,3}> ?){1,9}")
# What programs write before each line: GitHub's and other time stamps, pods, ranks.
_STAMP: Final = re.compile(
    r"(?:\[?\d{4}-\d\d-\d\d[T ]\d\d:\d\d:\d\d(?:[.,]\d{1,9})?(?:Z|[+-]\d\d:?\d\d)?\]?"
    r"|\[\d\d:\d\d:\d\d(?:\.\d{1,9})?\]|\[pod/[\w./-]{1,200}\]|\[\d{1,4},\d{1,6}\]<std(?:out|err)>:)"
    r"(?: |\t|$)"
)
_XML_BEGINS: Final = re.compile(
    r"\s*<(?:\?xml\b|!DOCTYPE (?:topology|nvidia)|(?:system|topology|nvidia_smi_log)\b)"
)
_XML_ENDS: Final = re.compile(r".*</(?:system|topology|nvidia_smi_log)>")
_ROCM_BEGINS: Final = re.compile(r".*ROCm System Management")
_ROCM_ENDS: Final = re.compile(r".*End of ROCm SMI Log")
_LOG: Final = "nccl-log"
_CONTINUES: Final = {  # paragraphs that belong to the one before
    "nvidia-smi": re.compile(r"\s*(?:NIC )?Legend:|\s*(?:X|NV#|NIC\d{1,4})\s*[=:]"),
    **dict.fromkeys(
        ("npu-smi", "mx-smi", "mthreads-gmi", "p2p"), re.compile(r"\s*Legend:|\s*X\s*=")
    ),
    "nvme": re.compile(r"\s*Device\s+Generic\b|\s*/dev/nvme"),
}
_SOME: Final = "some of its PCI devices"
_MOST_BLOCKS, _FEW = 200, 12
_LARGEST: Final = 4 * 2**20


@dataclass(frozen=True, slots=True)
class Block:
    """Lines of a text that are of one kind: `first` and `last` count from 1."""

    kind: FileKind
    first: int
    last: int
    text: str

    @property
    def lines(self) -> str:
        """As people say it: ``lines 3-14``."""
        return (
            f"line {self.first}" if self.first == self.last else f"lines {self.first}-{self.last}"
        )


# --- from text to blocks --------------------------------------------------------------------------


def blocks_of(lines: Sequence[str]) -> list[Block]:
    """Return what is recognised in a text, in its order.

    Examples
    --------
    >>> text = ["It is slow:", "$ lspci", "01:00.0 3D controller: NVIDIA", "", "and why?"]
    >>> [(block.kind.importer, block.lines) for block in blocks_of(text)]
    [('lspci', 'line 3')]
    """
    clean = _cleaned(lines)
    marks = _marks_by_line(clean)
    blocks: list[Block] = []
    for first, last in _segments(clean):
        blocks += _blocks_in(clean, first, last, marks)
        if len(blocks) > _MOST_BLOCKS:
            break
    return blocks[:_MOST_BLOCKS]


def _cleaned(lines: Sequence[str]) -> list[str]:
    """Return lines without quotation, time stamps and HTML's names for characters."""
    text = "\n".join(lines)
    if "&lt;" in text or "&gt;" in text:
        text = html.unescape(text).replace("\xa0", " ")
    clean = []
    for line in text.split("\n"):
        quoted = _QUOTE.match(line)
        plain = line[quoted.end() :] if quoted else line
        stamped = _STAMP.match(plain)
        clean.append(plain[stamped.end() :] if stamped else plain)
    return clean[: len(lines)]  # a character of HTML may be an end of line


def _is_boundary(line: str) -> bool:
    return any(pattern.fullmatch(line) for pattern in (_FENCE, _TAG, _PROMPT, _HEADING))


def _segments(lines: Sequence[str]) -> Iterator[tuple[int, int]]:
    """Yield the ranges of lines between fences, prompts, tags and headings."""
    first = 0
    for at, line in enumerate(lines):
        if len(line) < _LONGEST_BOUNDARY and _is_boundary(line):
            yield first, at
            first = at + 1
    yield first, len(lines)


_LONGEST_BOUNDARY: Final = 400


def _marks_by_line(lines: Sequence[str]) -> dict[int, FileKind]:
    """Return the kind that each line with a mark is of: the first of the kinds that it marks."""
    flush = [line.lstrip() if line[:1] in " \t" else line for line in lines]
    starts: list[int] = []
    size = 0
    encoded = [line.encode("utf-8", "replace") for line in flush]
    for line in encoded:
        starts.append(size)
        size += len(line) + 1
    marks: dict[int, FileKind] = {}
    for offset, kind in line_marks(b"\n".join(encoded)):
        marks.setdefault(bisect_right(starts, offset) - 1, kind)
    return marks


def _blocks_in(
    lines: Sequence[str], first: int, last: int, marks: dict[int, FileKind]
) -> Iterator[Block]:
    """Yield the blocks of a segment."""
    kinds = {marks[at].importer for at in range(first, last) if at in marks}
    stripped = next((lines[at].strip() for at in range(first, last) if lines[at].strip()), "")
    if _LOG in kinds or stripped[:1] in ("{", "["):
        yield from _whole(lines, first, last)
        return
    at = first
    for begins, ends in ((_XML_BEGINS, _XML_ENDS), (_ROCM_BEGINS, _ROCM_ENDS)):
        begin = next((at for at in range(first, last) if begins.match(lines[at])), None)
        if begin is not None:
            end = next((at + 1 for at in range(begin, last) if ends.match(lines[at])), last)
            yield from _blocks_in(lines, first, begin, marks)
            yield from _whole(lines, begin, end)
            yield from _blocks_in(lines, end, last, marks)
            return
    run: tuple[FileKind, int, int] | None = None
    for kind, begin, end in _pieces(lines, at, last, marks):
        if run is not None:
            continuation = None if kind else _CONTINUES.get(run[0].importer)
            if kind == run[0] or (continuation and continuation.match(lines[begin])):
                run = (run[0], run[1], end)
                continue
            yield _block(lines, *run)
        run = (kind, begin, end) if kind else None
    if run is not None:
        yield _block(lines, *run)


def _whole(lines: Sequence[str], first: int, last: int) -> Iterator[Block]:
    block = _block(lines, FileKind("", ""), first, last)
    kind = file_kind(block.text.encode())
    if block.text.strip() and kind.recognised and (kind.importer or kind.help):
        yield replace(block, kind=kind)


def _pieces(
    lines: Sequence[str], first: int, last: int, marks: dict[int, FileKind]
) -> Iterator[tuple[FileKind | None, int, int]]:
    """Yield paragraphs with their kinds, parted where the kind changes inside one."""
    begin = first
    for at in range(first, last + 1):
        if at < last and lines[at].strip():
            continue
        marked = [(line, marks[line]) for line in range(begin, at) if line in marks]
        strong = [mark for mark in marked if not mark[1].is_weak] or marked
        start, kind = begin, strong[0][1] if strong else None
        for line, line_kind in strong:
            if line_kind != kind:
                yield kind, start, line
                start, kind = line, line_kind
        if start < at:
            yield kind, start, at
        begin = at + 1


def _block(lines: Sequence[str], kind: FileKind, first: int, last: int) -> Block:
    while last > first + 1 and not lines[last - 1].strip():
        last -= 1
    while first < last - 1 and not lines[first].strip():
        first += 1
    paragraphs = re.split(r"(\n[ \t]*\n)", "\n".join(lines[first:last]))
    return Block(kind, first + 1, last, "".join(map(dedent, paragraphs)) + "\n")


# --- from blocks to a machine ---------------------------------------------------------------------


def machine_in(data: bytes, name: str, read: _Read) -> Machine | None:
    """Return the machine that a text tells of in several places, or somewhere in it.

    `None` is a file that is as a tool wrote it, or one in which nothing is found.

    Parameters
    ----------
    data, name
        The file, and what messages call it.
    read
        Reads one source of a given kind: `discover`.

    Returns
    -------
    Machine or None
        With others beside it where all that was found tells facts only.
    """
    kind_of_text = file_kind(data)
    if len(data) > _LARGEST or not kind_of_text.may_have_others:
        return None
    blocks = blocks_of(read_lines(data, name))
    kinds = {block.kind.importer for block in blocks if block.kind.importer}
    if not kinds or kinds == {kind_of_text.importer}:
        return None
    sources: list[tuple[Block, Machine]] = []
    skipped: list[tuple[Block, str]] = []
    for block in blocks:
        if not block.kind.importer:
            skipped.append((block, block.kind.help))
            continue
        try:
            sources.append((block, _read_block(block, name, read)))
        except ExchangeError as error:
            message = error.findings[0].message.replace(f"`{name} {block.lines}`", "it")
            skipped.append((block, message))
    if not sources:
        return None
    sources.sort(key=lambda source: _order(source[1]))
    (_, machine), *further = sources
    if machine.tells_only:
        added = _findings([block for block, _ in sources], skipped)
        findings = (*machine.findings, *added)
        return replace(machine, findings=findings, further=tuple(source for _, source in further))
    taken = [sources[0][0]]
    for block, source in further:
        try:
            machine = _joined(machine, source, taken)
            taken.append(block)
        except ExchangeError as error:
            skipped.append((block, error.findings[0].message))
    return replace(
        machine,
        file=name,
        source=f"{machine.source}, {taken[0].lines}",
        findings=(*machine.findings, *_findings(taken, skipped)),
    )


def _read_block(block: Block, name: str, read: _Read) -> Machine:
    machine = read(block.kind.importer, block.text.encode(), f"{name} {block.lines}")
    if not machine.devices and not machine.slots:
        raise ExchangeError(Finding("nothing-there", "no device is in it"))
    return machine


def _joined(machine: Machine, source: Machine, taken: Sequence[Block]) -> Machine:
    """Return the machine with what a further source adds to it.

    Raises an `ExchangeError` where the source is of another machine, as far as that shows.
    """
    together = combined([machine, source])
    before = {*machine.findings, *source.findings}
    new = [finding for finding in together.findings if finding not in before]
    if any(finding.severity == "error" for finding in new):
        if source.kind == "lspci" and not source.tells_only and _is_part_of(source, machine):
            return _joined(machine, replace(source, tells_only=_SOME), taken)
        message = "it contradicts what was taken: is it of another host?"
        raise ExchangeError(Finding("sources-disagree", message))
    is_further = any(block.kind.importer == source.kind for block in taken)
    disagrees = any(finding.code == "sources-disagree" for finding in new)
    if is_further and disagrees and not source.tells_only:
        message = "it says otherwise than the one before: is it of another host?"
        raise ExchangeError(Finding("sources-disagree", message))
    return together


def _is_part_of(source: Machine, machine: Machine) -> bool:
    """Whether a machine has all GPUs and cards of a source: ``lspci -vvv -s 41:00.0``."""
    addresses = {address for device in machine.devices for address in device.pci}
    ends = source.of_kind("gpu", "nic", "dpu", "nvme")
    return bool(ends) and all(addresses.issuperset(device.pci) for device in ends)


def _order(machine: Machine) -> tuple[bool, bool, int]:
    """Return what sources are sorted by: those that tell more of a machine before others."""
    return (
        bool(machine.tells_only),
        not machine.of_kind("gpu"),
        list(KINDS).index(machine.kind) if machine.kind in KINDS else len(KINDS),
    )


def _findings(taken: list[Block], skipped: list[tuple[Block, str]]) -> Iterator[Finding]:
    in_order = sorted(taken, key=lambda block: block.first)
    words = and_more([f"{block.lines} ({block.kind.words})" for block in in_order], _FEW)
    yield Finding(
        "picked-out",
        f"taken from the text: {words}",
        severity="note",
        help="what stands around it was not read; a part by itself: paste it into a file",
    )
    if skipped:
        alike: dict[tuple[str, str], list[str]] = {}
        for block, reason in skipped:
            alike.setdefault((block.kind.words, reason), []).append(block.lines)
        parts = [
            f"{and_more(lines)} ({': '.join(word for word in words if word)})"
            for words, lines in alike.items()
        ]
        more = f"; and {len(parts) - _FEW} more" if len(parts) > _FEW else ""
        count = counted(len(skipped), "part")
        message = f"skipped {count} of the text: {'; '.join(parts[:_FEW])}{more}"
        yield Finding("text-skipped", message, severity="warning")
