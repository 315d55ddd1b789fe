"""Tiny machines with round figures, and twins of real ones that topo does not ship.

Each is a text, so that a test can show what it changes; `built` makes a topology of it.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from topo.description.loading import load, loads
from topo.topology.build import build_topology
from topo.topology.topology import Topology

if TYPE_CHECKING:
    from collections.abc import Mapping


# Built-in machines of unlike shapes, for tests that take seconds of each; other tests take all.
UNLIKE = (
    *("gds-textbook", "gds-loses", "kv-cache", "workstation-4gpu", "l40s-two-switches", "pod-32"),
    *("dgx-h100", "dgx-a100", "gb200-tray", "mi300x-8", "aws-p5", "openflex-data24"),
)


def built(text: str, changes: Mapping[str, str] | None = None) -> Topology:
    return build_topology(loads(text, overrides=changes))


def uncapped(text: str) -> str:
    """Return the text of a machine of which nobody knows what passes between root complexes."""
    return text.replace(CAPS, "")


def shipped(name: str, changes: Mapping[str, str] | None = None) -> Topology:
    return build_topology(load(name, overrides=changes))


# More than any machine here asks of a way between root complexes.
CAPS = "p2p: {posted: 1000 GB/s, non-posted: 1000 GB/s}"

# Parts of which every figure is round and stated, so that no result depends on the catalogue.
PARTS = f"""
topo: 1
name: tiny
settings: {{iommu: off}}
parts:
  target: {{kind: storage, read: 100 GB/s, write: 80 GB/s, source: test}}
  card:   {{kind: nic, pcie: 5 x16, ports: 1x 400 Gb/s, chip: 400 Gb/s, functions: 1, source: test}}
  socket:
    {{kind: cpu, pcie: 5, core-copy: 10 GB/s, forwards-p2p: yes, architecture: x86, source: test,
     {CAPS}}}
  dram:   {{kind: memory, bus: 200 GB/s, source: test}}
  accel:
    {{kind: gpu, pcie: 5 x16, hbm: 3000 GB/s, fabric: 18x nvlink 4, p2p: yes, source: test}}
  drive:  {{kind: nvme, pcie: 4 x4, read: 7 GB/s, write: 5 GB/s, source: test}}
"""

ONE_SOCKET = (
    PARTS
    + """
devices:
  storage: target
  nic0: card
  cpu0: socket
  ram0: dram
  gpu0: accel
links:
  - storage -- nic0: infiniband ndr
  - nic0 -- cpu0: pcie 5 x16
  - ram0 -- cpu0: memory-bus
  - gpu0 -- cpu0: pcie 5 x16
workloads:
  load: {read: 50 GB, from: storage, to: gpu0}
  save: {write: 50 GB, from: gpu0, to: storage}
"""
)

# The card on cpu0; a GPU on either socket; 32 GB/s between the sockets.
TWO_SOCKETS = (
    PARTS
    + """
devices:
  storage: target
  nic0: card
  cpu[0-1]: socket
  ram[0-1]: dram
  gpu[0-1]: accel
links:
  - storage -- nic0: infiniband ndr
  - nic0 -- cpu0: pcie 5 x16
  - ram -- cpu: memory-bus
  - gpu -- cpu: pcie 5 x16
  - cpu0 -- cpu1: upi 16 GT/s
workloads:
  near: {read: 50 GB, from: storage, to: gpu0}
  far:  {read: 50 GB, from: storage, to: gpu1}
  back: {write: 50 GB, from: gpu1, to: storage}
"""
)

# One switch with one uplink; the card and two GPUs under it.
SWITCHED = (
    PARTS
    + """
devices:
  storage: target
  nic0: card
  cpu0: socket
  ram0: dram
  sw0: {part: pcie-switch-gen5, acs: off}
  gpu[0-1]: accel
links:
  - storage -- nic0: infiniband ndr
  - sw0 -- cpu0: pcie 5 x16
  - ram0 -- cpu0: memory-bus
  - nic0 -- sw0: pcie 5 x16
  - gpu -- sw0: pcie 5 x16
workloads:
  load: {read: 100 GB, from: storage, to: gpu}
  save: {write: 100 GB, from: gpu, to: storage}
"""
)

# Two switches under one: gpu0 and the card below sw1, gpu1 below sw2.
CASCADED = (
    PARTS
    + """
devices:
  storage: target
  nic0: card
  cpu0: socket
  ram0: dram
  sw[0-2]: {part: pcie-switch-gen5, acs: off}
  gpu[0-1]: accel
links:
  - storage -- nic0: infiniband ndr
  - sw0 -- cpu0: pcie 5 x16
  - sw[1-2] -- sw0: pcie 5 x16
  - ram0 -- cpu0: memory-bus
  - nic0 -- sw1: pcie 5 x16
  - gpu -- sw[1-2]: pcie 5 x16
workloads:
  load: {read: 100 GB, from: storage, to: gpu}
"""
)

LOCAL_DRIVES = (
    PARTS
    + """
devices:
  cpu0: socket
  ram0: dram
  nvme[0-1]: drive
  gpu0: accel
links:
  - ram0 -- cpu0: memory-bus
  - nvme -- cpu0: pcie 4 x4
  - gpu0 -- cpu0: pcie 5 x16
workloads:
  load: {read: 28 GB, from: nvme, to: gpu0}
  save: {write: 20 GB, from: gpu0, to: nvme}
"""
)

# Four GPUs in all-to-all NVLink on two sockets; the only card on cpu0.
NVLINKED = (
    PARTS
    + """
devices:
  storage: target
  nic0: card
  cpu[0-1]: socket
  ram[0-1]: dram
  gpu[0-3]: accel
links:
  - storage -- nic0: infiniband ndr
  - nic0 -- cpu0: pcie 5 x16
  - ram -- cpu: memory-bus
  - gpu -- cpu in blocks: pcie 5 x16
  - cpu0 -- cpu1: upi 16 GT/s
  - gpu -- gpu all to all: 4x nvlink 4
workloads:
  load: {read: 80 GB, from: storage, to: gpu}
"""
)

# Two Grace CPUs, four GPUs on chip-to-chip links, no PCIe to the GPUs.
GRACE = """
topo: 1
name: grace-tray
settings: {iommu: on}
devices:
  storage:  {part: nvme-of-target, outside: yes}
  nvl72:    {part: nvswitch-5, outside: yes}
  cpu[0-1]: grace
  ram[0-1]: {part: lpddr5x-grace, size: 480 GB}
  gpu[0-3]: gb200
  nic[0-3]: connectx-7
  bf[0-1]:  bluefield-3-dual-port
links:
  - storage -- bf: 2x ethernet 200 Gb/s
  - ram -- cpu: memory-bus
  - cpu0 -- cpu1: nvlink-c2c unknown
  - gpu -- cpu in blocks: nvlink-c2c 225 GB/s
  - nic -- cpu in blocks: pcie 5 x16
  - bf -- cpu: pcie 5 x16
  - gpu -- nvl72: 18x nvlink 5
workloads:
  load: {read: 744 GB, from: storage, to: gpu}
"""

# Eight GPUs in a mesh of xGMI, one card a GPU, two of each under four switches.
MI300X = """
topo: 1
name: mi300x-mesh
devices:
  storage:  {part: nvme-of-target, outside: yes}
  cpu[0-1]: epyc-9654
  ram[0-1]: {part: ddr5-4800, channels: 12}
  sw[0-3]:  pcie-switch-gen5
  gpu[0-7]: mi300x
  nic[0-7]: connectx-7
links:
  - storage -- nic: infiniband ndr
  - ram -- cpu: memory-bus
  - cpu0 -- cpu1: 4x xgmi 32 GT/s
  - sw -- cpu in blocks: pcie 5 x16
  - gpu -- sw in blocks: pcie 5 x16
  - nic -- sw in blocks: pcie 5 x16
  - gpu -- gpu all to all: xgmi 64 GB/s
workloads:
  load: {read: 192 GB each, from: storage, to: gpu}
"""

# A storage server with eight drives, and one that reads. The target's cards: two of 400 Gb/s.
TARGET = (
    PARTS
    + """
devices:
  box: socket
  boxram: dram
  nvme[0-7]: drive
  boxnic[0-1]: card
  leaf: quantum-2
  cpu0: socket
  ram0: dram
  nic0: card
  gpu[0-1]: accel
links:
  - boxram -- box: memory-bus
  - nvme -- box: pcie 4 x4
  - boxnic -- box: pcie 5 x16
  - boxnic -- leaf: infiniband ndr
  - nic0 -- leaf: infiniband ndr
  - nic0 -- cpu0: pcie 5 x16
  - ram0 -- cpu0: memory-bus
  - gpu -- cpu0: pcie 5 x16
workloads:
  load: {read: 80 GB, from: nvme, to: gpu}
  past: {read: 80 GB, from: nvme, to: gpu, target: p2p}
  save: {write: 80 GB, from: gpu, to: nvme}
"""
)


def cluster(servers: int) -> str:
    """Return servers of eight GPUs and two storage cards on a two-level network, two appliances."""
    lines = [
        "topo: 1",
        "name: cluster",
        "devices:",
        "  appliance[0-1]: {part: nvme-of-target, read: 90 GB/s, write: 60 GB/s}",
        "  leaf[0-7]: quantum-2",
        "  spine[0-1]: quantum-2",
        f"  cpu[0-{2 * servers - 1}]: xeon-8480c",
        f"  ram[0-{2 * servers - 1}]: {{part: ddr5-4800, channels: 8}}",
        f"  slot[0-{2 * servers - 1}]: connectx-7-dual-port",
        f"  nic[0-{8 * servers - 1}]: connectx-7-bridge",
        f"  gpu[0-{8 * servers - 1}]: h100-sxm-80gb",
        "links:",
        "  - leaf -- spine all to all: 4x infiniband ndr",
        "  - appliance -- spine all to all: 2x infiniband ndr",
        "  - slot -- cpu: pcie 5 x16",
        "  - ram -- cpu: memory-bus",
        "  - nic -- cpu in blocks: pcie 5 x16",
        "  - gpu -- nic: pcie 5 x16",
    ]
    for server in range(servers):
        pair = f"{2 * server}-{2 * server + 1}"
        lines.append(f"  - cpu{2 * server} -- cpu{2 * server + 1}: 4x upi 16 GT/s")
        lines.append(f"  - slot[{pair}] -- leaf{8 * server // servers}: infiniband ndr")
    lines += ["workloads:", "  load: {read: 80 GB each, from: appliance, to: gpu}"]
    return "\n".join(lines) + "\n"
