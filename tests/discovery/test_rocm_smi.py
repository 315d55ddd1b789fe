"""rocm-smi --showtopo."""

from __future__ import annotations

import json

import pytest
from hypothesis import given

from tests.discovery.pasted import hostile, ragged, shape, survives
from tests.discovery.test_mutations import damaged
from tests.discovery.trees import ROCM
from topo.discovery.file_kinds import file_kind
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


# --- JSON ---------------------------------------------------------------------------------------

LINKS = {(0, 1): ("XGMI", 1, 15), (0, 2): ("PCIE", 3, 72), (1, 2): ("PCIE", 3, 72)}
JSON = (
    json.dumps(
        {
            "system": {
                f"(Topology) {what} between DRM devices {a} and {b}": str(values[at])
                for (a, b), values in LINKS.items()
                for at, what in enumerate(("Link type", "Hops", "Weight"))
            }
        }
        | {
            f"card{at}": {"(Topology) Numa Node": str(node), "(Topology) Numa Affinity": str(node)}
            for at, node in enumerate((0, 0, 1))
        }
    )
    + "\n"
)


def test_json_tells_what_the_tables_tell():
    assert file_kind(JSON.encode()).importer == "rocm-smi"
    for data in (JSON, f"\nWARNING: AMD GPU device(s) is/are in a low-power state.\n\n{JSON}"):
        found = import_text("rocm-smi", data.encode(), "amd.json")
        assert [(cable.a, cable.b) for cable in found.machine.cables] == [("gpu 0", "gpu 1")]
        nodes = [cpu.numa for cpu in build_topology(found.description).of_kind("cpu")]
        assert nodes == [(0,), (1,)]


@pytest.mark.parametrize(
    ("data", "code"),
    [
        ('{"(Topology) x": ' + "[" * 5000, "broken-json"),
        ('{"system": {"(Topology) Hops between DRM devices 0 and 1', "broken-json"),
        ('{"(Topology) ": 1, "card0": {"(Topology) Numa Node": "x"}}', "nothing-there"),
    ],
)
def test_hostile_json(data, code):
    with pytest.raises(ExchangeError) as caught:
        import_text("rocm-smi", data.encode(), "amd.json")
    assert caught.value.findings[0].code == code


@pytest.mark.parametrize("text", [ROCM, JSON], ids=["text", "JSON"])
def test_however_it_was_pasted(text):
    plain = import_text(None, text.encode(), "amd.txt")
    for how, data in ragged(text).items():
        assert shape(import_text(None, data, "amd.txt")) == shape(plain), how
    for data in hostile(text).values():
        survives(lambda data=data: import_text("rocm-smi", data, "amd.txt"))


@given(data=damaged([ROCM.encode(), JSON.encode()]))
def test_damaged(data):
    survives(lambda: build_topology(import_text("rocm-smi", data, "amd.txt").description))
