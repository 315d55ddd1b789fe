"""Every real machine with a GPU and a card or a drive is compared and drawn, storage attached.

The corpus lies beside the checkout and is no part of it: without it these tests are skipped.
"""

from __future__ import annotations

from pathlib import Path

import pytest

from tests.discovery.test_corpus import data_of, rows
from topo.discovery.importing import import_text
from topo.errors import ExchangeError
from topo.study.compare import compare
from topo.topology.build import build_topology
from topo.views.diagram.sheet import draw

FOLDERS = ("nccl-xml", "hwloc-xml", "nvidia-smi", "lspci", "sysfs")
ALL = [row for folder in FOLDERS for row in rows(folder)]
REFUSED = {"WRONGKIND-topo-p2p-8gpu-OK", "asus-esc8000a-numactl"}
# One of each kind goes through the layout engine; the others are drawn as DOT.
PICTURES = {
    "oci-h100-bm",
    "aws-p6-b200",
    "h200-8gpu-8nic-shuffled",
    "asus-esc8000a-lspci-tv",
    "32intel64-2p8co2t+8ve.tar",
}


def imported(row, storage=()):
    """Import a file of the corpus, `None` where it is of a kind that is refused."""
    name = Path(row["file"]).name
    if Path(name).stem in REFUSED:
        with pytest.raises(ExchangeError):
            import_text(None, data_of(row), name)
        return None
    return import_text(None, data_of(row), name, storage=storage)


@pytest.mark.parametrize("row", ALL)
def test_it_is_compared_and_drawn(row):
    found = imported(row)
    if found is None:
        return
    kinds = {device.kind for device in found.machine.devices}
    cards, drives = kinds & {"nic", "dpu"}, kinds & {"nvme", "storage"}
    topology = build_topology(found.description)
    assert draw(topology).dot.startswith(("digraph", "graph", "strict"))
    if "gpu" not in kinds or not (cards or drives):
        assert not topology.description.workloads
        if "gpu" in kinds:
            assert "no-storage" in {one.code for one in found.findings}
        return
    said = {one.code for one in found.findings}
    assert drives or "guessed-storage" in said
    answers(topology)
    if cards:
        by_hand = imported(row, storage=["nic0"])
        assert "guessed-storage" not in {one.code for one in by_hand.findings}
        topology = build_topology(by_hand.description)
        assert {"storage", "nic0"} in [{link.a.device, link.b.device} for link in topology.links]
        answers(topology)


def answers(topology):
    """Legacy and direct are compared, one with a rate, and both are drawn over the machine."""
    answer = compare(topology).workloads[0]
    assert [path.name for path in answer.paths] == ["legacy", "direct"]
    assert any(path.rate for path in answer.paths)
    assert draw(topology, answer=answer).dot


@pytest.mark.parametrize("row", [row for row in ALL if row.id in PICTURES] or ALL[:1])
def test_a_picture_is_laid_out(row):
    topology = build_topology(imported(row).description)
    drawn = draw(topology, answer=compare(topology).workloads[0])
    assert drawn.svg().lstrip().startswith(("<?xml", "<svg"))
