"""A host's set-up checked: each rule's outcome, with what its problems cost here."""

from __future__ import annotations

from collections.abc import Callable
from contextlib import suppress
from typing import TYPE_CHECKING, Final

from topo.errors import Finding, TopoError
from topo.host import device_rules, link_rules
from topo.host.cost import cost
from topo.host.problems import Checked, Setup
from topo.records import dataclass
from topo.routes.route import Policy

if TYPE_CHECKING:
    from topo.description.description import Basis
    from topo.host.kernel_state import HostState
    from topo.topology.topology import Topology


_RULES: Final[tuple[Callable[[Setup], Checked], ...]] = (
    device_rules.machine,
    link_rules.links,
    link_rules.access_control,
    link_rules.translation,
    link_rules.payload,
    device_rules.windows,
    device_rules.nodes,
    device_rules.rdma,
    device_rules.drivers,
    device_rules.governor,
)


@dataclass(frozen=True, slots=True)
class HostCheck:
    """What a host's set-up comes to.

    Parameters
    ----------
    topology
        The machine that it is.
    checked
        The outcome of each rule.
    findings
        Its problems with what they cost, and what could not be seen.
    """

    topology: Topology
    checked: tuple[Checked, ...]
    findings: tuple[Finding, ...]

    @property
    def is_well(self) -> bool:
        """Whether nothing is set up worse than it could be, as far as could be seen."""
        return not any(finding.severity == "warning" for finding in self.findings)


def check_host(
    topology: Topology,
    state: HostState,
    *,
    has_storage: bool = True,
    at: Basis = "theoretical",
    policy: Policy | None = None,
) -> HostCheck:
    """Check how a host is set up, and ask what each problem costs on it.

    Parameters
    ----------
    topology
        The machine, as it was imported.
    state
        What its kernel says of it.
    has_storage
        Whether its source tells where storage is: else nothing is asked of its workloads.
    at
        Which figure of each capacity the costs are of.
    policy
        How a choice among several routes is made where costs are asked.
    """
    setup = Setup(state, topology, has_storage)
    checked = tuple(rule(setup) for rule in _RULES)
    problems = [problem for outcome in checked for problem in outcome.problems]
    # Sizes of packets are left out: theoretical rates know no heads.
    well = topology
    for problem in problems:
        if problem.code != "small-payload":
            with suppress(TopoError):  # parts, as the catalogue has them, that cannot be so
                well = well.replace(dict(problem.better))
    findings = [
        Finding(
            problem.code,
            problem.message,
            severity=problem.severity,
            help=problem.help,
            notes=cost(well, problem, at, policy or Policy()),
        )
        for problem in problems
    ]
    findings += [
        Finding("host-not-told", f"{outcome.subject}: {outcome.unknown}", severity="note")
        for outcome in checked
        if outcome.unknown
    ]
    return HostCheck(topology, checked, tuple(findings))
