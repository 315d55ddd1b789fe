"""What a machine is: devices, links, and the resources that transfers share."""

from __future__ import annotations

from dataclasses import field
from functools import cached_property
from typing import TYPE_CHECKING, Literal

from topo.errors import Finding, Place, UnknownNameError
from topo.records import dataclass

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping

    import networkx

    from topo.catalogue.kinds import Kind
    from topo.catalogue.part import Cable
    from topo.description.description import Description, Device, End, Override, Settings
    from topo.description.names import Names
    from topo.topology.locality import Tree
    from topo.topology.resources import Resource

Layer = Literal["host", "memory", "network", "gpu"]


@dataclass(frozen=True, slots=True)
class Link:
    """One physical connection; a bundle of equal cables without named ports is one link.

    `forward` and `backward` are the resources of the two directions, `None` for a memory's link,
    whose one resource is the memory's bus.
    """

    a: End
    b: End
    cable: Cable
    layer: Layer
    place: Place
    forward: Resource | None = None
    backward: Resource | None = None

    @property
    def name(self) -> str:
        """As written: ``slot1 -- cpu1``."""
        return f"{self.a} -- {self.b}"


@dataclass(frozen=True, slots=True)
class Step:
    """One link walked in one direction."""

    link: Link
    source: str
    target: str

    @property
    def resource(self) -> Resource | None:
        """What the step uses, `None` on a memory's link."""
        return self.link.forward if self.source == self.link.a.device else self.link.backward

    @property
    def entry_side(self) -> str:
        """The port or NUMA node by which the step enters its target."""
        return self.link.b.side if self.source == self.link.a.device else self.link.a.side


@dataclass(frozen=True, eq=False)
class Topology:
    """Devices, links and resources of one machine or cluster; nothing in it changes.

    `build` is what it was built with, and builds its variants (`replace`).

    Examples
    --------
    >>> import topo
    >>> machine = topo.load("gds-textbook")
    >>> machine["slot1"].part.name
    'connectx-7-dual-port'
    >>> [device.name for device in machine.select("slot")]
    ['slot1', 'slot2']
    """

    description: Description
    devices: Mapping[str, Device]
    links: tuple[Link, ...]
    resources: Mapping[str, Resource]
    findings: tuple[Finding, ...] = ()
    build: Callable[[Description], Topology] | None = field(default=None, repr=False)

    @property
    def name(self) -> str:
        """The file's `name:`."""
        return self.description.name

    @property
    def title(self) -> str:
        """The file's `title:`, or its name."""
        return self.description.title or self.description.name

    @property
    def settings(self) -> Settings:
        """Facts of the host."""
        return self.description.settings

    def __getitem__(self, name: str) -> Device:
        """Return the device called `name`.

        Raises
        ------
        UnknownNameError
            If there is none.
        """
        try:
            return self.devices[name]
        except KeyError:
            message, advice = self._names.absent([name])
            raise UnknownNameError(Finding("unknown-name", message, help=advice)) from None

    def __contains__(self, name: object) -> bool:
        return name in self.devices

    def __repr__(self) -> str:
        return (
            f"<Topology {self.name}: {len(self.devices)} devices, {len(self.links)} links, "
            f"{len(self.resources)} resources>"
        )

    @cached_property
    def steps(self) -> Mapping[str, tuple[Step, ...]]:
        """Every step out of each device, in the order of the file."""
        steps: dict[str, list[Step]] = {name: [] for name in self.devices}
        for link in self.links:
            steps[link.a.device].append(Step(link, link.a.device, link.b.device))
            steps[link.b.device].append(Step(link, link.b.device, link.a.device))
        return {name: tuple(leading_out) for name, leading_out in steps.items()}

    def select(self, pattern: str) -> tuple[Device, ...]:
        """Return the devices that a name, a stem (``gpu``) or a range (``gpu[0-3]``) means.

        Raises
        ------
        UnknownNameError
            If nothing matches.
        """
        names = self._names.matching(pattern)
        if not names:
            message, advice = self._names.absent([pattern])
            raise UnknownNameError(Finding("unknown-name", message, help=advice))
        return tuple(self[name] for name in names)

    @cached_property
    def _names(self) -> Names:
        """The file reader's own rules of which names a text means."""
        from topo.description.names import Names

        return Names(self.devices, {device.name: device.numa for device in self.devices.values()})

    def of_kind(self, *kinds: Kind) -> tuple[Device, ...]:
        """Return the devices of these kinds, in the order of the file."""
        if kinds not in self._kinds:
            self._kinds[kinds] = tuple(
                device for device in self.devices.values() if device.kind in kinds
            )
        return self._kinds[kinds]

    @cached_property
    def _kinds(self) -> dict[tuple[Kind, ...], tuple[Device, ...]]:
        """Answers of `of_kind`: a cluster's devices are looked through once a question."""
        return {}

    @cached_property
    def tree(self) -> Tree:
        """How devices hang on their hosts."""
        from topo.topology.locality import Tree

        return Tree(self)

    def replace(self, changes: Mapping[str, Override]) -> Topology:
        """Return the topology of the same text with something changed, as ``--set`` does.

        Parameters
        ----------
        changes
            What to change, by target: ``{"slot1.part": "connectx-8"}``; a value may be a node of a
            document, which keeps its place.

        Raises
        ------
        TopoError
            If a target is not there, or the result breaks a rule.

        Examples
        --------
        >>> import topo
        >>> machine = topo.load("gds-textbook").replace({"ram.bus": "300 GB/s"})
        >>> machine.resources["ram0/bus"].capacity.theoretical.value
        300000000000.0
        """
        from topo.description.loading import vary

        assert self.build is not None, "only what was built from a description is built again"
        return self.build(vary(self.description, changes))

    def graph(self) -> networkx.MultiDiGraph[str]:
        """Return a fresh NetworkX graph of the topology; see `topo.topology.graph_view`."""
        from topo.topology.graph_view import to_networkx

        return to_networkx(self)
