"""Every real file of the corpus imports with the facts of its index true, or is refused by name.

The corpus lies beside the checkout and is no part of it: without it these tests are skipped.
"""

from __future__ import annotations

import csv
import re
import sys
from collections import Counter
from pathlib import Path

import pytest

from tests.discovery.nccl_model import pairs_of
from topo.discovery.importing import import_text
from topo.discovery.pci import generation_of
from topo.discovery.sources.matrix_text import links_in, rank_of, read_matrix
from topo.errors import ExchangeError
from topo.exports.formats import EXPORTS, export_text
from topo.study.compare import compare
from topo.topology.build import build_topology, loads
from topo.topology.locality import locality, matrix, rank
from topo.topology.rules import Graph, nccl_graph, nccl_matrix, paths_from
from topo.views.diagram.sheet import draw

CORPUS = Path(__file__).parents[3] / "shared" / "corpus"
KINDS = {"nccl-xml": "nccl", "nvidia-smi": "nvidia-smi"}

# What the index says and an imported topology does not hold, or what is prose.
NOT_CHECKED = {"gdr", "net_gdr", "hosts"}

CHECKED: Counter[tuple[str, str]] = Counter()


def rows(kind):
    if not (CORPUS / "INDEX.csv").exists():
        return [pytest.param(None, marks=pytest.mark.skip(reason=f"NO CORPUS at {CORPUS}"))]
    with (CORPUS / "INDEX.csv").open(encoding="utf-8") as file:
        found = [row for row in csv.DictReader(file) if row["kind"] == kind]
    return [pytest.param(row, id=Path(row["file"]).stem) for row in found]


def facts_of(row):
    return dict(fact.split("=", 1) for fact in row["facts"].split(";") if "=" in fact)


def data_of(row):
    return (CORPUS / row["file"]).read_bytes()


def imported(row):
    return import_text(None, data_of(row), Path(row["file"]).name)


def counted(kind, facts):
    CHECKED[kind, "imported"] += 1
    CHECKED[kind, "facts"] += facts


# --- NCCL ---------------------------------------------------------------------------------------


def names_of(device):
    return [*device.rdma, *(device.label.split(", ") if device.label else ())]


def links_of(devices):
    return {(device.link.generation, device.link.lanes) for device in devices}


def said_links(text):
    pairs = (one.rpartition(" x") for one in text.split("|"))
    return {(generation_of(speed), int(width) or None) for speed, _, width in pairs}


def pcie_paths(topology):
    """NCCL's paths, NVLink and C2C left out."""
    full, bare = nccl_graph(topology), Graph()
    for name, kind in full.kinds.items():
        bare.add_node(name, kind)
    for name, edges in full.edges.items():
        bare.edges[name] = [edge for edge in edges if edge.kind not in ("NVL", "C2C")]
    return {gpu.name: paths_from(bare, gpu.name) for gpu in topology.of_kind("gpu")}


def pair_codes(text):
    return {code: int(count) for code, count in (pair.split(":") for pair in text.split(","))}


class NcclFacts:
    """What an import says, by the names of the index."""

    def __init__(self, found):
        self.found, self.seen = found, found.machine
        self.topology = build_topology(found.description)
        self.cards = [card for card in self.seen.of_kind("nic", "dpu") if card.pci]
        self.virtual = [card for card in self.seen.of_kind("nic", "dpu") if not card.pci]
        self.software = [one for one in self.seen.left_out if ":" not in one]
        # The index counts a virtual switch as one of its own.
        switches = [one.name for one in self.topology.of_kind("pcie-switch")]
        alone = {f"{name}.virtual": "no" for name in switches}
        self.paths = pcie_paths(loads(found.yaml, overrides=alone))

    def numa_cpus(self, text):
        assert len(self.topology.of_kind("cpu")) == int(text)

    def numaids(self, text):
        said = set() if text == "missing" else {int(one) for one in text.split("|")}
        assert {node for cpu in self.topology.of_kind("cpu") for node in cpu.numa} == said

    def gpus(self, text):
        assert len(self.topology.of_kind("gpu")) == int(text)

    def net_elems(self, text):
        names = [name for card in (*self.cards, *self.virtual) for name in names_of(card)]
        assert len(names) + len(self.software) == int(text)

    def nic_class_pci(self, text):
        assert sum(len(card.pci) for card in self.cards) == int(text)

    def bridges(self, text):
        assert len(self.topology.of_kind("pcie-switch")) == int(text)

    def nets_without_pci_parent(self, text):
        assert len(self.virtual) + len(self.software) == int(text)

    def gpu_link(self, text):
        assert links_of(self.seen.of_kind("gpu")) == said_links(text)

    def nic_link(self, text):
        assert links_of(self.cards) == said_links(text)

    def all_link_speeds(self, text):
        devices = [device for device in self.seen.devices if device.pci and device.link]
        said = {generation_of(speed) for speed in text.split("|")} - {None}
        assert {device.link.generation for device in devices} - {None} == said

    def net_speed_Mbps(self, text):  # noqa: N802  (as the index calls it)
        seen = {rate / 1e6 for card in (*self.cards, *self.virtual) for rate in card.ports if rate}
        said = {float(speed) for speed in text.split("|")}
        assert seen == said or (self.software and seen < said)

    def nvlink_elems(self, text):
        chips = sum(len(switch.pci) or 1 for switch in self.seen.of_kind("nvswitch"))
        ends = (chips if "nvswitch" in cable.b else 2 for cable in self.links("nvlink"))
        assert sum(ends) == int(text)

    def xgmi_elems(self, text):
        assert 2 * len(self.links("xgmi")) == int(text)

    def nvlinks_per_gpu(self, text):
        assert self.link_counts("nvlink") == {int(one) for one in text.split("|")}

    def xgmi_count_per_gpu(self, text):
        assert self.link_counts("xgmi") == {int(one) for one in text.split("|")}

    def c2c(self, text):
        assert len(self.links("nvlink-c2c")) == int(text)

    def pcie_only_gpu_gpu_codes(self, text):
        gpus = [gpu.name for gpu in self.topology.of_kind("gpu")]
        codes = Counter(
            self.paths[one][other].type for at, one in enumerate(gpus) for other in gpus[at + 1 :]
        )
        assert codes == pair_codes(text)

    def pcie_only_gpu_nic_codes(self, text):
        codes: Counter[str] = Counter()
        for card in self.topology.of_kind("nic", "dpu"):
            if card.pci:
                weight = len(names_of(card)) or len(card.pci)
                for paths in self.paths.values():
                    codes[paths[card.name].type] += weight
        assert codes == pair_codes(text)

    def examples(self, text):
        by_name = {
            key: card.name
            for card in self.topology.of_kind("nic", "dpu")
            for key in (*names_of(card), *card.pci)
        }
        for example in text.split():
            key, code = example.removeprefix("GPU0-").rsplit("=", 1)
            card = by_name.get(key) or by_name[key.removeprefix("0000:")]
            assert self.paths["gpu0"][card].type == code

    def links(self, family):
        return [one for one in self.seen.cables if family in re.split(r"[ ]", one.cable)]

    def link_counts(self, family):
        counts: Counter[str] = Counter()
        for cable in self.links(family):
            times = re.match(r"(\d+)x", cable.cable)
            for end in (cable.a, cable.b):
                counts[end] += int(times[1]) if times else 1
        gpus = {gpu.id for gpu in self.seen.of_kind("gpu")}
        return {count for end, count in counts.items() if end in gpus}


def check_nccl(row):
    found = imported(row)
    facts = facts_of(row)
    gpus = max(int(facts.pop("gpu_elems")), int(facts.pop("gpu_class_pci", "0")))
    facts["gpus"] = str(gpus)
    if facts.get("all_link_speeds") == "None":
        facts["all_link_speeds"] = ""
    checker = NcclFacts(found)
    checked = 0
    for name, text in facts.items():
        if name in NOT_CHECKED or name.startswith("bottleneck"):
            continue
        getattr(checker, name)(text)
        checked += 1
    return found, checked


@pytest.mark.parametrize("row", rows("nccl-xml"))
def test_an_nccl_file_imports_with_its_facts(row):
    _, checked = check_nccl(row)
    assert checked >= 6
    counted("nccl-xml", checked)


@pytest.mark.parametrize("row", rows("nccl-xml"))
def test_nccls_rules_are_nccls_own(row):
    """Types and rates of every GPU and card as the model of NCCL's source has them.

    NCCL does not read xGMI; topo takes it for a link as RCCL does.
    """
    data = data_of(row).replace(b"<xgmi", b"<left-out")
    topology = build_topology(import_text("nccl", data, "host.xml").description)
    names = {}
    for device in topology.devices.values():
        names["net", device.label] = device.name
        for address in device.pci:
            full = address if address.count(":") > 1 else f"0000:{address}"
            names[full.rpartition(".")[0] if device.is_nic else full] = device.name
    paths, checked = nccl_matrix(topology), 0
    for (gpu, end), (kind, rate) in pairs_of(data).items():
        if end in names:  # software interfaces are left out
            path = paths[names[gpu]][names[end]]
            assert (path.type, path.bandwidth) == (kind, pytest.approx(rate))
            checked += 1
    gpus = [name for name in paths if name.startswith("gpu")]
    assert checked >= len(gpus) * (len(paths) - 1)


@pytest.mark.parametrize("row", rows("nccl-xml"))
def test_an_nccl_file_comes_back_from_its_export(row):
    found = imported(row)
    written = export_text("nccl", build_topology(found.description))
    assert not written.text.startswith("<?")
    assert "\t" not in written.text
    assert re.search(r">[^<\s]", written.text) is None  # no text
    assert all(line.count("<") == line.count(">") for line in written.text.splitlines())
    again = import_text("nccl", written.text.encode(), Path(row["file"]).name)
    assert again.document == found.document


# --- nvidia-smi ---------------------------------------------------------------------------------


class SmiFacts:
    def __init__(self, row, found):
        self.matrix = read_matrix(data_of(row), row["file"])
        self.topology = build_topology(found.description)
        gpus = [gpu.name for gpu in self.topology.of_kind("gpu")]
        rows = matrix(self.topology, functions=True)
        functions = [name for name in rows if name not in gpus]
        self.rows = rows
        self.names = dict(zip(self.matrix.gpus, gpus, strict=True))
        self.names |= dict(zip(self.matrix.cards, sorted(functions, key=natural), strict=True))

    def gpus(self, text):
        assert len(self.matrix.gpus) == int(text)

    def nics(self, text):
        assert len(self.matrix.cards) == int(text)

    def gpu_gpu_pairs(self, text):
        self.pairs(text, lambda one, other: self.are_gpus(one) and self.are_gpus(other))

    def gpu_nic_pairs(self, text):
        self.pairs(text, lambda one, other: self.are_gpus(one) != self.are_gpus(other))

    def nic_nic_pairs(self, text):
        self.pairs(text, lambda one, other: not self.are_gpus(one) and not self.are_gpus(other))

    def are_gpus(self, name):
        return name in self.matrix.gpus

    def pairs(self, text, wanted):
        codes = Counter(code for one, other, code in self.matrix.pairs() if wanted(one, other))
        assert codes == pair_codes(text)

    def best_nic(self, text):
        for one in text.split():
            gpu, cards, code = re.fullmatch(r"(\w+):(.*)\((\w+)\)", one).groups()
            row = self.rows[self.names[gpu]]
            best = min(rank(row[self.names[card]]) for card in self.matrix.cards)
            near = [card for card in self.matrix.cards if rank(row[self.names[card]]) == best]
            assert near == cards.split("+")
            assert best == rank(code)

    def symmetric(self, text):
        odd = [one for one in self.matrix.findings if one.code == "asymmetric-matrix"]
        assert (not odd) == (text == "yes")

    def cpu_numa_text(self, text):
        said = {frozenset(one.split()) - {"N/A"} for one in text.split(" / ")}
        affinity = self.matrix.affinity
        seen = {
            frozenset((row.cpus, row.numa, row.gpu_numa)) - {""}
            for name, row in affinity.items()
            if self.are_gpus(name)
        }
        assert seen == said

    def nic_legend(self, text):
        first, last, count = re.fullmatch(r"(.*)\.\.(.*)\((\d+)\)", text).groups()
        names = list(self.matrix.legend.values())
        assert (names[0], names[-1], len(names)) == (first, last, int(count))

    def classes(self):
        """The topology's classes are those of the file, pair by pair.

        Where told NUMA nodes contradict a code, they decide: NODE within one, SYS between two.
        """
        for one, other, code in self.matrix.pairs():
            built = self.rows[self.names[one]][self.names[other]]
            nodes = [{*self.matrix.affinity_of(name).nodes} for name in (one, other)]
            if all(nodes) and code in ("NODE", "SYS"):
                code = "NODE" if nodes[0] & nodes[1] else "SYS"  # noqa: PLW2901
            if links_in(code):
                assert built == code
            elif rank_of(code) is not None:
                assert built == {"SOC": "SYS"}.get(code, code), (one, other)


def natural(name):
    return [int(one) if one.isdigit() else one for one in re.split(r"(\d+)", name)]


@pytest.mark.parametrize("row", rows("nvidia-smi"))
def test_a_matrix_imports_with_its_facts(row):
    if "WRONGKIND" in row["file"]:
        with pytest.raises(ExchangeError, match="which GPUs may reach each other"):
            imported(row)
        CHECKED["nvidia-smi", "refused"] += 1
        return
    checker = SmiFacts(row, imported(row))
    facts = facts_of(row)
    for name, text in facts.items():
        getattr(checker, name)(text)
    checker.classes()
    counted("nvidia-smi", len(facts) + 1)


# --- both ---------------------------------------------------------------------------------------

BOTH = [*rows("nccl-xml"), *rows("nvidia-smi")]


@pytest.mark.parametrize("row", BOTH)
def test_an_imported_machine_answers_and_is_drawn(row):
    if "WRONGKIND" in row["file"]:
        return
    topology = build_topology(imported(row).description)
    assert draw(topology).dot
    gpus, cards = topology.of_kind("gpu"), topology.of_kind("nic", "dpu")
    assert bool(topology.description.workloads) == bool(gpus and cards)
    if topology.description.workloads:
        paths = compare(topology).workloads[0].paths
        assert any(path.rate for path in paths)
        assert locality(topology, gpus[0].name, cards[0].name)
    for kind in EXPORTS:
        assert export_text(kind, topology).text


def test_the_table(capsys):
    if not CHECKED:
        pytest.skip("NO CORPUS: nothing was imported")
    lines = ["", "kind        files  imported  refused  facts checked"]
    for kind in KINDS:
        done, refused, facts = (CHECKED[kind, what] for what in ("imported", "refused", "facts"))
        lines.append(f"{kind:11} {done + refused:5} {done:9} {refused:8} {facts:14}")
    with capsys.disabled():
        sys.stdout.write("\n".join([*lines, ""]))
