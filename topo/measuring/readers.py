"""Result files of nvbandwidth, fio, gdsio, perftest and nccl-tests: which of them a file is.

References
----------
https://github.com/NVIDIA/nvbandwidth; https://fio.readthedocs.io/en/latest/fio_doc.html; NVIDIA
GPUDirect Storage Benchmarking and Configuration Guide; https://github.com/linux-rdma/perftest
"""

from __future__ import annotations

import json
import re
from collections.abc import Callable, Iterator
from dataclasses import replace
from datetime import UTC, datetime
from typing import Any, Final, Literal

from topo.discovery.foreign import file_kind, read_lines
from topo.discovery.pci import read_address
from topo.errors import ExchangeError, Finding
from topo.measuring.nccl_tests import MARK, CollectiveRun, read_runs
from topo.records import dataclass

LARGEST: Final = 16 * 2**20
SMALL: Final = 128 * 2**10  # bytes: below, operations a second are measured, not bandwidth
_MOST: Final = 1e15  # bytes/s: beyond, a number is damaged
_BOTH: Final = "a sum of both directions"


@dataclass(frozen=True, slots=True)
class End:
    """One end of a transfer: the file's own number or name for it, if it has one."""

    kind: Literal["gpu", "ram", "storage", "card"]
    number: int = -1
    name: str = ""

    def __str__(self) -> str:
        return self.name or (f"{self.kind} {self.number}" if self.number >= 0 else self.kind)


RAM: Final = End("ram")
STORAGE: Final = End("storage")


def gpu(number: int) -> End:
    """Return the GPU of a number."""
    return End("gpu", number)


@dataclass(frozen=True, slots=True)
class Result:
    """One rate of a file, in bytes/s from `source` to `target`.

    `test` is what was run; `both` says that the rate is a sum of both directions, `busy` that the
    other direction was in use as well; `unwritten` why the rate is not one of a link or pair.
    `rank` orders results for the same ends: the greatest is used.
    """

    test: str
    source: End
    target: End
    rate: float
    via: str = ""
    both: bool = False
    busy: bool = False
    unwritten: str = ""
    rank: int = 0


@dataclass(frozen=True, slots=True)
class Results:
    """A whole file: its rates, its GPUs' PCI addresses if it tells them, what is no rate of ours.

    `left_out` are sentences; `gpu_count` is how many GPUs the file speaks of, 0 if unknown.
    """

    kind: str
    results: tuple[Result, ...] = ()
    addresses: tuple[str, ...] = ()
    gpu_count: int = 0
    left_out: tuple[str, ...] = ()
    date: str = ""
    collectives: tuple[CollectiveRun, ...] = ()


# --- which file it is -----------------------------------------------------------------------------

_HEAD: Final = 1 << 18
_MARKS: Final = (
    ("nvbandwidth", rb'"nvbandwidth"\s*:\s*\{'),
    ("fio", rb'"fio version"\s*:'),
    ("gdsio", rb"IoType:\s*\w+\s+XferType:"),
    ("nccl-tests", MARK),
    ("perftest", rb"#bytes\s+#iterations\s+BW peak|\b(BW|Latency)[ \t]+Test[ \t]*\r?\n"),
)
_ASK_AGAIN: Final = (
    (rb"nvbandwidth Version|memcpy (CE|SM) ", "text of nvbandwidth", "run `nvbandwidth --json`"),
    (rb"(?m)^\s*(READ|WRITE): bw=", "text of fio", "run `fio --output-format=json`"),
)


def read_results(kind: str | None, data: bytes, name: str) -> Results:
    """Read a result file, which has to be of `kind` if that is given.

    Raises
    ------
    ExchangeError
        If it is of another kind, of none that topo reads, or breaks off.
    """
    head = data[:_HEAD].replace(b"\x00", b"")
    marked = next((known for known, mark in _MARKS if re.search(mark, head)), "")
    if marked and kind in (None, marked):
        return READERS[marked](data, name)
    if marked:
        message = f"`{name}` has results of {marked}, not of {kind}"
        raise ExchangeError(Finding("wrong-kind", message, help=f"write `--kind {marked}`"))
    for mark, words, advice in _ASK_AGAIN:
        if re.search(mark, head):
            raise ExchangeError(Finding("wrong-kind", f"`{name}` is {words}", help=advice))
    message = f"`{name}` is {file_kind(data).words}, and has no results that topo reads"
    help = f"topo reads results of {', '.join(READERS)}"
    raise ExchangeError(Finding("wrong-kind", message, help=help))


# --- nvbandwidth: copies between host and GPUs, and between GPUs ----------------------------------
#
# Which way the data goes is told by a test's name, not by the arrows of its description: some
# releases have those the wrong way round. A matrix holds texts, or ``N/A`` where GPUs do not reach
# each other. Units are decimal.

_COPY: Final = re.compile(
    r"(?P<ends>host_to_device|device_to_host|device_to_device)(?P<both>_bidirectional)?"
    r"_memcpy(?:_(?P<way>read|write))?_(?P<engine>ce|sm)"
)
_ADDRESS: Final = re.compile(r"[0-9a-fA-F]{1,8}:[0-9a-fA-F]{2}:[0-9a-fA-F]{2}(?:\.[0-7])?")
_COPY_UNITS: Final = {"(GB/s)": 1e9, "(GiB/s)": 2.0**30, "(MB/s)": 1e6}
_MOST_GPUS: Final = 256
_BLOCKS: Final = 3  # of a bidirectional test between GPUs: one way, the other, the sum


def _nvbandwidth(data: bytes, name: str) -> Results:
    root = read_json(data, name).get("nvbandwidth")
    root = root if isinstance(root, dict) else {}
    results: list[Result] = []
    left_out: list[str] = []
    for case in objects(root.get("testcases")):
        copies = list(_copies(case))
        results += copies
        if not copies:
            left_out.append(_no_copy(case))
    devices = root.get("GPU Device list")
    texts = [text for text in devices if isinstance(text, str)] if isinstance(devices, list) else []
    addresses = [match[0] for match in map(_ADDRESS.search, texts) if match]
    ends = [end for result in results for end in (result.source, result.target)]
    return Results(
        "nvbandwidth",
        tuple(results),
        tuple(map(read_address, addresses)) if len(addresses) == len(texts) else (),
        max((end.number + 1 for end in ends), default=0),
        tuple(left_out),
    )


def _copies(case: dict[str, Any]) -> Iterator[Result]:
    """Yield the rates of one test."""
    test = case.get("name")
    copy = _COPY.fullmatch(test) if isinstance(test, str) else None
    description = case.get("bandwidth_description")
    unit = 1e9 if description is None else None
    if isinstance(description, str) and "(" in description:
        unit = _COPY_UNITS.get(description[description.rindex("(") :].strip())
    rows = case.get("bandwidth_matrix")
    if copy is None or unit is None or not isinstance(rows, list):
        return
    grid = [row for row in rows if isinstance(row, list)][: _MOST_GPUS * _BLOCKS]
    count = max(map(len, grid), default=0)
    between = copy["ends"] == "device_to_device"
    summed = bool(between and copy["both"] and len(grid) == _BLOCKS * count)
    unwritten = "measured while the other direction was busy" if copy["both"] else ""
    for at, row in enumerate(grid[-count:] if summed else grid):
        for column, cell in enumerate(row[:_MOST_GPUS]):
            rate = number(cell)
            if rate is None or (between and at == column):
                continue
            # A reading GPU is the row, and so is a writing one.
            ends = (gpu(column), gpu(at)) if copy["way"] == "read" else (gpu(at), gpu(column))
            if not between:
                to_gpu = copy["ends"] == "host_to_device"
                ends = (RAM, gpu(column)) if to_gpu else (gpu(column), RAM)
            yield Result(
                f"nvbandwidth {copy[0]}",
                *ends,
                rate * unit,
                both=summed,
                busy=bool(copy["both"]) and not summed,
                unwritten=_BOTH if summed else unwritten,
                rank=int(copy["engine"] == "ce"),
            )


def _no_copy(case: dict[str, Any]) -> str:
    """Return why a test gives no rate of a link or pair."""
    name, status = small_text(case.get("name")) or "a test", case.get("status")
    if status != "Passed" and isinstance(status, str):
        return f"{name}: {small_text(status).lower()}"
    if re.search(r"all_to|_to_all|to_one|one_to", name):
        return f"{name}: many GPUs at once, no rate of one pair"
    if _COPY.fullmatch(name):
        return f"{name}: no pair was measured"
    return f"{name}: no copy between two devices"


# --- fio: reads and writes between storage and RAM, or a GPU by libcufile -------------------------

_BLOCK: Final = re.compile(r"(\d{1,12})\s*([kmgt]?)(i?b?)", re.IGNORECASE)
_POWERS: Final = {"": 0, "k": 1, "m": 2, "g": 3, "t": 4}
_DRIVE: Final = re.compile(r"/dev/(nvme\d+)n\d+(?:p\d+)?")
_YEAR_9999: Final = 253e9  # seconds since 1970


def _fio(data: bytes, name: str) -> Results:
    root = read_json(data, name)
    shared = root.get("global options")
    shared = shared if isinstance(shared, dict) else {}
    results: list[Result] = []
    left_out: list[str] = []
    jobs = list(objects(root.get("jobs")))
    for job in jobs:
        options = job.get("job options")
        moved = list(_moved(job, {**shared, **(options if isinstance(options, dict) else {})}))
        results += moved
        if not moved:
            left_out.append(f"{small_text(job.get('jobname')) or 'a job'}: moved no data")
    if len(jobs) > 1:
        why = "one of several jobs, which may have run at once: use --group_reporting"
        results = [replace(result, unwritten=result.unwritten or why) for result in results]
    stamp = number(root.get("timestamp"))
    date = ""
    if stamp is not None and stamp <= _YEAR_9999:
        date = datetime.fromtimestamp(stamp, UTC).date().isoformat()
    return Results("fio", tuple(results), left_out=tuple(left_out), date=date)


def _moved(job: dict[str, Any], options: dict[str, Any]) -> Iterator[Result]:
    """Yield what a job read and what it wrote."""
    rates: dict[str, float] = {}
    for direction in ("read", "write"):
        side = job.get(direction)
        if isinstance(side, dict):
            older = number(side.get("bw")) or 0.0  # KiB/s
            rates[direction] = number(side.get("bw_bytes")) or older * 1024
    rates = {direction: rate for direction, rate in rates.items() if rate}
    names = (options.get("filename"), job.get("jobname"))
    name = next((text for text in names if isinstance(text, str) and text), "")
    match = _DRIVE.search(name)
    drive, memory, via = End("storage", name=match[1] if match else ""), RAM, ""
    if options.get("ioengine") == "libcufile":
        first = str(options.get("gpu_dev_ids", "0")).split(":")[0]
        memory = gpu(int(first) if re.fullmatch(r"\d{1,3}", first) else 0)
        via = "direct" if options.get("cuda_io", "cufile") == "cufile" else "odirect-pinned"
    why = "reads and writes at once" if len(rates) > 1 else _why_no_bandwidth(options)
    test = f"fio {small_text(job.get('jobname')) or 'job'}"
    for direction, rate in rates.items():
        ends = (drive, memory) if direction == "read" else (memory, drive)
        yield Result(f"{test}, {direction}", *ends, rate, via=via, unwritten=why)


def _why_no_bandwidth(options: dict[str, Any]) -> str:
    """Return why a job's rate is none of the storage: small blocks, several GPUs, the cache."""
    size = str(options.get("bs", options.get("blocksize", "4k"))).split(",")[0].strip()
    match = _BLOCK.fullmatch(size)
    # fio's k is 1024.
    if match and int(match[1]) * 1024.0 ** _POWERS[match[2].lower()] < SMALL:
        return "blocks below 128 KiB: operations a second, not bandwidth"
    if options.get("ioengine") == "libcufile":
        return "several GPUs at once" if ":" in str(options.get("gpu_dev_ids", "")) else ""
    cached = "not O_DIRECT: the page cache may have answered"
    return "" if str(options.get("direct", "0")) == "1" else cached


# --- gdsio: between storage and a GPU or RAM, by the path that its ``-x`` names -------------------
#
# A line of results does not say which GPU was used; the command above it does. GiB are binary.

_TRANSFER: Final = re.compile(
    r"IoType:\s*(\w+)\s+XferType:\s*(\w+)(.*?)(?=IoType:|gdsio\s|\Z)", re.DOTALL
)
_THROUGHPUT: Final = re.compile(r"Throughput:\s*([\d.]+)\s*([KMG]i?B)/sec")
_IO_SIZE: Final = re.compile(r"IOSize:\s*(\d{1,12})[\d-]*\s*\((KiB|MiB)\)")
_COMMAND: Final = re.compile(r"(?m)gdsio\s[^\n]*")
_BYTES: Final = {"KiB": 2.0**10, "MiB": 2.0**20, "GiB": 2.0**30, "KB": 1e3, "MB": 1e6, "GB": 1e9}
# By the word behind XferType; what it begins with decides.
_PATHS: Final = (
    ("GPUD", "direct"),
    ("GPU_DIRECT", "direct"),
    ("GPU_BATCH", "direct"),
    ("GPU_STREAM", "direct"),
    ("CPU_CACHED_GPU", "legacy"),
    ("CPU_GPU", "odirect-pinned"),
    ("CPU_ASYNC_GPU", "odirect-pinned"),
    ("CPUONLY", ""),
    ("CPU_ONLY", ""),
)


def _gdsio(data: bytes, name: str) -> Results:
    """Read what gdsio prints, with the commands above if they were pasted along."""
    text = "\n".join(read_lines(data, name))
    runs: dict[tuple[object, ...], list[Result]] = {}  # those that are alike
    left_out: list[str] = []
    for match in _TRANSFER.finditer(text):
        commands = list(_COMMAND.finditer(text, 0, match.start()))
        run = _transfer(match, commands[-1][0] if commands else "")
        if isinstance(run, str):
            left_out.append(run)
        else:
            runs.setdefault((run.test, run.source, run.target, run.unwritten), []).append(run)
    results: list[Result] = []
    for alike in runs.values():
        best = max(alike, key=lambda run: run.rate)
        test = best.test if len(alike) == 1 else f"{best.test}, best of {len(alike)}"
        results.append(replace(best, test=test))
    return Results("gdsio", tuple(results), left_out=tuple(left_out))


def _transfer(match: re.Match[str], command: str) -> Result | str:
    """Return one result, or why it is none."""
    kind, transfer, text = match[1].upper(), match[2].upper(), match[3]
    test = f"gdsio {kind} {small_text(transfer)}"
    rate = _THROUGHPUT.search(text)
    value = number(rate[1]) if rate else None
    via = next((path for start, path in _PATHS if transfer.startswith(start)), None)
    if rate is None or value is None or via is None or not kind.endswith(("READ", "WRITE")):
        return f"{test}: {'no throughput' if value is None else 'not known to topo'}"
    gpus = re.findall(r"\s-d\s*(\d{1,3})\b", command)
    memory = RAM if not via else gpu(int(gpus[0])) if gpus else End("gpu")
    ends = (STORAGE, memory) if kind.endswith("READ") else (memory, STORAGE)
    size = _IO_SIZE.search(text)
    unwritten = "" if via in ("", "direct") else f"a rate of the whole path {via}, not of one pair"
    if size is not None and int(size[1]) * _BYTES[size[2]] < SMALL:
        unwritten = "transfers below 128 KiB: operations a second, not bandwidth"
    elif len(set(gpus)) > 1:
        unwritten = "several GPUs at once"
    return Result(test, *ends, value * _BYTES[rate[2]], via=via, unwritten=unwritten)


# --- perftest (`ib_write_bw` and its like): between a card and RAM, or a GPU's memory -------------
#
# ``MB/sec`` there means MiB/s: the program divides by 2**20. Data of a write or a send leaves the
# client; the server's output begins by waiting for it. Two-way tests print the sum.

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


def _perftest(data: bytes, name: str) -> Results:
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
    unwritten = _BOTH if both else ""
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


def _nccl_tests(data: bytes, _name: str) -> Results:
    return Results("nccl-tests", collectives=read_runs(data.decode("utf-8-sig", "replace")))


READERS: Final[dict[str, Callable[[bytes, str], Results]]] = {
    "nvbandwidth": _nvbandwidth,
    "fio": _fio,
    "gdsio": _gdsio,
    "perftest": _perftest,
    "nccl-tests": _nccl_tests,
}


# --- what a file holds, whatever is in it ---------------------------------------------------------


def read_json(data: bytes, name: str) -> dict[str, Any]:
    """Return the JSON object of a file; what a program printed above it does not matter.

    Raises
    ------
    ExchangeError
        If there is none, or it breaks off.
    """
    text = data.decode("utf-8-sig", "replace")
    start = text.find("{")
    try:
        root, _ = json.JSONDecoder().raw_decode(text, max(start, 0))
    except (ValueError, RecursionError):
        message = f"`{name}` is JSON that breaks off or contradicts itself"
        raise ExchangeError(Finding("broken-json", message)) from None
    return root if isinstance(root, dict) else {}


def objects(value: object) -> Iterator[dict[str, Any]]:
    """Yield the objects of what should be a list of them."""
    if isinstance(value, list):
        yield from (item for item in value if isinstance(item, dict))


def number(value: object) -> float | None:
    """Return a finite, positive number from a JSON number or text, `None` for ``N/A``."""
    if isinstance(value, bool) or not isinstance(value, int | float | str):
        return None
    try:
        parsed = float(value)
    except (ValueError, OverflowError):
        return None
    return parsed if 0 < parsed < _MOST else None


def small_text(value: object, *, most: int = 60) -> str:
    """Return a text of a file short enough for a message."""
    text = value if isinstance(value, str) else ""
    plain = "".join(char if char.isprintable() else " " for char in text)
    return plain if len(plain) <= most else f"{plain[: most - 3]}..."
