"""Demands on shared resources: fair rates, the largest total, completion times, certificates.

Names are resolved when first used, so a command loads only the solvers that it needs.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from topo.solve.certify import certify
    from topo.solve.checks import check, unbounded_demands
    from topo.solve.maxmin import max_min
    from topo.solve.system import TIE, Allocation, System
else:
    _HOMES = {
        "TIE": "system",
        "Allocation": "system",
        "System": "system",
        "certify": "certify",
        "check": "checks",
        "max_min": "maxmin",
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
    "System",
    "certify",
    "check",
    "max_min",
    "unbounded_demands",
]


def __dir__() -> list[str]:
    return sorted(__all__)
