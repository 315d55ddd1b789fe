"""A cluster that is folded answers as the same cluster written out."""

from __future__ import annotations

import math
from collections import Counter
from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as some

import topo
from bench.large_cluster import alike
from topo.description import loading
from topo.description.description import End
from topo.description.without import without
from topo.errors import TopoError
from topo.routes.route import Policy
from topo.study.failures import parts_of
from topo.topology.build import build_topology
from topo.topology.folding import NotFolded, folded
from topo.topology.refinement import agree
from topo.topology.tiers import networks
from topo.topology.units import Cables
from topo.views.diagram.grouping import group

if TYPE_CHECKING:
    from topo.description.description import Description
    from topo.topology.topology import Topology

_APPLIANCE = "{part: nvme-of-target, ports: 64, read: 90 GB/s, write: 60 GB/s}"
_ALL, _NEVER = 1, 10**9


_SERVER = """
topo: 1
devices:
  slot[1-2]: connectx-7-dual-port
  cpu: xeon-8480c
  ram: {part: ddr5-4800, channels: 8}
  gpu[0-1]: h100-pcie-80gb
links:
  - slot -- cpu: pcie 5 x16
  - ram -- cpu: memory-bus
  - gpu -- cpu: pcie 5 x16
settings: {iommu: off}
"""


@pytest.fixture(scope="module", autouse=True)
def _server(tmp_path_factory: pytest.TempPathFactory) -> Iterator[None]:
    """Put a small server beside the clusters."""
    folder = tmp_path_factory.mktemp("clusters")
    (folder / "server.yaml").write_text(_SERVER)
    with pytest.MonkeyPatch.context() as patch:
        patch.chdir(folder)
        yield


def _description(text: str, **options: Any) -> Description:
    Path("cluster.yaml").write_text(text)
    return loading.load("cluster.yaml", **options)


def _cluster(text: str) -> tuple[Topology, Topology]:
    """Return a cluster folded and written out."""
    description = _description(text)
    return build_topology(description, fold_from=_ALL), build_topology(
        description, fold_from=_NEVER
    )


def _text(devices: str, links: list[str], workloads: str) -> str:
    lines = "\n".join(f"  - {link}" for link in links)
    return f"topo: 1\ndevices:\n{devices}\nlinks:\n{lines}\nworkloads:\n{workloads}\n"


_WORKLOADS = """
  load: {read: 8 GB each, from: appliance, to: node.gpu}
  save: {write: 100 GB, from: node.gpu, to: appliance, limit: 70 GB/s}
"""


@some.composite
def clusters(draw: some.DrawFn) -> str:
    """Return a cluster of like servers, cabled in any way to leaves, spines and appliances."""
    nodes, leaves = draw(some.integers(2, 9)), draw(some.integers(1, 4))
    spines, appliances = draw(some.integers(0, 3)), draw(some.integers(1, 3))
    devices = [
        f"  node[0-{nodes - 1}]: {{use: server.yaml}}",
        f"  leaf[0-{leaves - 1}]: {{part: quantum-2, ports: 128x infiniband ndr}}",
        f"  appliance[0-{appliances - 1}]: {_APPLIANCE}",
    ]
    links = []
    regular = draw(some.booleans())
    for node in range(nodes):
        for card in ("slot1", "slot2"):
            leaf = node % leaves if regular else draw(some.integers(0, leaves - 1))
            links.append(f"node{node}.{card} -- leaf{leaf}: 2x infiniband ndr")
    if spines:
        devices.append(f"  spine[0-{spines - 1}]: {{part: quantum-2, ports: 128x infiniband ndr}}")
    uppers = [f"spine{spine}" for spine in range(spines)]
    for leaf in range(leaves):
        for upper in uppers:
            count = draw(some.sampled_from((0, 1, 1, 2)))
            if count:
                links.append(f"leaf{leaf} -- {upper}: {count}x infiniband ndr")
    places = uppers + [f"leaf{leaf}" for leaf in range(leaves)]
    for appliance in range(appliances):
        chosen = draw(some.lists(some.sampled_from(places), min_size=1, max_size=3, unique=True))
        links += [f"appliance{appliance} -- {place}: 2x infiniband ndr" for place in chosen]
    return _text("\n".join(devices), links, _WORKLOADS)


@settings(deadline=None)
@given(clusters())
def test_folded_answers_are_those_of_the_cluster_written_out(text: str) -> None:
    try:
        small, whole = _cluster(text)
    except TopoError:
        return  # something is cut off
    assert whole.folding is None
    for workload in ("load", "save"):
        for path in ("direct", "legacy"):
            answers = [topo.compare(t, workload=workload, via=[path])[path] for t in (small, whole)]
            few, all_ = answers
            assert few.verdict == all_.verdict
            if few.verdict == "refused":
                return
            assert few.certified
            assert few.rate == pytest.approx(all_.rate, rel=1e-9)
            assert few.start_rate == pytest.approx(all_.start_rate, rel=1e-9)
            assert few.time == pytest.approx(all_.time, rel=1e-9)
            assert (few.hops_range, few.links_range) == (all_.hops_range, all_.links_range)
            assert {full.kind for full in few.bound} == {full.kind for full in all_.bound}
            assert few.tied == all_.tied
            assert few.ram_floor == pytest.approx(all_.ram_floor, rel=1e-9)
            if small.folding is None:
                continue
            for demand, rate in zip(few.matrix.demands, few.rates.values(), strict=True):
                for endpoint in small.folding.names(demand.endpoint):
                    assert all_.rates[endpoint] == pytest.approx(rate, rel=1e-9)
    for basis in ("theoretical", "achievable"):
        few_runs, all_runs = (topo.simulate(t, via="direct", at=basis).runs for t in (small, whole))
        assert [run.finish for run in few_runs] == pytest.approx(
            [run.finish for run in all_runs], rel=1e-9
        )
    ladders = [topo.bottleneck(t, workload="load", via="direct") for t in (small, whole)]
    rates = [[rung.rate for rung in ladder.rungs] for ladder in ladders]
    assert rates[0] == pytest.approx(rates[1], rel=1e-9)
    one = [topo.compare(t, source="appliance0", target="node1.gpu1") for t in (small, whole)]
    assert one[0]["direct"].rate == pytest.approx(one[1]["direct"].rate, rel=1e-9)
    best = [topo.compare(t, workload="load", policy=Policy(nics="best")) for t in (small, whole)]
    assert best[0]["direct"].rate == best[1]["direct"].rate


@settings(deadline=None)
@given(clusters())
def test_gpus_that_copy_to_each_other_are_folded_too(text: str) -> None:
    text += "  swap: {copy: 100 GB, from: node.gpu, to: node.gpu}\n"
    try:
        small, whole = _cluster(text)
        answers = [topo.compare(t, workload="swap", via=["peer-pcie"]) for t in (small, whole)]
    except TopoError:
        return
    few, all_ = (answer["peer-pcie"] for answer in answers)
    assert few.verdict == all_.verdict
    if few.rate is not None:
        assert few.rate == pytest.approx(all_.rate, rel=1e-9)


@settings(deadline=None)
@given(
    clusters(),
    some.integers(1, 5),
    some.sampled_from(
        [
            ("{read: 8 GB each, from: cache.ram, to: node.gpu}", ("rdma-direct", "rdma-staged")),
            ("{write: 100 GB, from: node.gpu, to: cache.ram}", ("rdma-direct", "rdma-staged")),
            ("{copy: 100 GB, from: cache.ram, to: node.ram, pairing: all}", ("rdma", "sockets")),
            ("{copy: 9 GB, from: cache0.gpu, to: node.gpu}", ("peer-rdma", "peer-staged")),
        ]
    ),
)
def test_ends_in_other_servers_are_folded_too(text: str, caches: int, asked: Any) -> None:
    """Servers that lend their memory: alike, and cabled to one leaf or to two."""
    workload, via = asked
    devices = f"devices:\n  cache[0-{caches - 1}]: {{use: server.yaml}}"
    text = text.replace("devices:", devices, 1)
    text = text.replace("links:", "links:\n  - cache.slot1 -- leaf0: 2x infiniband ndr", 1)
    text = text[: text.index("workloads:")] + f"workloads:\n  w: {workload}\n"
    try:
        small, whole = _cluster(text)
        usual = [topo.compare(t, workload="w").workloads[0].paths for t in (small, whole)]
        assert [[path.name for path in paths] for paths in usual] == [[*via[::-1]]] * 2
        for path in via:
            few, all_ = (topo.compare(t, workload="w", via=[path])[path] for t in (small, whole))
            assert few.verdict == all_.verdict
            if few.rate is None:
                return
            assert few.rate == pytest.approx(all_.rate, rel=1e-9)
            assert few.start_rate == pytest.approx(all_.start_rate, rel=1e-9)
            assert (few.hops_range, few.links_range) == (all_.hops_range, all_.links_range)
            assert {full.kind for full in few.bound} == {full.kind for full in all_.bound}
            assert few.target_size == pytest.approx(all_.target_size, rel=1e-9)
    except TopoError:
        return  # something is cut off


def test_a_ring_of_six_is_not_taken_for_two_of_three() -> None:
    """Colour refinement alone tells nothing apart here; the distances do."""

    def ring(first: int, count: int) -> list[str]:
        numbers = range(first, first + count)
        pairs = ((n, first + (n - first + 1) % count) for n in numbers)
        return [f"leaf{a} -- leaf{b}: infiniband ndr" for a, b in pairs]

    links = [f"node{n}.slot1 -- leaf{n}: infiniband ndr" for n in range(12)]
    links += [f"appliance{n} -- leaf{n}: infiniband ndr" for n in range(12)]
    devices = (
        "  node[0-11]: {use: server.yaml}\n  leaf[0-11]: quantum-2\n"
        "  appliance[0-11]: {part: nvme-of-target, read: 9 GB/s, write: 9 GB/s}"
    )
    links += [*ring(0, 6), *ring(6, 3), *ring(9, 3)]
    workloads = "  load: {read: 8 GB each, from: appliance0, to: node0.gpu}"
    with pytest.raises(NotFolded):
        folded(_description(_text(devices, links, workloads)))


def test_a_ring_of_six_among_many_of_three_is_a_class_of_its_own() -> None:
    """Each sees the same of its neighbours; in the ring of six there are more ways across."""
    rings = [range(first, first + 3) for first in range(0, 60, 3)]
    rings[3:5] = [range(9, 15)]
    cables = [(ring[n], ring[(n + 1) % len(ring)]) for ring in rings for n in range(len(ring))]
    devices = (
        "  node[0-59]: {use: server.yaml}\n  leaf[0-59]: quantum-2\n  core: {part: quantum-2, "
        "ports: 120x infiniband ndr}\n  between[0-59]: quantum\n  up[0-59]: quantum-x800\n"
        f"  appliance[0-119]: {_APPLIANCE}"
    )
    links = [
        "node[0-59].slot1 -- leaf: infiniband ndr",
        "appliance[0-59] -- leaf: infiniband ndr",
        "appliance[60-119] -- core: infiniband ndr",
        "leaf -- up: infiniband hdr",
        "up -- core: infiniband hdr",
        *(
            f"leaf{end} -- between{n}: infiniband hdr"
            for n, both in enumerate(cables)
            for end in both
        ),
    ]
    workloads = "  load: {read: 8 GB each, from: appliance, to: node.gpu}"
    _, folding = folded(_description(_text(devices, links, workloads)))
    assert folding.classes["node9"] == tuple(f"node{n}" for n in range(9, 15))
    assert len(folding.classes["node0"]) == 54


# --- what colour refinement does not see ----------------------------------------------------------


@some.composite
def fabrics(draw: some.DrawFn) -> str:
    """Return groups of leaves and spines below cores, some of whose cables are swapped."""
    groups, leaves = draw(some.integers(2, 4)), draw(some.integers(1, 3))
    spines, nodes = draw(some.integers(1, 3)), draw(some.integers(1, 2))
    of_leaf = groups * leaves * nodes
    devices = [
        f"  node[0-{of_leaf - 1}]: {{use: server.yaml}}",
        f"  leaf[0-{groups * leaves - 1}]: quantum-2",
        f"  spine[0-{groups * spines - 1}]: quantum-2",
        f"  core[0-{spines - 1}]: quantum-2",
        f"  appliance[0-{spines - 1}]: {_APPLIANCE}",
    ]
    cables = [
        (f"leaf{group * leaves + leaf}", f"spine{group * spines + spine}")
        for group in range(groups)
        for leaf in range(leaves)
        for spine in range(spines)
    ]
    up = [
        (f"spine{group * spines + spine}", f"core{(spine + shift) % spines}")
        for group in range(groups)
        for spine in range(spines)
        for shift in range(draw(some.integers(1, spines)) if not group else 1)
    ]
    for these in (cables, up):
        for _ in range(draw(some.integers(0, 2))):
            a, b = draw(some.integers(0, len(these) - 1)), draw(some.integers(0, len(these) - 1))
            these[a], these[b] = (these[a][0], these[b][1]), (these[b][0], these[a][1])
    links = ["node.slot1 -- leaf in blocks: infiniband ndr", "appliance -- core: 2x infiniband ndr"]
    slow = draw(some.sampled_from(("infiniband ndr", "infiniband hdr")))
    at = draw(some.integers(0, len(cables) - 1))
    links += [f"{a} -- {b}: infiniband ndr" for a, b in (*cables[:at], *cables[at + 1 :], *up)]
    links.append(f"{cables[at][0]} -- {cables[at][1]}: {slow}")
    return _text("\n".join(devices), links, _WORKLOADS)


@settings(deadline=None)
@given(fabrics())
def test_a_fabric_with_swapped_cables_answers_as_written_out(text: str) -> None:
    try:
        small, whole = _cluster(text)
    except TopoError:
        return  # something is cut off
    for workload in ("load", "save"):
        few, all_ = (topo.compare(t, workload=workload, via=["legacy"]) for t in (small, whole))
        assert few["legacy"].verdict == all_["legacy"].verdict
        if few["legacy"].rate is None:
            return
        assert few["legacy"].time == pytest.approx(all_["legacy"].time, rel=1e-9)
        assert few["legacy"].start_rate == pytest.approx(all_["legacy"].start_rate, rel=1e-9)
        if small.folding is None:
            continue
        matrix = few["legacy"].matrix
        assert matrix is not None
        for demand, rate in zip(matrix.demands, few["legacy"].rates.values(), strict=True):
            for endpoint in small.folding.names(demand.endpoint):
                assert all_["legacy"].rates[endpoint] == pytest.approx(rate, rel=1e-9)


@settings(deadline=None, max_examples=30)
@given(some.one_of(clusters(), fabrics()))
def test_what_is_left_folds_and_answers_as_it_does_from_nothing(text: str) -> None:
    """Whatever fails: what was found for another failure is found anew, and alike at least."""
    try:
        base = build_topology(_description(text), fold_from=_ALL)
    except TopoError:
        return  # something is cut off
    described, folding = base.description.folded, base.folding
    if described is None or folding is None:
        return  # its servers differ
    for part in parts_of(base):
        left = without(described, [part.first])
        fresh = replace(base, folding=replace(folding, cluster=replace(folding.cluster)))
        try:
            again, alone, anew = (
                build_topology(left, fold_from=_ALL, left_of=whole) for whole in (base, fresh, None)
            )
        except TopoError:
            continue
        assert again.resources == alone.resources
        assert [link.times for link in again.links] == [link.times for link in alone.links]
        if again.folding is not None and alone.folding is not None and anew.folding is not None:
            assert again.folding.cells == alone.folding.cells, part.first
            assert again.folding.classes == alone.folding.classes, part.first
            classes = set(map(frozenset, anew.folding.classes.values()))
            for names in again.folding.classes.values():  # what differed before may differ still
                assert any(names_anew.issuperset(names) for names_anew in classes), part.first
        few, all_ = (
            topo.compare(t, workload="load", via=["direct"])["direct"] for t in (again, anew)
        )
        assert (few.verdict, few.stopped_count) == (all_.verdict, all_.stopped_count), part.first
        assert (few.rate or 0.0) == pytest.approx(all_.rate or 0.0, rel=1e-9), part.first
    assert len(folding.cluster.partitions) <= len(folding.classes)  # once for what is in a server


@given(some.data())
def test_classes_agree_where_all_of_a_class_have_the_same_cables(data: some.DataObject) -> None:
    size = data.draw(some.integers(1, 6))
    place = some.integers(0, size - 1)
    codes = some.sampled_from((0, 1, 2, 70_000))
    drawn = data.draw(some.lists(some.tuples(place, place, codes), max_size=12))
    if data.draw(some.booleans()):  # alike by making
        drawn = [(owner, other, code) for _, other, code in drawn for owner in range(size)]
    colours = data.draw(some.lists(place, min_size=size, max_size=size))
    views = {each: Counter[tuple[int, int]]() for each in range(size)}
    for each, far, kind in drawn:
        views[each][kind, colours[far]] += 1
    owner, other, code = np.array(sorted(drawn), np.int64).reshape(-1, 3).T
    starts = np.flatnonzero(np.diff(owner, prepend=-1))
    cables = Cables(owner, other, code, code, starts, owner[starts], ())
    assert agree(np.array(colours, np.int64), cables) == all(
        views[a] == views[b] for a in views for b in views if colours[a] == colours[b]
    )


@pytest.fixture(scope="module")
def large() -> Description:
    return loading.loads(alike(), name="large")


def _cabled(description: Description, cables: dict[tuple[str, str], str]) -> Description:
    """Return the description with some cables led to another device, or left out."""
    links = []
    for link in description.links:
        other = cables.get((link.a.device, link.b.device))
        if other is None:
            links.append(link)
        elif other:
            links.append(replace(link, b=End(other, link.b.side)))
    return replace(description, links=tuple(links))


def test_two_swapped_cables_among_forty_thousand_are_found(large: Description) -> None:
    """Each leaf still has 20 spines, and each spine 40 leaves: of two groups, by one cable each."""
    swapped = _cabled(
        large, {("leaf-b93", "spine187"): "spine441", ("leaf-b223", "spine441"): "spine187"}
    )
    _, folding = folded(swapped)
    sizes = {first: len(names) for first, names in folding.classes.items() if "node" in first}
    # 25 servers below each of the two leaves, the others of their two groups, and 48 groups.
    assert sorted(set(sizes.values())) == [50, 450, 12_000]
    assert folding.classes["node2325"] == tuple(
        f"node{n}" for n in (*range(2325, 2350), *range(5575, 5600))
    )


def test_a_cable_that_a_later_member_lacks_is_found(large: Description) -> None:
    _, folding = folded(_cabled(large, {("leaf-c412", "spine837"): ""}))
    assert folding.classes["node10300"] == tuple(f"node{n}" for n in range(10_300, 10_325))
    assert folding.classes["leaf-c412"] == ("leaf-c412",)


def test_cables_that_symmetry_tells_apart_are_not_taken_for_alike() -> None:
    """All leaves are alike, and all tops; but of their HDR cables half run beside an NDR cable."""
    devices = (
        "  node[0-7]: {use: server.yaml}\n  leaf[0-7]: quantum-2\n  top[0-7]: quantum-x800\n"
        f"  appliance[0-7]: {_APPLIANCE}"
    )
    links = ["node.slot1 -- leaf: infiniband ndr", "appliance -- top: infiniband hdr"]
    for n in range(8):
        beside = f"leaf{n} -- top{(n + 1) % 8}: infiniband"
        links += [f"leaf{n} -- top{n}: infiniband hdr", f"{beside} hdr", f"{beside} ndr"]
    text = _text(devices, links, "  load: {read: 8 GB each, from: appliance, to: node.gpu}")
    with pytest.raises(NotFolded, match="not certain to be alike"):
        folded(_description(text))


def test_what_was_measured_between_units_is_of_those_alone() -> None:
    """In the file of the cluster, and in a pod that it uses, on cables side by side."""
    Path("pod.yaml").write_text(
        "topo: 1\ndevices: {'node[0-3]': {use: server.yaml}, leaf: quantum-2}\n"
        "links:\n  - node.slot1 -- leaf: infiniband ndr\n"
        "measured:\n  - node2.slot1 -> node2.gpu1: 12 GB/s\n"
    )
    devices = f"  pod[0-3]: {{use: pod.yaml}}\n  core: quantum-2\n  appliance: {_APPLIANCE}"
    links = ["pod.leaf -- core: 2x infiniband ndr", "pod.leaf -- core: 2x infiniband ndr"]
    links.append("appliance -- core: 8x infiniband ndr")
    text = _text(devices, links, "  load: {read: 8 GB each, from: appliance, to: pod.node.gpu}")
    for measured in ("", "measured:\n  - core -> pod1.leaf: 14 GB/s\n"):
        small, whole = _cluster(text + measured)
        assert small.folding is not None
        few, all_ = (topo.compare(t, at="measured")["direct"] for t in (small, whole))
        assert few.time == pytest.approx(all_.time, rel=1e-9)
        assert few.start_rate == pytest.approx(all_.start_rate, rel=1e-9)


def test_a_server_that_differs_splits_its_kind() -> None:
    devices = (
        "  node[0-7]: {use: server.yaml}\n  leaf: quantum-2\n"
        "  appliance: {part: nvme-of-target, read: 90 GB/s, write: 60 GB/s}"
    )
    links = ["node[0-7].slot1 -- leaf: infiniband ndr", "appliance -- leaf: 4x infiniband ndr"]
    text = _text(devices, links, "  load: {read: 8 GB each, from: appliance, to: node.gpu}")
    description = _description(text, overrides={"node3.gpu1.p2p": "no"})
    small = build_topology(description, fold_from=_ALL)
    assert small.folding is not None
    assert small.folding.classes["node3"] == ("node3",)
    assert len(small.folding.classes["node0"]) == 7
    assert math.isclose(topo.compare(small)["legacy"].rate or 0.0, 90e9)
    direct = topo.compare(small)["direct"]
    assert direct.verdict == "refused"


def _three_leaves() -> str:
    devices = "\n".join(
        [
            "  node[0-11]: {use: ./server.yaml}",
            "  leaf[0-2]: quantum-2",
            "  spine: quantum-2",
            f"  filer[0-1]: {_APPLIANCE}",
        ]
    )
    links = [
        "node.slot1 -- leaf in blocks: infiniband ndr",
        "leaf -- spine: 2x infiniband ndr",
        "filer -- spine: 2x infiniband ndr",
    ]
    return _text(devices, links, "  load: {read: 8 GB each, from: filer, to: node.gpu}")


def test_tiers_and_graph_are_those_of_the_cluster_written_out() -> None:
    whole, written = _cluster(_three_leaves())
    assert whole.folding is not None
    assert networks(whole) == networks(written)
    graph, expected = whole.graph(), written.graph()
    assert set(graph.nodes) == set(expected.nodes)
    assert graph.number_of_edges() == expected.number_of_edges()


def test_a_box_says_what_it_stands_for() -> None:
    """All but the server that is drawn open, and all switches and appliances, by their ranges."""
    whole, written = _cluster(_three_leaves())
    boxes = group(whole, 1, frozenset({"node0.gpu0"})).boxes.values()
    assert {"node0", "node1-3", "node4-11"} == {box.server for box in boxes} - {""}
    for topology in (whole, written):
        counts: Counter[str] = Counter()
        for box in group(topology, 1, frozenset({"node0.gpu0"})).boxes.values():
            counts[box.kind] += box.count * box.servers
        assert counts == Counter(device.kind for device in written.devices.values())
    assert {"leaf1-2", "filer0-1"} <= {box.name for box in boxes}
