"""What is measured on this host, one test after another, within a time and a memory."""

from __future__ import annotations

import time
from collections.abc import Callable, Iterator, Sequence
from contextlib import ExitStack
from datetime import UTC, datetime
from itertools import permutations
from pathlib import Path
from typing import TYPE_CHECKING, Final

from topo.errors import ExchangeError, Finding
from topo.measuring.probe.gpus import Copy, Driver, Memory, driver
from topo.measuring.probe.host import (
    BLOCK,
    CoreCopy,
    Offsets,
    Reader,
    available_memory,
    memory_nodes,
    readable,
)
from topo.measuring.probe.race import Work, race
from topo.measuring.results import OTHER_WAY_BUSY, RAM, Concurrent, End, Result, Results, gpu, ram
from topo.phrases import counted
from topo.records import dataclass
from topo.units import format_size

if TYPE_CHECKING:
    from topo.measuring.probe.host import Readable

Rates = tuple[float, ...]
_LONGEST_TEST: Final = 0.5  # seconds: more changes no digit that matters
_SHORTEST_TEST: Final = 0.05
_OVERHEAD: Final = 0.15  # seconds of a test that are no measuring: buffers are touched and freed
_LARGEST_COPY: Final = 128 * 2**20  # bytes: below 64 MiB a copy's own start is in its rate
_SMALLEST_COPY: Final = 8 * 2**20
_READERS: Final = 8  # reads in flight
_OF_PATH: Final = "a rate of the whole path pageable, not of one pair"
_IN_USE: Final = 0.05  # of a GPU's memory, from where somebody else is at work on it
_SHARE_OF_MEMORY: Final = 0.25  # of the RAM that is free, taken where no limit is given
_MOST_MEMORY: Final = 8 * 2**30


@dataclass(frozen=True, slots=True)
class Test:
    """One test: what runs at once, and what its rates are of.

    `label` is a sentence's subject, where it could not be done; `told` turns the rate of each work
    into results.
    """

    label: str
    works: Callable[[], Sequence[Work]]
    told: Callable[[Rates], Sequence[Result | Concurrent]]


def probe(
    *,
    reads: Sequence[str] = (),
    seconds: float = 60.0,
    memory: int | None = None,
    progress: Callable[[int, int], None] | None = None,
) -> Results:
    """Measure this host: copies of GPUs and cores, and reads of the drives and files named.

    Parameters
    ----------
    reads
        Drives (``/dev/nvme0n1``) and files, which are read and never written.
    seconds
        The longest that all of it may take.
    memory
        The most RAM that buffers may take, bytes; a quarter of what is free by default, and no
        more than 8 GiB.
    progress
        Is told how many tests are done, and of how many.

    Raises
    ------
    ExchangeError
        If there is nothing to measure, too little memory, or a drive cannot be read.
    """
    sources = [readable(path) for path in reads]  # before anything runs
    began = time.monotonic()
    memory = memory or min(int(available_memory() * _SHARE_OF_MEMORY), _MOST_MEMORY)
    left_out: list[str] = []
    results: list[Result | Concurrent] = []
    addresses: tuple[str, ...] = ()
    with ExitStack() as stack:
        tests = list(_storage_tests(sources, memory))
        try:
            opened = stack.enter_context(driver())
        except ExchangeError as error:
            left_out.append(error.findings[0].message)
        else:
            addresses = tuple(device.address for device in opened.gpus)
            left_out += _in_use(opened)
            tests = [*_gpu_tests(opened, memory, left_out), *tests]
        tests += _core_tests(memory)
        for done, test in enumerate(tests):
            if progress is not None:
                progress(done, len(tests))
            left = began + seconds - time.monotonic()
            share = left / (len(tests) - done) - _OVERHEAD
            window = min(max(share, _SHORTEST_TEST), _LONGEST_TEST)
            if left < _OVERHEAD + window:
                left_out += [f"{late.label}: no time was left" for late in tests[done:]]
                break
            try:
                rates = race(test.works(), window, longest=left)
            except (OSError, RuntimeError, TimeoutError, MemoryError) as error:
                left_out.append(f"{test.label}: {error}")
            else:
                results += test.told(rates)
    if progress is not None:
        progress(len(tests), len(tests))
    if not results:
        message = "nothing could be measured on this host"
        raise ExchangeError(Finding("probe-failed", message, notes=tuple(left_out)))
    return Results(
        "probe",
        tuple(result for result in results if isinstance(result, Result)),
        addresses,
        len(addresses),
        tuple(left_out),
        datetime.now(UTC).date().isoformat(),
        concurrent=tuple(result for result in results if isinstance(result, Concurrent)),
    )


# --- GPUs -----------------------------------------------------------------------------------------


def _gpu_tests(opened: Driver, memory: int, left_out: list[str]) -> Iterator[Test]:
    """Yield the tests of GPUs: each alone, each pair, all at once.

    Raises
    ------
    ExchangeError
        If memory does not do for the least copies.
    """
    numbers = [device.number for device in opened.gpus]
    # All GPUs both ways at once take the most RAM: one buffer for each copy.
    size = min(_LARGEST_COPY, memory // (2 * len(numbers)))
    if size < _SMALLEST_COPY:
        least = 2 * len(numbers) * _SMALLEST_COPY >> 20
        message = f"{memory >> 20} MiB of RAM do not do for {counted(len(numbers), 'GPU')}"
        raise ExchangeError(
            Finding("probe-failed", message, help=f"at least {least} MiB: --memory")
        )
    opened.allow_peers()

    def copy(source: Memory, target: Memory) -> Copy:
        return Copy(opened, source, target, size)

    for number in numbers:
        kinds: tuple[Memory, ...] = ("pinned", "pageable")
        for kind in kinds:
            yield _alone(f"probe {kind} copy", copy, kind, number)
            yield _alone(f"probe {kind} copy", copy, number, kind)
        yield _both_ways(number, copy)
    for a, b in permutations(numbers, 2):
        if opened.reaches(a, b):
            yield _alone("probe GPU to GPU", copy, a, b)
        elif a < b:
            left_out.append(f"gpu {a} and gpu {b}: the driver does not let them reach each other")
    if len(numbers) > 1:
        into: list[tuple[Memory, Memory]] = [("pinned", number) for number in numbers]
        out: list[tuple[Memory, Memory]] = [(number, "pinned") for number in numbers]
        yield _together("probe RAM to all GPUs", copy, into)
        yield _together("probe all GPUs to RAM", copy, out)
        yield _together("probe all GPUs both ways", copy, [*into, *out])


def _end(memory: Memory) -> End:
    return gpu(memory) if isinstance(memory, int) else RAM


_Copies = Callable[[Memory, Memory], Copy]


def _alone(test: str, copy: _Copies, source: Memory, target: Memory) -> Test:
    ends = (_end(source), _end(target))
    pageable = "pageable" in (source, target)
    return Test(
        f"{test}, {ends[0]} to {ends[1]}",
        lambda: (copy(source, target),),
        lambda rates: (
            Result(
                test,
                *ends,
                rates[0],
                via="pageable" if pageable else "",
                workers=int(pageable),
                unwritten=_OF_PATH if pageable else "",
            ),
        ),
    )


def _both_ways(number: int, copy: _Copies) -> Test:
    test = "probe pinned copies both ways"
    ends = ((RAM, gpu(number)), (gpu(number), RAM))
    return Test(
        f"{test}, gpu {number}",
        lambda: (copy("pinned", number), copy(number, "pinned")),
        lambda rates: [
            Result(test, *pair, rate, busy=True, unwritten=OTHER_WAY_BUSY)
            for pair, rate in zip(ends, rates, strict=True)
        ],
    )


def _together(test: str, copy: _Copies, pairs: Sequence[tuple[Memory, Memory]]) -> Test:
    ends = tuple((_end(source), _end(target)) for source, target in pairs)
    return Test(
        test,
        lambda: [copy(source, target) for source, target in pairs],
        lambda rates: (Concurrent(test, ends, sum(rates)),),
    )


def _in_use(opened: Driver) -> Iterator[str]:
    """Yield which GPUs somebody else is using: their rates are lower for that."""
    for device in opened.gpus:
        taken = device.total - device.free
        if taken > _IN_USE * device.total:
            size = format_size(taken)
            yield f"gpu {device.number}: {size} of its memory are in use, perhaps by copies"


# --- cores ----------------------------------------------------------------------------------------


def _core_tests(memory: int) -> Iterator[Test]:
    """Yield copies by one core, by two, by four and so on, of the first node, and all of each."""
    nodes = memory_nodes()
    for node, cpus in nodes.items():
        counts = [1 << power for power in range(len(cpus).bit_length()) if 1 << power < len(cpus)]
        first = node == min(nodes)
        for count in (*(counts if first else ()), len(cpus)):
            size = min(memory // count, 2 * _LARGEST_COPY)
            yield _cores(node, cpus, count, size)


def _cores(node: int, cpus: frozenset[int], count: int, size: int) -> Test:
    end = ram(node)
    return Test(
        f"copies by {counted(count, 'core')} of node {node}",
        lambda: [CoreCopy(cpus, size) for _ in range(count)],
        lambda rates: (Result("probe copies by cores", end, end, sum(rates), workers=count),),
    )


# --- storage --------------------------------------------------------------------------------------


def _storage_tests(sources: Sequence[Readable], memory: int) -> Iterator[Test]:
    for source in sources:
        yield _sequential(source, source.size, direct=True)
        if not source.is_drive:
            # So much of it as the page cache surely keeps; reading it once brings it there.
            yield _sequential(source, min(source.size, memory), direct=False)


def _sequential(source: Readable, size: int, *, direct: bool) -> Test:
    test = f"probe read{'' if direct else ' by the page cache'}, {source.path}"
    end = End("storage", name=source.drive or source.path)

    def works() -> list[Reader]:
        offsets = Offsets(size)
        if not direct:
            _bring_in(source.path, size)
        return [Reader(source, offsets, direct=direct) for _ in range(_READERS)]

    def told(rates: Rates) -> tuple[Result]:
        if direct:
            return (Result(test, end, RAM, sum(rates)),)
        cache = ram(min(memory_nodes()))
        why = "out of the page cache: nothing of the drive is in it"
        return (Result(test, cache, cache, sum(rates), workers=_READERS, unwritten=why),)

    return Test(test, works, told)


def _bring_in(path: str, size: int) -> None:
    """Read a file once, so that its beginning is in the page cache."""
    with Path(path).open("rb", buffering=0) as file:
        while file.tell() < size and file.read(BLOCK):
            pass
