"""What ROCm's programs print: rocm-bandwidth-test, TransferBench, rccl-tests."""

from __future__ import annotations

import pytest

from tests.machines import TWO_SOCKETS, built, shipped
from tests.measuring.results import nccl_tests, ragged, rocm_bandwidth_test, transferbench
from tests.measuring.test_cuda_samples import AT
from tests.measuring.test_measuring import GB, lines, said
from topo import measure
from topo.errors import ExchangeError

# Rows and columns: CPU 0 and 1, GPU 0 at 81:00 (gpu0, on cpu0) and GPU 1 at 01:00 (gpu1, on cpu1).
MATRIX = [
    ["N/A", "N/A", 54, 31],
    ["N/A", "N/A", 30, 55],
    [53, 29, 1200, 28],
    [27, 52, 26, 1200],
]
EXPECTED = {
    ("ram0", "gpu0"): 54,
    ("ram0", "gpu1"): 31,
    ("ram1", "gpu0"): 30,
    ("ram1", "gpu1"): 55,
    ("gpu0", "ram0"): 53,
    ("gpu0", "ram1"): 29,
    ("gpu0", "gpu1"): 28,
    ("gpu1", "ram0"): 27,
    ("gpu1", "ram1"): 52,
    ("gpu1", "gpu0"): 26,
}
OUT_OF_GPUS = {ends: rate for ends, rate in EXPECTED.items() if not ends[0].startswith("ram")}


def in_gb(measured):
    return {ends: rate / GB for ends, rate in lines(measured).items()}


# --- rocm-bandwidth-test --------------------------------------------------------------------------


def test_a_row_is_where_data_comes_from_and_cpus_are_numa_nodes():
    measured = measure(built(AT), rocm_bandwidth_test(MATRIX))
    assert in_gb(measured) == EXPECTED
    assert "one device's own memory" in said(measured, "not-mapped")


def test_addresses_tell_which_gpu():
    turned = rocm_bandwidth_test(MATRIX, gpus=("01:0.0", "81:0.0"))
    assert in_gb(measure(built(AT), turned))["gpu1", "gpu0"] == 28


def test_cpus_with_stated_numa_nodes_go_by_these():
    numa = AT.replace("cpu[0-1]: socket", "cpu[0-1]: {part: socket, numa: [1, 0]}")
    assert in_gb(measure(built(numa), rocm_bandwidth_test(MATRIX)))["ram1", "gpu0"] == 54
    apart = AT.replace("cpu[0-1]: socket", "cpu[0-1]: {part: socket, numa: [0, 7]}")
    measured = measure(built(apart), rocm_bandwidth_test(MATRIX))
    assert ("ram1", "gpu0") not in in_gb(measured)
    assert "no system RAM of NUMA node 1" in said(measured, "not-mapped")


def test_both_ways_is_a_sum():
    both = [["N/A", "N/A", 80, 60], *[["N/A"] * 4] * 3]
    measured = measure(built(AT), rocm_bandwidth_test([["N/A"] * 4] * 4, both))
    assert measured.lines == ()
    assert [one.sample.both for one in measured.readings] == [True, True]


def test_without_the_list_of_devices_nothing_tells_gpus_from_cpus():
    text = rocm_bandwidth_test(MATRIX)
    with pytest.raises(ExchangeError) as caught:
        measure(built(AT), text[text.index(b"Unidirectional") :])
    assert "is cut off" in caught.value.findings[0].notes[0]


def test_a_table_of_one_copy_does_not_say_which_gpu():
    table = b"""RocmBandwidthTest Version: 2.6.0
================    Unidirectional Benchmark Result    ================
================ Src Device Id: 0 Src Device Type: Cpu ================
================ Dst Device Id: 2 Dst Device Type: Gpu ================

Data Size      Avg Time(us)   Avg BW(GB/s)   Min Time(us)   Peak BW(GB/s)
1 MB           20.000         50.000         19.000         52.000
512 MB         9900.000       54.000         9800.000       54.500
"""
    assert in_gb(measure(built(AT), table, gpus=["gpu0"])) == {("ram0", "gpu0"): 54.5}
    assert "which GPU it was" in said(measure(built(AT), table), "not-mapped")


# --- TransferBench --------------------------------------------------------------------------------


@pytest.mark.parametrize("csv", [False, True])
def test_p2p_by_copy_engine(csv):
    measured = measure(built(AT), transferbench(MATRIX, csv=csv))
    assert in_gb(measured) == OUT_OF_GPUS  # what leaves RAM is copied by cores
    assert "copies by CPU cores" in said(measured, "not-mapped")


def test_with_remote_reads_cores_copy_what_goes_into_ram():
    measured = measure(built(AT), transferbench(MATRIX, remote=True))
    assert set(in_gb(measured)) == {ends for ends in EXPECTED if ends[1].startswith("gpu")}


def test_p2p_both_ways():
    rows = [[0] * 4] * 6 + [[50, 40, "N/A", 25], [44, 30, "N/A", 24], [94, 70, "N/A", 49]]
    measured = measure(built(AT), transferbench([["N/A"] * 4] * 4, rows))
    assert measured.lines == ()
    there, back, both = [one for one in measured.readings if "ram" not in str(one.sample)]
    assert (there.sample.source, there.sample.rate) == (("gpu0",), 25 * GB)
    assert (back.sample.source, back.sample.rate) == (("gpu1",), 24 * GB)
    assert (there.sample.busy, back.sample.busy) == (True, True)
    assert (both.sample.both, both.sample.rate) == (True, 49 * GB)


TRANSFER = "     Transfer {:02}  | {:8.3f} GB/s |    4.767 ms |    268435456 bytes | {}\n"


def test_transfers_of_a_file():
    text = "Test 1:\n" + TRANSFER.format(0, 27.5, "G0 -> D000:001 -> G1")
    text += "Test 2:\n" + TRANSFER.format(0, 26.5, "(G1->G001:004->C0)")
    text += "Test 3:\n" + TRANSFER.format(0, 20, "G0 -> G000:004 -> G1")
    text += TRANSFER.format(1, 21, "G1 -> G001:004 -> G0")
    text += "Test 4:\n" + TRANSFER.format(0, 1500, "N -> G000:032 -> G0")
    text += "Test 5:\n" + TRANSFER.format(0, 58, "G0 -> G000:016 -> G0G1")
    measured = measure(built(TWO_SOCKETS), text.encode())
    assert in_gb(measured) == {("gpu0", "gpu1"): 27.5, ("gpu1", "ram0"): 26.5}
    assert sum("at once" in one.sample.unwritten for one in measured.readings) == 2
    assert "N -> G000:032 -> G0: no copy between" in said(measured, "not-mapped")


@pytest.mark.parametrize(
    "data", [rocm_bandwidth_test(MATRIX), transferbench(MATRIX)], ids=["rocm", "transferbench"]
)
def test_quoted_and_coloured_and_hostile(data):
    assert lines(measure(built(AT), ragged(data))) == lines(measure(built(AT), data)) != {}
    for put in (b"9" * 60, b"1e999", b"-53.000", b"\x07\x00\xff"):
        hostile = data.replace(b"53.000", put).replace(b"53.00", put)
        try:
            measured = measure(built(AT), hostile)
        except ExchangeError:
            continue
        assert ("gpu0", "ram0") not in in_gb(measured)


# --- rccl-tests -----------------------------------------------------------------------------------


def test_ranks_of_rccl_have_addresses_without_a_function():
    text = nccl_tests(300, buses=[f"0000:{0x10 + at:02x}:00" for at in range(8)]).replace(
        b"[0x", b"["
    )
    text = text.replace(b"# Using", b"rccl-tests: Version Unknown\n# Using")
    (reading,) = measure(shipped("dgx-h100"), text).readings
    assert reading.sample.source == tuple(f"gpu{at}" for at in range(8))


@pytest.mark.parametrize("program", ["sendrecv_perf", "gather_perf"])
def test_programs_that_are_none_of_topos_collectives(program):
    with_root = nccl_tests(40, program=program, factor=1.0, operation="none", root=0)
    found = measure(shipped("dgx-h100"), with_root)
    assert found.readings == ()
    assert f"{program}, which is none of the collectives" in said(found, "not-mapped")
