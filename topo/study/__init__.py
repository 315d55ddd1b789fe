"""The questions people ask: compare, what binds and what next, when all is done, what to change."""

from __future__ import annotations

from topo.study.bottleneck import bottleneck
from topo.study.candidates import KINDS as CANDIDATE_KINDS
from topo.study.candidates import Candidate
from topo.study.check import Judgement, judge
from topo.study.compare import DEFAULT_PATHS, ask, chosen_workloads, compare
from topo.study.ladder import ladder
from topo.study.model import (
    Bottleneck,
    Comparison,
    CopyingCores,
    Ladder,
    PathAnswer,
    Rung,
    WorkloadAnswer,
)
from topo.study.prices import ClassPrice, TiedPrice, price_classes, price_tie
from topo.study.simulate import Moment, Run, Simulation, WorkloadRate, simulate, together
from topo.study.survey import Laid, PathSurvey, survey
from topo.study.upgrade import Outcome, Upgrade, Upgrades, upgrades

__all__ = [
    "CANDIDATE_KINDS",
    "DEFAULT_PATHS",
    "Bottleneck",
    "Candidate",
    "ClassPrice",
    "Comparison",
    "CopyingCores",
    "Judgement",
    "Ladder",
    "Laid",
    "Moment",
    "Outcome",
    "PathAnswer",
    "PathSurvey",
    "Run",
    "Rung",
    "Simulation",
    "TiedPrice",
    "Upgrade",
    "Upgrades",
    "WorkloadAnswer",
    "WorkloadRate",
    "ask",
    "bottleneck",
    "chosen_workloads",
    "compare",
    "judge",
    "ladder",
    "price_classes",
    "price_tie",
    "simulate",
    "survey",
    "together",
    "upgrades",
]
