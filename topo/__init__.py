"""Which way data goes in a GPU server, how fast, and what limits it.

The public names, each fetched when it is first asked for, so that ``import topo`` and
``topo --help`` load nothing that they do not use.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

__version__ = "0.2.0"

# A new name stands in three places, and `tests/test_front_door.py` holds them together: here, in
# the imports that the type checker reads, and in the table that Python reads.
__all__ = [
    "Comparison",
    "Finding",
    "Ladder",
    "PathAnswer",
    "Place",
    "Policy",
    "TopoError",
    "Topology",
    "Workload",
    "__version__",
    "bottleneck",
    "build",
    "check",
    "collective",
    "compare",
    "diff",
    "doubt",
    "draw",
    "failures",
    "load",
    "loads",
    "locality",
    "matrix",
    "measure",
    "paths",
    "simulate",
    "sweep",
    "upgrades",
]

if TYPE_CHECKING:
    from topo.description.description import Workload
    from topo.errors import Finding, Place, TopoError
    from topo.measuring.measure import measure
    from topo.routes.route import Policy
    from topo.study.answers import Comparison, Ladder, PathAnswer
    from topo.study.bottleneck import bottleneck
    from topo.study.check import check
    from topo.study.collective import collective
    from topo.study.compare import compare, paths
    from topo.study.diff import diff
    from topo.study.doubt import doubt
    from topo.study.failures import failures
    from topo.study.front import sweep
    from topo.study.timeline import simulate
    from topo.study.upgrade import upgrades
    from topo.topology.build import build, load, loads
    from topo.topology.locality import locality, matrix
    from topo.topology.topology import Topology
    from topo.views.diagram.sheet import draw
else:
    _HOMES = {
        "Comparison": "topo.study.answers",
        "Finding": "topo.errors",
        "Ladder": "topo.study.answers",
        "PathAnswer": "topo.study.answers",
        "Place": "topo.errors",
        "Policy": "topo.routes.route",
        "TopoError": "topo.errors",
        "Topology": "topo.topology.topology",
        "Workload": "topo.description.description",
        "bottleneck": "topo.study.bottleneck",
        "build": "topo.topology.build",
        "check": "topo.study.check",
        "collective": "topo.study.collective",
        "compare": "topo.study.compare",
        "diff": "topo.study.diff",
        "doubt": "topo.study.doubt",
        "draw": "topo.views.diagram.sheet",
        "failures": "topo.study.failures",
        "load": "topo.topology.build",
        "loads": "topo.topology.build",
        "locality": "topo.topology.locality",
        "matrix": "topo.topology.locality",
        "measure": "topo.measuring.measure",
        "paths": "topo.study.compare",
        "simulate": "topo.study.timeline",
        "sweep": "topo.study.front",
        "upgrades": "topo.study.upgrade",
    }

    def __getattr__(name: str) -> object:
        """Fetch a public name from the module that defines it."""
        if name not in _HOMES:
            raise AttributeError(f"module 'topo' has no attribute {name!r}", name=name, obj=None)
        from importlib import import_module

        value = getattr(import_module(_HOMES[name]), name)
        globals()[name] = value
        return value

    def __dir__() -> list[str]:
        """List the public names, loaded or not."""
        return sorted({*globals(), *__all__})
