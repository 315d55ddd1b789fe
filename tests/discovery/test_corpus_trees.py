"""Real files of hwloc, lspci and sysfs import with the facts of the corpus's index true.

The corpus lies beside the checkout and is no part of it: without it these tests are skipped.
"""

from __future__ import annotations

import re
import sys
from collections import Counter
from dataclasses import replace
from pathlib import Path

import pytest

from tests.discovery.test_corpus import data_of, facts_of, imported, rows
from topo.discovery.foreign import read_lines
from topo.discovery.importing import import_machine
from topo.discovery.sources.hwloc import read_file
from topo.discovery.sources.lspci import read_blocks, read_tree
from topo.errors import ExchangeError
from topo.exports.formats import EXPORTS, export_text
from topo.study.compare import compare
from topo.topology.build import build_topology
from topo.topology.locality import locality
from topo.views.diagram.sheet import draw

CHECKED: Counter[tuple[str, str]] = Counter()
REFUSED = {
    "asus-esc8000a-numactl": "tells its CPUs and NUMA nodes",
}
LCA = {
    "Bridge(0-1)": {"PHB"},
    "Bridge(1-1)": {"PIX", "PXB"},
    "Package": {"NODE"},
    "Machine": {"SYS"},
}


def counted(kind, facts):
    CHECKED[kind, "imported"] += 1
    CHECKED[kind, "facts"] += facts


def refused(row, kind):
    words = REFUSED.get(Path(row["file"]).stem)
    if words is None:
        return False
    with pytest.raises(ExchangeError, match=words):
        imported(row)
    CHECKED[kind, "refused"] += 1
    return True


def check_all(checker, facts, least):
    checked = 0
    for name, text in facts.items():
        method = re.sub(r"\W", "_", name)
        getattr(checker, method)(text)
        checked += 1
    assert checked >= least
    return checked


def by_address(topology):
    return {address: device.name for device in topology.devices.values() for address in device.pci}


# --- hwloc --------------------------------------------------------------------------------------


class HwlocFacts:
    def __init__(self, row):
        self.found = imported(row)
        self.seen = self.found.machine
        self.file = read_file(data_of(row), row["file"])
        self.topology = build_topology(self.found.description)
        self.pci = self.file.objects("PCIDev")

    def of_class(self, start, vendor=""):
        return [
            one
            for one in self.pci
            if one.numbers()[0].startswith(start) and one.numbers()[1].startswith(vendor)
        ]

    def here(self, *kinds):
        return {one for device in self.seen.of_kind(*kinds) for one in device.pci}

    def xml_version(self, text):
        assert self.file.version == text

    def numanodes(self, text):
        assert len(self.file.objects("NUMANode")) == int(text)
        assert sum(len(cpu.numa) for cpu in self.topology.of_kind("cpu")) == int(text)
        assert len(self.topology.of_kind("memory")) == int(text)

    def packages(self, text):
        assert len(self.file.objects("Package")) == int(text)

    def PUs(self, text):  # noqa: N802  (as the index calls it)
        assert len(self.file.objects("PU")) == int(text)

    def bridges(self, text):
        assert len(self.file.objects("Bridge")) == int(text)

    def hostbridges(self, text):
        assert sum(one.is_host_bridge for one in self.file.objects("Bridge")) == int(text)

    def pcidevs(self, text):
        assert len(self.pci) == int(text)

    def osdevs(self, text):
        assert len(self.file.objects("OSDev")) == int(text)

    def osdev_names(self, text):
        names = {one.get("name") for one in self.file.objects("OSDev")} - {""}
        assert "|".join(sorted(names)).startswith(text)  # the index cuts long lists

    def pci_display_or_3d(self, text):
        assert len(self.of_class("03")) == int(text)

    def nvidia_gpu_pci(self, text):
        gpus = self.of_class("03", "10de")
        assert len(gpus) == int(text)
        assert {one.address for one in gpus} <= self.here("gpu")

    def gpus(self, text):
        assert len(self.topology.of_kind("gpu")) == int(text)

    def nic_pci(self, text):
        cards = [one for one in self.of_class("02") if one.numbers()[0] != "0280"]
        assert len(cards) == int(text)
        left = self.here("nic", "dpu") | set(self.seen.left_out)
        assert {one.address for one in cards} <= left | repeated(self.pci)

    def nvme_pci(self, text):
        assert len(self.topology.of_kind("nvme")) == int(text) == len(self.of_class("0108"))

    def cxl_mem_pci(self, text):
        assert len(self.topology.of_kind("cxl-memory")) == int(text)

    def gpu_pci_link_speed_GBps(self, text):  # noqa: N802
        assert rates(self.of_class("03")) == text
        self.links("gpu")

    def nic_pci_link_speed_GBps(self, text):  # noqa: N802
        assert rates([one for one in self.of_class("02") if one.numbers()[0] != "0280"]) == text
        self.links("nic")

    def links(self, kind):
        """Each link has the rate of the slower end, where that is one that PCIe has.

        At rest it is slower than its part can, which is what counts where the part is known.
        """
        above = {
            child.address: parent.rate()
            for parent in self.file.objects("Bridge")
            for child in parent.children
        }
        own = {one.address: one.rate() for one in self.pci}
        for device in self.seen.of_kind(kind):
            if not device.pci or device.pci[0] in repeated(self.pci) or device.link.lanes is None:
                continue
            ends = [rate for rate in (own[device.pci[0]], above[device.pci[0]]) if rate]
            if device.link.evidence.endswith("at rest"):
                assert device.link.generation is None or min(ends) <= 0.25 * device.link.lanes
                continue
            lane = {1: 0.25, 2: 0.5, 3: 0.984615, 4: 1.969231, 5: 3.938462}
            rate = lane[device.link.generation] * device.link.lanes
            assert rate == pytest.approx(min(ends), rel=0.01)

    def lca_examples(self, text):
        names = by_address(self.topology)
        doubtful = repeated(self.pci)
        for example in text.split():
            one, other, said = re.fullmatch(r"(\S+?)~(\S+?):LCA=(\S+)", example).groups()
            if {one, other} & doubtful or one not in names or other not in names:
                continue  # a console, or an address that stands twice
            code = locality(self.topology, names[one], names[other])
            assert code in LCA[said], example


def repeated(things):
    counts = Counter(one.address for one in things)
    return {address for address, count in counts.items() if count > 1}


def rates(things):
    return "|".join(sorted({f"{one.rate() or 0:.6f}" for one in things}))


@pytest.mark.parametrize("row", rows("hwloc-xml"))
def test_an_hwloc_file_imports_with_its_facts(row):
    counted("hwloc-xml", check_all(HwlocFacts(row), facts_of(row), 3))


@pytest.mark.parametrize("row", rows("lstopo-text"))
def test_text_of_lstopo_imports_with_its_facts(row):
    facts = facts_of(row)
    machine = imported(row).machine
    assert len(machine.of_kind("memory")) == int(facts["numanodes"])
    counted("lstopo-text", 1)


def hwloc_row(name):
    found = [row for row in rows("hwloc-xml") if row.values[0] is None or row.id == name]
    return pytest.mark.parametrize("row", found)


@hwloc_row("nvidia-dgx2-16xV100")
def test_a_dgx_2_has_two_levels_of_switches_and_150_gb_of_nvlink(row):
    found = imported(row)
    topology = build_topology(found.description)
    gpus = [gpu.name for gpu in topology.of_kind("gpu")]
    assert len(gpus) == 16
    for gpu in gpus:
        links = [one for one in topology.links if gpu == one.a.device and one.cable.reach == "gpu"]
        assert sum(one.cable.count * (one.cable.rate.value or 0) for one in links) == 150e9
    kept = tuple(one for one in found.machine.devices if one.kind != "nvswitch")
    bare = build_topology(
        import_machine(replace(found.machine, devices=kept, cables=())).description
    )
    pcie = Counter(locality(bare, "gpu0", other) for other in gpus[1:])
    assert pcie == {"PIX": 1, "PXB": 2, "NODE": 4, "SYS": 8}


@hwloc_row("power8gpudistances")
def test_power8_takes_the_slower_end_and_says_so(row):
    found = imported(row)
    assert {gpu.link.cable for gpu in found.machine.of_kind("gpu")} == {"pcie 3 x8"}
    assert "port-below-device" in {one.code for one in found.findings}
    cables = Counter(cable.cable for cable in found.machine.cables)
    assert cables == {"2x nvlink 1": 6}  # 40 GB/s: two pairs, and each GPU to its CPU


@hwloc_row("cxlmem-dax-dtdv2")
def test_cxl_memory_is_there_by_its_class(row):
    topology = build_topology(imported(row).description)
    assert len(topology.of_kind("cxl-memory")) == 4
    assert len(topology.of_kind("pcie-switch")) == 3


# --- lspci --------------------------------------------------------------------------------------


class LspciFacts:
    def __init__(self, row):
        self.found = imported(row)
        self.seen = self.found.machine
        lines = read_lines(data_of(row), row["file"])
        self.lines = lines
        self.listing = read_tree(lines) or read_blocks(lines)
        self.topology = build_topology(self.found.description)

    def named(self, *words, code=""):
        return [
            one
            for one in self.listing.functions
            if any(word in one.text for word in words) and one.code.startswith(code)
        ]

    def roots(self, text):
        assert len(self.listing.roots) == int(text)

    roots_shown = roots

    def device_headers(self, text):
        assert len(self.listing.functions) == int(text)

    def domains(self, text):
        assert len({one.address.partition(":")[0] for one in self.listing.functions}) == int(text)

    def nvidia_gpus(self, text):
        assert len(self.seen.of_kind("gpu")) == int(text)

    gpus_shown = nvidia_gpu_functions = nvidia_gpus

    def nvswitch_or_nvidia_bridge(self, text):
        assert len(self.seen.of_kind("nvswitch")) == int(text)

    def mellanox_functions(self, text):
        seen = {one for card in self.seen.of_kind("nic", "dpu") for one in card.pci}
        found = {one.address for one in self.named("Mellanox", "ConnectX")}
        assert len(found) == int(text)
        assert found <= seen

    def nic_functions_shown(self, text):
        assert sum(len(card.pci) for card in self.seen.of_kind("nic")) == int(text)

    def nvme_ssds(self, text):
        assert len(self.seen.of_kind("nvme")) == int(text)

    nvme_controllers = nvme_ssds

    def highpoint_functions(self, text):
        assert len(self.named("HighPoint")) == int(text) == len(self.seen.of_kind("hba"))

    def pci_bridges(self, text):
        assert sum(one.is_bridge for one in self.listing.functions) == int(text)

    def where(self, text):
        bridges = {one.id: one for one in self.listing.functions}
        roots = []
        for kind, title in (("gpu", "GPU"), ("nic", "NIC")):
            for device in self.seen.of_kind(kind):
                for address in device.pci:
                    one = next(f for f in self.listing.functions if f.address == address)
                    while one.parent in bridges:
                        one = bridges[one.parent]
                    if "Mellanox" in device.evidence or kind == "gpu":
                        roots.append(f"{one.parent}:{title}")
        assert sorted(roots) == sorted(text.split())

    def LnkSta(self, text):  # noqa: N802
        functions = {one.address.removeprefix("0000:"): one for one in self.listing.functions}
        generations = {"2.5": 1, "32": 5}
        for said in text.split("|"):
            address, speed, rest = re.fullmatch(r"(\S+)=([\d.]+)GT/s( .*)", said).groups()
            one = functions[address]
            assert one.current.generation == generations[speed]
            assert one.current.lanes == int(rest.rpartition("x")[2])
            if "downgraded" in rest:  # which old versions do not say
                assert (one.current.generation or 9) < (one.most.generation or 0)

    def full_machine(self):
        """Each GPU shown is PXB to its two functions, and SYS or NODE to the others."""
        gpus, cards = self.topology.of_kind("gpu"), self.topology.of_kind("nic")
        codes = [[locality(self.topology, gpu.name, card.name) for card in cards] for gpu in gpus]
        assert codes == [["PXB", "NODE", "NODE"], ["NODE", "PXB", "NODE"]]


@pytest.mark.parametrize("row", rows("lspci"))
def test_lspci_imports_with_its_facts(row):
    if refused(row, "lspci"):
        return
    checker = LspciFacts(row)
    facts = facts_of(row)
    checked = check_all(checker, facts, 3)
    if "full machine" in row["facts"]:
        checker.full_machine()
        checked += 1
    counted("lspci", checked)


# --- sysfs --------------------------------------------------------------------------------------


class SysfsFacts:
    def __init__(self, row):
        self.found = imported(row)
        self.seen = self.found.machine
        self.topology = build_topology(self.found.description)

    def switches(self, text):
        switches = self.seen.of_kind("pcie-switch")
        assert [one.pci[0] for one in switches] == ["0000:18:00.0", "0000:3b:00.0"]
        assert len(switches) == int(text)
        for switch in switches:  # each with four accelerators and a card, on node 0
            below = Counter(one.kind for one in self.seen.devices if one.parent == switch.id)
            assert below == {"gpu": 4, "nic": 1}
        (cpu,) = {one.parent for one in switches}
        assert next(one for one in self.seen.devices if one.id == cpu).numa == (0,)

    def accelerators(self, text):
        assert len(self.seen.of_kind("gpu")) == int(text)

    def infiniband(self, text):
        cards = [card for card in self.seen.of_kind("nic") if card.network == "infiniband"]
        assert len(cards) == int(text)

    def link(self, text):
        assert text == "8 GT/s x16"
        under = [
            one for one in self.seen.devices if one.link and one.kind in ("gpu", "pcie-switch")
        ]
        assert {one.link.cable for one in under} == {"pcie 3 x16"}

    def gpu_memory_numa_nodes(self, text):
        (said,) = [one for one in self.found.findings if one.code == "gpu-memory-nodes"]
        assert len(re.findall(r"\d+", said.message)) == int(text)
        assert len(self.topology.of_kind("memory")) == 2

    def x722(self):
        (card,) = [one for one in self.seen.of_kind("nic") if "37d2" in one.evidence]
        assert card.link.cable == "pcie 3 x1"
        assert "2.5 GT/s now" in card.link.evidence
        assert "idle-link" in {one.code for one in self.found.findings}

    def speeds_unknown(self):
        links = [one.link for one in self.seen.devices if one.link and one.pci]
        told = [link for link in links if "guess" not in link.evidence]
        assert all(link.generation is None for link in told)


@pytest.mark.parametrize("row", rows("sysfs"))
def test_a_tree_imports_with_its_facts(row):
    checker = SysfsFacts(row)
    checked = check_all(checker, facts_of(row), 0)
    if "X722" in row["facts"]:
        checker.x722()
        checked += 1
    if "link speeds unknown" in row["facts"]:
        checker.speeds_unknown()
        checked += 1
    assert checked
    counted("sysfs", checked)


# --- all ----------------------------------------------------------------------------------------

ALL = [*rows("hwloc-xml"), *rows("lspci"), *rows("sysfs")]


@pytest.mark.parametrize("row", ALL)
def test_an_imported_machine_answers_and_is_drawn(row):
    if Path(row["file"]).stem in REFUSED:
        return
    topology = build_topology(imported(row).description)
    assert draw(topology).dot
    gpus = topology.of_kind("gpu")
    others = topology.of_kind("nic", "dpu", "nvme")
    assert bool(topology.description.workloads) == bool(gpus and others)
    if topology.description.workloads:
        paths = compare(topology).workloads[0].paths
        assert any(path.rate for path in paths)
    for kind in EXPORTS:
        assert export_text(kind, topology).text


def test_the_table(capsys):
    if not CHECKED:
        pytest.skip("NO CORPUS: nothing was imported")
    lines = ["", "kind         files  imported  refused  facts checked"]
    for kind in ("hwloc-xml", "lstopo-text", "lspci", "sysfs"):
        done, refused_, facts = (CHECKED[kind, what] for what in ("imported", "refused", "facts"))
        lines.append(f"{kind:12} {done + refused_:5} {done:9} {refused_:8} {facts:14}")
    with capsys.disabled():
        sys.stdout.write("\n".join([*lines, ""]))
