"""What a tool is told on one kind of server, and what the writers of every format say of it alike.

Whose it is and what it is worth, which a file begins with; and what cannot be said, and why.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from textwrap import fill
from typing import TYPE_CHECKING, Final

from topo.errors import ExchangeError, Finding
from topo.phrases import counted, listed, shortened, visible
from topo.records import dataclass
from topo.topology.topology import Topology
from topo.units import format_rate
from topo.views.resources import classes_of

if TYPE_CHECKING:
    from topo.study.processes import Process, Server
    from topo.study.worth import Advice, Throughput, Tool, Worth

MOST: Final = 4
"""Names in a sentence."""
_WIDTH: Final = 96
_NAMES: Final[Mapping[Tool, str]] = {
    "nccl": "NCCL",
    "ucx": "UCX",
    "nixl": "NIXL",
    "mooncake": "Mooncake",
    "slurm": "Slurm's gres.conf",
    "slurm-topology": "Slurm's topology.conf",
    "slurm-topology-yaml": "Slurm's topology.yaml",
    "dra": "Kubernetes",
    "numactl": "numactl",
}
_BY_RDMA_NAME: Final = ("nccl", "ucx", "nixl", "mooncake")
_BY_ITSELF: Final[Mapping[Tool, str]] = {
    "nccl": "NCCL takes the widest, then the nearest cards itself where it sees the PCIe tree",
    "ucx": "UCX takes the two best devices of the NUMA node, and which of equal ones is open",
    "nixl": "its UCX takes the two best devices of the NUMA node, and which of equal ones is open",
    "mooncake": "newer releases take the nearest card by PCI path, older ones any at random",
    "slurm": "without Cores a process, and so its memory, may be on any socket",
    "dra": "without the constraint any free card of the node may be given",
    "numactl": "where nothing binds a process its memory may be on any NUMA node",
}


@dataclass(frozen=True, slots=True)
class Configuration:
    """What a tool is told on one kind of server."""

    tool: Tool
    server: Server
    advice: Advice

    @property
    def topology(self) -> Topology:
        """The machine."""
        return self.server.topology

    def processes_by_cards(self) -> tuple[list[Process], list[Process]]:
        """Return the processes whose cards all have RDMA names, and the others."""
        named: list[Process] = []
        unnamed: list[Process] = []
        for process in self.server.processes:
            ports = [self.server.cards[card].ports for card in process.cards]
            (named if ports and all(ports) else unnamed).append(process)
        return named, unnamed

    def ports(self, process: Process) -> list[tuple[str, int]]:
        """Return the RDMA ports of a process's cards."""
        return [port for card in process.cards for port in self.server.cards[card].ports]

    def shown(self, device: str) -> str:
        """Return a device's name in its own server."""
        return self.server.inside(device)

    def why_unnamed(self, process: Process) -> str:
        """Say why a process's cards cannot be named."""
        if not process.cards:
            return f"{self.shown(process.gpu)}: no network card is near"
        nameless = (card for card in process.cards if not self.server.cards[card].ports)
        return (
            f"{self.shown(process.gpu)}: no RDMA name of {listed(map(self.shown, nameless))} here"
        )


def text_of(lines: Iterable[str]) -> str:
    """Return the text of lines."""
    return "".join(f"{line}\n" for line in lines)


# --- what a file begins with ----------------------------------------------------------------------


def worth_words(configuration: Configuration) -> str:
    """Say what settings are worth: what all GPUs have with them, and without."""
    worth = configuration.advice.worth
    if worth is None:
        return ""
    count = len(configuration.server.processes)
    gpus = "One GPU" if count == 1 else f"{count} GPUs at once"
    ends = "pinned RAM" if configuration.tool in ("slurm", "numactl") else "network cards"
    with_them = "with this" if _names_a_card(configuration) else "with the cards named"
    return (
        f"{gpus}, {ends} to GPU by {listed(worth.via)}: {_rate(worth.settings)} {with_them}, "
        f"{_default(worth)} by default: {_BY_ITSELF[configuration.tool]}.{_limits(worth)}"
    )


def _limits(worth: Worth) -> str:
    """Return what stops all with the settings, and without them where that is something else."""
    with_them, by_itself = (
        classes_of(throughput.bound) for throughput in (worth.settings, worth.slowest)
    )
    if not with_them:
        return ""
    if worth.is_same or not by_itself or by_itself == with_them:
        return f" Limited by {with_them}."
    slowest = "" if worth.is_known else ", at the slowest,"
    return f" Limited by {with_them}; by default{slowest} by {by_itself}."


def _names_a_card(configuration: Configuration) -> bool:
    """Whether a file by RDMA names can name anything; files of other tools need none."""
    if configuration.tool not in _BY_RDMA_NAME:
        return True
    server = configuration.server
    used = {card for process in server.processes for card in process.cards}
    return any(server.cards[card].ports for card in used)


def _default(worth: Worth) -> str:
    if worth.is_same:
        return f"{'at most ' * worth.slowest.at_most * (not worth.settings.at_most)}the same"
    low, high = worth.slowest, worth.fastest
    if worth.is_known:
        return _rate(low)
    return f"{_rate(low)} to {_rate(high)}"


def _rate(throughput: Throughput) -> str:
    return f"{'at most ' * throughput.at_most}{format_rate(throughput.rate)}"


def heading(configurations: Sequence[Configuration]) -> Iterator[str]:
    """Yield the comment that a file begins with: whose it is, and what it is worth."""
    first = configurations[0]
    topology = first.topology
    yield f"# {_NAMES[first.tool]} on {visible(topology.name)}, by topo affinity."
    for words in worths(configurations):
        text = fill(visible(words), _WIDTH, break_long_words=False, break_on_hyphens=False)
        yield from (f"# {line}" for line in text.split("\n"))


def worths(configurations: Sequence[Configuration]) -> Iterator[str]:
    """Yield what settings are worth on each kind of server, with its names where it has some."""
    for configuration in configurations:
        if words := worth_words(configuration):
            names = shortened(configuration.server.names)
            yield f"{names}: {words}" if names else words


def unnamed_findings(configuration: Configuration) -> Iterator[Finding]:
    """Yield what cannot be named: cards without RDMA names, or with odd ones."""
    server = configuration.server
    used = dict.fromkeys(card for process in server.processes for card in process.cards)
    for card in used:
        if odd := server.cards[card].odd:
            message = f"`{odd}` of {server.inside(card)} is no name of an RDMA device"
            advice = "letters, digits, `_`, `-` and `.`, as /sys/class/infiniband lists them"
            place = configuration.topology[card].place
            yield Finding("odd-rdma-name", message, severity="warning", place=place, help=advice)
    nameless = [
        card for card in used if not server.cards[card].ports and not server.cards[card].odd
    ]
    if nameless:
        names = shortened(map(server.inside, nameless))
        them = "it" if len(nameless) == 1 else "them"
        yield Finding(
            "no-rdma-name",
            f"no RDMA name of {names} is stated, so nothing names {them}",
            severity="warning",
            place=configuration.topology[nameless[0]].place,
            help="give a card the name that /sys/class/infiniband has: `rdma: mlx5_0`",
        )


# --- what cannot be said --------------------------------------------------------------------------


def nothing_to_set(tool: Tool, why: str, advice: str) -> ExchangeError:
    """Return the error where a tool can be told nothing."""
    message = f"{_NAMES[tool]} can be told nothing: {why}"
    return ExchangeError(Finding("nothing-to-set", message, help=advice))


def no_card_near(tool: Tool) -> ExchangeError:
    """Return the error where there are no cards to name."""
    return nothing_to_set(tool, "no network card is near a GPU", "numactl and slurm need no card")


def several_servers(configurations: Sequence[Configuration]) -> ExchangeError:
    """Return the error that asks for one of several kinds of server."""
    kinds = [
        shortened(configuration.server.names) or f"that of {configuration.server.processes[0].gpu}"
        for configuration in configurations
    ]
    first = configurations[0].server.processes[0].gpu
    name = first.rpartition(".")[0]
    message = (
        f"{counted(len(kinds), 'kind')} of server need other settings each: "
        f"{listed(kinds, most=MOST)}"
    )
    advice = f"ask about one: --gpu {name + '.gpu' if name else first}"
    return ExchangeError(Finding("several-servers", message, help=advice))
