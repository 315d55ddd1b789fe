"""The questions people ask: compare, what binds and what next, whether expectations hold."""

from __future__ import annotations

from topo.study.bottleneck import bottleneck
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
from topo.study.survey import Laid, PathSurvey, survey

__all__ = [
    "DEFAULT_PATHS",
    "Bottleneck",
    "Comparison",
    "CopyingCores",
    "Judgement",
    "Ladder",
    "Laid",
    "PathAnswer",
    "PathSurvey",
    "Rung",
    "WorkloadAnswer",
    "ask",
    "bottleneck",
    "chosen_workloads",
    "compare",
    "judge",
    "ladder",
    "survey",
]
