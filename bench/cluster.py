"""A storage cluster by script: servers of eight GPUs and two storage cards on a fabric of leaves.

``python -m bench.cluster`` writes the YAML of 125 servers (1,000 GPUs); ``--time`` asks topo about
it from a cold start and prints what that takes beside ``python -c pass``.
"""

from __future__ import annotations

import argparse
import os
import subprocess
import sys
import tempfile
import time
from pathlib import Path

__all__ = ["cluster", "main"]

_SERVERS = 125
_LEAVES = 5
_APPLIANCES = 10


def cluster(servers: int = _SERVERS, leaves: int = _LEAVES, appliances: int = _APPLIANCES) -> str:
    """Return the YAML of a cluster: every server's cards on one leaf, every appliance on all."""
    last = servers - 1
    return f"""topo: 1
name: cluster-{servers}
title: {servers} servers of eight GPUs on a shared storage fabric
settings: {{iommu: off}}
devices:
  appliance[0-{appliances - 1}]: {{part: nvme-of-target, read: 90 GB/s, write: 60 GB/s}}
  leaf[0-{leaves - 1}]: quantum-2
  slot[0-{2 * last + 1}]: connectx-7
  cpu[0-{2 * last + 1}]: xeon-8480c
  ram[0-{2 * last + 1}]: {{part: ddr5-4800, channels: 8, dimms-per-channel: 2}}
  gpu[0-{8 * last + 7}]: h100-sxm-80gb
links:
  - appliance -- leaf all to all: infiniband ndr
  - slot -- leaf in blocks: infiniband ndr
  - slot -- cpu: pcie 5 x16
  - ram -- cpu: memory-bus
  - gpu -- cpu in blocks: pcie 5 x16
workloads:
  load: {{read: 80 GB each, from: appliance, to: gpu}}
"""


def main(arguments: list[str] | None = None) -> int:
    """Write the YAML to standard output, or time the questions about it."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--servers", type=int, default=_SERVERS)
    parser.add_argument("--time", action="store_true")
    said = parser.parse_args(arguments)
    if not said.time:
        sys.stdout.write(cluster(said.servers))
        return 0
    with tempfile.TemporaryDirectory() as folder:
        file = Path(folder) / "cluster.yaml"
        file.write_text(cluster(said.servers), encoding="utf-8")
        base = _seconds([sys.executable, "-c", "pass"])
        for words in (
            ["check", str(file)],
            ["compare", str(file), "--via", "direct", "--json"],
            ["compare", str(file), "--json"],
            ["bottleneck", str(file), "--json"],
        ):
            took = _seconds([sys.executable, "-m", "topo", *words])
            shown = " ".join(words).replace(str(file), "cluster.yaml")
            sys.stdout.write(f"topo {shown:<45} {took:6.2f} s  {took / base:6.1f} x pass\n")
    return 0


def _seconds(command: list[str]) -> float:
    """Return the least of three whole-process times, with bytecode kept between them."""
    environment = {k: v for k, v in os.environ.items() if k != "PYTHONDONTWRITEBYTECODE"}
    times = []
    for _ in range(3):
        start = time.perf_counter()
        subprocess.run(command, check=True, stdout=subprocess.DEVNULL, env=environment)
        times.append(time.perf_counter() - start)
    return min(times)


if __name__ == "__main__":
    sys.exit(main())
