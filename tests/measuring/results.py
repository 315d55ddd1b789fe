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


def nvbandwidth_text(*cases, devices=()):
    """Return nvbandwidth's text with `(name, matrix)` tests; of three times the rows in blocks."""
    lines = ["nvbandwidth Version: v0.0", "", "box"]
    lines += [f"Device {at}: {device}" for at, device in enumerate(devices)]
    for name, matrix in cases:
        count = len(matrix[0])
        lines += ["", f"Running {name}."]
        both = len(matrix) > count
        for at in range(0, len(matrix), count):
            block = f"{name}_{('write1', 'write2', 'total')[at // count]}" if both else name
            engine = name[-2:].upper()
            lines += [f"memcpy {engine} GPU(row) <- GPU(column) bandwidth (GB/s)"]
            lines += ["  " + "".join(f"{column:10}" for column in range(count))]
            lines += [
                f"{row:2}" + "".join(f"{cell:>10}" for cell in cells)
                for row, cells in enumerate(matrix[at : at + count])
            ]
            lines += ["", f"SUM {block} 123.45", ""]
    return ("\n".join(lines) + "\n").encode()


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


def fio_text(
    *groups, rw="read", bs="(R) 1024KiB-1024KiB, (W) 1024KiB-1024KiB", command="", old=False
):
    """Return fio's text of groups of `{"READ": "6513MiB/s (6829MB/s)"}`."""
    lines = [f"$ {command}"] if command else []
    lines += [
        f"job{at}: (g={at}): rw=read, bs={bs}, ioengine=libaio, iodepth=32"
        for at in range(len(groups))
    ]
    lines += ["fio-2.16" if old else "fio-3.36", "Starting 1 process", ""]
    lines += ["job0: (groupid=0, jobs=1): err= 0: pid=4242: Mon Nov  2 10:00:00 2026"]
    lines += ["  read: IOPS=6512, BW=6513MiB/s (6829MB/s)(64.0GiB/10062msec)"]
    for at, group in enumerate(groups):
        lines += ["", f"Run status group {at} (all jobs):"]
        for way, rate in group.items():
            before = "io=65536MB, aggrb" if old else "bw"
            lines.append(f"  {way:>5}: {before}={rate}, minb=1, run=10062-10062msec")
    return ("\n".join(lines) + "\n").encode()


def ior(*, write="", read="5600.00", options="-r -t 1m -b 16g", nodes=1, size="1 MiB"):
    """Return IOR's text with its best rates in MiB/s."""
    lines = ["IOR-4.1.0+dev: MPI Coordinated Test of Parallel I/O", ""]
    lines += [f"Command line        : ior {options}", "Options: ", f"nodes               : {nodes}"]
    lines += ["tasks               : 8", f"xfersize            : {size}", "", "Results: ", ""]
    lines += [f"Max Write: {write} MiB/sec (1.00 MB/sec)"] if write else []
    lines += [f"Max Read:  {read} MiB/sec (1.00 MB/sec)"] if read else []
    return ("\n".join(lines) + "\n").encode()


def elbencho(*phases, command="", unit="MiB/s"):
    """Return elbencho's text with `(phase, first, last)` in its unit."""
    lines = ["ISO DATE: 2026-11-02T10:00:00+0000", f"COMMAND LINE: {command}"] if command else []
    lines += ["OPERATION   RESULT TYPE         FIRST DONE   LAST DONE"]
    lines += ["=========== ================    ==========   ========="]
    for phase, first, last in phases:
        lines += [f"{phase:<11} Elapsed time     :      4.201s      4.322s"]
        lines += [f"            IOPS             :{first:>12}{last:>12}"]
        lines += [f"            Throughput {unit} :{first:>12}{last:>12}"]
        lines += ["            Total MiB        :       65536       65536", "---"]
    return ("\n".join(lines) + "\n").encode()


def dlio(*, hosts=1, caching=False, **metric):
    """Return DLIO's summary with these metrics."""
    summary = {"num_accelerators": 4, "num_hosts": hosts, "potential_caching": caching}
    return json.dumps({**summary, "start": "2026-11-02T10:00:00.1", "metric": metric}).encode()


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


def p2p_test(
    matrix, *, access=None, buses=("1", "81"), two=None, disabled=None, old=False, reads=None
):
    """Return the text of p2pBandwidthLatencyTest with `matrix` in GB/s for P2P=Enabled, one way."""
    count = range(len(matrix))
    access = access or [[1] * len(matrix)] * len(matrix)

    def table(rows):
        head = "   D\\D" + "".join(f"{at:6d} " for at in count)
        lines = (f"{at:6d} " + "".join(f"{cell:6.2f} " for cell in rows[at]) for at in count)
        return "\n".join([head, *lines])

    lines = ["[P2P (Peer-to-Peer) GPU Bandwidth Latency Test]"]
    lines += [
        f"Device: {at}, NVIDIA Made Up, pciBusID: {bus}, pciDeviceID: 0, pciDomainID:0"
        for at, bus in enumerate(buses)
    ]
    lines += [
        f"Device={at} CAN{'' if access[at][to] else 'NOT'} Access Peer Device={to}"
        for at in count
        for to in count
        if at != to
    ]
    lines += ["", "P2P Connectivity Matrix", "     D\\D" + "".join(f"{at:6d}" for at in count)]
    lines += [f"{at:6d}\t" + "".join(f"{cell:6d}" for cell in access[at]) for at in count]
    if disabled:
        lines += ["Unidirectional P2P=Disabled Bandwidth Matrix (GB/s)", table(disabled)]
    writes = "" if old else "(P2P Writes) "
    lines += [f"Unidirectional P2P=Enabled Bandwidth {writes}Matrix (GB/s)", table(matrix)]
    if reads:
        lines += ["Unidirectional P2P=Enabled Bandwidth (P2P Reads) Matrix (GB/s)", table(reads)]
    if two:
        lines += ["Bidirectional P2P=Enabled Bandwidth Matrix (GB/s)", table(two)]
    lines += ["P2P=Disabled Latency Matrix (us)", "   GPU     0      1 ", "     0   2.10  12.83 "]
    return ("\n".join(lines) + "\n").encode()


def bandwidth_test(*runs, device=0, size=32_000_000, unit="GB/s", csv=False, count=1):
    """Return the text of bandwidthTest with `(way, memory, rate)` runs on one GPU."""
    lines = ["[CUDA Bandwidth Test] - Starting...", "Running on...", ""]
    lines += [f" Device {device}: NVIDIA Made Up", " Quick Mode", ""]
    short = {"Host to Device": "H2D", "Device to Host": "D2H", "Device to Device": "D2D"}
    for way, memory, rate in runs:
        if csv:
            pages = {"PAGEABLE": "-Paged", "PINNED": "-Pinned"}[memory] * (short[way] != "D2D")
            line = f"bandwidthTest-{short[way]}{pages}, Bandwidth = {rate:.1f} {unit}, "
            lines.append(f"{line}Time = 0.00263 s, Size = {size} bytes, NumDevsUsed = {count}")
            continue
        lines += [f" {way} Bandwidth, {count} Device(s)", f" {memory} Memory Transfers"]
        lines += [f"   Transfer Size (Bytes)\tBandwidth({unit})", f"   {size}\t\t\t{rate:.1f}", ""]
    return ("\n".join([*lines, "Result = PASS"]) + "\n").encode()


def rocm_bandwidth_test(one_way, both_ways=(), *, gpus=("81:0.0", "01:0.0"), cpus=2):
    """Return the text of rocm-bandwidth-test with matrices over `cpus` CPUs, then the GPUs."""
    blank = " " * 10
    lines = ["........", f"{blank}RocmBandwidthTest Version: 2.6.0", ""]
    lines += [f"{blank}Device: {at},  AMD Made Up 64-Core" for at in range(cpus)]
    lines += [
        f"{blank}Device: {cpus + at},  Made Up,  GPU-XX,  {bdf}" for at, bdf in enumerate(gpus)
    ]
    count = range(cpus + len(gpus))
    head = f"{blank}{'D/D':<10}" + "".join(f"{at:<12}" for at in count)
    lines += ["", f"{blank}Inter-Device Access", "", head, ""]
    lines += [f"{blank}{at:<10}" + "".join(f"{1:<12}" for _ in count) for at in count]
    for ways, matrix in (("Uni", one_way), ("Bi", both_ways)):
        if matrix:
            lines += ["", f"{blank}{ways}directional copy peak bandwidth GB/s", "", head, ""]
            for at, row in enumerate(matrix):
                cells = "".join(f"{cell if cell == 'N/A' else f'{cell:.3f}':<12}" for cell in row)
                lines += [f"{blank}{at:<10}{cells}", ""]
    return ("\n".join(lines) + "\n").encode()


def transferbench(one_way, both_ways=(), *, cpus=2, mover="DMA", csv=False, remote=False):
    """Return the text of TransferBench's p2p with matrices over `cpus` CPUs, then the GPUs.

    Rows of `both_ways` are of a way there, one back, and their sum.
    """
    count = len(one_way[0])
    names = [f"CPU {at:02}" for at in range(cpus)] + [f"GPU {at:02}" for at in range(count - cpus)]
    comma = "," if csv else ""
    read, write = ("Remote", "Local") if remote else ("Local", "Remote")
    corner = "SRC\\EXE+DST" if remote else "SRC+EXE\\DST"
    lines = ["TransferBench v1.62.00", " GPU 00 |    -   | 0000:81:00.0 |  256 | 0 | 1,2"]
    lines += [" GPU 01 | XGMI-1 | 0000:01:00.0 |  256 | 1 | 1,2", "Bytes Per Direction 268435456"]
    for ways, rows, arrows in (("Uni", one_way, ["->"]), ("Bi", both_ways, ["->", "<-", "<->"])):
        if not rows:
            continue
        title = f"{ways}directional copy peak bandwidth GB/s [{read} read / {write} write]"
        head = "".join(f"{name:>10}{comma}" for name in names)
        lines += [f"{title} (GPU-Executor: {mover})", f"{corner:>12}{comma}{head}"]
        for at, row in enumerate(rows):
            cells = "".join(
                f"{cell if cell == 'N/A' else f'{cell:.2f}':>10}{comma}" for cell in row
            )
            arrow = arrows[at % len(arrows)]
            lines.append(f"  {names[at // len(arrows)]} {arrow:>3}{comma}{cells}")
        lines += [
            f"{' ' * 27}CPU->CPU  CPU->GPU",
            f"Averages (During {ways}Dir):    103.69     44.91",
        ]
    return ("\n".join(lines) + "\n").encode()


def ragged(data):
    """Return a text as people paste it: quoted, coloured, Windows' line ends, a prompt above."""
    lines = data.decode().expandtabs(1).splitlines()
    quoted = ["$ ./a.out | tee log", "```", *(f"\x1b[0;32m{line}\x1b[0m" for line in lines), "```"]
    return "\r\n".join(f"> {line}" for line in quoted).encode()


# --- JSON and CSV of those that print text too --------------------------------------------------


def perftest_json(rate, *, size=65536, gbits=True, test="RDMA_Write_BW_Test", client=True, **info):
    """Return perftest's JSON with a rate in GB/s, which it writes in Gb/sec or MB/sec."""
    told = {
        "test": test,
        "Device": "mlx5_0",
        "Link_type": "IB",
        **({"TX_depth": 128} if client else {}),
    }
    average = round(rate * 8, 2) if gbits else round(rate * 1e9 / 2**20, 2)
    results = {"MsgSize": size, "n_iterations": 5000, "BW_peak": 0.0, "BW_average": average}
    results["MsgRate"] = round(rate * 1e9 / size / 1e6, 6)
    return json.dumps({"test_info": told | info, "results": results}, indent=1).encode()


def ior_json(*, write=None, read=5600.0, options="-r -t 1m", nodes=1, size="1 MiB", best=True):
    """Return IOR's JSON with its best rates in MiB/s, or with those of each repetition alone."""
    rates = {way: rate for way, rate in (("write", write), ("read", read)) if rate}
    test = {
        "TestID": 0,
        "Options": {"api": "POSIX", "nodes": nodes, "tasks": 8, "xfersize": size},
        "Results": [[{"access": way, "bwMiB": rate}] for way, rate in rates.items()],
    }
    if best:
        test["max"] = {f"{way}MiB": rate for way, rate in rates.items()}
    root = {"Version": "4.1.0", "Command line": f"ior -O summaryFormat=JSON {options}"}
    return json.dumps({**root, "tests": [test]}, indent=1).encode()


def elbencho_csv(*phases, command="", mixed=""):
    """Return elbencho's CSV with `(phase, last)` in MiB/s."""
    columns = "ISO date,threads,operation,time ms [first],time ms [last],MiB/s [first],MiB/s [last]"
    lines = [f"{columns},rwmix read MiB/s [last],version,command"]
    lines += [
        f"2026-11-02T10:00:00.000+0000,4,{phase},4201,4322,1,{last},{mixed},3.0,{command}"
        for phase, last in phases
    ]
    return ("\n".join(lines) + "\n").encode()


def elbencho_json(*phases, command="", **of_last):
    """Return elbencho's JSON lines with `(phase, last)` in MiB/s, its values as texts."""
    document = {"iso_start_date": "2026-11-02T10:00:00.000+0000", "config": {"command": command}}
    lines = [
        document | {"phase_type": phase, "last_done": {"bytes/s": str(last << 20)} | of_last}
        for phase, last in phases
    ]
    return "".join(f"{json.dumps(line)}\n" for line in lines).encode()


def nccl_json(busbw, *, program="all_reduce_perf", ranks=8, factor=1.75, root=-1):
    """Return nccl-tests' JSON of one process with so many GPUs, the rate in GB/s."""
    side = {"time": 1.0, "alg_bw": busbw / factor, "bus_bw": busbw, "nwrong": 0.0}
    device = {"rank": 0, "group": 0, "hostname": "box", "device": 0, "device_hex": "0000:10:00"}
    row = {"size": 1 << 30, "count": 1 << 28, "type": "float", "redop": "sum", "root": f"{root:6}"}
    document = {
        "version": 1,
        "args": [f"./build/{program}", "-J", "run.json"],
        "config": {"nthreads": 1, "ngpus": ranks, "devices": [device]},
        "results": [row | {"out_of_place": side, "in_place": None}],
    }
    return json.dumps(document, indent=1).encode()
