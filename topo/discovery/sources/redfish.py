"""Redfish: what a server's management controller tells of its PCIe devices, CPUs and memory.

It knows parts, links, slots and modules, and not how PCIe devices hang on switches; which CPU a
device is near only where links say so.

References
----------
DMTF DSP8010: PCIeDevice, PCIeFunction, PCIeSlots, Processor, Memory, NetworkAdapter, Port, Drive.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import replace
from typing import Final

from topo.catalogue.cables import LANES
from topo.catalogue.identities import nvlink_of_rate, processor_named, vendor_named
from topo.discovery.foreign import read_lines
from topo.discovery.machine import (
    DiscoveredCable,
    DiscoveredDevice,
    DiscoveredLink,
    DiscoveredPart,
    GpuLinks,
    Machine,
    bundle,
)
from topo.discovery.numa import cpu_part
from topo.discovery.pci import Function, HostBridge, LinkSpeed, kind_of, read_address
from topo.discovery.pci_tree import devices_of
from topo.discovery.sources.dmidecode import Module, memory_of
from topo.discovery.sources.redfish_resources import Resource, read_resources
from topo.errors import ExchangeError, Finding
from topo.phrases import and_more, counted

_GENERATION: Final = re.compile(r"Gen([1-7])")
_HEXADECIMAL: Final = re.compile(r"(?:0x)?([0-9a-fA-F]{2,6})")
_CLASSES: Final = {  # where a function has no code: the beginning of it
    "MassStorageController": "01",
    "NetworkController": "02",
    "DisplayController": "03",
    "Bridge": "0604",
    "ProcessingAccelerators": "12",
}
_GPUS: Final = ("GPU", "Accelerator")
_UP: Final = ("LinkUp", "Linked", "Up")
_ROOT: Final = "/redfish/v1/"
_MEBIBYTE: Final = 2**20
_MOST_CPUS: Final = 16
_NAMED: Final = 8

Resources = Mapping[str, Resource]


def read(data: bytes, name: str) -> Machine:
    """Read resources; an `ExchangeError` if none of them is a device, a CPU or memory."""
    resources, is_cut = read_resources("\n".join(read_lines(data, name)))
    present = {
        address: resource
        for address, resource in resources.items()
        if resource.is_there and not _is_again(resource, resources)
    }
    processors = _of(present, "Processor")
    cpus, parts = _cpus([it for it in processors if it.text("ProcessorType") in ("CPU", "")])
    cpu_of = {address: cpu.id for cpu, address in cpus.items() if address}
    near = _cpus_near(present, cpu_of)
    functions, bridges = _functions(present, near, list(cpus))
    tree = devices_of(functions, bridges)
    alone = tuple(_alone(present, tree.devices, list(cpus)))
    memories = tuple(_memories(_of(present, "Memory"), list(cpus)))
    devices = (*cpus, *memories, *tree.devices, *alone)
    if not (tree.devices or alone or memories or processors):
        message = f"`{name}` has no PCIe device, processor or memory of Redfish"
        help = "ask /redfish/v1/Chassis/ID/PCIeDevices?$expand=*($levels=2) and the like; "
        help += "several documents in one file are read together"
        raise ExchangeError(Finding("nothing-there", message, help=help))
    findings = []
    if is_cut:
        message = "a document is cut, and what stands in it was left out"
        findings.append(Finding("abridged", message, severity="warning", help="give it whole"))
    placeless = [device for device in tree.devices if device.is_host and not device.parent]
    if placeless:
        message = f"which CPU {counted(len(placeless), 'PCIe device')} is near is not told"
        help = "`lspci -vvv` or `nvidia-smi topo -m` of the host tell it: --and FILE"
        findings.append(Finding("numa-unknown", message, severity="warning", help=help))
    if tree.devices:
        message = "Redfish does not tell what hangs on which PCIe switch"
        help = "`lspci -tv` or NCCL's topology file tell it: --and FILE"
        findings.append(Finding("no-tree", message, severity="warning", help=help))
    if missing := _missing(resources):
        message = (
            f"links lead to resources that the text does not have: {and_more(missing, _NAMED)}"
        )
        help = "`?$expand=*($levels=3)` gives them within; or put their documents into the file"
        findings.append(Finding("not-expanded", message, severity="note", help=help))
    links, switch, nvlinks = _nvlinks(present, devices)
    socket_cables = {processor_named(cpu.evidence)[1] for cpu in cpus}
    return Machine(
        kind="redfish",
        source="Redfish resources",
        file=name,
        devices=(*devices, *switch),
        cables=nvlinks,
        parts=parts,
        socket_cable=socket_cables.pop() if len(socket_cables) == 1 else "",
        notes=("A management controller knows slots and links; it numbers no NUMA nodes.",),
        left_out=tree.left_out,
        findings=(*findings, *tree.findings),
        fabric_known=bool(nvlinks),
        gpu_links=links,
    )


def _of(resources: Resources, *types: str) -> list[Resource]:
    return [resource for resource in resources.values() if resource.type in types]


def _is_again(resource: Resource, resources: Resources) -> bool:
    """Whether a device of a system stands among those of its chassis too."""
    if resource.type != "PCIeDevice" or "/Systems/" not in resource.address:
        return False
    end = resource.address.rpartition("/")[2]
    return any(
        device.type == "PCIeDevice"
        and "/Chassis/" in address
        and address.rpartition("/")[2] == end
        and device.text("Model") == resource.text("Model")
        for address, device in resources.items()
    )


def _missing(resources: Resources) -> list[str]:
    """Return the collections of functions that devices lead to and that are not there."""
    lacking: dict[str, None] = {}
    for device in _of(resources, "PCIeDevice"):
        links = [*device.links("Links", "PCIeFunctions"), *device.links("PCIeFunctions")]
        if links and not _functions_of(resources, device):
            lacking[links[0]] = None
    return list(lacking)


# --- CPUs and memory ------------------------------------------------------------------------------


def _cpus(
    processors: Sequence[Resource],
) -> tuple[dict[DiscoveredDevice, str], tuple[DiscoveredPart, ...]]:
    """Return the CPUs with their addresses, and the parts that the catalogue does not have."""
    cpus: dict[DiscoveredDevice, str] = {}
    parts: dict[str, DiscoveredPart] = {}
    for at, processor in enumerate(processors[:_MOST_CPUS]):
        maker, model = processor.text("Manufacturer"), processor.text("Model")
        name = model if maker.lower() in model.lower() else f"{maker} {model}"
        part, part_of_file = cpu_part(name)
        if part_of_file is not None:
            parts.setdefault(part_of_file.name, part_of_file)
        evidence = model or processor.text("Name")
        cpus[DiscoveredDevice(f"cpu {at}", "cpu", part, evidence=evidence)] = processor.address
    if not cpus:
        cpus[
            DiscoveredDevice("cpu 0", "cpu", "cpu-unknown", evidence="not among the resources")
        ] = ""
    return cpus, tuple(parts.values())


def _memories(
    modules: Sequence[Resource], cpus: Sequence[DiscoveredDevice]
) -> Iterator[DiscoveredDevice]:
    """Yield a memory for each socket that has modules; all of one where sockets are not told."""
    by_socket: dict[str, list[Module]] = {}
    for module in modules:
        size = int(module.number("CapacityMiB")) * _MEBIBYTE
        sort = re.match(r"(ddr\d|hbm\d?|lpddr\d)", module.text("MemoryDeviceType").lower())
        place = module.inner("MemoryLocation").body
        if not size:
            continue
        channel = "-".join(
            str(place[key]) for key in ("MemoryController", "Channel") if key in place
        )
        by_socket.setdefault(str(place.get("Socket", "")), []).append(
            Module(
                place=module.text("DeviceLocator") or module.text("Name"),
                size=size,
                sort=sort[1] if sort else "memory",
                speed=int(module.number("OperatingSpeedMhz")),
                socket="",
                channel=channel if "Channel" in place else "",
            )
        )
    if len(by_socket) != len(cpus):
        several = [module for of_socket in by_socket.values() for module in of_socket]
        by_socket = {"": [replace(module, channel="") for module in several]} if several else {}
    for cpu, socket in zip(cpus, sorted(by_socket), strict=False):
        yield memory_of(f"ram of {cpu.id}", cpu.id, by_socket[socket])


# --- PCIe -----------------------------------------------------------------------------------------


def _cpus_near(resources: Resources, cpu_of: Mapping[str, str]) -> dict[str, str]:
    """Return the CPU that PCIe devices are near, by their addresses, where links tell one."""
    near: dict[str, str] = {}

    def take(devices: Sequence[str], processors: Sequence[str]) -> None:
        cpus = list(dict.fromkeys(cpu_of[link] for link in processors if link in cpu_of))
        if len(cpus) == 1:
            near.update(dict.fromkeys(devices, cpus[0]))

    for slots in _of(resources, "PCIeSlots"):
        for slot in slots.members("Slots"):
            take(slot.links("Links", "PCIeDevice"), slot.links("Links", "Processors"))
    for device in _of(resources, "PCIeDevice"):
        take([device.address], device.links("Links", "Processors"))
    return near


def _functions_of(resources: Resources, device: Resource) -> list[Resource]:
    """Return the physical functions of a device: those below it, or that lead to it."""
    linked = {*device.links("Links", "PCIeFunctions"), *device.links("PCIeFunctions")}
    return [
        function
        for function in _of(resources, "PCIeFunction")
        if function.text("FunctionType") != "Virtual"
        and (
            function.address in linked
            or function.address.startswith(f"{device.address}/")
            or device.address in function.links("Links", "PCIeDevice")
        )
    ]


def _functions(
    resources: Resources, near: Mapping[str, str], cpus: Sequence[DiscoveredDevice]
) -> tuple[list[Function], list[HostBridge]]:
    """Return the PCI functions of all devices, and a host bridge for each device."""
    functions: list[Function] = []
    bridges: list[HostBridge] = []
    for device in _of(resources, "PCIeDevice"):
        cpu = near.get(device.address, cpus[0].id if len(cpus) == 1 else "")
        bridge = HostBridge(f"of {device.address}", cpu, is_told=False)
        parent = bridge.id
        slot = _speed(device.inner("Slot"), "PCIeType", "Lanes")
        if slot:  # what the slot can
            parent = f"slot of {device.address}"
            functions.append(Function(parent, bridge.id, port="root", most=slot))
        of_device = _functions_of(resources, device)
        all_functions = [_function(function, device, parent) for function in of_device]
        kinds = [function for function in all_functions if kind_of(function) is not None]
        if not all(function.address for function in kinds):
            kinds = kinds[:1]  # one stands for all
        kinds = kinds or [_function(Resource("", device.address), device, parent)]
        cards = _adapters_of(resources, device.address)
        ports = [port for card in cards for port in _ports(resources, card)]
        if not ports and len(of_device) > 1 and len(kinds) == 1 and kind_of(kinds[0]) == "nic":
            ports = [(None, "")] * len(of_device)
        networks = {network for _, network in ports if network}
        functions.append(
            replace(
                kinds[0],
                ports=tuple(rate for rate, _ in ports) if kind_of(kinds[0]) == "nic" else (),
                network=networks.pop() if len(networks) == 1 else "",
                size=_drive_size(resources, of_device),
            )
        )
        functions += kinds[1:]
        bridges.append(bridge)
    return functions, bridges


def _function(function: Resource, device: Resource, parent: str) -> Function:
    """Return a PCI function as its resource and that of its device tell it."""
    name = device.text("Model") or function.text("Name") or device.text("Name")
    maker = device.text("Manufacturer")
    text = name if maker.lower() in name.lower() else f"{maker} {name}"
    code, vendor, number = (
        match[1].lower() if (match := _HEXADECIMAL.fullmatch(function.text(key))) else ""
        for key in ("ClassCode", "VendorId", "DeviceId")
    )
    if len(code) < 4:  # noqa: PLR2004
        code = _CLASSES.get(function.text("DeviceClass"), "")
    kind = None
    if code == "01" and re.search(r"nvme|ssd", text, re.IGNORECASE):
        kind = "nvme"
    interface = device.inner("PCIeInterface")
    return Function(
        id=function.address.removeprefix(_ROOT),
        parent=parent,
        address=_pci_address(function),
        code=code.ljust(4, "0") if code else "",
        vendor=vendor or vendor_named(text),
        device=number,
        text=f"{text} [{name}]" if name else text,
        kind=kind,  # type: ignore[arg-type]
        most=_speed(interface, "MaxPCIeType", "MaxLanes"),
        current=_speed(interface, "PCIeType", "LanesInUse"),
        slot=device.text("Slot", "Location", "PartLocation", "ServiceLabel"),
        virtual=False,
        evidence=text if not vendor else "",
    )


def _pci_address(function: Resource) -> str:
    """Return the address that a function's numbers are, ``""`` where they are not there."""
    numbers = [
        function.get(key)
        for key in ("SegmentNumber", "BusNumber", "DeviceNumber", "FunctionNumber")
    ]
    if any(key is None for key in numbers[1:]):
        return ""
    values = []
    for number in (numbers[0] or 0, *numbers[1:]):
        try:
            values.append(int(number, 0) if isinstance(number, str) else int(number))
        except (ValueError, TypeError, OverflowError):
            return ""
    segment, bus, device, of_device = values
    if not (0 <= segment < 2**32 and 0 <= bus < 2**8 and 0 <= device < 2**5):
        return ""
    return read_address(f"{segment:x}:{bus:x}:{device:x}.{of_device}")


def _speed(interface: Resource, generation: str, lanes: str) -> LinkSpeed:
    """Return one end of a link as an interface's properties tell it."""
    match, width = _GENERATION.fullmatch(interface.text(generation)), int(interface.number(lanes))
    return LinkSpeed(int(match[1]) if match else None, width if width in LANES else None)


# --- ports and drives -----------------------------------------------------------------------------


def _adapters_of(resources: Resources, device: str) -> list[Resource]:
    """Return the network adapters that say they are this PCIe device."""
    return [
        adapter
        for adapter in _of(resources, "NetworkAdapter")
        if any(
            device in controller.links("Links", "PCIeDevices")
            for controller in adapter.members("Controllers")
        )
    ]


def _ports(resources: Resources, adapter: Resource) -> list[tuple[float | None, str]]:
    """Return bits/s and the sort of network of each port of an adapter."""
    ports: list[tuple[float | None, str]] = []
    for port in _of(resources, "Port", "NetworkPort"):
        if not port.address.startswith(f"{adapter.address}/"):
            continue
        is_down = port.text("LinkStatus") in ("LinkDown", "Down", "NoLink")
        megabits = port.number("CurrentLinkSpeedMbps")
        rate = port.number("CurrentSpeedGbps") * 1e9 or megabits * 1e6
        if not rate and not is_down:
            rate = port.number("MaxSpeedGbps") * 1e9
        words = " ".join(
            port.text(key)
            for key in ("LinkNetworkTechnology", "ActiveLinkTechnology", "PortProtocol")
        ).lower()
        network = next((word for word in ("infiniband", "ethernet") if word in words), "")
        ports.append((rate if rate and not is_down else None, network))
    return ports


def _drive_size(resources: Resources, functions: Sequence[Resource]) -> int | None:
    """Return the bytes of the drive that says it is one of these functions."""
    addresses = {function.address for function in functions}
    of_functions = {link for function in functions for link in function.links("Links", "Drives")}
    for drive in _of(resources, "Drive"):
        if addresses & {*drive.links("Links", "PCIeFunctions")} or drive.address in of_functions:
            return int(drive.number("CapacityBytes")) or None
    return None


# --- NVLinks --------------------------------------------------------------------------------------


def _nvlinks(
    resources: Resources, devices: Sequence[DiscoveredDevice]
) -> tuple[tuple[GpuLinks, ...], tuple[DiscoveredDevice, ...], tuple[DiscoveredCable, ...]]:
    """Return each GPU's NVLinks that are up, and an NVSwitch with cables where ports have one."""
    rates: dict[str, list[float]] = {}  # Gb/s of the ports that are up, by whose they are
    for port in _of(resources, "Port"):
        owner, _, name = port.address.rpartition("/Ports/")
        is_nvlink = port.text("PortProtocol") == "NVLink" or name.startswith("NVLink")
        if is_nvlink and port.text("LinkStatus") in _UP:
            rates.setdefault(owner, []).append(port.number("CurrentSpeedGbps"))
    gpus = [device.id for device in devices if device.kind == "gpu"]
    links = []
    for processor in _of(resources, "Processor"):
        speeds = rates.get(processor.address)
        places = (processor.address, *processor.links("Links", "PCIeDevice"))
        beginnings = tuple(f"{place.removeprefix(_ROOT)}/" for place in places)
        gpu = next((id_ for id_ in gpus if f"{id_}/".startswith(beginnings)), "")
        if speeds and gpu:
            links.append(GpuLinks(gpu, len(speeds), nvlink_of_rate(max(speeds) * 1e9 / 8)))
    if not any("/Switches/" in owner for owner in rates):
        return tuple(links), (), ()
    switch = DiscoveredDevice(
        "nvswitch", "nvswitch", "nvswitch-unknown", evidence="switches with NVLinks, taken as one"
    )
    cables = tuple(
        DiscoveredCable(
            gpu_links.gpu,
            switch.id,
            bundle(gpu_links.active, gpu_links.medium or "nvlink unknown"),
            f"{counted(gpu_links.active, 'NVLink')} up",
        )
        for gpu_links in links
    )
    return tuple(links), (switch,) if cables else (), cables


# --- what is told without a PCIe device -----------------------------------------------------------


def _alone(
    resources: Resources, devices: Sequence[DiscoveredDevice], cpus: Sequence[DiscoveredDevice]
) -> Iterator[DiscoveredDevice]:
    """Yield GPUs, cards and drives where no PCIe device is one: by their own resources."""
    kinds = {device.kind for device in devices}
    alone: list[tuple[Resource, Function]] = []
    if "gpu" not in kinds:
        alone += (
            (processor, _of_processor(processor))
            for processor in _of(resources, "Processor")
            if processor.text("ProcessorType") in _GPUS
        )
    if not kinds & {"nic", "dpu"}:
        alone += (
            (adapter, _of_adapter(resources, adapter))
            for adapter in _of(resources, "NetworkAdapter")
        )
    if "nvme" not in kinds:
        alone += (
            (drive, _of_drive(drive))
            for drive in _of(resources, "Drive")
            if drive.text("Protocol") == "NVMe"
        )
    cpu = cpus[0].id if len(cpus) == 1 else ""
    bridges = [HostBridge(f"of {it.address}", cpu, is_told=False) for it, _ in alone]
    if bridges:
        functions = [
            replace(function, parent=bridge.id)
            for (_, function), bridge in zip(alone, bridges, strict=True)
        ]
        yield from devices_of(functions, bridges).devices


def _named(resource: Resource) -> str:
    maker, model = resource.text("Manufacturer"), resource.text("Model")
    plain = model.removeprefix("NVIDIA ").replace("-", " ")
    return f"{maker} {model} [{plain}]" if model else resource.text("Name")


def _of_processor(processor: Resource) -> Function:
    interface = processor.inner("SystemInterface", "PCIe")
    text = _named(processor)
    return Function(
        processor.address.removeprefix(_ROOT),
        kind="gpu",
        vendor=vendor_named(text),
        text=text,
        most=_speed(interface, "MaxPCIeType", "MaxLanes"),
        current=_speed(interface, "PCIeType", "LanesInUse"),
        evidence=processor.text("Model"),
    )


def _of_adapter(resources: Resources, adapter: Resource) -> Function:
    controllers = adapter.members("Controllers")
    interface = controllers[0].inner("PCIeInterface") if controllers else Resource("", "")
    ports = _ports(resources, adapter)
    return Function(
        adapter.address.removeprefix(_ROOT),
        kind="nic",
        text=_named(adapter),
        most=_speed(interface, "MaxPCIeType", "MaxLanes"),
        current=_speed(interface, "PCIeType", "LanesInUse"),
        ports=tuple(rate for rate, _ in ports),
        network=next((network for _, network in ports if network), ""),
        evidence=adapter.text("Model"),
    )


def _of_drive(drive: Resource) -> Function:
    return Function(
        drive.address.removeprefix(_ROOT),
        kind="nvme",
        text=_named(drive),
        size=int(drive.number("CapacityBytes")) or None,
        link=DiscoveredLink(evidence="speed not told"),
        evidence=drive.text("Model"),
    )
