"""The PCIe tree: how each device hangs on its host, and where two of them meet."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from topo.topology.model import Device, Step, Topology

__all__ = ["Attachment", "Tree"]

_HOSTS = ("cpu", "root-complex")


@dataclass(frozen=True, slots=True)
class Attachment:
    """How a device hangs on its host.

    Parameters
    ----------
    bridges
        Switches and cards with a switch between the device and its root, from the device up.
    root
        The first host: a CPU, or a root complex that several links share.
    socket
        The CPU that the root complex belongs to; the root itself where the file names no CPU.
    node
        The NUMA node of the socket by its name (``numa3``), empty for the socket as a whole.
    """

    bridges: tuple[str, ...]
    root: str
    socket: str
    node: str = ""


class Tree:
    """The PCIe trees of one topology; each device is climbed from once."""

    def __init__(self, topology: Topology) -> None:
        self._topology = topology
        self._attachments: dict[str, Attachment | None] = {}

    def attachment(self, name: str) -> Attachment | None:
        """Return how the device called `name` hangs on its host, `None` when it does not."""
        if name not in self._attachments:
            self._attachments[name] = self._climb(name)
        return self._attachments[name]

    def meeting(self, one: str, other: str) -> str:
        """Return the device below the root where two devices meet, ``""`` when none is.

        It is one of the two where the other hangs on it.
        """
        here, there = self.attachment(one), self.attachment(other)
        if here is None or there is None:
            return ""
        above = (other, *there.bridges)
        return next((name for name in (one, *here.bridges) if name in above), "")

    def _climb(self, name: str) -> Attachment | None:
        if self._topology[name].kind in _HOSTS:
            return self._above(name, (), "")
        bridges: list[str] = []
        seen = {name}
        while True:
            step = self._upward((name, *bridges)[-1], seen)
            if step is None:
                return None
            if self._topology[step.target].kind in _HOSTS:
                return self._above(step.target, tuple(bridges), _node(step))
            bridges.append(step.target)
            seen.add(step.target)

    def _above(self, root: str, bridges: tuple[str, ...], node: str) -> Attachment:
        """Return the attachment with the CPU that a root complex belongs to."""
        if self._topology[root].kind == "root-complex":
            for step in self._topology.steps[root]:
                if self._topology[step.target].kind == "cpu":
                    return Attachment(bridges, root, step.target, _node(step))
        return Attachment(bridges, root, root, node)

    def _upward(self, name: str, seen: set[str]) -> Step | None:
        """Return the step towards the host: to a host if there is one, else to what leads there."""
        ways = [
            step
            for step in self._topology.steps[name]
            if step.link.layer in ("host", "memory") and step.target not in seen
        ]
        for step in ways:
            if self._topology[step.target].kind in _HOSTS:
                return step
        for step in ways:
            if self._leads_up(step.target, {*seen, name}):
                return step
        return None

    def _leads_up(self, name: str, seen: set[str]) -> bool:
        """Whether a host can be reached through `name` without going back."""
        if self._topology[name].kind in _HOSTS:
            return True
        return _forwards(self._topology[name]) and any(
            self._leads_up(step.target, {*seen, name})
            for step in self._topology.steps[name]
            if step.link.layer == "host" and step.target not in seen
        )


def _forwards(device: Device) -> bool:
    return device.kind in ("pcie-switch", "hba") or bool(device.part.flag("bridge"))


def _node(step: Step) -> str:
    return step.entry_side if step.entry_side.startswith("numa") else ""
