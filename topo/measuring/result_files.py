"""Result files: which program a file is of, and what it tells.

References
----------
https://github.com/NVIDIA/nvbandwidth; https://fio.readthedocs.io/en/latest/fio_doc.html; NVIDIA
GPUDirect Storage Benchmarking and Configuration Guide; https://github.com/linux-rdma/perftest
"""

from __future__ import annotations

import codecs
import json
import re
from collections.abc import Callable
from typing import Final

from topo.discovery.file_kinds import file_kind
from topo.discovery.foreign import unquoted
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
from topo.measuring.results import Results
from topo.phrases import listed

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
_SEVERAL, _MOST_PIECES = 2, 64
_OBJECT: Final = re.compile(r"(?m)^[ \t]*\{")
_COLOUR: Final = re.compile(r"\x1b\[[0-9;?]{0,20}[A-Za-z]")
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
    (
        "perftest",
        rb'#bytes\s+#iterations\s+BW peak|\b(BW|Latency)[ \t]+Test[ \t]*\r?\n|"test_info"\s*:\s*\{',
    ),
)
_ASK_AGAIN: Final = (
    (ior.MDTEST_MARK, "output of mdtest: files a second, no bandwidth", "run `ior -w -r -t 1m`"),
)


def read_results(kind: str | None, data: bytes, name: str) -> tuple[Results, ...]:
    """Read a result file: the results of each program that printed into it, and of each JSON.

    Parameters
    ----------
    kind
        The only program that is to be read, if given.
    data, name
        The file, and what messages call it.

    Raises
    ------
    ExchangeError
        If it is of another kind, of none that topo reads, breaks off, or has no rate.
    """
    if len(data) > LARGEST:
        message = f"`{name}` has {len(data) >> 20} MiB, more than {LARGEST >> 20}"
        raise ExchangeError(Finding("import-too-big", message))
    data = _plain(data)
    marked = _marked(data)
    if not marked:
        for mark, words, advice in _ASK_AGAIN:
            if re.search(mark, data):
                raise ExchangeError(Finding("wrong-kind", f"`{name}` is {words}", help=advice))
        message = f"`{name}` is {file_kind(data).words}, and has no results that topo reads"
        help = f"topo reads results of {', '.join(READERS)}"
        raise ExchangeError(Finding("wrong-kind", message, help=help))
    if kind is not None and kind not in marked:
        message = f"`{name}` has results of {listed(marked)}, not of {kind}"
        raise ExchangeError(Finding("wrong-kind", message, help=f"write `--kind {marked[0]}`"))
    pieces = [piece for piece in _pieces(data) if kind in (None, piece[0])]
    if len(pieces) < _SEVERAL:
        pieces = [(kind or marked[0], data)]
    results: list[Results] = []
    for program, piece in pieces:
        try:
            results.append(READERS[program](piece, name))
        except ExchangeError as error:
            if len(pieces) < _SEVERAL:
                raise
            results.append(Results(program, left_out=(f"{program}: {error.findings[0].message}",)))
    if not any(output.results or output.collectives for output in results):
        message = f"`{name}` has no rate between two devices, and none of a collective"
        left_out = [sentence for output in results for sentence in output.left_out]
        raise ExchangeError(Finding("no-results", message, notes=tuple(left_out[:8])))
    return tuple(
        output for output in results if output.results or output.collectives or output.left_out
    )


def _plain(data: bytes) -> bytes:
    """Return a text in UTF-8, without colours and the marks of a quotation, as JSON has to be."""
    is_utf_16 = data.startswith((codecs.BOM_UTF16_LE, codecs.BOM_UTF16_BE))
    text = data.decode("utf-16" if is_utf_16 else "utf-8-sig", "replace")
    return unquoted(_COLOUR.sub("", text)).encode()


def _marked(data: bytes) -> list[str]:
    """Return the programs whose marks a text has: the surest first."""
    return [program for program, mark in _MARKS if re.search(mark, data)]


def _pieces(data: bytes) -> list[tuple[str, bytes]]:
    """Return each JSON document, and the text around them for each program with a mark in it."""
    text = data.decode()
    decoder = json.JSONDecoder()
    pieces: list[tuple[str, bytes]] = []
    around: list[str] = []
    at, failures = 0, 0
    for begin in _OBJECT.finditer(text):
        start = begin.end() - 1
        if start < at or len(pieces) > _MOST_PIECES or failures > _MOST_PIECES:
            continue
        try:
            _, end = decoder.raw_decode(text, start)
        except (ValueError, RecursionError):
            failures += 1
            continue
        document = text[start:end].encode()
        if programs := _marked(document):
            pieces.append((programs[0], document))
            around.append(text[at:start])
            at = end
    around.append(text[at:])
    rest = "\n".join(around).encode()
    return [*((program, rest) for program in _marked(rest)), *pieces]
