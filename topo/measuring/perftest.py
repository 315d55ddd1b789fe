"""Results of perftest (`ib_write_bw` and its like): between a card and RAM, or a GPU's memory.

``MB/sec`` there means MiB/s: the program divides by 2**20. Data of a write or a send leaves the
client; the server's output begins by waiting for it. Two-way tests print the sum.

Reference: https://github.com/linux-rdma/perftest
"""

from __future__ import annotations

import re
from typing import Final

from topo.discovery.foreign import read_lines
from topo.measuring.results import (
    RAM,
    End,
    Result,
    Results,
    gpu,
    number,
    small_text,
)

_TITLE: Final = re.compile(
    r"(?m)^[ \t]*((?:RDMA_Write|RDMA_Read|Send|Atomic\w*|Raw\w*|Write\w*)[\w ]*?)"
    r"[ \t]+(BW|Latency)[ \t]+Test[ \t]*$"
)
_HEAD: Final = re.compile(
    r"#bytes\s+#iterations\s+BW peak\[([\w/]+)\]\s+BW average\[([\w/]+)\][^\n]*\n"
)
_ROW: Final = re.compile(r"[ \t]*(\d{1,12})[ \t]+(\d{1,12})[ \t]+([\d.]+)[ \t]+([\d.]+)")
_DEVICE: Final = re.compile(r"\bDevice\s*:\s*([\w.-]+)")
_GPU: Final = re.compile(
    r"--use_(?:cuda|rocm)[= ](\d{1,3})|Picking (?:GPU|device|Device)\D{0,20}(\d{1,3})"
)
_GPU_ADDRESS: Final = re.compile(r"--use_cuda_bus_id[= ]([0-9a-fA-F:.]{5,16})")
_WAITING: Final = "Waiting for client to connect"
_UNITS: Final = {"Gb/sec": 1.25e8, "MB/sec": 2.0**20, "MiB/sec": 2.0**20, "GB/sec": 1e9}
_SMALL: Final = 64 * 2**10


def read(data: bytes, name: str) -> Results:
    """Read what perftest's bandwidth tests print.

    Raises
    ------
    ExchangeError
        If it is no text.
    """
    text = "\n".join(read_lines(data, name))
    titles = list(_TITLE.finditer(text))
    results: list[Result] = []
    left: list[str] = []
    start = 0
    for at, title in enumerate(titles):
        end = _end(text, title, titles[at + 1].start() if at + 1 < len(titles) else len(text))
        found = _result(title, text[start:end])
        start = end
        if isinstance(found, str):
            left.append(found)
        else:
            results.append(found)
    return Results("perftest", tuple(results), left_out=tuple(left))


def _end(text: str, title: re.Match[str], following: int) -> int:
    """Return where a test's table ends: what stands below is the next one's command."""
    head = _HEAD.search(text, title.end(), following)
    if head is None:
        return following
    line = text.find("\n---", head.end() - 1, following)
    return following if line < 0 else line + 1


def _result(title: re.Match[str], text: str) -> Result | str:
    test = f"perftest {' '.join(title[1].split())} {title[2]}"
    head = _HEAD.search(text)
    if title[2] == "Latency" or head is None:
        return f"{test}: no bandwidth"
    unit = _UNITS.get(head[2])
    size, rate = _best(text[head.end() :])
    if unit is None or rate is None:
        return f"{test}: no average in a unit that topo knows ([{small_text(head[2], most=12)}])"
    device = _DEVICE.search(text)
    card = End("card", name=device[1] if device else "")
    out = ("Read" in title[1]) == (_WAITING in text)
    memory = _memory(text)
    both = "Bidirectional" in title[1]
    unwritten = "a sum of both directions" if both else ""
    if size < _SMALL:
        unwritten = "messages below 64 KiB: operations a second, not bandwidth"
    return Result(
        test,
        *((memory, card) if out else (card, memory)),
        rate * unit,
        via="" if memory is RAM else "nic-direct",
        both=both,
        unwritten=unwritten,
    )


def _best(table: str) -> tuple[int, float | None]:
    """Return size and average of the fastest row, large messages before small ones."""
    rows: list[tuple[bool, float, int]] = []
    for line in table.split("\n"):
        found = _ROW.match(line)
        rate = number(found[4]) if found else None
        if found is None or rate is None:
            if rows or line.strip().startswith("---"):
                break
            continue
        rows.append((int(found[1]) >= _SMALL, rate, int(found[1])))
    if not rows:
        return 0, None
    _, rate, size = max(rows)
    return size, rate


def _memory(text: str) -> End:
    """Return the GPU whose memory was used, else RAM."""
    address = _GPU_ADDRESS.search(text)
    if address:
        return End("gpu", name=address[1])
    found = _GPU.search(text)
    if found:
        return gpu(int(found[1] or found[2]))
    return End("gpu") if re.search(r"--use_(cuda|rocm)", text) else RAM
