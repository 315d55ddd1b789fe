"""100,000 GPUs: 12,500 used servers on a fabric of three levels, and a cluster of unlike servers.

``python -m bench.large_cluster`` asks topo from a cold start and prints seconds of the processor,
how many times ``python -c pass`` that is, and the peak of memory. Where servers are alike, cost
grows with their kinds; where each differs, it should grow with their number: two sizes show by how
much. ``python -m bench.large_cluster 1`` asks each once, for a machine that is busy.
"""

from __future__ import annotations

import os
import subprocess
import sys
import tempfile
from pathlib import Path

__all__ = ["alike", "by_rule", "main", "unlike"]

_GROUPS = 50  # of ten leaves a rail, each with 20 spines
_RAILS = {"a": "slot1/p1", "b": "slot1/p2", "c": "slot2/p1", "d": "slot2/p2"}
_APPLIANCE = "{part: nvme-of-target, ports: 4, read: 90 GB/s, write: 60 GB/s}"


def alike(servers: int = 12_500, appliances: int = 500) -> str:
    """Return the YAML of used servers on leaves, spines and cores; appliances on the cores."""
    leaves = 10 * _GROUPS
    lines = ["topo: 1", f"name: alike-{servers}", "devices:"]
    lines += [f"  node[0-{servers - 1}]: {{use: dgx-h100}}"]
    lines += [f"  leaf-{rail}[0-{leaves - 1}]: quantum-2" for rail in _RAILS]
    lines += [
        f"  spine[0-{20 * _GROUPS - 1}]: quantum-2",
        "  core[0-99]: {part: quantum-2, ports: 128x infiniband ndr}",
        f"  appliance[0-{appliances - 1}]: {_APPLIANCE}",
        "links:",
    ]
    lines += [
        f"  - node.{port} -- leaf-{rail} in blocks: infiniband ndr" for rail, port in _RAILS.items()
    ]
    for group in range(_GROUPS):
        spines = f"spine[{20 * group}-{20 * group + 19}]"
        lines += [
            f"  - leaf-{rail}[{10 * group}-{10 * group + 9}] -- {spines} all to all: infiniband ndr"
            for rail in _RAILS
        ]
        lines += [f"  - {spines} -- core in blocks: infiniband ndr"]
    lines += ["  - appliance -- core in blocks: 2x infiniband ndr"]
    lines += ["workloads:", "  load: {read: 80 GB each, from: appliance, to: node.gpu}", ""]
    return "\n".join(lines)


def by_rule(servers: int = 12_500, appliances: int = 512) -> str:
    """Return the YAML of used servers on a fabric by rule of three levels, appliances on cores."""
    fabric = "{kind: rail-optimized, of: node, cards: 'slot[1-2]/p[1-2]', levels: 3, "
    fabric += "switch: quantum-2, core-switch: core, cable: infiniband ndr}"
    lines = [
        "topo: 1",
        f"name: by-rule-{servers}",
        "parts: {core: {like: quantum-2, ports: 128x infiniband ndr, source: bench}}",
        "devices:",
        f"  node[0-{servers - 1}]: {{use: dgx-h100}}",
        f"  appliance[0-{appliances - 1}]: {_APPLIANCE}",
        f"fabrics:\n  net: {fabric}",
        "links:\n  - appliance -- net-core in blocks: 4x infiniband ndr",
        "workloads:\n  load: {read: 80 GB each, from: appliance, to: node.gpu}",
        "",
    ]
    return "\n".join(lines)


def unlike(servers: int) -> str:
    """Return the YAML of servers on one leaf each eight, no two with the same memory."""
    lines = ["topo: 1", f"name: unlike-{servers}", "devices:"]
    lines += [
        f"  node{number}: {{use: dgx-h100, set: {{ram.bus: {200 + number} GB/s}}}}"
        for number in range(servers)
    ]
    lines += [
        f"  leaf[0-{servers // 8 - 1}]: quantum-2",
        f"  appliance: {{part: nvme-of-target, ports: {servers // 8}, read: 90 GB/s}}",
        "links:",
        "  - node.slot1 -- leaf in blocks: infiniband ndr",
        "  - appliance -- leaf all to all: infiniband ndr",
        "workloads:",
        "  load: {read: 80 GB each, from: appliance, to: node.gpu}",
        "",
    ]
    return "\n".join(lines)


def main() -> int:
    """Print what each question costs."""
    times = int(sys.argv[1]) if len(sys.argv) > 1 else 3
    with tempfile.TemporaryDirectory() as folder:
        base, _ = _cost([sys.executable, "-c", "pass"], 5)

        def ask(text: str, name: str, *words: str) -> float:
            file = Path(folder) / f"{name}.yaml"
            file.write_text(text, encoding="utf-8")
            verb, *others = words
            took, memory = _cost([sys.executable, "-m", "topo", verb, str(file), *others], times)
            shown = f"topo {verb} {name} {' '.join(others)}".replace(folder, "").rstrip()
            sys.stdout.write(
                f"{shown:<58} {took:6.2f} s {took / base:7.1f} x pass {memory / 1e6:6.0f} MB\n"
            )
            return took

        text = alike()
        ask(text, "alike", "compare", "--via", "direct")
        ask(text, "alike", "bottleneck", "--via", "direct")
        ask(text, "alike", "failures", "--via", "direct")
        ask(text, "alike", "draw", "--via", "direct", "-o", f"{folder}/alike.svg")
        ask(by_rule(), "by-rule", "compare", "--via", "direct")
        ask(by_rule(), "by-rule", "failures", "--via", "direct")
        ask(by_rule(), "by-rule", "draw", "--via", "direct", "-o", f"{folder}/by-rule.svg")
        empty, _ = _cost([sys.executable, "-m", "topo", "check", "gds-textbook"], times)
        small, large = (
            ask(unlike(servers), f"unlike-{servers}", "compare", "--via", "direct") - empty
            for servers in (256, 512)
        )
        sys.stdout.write(f"twice as many servers that all differ: {large / small:.2f} times\n")
    return 0


def _cost(command: list[str], times: int) -> tuple[float, int]:
    """Return the least processor time of a whole process, and the peak of resident bytes."""
    environment = {k: v for k, v in os.environ.items() if k != "PYTHONDONTWRITEBYTECODE"}
    costs = []
    for _ in range(times):
        process = subprocess.Popen(
            command, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL, env=environment
        )
        _, status, usage = os.wait4(process.pid, 0)
        process.returncode = os.waitstatus_to_exitcode(status)
        if process.returncode:
            raise subprocess.CalledProcessError(process.returncode, command)
        costs.append((usage.ru_utime + usage.ru_stime, usage.ru_maxrss * 1024))
    return min(seconds for seconds, _ in costs), max(memory for _, memory in costs)


if __name__ == "__main__":
    sys.exit(main())
