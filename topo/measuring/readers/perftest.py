"""perftest (`ib_write_bw` and its like): between a card and RAM, or a GPU's memory.

``MB/sec`` there means MiB/s: the program divides by 2**20. Data of a write or a send leaves the
client; the server's output begins by waiting for it. Two-way tests print the sum.
"""

from __future__ import annotations

import re
from typing import Final

from topo.discovery.foreign import read_lines
from topo.errors import ExchangeError, Finding
from topo.measuring.results import BOTH_SUMMED, RAM, End, Result, Results, gpu, number, small_text

_TITLE: Final = re.compile(
    r"(?m)^[ \t]*((?:RDMA_Write|RDMA_Read|Send|Atomic\w*|Raw\w*|Write\w*)[\w ]*?)"
    r"[ \t]+(BW|Latency)[ \t]+Test[ \t]*$"
)
_TABLE: Final = re.compile(
    r"#bytes\s+#iterations\s+BW peak\[([\w/]+)\]\s+BW average\[([\w/]+)\][^\n]*\n"
)
_ROW: Final = re.compile(r"[ \t]*(\d{1,12})[ \t]+(\d{1,12})[ \t]+([\d.]+)[ \t]+([\d.]+)")
_DEVICE: Final = re.compile(r"\bDevice\s*:\s*([\w.-]+)")
_GPU: Final = re.compile(
    r"--use_(?:cuda|rocm)[= ](\d{1,3})|Picking (?:GPU|device|Device)\D{0,20}(\d{1,3})"
)
_GPU_ADDRESS: Final = re.compile(r"--use_cuda_bus_id[= ]([0-9a-fA-F:.]{5,16})")
_WAITING: Final = "Waiting for client to connect"
_NETWORK_UNITS: Final = {"Gb/sec": 1.25e8, "MB/sec": 2.0**20, "MiB/sec": 2.0**20, "GB/sec": 1e9}
_SMALL_MESSAGE: Final = 64 * 2**10


def read(data: bytes, name: str) -> Results:
    """Read what perftest's bandwidth tests print."""
    text = "\n".join(read_lines(data, name))
    titles = list(_TITLE.finditer(text))
    if not titles and _TABLE.search(text):
        message = f"`{name}` has a table of perftest without the head that names the test"
        help = "which way the data went stands there: paste the whole output"
        raise ExchangeError(Finding("no-results", message, help=help))
    results: list[Result] = []
    left_out: list[str] = []
    start = 0
    for at, title in enumerate(titles):
        end = titles[at + 1].start() if at + 1 < len(titles) else len(text)
        # What stands below a test's table is the next one's command.
        table = _TABLE.search(text, title.end(), end)
        line = text.find("\n---", table.end() - 1, end) if table else -1
        end = end if line < 0 else line + 1
        result = _message_rate(title, text[start:end])
        start = end
        if isinstance(result, str):
            left_out.append(result)
        else:
            results.append(result)
    return Results("perftest", tuple(results), left_out=tuple(left_out))


def _message_rate(title: re.Match[str], text: str) -> Result | str:
    """Return the rate of one test, or why it has none."""
    test = f"perftest {' '.join(title[1].split())} {title[2]}"
    table = _TABLE.search(text)
    if title[2] == "Latency" or table is None:
        return f"{test}: no bandwidth"
    unit = _NETWORK_UNITS.get(table[2])
    size, rate = _fastest(text[table.end() :])
    if unit is None or rate is None:
        return f"{test}: no average in a unit that topo knows ([{small_text(table[2], most=12)}])"
    device, address, index = (p.search(text) for p in (_DEVICE, _GPU_ADDRESS, _GPU))
    card, memory = End("card", name=device[1] if device else ""), RAM
    if address:
        memory = End("gpu", name=address[1])
    elif index:
        memory = gpu(int(index[1] or index[2]))
    elif re.search(r"--use_(cuda|rocm)", text):
        memory = End("gpu")
    sends = ("Read" in title[1]) == (_WAITING in text)
    both = "Bidirectional" in title[1]
    unwritten = BOTH_SUMMED if both else ""
    if size < _SMALL_MESSAGE:
        unwritten = "messages below 64 KiB: operations a second, not bandwidth"
    return Result(
        test,
        *((memory, card) if sends else (card, memory)),
        rate * unit,
        via="" if memory is RAM else "nic-direct",
        both=both,
        unwritten=unwritten,
    )


def _fastest(table: str) -> tuple[int, float | None]:
    """Return size and average of the fastest row, large messages before small ones."""
    rows: list[tuple[bool, float, int]] = []
    for line in table.split("\n"):
        match = _ROW.match(line)
        rate = number(match[4]) if match else None
        if match is not None and rate is not None:
            rows.append((int(match[1]) >= _SMALL_MESSAGE, rate, int(match[1])))
        elif rows or line.strip().startswith("---"):
            break
    if not rows:
        return 0, None
    _, rate, size = max(rows)
    return size, rate
