"""What kind of result a file holds, told by what stands in it."""

from __future__ import annotations

import re
from typing import Final

from topo.discovery.foreign import file_kind
from topo.errors import ExchangeError, Finding

# Each module has `read(data: bytes, name: str) -> Results`.
KINDS: Final = {
    "nvbandwidth": "topo.measuring.nvbandwidth",
    "fio": "topo.measuring.fio",
    "gdsio": "topo.measuring.gdsio",
    "perftest": "topo.measuring.perftest",
}
_HEAD: Final = 1 << 18
_MARKS: Final = (
    ("nvbandwidth", rb'"nvbandwidth"\s*:\s*\{'),
    ("fio", rb'"fio version"\s*:'),
    ("gdsio", rb"IoType:\s*\w+\s+XferType:"),
    ("perftest", rb"#bytes\s+#iterations\s+BW peak|\b(BW|Latency)[ \t]+Test[ \t]*\r?\n"),
)
_ASK_AGAIN: Final = (
    (rb"nvbandwidth Version|memcpy (CE|SM) ", "text of nvbandwidth", "run `nvbandwidth --json`"),
    (rb"(?m)^\s*(READ|WRITE): bw=", "text of fio", "run `fio --output-format=json`"),
)


def kind_of(kind: str | None, data: bytes, name: str) -> str:
    """Return the kind of a result file, which has to be `kind` if that is given.

    Raises
    ------
    ExchangeError
        If it is another, or none that topo reads.
    """
    head = data[:_HEAD].replace(b"\x00", b"")
    found = next((known for known, mark in _MARKS if re.search(mark, head)), "")
    if found and kind in (None, found):
        return found
    if found:
        message = f"`{name}` has results of {found}, not of {kind}"
        raise ExchangeError(Finding("wrong-kind", message, help=f"write `--kind {found}`"))
    for mark, words, advice in _ASK_AGAIN:
        if re.search(mark, head):
            raise ExchangeError(Finding("wrong-kind", f"`{name}` is {words}", help=advice))
    message = f"`{name}` is {file_kind(data).words}, and has no results that topo reads"
    help = f"topo reads results of {', '.join(KINDS)}"
    raise ExchangeError(Finding("wrong-kind", message, help=help))
