"""The graph in a log of NCCL or RCCL."""

from __future__ import annotations

import random
import re

import pytest

from tests.discovery.pasted import mutated, ragged, shape, survives_import
from tests.discovery.twins import INTEL_SPR, cpu, gpu, system
from topo.cli.program import main
from topo.discovery.importing import discover, import_text, import_together
from topo.discovery.sources.nccl_log import nvlinks, pcie_link
from topo.errors import ExchangeError
from topo.topology.build import build_topology
from topo.topology.locality import locality

CARDS = "NET/IB : Using [0]mlx5_0:1/IB [1]mlx5_4:1/RoCE [RO]; OOB ib0:10.0.0.1<0>"
TREE = [  # depth and text
    (0, "CPU/0-0 (1/1/3)"),
    (1, "+ PCI[48.0] - PCI/0-1a000 (1000c03010000000)"),
    (2, "+ PCI[48.0] - NIC/0-1b000"),
    (3, "+ NET[50.0] - NET/0-0 (0/a1b2c30003aaaaaa/1/50.000000)"),
    (2, "+ PCI[48.0] - DEV/0-1c000 (10de233010de16c1)"),
    (3, "+ LOC[5000.0] - GPU/0-1c000"),
    (3, "+ NVL[370.8] - NVS/0-0"),
    (1, "+ PCI[12.0] - DEV/0-2d000 (10de233010de16c1)"),
    (2, "+ LOC[5000.0] - GPU/0-2d000"),
    (2, "+ NVL[370.8] - NVS/0-0"),
    (1, "+ SYS[22.0] - CPU/0-1"),
    (0, "CPU/0-1 (1/1/3)"),
    (1, "+ PCI[24.0] - NIC/0-9b000"),
    (2, "+ NET[25.0] - NET/0-1 (0/a1b2c30003bbbbbb/1/25.000000)"),
    (1, "+ SYS[22.0] - CPU/0-0"),
]
TABLE = [
    "==========================================",
    "GPU/0-1c000 :GPU/0-1c000 (0/5000.0/LOC) GPU/0-2d000 (2/370.8/NVL) NET/0-0 (4/48.0/PIX)",
    "NET/0-1 :GPU/0-1c000 (6/22.0/SYS) NET/0-1 (0/5000.0/LOC)",
]


def drawn(tree=TREE, indent=14):
    """Return the lines of a graph; a line hangs below the name of the one above."""
    return [" " * (indent * max(depth - 1, 0)) + text for depth, text in tree]


def graph(tree=TREE, *, title="=== System : maxBw 370.8 totalBw 370.8 ===", table=TABLE, indent=14):
    return [title, *drawn(tree, indent), *table]


def log(lines, before="node7:411:902 [0] NCCL INFO "):
    return "".join(f"{before}{line}\n" for line in lines)


PLAIN = log([CARDS, *graph()])


def read(text):
    return import_text(None, text if isinstance(text, bytes) else text.encode(), "job.log")


def codes(imported):
    return [finding.code for finding in imported.findings]


def test_a_log_of_many_ranks_is_read_line_by_line():
    line = "node7:411:902 [0] NCCL INFO Channel 00/0 : 0 -> 1 via P2P/CUMEM/read\n"
    text = log(graph())
    large = text + line * (9 * 2**20 // len(line)) + text
    assert shape(import_text(None, large.encode(), "x")) == shape(
        import_text(None, text.encode(), "x")
    )


# --- what a graph tells ---------------------------------------------------------------------------


def test_the_tree_with_addresses_links_and_cards():
    imported = read(PLAIN)
    topology = build_topology(imported.description)
    assert imported.kind == "nccl-log"
    assert topology["gpu0"].part.name == "h100-sxm-80gb"
    assert topology["gpu0"].pci == ("1c:00.0",)
    assert [card.rdma for card in imported.machine.of_kind("nic")] == [("mlx5_0",), ("mlx5_4",)]
    assert [card.ports for card in imported.machine.of_kind("nic")] == [(400e9,), (200e9,)]
    assert [card.network for card in imported.machine.of_kind("nic")] == ["infiniband", "ethernet"]
    assert locality(topology, "gpu0", "nic0") == "PIX"
    assert locality(topology, "gpu1", "nic1") == "SYS"
    assert [cable.cable for cable in imported.machine.cables] == ["18x nvlink 4"] * 2
    assert imported.machine.of_kind("gpu")[1].link.cable == "pcie 3 x16"
    assert imported.machine.of_kind("pcie-switch")[0].part == "pcie-switch-gen5"
    assert codes(imported) == ["narrow-link", "guessed-storage"]


def test_a_machine_of_old_numbers_without_devices_of_gpus():
    tree = [
        (0, "CPU/0 (1/2/-1)"),
        (1, "+ SYS[5000.0] - CPU/FFFFFFFFFFFFFFFF"),
        (1, "+ PCI[24.0] - PCI/41000"),
        (2, "+ PCI[24.0] - GPU/43000 (0)"),
        (3, "+ NVL[264.0] - NVS/0"),
        (2, "+ PCI[24.0] - NIC/44000"),
        (3, "+ NET[25.0] - NET/0 (a1b2c30003aaaaaa/1/25.000000)"),
        (3, "+ NET[25.0] - NET/1 (a1b2c30003aaaaaa/2/25.000000)"),
        (0, "CPU/FFFFFFFFFFFFFFFF (1/2/-1)"),
    ]
    imported = read(
        log(graph(tree, title="=== System : maxWidth 264.0 totalWidth 264.0 ===", table=[]))
    )
    assert [cable.cable for cable in imported.machine.cables] == ["12x nvlink 3"]
    assert "guessed-nvlinks" in codes(imported)
    assert [card.ports for card in imported.machine.of_kind("nic")] == [(200e9, 200e9)]
    assert [processor.numa for processor in imported.machine.of_kind("cpu")] == [(0,), ()]
    assert imported.machine.of_kind("cpu")[0].evidence == "AMD"


def test_the_first_release_with_a_graph_had_whole_numbers():
    tree = [
        (0, "CPU/0"),
        (1, "+ PCI[12] - GPU/43000 (0)"),
        (2, "+ NVL[21] - GPU/44000 (1)"),
        (1, "+ PCI[12] - GPU/44000 (1)"),
        (2, "+ NVL[21] - GPU/43000 (0)"),
    ]
    imported = read(log(graph(tree, title="=== System : maxWidth 21 maxSpeed 21 ===", table=[])))
    assert [gpu.link.cable for gpu in imported.machine.of_kind("gpu")] == ["pcie 3 x16"] * 2
    assert [cable.cable for cable in imported.machine.cables] == ["nvlink unknown"]


def test_rccl_joins_gpus_by_xgmi():
    tree = [
        (0, "CPU/0-0 (1/2/4)"),
        (1, "+ PCI[24.0] - PCI/0-31000 (1000c01010000000)"),
        (2, "+ PCI[24.0] - GPU/0-47000 (0)"),
        (3, "+ XGMI[48.0] - GPU/4C000"),
        (2, "+ PCI[24.0] - GPU/0-4c000 (1)"),
        (3, "+ XGMI[48.0] - GPU/47000"),
        (3, "+ XGMI[48.0] - GPU/51000"),
    ]
    imported = read(log(graph(tree, table=[])))
    assert imported.machine.source == "a log of RCCL"
    assert [gpu.part for gpu in imported.machine.of_kind("gpu")] == ["amd-instinct"] * 2
    assert [(cable.a, cable.b) for cable in imported.machine.cables] == [
        ("0000:47:00.0", "0000:4c:00.0")
    ]


def test_a_gpu_cut_in_two_is_one():
    tree = [
        (0, "CPU/0-0 (3/-1/-1)"),
        *(
            line
            for half, second in (("1", "3"), ("3", "1"))
            for line in (
                (1, f"+ PCI[12.0] - DEV/0-28100{half} (10de294110de0000)"),
                (2, f"+ LOC[5000.0] - GPU/0-28100{half} (0) [MLOPart 0]"),
                (2, f"+ LOC[2618.0] - DEV/0-28100{second}"),
                (2, "+ NVL[360.9] - NVS/0-0"),
                (2, "+ C2C[394.6] - XC2C/0-281000"),
            )
        ),
    ]
    machine = read(log(graph(tree, table=[]))).machine
    assert [gpu.pci for gpu in machine.of_kind("gpu")] == [("0002:81:00.0",)]
    assert [cable.cable for cable in machine.cables] == ["nvlink-c2c 394.6 GB/s", "18x nvlink 5"]


def test_an_interface_without_a_pci_device_has_its_name():
    tree = [
        (0, "CPU/0 (1/1/2)"),
        (1, "+ PCI[5000.0] - NIC/0"),
        (2, "+ NET[1.2] - NET/0 (0/0/1.250000)"),
    ]
    using = "NET/Socket : Using [0]eth2:10.0.0.1<0>"
    (card,) = read(
        log([using, *graph([*tree, (1, "+ PCI[12.0] - GPU/5000 (0)")])])
    ).machine.of_kind("nic")
    assert (card.label, card.ports, card.pci) == ("eth2", (10e9,), ())


def test_two_ports_that_count_as_one_card():
    using = CARDS.replace("[0]mlx5_0:1/IB", "[0]={[0] mlx5_0:1/IB, [1] mlx5_1:1/IB}").replace(
        "[1]mlx5_4:1/RoCE", "[1]={[2] mlx5_4:1/IB}"
    )
    card = read(PLAIN.replace(CARDS, using)).machine.of_kind("nic")[0]
    assert (card.rdma, card.ports) == (("mlx5_0", "mlx5_1"), (200e9, 200e9))


def test_the_head_of_nccl_tests_names_gpus():
    tree = [(0, "CPU/0 (1/1/2)"), (1, "+ PCI[24.0] - GPU/7000 (0)")]
    head = (
        "#  Rank  0 Group  0 Pid  10 on      node7 device  0 [0000:07:00] NVIDIA A100-SXM4-80GB\n"
    )
    assert read(head + log(graph(tree, table=[]))).machine.of_kind("gpu")[0].part == "a100-sxm-80gb"


@pytest.mark.parametrize(
    ("rate", "cable"),
    [
        ("96.0", "pcie 6 x16"),
        ("48.0", "pcie 5 x16"),
        ("6.0", "pcie 3 x8"),
        ("3.0", "pcie 3 x4"),
        ("0.2", "pcie 1 x1"),
        ("5000.0", "pcie unknown"),
        ("12", "pcie 3 x16"),
    ],
)
def test_what_nccl_counts_a_pcie_link_as(rate, cable):
    assert pcie_link(rate).cable == cable


@pytest.mark.parametrize(
    ("rate", "total", "part", "cable"),
    [
        (721.8, 721.8, "gpu-unknown", "18x nvlink 5"),
        (360.0, 360.0, "gpu-unknown", "18x nvlink 4"),
        (240.0, 240.0, "gpu-unknown", "12x nvlink unknown"),  # NVLink 3, or 4 in older releases
        (240.0, 240.0, "a100-sxm-80gb", "12x nvlink 3"),
        (40.0, 120.0, "v100-sxm-32gb", "2x nvlink 2"),
        (48.0, 48.0, "gpu-unknown", "4x nvlink ga102"),
        (47.3, 47.3, "gpu-unknown", "nvlink unknown"),
        (0.0, 0.0, "gpu-unknown", "nvlink unknown"),
    ],
)
def test_what_nccl_counts_nvlinks_as(rate, total, part, cable):
    assert nvlinks(rate, total, part)[0] == cable


# --- several graphs -------------------------------------------------------------------------------


def test_processes_that_write_at_once_are_kept_apart():
    first = log(graph(), "node7:411:902 [0] NCCL INFO ").splitlines()
    second = log(graph(), "node7:412:903 [1] NCCL INFO ").splitlines()
    mixed = [line for pair in zip(first, second, strict=True) for line in pair]
    assert shape(read("\n".join(mixed))) == shape(read("\n".join(first)))


def test_graphs_of_two_jobs_on_one_host_are_one_machine():
    left, right = (
        log(graph([*TREE[:1], *part], table=[]), f"node7:{pid}:1 [0] NCCL INFO ")
        for pid, part in ((1, TREE[1:7]), (2, TREE[7:10]))
    )
    assert len(read(left + right).machine.of_kind("gpu")) == 2


def test_graphs_of_one_host_that_disagree_are_said():
    moved = PLAIN.replace("411", "412").replace("+ PCI[12.0] - DEV", " " * 14 + "+ PCI[12.0] - DEV")
    imported = read(PLAIN + moved)
    assert "sources-disagree" in codes(imported)
    assert len(imported.machine.of_kind("gpu")) == 2


def test_several_hosts_are_a_cluster(tmp_path, capsys):
    file, out = tmp_path / "job.log", tmp_path / "pod.yaml"
    file.write_text(PLAIN + PLAIN.replace("node7", "node8"))
    assert main(["import", str(file)]) == 1
    assert "of several hosts" in capsys.readouterr().err
    assert main(["import", str(file), "-o", str(out)]) == 0
    assert "unknown-network" in capsys.readouterr().err
    assert "node[7-8]: {use: pod-node.yaml}" in out.read_text()
    assert main(["show", str(out)]) == 0
    assert "h100-sxm-80gb" in (tmp_path / "pod-node.yaml").read_text()
    assert main(["import", str(file), "--json"]) == 0
    assert '"topo.import-hosts/1"' in capsys.readouterr().out


def test_hosts_of_one_nvlink_domain_share_its_switch(tmp_path):
    second = [(depth, re.sub(r"(?<!NVS)/0-", "/1-", text)) for depth, text in TREE]
    file, out = tmp_path / "rack.log", tmp_path / "rack.yaml"
    file.write_text(log(graph([*TREE, *second], table=[])))
    assert main(["import", str(file), "-o", str(out)]) == 0
    text = out.read_text()
    assert "host[0-1]: {use: rack-host.yaml}" in text
    assert re.search(r"host\.gpu\S* -- nvswitch0: 18x nvlink 4", text)
    assert main(["matrix", str(out)]) == 0


# --- with another source --------------------------------------------------------------------------


def test_the_topology_file_of_the_same_machine_completes_it():
    data = system(
        cpu(0, gpu("0000:1c:00.0", sm=90, speed="16.0 GT/s PCIe", width=16), who=INTEL_SPR)
    )
    tree = [(0, "CPU/0 (1/1/3)"), (1, "+ PCI[24.0] - GPU/1c000 (0)")]
    sources = [discover(None, text, "x") for text in (log(graph(tree, table=[])).encode(), data)]
    together = import_together(sources)
    assert together.machine.of_kind("gpu")[0].link.cable == "pcie 4 x16"
    assert "guess" not in together.machine.of_kind("gpu")[0].link.evidence
    assert "sources-disagree" not in codes(together)


def test_a_job_with_fewer_gpus_than_the_machine_is_no_contradiction():
    tree = [(0, "CPU/0 (1/1/3)"), (1, "+ PCI[24.0] - GPU/1c000 (0)")]
    xml = system(cpu(0, gpu("0000:1c:00.0", dev=0), gpu("0000:1d:00.0", dev=1)))
    sources = [discover(None, text, "x") for text in (xml, log(graph(tree, table=[])).encode())]
    assert not [f for f in import_together(sources).findings if f.severity == "error"]


# --- ragged ---------------------------------------------------------------------------------------

RAGGED = {
    "no prefix": "\n".join(graph()),
    **ragged(log(graph())),
    "timestamps": log(graph(), "[2026-01-02 03:04:05] node7:411:902 [0] NCCL INFO "),
    "mpirun": log(graph(), "[1,3]<stdout>:node7:411:902 [0] NCCL INFO "),
    "ray": log(graph(), "\x1b[36m(Worker pid=9, ip=10.0.0.2)\x1b[0m node7:411:902 [0] NCCL INFO "),
    "less indentation": log(graph(indent=4)),
    "tabs": log(graph()).replace(" " * 14, "\t\t"),
    "a comment behind": log(
        [f"{line}   <- GPU 0" if "PCI[12" in line else line for line in graph()]
    ),
}


@pytest.mark.parametrize("how", RAGGED)
def test_however_it_was_pasted(how):
    assert shape(read(RAGGED[how])) == shape(read(log(graph())))


def test_lost_indentation_is_said():
    imported = read(re.sub(r"INFO +", "INFO ", PLAIN))
    assert "no-tree" in codes(imported)
    assert [cable.cable for cable in imported.machine.cables] == ["18x nvlink 4"] * 2
    assert [card.ports for card in imported.machine.of_kind("nic")] == [(400e9,), (200e9,)]


def test_a_graph_whose_end_is_missing_is_said():
    assert "abridged" in codes(read(log(graph(TREE[:7]))))


def test_a_graph_whose_beginning_is_missing_is_said():
    assert "abridged" in codes(read(log([*drawn()[2:], *TABLE])))


def test_a_log_without_a_graph_says_how_to_get_one():
    with pytest.raises(ExchangeError, match="no graph of NCCL") as caught:
        read(log([CARDS, "Connected all rings"]))
    assert "NCCL_DEBUG_SUBSYS" in caught.value.findings[0].help


# --- hostile --------------------------------------------------------------------------------------

HOSTILE = {
    "huge numbers": PLAIN.replace("370.8", "9" * 40).replace("1c000", "f" * 16),
    "deep": log(
        graph(
            [(0, "CPU/0 (1/1/1)"), *((d, f"+ PCI[24.0] - PCI/{d:x}000") for d in range(1, 400))],
            indent=1,
        )
    ),
    "many columns": PLAIN + "node7:411:902 [0] NCCL INFO " + "+ PCI[24.0] - " * 7000 + "\n",
    "many graphs": PLAIN.replace(CARDS, "") * 500,
    "many origins": "".join(log(graph(table=[]), f"n{at}:1:1 [0] NCCL INFO ") for at in range(300)),
    "control characters": PLAIN.replace("mlx5_0", "mlx\x075_0").replace("node7", "no\x01de"),
    "loops": log(
        graph(
            [
                (0, "CPU/0"),
                (1, "+ PCI[1] - PCI/1000"),
                (2, "+ PCI[1] - PCI/2000"),
                (3, "+ PCI[1] - PCI/1000"),
                (4, "+ PCI[1] - GPU/3000"),
            ],
            table=[],
        )
    ),
    "itself": PLAIN.replace("NVS/0-0", "GPU/0-1c000"),
    "nothing but brackets": "NCCL INFO " + "[0]={" * 20_000,
}


@pytest.mark.parametrize("how", HOSTILE)
def test_hostile_logs(how):
    survives_import(HOSTILE[how].encode())


@pytest.mark.parametrize("seed", range(60))
def test_damaged_logs(seed):
    chance = random.Random(seed)
    survives_import(
        mutated(chance.choice([PLAIN, RAGGED["no prefix"], RAGGED["ray"]]).encode(), chance)
    )
