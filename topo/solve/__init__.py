"""Demands on shared resources: fair rates, the largest total, completion times, certificates.

Names are resolved when first used, so a command loads only the solvers that it needs.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from topo.flows.system import System
    from topo.solve.certificates import (
        certify,
        certify_cut,
        certify_fraction,
        certify_split,
        certify_timeline,
        certify_total,
    )
    from topo.solve.checks import check, unbounded_demands
    from topo.solve.classes import Classes, Folded, fold, max_min_by_class
    from topo.solve.fluid import Span, Timeline, complete
    from topo.solve.lp import FractionAnswer, LinearAnswer, largest_fraction, largest_total
    from topo.solve.maxmin import max_min
    from topo.solve.mincut import Cut, min_cut
    from topo.solve.prices import Price, price
    from topo.solve.splits import Split, split
    from topo.solve.system import TIE, Allocation
else:
    _HOMES = {
        "TIE": "system",
        "Allocation": "system",
        "Classes": "classes",
        "Folded": "classes",
        "FractionAnswer": "lp",
        "LinearAnswer": "lp",
        "Price": "prices",
        "Span": "fluid",
        "Split": "splits",
        "System": "system",
        "Timeline": "fluid",
        "Cut": "mincut",
        "certify": "certificates",
        "certify_cut": "certificates",
        "certify_fraction": "certificates",
        "certify_split": "certificates",
        "certify_total": "certificates",
        "certify_timeline": "certificates",
        "check": "checks",
        "complete": "fluid",
        "fold": "classes",
        "max_min_by_class": "classes",
        "largest_fraction": "lp",
        "largest_total": "lp",
        "max_min": "maxmin",
        "min_cut": "mincut",
        "price": "prices",
        "split": "splits",
        "unbounded_demands": "checks",
    }

    def __getattr__(name: str) -> object:
        """Import the module that a public name lives in."""
        if name not in _HOMES:
            message = f"module {__name__!r} has no attribute {name!r}"
            raise AttributeError(message)
        from importlib import import_module

        value = getattr(import_module(f"{__name__}.{_HOMES[name]}"), name)
        globals()[name] = value
        return value


__all__ = [
    "TIE",
    "Allocation",
    "Classes",
    "Cut",
    "Folded",
    "FractionAnswer",
    "LinearAnswer",
    "Price",
    "Span",
    "Split",
    "System",
    "Timeline",
    "certify",
    "certify_cut",
    "certify_fraction",
    "certify_split",
    "certify_timeline",
    "certify_total",
    "check",
    "complete",
    "fold",
    "largest_fraction",
    "largest_total",
    "max_min",
    "max_min_by_class",
    "min_cut",
    "price",
    "split",
    "unbounded_demands",
]


def __dir__() -> list[str]:
    return sorted(__all__)
