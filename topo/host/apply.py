"""What cufile.json and gdscheck state, laid over a machine: the facts that a verdict rests on.

Each becomes what a person would have written into the file (`settings: {dynamic-routing: on}`),
with the place where the tool states it. What the host states wins over the machine's file, what
the caller changed (``--set``) over both; where two of them differ, a finding says which was used.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import replace
from typing import TYPE_CHECKING, Final

from topo.description.description import ROUTING
from topo.description.keys import GDS_SUPPORT
from topo.description.names import ranged
from topo.discovery.pci import read_address
from topo.document.nodes import Node, Scalar, Sequence
from topo.errors import Finding, Place
from topo.phrases import listed
from topo.records import dataclass
from topo.topology.locality import matrix_devices

if TYPE_CHECKING:
    from topo.host.cufile import CufileConfig, HostFact
    from topo.host.gdscheck import GdsCheck
    from topo.topology.topology import Topology

_COMPAT: Final = "properties.allow_compat_mode"
_FORCED: Final = "properties.force_compat_mode"
_ROUTED: Final = "properties.rdma_dynamic_routing"
_ORDER: Final = "properties.rdma_dynamic_routing_order"
_POLLING: Final = "properties.use_poll_mode"
_P2PDMA: Final = ("block.nvme.use_pci_p2pdma", "properties.use_pci_p2pdma")
_WRITES: Final = "properties.gds_rdma_write_support"
_FLAGS: Final = (_COMPAT, _FORCED, _ROUTED, _POLLING, *_P2PDMA, _WRITES)
# What counts as well where the file says that the storage is mounted as that.
_FILESYSTEM_WRITES: Final = {
    "weka": "fs.weka.rdma_write_support",
    "wekafs": "fs.weka.rdma_write_support",
    "gpfs": "fs.gpfs.gds_write_support",
}
_DENIED: Final = ("denylist.drivers", "denylist.filesystems")
_ADDRESSES_SHOWN: Final = 4


@dataclass(frozen=True, slots=True)
class HostSetting:
    """One fact in the words of a topology file: what ``--set target=value`` would be."""

    target: str
    value: str | tuple[str, ...]
    place: Place

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
    def words(self) -> str:
        """The value as one text; an empty list is `none`."""
        return self.value if isinstance(self.value, str) else " ".join(self.value) or "none"

    @property
    def node(self) -> Node:
        """The value as the topology file has it."""
        if isinstance(self.value, str) or not self.value:
            return Scalar(self.words, self.place)
        return Sequence(tuple(Scalar(word, self.place) for word in self.value), self.place)


def with_host_facts(
    topology: Topology, *, cufile: CufileConfig | None = None, gdscheck: GdsCheck | None = None
) -> Topology:
    """Return the machine as its host's tools say it is, with findings of what they say.

    Parameters
    ----------
    topology
        The machine.
    cufile, gdscheck
        What was read; of cuFile's configuration gdscheck's text counts, since it is what the
        library read.

    Raises
    ------
    TopoError
        If the machine cannot be as they say.
    """
    file_facts = cufile.facts if cufile else {}
    library_facts = gdscheck.facts if gdscheck else {}
    statements: list[HostSetting | Finding] = [
        *_differing_facts(file_facts, library_facts),
        *_config_settings(topology, {**file_facts, **library_facts}),
        *(cufile.findings if cufile else ()),
        *(_gdscheck_settings(topology, gdscheck) if gdscheck else ()),
    ]
    settings = [item for item in statements if isinstance(item, HostSetting)]
    findings = [item for item in statements if isinstance(item, Finding)]
    used: list[HostSetting] = []
    contradictions: dict[tuple[str, str, str, bool], list[tuple[HostSetting, Place | None]]] = {}
    for setting in settings:
        stated, place = _stated(topology, setting)
        unclear = setting.words == "passthrough-or-on" and stated in ("passthrough", "on")
        if stated == setting.words or unclear:
            continue
        by_caller = _set_by_caller(topology, setting)
        if stated is not None:
            key = (setting.key, setting.words, stated, by_caller)
            contradictions.setdefault(key, []).append((setting, place))
        if not by_caller:
            used.append(setting)
    for (_, _, stated, by_caller), settings_and_places in contradictions.items():
        findings.append(_contradiction(settings_and_places, stated, by_caller=by_caller))
    changed = (
        topology.replace({setting.target: setting.node for setting in used}) if used else topology
    )
    places = {setting.device: setting.place for setting in used if setting.device}
    return replace(
        changed,
        devices={
            name: replace(device, place=places.get(name, device.place))
            for name, device in changed.devices.items()
        },
        findings=(*changed.findings, *findings),
    )


# --- what the machine's file and the caller say of the same --------------------------------------


def _stated(topology: Topology, setting: HostSetting) -> tuple[str | None, Place | None]:
    """Return what the machine's file says of the same, and where."""
    if setting.device:
        device = topology[setting.device]
        flag = device.part.flag(setting.key)
        return (None if flag is None else "yes" if flag else "no"), device.place
    value = topology.settings.stated(setting.key)
    words = " ".join(value) or "none" if isinstance(value, list) else value
    return words, topology.settings.places.get(setting.key)


def _set_by_caller(topology: Topology, setting: HostSetting) -> bool:
    """Whether ``--set`` names the same."""
    changed = [target.rpartition(".") for target in topology.description.overrides]
    names = [name for name, _, key in changed if key == setting.key]
    if not setting.device:
        return "settings" in names
    device = topology[setting.device]
    return any(device in topology.select(name) for name in names if name != "settings")


def _contradiction(
    settings_and_places: list[tuple[HostSetting, Place | None]], stated: str, *, by_caller: bool
) -> Finding:
    """Return one finding for what differs from the file for one thing, or for several alike."""
    devices = [setting.device for setting, _ in settings_and_places]
    setting, place = settings_and_places[0]
    names = listed(ranged(devices, 1)) if setting.device else "settings"
    used = stated if by_caller else setting.words
    source = "by --set" if by_caller else "in the file"
    message = f"`{names}.{setting.key}` is {setting.words} by {setting.place.file}, and {stated}"
    where = f"the file says it at {place.file}:{place.line}" if place and not by_caller else ""
    return Finding(
        "host-contradiction",
        f"{message} {source}; used is {used}",
        place=setting.place,
        severity="warning",
        notes=(where,) if where else (),
    )


# --- cuFile's configuration -----------------------------------------------------------------------

Facts = dict[str, "HostFact"]


def _differing_facts(
    file_facts: Mapping[str, HostFact], library_facts: Mapping[str, HostFact]
) -> Iterator[Finding]:
    """Yield where the configuration that the library read differs from the file."""
    for key in (*_FLAGS, _ORDER):
        if key not in file_facts or key not in library_facts:
            continue
        by_file, by_library = file_facts[key], library_facts[key]
        aspect = "words" if key == _ORDER else "flag"
        if getattr(by_file, aspect) != getattr(by_library, aspect):
            used = by_library.text or "empty"
            yield Finding(
                "host-contradiction",
                f"`{key}` is {by_file.text or 'empty'} here and {used} by "
                f"{by_library.place.file}; used is what the library read, {used}",
                place=by_file.place,
                severity="warning",
            )


def _config_settings(topology: Topology, facts: Facts) -> Iterator[HostSetting | Finding]:
    """Yield what cuFile's configuration says of the host, and what is odd in it."""
    for key in (*_FLAGS, *_FILESYSTEM_WRITES.values()):
        if key in facts and facts[key].flag is None:
            message = f"`{key}` is true or false, not `{facts[key].text}`; it is not used"
            yield Finding("cufile-value", message, place=facts[key].place, severity="warning")
    forced, allowed = _flag(facts, _FORCED), _flag(facts, _COMPAT)
    if forced is not None and forced.flag:
        yield HostSetting("settings.compat-mode", "forced", forced.place)
    elif allowed is not None:
        word = "allowed" if allowed.flag else "off"
        yield HostSetting("settings.compat-mode", word, allowed.place)
    yield from _routing(facts)
    # Direct writes: everywhere, and for the file's filesystem.
    of_filesystem = _FILESYSTEM_WRITES.get((topology.settings.filesystem or "").lower(), "")
    writes = [facts[key] for key in (of_filesystem, _WRITES) if key in facts]
    writes = [fact for fact in writes if fact.flag is False] or [
        fact for fact in writes if fact.flag
    ]
    if writes:  # one that says no decides
        word = "on" if writes[0].flag else "off"
        yield HostSetting("settings.direct-writes", word, writes[0].place)
    p2pdma = _flag(facts, *_P2PDMA)
    if p2pdma is not None:
        yield HostSetting("settings.p2pdma", "on" if p2pdma.flag else "off", p2pdma.place)
    denied = [facts[key] for key in _DENIED if key in facts and facts[key].words]
    if denied:
        words = tuple(dict.fromkeys(word for fact in denied for word in fact.words if word))
        yield HostSetting("settings.gds-denied", words, denied[0].place)
    # What cuFile is told that the answer does not show by itself.
    polling, addresses = _flag(facts, _POLLING), _addresses(facts)
    phrases = []
    if polling is not None:
        phrases.append(f"polling {'on' if polling.flag else 'off'}")
    if addresses:
        more = ", ..." if len(addresses) > _ADDRESSES_SHOWN else ""
        phrases.append(f"cards by address: {', '.join(addresses[:_ADDRESSES_SHOWN])}{more}")
    if phrases:
        file = next(iter(facts.values())).place.file
        message = f"cuFile by {file}: {'; '.join(phrases)} (said, changes no answer)"
        yield Finding("cufile-read", message, severity="note")


def _flag(facts: Facts, *keys: str) -> HostFact | None:
    """Return the first of these flags that says yes, else the first that says no."""
    flags = [facts[key] for key in keys if key in facts and facts[key].flag is not None]
    return next((fact for fact in flags if fact.flag), next(iter(flags), None))


def _routing(facts: Facts) -> Iterator[HostSetting | Finding]:
    """Yield whether dynamic routing is on and in which order, and what it lacks."""
    routed, order = _flag(facts, _ROUTED), facts.get(_ORDER)
    if routed is None:
        return
    if not routed.flag:
        yield HostSetting("settings.dynamic-routing", "off", routed.place)
        return
    policies = order.words if order is not None else ROUTING
    valid = tuple(dict.fromkeys(word for word in policies if word in ROUTING))
    if order is not None and set(policies) - set(valid):
        odd = ", ".join(dict.fromkeys(word for word in policies if word not in ROUTING))
        message = f"no routing policy is called `{odd[:60]}`; there are {', '.join(ROUTING)}"
        yield Finding("cufile-value", message, place=order.place, severity="warning")
    if not _addresses(facts):
        message = (
            "dynamic routing needs the addresses of the cards that lead to the storage, and no "
            "`rdma_dev_addr_list` has any"
        )
        yield Finding("routing-addresses", message, place=routed.place, severity="warning")
    as_shipped = valid in ((), ROUTING)
    value: str | tuple[str, ...] = "on" if as_shipped else valid
    yield HostSetting("settings.dynamic-routing", value, routed.place)


def _addresses(facts: Facts) -> tuple[str, ...]:
    """Return the addresses of the cards that cuFile may use, of all mounts."""
    return tuple(
        dict.fromkeys(
            word
            for key, fact in facts.items()
            if key.endswith(".rdma_dev_addr_list") or ".mount_table" in key
            for word in fact.words
        )
    )


# --- gdscheck -------------------------------------------------------------------------------------


def _gdscheck_settings(topology: Topology, check: GdsCheck) -> Iterator[HostSetting | Finding]:
    """Yield what gdscheck says of the host, and what no file can say."""
    if check.iommu is not None:
        yield HostSetting("settings.iommu", check.iommu.text, check.iommu.place)
    if check.drivers:
        direct = tuple(name for name in GDS_SUPPORT if name in check.direct)
        places = [check.drivers[name].place for name in direct if name in check.drivers]
        place = (*places, next(iter(check.drivers.values())).place)[0]
        yield HostSetting("settings.gds-support", direct, place)
    yield from _gpus(topology, check)
    yield from _access_control(topology, check)
    programs = {"release": "GDS", "driver": "nvidia_fs", "library": "libcufile"}
    phrases = [
        f"{word} {check.versions[key]}" for key, word in programs.items() if key in check.versions
    ]
    if check.gpus:
        able = sum(gpu.supported for gpu in check.gpus)
        phrases.append(f"{able} of {len(check.gpus)} GPUs support GDS")
    if check.verified:
        phrases.append("platform verified, which does not prove that data goes directly")
    message = f"{check.name}: {'; '.join(phrases) or 'read'}"
    yield Finding("gdscheck-read", message, severity="note")
    if check.verified is False:
        message = f"{check.name}: the platform's verification failed"
        yield Finding("gdscheck-read", message, severity="warning")


def _gpus(topology: Topology, check: GdsCheck) -> Iterator[HostSetting | Finding]:
    """Yield which GPUs take part; gdscheck counts them in the order of their PCI addresses."""
    gpus = [device.name for device in matrix_devices(topology) if device.kind == "gpu"]
    if not check.gpus:
        return
    if [gpu.index for gpu in check.gpus] != list(range(len(gpus))):
        message = (
            f"{check.name} has {len(check.gpus)} GPUs and {topology.name} has {len(gpus)}: what it "
            "says of each is not used"
        )
        place = check.gpus[0].place
        yield Finding("gdscheck-gpus", message, place=place, severity="warning")
        return
    for name, gpu in zip(gpus, check.gpus, strict=True):
        yield HostSetting(f"{name}.p2p", "yes" if gpu.supported else "no", gpu.place)


def _access_control(topology: Topology, check: GdsCheck) -> Iterator[HostSetting | Finding]:
    """Yield the switches with access control on, by address; where no address is known, all."""
    if not check.acs:
        return
    switches = topology.of_kind("pcie-switch")
    by_address = {
        read_address(address): switch.name for switch in switches for address in switch.pci
    }
    places: dict[str, Place] = {}
    for fact in check.acs:
        if name := by_address.get(read_address(fact.text)):
            places.setdefault(name, fact.place)
    if not places and not by_address:
        places = {switch.name: check.acs[0].place for switch in switches}
    if not places:
        message = f"{check.name} finds access control (ACS) on at {check.acs[0].text}: "
        message += "no PCIe switch of the file has this address"
        place = check.acs[0].place
        yield Finding("gdscheck-acs", message, place=place, severity="warning")
    for name, place in places.items():
        yield HostSetting(f"{name}.acs", "yes", place)
