"""`hl-smi topo`: the NUMA nodes of Gaudi accelerators."""

from __future__ import annotations

import pytest
from hypothesis import given

from tests.discovery.pasted import hostile, ragged, shape, survives
from tests.discovery.test_mutations import damaged
from tests.discovery.test_numa_nodes import XEON, lscpu
from topo.discovery.file_kinds import file_kind
from topo.discovery.importing import discover, import_text, import_together
from topo.errors import ExchangeError
from topo.topology.build import build_topology
from topo.topology.locality import locality

BOTH = "modID   CPU Affinity    NUMA Affinity    \n-----   ------------    -------------    \n" + (
    "".join(f"{at}       0-39, 80-119    0  \n" for at in range(2))
    + "".join(f"{at}       40-79, 120-159          1  \n" for at in (2, 3))
)
CPUS = "modID   CPU Affinity\n-----   ------------\n0       0-39, 80-119\n1       40-79\n"
NODES = "modID   NUMA Affinity\n-----   -------------\n0       0\n1       1\n"
PLAIN = {"both": BOTH, "CPUs": CPUS, "nodes": NODES}


def read(text):
    data = text if isinstance(text, bytes) else text.encode()
    return import_text(None, data, "gaudi.txt")


def test_accelerators_hang_on_their_nodes():
    found = read(BOTH)
    topology = build_topology(found.description)
    assert file_kind(BOTH.encode()).importer == "hl-smi"
    assert {gpu.part.name for gpu in topology.of_kind("gpu")} == {"gaudi-unknown"}
    assert (locality(topology, "gpu0", "gpu1"), locality(topology, "gpu1", "gpu2")) == (
        "NODE",
        "SYS",
    )
    assert "CPU affinity 0-39, 80-119" in found.yaml


def test_cpus_alone_tell_no_nodes():
    found = read(CPUS)
    assert "numa-unknown" in {finding.code for finding in found.findings}
    assert [cpu.numa for cpu in build_topology(read(NODES).description).of_kind("cpu")] == [
        (0,),
        (1,),
    ]


def test_the_cpus_model_comes_from_lscpu():
    sources = [discover(None, text.encode(), "x.txt") for text in (BOTH, lscpu(2, 2, XEON))]
    assert "xeon-8480c" in import_together(sources).yaml


def test_a_table_without_rows():
    with pytest.raises(ExchangeError, match="no row of an accelerator"):
        read("modID   CPU Affinity    NUMA Affinity\nx y z\n")


@pytest.mark.parametrize("what", PLAIN)
def test_ragged(what):
    for how, data in ragged(PLAIN[what]).items():
        assert shape(read(data)) == shape(read(PLAIN[what])), how


@pytest.mark.parametrize("what", PLAIN)
def test_hostile(what):
    for data in hostile(PLAIN[what]).values():
        survives(lambda data=data: import_text("hl-smi", data, "gaudi.txt"))


@given(data=damaged([text.encode() for text in PLAIN.values()]))
def test_damaged(data):
    survives(lambda: build_topology(import_text("hl-smi", data, "gaudi.txt").description))
