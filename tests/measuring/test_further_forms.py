"""JSON, CSV and newer tables of programs whose text is read too; several programs in one text."""

from __future__ import annotations

import json
import re

import pytest

from tests.discovery.pasted import ragged as as_pasted
from tests.discovery.pasted import survives
from tests.machines import TWO_SOCKETS, built, shipped
from tests.measuring.results import (
    elbencho,
    elbencho_csv,
    elbencho_json,
    fio,
    ior,
    ior_json,
    nccl_json,
    nccl_tests,
    nvbandwidth,
    perftest,
    perftest_json,
    ragged,
)
from tests.measuring.test_measuring import DRIVE, GB, MIB, ONE_PORT, lines
from tests.measuring.test_rocm import in_gb, said
from topo import measure
from topo.errors import ExchangeError


def of_drive(data, **options):
    return measure(built(DRIVE), data, storage=["nvme0"], **options)


def unwritten(measured):
    return [reading.sample.unwritten for reading in measured.readings]


# --- perftest's JSON ------------------------------------------------------------------------------


@pytest.mark.parametrize("gbits", [True, False])
@pytest.mark.parametrize(
    ("test", "client"), [("RDMA_Write_BW_Test", True), ("RDMA_Read_BW_Test", False)]
)
def test_perftests_json_is_what_its_text_is(gbits, test, client):
    measured = measure(built(ONE_PORT), perftest_json(47.5, gbits=gbits, test=test, client=client))
    expected = measure(built(ONE_PORT), perftest(380))
    assert lines(measured) == {
        ends: pytest.approx(rate, rel=1e-4) for ends, rate in lines(expected).items()
    }


def test_perftests_json_of_a_gpu_both_ways_and_small():
    measured = measure(built(ONE_PORT), perftest_json(40, cuda_device=0))
    assert "gpu0" in str(measured.readings[0].sample)
    both = measure(built(ONE_PORT), perftest_json(80, test="RDMA_Write_Bidirectional_BW_Test"))
    assert "both directions" in unwritten(both)[0]
    assert "64 KiB" in unwritten(measure(built(ONE_PORT), perftest_json(1, size=4096)))[0]


def test_a_rate_whose_unit_cannot_be_told_is_none():
    document = json.loads(perftest_json(47.5))
    document["results"]["MsgRate"] = 0.0
    with pytest.raises(ExchangeError, match="no rate between two devices") as caught:
        measure(built(ONE_PORT), json.dumps(document).encode())
    assert "in which unit" in caught.value.findings[0].notes[0]


# --- IOR's JSON, elbencho's CSV, nccl-tests' JSON -------------------------------------------------


@pytest.mark.parametrize("best", [True, False])
def test_iors_json_is_what_its_text_is(best):
    measured = of_drive(ior_json(write=4000.5, options="-w -r --posix.odirect", best=best))
    assert lines(measured) == lines(of_drive(ior(write="4000.5", options="-w --posix.odirect")))
    assert "page cache" in unwritten(of_drive(ior_json(best=best)))[0]


def test_iors_json_of_several_hosts_and_small_blocks():
    with pytest.raises(ExchangeError) as caught:
        of_drive(ior_json(nodes=4))
    assert "a rate of 4 hosts together" in caught.value.findings[0].notes[0]
    assert "128 KiB" in unwritten(of_drive(ior_json(size="4 KiB")))[0]


COMMAND = '"elbencho" "-r" "-b" "1m" "--direct" "/dev/nvme0n1" '


@pytest.mark.parametrize("form", [elbencho_csv, elbencho_json])
def test_elbenchos_files_are_what_its_text_is(form):
    measured = of_drive(form(("WRITE", 4000), ("READ", 6500), command=COMMAND))
    text = elbencho(("WRITE", 1, 4000), ("READ", 1, 6500), command=COMMAND)
    assert lines(measured) == lines(of_drive(text)) != {}
    assert measured.lines[0].date == "2026-11-02"
    assert lines(of_drive(ragged(form(("READ", 6500), command=COMMAND))))


def test_elbenchos_csv_of_other_phases():
    measured = of_drive(elbencho_csv(("MKDIRS", ""), ("READ", 6500), command=COMMAND))
    assert "elbencho mkdirs" in said(measured, "not-mapped")
    with pytest.raises(ExchangeError):
        of_drive(elbencho_csv(("READ", 6500), command=COMMAND, mixed="100"))


def test_elbenchos_json_of_reads_and_writes_at_once():
    with pytest.raises(ExchangeError) as caught:
        of_drive(elbencho_json(("WRITE", 6500), command=COMMAND, rwmix_read={"bytes/s": "9"}))
    assert "reads and writes at once" in caught.value.findings[0].notes[0]


def test_nccl_tests_json_is_what_its_table_is():
    measured = measure(shipped("dgx-h100"), nccl_json(368.76))
    (reading,) = measured.readings
    (expected,) = measure(shipped("dgx-h100"), nccl_tests(368.76)).readings
    assert (reading.sample.test, reading.sample.source) == (
        expected.sample.test,
        expected.sample.source,
    )
    assert reading.sample.rate == pytest.approx(368.76e9)
    rooted = measure(
        shipped("dgx-h100"), nccl_json(300, program="broadcast_perf", factor=1, root=2)
    )
    assert rooted.readings[0].sample.test.startswith("broadcast")


# --- TransferBench --------------------------------------------------------------------------------


def test_newer_tables_of_transferbench():
    row = " Transfer 0       │ {:.3f} GB/s │ 74.822 ms │ 1073741824 bytes │ {}\n"
    head = " Executor: DMA 00 │ 14.299 GB/s │ 75.091 ms │ 1073741824 bytes │ 14.351 GB/s (sum)\n"
    text = "TransferBench v1.67.00 (Single-node mode)\n"
    routes = ("D0 -> D0:1 -> G0", "G1 -> D1:1 -> P1", "H0 -> D0:1 -> G0", "K0 -> D0:1 -> G0")
    for at, route in enumerate(routes, 1):
        text += f"Test {at}:\n{head}{row.format(20 + at, route)}"
    measured = measure(built(TWO_SOCKETS), text.encode())
    assert in_gb(measured) == {("ram0", "gpu0"): 21.0, ("gpu1", "ram1"): 22.0}
    assert "not pinned" in "".join(unwritten(measured))
    assert "K0 -> D0:1 -> G0: no copy between" in said(measured, "not-mapped")
    as_csv = re.sub(r" *│ *", ", ", text)
    assert in_gb(measure(built(TWO_SOCKETS), as_csv.encode())) == in_gb(measured)


FORMS = {
    "perftest": (ONE_PORT, perftest_json(47.5)),
    "ior": (DRIVE, ior_json(options="-r --posix.odirect")),
    "elbencho": (DRIVE, elbencho_csv(("READ", 6500), command=COMMAND)),
    "elbencho json": (DRIVE, elbencho_json(("READ", 6500), command=COMMAND)),
    "fio": (DRIVE, fio(({"filename": "/dev/nvme0n1", "bs": "1M"}, {"read": 6e9}), direct="1")),
}


@pytest.mark.parametrize("form", FORMS)
def test_however_it_was_pasted(form):
    machine, data = FORMS[form]
    storage = ["nvme0"] if machine == DRIVE else []
    plain = lines(measure(built(machine), data, storage=storage))
    assert plain
    for how, text in as_pasted(data.decode() + "\n").items():
        assert lines(measure(built(machine), text, storage=storage)) == plain, how


# --- several programs -----------------------------------------------------------------------------

READ = ({"filename": "/dev/nvme0n1", "bs": "1M"}, {"read": 6.5 * GB})
WRITE = ({"filename": "/dev/nvme0n1", "bs": "1M"}, {"write": 4 * GB})


def found(measured, code):
    return [finding.message for finding in measured.findings if finding.code == code]


def test_all_programs_of_a_text_are_read():
    data = (
        b"my results:\n\n$ fio a.fio\n"
        + fio(READ, direct="1")
        + b"\n$ fio b.fio\n"
        + fio(WRITE, direct="1")
        + ior(read="", write="9000", options="-w --posix.odirect")
    )
    measured = of_drive(data)
    assert found(measured, "several-programs") == ["the text has ior (1 rate) and fio (2 rates)"]
    assert measured.kind == "ior, fio"
    rates = lines(measured)
    assert rates[("nvme0", "cpu0")] == pytest.approx(6.5 * GB)
    assert rates[("cpu0", "nvme0")] == pytest.approx(9000 * MIB)  # the faster of two
    assert sum("another result" in why for why in unwritten(measured)) == 1


def test_a_program_far_below_another_is_read():
    noise = b"a line of a log that says nothing\n" * 20_000
    data = ior(read="", write="9000", options="-w --posix.odirect") + noise + fio(READ, direct="1")
    assert of_drive(data).kind == "ior, fio"


def test_one_of_them_alone():
    data = fio(READ, direct="1") + b"\n" + ior(read="", write="9000", options="-w --posix.odirect")
    assert of_drive(data, kind="ior").kind == "ior"
    assert not found(of_drive(data, kind="fio"), "several-programs")
    with pytest.raises(ExchangeError, match="has results of fio and ior, not of gdsio"):
        of_drive(data, kind="gdsio")


def test_one_that_breaks_off_does_not_take_the_others_along():
    cut = fio(WRITE, direct="1")[:-40]
    measured = of_drive(ior(read="", write="9000", options="-w --posix.odirect") + b"\n" + cut)
    assert lines(measured) == {("cpu0", "nvme0"): pytest.approx(9000 * MIB)}
    assert "fio: " in said(measured, "not-mapped")


def test_gpus_of_each_program_are_its_own():
    first = nvbandwidth(("host_to_device_memcpy_ce", [[50, 51]]))
    data = first + b"\n" + nvbandwidth(("device_to_host_memcpy_ce", [[40, 41]]))
    measured = measure(built(TWO_SOCKETS), data)
    assert len(in_gb(measured)) == 4


HOSTILE = {
    "many": b"\n".join([fio(READ)] * 300),
    "braces": b"{\n" * 100_000 + b'"fio version"',
    "numbers": perftest_json(1).replace(b"65536", b"9" * 300),
    "types": b'{"test_info": {"test": 5, "Device": [1]}, "results": {"MsgSize": {}, "MsgRate": 1}}',
    "columns": elbencho_csv(("READ", 1)).replace(b",READ,", b",READ,,,,,"),
    "deep": b'{"Command line": "x", "bwMiB": 1, "tests": ' + b"[" * 50_000,
    "results": b'{"bus_bw": 1, "results": [5, {"out_of_place": 5}], "config": {"ngpus": 1e300}}',
}


@pytest.mark.parametrize("how", HOSTILE)
def test_hostile(how):
    measured = survives(lambda: of_drive(HOSTILE[how]))
    assert measured is None or all(line.rate < 1e15 for line in measured.lines)
