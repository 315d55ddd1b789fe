"""A machine in other programs' formats."""

from __future__ import annotations

import cProfile
import csv
import io
import json
import re
import shutil
import subprocess
import sys
from functools import cache
from pathlib import Path
from xml.etree import ElementTree

import networkx
import pytest

from tests.discovery.twins import card, cpu, gpu, switch, system, two_sockets
from tests.machines import SWITCHED, UNLIKE, built, cluster
from topo.description.locating import builtin_names
from topo.discovery.importing import import_text
from topo.errors import ExchangeError
from topo.exports.formats import EXPORTS, export_text
from topo.study.compare import compare
from topo.topology.build import build_topology, load, loads
from topo.topology.locality import locality
from topo.topology.rules import nccl_matrix
from topo.views.diagram.sheet import draw


def machine(data):
    return build_topology(import_text("nccl", data, "host.xml").description)


def codes(exported):
    return [finding.code for finding in exported.findings]


@pytest.mark.parametrize("kind", EXPORTS)
@pytest.mark.parametrize("name", builtin_names())
def test_every_machine_in_every_format(kind, name):
    topology = load(name)
    if kind == "nccl" and len(topology.hosts) > 1:
        with pytest.raises(ExchangeError, match="holds one host"):
            export_text(kind, topology)
        return
    exported = export_text(kind, topology)
    assert exported.text.endswith("\n")
    if kind == "simgrid" and name != "pod-32":  # 150,000 routes; two servers hold the law as well
        one_simgrid_route_for_each_pair(topology, exported.text)
    elif name in UNLIKE:
        assert export_text(kind, topology) == exported


def test_simgrid_routes_between_servers():
    machine = built(cluster(2))
    one_simgrid_route_for_each_pair(machine, export_text("simgrid", machine).text)


def test_a_format_that_is_not_there():
    with pytest.raises(ExchangeError, match="no exporter writes `visio`"):
        export_text("visio", load("gds-textbook"))


# --- NCCL ---------------------------------------------------------------------------------------


def test_nccl_within_its_parsers_limits():
    for name in builtin_names():
        if len(load(name).hosts) > 1:
            continue
        text = export_text("nccl", load(name)).text
        assert text.startswith('<system version="')
        assert "\t" not in text
        assert not re.search(r">[^<\s]", text)
        for line in text.splitlines():
            assert re.fullmatch(r" *</?\w+( \w+=\"[^\"<>&]{0,254}\")*/?>", line)
            assert line.count("=") <= 16


def test_nccl_comes_back():
    found = import_text("nccl", two_sockets(), "host.xml")
    written = export_text("nccl", build_topology(found.description))
    assert import_text("nccl", written.text.encode(), "host.xml").document == found.document
    assert codes(written) == ["not-held"]
    assert "memories" in written.findings[0].message


@pytest.mark.parametrize("chips", [1, 2])
def test_nccl_says_that_it_takes_a_switch_of_several_chips_for_one(chips):
    text = SWITCHED.replace("acs: off}", f"acs: off, chips: {chips}}}")
    assert f"chips: {chips}" in text
    (finding,) = (
        finding
        for finding in export_text("nccl", built(text)).findings
        if finding.code == "not-held"
    )
    assert ("switch of several chips" in finding.message) == (chips > 1)


def test_nccl_splits_links_over_the_switches_chips():
    links = "".join(
        f'<nvlink target="0000:c{at}:00.0" count="{count}" tclass="0x068000"/>'
        for at, count in enumerate((5, 5, 4, 4))
    )
    text = export_text("nccl", machine(system(cpu(0, gpu("0000:01:00.0", links))))).text
    assert re.findall(r'count="(\d+)"', text) == ["5", "5", "4", "4"]


def test_nccl_makes_up_addresses_and_says_it():
    written = export_text("nccl", load("workstation-4gpu"))
    assert "made-up-address" in codes(written)
    again = import_text("nccl", written.text.encode(), "x")
    assert [device.pci for device in again.machine.of_kind("gpu")] == [()] * 4


def test_nccl_holds_one_host():
    text = """\
topo: 1
devices: {cpu0: epyc, cpu1: epyc, 'gpu[0-1]': l40s}
links: [{gpu0 -- cpu0: pcie 4 x16}, {gpu1 -- cpu1: pcie 4 x16}]
"""
    with pytest.raises(ExchangeError, match="holds one host, and cpu1 is of another"):
        export_text("nccl", loads(text))
    with pytest.raises(ExchangeError, match="has none"):
        export_text("nccl", loads("{topo: 1, devices: {gpu0: l40s}}"))


def test_nccl_warns_of_more_than_its_parser_takes():
    gpus = [gpu(f"0000:{at:02x}:00.0", dev=at) for at in range(1, 200)]
    assert "format-limit" in codes(export_text("nccl", machine(system(cpu(0, *gpus)))))


def test_nccl_keeps_a_bridge_card_as_switches():
    root = ElementTree.fromstring(export_text("nccl", load("dgx-h100")).text)
    first = next(one for one in root.iter("pci") if one.find("pci/pci/gpu") is not None)
    assert first.get("class") == "0x060400"
    assert first.find("pci/nic/net").get("name") == "mlx5_0"


def test_nccl_keeps_a_bridge_card_without_a_gpu():
    text = """\
topo: 1
devices:
  cpu0: epyc
  sw0: pcie-switch-gen5
  gpu0: h100-pcie-80gb
  nic0: {part: nic-unknown, bridge: yes, ports: 1x 100 Gb/s}
links: [sw0 -- cpu0: pcie 5 x16, gpu0 -- sw0: pcie 5 x16, nic0 -- sw0: pcie 3 x16]
"""
    topology = loads(text)
    again = machine(export_text("nccl", topology).text.encode())
    for one in (topology, again):
        assert locality(one, "gpu0", "nic0") == "PXB"
        path = nccl_matrix(one)["gpu0"]["nic0"]
        assert (path.type, path.bandwidth) == ("PXB", 12)


@pytest.mark.parametrize("name", ["dgx-h100", "dgx-a100", "workstation-4gpu"])
def test_cards_keep_their_names_through_nccl(name):
    topology = load(name)
    again = machine(export_text("nccl", topology).text.encode())
    cards = {card.rdma: card.name for card in topology.of_kind("nic", "dpu")}
    assert {card.rdma: card.name for card in again.of_kind("nic", "dpu")} == cards


def test_cards_keep_their_order_through_nccl():
    text = """\
topo: 1
devices: {cpu0: epyc, cpu1: epyc, gpu0: l40s, nic0: nic-unknown, nic1: nic-unknown}
links:
  - cpu0 -- cpu1: xgmi 16 GT/s
  - gpu0 -- cpu0: pcie 4 x16
  - nic0 -- cpu1: pcie 4 x16
  - nic1 -- cpu0: pcie 4 x16
"""
    again = machine(export_text("nccl", loads(text)).text.encode())
    assert locality(again, "gpu0", "nic0") == "SYS"
    assert locality(again, "gpu0", "nic1") == "NODE"


@pytest.mark.parametrize("name", ["gpu0", "storage", "is", "a--b", "nic", "0x", "sw", "a b", "é"])
def test_a_name_that_no_card_may_have_is_not_taken(name):
    data = system(cpu(0, gpu("0000:01:00.0"), card("0000:02:00.0", "mlx5_0")))
    data = data.replace(b"<pci", f'<pci topo="{name}"'.encode())
    topology = machine(data)
    assert [card.name for card in topology.of_kind("nic")] == ["nic0"]


def test_two_cards_do_not_get_one_name():
    cards = [card(f"0000:0{at}:00.0", f"mlx5_{at}") for at in range(2, 6)]
    data = system(cpu(0, gpu("0000:01:00.0"), *cards)).decode()
    for at, name in ((2, "nic1"), (4, "slot1"), (5, "Slot1")):
        data = data.replace(f'busid="0000:0{at}', f'topo="{name}" busid="0000:0{at}')
    topology = machine(data.encode())
    names = {card.rdma[0]: card.name for card in topology.of_kind("nic")}
    assert names == {"mlx5_2": "nic1", "mlx5_3": "nic2", "mlx5_4": "slot1", "mlx5_5": "nic4"}


def test_nccl_says_what_it_drops():
    (finding,) = export_text("nccl", machine(two_sockets())).findings
    assert all(word in finding.message for word in ("CPU masks", "subsystem", "maxconn", "coll"))
    assert "sm" not in finding.message.split()
    bare = machine(system(cpu(0, gpu("0000:01:00.0"))))
    assert "(`sm`) of 1 GPU" in export_text("nccl", bare).findings[0].message


# --- the others ---------------------------------------------------------------------------------


def test_json_is_node_link():
    topology = load("gds-textbook")
    document = json.loads(export_text("json", topology).text)
    graph = networkx.node_link_graph(document, edges="edges")
    assert set(graph) == set(topology.devices)
    assert graph.number_of_edges() == 2 * len(topology.links)


def test_graphml_is_read_by_networkx():
    topology = load("dgx-h100")
    text = export_text("graphml", topology).text
    graph = networkx.parse_graphml(text, force_multigraph=True)
    assert set(graph) == set(topology.devices)
    assert graph.nodes["gpu0"]["part"] == "h100-sxm-80gb"
    assert {data["medium"] for _, _, data in graph.edges("gpu0", data=True)} >= {"pcie 5"}


def test_csv_has_a_row_for_each_direction():
    topology = load("gds-textbook")
    rows = list(csv.DictReader(io.StringIO(export_text("csv", topology).text)))
    assert len(rows) == 2 * len(topology.links)
    assert {row["medium"] for row in rows} == {link.cable.medium for link in topology.links}
    pcie = next(row for row in rows if row["medium"] == "pcie 5")
    assert float(pcie["bandwidth_GBps"]) == pytest.approx(63.0154)


def simgrid_routes(text):
    """Rates by the link's id, and the links between two ends."""
    zone = ElementTree.fromstring(text).find("zone")
    rates = {one.get("id"): one.get("bandwidth").removesuffix("Bps") for one in zone.iter("link")}
    routes = {}
    for route in zone.iter("route"):
        ends = (route.get("src"), route.get("dst"))
        assert ends not in routes, "SimGrid stops: the route already exists"
        routes[ends] = [one.get("id") for one in route]
    return {name: float(rate) for name, rate in rates.items() if name != "free"}, routes


def one_simgrid_route_for_each_pair(topology, text):
    rates, routes = simgrid_routes(text)
    zone = ElementTree.fromstring(text).find("zone")
    hosts = {one.get("id") for one in zone.findall("host")}
    assert hosts | {one.get("id") for one in zone.findall("router")} == set(topology.devices)
    known = {*rates, "free"}
    for (source, target), links in routes.items():
        assert {source, target} <= hosts
        assert links
        assert known.issuperset(links)
        through = [end for link in links for end in link.split(" -> ") if " -> " in link]
        ends = [one for one in through if topology[one.partition("/")[0]].kind in ("gpu", "memory")]
        assert set(ends) <= {source, target}, "data goes through no GPU and no memory"


def test_simgrid_parallel_cables_are_one_link_and_chips_limit():
    rates, routes = simgrid_routes(export_text("simgrid", load("gds-textbook")).text)
    used = routes["storage", "gpu0"]
    assert used[:2] == ["slot1/p1 in + slot1/p2 in", "slot1/chip in"]
    assert [rates[name] for name in used[:2]] == [100e9, 50e9]
    assert routes["gpu0", "storage"][-1] == "slot1/p1 out + slot1/p2 out"
    assert "ram0/bus" in routes["ram0", "gpu0"]


def test_simgrid_holds_as_many_pairs_as_a_file_can():
    text = """\
topo: 1
devices: {cpu0: epyc, 'gpu[0-500]': {part: gpu-unknown}}
links: [gpu -- cpu0: pcie 4 x1]
"""
    with pytest.raises(ExchangeError, match="holds a route for each pair"):
        export_text("simgrid", loads(text))


@cache
def simgrid_python():
    """The interpreter that has SimGrid's bindings (Debian's python3-simgrid), `None` without."""
    for python in filter(None, (sys.executable, shutil.which("python3", path="/usr/bin"))):
        tried = subprocess.run([python, "-c", "import simgrid"], capture_output=True, check=False)
        if tried.returncode == 0:
            return python
    return None


@pytest.mark.parametrize("name", builtin_names())
def test_simgrid_reads_it_and_gets_the_same_rates(name, tmp_path):
    python = simgrid_python()
    if python is None:
        pytest.skip("SimGrid is not installed")
    topology, file = load(name), tmp_path / "platform.xml"
    file.write_text(export_text("simgrid", topology).text, encoding="utf-8")
    pairs = {}
    sources = [*topology.of_kind("storage"), *topology.of_kind("nvme")][:1]
    for source in sources:
        for end in (topology.of_kind("gpu")[0], topology.of_kind("gpu")[-1]):
            answer = compare(topology, source=source.name, target=end.name, via=["direct"])
            path = answer.workloads[0]["direct"]
            capped = any("p2p" in one.resource.name for one in path.bottlenecks)
            if path.rate and not capped:
                pairs[source.name, end.name] = path.rate
    simulated = subprocess.run(
        [python, Path(__file__).with_name("simgrid_rates.py"), file, json.dumps([*pairs])],
        capture_output=True,
        check=True,
        text=True,
        timeout=60,
    )
    assert json.loads(simulated.stdout) == pytest.approx([*pairs.values()])


def test_mermaid_and_dot():
    topology = load("gds-textbook")
    lines = export_text("mermaid", topology).text.splitlines()
    assert lines[0] == "flowchart TB"
    for name in topology.devices:
        assert sum(f'"{name}<br/>' in line for line in lines) == 1
    assert "graph" in export_text("dot", topology).text.split("{")[0]


def _calls_of_a_picture(servers):
    """Count the calls that writing DOT of so many servers, all different, takes."""
    numbers = range(servers)
    devices = [
        f"cpu{i}: xeon-8480c\n  gpu{i}: h100-pcie-80gb\n  nic{i}: connectx-7" for i in numbers
    ]
    links = [f"gpu{i} -- cpu{i}: pcie 5 x16\n  - nic{i} -- cpu{i}: pcie 5 x16" for i in numbers]
    cables = [f"nic{i} -- leaf: infiniband ndr" for i in numbers]
    topology = loads(
        "topo: 1\ndevices:\n  leaf: quantum-2\n  "
        + "\n  ".join(devices)
        + "\nlinks:\n  - "
        + "\n  - ".join([*links, *cables])
    )
    profile = cProfile.Profile()
    profile.runcall(export_text, "dot", topology)
    return sum(entry.callcount for entry in profile.getstats())


def test_dot_of_twice_the_servers_is_twice_the_work():
    _calls_of_a_picture(2)  # what is loaded once
    assert _calls_of_a_picture(40) < 2.5 * _calls_of_a_picture(20)


def test_an_interface_without_a_device_stays_one():
    nets = '<nic><net name="eth0" dev="1" speed="100000"/></nic>'
    data = system(cpu(0, switch("0000:01:00.0", card("0000:02:00.0", "mlx5_0")), nets))
    text = export_text("nccl", machine(data)).text
    assert "    <nic>\n" in text
    assert "fffe" not in text


HOSTILE = """
topo: 1
name: Q&A;
title: "one\\u202eline"
devices:
  storage: {part: nvme-of-target, outside: yes, label: "x\\u202ey"}
  nic0: connectx-7
  cpu0: xeon-8480c
  ram0: {part: ddr5-4800, channels: 8}
  gpu0: h100-sxm-80gb
media:
  wire: {reach: network, rate: 400 Gb/s, source: "=cmd|'/c calc'!A1"}
links:
  - storage -- nic0: wire
  - nic0 -- cpu0: pcie 5 x16
  - ram0 -- cpu0: memory-bus
  - gpu0 -- cpu0: pcie 5 x16
"""


@pytest.mark.parametrize("kind", EXPORTS)
def test_every_format_escapes_what_it_does_not_hold(kind):
    text = export_text(kind, built(HOSTILE)).text
    assert "\u202e" not in text
    if kind in ("nccl", "graphml", "simgrid"):
        ElementTree.fromstring(text)
    if kind == "csv":
        cells = [cell for row in csv.reader(io.StringIO(text)) for cell in row]
        assert "'=cmd|'/c calc'!A1" in cells
        assert not [cell for cell in cells if cell.startswith(("=", "+", "-", "@"))]


def test_a_picture_of_any_name_is_well_formed():
    svg = draw(built(HOSTILE)).svg()
    assert "Q&amp;A;" in svg
    assert "\u202e" not in svg
    ElementTree.fromstring(svg)
