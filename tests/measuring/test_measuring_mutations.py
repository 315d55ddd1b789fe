"""Damaged results: what is left of them or a clear error, and soon; the file stays sound."""

from __future__ import annotations

import json
import time

from hypothesis import given
from hypothesis import strategies as st

from tests.discovery.test_mutations import damaged
from tests.machines import TWO_SOCKETS, built
from tests.measuring.results import (
    bandwidth_test,
    dlio,
    elbencho,
    elbencho_csv,
    elbencho_json,
    fio,
    fio_text,
    gdsio,
    ior,
    ior_json,
    nccl_json,
    nvbandwidth,
    nvbandwidth_text,
    p2p_test,
    perftest,
    perftest_json,
    rocm_bandwidth_test,
    transferbench,
)
from topo import measure
from topo.errors import TopoError
from topo.measuring.result_files import READERS
from topo.topology.build import loads

MACHINE = TWO_SOCKETS.replace("  nic0: card\n", "  nic0: {part: card, rdma: mlx5_0}\n")
BUILT = built(MACHINE)
ROCM = [["N/A", "N/A", 54, 44], ["N/A", "N/A", 33, 55], [54, 33, 1200, 28], [32, 55, 27, 1200]]
TRANSFER = (
    b"Test 1:\n     Transfer 00  |   56.309 GB/s |    4.767 ms |    268435456 bytes | "
    b"G0 -> G000:004 -> G1\n"
)
SAMPLES = [
    nvbandwidth(
        ("host_to_device_memcpy_ce", [[50, 51]]),
        ("device_to_device_memcpy_read_ce", [["N/A", 20], [21, "N/A"]]),
        ("device_to_device_bidirectional_memcpy_write_ce", [["N/A", 20], [21, "N/A"]] * 3),
        devices=("0: A (00000000:81:00)", "1: B (00000000:01:00)"),
    ),
    nvbandwidth_text(
        ("host_to_device_memcpy_ce", [[50, 51]]),
        ("device_to_device_bidirectional_memcpy_write_ce", [["N/A", 20], [21, "N/A"]] * 3),
        devices=("A (00000000:81:00)", "B (00000000:01:00)"),
    ),
    fio(({"filename": "/dev/nvme0n1", "bs": "1M"}, {"read": 6e9}), direct="1"),
    gdsio((0, "READ", "GPUD", 6.0), (1, "WRITE", "CPU_GPU", 2.0)),
    p2p_test([[900, 20], [21, 900]], access=[[1, 1], [0, 1]]),
    bandwidth_test(("Host to Device", "PINNED", 50.0), ("Device to Host", "PAGEABLE", 9.0)),
    bandwidth_test(("Device to Host", "PINNED", 50.0), csv=True),
    rocm_bandwidth_test(ROCM, [["N/A", "N/A", 80, 60]]),
    transferbench(ROCM, [[0, 0, "N/A", 25]] * 3) + TRANSFER,
    fio_text({"READ": "6513MiB/s (6829MB/s)"}, command="fio --filename=/dev/nvme0n1 --direct=1"),
    ior(write="4000.50", options="-w -r --posix.odirect"),
    elbencho(("READ", 6600, 6500), command='"elbencho" "-b" "1m" "--direct" "/dev/nvme0n1" '),
    dlio(train_io_mean_MB_per_second=5000.0, save_checkpoint_io_mean_GB_per_second=3.5),
    b"$ ib_write_bw -d mlx5_0 10.0.0.1\n #bytes" + perftest(380).partition(b" #bytes")[2],
    perftest(380) + perftest(300, above="$ ib_write_bw --use_cuda=0"),
    perftest_json(47.5),
    ior_json(write=4000.0, options="-w -r --posix.odirect"),
    elbencho_csv(("READ", 6500), command='"elbencho" "--direct" "/dev/nvme0n1"'),
    elbencho_json(("READ", 6500), command='"elbencho" "--direct" "/dev/nvme0n1"'),
    nccl_json(300),
    TRANSFER.replace(b"Transfer 00", b"Transfer 0").replace(b"G0 -> G000", b"D0 -> G000"),
    ior(write="4000.50") + fio(({"filename": "/dev/nvme0n1"}, {"read": 6e9})) + perftest(380),
]
DOCUMENTS = [sample for sample in SAMPLES if sample.startswith(b"{")]
LIMIT_S = 5


def survives(data, kind=None):
    """Measure and write; anything but a TopoError fails the test."""
    start = time.process_time()
    try:
        found = measure(BUILT, data, kind=kind, storage=["storage"])
        again = loads(found.over(MACHINE))
    except TopoError as error:
        said = error.findings
    else:
        said = found.findings
        assert len(again.description.measurements) == len(found.lines)
    assert all(one.code and one.message for one in said)
    assert time.process_time() - start < LIMIT_S


@given(data=damaged(SAMPLES))
def test_damaged_results(data):
    survives(data)


@given(data=st.binary(max_size=200), kind=st.sampled_from([None, *READERS]))
def test_any_bytes(data, kind):
    survives(data, kind)


VALUES = st.recursive(
    st.none() | st.booleans() | st.floats() | st.integers() | st.text(max_size=6),
    lambda inner: st.lists(inner, max_size=4) | st.dictionaries(st.text(max_size=4), inner),
    max_leaves=8,
)


@given(data=st.data())
def test_odd_values_in_json(data):
    document = json.loads(data.draw(st.sampled_from(DOCUMENTS)))

    def odd(node):
        if data.draw(st.integers(0, 9)) == 0:
            return data.draw(VALUES)
        if isinstance(node, dict):
            return {key: odd(value) for key, value in node.items()}
        return [odd(value) for value in node] if isinstance(node, list) else node

    top = {key: odd(value) for key, value in document.items()}
    survives(json.dumps(top).encode())


def test_deep_json_ends_in_an_error():
    survives(b'{"nvbandwidth": {"testcases": ' + b"[" * 200_000)


def test_a_long_matrix_takes_no_time():
    survives(nvbandwidth(("device_to_device_memcpy_write_ce", [[1.0] * 300] * 300)))
