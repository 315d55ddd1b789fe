"""NCCL's graph and search on its own XML, written from its source and sharing nothing with topo.

``src/graph/topo.cc``: nodes and links, and Broadcom's switches made flat; ``paths.cc``: the search.
"""

from __future__ import annotations

from typing import Any
from xml.etree import ElementTree

ORDER = ("LOC", "NVL", "NVB", "C2C", "PIX", "PXB", "P2C", "PXN", "PHB", "SYS", "NET")
LANE = {
    "2.5 GT/s": 15,
    "5 GT/s": 30,
    "8 GT/s": 60,
    "16 GT/s": 120,
    "32 GT/s": 240,
    "2.5 GT/s PCIe": 15,
    "5.0 GT/s PCIe": 30,
    "8.0 GT/s PCIe": 60,
    "16.0 GT/s PCIe": 120,
    "32.0 GT/s PCIe": 240,
    "64.0 GT/s PCIe": 480,
}
CLASSES = (("060400", "PCI"), ("080100", "PCI"), ("068000", "NVS"), ("03", "GPU"), ("02", "NIC"))


def hexadecimal(element, name):
    return element.get(name, "").lower().removeprefix("0x")


def number(element, name):
    text = element.get(name, "")
    return int(text, 0) if text.lstrip("-").isalnum() and text.lstrip("-")[:1].isdigit() else 0


def kind_of(pci):
    if pci.find("gpu") is not None:
        return "GPU"
    if pci.find("nic") is not None:
        return "NIC"
    code = hexadecimal(pci, "class")
    return next((kind for start, kind in CLASSES if code.startswith(start)), "PCI")


def broadcom(pci, level):
    """Return the generation of a Broadcom switch that NCCL makes flat, at the upper (0) level."""
    names = ("vendor", "device", "subsystem_vendor", "subsystem_device")
    vendor, device, makers, model = (int(hexadecimal(pci, name) or "0", 16) for name in names)
    if (vendor, device, makers) == (0x1000, 0xC010, 0x1000) and model >> 12 == 0xA:
        return 4
    if (vendor, device, makers) == (0x1000, 0xC030, 0x1000) and model >> 12 == level:
        return 5
    return 0


class Model:
    def __init__(self, data):
        self.kinds: dict[Any, str] = {}
        self.links: dict[Any, list[list[Any]]] = {}
        self.elements: dict[Any, Any] = {}
        self.gpus: list[tuple[str, Any]] = []
        root = ElementTree.fromstring(data)
        cpus = list(root.iter("cpu"))
        for place, cpu in enumerate(cpus):
            name = ("cpu", place)
            self.node(name, "CPU")
            for child in cpu:
                if child.tag == "pci":
                    self.pci(child, name)
                elif child.tag == "nic":
                    for net in child.iter("net"):
                        nic = ("net", net.get("name"))
                        if nic not in self.kinds:
                            self.node(nic, "NIC")
                            self.join(nic, name, "PCI", 5000)
        for one, cpu in enumerate(cpus):
            for other in range(len(cpus)):
                if one != other:
                    self.link(("cpu", one), ("cpu", other), "SYS", between(cpu))
        for gpu, element in self.gpus:
            self.fabric(gpu, element)
        self.flatten()

    def node(self, name, kind):
        self.kinds[name] = kind
        self.links[name] = []

    def link(self, a, b, kind, rate):
        for link in self.links[a]:
            if link[:2] == [b, kind]:
                link[2] += rate
                return
        self.links[a].append([b, kind, rate])

    def join(self, a, b, kind, rate):
        self.link(a, b, kind, rate)
        self.link(b, a, kind, rate)

    def pci(self, pci, parent):
        kind = kind_of(pci)
        name = pci.get("busid").lower()
        if kind == "NIC":  # the functions of a card are one
            name = name.rpartition(".")[0]
        rate = (number(pci, "link_width") or 16) * LANE.get(pci.get("link_speed", ""), 60) / 80
        if kind == "NVS":
            return
        if kind == "PCI" and name in self.kinds:
            name = (name, len(self.kinds))  # an address that stands twice
        if name not in self.kinds:
            self.node(name, kind)
            self.elements[name] = pci
            self.join(name, parent, "PCI", rate)
            if kind == "GPU" and pci.find("gpu") is not None:
                top = parent
                self.gpus.append((name, pci.find("gpu")))
                while self.kinds[top] != "CPU":
                    top = self.links[top][0][0]
                self.elements[name, "cpu"] = top
        for child in pci.findall("pci"):
            self.pci(child, name if kind == "PCI" else parent)

    def fabric(self, gpu, element):
        compute = number(element, "sm")
        table = ((100, 40.1), (90, 20.6), (86, 12), (80, 20), (70, 20), (60, 18))
        per_link = next((rate for least, rate in table if compute >= least), 20)
        for child in element:
            count = number(child, "count")
            if child.tag == "c2c":
                rate = number(child, "bw") * count / 1000
                self.join(gpu, self.elements[gpu, "cpu"], "C2C", rate)
            if child.tag != "nvlink":
                continue
            target, code = child.get("target").lower(), hexadecimal(child, "tclass")
            if code.startswith("068001"):
                self.join(gpu, self.elements[gpu, "cpu"], "NVL", count * per_link)
            elif code.startswith("068000") or target.startswith("fffffff"):
                if "NVS" not in self.kinds:
                    self.node("NVS", "NVS")
                self.join(gpu, "NVS", "NVL", count * per_link)
            elif target in self.kinds and target != gpu:
                self.link(gpu, target, "NVL", count * per_link)

    def flatten(self):
        merged = set()
        for upper in [name for name, kind in self.kinds.items() if kind == "PCI"]:
            if upper not in self.kinds or upper in merged:
                continue
            generation = broadcom(self.elements[upper], 0)
            lower = [
                name
                for name, _, _ in self.links[upper]
                if generation
                and self.kinds[name] == "PCI"
                and name != self.links[upper][0][0]
                and broadcom(self.elements[name], 1) == generation
            ]
            for name in lower:
                merged.add(upper)
                self.links[upper] = [link for link in self.links[upper] if link[0] != name]
                for target, kind, rate in self.links.pop(name):
                    if target != upper:
                        self.links[upper].append([target, kind, rate])
                        for back in self.links[target]:
                            back[0] = upper if back[0] == name else back[0]
                del self.kinds[name]

    def paths(self, base):
        best, front = {base: ("LOC", 5000, 0)}, [base]
        while front:
            onward = []
            for node in front:
                kind, rate, hops = best[node]
                for target, link, link_rate in sorted(self.links[node], key=lambda link: -link[2]):
                    ends = (self.kinds[node], self.kinds[target])
                    through = ends == ("GPU", "GPU") and link == "NVL" and hops <= 1
                    if target == base or (node != base and ends[0] == "GPU" and not through):
                        continue
                    step = {"NET": "LOC", "PCI": "PIX"}.get(link, link)
                    step = "PXB" if ends == ("PCI", "PCI") else step
                    step = "PHB" if link == "PCI" and "CPU" in ends else step
                    if ends[0] == "GPU" and kind == "NVL" and step == "NVL" and hops:
                        step = "NVB"
                    path = (max(kind, step, key=ORDER.index), min(rate, link_rate), hops + 1)
                    if target not in best or key(path) < key(best[target]):
                        best[target] = path
                        onward.append(target)
            front = list(dict.fromkeys(onward))
        return best


def key(path):
    return ORDER.index(path[0]), -path[1], path[2]


def between(cpu):
    """Return the rate between NUMA nodes that NCCL takes for a CPU's maker and model."""
    vendor, family, model = cpu.get("vendor"), number(cpu, "familyid"), number(cpu, "modelid")
    if cpu.get("arch") == "arm64":
        return 6
    if vendor == "AuthenticAMD":
        return 16
    if vendor == "GenuineIntel":
        levels = ((0xCF, 40), (0x8F, 22), (0x55, 10))
        return next((rate for least, rate in levels if family == 6 and model >= least), 6)
    return 5000


def pairs_of(data):
    """Return type and GB/s from each GPU to each GPU and card, both by PCI address or interface."""
    model = Model(data)
    ends = [name for name, kind in model.kinds.items() if kind in ("GPU", "NIC")]
    found = {}
    for gpu in (name for name in ends if model.kinds[name] == "GPU"):
        paths = model.paths(gpu)
        for end in ends:
            if end != gpu and end in paths:
                found[gpu, end] = paths[end][:2]
    return found
