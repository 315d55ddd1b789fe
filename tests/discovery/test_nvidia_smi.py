"""`nvidia-smi topo -m` in every form that people have it."""

from __future__ import annotations

import pytest

from tests.discovery.twins import MATRIX
from topo.discovery.file_kinds import file_kind
from topo.discovery.importing import import_text
from topo.discovery.sources.matrix_text import links_in, rank_of, read_matrix
from topo.errors import ExchangeError
from topo.topology.build import build_topology
from topo.topology.locality import locality, matrix, numa_nodes


def read(text):
    data = text.encode() if isinstance(text, str) else text
    return import_text("nvidia-smi", data, "smi.txt")


def codes(found):
    return [finding.code for finding in found.findings]


def classes(found):
    return matrix(build_topology(found.description), functions=True)


SPACES = MATRIX.replace("\t X \t", "\t X\t").expandtabs(8)
FORMS = {
    "tabs": MATRIX,
    "spaces": SPACES,
    "colours": MATRIX.replace("\tGPU0", "\x1b[4m\tGPU0").replace("NUMA ID", "NUMA ID\x1b[0m"),
    "pasted": f"user@host:~$ nvidia-smi topo -m\n{MATRIX}user@host:~$ \n",
    "no legend": MATRIX.partition("Legend")[0],
    "no leading tab": MATRIX[1:],
    "indented": "".join(f"    {line}\n" for line in MATRIX.splitlines()),
    "windows": MATRIX.replace("\n", "\r\n"),
    "powershell": ("\ufeff" + MATRIX).encode("utf-16-le"),
    "one space": "\n".join(" ".join(line.split()) for line in MATRIX.splitlines()),
}
HIDDEN_LEGEND = {"no legend"}


@pytest.mark.parametrize("form", FORMS)
def test_every_form_is_one_machine(form):
    found = read(FORMS[form])
    rows = classes(found)
    assert rows["gpu0"] == {"gpu0": "X", "gpu1": "NV4", "nic0": "PIX", "nic1": "SYS"}
    assert rows["gpu1"]["nic1"] == "PHB"
    topology = build_topology(found.description)
    assert [cpu.numa for cpu in topology.of_kind("cpu")] == [(0,), (1,)]
    nic = topology["nic0"]
    assert (nic.rdma or nic.label) == ("NIC0" if form in HIDDEN_LEGEND else ("mlx5_0",))


def test_old_words():
    text = "\tGPU0\tGPU1\tGPU2\nGPU0\t X \tPSB\tSOC\nGPU1\tPSB\t X \tSOC\nGPU2\tSOC\tSOC\t X \n"
    rows = classes(read(text))
    assert rows["gpu0"] == {"gpu0": "X", "gpu1": "PIX", "gpu2": "SYS"}


def test_old_names_in_odd_order():
    text = (
        "\tGPU0\tmlx5_2\tmlx5_1\tCPU Affinity\n"
        "GPU0\t X \tPIX\tNODE\t0-9\nmlx5_2\tPIX\t X \tNODE\t\nmlx5_1\tNODE\tNODE\t X \t\n"
    )
    found = read(text)
    assert "rdma: [mlx5_2, mlx5_1]" in found.yaml
    assert classes(found)["gpu0"] == {"gpu0": "X", "nic0": "PIX", "nic1": "NODE"}


@pytest.mark.parametrize(
    "cells", ["XSYSNODE", " X SYSNODE", "X SYS NODE", "X\tSYS  NODE   0-3 0 N/A"]
)
def test_cells_that_stick_together(cells):
    text = f"GPU0 GPU1 NIC0\nGPU0 {cells}\nGPU1 SYS X SYS\nNIC0 NODE SYS X\n"
    assert classes(read(text))["gpu0"] == {"gpu0": "X", "gpu1": "SYS", "nic0": "NODE"}


def test_short_rows_are_filled_from_the_other_half():
    text = "GPU0 GPU1 GPU2\nGPU0 X\nGPU1 SYS X\nGPU2 SYS PIX X\n"
    found = read(text)
    assert classes(found)["gpu1"] == {"gpu0": "SYS", "gpu1": "X", "gpu2": "PIX"}
    assert "ragged-matrix" in codes(found)


def test_a_row_that_the_terminal_wrapped():
    rows = ["GPU0 GPU1 GPU2 CPU Affinity", "GPU0 X SYS", "  PIX 0-3"]
    text = "\n".join([*rows, "GPU1 SYS X SYS 4-7", "GPU2 PIX SYS X 0-3"])
    found = read(text)
    assert classes(found)["gpu0"] == {"gpu0": "X", "gpu1": "SYS", "gpu2": "PIX"}
    assert "ragged-matrix" not in codes(found)


def test_the_first_of_two_codes_counts_and_is_said():
    text = "GPU0 GPU1\nGPU0 X PIX\nGPU1 SYS X\n"
    found = read(text)
    assert classes(found)["gpu0"]["gpu1"] == "PIX"
    assert "asymmetric-matrix" in codes(found)


def test_unknown_codes_are_named():
    text = "GPU0 GPU1 Node Affinity CPU Affinity\nGPU0 X HT 2 0-7\nGPU1 HT X 3 8-15\n"
    found = read(text)
    assert "unknown-code" in codes(found)
    assert "HT" in found.findings[0].message
    topology = build_topology(found.description)
    assert [cpu.numa for cpu in topology.of_kind("cpu")] == [(2,), (3,)]


# --- trees --------------------------------------------------------------------------------------


def test_two_ports_of_one_card():
    text = "GPU0 NIC0 NIC1\nGPU0 X NODE NODE\nNIC0 NODE X PIX\nNIC1 NODE PIX X\n"
    found = read(text)
    assert len(found.machine.of_kind("nic")) == 1
    assert classes(found)["nic0/f0"]["nic0/f1"] == "PIX"


def test_a_gpu_and_two_cards_on_one_switch():
    text = "GPU0 NIC0 NIC1\nGPU0 X PIX PIX\nNIC0 PIX X PIX\nNIC1 PIX PIX X\n"
    found = read(text)
    assert len(found.machine.of_kind("nic")) == 2
    assert len(found.machine.of_kind("pcie-switch")) == 1


def test_several_switches():
    text = "GPU0 GPU1 NIC0\nGPU0 X PXB PIX\nGPU1 PXB X PXB\nNIC0 PIX PXB X\n"
    found = read(text)
    rows = classes(found)
    assert (rows["gpu0"]["gpu1"], rows["gpu0"]["nic0"]) == ("PXB", "PIX")
    assert len(found.machine.of_kind("pcie-switch")) == 3


def test_one_host_bridge_and_several():
    text = "GPU0 GPU1 GPU2\nGPU0 X PHB NODE\nGPU1 PHB X NODE\nGPU2 NODE NODE X\n"
    found = read(text)
    assert classes(found)["gpu0"] == {"gpu0": "X", "gpu1": "PHB", "gpu2": "NODE"}
    assert len(found.machine.of_kind("root-complex")) == 1


def test_classes_that_no_tree_can_have():
    text = "GPU0 GPU1 GPU2\nGPU0 X PIX SYS\nGPU1 PIX X PIX\nGPU2 SYS PIX X\n"
    found = read(text)
    assert "impossible-matrix" in codes(found)
    assert "GPU0 to GPU2 is SYS, and by the other pairs PIX" in found.findings[0].message
    assert classes(found)["gpu0"]["gpu2"] == "PIX"


def mesh(count, code, affinity="0-7 0"):
    names = [f"GPU{at}" for at in range(count)]
    header = " ".join(names) + " CPU Affinity NUMA Affinity"
    rows = (
        " ".join([name, *("X" if other == name else code for other in names), affinity])
        for name in names
    )
    return "\n".join([header, *rows])


@pytest.mark.parametrize(
    ("count", "links", "switched"),
    [(2, 4, False), (4, 4, False), (3, 6, False), (8, 12, True), (8, 18, True), (4, 18, True)],
)
def test_more_links_than_a_gpu_has_go_by_a_switch(count, links, switched):
    found = read(mesh(count, f"NV{links}"))
    assert bool(found.machine.of_kind("nvswitch")) == switched
    assert locality(build_topology(found.description), "gpu0", "gpu1") == f"NV{links}"


def test_cards_whose_cpus_are_not_told_are_no_sign_of_a_virtual_machine():
    names = [*(f"GPU{at}" for at in range(4)), *(f"NIC{at}" for at in range(4))]
    rows = [
        " ".join([row, *("X" if row == column else "SYS" for column in names)]) for row in names
    ]
    nodes = [f"{row} {at}-{at} {at}" for at, row in enumerate(rows[:4])]
    header = f"{' '.join(names)} CPU Affinity NUMA Affinity"
    found = read("\n".join([header, *nodes, *rows[4:]]))
    assert "numa-unknown" in codes(found)
    assert "hidden-switches" not in codes(found)
    linked = [row.replace("SYS", "NV18", 3) for row in nodes]
    assert "hidden-switches" not in codes(read("\n".join([header, *linked, *rows[4:]])))


def test_affinity_decides_what_nvlink_hides():
    text = "GPU0 GPU1 CPU Affinity NUMA Affinity\nGPU0 X NV4 0-7 0\nGPU1 NV4 X 8-15 1\n"
    assert len(read(text).machine.of_kind("cpu")) == 2
    assert len(read(mesh(2, "NV4")).machine.of_kind("cpu")) == 1


def test_virtual_machines():
    assert "hidden-switches" in codes(read(mesh(4, "SYS")))
    names = [*(f"GPU{at}" for at in range(4)), *(f"NIC{at}" for at in range(4))]
    rows = [" ".join([one, *("X" if one == other else "PHB" for other in names)]) for one in names]
    assert "hidden-switches" in codes(read("\n".join([" ".join(names), *rows])))


def test_node_across_numa_nodes():
    text = "GPU0 GPU1 CPU Affinity NUMA Affinity\nGPU0 X NODE 0-7 0\nGPU1 NODE X 8-15 1\n"
    assert "node-across-numa" in codes(read(text))


def test_numa_nodes_that_are_a_list():
    text = "GPU0 CPU Affinity NUMA Affinity GPU NUMA ID\nGPU0 X 0-71 0,3-5 2\n"
    found = read(text)
    assert build_topology(found.description)["cpu0"].numa == (0, 3, 4, 5)
    assert "GPU NUMA ID 2" in found.yaml


# --- what stands behind the codes ---------------------------------------------------------------

EMPTY_FIELD = """\
\tGPU0\tGPU1\tCPU Affinity\tNUMA Affinity\tGPU NUMA ID
GPU0\t X \tNV6\t\t0\t\tN/A
GPU1\tNV6\t X \t24-47\t1\t\tN/A
"""
TOGETHER = """\
        GPU0    GPU1    CPU Affinity    NUMA Affinity   GPU NUMA ID
GPU0     X      NV2     0-11,24-350             N/A
GPU1    NV2      X      12-23,36-47     1               N/A
"""


@pytest.mark.parametrize("text", [EMPTY_FIELD, EMPTY_FIELD.expandtabs(8)], ids=["tabs", "spaces"])
def test_an_empty_field_keeps_its_place(text):
    affinity = read_matrix(text.encode(), "m").affinity
    assert [affinity[name].cpus for name in ("GPU0", "GPU1")] == ["", "24-47"]
    assert [affinity[name].nodes for name in ("GPU0", "GPU1")] == [(0,), (1,)]
    assert [cpu.numa for cpu in read(text).machine.of_kind("cpu")] == [(0,), (1,)]


def test_fields_that_run_together_are_not_believed():
    found = read(TOGETHER)
    assert "unclear-affinity" in codes(found)
    assert "24-350" not in found.yaml
    (finding,) = [one for one in found.findings if one.code == "unclear-affinity"]
    assert finding.place.line == 2


def test_names_of_columns_that_run_together():
    text = "GPU0 NIC0NIC1CPU Affinity\nGPU0 X PIX NODE 0-3\nNIC0 PIX X NODE\nNIC1 NODE NODE X\n"
    assert classes(read(text))["gpu0"] == {"gpu0": "X", "nic0": "PIX", "nic1": "NODE"}


def test_columns_that_were_left_out_are_said():
    text = "GPU0 . . . NIC7\nGPU0 X ... PIX\nNIC7 PIX ... X\n"
    found = read(text)
    assert "abridged" in codes(found)
    assert classes(found)["gpu0"]["nic0"] == "PIX"


def test_another_vendors_links_are_links_of_unknown_rate():
    text = "GPU0 GPU1\nGPU0 X QL2\nGPU1 QL2 X\n\nLegend:\n  QL# = Connection by # QuickLinks\n"
    text = text.replace("QL2", "QL").replace("QL#", "QL")
    found = read(text)
    assert [cable.cable for cable in found.machine.cables] == ["gpu-link"]
    assert "QL: Connection by # QuickLinks" in found.yaml
    assert "unknown-code" not in codes(found)


# --- told NUMA nodes ----------------------------------------------------------------------------


def test_told_numa_nodes_go_before_the_code_node():
    text = """\
    \tGPU0\tGPU1\tNIC0\tCPU Affinity\tNUMA Affinity
    GPU0\t X \tNV4\tNODE\t0-7\t0
    GPU1\tNV4\t X \tPIX\t8-15\t1
    NIC0\tNODE\tPIX\t X \t\t
    """
    found = read(text)
    assert "node-across-numa" in codes(found)
    assert [cpu.numa for cpu in found.machine.of_kind("cpu")] == [(0,), (1,)]
    assert classes(found)["gpu0"]["nic0"] == "SYS"


def test_there_are_as_many_numa_nodes_as_are_told():
    text = "GPU0 GPU1 GPU2 CPU Affinity NUMA Affinity\nGPU0 X SYS SYS 0-3 0\n"
    found = read(f"{text}GPU1 SYS X SYS 0-3 0\nGPU2 SYS SYS X 4-7 1\n")
    assert [cpu.numa for cpu in found.machine.of_kind("cpu")] == [(0,), (1,)]
    assert "hidden-switches" in codes(found)
    assert classes(found)["gpu0"] == {"gpu0": "X", "gpu1": "NODE", "gpu2": "SYS"}


def test_a_card_that_is_near_nothing_has_no_cpu_of_its_own():
    text = "GPU0 GPU1 NIC0 NIC1 CPU Affinity NUMA Affinity\nGPU0 X NV2 SYS SYS 0-3 0\n"
    found = read(f"{text}GPU1 NV2 X SYS SYS 4-7 1\nNIC0 SYS SYS X SYS\nNIC1 SYS SYS SYS X\n")
    assert [cpu.numa for cpu in found.machine.of_kind("cpu")] == [(0,), (1,)]
    assert "numa-unknown" in codes(found)
    topology = build_topology(found.description)
    assert numa_nodes(topology, "nic0") == ()
    row = {"gpu0": "SYS", "gpu1": "SYS", "nic0": "X", "nic1": "SYS"}
    assert classes(found)["nic0"] == row


# --- refusals -----------------------------------------------------------------------------------

PEERS = "\tGPU0\tGPU1\n GPU0\tX\tOK\n GPU1\tOK\tX\n"


@pytest.mark.parametrize(
    ("text", "code", "words"),
    [
        (PEERS, "wrong-kind", "topo -p2p"),
        (PEERS.replace("OK", "NS"), "wrong-kind", "topo -p2p"),
        ("hello", "unreadable-matrix", "no line that names GPU0"),
        ("\tGPU0\tGPU1\n", "unreadable-matrix", "no row"),
        ("<system version='1'/>", "wrong-kind", "an NCCL topology file"),
        ("GPU0\n" + "x" * 200_000, "import-too-big", "line of more"),
        (" ".join(f"GPU{at}" for at in range(600)) + "\nGPU0 X", "import-too-big", "600 devices"),
    ],
)
def test_what_it_is_not(text, code, words):
    with pytest.raises(ExchangeError, match=words) as caught:
        read(text)
    assert [one.code for one in caught.value.findings] == [code]


def test_words_of_the_matrix():
    assert [rank_of(code) for code in ("X", "PIX", "SOC", "NV4", "HT")] == [0, 1, 5, None, None]
    assert [links_in(code) for code in ("NV18", "NODE")] == [18, 0]
    assert read_matrix(MATRIX.encode(), "m").legend == {"NIC0": "mlx5_0", "NIC1": "mlx5_1"}


def test_the_peer_to_peer_matrix_of_one_gpu_is_known_by_its_legend():
    text = "\tGPU0\nGPU0\t X\n\nLegend:\n\n  X    = Self\n  OK   = Status Ok\n  U    = Unknown\n"
    assert "topo -p2p" in file_kind(text.encode()).words
