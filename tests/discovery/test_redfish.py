"""Redfish: PCIe devices, processors, memory and network adapters of a management controller."""

from __future__ import annotations

import json
import random

import pytest

from tests.discovery.pasted import mutated, ragged, shape, survives_import
from topo.discovery.importing import discover, import_text, import_together
from topo.errors import ExchangeError
from topo.topology.build import build_topology
from topo.topology.locality import locality

ROOT = "/redfish/v1"
CHASSIS, SYSTEM = f"{ROOT}/Chassis/1", f"{ROOT}/Systems/1"


def resource(kind, address, **body):
    return {
        "@odata.id": address,
        "@odata.type": f"#{kind}.v1_9_0.{kind}",
        "Id": address[-1],
        **body,
    }


def link(address):
    return {"@odata.id": address}


def interface(generation=5, lanes=16, now=None):
    return {
        "PCIeType": f"Gen{now or generation}",
        "MaxPCIeType": f"Gen{generation}",
        "LanesInUse": lanes,
        "MaxLanes": lanes,
    }


def function(device, vendor, number, code, *, at=0, **body):
    return resource(
        "PCIeFunction",
        f"{device}/PCIeFunctions/{at}",
        VendorId=vendor,
        DeviceId=number,
        ClassCode=code,
        FunctionId=at,
        Links={"PCIeDevice": link(device)},
        **body,
    )


def device(name, maker, model, *functions, slot=None, cpu=None, **body):
    address = f"{CHASSIS}/PCIeDevices/{name}"
    links = {"Processors": [link(f"{SYSTEM}/Processors/CPU{cpu}")]} if cpu else {}
    if slot is not None:
        label = {"PartLocation": {"ServiceLabel": f"Slot {slot}", "LocationType": "Slot"}}
        body["Slot"] = {"Lanes": 16, "PCIeType": "Gen4", "Location": label}
    return resource(
        "PCIeDevice",
        address,
        Manufacturer=maker,
        Model=model,
        PCIeInterface=body.pop("PCIeInterface", interface()),
        PCIeFunctions={"@odata.id": f"{address}/PCIeFunctions", "Members": list(functions)},
        Links=links,
        Status={"State": "Enabled"},
        **body,
    )


GPU_AT, CARD_AT, DRIVE_AT = (f"{CHASSIS}/PCIeDevices/{name}" for name in ("GPU1", "NIC1", "SSD1"))
DEVICES = [
    device("GPU1", "NVIDIA", "H100", function(GPU_AT, "0x10de", "0x2330", "0x030200"), cpu=1),
    device(
        "NIC1",
        "Mellanox Technologies",
        "ConnectX-7",
        function(CARD_AT, "0x15b3", "0x1021", "0x020700"),
        slot=7,
        cpu=2,
    ),
    device(
        "SSD1",
        "Samsung",
        "PM1743",
        function(DRIVE_AT, "0x144d", "0xa824", "0x010802"),
        PCIeInterface=interface(5, 4),
        cpu=2,
    ),
    device(
        "BMC",
        "ASPEED",
        "AST2600",
        function(f"{CHASSIS}/PCIeDevices/BMC", "0x1a03", "0x2000", "0x030000"),
    ),
]
PROCESSORS = [
    resource(
        "Processor",
        f"{SYSTEM}/Processors/CPU{at}",
        ProcessorType="CPU",
        Manufacturer="Intel",
        Model="Intel(R) Xeon(R) Platinum 8480C",
    )
    for at in (1, 2)
]
MEMORY = [
    resource(
        "Memory",
        f"{SYSTEM}/Memory/DIMM{socket}{channel}",
        CapacityMiB=65536,
        MemoryDeviceType="DDR5",
        OperatingSpeedMhz=4800,
        DeviceLocator=f"CPU{socket} CH{channel}",
        MemoryLocation={"Socket": socket, "MemoryController": 0, "Channel": channel, "Slot": 0},
    )
    for socket in (0, 1)
    for channel in range(8)
]
ADAPTER = f"{CHASSIS}/NetworkAdapters/NIC1"
NETWORK = [
    resource(
        "NetworkAdapter",
        ADAPTER,
        Manufacturer="Mellanox Technologies",
        Model="ConnectX-7",
        Controllers=[{"PCIeInterface": interface(), "Links": {"PCIeDevices": [link(CARD_AT)]}}],
    ),
    resource(
        "Port",
        f"{ADAPTER}/Ports/1",
        CurrentSpeedGbps=400,
        LinkStatus="LinkUp",
        LinkNetworkTechnology="InfiniBand",
    ),
]
DRIVES = [
    resource(
        "Drive",
        f"{CHASSIS}/Drives/1",
        Protocol="NVMe",
        Model="PM1743",
        CapacityBytes=3840755982336,
        Links={"PCIeFunctions": [link(f"{DRIVE_AT}/PCIeFunctions/0")]},
    )
]


def collection(name, members):
    return {
        "@odata.id": f"{CHASSIS}/{name}",
        "@odata.type": f"#{name}Collection.X",
        "Members": members,
    }


EVERYTHING = {
    "@odata.id": CHASSIS,
    "@odata.type": "#Chassis.v1_20_0.Chassis",
    "PCIeDevices": collection("PCIeDevice", DEVICES),
    "Processors": collection("Processor", PROCESSORS),
    "Memory": collection("Memory", MEMORY),
    "NetworkAdapters": collection("NetworkAdapter", NETWORK),
    "Drives": collection("Drive", DRIVES),
}
TEXT = json.dumps(EVERYTHING, indent=2) + "\n"


def read(value):
    data = (
        value
        if isinstance(value, bytes)
        else value.encode()
        if isinstance(value, str)
        else json.dumps(value).encode()
    )
    return import_text(None, data, "bmc.json")


def codes(imported):
    return [finding.code for finding in imported.findings]


# --- what it tells --------------------------------------------------------------------------------


def test_an_expanded_chassis_is_a_machine():
    imported = read(TEXT)
    topology = build_topology(imported.description)
    assert imported.kind == "redfish"
    assert topology["gpu0"].part.name == "h100-sxm-80gb"
    assert topology["nic0"].part.name == "connectx-7"
    assert topology["nic0"].slot_name == "Slot 7"
    assert topology["nvme0"].part.name.startswith("nvme")
    assert [nic.ports for nic in imported.machine.of_kind("nic")] == [(400e9,)]
    assert imported.machine.of_kind("nic")[0].network == "infiniband"
    assert dict(imported.machine.of_kind("nvme")[0].facts)["size"] == "3.841 TB"
    assert len(imported.machine.of_kind("gpu")) == 1  # the console is none
    assert locality(topology, "gpu0", "nic0") == "SYS"
    assert {"no-tree"} <= {*codes(imported)}
    assert "numa-unknown" not in codes(imported)


def test_a_slot_can_be_the_slower_end():
    machine = read(TEXT).machine
    assert machine.of_kind("nic")[0].link.cable == "pcie 4 x16"
    assert machine.of_kind("gpu")[0].link.cable == "pcie 5 x16"
    assert machine.of_kind("nvme")[0].link.cable == "pcie 5 x4"


def test_a_link_at_rest_takes_its_best():
    gpu = device(
        "GPU1",
        "NVIDIA",
        "H100",
        function(GPU_AT, "0x10de", "0x2330", "0x030200"),
        PCIeInterface=interface(5, 16, now=1),
    )
    imported = read(collection("PCIeDevice", [gpu]))
    assert imported.machine.of_kind("gpu")[0].link.cable == "pcie 5 x16"
    assert "link-at-rest" in codes(imported)


def test_modules_are_memory_with_its_channels():
    memories = read(TEXT).machine.of_kind("memory")
    assert [memory.part for memory in memories] == ["ddr5-4800"] * 2
    assert dict(memories[0].facts) == {"channels": "8", "size": "549.8 GB"}


def test_where_no_link_says_which_cpu_it_is_unknown_and_said():
    devices = [{**each, "Links": {}} for each in DEVICES]
    imported = read({**EVERYTHING, "PCIeDevices": collection("PCIeDevice", devices)})
    assert "numa-unknown" in codes(imported)
    build_topology(imported.description)


def test_pcie_slots_tell_the_cpu_too():
    devices = [{**each, "Links": {}} for each in DEVICES]
    slots = resource(
        "PCIeSlots",
        f"{CHASSIS}/PCIeSlots",
        Slots=[
            {
                "Links": {
                    "PCIeDevice": [link(each["@odata.id"])],
                    "Processors": [link(f"{SYSTEM}/Processors/CPU2")],
                }
            }
            for each in DEVICES
        ],
    )
    imported = read([*devices, *PROCESSORS, slots])
    assert "numa-unknown" not in codes(imported)
    assert {gpu.parent for gpu in imported.machine.of_kind("gpu")} == {"cpu 1"}


def test_numbers_of_buses_are_addresses():
    numbered = function(
        GPU_AT,
        "0x10de",
        "0x2330",
        "0x030200",
        SegmentNumber=0,
        BusNumber="0x19",
        DeviceNumber=0,
        FunctionNumber=0,
    )
    imported = read([device("GPU1", "NVIDIA", "H100", numbered)])
    assert imported.machine.of_kind("gpu")[0].pci == ("0000:19:00.0",)


def test_functions_that_are_not_there_are_said():
    bare = device("GPU1", "NVIDIA", "H100")
    bare["PCIeFunctions"] = link(f"{GPU_AT}/PCIeFunctions")
    imported = read([bare])
    assert "not-expanded" in codes(imported)
    assert [gpu.kind for gpu in imported.machine.of_kind("gpu")] == ["gpu"]  # by its maker's name


def test_processors_that_are_gpus_stand_where_no_pcie_device_does():
    gpus = [
        resource(
            "Processor",
            f"{ROOT}/Systems/HGX/Processors/GPU{at}",
            ProcessorType="GPU",
            Manufacturer="NVIDIA",
            Model="H200 SXM 141GB",
            SystemInterface={"InterfaceType": "PCIe", "PCIe": interface()},
        )
        for at in range(8)
    ]
    machine = read([*gpus, *PROCESSORS]).machine
    assert [gpu.part for gpu in machine.of_kind("gpu")] == ["h200-sxm-141gb"] * 8
    assert machine.of_kind("gpu")[0].link.cable == "pcie 5 x16"


def nvlinks(owner, count, *, down=0, gbps=212.496):
    return [
        resource(
            "Port",
            f"{ROOT}/{owner}/Ports/NVLink_{at}",
            PortProtocol="NVLink",
            LinkStatus="LinkUp" if at < count else "LinkDown",
            CurrentSpeedGbps=gbps,
        )
        for at in range(count + down)
    ]


def hgx(*counts, switch=True):
    gpus = [
        resource(
            "Processor",
            f"{ROOT}/Systems/HGX/Processors/GPU{at}",
            ProcessorType="GPU",
            Manufacturer="NVIDIA",
            Model="H200 SXM 141GB",
        )
        for at in range(len(counts))
    ]
    ports = [
        port
        for at, count in enumerate(counts)
        for port in nvlinks(f"Systems/HGX/Processors/GPU{at}", count, down=18 - count)
    ]
    ports += nvlinks("Fabrics/HGX_NVLinkFabric_0/Switches/NVSwitch_0", 2) if switch else []
    return [*gpus, *PROCESSORS, *ports]


def test_nvlinks_that_are_up_lead_to_the_switches():
    imported = read(hgx(18, 18, 17))
    cables = {cable.a[-4:]: cable.cable for cable in imported.machine.cables}
    assert cables == {"GPU0": "18x nvlink 4", "GPU1": "18x nvlink 4", "GPU2": "17x nvlink 4"}
    assert "nvswitch0" in imported.yaml


def test_nvlinks_without_switches_are_counted_and_lead_nowhere():
    machine = read(hgx(4, 4, switch=False)).machine
    assert [links.active for links in machine.gpu_links] == [4, 4]
    assert not machine.cables


def test_devices_of_a_system_are_those_of_its_chassis():
    again = json.loads(json.dumps(DEVICES).replace(CHASSIS, SYSTEM))
    machine = read([*DEVICES, *again]).machine
    assert [len(machine.of_kind(kind)) for kind in ("gpu", "nic", "nvme")] == [1, 1, 1]


def test_empty_places_are_left_out():
    absent = {**DEVICES[0], "Status": {"State": "Absent"}}
    assert not read([absent, DEVICES[1]]).machine.of_kind("gpu")


def test_a_matrix_beside_it_tells_the_cpus():
    matrix = "\tGPU0\tmlx5_0\tCPU Affinity\tNUMA Affinity\nGPU0\t X \tPIX\t0-7\t0\n"
    matrix += "mlx5_0\tPIX\t X \t\t\n"
    sources = [discover(None, TEXT.encode(), "bmc.json"), discover(None, matrix.encode(), "m.txt")]
    build_topology(import_together(sources).description)


def test_another_resource_alone_is_refused():
    with pytest.raises(ExchangeError, match="no PCIe device") as caught:
        read({"@odata.id": "/redfish/v1/x", "@odata.type": "#Thermal.v1_0_0.Thermal"})
    assert "expand" in caught.value.findings[0].help


# --- forms ----------------------------------------------------------------------------------------

ALL = [*DEVICES, *PROCESSORS, *MEMORY, *NETWORK, *DRIVES]
FORMS = {
    "a list": json.dumps(ALL),
    "a map by address": json.dumps({each["@odata.id"]: each for each in ALL}),
    "one after the other": "\n".join(json.dumps(each, indent=1) for each in ALL),
    "with headings": "".join(
        f"## {each['@odata.id']}\n\n```{json.dumps(each, indent=4)}\n```\n\n" for each in ALL
    ),
    "with commands": "".join(
        f"$ curl -sk https://bmc{each['@odata.id']}\n{json.dumps(each)}\n" for each in ALL
    ),
    "on one line": "".join(json.dumps(each) for each in ALL),
}


@pytest.mark.parametrize("how", FORMS)
def test_the_forms_of_a_bundle(how):
    assert shape(read(FORMS[how])) == shape(read(TEXT))


@pytest.mark.parametrize("how", ragged(TEXT))
def test_however_it_was_pasted(how):
    assert shape(read(ragged(TEXT)[how])) == shape(read(TEXT))


def test_a_cut_document_keeps_what_is_whole():
    imported = read("\n".join(json.dumps(each) for each in ALL)[:-40])
    assert "abridged" in codes(imported)
    assert imported.machine.of_kind("gpu")


# --- hostile --------------------------------------------------------------------------------------

HOSTILE = {
    "deep": '{"@odata.id": "/x", "a": ' * 3000 + "1" + "}" * 3000,
    "brackets": '{"@odata.id": "/x"}\n' + "[\n" * 60_000,
    "unclosed": '{"@odata.id": "/x"\n' * 40_000,
    "huge numbers": TEXT.replace("65536", "9" * 400).replace("400,", "1e400,"),
    "other types": TEXT.replace('"H100"', "[1, {}]")
    .replace('"Gen5"', "null")
    .replace("16", '"16"'),
    "control characters": TEXT.replace("ConnectX-7", "\\u0007\\u001b[31mX" + "y" * 90_000),
    "many": json.dumps([{**DEVICES[0], "@odata.id": f"{GPU_AT}{at}"} for at in range(3000)]),
}


@pytest.mark.parametrize("how", HOSTILE)
def test_hostile_documents(how):
    survives_import(HOSTILE[how].encode())


@pytest.mark.parametrize("seed", range(60))
def test_damaged_documents(seed):
    chance = random.Random(seed)
    survives_import(mutated(chance.choice([TEXT, FORMS["one after the other"]]).encode(), chance))
