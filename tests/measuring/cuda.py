"""A made-up NVIDIA driver: GPUs whose copies take a set time, and a count of what is allocated."""

from __future__ import annotations

import itertools
import re
import threading
import time
from types import SimpleNamespace

OK = SimpleNamespace(name="CUDA_SUCCESS")


class Driver:
    """Answers as `cuda.bindings.driver` does: a status, then values.

    `links` are the pairs of GPUs that reach each other; `fails` are functions that give an error;
    `held` counts bytes of RAM and of GPUs that are allocated, `most` the most RAM that ever was.
    """

    def __init__(self, addresses, *, links=(), fails=(), used=0, seconds=0.001):
        self.addresses, self.links, self.fails = addresses, set(links), set(fails)
        self.used, self.seconds = used, seconds
        self.held, self.sizes, self.most, self.contexts = {"ram": 0, "gpu": 0}, {}, 0, 0
        self.copies = []
        self._next = itertools.count(1 << 20, 1 << 32)
        self._lock = threading.Lock()

    def __getattr__(self, name):
        if not name.startswith("cu"):
            raise AttributeError(name)
        if name in self.fails:
            return lambda *_: (SimpleNamespace(name="CUDA_ERROR_MADE_UP"),)
        # cuMemAlloc is answered by _mem_alloc
        own = re.sub(r"(?<=[a-z])(?=[A-Z])|(?<=[A-Z])(?=[A-Z][a-z])", "_", name[2:]).lower()
        values = getattr(self, f"_{own}", lambda *_: ())

        def call(*arguments):
            got = values(*arguments)
            return (OK, *got) if isinstance(got, tuple) else (OK, got)

        return call

    def _device_get_count(self):
        return len(self.addresses)

    def _device_get(self, number):
        return number

    def _device_get_name(self, length, number):
        return b"NVIDIA H100".ljust(length, b"\0")

    def _device_get_pci_bus_id(self, length, number):
        return self.addresses[number].upper().encode().ljust(length, b"\0")

    def _device_can_access_peer(self, a, b):
        return int((a, b) in self.links or (b, a) in self.links)

    def _device_primary_ctx_retain(self, number):
        self.contexts += 1
        return f"context {number}"

    def _device_primary_ctx_release(self, number):
        self.contexts -= 1
        return ()

    def _mem_get_info(self):
        return 80 << 30, (80 << 30) + self.used

    def _allocate(self, kind, size):
        with self._lock:
            pointer = next(self._next)
            self.sizes[pointer] = (kind, size)
            self.held[kind] += size
            self.most = max(self.most, self.held["ram"])
        return pointer

    def _free(self, pointer):
        with self._lock:
            kind, size = self.sizes.pop(pointer)
            self.held[kind] -= size
        return ()

    def _mem_alloc(self, size):
        return self._allocate("gpu", size)

    def _mem_host_alloc(self, size, _flags):
        return self._allocate("ram", size)

    _mem_free = _mem_free_host = _free

    def _stream_create(self, _flags):
        return "stream"

    def _event_create(self, _flags):
        return "event"

    def _memcpy_async(self, target, source, size, stream):
        kinds = tuple(self.sizes.get(end, ("pageable",))[0] for end in (source, target))
        self.copies.append(kinds)
        time.sleep(self.seconds)
        return ()
