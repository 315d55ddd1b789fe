"""A description with every device written out: used machines take their place device by device.

``node[0-1]: {use: dgx-h100}`` becomes ``node0.gpu0`` and so on, with what joins them, what was
measured there, and the settings of each machine. Whoever answers by kinds of machine reads
`Description.uses` instead and writes nothing out.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import replace
from typing import Final

from topo.description.description import (
    DescribedLink,
    Description,
    Device,
    End,
    Fabric,
    Measurement,
    Settings,
)
from topo.description.names import Names, stem_of
from topo.errors import DescriptionError, Finding

MOST_WRITTEN_OUT: Final = 400_000
"""Most devices that are written out; what has more is answered by kinds of machine, or not."""


def flat(description: Description) -> Description:
    """Return the same description without `uses`: all devices, links, rates and settings in it.

    Used machines come first, in the order of the file and of their numbers, then its own devices.

    Raises
    ------
    DescriptionError
        If there are more than `MOST_WRITTEN_OUT`.

    Examples
    --------
    >>> from topo.description.loading import loads
    >>> pod = loads("{topo: 1, devices: {'node[0-1]': {use: gds-textbook}}}")
    >>> [device.name for device in flat(pod).devices][:3]
    ['node0.slot1', 'node0.slot2', 'node0.cpu0']
    """
    if not description.uses:
        return description
    count = description.device_count
    if count > MOST_WRITTEN_OUT:
        message = (
            f"{description.name} has {count:,} devices, and this answer needs each of them written "
            f"out, which topo does for at most {MOST_WRITTEN_OUT:,}"
        )
        advice = "use fewer machines: alike ones answer alike"
        raise DescriptionError(
            Finding("too-large", message, place=description.uses[0].place, help=advice)
        )
    return _written_out(description, {})


def hosts(description: Description) -> Iterator[tuple[str, Description]]:
    """Yield the machines that a description uses: in the order of the file, then by number."""
    by_stem: dict[str, list[tuple[int, str, Description]]] = {}
    for use in description.uses:
        for name in use.names:
            stem, number = stem_of(name)
            by_stem.setdefault(stem, []).append((number, name, use.template))
    for machines in by_stem.values():
        for _, name, template in sorted(machines, key=lambda machine: machine[:2]):
            yield name, template


def _written_out(description: Description, done: dict[int, Description]) -> Description:
    """Return a description without `uses`; `done` are the templates written out before."""
    if not description.uses:
        return description
    devices: list[Device] = []
    links: list[DescribedLink] = []
    fabrics: list[Fabric] = []
    measurements: list[Measurement] = []
    settings: dict[str, Settings] = {}
    media = dict(description.media)
    for name, template in hosts(description):
        machine = done.get(id(template))
        if machine is None:
            machine = done[id(template)] = _written_out(template, done)
        media = {**machine.media, **media}
        settings[name] = machine.settings
        settings |= {f"{name}.{inside}": stated for inside, stated in machine.host_settings.items()}
        devices += (_named(device, f"{name}.{device.name}") for device in machine.devices)
        ends = {
            end: End(f"{name}.{end.device}", end.side)
            for link in machine.links
            for end in (link.a, link.b)
        }
        links += (
            DescribedLink(ends[link.a], ends[link.b], link.cable, link.place)
            for link in machine.links
        )
        fabrics += (_of_machine(fabric, name) for fabric in machine.fabrics)
        measurements += (
            replace(rate, source=f"{name}.{rate.source}", target=f"{name}.{rate.target}")
            for rate in machine.measurements
        )
    return replace(
        description,
        devices=(*devices, *description.devices),
        links=(*links, *description.links),
        fabrics=(*fabrics, *description.fabrics),
        measurements=(*measurements, *description.measurements),
        media=media,
        uses=(),
        host_settings=settings,
        folded=description,
    )


def _of_machine(fabric: Fabric, name: str) -> Fabric:
    """Return a fabric inside a used machine by the full names of its switches."""
    tiers = (
        replace(tier, switches=tuple(f"{name}.{switch}" for switch in tier.switches))
        for tier in fabric.tiers
    )
    return replace(fabric, name=f"{name}.{fabric.name}", tiers=tuple(tiers))


def _named(device: Device, name: str) -> Device:
    """Return a device under another name; `replace` would take three times as long."""
    return Device(
        name,
        device.part,
        device.place,
        device.label,
        device.role,
        device.slot_name,
        device.pci,
        device.rdma,
        device.numa,
        device.outside,
    )


# --- looked up without writing out ----------------------------------------------------------------


def names_of(description: Description) -> Names:
    """Return the names of all devices, those of used machines by the machine's name."""
    return _names_of(description, {})


def _names_of(description: Description, of_templates: dict[int, Names]) -> Names:
    used: dict[str, Names] = {}
    for use in description.uses:
        names = of_templates.get(id(use.template))
        if names is None:
            names = of_templates[id(use.template)] = _names_of(use.template, of_templates)
        used |= dict.fromkeys(use.names, names)
    numa = {device.name: device.numa for device in description.devices if device.numa}
    return Names((device.name for device in description.devices), numa, used)


class DeviceIndex:
    """The devices of a description by name, those of used machines by their full name."""

    def __init__(self, description: Description) -> None:
        """Index the description, each template once."""
        self._devices = {device.name: device for device in description.devices}
        of_templates: dict[int, DeviceIndex] = {}
        self._used: dict[str, DeviceIndex] = {}
        for use in description.uses:
            index = of_templates.get(id(use.template)) or DeviceIndex(use.template)
            of_templates[id(use.template)] = index
            self._used |= dict.fromkeys(use.names, index)

    def __getitem__(self, name: str) -> Device:
        """Return the device as the file that has it names it.

        Raises
        ------
        KeyError
            If there is none.
        """
        host, dot, inside = name.partition(".")
        return self._used[host][inside] if dot else self._devices[name]
