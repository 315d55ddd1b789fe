"""Whoever answers, the rows are the same; a worker that dies loses nothing."""

from __future__ import annotations

import os
import signal
import socket
import subprocess
import sys
import threading
import time
from pathlib import Path

import pytest

from tests.machines import ONE_SOCKET, built
from topo.errors import CertificateError, Finding, LibraryError, TopoError, UnknownNameError
from topo.study.designs import Designs
from topo.study.sweep import axis_of, planned
from topo.study.variants import Question
from topo.sweeps import engines

ROOT = Path(__file__).parents[2]


def plan(buses=12, chips=4):
    vary = {
        "nic0.part": ["card", "connectx-6"],
        "ram.bus": [f"{10 + n} GB/s" for n in range(buses)],
        "nic0.chip": [f"{20 + n} GB/s" for n in range(chips)],
        "via": ["legacy", "direct"],
    }
    return planned(built(ONE_SOCKET), [axis_of(*item) for item in vary.items()], Question())


def answered(sweep, engine, numbers=None):
    pairs = [
        pair
        for batch in engines.answer_all(sweep, numbers or range(sweep.count), engine)
        for pair in batch
    ]
    assert len(pairs) == len(dict(pairs))  # no design twice
    return dict(sorted(pairs))


@pytest.fixture(scope="module")
def sweep():
    return plan()


@pytest.fixture(scope="module")
def here(sweep):
    return answered(sweep, engines.here)


@pytest.mark.slow
def test_processes_answer_the_same(sweep, here):
    assert answered(sweep, engines.processes(2)) == here


@pytest.mark.slow
def test_a_process_that_is_killed_is_replaced(sweep, here, monkeypatch):
    monkeypatch.setattr("topo.study.designs._BATCH", 40)
    found: dict[int, object] = {}
    killed: list[int] = []
    for answers in engines.answer_all(sweep, range(sweep.count), engines.processes(2)):
        if not killed:
            killed += children()
            os.kill(killed[0], signal.SIGKILL)
        found.update(answers)
    assert killed
    assert dict(sorted(found.items())) == here


@pytest.mark.slow
def test_processes_that_always_die_are_given_up(sweep, monkeypatch):
    monkeypatch.setattr(engines, "_end_with_parent", os.abort)
    with pytest.raises(TopoError, match="the worker processes end before they answer"):
        answered(sweep, engines.processes(2))


@pytest.mark.slow
def test_workers_end_with_the_process_that_is_killed(tmp_path):
    code = (
        "import sys; sys.path.insert(0, sys.argv[1])\n"
        "from tests.sweeps.test_engines import plan\n"
        "from topo.sweeps import engines\n"
        "if __name__ == '__main__':\n"
        "    for answers in engines.answer_all(plan(), range(192), engines.processes(2)):\n"
        "        print(len(answers), flush=True)\n"
        "        input()\n"
    )
    (tmp_path / "run.py").write_text(code, encoding="utf-8")
    with subprocess.Popen(
        [sys.executable, "run.py", str(ROOT)],
        cwd=tmp_path,
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
        stderr=subprocess.DEVNULL,
    ) as parent:
        assert parent.stdout.readline()
        workers = children(parent.pid)
        parent.kill()
    assert workers
    deadline = time.monotonic() + 20
    while time.monotonic() < deadline and any(Path(f"/proc/{pid}").exists() for pid in workers):
        time.sleep(0.05)
    assert not [pid for pid in workers if Path(f"/proc/{pid}").exists()]


def children(parent: int | None = None) -> list[int]:
    """Return the worker processes that a process has started."""
    found = []
    for status in Path("/proc").glob("[0-9]*/stat"):
        try:
            fields = status.read_text().rpartition(")")[2].split()
            command = (status.parent / "cmdline").read_bytes()
        except OSError:
            continue
        if int(fields[1]) == (parent or os.getpid()) and b"spawn_main" in command:
            found.append(int(status.parent.name))
    return found


# --- Dask -----------------------------------------------------------------------------------------


def free_port():
    with socket.socket() as probe:
        probe.bind(("127.0.0.1", 0))
        return probe.getsockname()[1]


def started(*words):
    return subprocess.Popen(
        [sys.executable, "-m", "distributed.cli.dask_scheduler", *words]
        if words[0] == "--port"
        else [sys.executable, "-m", "distributed.cli.dask_worker", *words],
        env={**os.environ, "PYTHONPATH": str(ROOT)},
        stdout=subprocess.DEVNULL,
        stderr=subprocess.DEVNULL,
    )


@pytest.fixture
def cluster(tmp_path):
    """A scheduler and two worker processes, each with a process of its own."""
    distributed = pytest.importorskip("distributed")
    port = free_port()
    address = f"127.0.0.1:{port}"
    scheduler = started("--port", str(port), "--host", "127.0.0.1", "--no-dashboard")
    workers = [
        started(
            f"tcp://{address}",
            *("--nthreads", "1", "--no-nanny", "--no-dashboard"),
            *("--local-directory", str(tmp_path / name), "--name", name),
        )
        for name in ("one", "two")
    ]
    try:
        with distributed.Client(f"tcp://{address}", timeout=30, set_as_default=False) as client:
            client.wait_for_workers(2, timeout=60)
        yield address, scheduler, workers
    finally:
        for process in (*workers, scheduler):
            process.kill()
            process.wait()


@pytest.mark.slow
def test_a_cluster_answers_the_same_though_a_worker_dies(cluster, sweep, here, monkeypatch):
    address, _, workers = cluster
    monkeypatch.setattr("topo.study.designs._BATCH", 40)
    found: dict[int, object] = {}
    batches = 0
    for answers in engines.answer_all(sweep, range(sweep.count), engines.dask(f"dask://{address}")):
        if batches == 0:
            workers[0].kill()
        batches += 1
        found.update(answers)
    assert batches > 4
    assert dict(sorted(found.items())) == here
    assert workers[0].wait(timeout=10) == -signal.SIGKILL
    assert workers[1].poll() is None


@pytest.mark.slow
def test_a_cluster_without_workers_is_not_waited_for(cluster, sweep, monkeypatch):
    address, _, workers = cluster
    monkeypatch.setattr(engines, "_WITHOUT_WORKERS", 1.0)
    for process in workers:
        process.kill()
    with pytest.raises(TopoError, match="has no workers"):
        answered(sweep, engines.dask(f"dask://{address}"))


@pytest.mark.slow
def test_a_scheduler_that_goes_away_is_said(cluster, monkeypatch, capfd):
    address, scheduler, workers = cluster
    monkeypatch.setattr("topo.study.designs._BATCH", 40)
    answers = engines.answer_all(plan(40, 10), range(1600), engines.dask(f"dask://{address}"))
    assert next(answers)
    for process in (scheduler, *workers):
        process.kill()
    with pytest.raises(TopoError) as caught:
        list(answers)
    assert [finding.code for finding in caught.value.findings] == ["no-scheduler"]
    assert capfd.readouterr().err == ""


def test_a_scheduler_that_is_not_there_is_said(sweep, monkeypatch):
    pytest.importorskip("distributed")
    monkeypatch.setattr(engines, "_PATIENCE", 0.5)
    began = time.monotonic()
    with pytest.raises(TopoError) as caught:
        answered(sweep, engines.dask(f"dask://127.0.0.1:{free_port()}"))
    assert [finding.code for finding in caught.value.findings] == ["no-scheduler"]
    assert time.monotonic() - began < 20
    assert threading.active_count() < 20


@pytest.mark.parametrize(
    "address",
    ["", "dask", "dask://", "ray://host:1", "dask://host:port", "dask://h:1/x", "dask://h:99999"],
)
def test_what_is_no_engine_is_said(address):
    with pytest.raises(TopoError, match="is no engine"):
        engines.dask(address)


def test_without_dask_it_is_said_what_to_install(monkeypatch):
    monkeypatch.setitem(sys.modules, "distributed", None)
    with pytest.raises(TopoError, match=r"gpu-topo\[sweep\]"):
        engines.dask("dask://host:8786")


@pytest.mark.parametrize("kind", [TopoError, UnknownNameError, CertificateError])
def test_an_error_comes_whole_from_another_process(kind):
    import pickle

    error = pickle.loads(pickle.dumps(kind(Finding("code", "words", help="advice"))))
    assert type(error) is kind
    assert error.findings == (Finding("code", "words", help="advice"),)
    assert str(error) == str(kind(error.findings))
    library = pickle.loads(pickle.dumps(LibraryError("pyarrow", "writing Parquet")))
    assert library.findings == LibraryError("pyarrow", "writing Parquet").findings


@pytest.mark.slow
def test_a_fault_of_topo_is_no_illegal_design(sweep, monkeypatch):
    def fails(*_):
        raise CertificateError(Finding("not-certified", "it does not pass"))

    monkeypatch.setattr("topo.study.designs.solve", fails)
    monkeypatch.setattr("topo.study.designs.outcome_of", fails)
    with pytest.raises(CertificateError):
        answered(sweep, engines.here)


def test_a_worker_of_another_version_is_refused(sweep):
    import pickle

    batch = next(iter(Designs(sweep).batches([0])))
    with pytest.raises(TopoError, match="a worker has topo"):
        engines._answer(pickle.dumps(sweep), "0.0.0", batch)
    assert engines._answer(pickle.dumps(sweep), engines.__version__, batch)
