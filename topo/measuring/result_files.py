"""Result files: which program a file is of, and what it tells.

References
----------
https://github.com/NVIDIA/nvbandwidth; https://fio.readthedocs.io/en/latest/fio_doc.html; NVIDIA
GPUDirect Storage Benchmarking and Configuration Guide; https://github.com/linux-rdma/perftest
"""

from __future__ import annotations

import re
from collections.abc import Callable
from typing import TYPE_CHECKING, Final

from topo.discovery.file_kinds import file_kind
from topo.errors import ExchangeError, Finding
from topo.measuring.readers import (
    bandwidth_test,
    dlio,
    elbencho,
    fio,
    gdsio,
    ior,
    nccl_tests,
    nvbandwidth,
    p2p_test,
    perftest,
    rocm_bandwidth_test,
    transferbench,
)

if TYPE_CHECKING:
    from topo.measuring.results import Results

LARGEST: Final = 16 * 2**20
READERS: Final[dict[str, Callable[[bytes, str], Results]]] = {
    "nvbandwidth": nvbandwidth.read,
    "fio": fio.read,
    "gdsio": gdsio.read,
    "perftest": perftest.read,
    "nccl-tests": nccl_tests.read,
    p2p_test.PROGRAM: p2p_test.read,
    bandwidth_test.PROGRAM: bandwidth_test.read,
    rocm_bandwidth_test.PROGRAM: rocm_bandwidth_test.read,
    transferbench.PROGRAM: transferbench.read,
    ior.PROGRAM: ior.read,
    elbencho.PROGRAM: elbencho.read,
    dlio.PROGRAM: dlio.read,
}
_HEAD: Final = 1 << 18
_COLOUR: Final = re.compile(rb"\x1b\[[0-9;?]{0,20}[A-Za-z]")
_MARKS: Final = (
    ("nvbandwidth", nvbandwidth.MARK),
    ("fio", fio.MARK),
    ("gdsio", rb"IoType:\s*\w+\s+XferType:"),
    ("nccl-tests", nccl_tests.MARK),
    (p2p_test.PROGRAM, p2p_test.MARK),
    (bandwidth_test.PROGRAM, bandwidth_test.MARK),
    (rocm_bandwidth_test.PROGRAM, rocm_bandwidth_test.MARK),
    (transferbench.PROGRAM, transferbench.MARK),
    (ior.PROGRAM, ior.MARK),
    (elbencho.PROGRAM, elbencho.MARK),
    (dlio.PROGRAM, dlio.MARK),
    ("perftest", rb"#bytes\s+#iterations\s+BW peak|\b(BW|Latency)[ \t]+Test[ \t]*\r?\n"),
)
_ASK_AGAIN: Final = (
    (ior.MDTEST_MARK, "output of mdtest: files a second, no bandwidth", "run `ior -w -r -t 1m`"),
)


def read_results(kind: str | None, data: bytes, name: str) -> Results:
    """Read a result file, which has to be of `kind` if that is given.

    Raises
    ------
    ExchangeError
        If it is of another kind, of none that topo reads, breaks off, or has no rate.
    """
    if len(data) > LARGEST:
        message = f"`{name}` has {len(data) >> 20} MiB, more than {LARGEST >> 20}"
        raise ExchangeError(Finding("import-too-big", message))
    head = _COLOUR.sub(b"", data[:_HEAD].replace(b"\x00", b""))
    marked = [known for known, mark in _MARKS if re.search(mark, head)]
    if marked and (kind is None or kind in marked):
        results = READERS[kind or marked[0]](data, name)
        if not results.results and not results.collectives:
            message = f"`{name}` has no rate between two devices, and none of a collective"
            raise ExchangeError(Finding("no-results", message, notes=results.left_out[:8]))
        return results
    if marked:
        message = f"`{name}` has results of {marked[0]}, not of {kind}"
        raise ExchangeError(Finding("wrong-kind", message, help=f"write `--kind {marked[0]}`"))
    for mark, words, advice in _ASK_AGAIN:
        if re.search(mark, head):
            raise ExchangeError(Finding("wrong-kind", f"`{name}` is {words}", help=advice))
    message = f"`{name}` is {file_kind(data).words}, and has no results that topo reads"
    help = f"topo reads results of {', '.join(READERS)}"
    raise ExchangeError(Finding("wrong-kind", message, help=help))
