"""Several hosts as one cluster: which are alike, what tells the others apart, the same answers."""

from __future__ import annotations

import re
from itertools import combinations
from pathlib import Path

import pytest

from tests.discovery.test_corpus import CORPUS, data_of, rows
from tests.discovery.test_infragraph import CLUSTER
from tests.discovery.trees import two_level
from tests.discovery.twins import MATRIX, card, cpu, gpu, switch, system, two_sockets
from topo.description.loading import loads
from topo.discovery.cluster import host_names, import_apart, import_hosts, named_hosts
from topo.discovery.importing import discover, import_text
from topo.errors import DescriptionError, ExchangeError, TopoError
from topo.exports.formats import export_text
from topo.study.compare import compare
from topo.topology.build import build_topology, load
from topo.topology.locality import locality

TWINS = {"nccl": two_sockets(), "hwloc": two_level(), "nvidia-smi": MATRIX.encode()}


def hosts_of(**data):
    """The discovered sources of hosts by name, each a file or a list of them."""
    return {
        name: [
            discover(None, each, f"{name}.txt")
            for each in (files if isinstance(files, list) else [files])
        ]
        for name, files in data.items()
    }


def imported(**data):
    return import_hosts(hosts_of(**data), "pod")


def written(folder, cluster):
    """The cluster as a topology, from its files."""
    for kind in cluster.kinds:
        (folder / kind.file).write_text(kind.imported.yaml, encoding="utf-8")
    file = folder / f"{cluster.name}.yaml"
    file.write_text(cluster.yaml, encoding="utf-8")
    return load(str(file))


def codes(cluster):
    return [finding.code for finding in cluster.findings]


def answers(topology, prefix=""):
    """Localities of all pairs, and rates from RAM to each GPU and between GPUs, in one host."""
    inside = [name for name in topology.devices if name.startswith(prefix)]
    kinds = ("gpu", "nic", "dpu", "nvme")
    ends = [name for name in inside if topology[name].kind in kinds]
    pairs = {
        (a.removeprefix(prefix), b.removeprefix(prefix)): locality(topology, a, b)
        for a, b in combinations(ends, 2)
    }
    gpus = sorted(name for name in ends if topology[name].kind == "gpu")
    asked = [(f"{prefix}ram", name) for name in gpus] + [(gpus[0], name) for name in gpus[1:]]
    rates: dict[tuple[str, str], object] = {}
    for source, target in asked:
        key = (source.removeprefix(prefix), target.removeprefix(prefix))
        try:
            paths = compare(topology, source=source, target=target).workloads[0].paths
        except TopoError as error:  # no path of this kind: as in the one, so in the other
            rates[key] = error.findings[0].code
            continue
        rates[key] = [(path.name, path.verdict, path.rate, path.at_most) for path in paths]
    return pairs, rates


def assert_hosts_answer_as_alone(folder, data):
    cluster = import_hosts({f"node{at}": [discover(None, data, "dump")] for at in range(3)}, "pod")
    (kind,) = cluster.kinds
    assert kind.hosts == ("node0", "node1", "node2")
    topology = written(folder, cluster)
    alone = build_topology(import_text(None, data, "dump").description)
    whole, pairs = answers(alone), alone.of_kind("gpu")
    if len(pairs) > 4:  # rates of the first and the last host are enough
        assert answers(topology, "node2.") == whole
        return
    for host in kind.hosts:
        assert answers(topology, f"{host}.") == whole


@pytest.mark.parametrize("kind", TWINS)
def test_every_host_answers_as_it_does_alone(tmp_path, kind):
    assert_hosts_answer_as_alone(tmp_path, TWINS[kind])


@pytest.mark.parametrize("row", [*rows("nccl-xml"), *rows("hwloc-xml"), *rows("nvidia-smi")])
def test_every_host_of_the_corpus_answers_as_it_does_alone(tmp_path, row):
    data = data_of(row)
    try:
        alone = import_text(None, data, Path(row["file"]).name)
    except ExchangeError:
        pytest.skip(f"{CORPUS.name} has it to be refused")
    if not alone.machine.of_kind("gpu"):
        pytest.skip("a machine without GPUs")
    assert_hosts_answer_as_alone(tmp_path, data)


# --- alike, and not alike -------------------------------------------------------------------------


def two_cards(first="0000:12:00.0", second="0000:13:00.0", names=("mlx5_0", "mlx5_1"), **link):
    """A switch with a GPU and two cards."""
    inside = (gpu("0000:11:00.0"), card(first, names[0], **link), card(second, names[1]))
    return system(cpu(0, switch("0000:10:00.0", *inside)))


def test_addresses_and_names_make_no_kind():
    moved = two_cards("0000:14:00.0", "0000:15:00.0", ("ibs0", "ibs1"))
    (kind,) = imported(node0=two_cards(), node1=moved).kinds
    assert kind.hosts == ("node0", "node1")
    devices = kind.imported.document["devices"]
    assert devices["nic0"] == {"part": "nic-unknown", "ports": "1x 50 GB/s"}
    assert devices["gpu0"]["pci"] == "11:00.0"  # which both have
    assert (
        "# Left out, since it differs from host to host: pci of nic0, nic1 and"
        in kind.imported.yaml
    )


def test_a_card_of_several_functions_stays_one_without_its_addresses():
    def host(bus):
        functions = (card(f"0000:{bus}:00.0", "a"), card(f"0000:{bus}:00.1", "b"))
        return system(cpu(0, switch("0000:10:00.0", gpu("0000:11:00.0"), *functions)))

    alone = import_text(None, host("12"), "node0.txt").description
    (kind,) = imported(node0=host("12"), node1=host("14")).kinds
    (nic,) = (device for device in kind.imported.description.devices if device.kind == "nic")
    (nic_alone,) = (device for device in alone.devices if device.kind == "nic")
    assert [(one.part.name, one.part.figure("functions").value) for one in (nic, nic_alone)] == [
        ("nic-unknown", 2)
    ] * 2
    assert nic.pci == ()


def test_a_narrower_link_is_a_kind_of_its_own():
    cluster = imported(node0=two_cards(), node1=two_cards(width=8), node2=two_cards())
    assert [kind.hosts for kind in cluster.kinds] == [("node0", "node2"), ("node1",)]
    assert [kind.file for kind in cluster.kinds] == ["pod-node.yaml", "pod-node1.yaml"]
    (finding,) = (one for one in cluster.findings if one.code == "hosts-differ")
    assert (
        "node1 differs from node0, node2: nic0 -- sw0 is pcie 5 x8, not pcie 5 x16"
        in finding.message
    )
    assert "pod-node1.yaml" in finding.help


def test_a_missing_card_is_named_by_its_address():
    """The second of two cards is `nic0` where the first is missing: no other difference is one."""
    inside = (gpu("0000:11:00.0"), card("0000:13:00.0", "mlx5_1"))
    one = system(cpu(0, switch("0000:10:00.0", *inside)))
    cluster = imported(a0=two_cards(), a1=one, a2=two_cards())
    (finding,) = (one for one in cluster.findings if one.code == "hosts-differ")
    assert finding.message.endswith("nic0 (nic-unknown at 12:00.0) is missing")
    (finding,) = (
        found
        for found in imported(a0=one, a1=two_cards(), a2=one).findings
        if found.code == "hosts-differ"
    )
    assert finding.message.endswith("nic0 (nic-unknown at 12:00.0) is there as well")


def test_devices_in_another_order_are_another_kind():
    """A GPU on another switch has another number: `gpu0` must mean what it does in each host."""

    def host(first, second):
        switches = (switch("0000:10:00.0", *first), switch("0000:20:00.0", *second))
        return system(cpu(0, *switches))

    inside = (gpu("0000:11:00.0"),)
    near, far = card("0000:12:00.0", "mlx5_0"), card("0000:21:00.0", "mlx5_0")
    cluster = imported(
        n0=host((*inside, near), ()), n1=host(inside, (far,)), n2=host((*inside, near), ())
    )
    assert [kind.hosts for kind in cluster.kinds] == [("n0", "n2"), ("n1",)]


def test_a_second_source_is_of_its_own_host():
    cluster = imported(
        node0=[two_sockets(), MATRIX.encode()],
        node1=[two_sockets(), MATRIX.encode()],
    )
    (kind,) = cluster.kinds
    assert "# Combined with node0.txt" in kind.imported.yaml
    disagree = [one.message for one in cluster.findings if one.code == "sources-disagree"]
    assert disagree
    assert all(message.startswith("node0, node1: ") for message in disagree)


def test_the_network_is_said_to_be_unknown_and_none_is_made_up(tmp_path):
    cluster = imported(node0=two_sockets(), node1=two_sockets())
    assert "unknown-network" in codes(cluster)
    assert "links" not in cluster.document
    topology = written(tmp_path, cluster)
    assert not topology.of_kind("network-switch", "storage")
    # The example in the comments is one: with a part it reads as rails of a fabric.
    lines = cluster.yaml.splitlines()
    example = lines[lines.index("# fabrics:") :]
    text = "\n".join(line.removeprefix("# ") for line in example).replace("SWITCH", "quantum-2")
    (tmp_path / "pod.yaml").write_text(cluster.yaml + text + "\n", encoding="utf-8")
    assert load(str(tmp_path / "pod.yaml")).of_kind("network-switch")


def test_the_same_hosts_in_another_order_are_the_same_file():
    names = [f"node{at}" for at in (10, 2, 1, 0)]
    one = imported(**dict.fromkeys(names, two_sockets()))
    other = imported(**dict.fromkeys(sorted(names), two_sockets()))
    assert one.yaml.splitlines()[1:] == other.yaml.splitlines()[1:]
    assert "node[0-2]: {use: pod-node.yaml}" in one.yaml


def test_hosts_with_zeros_in_their_numbers_are_a_range():
    cluster = imported(**{f"node{at:02d}": two_sockets() for at in range(8, 12)})
    assert "node[08-11]: {use: pod-node.yaml}" in cluster.yaml


# --- names ----------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("files", "names"),
    [
        (["node0.xml", "node1.xml"], ("node0", "node1")),
        (["d/node0/topo.xml", "d/node1/topo.xml"], ("node0", "node1")),
        (["rack1/a/topo.xml", "rack2/a/topo.xml"], ("rack1", "rack2")),
        (["n0-hwloc.xml", "n1-hwloc.xml"], ("n0", "n1")),
        (["10.0.0.1.txt", "10.0.0.2.txt"], ("host-10-0-0-1", "host-10-0-0-2")),
        (["all.xml", "in.xml"], ("host-all", "host-in")),
    ],
)
def test_names_of_hosts_from_files(files, names):
    assert host_names(files) == names


def test_files_without_names_of_their_own():
    with pytest.raises(ExchangeError, match="one name"):
        host_names(["topo.xml", "topo.xml"])


def test_names_of_the_option():
    assert named_hosts(["node[0-1]=a.xml", "big=b=c.xml"]) == [
        ("node0", "a.xml"),
        ("node1", "a.xml"),
        ("big", "b=c.xml"),
    ]
    with pytest.raises(DescriptionError) as error:
        named_hosts(["a.xml", "1st=a.xml", "in=a.xml"])
    assert [finding.code for finding in error.value.findings] == [
        "same-host",
        "bad-name",
        "reserved-name",
    ]


def test_hosts_that_differ_in_case():
    with pytest.raises(ExchangeError, match="differ only in case"):
        imported(node0=two_sockets(), Node0=two_sockets())


def test_a_file_of_several_hosts_is_no_host():
    with pytest.raises(ExchangeError, match="of several hosts itself"):
        imported(node0=CLUSTER.encode(), node1=two_sockets())


# --- a source of several hosts --------------------------------------------------------------------


def apart(text, name="pod"):
    return import_apart(discover("infragraph", text.encode(), "plan.yaml"), name)


POD = """
topo: 1
name: pod
devices:
  node[0-3]: {use: dgx-h100}
  leaf[0-1]: quantum-2
  store: {part: nvme-of-target, ports: 2x infiniband ndr}
links:
  - node.slot1 -- leaf0: infiniband ndr
  - node.slot2 -- leaf1: infiniband ndr
  - store -- leaf: infiniband ndr
"""


def test_a_plan_of_alike_hosts_is_one_machine_used(tmp_path):
    cluster = apart(export_text("infragraph", build_topology(loads(POD))).text)
    (kind,) = cluster.kinds
    assert kind.hosts == ("host0", "host1", "host2", "host3")
    assert "host[0-3]: {use: pod-host.yaml}" in re.sub(" +", " ", cluster.yaml)
    assert "- host.nic0 -- leaf0: infiniband ndr" in cluster.yaml
    assert "storage" not in kind.imported.yaml
    assert not {"no-storage", "unknown-network", "hosts-differ"} & set(codes(cluster))
    topology = written(tmp_path, cluster)
    assert len(topology.hosts) == 4


def test_taken_apart_a_plan_answers_as_written_flat(tmp_path):
    text = export_text("infragraph", build_topology(loads(POD))).text
    used = written(tmp_path, apart(text))
    flat = build_topology(import_text("infragraph", text.encode(), "plan.yaml").description)
    rates = {}
    for name, topology, gpus in (("flat", flat, "host-gpu"), ("used", used, "host.gpu")):
        answer = compare(topology, source="store", target=gpus, via=["direct", "legacy"])
        rates[name] = [path.rate for path in answer.workloads[0].paths]
    assert rates["flat"] == rates["used"]
    assert len(flat.links) == len(used.links)


def test_hosts_of_a_plan_that_differ_have_files_of_their_own():
    other = POD.replace("node[0-3]: {use: dgx-h100}", "node[0-2]: {use: dgx-h100}")
    other = other.replace(
        "  leaf[0-1]", "  node3: {use: dgx-h100, set: {gpu.part: h200-sxm-141gb}}\n  leaf[0-1]"
    )
    cluster = apart(export_text("infragraph", build_topology(loads(other))).text)
    assert [len(kind.hosts) for kind in cluster.kinds] == [3, 1]
    assert "hosts-differ" in codes(cluster)


def test_a_host_of_a_plan_is_called_as_nothing_else_is():
    plan = CLUSTER.replace("name: node, device: box", "name: tor!, device: box")
    plan = plan.replace('instance: "node[', 'instance: "tor![')
    cluster = apart(plan)
    names = [name for kind in cluster.kinds for name in kind.hosts]
    assert len({*names, "tor0"}) == 3


def test_what_joins_hosts_of_a_plan_keeps_its_ends(tmp_path):
    topology = written(tmp_path, apart(CLUSTER))
    between = {
        (link.a.device, link.b.device): link.cable.text
        for link in topology.links
        if link.layer == "network"
    }
    assert between == {
        ("node0.nic0", "tor0"): "ethernet 400 Gb/s",
        ("node0.nic1", "tor0"): "ethernet 400 Gb/s",
        ("node1.nic0", "tor0"): "ethernet unknown",
    }
