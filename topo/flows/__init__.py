"""Workloads to demands, and demands to the use matrix that the solvers take."""

from topo.flows.demand import Demand, UseMatrix
from topo.flows.demands import at_basis, core_copy_rate, demands_of, worker_limit
from topo.flows.ends import Ends, ends_of
from topo.flows.matrix import use_matrix
from topo.flows.system import System

__all__ = [
    "Demand",
    "Ends",
    "System",
    "UseMatrix",
    "at_basis",
    "core_copy_rate",
    "demands_of",
    "ends_of",
    "use_matrix",
    "worker_limit",
]
