"""Two sources of one machine: gaps filled, each fact with its source, contradictions said."""

from __future__ import annotations

import re
from contextlib import suppress

import pytest
from hypothesis import given

from tests.discovery import trees, twins
from tests.discovery.test_corpus import CORPUS
from tests.discovery.test_mutations import damaged
from tests.discovery.twins import card, cpu, gpu, pci, switch, system
from topo.discovery.combine import combined
from topo.discovery.importing import discover, import_text, import_together
from topo.errors import ExchangeError, TopoError
from topo.topology.build import build_topology
from topo.topology.locality import locality

needs_corpus = pytest.mark.skipif(not CORPUS.exists(), reason=f"NO CORPUS at {CORPUS}")


def together(*sources, **options):
    names = [f"{'abc'[at]}.txt" for at in range(len(sources))]
    seen = [discover(None, data, name) for data, name in zip(sources, names, strict=True)]
    return import_together(seen, **options)


def disagreements(found):
    return [one.message for one in found.findings if one.code == "sources-disagree"]


def codes(found):
    return {one.code for one in found.findings}


def nccl(
    *, links="", speed="32.0 GT/s PCIe", mbps=400000, nodes=(0, 1), names=("mlx5_0", "mlx5_1")
):
    return system(
        *(
            cpu(
                node,
                switch(
                    f"0000:{at}0:00.0",
                    gpu(f"0000:{at}1:00.0", links, dev=at - 1, speed=speed),
                    card(f"0000:{at}2:00.0", name, speed_mbps=mbps),
                ),
            )
            for at, node, name in zip((1, 2), nodes, names, strict=True)
        )
    )


def smi(code="NV4", near="PIX", far="SYS", nodes=(0, 1), cards=("mlx5_0", "mlx5_1")):
    one, other = cards
    return (
        f"\tGPU0\tGPU1\t{one}\t{other}\tCPU Affinity\tNUMA Affinity\n"
        f"GPU0\t X \t{code}\t{near}\t{far}\t0-15\t{nodes[0]}\n"
        f"GPU1\t{code}\t X \t{far}\t{near}\t16-31\t{nodes[1]}\n"
        f"{one}\t{near}\t{far}\t X \t{far}\n"
        f"{other}\t{far}\t{near}\t{far}\t X \n"
    ).encode()


LSPCI = b"""\
-+-[0000:80]-+-01.0-[81]----00.0  NVIDIA Corporation GA102GL [A40]
 |           \\-02.0-[82]----00.0  Mellanox Technologies MT2892 Family [ConnectX-6 Dx]
 \\-[0000:00]-+-01.0-[01]----00.0  NVIDIA Corporation GA102GL [A40]
             \\-02.0-[02]----00.0  Mellanox Technologies MT2892 Family [ConnectX-6 Dx]
"""


# --- gaps -----------------------------------------------------------------------------------------


def test_nvlinks_come_from_the_matrix_and_say_so():
    found = together(nccl(), smi())
    assert not disagreements(found)
    (line,) = [line for line in found.yaml.splitlines() if "nvlink" in line]
    assert line.endswith("# NV4; from b.txt")
    topology = build_topology(found.description)
    assert locality(topology, "gpu0", "gpu1") == "NV4"
    assert locality(topology, "gpu0", "nic0") == "PIX"


def test_how_devices_were_matched_is_said():
    found = together(nccl(), smi(cards=("NIC0", "NIC1")))
    assert "# GPUs were matched by their order: b.txt has no addresses." in found.yaml
    assert "# Network cards were matched by their order: b.txt has no addresses." in found.yaml
    named = together(nccl(), smi())
    assert "Network cards were matched" not in named.yaml  # by the names of RDMA devices


def test_a_matrix_is_laid_upon_the_tree_of_the_other():
    found = together(smi(), nccl(), storage=["mlx5_1"])
    first = together(nccl(), smi(), storage=["mlx5_1"])
    assert found.document["devices"] == first.document["devices"]
    assert found.document["links"] == first.document["links"]
    assert "# Imported from a.txt (output of nvidia-smi topo -m)." in found.yaml
    assert "# Combined with b.txt (an NCCL topology file)." in found.yaml


def test_lspci_learns_its_numa_nodes():
    alone = import_text(None, LSPCI, "a.txt")
    assert "numa-unknown" in codes(alone)
    found = together(LSPCI, smi(code="SYS", near="PHB"))
    assert not disagreements(found)
    assert "numa-unknown" not in codes(found)
    topology = build_topology(found.description)
    assert [one.numa for one in topology.of_kind("cpu")] == [(0,), (1,)]
    assert locality(topology, "gpu0", "nic0") == "PHB"
    assert locality(topology, "gpu0", "nic1") == "SYS"
    assert topology["gpu0"].pci == ("01:00.0",)
    assert topology["nic1"].rdma == ("mlx5_1",)


def test_what_no_source_places_is_said():
    lonely = LSPCI + b" +-[0000:40]---01.0-[41]----00.0  Samsung Electronics Co Ltd NVMe SSD\n"
    found = together(lonely, smi(code="SYS", near="PHB"))
    assert "nvme0: its NUMA node is not told" in found.yaml
    (said,) = [one for one in found.findings if one.code == "numa-unknown"]
    assert "0000:41:00.0" in said.message


def test_classless_places_become_what_the_other_knows():
    template = system(cpu(0, '<pci busid="0000:11:00.0"/>'), cpu(1, '<pci busid="0000:21:00.0"/>'))
    assert "unclassified-device" in codes(import_text(None, template, "a.txt"))
    found = together(template, nccl())
    assert "unclassified-device" not in codes(found)
    topology = build_topology(found.description)
    assert len(topology.of_kind("gpu")) == 2
    assert "what it is, from b.txt" in found.yaml


def test_drives_come_with_the_tree_that_shows_them():
    found = together(nccl(), trees.sysfs_box().tar("w"))
    assert found.machine.of_kind("nvme")
    assert re.search(r"nvme.*# .*from b\.txt", found.yaml)


def test_the_same_twice_adds_nothing():
    for data in (nccl(), LSPCI, trees.two_level(), trees.verbose().encode(), smi()):
        once, twice = import_text(None, data, "a.txt"), together(data, data)
        assert not disagreements(twice)
        assert twice.document == once.document


# --- contradictions -------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("first", "second", "what", "kept"),
    [
        (
            nccl(),
            nccl(speed="16.0 GT/s PCIe"),
            "PCIe link pcie 5 x16 in a.txt, pcie 4 x16 in b.txt",
            "pcie 5 x16",
        ),
        (nccl(), nccl(mbps=200000), "port speed 400 Gb/s in a.txt, 200 Gb/s in b.txt", "400 Gb/s"),
        (nccl(), nccl(nodes=(0, 0)), "NUMA node 1 in a.txt, 0 in b.txt", "cpu[0-1]"),
        (
            nccl(),
            nccl(names=("mlx5_7", "mlx5_1")),
            "RDMA name mlx5_0 in a.txt, mlx5_7 in b.txt",
            "mlx5_0",
        ),
        (nccl(), smi(near="NODE"), "class PIX in a.txt, NODE in b.txt", "sw -- cpu"),
        (smi(near="NODE"), nccl(), "class NODE in a.txt, PIX in b.txt", "gpu -- cpu"),
        (smi(code="NV4"), smi(code="NV8"), "NVLinks 4 in a.txt, 8 in b.txt", "4x nvlink"),
        (smi(code="NV4"), smi(code="SYS"), "NVLinks 4 in a.txt, 0 in b.txt", "4x nvlink"),
    ],
    ids=lambda value: value[:24] if isinstance(value, str) else None,
)
def test_a_contradiction_is_said_and_the_first_stands(first, second, what, kept):
    found = together(first, second)
    messages = disagreements(found)
    assert any(what in message for message in messages), messages
    assert "error" not in {one.severity for one in found.findings}
    assert kept in found.yaml
    comments = " ".join(line.strip("# ") for line in found.yaml.splitlines() if "#" in line)
    assert what in comments


def test_another_number_of_gpus_is_an_error():
    more = system(cpu(0, *(gpu(f"0000:0{at}:00.0", dev=at) for at in range(1, 4))))
    found = together(more, smi())
    assert "number of GPUs 3 in a.txt, 2 in b.txt" in disagreements(found)
    assert {one.severity for one in found.findings if one.code == "sources-disagree"} == {"error"}
    assert len(found.machine.of_kind("gpu")) == 3  # none is made of the other's


def test_other_addresses_are_an_error():
    def box(bus):
        return system(cpu(0, pci(f"0000:{bus}:00.0", "0x030200")))

    found = together(box("11"), box("12"))
    assert disagreements(found)[0].startswith("PCI address of the first GPU 0000:11:00.0 in a.txt")
    assert len(found.machine.of_kind("gpu")) == 1


def test_a_guessed_split_of_a_rate_is_no_contradiction():
    found = together(trees.two_level(), trees.two_level())
    assert not disagreements(found)


def test_three_sources():
    found = together(LSPCI, smi(code="SYS", near="PHB"), smi(code="NV4", near="PHB"))
    assert disagreements(found) == ["gpu0 to gpu1: NVLinks 0 in a.txt with b.txt, 4 in c.txt"]
    assert len(found.machine.together) == 2


# --- anything with anything -----------------------------------------------------------------------

SOURCES = [
    *(nccl(), twins.two_sockets(), twins.eight_switches(), smi(), twins.MATRIX.encode()),
    *(LSPCI, trees.verbose().encode(), trees.TREE.encode(), trees.two_level(), trees.cxl("3.0")),
    *(trees.ROCM.encode(), trees.sysfs_box().tar("w")),
]


@pytest.mark.parametrize("first", range(len(SOURCES)))
def test_any_two_machines_give_a_topology_or_are_said_to_be_two(first):
    impossible: set[str] = set()
    for second in SOURCES:
        try:
            found = together(SOURCES[first], second)
        except ExchangeError as error:
            impossible.update(one.code for one in error.findings)
            continue
        build_topology(found.description)
        gpus = import_text(None, SOURCES[first], "a.txt").machine.of_kind("gpu")
        assert not gpus or len(found.machine.of_kind("gpu")) == len(gpus)
    assert impossible <= {"sources-disagree"}


def test_what_no_machine_can_be_is_said():
    with pytest.raises(ExchangeError, match="what no machine can be") as caught:
        together(twins.two_sockets(), LSPCI)
    (said,) = caught.value.findings
    assert said.code == "sources-disagree"
    assert "nvlink" in said.message


def test_another_device_at_an_address_is_an_error():
    found = together(LSPCI, trees.cxl("3.0"))
    assert "at 0000:01:00.0 gpu in a.txt, cxl-memory in b.txt" in disagreements(found)
    assert not found.machine.of_kind("cxl-memory")


@given(one=damaged(SOURCES[:11]), other=damaged(SOURCES[:11]))
def test_damaged_sources_combine_or_are_refused(one, other):
    with suppress(TopoError):
        build_topology(together(one, other).description)


# --- real pairs -----------------------------------------------------------------------------------

PAIRS = {
    "g5": ("hwloc-xml/aws-g5.48xl-8xA10G.xml", "nccl-xml/aws-g5.48xl-a10g.xml"),
    "p4": ("nccl-xml/aws-p4de-a100-80.xml", "hwloc-xml/aws-p4d-8xA100.xml"),
    "asus": ("lspci/asus-esc8000a-lspci-tv.txt", "nvidia-smi/asus-esc8000a-4xRTX6000Ada-CX7.txt"),
    "asus-vvv": (
        "lspci/asus-esc8000a-lspci-vvv-devices.txt",
        "nvidia-smi/asus-esc8000a-4xRTX6000Ada-CX7.txt",
    ),
}


def real(name, *, turned=False):
    files = PAIRS[name][::-1] if turned else PAIRS[name]
    return import_together(
        [discover(None, (CORPUS / file).read_bytes(), file.rpartition("/")[2]) for file in files]
    )


@needs_corpus
@pytest.mark.parametrize("name", PAIRS)
@pytest.mark.parametrize("turned", [False, True])
def test_real_pairs_give_a_topology(name, turned):
    found = real(name, turned=turned)
    topology = build_topology(found.description)
    assert len(topology.of_kind("gpu")) == (4 if "asus" in name else 8)
    assert len(found.machine.together) == 1


@needs_corpus
@pytest.mark.parametrize("turned", [False, True])
def test_p4d_and_p4de_are_not_quite_the_same(turned):
    text = " ".join(disagreements(real("p4", turned=turned)))
    assert "a100-sxm-80gb" in text
    assert "a100-sxm-40gb" in text
    assert "pcie 3 x16" in text
    assert "pcie 4 x16" in text


@needs_corpus
@pytest.mark.parametrize("turned", [False, True])
def test_g5_has_two_opinions_on_its_classes(turned):
    """Its hwloc file has a host bridge under the machine, so no NUMA node of any device."""
    (text,) = disagreements(real("g5", turned=turned))
    assert "class" in text
    assert "PHB" in text
    assert "SYS" in text


@needs_corpus
@pytest.mark.parametrize("turned", [False, True])
@pytest.mark.parametrize("name", ["asus", "asus-vvv"])
def test_the_asus_has_the_nodes_that_numactl_and_the_matrix_say(name, turned):
    found = real(name, turned=turned)
    assert not disagreements(found)
    topology = build_topology(found.description)
    assert [one.numa for one in topology.of_kind("cpu")] == [(0,), (1,)]
    matrix = [locality(topology, "gpu0", other) for other in ("gpu1", "gpu2", "nic0", "nic1")]
    assert matrix == ["NODE", "SYS", "NODE", "SYS"]
    assert topology["gpu3"].pci == ("e1:00.0",)
    assert topology["nic1"].rdma == ("mlx5_2", "mlx5_3")


def test_a_link_inside_the_chip_goes_with_its_gpu_to_the_other_sources_cpus():
    link = '<c2c bw="44712" count="5"/>'
    blind = system(cpu(-1, gpu("0000:21:00.0", link), card("0000:22:00.0", "mlx5_1")))
    assert "- gpu0 -- cpu1: 5x nvlink-c2c 44.712 GB/s" in together(blind, nccl()).yaml


def test_one_after_the_other_is_as_all_at_once():
    """What was combined already is told apart from the next source."""
    matrix, tree = smi(code="SYS", near="PHB", nodes=(0, 0)), LSPCI
    nodes = b"Model name: AMD EPYC 7763 64-Core Processor\nSocket(s): 1\nNUMA node0 CPU(s): 0-3\n"
    sources = [discover(None, data, name) for data, name in ((matrix, "a"), (tree, "b"))]
    further = discover(None, nodes, "c")
    at_once = import_together([*sources, further])
    in_steps = import_together([combined(sources), further])
    assert "part: epyc-7763" in in_steps.yaml
    assert in_steps.yaml == at_once.yaml
