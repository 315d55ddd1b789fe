"""Who answers the designs of a sweep: this process, others of this machine, or a Dask cluster.

An engine takes batches of designs and yields what came of each, in any order. A batch whose worker
died is given to another, a few times. What an engine yields is the same whichever it is.
"""

from __future__ import annotations

import logging
import pickle
from collections.abc import Callable, Iterable, Iterator, Sequence
from contextlib import suppress
from time import monotonic, sleep
from typing import TYPE_CHECKING, Any, Final, TypeAlias
from urllib.parse import urlsplit

from topo import __version__
from topo.errors import Finding, LibraryError, TopoError
from topo.study.designs import Designs

if TYPE_CHECKING:
    from topo.study.sweep import Sweep
    from topo.study.variants import Outcome


Batch: TypeAlias = "tuple[int, ...]"
Answered: TypeAlias = "tuple[tuple[int, Outcome], ...]"
Engine: TypeAlias = "Callable[[Sweep, Iterable[Batch]], Iterator[Answered]]"

_TRIES: Final = 4  # of a batch whose workers die
_PATIENCE: Final = 10.0  # seconds for a scheduler to answer
_WITHOUT_WORKERS: Final = 30.0  # seconds to wait for a first worker, or the next
_PAUSE: Final = 0.02  # seconds
_PORT: Final = 8786
_SCHEMES: Final = {"dask": "tcp", "dask+tls": "tls"}


def here(sweep: Sweep, batches: Iterable[Batch]) -> Iterator[Answered]:
    """Answer in this process."""
    designs = Designs(sweep)
    for batch in batches:
        yield designs.outcomes(batch)


def answer_all(sweep: Sweep, numbers: Iterable[int], engine: Engine = here) -> Iterator[Answered]:
    """Yield what came of designs, by their numbers, as it comes."""
    return engine(sweep, Designs(sweep).batches(numbers))


# --- other processes ------------------------------------------------------------------------------

_AT_WORK: dict[int, Designs] = {}  # of this process, by the sweep it has: one


def _answer(payload: bytes, version: str, batch: Batch) -> Answered:
    """Answer a batch in a worker, which keeps the last sweep that it was given.

    Raises
    ------
    TopoError
        If the worker has another topo.
    """
    if version != __version__:
        message = f"a worker has topo {__version__}, and here is topo {version}"
        raise TopoError(Finding("other-version", message, help="install the same on all"))
    key = hash(payload)
    if key not in _AT_WORK:
        _AT_WORK.clear()
        _AT_WORK[key] = Designs(pickle.loads(payload))  # noqa: S301  (our own process wrote it)
    return _AT_WORK[key].outcomes(batch)


def processes(workers: int) -> Engine:
    """Return the engine of so many processes of this machine."""

    def engine(sweep: Sweep, batches: Iterable[Batch]) -> Iterator[Answered]:
        from concurrent.futures import FIRST_COMPLETED, ProcessPoolExecutor, wait
        from concurrent.futures.process import BrokenProcessPool
        from multiprocessing import get_context

        payload = pickle.dumps(sweep)
        waiting = list(batches)
        tries = 0
        while waiting:
            pool = ProcessPoolExecutor(
                min(workers, len(waiting)), get_context("spawn"), _end_with_parent
            )
            running = {
                pool.submit(_answer, payload, __version__, batch): batch for batch in waiting
            }
            waiting = []
            try:
                while running:
                    done, _ = wait(running, return_when=FIRST_COMPLETED)
                    for future in done:
                        batch = running.pop(future)
                        try:
                            answered = future.result()
                        except BrokenProcessPool:
                            waiting.append(batch)
                        else:
                            tries = 0
                            yield answered
            finally:
                # a process that is in the middle of a batch is not waited for
                for process in list((pool._processes or {}).values()) if running else ():  # noqa: SLF001
                    process.terminate()
                pool.shutdown(cancel_futures=True)
            tries += bool(waiting)
            if tries > _TRIES:
                raise _given_up("the worker processes end before they answer")

    return engine


def _end_with_parent() -> None:
    """End this worker with the process that started it: where that is killed, it tells nobody.

    An interrupt at the terminal comes to all, and is that process' own to answer.
    """
    import os
    import signal
    from multiprocessing import parent_process
    from threading import Thread

    signal.signal(signal.SIGINT, signal.SIG_IGN)
    parent = parent_process()
    if parent is None:
        return

    def watch() -> None:
        parent.join()
        os._exit(1)

    Thread(target=watch, daemon=True).start()


def _given_up(why: str) -> TopoError:
    advice = "what is answered is kept: the same command goes on"
    return TopoError(Finding("workers-lost", f"{why}, {_TRIES} times in a row", help=advice))


# --- a Dask cluster -------------------------------------------------------------------------------


def dask(address: str) -> Engine:
    """Return the engine of the workers of a Dask cluster that is there, ``dask://host:8786``.

    Raises
    ------
    TopoError
        If that is no such address.
    LibraryError
        If Dask's distributed is not installed.
    """
    scheduler = _scheduler(address)
    try:
        import distributed
    except ImportError:
        raise LibraryError("gpu-topo[sweep]", f"--engine {address}") from None

    def engine(sweep: Sweep, batches: Iterable[Batch]) -> Iterator[Answered]:
        # their own words of what is lost would stand between ours
        for name in list(logging.root.manager.loggerDict):
            if name.partition(".")[0] in ("distributed", "tornado", "asyncio"):
                logging.getLogger(name).setLevel(logging.CRITICAL + 1)
        try:
            client = distributed.Client(
                scheduler, timeout=_PATIENCE, set_as_default=False, heartbeat_interval="2s"
            )
        except (OSError, ValueError, TimeoutError) as error:
            reason = str(error).strip().split("\n", maxsplit=1)[0].rstrip(".")
            message = f"no Dask scheduler answers at {address}: {reason}"
            advice = "start one: `dask scheduler`, and `dask worker` on each machine"
            raise TopoError(Finding("no-scheduler", message, help=advice)) from None
        try:
            yield from _by_dask(client, address, sweep, tuple(batches))
        finally:
            with suppress(Exception):
                client.close(timeout=1)

    return engine


def _scheduler(address: str) -> str:
    """Return Dask's own word for an address."""
    parts = urlsplit(address)
    try:
        port = parts.port or _PORT
    except ValueError:
        port = 0
    if parts.scheme not in _SCHEMES or not parts.hostname or not port or parts.path.strip("/"):
        message = f"`{address}` is no engine"
        raise TopoError(Finding("bad-engine", message, help="write it like dask://host:8786"))
    host = f"[{parts.hostname}]" if ":" in parts.hostname else parts.hostname
    return f"{_SCHEMES[parts.scheme]}://{host}:{port}"


def _next(client: Any, futures: Any, address: str) -> Any:
    """Wait for the next future that is done, as long as there are workers."""
    asked = seen = monotonic()
    while not futures.has_ready():
        sleep(_PAUSE)
        if monotonic() - asked < 1:
            continue
        asked = monotonic()
        with suppress(OSError, TimeoutError):
            if client.scheduler_info()["workers"]:
                seen = asked
        if asked - seen > _WITHOUT_WORKERS:
            message = f"the Dask scheduler at {address} has no workers"
            advice = "start one: `dask worker ADDRESS`; what is answered is kept"
            raise TopoError(Finding("workers-lost", message, help=advice))
    return next(futures)


def _by_dask(
    client: Any, address: str, sweep: Sweep, batches: Sequence[Batch]
) -> Iterator[Answered]:
    """Yield what the workers of a cluster answer; a batch whose workers died is asked again."""
    from distributed import as_completed

    payload, tries = pickle.dumps(sweep), dict.fromkeys(batches, 1)

    def submit(batch: Batch) -> Any:
        return client.submit(_answer, payload, __version__, batch, pure=False, retries=_TRIES)

    def lost(batch: Batch, why: str) -> None:
        tries[batch] += 1
        if tries[batch] > _TRIES:
            raise _given_up(why)

    running = {submit(batch): batch for batch in batches}
    futures = as_completed(running, loop=client.loop)
    while running:
        future = _next(client, futures, address)
        batch = running.pop(future)
        if future.status == "finished":
            try:
                answered = future.result()
            except Exception:  # noqa: BLE001  (the worker died with its answer)
                lost(batch, "the workers of the cluster are lost with what they answered")
            else:
                yield answered
                future.release()
                continue
        elif future.status == "error":
            error = future.exception()
            if isinstance(error, TopoError):
                raise error
            if type(error).__name__ in ("ModuleNotFoundError", "ImportError"):
                message = f"a worker of {address} cannot load topo: {error}"
                raise TopoError(Finding("other-version", message, help="install the same on all"))
            lost(batch, f"the workers of the cluster end before they answer ({error})")
        else:  # cancelled, or the connection is gone
            if client.status != "running":
                message = f"the Dask scheduler at {address} is gone"
                advice = "what is answered is kept: the same command goes on"
                raise TopoError(Finding("no-scheduler", message, help=advice))
            lost(batch, "the cluster drops what it is asked")
        again = submit(batch)
        running[again] = batch
        futures.add(again)
