"""A data path laid on a topology: search, choice of card and buffers, verdict, use of resources."""

from topo.routes.route import EqualCostPaths, Policy, Reason, Route, Subflow, Transfer
from topo.routes.router import Router

__all__ = ["EqualCostPaths", "Policy", "Reason", "Route", "Router", "Subflow", "Transfer"]
