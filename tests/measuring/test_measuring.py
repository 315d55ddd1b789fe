"""Measured rates over a machine: which way, where they belong, what is said about them."""

from __future__ import annotations

import pytest

from tests.machines import ONE_SOCKET, SWITCHED, TWO_SOCKETS, built, shipped
from tests.measuring.results import fio, gdsio, nvbandwidth, nvbandwidth_text, perftest, ragged
from topo import measure
from topo.errors import TopoError, UnknownNameError
from topo.topology.build import loads

GB, GIB, MIB = 1e9, 2.0**30, 2.0**20

TWO_BY_TWO = [["N/A", 20], [21, "N/A"]]
DRIVE = ONE_SOCKET.replace("  nic0: card\n", "  nic0: card\n  nvme0: drive\n").replace(
    "links:\n", "links:\n  - nvme0 -- cpu0: pcie 4 x4\n"
)
DUAL = shipped("gds-textbook")


def lines(found):
    return {(line.source, line.target): line.rate for line in found.lines}


def codes(found):
    return [finding.code for finding in found.findings]


def said(found, code):
    (finding,) = (one for one in found.findings if one.code == code)
    return f"{finding.message} | {finding.help} | {' | '.join(finding.notes)}"


# --- nvbandwidth: which way ---------------------------------------------------------------------


@pytest.mark.parametrize(
    ("test", "matrix", "expected"),
    [
        ("host_to_device_memcpy_ce", [[50, 51]], {("ram0", "gpu0"): 50, ("ram1", "gpu1"): 51}),
        ("device_to_host_memcpy_ce", [[50, 51]], {("gpu0", "ram0"): 50, ("gpu1", "ram1"): 51}),
        (
            "device_to_device_memcpy_write_ce",
            TWO_BY_TWO,
            {("gpu0", "gpu1"): 20, ("gpu1", "gpu0"): 21},
        ),
        (
            "device_to_device_memcpy_read_ce",
            TWO_BY_TWO,
            {("gpu1", "gpu0"): 20, ("gpu0", "gpu1"): 21},
        ),
        ("device_to_device_memcpy_write_ce", [["N/A", "N/A"], [7, "N/A"]], {("gpu1", "gpu0"): 7}),
    ],
)
def test_a_matrix_is_read_by_its_name(test, matrix, expected):
    found = measure(built(TWO_SOCKETS), nvbandwidth((test, matrix)))
    assert lines(found) == {ends: rate * GB for ends, rate in expected.items()}


def test_the_copy_engine_is_used_before_kernels_and_the_faster_of_two():
    found = measure(
        built(TWO_SOCKETS),
        nvbandwidth(
            ("device_to_device_memcpy_write_sm", [["N/A", 25], ["N/A", "N/A"]]),
            ("device_to_device_memcpy_write_ce", [["N/A", 20], ["N/A", "N/A"]]),
            ("device_to_device_memcpy_read_ce", [["N/A", "N/A"], [22, "N/A"]]),
        ),
    )
    assert lines(found) == {("gpu0", "gpu1"): 22 * GB}
    assert found.lines[0].origin == "nvbandwidth device_to_device_memcpy_read_ce"
    assert [bool(one.sample.unwritten) for one in found.readings] == [True, True, False]


def test_a_kernels_copy_stands_where_there_is_no_other():
    data = nvbandwidth(("host_to_device_memcpy_sm", [[50]]))
    assert lines(measure(built(ONE_SOCKET), data)) == {("ram0", "gpu0"): 50 * GB}


def test_a_sum_of_both_directions_is_no_rate_of_one():
    two = [["N/A", 25], [25, "N/A"]]
    total = [["N/A", 50], [50, "N/A"]]
    data = nvbandwidth(("device_to_device_bidirectional_memcpy_read_ce", two + two + total))
    found = measure(built(TWO_SOCKETS), data)
    assert found.lines == ()
    assert [one.sample.rate for one in found.readings] == [50 * GB, 50 * GB]
    reading = found.readings[0]
    assert reading.sample.both
    assert reading.forecast.theoretical == pytest.approx(2 * 32 * GB, rel=0.01)


def test_a_rate_beside_busy_traffic_is_compared_only():
    found = measure(
        built(ONE_SOCKET), nvbandwidth(("host_to_device_bidirectional_memcpy_ce", [[40]]))
    )
    assert found.lines == ()
    assert "two directions at once" in said(found, "measured-below")


def test_what_is_no_pair_is_listed():
    found = measure(
        built(ONE_SOCKET),
        nvbandwidth(
            ("host_to_device_memcpy_ce", [[50]]),
            ("all_to_host_memcpy_ce", [[50]]),
            ("host_device_latency_sm", [[800]]),
            ("device_to_device_memcpy_write_ce", [["N/A"]]),
        ),
    )
    assert len(found.unmapped) == 3
    assert "all_to_host_memcpy_ce: many GPUs at once" in said(found, "not-mapped")


# --- nvbandwidth's text ---------------------------------------------------------------------------

TEXT_CASES = [
    ("host_to_device_memcpy_ce", [[50, 51]]),
    ("device_to_device_memcpy_read_ce", TWO_BY_TWO),
    ("device_to_device_memcpy_write_sm", TWO_BY_TWO),
]


def test_a_text_is_read_as_its_json_is():
    devices = ("A (00000000:81:00)", "B (00000000:01:00)")
    both = ("device_to_device_bidirectional_memcpy_write_ce", TWO_BY_TWO * 2 + [[0, 40], [42, 0]])
    for cases in (TEXT_CASES, [*TEXT_CASES, both]):
        text = measure(built(TURNED), nvbandwidth_text(*cases, devices=devices))
        json = measure(built(TURNED), nvbandwidth(*cases, devices=devices))
        assert lines(text) == lines(json) != {}
        assert [(one.sample, one.forecast) for one in text.readings] == [
            (one.sample, one.forecast) for one in json.readings
        ]


def test_a_quoted_text_and_one_without_its_first_line():
    data = nvbandwidth_text(*TEXT_CASES)
    expected = lines(measure(built(TWO_SOCKETS), data))
    assert lines(measure(built(TWO_SOCKETS), ragged(data))) == expected
    # the line below the matrix has the name as well
    headless = data[data.index(b"memcpy CE") :]
    assert lines(measure(built(TWO_SOCKETS), headless)) == expected
    nameless = headless[: headless.index(b"SUM")]
    with pytest.raises(TopoError) as caught:
        measure(built(TWO_SOCKETS), nameless)
    assert "both are cut off" in caught.value.findings[0].notes[0]


def test_a_text_that_breaks_off_between_two_blocks_is_of_one_direction():
    case = ("device_to_device_bidirectional_memcpy_write_ce", TWO_BY_TWO * 3)
    data = nvbandwidth_text(case)
    found = measure(built(TWO_SOCKETS), data[: data.rindex(b"memcpy CE")])
    assert [one.sample.busy for one in found.readings] == [True, True]


def test_what_was_waived_is_listed():
    data = nvbandwidth_text(*H2D) + b"Running device_to_device_memcpy_read_ce.\nWaived: \n"
    found = measure(built(TWO_SOCKETS), data)
    assert "device_to_device_memcpy_read_ce: waived" in said(found, "not-mapped")


# --- which GPU ------------------------------------------------------------------------------------

TURNED = TWO_SOCKETS.replace(
    "  gpu[0-1]: accel", "  gpu[0-1]: {part: accel, pci: ['81:00.0', '01:00.0']}"
)
H2D = [("host_to_device_memcpy_ce", [[50, 51]])]


def test_gpus_are_numbered_by_pci_address_and_that_is_said():
    found = measure(built(TURNED), nvbandwidth(*H2D))
    assert lines(found) == {("ram1", "gpu1"): 50 * GB, ("ram0", "gpu0"): 51 * GB}
    assert "PCI address" in said(found, "gpu-order")


def test_gpus_without_addresses_are_in_the_files_order():
    found = measure(built(TWO_SOCKETS), nvbandwidth(*H2D))
    assert "in which the file has them" in said(found, "gpu-order")


def test_addresses_in_the_result_decide():
    listed = ("0: A (00000000:81:00)", "1: A (00000000:01:00)")
    found = measure(built(TURNED), nvbandwidth(*H2D, devices=listed))
    assert lines(found) == {("ram0", "gpu0"): 50 * GB, ("ram1", "gpu1"): 51 * GB}
    assert "gpu-order" not in codes(found)


def test_the_callers_order_goes_first():
    found = measure(built(TURNED), nvbandwidth(*H2D), gpus=["gpu0", "gpu1"])
    assert lines(found)["ram0", "gpu0"] == 50 * GB
    assert "gpu-order" not in codes(found)


def test_more_gpus_than_the_machine_has_are_listed():
    found = measure(built(ONE_SOCKET), nvbandwidth(*H2D))
    assert lines(found) == {("ram0", "gpu0"): 50 * GB}
    assert "2 GPUs" in said(found, "gpu-count")
    assert "gpu 1 of the file is none of the 1 GPUs here" in said(found, "not-mapped")


def test_a_pair_with_one_gpu_here_names_the_other():
    data = nvbandwidth(("device_to_device_memcpy_write_ce", TWO_BY_TWO))
    found = measure(built(ONE_SOCKET), data)
    assert found.lines == ()
    assert "gpu 1 of the file is none" in said(found, "not-mapped")


def test_a_device_of_another_kind_is_refused():
    with pytest.raises(UnknownNameError, match="nic0 is a nic, not a gpu"):
        measure(built(ONE_SOCKET), nvbandwidth(*H2D), gpus=["nic0"])
    with pytest.raises(UnknownNameError, match="gpu9"):
        measure(built(ONE_SOCKET), nvbandwidth(*H2D), gpus=["gpu9"])


def test_where_several_memories_share_a_copy_its_last_link_is_meant():
    text = ONE_SOCKET.replace("  ram0: dram", "  ram[0-1]: dram").replace(
        "  - ram0 -- cpu0", "  - ram -- cpu0"
    )
    found = measure(built(text), nvbandwidth(("host_to_device_memcpy_ce", [[50]])))
    assert lines(found) == {("cpu0", "gpu0"): 50 * GB}


# --- storage --------------------------------------------------------------------------------------


def test_gpudirect_storage_is_a_pair():
    found = measure(built(DRIVE), gdsio((0, "READ", "GPUD", 6.0)), storage=["nvme0"])
    assert lines(found) == {("nvme0", "gpu0"): pytest.approx(6 * GIB, rel=1e-5)}
    assert found.readings[0].forecast.theoretical == 7 * GB


def test_a_write_goes_the_other_way():
    found = measure(built(DRIVE), gdsio((0, "WRITE", "GPUD", 4.0)), storage=["nvme0"])
    assert list(lines(found)) == [("gpu0", "nvme0")]
    assert found.readings[0].forecast.theoretical == 5 * GB


def test_cpu_only_is_the_drive_and_its_link():
    found = measure(built(DRIVE), gdsio((0, "READ", "CPUONLY", 6.0)), storage=["nvme0"])
    assert list(lines(found)) == [("nvme0", "cpu0")]


@pytest.mark.parametrize(
    ("transfer", "path"), [("CPU_GPU", "odirect-pinned"), ("CPU_CACHED_GPU", "legacy")]
)
def test_a_rate_of_a_whole_path_is_compared_and_not_written(transfer, path):
    found = measure(built(DRIVE), gdsio((0, "READ", transfer, 5.0)), storage=["nvme0"])
    assert found.lines == ()
    (reading,) = found.readings
    assert reading.sample.via == path
    assert path in reading.sample.unwritten
    assert reading.forecast.theoretical == 7 * GB


def test_a_bounce_that_beats_the_direct_path_is_said():
    data = gdsio((1, "READ", "GPUD", 6.9), (1, "READ", "CPU_GPU", 20.6))
    found = measure(built(TWO_SOCKETS), data)
    assert "7.41 GB/s by direct, and 22.12 GB/s through RAM" in said(
        found, "direct-measured-slower"
    )
    below = [one.help for one in found.findings if one.code == "measured-below"]
    assert "between sockets (SYS)" in below[0]
    fine = gdsio((1, "READ", "GPUD", 20.0), (1, "READ", "CPU_GPU", 20.6))
    assert "direct-measured-slower" not in codes(measure(built(TWO_SOCKETS), fine))


def test_several_drives_share_evenly():
    text = DRIVE.replace("  nvme0: drive", "  nvme[0-1]: drive").replace("- nvme0 --", "- nvme --")
    found = measure(built(text), gdsio((0, "READ", "GPUD", 10.0)), storage=["nvme"])
    assert lines(found) == {
        (drive, "gpu0"): pytest.approx(5 * GIB, rel=1e-5) for drive in ("nvme0", "nvme1")
    }
    assert found.readings[0].forecast.theoretical == 14 * GB


def test_the_best_of_equal_runs_is_used():
    data = gdsio((0, "READ", "GPUD", 4.0), (0, "READ", "GPUD", 6.0))
    found = measure(built(DRIVE), data, storage=["nvme0"])
    assert lines(found) == {("nvme0", "gpu0"): pytest.approx(6 * GIB, rel=1e-5)}
    assert "best of 2" in found.lines[0].origin


def test_storage_that_is_not_named_is_asked_for():
    found = measure(built(DRIVE), gdsio((0, "READ", "GPUD", 6.0)))
    assert found.lines == ()
    assert "--storage" in said(found, "not-mapped")


def test_small_transfers_measure_operations():
    found = measure(built(DRIVE), gdsio((0, "READ", "GPUD", 0.1, 4)), storage=["nvme0"])
    assert found.lines == ()
    assert "128 KiB" in found.readings[0].sample.unwritten


def test_fio_knows_its_drive_and_its_day():
    data = fio(({"filename": "/dev/nvme0n1"}, {"read": 6_800_000_000}), direct="1", bs="1M")
    (line,) = measure(built(DRIVE), data).lines
    assert (line.source, line.target, line.rate) == ("nvme0", "cpu0", 6.8 * GB)
    assert line.date == "2023-11-14"


@pytest.mark.parametrize(
    ("options", "rates", "why"),
    [
        ({"bs": "4k", "direct": "1"}, {"read": 1e9}, "128 KiB"),
        ({"bs": "1M"}, {"read": 1e9}, "page cache"),
        ({"bs": "1M", "direct": "1"}, {"read": 1e9, "write": 1e9}, "at once"),
        (
            {"bs": "1M", "ioengine": "libcufile", "gpu_dev_ids": "0:1"},
            {"read": 1e9},
            "several GPUs",
        ),
    ],
)
def test_fio_jobs_that_measure_something_else(options, rates, why):
    found = measure(built(DRIVE), fio(({**options, "filename": "/dev/nvme0n1"}, rates)))
    assert found.lines == ()
    assert why in found.readings[0].sample.unwritten


def test_fio_by_libcufile_is_gpudirect_storage():
    options = {"bs": "1M", "ioengine": "libcufile", "gpu_dev_ids": "0", "filename": "/dev/nvme0n1"}
    found = measure(built(DRIVE), fio((options, {"read": 6e9})))
    assert lines(found) == {("nvme0", "gpu0"): 6 * GB}
    posix = measure(built(DRIVE), fio(({**options, "cuda_io": "posix"}, {"read": 6e9})))
    assert posix.readings[0].sample.via == "odirect-pinned"


# --- network --------------------------------------------------------------------------------------

ONE_PORT = ONE_SOCKET.replace("  nic0: card", "  nic0: {part: card, rdma: mlx5_0}")


@pytest.mark.parametrize(
    ("unit", "rate", "expected"),
    [
        ("Gb/sec", 380, 47.5 * GB),
        ("MB/sec", 45000, 45000 * MIB),
        ("MiB/sec", 45000, 45000 * MIB),
    ],
)
def test_perftest_writes_mib_and_calls_them_mb(unit, rate, expected):
    found = measure(built(ONE_PORT), perftest(rate, unit=unit))
    assert lines(found) == {("nic0", "storage"): pytest.approx(expected, rel=1e-5)}


def headless(data):
    return data[data.index(b"#bytes") - 1 :]


def test_a_table_of_perftest_without_its_head_is_compared_only():
    found = measure(built(ONE_PORT), headless(perftest(380)))
    (reading,) = found.readings
    assert reading.sample.rate == 380 * GB / 8
    assert reading.forecast.theoretical == pytest.approx(50 * GB)
    assert found.lines == ()
    assert "in the head that is cut off" in reading.sample.unwritten


@pytest.mark.parametrize(
    ("command", "out"),
    [
        ("ib_write_bw -d mlx5_0 -F --report_gbits 10.0.0.1", True),
        ("ib_write_bw -d mlx5_0 -F otherhost", True),
        ("ib_write_bw -d mlx5_0", False),
        ("ib_write_bw", False),
        ("ib_send_bw -a otherhost", True),
        ("ib_read_bw -d mlx5_0 10.0.0.1", False),
        ("ib_read_bw -d mlx5_0", True),
    ],
)
def test_a_command_above_a_table_names_the_test_and_its_side(command, out):
    data = f"$ {command}\n".encode() + headless(perftest(380))
    ends = ("nic0", "storage") if out else ("storage", "nic0")
    assert lines(measure(built(ONE_PORT), data)) == {ends: pytest.approx(380 * GB / 8)}


def test_a_command_that_goes_both_ways_has_a_sum():
    data = b"$ ib_write_bw -b 10.0.0.1\n" + headless(perftest(700))
    (reading,) = measure(built(ONE_PORT), data).readings
    assert reading.sample.both


@pytest.mark.parametrize(
    ("title", "above", "out"),
    [
        ("RDMA_Write BW Test", "", True),
        ("RDMA_Write BW Test", "* Waiting for client to connect... *", False),
        ("RDMA_Read BW Test", "", False),
        ("RDMA_Read BW Test", "* Waiting for client to connect... *", True),
        ("Send BW Test", "", True),
    ],
)
def test_which_way_a_network_test_goes(title, above, out):
    found = measure(built(ONE_PORT), perftest(380, title=title, above=above))
    assert list(lines(found)) == [("nic0", "storage") if out else ("storage", "nic0")]


def test_gpu_memory_is_a_pair_with_the_card():
    above = "$ ib_write_bw -d mlx5_0 --use_cuda=0 --report_gbits box"
    found = measure(built(ONE_PORT), perftest(380, above=above))
    assert lines(found) == {("gpu0", "nic0"): 47.5 * GB}


def test_one_port_of_two_is_that_port():
    machine = DUAL.replace({"slot2.rdma": "[mlx5_0, mlx5_1]"})
    found = measure(machine, perftest(380, device="mlx5_1"))
    assert lines(found) == {("slot2/p2", "storage"): 47.5 * GB}
    resource = loads(found.over(_text(machine)), overrides={"slot2.rdma": "[mlx5_0, mlx5_1]"})
    assert resource.resources["slot2/p2 out"].capacity.measured.value == 47.5 * GB


def _text(machine):
    return "\n".join(machine.description.document.lines) + "\n"


def test_a_gpu_at_one_port_of_two_has_no_place():
    machine = DUAL.replace({"slot2.rdma": "[mlx5_0, mlx5_1]"})
    above = "$ ib_write_bw -d mlx5_1 --use_cuda=0"
    found = measure(machine, perftest(380, device="mlx5_1", above=above))
    assert found.lines == ()
    assert "no single pair or link" in found.readings[0].sample.unwritten


def test_two_way_tests_and_latencies_are_not_written():
    both = perftest(700, title="RDMA_Write Bidirectional BW Test")
    found = measure(built(ONE_PORT), both + perftest(1, title="RDMA_Write Latency Test"))
    assert found.lines == ()
    assert found.readings[0].sample.both
    assert found.readings[0].forecast.theoretical == 100 * GB
    assert "no bandwidth" in said(found, "not-mapped")


def test_runs_below_each_other_keep_their_own_command():
    data = perftest(380) + perftest(300, above="$ ib_write_bw --use_cuda=0")
    found = measure(built(ONE_PORT), data)
    assert lines(found) == {("nic0", "storage"): 47.5 * GB, ("gpu0", "nic0"): 37.5 * GB}


def test_a_card_that_is_not_here_is_asked_for():
    found = measure(built(ONE_PORT), perftest(380, device="mlx5_9"))
    assert "mlx5_9` it was is not known: say it with --nic" in said(found, "not-mapped")
    named = measure(built(ONE_PORT), perftest(380, device="mlx5_9"), nic="nic0")
    assert list(lines(named)) == [("nic0", "storage")]


# --- what is said ---------------------------------------------------------------------------------


def test_more_than_theory_is_a_finding():
    found = measure(built(ONE_SOCKET), nvbandwidth(("host_to_device_memcpy_ce", [[110]])))
    text = said(found, "measured-above")
    assert "110 GB/s are more than the 63.02 GB/s that theory allows" in text
    assert "both directions were added up" in text
    assert lines(found) == {("ram0", "gpu0"): 110 * GB}


def test_half_the_rate_names_generation_and_width():
    found = measure(built(ONE_SOCKET), nvbandwidth(("host_to_device_memcpy_ce", [[27]])))
    assert "one generation lower or half as wide: look at LnkSta" in said(found, "measured-below")


def test_peers_on_two_sockets_name_sys():
    found = measure(
        built(TWO_SOCKETS),
        nvbandwidth(("device_to_device_memcpy_write_ce", [["N/A", 12], [12, "N/A"]])),
    )
    text = said(found, "measured-below")
    assert "(SYS)" in text
    assert "gpu0 -> gpu1, gpu1 -> gpu0" in text


def test_acs_is_named_where_it_redirects_and_where_it_may():
    data = nvbandwidth(("device_to_device_memcpy_write_ce", [["N/A", 12], ["N/A", "N/A"]]))
    on = measure(built(SWITCHED, {"sw0.acs": "on"}), data)
    assert "ACS on sw0 sends peer-to-peer traffic up" in said(on, "measured-below")
    untold = measure(built(SWITCHED.replace(", acs: off", "")), data)
    assert "ACS on sw0, which the file does not tell" in said(untold, "measured-below")


def test_a_rate_where_no_way_is_permitted():
    data = nvbandwidth(("device_to_device_memcpy_write_ce", [["N/A", 20], ["N/A", "N/A"]]))
    found = measure(built(TWO_SOCKETS, {"gpu.p2p": "no"}), data)
    assert "peer-pcie is refused" in said(found, "measured-impossible")


def test_what_fits_is_not_doubted():
    found = measure(built(ONE_SOCKET), nvbandwidth(("host_to_device_memcpy_ce", [[55]])))
    assert codes(found) == ["no-date"]
    assert (
        codes(
            measure(
                built(ONE_SOCKET),
                nvbandwidth(*H2D[:0], ("host_to_device_memcpy_ce", [[55]])),
                date="2026-01-02",
            )
        )
        == []
    )


def test_an_older_rate_is_said_where_it_is_replaced():
    machine = built(ONE_SOCKET + "measured:\n  - ram0 -> gpu0: 40 GB/s\n")
    found = measure(machine, nvbandwidth(("host_to_device_memcpy_ce", [[55]])))
    assert "55 GB/s in place of 40 GB/s" in said(found, "measured-again")


# --- published figures ----------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("generation", "rate", "judged"),
    [
        ("3", 12.4, "fits"),
        ("3", 13.1, "fits"),
        ("4", 25.8, "fits"),
        ("4", 26.8, "fits"),
        ("4", 12.9, "below"),
        ("3", 25.8, "above"),
    ],
)
def test_pinned_copies_of_published_machines(generation, rate, judged):
    text = ONE_SOCKET.replace("gpu0 -- cpu0: pcie 5", f"gpu0 -- cpu0: pcie {generation}")
    found = measure(built(text), nvbandwidth(("host_to_device_memcpy_ce", [[rate]])))
    assert found.readings[0].judged == judged


def test_nvlink_three_by_twelve_gives_ninety_two_percent():
    found = measure(
        shipped("dgx-a100"),
        nvbandwidth(("device_to_device_memcpy_write_ce", [["N/A", 276.3], ["N/A", "N/A"]])),
        gpus=["gpu0", "gpu1"],
    )
    (reading,) = found.readings
    assert reading.forecast.theoretical == 300 * GB
    assert reading.judged == "fits"


def test_a_small_drive_is_slower_than_its_link():
    text = DRIVE.replace("4 x4, read: 7 GB/s, write: 5", "3 x4, read: unlimited, write: 5").replace(
        "nvme0 -- cpu0: pcie 4", "nvme0 -- cpu0: pcie 3"
    )
    found = measure(built(text), gdsio((0, "READ", "GPUD", 1.83)), storage=["nvme0"])
    assert "nvme0 itself, whose `read:` and `write:`" in said(found, "measured-below")


def test_edr_fills_its_wire():
    text = ONE_PORT.replace("infiniband ndr", "infiniband edr")
    (reading,) = measure(built(text), perftest("95.41")).readings
    assert reading.forecast.theoretical == pytest.approx(12.5 * GB, rel=0.02)
    assert reading.judged == "fits"


# --- other files ----------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("data", "kind", "expected"),
    [
        (fio(({}, {"read": 1e9})), "gdsio", "has results of fio, not of gdsio"),
        (b"<system version='1'/>", None, "an NCCL topology file"),
        (b"", None, "an empty file"),
        (b'{"nvbandwidth" : {"testcases": [', None, "breaks off"),
        (b'{"nvbandwidth" : {"testcases": []}}', None, "no rate between two devices"),
    ],
)
def test_other_files_are_named(data, kind, expected):
    with pytest.raises(TopoError, match=expected):
        measure(built(ONE_SOCKET), data, kind=kind)


def test_two_gpus_of_one_address_are_refused():
    devices = ["0: H (00000000:1b:00)", "1: H (00000000:1b:00)"]
    matrix = [["N/A", "200"], ["200", "N/A"]]
    result = nvbandwidth(("device_to_device_memcpy_read_ce", matrix), devices=devices)
    with pytest.raises(TopoError, match="duplicate-address"):
        measure(shipped("dgx-h100"), result)


def test_a_benchmarks_output_is_no_machine():
    from topo.discovery.importing import import_text

    text = nvbandwidth_text(("host_to_device_memcpy_ce", [[50]]))
    with pytest.raises(TopoError, match="output of a benchmark, for `topo measure`"):
        import_text(None, text, "result")
