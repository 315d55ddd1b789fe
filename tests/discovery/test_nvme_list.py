"""nvme list: models and sizes of drives."""

from __future__ import annotations

import json

import pytest

from tests.discovery.test_combine import smi
from topo.discovery.file_kinds import file_kind
from topo.discovery.importing import discover, import_text, import_together
from topo.errors import ExchangeError

GEN_3, GEN_4 = "nvme-gen3-3.84tb", "nvme-gen4-7.68tb"
SAMSUNG, INTEL, UNKNOWN = "SAMSUNG MZWLJ7T6HALA-00007", "INTEL SSDPE2KX080T8", "Acme Drive 9000"
TABLE = (
    "Node                  Generic               SN                   Model                      "
    "              Namespace  Usage                      Format           FW Rev  \n"
    "--------------------- --------------------- -------------------- --------------------------"
    "-------------- ---------- -------------------------- ---------------- --------\n"
    f"/dev/nvme10n1         /dev/ng10n1           S1AAA                {SAMSUNG}               "
    "  0x1          3.83  TB /   7.68  TB      4 KiB +  0 B   RC610004\n"
    f"/dev/nvme2n1          /dev/ng2n1            S2BBB                {UNKNOWN}               "
    "  0x1        500.11  GB / 960.20  GB    512   B +  0 B   1.2\n"
)
OLD = (
    "Node             SN                   Model                                    Namespace Use\n"
    "---------------- -------------------- ---------------------------------------- --------- ---\n"
    f"/dev/nvme0n1     PHL1                 {INTEL}                      1"
    "           8.00  TB /   8.00  TB    512   B +  0 B   VDV1\n"
    f"/dev/nvme0n2     PHL1                 {INTEL}                      2"
    "           4.19  MB /   4.19  MB      4 KiB +  0 B   VDV1\n"
)  # fmt: skip
VERBOSE = (
    "Subsystem        Subsystem-NQN                                         Controllers\n"
    "---------------- ----------------------------------------------------- ----------------\n"
    "nvme-subsys0     nqn.2014-08.org:uuid:5                                nvme0\n"
    "nvme-subsys1     nqn.2014-08.org:uuid:6                                nvme1, nvme3\n\n"
    "Device           Cntlid SN        MN                         FR       TxPort Address    "
    "    Slot   Subsystem    Namespaces      \n"
    "---------------- ------ --------- -------------------------- -------- ------ ------------"
    " ------ ------------ ----------------\n"
    f"nvme0    0      S1AAA     {SAMSUNG} 1.3      pcie   0000:42:00.0   161    nvme-subsys0 "
    "nvme0n1, nvme0n2\n"
    f"nvme1    1      85JZX23   dellemc-powerstore         2.1.0.0  tcp    traddr=10.0.0.1,"
    "trsvcid=4420        nvme-subsys1 nvme1n1\n\n"
    "Device            Generic     NSID       Usage                      Format  Controllers\n"
    "----------------- ----------- ---------- -------------------------- ------- -----------\n"
    "/dev/nvme0n1 /dev/ng0n1   0x1          0.00   B /   7.68  TB    512   B +  0 B   nvme0\n"
    "/dev/nvme1n1 /dev/ng1n1   0x1          0.00   B /   1.00  TB    512   B +  0 B   nvme1\n"
)
OLD_JSON = json.dumps(
    {
        "Devices": [
            {
                "NameSpace": 1,
                "DevicePath": "/dev/nvme0n1",
                "ModelNumber": INTEL,
                "SerialNumber": "PHL1",
                "PhysicalSize": 8001563222016,
                "SectorSize": 512,
            },
            {"DevicePath": "/dev/nvme1n1", "ModelNumber": INTEL, "PhysicalSize": -2147483648},
        ]
    },
    indent=2,
)
NEW_JSON = json.dumps(
    {
        "Devices": [
            {
                "HostNQN": "nqn.1",
                "Subsystems": [
                    {
                        "Subsystem": "nvme-subsys0",
                        "Controllers": [
                            {
                                "Controller": "nvme0",
                                "ModelNumber": SAMSUNG,
                                "Transport": "pcie",
                                "Address": "0000:42:00.0",
                                "Namespaces": [
                                    {"NameSpace": "nvme0n1", "NSID": 1, "PhysicalSize": 7.68e12}
                                ],
                            },
                            {
                                "Controller": "nvme7",
                                "ModelNumber": "powerstore",
                                "Transport": "tcp",
                                "Address": "traddr=10.0.0.1",
                            },
                        ],
                    }
                ],
            }
        ]
    },
    indent=2,
)
PLAIN = {"table": TABLE, "old": OLD, "verbose": VERBOSE, "old JSON": OLD_JSON, "JSON": NEW_JSON}
TREE = "\n".join(
    ["-[0000:00]-+-01.0-[01]----00.0  NVIDIA Corporation GA102GL [A40]"]
    + [
        f"           +-0{at}.0-[{bus}]----00.0  Acme Electronics NVMe SSD Controller"
        for at, bus in ((2, "42"), (3, "43"))
    ]
).encode()


def told(text):
    data = text if isinstance(text, bytes) else text.encode()
    return discover(None, data, "nvme.txt")


def drives(machine):
    return {
        drive.label: (drive.part, dict(drive.facts).get("size"))
        for drive in machine.of_kind("nvme")
    }


@pytest.mark.parametrize("text", PLAIN.values(), ids=PLAIN)
def test_it_is_known_and_refused_alone(text):
    assert file_kind(text.encode()).importer == "nvme"
    with pytest.raises(ExchangeError, match="tells its drives, and not what machine"):
        import_text(None, text.encode(), "nvme.txt")


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        (TABLE, {"nvme2n1": ("nvme-unknown", "960.2 GB"), "nvme10n1": (GEN_4, "7.68 TB")}),
        (OLD, {"nvme0n1, nvme0n2": (GEN_3, "8 TB")}),
        (VERBOSE, {"nvme0n1, nvme0n2": (GEN_4, "7.68 TB")}),
        (OLD_JSON, {"nvme0n1": (GEN_3, "8.002 TB"), "nvme1n1": (GEN_3, None)}),
        (NEW_JSON, {"nvme0n1": (GEN_4, "7.68 TB")}),
    ],
    ids=PLAIN,
)  # fmt: skip
def test_models_and_sizes(text, expected):
    assert drives(told(text)) == expected


def test_drives_behind_a_network_are_no_drives_here():
    assert told(VERBOSE).left_out == ("nvme1",)
    assert told(NEW_JSON).left_out == ("nvme7",)
    only = VERBOSE.replace("pcie   0000:42:00.0", "tcp    traddr=10.0.0.2")
    with pytest.raises(ExchangeError, match="names no drive of this machine"):
        told(only)


def test_by_address_it_gives_its_drive_a_part():
    found = import_together([discover(None, TREE, "a.txt"), told(VERBOSE)])
    first, second = found.machine.of_kind("nvme")
    assert (first.part, second.part) == (GEN_4, "nvme-unknown")
    assert SAMSUNG in first.evidence
    assert "part, label, size from nvme.txt" in first.evidence


def test_without_addresses_drives_must_be_alike():
    two = OLD.replace("nvme0n2", "nvme1n1").replace(
        "4.19  MB /   4.19  MB", "8.00  TB /   8.00  TB"
    )
    found = import_together([discover(None, TREE, "a.txt"), told(two)])
    assert [drive.part for drive in found.machine.of_kind("nvme")] == [GEN_3] * 2
    unlike = import_together([discover(None, TREE, "a.txt"), told(TABLE)])
    assert [drive.part for drive in unlike.machine.of_kind("nvme")] == ["nvme-unknown"] * 2
    assert "2 devices of nvme.txt could not be placed" in unlike.yaml


@pytest.mark.parametrize("text", ['{"ModelNumber":' * 5_000, '{"ModelNumber": [1, 2'])
def test_broken_json(text):
    with pytest.raises(ExchangeError, match="is not whole JSON"):
        discover("nvme", text.encode(), "nvme.json")


def test_beside_a_matrix_no_drive_is_added():
    found = import_together([discover(None, smi(), "a.txt"), told(TABLE)])
    assert not found.machine.of_kind("nvme")
