"""What a host's own tools say of it: each is run once, with limits, and asked for nothing else.

A command is a fixed list of words, run as the user who asks, without a shell or input, in no
folder of theirs. It has so many seconds, and may print so many bytes.
"""

from __future__ import annotations

import os
import re
import selectors
import signal
import subprocess
import time
from collections.abc import Callable, Iterable, Iterator, Mapping
from contextlib import suppress
from pathlib import Path
from typing import IO, TYPE_CHECKING, Final, Literal

from topo.discovery.host_sources import HostText
from topo.records import dataclass

if TYPE_CHECKING:
    from topo.discovery.pci import Function

State = Literal["ran", "absent", "denied", "failed", "timed-out", "too-long"]

LIMIT_S: Final = 30.0
MOST_BYTES: Final = 8 * 2**20
_MOST_WORDS: Final = 120  # characters of a tool's own words
_PIECE: Final = 2**16
_PAUSE_S: Final = 0.1
# Where administrators' tools lie, which are not on everybody's PATH.
_FOLDERS: Final = ("/usr/local/sbin", "/usr/sbin", "/sbin", "/usr/bin", "/bin", "/opt/rocm/bin")
_DENIED: Final = re.compile(
    r"permission denied|not permitted|access denied|must be root|root privileges|"
    r"superuser|insufficient permissions|run as root",
    re.IGNORECASE,
)
_UNPRINTABLE: Final = re.compile(r"[^\x20-\x7e]+")


@dataclass(frozen=True, slots=True)
class HostCommand:
    """One command.

    Parameters
    ----------
    words
        The program and its arguments.
    lacking
        What stays unknown without it: a sentence goes on with "without it ...".
    about
        Vendors or classes of the PCI devices that it is about, hexadecimal: on a host without such
        a device it is no news that the program is not there.
    """

    words: tuple[str, ...]
    lacking: str
    about: tuple[str, ...] = ()

    @property
    def line(self) -> str:
        """As it is typed."""
        return " ".join(self.words)

    def matters(self, functions: Iterable[Function]) -> bool:
        """Whether a host with these PCI functions has something to say by it."""
        numbers = (text for function in functions for text in (function.vendor, function.code[:4]))
        return not self.about or not set(self.about).isdisjoint(numbers)


_NVIDIA: Final = ("10de",)
_AMD: Final = ("1002",)
_RDMA: Final = ("15b3", "0207")
# In the order in which they are believed. Which importer reads one is told by what it prints.
COMMANDS: Final = tuple(
    HostCommand(tuple(line.split()), lacking, about)
    for line, lacking, about in (
        ("nvidia-smi topo -m", "NVLinks and what NVIDIA's driver calls near are unknown", _NVIDIA),
        (
            "nvidia-smi --query-gpu=index,name,pci.bus_id --format=csv",
            "GPUs that /sys does not show have no name",
            _NVIDIA,
        ),
        ("nvidia-smi nvlink -s", "the rate of each NVLink is that of the part", _NVIDIA),
        ("nvidia-smi topo -p2p r", "whether GPUs may reach each other is unknown", _NVIDIA),
        ("amd-smi topology", "xGMI links between GPUs are unknown", _AMD),
        ("rocm-smi --showtopo", "xGMI links between GPUs are unknown", _AMD),
        ("lspci -Dnnvvv", "parts that topo does not know by number have no name", ()),
        ("ibstat", "ports of network cards are as fast as /sys says, else a guess", _RDMA),
        ("ibdev2netdev", "which interface an RDMA device has is as /sys says", _RDMA),
        ("numactl -H", "how far NUMA nodes are from each other is unknown", ()),
        ("lscpu", "the CPU's model is as /proc says", ()),
        ("dmidecode -t slot -t memory", "channels and speed of the RAM are unknown", ()),
        ("nvme list", "drives are as /sys says", ("0108",)),
    )
)


@dataclass(frozen=True, slots=True)
class Ran:
    """What became of a command.

    Parameters
    ----------
    command
        The command.
    state
        Whether it ran to its end, and why not.
    data
        What it printed, also where it failed later.
    words
        Its own words on why it failed.
    """

    command: HostCommand
    state: State
    data: bytes = b""
    words: str = ""

    @property
    def text(self) -> HostText | None:
        """What it printed, where it ran and printed anything."""
        printed = self.state == "ran" and self.data.strip()
        return HostText(self.command.line, self.data) if printed else None


def gather(
    commands: tuple[HostCommand, ...] = COMMANDS,
    *,
    progress: Callable[[int, int], None] = lambda _done, _count: None,
) -> tuple[Ran, ...]:
    """Run the commands one after the other.

    Parameters
    ----------
    commands
        What to run.
    progress
        Is told how many are done, and how many there are.
    """
    results = []
    for done, command in enumerate(commands):
        progress(done, len(commands))
        results.append(run(command))
    return tuple(results)


def run(
    command: HostCommand,
    *,
    limit_s: float = LIMIT_S,
    most_bytes: int = MOST_BYTES,
    environment: Mapping[str, str] | None = None,
) -> Ran:
    """Run one command, and stop it where it exceeds its limits.

    Parameters
    ----------
    command
        What to run.
    limit_s, most_bytes
        How long it may take, and how much it may print.
    environment
        The environment, of which PATH says where the program lies; this process's by default.
    """
    environment = os.environ if environment is None else environment
    program = _program(command.words[0], environment.get("PATH", ""))
    if not program:
        return Ran(command, "absent")
    # Words in English, and nothing left behind by tools that are Python themselves.
    plain = {**environment, "LC_ALL": "C", "LANGUAGE": "C", "PYTHONDONTWRITEBYTECODE": "1"}
    try:
        process = subprocess.Popen(  # noqa: S603  (fixed words, no shell)
            [program, *command.words[1:]],
            stdin=subprocess.DEVNULL,
            stdout=subprocess.PIPE,
            stderr=subprocess.PIPE,
            env=plain,
            cwd="/",
            start_new_session=True,
        )
    except PermissionError:
        return Ran(command, "denied", words="it may not be run")
    except OSError as error:
        return Ran(command, "failed", words=(error.strerror or str(error)).lower())
    state: State = "failed"
    try:
        state, printed, complaint = _listen(process, time.monotonic() + limit_s, most_bytes)
    finally:
        if state != "ran":
            _stop(process)
        for stream in filter(None, (process.stdout, process.stderr)):
            stream.close()
    if state == "ran" and process.returncode:
        words = _first_line(complaint) or _first_line(printed)
        words = words or f"it ended with {process.returncode}"
        state = "denied" if _DENIED.search(words) else "failed"
        return Ran(command, state, printed, words)
    return Ran(command, state, printed)


def _program(name: str, path: str) -> str:
    """Return where a program lies, ``""`` where it is not installed; never the current folder."""
    for folder in dict.fromkeys((*path.split(os.pathsep), *_FOLDERS)):
        place = Path(folder, name)
        with suppress(OSError, ValueError):
            if folder.startswith("/") and place.is_file() and os.access(place, os.X_OK):
                return str(place)
    return ""


def _listen(
    process: subprocess.Popen[bytes], deadline: float, most_bytes: int
) -> tuple[State, bytes, bytes]:
    """Return what a process prints until it ends, or its time or space does."""
    assert process.stdout is not None
    assert process.stderr is not None
    texts: dict[int, bytearray] = {}
    with selectors.DefaultSelector() as selector:
        for stream in (process.stdout, process.stderr):
            texts[stream.fileno()] = bytearray()
            selector.register(stream, selectors.EVENT_READ)
        printed, complaint = texts.values()
        state: State = "ran"
        while selector.get_map() and state == "ran":
            has_ended = process.poll() is not None
            ready = list(_ready(selector))
            if not ready and has_ended:  # somebody it left behind keeps the stream
                break
            for stream, number in ready:
                piece = os.read(number, _PIECE)
                texts[number] += piece
                if not piece:
                    selector.unregister(stream)
            if len(printed) + len(complaint) > most_bytes:
                state = "too-long"
            elif time.monotonic() > deadline:
                state = "timed-out"
    if state == "ran":
        try:
            process.wait(max(0.0, deadline - time.monotonic()))
        except subprocess.TimeoutExpired:
            state = "timed-out"
    return state, bytes(printed[:most_bytes]), bytes(complaint[:_PIECE])


def _ready(selector: selectors.BaseSelector) -> Iterator[tuple[IO[bytes], int]]:
    for key, _ in selector.select(_PAUSE_S):
        yield key.fileobj, key.fd  # type: ignore[misc]  # what was registered is a stream


def _stop(process: subprocess.Popen[bytes]) -> None:
    """End a process and what it started; one that hangs in the kernel is not waited for."""
    with suppress(OSError):
        os.killpg(process.pid, signal.SIGKILL)
    with suppress(subprocess.TimeoutExpired):
        process.wait(1)


def _first_line(data: bytes) -> str:
    for line in data.decode("utf-8", "replace").splitlines():
        if words := _UNPRINTABLE.sub(" ", line).strip():
            return words[:_MOST_WORDS]
    return ""
