"""What makes schedulers give GPUs the cores and cards that `topo affinity` says.

References
----------
SchedMD/slurm 284c3b9, ``gres.conf(5)``: one GPU a line where it has Links, a number for each GPU,
-1 for itself; Cores are logical numbers of all cores of a socket, counted from the first socket on;
``topology.conf(5)``: switches with nodes or switches below them, a tree, names of 64 characters.
Kubernetes, https://kubernetes.io/docs/reference/node/dra-standard-device-attributes/: `pcieRoot`
and `numaNode` as attributes that devices of several drivers match. kubernetes-sigs/dranet f258477,
``examples/demo_nvidia_dranet/resourceclaims.yaml``, ``pkg/apis/attributes.go``: class `dranet`,
attributes `rdma` and `rdmaDevice`; its class of GPUs is `gpu.nvidia.com`. ROCm/k8s-gpu-dra-driver
2622427: `gpu.amd.com`. Both publish `pcieRoot`.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterator, Mapping, Sequence
from itertools import chain
from typing import TYPE_CHECKING, Final, NamedTuple

from topo.errors import Finding
from topo.exports.configuration import (
    MOST,
    Configuration,
    heading,
    no_card_near,
    nothing_to_set,
    several_servers,
    text_of,
    unnamed_findings,
)
from topo.exports.formats import Exported
from topo.graph import components
from topo.phrases import listed, number_ranges, shortened, visible
from topo.study.worth import ATTRIBUTES
from topo.topology.locality import locality
from topo.topology.tiers import Network, networks
from topo.topology.topology import Topology

if TYPE_CHECKING:
    from topo.study.processes import Process
    from topo.study.worth import Tool

_LONGEST_SWITCH: Final = 64  # characters of Slurm's SwitchName
_LONGEST_LABEL: Final = 63  # characters of a name in Kubernetes
_TRAILING: Final = re.compile(r"(.*?)([0-9]+)$")
_DEVICE_CLASSES: Final = {"nvidia": "gpu.nvidia.com", "amd": "gpu.amd.com"}


def host_list(names: Sequence[str]) -> str:
    """Return names as Slurm writes a list of hosts: ``node[0-15,18],login1``.

    Examples
    --------
    >>> host_list(["node0", "node1", "node3", "pod1.node0"])
    'node[0-1,3],pod1.node0'
    """
    numbers: dict[str, list[int]] = {}
    for name in names:
        matched = _TRAILING.fullmatch(name)
        # a number with leading zeros is a word of its own
        if matched and str(int(matched[2])) == matched[2]:
            numbers.setdefault(matched[1], []).append(int(matched[2]))
        else:
            numbers.setdefault(name, [])
    return ",".join(
        f"{stem}[{number_ranges(sorted(of_stem))}]"
        if len(of_stem) > 1
        else f"{stem}{''.join(map(str, of_stem))}"
        for stem, of_stem in numbers.items()
    )


# --- Slurm: gres.conf -----------------------------------------------------------------------------


def _gres(configurations: Sequence[Configuration]) -> Exported:
    """Write the GPUs of every kind of node, one a line."""
    named = [configuration.server.names for configuration in configurations]
    if len(named) > 1 and not all(named):
        raise several_servers(configurations)  # nothing would tell whose a line is
    comments = dict.fromkeys(chain.from_iterable(map(_node_words, configurations)))
    lines = [*heading(configurations), *comments, *chain(*map(_gres_of, configurations))]
    findings = dict.fromkeys(chain.from_iterable(map(_gres_findings, configurations)))
    return Exported(text_of(lines), tuple(findings))


def _node_words(configuration: Configuration) -> Iterator[str]:
    """Yield comments about a kind of node: its line of slurm.conf, and what numbers mean."""
    server = configuration.server
    types = [_type_of(configuration, process) for process in server.processes]
    gres = ",".join(f"gpu:{kind}:{types.count(kind)}" for kind in dict.fromkeys(types))
    node = host_list(server.names) if server.names else "..."
    yield f"# slurm.conf: GresTypes=gpu and NodeName={node} Gres={gres}{_sockets(configuration)}"
    if server.names:
        yield "# Node names are those of the file."
    if len(server.cores) > 1:
        yield "# Cores are logical numbers, sockets in the order of the file."
    if server.maker == "nvidia":
        yield "# /dev/nvidiaN by PCI address: compare with the Minor Number of `nvidia-smi -q`."
    else:
        yield "# The numbers of AMD's device files are not known here. Slurm should find itself:"


def _gres_of(configuration: Configuration) -> Iterator[str]:
    """Yield the lines of one kind of node; AMD's GPUs are left to Slurm, their lines comments."""
    server = configuration.server
    if server.maker not in _DEVICE_CLASSES:
        gpus = shortened(server.inside(process.gpu) for process in server.processes)
        raise nothing_to_set(
            "slurm",
            f"who makes {gpus}, and so the name of its device file, is not stated",
            "give the GPU a part of the catalogue: `topo parts`",
        )
    node = f"NodeName={host_list(server.names)} " if server.names else ""
    is_found = server.maker == "amd"
    if not node and not is_found:
        yield "AutoDetect=off"
    lead = f"# {node}" if is_found else f"{node}AutoDetect=off " if node else ""
    for process in server.processes:
        words = [f"Name=gpu Type={_type_of(configuration, process)}"]
        if not is_found:
            words.append(f"File=/dev/nvidia{process.number}")
        if process.cpu in server.cores:
            first, last = server.cores[process.cpu]
            words.append(f"Cores={number_ranges(range(first, last + 1))}")
        if links := _links(configuration, process):
            words.append(f"Links={links}")
        yield lead + " ".join(words)
    if is_found:
        yield f"{node}AutoDetect=rsmi" + (" Name=gpu" if node else "")


def _gres_findings(configuration: Configuration) -> Iterator[Finding]:
    server, topology = configuration.server, configuration.topology
    if not server.cores:
        unknown = [cpu for cpu in server.cpus if topology[cpu].part.figure("cores") is None]
        yield Finding(
            "no-core-count",
            f"the number of cores of {listed(map(server.inside, unknown), most=MOST)} is not "
            "stated: lines have no Cores"
            if unknown
            else "no CPU is described: lines have no Cores, and bind nothing",
            severity="warning",
            place=topology[unknown[0]].place if unknown else None,
            help="give the CPU `cores: 64`" if unknown else "add the CPUs: `cpu[0-1]: epyc-9654`",
        )
    if server.maker == "amd":
        yield Finding(
            "no-device-file",
            "the device files of AMD's GPUs have numbers that no topology file states: AutoDetect "
            "finds them",
            severity="note",
        )


def _type_of(configuration: Configuration, process: Process) -> str:
    """Return a GPU's part as a word of Slurm."""
    return _word(configuration.topology[process.gpu].part.name)


def _sockets(configuration: Configuration) -> str:
    """Return what slurm.conf says of the sockets, nothing where they differ or are unknown."""
    counts = [last - first + 1 for first, last in configuration.server.cores.values()]
    if len(set(counts)) != 1:
        return ""
    return f" Sockets={len(counts)} CoresPerSocket={counts[0]}"


def _links(configuration: Configuration, process: Process) -> str:
    """Return how many GPU links a GPU has to each of its server, in their order; "" without any."""
    gpus = [process.gpu for process in configuration.server.processes]
    numbers = [
        -1 if gpu == process.gpu else _links_between(configuration.topology, process.gpu, gpu)
        for gpu in gpus
    ]
    return ",".join(map(str, numbers)) if max(numbers) > 0 else ""


def _links_between(topology: Topology, gpu: str, peer: str) -> int:
    name = locality(topology, gpu, peer)
    if name.startswith("NV"):
        return int(name.removeprefix("NV"))
    if name != "XGMI":
        return 0
    steps = (step for step in topology.steps[gpu] if step.target == peer)
    return sum(step.link.cable.count for step in steps if step.link.layer == "gpu")


def _word(name: str) -> str:
    return re.sub(r"[^A-Za-z0-9_.-]", "-", name)


# --- Slurm: topology.conf -------------------------------------------------------------------------


_TREES_ALONE: Final = (
    "# A switch here is what hangs together up to its tier: Slurm knows trees alone."
)


class _Switch(NamedTuple):
    """A switch of Slurm's tree: its nodes, or the switches that it stands above, as a host list."""

    name: str
    hosts: str
    is_above: bool
    stands_for: str


def _switch_tree(configurations: Sequence[Configuration]) -> list[_Switch]:
    """Write the switches that nodes hang on as a tree.

    Slurm knows trees alone, and a node hangs on one switch there. So switches that share nodes, as
    the rails of a unit do, are one, and so are spines that share leaves: what hangs together up to
    a tier is a switch of that tier.
    """
    first = configurations[0]
    topology = first.topology.written_out()
    nodes_of_card = {
        device.name: host.name
        for host in topology.hosts
        for device in map(topology.__getitem__, host.devices)
        if device.is_nic and "." in device.name
    }
    network = _carrying(topology, configurations, nodes_of_card)
    if network is None:
        raise nothing_to_set(
            first.tool,
            "no network switch joins servers here",
            "`fabrics:` makes leaves and spines, and `use:` servers of a file",
        )
    tree: list[_Switch] = []
    below: dict[frozenset[str], str] = {}
    joined: list[str] = []
    for tier in network.tiers:
        joined += tier.switches
        of_tier = frozenset(tier.switches)
        groups = _hanging_together(topology, joined, nodes_of_card)
        named: dict[frozenset[str], str] = {}
        for switches, nodes in groups:
            of_this_tier = [name for name in switches if name in of_tier]
            children = [name for members, name in below.items() if members <= nodes]
            if not of_this_tier and len(children) == 1:
                named[nodes] = children[0]
                continue
            name = _word((of_this_tier or switches)[0])[:_LONGEST_SWITCH]
            named[nodes] = name
            stands_for = ""
            if len(of_this_tier) > 1:
                stands_for = f"# {name} stands for {visible(shortened(of_this_tier))}."
            hosts = host_list(children if below else sorted_names(nodes))
            tree.append(_Switch(name, hosts, bool(below), stands_for))
        below = named
    return tree


def _topology_conf(configurations: Sequence[Configuration]) -> Exported:
    """Write topology.conf: a line a switch."""
    lines = [*heading(configurations), _TREES_ALONE]
    for switch in _switch_tree(configurations):
        key = "Switches" if switch.is_above else "Nodes"
        lines.append(f"SwitchName={switch.name} {key}={switch.hosts}")
        lines += [switch.stands_for] * bool(switch.stands_for)
    return Exported(text_of(lines))


def _topology_yaml(configurations: Sequence[Configuration]) -> Exported:
    """Write topology.yaml, which Slurm from 25.05 on reads before topology.conf: one topology."""
    name = re.sub(r"[^\w.-]", "-", configurations[0].topology.name) or "tree"
    lines = [*heading(configurations), _TREES_ALONE]
    lines += [f"- topology: {name}", "  cluster_default: true", "  tree:", "    switches:"]
    for switch in _switch_tree(configurations):
        key = "children" if switch.is_above else "nodes"
        lines += [f"      - switch: {switch.name}", f"        {key}: {switch.hosts}"]
        lines += [f"        {switch.stands_for}"] * bool(switch.stands_for)
    return Exported(text_of(lines))


def _carrying(
    topology: Topology, configurations: Sequence[Configuration], nodes: Mapping[str, str]
) -> Network | None:
    """Return the network of the cards that carry GPUs' traffic, else the one of most servers."""
    cards = {
        configuration.server.inside(card)
        for configuration in configurations
        for card in configuration.server.cards
    }

    def weight(network: Network) -> tuple[bool, int]:
        targets = {
            step.target
            for tier in network.tiers
            for switch in tier.switches
            for step in topology.steps[switch]
            if step.target in nodes
        }
        carries = any(name.rpartition(".")[2] in cards for name in targets)
        return (carries, len({nodes[name] for name in targets}))

    heaviest = max(networks(topology), key=weight, default=None)
    return heaviest if heaviest is not None and weight(heaviest)[1] > 0 else None


def _hanging_together(
    topology: Topology, switches: Sequence[str], nodes: Mapping[str, str]
) -> list[tuple[list[str], frozenset[str]]]:
    """Return switches that are joined through each other or through servers, with the servers."""
    among = frozenset(switches)
    of_node: dict[str, list[str]] = {}
    neighbours: dict[str, list[str]] = {}
    members: dict[str, list[str]] = {}
    for name in switches:
        targets = [step.target for step in topology.steps[name]]
        neighbours[name] = [target for target in targets if target in among]
        members[name] = list(dict.fromkeys(nodes[target] for target in targets if target in nodes))
        for node in members[name]:
            of_node.setdefault(node, []).append(name)

    def beside(name: str) -> list[str]:
        return [*neighbours[name], *chain(*(of_node[node] for node in members[name]))]

    return [
        (list(group), frozenset(node for name in group for node in members[name]))
        for group in components(switches, beside)
    ]


def sorted_names(names: frozenset[str]) -> list[str]:
    """Return names by their words, numbers by size."""
    return sorted(
        names,
        key=lambda name: [
            (int(piece) if piece.isdigit() else -1, piece) for piece in re.split(r"([0-9]+)", name)
        ],
    )


# --- Kubernetes -----------------------------------------------------------------------------------


def _claims(configurations: Sequence[Configuration]) -> Exported:
    """Write a template of a claim for each kind of GPU: itself and its cards, on one PCIe root."""
    lines = [*heading(configurations)]
    findings: list[Finding] = []
    documents = 0
    for configuration in configurations:
        groups: dict[tuple[str, int], list[Process]] = {}
        for process in configuration.server.processes:
            if process.cards:
                attribute = ATTRIBUTES.get(process.nearness, "")
                groups.setdefault((attribute, len(process.cards)), []).append(process)
        for (attribute, cards), processes in groups.items():
            documents += 1
            several = len(groups) > 1 or len(configurations) > 1
            lines += _claim(configuration, attribute, cards, processes, documents if several else 0)
            findings += _unmatched(configuration, attribute, processes)
        if configuration.server.maker not in _DEVICE_CLASSES:
            message = "who makes the GPUs, and so the class of their driver, is not stated"
            advice = "put it for gpu.example.com, or give the GPU a part of the catalogue"
            findings.append(Finding("unknown-maker", message, severity="warning", help=advice))
    if not documents:
        raise no_card_near("dra")
    return Exported(text_of(lines), tuple(findings))


def _claim(
    configuration: Configuration,
    attribute: str,
    cards: int,
    processes: Sequence[Process],
    number: int,
) -> Iterator[str]:
    server, topology = configuration.server, configuration.topology
    base = f"{topology.name}-gpu-nic" + (f"-{number}" if number else "")
    name = re.sub(r"[^a-z0-9-]+", "-", base.lower())[-_LONGEST_LABEL:].strip("-")
    yield "---"
    where = f" of {shortened(server.names)}" if server.names else ""
    yield f"# {visible(shortened(server.inside(process.gpu) for process in processes))}{where}"
    if server.maker not in _DEVICE_CLASSES:
        yield "# Who makes these GPUs is not stated: write their driver's class."
    device_class = _DEVICE_CLASSES.get(server.maker, "gpu.example.com")
    yield from (
        "apiVersion: resource.k8s.io/v1",
        "kind: ResourceClaimTemplate",
        f"metadata: {{name: {name}}}",
        "spec:",
        "  spec:",
        "    devices:",
        "      requests:",
        "      - name: gpu",
        "        exactly:",
        f"          deviceClassName: {device_class}",
        "          count: 1",
    )
    only = processes[0] if len(processes) == 1 else None
    if only is not None and (address := _bus_id(topology, only.gpu)):
        yield "          selectors:"
        yield "          - cel:"
        yield f"              expression: {_cel('resource.kubernetes.io', 'pciBusID', [address])}"
    yield from (
        "      - name: nic",
        "        exactly:",
        "          deviceClassName: dranet",
        f"          count: {cards}",
        "          selectors:",
        "          - cel:",
        "              expression: 'device.attributes[\"dra.net\"].rdma == true'",
    )
    if only is not None:
        devices = list(dict.fromkeys(device for device, _ in configuration.ports(only)))
        if devices and all(server.cards[card].ports for card in only.cards):
            yield "          - cel:"
            yield f"              expression: {_cel('dra.net', 'rdmaDevice', devices)}"
    if attribute:
        yield "      constraints:"
        yield "      - requests: [gpu, nic]"
        yield f"        matchAttribute: resource.kubernetes.io/{attribute}"


def _cel(domain: str, attribute: str, values: Sequence[str]) -> str:
    quoted = ", ".join(f'"{value}"' for value in values)
    condition = f"== {quoted}" if len(values) == 1 else f"in [{quoted}]"
    return f"'device.attributes[\"{domain}\"].{attribute} {condition}'"


def _bus_id(topology: Topology, gpu: str) -> str:
    """Return a GPU's PCI address with its domain, "" where the file has none."""
    addresses = topology[gpu].pci
    if not addresses:
        return ""
    address = addresses[0].lower()
    return address if address.count(":") == 2 else f"0000:{address}"  # noqa: PLR2004


def _unmatched(
    configuration: Configuration, attribute: str, processes: Sequence[Process]
) -> Iterator[Finding]:
    if attribute == "pcieRoot":
        return
    gpus = shortened(configuration.server.inside(process.gpu) for process in processes)
    nearness = processes[0].nearness
    instead = f"{attribute} is matched" if attribute else "nothing is matched"
    yield Finding(
        "not-one-root",
        f"no card shares a PCIe root with {gpus}: the nearest are {nearness}, so {instead}",
        severity="warning",
        help="pcieRoot would leave the pod pending",
    )
    if attribute != "pcieRoot" and len(processes) == 1:
        yield from unnamed_findings(configuration)


WRITERS: Final[Mapping[Tool, Callable[[Sequence[Configuration]], Exported]]] = {
    "slurm": _gres,
    "slurm-topology": _topology_conf,
    "slurm-topology-yaml": _topology_yaml,
    "dra": _claims,
}
