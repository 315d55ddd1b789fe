"""numactl --hardware and lscpu: NUMA nodes, their memory, sockets, the CPU's model."""

from __future__ import annotations

import json

import pytest

from tests.discovery.test_combine import nccl, smi
from tests.discovery.test_corpus import CORPUS
from tests.discovery.test_facts_only import unspoken
from tests.discovery.trees import sysfs_box
from topo.discovery.combine import combined
from topo.discovery.file_kinds import file_kind
from topo.discovery.importing import discover, import_text, import_together
from topo.errors import ExchangeError
from topo.topology.build import build_topology
from topo.topology.locality import locality

EPYC = "AMD EPYC 7763 64-Core Processor"
XEON = "Intel(R) Xeon(R) Platinum 8480C"


def numactl(nodes, size_mb=193_000, *, far=32, near=12, a_socket=1, bare=()):
    text = f"available: {nodes + len(bare)} nodes (0-{nodes - 1})\n"
    for node in range(nodes):
        text += f"node {node} cpus: {2 * node} {2 * node + 1}\nnode {node} size: {size_mb} MB\n"
        text += f"node {node} free: 17 MB\n"
    for node in bare:
        text += f"node {node} cpus:\nnode {node} size: 16128 MB\n"
    text += "node distances:\nnode  " + "  ".join(f"{node:2}" for node in range(nodes)) + "\n"
    for node in range(nodes):
        cells = (
            10 if node == to else near if node // a_socket == to // a_socket else far
            for to in range(nodes)
        )
        text += f"{node:3}:  " + "  ".join(map(str, cells)) + "\n"
    return text


def lscpu(nodes, sockets, model=EPYC):
    return (
        "Architecture:            x86_64\n  CPU op-mode(s):        32-bit, 64-bit\nCPU(s): 128\n"
        f"Vendor ID:               Somebody\n  Model name:            {model}\n"
        f"    Core(s) per socket:  64\n    Socket(s):           {sockets}\nNUMA:\n"
        f"  NUMA node(s):          {nodes}\n"
        + "".join(f"  NUMA node{node} CPU(s):     {node}-{node}\n" for node in range(nodes))
    )


def lscpu_json(*arguments):
    """The same as JSON: the fields of a group stand inside it."""
    fields = [
        {"field": f"{name.strip()}:", "data": data.strip() or None}
        for name, _, data in (line.partition(":") for line in lscpu(*arguments).splitlines())
    ]
    return (
        json.dumps({"lscpu": [*fields[:4], {"field": "NUMA:", "children": fields[4:]}]}, indent=3)
        + "\n"
    )


PLAIN = {
    "numactl": numactl(2),
    "JSON": lscpu_json(2, 2, XEON),
    "lscpu": lscpu(2, 2, XEON),
    "both": numactl(4, a_socket=2) + lscpu(4, 2),
}


def told(text):
    data = text if isinstance(text, bytes) else text.encode()
    return discover(None, data, "numa.txt")


def cpus(machine):
    return [(cpu.part, cpu.numa) for cpu in machine.of_kind("cpu")]


@pytest.mark.parametrize("text", PLAIN.values(), ids=PLAIN)
def test_it_is_known_and_refused_alone(text):
    assert file_kind(text.encode()).importer == "numactl"
    with pytest.raises(ExchangeError, match="tells its CPUs and NUMA nodes, and not what machine"):
        import_text(None, text.encode(), "numa.txt")


def test_sizes_of_nodes_and_nodes_without_cpus():
    machine = told(numactl(2, bare=(252,)))
    sizes = [dict(memory.facts)["size"] for memory in machine.of_kind("memory")]
    assert sizes == ["202.4 GB"] * 2
    assert machine.left_out == ("node 252",)


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        (lscpu(2, 2), [("epyc-7763", (0,)), ("epyc-7763", (1,))]),
        (lscpu(4, 1), [("epyc-7763", (0, 1, 2, 3))]),
        (lscpu(4, 2), [("cpu-unknown", (node,)) for node in range(4)]),  # whose is whose?
        (lscpu(4, 2) + numactl(4, a_socket=2), [("epyc-7763", (0, 1)), ("epyc-7763", (2, 3))]),
        (lscpu(4, 2) + numactl(4), [("cpu-unknown", (node,)) for node in range(4)]),
        (numactl(2), [("cpu-unknown", (0,)), ("cpu-unknown", (1,))]),
    ],
)
def test_sockets(text, expected):
    assert cpus(told(text)) == expected


def test_ram_has_its_size_and_the_cpu_its_name():
    found = import_together([discover(None, smi(), "a.txt"), told(lscpu(2, 2, XEON) + numactl(2))])
    assert "cpu[0-1]: {part: xeon-8480c, numa: [0, 1]}" in found.yaml
    assert "ram[0-1]: {part: memory-unknown, size: 202.4 GB}  # size from numa.txt" in found.yaml


def test_a_name_says_more_than_a_family():
    found = import_together([discover(None, nccl(), "a.xml"), told(lscpu(2, 2, XEON))])
    assert cpus(found.machine) == [("xeon-8480c", (0,)), ("xeon-8480c", (1,))]


def test_nodes_of_one_socket_become_one_cpu():
    text = lscpu(4, 2) + numactl(4, a_socket=2)
    found = import_together([discover(None, unspoken(4), "a.txt"), told(text)])
    assert cpus(found.machine) == [("epyc-7763", (0, 1)), ("epyc-7763", (2, 3))]
    assert "- gpu[2-3] -- cpu1/numa[2-3]:" in found.yaml
    assert "ram[0-3]: {part: memory-unknown, size: 202.4 GB}" in found.yaml
    topology = build_topology(found.description)
    assert {locality(topology, "gpu0", f"gpu{at}") for at in (1, 2, 3)} == {"SYS"}


def test_a_tree_without_nodes_learns_one_and_not_several():
    tree = b"-[0000:00]---01.0-[01]----00.0  NVIDIA Corporation GA102GL [A40]\n"
    first = discover(None, tree, "a.txt")
    found = import_together([first, told(numactl(1) + lscpu(1, 1))])
    assert cpus(found.machine) == [("epyc-7763", (0,))]
    several = import_together([first, told(numactl(2))])
    assert cpus(several.machine) == [("cpu-unknown", ())]
    assert "could not be placed" in several.yaml


@pytest.mark.skipif(not CORPUS.exists(), reason=f"NO CORPUS at {CORPUS}")
def test_a_real_one():
    data = (CORPUS / "lspci" / "asus-esc8000a-numactl.txt").read_bytes()
    smi_data = (CORPUS / "nvidia-smi" / "asus-esc8000a-4xRTX6000Ada-CX7.txt").read_bytes()
    found = import_together([discover(None, smi_data, "a.txt"), discover(None, data, "n.txt")])
    sizes = [dict(memory.facts)["size"] for memory in found.machine.of_kind("memory")]
    assert sizes == [f"{mb * 2**20 / 1e9:.4g} GB" for mb in (193_129, 193_477)]


def test_a_family_that_the_first_source_names_is_not_lost_to_one_that_names_none():
    tree = sysfs_box()
    tree.put("proc/cpuinfo", "processor\t: 0\nmodel name\t: Intel(R) Xeon(R) Processor")
    machines = [discover(None, tree.tar(), "box"), discover(None, numactl(2).encode(), "numactl")]
    parts = {cpu.part for cpu in combined(machines).of_kind("cpu")}
    assert parts == {cpu.part for cpu in machines[0].of_kind("cpu")} != {"cpu-unknown"}


def test_a_name_without_a_number_gets_the_generation():
    numbers = "Vendor ID: GenuineIntel\n  CPU family: 6\n  Model: 143\n"
    text = numbers + lscpu(2, 2, "Intel(R) Xeon(R) CPU @ 2.00GHz")
    assert [part.title for part in told(text).parts] == ["Intel Xeon (Sapphire Rapids)"]


def test_json_tells_what_the_text_does():
    assert told(lscpu_json(4, 2, XEON)).devices == told(lscpu(4, 2, XEON)).devices
