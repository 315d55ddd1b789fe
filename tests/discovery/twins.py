"""Small foreign files, written for these tests in the image of real ones."""

from __future__ import annotations

INTEL_SPR = 'arch="x86_64" vendor="GenuineIntel" familyid="6" modelid="143"'
INTEL_SKX = 'arch="x86_64" vendor="GenuineIntel" familyid="6" modelid="85"'
AMD = 'arch="x86_64" vendor="AuthenticAMD" familyid="23" modelid="49"'


def system(*cpus: str, version: str = "1") -> bytes:
    return f'<system version="{version}">{"".join(cpus)}</system>'.encode()


def cpu(numa: int, *inside: str, who: str = INTEL_SPR) -> str:
    return f'<cpu numaid="{numa}" affinity="0000ffff" {who}>{"".join(inside)}</cpu>'


def pci(busid: str, code: str, *inside: str, speed: str = "32.0 GT/s PCIe", width: int = 16) -> str:
    attributes = f'busid="{busid}" class="{code}" link_speed="{speed}" link_width="{width}"'
    return f"<pci {attributes}>{''.join(inside)}</pci>"


def switch(busid: str, *inside: str, **link) -> str:
    return pci(busid, "0x060400", *inside, **link)


def gpu(busid: str, *inside: str, dev: int = 0, sm: int = 90, **link) -> str:
    element = f'<gpu dev="{dev}" sm="{sm}" rank="{dev}" gdr="1">{"".join(inside)}</gpu>'
    return pci(busid, "0x030200", element, **link)


def card(busid: str, *names: str, speed_mbps: int = 400000, **link) -> str:
    nets = "".join(
        f'<net name="{name}" dev="{at}" speed="{speed_mbps}" port="{at + 1}" gdr="1"/>'
        for at, name in enumerate(names)
    )
    return pci(busid, "0x020700", f"<nic>{nets}</nic>" if names else "", **link)


# Two sockets, each a switch with one GPU and one card; NVLinks to two switches.
def two_sockets() -> bytes:
    links = (
        '<nvlink target="0000:c0:00.0" count="9" tclass="0x068000"/>'
        '<nvlink target="0000:c1:00.0" count="9" tclass="0x068000"/>'
    )
    return system(
        *(
            cpu(
                at,
                switch(
                    f"0000:{at}0:00.0",
                    gpu(f"0000:{at}1:00.0", links, dev=at),
                    card(f"0000:{at}2:00.0", f"mlx5_{at}"),
                ),
            )
            for at in (1, 2)
        )
    )


# A virtual machine with eight switches of its own, four a NUMA node: GPU n and card n on each.
def eight_switches() -> bytes:
    def one(at: int) -> str:
        return switch(
            f"ffff:ff:{at:02x}.0", pci(f"{at:04x}:00:00.0", "0x030200"), card(f"01{at:02x}:00:00.0")
        )

    nodes = [cpu(node, *(one(4 * node + at) for at in range(1, 5))) for node in (0, 1)]
    return system(*nodes)


MATRIX = """\
\tGPU0\tGPU1\tNIC0\tNIC1\tCPU Affinity\tNUMA Affinity\tGPU NUMA ID
GPU0\t X \tNV4\tPIX\tSYS\t0-15\t0\t\tN/A
GPU1\tNV4\t X \tSYS\tPHB\t16-31\t1\t\tN/A
NIC0\tPIX\tSYS\t X \tSYS\t\t
NIC1\tSYS\tPHB\tSYS\t X \t\t

Legend:

  X    = Self
  SYS  = Connection traversing PCIe as well as the SMP interconnect between NUMA nodes

NIC Legend:

  NIC0: mlx5_0
  NIC1: mlx5_1
"""
