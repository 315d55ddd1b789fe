"""What a machine is: devices, links, and the resources that transfers share."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping
from dataclasses import field, replace
from functools import cached_property
from typing import TYPE_CHECKING, Final, Literal

from topo.catalogue.part import Cable, Figure
from topo.display import Displayed
from topo.errors import DescriptionError, Finding, Place, UnknownNameError
from topo.graph import components
from topo.phrases import brief, counted
from topo.records import dataclass
from topo.topology.joint import both_ways, dma_limits, unplaced_quadrants

if TYPE_CHECKING:
    import networkx

    from topo.catalogue.kinds import Kind
    from topo.description.description import (
        Description,
        Device,
        End,
        Override,
        Settings,
        Workload,
    )
    from topo.description.names import Names
    from topo.topology.folding import AlikeResources, Folding
    from topo.topology.locality import Tree
    from topo.topology.resources import Resource

_MOST_ASKED: Final = 40_000  # devices of a folded cluster of which each is asked by itself


Layer = Literal["host", "memory", "network", "gpu"]


@dataclass(frozen=True, slots=True)
class Link:
    """One physical connection; a bundle of equal cables without named ports is one link.

    `forward` and `backward` are the resources of the two directions, `None` for a memory's link,
    whose one resource is the memory's bus. `times` is as for a `DescribedLink`.
    """

    a: End
    b: End
    cable: Cable
    layer: Layer
    place: Place
    forward: Resource | None = None
    backward: Resource | None = None
    times: tuple[int, int] = (1, 1)

    def __repr__(self) -> str:
        return brief(self, f"{self.name}: {self.cable.text}")

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
    def times(self) -> tuple[int, int]:
        """How many such links its source, and its target, has: one, but in a folded topology."""
        a, b = self.link.times
        return (a, b) if self.source == self.link.a.device else (b, a)

    @property
    def entry_side(self) -> str:
        """The port, NUMA node or quadrant by which the step enters its target."""
        return self.link.b.side if self.source == self.link.a.device else self.link.a.side

    @property
    def exit_side(self) -> str:
        """The port, NUMA node or quadrant by which the step leaves its source."""
        return self.link.a.side if self.source == self.link.a.device else self.link.b.side


@dataclass(frozen=True, slots=True)
class Host:
    """What host links join (PCIe, memory buses, links between sockets): one server.

    Its name is that of the topology it came from (``node3``) where all of its devices share one,
    else ``host0``, ``host1`` and so on in the order of the file, in which its devices are too.
    """

    name: str
    devices: tuple[str, ...]


@dataclass(frozen=True, eq=False)
class Topology(Displayed):
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
    folding: Folding | None = field(default=None, repr=False)

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
        """Facts of every host, where no machine that is used states others."""
        return self.description.settings

    def settings_of(self, device: str) -> Settings:
        """Return the facts of the host that a device is in."""
        description = self.description
        return description.host_settings.get(device.rpartition(".")[0], description.settings)

    @property
    def settings_by_host(self) -> Mapping[str, Settings]:
        """Facts of each machine that is used, by its name; those of the only one under ``""``."""
        return self.description.host_settings or {"": self.description.settings}

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
            if self.folding is not None and (alike := self.folding.stands_in(name)):
                return replace(self.devices[alike], name=name)
            raise self._absent(name) from None

    def __contains__(self, name: object) -> bool:
        return name in self.devices

    def __repr__(self) -> str:
        counts = {"device": self.devices, "link": self.links, "resource": self.resources}
        words = (counted(len(things), noun) for noun, things in counts.items())
        return brief(self, f"{self.name}: {', '.join(words)}")

    @cached_property
    def steps(self) -> Mapping[str, tuple[Step, ...]]:
        """Every step out of each device, in the order of the file."""
        steps: dict[str, list[Step]] = {name: [] for name in self.devices}
        for link in self.links:
            steps[link.a.device].append(Step(link, link.a.device, link.b.device))
            steps[link.b.device].append(Step(link, link.b.device, link.a.device))
        return {name: tuple(leading_out) for name, leading_out in steps.items()}

    @cached_property
    def hosts(self) -> tuple[Host, ...]:
        """The servers, in the order of their first devices; a network link leads to another.

        What no host link joins to anything (a storage target, a network switch, a GPU on its own)
        is in none.
        """
        joined = {
            name: [step.target for step in steps if step.link.layer in ("host", "memory")]
            for name, steps in self.steps.items()
        }
        parts = components((name for name in joined if joined[name]), joined.__getitem__)
        hosts = []
        for number, part in enumerate(parts):
            prefixes = {name.rpartition(".")[0] for name in part}
            name = prefixes.pop() if len(prefixes) == 1 else ""
            hosts.append(Host(name or f"host{number}", tuple(part)))
        return tuple(hosts)

    @cached_property
    def host_of(self) -> Mapping[str, Host]:
        """The server of each device that is in one."""
        return {name: host for host in self.hosts for name in host.devices}

    def select(self, pattern: str) -> tuple[Device, ...]:
        """Return the devices that a name, a stem (``gpu``) or a range (``gpu[0-3]``) means.

        Raises
        ------
        UnknownNameError
            If nothing matches.
        """
        names = self._names.matching(pattern)
        if not names:
            raise self._absent(pattern)
        return tuple(self[name] for name in names)

    def _absent(self, pattern: str) -> UnknownNameError:
        """Return the error for a name that no device has, or has any more."""
        if self.description.lost:
            from topo.description.flat import names_of
            from topo.description.loading import vary

            if names_of(vary(self.description, {})).matching(pattern):
                return UnknownNameError(Finding("unknown-name", f"{pattern} is out of order"))
        message, advice = self._names.absent([pattern])
        return UnknownNameError(Finding("unknown-name", message, help=advice))

    @cached_property
    def _names(self) -> Names:
        """The file reader's own rules of which names a text means."""
        from topo.description.flat import names_of

        return names_of(self.description.folded or self.description)

    def without(self, *texts: str) -> Topology:
        """Return the topology with something out of order.

        Parameters
        ----------
        texts
            Devices (``leaf2``), or links of which a cable fails (``leaf0 -- spine0``).

        Raises
        ------
        UnknownNameError
            If there is no such device or link.
        """
        from topo.description.without import without

        assert self.build is not None, "only what was built from a description is built again"
        return self.build(without(self.description.folded or self.description, texts))

    def written_out(self, asked: str = "") -> Topology:
        """Return the topology with each device for itself, whatever is alike.

        Parameters
        ----------
        asked
            What is asked of each of them, where that is more than to list them.

        Raises
        ------
        DescriptionError
            If they are too many, for what is `asked` or for any (`topo.description.flat.flat`).
        """
        if self.folding is None:
            return self
        from topo.description.flat import flat

        whole = self.description.folded
        assert self.build is not None, "only what was built from a description is built again"
        assert whole is not None, "it knows what it was folded from"
        if asked and whole.device_count > _MOST_ASKED:
            message = (
                f"{self.name} has {whole.device_count:,} devices, and {asked} each by itself, "
                f"which topo does for at most {_MOST_ASKED:,}"
            )
            advice = "ask about a part of it: one group of its servers, its share of the storage"
            raise DescriptionError(Finding("too-large", message, help=advice))
        return self.build(flat(whole))

    def telling_apart(self, workloads: tuple[Workload, ...]) -> Topology:
        """Return the topology with the ends of some workloads told from what is alike otherwise."""
        stated = self.description.workloads
        asked = tuple(workload for workload in workloads if workload not in stated)
        whole = self.description.folded
        if self.folding is None or not asked or whole is None:
            return self
        assert self.build is not None, "only what was built from a description is built again"
        return self.build(replace(whole, workloads=(*stated, *asked)))

    def cell_size(self, device: str) -> int:
        """Return how many devices a device stands for: one, but in a folded topology."""
        return 1 if self.folding is None else self.folding.cell_size(device)

    def class_size(self, device: str) -> int:
        """Return how many devices are alike to a device, itself among them, as far as is folded."""
        return 1 if self.folding is None else self.folding.class_size(device)

    def standing_for(self, devices: tuple[str, ...]) -> tuple[str, ...]:
        """Return the devices that stand for some: all of them, but in a folded topology."""
        if self.folding is None:
            return devices
        return tuple(name for name in devices if name in self.devices)

    def is_representative(self, device: str) -> bool:
        """Whether a device answers for all that are alike: each does, but in a folded topology."""
        return self.folding is None or self.folding.representative(device) == device

    def named_by(self, devices: Iterable[Device]) -> tuple[str, ...]:
        """Return the names of all that some devices stand for: theirs, but in a folded topology."""
        folding = self.folding
        if folding is None:
            return tuple(device.name for device in devices)
        return tuple(
            unit + device.name[len(first) :]
            for device in devices
            for first in [folding.unit(device.name)]
            for unit in folding.in_cell(first)
        )

    @property
    def stand_ins(self) -> tuple[Finding, ...]:
        """Notes of which servers answer for others that are alike: some in a folded topology."""
        return tuple(self.folding.stand_ins()) if self.folding is not None else ()

    @cached_property
    def alike_resources(self) -> Mapping[str, AlikeResources]:
        """What each resource of a folded topology stands for, by its id."""
        from topo.topology.folding import alike_resources

        return alike_resources(self)

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

    @cached_property
    def both_ways(self) -> Mapping[str, Resource]:
        """What a link carries in both directions at once, by the ids of its two directions.

        Only of links of which that is known to be less than twice one direction.
        """
        return both_ways(self)

    @cached_property
    def dma_limits(self) -> Mapping[str, Resource]:
        """What devices get of links of which cores get more, by the ids of their directions."""
        return dma_limits(self)

    @property
    def all_resources(self) -> tuple[Resource, ...]:
        """Every resource of the machine, at last what links carry both ways and for devices."""
        both_ways = dict.fromkeys(self.both_ways.values())
        return (*self.resources.values(), *both_ways, *self.dma_limits.values())

    @cached_property
    def unplaced(self) -> Mapping[str, Resource]:
        """The quadrants of CPUs that links do not name, by the ids of the links' directions.

        How much passes them is unknown, where each quadrant of the CPU has a stated rate.
        """
        return unplaced_quadrants(self)

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
        from topo.description.without import without

        assert self.build is not None, "only what was built from a description is built again"
        changed = vary(self.description, changes)
        lost = self.description.lost
        return self.build(without(changed, lost) if lost else changed)

    def graph(self) -> networkx.MultiDiGraph[str]:
        """Return a new `networkx.MultiDiGraph`: two edges for every duplex link.

        Node attributes: ``kind``, ``part``, ``label``, ``role``, ``outside``. Edge attributes:
        ``bandwidth`` (GB/s, theoretical, this direction; `None` when unknown, infinite when
        unlimited), ``achievable`` and ``measured`` (GB/s or `None`), ``medium``, ``layer``,
        ``lanes``, ``cables``, ``resource`` (its name), ``link`` (as written). A memory's two edges
        share one resource, its bus, and both show the bus's bandwidth.

        Changing the graph changes nothing in the topology. Of a folded one each device is written
        out.

        Raises
        ------
        DescriptionError
            If those are too many (`topo.description.flat.flat`).
        """
        if self.folding is not None:
            return self.written_out().graph()
        import networkx

        def gigabytes(figure: Figure | None) -> float | None:
            return None if figure is None or figure.unknown else (figure.value or 0.0) / 1e9

        graph: networkx.MultiDiGraph[str] = networkx.MultiDiGraph(name=self.name)
        for device in self.devices.values():
            words = {"label": device.label, "role": device.role, "outside": device.outside}
            graph.add_node(device.name, kind=device.kind, part=device.part.name, **words)
        for link in self.links:
            ends = (link.a.device, link.b.device)
            # A memory's link has no resources of its own.
            buses = (self.resources.get(f"{end}/bus") for end in ends)
            bus = next((bus for bus in buses if bus is not None), None)
            for (source, target), direction in ((ends, link.forward), (ends[::-1], link.backward)):
                used = direction or bus
                graph.add_edge(
                    source,
                    target,
                    bandwidth=gigabytes(used.capacity.theoretical if used else None),
                    achievable=gigabytes(used.capacity.achievable if used else None),
                    measured=gigabytes(used.capacity.measured if used else None),
                    medium=link.cable.medium,
                    layer=link.layer,
                    lanes=link.cable.lanes,
                    cables=link.cable.count,
                    resource=used.name if used else None,
                    link=link.name,
                )
        return graph
