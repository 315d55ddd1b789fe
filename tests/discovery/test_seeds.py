"""The same file gives the same answer whatever order Python's sets have."""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path

import pytest

from tests.discovery.trees import sysfs_box, with_target
from topo.discovery.importing import import_text

CHECKOUT = Path(__file__).parents[2]
# Every made-up twin of the tests of importers, and each with each as a second source.
IMPORTS = """
from hashlib import sha256
from itertools import permutations
from tests.discovery.test_lspci import LIST
from tests.discovery.test_mutations import TEXTS, XML
from tests.discovery.test_tree_mutations import TEXTS as LISTS, TREES, XML as HWLOC
from tests.discovery.trees import ROCM
from topo.discovery.importing import discover, import_together
from topo.errors import TopoError
twins = [*TEXTS, *XML, *LISTS, *HWLOC, *(tree.tar() for tree in TREES), ROCM.encode()]
said = []
for names in [*((at,) for at in range(len(twins))), *permutations(range(len(twins)), 2)]:
    for storage in ((), ("mlx5_0",)) if len(names) == 1 else ((),):
        try:
            machines = [discover(None, twins[at], f"{at}.txt") for at in names]
            made = import_together(machines, storage=storage)
            said.append(repr((names, storage, made.yaml, made.findings)))
        except TopoError as error:
            said.append(repr((names, storage, str(error))))
print(len(said), sha256("".join(said).encode()).hexdigest())
"""


def test_no_order_hangs_on_a_set():
    printed = {
        subprocess.run(
            [sys.executable, "-c", IMPORTS],
            cwd=CHECKOUT,
            env={**os.environ, "PYTHONHASHSEED": seed},
            capture_output=True,
            text=True,
            check=True,
        ).stdout
        for seed in ("0", "1")
    }
    assert len(printed) == 1


def test_a_seen_target_and_an_added_one_are_numbered_both():
    tree = with_target(sysfs_box())
    found = import_text("sysfs", tree.tar(), "box.tar.gz", storage=["mlx5_0"])
    names = [device.name for device in found.description.devices]
    assert [name for name in names if name.startswith("storage")] == ["storage0", "storage1"]
    assert "nic0 -- leaf0: infiniband hdr" in found.yaml


@pytest.mark.parametrize("count", [2, 3])
def test_one_card_leads_to_several_seen_targets(count):
    tree = with_target(sysfs_box())
    for number in range(2, count + 1):
        place = f"sys/devices/virtual/nvme-fabrics/ctl/nvme{number}"
        tree.put(f"{place}/transport", "rdma")
        tree.put(f"{place}/address", "traddr=10.0.0.9,trsvcid=4420,src_addr=10.0.0.1")
        tree.put(f"{place}/subsysnqn", f"nqn.2020-01.org.example:slow{number}")
        tree.link(
            f"sys/class/nvme/nvme{number}", f"../../devices/virtual/nvme-fabrics/ctl/nvme{number}"
        )
    found = import_text("sysfs", tree.tar(), "box.tar.gz")
    names = [device.name for device in found.description.devices]
    assert sum(name.startswith("storage") for name in names) == count
