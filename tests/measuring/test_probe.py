"""A host that measures itself: what is run, what it is worth, and that nothing is left behind."""

from __future__ import annotations

import sys
import time

import pytest

from tests.measuring.cuda import Driver
from topo.errors import ExchangeError
from topo.measuring.measure import laid_over
from topo.measuring.probe import host
from topo.measuring.probe.gpus import cpus_near
from topo.measuring.probe.plan import probe
from topo.measuring.probe.race import race
from topo.measuring.results import RAM, Concurrent, End, Result, Results, gpu
from topo.topology.build import loads

ADDRESSES = ("0000:1b:00.0", "0000:3d:00.0")
MACHINE = """\
topo: 1
name: node
devices:
  cpu0: {part: xeon-8592plus, numa: 0}
  ram0: {part: memory-unknown, size: 512 GB}
  gpu0: {part: h100-pcie-80gb, pci: "1b:00.0"}
  gpu1: {part: h100-pcie-80gb, pci: "3d:00.0"}
links:
  - cpu0 -- ram0: memory-bus
  - cpu0 -- gpu0: pcie 5 x16
  - cpu0 -- gpu1: pcie 5 x16
  - gpu0 -- gpu1: 12x nvlink 4
"""
MIB = 1 << 20


@pytest.fixture
def driver(monkeypatch):
    def installed(*addresses, **words):
        made_up = Driver(addresses, **words)
        monkeypatch.setitem(sys.modules, "cuda.bindings.driver", made_up)
        return made_up

    return installed


@pytest.fixture
def no_driver(monkeypatch):
    monkeypatch.setitem(sys.modules, "cuda.bindings.driver", None)


def probed(**words):
    return probe(seconds=words.pop("seconds", 3.0), memory=words.pop("memory", 64 * MIB), **words)


# --- what runs at once ----------------------------------------------------------------------------


class Work:
    """Moves `count` bytes each `seconds`."""

    cpus: frozenset[int] = frozenset()

    def __init__(self, count, seconds, fails=""):
        self.count, self.seconds, self.fails, self.closed = count, seconds, fails, 0

    def open(self):
        if self.fails == "open":
            raise OSError("no such drive")

    def step(self):
        if self.fails == "step":
            raise RuntimeError("fell off the bus")
        time.sleep(self.seconds)
        return self.count

    def close(self):
        self.closed += 1


def test_each_rate_is_counted_while_all_of_them_run():
    fast, slow = race([Work(1000, 0.002), Work(1000, 0.008)], 0.2, longest=10)
    assert 0 < slow < fast < 1000 / 0.002
    assert slow < 1000 / 0.008


def test_a_step_longer_than_the_time_runs_until_it_has_a_rate():
    (rate,) = race([Work(1000, 0.05)], 0.01, longest=10)
    assert 0 < rate < 1000 / 0.05


@pytest.mark.parametrize("fails", ["open", "step"])
def test_a_work_that_fails_ends_the_others_and_all_are_closed(fails):
    works = [Work(1, 0.001), Work(1, 0.001, fails), Work(1, 0.001)]
    with pytest.raises((OSError, RuntimeError)):
        race(works, 5.0, longest=10)
    assert [work.closed for work in works] == [1, 1, 1]


def test_what_moves_too_little_is_given_up():
    with pytest.raises(TimeoutError):
        race([Work(1, 0.2)], 0.05, longest=0.3)


# --- GPUs -----------------------------------------------------------------------------------------


def test_every_pair_each_way_and_all_at_once_are_measured(driver):
    made_up = driver(*ADDRESSES, links=[(0, 1)])
    results = probed()
    ends = {(each.test, each.source, each.target) for each in results.results}
    for number in (0, 1):
        for kind in ("probe pinned copy", "probe pageable copy", "probe pinned copies both ways"):
            assert (kind, RAM, gpu(number)) in ends
            assert (kind, gpu(number), RAM) in ends
    assert ("probe GPU to GPU", gpu(0), gpu(1)) in ends
    assert ("probe GPU to GPU", gpu(1), gpu(0)) in ends
    assert [len(run.pairs) for run in results.concurrent] == [2, 2, 4]
    assert results.addresses == ADDRESSES
    assert {("ram", "gpu"), ("gpu", "ram"), ("gpu", "gpu")} < set(made_up.copies)
    assert ("pageable", "gpu") in made_up.copies


def test_everything_is_given_back_and_the_limit_of_memory_holds(driver):
    made_up = driver(*ADDRESSES, links=[(0, 1)])
    probed(memory=48 * MIB)
    assert made_up.held == {"ram": 0, "gpu": 0}
    assert made_up.contexts == 0
    assert 0 < made_up.most <= 48 * MIB


def test_gpus_that_do_not_reach_each_other_are_said_once(driver):
    driver(*ADDRESSES)
    results = probed()
    assert not any(each.test == "probe GPU to GPU" for each in results.results)
    told = [line for line in results.left_out if "reach each other" in line]
    assert told == ["gpu 0 and gpu 1: the driver does not let them reach each other"]


def test_a_gpu_in_use_is_said(driver):
    driver(*ADDRESSES, used=20 << 30)
    assert sum("of its memory are in use" in line for line in probed().left_out) == 2


@pytest.mark.parametrize("name", ["cuMemHostAlloc", "cuMemcpyAsync", "cuStreamCreate"])
def test_a_call_that_fails_costs_its_tests_alone(driver, name):
    made_up = driver(*ADDRESSES, fails=[name])
    results = probed()
    assert any(f"{name}: CUDA_ERROR_MADE_UP" in line for line in results.left_out)
    assert any(each.workers for each in results.results)
    assert made_up.held == {"ram": 0, "gpu": 0}


@pytest.mark.parametrize("name", ["cuInit", "cuDeviceGetCount", "cuMemGetInfo"])
def test_a_driver_that_does_not_answer_leaves_the_cores(driver, name):
    made_up = driver(*ADDRESSES, fails=[name])
    results = probed()
    assert f"NVIDIA's driver does not answer: {name}: CUDA_ERROR_MADE_UP" in results.left_out
    assert results.results
    assert made_up.contexts == 0


def test_without_the_bindings_the_way_to_get_them_is_said(no_driver):
    results = probed()
    assert any("cuda-bindings, which are not installed" in line for line in results.left_out)


def test_too_little_memory_is_an_error_with_the_least(driver):
    driver(*ADDRESSES)
    with pytest.raises(ExchangeError, match="2 GPUs") as caught:
        probed(memory=8 * MIB)
    assert "32 MiB" in caught.value.findings[0].help


def test_when_the_time_is_over_the_rest_is_said_to_be_left_out(driver):
    driver(*ADDRESSES, links=[(0, 1)], seconds=0.01)
    began = time.monotonic()
    results = probed(seconds=1.0)
    assert results.results
    assert any("no time was left" in line for line in results.left_out)
    assert time.monotonic() - began < 30


# --- cores and storage ----------------------------------------------------------------------------


def test_a_file_is_read_past_the_page_cache_and_out_of_it(tmp_path, no_driver):
    path = tmp_path / "data"
    path.write_bytes(bytes(257 * MIB))
    before = path.read_bytes()
    results = probed(reads=[str(path)])
    by_test = {each.test: each for each in results.results}
    cached = by_test[f"probe read by the page cache, {path}"]
    assert cached.unwritten
    assert cached.source.kind == cached.target.kind == "ram"
    direct = by_test.get(f"probe read, {path}")
    told = [line for line in results.left_out if line.startswith(f"probe read, {path}")]
    assert direct or told  # not every file system has O_DIRECT
    assert path.read_bytes() == before


@pytest.mark.parametrize(
    ("make", "words"),
    [
        (lambda path: path.write_bytes(b"small"), "are needed"),
        (lambda path: path.mkdir(), "neither a file nor a drive"),
        (lambda path: None, "No such file"),
    ],
)
def test_what_cannot_be_read_is_an_error_before_anything_runs(tmp_path, driver, make, words):
    made_up = driver(*ADDRESSES)
    make(tmp_path / "it")
    with pytest.raises(ExchangeError, match=words):
        probed(reads=[str(tmp_path / "it")])
    assert not made_up.copies


def test_nodes_and_near_cpus_are_as_the_kernel_lists_them(tmp_path):
    nodes = ((0, "0-3,8", "1024"), (1, "4-7", "1024"), (2, "", "1024"), (3, "9", "0"))
    for number, cpus, size in nodes:
        folder = tmp_path / f"node{number}"
        folder.mkdir()
        (folder / "cpulist").write_text(f"{cpus}\n")
        (folder / "meminfo").write_text(f"Node {number} MemTotal: {size} kB\n")
    assert host.memory_nodes(tmp_path) == {0: {0, 1, 2, 3, 8}, 1: {4, 5, 6, 7}}
    assert host.memory_nodes(tmp_path / "absent").keys() == {0}
    assert cpus_near("0000:1b:00.0", tmp_path) == frozenset()


# --- beside what was expected ---------------------------------------------------------------------


def readings(*results, concurrent=()):
    measured = laid_over(
        loads(MACHINE), Results("probe", results, ADDRESSES, 2, concurrent=concurrent)
    )
    return measured, {(each.sample.test, each.sample.source): each for each in measured.readings}


def test_one_pageable_copy_is_held_to_what_one_core_stages():
    _, by_test = readings(Result("pageable", RAM, gpu(0), 8e9, via="pageable", workers=1))
    forecast = by_test["pageable", ("ram0",)].forecast
    # a core's 10 GB/s, then the link's 63.02 x 0.89: one after the other
    assert forecast.achievable == pytest.approx(1 / (1 / 10e9 + 1 / 56.08e9), rel=0.01)


@pytest.mark.parametrize(("count", "expected"), [(1, 10e9), (4, 40e9)])
def test_copies_of_cores_are_held_to_so_many_cores(count, expected):
    end = End("ram", 0)
    _, by_test = readings(Result("copies", end, end, 9e9, workers=count))
    assert by_test["copies", ("ram0",)].forecast.achievable == pytest.approx(expected)


def test_a_measured_core_is_a_note_that_says_what_to_write():
    end = End("ram", 0)
    measured, _ = readings(Result("copies", end, end, 6.5e9, workers=1))
    (note,) = [each for each in measured.findings if each.code == "core-copy-measured"]
    assert "6.5 GB/s" in note.message
    assert "10 GB/s" in note.message
    assert note.help == "write `core-copy: 6.5 GB/s` at cpu0"


def test_all_at_once_is_held_to_what_they_do_together():
    pairs = ((RAM, gpu(0)), (RAM, gpu(1)))
    both = (*pairs, *((target, source) for source, target in pairs))
    _, by_test = readings(
        concurrent=[Concurrent("in", pairs, 100e9), Concurrent("both", both, 150e9)]
    )
    alone = 63.02e9
    assert by_test["in", ("ram0",)].forecast.theoretical == pytest.approx(2 * alone, rel=1e-3)
    together = by_test["both", ("ram0", "gpu0", "gpu1")].forecast
    assert together.theoretical == pytest.approx(4 * alone, rel=1e-3)
    assert together.achievable < 4 * 0.89 * alone  # a link both ways does less than twice


def test_a_path_that_no_drive_of_the_file_holds_has_no_place():
    measured, _ = readings(Result("probe read, /data/x", End("storage", name="/data/x"), RAM, 3e9))
    assert any("/data/x" in line and "--storage" in line for line in measured.unmapped)
