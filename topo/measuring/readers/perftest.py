"""perftest (`ib_write_bw` and its like): between a card and RAM, or a GPU's memory.

``MB/sec`` there means MiB/s: the program divides by 2**20. Data of a write or a send leaves the
client; the server's output begins by waiting for it. Two-way tests print the sum. The JSON of
``--out_json`` does not say its unit: messages a second times their size tell it.
"""

from __future__ import annotations

import re
from typing import Any, Final

from topo.discovery.foreign import read_lines
from topo.measuring.results import (
    BOTH_SUMMED,
    RAM,
    End,
    Result,
    Results,
    gpu,
    number,
    read_json,
    small_text,
)

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
_JSON: Final = re.compile(r'"test_info"\s*:\s*\{')
_NEAR: Final = 0.03  # of two rates that are written with two digits
_MOST_GPUS: Final = 1000
_SMALL_MESSAGE: Final = 64 * 2**10
_SMALL: Final = "messages below 64 KiB: operations a second, not bandwidth"
_NO_HEAD: Final = "which test it was, and so which way, stands in the head that is cut off"
_COMMAND: Final = re.compile(r"\bib_(write|read|send)_bw\b[^\n]{0,400}")
_ADDRESS: Final = re.compile(r"\d{1,3}(?:\.\d{1,3}){3}")
_FLAGS: Final = ("-a", "-b", "-e", "-F", "-N", "-O", "-R", "-z", "--report_gbits", "--all")


def read(data: bytes, name: str) -> Results:
    """Read what perftest's bandwidth tests print."""
    text = "\n".join(read_lines(data, name))
    if _JSON.search(text):
        of_json = _of_json(read_json(data, name))
        if isinstance(of_json, str):
            return Results("perftest", left_out=(of_json,))
        return Results("perftest", (of_json,))
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


def _of_json(root: dict[str, Any]) -> Result | str:
    """Return the rate of one test, or why it has none."""
    info, results = (root.get(key) for key in ("test_info", "results"))
    if not isinstance(info, dict) or not isinstance(results, dict):
        return "perftest: JSON without a test or its results"
    title = small_text(info.get("test"))
    test = f"perftest {title.replace('_', ' ')}"
    size, rate = number(results.get("MsgSize")), number(results.get("BW_average"))
    messages = number(results.get("MsgRate"))
    if rate is None or size is None:
        return f"{test}: no bandwidth"
    units = [
        unit
        for unit in (_NETWORK_UNITS["Gb/sec"], _NETWORK_UNITS["MB/sec"])
        if messages is not None and abs(rate * unit - messages * 1e6 * size) < _NEAR * rate * unit
    ]
    if not units:
        return f"{test}: in which unit its average is cannot be told"
    memory = RAM
    device = info.get("cuda_device")
    if isinstance(device, int) and 0 <= device < _MOST_GPUS:
        memory = gpu(device)
    elif "ON" in (info.get("Use_ROCm_memory"), info.get("Use_MUSA_memory")):
        memory = End("gpu")
    card, both = End("card", name=small_text(info.get("Device"))), "Bidirectional" in title
    is_client = "TX_depth" in info  # which a server alone does not have
    sends = ("Read" in title) != is_client
    return Result(
        test,
        *((memory, card) if sends else (card, memory)),
        rate * units[0],
        via="" if memory is RAM else "nic-direct",
        both=both,
        unwritten=_SMALL if size < _SMALL_MESSAGE else BOTH_SUMMED if both else "",
    )


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
