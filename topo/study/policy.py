"""Whether a policy's words mean anything on a topology: a misspelt buffer must not be ignored."""

from __future__ import annotations

from difflib import get_close_matches
from typing import TYPE_CHECKING

from topo.datapaths.registry import count, data_paths
from topo.errors import Finding, UnknownNameError

if TYPE_CHECKING:
    from topo.routes.route import Policy
    from topo.topology.topology import Topology


_EVERY = "all"
_NEAR = ("near-gpu", "near-nic")


def checked(topology: Topology, policy: Policy) -> Policy:
    """Return `policy` when every buffer and every place that it names is there.

    Raises
    ------
    UnknownNameError
        For a buffer that no data path has, or a place that is no memory.
    """
    if not policy.buffers:
        return policy
    buffers = [
        buffer.removesuffix("-buffer")
        for path in data_paths(topology.description)
        for buffer in count(path).buffers
    ]
    memories = [device.name for device in topology.of_kind("memory", "cxl-memory")]
    findings = [
        *(_unknown("RAM buffer", name, [*buffers, _EVERY]) for name, _ in policy.buffers),
        *(_unknown("memory", place, [*_NEAR, *memories]) for _, place in policy.buffers),
    ]
    wrong = [finding for finding in findings if finding is not None]
    if wrong:
        raise UnknownNameError(wrong)
    return policy


def _unknown(what: str, name: str, known: list[str]) -> Finding | None:
    if name in known:
        return None
    near = get_close_matches(name, known, n=1)
    listed = ", ".join(dict.fromkeys(known))
    advice = f"did you mean {near[0]}?" if near else f"there are {listed}"
    return Finding("unknown-name", f"no {what} `{name}`", help=advice)
