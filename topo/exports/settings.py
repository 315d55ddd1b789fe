"""What makes other programs choose as `topo affinity` says: variables, parameters, wrappers.

What a program cannot be told, since the file does not state the name that it goes by, is a
commented line and a finding; no name is made up.

References
----------
NVIDIA/nccl 5067397, ``docs/userguide/source/env.rst``: `NCCL_IB_HCA` (``=`` for exact names, a port
behind a colon), `NCCL_TOPO_FILE`, `NCCL_NET_GDR_LEVEL`, `NCCL_P2P_LEVEL`; RCCL reads the same ones,
https://rocm.docs.amd.com/projects/rccl/en/latest/api-reference/env-variables.html. openucx/ucx
026cde8, ``docs/source/faq.md``: `UCX_NET_DEVICES`, `UCX_MAX_RNDV_RAILS` (up to 4);
``src/uct/ib/base/ib_md.c``: `UCX_IB_GPU_DIRECT_RDMA`. ai-dynamo/nixl 8770b65,
``src/plugins/ucx/ucx_backend.cpp``: `device_list`, devices with a comma and a space between them,
each of which gets port 1. kvcache-ai/Mooncake 3b5a594, ``docs/source/api-reference/cpp/tent.md``,
``mooncake-transfer-engine/src/topology.cpp``: for each ``cpu:N`` and ``cuda:N`` (``hip:N``) the
preferred devices and the others. ``numactl(8)``.
"""

from __future__ import annotations

import json
import shlex
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from textwrap import fill
from typing import TYPE_CHECKING, Final

from topo.errors import ExchangeError, Finding, UnknownNameError
from topo.exports.formats import Exported
from topo.phrases import counted, listed, number_ranges, shortened, visible
from topo.records import dataclass
from topo.study.processes import Process, Server, servers
from topo.study.worth import Advice, Throughput, Tool, Worth, advice
from topo.topology.locality import numa_nodes
from topo.topology.topology import Topology
from topo.units import format_rate

if TYPE_CHECKING:
    from topo.study.affinity import Affinities

_RAILS: Final = 2  # that UCX uses by itself
_MOST_RAILS: Final = 4
_MOST_HCAS: Final = 32  # that NCCL takes
_MOST: Final = 4  # names in a sentence
_WIDTH: Final = 96
# A process's number on its server, as the usual launchers tell it.
_LOCAL_RANK: Final = "${SLURM_LOCALID:-${OMPI_COMM_WORLD_LOCAL_RANK:-${LOCAL_RANK:-}}}"
_NAMES: Final[Mapping[Tool, str]] = {
    "nccl": "NCCL",
    "ucx": "UCX",
    "nixl": "NIXL",
    "mooncake": "Mooncake",
    "slurm": "Slurm's gres.conf",
    "slurm-topology": "Slurm's topology.conf",
    "dra": "Kubernetes",
    "numactl": "numactl",
}
_BY_ITSELF: Final[Mapping[Tool, str]] = {
    "nccl": "NCCL takes the widest, then the nearest cards itself where it sees the PCIe tree",
    "ucx": "UCX takes the two best devices of the NUMA node, and which of equal ones is open",
    "nixl": "its UCX takes the two best devices of the NUMA node, and which of equal ones is open",
    "mooncake": "newer releases take the nearest card by PCI path, older ones any at random",
    "slurm": "without Cores a process, and so its memory, may be on any socket",
    "dra": "without the constraint any free card of the node may be given",
    "numactl": "where nothing binds a process its memory may be on any NUMA node",
}


# JSON has no place for words: what is worth saying of such a file.
_ABOUT_JSON: Final[Mapping[Tool, str]] = {
    "nixl": '`create_backend("UCX", ...)` takes the mapping of its GPU; GDS and GDS_MT have no '
    "parameter for a card or drive, and for Mooncake ask --as mooncake",
    "mooncake": "MC_CUSTOM_TOPO_JSON is the path of this file",
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


def configurations(affinities: Affinities, tool: Tool, gpu: str = "") -> tuple[Configuration, ...]:
    """Return what a tool is told on each kind of server.

    Parameters
    ----------
    affinities
        Which card is whose.
    tool
        A word of `topo.study.worth.TOOLS`.
    gpu
        A GPU's name, stem or range: the processes to tell about; all where it is empty.

    Raises
    ------
    UnknownNameError
        If there is no such GPU.
    ExchangeError
        If there is no GPU at all.
    """
    topology = affinities.topology
    asked = [device.name for device in topology.select(gpu)] if gpu else []
    if wrong := [name for name in asked if topology[name].kind != "gpu"]:
        raise UnknownNameError(Finding("unknown-name", f"{listed(wrong, most=_MOST)} is no GPU"))
    if (folding := topology.folding) is not None:
        standing = (folding.stands_in(name) or name for name in asked)
        asked = list(dict.fromkeys(map(folding.representative, standing)))
    kinds = servers(affinities, asked)
    if not kinds:
        raise nothing_to_set(tool, f"{topology.name} has no GPU", "settings are those of GPUs")
    return tuple(Configuration(tool, server, advice(server, tool)) for server in kinds)


def write_settings(configurations: Sequence[Configuration]) -> Exported:
    """Write what makes a tool choose so.

    Parameters
    ----------
    configurations
        Of one tool, one for each kind of server.

    Raises
    ------
    ExchangeError
        If nothing at all can be said, or something else to each of several kinds of server in a
        format that has no place for servers.
    """
    tool = configurations[0].tool
    unnamed = len(configurations) > 1 and not all(each.server.names for each in configurations)
    if tool == "slurm" and unnamed:  # nothing would tell whose a line is
        raise ExchangeError(several_servers(configurations))
    if tool in ("slurm", "slurm-topology", "dra"):
        from topo.exports.schedulers import WRITERS as SCHEDULERS

        return SCHEDULERS[tool](configurations)
    bodies = [_WRITERS[tool](each) for each in configurations]
    if len({each.text for each in bodies}) > 1:
        raise ExchangeError(several_servers(configurations))
    findings = tuple(dict.fromkeys(finding for each in bodies for finding in each.findings))
    if tool in _ABOUT_JSON:
        words = " ".join((*_worths(configurations), _ABOUT_JSON[tool]))
        note = Finding("settings-worth", words, severity="note")
        return Exported(bodies[0].text, (*findings, note))
    return Exported(_text(heading(configurations)) + bodies[0].text, findings)


def several_servers(configurations: Sequence[Configuration]) -> Finding:
    """Return the finding that asks for one of several kinds of server."""
    kinds = [
        shortened(each.server.names) or f"that of {each.server.processes[0].gpu}"
        for each in configurations
    ]
    first = configurations[0].server.processes[0].gpu
    name = first.rpartition(".")[0]
    return Finding(
        "several-servers",
        f"{counted(len(kinds), 'kind')} of server need other settings each: "
        f"{listed(kinds, most=_MOST)}",
        help=f"ask about one: --gpu {name + '.gpu' if name else first}",
    )


def nothing_to_set(tool: Tool, why: str, advice: str) -> ExchangeError:
    """Return the error where a tool can be told nothing."""
    message = f"{_NAMES[tool]} can be told nothing: {why}"
    return ExchangeError(Finding("nothing-to-set", message, help=advice))


# --- words ----------------------------------------------------------------------------------------


def worth_words(configuration: Configuration) -> str:
    """Say what settings are worth: what all GPUs have with them, and without."""
    worth = configuration.advice.worth
    if worth is None:
        return ""
    count = len(configuration.server.processes)
    gpus = "One GPU" if count == 1 else f"{count} GPUs at once"
    ends = "pinned RAM" if configuration.tool in ("slurm", "numactl") else "network cards"
    return (
        f"{gpus}, {ends} to GPU by {listed(worth.via)}: {_rate(worth.settings)} with this, "
        f"{_default(worth)} by default: {_BY_ITSELF[configuration.tool]}."
    )


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
    yield f"# {_NAMES[first.tool]} on {comment(topology.name)}, by topo affinity."
    for words in _worths(configurations):
        yield from comments(words)


def _worths(configurations: Sequence[Configuration]) -> Iterator[str]:
    for each in configurations:
        if words := worth_words(each):
            names = shortened(each.server.names)
            yield f"{names}: {words}" if names else words


def comment(text: str) -> str:
    """Return a text as the words of one comment, whatever stands in it."""
    return visible(text)


def comments(text: str) -> Iterator[str]:
    """Yield a text as comments of usual width."""
    words = fill(comment(text), _WIDTH, break_long_words=False, break_on_hyphens=False)
    yield from (f"# {line}" for line in words.split("\n"))


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
        yield Finding(
            "no-rdma-name",
            f"no RDMA name of {names} is stated, so nothing names {_them(nameless)}",
            severity="warning",
            place=configuration.topology[nameless[0]].place,
            help="give a card the name that /sys/class/infiniband has: `rdma: mlx5_0`",
        )


def _them(names: Sequence[str]) -> str:
    return "it" if len(names) == 1 else "them"


def _needs_a_name(configuration: Configuration) -> None:
    """Refuse where no process's cards can be named."""
    named, _ = configuration.processes_by_cards()
    if named:
        return
    tool = configuration.tool
    found = list(unnamed_findings(configuration))
    if not found:
        raise nothing_to_set(
            tool, "no network card is near a GPU", "numactl and slurm need no card"
        )
    why = "; ".join(finding.message for finding in found)
    raise nothing_to_set(tool, why, found[0].help)


def _per_process(
    configuration: Configuration,
    line: Callable[[Process], str],
    *,
    unsaid: Mapping[str, str],
    otherwise: str,
) -> Iterator[str]:
    """Yield shell lines: one process's, or a choice by its number on the server."""
    processes = configuration.server.processes
    if len(processes) == 1:
        (process,) = processes
        said = unsaid.get(process.gpu)
        yield f"# {comment(said)}" if said else line(process)
        return
    yield "# Process N of a server uses GPU N, in the order of PCI addresses."
    yield f'case "{_LOCAL_RANK}" in'
    for process in processes:
        if said := unsaid.get(process.gpu):
            yield f"  # {process.number}) {comment(said)}"
        else:
            yield f"  {process.number}) {line(process)} ;;  # {configuration.shown(process.gpu)}"
    yield f"  *) {otherwise} ;;"
    yield "esac"


def _text(lines: Iterable[str]) -> str:
    return "".join(f"{line}\n" for line in lines)


# --- NCCL -----------------------------------------------------------------------------------------


def _nccl(configuration: Configuration) -> Exported:
    """Write NCCL's variables, which are RCCL's as well."""
    server, told = configuration.server, configuration.advice
    named, unnamed = configuration.processes_by_cards()
    levels = (("NCCL_NET_GDR_LEVEL", told.gdr), ("NCCL_P2P_LEVEL", told.p2p))
    if not any(level.word for _, level in levels):
        _needs_a_name(configuration)
    findings = [*unnamed_findings(configuration)]
    lines: list[str] = []
    if server.maker == "amd":
        lines.append("# RCCL, of the AMD GPUs here, reads the variables of NCCL.")
    ports = dict.fromkeys(port for each in named for port in configuration.ports(each))
    hcas = [f"{device}:{port}" for device, port in ports]
    if hcas and not any(process.cards for process in unnamed):
        lines.append(f"export NCCL_IB_HCA='={','.join(hcas)}'")
    else:  # naming some would keep the others out
        lines += [f"# {comment(configuration.why_unnamed(process))}" for process in unnamed]
        if hcas:
            lines.append(f"# export NCCL_IB_HCA='={','.join(hcas)},...'")
    if len(hcas) > _MOST_HCAS:
        message = f"{len(hcas)} RDMA devices are named, and NCCL takes {_MOST_HCAS}"
        findings.append(Finding("too-many-hcas", message, severity="warning"))
    for variable, level in levels:
        if level.word and level.is_sure:
            lines.append(f"export {variable}={level.word}")
        elif level.word:
            lines.append(
                "# Faster in theory; what passes between root complexes is not known here."
            )
            lines.append(f"# export {variable}={level.word}")
    if len(configuration.topology.hosts) == 1:
        lines.append("# Where a virtual machine or container hides the PCIe tree:")
        lines.append("# topo export nccl FILE -o topo.xml")
        lines.append('# export NCCL_TOPO_FILE="$PWD/topo.xml"')
    return Exported(_text(lines), tuple(findings))


# --- UCX and NIXL ---------------------------------------------------------------------------------


def _ucx(configuration: Configuration) -> Exported:
    """Write UCX's variables of each process."""
    _needs_a_name(configuration)
    _, unnamed = configuration.processes_by_cards()

    def exports(process: Process) -> str:
        ports = [f"{device}:{port}" for device, port in configuration.ports(process)]
        variables = {"UCX_NET_DEVICES": ",".join(ports)}
        if len(ports) > _RAILS:
            variables["UCX_MAX_RNDV_RAILS"] = str(min(len(ports), _MOST_RAILS))
        if configuration.advice.by_ram:
            variables["UCX_IB_GPU_DIRECT_RDMA"] = "no"
        return "export " + " ".join(f"{key}={shlex.quote(it)}" for key, it in variables.items())

    unsaid = {process.gpu: configuration.why_unnamed(process) for process in unnamed}
    lines: list[str] = []
    if configuration.advice.by_ram:
        lines.append("# RAM on the way is faster here than GPUDirect RDMA.")
    otherwise = "echo 'no GPU has this number: UCX_NET_DEVICES is not set' >&2"
    lines += _per_process(configuration, exports, unsaid=unsaid, otherwise=otherwise)
    return Exported(_text(lines), tuple(unnamed_findings(configuration)))


def _nixl(configuration: Configuration) -> Exported:
    """Write the parameters of NIXL's backends by GPU."""
    _needs_a_name(configuration)
    named, _ = configuration.processes_by_cards()
    parameters = {
        configuration.shown(process.gpu): {
            "UCX": {"device_list": ", ".join(dict.fromkeys(d for d, _ in ports))}
        }
        for process in named
        for ports in [configuration.ports(process)]
    }
    findings = tuple(unnamed_findings(configuration))
    return Exported(json.dumps(parameters, indent=2) + "\n", findings)


# --- Mooncake -------------------------------------------------------------------------------------


def _mooncake(configuration: Configuration) -> Exported:
    """Write Mooncake's NIC priority matrix."""
    _needs_a_name(configuration)
    server, topology = configuration.server, configuration.topology
    named, _ = configuration.processes_by_cards()
    every = [device for card in server.cards.values() for device in card.devices]

    def row(preferred: Iterable[str]) -> list[list[str]]:
        first = list(dict.fromkeys(preferred))
        return [first, [device for device in every if device not in first]]

    numa = {card: set(numa_nodes(topology, card)) for card in server.cards}
    nodes = sorted({node for cpu in server.cpus for node in topology[cpu].numa})
    matrix = {
        f"cpu:{node}": row(
            device
            for card in server.cards
            if node in numa[card]
            for device in server.cards[card].devices
        )
        for node in nodes
    }
    prefix = "hip" if server.maker == "amd" else "cuda"
    for process in named:
        devices = [device for device, _ in configuration.ports(process)]
        matrix[f"{prefix}:{process.number}"] = row(devices)
    findings = [*unnamed_findings(configuration)]
    if not nodes:
        findings.append(no_numa_node(configuration, "RAM has no row here, and any card serves it"))
    rows = (f"  {json.dumps(key)}: {json.dumps(value)}" for key, value in matrix.items())
    return Exported("{\n" + ",\n".join(rows) + "\n}\n", tuple(findings))


# --- numactl --------------------------------------------------------------------------------------


def no_numa_node(configuration: Configuration, what: str) -> Finding:
    """Return the finding that NUMA nodes have no numbers."""
    server = configuration.server
    place = configuration.topology[server.cpus[0]].place if server.cpus else None
    return Finding(
        "no-numa-node",
        f"the numbers of the NUMA nodes are not stated: {what}",
        severity="warning",
        place=place,
        help="give each CPU the numbers that `lscpu` prints: `numa: [0, 1]`",
    )


def _numactl(configuration: Configuration) -> Exported:
    """Write a wrapper that binds each process to the cores and memory beside its GPU."""
    server, told = configuration.server, configuration.advice

    def nodes(process: Process) -> tuple[int, ...]:
        return process.of_cpu if told.whole_cpu else process.numa

    def line(process: Process) -> str:
        cores, memory = number_ranges(process.numa or nodes(process)), number_ranges(nodes(process))
        bind = "membind" if len(nodes(process)) == 1 else "interleave"
        return f'exec numactl --cpunodebind={cores} --{bind}={memory} -- "$@"'

    unsaid = {
        process.gpu: f"{configuration.shown(process.gpu)}: the NUMA node of "
        f"{configuration.shown(process.cpu) or 'no CPU'} is not stated"
        for process in server.processes
        if not nodes(process)
    }
    findings: tuple[Finding, ...] = ()
    if unsaid:
        gpus = shortened(map(server.inside, unsaid))
        finding = no_numa_node(configuration, f"nothing binds {gpus}")
        if len(unsaid) == len(server.processes):
            raise nothing_to_set("numactl", finding.message, finding.help)
        findings = (finding,)
    lines = [
        "# bash FILE COMMAND ...",
        *_per_process(configuration, line, unsaid=unsaid, otherwise='exec "$@"'),
    ]
    return Exported(_text(lines), findings)


_WRITERS: Final[Mapping[Tool, Callable[[Configuration], Exported]]] = {
    "nccl": _nccl,
    "ucx": _ucx,
    "nixl": _nixl,
    "mooncake": _mooncake,
    "numactl": _numactl,
}
