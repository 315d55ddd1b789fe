"""`lsblk`, as table, pairs and JSON: models and sizes of NVMe drives."""

from __future__ import annotations

import json

import pytest

from tests.discovery.trees import sysfs_box
from topo.discovery.file_kinds import file_kind
from topo.discovery.importing import discover, import_text, import_together
from topo.errors import ExchangeError

SAMSUNG, UNKNOWN = "SAMSUNG MZWLJ7T6HALA-00007", "Acme Drive 9000 Pro"
TABLE = (
    "NAME        MODEL                         SIZE TRAN   MOUNTPOINTS\n"
    "sda         PERC H755                   894.3G sas    \n"
    "├─sda1                                      1G        /boot/efi\n"
    f"nvme1n1     {SAMSUNG}      7T nvme   \n"
    "└─nvme1n1p1                                 7T        /data\n"
    f"nvme0n1     {UNKNOWN}         894.3G nvme   \n"
)
DEFAULT = (
    "NAME        MAJ:MIN RM   SIZE RO TYPE MOUNTPOINTS\n"
    "loop0         7:0    0  63.9M  1 loop /snap/core20\n"
    "nvme0n1     259:0    0     7T  0 disk \n"
    "├─nvme0n1p1 259:1    0     1G  0 part /boot\n"
    "nvme1n1     259:2    0   3.5T  0 disk \n"
)
PAIRS = (
    f'NAME="nvme1n1" MODEL="{SAMSUNG}" SIZE="7T" TRAN="nvme"\n'
    'NAME="sda" MODEL="PERC" SIZE="894.3G" TRAN="sas"\n'
)
JSON = (
    json.dumps(
        {
            "blockdevices": [
                {"name": "sda", "model": "PERC H755", "size": "894.3G", "tran": "sas"},
                {
                    "name": "nvme1n1",
                    "model": SAMSUNG,
                    "size": 7681501126656,
                    "tran": "nvme",
                    "children": [
                        {"name": "nvme1n1p1", "model": None, "size": "7T", "tran": "nvme"}
                    ],
                },
            ]
        },
        indent=3,
    )
    + "\n"
)
PLAIN = {"table": TABLE, "default": DEFAULT, "pairs": PAIRS, "JSON": JSON}


def told(text):
    data = text if isinstance(text, bytes) else text.encode()
    return discover(None, data, "b.txt")


def drives(text):
    return [(drive.part, drive.label, dict(drive.facts)["size"]) for drive in told(text).devices]


@pytest.mark.parametrize("text", PLAIN.values(), ids=PLAIN)
def test_it_is_known_and_refused_alone(text):
    assert file_kind(text.encode()).importer == "lsblk"
    with pytest.raises(ExchangeError, match="tells its drives, and not what machine"):
        import_text(None, text.encode(), "b.txt")


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        (
            TABLE,
            [
                ("nvme-unknown", "nvme0n1", "960 GB"),
                ("nvme-gen4-7.68tb", "nvme1n1", "7.7 TB"),
            ],
        ),
        (
            DEFAULT,
            [("nvme-unknown", "nvme0n1", "7.7 TB"), ("nvme-unknown", "nvme1n1", "3.8 TB")],
        ),
        (PAIRS, [("nvme-gen4-7.68tb", "nvme1n1", "7.7 TB")]),
        (JSON, [("nvme-gen4-7.68tb", "nvme1n1", "7.7 TB")]),
    ],
    ids=PLAIN,
)
def test_models_and_sizes(text, expected):
    assert drives(text) == expected


def test_models_of_a_table_keep_their_words():
    assert [drive.evidence for drive in told(TABLE).devices] == [UNKNOWN, SAMSUNG]


def test_a_drive_is_compared_by_its_name():
    machine = discover(None, sysfs_box().tar("w"), "box.tar")
    row = f"NAME        MODEL{' ' * 22}   SIZE TRAN\nnvme0n1     {SAMSUNG}      7T nvme\n"
    found = import_together([machine, told(row)])
    messages = [each.message for each in found.findings if each.code == "sources-disagree"]
    assert messages == ["nvme0: size 3.841 TB in box.tar, 7.7 TB in b.txt"]
    assert found.machine.of_kind("nvme")[0].part == "nvme-gen4-7.68tb"


@pytest.mark.parametrize(
    ("text", "code"),
    [
        ("NAME MODEL SIZE\nsda x 3T\n", "nothing-there"),
        ('{"blockdevices": [{"name": 5}, {"children": "x"}]}', "nothing-there"),
        ('{"blockdevices": [' * 4000, "broken-json"),
        ('{"blockdevices": [{"name": "nvme0n1"', "broken-json"),
    ],
)
def test_no_drive(text, code):
    with pytest.raises(ExchangeError) as refused:
        discover("lsblk", text.encode(), "b.txt")
    assert refused.value.findings[0].code == code


def test_a_drive_that_a_network_leads_to_is_left_out():
    machine = told(PAIRS + 'NAME="nvme4n1" MODEL="x" SIZE="1T" TRAN="tcp"\n')
    assert ([drive.label for drive in machine.devices], machine.left_out) == (
        ["nvme1n1"],
        ("nvme4",),
    )


def test_absurd_sizes_are_none():
    text = PAIRS.replace("7T", "9999999999999999999P")
    assert not told(text).devices[0].facts
