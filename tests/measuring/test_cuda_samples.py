"""What CUDA's samples print: p2pBandwidthLatencyTest and bandwidthTest."""

from __future__ import annotations

import pytest

from tests.machines import ONE_SOCKET, TWO_SOCKETS, built
from tests.measuring.results import bandwidth_test, p2p_test, ragged
from tests.measuring.test_measuring import GB, codes, lines, said
from topo import measure
from topo.errors import ExchangeError

AT = TWO_SOCKETS.replace(
    "  gpu[0-1]: accel", "  gpu[0-1]: {part: accel, pci: ['81:00.0', '01:00.0']}"
)
MATRIX = [[1500, 26], [27, 1500]]


def unwritten(measured):
    return {reading.sample.test: reading.sample.unwritten for reading in measured.readings}


# --- p2pBandwidthLatencyTest ----------------------------------------------------------------------


def test_a_row_writes_into_a_column_and_addresses_tell_which_gpu():
    measured = measure(built(AT), p2p_test(MATRIX))
    # its device 0 is at 01:00.0, this file's gpu1
    assert lines(measured) == {("gpu1", "gpu0"): 26 * GB, ("gpu0", "gpu1"): 27 * GB}
    assert "gpu-order" not in codes(measured)
    assert "one device's own memory" in said(measured, "not-mapped")


def test_releases_before_10_1_read_from_the_column():
    assert lines(measure(built(AT), p2p_test(MATRIX, old=True))) == {
        ("gpu0", "gpu1"): 26 * GB,
        ("gpu1", "gpu0"): 27 * GB,
    }


def test_reads_come_from_the_column_and_the_faster_is_written():
    measured = measure(built(AT), p2p_test(MATRIX, reads=[[1500, 20], [29, 1500]]))
    assert lines(measured) == {("gpu0", "gpu1"): 27 * GB, ("gpu1", "gpu0"): 29 * GB}


def test_without_peer_access_it_is_a_path_through_ram():
    measured = measure(built(AT), p2p_test(MATRIX, disabled=[[1500, 22], [22, 1500]]))
    apart = [one for one in measured.readings if one.sample.via == "peer-ram"]
    assert len(apart) == 2
    assert all("whole path peer-ram" in one.sample.unwritten for one in apart)
    none = measure(built(AT), p2p_test(MATRIX, access=[[1, 0], [0, 1]]))
    assert none.lines == ()
    assert {one.sample.via for one in none.readings} == {"peer-ram"}


def test_a_sum_of_both_directions_is_compared_with_twice_one():
    measured = measure(built(AT), p2p_test(MATRIX, two=[[1500, 52], [52, 1500]]))
    both = [one for one in measured.readings if one.sample.both]
    assert [one.sample.rate for one in both] == [52 * GB] * 2
    assert both[0].forecast.theoretical == pytest.approx(2 * 32 * GB)
    assert all("sum of both" in one.sample.unwritten for one in both)


def test_both_directions_through_ram_share_its_bus():
    # Each byte is written to RAM and read: 2 x 30 GB/s of a bus that both directions share.
    slow = AT.replace("bus: 200 GB/s", "bus: 30 GB/s")
    data = p2p_test(MATRIX, two=[[1500, 12], [12, 1500]], access=[[1, 0], [0, 1]])
    one, _, two, _ = measure(built(slow), data).readings
    assert two.forecast.theoretical == one.forecast.theoretical == pytest.approx(15 * GB)


def test_a_matrix_alone_does_not_tell_whether_gpus_reach_each_other():
    text = p2p_test(MATRIX).decode()
    measured = measure(built(AT), text[text.index("Unidirectional") :].encode())
    assert measured.lines == ()
    assert all("reach each other" in one.sample.unwritten for one in measured.readings)


def test_a_matrix_without_peer_access_alone_does_not_tell_which_way():
    text = p2p_test(MATRIX, disabled=MATRIX).decode()
    start, end = (text.index(f"Unidirectional P2P={word}") for word in ("Disabled", "Enabled"))
    with pytest.raises(ExchangeError) as caught:
        measure(built(AT), text[start:end].encode())
    assert any("which is told by the title" in note for note in caught.value.findings[0].notes)


# --- bandwidthTest --------------------------------------------------------------------------------


@pytest.mark.parametrize("csv", [False, True])
def test_copies_from_and_to_ram(csv):
    runs = ("Host to Device", "PINNED", 55.0), ("Device to Host", "PINNED", 54.0)
    own = ("Device to Device", "PINNED", 2500.0)
    measured = measure(built(ONE_SOCKET), bandwidth_test(*runs, own, csv=csv))
    assert lines(measured) == {("ram0", "gpu0"): 55 * GB, ("gpu0", "ram0"): 54 * GB}
    assert "one GPU's own memory" in said(measured, "not-mapped")
    assert "32 MB a copy" in measured.lines[0].origin


@pytest.mark.parametrize("csv", [False, True])
def test_megabytes_of_older_releases_are_binary(csv):
    data = bandwidth_test(("Host to Device", "PINNED", 12000.0), unit="MB/s", csv=csv)
    assert lines(measure(built(ONE_SOCKET), data)) == {("ram0", "gpu0"): 12.5829 * GB}


def test_pageable_memory_is_a_path_of_its_own():
    data = bandwidth_test(("Host to Device", "PAGEABLE", 9.0), ("Device to Host", "PAGEABLE", 8.0))
    measured = measure(built(ONE_SOCKET), data)
    assert measured.lines == ()
    assert all("whole path pageable" in why for why in unwritten(measured).values())
    assert {one.sample.via for one in measured.readings} == {"pageable"}
    assert "measured-below" in codes(measured)
    helps = [finding.help for finding in measured.findings if finding.code == "measured-below"]
    assert all("one core copies into the driver's" in help for help in helps)


def test_a_sum_over_gpus_has_no_place():
    with pytest.raises(ExchangeError) as caught:
        measure(built(TWO_SOCKETS), bandwidth_test(("Host to Device", "PINNED", 99.0), count=2))
    assert "a sum over 2 GPUs" in caught.value.findings[0].notes[0]


def test_small_copies_are_no_bandwidth():
    data = bandwidth_test(("Host to Device", "PINNED", 5.0), size=4096)
    assert "below 128 KiB" in next(iter(unwritten(measure(built(ONE_SOCKET), data)).values()))


def test_device_0_of_several_runs_may_be_any_gpu():
    run = bandwidth_test(("Host to Device", "PINNED", 55.0))
    with_two = measure(built(TWO_SOCKETS), run)
    assert [one.sample.target for one in with_two.readings] == [("gpu0",)]
    many = measure(built(TWO_SOCKETS), run + run)
    assert many.readings == ()
    assert "say it with --gpus" in said(many, "not-mapped")
    assert lines(measure(built(ONE_SOCKET), run + run)) == {("ram0", "gpu0"): 55 * GB}


# --- what people paste ----------------------------------------------------------------------------


@pytest.mark.parametrize(
    "data",
    [p2p_test(MATRIX), bandwidth_test(("Host to Device", "PINNED", 55.0), device=1)],
    ids=["p2p", "bandwidth"],
)
def test_quoted_and_coloured(data):
    assert lines(measure(built(AT), ragged(data))) == lines(measure(built(AT), data)) != {}


@pytest.mark.parametrize(
    ("damage", "put"),
    [("26.00", "9" * 40), ("26.00", "1e999"), ("26.00", "-26.00"), ("Made Up", "\x07\x1b]0;x\x07")],
)
def test_hostile_values(damage, put):
    measured = measure(built(AT), p2p_test(MATRIX).decode().replace(damage, put).encode())
    assert ("gpu0", "gpu1") in lines(measured) or measured.lines == ()


def test_a_matrix_of_very_many_gpus_is_none():
    columns = b"".join(b"%d " % at for at in range(15_000)) + b"\n"
    with pytest.raises(ExchangeError):
        measure(built(AT), p2p_test(MATRIX).replace(b"     0      1 \n", columns))
