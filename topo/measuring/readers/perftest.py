"""perftest (`ib_write_bw` and its like): between a card and RAM, or a GPU's memory.

``MB/sec`` there means MiB/s: the program divides by 2**20. Data of a write or a send leaves the
client; the server's output begins by waiting for it. Two-way tests print the sum.
"""

from __future__ import annotations

import re
from typing import Final

from topo.discovery.foreign import read_lines
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
_SMALL: Final = "messages below 64 KiB: operations a second, not bandwidth"
_NO_HEAD: Final = "which test it was, and so which way, stands in the head that is cut off"
_COMMAND: Final = re.compile(r"\bib_(write|read|send)_bw\b[^\n]{0,400}")
_ADDRESS: Final = re.compile(r"\d{1,3}(?:\.\d{1,3}){3}")
_FLAGS: Final = ("-a", "-b", "-e", "-F", "-N", "-O", "-R", "-z", "--report_gbits", "--all")


def read(data: bytes, name: str) -> Results:
    """Read what perftest's bandwidth tests print."""
    text = "\n".join(read_lines(data, name))
    titles = list(_TITLE.finditer(text))
    if not titles and _TABLE.search(text):
        return _headless(text)
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


def _headless(text: str) -> Results:
    """Return the rates of tables whose head is cut off: the command above names the test.

    Without one the data is taken to leave the card's host, and the rate is compared only: a cable
    is as fast one way as the other.
    """
    results: list[Result] = []
    start = 0
    for table in _TABLE.finditer(text):
        commands = list(_COMMAND.finditer(text, start, table.start()))
        start = table.end()
        unit, (size, rate) = _NETWORK_UNITS.get(table[2]), _fastest(text[table.end() :])
        if unit is None or rate is None:
            continue
        command = commands[-1] if commands else None
        words = command[0].split() if command else []
        both = any(re.fullmatch(r"-b|--bidirectional", word) for word in words)
        device = (
            re.search(r"\s(?:-d|--ib-dev[= ])\s*([\w.-]{1,40})", command[0]) if command else None
        )
        gpus = _GPU.search(command[0]) if command else None
        memory = gpu(int(gpus[1] or gpus[2])) if gpus else RAM
        card = End("card", name=device[1] if device else "")
        # Reads bring data to the client, writes and sends take it away.
        outward = (command is not None and command[1] == "read") != _is_client(words)
        unwritten = "" if command else _NO_HEAD
        if size < _SMALL_MESSAGE:
            unwritten = _SMALL
        results.append(
            Result(
                f"perftest {command[0].split()[0] if command else 'without its head'}",
                *((memory, card) if outward else (card, memory)),
                rate * unit,
                via="" if memory is RAM else "nic-direct",
                both=both,
                unwritten=BOTH_SUMMED if both else unwritten,
            )
        )
    return Results("perftest", tuple(results))


def _is_client(words: list[str]) -> bool:
    """Return whether a command is of a client, which names its server last; without one it is."""
    if not words:
        return True
    last, before = words[-1], words[-2] if len(words) > 1 else ""
    named = not last.startswith("-") and not last.isdecimal()
    return bool(_ADDRESS.fullmatch(last)) or (
        named and len(words) > 1 and (not before.startswith("-") or before in _FLAGS)
    )


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
        unwritten = _SMALL
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
