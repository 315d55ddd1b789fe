"""Random machines that shrink to something a person can draw: sockets, switches, cards, GPUs.

A `Sketch` is a machine before names and order: `text` writes it in a given order, with names from
a table, so that a law can say that neither matters.
"""

from __future__ import annotations

from dataclasses import dataclass, field
from itertools import pairwise
from typing import TYPE_CHECKING

from hypothesis import strategies as st

from tests.machines import PARTS

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

_SLOTS = ("pcie 5 x16", "pcie 5 x8", "pcie 4 x16")
_CABLES = ("infiniband ndr", "infiniband hdr")


@dataclass
class Sketch:
    """Devices with their parts, links with their cables, who reads from whom."""

    devices: dict[str, str] = field(default_factory=dict)
    links: list[tuple[str, str, str]] = field(default_factory=list)

    def add(self, name: str, part: str) -> str:
        self.devices[name] = part
        return name

    def names(self, stem: str) -> list[str]:
        return [name for name in self.devices if name.rstrip("0123456789") == stem]

    def text(
        self,
        *,
        called: Mapping[str, str] | None = None,
        devices: Sequence[str] | None = None,
        links: Sequence[int] | None = None,
        turned: bool = False,
    ) -> str:
        """Write the machine, in another order and with other names where given."""
        new = called or {}
        lines = [PARTS, "devices:"]
        lines += [
            f"  {new.get(name, name)}: {self.devices[name]}" for name in devices or self.devices
        ]
        lines.append("links:")
        for at in links or range(len(self.links)):
            a, b, cable = self.links[at]
            a, b = new.get(a, a), new.get(b, b)
            lines.append(f"  - {b} -- {a}: {cable}" if turned else f"  - {a} -- {b}: {cable}")
        ends = [[new.get(name, name) for name in self.names(stem)] for stem in ("storage", "gpu")]
        storages, gpus = (f"[{', '.join(names)}]" for names in ends)
        lines += [
            "workloads:",
            f"  load: {{read: 100 GB, from: {storages}, to: {gpus}}}",
            f"  save: {{write: 100 GB, from: {gpus}, to: {storages}}}",
        ]
        return "\n".join(lines) + "\n"


@st.composite
def sketches(draw: st.DrawFn, *, even: bool = False, capped: bool = False) -> Sketch:
    """Draw a machine whose storage, cards, memory and GPUs all reach each other.

    With `even`, storage writes as fast as it reads; with `capped`, links between sockets can have
    peer-to-peer caps, so that GPUs finish apart.
    """
    socket_links = ["upi 16 GT/s", "2x upi 16 GT/s"]
    if capped:
        socket_links += [
            f"{{medium: upi 16 GT/s, p2p: {{posted: {posted} GB/s, non-posted: 2 GB/s}}}}"
            for posted in (0.5, 3, 7)
        ]
    made = Sketch()
    sockets = [made.add(f"cpu{n}", "socket") for n in range(draw(st.integers(1, 3)))]
    made.links += [
        (one, other, draw(st.sampled_from(socket_links))) for one, other in pairwise(sockets)
    ]
    homes = list(sockets)
    for n in range(draw(st.integers(0, 3))):
        acs = draw(st.sampled_from(["on", "off"]))
        switch = made.add(f"sw{n}", f"{{part: pcie-switch-gen5, acs: {acs}}}")
        made.links.append((switch, draw(st.sampled_from(homes)), draw(st.sampled_from(_SLOTS))))
        homes.append(switch)
    # A memory on the first socket always, on the others sometimes.
    for n, socket in enumerate(sockets):
        if n == 0 or draw(st.booleans()):
            bus = draw(st.sampled_from([60, 150, 200]))
            memory = made.add(f"ram{n}", f"{{part: dram, bus: {bus} GB/s}}")
            made.links.append((memory, socket, "memory-bus"))
    for stem, part, most in (("nic", "{part: card, ports: 4x 400 Gb/s}", 3), ("gpu", "accel", 4)):
        for n in range(draw(st.integers(1, most))):
            device = made.add(f"{stem}{n}", part)
            made.links.append((device, draw(st.sampled_from(homes)), draw(st.sampled_from(_SLOTS))))
    _add_storage(draw, made, even=even)
    return made


def _add_storage(draw: st.DrawFn, made: Sketch, *, even: bool) -> None:
    """Cable each storage to the cards, directly or by one switch; every card has a cable."""
    cards = made.names("nic")
    by_switch = draw(st.booleans())
    if by_switch:
        made.add("leaf0", "quantum-2")
        made.links += [(card, "leaf0", draw(st.sampled_from(_CABLES))) for card in cards]
    for n in range(draw(st.integers(1, 2))):
        read = draw(st.sampled_from([30, 90]))
        write = read if even else draw(st.sampled_from([20, 60]))
        storage = made.add(
            f"storage{n}", f"{{part: target, read: {read} GB/s, write: {write} GB/s}}"
        )
        reached = ["leaf0"] if by_switch else cards
        made.links += [(storage, at, draw(st.sampled_from(_CABLES))) for at in reached]
