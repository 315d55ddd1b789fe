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
