"""Several pieces of work at once, each repeated by a thread of its own, and the rate of each.

A rate is counted between the ends of a thread's first and last step while all of them ran, so that
starting, and a slower one that goes on alone, are not in it.
"""

from __future__ import annotations

import os
import threading
import time
from collections.abc import Sequence
from typing import Protocol

_FEWEST_STEPS = 3


class Work(Protocol):
    """Something that moves data in steps."""

    cpus: frozenset[int]  # where its thread runs, and its memory is first touched; empty: anywhere

    def open(self) -> None:
        """Get what it needs, in the thread that will run it."""

    def step(self) -> int:
        """Move some data; return the bytes that arrived since the last step ended."""

    def close(self) -> None:
        """Give back what `open` got; called once, also where `open` failed."""


class _Runner(threading.Thread):
    """One work, from `open` to `close`; what it raised is `error`."""

    def __init__(self, work: Work, ready: threading.Barrier, stop: threading.Event) -> None:
        super().__init__(daemon=True)
        self.work, self.ready, self.stop = work, ready, stop
        self.ends: list[tuple[float, int]] = []  # of steps: when, and the bytes that arrived
        self.error: BaseException | None = None

    def run(self) -> None:
        """Run until it is told to stop."""
        try:
            if self.work.cpus and hasattr(os, "sched_setaffinity"):
                allowed = self.work.cpus & os.sched_getaffinity(0)
                if allowed:
                    os.sched_setaffinity(0, allowed)  # of this thread alone
            try:
                self.work.open()
                self.work.step()  # a first one, which touches memory and wakes links up
                self.ready.wait()
                while not self.stop.is_set():
                    count = self.work.step()
                    self.ends.append((time.perf_counter(), count))
            finally:
                self.work.close()
        except threading.BrokenBarrierError:
            pass  # another one failed before all had begun
        except BaseException as error:  # noqa: BLE001  (raised again where it can be told)
            self.error = error
            self.ready.abort()
            self.stop.set()


def race(works: Sequence[Work], seconds: float, *, longest: float) -> tuple[float, ...]:
    """Run works at once for some seconds and return the rate of each, bytes/s.

    Parameters
    ----------
    works
        At least one.
    seconds
        How long all of them run together; longer where a step takes so long that three do not fit.
    longest
        Seconds after which it is given up.

    Raises
    ------
    TimeoutError
        If a work did not move three pieces in `longest` seconds.
    OSError, RuntimeError
        What a work raised.
    """
    given_up = time.perf_counter() + longest
    ready, stop = threading.Barrier(len(works) + 1), threading.Event()
    runners = [_Runner(work, ready, stop) for work in works]
    for runner in runners:
        runner.start()
    try:
        ready.wait(longest)
        end = time.perf_counter() + seconds
        while not stop.is_set() and (now := time.perf_counter()) < given_up:
            enough = all(len(runner.ends) >= _FEWEST_STEPS for runner in runners)
            if now >= end and enough:
                break
            stop.wait(max(min(end - now, 0.05), 0.001))
    except threading.BrokenBarrierError:
        pass
    finally:
        stop.set()
    for runner in runners:
        runner.join(max(given_up - time.perf_counter(), 0.0) + 1.0)
    error = next((runner.error for runner in runners if runner.error), None)
    if error is not None:
        raise error
    if any(runner.is_alive() or len(runner.ends) < _FEWEST_STEPS for runner in runners):
        raise TimeoutError(f"too little was moved in {longest:.3g} s")
    return tuple(_rates([runner.ends for runner in runners]))


def _rates(ends: Sequence[Sequence[tuple[float, int]]]) -> list[float]:
    """Return the rate of each from the ends of its steps, within the time that all have steps of.

    Examples
    --------
    >>> _rates([[(0.0, 5), (1.0, 5), (2.0, 5)], [(0.0, 1), (1.0, 1), (2.0, 1), (9.0, 1)]])
    [5.0, 1.0]
    """
    first = max(steps[0][0] for steps in ends)
    last = min(steps[-1][0] for steps in ends)
    rates: list[float] = []
    for steps in ends:
        inside = [step for step in steps if first <= step[0] <= last]
        inside = inside if len(inside) > 1 else list(steps)
        moved = sum(count for _, count in inside[1:])
        rates.append(moved / (inside[-1][0] - inside[0][0]))
    return rates
