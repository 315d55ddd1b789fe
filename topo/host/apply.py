"""What cufile.json and gdscheck say, laid over a machine: the facts that a verdict rests on.

Each becomes what a person would have written into the file (`settings: {dynamic-routing: on}`),
with the place where the tool said it. What the host says wins over the machine's file, what the
caller changed (``--set``) over both; where two of them differ, a finding says which was used.
"""

from __future__ import annotations

from dataclasses import replace
from typing import TYPE_CHECKING

from topo.description.names import ranged
from topo.description.settings import settings_value
from topo.description.shape import listed
from topo.errors import Finding
from topo.host.settings import config_told, gdscheck_told, merged_facts

if TYPE_CHECKING:
    from collections.abc import Iterable

    from topo.errors import Place
    from topo.host.cufile import CufileConfig
    from topo.host.gdscheck import GdsCheck
    from topo.host.settings import Told
    from topo.topology.topology import Topology


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
    facts, findings = merged_facts(cufile, gdscheck)
    told = [*config_told(topology, facts, findings)]
    if cufile is not None:
        findings += cufile.findings
    if gdscheck is not None:
        told += gdscheck_told(topology, gdscheck, findings)
    used = list(_used(topology, told, findings))
    changed = topology.replace({one.target: one.value for one in used}) if used else topology
    devices = {one.device: one.place for one in used if one.device}
    return replace(
        changed,
        devices={
            name: replace(device, place=devices.get(name, device.place))
            for name, device in changed.devices.items()
        },
        findings=(*changed.findings, *findings),
    )


def _used(topology: Topology, told: Iterable[Told], findings: list[Finding]) -> Iterable[Told]:
    """Yield what changes the machine; what contradicts it becomes a finding as well."""
    differ: dict[tuple[str, str, str, bool], list[tuple[Told, Place | None]]] = {}
    for one in told:
        stated, place = _stated(topology, one)
        unclear = one.shown == "passthrough-or-on" and stated in ("passthrough", "on")
        if stated == one.shown or unclear:
            continue
        kept = _set_by_caller(topology, one)
        if stated is not None:
            differ.setdefault((one.key, one.shown, stated, kept), []).append((one, place))
        if not kept:
            yield one
    findings += (
        _contradiction(found, stated, kept=kept) for (_, _, stated, kept), found in differ.items()
    )


def _stated(topology: Topology, told: Told) -> tuple[str | None, Place | None]:
    """Return what the machine's file says of the same, and where."""
    if told.device:
        device = topology[told.device]
        flag = device.part.flag(told.key)
        return (None if flag is None else "yes" if flag else "no"), device.place
    value = settings_value(topology.settings, told.key)
    shown = " ".join(value) or "none" if isinstance(value, list) else value
    return shown, topology.settings.places.get(told.key)


def _set_by_caller(topology: Topology, told: Told) -> bool:
    """Whether ``--set`` names the same."""
    for target in topology.description.overrides:
        name, _, key = target.rpartition(".")
        if key != told.key:
            continue
        if not told.device and name == "settings":
            return True
        if told.device and name != "settings" and topology[told.device] in topology.select(name):
            return True
    return False


def _contradiction(found: list[tuple[Told, Place | None]], stated: str, *, kept: bool) -> Finding:
    """Return one finding for what is told and stated of one thing, or of several alike."""
    told, place = found[0]
    names = listed(ranged([one.device for one, _ in found], 1)) if told.device else "settings"
    used = stated if kept else told.shown
    whose = "by --set" if kept else "in the file"
    message = f"`{names}.{told.key}` is {told.shown} by {told.place.file}, and {stated} {whose}"
    where = f"the file says it at {place.file}:{place.line}" if place and not kept else ""
    return Finding(
        "host-contradiction",
        f"{message}; used is {used}",
        place=told.place,
        severity="warning",
        notes=(where,) if where else (),
    )
