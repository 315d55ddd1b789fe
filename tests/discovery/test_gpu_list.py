"""nvidia-smi's table, -L and queries, and collect_env: what GPUs are."""

from __future__ import annotations

import pytest

from tests.discovery.test_combine import nccl, smi
from topo.discovery.file_kinds import file_kind
from topo.discovery.importing import discover, import_text, import_together
from topo.errors import ExchangeError

LIST = (
    "GPU 0: NVIDIA H100 80GB HBM3 (UUID: GPU-11111111-2222-3333-4444-555555555555)\n"
    "GPU 1: NVIDIA H100 80GB HBM3 (UUID: GPU-11111111-2222-3333-4444-666666666666)\n"
    "  MIG 1g.10gb     Device  0: (UUID: MIG-11111111-2222-3333-4444-777777777777)\n"
)
EDGE = (
    "+-----------------------------------------+------------------------+----------------------+\n"
)
TABLE = (
    EDGE
    + "| NVIDIA-SMI 550.54.15              Driver Version: 550.54.15     CUDA Version: 12.4     |\n"
    "|-----------------------------------------+------------------------+----------------------+\n"
    "| GPU  Name                 Persistence-M | Bus-Id          Disp.A | Volatile Uncorr ECC |\n"
    "|=========================================+========================+======================|\n"
    "|   0  NVIDIA H100 80GB HBM3          On  |   00000000:11:00.0 Off |                    0 |\n"
    "| N/A   31C    P0             70W /  700W |       0MiB /  81559MiB |      0%      Default |\n"
    + EDGE
    + "|   1  Acme 9000                      Off |   00000000:21:00.0 Off |                 N/A |\n"
    + EDGE
)
QUERY = (
    "index, name, pci.bus_id, memory.total [MiB]\n"
    "0, NVIDIA A100-SXM4-80GB, 00000000:11:00.0, 81920 MiB\n"
    "1, NVIDIA A100-SXM4-80GB, 00000000:21:00.0, 81920 MiB\n"
)
COLLECTED = "GPU models and configuration: GPU 0: NVIDIA H200\nGPU 1: NVIDIA H200\n"
TOGETHER = "GPU 0,1,2,3: NVIDIA GeForce RTX 3090\n"
PLAIN = {
    "-L": LIST,
    "table": TABLE,
    "query": QUERY,
    "collect_env": COLLECTED,
    "together": TOGETHER,
}


def told(text):
    data = text if isinstance(text, bytes) else text.encode()
    return discover(None, data, "gpus.txt")


@pytest.mark.parametrize("text", PLAIN.values(), ids=PLAIN)
def test_it_is_known_and_refused_alone(text):
    assert file_kind(text.encode()).importer == "gpus"
    with pytest.raises(ExchangeError, match="tells what its GPUs are, and not what machine"):
        import_text(None, text.encode(), "gpus.txt")


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        (LIST, [("h100-sxm-80gb", ())] * 2),
        (TABLE, [("h100-sxm-80gb", ("0000:11:00.0",)), ("gpu-unknown", ("0000:21:00.0",))]),
        (QUERY, [("a100-sxm-80gb", ("0000:11:00.0",)), ("a100-sxm-80gb", ("0000:21:00.0",))]),
        (COLLECTED, [("h200-sxm-141gb", ())] * 2),
        (TOGETHER, [("rtx-3090", ())] * 4),
    ],
    ids=PLAIN,
)
def test_names_and_addresses(text, expected):
    assert [(gpu.part, gpu.pci) for gpu in told(text).devices] == expected


def test_a_name_without_a_part_is_said():
    (finding,) = told(TABLE).findings
    assert (finding.code, finding.message) == ("unknown-gpu", "topo has no part for Acme 9000")


@pytest.mark.parametrize(
    ("name", "part"),
    [
        ("NVIDIA H100 80GB H...", "h100-sxm-80gb"),
        ("NVIDIA A100-SXM...", "gpu-unknown"),
        ("NVIDIA ...", "gpu-unknown"),
    ],
)
def test_a_name_that_is_cut_off_is_that_of_the_only_part_that_it_can_be(name, part):
    first = told(TABLE.replace("NVIDIA H100 80GB HBM3", f"{name:21}")).devices[0]
    assert (first.part, first.evidence) == (part, name)


def test_gpus_of_a_matrix_get_their_part_and_their_links_a_generation():
    found = import_together([discover(None, smi(), "a.txt"), told(LIST)])
    assert "gpu[0-1]: h100-sxm-80gb" in found.yaml
    assert "gpu0 -- gpu1: 4x nvlink 4" in found.yaml
    assert "# GPUs were matched by their order: a.txt has no addresses." in found.yaml


def test_another_name_is_a_contradiction():
    query = discover(None, QUERY.encode(), "b.txt")
    found = import_together([discover(None, nccl(), "a.xml"), query, told(LIST)])
    messages = [one.message for one in found.findings if one.code == "sources-disagree"]
    assert messages == [
        "gpu[0-1]: part a100-sxm-80gb in a.xml with b.txt, h100-sxm-80gb in gpus.txt"
    ]
