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
preferred devices and the others. ``numactl(8)``. aws/aws-ofi-nccl 2daf7d3,
``src/nccl_ofi_topo.cpp``: EFA cards go to the GPUs that are nearest, and `NCCL_IB_HCA` is not read.
"""

from __future__ import annotations

import json
import shlex
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from itertools import chain
from typing import TYPE_CHECKING, Final

from topo.errors import Finding, UnknownNameError
from topo.exports.configuration import (
    MOST,
    Configuration,
    heading,
    no_card_near,
    nothing_to_set,
    several_servers,
    text_of,
    unnamed_findings,
    worths,
)
from topo.exports.formats import Exported
from topo.exports.schedulers import WRITERS as SCHEDULERS
from topo.phrases import listed, number_ranges, shortened, visible
from topo.study.processes import Process, servers
from topo.study.worth import Tool, advice
from topo.topology.locality import numa_nodes

if TYPE_CHECKING:
    from topo.study.affinity import Affinities

_RAILS: Final = 2  # that UCX uses by itself
_MOST_RAILS: Final = 4
_MOST_HCAS: Final = 32  # that NCCL takes
# A process's number on its server, as the usual launchers tell it.
_LOCAL_RANK: Final = "${SLURM_LOCALID:-${OMPI_COMM_WORLD_LOCAL_RANK:-${LOCAL_RANK:-}}}"

# JSON has no place for words: what is worth saying of such a file.
_ABOUT_JSON: Final[Mapping[Tool, str]] = {
    "nixl": (
        '`create_backend("UCX", ...)` takes the mapping of its GPU; GDS and GDS_MT have no '
        "parameter for a card or drive, and for Mooncake ask --as mooncake"
    ),
    "mooncake": (
        "MC_CUSTOM_TOPO_JSON is the path of this file; N of cuda:N is what the process calls the "
        "GPU, so one that sees one GPU alone (CUDA_VISIBLE_DEVICES) needs it as cuda:0"
    ),
}


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
    gpus = [device.name for device in topology.select(gpu)] if gpu else []
    if wrong := [name for name in gpus if topology[name].kind != "gpu"]:
        raise UnknownNameError(Finding("unknown-name", f"{listed(wrong, most=MOST)} is no GPU"))
    if (folding := topology.folding) is not None:
        standing = (folding.stands_in(name) or name for name in gpus)
        gpus = list(dict.fromkeys(map(folding.representative, standing)))
    kinds = servers(affinities, gpus)
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
    if tool in SCHEDULERS:
        return SCHEDULERS[tool](configurations)
    bodies = [*map(_WRITERS[tool], configurations)]
    if len({body.text for body in bodies}) > 1:
        raise several_servers(configurations)
    findings = tuple(dict.fromkeys(chain(*(body.findings for body in bodies))))
    if tool in _ABOUT_JSON:
        words = " ".join((*worths(configurations), _ABOUT_JSON[tool]))
        note = Finding("settings-worth", words, severity="note")
        return Exported(bodies[0].text, (*findings, note))
    return Exported(text_of(heading(configurations)) + bodies[0].text, findings)


def _needs_a_name(configuration: Configuration) -> None:
    """Refuse where no process's cards can be named."""
    named, _ = configuration.processes_by_cards()
    if named:
        return
    tool = configuration.tool
    unnamed = list(unnamed_findings(configuration))
    if not unnamed:
        raise no_card_near(tool)
    why = "; ".join(finding.message for finding in unnamed)
    raise nothing_to_set(tool, why, unnamed[0].help)


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
        reason = unsaid.get(process.gpu)
        yield f"# {visible(reason)}" if reason else line(process)
        return
    yield "# Process N of a server uses GPU N, in the order of PCI addresses."
    yield f'case "{_LOCAL_RANK}" in'
    for process in processes:
        if reason := unsaid.get(process.gpu):
            yield f"  # {process.number}) {visible(reason)}"
        else:
            yield f"  {process.number}) {line(process)} ;;  # {configuration.shown(process.gpu)}"
    yield f"  *) {otherwise} ;;"
    yield "esac"


# --- NCCL -----------------------------------------------------------------------------------------


def _nccl(configuration: Configuration) -> Exported:
    """Write NCCL's variables, which are RCCL's as well."""
    server, advised = configuration.server, configuration.advice
    named, unnamed = configuration.processes_by_cards()
    levels = (("NCCL_NET_GDR_LEVEL", advised.gdr), ("NCCL_P2P_LEVEL", advised.p2p))
    if not any(level.word for _, level in levels):
        _needs_a_name(configuration)
    findings = [*unnamed_findings(configuration)]
    lines: list[str] = []
    if server.maker == "amd":
        lines.append("# RCCL, of the AMD GPUs here, reads the variables of NCCL.")
    ports = dict.fromkeys(chain(*map(configuration.ports, named)))
    hcas = [f"{device}:{port}" for device, port in ports]
    cards = [server.topology[name] for name in server.cards]
    if cards and all(card.part.flag("libfabric") for card in cards):
        hcas = []
        lines.append("# libfabric's plugin (aws-ofi-nccl) takes the nearest of these cards itself.")
    elif hcas and not any(process.cards for process in unnamed):
        lines.append(f"export NCCL_IB_HCA='={','.join(hcas)}'")
    else:  # naming some would keep the others out
        lines += [f"# {visible(configuration.why_unnamed(process))}" for process in unnamed]
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
    return Exported(text_of(lines), tuple(findings))


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
    return Exported(text_of(lines), tuple(unnamed_findings(configuration)))


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
    server, advised = configuration.server, configuration.advice

    def nodes(process: Process) -> tuple[int, ...]:
        return process.of_cpu if advised.whole_cpu else process.numa

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
    return Exported(text_of(lines), findings)


_WRITERS: Final[Mapping[Tool, Callable[[Configuration], Exported]]] = {
    "nccl": _nccl,
    "ucx": _ucx,
    "nixl": _nixl,
    "mooncake": _mooncake,
    "numactl": _numactl,
}
