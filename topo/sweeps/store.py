"""The file that a sweep writes its rows into while it runs, and goes on from when it was stopped.

Rows are appended as designs are answered, each with the fingerprint of its sweep. What was written
whole is never lost or computed again; a last line that was cut off while it was written is dropped.
When all designs are there, the file is put into their order, whole or not at all.
"""

from __future__ import annotations

import csv
import io
import json
import os
import stat
from collections.abc import Iterable, Iterator, Mapping, Sequence
from contextlib import contextmanager, suppress
from pathlib import Path
from typing import TYPE_CHECKING, Any, Final, Self

from topo.errors import Finding, LibraryError, TopoError
from topo.files import replace_file, unwritable
from topo.sweeps.rows import columns_of, outcome_in, row_of

if TYPE_CHECKING:
    from topo.study.sweep import Sweep
    from topo.study.variants import Outcome


SUFFIXES: Final = (".jsonl", ".csv", ".parquet")
_FLAGS: Final = {"True": True, "False": False}
_BEGINNING: Final = 4096  # bytes by which a file of something else is known


class Store:
    """The rows of one sweep in a file of JSON lines or CSV, by the number of the design.

    Parameters
    ----------
    sweep
        What the rows are of.
    path
        The file; its suffix says which of the two it is.

    Raises
    ------
    TopoError
        If the file cannot be read or written, holds something else, or is being written already.
    """

    def __init__(self, sweep: Sweep, path: str) -> None:
        self._sweep = sweep
        self._path = path
        self._form: _JsonLines | _Csv = (_Csv if path.endswith(".csv") else _JsonLines)(sweep)
        self.known: dict[int, Outcome] = {}
        """What is there of each design."""
        with _telling(path):
            # Not truncated: what is there counts.
            handle = os.open(path, os.O_RDWR | os.O_CREAT | getattr(os, "O_NONBLOCK", 0), 0o666)
            self._file = io.FileIO(handle, "r+")
        try:
            self._lock()
            with _telling(path):
                self._end = self._read()
        except BaseException:
            self.close()
            raise

    def _lock(self) -> None:
        with suppress(ImportError):
            import fcntl

            try:
                fcntl.flock(self._file, fcntl.LOCK_EX | fcntl.LOCK_NB)
            except BlockingIOError:
                message = f"`{self._path}` is being written by another sweep"
                raise TopoError(Finding("sweep-running", message, help="wait for it")) from None
            except OSError:  # a file system without locks
                return

    def _read(self) -> int:
        """Read the rows that are whole, and return where they end."""
        if not stat.S_ISREG(os.fstat(self._file.fileno()).st_mode):
            raise OSError(None, "It is no regular file")
        start, head = self._form.start, self._form.head
        content = self._file.read(_BEGINNING)
        if not start.startswith(content[: len(start)]):
            raise self._other(content)
        content += self._file.readall()
        end = content.rfind(b"\n") + 1
        # not `splitlines`, which knows more ends of a line than are written here
        lines = content[len(head) : end].decode("utf-8", "replace").split("\n")[:-1]
        for line in lines:
            try:
                row = self._form.row(line)
                if row["sweep"] != self._sweep.fingerprint:
                    raise self._other(content)
                self.known[row["design"]] = outcome_in(row)
            except (ValueError, KeyError, TypeError):
                raise self._other(content) from None
        return end

    def _other(self, content: bytes) -> TopoError:
        """Return the error for a file that holds something else, as far as can be told."""
        line = content.split(b"\n", 1)[0].decode("utf-8", "replace")
        columns: Sequence[str] = ()
        with suppress(ValueError):
            columns = list(json.loads(line)) if line[:1] == "{" else next(csv.reader([line]))
        advice = "write into another file, or delete it"
        own = columns_of(self._sweep)
        if list(columns[:2]) != list(own[:2]):
            message = f"`{self._path}` is there, and holds no rows of a sweep"
        elif list(columns) != list(own):
            axes = ", ".join(columns[2 : columns.index("verdict")]) if "verdict" in columns else ""
            message = f"`{self._path}` holds the rows of another sweep: {axes}"
        else:
            message = (
                f"`{self._path}` holds the rows of another sweep: the axes are called the same, "
                "and a value, the machine, the question or topo itself was another"
            )
        return TopoError(Finding("other-sweep", message, help=advice))

    def append(self, outcomes: Iterable[tuple[int, Outcome]]) -> None:
        """Write some rows behind the others.

        Raises
        ------
        TopoError
            If they cannot be written; the file is as it was before.
        """
        outcomes = tuple(outcomes)
        text = b"" if self._end else self._form.head
        text += b"".join(
            self._form.line(row_of(self._sweep, number, outcome)) for number, outcome in outcomes
        )
        try:
            self._file.seek(self._end)
            self._file.truncate()  # a line that was cut off
            rest = memoryview(text)
            while rest:
                rest = rest[self._file.write(rest) :]
        except OSError as error:
            with suppress(OSError):
                self._file.truncate(self._end)
            raise _unwritable(self._path, error, len(self.known)) from None
        self._end += len(text)
        self.known.update(outcomes)

    def finish(self) -> None:
        """Put the rows into the order of the designs, where they are not.

        Raises
        ------
        TopoError
            If that cannot be written; all rows are there all the same.
        """
        numbers = list(self.known)
        if numbers != sorted(numbers):
            self.known = dict(sorted(self.known.items()))
            rows = (row_of(self._sweep, *item) for item in self.known.items())
            content = self._form.head + b"".join(map(self._form.line, rows))
            with _telling(self._path, len(self.known)):
                replace_file(Path(self._path), content)
        elif self._end == 0 and self._form.head:
            self.append(())
        self.close()

    def close(self) -> None:
        """Let go of the file."""
        with suppress(OSError):
            self._file.close()

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        self.close()


@contextmanager
def _telling(path: str, kept: int = 0) -> Iterator[None]:
    try:
        yield
    except OSError as error:
        raise _unwritable(path, error, kept) from None


def _unwritable(path: str, error: OSError, kept: int) -> TopoError:
    """Return the error for a file that takes no more, with what it has."""
    (finding,) = unwritable(f"`{path}`", error).findings
    if not kept:
        return TopoError(finding)
    notes = (f"{kept:,} designs are in it; the same command goes on from there",)
    return TopoError(Finding(finding.code, finding.message, notes=notes))


# --- forms ----------------------------------------------------------------------------------------


class _JsonLines:
    """One JSON object a line."""

    head = b""

    def __init__(self, sweep: Sweep) -> None:
        self.start = f'{{"sweep": "{sweep.fingerprint}", "design": '.encode()

    def line(self, row: Mapping[str, Any]) -> bytes:
        return json.dumps(row, ensure_ascii=False).encode() + b"\n"

    def row(self, line: str) -> dict[str, Any]:
        row = json.loads(line)
        if not isinstance(row, dict) or type(row["design"]) is not int:
            raise TypeError
        return row


class _Csv:
    """Comma-separated values under a line of column names; what is not known is empty."""

    def __init__(self, sweep: Sweep) -> None:
        self._columns = columns_of(sweep)
        self.head = self._text(self._columns)
        self.start = self.head

    def _text(self, values: Iterable[Any]) -> bytes:
        text = io.StringIO()
        flat = (value.replace("\n", " ") if isinstance(value, str) else value for value in values)
        csv.writer(text, lineterminator="\n").writerow(flat)
        return text.getvalue().encode()

    def line(self, row: Mapping[str, Any]) -> bytes:
        return self._text("" if row[name] is None else row[name] for name in self._columns)

    def row(self, line: str) -> dict[str, Any]:
        values = next(csv.reader([line], strict=True))
        row: dict[str, Any] = dict(zip(self._columns, values, strict=True))
        row["design"] = int(row["design"])
        row["would_feed"] = int(row["would_feed"]) if row["would_feed"] else None
        for name in ("rate_bytes_per_s", "time_s", "cost"):
            row[name] = float(row[name]) if row[name] else None
        for name in ("at_most", "certified"):
            row[name] = _FLAGS[row[name]]
        return row


# --- Parquet --------------------------------------------------------------------------------------


def require_parquet() -> None:
    """Raise where pyarrow is not there, before anything is computed.

    Raises
    ------
    LibraryError
        If it is not installed.
    """
    try:
        import pyarrow.parquet  # noqa: F401
    except ImportError:
        raise LibraryError("pyarrow", "writing Parquet") from None


def write_parquet(sweep: Sweep, path: str, known: Mapping[int, Outcome]) -> None:
    """Write the rows as a Parquet file, whole or not at all.

    Raises
    ------
    LibraryError
        If pyarrow is not installed.
    TopoError
        If it cannot be written.
    """
    require_parquet()
    import pyarrow
    from pyarrow import parquet

    types = dict.fromkeys(("design", "would_feed"), pyarrow.int64())
    types |= dict.fromkeys(("at_most", "certified"), pyarrow.bool_())
    types |= dict.fromkeys(("rate_bytes_per_s", "time_s", "cost"), pyarrow.float64())
    columns = columns_of(sweep)
    schema = pyarrow.schema([(name, types.get(name, pyarrow.string())) for name in columns])
    rows = [row_of(sweep, number, outcome) for number, outcome in sorted(known.items())]
    table = pyarrow.Table.from_pylist(rows, schema=schema)
    content = io.BytesIO()
    parquet.write_table(table, content)
    with _telling(path, len(known)):
        replace_file(Path(path), content.getvalue())
