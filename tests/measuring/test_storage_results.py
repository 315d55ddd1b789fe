"""What benchmarks of storage print: fio's text, IOR, mdtest, elbencho, DLIO."""

from __future__ import annotations

import pytest

from tests.machines import ONE_SOCKET, built, shipped
from tests.measuring.results import dlio, elbencho, fio_text, ior, ragged
from tests.measuring.test_measuring import DRIVE, GB, GIB, MIB, lines
from topo import measure
from topo.errors import ExchangeError

DIRECT = "fio --name=a --filename=/dev/nvme0n1 --direct=1 --rw=read --bs=1M"
READ = {"READ": "6513MiB/s (6829MB/s)"}
STORED = {("nvme0", "cpu0"): pytest.approx(6513 * MIB, rel=1e-5)}


def of_drive(data):
    """Measure the drive of a machine that has a storage target as well."""
    return measure(built(DRIVE), data, storage=["nvme0"])


def unwritten(data):
    return [one.sample.unwritten for one in of_drive(data).readings]


def refused(data):
    with pytest.raises(ExchangeError) as caught:
        of_drive(data)
    (finding,) = caught.value.findings
    return " | ".join([finding.message, finding.help or "", *finding.notes])


# --- fio ------------------------------------------------------------------------------------------


def test_fios_text_below_its_command_is_read_as_its_json_is():
    measured = measure(built(DRIVE), fio_text(READ, command=DIRECT))
    assert lines(measured) == STORED
    assert measured.lines[0].date == "2026-11-02"
    assert lines(measure(built(DRIVE), ragged(fio_text(READ, command=DIRECT)))) == STORED


@pytest.mark.parametrize(
    ("rate", "old", "expected"),
    [
        ("6513MiB/s (6829MB/s)", False, 6513 * MIB),
        ("6.36GiB/s (6829MB/s)", False, 6.36 * GIB),
        ("6829MB/s (6513MiB/s)", False, 6.829 * GB),  # --kb_base=1000
        ("54.6Gbit/s (50.9Gibit/s)", False, 54.6 * GB / 8),  # --unit_base=1
        ("6513.2MB/s", True, 6513.2 * MIB),  # fio 2
    ],
)
def test_units_of_fios_text(rate, old, expected):
    (reading,) = measure(built(DRIVE), fio_text({"READ": rate}, old=old, command=DIRECT)).readings
    assert reading.sample.rate == pytest.approx(expected)


def test_a_text_without_its_command_does_not_tell_of_the_page_cache():
    assert "keep the command" in unwritten(fio_text(READ))[0]
    cached = fio_text(READ, command=DIRECT.replace("--direct=1 ", ""))
    assert "page cache" in unwritten(cached)[0]


def test_small_blocks_and_several_groups_and_both_ways():
    small = fio_text(READ, bs="(R) 4096B-4096B, (W) 4096B-4096B", command=DIRECT)
    assert "below 128 KiB" in unwritten(small)[0]
    assert all("several jobs" in why for why in unwritten(fio_text(READ, READ, command=DIRECT)))
    both = fio_text({**READ, "WRITE": "10MiB/s (10.5MB/s)"}, command=DIRECT)
    assert all("reads and writes at once" in why for why in unwritten(both))


# --- IOR and mdtest -------------------------------------------------------------------------------


def test_ior_with_odirect():
    measured = of_drive(ior(write="4000.50", options="-w -r --posix.odirect -t 1m"))
    assert lines(measured) == {
        ("nvme0", "cpu0"): pytest.approx(5600 * MIB, rel=1e-5),
        ("cpu0", "nvme0"): pytest.approx(4000.5 * MIB, rel=1e-5),
    }
    assert measured.lines[0].origin.endswith("8 tasks")


@pytest.mark.parametrize("option", ["-B", "-O useO_DIRECT=1", "--posix.odirect"])
def test_ways_to_say_odirect_to_ior(option):
    assert unwritten(ior(options=f"-r {option} -t 1m")) == [""]


def test_ior_through_the_page_cache_small_and_of_several_hosts():
    assert "page cache" in unwritten(ior())[0]
    assert "below 128 KiB" in unwritten(ior(size="4 KiB", options="-B"))[0]
    assert "a rate of 4 hosts together" in refused(ior(nodes=4))


def test_ior_2_and_iors_json():
    old = b"""IOR-2.10.3: MPI Coordinated Test of Parallel I/O
Command line used: ./IOR -a POSIX -B -t 1m
\tclients            = 8 (8 per node)
\txfersize           = 1 MiB
Max Read:  5600.00 MiB/sec (5872.03 MB/sec)
"""
    assert lines(of_drive(old)) == {("nvme0", "cpu0"): pytest.approx(5600 * MIB, rel=1e-5)}
    assert "a rate of 4 hosts" in refused(old.replace(b"(8 per", b"(2 per"))
    json = b"""{"Command line": "ior -O summaryFormat=JSON --posix.odirect", "summary": [
{"operation": "read", "bwMaxMIB": 5600.0, "numTasks": 8, "tasksPerNode": 8}]}"""
    assert lines(of_drive(json)) == {("nvme0", "cpu0"): pytest.approx(5600 * MIB, rel=1e-5)}
    assert "a rate of 4 hosts" in refused(json.replace(b'Node": 8', b'Node": 2'))


def test_mdtest_is_named():
    text = b"-- started --\n\nmdtest-4.1.0+dev was launched with 8 total task(s) on 1 node(s)"
    assert "mdtest: files a second, no bandwidth" in refused(text)


# --- elbencho -------------------------------------------------------------------------------------

ELBENCHO = '"elbencho" "-r" "-b" "1m" "--direct" "/dev/nvme0n1" '


def test_elbencho_counts_until_the_last_is_done():
    measured = of_drive(elbencho(("WRITE", 4100, 4000), ("READ", 6600, 6500), command=ELBENCHO))
    assert lines(measured) == {
        ("nvme0", "cpu0"): pytest.approx(6500 * MIB, rel=1e-5),
        ("cpu0", "nvme0"): pytest.approx(4000 * MIB, rel=1e-5),
    }
    assert measured.lines[0].date == "2026-11-02"


def test_elbenchos_units_phases_and_commands():
    decimal = elbencho(("READ", 1, 6500), command=ELBENCHO, unit="MB/s")
    assert next(iter(lines(of_drive(decimal)).values())) == 6.5 * GB
    assert "page cache" in unwritten(elbencho(("READ", 1, 6500)))[0]
    hosts = elbencho(("READ", 1, 6500), command=ELBENCHO + "--hosts a,b")
    assert "several hosts" in unwritten(hosts)[0]
    small = elbencho(("READ", 1, 6500), command=ELBENCHO.replace("1m", "4k"))
    assert "below 128 KiB" in unwritten(small)[0]
    assert "no reads or writes of data" in refused(elbencho(("SYNC", 1, 5), command=ELBENCHO))


def test_storage_behind_several_cards_fills_all_memories():
    measured = measure(shipped("dgx-h100"), elbencho(("READ", 1, 65000), command=ELBENCHO))
    (reading,) = measured.readings
    assert reading.sample.target == ("ram0", "ram1")
    assert reading.forecast.achievable == pytest.approx(100 * GB)
    assert not measured.lines  # no one link stands for it


def test_elbencho_by_gpudirect_storage():
    command = '"elbencho" "-r" "-b" "1m" "--gpuids" "0" "--cufile" "/mnt/a" '
    (reading,) = measure(built(ONE_SOCKET), elbencho(("READ", 1, 20000), command=command)).readings
    assert (reading.sample.via, reading.sample.target) == ("direct", ("gpu0",))
    assert reading.sample.unwritten == ""


# --- DLIO -----------------------------------------------------------------------------------------


def test_dlio_says_what_accelerators_asked_for():
    data = dlio(train_io_mean_MB_per_second=5000.0, train_au_mean_percentage=97.5)
    (reading,) = of_drive(data).readings
    assert (reading.sample.source, reading.sample.rate) == (("nvme0",), 5000 * MIB)
    assert "4 accelerators, 1.31 GB/s each" in reading.sample.test
    assert "97.5 % busy asked for" in reading.sample.unwritten


def test_dlios_checkpoints_caching_and_hosts():
    save = dlio(save_checkpoint_io_mean_GB_per_second=3.5)
    (reading,) = of_drive(save).readings
    assert (reading.sample.target, reading.sample.rate) == (("nvme0",), 3.5 * GIB)
    cached = dlio(caching=True, train_io_mean_MB_per_second=5000.0)
    assert "page cache" in unwritten(cached)[0]
    assert "2 hosts together" in refused(dlio(hosts=2, train_io_mean_MB_per_second=5000.0))


# --- what people paste ----------------------------------------------------------------------------


@pytest.mark.parametrize(
    "data",
    [
        fio_text(READ, command=DIRECT),
        ior(options="-r -B"),
        elbencho(("READ", 6600, 6500), command=ELBENCHO),
        dlio(train_io_mean_MB_per_second=5000.0),
    ],
    ids=["fio", "ior", "elbencho", "dlio"],
)
def test_ragged_and_hostile(data):
    (plain,) = of_drive(data).readings
    is_json = data.startswith(b"{")
    pasted = b"$ cat summary.json\r\n" + data if is_json else ragged(data)
    (again,) = of_drive(pasted).readings
    assert again.sample == plain.sample
    for rate in (b"6513MiB", b"5600.00", b"6500", b"5000.0"):
        for put in (b"9" * 300, b"-5", b"1e999", b"NaN", b"\x07" * 5):
            try:
                found = of_drive(data.replace(rate, put))
            except ExchangeError:
                continue
            assert all(0 < one.sample.rate < 1e16 for one in found.readings)
