"""Settings for other programs, each read by somebody else than who wrote it."""

from __future__ import annotations

import json
import os
import re
import subprocess
from pathlib import Path

import jsonschema
import pytest
import yaml

import topo
from tests.machines import UNLIKE
from topo.description.locating import builtin_names
from topo.errors import ExchangeError
from topo.exports.schedulers import host_list
from topo.exports.settings import configurations, write_settings
from topo.study.affinity import affinities
from topo.study.worth import TOOLS

GOLDEN = Path(__file__).parents[1] / "golden" / "settings"
AMD = """\
topo: 1
name: amd
devices:
  cpu[0-1]: {part: epyc-9654, numa: [0, 1]}
  ram[0-1]: {part: ddr5-4800, channels: 12}
  sw[0-3]: pcie-switch-gen5
  gpu[0-7]: mi300x
  nic[0-7]: {part: connectx-7, rdma: [r0, r1, r2, r3, r4, r5, r6, r7]}
links:
  - ram -- cpu: memory-bus
  - cpu0 -- cpu1: 4x xgmi 32 GT/s
  - sw -- cpu in blocks: pcie 5 x16
  - gpu -- sw in blocks: pcie 5 x16
  - nic -- sw in blocks: pcie 5 x16
  - gpu -- gpu all to all: xgmi 32 GT/s
"""
UNITS = """\
topo: 1
name: units
devices:
  node[0-63]: {use: dgx-h100}
fabrics:
  compute: {kind: rail-optimized, of: node, cards: nic, switch: quantum-2, cable: infiniband ndr}
"""
TEMPLATE = {
    "type": "object",
    "required": ["apiVersion", "kind", "metadata", "spec"],
    "properties": {
        "apiVersion": {"const": "resource.k8s.io/v1"},
        "kind": {"const": "ResourceClaimTemplate"},
        "metadata": {
            "properties": {"name": {"pattern": "^[a-z0-9]([-a-z0-9]{0,61}[a-z0-9])?$"}},
            "required": ["name"],
        },
        "spec": {
            "required": ["spec"],
            "properties": {
                "spec": {
                    "required": ["devices"],
                    "properties": {
                        "devices": {
                            "required": ["requests"],
                            "additionalProperties": False,
                            "properties": {
                                "requests": {
                                    "type": "array",
                                    "items": {
                                        "required": ["name", "exactly"],
                                        "properties": {
                                            "exactly": {
                                                "required": ["deviceClassName", "count"],
                                                "properties": {"count": {"type": "integer"}},
                                            }
                                        },
                                    },
                                },
                                "constraints": {
                                    "type": "array",
                                    "items": {"required": ["requests", "matchAttribute"]},
                                },
                            },
                        }
                    },
                }
            },
        },
    },
}
MATRIX = {
    "type": "object",
    "additionalProperties": False,
    "patternProperties": {
        "^(cpu|cuda|hip):[0-9]+$": {
            "type": "array",
            "minItems": 2,
            "maxItems": 2,
            "items": {"type": "array", "items": {"type": "string"}},
        }
    },
}


def settings(machine, tool, gpu=""):
    machine = topo.load(machine) if isinstance(machine, str) else machine
    return write_settings(configurations(affinities(machine), tool, gpu))


def codes(exported):
    return [finding.code for finding in exported.findings]


def sourced(text, variable, **environment):
    """Return what a shell has in a variable after reading a text."""
    path = {"PATH": os.environ["PATH"], **environment}
    script = f'{text}\nprintf %s "${{{variable}-unset}}"'
    done = subprocess.run(
        ["bash", "-euc", script], env=path, capture_output=True, text=True, check=True
    )
    return done.stdout


def records(text):
    """Read a file of Slurm: a line a record of Key=Value words, comments left out."""
    lines = (line.partition("#")[0].strip() for line in text.splitlines())
    return [dict(word.split("=", 1) for word in line.split()) for line in lines if line]


def expanded(hosts):
    """Expand a list of hosts as Slurm does."""
    names = []
    for piece in re.findall(r"[^,\[]+(?:\[[^\]]*\])?", hosts):
        stem, _, ranges = piece.partition("[")
        for span in ranges.rstrip("]").split(",") if ranges else [""]:
            first, _, last = span.partition("-")
            numbers = range(int(first), int(last or first) + 1) if span else [""]
            names += [f"{stem}{number}" for number in numbers]
    return names


# --- the files ------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("machine", "tool", "gpu"),
    [
        *(("dgx-a100", tool, "") for tool in TOOLS if not tool.startswith("slurm-topology")),
        ("dgx-h100", "dra", "gpu3"),
        ("dgx-h100", "ucx", "gpu3"),
        ("pod-32", "slurm", ""),
        ("pod-32", "slurm-topology", ""),
        ("pod-32", "slurm-topology-yaml", ""),
        ("workstation-4gpu", "slurm", ""),
    ],
)
def test_a_file_is_as_it_was(machine, tool, gpu, request):
    text = settings(machine, tool, gpu).text
    golden = GOLDEN / f"{'-'.join(filter(None, (tool, machine, gpu)))}.txt"
    if request.config.getoption("--update-golden"):
        golden.write_text(text, encoding="utf-8")
    assert text == golden.read_text(encoding="utf-8")


@pytest.mark.parametrize("tool", TOOLS)
@pytest.mark.parametrize("name", builtin_names())
def test_every_machine_and_no_name_made_up(name, tool):
    machine = topo.load(name)
    try:
        exported = settings(machine, tool)
    except ExchangeError as error:
        assert {finding.code for finding in error.findings} == {"nothing-to-set"}  # noqa: PT017
        return
    assert exported.text.endswith("\n")
    stated = {rdma for device in machine.devices.values() for rdma in device.rdma}
    assert set(re.findall(r"mlx5_[0-9]+", exported.text)) <= stated
    if name not in UNLIKE:
        return
    assert exported == settings(machine, tool)
    if tool in ("nccl", "ucx", "numactl"):
        subprocess.run(["bash", "-n"], input=exported.text, text=True, check=True)


# --- variables ------------------------------------------------------------------------------------


def test_nccl_matches_names_exactly_and_with_their_ports():
    value = sourced(settings("dgx-h100", "nccl").text, "NCCL_IB_HCA")
    assert value.startswith("=")
    entries = [entry.split(":") for entry in value[1:].split(",")]
    machine = topo.load("dgx-h100")
    assert entries == [[machine[f"nic{number}"].rdma[0], "1"] for number in range(8)]


def test_nccl_does_not_keep_cards_out_that_it_cannot_name():
    machine = topo.load("dgx-h100").replace({"nic3.rdma": "[]"})
    exported = settings(machine, "nccl")
    assert sourced(exported.text, "NCCL_IB_HCA") == "unset"
    assert "# gpu3: no RDMA name of nic3 here" in exported.text
    assert codes(exported) == ["no-rdma-name"]


def test_nccl_is_told_no_card_that_it_does_not_open_itself():
    exported = settings("aws-p5", "nccl")
    assert sourced(exported.text, "NCCL_IB_HCA") == "unset"
    assert "# libfabric's plugin (aws-ofi-nccl) takes the nearest" in exported.text
    assert codes(exported) == []
    machine = topo.load("aws-p5").replace({"nic0.libfabric": "no"})
    assert sourced(settings(machine, "nccl").text, "NCCL_IB_HCA").startswith("=rdmap79s0:1,")


def test_rccl_reads_what_nccl_reads():
    exported = settings(topo.loads(AMD), "nccl")
    assert "RCCL" in exported.text
    assert sourced(exported.text, "NCCL_IB_HCA").startswith("=r0:1,r1:1")


def test_ucx_is_told_by_process():
    text = settings("dgx-h100", "ucx").text
    machine = topo.load("dgx-h100")
    for number in range(8):
        (rdma,) = machine[f"nic{number}"].rdma
        for launcher in ("SLURM_LOCALID", "OMPI_COMM_WORLD_LOCAL_RANK", "LOCAL_RANK"):
            value = sourced(text, "UCX_NET_DEVICES", **{launcher: str(number)})
            assert value == f"{rdma}:1"
    assert sourced(text, "UCX_NET_DEVICES", LOCAL_RANK="8") == "unset"
    alone = settings("dgx-h100", "ucx", "gpu5").text
    assert sourced(alone, "UCX_NET_DEVICES") == "mlx5_9:1"


def test_ucx_takes_more_rails_and_less_direct_ways_where_that_is_needed():
    machine = topo.load("gds-loses").replace({"nic0.rdma": "mlx5_0"})
    assert sourced(settings(machine, "ucx").text, "UCX_IB_GPU_DIRECT_RDMA") == "no"
    cards = "".join(f"  nic{n}: {{part: connectx-7, rdma: [m{n}]}}\n" for n in range(5))
    links = "".join(f"  - nic{n} -- sw0: pcie 5 x16\n" for n in range(5))
    text = (
        "topo: 1\ndevices:\n  cpu0: epyc-9554\n  sw0: pcie-switch-gen5\n  gpu0: h100-pcie-80gb\n"
        f"{cards}links:\n  - sw0 -- cpu0: pcie 5 x16\n  - gpu0 -- sw0: pcie 5 x16\n{links}"
    )
    written = settings(topo.loads(text), "ucx").text
    assert sourced(written, "UCX_NET_DEVICES") == "m0:1,m1:1,m2:1,m3:1,m4:1"
    assert sourced(written, "UCX_MAX_RNDV_RAILS") == "4"


def test_numactl_runs_a_command_beside_its_gpu(tmp_path):
    script = tmp_path / "bind.sh"
    script.write_text(settings("dgx-a100", "numactl").text, encoding="utf-8")
    numactl = tmp_path / "numactl"
    numactl.write_text('#!/bin/sh\necho "$@"\n', encoding="utf-8")
    numactl.chmod(0o755)
    path = f"{tmp_path}:{os.environ['PATH']}"

    def run(number):
        done = subprocess.run(
            ["bash", str(script), "echo", "a  b"],
            env={"PATH": path, "LOCAL_RANK": number},
            capture_output=True,
            text=True,
            check=True,
        )
        return done.stdout.rstrip("\n")

    assert run("0") == "--cpunodebind=3 --membind=3 -- echo a  b"
    assert run("7") == "--cpunodebind=5 --membind=5 -- echo a  b"
    assert run("") == "a  b"  # whose number is not known runs all the same


def test_numactl_spreads_over_a_socket_where_a_node_is_too_slow():
    changes = {f"ram{number}.channels": "1" for number in range(8)}
    text = settings(topo.load("dgx-a100").replace(changes), "numactl").text
    assert "--cpunodebind=3 --interleave=0-3 --" in text


# --- JSON -----------------------------------------------------------------------------------------


def test_nixl_has_a_mapping_of_each_gpu_as_its_plugin_splits_it():
    parameters = json.loads(settings("dgx-h100", "nixl").text)
    assert parameters["gpu3"] == {"UCX": {"device_list": "mlx5_5"}}
    assert all(
        "/" not in device and ":" not in device  # it adds the port itself
        for backends in parameters.values()
        for device in backends["UCX"]["device_list"].split(", ")
    )


@pytest.mark.parametrize("machine", ["dgx-a100", "dgx-h100"])
def test_mooncake_finds_two_lists_in_each_row(machine):
    exported = settings(machine, "mooncake")
    matrix = json.loads(exported.text)
    jsonschema.validate(matrix, MATRIX)
    every = sorted(matrix["cuda:0"][0] + matrix["cuda:0"][1])
    assert all(sorted(first + others) == every for first, others in matrix.values())
    assert codes(exported)[-1] == "settings-worth"


def test_mooncake_calls_amds_gpus_hip():
    matrix = json.loads(settings(topo.loads(AMD), "mooncake").text)
    assert matrix["hip:3"][0] == ["r3"]
    assert matrix["cpu:1"][0] == ["r4", "r5", "r6", "r7"]


def test_ram_has_no_row_where_nobody_numbers_the_nodes():
    exported = settings(topo.load("dgx-h100").replace({"cpu.numa": "[]"}), "mooncake")
    assert not any(key.startswith("cpu") for key in json.loads(exported.text))
    assert "no-numa-node" in codes(exported)


# --- Slurm ----------------------------------------------------------------------------------------


def test_gres_lines_say_cores_and_links():
    lines = records(settings("dgx-h100", "slurm").text)
    assert lines[0] == {"AutoDetect": "off"}
    gpus = lines[1:]
    assert [line["File"] for line in gpus] == [f"/dev/nvidia{number}" for number in range(8)]
    assert [line["Cores"] for line in gpus] == ["0-55"] * 4 + ["56-111"] * 4
    links = [[int(count) for count in line["Links"].split(",")] for line in gpus]
    for one in range(8):
        assert links[one][one] == -1
        assert all(links[one][other] == links[other][one] for other in range(8))


def test_gres_lines_of_a_cluster_name_their_nodes():
    machine = topo.load("pod-32").replace({"node3.cpu0.cores": "32"})
    lines = records(settings(machine, "slurm").text)
    nodes = {line["NodeName"] for line in lines}
    assert {name for each in nodes for name in expanded(each)} == {f"node{n}" for n in range(32)}
    assert all(next(iter(line)) == "NodeName" and line["AutoDetect"] == "off" for line in lines)
    assert {line["Cores"] for line in lines if line["NodeName"] == "node3"} == {"0-31", "32-87"}


def test_amds_device_files_are_left_to_slurm():
    exported = settings(topo.loads(AMD), "slurm")
    assert records(exported.text) == [{"AutoDetect": "rsmi"}]
    assert "# Name=gpu Type=mi300x Cores=0-95 Links=-1,1,1,1,1,1,1,1" in exported.text
    assert codes(exported) == ["no-device-file"]


@pytest.mark.parametrize(
    "names",
    [
        ["node0"],
        ["node0", "node1", "node2", "node7"],
        ["su0.node0", "su0.node1", "su1.node0"],
        ["node01", "node1", "login"],
    ],
)
def test_a_list_of_hosts_is_what_slurm_expands(names):
    assert sorted(expanded(host_list(names))) == sorted(names)


def test_switches_are_a_tree_in_which_each_node_is_once():
    lines = records(settings("pod-32", "slurm-topology").text)
    names = [line["SwitchName"] for line in lines]
    nodes = [name for line in lines if "Nodes" in line for name in expanded(line["Nodes"])]
    below = [name for line in lines if "Switches" in line for name in expanded(line["Switches"])]
    assert sorted(nodes) == sorted({f"node{number}" for number in range(32)})
    assert len(names) == len(set(names))
    assert len(set(names) - set(below)) == 1  # one root
    assert sorted(below) == sorted(set(below))


def test_both_forms_of_the_tree_say_the_same():
    (topology,) = yaml.safe_load(settings("pod-32", "slurm-topology-yaml").text)
    assert (topology["topology"], topology["cluster_default"]) == ("pod-32", True)
    lines = [
        {"SwitchName": switch["switch"]}
        | ({"Nodes": switch["nodes"]} if "nodes" in switch else {"Switches": switch["children"]})
        for switch in topology["tree"]["switches"]
    ]
    assert lines == records(settings("pod-32", "slurm-topology").text)


def test_one_server_of_many_alike():
    machine = topo.loads(UNITS.replace("0-63", "0-511"))
    assert machine.folding is not None
    written = settings(machine, "ucx", "node77.gpu3").text
    assert sourced(written, "UCX_NET_DEVICES") == "mlx5_5:1"
    assert "# node[0-511]: One GPU" in written
    nodes = {line["NodeName"] for line in records(settings(machine, "slurm").text)}
    assert nodes == {"node[0-511]"}


def test_servers_without_names_have_no_line_of_their_own():
    text = "{topo: 1, devices: {c0: epyc-7742, g0: l40s, c1: epyc-7742, g1: l40s}, links: "
    machine = topo.loads(text + "[{g0 -- c0: pcie 4 x16}, {g1 -- c1: pcie 4 x16}]}")
    with pytest.raises(ExchangeError, match="that of g0 and that of g1"):
        settings(machine, "slurm")


def test_rails_of_a_unit_are_one_switch():
    lines = records(settings(topo.loads(UNITS), "slurm-topology").text)
    assert [line["Nodes"] for line in lines if "Nodes" in line] == ["node[0-31]", "node[32-63]"]


# --- Kubernetes -----------------------------------------------------------------------------------


def claims(text):
    documents = [each for each in yaml.safe_load_all(text) if each is not None]
    for document in documents:
        jsonschema.validate(document, TEMPLATE)
    return [document["spec"]["spec"]["devices"] for document in documents]


def test_a_claim_wants_gpu_and_card_on_one_root():
    (claim,) = claims(settings("dgx-h100", "dra").text)
    constraint = {"requests": ["gpu", "nic"]}
    attribute = {"matchAttribute": "resource.kubernetes.io/pcieRoot"}
    assert claim["constraints"] == [constraint | attribute]
    assert [request["exactly"]["count"] for request in claim["requests"]] == [1, 1]


def test_one_gpus_claim_names_it():
    (claim,) = claims(settings("dgx-h100", "dra", "gpu3").text)
    gpu, nic = (request["exactly"]["selectors"] for request in claim["requests"])
    assert gpu[0]["cel"]["expression"].endswith('.pciBusID == "0000:61:00.0"')
    assert nic[1]["cel"]["expression"] == 'device.attributes["dra.net"].rdmaDevice == "mlx5_5"'


def test_a_card_on_another_root_is_matched_by_numa_node_or_not_at_all():
    exported = settings("dgx-h100", "dra")
    assert not exported.findings
    text = AMD.replace("gpu -- sw in blocks", "gpu -- cpu in blocks")
    exported = settings(topo.loads(text), "dra")
    (claim,) = claims(exported.text)
    assert claim["constraints"][0]["matchAttribute"] == "resource.kubernetes.io/numaNode"
    assert claim["requests"][0]["exactly"]["deviceClassName"] == "gpu.amd.com"
    assert codes(exported) == ["not-one-root"]
    exported = settings("gds-loses", "dra")
    (claim,) = claims(exported.text)
    assert "constraints" not in claim
    assert "not-one-root" in codes(exported)


def test_a_name_becomes_one_that_kubernetes_takes():
    machine = topo.loads(AMD.replace("name: amd", f"name: {'A_b' * 40}"))
    assert claims(settings(machine, "dra").text)


# --- what cannot be said --------------------------------------------------------------------------


@pytest.mark.parametrize("tool", ["nccl", "ucx", "nixl", "mooncake", "dra"])
def test_a_machine_without_cards(tool):
    with pytest.raises(ExchangeError, match="no network card is near a GPU"):
        settings("workstation-4gpu", tool)


@pytest.mark.parametrize("odd", ["m; rm -rf ~", "$(x)", "a,b", "a:1", "a b", "'", "-x"])
@pytest.mark.parametrize("tool", ["nccl", "ucx", "nixl", "mooncake", "dra"])
def test_an_odd_name_reaches_no_file(odd, tool):
    machine = topo.loads(AMD.replace("r3,", f"{json.dumps(odd)},"))
    exported = settings(machine, tool, "gpu3" if tool == "dra" else "")
    assert odd == "'" or odd not in exported.text.replace("-x86", "")
    if tool != "dra":
        assert "odd-rdma-name" in codes(exported)
    if tool in ("nccl", "ucx"):
        subprocess.run(["bash", "-n"], input=exported.text, text=True, check=True)


def test_no_numa_nodes_and_no_gpus():
    with pytest.raises(ExchangeError, match="numbers of the NUMA nodes are not stated"):
        settings("kv-cache", "numactl")
    with pytest.raises(ExchangeError, match="has no GPU"):
        settings(topo.loads("{topo: 1, devices: {x: xeon-8480c}}"), "slurm")


def test_several_kinds_of_server_are_asked_about_one_by_one():
    machine = topo.load("pod-32").replace({"node3.nic0.rdma": "mlx5_77"})
    with pytest.raises(ExchangeError, match="2 kinds of server need other settings each: "):
        settings(machine, "nccl")
    assert "mlx5_77" in settings(machine, "nccl", "node3.gpu").text
    slower = topo.load("pod-32").replace({"node3.ram0.bus": "100 GB/s"})
    text = settings(slower, "nccl").text  # the settings are the same, what they are worth is not
    assert "# node3: 8 GPUs" in text
    assert len(claims(settings(machine, "dra").text)) == 2
