"""Result files as the programs write them, small and made up."""

from __future__ import annotations

import json


def nvbandwidth(*cases, devices=()):
    """Return nvbandwidth's JSON with `(name, matrix)` tests; texts in a matrix stay as they are."""
    tests = [
        {
            "name": name,
            "status": "Passed",
            "bandwidth_description": "memcpy CE CPU(row) -> GPU(column) bandwidth (GB/s)",
            "bandwidth_matrix": [[str(cell) for cell in row] for row in matrix],
            "sum": 1.0,
        }
        for name, matrix in cases
    ]
    root = {"nvbandwidth": {"version": "v0.0", "testcases": tests}}
    if devices:
        root["nvbandwidth"]["GPU Device list"] = list(devices)
    return json.dumps(root, indent=1).encode()


def fio(*jobs, stamp=1_700_000_000, **shared):
    """Return fio's JSON with `(options, {"read": bytes/s})` jobs."""
    root = {
        "fio version": "fio-3.99",
        "timestamp": stamp,
        "global options": shared,
        "jobs": [
            {
                "jobname": f"job{at}",
                "job options": options,
                **{way: {"bw_bytes": rates.get(way, 0), "bw": 0} for way in ("read", "write")},
            }
            for at, (options, rates) in enumerate(jobs)
        ],
    }
    return json.dumps(root).encode()


def gdsio(*lines):
    """Return gdsio's text of `(way, transfer, gib_per_s)` runs, each below its command."""
    return "".join(
        f"$ gdsio -f /mnt/x -d {gpu} -w 4 -s 1G -i 1M -x 9 -I 0\n"
        f"IoType: {way} XferType: {transfer} Threads: 4 DataSetSize: 1/1(KiB) "
        f"IOSize: {size}(KiB) Throughput: {rate} GiB/sec, Avg_Latency: 1.0 usecs ops: 1 "
        "total_time 1.0 secs\n"
        for gpu, way, transfer, rate, size in (
            (*line, 1024)[:5] if len(line) == 4 else line for line in lines
        )
    ).encode()


def perftest(
    rate, *, title="RDMA_Write BW Test", device="mlx5_0", unit="Gb/sec", size=65536, above=""
):
    """Return the text of one perftest run."""
    return (
        f"{above}\n{'-' * 40}\n                    {title}\n"
        f" Dual-port       : OFF\t\tDevice         : {device}\n"
        f" Number of qps   : 1\t\tTransport type : IB\n{'-' * 40}\n"
        f" #bytes     #iterations    BW peak[{unit}]    BW average[{unit}]   MsgRate[Mpps]\n"
        f" {size}      5000             0.00               {rate}\t\t   0.1\n{'-' * 40}\n"
    ).encode()


def nccl_tests(
    busbw,
    *,
    program="all_reduce_perf",
    factor=1.75,
    ranks=8,
    host="box",
    buses=(),
    operation="sum",
    root=-1,
    sizes=(1 << 20, 1 << 30),
    prefix="",
    old=False,
):
    """Return the text of one run of nccl-tests, the last size with the rate `busbw` in GB/s."""
    lines = [f"$ ./build/{program} -b 1M -e 1G -f 1024 -g {ranks}"] if program else []
    lines += [f"# nThread 1 nGpus {ranks} minBytes 1048576 maxBytes 1073741824", "# Using devices"]
    buses = buses or [f"{0x10 + at:02x}" for at in range(ranks)]
    lines += [
        f"#  Rank {at:2} Group  0 Pid   4242 on {host:>10} device {at:2} [0x{bus}] NVIDIA Made Up"
        for at, bus in enumerate(buses)
    ]
    tail = "" if old else "   root"
    wrong = " error" if old else "#wrong"
    lines += [
        "#",
        f"# size count type redop{tail}  time  algbw  busbw {wrong}  time  algbw  busbw {wrong}",
        "#   (B)  (elements)              (us)  (GB/s)  (GB/s)         (us)  (GB/s)  (GB/s)",
    ]
    for at, size in enumerate(sizes):
        rate = busbw * (at + 1) / len(sizes)
        algbw = rate / factor
        times = f"{size / algbw / 1e3:8.1f} {algbw:7.2f} {rate:7.2f}"
        end = "2e-07" if old else "0"
        where = "" if old else f" {root:6}"
        lines.append(
            f"{size:12} {size // 4:13} {'float':>9} {operation:>7}{where} {times} {end:>6} "
            f"{times} {end:>6}"
        )
    lines += ["# Out of bounds values : 0 OK", f"# Avg bus bandwidth    : {busbw / 2:.3f}", "#"]
    return ("\n".join(prefix + line for line in lines) + "\n").encode()
