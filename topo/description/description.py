"""What a file says, validated and frozen: every range expanded, every name resolved.

Nothing here is computed from physics yet; that is `topo.topology`.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import field, fields, replace
from typing import TYPE_CHECKING, Final, Literal, TypeAlias, get_args

from topo.catalogue.kinds import CARDS, MEMORIES, STORAGE, HasKind, Kind
from topo.catalogue.part import Cable, Figure, Medium, Part
from topo.document.nodes import Document, Node
from topo.document.nodes import Mapping as Entries
from topo.errors import Finding, Place
from topo.phrases import brief
from topo.records import dataclass

if TYPE_CHECKING:
    from topo.catalogue.needs import Need
    from topo.description.uses import Origin

Mover = Literal["nic", "drive", "core", "gpu"]
Over = Literal["gpu-links", "pcie", "network"]
Direction = Literal["read", "write", "copy"]
# What all of some GPUs do together, as NCCL calls it.
Collective = Literal[
    "all-reduce", "all-gather", "reduce-scatter", "all-to-all", "broadcast", "reduce"
]
COLLECTIVES: Final[tuple[Collective, ...]] = get_args(Collective)
ROOTED: Final[tuple[Collective, ...]] = ("broadcast", "reduce")
"""Those that begin or end at one GPU."""
# What a workload may ask of a model, in the place of a size or beside it.
Asks = Literal["needs", "checkpoint", "kv-cache"]
ASKS: Final[tuple[Asks, ...]] = get_args(Asks)
Pairing = Literal["nearest", "all", "in-order"]
Target = Literal["staged", "p2p"]
Basis = Literal["theoretical", "achievable", "measured"]
BASES: Final[tuple[Basis, ...]] = get_args(Basis)
# What data comes from and goes to, and the kinds of devices that each is. Of two the one farther
# down is filled or emptied (the endpoint), and data paths are written towards it.
ENDS: Final[Mapping[str, tuple[Kind, ...]]] = {
    "storage": STORAGE,
    "card": CARDS,
    "ram": MEMORIES,
    "gpu": ("gpu",),
}
END_OF_KIND: Final[Mapping[str, str]] = {kind: end for end, kinds in ENDS.items() for kind in kinds}
# Where data may be before and after a move, besides buffers: any name ending in `-buffer`.
PLACES: Final = ("storage", "peer", "card", "ram", "gpu", "staging-gpu")
# cuFile's routing policies, in the order that it ships with.
ROUTING: Final = ("GPU_MEM_NVLINKS", "GPU_MEM", "SYS_MEM", "P2P")
FabricKind = Literal["rail-optimized", "fat-tree", "leaf-spine"]
FABRIC_KINDS: Final[tuple[FabricKind, ...]] = get_args(FabricKind)
# What people look for in a list of machines, in the order of the list.
GROUPS: Final = ("nvidia", "server", "amd", "cloud", "pcie", "storage", "cluster", "example")
# What a caller changes: a text as ``--set`` has it, or a node that knows where it was said.
Override: TypeAlias = "str | Node"


@dataclass(frozen=True, slots=True)
class Device(HasKind):
    """One device: its part with the device's own figures laid over it, and where it sits.

    `numa` are the OS numbers of a CPU's NUMA nodes. `outside` marks a stand-in for something that
    the machine is cabled to. `pci` and `rdma` have one entry a PCI function.
    """

    name: str
    part: Part
    place: Place
    label: str = ""
    role: str = ""
    slot_name: str = ""
    pci: tuple[str, ...] = ()
    rdma: tuple[str, ...] = ()
    numa: tuple[int, ...] = ()
    outside: bool = False

    def __repr__(self) -> str:
        return brief(self, f"{self.name}: {self.part.name}, {self.kind}")

    @property
    def kind(self) -> Kind:
        """The kind of its part."""
        return self.part.kind


@dataclass(frozen=True, slots=True)
class End:
    """One end of a link: a device, and a port (``p2``) or NUMA node (``numa3``) of it if named."""

    device: str
    side: str = ""

    def __str__(self) -> str:
        return f"{self.device}/{self.side}" if self.side else self.device


@dataclass(frozen=True, slots=True)
class DescribedLink:
    """One cable bundle between two devices, after pairing and fanning out.

    `times` is how many of them each device at `a`, and each at `b`, has: one, but in a folded
    topology, where a device stands for several (`topo.topology.folding`).
    """

    a: End
    b: End
    cable: Cable
    place: Place
    times: tuple[int, int] = (1, 1)


@dataclass(frozen=True, slots=True)
class FabricTier:
    """The switches of one tier of a fabric (`leaf`, `spine`, `core`), and the cables below them."""

    role: str
    switches: tuple[str, ...]
    cables: int


@dataclass(frozen=True, slots=True)
class Fabric:
    """A network that a file states by rule: what was made of it, from the cards up."""

    name: str
    kind: FabricKind
    tiers: tuple[FabricTier, ...]
    place: Place


@dataclass(frozen=True, slots=True)
class Move:
    """One transfer by one engine.

    Parameters
    ----------
    source, target
        An end (``storage``, ``card``: a network card, ``ram``, ``gpu``; ``peer``: the other GPU or
        the NIC of a `copy`), a RAM buffer (``kernel-buffer``, any name ending in ``-buffer``), or
        ``staging-gpu``: the memory of the GPU nearest to the NIC.
    mover
        ``nic``: the DMA engine at the storage's side (the NIC of a remote target, the drive's own
        for a local one); ``drive``: a local drive's own, nothing else; ``core``; ``gpu``: a copy
        engine.
    rate
        The stage's own rate, if stated: of one worker (`per_worker`) or shared by all.
    over
        Which links a move between two GPUs takes: GPU links (``gpu-links``, where not said) or
        the host's (``pcie``). ``network``: from one host's RAM or GPU into another's, each end
        moved by a card of its own host (RDMA, sockets).
    """

    source: str
    target: str
    mover: Mover
    rate: Figure | None = None
    per_worker: bool = False
    over: Over | None = None


@dataclass(frozen=True, slots=True)
class DataPath:
    """A named way of moving data, written for a read; a write runs the moves backwards.

    Parameters
    ----------
    to_other_servers
        The data path between GPUs of different servers, where only a part of a copy is.
    stages
        ``pipelined``: the slowest decides; ``serial``: the times of one worker's stages add.
    workers
        Workers for each endpoint, for `serial`.
    needs
        Facts it cannot do without: ``peer-to-peer``, ``filesystem``, ``rdma``, ``local-drive``,
        ``remote-storage``, ``c2c``, ``fabric``, ``cufile``, ``nvidia-gpu``, ``controller-memory``.
    """

    name: str
    moves: tuple[Move, ...]
    title: str = ""
    stages: Literal["pipelined", "serial"] = "pipelined"
    workers: int = 1
    needs: tuple[str, ...] = ()
    falls_back_to: str = ""
    to_other_servers: str = ""
    source: str = ""
    place: Place | None = None

    @property
    def far_end(self) -> str:
        """What it joins with its endpoint, a word of `ENDS`; a peer is a card, or another GPU."""
        end = self.moves[0].source
        if end != "peer":
            return end
        if self.between_servers:
            return "gpu"
        return "card" if any(move.mover == "nic" for move in self.moves) else "gpu"

    @property
    def between_servers(self) -> bool:
        """Whether one of its moves goes over the network, from one host's memory to another's."""
        return any(move.over == "network" for move in self.moves)

    @property
    def near_end(self) -> str:
        """What its endpoint is, a word of `ENDS`."""
        return self.moves[-1].target


@dataclass(frozen=True, slots=True)
class ModelNeed:
    """What a workload moves for a model.

    Parameters
    ----------
    asks
        ``needs``: data that accelerators compute on; ``checkpoint``; ``kv-cache`` of `tokens`.
    model
        The model.
    accelerators
        How many stand behind each endpoint, which emulates them; of a checkpoint how many compute
        in all. 0 where nobody says: each endpoint is one.
    accelerator
        What they are, by the model's computation times; empty where each GPU's part says it.
    mttf
        Mean time to failure of one of them, in seconds.
    """

    asks: Asks
    model: Need
    tokens: int = 0
    accelerators: int = 0
    accelerator: str = ""
    mttf: Figure | None = None


@dataclass(frozen=True, slots=True)
class Workload:
    """This many bytes, from here to there.

    Parameters
    ----------
    direction
        ``read``: towards the GPU, or whatever of the two ends stands for it (`ENDS`); ``write``:
        away from it; ``copy``: either way.
    size
        Bytes in all (a size that the file gives ``each`` is already multiplied).
    sources, targets
        Device names, expanded, in file order.
    via
        Data paths to compare; empty means the usual ones of its ends (``legacy``, ``direct``).
    efficiency
        End-to-end ratio (low, high), applied once to a theoretical result.
    weight, limit, start
        Fair-share weight; rate limit of the whole in bytes/s; start in seconds.
    pairing
        Which far ends each endpoint exchanges data with; empty for what is usual: the nearest RAM,
        all storage.
    target
        How a drive of another host is reached inside that host: through its RAM, or peer to peer.
    sized
        Whether anybody said a size. Where nobody did, `size` stands for any, and only rates mean
        something.
    collective
        What GPUs do together; empty for a transfer from here to there. It is a copy from all of
        them to all of them, and `size` is what nccl-tests calls the size.
    root
        Of a collective that begins or ends at one GPU: which one.
    need
        What it moves for a model, if it does.
    """

    name: str
    direction: Direction
    size: float
    sources: tuple[str, ...]
    targets: tuple[str, ...]
    via: tuple[str, ...] = ()
    efficiency: tuple[float, float] | None = None
    weight: float = 1.0
    limit: float | None = None
    start: float = 0.0
    place: Place | None = None
    sized: bool = True
    pairing: Pairing | Literal[""] = ""
    target: Target = "staged"
    collective: Collective | Literal[""] = ""
    root: str = ""
    need: ModelNeed | None = None


@dataclass(frozen=True, slots=True)
class Expectation:
    """One sentence of `expect:`, read.

    `kind` and what it uses: ``time``/``rate`` (`relation`, `value`; `what` is ``algbw`` or
    ``busbw`` where it says which of a collective's rates), ``limited-by`` (`what`),
    ``beats`` (`what`: the other data path), ``locality`` (`subject` to `what` is `value_text`),
    ``possible``/``not-possible`` (`subject` to `what`, `via`), ``feeds`` (`value`: how many).
    """

    text: str
    kind: Literal[
        "time", "rate", "limited-by", "beats", "feeds", "locality", "possible", "not-possible"
    ]
    subject: str
    via: str = ""
    relation: Literal["<=", ">=", "<", ">", ""] = ""
    value: float = 0.0
    what: str = ""
    value_text: str = ""
    basis: Basis | None = None
    place: Place | None = None


@dataclass(frozen=True, slots=True)
class Choice:
    """One value of an axis: how it is called, and what it changes, by target as in ``--set``."""

    label: str
    changes: Mapping[str, str]


@dataclass(frozen=True, slots=True)
class Axis:
    """What a sweep varies, and its values in their order."""

    name: str
    choices: tuple[Choice, ...]
    place: Place | None = None

    @property
    def keys(self) -> tuple[str, ...]:
        """All that its values change, each once."""
        return tuple(dict.fromkeys(key for choice in self.choices for key in choice.changes))


@dataclass(frozen=True, slots=True)
class Measurement:
    """A rate somebody measured from one device to another, in that direction."""

    source: str
    target: str
    rate: Figure
    date: str = ""
    place: Place | None = None


@dataclass(frozen=True, slots=True)
class Settings:
    """Facts of the host; `None` is "not said".

    Parameters
    ----------
    dynamic_routing
        cuFile's routing policies in their order; empty when it is off.
    gds_support
        What the GDS driver supports; empty when nothing.
    places
        Where each is said, by its key in the file.
    """

    iommu: Literal["off", "passthrough", "on", "passthrough-or-on"] | None = None
    filesystem: str | None = None
    transport: Literal["rdma", "tcp"] | None = None
    compat_mode: Literal["off", "allowed", "forced"] | None = None
    dynamic_routing: tuple[str, ...] | None = None
    direct_writes: Literal["off", "on"] | None = None
    p2pdma: Literal["off", "on"] | None = None
    nvlink_sharp: Literal["off", "on"] | None = None
    gds_support: tuple[str, ...] | None = None
    gds_denied: tuple[str, ...] | None = None
    places: Mapping[str, Place] = field(default_factory=dict)

    def stated(self, key: str) -> str | list[str] | None:
        """Return what a file says under `key`: a word or a list, `None` when nothing."""
        value = getattr(self, key.replace("-", "_"))
        if key == "dynamic-routing" and value in ((), ROUTING):
            return "on" if value else "off"
        return list(value) if isinstance(value, tuple) else value

    def under(self, over: Settings) -> Settings:
        """Return these facts with what `over` states in their place."""
        stated = {
            setting.name: value
            for setting in fields(Settings)
            if setting.name != "places" and (value := getattr(over, setting.name)) is not None
        }
        return replace(self, **stated, places={**self.places, **over.places}) if stated else self


@dataclass(frozen=True, slots=True)
class Use:
    """Machines of another file, each under a name of its own in this one: `node0`, `node1`.

    Parameters
    ----------
    names
        What they stand under, in the order of the file.
    template
        What the used file says, with the overrides of this place laid in. Its stand-ins for what
        is outside are gone with their cables, and so are its workloads and expectations; settings
        of the files around it lie over its own. Where several uses say the same, all have the same
        object.
    place
        Where it is said what is used.
    source
        What is used: the name of a built-in machine, or a path.
    overrides
        What is changed at this place, by target: ``{"slot1.part": ...}``.
    written
        The template as the file has it, without what a caller changes: what its machines were
        cabled for.
    """

    names: tuple[str, ...]
    template: Description
    place: Place
    source: str
    overrides: Mapping[str, Override] = field(default_factory=dict)
    written: Description | None = field(default=None, compare=False, repr=False)


@dataclass(frozen=True, slots=True)
class Description:
    """A whole file.

    Parameters
    ----------
    fabrics
        What was made by rule; its switches and cables are among `devices` and `links`.
    devices, links
        The file's own. An end of a link may be inside a machine of `uses`: ``node3.slot1``.
    uses
        The machines that it puts inside this one; `topo.description.flat.flat` writes them out.
    parts, media, data_paths
        The file's own; the built-in ones are not in here. Data paths of used files are.
    axes
        What the file's `sweep:` varies.
    likes
        The part that each of `parts` started from, where it names one.
    needs
        The file's own, by name.
    data_path_overrides
        What the file or the caller changes in a built-in data path, by its name: entries for
        `topo.description.data_paths.vary_data_path`, checked already.
    host_settings
        In a description with all devices written out: what holds in each machine that was used, by
        the name before the last ``.`` of its devices.
    lost
        What fails in it (`topo.description.without`); physics does not ask where it leads.
    folded
        What it was written out from.
    comment
        What stands above the first key.
    group
        Where a list of machines has it, as the file says; one of `GROUPS`.
    findings
        Warnings and notes; errors would have stopped the reading.
    document, overrides, origin
        What it was read from, so that it can be read again with changes
        (`topo.description.loading.vary`).
    """

    name: str
    title: str
    devices: tuple[Device, ...]
    links: tuple[DescribedLink, ...]
    fabrics: tuple[Fabric, ...] = ()
    workloads: tuple[Workload, ...] = ()
    expectations: tuple[Expectation, ...] = ()
    measurements: tuple[Measurement, ...] = ()
    axes: tuple[Axis, ...] = ()
    settings: Settings = field(default_factory=Settings)
    uses: tuple[Use, ...] = ()
    parts: Mapping[str, Part] = field(default_factory=dict)
    likes: Mapping[str, str] = field(default_factory=dict)
    media: Mapping[str, Medium] = field(default_factory=dict)
    data_paths: Mapping[str, DataPath] = field(default_factory=dict)
    needs: Mapping[str, Need] = field(default_factory=dict)
    data_path_overrides: Mapping[str, Entries] = field(default_factory=dict)
    host_settings: Mapping[str, Settings] = field(default_factory=dict)
    lost: tuple[str, ...] = ()
    folded: Description | None = field(default=None, compare=False, repr=False)
    comment: str = ""
    group: str = ""
    file: str = ""
    findings: tuple[Finding, ...] = ()
    document: Document | None = field(default=None, compare=False, repr=False)
    overrides: Mapping[str, Override] = field(default_factory=dict, compare=False, repr=False)
    origin: Origin | None = field(default=None, compare=False, repr=False)

    @property
    def device_count(self) -> int:
        """How many devices there are in all, those of used machines included."""
        used = (len(use.names) * use.template.device_count for use in self.uses)
        return len(self.devices) + sum(used)
