"""What a question comes to has a bound, said before the work: counts, and how searches grow."""

from __future__ import annotations

import time

import pytest

import topo
from tests.machines import LOCAL_DRIVES, PARTS, built
from topo import limits
from topo.cli.program import main
from topo.errors import DescriptionError
from topo.exports.nccl import write_nccl
from topo.flows import demands
from topo.flows.demands import System
from topo.limits import MOST_IN_A_SERVER, MOST_PAIRS, MOST_SPLIT, MOST_WAYS, refuse_more
from topo.routes import search
from topo.routes.route import Policy
from topo.routes.router import Router
from topo.study.affinity import affinities
from topo.study.bottleneck import ladder_of
from topo.study.collective import collective
from topo.study.compare import compare
from topo.study.failures import failures
from topo.study.upgrade import upgrades
from topo.topology.locality import Tree, matrix, matrix_rows
from topo.topology.rules import gds_ranking

_PATIENCE = 60.0  # seconds of processor for what takes one


def server(gpus: int, drives: int = 0, cards: int = 2) -> str:
    """Return a server of two sockets with two switches, and all that hangs on it."""
    lines = [
        PARTS,
        "  lot: {kind: cpu, forwards-p2p: yes, source: test}",
        "  fan: {kind: pcie-switch, acs: off, source: test}",
        "devices:",
        f"  storage: {{part: target, ports: {cards}x 800 Gb/s}}",
        "  cpu[0-1]: lot",
        "  ram[0-1]: dram",
        "  sw[0-1]: fan",
        f"  nic[0-{cards - 1}]: card",
        f"  gpu[0-{gpus - 1}]: accel",
        *([f"  nvme[0-{drives - 1}]: nvme-gen4-7.68tb"] if drives else []),
        "links:",
        "  - storage -- nic: infiniband ndr",
        "  - ram -- cpu: memory-bus",
        "  - cpu0 -- cpu1: upi 16 GT/s",
        "  - sw -- cpu: pcie 5 x16",
        "  - nic -- sw in blocks: pcie 5 x16",
        "  - gpu -- sw in blocks: pcie 5 x16",
        *(["  - nvme -- sw in blocks: pcie 4 x4"] if drives else []),
        "workloads:",
        "  load: {read: 640 GB, from: storage, to: gpu}",
        *(["  local: {read: 640 GB, from: nvme, to: gpu}"] if drives else []),
    ]
    return "\n".join(lines) + "\n"


def counted(monkeypatch, owner, name):
    """Return a list that grows with each call of a function or method."""
    calls, kept = [], getattr(owner, name)

    def call(*arguments, **named):
        calls.append(name)
        return kept(*arguments, **named)

    monkeypatch.setattr(owner, name, call)
    return calls


# --- how work grows -------------------------------------------------------------------------------


@pytest.mark.parametrize("policy", [Policy(), Policy(nics="stripe"), Policy(pairing="nearest")])
def test_searches_grow_with_places_and_not_with_devices(monkeypatch, policy):
    numbers = []
    for gpus in (8, 64):
        with monkeypatch.context() as patched:
            searches = counted(patched, search, "breadth_first")
            climbs = counted(patched, Tree, "_way_up")
            near = counted(patched, search, "locality")
            compare(built(server(gpus, drives=4)), policy=policy)
            numbers.append((len(searches), len(climbs), len(near)))
    assert numbers[0] == numbers[1]
    assert numbers[0][0] > 0


def test_an_affinity_searches_as_often_for_more_gpus(monkeypatch):
    numbers = []
    for gpus in (8, 64):
        with monkeypatch.context() as patched:
            searches = counted(patched, search, "breadth_first")
            affinities(built(server(gpus, drives=4)))
            numbers.append(len(searches))
    assert numbers[0] == numbers[1] > 0


def test_what_a_card_of_raid_meets_is_looked_up_once(monkeypatch):
    from topo.routes import usage

    raid = "raid: {part: raid-card-gen4, read: 20 GB/s, write: 9 GB/s}"
    text = server(8).replace("devices:\n", f"devices:\n  {raid}\n")
    text = text.replace("links:\n", "links:\n  - raid -- cpu0: pcie 4 x16\n")
    text += "  card: {write: 640 GB, from: gpu, to: raid}\n"
    looks = counted(monkeypatch, usage, "drives_behind")
    compare(built(text), workload="card", via=["odirect-pinned"])
    assert len(looks) == 1


# --- bounds ---------------------------------------------------------------------------------------


def test_each_bound_is_said_with_count_and_advice():
    refuse_more(10, 10, "devices", "name fewer")  # as many as the bound are allowed
    with pytest.raises(DescriptionError) as caught:
        refuse_more(1_234_567, 10, "devices", "name fewer")
    (finding,) = caught.value.findings
    assert (finding.code, finding.message) == ("too-large", "1,234,567 devices, more than 10")
    assert finding.help == "name fewer"


@pytest.mark.parametrize(
    "verb",
    [
        ["check"],
        ["show"],
        ["compare"],
        ["compare", "--together"],
        ["compare", "--nics", "best"],
        ["bottleneck"],
        ["matrix"],
        ["paths"],
        ["affinity"],
        ["simulate"],
        ["failures"],
        ["upgrade"],
        ["draw", "-o", "-"],
        ["export", "nccl"],
    ],
    ids=" ".join,
)
def test_a_server_beyond_any_is_refused_by_every_verb(tmp_path, capsys, verb):
    file = tmp_path / "crowd.yaml"
    file.write_text(server(MOST_IN_A_SERVER), encoding="utf-8")
    name, *options = verb
    words = [name, str(file), *options] if name != "export" else [*verb, str(file)]
    assert main(words) == 1
    said = capsys.readouterr().err
    assert "2,056 devices are joined to one server, that of cpu0, more than 2,048" in said
    assert "`use:`" in said


def test_a_server_of_more_links_than_any_is_refused():
    sockets = [
        PARTS,
        "devices: {'cpu[0-199]': {part: socket, p2p: unknown}}",
        "links: [cpu -- cpu all to all: upi 16 GT/s]",
    ]
    with pytest.raises(DescriptionError, match="19,900 links are in one server, host0, more than"):
        built("\n".join(sockets) + "\n")


def test_of_too_many_devices_nothing_is_held_against_all_others(tmp_path, capsys):
    file = tmp_path / "crowd.yaml"
    file.write_text(server(65_536), encoding="utf-8")
    before = time.process_time()
    assert main(["check", str(file)]) == 1
    assert time.process_time() - before < _PATIENCE
    assert "65,544 devices are joined to one server" in capsys.readouterr().err


def test_as_many_devices_in_many_servers_are_none_in_one():
    text = f"{PARTS}devices:\n  cpu[0-2999]: socket\n  gpu[0-2999]: accel\n"
    assert len(built(text + "links: [gpu -- cpu: pcie 5 x16]\n").hosts) == 3000


def test_ways_are_counted_before_they_are_laid(monkeypatch):
    topology = built(server(400, drives=300))
    with monkeypatch.context() as patched:
        routes = counted(patched, search.Search, "paths")
        with pytest.raises(DescriptionError, match=r"120,\d{3} ways of data are asked for") as info:
            compare(topology, workload="local", via=["direct"])
        assert routes == []
    message = str(info.value)
    assert f"more than {MOST_WAYS:,}" in message
    assert "those of local by direct" in message


def test_ways_of_all_paths_and_workloads_add_up(monkeypatch):
    topology = built(LOCAL_DRIVES)
    workload = topology.description.workloads[0]
    ways = len(workload.sources) * len(workload.targets)
    monkeypatch.setattr("topo.routes.router.MOST_WAYS", 2 * ways)
    compare(topology, workload=workload.name, via=["legacy", "odirect-pinned"])
    with pytest.raises(DescriptionError, match="by odirect-pageable"):
        compare(
            topology, workload=workload.name, via=["legacy", "odirect-pinned", "odirect-pageable"]
        )


def test_links_of_ways_are_counted_when_one_of_each_standing_is_laid(monkeypatch):
    topology = built(server(64))
    monkeypatch.setattr("topo.routes.router.MOST_LINKS_OF_WAYS", 4 * 64)
    compare(topology, via=["direct"])  # 3 or 4 links a way
    monkeypatch.setattr("topo.routes.router.MOST_LINKS_OF_WAYS", 2 * 64)
    routes = counted(monkeypatch, Router, "route")
    with pytest.raises(
        DescriptionError, match=r"192 links are on the ways .* load by direct, more"
    ):
        compare(topology, via=["direct"])
    assert len(routes) == 33  # the first of either switch


def test_what_gpus_do_together_is_counted_before_it_is_laid(monkeypatch):
    topology = built(server(8))
    routes = counted(monkeypatch, Router, "route")
    for policy in (Policy(), Policy(nics="best")):  # whose linear program divides no such bytes
        with monkeypatch.context() as patched:
            patched.setattr("topo.routes.router.MOST_SPLIT", 7)
            patched.setattr("topo.routes.router.MOST_WAYS", 8)
            ring = collective(topology, "all-reduce", via=["peer-pcie"], policy=policy)
            assert ring["peer-pcie"].rate > 0
            assert len(routes) == 8
            routes.clear()
            with pytest.raises(
                DescriptionError, match=r"^error\[too-large\]: 56 ways .* of all-to-all"
            ):
                collective(topology, "all-to-all", via=["peer-pcie"], policy=policy)
            assert routes == []
    monkeypatch.setattr("topo.routes.router.MOST_LINKS_OF_WAYS", 100)
    with pytest.raises(DescriptionError, match=r"all-to-all by peer-pcie.*fewer GPUs: --over"):
        collective(topology, "all-to-all", via=["peer-pcie"])
    assert len(routes) < 56


def test_a_study_counts_before_its_first_answer(monkeypatch):
    topology = built(server(8))
    for module in ("failures", "upgrade"):
        monkeypatch.setattr(f"topo.study.{module}.MOST_IN_VARIANTS", 50)
    routes = counted(monkeypatch, Router, "route")
    for study in (failures, upgrades):
        with pytest.raises(DescriptionError, match="more than 50"):
            study(topology)
    assert routes == []


def test_a_ladder_counts_use_once(monkeypatch):
    topology = built(server(8))
    used = counted(monkeypatch, demands, "joint_resources")
    uses = counted(monkeypatch, System, "of")
    ladder = topo.bottleneck(topology, via="legacy")
    assert len(ladder.rungs) > 1
    assert ladder.answer.matrix is not None
    used.clear()
    uses.clear()
    ladder_of(ladder.answer.matrix, sized=True)
    assert (used, uses) == ([], [])


def test_a_linear_program_takes_fewer_ways():
    topology = built(server(200, cards=120))
    assert compare(topology, via=["direct"])["direct"].rate > 0
    with pytest.raises(DescriptionError, match=f"more than {MOST_SPLIT:,}") as caught:
        compare(topology, via=["direct"], policy=Policy(nics="best"))
    assert "leave out --nics best" in str(caught.value)


def test_variants_are_counted_before_they_are_asked(monkeypatch):
    topology = built(server(8))
    monkeypatch.setattr("topo.study.failures.MOST_IN_VARIANTS", 50)
    monkeypatch.setattr("topo.study.failures.MOST_IN_PAIRED_VARIANTS", 200)
    monkeypatch.setattr("topo.study.upgrade.MOST_IN_VARIANTS", 50)
    with pytest.raises(DescriptionError, match=r"in which one of \d+ parts fails, more than 50 "):
        failures(topology)
    with pytest.raises(DescriptionError, match="and then another fails, more than 200 "):
        failures(topology, pairs=True)
    with pytest.raises(DescriptionError, match="variants that are asked at least, more than 50 "):
        upgrades(topology)


def test_of_many_ways_fewer_changes_are_asked(monkeypatch):
    topology = built(server(8))
    whole = upgrades(topology)
    monkeypatch.setattr("topo.study.upgrade._FEWEST_ASKED", 1)
    monkeypatch.setattr("topo.study.upgrade.MOST_IN_VARIANTS", 3 * 40)
    some = upgrades(topology)
    assert len(some.ranked) + len(some.rejected) < len(whole.ranked) + len(whole.rejected)
    assert some.unasked > whole.unasked


def test_a_matrix_has_so_many_cells_at_most():
    topology = built(server(1_200))
    rows, _ = matrix_rows(topology)  # those that can be read
    assert len(rows) == limits.LARGEST_MATRIX
    for ask in (lambda: matrix(topology), lambda: matrix_rows(topology, every=True)):
        with pytest.raises(DescriptionError, match=r"1,444,804 pairs in a matrix of 1,202 devices"):
            ask()


def test_a_ranking_of_every_pair_has_so_many_at_most():
    text = server(900, drives=900)
    with pytest.raises(DescriptionError, match="811,800 pairs of a GPU and a card or drive"):
        gds_ranking(built(text))
    assert len(gds_ranking(built(server(100, drives=100)))) == 100


def test_gpus_that_share_one_card_are_pairs():
    assert affinities(built(server(600))).gpus
    with pytest.raises(DescriptionError, match="pairs of GPUs share a device") as caught:
        affinities(built(server(1_600)))
    assert f"more than {MOST_PAIRS:,}" in str(caught.value)


def test_a_chain_of_bridges_is_climbed_without_end():
    """A file that physics refuses is climbed as well: 127 switches, and many below the last."""
    links = "\n".join(f"  - sw{n} -- sw{n + 1}: pcie 5 x16" for n in range(126))
    text = (
        server(8)
        .replace("sw[0-1]: fan", "sw[0-126]: fan")
        .replace("  - sw -- cpu: pcie 5 x16\n", f"  - sw0 -- cpu0: pcie 5 x16\n{links}\n")
    )
    for stem in ("nic", "gpu"):
        text = text.replace(f"{stem} -- sw in blocks", f"{stem} -- sw126")
    topology = built(text)
    attachment = topology.tree.attachment("gpu7")
    assert attachment.bridges == tuple(f"sw{n}" for n in range(126, -1, -1))
    assert attachment.root == "cpu0"
    assert write_nccl(topology) is not None
