"""GPUs and network cards as NCCL's XML writes them, with their links to other GPUs."""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

from topo.catalogue.identities import compute_of, numbers_of
from topo.discovery.pci import read_address
from topo.exports.element import Element

if TYPE_CHECKING:
    from collections.abc import Mapping

    from topo.description.description import Device
    from topo.topology.topology import Link, Topology


_HIDDEN: Final = "fffffff:ffff:ff"  # NCCL takes such a target for an NVSwitch
_SWITCH_CLASS: Final = "0x068000"
_MEGA: Final = 1e6


class Leaves:
    """Makes the elements of GPUs and cards of one topology."""

    def __init__(self, topology: Topology, addresses: Mapping[str, str]) -> None:
        self._topology = topology
        self._addresses = addresses
        self._gpus = {gpu.name: at for at, gpu in enumerate(topology.of_kind("gpu"))}
        self._nets = 0
        self._fabric: dict[str, list[Link]] = {}
        for link in topology.links:
            for end in (link.a.device, link.b.device):
                if end in self._gpus and link.cable.family in ("nvlink", "xgmi", "nvlink-c2c"):
                    self._fabric.setdefault(end, []).append(link)
        self.has_xgmi = any(
            link.cable.family == "xgmi" for links in self._fabric.values() for link in links
        )

    def functions(self, device: Device, link: dict[str, str], *, virtual: bool) -> list[Element]:
        """Return the elements of a device: one for each PCI function."""
        if device.kind == "gpu":
            return [self._gpu(device, link)]
        return self._card(device, link, virtual=virtual)

    # --- GPUs ---------------------------------------------------------------------------------

    def _gpu(self, device: Device, link: dict[str, str]) -> Element:
        number = str(self._gpus[device.name])
        attributes = {"dev": number}
        compute = self._compute(device)
        if compute:
            attributes["sm"] = compute
        attributes |= {"rank": number, "gdr": "0" if device.part.flag("p2p") is False else "1"}
        links = [
            one for each in self._fabric.get(device.name, ()) for one in self._links(device, each)
        ]
        inner = Element("gpu", attributes, links)
        pci = {"busid": self._addresses[device.name], "class": _gpu_class(device)}
        return Element("pci", {**pci, **_numbers(device), **link}, [inner])

    def _compute(self, device: Device) -> str:
        media = [link.cable.medium for link in self._fabric.get(device.name, ())]
        if device.part.fabric is not None and device.part.fabric.medium:
            media.append(device.part.fabric.medium)
        return next(filter(None, map(compute_of, media)), "")

    def _links(self, device: Device, link: Link) -> list[Element]:
        other = self._topology[link.b.device if link.a.device == device.name else link.a.device]
        cable = link.cable
        if cable.family == "nvlink-c2c":
            rate = round((cable.rate.value or 0.0) / _MEGA)
            return [Element("c2c", {"bw": str(rate), "count": str(cable.count)})]
        if other.kind == "nvswitch":
            targets = [read_address(one) for one in other.pci] or [_HIDDEN]
            each, more = divmod(cable.count, len(targets))
            counts = [each + (at < more) for at in range(len(targets))]
            return [
                Element("nvlink", {"target": target, "count": str(count), "tclass": _SWITCH_CLASS})
                for target, count in zip(targets, counts, strict=True)
                if count
            ]
        if other.kind != "gpu":
            return []
        attributes = {"target": self._addresses[other.name], "count": str(cable.count)}
        tag = "xgmi" if cable.family == "xgmi" else "nvlink"
        return [Element(tag, {**attributes, "tclass": _gpu_class(other)})]

    # --- cards --------------------------------------------------------------------------------

    def _card(self, device: Device, link: dict[str, str], *, virtual: bool) -> list[Element]:
        names = list(device.rdma) or (device.label.split(", ") if device.label else [])
        if virtual:
            return [Element("nic", {}, [self._net(device, name, 1) for name in names])]
        code = "0x020700" if self._on_infiniband(device) else "0x020000"
        functions = [read_address(one) for one in device.pci] or [self._addresses[device.name]]
        share = -(-len(names) // len(functions))
        made = []
        for at, address in enumerate(functions):
            mine = names[at * share : (at + 1) * share]
            nets = [self._net(device, name, port) for port, name in enumerate(mine, 1)]
            inner = [Element("nic", {}, nets)] if nets else []
            attributes = {"busid": address, "class": code, **_numbers(device), **link}
            made.append(Element("pci", attributes, inner))
        return made

    def _on_infiniband(self, device: Device) -> bool:
        steps = self._topology.steps[device.name]
        return any(step.link.cable.family == "infiniband" for step in steps)

    def _net(self, device: Device, name: str, port: int) -> Element:
        ports = device.part.ports
        rate = ports.rate.value if ports and ports.rate else None
        attributes = {"name": name, "dev": str(self._nets)}
        if rate:
            attributes["speed"] = str(round(rate * 8 / _MEGA))
        attributes |= {
            "port": str(port),
            "guid": hex(self._nets),
            "gdr": "1" if device.rdma else "0",
        }
        self._nets += 1
        return Element("net", attributes)


def _gpu_class(device: Device) -> str:
    return "0x038000" if device.part.name.startswith(("amd", "mi")) else "0x030200"


def _numbers(device: Device) -> dict[str, str]:
    """Return vendor and device numbers, as far as the part has them."""
    found = numbers_of(device.part.name)
    if found is not None:
        return {"vendor": f"0x{found[0]}", "device": f"0x{found[1]}"}
    return {"vendor": "0x1002"} if device.part.name == "amd-instinct" else {}
