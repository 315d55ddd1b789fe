"""NCCL's XML: each trap of the format, on the smallest file that has it."""

from __future__ import annotations

import pytest

from tests.discovery.twins import AMD, card, cpu, gpu, pci, switch, system, two_sockets
from topo.discovery.importing import import_text
from topo.errors import ExchangeError
from topo.exports.formats import export_text
from topo.study.compare import compare
from topo.topology.build import build_topology, loads
from topo.topology.locality import locality, matrix
from topo.topology.rules import nccl_matrix

WHOLE = """\
# Imported from host.xml (an NCCL topology file).
# What the source does not tell is `unknown`; memories and their buses are assumed.
# A cpu here is a NUMA node: NCCL does not tell which of them share a socket.
topo: 1
name: host
title: "2 GPUs, 2 network cards, 2 NUMA nodes"

parts:
  intel-6-143: {like: xeon-scalable, title: "Intel, family 6 model 143 (Sapphire Rapids)"}

devices:
  storage:   {part: nvme-of-target, outside: yes}  # a guess: the source does not name storage
  nic[0-1]:  # class 0x020700
    part: nic-unknown
    ports: 1x 400 Gb/s
    pci: [12:00.0, 22:00.0]
    rdma: [mlx5_1, mlx5_2]
  cpu[0-1]:  {part: intel-6-143, numa: [1, 2]}  # affinity: 16 logical CPUs
  ram[0-1]:  memory-unknown
  sw[0-1]:   {part: pcie-switch-unknown, pci: [10:00.0, 20:00.0]}  # class 0x060400
  gpu[0-1]:  {part: gpu-unknown, fabric: unknown, pci: [11:00.0, 21:00.0]}  # class 0x030200, sm 90
  nvswitch0: {part: nvswitch-unknown, chips: 2, pci: [c0:00.0, c1:00.0]}  # 2 targets of nvlink

links:
  - storage -- nic: infiniband ndr
  - ram -- cpu: memory-bus
  - cpu0 -- cpu1: upi unknown
  - sw -- cpu: pcie 5 x16  # link_speed "32.0 GT/s PCIe", link_width 16
  - nic -- sw: pcie 5 x16
  - gpu -- sw: pcie 5 x16
  - gpu -- nvswitch0: 18x nvlink 4

workloads:
  load: {read: 80 GB each, from: storage, to: gpu}  # to begin with: edit it
"""


def read(data):
    return import_text("nccl", data, "host.xml")


def codes(found):
    return [finding.code for finding in found.findings]


def one_cpu(*inside, **kwargs):
    return system(cpu(0, *inside, **kwargs))


def test_a_whole_file():
    found = read(two_sockets())
    topology = build_topology(found.description)
    assert [len(topology.of_kind(kind)) for kind in ("cpu", "pcie-switch", "gpu", "nic")] == [2] * 4
    assert topology["cpu1"].numa == (2,)
    assert topology["nic0"].rdma == ("mlx5_1",)
    assert locality(topology, "gpu0", "nic0") == "PIX"
    assert locality(topology, "gpu0", "gpu1") == "NV18"
    assert locality(topology, "gpu0", "nic1") == "SYS"
    assert codes(found) == ["guessed-storage"]
    assert "cabled to nic0 and nic1, which is a guess" in found.findings[0].message


def test_the_yaml_is_one_that_a_person_would_write():
    assert read(two_sockets()).yaml == WHOLE


def test_the_yaml_is_in_topos_own_layout():
    from topo.description.format import format_text

    assert format_text(WHOLE, name="x") == WHOLE


def test_switches_of_one_level_stand_together():
    gpus = iter(range(1, 5))

    def lower(at):
        bus = next(gpus)
        return switch(f"0000:{at}:00.0", gpu(f"0000:0{bus}:00.0", dev=bus))

    upper = [switch(f"0000:{at}0:00.0", lower(f"{at}1"), lower(f"{at}2")) for at in (2, 3)]
    links = [line for line in read(one_cpu(*upper)).yaml.splitlines() if " -- " in line]
    assert [line.partition(":")[0] for line in links] == [
        "  - ram0 -- cpu0",
        "  - sw[0-1] -- cpu0",
        "  - sw[2-5] -- sw[0-1] in blocks",
        "  - gpu -- sw[2-5]",
    ]


def test_the_document_builds_the_same_machine():
    from topo.description.loading import build

    found = read(two_sockets())
    again = build_topology(build(found.document))
    assert matrix(again) == matrix(build_topology(found.description))
    assert [device.part.name for device in again.devices.values()] == [
        device.part.name for device in found.description.devices
    ]


# --- classes ------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("code", "kind"),
    [
        ("0x060400", "pcie-switch"),
        ("0x060401", None),
        ("0x080100", "pcie-switch"),
        ("0x030200", "gpu"),
        ("0x030000", "gpu"),
        ("0x038000", "gpu"),
        ("0x120000", "gpu"),
        ("0x020000", "nic"),
        ("0x020700", "nic"),
        ("0x010802", "nvme"),
        ("0x010400", "hba"),
        ("0x068001", None),
        ("", None),
    ],
)
def test_a_class_is_matched_by_its_beginning(code, kind):
    found = read(one_cpu(pci("0000:01:00.0", code)))
    kinds = {device.kind for device in found.machine.devices} - {"cpu"}
    assert kinds == ({kind} if kind else set())
    assert ("unclassified-device" in codes(found)) == (kind is None)


def test_without_a_class_the_children_tell():
    inside = '<nic><net name="mlx5_0" dev="0" speed="200000"/></nic>'
    bare = f'<pci busid="0000:01:00.0"><gpu dev="0"/></pci><pci busid="0000:02:00.0">{inside}</pci>'
    found = read(one_cpu(bare))
    assert {device.kind for device in found.machine.devices} == {"cpu", "gpu", "nic"}
    assert found.machine.devices[0].link.cable == "pcie unknown"


@pytest.mark.parametrize("code", ["0x00ff00", "0x060000", "0x030200"])
def test_a_card_of_an_unusual_class_is_a_card_like_in_nccl(code):
    inside = '<nic><net name="eth1" dev="0" speed="100000"/></nic>'
    found = read(one_cpu(pci("0000:02:00.0", code, inside)))
    assert [card.ports for card in found.machine.of_kind("nic")] == [(100e9,)]
    assert found.machine.of_kind("gpu") == ()


def test_a_bare_file_of_a_template_names_what_it_cannot_know():
    found = read(b'<system version="1"><cpu numaid="0"><pci busid="0000:00:16.0"/></cpu></system>')
    assert codes(found) == ["unclassified-device"]
    assert found.machine.left_out == ("0000:00:16.0",)
    assert [device.part.name for device in found.description.devices] == [
        "cpu-unknown",
        "memory-unknown",
    ]


def test_a_management_console_is_no_gpu():
    vga = '<pci busid="0000:03:00.0" class="0x030000" vendor="0x1a03" device="0x2000"/>'
    found = read(one_cpu(vga, gpu("0000:01:00.0")))
    assert len(found.machine.of_kind("gpu")) == 1


# --- CPUs ---------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("vendor", "part", "evidence"),
    [
        ("HygonGenuine", "hygon-159-2", ""),
        ("SomeoneElse", "cpu-unknown", "vendor SomeoneElse"),
    ],
)
def test_a_cpu_that_no_table_has_keeps_its_maker(vendor, part, evidence):
    numbers = f'numaid="0" vendor="{vendor}" familyid="159" modelid="2"'
    cpu = f"<cpu {numbers}>{gpu('0000:01:00.0')}</cpu>"
    device = read(f"<system>{cpu}</system>".encode()).machine.of_kind("cpu")[0]
    assert (device.part, device.evidence) == (part, evidence)


# --- links --------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("speed", "width", "cable"),
    [
        ("2.5 GT/s", 16, "pcie 1 x16"),
        ("5 GT/s", 8, "pcie 2 x8"),
        ("8 GT/s", 4, "pcie 3 x4"),
        ("16.0 GT/s PCIe", 16, "pcie 4 x16"),
        ("64.0 GT/s PCIe", 16, "pcie 6 x16"),
        ("", 0, "pcie unknown"),
        ("", 16, "pcie unknown x16"),
        ("Unknown", 255, "pcie unknown"),
        ("32.0 GT/s PCIe", 0, "pcie 5 unknown"),
        ("32.0 GT/s PCIe", 12, "pcie 5 unknown"),
    ],
)
def test_speed_and_width(speed, width, cable):
    found = read(one_cpu(gpu("0000:01:00.0", speed=speed, width=width)))
    assert found.machine.of_kind("gpu")[0].link.cable == cable
    assert any(
        str(link.a) == "gpu0" and link.cable.text == cable for link in found.description.links
    )
    assert ("empty-link" in codes(found)) == ("unknown" in cable)


def test_a_placeholder_above_fast_children():
    found = read(one_cpu(switch("0000:01:00.0", gpu("0000:02:00.0"), speed="2.5 GT/s", width=1)))
    assert codes(found)[0] == "placeholder-link"
    assert "0000:01:00.0" in found.findings[0].message


def test_twice_slower_above_is_a_link():
    found = read(one_cpu(switch("0000:01:00.0", gpu("0000:02:00.0"), speed="16 GT/s")))
    assert "placeholder-link" not in codes(found)


def test_a_narrow_uplink_of_pcie_4_is_a_link():
    up = {"speed": "16.0 GT/s PCIe", "width": 8}
    found = read(one_cpu(switch("0000:01:00.0", gpu("0000:02:00.0"), **up)))
    assert "placeholder-link" not in codes(found)


def test_a_gpu_at_rest_and_a_narrow_slot():
    idle = gpu("0000:01:00.0", speed="2.5 GT/s")
    numbers = 'busid="0000:02:00.0" class="0x030200" vendor="0x10de" device="0x2330"'
    narrow = f'<pci {numbers} link_speed="32.0 GT/s PCIe" link_width="8"/>'
    assert "idle-link" in codes(read(one_cpu(idle)))
    assert "narrow-link" in codes(read(one_cpu(narrow)))


def test_a_link_faster_than_its_part_is_kept_and_said():
    numbers = 'busid="0000:02:00.0" class="0x030200" vendor="0x10de" device="0x1db1"'
    found = read(one_cpu(f'<pci {numbers} link_speed="16 GT/s" link_width="16"/>'))
    assert "link-over-part" in codes(found)
    assert found.description.devices[-1].part.slot.generation == 4
    assert found.description.devices[-1].part.name == "v100-sxm-16gb"


# --- cards --------------------------------------------------------------------------------------


def test_several_nets_of_one_function_are_ports():
    found = read(one_cpu(card("0000:01:00.0", "mlx5_0", "mlx5_1", speed_mbps=200000)))
    nic = next(device for device in found.description.devices if device.name == "nic0")
    assert (nic.rdma, nic.pci, nic.part.ports.count) == (("mlx5_0", "mlx5_1"), ("01:00.0",), 2)
    assert any(link.cable.text == "2x infiniband hdr" for link in found.description.links)


def test_functions_of_one_card_share_its_slot():
    functions = [card(f"0000:01:00.{at}", f"mlx5_{at}") for at in (0, 1)]
    found = read(one_cpu(*functions, gpu("0000:02:00.0")))
    nics = found.machine.of_kind("nic")
    assert [nic.pci for nic in nics] == [("0000:01:00.0", "0000:01:00.1")]
    topology = build_topology(found.description)
    assert topology["nic0"].part.figure("functions").value == 2


def test_a_known_card_takes_its_part():
    numbers = 'busid="0000:01:00.0" class="0x020000" vendor="0x15b3" device="0x1021"'
    net = '<nic><net name="mlx5_0" speed="400000"/></nic>'
    link = 'link_speed="32.0 GT/s PCIe" link_width="16"'
    found = read(one_cpu(f"<pci {numbers} {link}>{net}</pci>"))
    assert "{part: connectx-7, pci: 01:00.0, rdma: mlx5_0}" in found.yaml


@pytest.mark.parametrize(
    ("megabits", "code"), [(180000, "impossible-nic-speed"), (-1, None), (0, None), (100000, None)]
)
def test_speeds_of_ports(megabits, code):
    found = read(one_cpu(card("0000:01:00.0", "mlx5_0", speed_mbps=megabits)))
    assert [one for one in codes(found) if one == "impossible-nic-speed"] == (
        [code] if code else []
    )
    assert found.machine.of_kind("nic")[0].ports == ((megabits * 1e6) if megabits > 0 else None,)


@pytest.mark.parametrize("inside", [True, False], ids=["card", "interface"])
def test_a_speed_that_no_port_has_is_unknown(inside):
    """200 Tb/s, as a driver wrote it: nothing is computed by it."""
    net = card("0000:02:00.0", "hsn0", speed_mbps=200_000_000)
    if not inside:
        net = '<nic><net name="hsn0" dev="0" speed="200000000"/></nic>'
    found = read(one_cpu(gpu("0000:01:00.0"), net))
    (finding,) = [one for one in found.findings if one.code == "impossible-nic-speed"]
    assert finding.severity == "warning"
    assert "200000 Gb/s" in finding.message
    assert "unknown" in finding.help
    assert "guessed-speed" in codes(found)
    assert "200000 Gb/s" not in found.yaml
    answer = compare(build_topology(found.description)).workloads[0]["legacy"]
    assert answer.rate == pytest.approx(12.5e9)
    assert answer.at_most


def test_a_port_faster_than_its_link():
    slow = card("0000:01:00.0", "mlx5_0", speed="8 GT/s", width=4)
    assert "nic-over-link" in codes(read(one_cpu(slow)))


def test_virtual_interfaces():
    nets = '<nic><net name="eth0" speed="100000"/><net name="veth12"/><net name="cali3"/></nic>'
    found = read(system(cpu(0, gpu("0000:01:00.0"), nets), cpu(1, nets)))
    assert [nic.label for nic in found.machine.of_kind("nic")] == ["eth0"]
    assert found.machine.left_out == ("veth12", "cali3") * 2
    assert "virtual-interfaces" in codes(found)


# --- GPUDirect RDMA -----------------------------------------------------------------------------


def without_gdr(*places):
    """A switch with a GPU and a card of two functions, `gdr="0"` at some of the three."""
    ends = [gpu("0000:02:00.0"), card("0000:03:00.0", "mlx5_0"), card("0000:03:00.1", "mlx5_1")]
    for place in places:
        ends[place] = ends[place].replace('gdr="1"', 'gdr="0"')
    return one_cpu(switch("0000:01:00.0", *ends))


@pytest.mark.parametrize(
    ("places", "at"),
    [((), ()), ((0,), ("gpu0",)), ((1, 2), ("nic0",)), ((0, 1, 2), ("gpu0", "nic0")), ((1,), ())],
    ids=["all have it", "not the gpu", "not the card", "neither", "not one port"],
)
def test_without_gdr_there_is_no_direct_path(places, at):
    found = read(without_gdr(*places))
    topology = build_topology(found.description)
    direct = compare(topology).workloads[0]["direct"]
    reasons = [one for one in direct.reasons if one.code == "no-gpudirect-rdma"]
    assert [name for one in reasons for name in one.about] == list(at)
    assert (direct.verdict == "refused") == bool(at)
    legacy = compare(topology).workloads[0]["legacy"]
    assert legacy.verdict == "ok"
    written = export_text("nccl", topology).text
    assert written.count('gdr="0"') == len(at) + ("nic0" in at)
    assert read(written.encode()).document == found.document


def test_without_gdr_gpus_still_reach_each_other():
    gpus = [gpu(f"0000:0{at}:00.0", dev=at - 2).replace('gdr="1"', 'gdr="0"') for at in (2, 3)]
    text = read(one_cpu(switch("0000:01:00.0", *gpus))).yaml.replace(
        "gpu-unknown", "h100-pcie-80gb"
    )
    text += "workloads:\n  peer: {copy: 1 GB, from: gpu0, to: gpu1, via: [peer-pcie]}\n"
    assert compare(loads(text)).workloads[0]["peer-pcie"].verdict != "refused"


# --- links between GPUs -------------------------------------------------------------------------


def nvlink(target, count=1, code="0x030200", tag="nvlink"):
    return f'<{tag} target="{target}" count="{count}" tclass="{code}"/>'


def test_two_gpus_say_one_bundle():
    found = read(
        one_cpu(
            gpu("0000:01:00.0", nvlink("0000:02:00.0", 4), sm=80),
            gpu("0000:02:00.0", nvlink("0000:01:00.0", 4), dev=1, sm=80),
        )
    )
    assert [cable.cable for cable in found.machine.cables] == ["4x nvlink 3"]


def test_two_gpus_that_count_differently():
    found = read(
        one_cpu(
            gpu("0000:01:00.0", nvlink("0000:02:00.0", 4), sm=80),
            gpu("0000:02:00.0", nvlink("0000:01:00.0", 2), dev=1, sm=80),
        )
    )
    assert [cable.cable for cable in found.machine.cables] == ["4x nvlink 3"]
    assert "asymmetric-links" in codes(found)


@pytest.mark.parametrize("target", ["fffffff:ffff:ff", "fffffff:ff:ff.0"])
def test_a_hidden_switch(target):
    links = nvlink(target, 18, "0x068000")
    found = read(one_cpu(*(gpu(f"0000:0{at}:00.0", links, dev=at) for at in range(1, 4))))
    assert "hidden-nvswitch" in codes(found)
    topology = build_topology(found.description)
    assert locality(topology, "gpu0", "gpu2") == "NV18"


def test_every_gpu_with_links_to_itself_is_named():
    addresses = [f"0000:0{at}:00.0" for at in range(1, 5)]
    gpus = [gpu(one, nvlink(one, 12), dev=at) for at, one in enumerate(addresses)]
    (finding,) = [one for one in read(one_cpu(*gpus)).findings if one.code == "self-link"]
    assert all(address in finding.message for address in addresses)


def test_every_gpu_that_is_not_there_is_named():
    far = [f"0000:0{at}:00.0" for at in range(5, 9)]
    found = read(one_cpu(gpu("0000:01:00.0", *(nvlink(one) for one in far))))
    (finding,) = [one for one in found.findings if one.code == "gpu-missing"]
    assert all(address in finding.message for address in far)


def test_every_pair_that_counts_differently_is_named():
    addresses = [f"0000:0{at}:00.0" for at in range(1, 6)]
    first = gpu(addresses[0], *(nvlink(one, 4) for one in addresses[1:]), sm=80)
    others = [gpu(one, nvlink(addresses[0], 2), dev=at) for at, one in enumerate(addresses[1:], 1)]
    found = read(one_cpu(first, *others))
    (finding,) = [one for one in found.findings if one.code == "asymmetric-links"]
    text = " ".join((finding.message, *finding.notes))
    assert all(address in text for address in addresses)


def test_a_link_to_itself_changes_nothing():
    found = read(one_cpu(gpu("0000:01:00.0", nvlink("0000:01:00.0", 12))))
    assert found.machine.cables == ()
    assert "self-link" in codes(found)


def test_a_link_to_a_gpu_that_is_not_there():
    found = read(one_cpu(gpu("0000:01:00.0", nvlink("0000:09:00.0", 12))))
    assert found.machine.cables == ()
    assert "gpu-missing" in codes(found)


def test_one_gpu_off_the_fabric():
    links = nvlink("0000:c0:00.0", 18, "0x068000")
    gpus = [gpu(f"0000:0{at}:00.0", links, dev=at) for at in range(1, 4)]
    found = read(one_cpu(*gpus, gpu("0000:09:00.0", dev=9)))
    assert "gpu-off-fabric" in codes(found)


def test_a_chip_link():
    found = read(one_cpu(gpu("0000:01:00.0", '<c2c bw="44712" count="5"/>'), who='arch="arm64"'))
    assert "5x nvlink-c2c 44.712 GB/s" in found.yaml
    assert build_topology(found.description)["cpu0"].part.facts["architecture"] == "arm"


def test_rccl_writes_version_2():
    inside = '<gpu dev="0" gcn="908" rank="0">' + nvlink("0000:02:00.0", tag="xgmi") + "</gpu>"
    other = '<gpu dev="1" gcn="908" rank="1">' + nvlink("0000:01:00.0", tag="xgmi") + "</gpu>"
    found = read(
        system(
            cpu(
                0,
                pci("0000:01:00.0", "0x038000", inside),
                pci("0000:02:00.0", "0x038000", other),
                who=AMD,
            ),
            version="2",
        )
    )
    assert codes(found)[0] == "nccl-version"
    assert [cable.cable for cable in found.machine.cables] == ["xgmi unknown"]
    assert locality(build_topology(found.description), "gpu0", "gpu1") == "XGMI"


def broadcom(busid, subsystem, *inside):
    numbers = 'class="0x060400" vendor="0x1000" device="0xc030" subsystem_vendor="0x1000"'
    return (
        f'<pci busid="{busid}" {numbers} subsystem_device="{subsystem}" '
        f'link_speed="32.0 GT/s PCIe" link_width="16">{"".join(inside)}</pci>'
    )


@pytest.mark.parametrize(("above", "virtual"), [("0x0072", True), ("0x1d25", False)])
def test_a_broadcom_switch_cut_into_virtual_ones(above, virtual):
    lower = broadcom("0000:02:00.0", "0x1003", gpu("0000:03:00.0"))
    found = read(
        one_cpu(broadcom("0000:01:00.0", above, lower, '<pcilink target="0000:09:00.0"/>'))
    )
    assert ("virtual-switch" in codes(found)) == virtual
    assert [sw.facts for sw in found.machine.of_kind("pcie-switch")] == [
        (),
        (("virtual", "yes"),) if virtual else (),
    ]
    assert "left-out-link" in codes(found)
    assert len(found.machine.of_kind("pcie-switch")) == 2


def test_what_is_said_of_virtual_switches_is_what_nccls_rules_say():
    """Switches of another maker below: the path still passes two, so no class is promised."""
    ends = [gpu(f"0000:0{at}:00.0", dev=at) for at in (5, 6)]
    below = [switch(f"0000:0{at}:00.0", end) for at, end in zip((3, 4), ends, strict=True)]
    data = one_cpu(broadcom("0000:01:00.0", "0x0072", broadcom("0000:02:00.0", "0x1003", *below)))
    found = read(data)
    text = next(str(one) for one in found.findings if one.code == "virtual-switch")
    assert "0000:02:00.0" in text
    assert not any(word in text for word in ("PIX", "PXB"))
    path = nccl_matrix(build_topology(found.description))["gpu0"]["gpu1"]
    assert (path.type, path.bandwidth) == ("PXB", 48)


def test_many_gpus_without_any_switch():
    links = nvlink("0000:c0:00.0", 18, "0x068000")
    gpus = [gpu(f"0000:0{at}:00.0", links, dev=at) for at in range(1, 5)]
    assert "hidden-switches" in codes(read(one_cpu(*gpus, card("0000:0a:00.0", "mlx5_0"))))


def test_an_xgmi_link_to_nowhere_is_no_switch():
    inside = '<gpu dev="0" gcn="908" rank="0"><xgmi target="" count="1"/></gpu>'
    found = read(one_cpu(pci("0000:01:00.0", "0x038000", inside)))
    assert found.machine.cables == ()
    assert "gpu-missing" in codes(found)


def test_cards_and_dpus_are_numbered_together():
    dpu = 'busid="0000:02:00.0" class="0x020000" vendor="0x15b3" device="0xa2dc"'
    cards = [card("0000:01:00.0", "mlx5_0"), f"<pci {dpu}/>", card("0000:03:00.0", "mlx5_2")]
    names = {device.name: device.part.kind for device in read(one_cpu(*cards)).description.devices}
    assert [names[f"nic{at}"] for at in range(3)] == ["nic", "dpu", "nic"]


# --- order, repeats, refusals -------------------------------------------------------------------


def test_gpus_are_numbered_as_nccl_numbers_them():
    found = read(one_cpu(gpu("0000:01:00.0", dev=1), gpu("0000:02:00.0", dev=0)))
    assert "pci: [02:00.0, 01:00.0]" in found.yaml


def test_a_repeated_switch_is_another_one_and_a_repeated_gpu_none():
    one = switch("0000:01:00.0", gpu("0000:02:00.0"))
    other = switch("0000:01:00.0", gpu("0000:02:00.0", dev=1), card("0000:03:00.0", "mlx5_0"))
    found = read(one_cpu(one, other))
    assert len(found.machine.of_kind("pcie-switch")) == 2
    assert len(found.machine.of_kind("gpu")) == 1
    assert "address-again" in codes(found)


def test_storage_goes_where_it_is_said():
    data = one_cpu(card("0000:01:00.0", "mlx5_0"), card("0000:02:00.0", "mlx5_1"))
    for name in ("nic1", "mlx5_1", "02:00.0", "0000:02:00.0"):
        found = import_text("nccl", data, "host.xml", storage=[name])
        assert "storage -- nic1: infiniband ndr" in found.yaml
        assert "guessed-storage" not in codes(found)
    with pytest.raises(ExchangeError, match="no network card `mlx5_9`"):
        import_text("nccl", data, "host.xml", storage=["mlx5_9"])


ENTITIES = (
    b'<!DOCTYPE system [<!ENTITY a "aaaa"><!ENTITY b "&a;&a;">]><system version="1">&b;</system>'
)


@pytest.mark.parametrize(
    ("data", "code", "words"),
    [
        (b"<graphs version='1'/>", "wrong-kind", "an NCCL graph dump"),
        (b"<topology version='3.0'/>", "wrong-kind", "an hwloc XML file"),
        (b"<html><body/></html>", "wrong-kind", "a web page"),
        (b"<robots/>", "wrong-kind", "<robots>"),
        (b"", "wrong-kind", "an empty file"),
        (b"topo: 1\n", "wrong-kind", "a topology file of topo"),
        (b'<system version="1"></system>', "nothing-there", "no <cpu>"),
        (b'<system version="1"><cpu numaid="0">', "broken-xml", "not whole XML"),
        (ENTITIES, "refused-xml", "entities"),
        (
            b"<system>" + b"<cpu>" * 300 + b"</cpu>" * 300 + b"</system>",
            "import-too-big",
            "deeper than",
        ),
    ],
)
def test_what_it_is_not(data, code, words):
    with pytest.raises(ExchangeError, match=words) as caught:
        read(data)
    assert [one.code for one in caught.value.findings] == [code]


def test_strange_texts_stay_texts():
    net = '<nic><net name="a: b # [c] &quot;d&quot; \u00e9&#10;x" speed="400000"/></nic>'
    found = read(one_cpu(pci("0000:01:00.0", "0x020000", net)))
    nic = next(device for device in found.description.devices if device.name == "nic0")
    assert nic.label == 'a: b # [c] "d" \u00e9 x'
