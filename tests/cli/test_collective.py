"""`topo collective`: one table of all collectives, or one of them at length."""

from __future__ import annotations

import pytest


def test_all_collectives_in_a_table(topo):
    done = topo("collective", "dgx-h100")
    assert done.code == 0
    assert "1 GB over 8 GPUs, gpu[0-7], by peer-nvlink:" in done.out
    rows = {line.split()[0]: line for line in done.out.splitlines() if "GB/s  " in line}
    assert "211.89 GB/s  370.8 GB/s   4.72 ms" in rows["all-reduce"]
    collectives = "all-reduce all-gather reduce-scatter all-to-all broadcast reduce"
    assert rows.keys() == set(collectives.split())
    assert "NV18   peer-nvlink     8" in done.out
    assert "gpu[0-7] -> gpu0" in done.out
    assert "no algorithm has a busbw over 430.93 GB/s" in done.out


def test_one_collective_at_length(topo):
    done = topo("collective", "l40s-two-switches", "all-reduce", "--at", "theoretical")
    assert done.code == 0
    assert "all-reduce of 1 GB over gpu[0-7]" in done.out
    assert "1 ring by peer-pcie" in done.out
    assert "NCCL_P2P_LEVEL=PHB" in done.out or "NCCL_P2P_LEVEL=SYS" in done.out
    assert "peer-nvlink is refused" in done.out


def test_json_holds_rates_rings_and_the_bound(topo):
    done = topo("collective", "dgx-h100", "all-reduce", "--over", "gpu[0-3]", "--json")
    document = done.document
    assert done.code == 0
    assert document["schema"] == "topo.collective/1"
    (workload,) = document["workloads"]
    assert workload["collective"] == "all-reduce"
    assert workload["bound"]["busbw_bytes_per_s"] > 370.8e9
    path = workload["paths"][-1]
    assert path["data_path"] == "peer-nvlink"
    assert path["busbw_bytes_per_s"] == pytest.approx(370.8e9)
    assert path["rate_bytes_per_s"] == pytest.approx(370.8e9 / 1.5)
    laid = path["collective"]
    assert laid["rings"] == [{"gpus": [f"gpu{at}" for at in range(4)], "share": 1}]
    assert [hop["bytes_per_byte"] for hop in laid["hops"]] == [1.5] * 4


def test_switches_that_reduce_are_said(topo):
    options = ("--set", "settings.nvlink-sharp=on")
    done = topo("collective", "dgx-h100", "all-reduce", *options)
    assert done.code == 0
    assert "490.28 GB/s" in done.out
    assert "the switches reduce (NVLink SHARP)" in done.out
    assert "the switches' reduction" in done.out


@pytest.mark.parametrize(
    ("arguments", "code", "says"),
    [
        (("allreduce",), 2, "all-reduce"),
        (("all-reduce", "--root", "gpu0"), 2, "--root is of broadcast and of reduce"),
        (("all-reduce", "--size", "1"), 2, "1 GB?"),
        (("all-reduce", "--size", "0 GB"), 2, "zero"),
        (("all-reduce", "--over", "gpu0"), 1, "over one GPU alone"),
        (("all-reduce", "--over", "storage"), 1, "is over GPUs, and storage is"),
        (("broadcast", "--root", "slot1"), 1, "no slot1"),
        (("all-reduce", "--over", "gpus"), 1, "did you mean"),
    ],
)
def test_wrong_questions_are_said(topo, arguments, code, says):
    done = topo("collective", "dgx-h100", *arguments)
    assert done.code == code
    assert says in done.err
