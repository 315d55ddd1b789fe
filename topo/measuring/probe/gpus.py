"""GPUs through NVIDIA's driver: which there are, and copies by their engines.

References
----------
CUDA Driver API, cuMemcpyAsync, cuMemHostAlloc, cuCtxEnablePeerAccess:
https://docs.nvidia.com/cuda/cuda-driver-api/
"""

from __future__ import annotations

import ctypes
import mmap
import os
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from importlib import import_module
from pathlib import Path
from typing import Any, Literal

from topo.description.names import numbers_in
from topo.errors import ExchangeError, Finding, UnitError
from topo.records import dataclass

Memory = int | Literal["pinned", "pageable"]  # a GPU by its number, or RAM
_IN_FLIGHT = 2  # copies of one stream: the next is queued before the last has ended
_INSTALL = "pip install 'gpu-topo[probe]'"


@dataclass(frozen=True, slots=True)
class Gpu:
    """One GPU: its number as CUDA has it, its PCI address, and the CPUs near it."""

    number: int
    name: str
    address: str
    cpus: frozenset[int]
    free: int
    total: int


class Driver:
    """NVIDIA's driver with a context on each GPU."""

    def __init__(self, api: Any, gpus: Sequence[Gpu], contexts: Sequence[Any]) -> None:
        self.api, self.gpus, self.contexts = api, tuple(gpus), tuple(contexts)

    def call(self, name: str, *arguments: object) -> Any:
        """Call a function of the driver and return what it gives, or raise a `RuntimeError`."""
        return _checked(self.api, name, *arguments)

    def enter(self, gpu: int) -> None:
        """Make a GPU the one that this thread's calls are for."""
        self.call("cuCtxSetCurrent", self.contexts[gpu])

    def reaches(self, a: int, b: int) -> bool:
        """Whether GPU `a` may reach the memory of GPU `b` directly."""
        return bool(self.call("cuDeviceCanAccessPeer", *map(self._device, (a, b))))

    def allow_peers(self) -> None:
        """Let every GPU reach the memory of those that it can reach."""
        for a in range(len(self.gpus)):
            self.enter(a)
            for b in range(len(self.gpus)):
                if a != b and self.reaches(a, b):
                    (status,) = self.api.cuCtxEnablePeerAccess(self.contexts[b], 0)[:1]
                    permitted = ("CUDA_SUCCESS", "CUDA_ERROR_PEER_ACCESS_ALREADY_ENABLED")
                    if status.name not in permitted:
                        raise RuntimeError(f"cuCtxEnablePeerAccess: {status.name}")

    def _device(self, number: int) -> Any:
        return self.call("cuDeviceGet", number)


@contextmanager
def driver() -> Iterator[Driver]:
    """Open NVIDIA's driver, and give its contexts back afterwards.

    Raises
    ------
    ExchangeError
        If `cuda.bindings` is not installed, or the driver or a GPU is missing.
    """
    os.environ.setdefault("CUDA_DEVICE_ORDER", "PCI_BUS_ID")
    try:
        api = import_module("cuda.bindings.driver")
    except ImportError:
        message = "copies of GPUs are made by NVIDIA's cuda-bindings, which are not installed"
        raise ExchangeError(Finding("probe-failed", message, help=_INSTALL)) from None
    contexts: list[Any] = []
    devices: list[Any] = []
    try:
        try:
            _checked(api, "cuInit", 0)
            count = _checked(api, "cuDeviceGetCount")
            gpus: list[Gpu] = []
            for number in range(count):
                device = _checked(api, "cuDeviceGet", number)
                contexts.append(_checked(api, "cuDevicePrimaryCtxRetain", device))
                devices.append(device)
                gpus.append(_gpu(api, number, device, contexts[-1]))
        except RuntimeError as error:
            help = "`nvidia-smi` shows whether the driver answers, and who uses the GPUs"
            message = f"NVIDIA's driver does not answer: {error}"
            raise ExchangeError(Finding("probe-failed", message, help=help)) from None
        if not gpus:
            message = "NVIDIA's driver sees no GPU here"
            raise ExchangeError(Finding("probe-failed", message, help="look at `nvidia-smi -L`"))
        yield Driver(api, gpus, contexts)
    finally:
        for device in devices:
            api.cuDevicePrimaryCtxRelease(device)


def _gpu(api: Any, number: int, device: Any, context: Any) -> Gpu:
    _checked(api, "cuCtxSetCurrent", context)
    free, total = _checked(api, "cuMemGetInfo")
    address = _text(_checked(api, "cuDeviceGetPCIBusId", 32, device))
    return Gpu(
        number, _text(_checked(api, "cuDeviceGetName", 100, device)), address, cpus_near(address),
        int(free), int(total),
    )  # fmt: skip


def _text(value: bytes) -> str:
    return value.split(b"\x00")[0].decode("ascii", "replace").lower()


def _checked(api: Any, name: str, *arguments: object) -> Any:
    """Call a function of the driver; it gives a status and, perhaps, values."""
    status, *values = getattr(api, name)(*arguments)
    if status.name != "CUDA_SUCCESS":
        raise RuntimeError(f"{name}: {status.name}")
    return values[0] if len(values) == 1 else tuple(values)


def cpus_near(address: str, root: Path = Path("/sys/bus/pci/devices")) -> frozenset[int]:
    """Return the CPUs that the system says are near a PCI device; none where it says nothing."""
    try:
        text = (root / address / "local_cpulist").read_text(encoding="ascii")
        return frozenset(numbers_in(text.strip()))
    except (OSError, ValueError, UnitError):
        return frozenset()


class Copy:
    """Copies of one buffer into another by a GPU's engine, again and again.

    Parameters
    ----------
    driver
        Open.
    source, target
        RAM or a GPU each, at least one a GPU; its engine copies. Of two GPUs the source's does.
    size
        Bytes of one copy.
    """

    def __init__(self, driver: Driver, source: Memory, target: Memory, size: int) -> None:
        self._driver, self._size = driver, size
        self._ends = (source, target)
        engine = source if isinstance(source, int) else target
        assert isinstance(engine, int)
        self._engine = engine
        self.cpus = driver.gpus[engine].cpus
        self._buffers: list[int] = []
        self._mapped: list[mmap.mmap] = []
        self._stream: Any = None
        self._events: list[Any] = []
        self._queued = 0

    def open(self) -> None:
        """Allocate both buffers; RAM is touched by this thread, and so lies near it."""
        call = self._driver.call
        for end in self._ends:
            self._driver.enter(end if isinstance(end, int) else self._engine)
            if isinstance(end, int):
                self._buffers.append(int(call("cuMemAlloc", self._size)))
            elif end == "pinned":
                self._buffers.append(int(call("cuMemHostAlloc", self._size, 0)))
            else:
                self._buffers.append(self._pageable())
        self._driver.enter(self._engine)
        self._stream = call("cuStreamCreate", 1)  # does not wait for the default stream
        self._events = [call("cuEventCreate", 2) for _ in range(_IN_FLIGHT)]  # without timing

    def _pageable(self) -> int:
        memory = mmap.mmap(-1, self._size)
        self._mapped.append(memory)
        address = ctypes.addressof(ctypes.c_char.from_buffer(memory))
        ctypes.memset(address, 1, self._size)
        return address

    def step(self) -> int:
        """Queue one copy and wait for the one before it."""
        source, target = self._buffers
        call = self._driver.call
        call("cuMemcpyAsync", target, source, self._size, self._stream)
        call("cuEventRecord", self._events[self._queued % _IN_FLIGHT], self._stream)
        self._queued += 1
        if self._queued < _IN_FLIGHT:
            return 0
        call("cuEventSynchronize", self._events[self._queued % _IN_FLIGHT])
        return self._size

    def close(self) -> None:
        """Wait for what is queued and free everything."""
        api = self._driver.api
        if self._stream is not None:
            api.cuStreamSynchronize(self._stream)
            for event in self._events:
                api.cuEventDestroy(event)
            api.cuStreamDestroy(self._stream)
        for end, buffer in zip(self._ends, self._buffers, strict=False):
            if isinstance(end, int):
                self._driver.enter(end)
                api.cuMemFree(buffer)
            elif end == "pinned":
                api.cuMemFreeHost(buffer)
        self._mapped.clear()  # given back when nothing points into it
