"""The questions people ask: compare, what binds and what next, when all is done, what to change."""

from __future__ import annotations

from typing import TYPE_CHECKING

from topo.study.answers import (
    Bottleneck,
    Comparison,
    CopyingCores,
    Ladder,
    PathAnswer,
    Rung,
    WorkloadAnswer,
)
from topo.study.bottleneck import bottleneck
from topo.study.check import Judgement, check
from topo.study.compare import DEFAULT_PATHS, ask, chosen_workloads, compare
from topo.study.ladder import ladder
from topo.study.survey import PathSurvey, RoutedPath, survey

__all__ = [
    "CANDIDATE_KINDS",
    "DEFAULT_PATHS",
    "Affinities",
    "AtOnce",
    "Bottleneck",
    "Candidate",
    "ClassPrice",
    "Comparison",
    "CopyingCores",
    "Explanation",
    "Judgement",
    "Ladder",
    "Moment",
    "Outcome",
    "PathAnswer",
    "PathSurvey",
    "Prices",
    "RoutedPath",
    "Run",
    "Rung",
    "Share",
    "Simulation",
    "TiedPrice",
    "Upgrade",
    "Upgrades",
    "Use",
    "WorkloadAnswer",
    "WorkloadRate",
    "affinities",
    "ask",
    "at_once",
    "bottleneck",
    "check",
    "chosen_workloads",
    "compare",
    "explain",
    "ladder",
    "simulate",
    "survey",
    "together",
    "upgrades",
]

if TYPE_CHECKING:
    from topo.study.affinity import Affinities, affinities
    from topo.study.all_at_once import AtOnce, at_once
    from topo.study.candidates import KINDS as CANDIDATE_KINDS
    from topo.study.candidates import Candidate
    from topo.study.explanation import Explanation, explain
    from topo.study.prices import ClassPrice, Prices, TiedPrice
    from topo.study.shares import Share, Use
    from topo.study.timeline import Moment, Run, Simulation, WorkloadRate, simulate, together
    from topo.study.upgrade import Outcome, Upgrade, Upgrades, upgrades
else:
    # What few ask for is loaded when it is asked for.
    _HOMES = {
        "AtOnce": ("all_at_once", "AtOnce"),
        "Moment": ("timeline", "Moment"),
        "Run": ("timeline", "Run"),
        "Simulation": ("timeline", "Simulation"),
        "WorkloadRate": ("timeline", "WorkloadRate"),
        "at_once": ("all_at_once", "at_once"),
        "simulate": ("timeline", "simulate"),
        "together": ("timeline", "together"),
        "Affinities": ("affinity", "Affinities"),
        "CANDIDATE_KINDS": ("candidates", "KINDS"),
        "Candidate": ("candidates", "Candidate"),
        "ClassPrice": ("prices", "ClassPrice"),
        "Explanation": ("explanation", "Explanation"),
        "Outcome": ("upgrade", "Outcome"),
        "Prices": ("prices", "Prices"),
        "Share": ("shares", "Share"),
        "TiedPrice": ("prices", "TiedPrice"),
        "Upgrade": ("upgrade", "Upgrade"),
        "Upgrades": ("upgrade", "Upgrades"),
        "Use": ("shares", "Use"),
        "affinities": ("affinity", "affinities"),
        "explain": ("explanation", "explain"),
        "upgrades": ("upgrade", "upgrades"),
    }

    def __getattr__(name: str) -> object:
        """Import the module that a public name lives in."""
        if name not in _HOMES:
            message = f"module {__name__!r} has no attribute {name!r}"
            raise AttributeError(message)
        from importlib import import_module

        home, its_name = _HOMES[name]
        value = getattr(import_module(f"{__name__}.{home}"), its_name)
        globals()[name] = value
        return value
