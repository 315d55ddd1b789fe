"""From the facts of cufile.json and gdscheck to words of a topology file, each with its place."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Final

from topo.description.keys import GDS_SUPPORT, ROUTING
from topo.document.nodes import Scalar, Sequence
from topo.errors import Finding
from topo.host.facts import SaidFact
from topo.topology.locality import matrix_devices

if TYPE_CHECKING:
    from collections.abc import Iterator

    from topo.document.nodes import Node
    from topo.errors import Place
    from topo.host.cufile import CufileConfig
    from topo.host.gdscheck import GdsCheck
    from topo.topology.topology import Topology


Facts = dict[str, SaidFact]

_COMPAT: Final = "properties.allow_compat_mode"
_FORCED: Final = "properties.force_compat_mode"
_ROUTED: Final = "properties.rdma_dynamic_routing"
_ORDER: Final = "properties.rdma_dynamic_routing_order"
_POLLING: Final = "properties.use_poll_mode"
_P2PDMA: Final = ("block.nvme.use_pci_p2pdma", "properties.use_pci_p2pdma")
_WRITES: Final = "properties.gds_rdma_write_support"
_ADDRESSES: Final = ".rdma_dev_addr_list"
_FLAGS: Final = (_COMPAT, _FORCED, _ROUTED, _POLLING, *_P2PDMA, _WRITES)
# What counts as well where the file says that the storage is mounted as that.
_OWN_WRITES: Final = {
    "weka": "fs.weka.rdma_write_support",
    "wekafs": "fs.weka.rdma_write_support",
    "gpfs": "fs.gpfs.gds_write_support",
}
_SHOWN: Final = 4
_DENIED: Final = ("denylist.drivers", "denylist.filesystems")


@dataclass(frozen=True, slots=True)
class Told:
    """One fact in the words of a topology file: what ``--set target=value`` would be."""

    target: str
    value: Node

    @property
    def place(self) -> Place:
        """Where the host's tool says it."""
        return self.value.place

    @property
    def device(self) -> str:
        """The device, ``""`` for a setting of the host."""
        name = self.target.rpartition(".")[0]
        return "" if name == "settings" else name

    @property
    def key(self) -> str:
        """The key of the setting or device."""
        return self.target.rpartition(".")[2]

    @property
    def shown(self) -> str:
        """The value as words."""
        if isinstance(self.value, Scalar):
            return self.value.text
        assert isinstance(self.value, Sequence), "a word or a list"
        return " ".join(item.text for item in self.value.items if isinstance(item, Scalar))


def _word(target: str, text: str, place: Place) -> Told:
    return Told(target, Scalar(text, place))


def _list(target: str, words: tuple[str, ...], place: Place) -> Told:
    """Return a list as the file's words; an empty one is `none`."""
    if not words:
        return _word(target, "none", place)
    return Told(target, Sequence(tuple(Scalar(word, place) for word in words), place))


# --- cuFile's configuration -----------------------------------------------------------------------


def merged_facts(
    cufile: CufileConfig | None, gdscheck: GdsCheck | None
) -> tuple[Facts, list[Finding]]:
    """Return cuFile's configuration, gdscheck's word before the file's, and where they differ."""
    mine: Facts = dict(cufile.facts) if cufile else {}
    its: Facts = dict(gdscheck.facts) if gdscheck else {}
    findings = [
        Finding(
            "host-contradiction",
            f"`{key}` is {mine[key].text or 'empty'} here and {its[key].text or 'empty'} by "
            f"{its[key].place.file}; used is what the library read, {its[key].text or 'empty'}",
            place=mine[key].place,
            severity="warning",
        )
        for key in (*_FLAGS, _ORDER)
        if key in mine and key in its and _differ(mine[key], its[key])
    ]
    return {**mine, **its}, findings


def _differ(one: SaidFact, other: SaidFact) -> bool:
    return one.flag != other.flag if one.key != _ORDER else one.words != other.words


def config_told(topology: Topology, facts: Facts, findings: list[Finding]) -> Iterator[Told]:
    """Yield what cuFile's configuration says of the host; `findings` gets what is odd in it."""
    findings += _odd_flags(facts)
    yield from _compat(facts)
    yield from _routing(facts, findings)
    yield from _writes(topology, facts)
    p2pdma = _first(facts, _P2PDMA)
    if p2pdma is not None:
        yield _word("settings.p2pdma", "on" if p2pdma.flag else "off", p2pdma.place)
    denied = [facts[key] for key in _DENIED if key in facts and facts[key].words]
    if denied:
        words = tuple(dict.fromkeys(word for fact in denied for word in fact.words if word))
        yield _list("settings.gds-denied", words, denied[0].place)
    findings += _summary(facts)


def _odd_flags(facts: Facts) -> Iterator[Finding]:
    for key in (*_FLAGS, *_OWN_WRITES.values()):
        if key in facts and facts[key].flag is None:
            message = f"`{key}` is true or false, not `{facts[key].text}`; it is not used"
            yield Finding("cufile-value", message, place=facts[key].place, severity="warning")


def _first(facts: Facts, keys: tuple[str, ...]) -> SaidFact | None:
    """Return the first of these flags that says yes, else the first that says no."""
    found = [facts[key] for key in keys if key in facts and facts[key].flag is not None]
    return next((fact for fact in found if fact.flag), next(iter(found), None))


def _compat(facts: Facts) -> Iterator[Told]:
    forced, allowed = _first(facts, (_FORCED,)), _first(facts, (_COMPAT,))
    if forced is not None and forced.flag:
        yield _word("settings.compat-mode", "forced", forced.place)
    elif allowed is not None:
        word = "allowed" if allowed.flag else "off"
        yield _word("settings.compat-mode", word, allowed.place)


def _routing(facts: Facts, findings: list[Finding]) -> Iterator[Told]:
    routed, order = _first(facts, (_ROUTED,)), facts.get(_ORDER)
    if routed is None:
        return
    if not routed.flag:
        yield _word("settings.dynamic-routing", "off", routed.place)
        return
    given = order.words if order is not None else ROUTING
    words = tuple(dict.fromkeys(word for word in given if word in ROUTING))
    if order is not None and set(given) - set(words):
        odd = ", ".join(dict.fromkeys(word for word in given if word not in ROUTING))
        message = f"no routing policy is called `{odd[:60]}`; there are {', '.join(ROUTING)}"
        findings.append(Finding("cufile-value", message, place=order.place, severity="warning"))
    if not _addresses(facts):
        message = (
            "dynamic routing needs the addresses of the cards that lead to the storage, and no "
            "`rdma_dev_addr_list` has any"
        )
        finding = Finding("routing-addresses", message, place=routed.place, severity="warning")
        findings.append(finding)
    if words in ((), ROUTING):
        yield _word("settings.dynamic-routing", "on", routed.place)
    else:
        yield _list("settings.dynamic-routing", words, routed.place)


def _addresses(facts: Facts) -> tuple[str, ...]:
    """Return the addresses of the cards that cuFile may use, of all mounts."""
    return tuple(
        dict.fromkeys(
            word
            for key, fact in facts.items()
            if key.endswith(_ADDRESSES) or ".mount_table" in key
            for word in fact.words
        )
    )


def _writes(topology: Topology, facts: Facts) -> Iterator[Told]:
    """Yield whether direct writes are on: everywhere, and for the file's filesystem."""
    own = _OWN_WRITES.get((topology.settings.filesystem or "").lower(), "")
    found = [facts[key] for key in (own, _WRITES) if key in facts and facts[key].flag is not None]
    closed = next((fact for fact in found if not fact.flag), None)
    if closed is not None:
        yield _word("settings.direct-writes", "off", closed.place)
    elif found:
        yield _word("settings.direct-writes", "on", found[0].place)


def _summary(facts: Facts) -> Iterator[Finding]:
    """Yield one note of what cuFile is told that the answer does not show by itself."""
    polling, addresses = _first(facts, (_POLLING,)), _addresses(facts)
    said = []
    if polling is not None:
        said.append(f"polling {'on' if polling.flag else 'off'}")
    if addresses:
        more = ", ..." if len(addresses) > _SHOWN else ""
        said.append(f"cards by address: {', '.join(addresses[:_SHOWN])}{more}")
    if said:
        place = next(iter(facts.values())).place
        message = f"cuFile by {place.file}: {'; '.join(said)} (said, changes no answer)"
        yield Finding("cufile-read", message, severity="note")


# --- gdscheck -------------------------------------------------------------------------------------


def gdscheck_told(topology: Topology, found: GdsCheck, findings: list[Finding]) -> Iterator[Told]:
    """Yield what gdscheck found of the host; `findings` gets what no file can say."""
    if found.iommu is not None:
        yield _word("settings.iommu", found.iommu.text, found.iommu.place)
    if found.drivers:
        direct = tuple(name for name in GDS_SUPPORT if name in found.direct)
        place = next((found.drivers[name].place for name in direct if name in found.drivers), None)
        first = next(iter(found.drivers.values())).place
        yield _list("settings.gds-support", direct, place or first)
    yield from _gpus(topology, found, findings)
    yield from _acs(topology, found, findings)
    findings.append(_read_note(found))
    if found.verified is False:
        message = f"{found.name}: the platform's verification failed"
        findings.append(Finding("gdscheck-read", message, severity="warning"))


def _gpus(topology: Topology, found: GdsCheck, findings: list[Finding]) -> Iterator[Told]:
    """Yield which GPUs take part; gdscheck counts them in the order of their PCI addresses."""
    gpus = [device.name for device in matrix_devices(topology) if device.kind == "gpu"]
    if not found.gpus:
        return
    if [gpu.index for gpu in found.gpus] != list(range(len(gpus))):
        message = (
            f"{found.name} has {len(found.gpus)} GPUs and {topology.name} has {len(gpus)}: what it "
            "says of each is not used"
        )
        place = found.gpus[0].place
        findings.append(Finding("gdscheck-gpus", message, place=place, severity="warning"))
        return
    for name, gpu in zip(gpus, found.gpus, strict=True):
        yield _word(f"{name}.p2p", "yes" if gpu.supported else "no", gpu.place)


def _acs(topology: Topology, found: GdsCheck, findings: list[Finding]) -> Iterator[Told]:
    """Yield the switches with access control on, by address; where no address is known, all."""
    if not found.acs:
        return
    switches = topology.of_kind("pcie-switch")
    by_address = {_short(address): one.name for one in switches for address in one.pci}
    places: dict[str, Place] = {}
    for fact in found.acs:
        if name := by_address.get(_short(fact.text)):
            places.setdefault(name, fact.place)
    if not places and not by_address:
        places = {one.name: found.acs[0].place for one in switches}
    if not places:
        message = f"{found.name} finds access control (ACS) on at {found.acs[0].text}: "
        message += "no PCIe switch of the file has this address"
        place = found.acs[0].place
        findings.append(Finding("gdscheck-acs", message, place=place, severity="warning"))
    for name, place in places.items():
        yield _word(f"{name}.acs", "yes", place)


def _short(address: str) -> str:
    return address.lower().removeprefix("0000:")


def _read_note(found: GdsCheck) -> Finding:
    words = {"release": "GDS", "driver": "nvidia_fs", "library": "libcufile"}
    said = [f"{word} {found.versions[key]}" for key, word in words.items() if key in found.versions]
    able = sum(gpu.supported for gpu in found.gpus)
    if found.gpus:
        said.append(f"{able} of {len(found.gpus)} GPUs support GDS")
    if found.verified:
        said.append("platform verified, which does not prove that data goes directly")
    return Finding("gdscheck-read", f"{found.name}: {'; '.join(said) or 'read'}", severity="note")
