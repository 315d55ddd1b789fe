"""What is asked of a folded cluster beside rates: members by name, localities, tables of all."""

from __future__ import annotations

import pytest

import topo
from topo.description import loading
from topo.errors import DescriptionError
from topo.exports.formats import EXPORTS, export_text
from topo.routes.route import Policy
from topo.study.affinity import affinities
from topo.study.check import check
from topo.study.question import ask
from topo.study.upgrade import upgrades
from topo.topology.build import build_topology
from topo.topology.locality import matrix
from topo.topology.rules import gds_ranking, nccl_matrix
from topo.topology.topology import Topology

_CLUSTER = """
topo: 1
devices:
  node[0-11]: {use: dgx-h100}
  leaf[0-2]:  quantum-2
  spine:      quantum-2
  filer[0-1]: {part: nvme-of-target, ports: 4, read: 90 GB/s, write: 60 GB/s}
links:
  - node.slot1/p1 -- leaf in blocks: infiniband ndr
  - node.slot2/p1 -- leaf in blocks: infiniband ndr
  - leaf -- spine: 2x infiniband ndr
  - filer -- spine: 2x infiniband ndr
workloads:
  load: {read: 80 GB each, from: filer, to: node.gpu}
expect:
"""
# Sentences, and whether each holds.
_SENTENCES = {
    "load via direct is limited by filer1/read": True,
    "load via direct is limited by filer/read": True,
    "load via direct is limited by node7.slot1/chip": False,
    "load via direct is limited by leaf2 -> node9.slot1": False,
    "load via direct >= 170 GB/s": True,
    "node3.gpu5 to node3.slot1 is NODE": True,
    "node3.gpu5 to node3.slot2 is NODE": False,
    "node[0-11].gpu0 to node[0-11].gpu1 is NV18": False,
    "node2.gpu0 to node3.gpu0 is NV18": False,
    "node5.gpu to node5.gpu is NV18": False,
    "node5.gpu1 to node5.gpu[2-7] is NV18": True,
    "node5.gpu5 to filer1 via direct is possible": True,
    "node5.gpu5 to filer0 via p2pdma is not possible": True,
}


@pytest.fixture(scope="module")
def both() -> tuple[Topology, Topology]:
    """Return the cluster folded and written out."""
    sentences = "\n".join(f"  - {sentence}" for sentence in _SENTENCES)
    description = loading.loads(f"{_CLUSTER}{sentences}\n", name="cluster")
    folded = build_topology(description, fold_from=1)
    assert folded.folding is not None
    return folded, build_topology(description, fold_from=10**9)


def test_expectations_name_members(both: tuple[Topology, Topology]) -> None:
    for topology in both:
        held = {judged.expectation.text: judged.holds for judged in check(topology)}
        assert held == _SENTENCES


def test_one_server_answers_for_all_that_are_alike(both: tuple[Topology, Topology]) -> None:
    folded, whole = both
    assert [finding.message for finding in folded.stand_ins] == [
        "node0 is one of 12 alike: node[0-11]"
    ]
    assert not whole.stand_ins
    for rows in (matrix, nccl_matrix):
        few, every = rows(folded), rows(whole)
        assert {name.partition(".")[0] for name in few} == {"node0"}
        assert few == {name: {to: every[name][to] for to in few} for name in few}
    ranked = gds_ranking(whole)
    assert gds_ranking(folded) == {
        name: ranked[name] for name in ranked if name.startswith("node0.")
    }
    few_gpus, all_gpus = affinities(folded).gpus, affinities(whole).gpus
    assert few_gpus == tuple(gpu for gpu in all_gpus if gpu.gpu.startswith("node0."))


def test_nccl_sees_no_nvlink_from_one_server_to_another(both: tuple[Topology, Topology]) -> None:
    paths = nccl_matrix(both[1])
    inside, between = paths["node3.gpu0"]["node3.gpu7"], paths["node3.gpu0"]["node4.gpu0"]
    assert inside is not None
    assert inside.type == "NVL"
    assert between is None


@pytest.mark.parametrize("kind", [kind for kind, each in EXPORTS.items() if not each.drawn])
def test_a_table_has_each_device(kind: str, both: tuple[Topology, Topology]) -> None:
    texts = []
    for topology in both:
        try:
            texts.append(export_text(kind, topology).text)
        except topo.TopoError as error:
            texts.append(str(error))
    assert texts[0] == texts[1]


def test_an_end_that_is_not_given_is_all(both: tuple[Topology, Topology]) -> None:
    folded, whole = both
    assert set(ask(folded, "filer1", "").targets) == set(ask(whole, "filer1", "").targets)
    assert set(ask(folded, "", "node7.gpu3").sources) == {"filer0", "filer1"}


def test_changes_are_asked_of_each_by_itself(both: tuple[Topology, Topology]) -> None:
    few, every = (upgrades(topology, via="direct") for topology in both)
    assert [(each.title, each.outcome.words) for each in few.ranked] == [
        (each.title, each.outcome.words) for each in every.ranked
    ]
    assert few.ranked[0].title.startswith("a second nvme-of-target beside each")


def test_too_many_to_ask_of_each_is_said() -> None:
    text = _CLUSTER.replace("expect:\n", "").replace("node[0-11]", "node[0-2399]")
    text = text.replace("leaf[0-2]:  quantum-2", "leaf[0-59]: {part: quantum-2, ports: 128}")
    text = text.replace("spine:      quantum-2", "spine: {part: quantum-2, ports: 128}")
    large = topo.loads(text)
    assert large.folding is not None
    with pytest.raises(DescriptionError, match="which topo does for at most"):
        upgrades(large, via="direct")
    with pytest.raises(DescriptionError, match="a choice of cards or routes is made for each"):
        topo.compare(large, via=["direct"], policy=Policy(routes="first"))


def test_reasons_name_all_that_are_alike(both: tuple[Topology, Topology]) -> None:
    texts = [reason.text for reason in topo.compare(both[0], via=["direct"])["direct"].reasons]
    assert any("node[0-11].cpu0 and node[0-11].cpu1" in text for text in texts)


def test_a_mistake_of_a_folded_cluster_says_of_how_many() -> None:
    text = _CLUSTER.replace("expect:\n", "").replace("  - filer -- spine: 2x infiniband ndr\n", "")
    description = loading.loads(text, name="cluster")
    with pytest.raises(DescriptionError) as caught:
        build_topology(description, fold_from=1)
    notes = [note for finding in caught.value.findings for note in finding.notes]
    assert "filer0 is one of 2 alike: filer0, filer1" in notes


@pytest.mark.parametrize("changes", [{}, {"node1.nvme0.read": "1 GB/s"}])
def test_the_nearest_of_one_server_are_those_of_all_that_are_alike(changes) -> None:
    text = """
topo: 1
devices:
  node[0-3]:  {use: dell-xe9680}
  filer[0-1]: {part: nvme-of-target, ports: 4, read: 90 GB/s, write: 60 GB/s}
links:
  - filer0 -- node.slot0: infiniband ndr
  - filer1 -- node.slot1: infiniband ndr
workloads:
  load:  {read: 80 GB each, from: filer, to: node.gpu, pairing: nearest}
  local: {read: 80 GB each, from: node.nvme, to: node.gpu, pairing: nearest}
  peers: {copy: 80 GB each, from: node.gpu, to: node.gpu, pairing: nearest}
"""
    description = loading.loads(text, name="cluster", overrides=changes)
    folded, whole = (build_topology(description, fold_from=size) for size in (1, 10**9))
    assert folded.folding is not None
    few, every = topo.compare(folded), topo.compare(whole)
    for name in ("load", "local", "peers"):
        rates = [[path.rate for path in side[name].paths] for side in (few, every)]
        assert rates[0] == pytest.approx(rates[1])
