"""A description with every device written out: used machines take their place device by device.

``node[0-1]: {use: dgx-h100}`` becomes ``node0.gpu0`` and so on, with what joins them, what was
measured there, and the settings of each machine. Whoever answers by kinds of machine reads
`Description.uses` instead and writes nothing out.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import replace
from typing import TYPE_CHECKING, Final

from topo.description.description import (
    DescribedLink,
    Description,
    Device,
    End,
    Fabric,
    Measurement,
    Settings,
    Use,
)
from topo.description.names import Names, stem_of
from topo.errors import DescriptionError, Finding

if TYPE_CHECKING:
    from topo.catalogue.part import Medium

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
    ['node0.slot1', 'node0.slot2', 'node0.root0']
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
    return replace(_written_out(description, {}), folded=description)


def without_nesting(description: Description) -> Description:
    """Return the same description with the machines written out that use others themselves.

    What it uses uses nothing then: a pod's switches are among its devices, a pod's servers among
    its `uses`.
    """
    if not any(use.template.uses for use in description.uses):
        return description
    parts = _Parts()
    for use in description.uses:
        machine = without_nesting(use.template)
        if machine.uses:
            for name in use.names:
                parts.add(name, machine)
        else:
            parts.uses.append(use)
    return parts.with_own(description)


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
    parts = _Parts()
    for name, template in hosts(description):
        machine = done.get(id(template))
        if machine is None:
            machine = done[id(template)] = _written_out(template, done)
        parts.add(name, machine)
    return parts.with_own(description)


class _Parts:
    """What used machines put into the description that uses them, by its full names."""

    def __init__(self) -> None:
        self.uses: list[Use] = []
        self._devices: list[Device] = []
        self._links: list[DescribedLink] = []
        self._fabrics: list[Fabric] = []
        self._measurements: list[Measurement] = []
        self._settings: dict[str, Settings] = {}
        self._media: dict[str, Medium] = {}

    def add(self, name: str, machine: Description) -> None:
        """Add what a machine that is used as `name` has."""
        self.uses += (
            replace(use, names=tuple(f"{name}.{inside}" for inside in use.names))
            for use in machine.uses
        )
        self._media = {**machine.media, **self._media}
        self._settings[name] = machine.settings
        self._settings |= {
            f"{name}.{inside}": stated for inside, stated in machine.host_settings.items()
        }
        self._devices += (_named(device, f"{name}.{device.name}") for device in machine.devices)
        ends = {
            end: End(f"{name}.{end.device}", end.side)
            for link in machine.links
            for end in (link.a, link.b)
        }
        self._links += (
            DescribedLink(ends[link.a], ends[link.b], link.cable, link.place)
            for link in machine.links
        )
        self._fabrics += (_of_machine(fabric, name) for fabric in machine.fabrics)
        self._measurements += (
            replace(rate, source=f"{name}.{rate.source}", target=f"{name}.{rate.target}")
            for rate in machine.measurements
        )

    def with_own(self, description: Description) -> Description:
        """Return the description with these parts, then its own, in place of the machines."""
        return replace(
            description,
            devices=(*self._devices, *description.devices),
            links=(*self._links, *description.links),
            fabrics=(*self._fabrics, *description.fabrics),
            measurements=(*self._measurements, *description.measurements),
            media={**self._media, **description.media},
            uses=tuple(self.uses),
            host_settings={**description.host_settings, **self._settings},
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
