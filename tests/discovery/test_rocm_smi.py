"""rocm-smi --showtopo."""

from __future__ import annotations

import pytest

from tests.discovery.trees import ROCM
from topo.discovery.importing import import_text
from topo.errors import ExchangeError
from topo.topology.build import build_topology
from topo.topology.locality import locality


def test_xgmi_joins_and_numa_nodes_part():
    found = import_text(None, ROCM.encode(), "amd.txt")
    topology = build_topology(found.description)
    assert [one.cable for one in found.machine.cables] == ["xgmi unknown"]
    assert locality(topology, "gpu0", "gpu2") == "SYS"
    assert [cpu.numa for cpu in topology.of_kind("cpu")] == [(0,), (1,)]


def test_two_hops_are_no_link():
    text = ROCM.replace("GPU0   0            1            3", "GPU0   0            2            3")
    assert not import_text(None, text.encode(), "amd.txt").machine.cables


def test_a_weight_of_two_hops_is_no_link():
    """Some drivers write 1 hop for all; a hop of xGMI weighs 15."""
    rows = [("GPU0", (0, 30, 15)), ("GPU1", (30, 0, 15)), ("GPU2", (15, 15, 0))]
    head = "GPU0 GPU1 GPU2"
    text = "=== ROCm System Management Interface ===\n"
    for title, cell in (
        ("Weight", str),
        ("Hops", lambda weight: str(min(weight, 1))),
        ("Link Type", lambda weight: "XGMI" if weight else "0"),
    ):
        text += f"=== {title} between two GPUs ===\n{head}\n"
        text += "".join(f"{name} {' '.join(map(cell, cells))}\n" for name, cells in rows)
    cables = import_text(None, text.encode(), "amd.txt").machine.cables
    assert [(cable.a, cable.b) for cable in cables] == [("gpu 0", "gpu 2"), ("gpu 1", "gpu 2")]


def test_tables_alone_do_not_tell_the_nodes():
    text = ROCM.partition("=================================== Numa")[0]
    found = import_text(None, text.encode(), "amd.txt")
    assert "numa-unknown" in [one.code for one in found.findings]


def test_halves_that_disagree():
    text = ROCM.replace("GPU1   XGMI ", "GPU1   PCIE ")
    found = import_text(None, text.encode(), "amd.txt")
    assert "asymmetric-matrix" in [one.code for one in found.findings]


def test_the_other_table_of_rocm_smi_is_refused():
    text = b"===== ROCm System Management Interface =====\nGPU  Temp   AvgPwr\n0    36.0c  90.0W\n"
    with pytest.raises(ExchangeError, match="--showtopo"):
        import_text(None, text, "amd.txt")
