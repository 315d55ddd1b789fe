"""Links between GPUs in an NCCL file: to each other, to switches, to a CPU's chip."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Final

from topo.catalogue.identities import nvlink_of
from topo.discovery.addresses import read_address
from topo.discovery.machine import DiscoveredCable, DiscoveredDevice
from topo.discovery.nccl_read import number
from topo.errors import Finding

if TYPE_CHECKING:
    from collections.abc import Iterable
    from xml.etree.ElementTree import Element


_SWITCH: Final = "nvswitch"
_MOST: Final = 4096


@dataclass(frozen=True, slots=True)
class _Port:
    """One ``nvlink`` or ``xgmi`` element: links of one GPU to one target."""

    gpu: str
    target: str
    count: int
    medium: str
    to_switch: bool


class Fabric:
    """Collects the links that GPUs say, and makes cables of them."""

    def __init__(self) -> None:
        self._gpus: dict[str, str] = {}
        self._ports: list[_Port] = []
        self._chips: list[DiscoveredCable] = []
        self._itself: list[str] = []
        self._hidden = False
        self._places: dict[str, int] = {}

    def gpu(self, device: DiscoveredDevice, element: Element, cpu: str) -> None:
        """Take what a ``gpu`` element says of its links; `cpu` is what it hangs below."""
        medium = _medium(device, element)
        self._gpus[device.id] = cpu
        for child in element:
            count = number(child, "count") or 1
            if child.tag in ("nvlink", "xgmi") and 0 < count <= _MOST:
                self._take(device.id, child, count, "xgmi" if child.tag == "xgmi" else medium)
            elif child.tag == "c2c" and 0 < count <= _MOST:
                rate = number(child, "bw")
                speed = f"{rate / 1000:.10g} GB/s" if rate and rate > 0 else "unknown"
                cable = f"{count}x nvlink-c2c {speed}" if count > 1 else f"nvlink-c2c {speed}"
                self._chips.append(DiscoveredCable(device.id, cpu, cable, "c2c bw, count"))

    def _take(self, gpu: str, element: Element, count: int, medium: str) -> None:
        text = element.get("target", "").strip()
        target = read_address(text)  # none where a virtual machine hides the far end
        if element.tag == "nvlink" and not target:
            self._hidden = True
        if target == gpu:
            self._itself.append(gpu)
            return
        code = element.get("tclass", "").lower().removeprefix("0x")
        if code.startswith("068001"):
            self._ports.append(_Port(gpu, self._gpus[gpu], count, medium, to_switch=False))
            return
        switch = element.tag == "nvlink" and (not target or code.startswith("068000"))
        self._ports.append(_Port(gpu, target, count, medium, to_switch=switch))

    # --- what comes of it -----------------------------------------------------------------------

    def switch(self) -> DiscoveredDevice | None:
        """Return all NVSwitches as one device, as NCCL takes them; `None` when there is none."""
        ports = [port for port in self._ports if port.to_switch]
        if not ports:
            return None
        targets = sorted({port.target for port in ports if port.target})
        return DiscoveredDevice(
            id=_SWITCH,
            kind="nvswitch",
            part="nvswitch-unknown",
            pci=tuple(targets),
            facts=(("chips", str(len(targets))),) if targets else (),
            said=f"{len(targets)} targets of nvlink" if targets else "its addresses are hidden",
        )

    def cables(self, order: Iterable[str]) -> tuple[DiscoveredCable, ...]:
        """Return the cables: between two GPUs once, although both say it.

        `order` are the GPUs as they are numbered.
        """
        self._places = {name: at for at, name in enumerate(order)}
        switched: dict[tuple[str, str], int] = {}
        paired: dict[tuple[str, str], dict[str, int]] = {}
        media: dict[tuple[str, str], str] = {}
        cpus = set(self._gpus.values())
        for port in self._ports:
            if port.to_switch:
                key = (port.gpu, _SWITCH)
                switched[key] = switched.get(key, 0) + port.count
            elif port.target in self._gpus or port.target in cpus:
                one, other = sorted((port.gpu, port.target), key=self._place)
                key = (one, other)
                sides = paired.setdefault(key, {})
                sides[port.gpu] = sides.get(port.gpu, 0) + port.count
            else:
                continue
            media.setdefault(key, port.medium)
        counts = {**{key: max(sides.values()) for key, sides in paired.items()}, **switched}
        ordered = sorted(counts, key=lambda key: (self._place(key[0]), self._place(key[1])))
        made = [DiscoveredCable(*key, _cable(counts[key], media[key])) for key in ordered]
        return (*made, *self._chips)

    def _place(self, here: str) -> int:
        return self._places.get(here, len(self._places))

    def findings(self) -> tuple[Finding, ...]:
        """Return what is odd about the links."""
        found = []
        if self._hidden:
            message = "the far ends of NVLinks are hidden, as a virtual machine does: NVSwitches"
            found.append(Finding("hidden-nvswitch", message, severity="note"))
        if self._itself:
            message = f"NVLinks of {self._itself[0]} lead to itself and were left out"
            found.append(Finding("self-link", message, severity="warning"))
        cpus = set(self._gpus.values())
        lost = [
            port.target
            for port in self._ports
            if not port.to_switch and port.target not in self._gpus and port.target not in cpus
        ]
        if lost:
            message = (
                f"links lead to {lost[0] or 'nowhere'}, a GPU that the file does not have; left out"
            )
            found.append(Finding("gpu-missing", message, severity="warning"))
        return (*found, *self._disagreements())

    def _disagreements(self) -> list[Finding]:
        said: dict[tuple[str, str], int] = {}
        for port in self._ports:
            key = (port.gpu, port.target)
            said[key] = said.get(key, 0) + port.count
        return [
            Finding(
                "asymmetric-links",
                f"{one} says {count} links to {other}, which says {said.get((other, one), 0)}",
                severity="warning",
                help="the larger number was taken",
            )
            for (one, other), count in said.items()
            if other in self._gpus and one < other and said.get((other, one), 0) != count
        ][:3]


def _medium(device: DiscoveredDevice, element: Element) -> str:
    """Return the NVLink generation that a GPU has: its part's, else by its compute level."""
    from topo.catalogue.load import catalogue

    part = catalogue().parts.get(device.part)
    if part is not None and part.fabric is not None and part.fabric.medium:
        return part.fabric.medium
    return nvlink_of(number(element, "sm"))


def _cable(count: int, medium: str) -> str:
    text = "xgmi unknown" if medium == "xgmi" else medium
    return f"{count}x {text}" if count > 1 else text
