"""Settings that every test shares."""

from __future__ import annotations

import os

from hypothesis import HealthCheck, settings

# fast: while writing. ci: the same examples on every run, so that a red build is the change's
# doing. thorough: an evening's search. Choose with HYPOTHESIS_PROFILE.
_SLOW_IS_FINE = [HealthCheck.too_slow]
settings.register_profile("fast", max_examples=40, deadline=None)
settings.register_profile(
    "ci", max_examples=50, deadline=None, derandomize=True, suppress_health_check=_SLOW_IS_FINE
)
settings.register_profile(
    "thorough", max_examples=5000, deadline=None, suppress_health_check=_SLOW_IS_FINE
)
settings.load_profile(os.environ.get("HYPOTHESIS_PROFILE", "fast"))


def pytest_addoption(parser):
    parser.addoption(
        "--update-golden",
        action="store_true",
        help="write the expected messages of tests/golden anew; read the difference",
    )
