"""Tables of nccl-tests: which collective, which GPUs, and busbw beside what is expected."""

from __future__ import annotations

from contextlib import suppress

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from tests.machines import built, shipped
from tests.measuring.results import nccl_tests
from tests.study.test_collectives import POD
from topo.errors import ExchangeError
from topo.measuring.measure import measure
from topo.measuring.readers.nccl_tests import read_runs


def readings(data, machine=None, **said):
    return measure(machine or shipped("dgx-h100"), data, **said).readings


def test_the_fastest_row_is_set_beside_what_is_expected():
    measured = measure(shipped("dgx-h100"), nccl_tests(368.76))
    (reading,) = measured.readings
    assert measured.kind == "nccl-tests"
    assert reading.sample.test == "all-reduce of 1073741824 B"
    assert reading.sample.source == tuple(f"gpu{at}" for at in range(8))
    assert (reading.sample.via, reading.sample.rate) == ("peer-nvlink", 368.76e9)
    assert reading.forecast.achievable == pytest.approx(370.8e9)
    assert reading.forecast.theoretical == pytest.approx(450e9)
    assert reading.judged == "fits"
    assert measured.lines == ()
    assert "several GPUs" in reading.sample.unwritten


@pytest.mark.parametrize(
    ("program", "factor", "operation", "root", "kind"),
    [
        ("all_gather_perf", 0.875, "none", -1, "all-gather"),
        ("reduce_scatter_perf", 0.875, "sum", -1, "reduce-scatter"),
        ("alltoall_perf", 0.875, "none", -1, "all-to-all"),
        ("broadcast_perf", 1, "none", 2, "broadcast"),
        ("reduce_perf", 1, "sum", 0, "reduce"),
        # without the command: by ratio, redop and root
        ("", 1.75, "sum", -1, "all-reduce"),
        ("", 0.875, "sum", -1, "reduce-scatter"),
        ("", 1, "none", 0, "broadcast"),
        ("", 1, "sum", 0, "reduce"),
    ],
)
def test_which_collective_it_was(program, factor, operation, root, kind):
    data = nccl_tests(300, program=program, factor=factor, operation=operation, root=root)
    (run,) = read_runs(data.decode())
    assert (run.kind, run.count) == (kind, 8)
    (reading,) = readings(data)
    assert reading.sample.test.startswith(kind)


def test_gather_and_all_to_all_look_alike_without_their_command():
    data = nccl_tests(300, program="", factor=0.875, operation="none")
    measured = measure(shipped("dgx-h100"), data)
    assert measured.readings == ()
    assert "which collective it was is not said" in measured.unmapped[0]


def test_older_tables_and_those_of_mpirun_are_read():
    for data in (nccl_tests(300, old=True), nccl_tests(300, prefix="[1,0]<stdout>: ")):
        (reading,) = readings(data)
        assert reading.sample.rate == pytest.approx(300e9)


def test_several_runs_of_one_file():
    data = nccl_tests(368) + nccl_tests(300, program="alltoall_perf", factor=0.875)
    assert [reading.sample.test.split()[0] for reading in readings(data)] == [
        "all-reduce",
        "all-to-all",
    ]


def test_gpus_are_those_of_the_addresses_then_of_the_numbers():
    by_address = nccl_tests(200, ranks=2, factor=1.0, buses=["52", "61"])
    (reading,) = readings(by_address)
    assert reading.sample.source == ("gpu2", "gpu3")
    by_number = nccl_tests(200, ranks=4, factor=1.5)
    (reading,) = readings(by_number)
    assert reading.sample.source == ("gpu0", "gpu1", "gpu2", "gpu3")
    (reading,) = readings(by_number, gpus=["gpu4", "gpu5", "gpu6", "gpu7"])
    assert reading.sample.source[0] == "gpu4"


def test_all_gpus_of_several_servers():
    (reading,) = readings(nccl_tests(350, ranks=16, factor=1.875), built(POD))
    assert len(reading.sample.source) == 16
    assert reading.forecast.limit is not None
    assert reading.judged == "fits"


def test_much_less_than_expected_is_a_finding():
    measured = measure(shipped("dgx-h100"), nccl_tests(27))
    (finding,) = [each for each in measured.findings if each.code == "measured-below"]
    assert "27 GB/s" in finding.message


@pytest.mark.parametrize(
    ("data", "says"),
    [
        (nccl_tests(300, ranks=16, factor=1.875), "which GPUs of 1 server took part"),
        (nccl_tests(3, sizes=(8, 1024)), "below 1 MiB"),
        (nccl_tests(300, program="reduce_perf", ranks=1, factor=1), "one GPU alone"),
    ],
)
def test_what_has_no_place_is_said(data, says):
    measured = measure(shipped("dgx-h100"), data)
    assert measured.readings == ()
    assert says in measured.unmapped[0]


def test_a_table_without_rows_has_no_results():
    data = b"# size count type redop root time algbw busbw #wrong\n# nothing came\n"
    with pytest.raises(ExchangeError, match="none of a collective"):
        measure(shipped("dgx-h100"), data)


def test_lines_that_break_off_or_lie_are_left_out():
    head = "# all_reduce_perf\n# size count type redop root time algbw busbw #wrong\n"
    rows = [
        "1073741824 268435456 float sum -1 5000.0 100.0",  # breaks off
        "1073741824 268435456 float sum -1 5000.0 nan 175.0 0",
        "1073741824 268435456 float sum -1 5000.0 1e9 1e400 0",
        "99999999999999999999999999 1 float sum -1 1.0 100.0 900.0 0",
        "-1 -1 float sum -1 1.0 100.0 900.0 0",
        "1073741824 268435456 float sum -1 5000.0 100.00 175.00 N/A",
    ]
    (run,) = read_runs(head + "\n".join(rows))
    assert (run.bus_rate, run.count) == (175e9, 8)


@settings(max_examples=60)
@given(st.binary(max_size=400), st.integers(0, 1500), st.integers(0, 400))
def test_damaged_tables_end_in_an_answer_or_an_error(junk, at, cut):
    data = nccl_tests(368) + nccl_tests(300, program="", factor=0.875, operation="none")
    with suppress(ExchangeError):
        measure(shipped("dgx-h100"), data[:at] + junk + data[at + cut :], kind="nccl-tests")


def test_a_million_lines_take_no_time():
    row = "1048576 262144 float sum -1 10.0 100.00 175.00 0 10.0 100.00 175.00 0\n"
    head = "# size count type redop root time algbw busbw #wrong time algbw busbw #wrong\n"
    (run,) = read_runs(head + row * 200_000)
    assert run.bus_rate == 175e9
