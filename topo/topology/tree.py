"""The PCIe tree: how each device hangs on its host, and where two of them meet."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from collections.abc import Iterator

    from topo.description.description import Device
    from topo.topology.topology import Step, Topology


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
        self._attachments: dict[str, tuple[Attachment, ...]] = {}

    def attachments(self, name: str) -> tuple[Attachment, ...]:
        """Return how `name` hangs on its hosts: a card cabled to two sockets has two."""
        if name not in self._attachments:
            self._attachments[name] = tuple(self._climb(name))
        return self._attachments[name]

    def attachment(self, name: str) -> Attachment | None:
        """Return how `name` hangs on its (first) host, `None` when it does not."""
        return next(iter(self.attachments(name)), None)

    def meeting(self, one: str, other: str) -> str:
        """Return the device below the root where two devices meet, ``""`` when none is.

        It is one of the two where the other hangs on it.
        """
        here, there = self.attachment(one), self.attachment(other)
        if here is None or there is None:
            return ""
        return met((one, *here.bridges), (other, *there.bridges))

    def _climb(self, name: str) -> Iterator[Attachment]:
        if self._topology[name].kind in _HOSTS:
            yield self._above(name, (), "")
            return
        for first in self._upward(name, {name}):
            step, bridges, seen = first, list[str](), {name}
            while self._topology[step.target].kind not in _HOSTS:
                bridges.append(step.target)
                seen.add(step.target)
                step = self._upward(step.target, seen)[0]
            yield self._above(step.target, tuple(bridges), _node(step))

    def _above(self, root: str, bridges: tuple[str, ...], node: str) -> Attachment:
        """Return the attachment with the CPU that a root complex belongs to."""
        if self._topology[root].kind == "root-complex":
            for step in self._topology.steps[root]:
                if self._topology[step.target].kind == "cpu":
                    return Attachment(bridges, root, step.target, _node(step))
        return Attachment(bridges, root, root, node)

    def _upward(self, name: str, seen: set[str]) -> list[Step]:
        """Return the steps towards a host: to hosts if there are, else to what leads there."""
        ways = [
            step
            for step in self._topology.steps[name]
            if step.link.layer in ("host", "memory") and step.target not in seen
        ]
        hosts = [step for step in ways if self._topology[step.target].kind in _HOSTS]
        return hosts or [step for step in ways if self._leads_up(step.target, {*seen, name})]

    def _leads_up(self, name: str, seen: set[str]) -> bool:
        """Whether a host can be reached through `name` without going back."""
        if self._topology[name].kind in _HOSTS:
            return True
        return _forwards(self._topology[name]) and any(
            self._leads_up(step.target, {*seen, name})
            for step in self._topology.steps[name]
            if step.link.layer == "host" and step.target not in seen
        )


def met(here: tuple[str, ...], there: tuple[str, ...]) -> str:
    """Return the first name on the way up from one device that is above the other, or ``""``."""
    return next((name for name in here if name in there), "")


def _forwards(device: Device) -> bool:
    return device.kind in ("pcie-switch", "hba") or bool(device.part.flag("bridge"))


def _node(step: Step) -> str:
    return step.entry_side if step.entry_side.startswith("numa") else ""
