"""Hypothesis strategies: small systems that shrink to something a person can read."""

from __future__ import annotations

import math

from hypothesis import strategies as st

from topo.flows.demands import System

CAPACITIES = st.one_of(
    st.integers(1, 12).map(float),
    st.floats(0.5, 500.0, allow_nan=False),
)
MULTIPLICITIES = st.sampled_from([1.0, 1.0, 2.0, 4.0, 6.0, 0.5])
WEIGHTS = st.sampled_from([1.0, 1.0, 1.0, 2.0, 0.25, 3.0])


@st.composite
def systems(
    draw: st.DrawFn, *, most_demands: int = 8, most_resources: int = 6, limits: bool = True
) -> System:
    """Draw a system in which every demand meets a finite resource."""
    count = draw(st.integers(1, most_resources))
    capacities = draw(st.lists(CAPACITIES, min_size=count, max_size=count))
    uses = draw(
        st.lists(
            st.dictionaries(st.integers(0, count - 1), MULTIPLICITIES, min_size=1),
            min_size=1,
            max_size=most_demands,
        )
    )
    weights = draw(st.lists(WEIGHTS, min_size=len(uses), max_size=len(uses)))
    own = st.one_of(st.just(math.inf), CAPACITIES) if limits else st.just(math.inf)
    return System.of(
        capacities,
        uses,
        weights=weights,
        limits=draw(st.lists(own, min_size=len(uses), max_size=len(uses))),
    )
