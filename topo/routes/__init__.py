"""A data path laid on a topology: search, choice of card and buffers, verdict, use of resources."""

from topo.routes.lay import Router
from topo.routes.model import Branch, Leg, Policy, Reason, Route, Ways

__all__ = ["Branch", "Leg", "Policy", "Reason", "Route", "Router", "Ways"]
