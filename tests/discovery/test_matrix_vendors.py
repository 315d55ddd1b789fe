"""Matrices of other vendors' tools: npu-smi, xpu-smi, mx-smi, mthreads-gmi."""

from __future__ import annotations

import pytest
from hypothesis import given

from tests.discovery.test_mutations import damaged, survives
from topo.discovery.importing import discover, import_text, import_together
from topo.errors import ExchangeError
from topo.topology.build import build_topology
from topo.topology.locality import locality

NPU = """\
$ npu-smi info -t topo
           NPU0       NPU1       NPU2       NPU3       CPU Affinity
NPU0       X          HCCS       SYS        SYS        0-23
NPU1       HCCS       X          SYS        SYS        0-23
NPU2       SYS        SYS        X          HCCS       24-47
NPU3       SYS        SYS        HCCS       X          24-47

Legend:

  X    = Self
  HCCS = What joins the two
  NA   = Not told
"""
DIES = """\
           Phy-ID0    Phy-ID1    Phy-ID2    Phy-ID3
Phy-ID0    X          SIO        HCCS_SW    HCCS_SW
Phy-ID1    SIO        X          HCCS_SW    HCCS_SW
Phy-ID2    HCCS_SW    HCCS_SW    X          SIO
Phy-ID3    HCCS_SW    HCCS_SW    SIO        X
"""
INTEL = """\
         GPU 0/0  GPU 0/1  GPU 1/0  GPU 1/1  CPU Affinity
GPU 0/0  S        MDF      XL8      XL*      0-15
GPU 0/1  MDF      S        XL*      XL8      0-15
GPU 1/0  XL8      XL*      S        MDF      16-31
GPU 1/1  XL*      XL8      MDF      S        16-31
"""
METAX = """\
=================== MetaX System Management Interface Log ===================
Attached GPUs                                     : 3
        GPU0    GPU1    GPU2
GPU0    X       MX      SYS
GPU1    MX      X       SYS
GPU2    SYS     SYS     X
"""
MOORE = """\
        GPU0    GPU1    GPU2    NIC0    CPU Affinity    NUMA Affinity
GPU0     X      MT2     MT2     PIX     0-15            0
GPU1    MT2      X      MT2     NODE    0-15            0
GPU2    MT2     MT2      X      SYS     16-31           1
NIC0    PIX     NODE    SYS      X
"""
TEXTS = {"npu-smi": NPU, "xpu-smi": INTEL, "mx-smi": METAX, "mthreads-gmi": MOORE}


def cables(text):
    return {
        (cable.a, cable.b) for cable in import_text(None, text.encode(), "m.txt").machine.cables
    }


@pytest.mark.parametrize(("kind", "text"), TEXTS.items())
def test_each_is_known_for_what_it_is(kind, text):
    imported = import_text(None, text.encode(), "m.txt")
    assert imported.kind == kind
    assert not [finding for finding in imported.findings if finding.code == "unknown-code"]
    with pytest.raises(ExchangeError, match="not what `nvidia-smi` reads"):
        import_text("nvidia-smi", text.encode(), "m.txt")


def test_npus_are_joined_in_pairs_and_parted_by_sockets():
    imported = import_text(None, NPU.encode(), "m.txt")
    assert cables(NPU) == {("NPU0", "NPU1"), ("NPU2", "NPU3")}
    topology = build_topology(imported.description)
    assert locality(topology, "gpu0", "gpu2") == "SYS"
    assert {gpu.part.name for gpu in topology.of_kind("gpu")} == {"ascend-unknown"}
    assert imported.machine.title() == "4 NPUs, 2 NUMA nodes"


def test_dies_of_a_module_are_joined_and_all_lead_to_the_switch():
    joined = cables(DIES)
    assert {pair for pair in joined if "switch of HCCS_SW" not in pair} == {
        ("Phy-ID0", "Phy-ID1"),
        ("Phy-ID2", "Phy-ID3"),
    }
    assert len(joined) == 6


def test_tiles_and_xe_links():
    imported = import_text(None, INTEL.encode(), "m.txt")
    assert len(imported.machine.cables) == 6
    evidence = [cable.evidence for cable in imported.machine.cables]
    assert evidence.count("XL8: lanes of Xe Link") == 2
    assert len(imported.machine.of_kind("cpu")) == 2


def test_a_metax_matrix_without_its_heading():
    text = METAX[METAX.index("        GPU0") :]
    imported = import_text(None, text.encode(), "m.txt")
    assert imported.kind == "mx-smi"
    assert cables(text) == {("GPU0", "GPU1")}


@pytest.mark.parametrize("text", [*TEXTS.values(), DIES])
def test_ragged(text):
    whole = cables(text)
    coloured = "\x1b[4m" + text.replace("\n", "\x1b[0m\r\n")
    assert cables(coloured) == whole
    assert cables("```\n" + text + "```\n") == whole
    assert cables("".join(f"> {line}\n" for line in text.splitlines())) == whole
    assert cables("\n".join(" ".join(line.split()) for line in text.splitlines())) == whole


@pytest.mark.parametrize(
    "text",
    [
        " ".join(f"NPU{at}" for at in range(20_000)) + "\nNPU0 X",
        NPU.replace("NPU1", "NPU" + "9" * 5000),
        INTEL.replace("GPU 1/0", "GPU 1/\x000"),
        METAX.replace("MX", "M\x07X"),
        "NPU0 NPU1\n" * 5000,
    ],
    ids=["columns", "number", "nul", "bell", "headers"],
)
def test_hostile(text):
    survives(None, text.encode())


@given(data=damaged([text.encode() for text in (*TEXTS.values(), DIES)]))
def test_damaged(data):
    survives(None, data)


def test_links_are_laid_upon_the_tree_of_another_source():
    line = "0{}:00.0 Processing accelerators: Huawei Technologies Co., Ltd. Device d802"
    tree = "\n".join(["00:00.0 Host bridge: A", *(line.format(at) for at in range(1, 5))])
    sources = (discover(None, text.encode(), name) for name, text in (("l", tree), ("m", DIES)))
    cables = import_together(list(sources)).machine.cables
    assert [cable.cable for cable in cables] == ["gpu-link"] * 6
