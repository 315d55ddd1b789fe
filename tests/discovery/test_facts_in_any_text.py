"""Sources that tell facts only, whatever was done to their texts: pasted, hostile, damaged."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from tests.discovery import (
    test_block_devices,
    test_dmidecode,
    test_ethtool,
    test_gpu_list,
    test_numa_nodes,
    test_nvidia_query,
    test_nvlink_status,
    test_nvme_list,
    test_peer_matrix,
    test_rdma_ports,
)
from tests.discovery.pasted import hostile, ragged, survives
from tests.discovery.test_combine import nccl, smi
from tests.discovery.test_mutations import damaged
from tests.discovery.trees import sysfs_box
from topo.discovery.importing import discover, import_together

SOURCES = {
    "lsblk": test_block_devices.PLAIN,
    "dmidecode": test_dmidecode.PLAIN,
    "ethtool": test_ethtool.PLAIN,
    "gpus": test_gpu_list.PLAIN,
    "numactl": test_numa_nodes.PLAIN,
    "nvidia-smi-q": test_nvidia_query.PLAIN,
    "nvlink": test_nvlink_status.PLAIN,
    "nvme": test_nvme_list.PLAIN,
    "p2p": test_peer_matrix.PLAIN,
    "ibstat": test_rdma_ports.PLAIN,
}
# Of each a machine to lay it beside that has what its facts are of.
MACHINES = {
    "lsblk": sysfs_box().tar("w"),
    "dmidecode": nccl(),
    "numactl": test_numa_nodes.unspoken(4),
    "nvidia-smi-q": nccl(),
    "nvlink": test_nvlink_status.TREE,
    "nvme": test_nvme_list.TREE,
}
TEXTS = [
    pytest.param(kind, text, id=f"{kind} {what}")
    for kind, texts in SOURCES.items()
    for what, text in texts.items()
]


def facts(data):
    machine = discover(None, data, "facts.txt")
    return machine.devices, machine.gpu_links, machine.slots


@pytest.mark.parametrize(("kind", "text"), TEXTS)
def test_it_tells_the_same_however_it_was_pasted(kind, text):
    plain = discover(kind, text.encode(), "facts.txt")
    for how, data in ragged(text).items():
        assert facts(data) == (plain.devices, plain.gpu_links, plain.slots), how


@pytest.mark.parametrize(("kind", "text"), TEXTS)
def test_hostile(kind, text):
    for how, data in hostile(text).items():
        machine = survives(lambda data=data: discover(kind, data, "facts.txt"))
        assert machine is None or machine.tells_only
        devices = machine.devices if machine is not None else ()
        texts = (text for device in devices for text in (*device.rdma, device.evidence))
        assert all(map(str.isprintable, texts)), how


@given(
    source=st.sampled_from(sorted(SOURCES)).flatmap(
        lambda kind: st.tuples(
            st.just(kind), damaged([text.encode() for text in SOURCES[kind].values()])
        )
    )
)
def test_damaged(source):
    kind, data = source
    machine = discover(None, MACHINES.get(kind, smi()), "machine")
    survives(lambda: import_together([machine, discover(kind, data, "facts.txt")]))
