"""Third phase: could this machine be built? One function a rule, every mistake at once.

What a cable may join, ports and lanes, and whether the data has a way at all. A link whose medium
is wrong is left out of the rules about ports and lanes, so that one cause gives one message.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from topo.description.physics.lanes import check_generations, check_host_lanes, check_slots
from topo.description.physics.media import check_media
from topo.description.physics.memories import check_buses
from topo.description.physics.plugs import check_fabric, check_named_ports, check_ports
from topo.description.physics.scope import check_loops, check_reach
from topo.description.physics.wiring import Wiring

if TYPE_CHECKING:
    from topo.description.description import Description
    from topo.document.nodes import Report

__all__ = ["check"]


def check(description: Description, report: Report) -> None:
    """Check a description against physics and report every mistake.

    Parameters
    ----------
    spec
        The description, its names resolved.
    report
        Gets what is wrong; stopping is the caller's business.
    """
    everything = Wiring(description)
    sound = everything.without(check_media(everything, report))
    check_named_ports(sound, report)
    check_ports(sound, report)
    check_fabric(sound, report)
    check_generations(sound, report)
    check_slots(sound, report)
    check_host_lanes(sound, report)
    check_buses(everything, report)
    check_loops(sound, report)
    check_reach(everything, report)
