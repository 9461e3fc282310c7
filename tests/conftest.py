"""Hypothesis profiles: everyone runs the same examples; `HYPOTHESIS_PROFILE=explore` searches for new ones."""

import os
from collections.abc import Iterator
from typing import Any

# Before numpy is loaded: test processes run side by side, and their linear algebra must not fight for the same cores.
os.environ.setdefault("OPENBLAS_NUM_THREADS", "1")

import pytest
from hypothesis import HealthCheck, settings

BUSY = [HealthCheck.too_slow]
"""A machine that is busy draws examples slowly."""
settings.register_profile(
    "ci", deadline=None, max_examples=50, derandomize=True, database=None, suppress_health_check=BUSY
)
settings.register_profile("explore", deadline=None, max_examples=500)
settings.load_profile(os.environ.get("HYPOTHESIS_PROFILE", "ci"))


@pytest.fixture(autouse=True, scope="session")
def _no_lines_of_progress() -> Iterator[None]:
    """Leave out the lines of progress that commands write on a machine that takes seconds for them."""
    from crowdveil.cli import progress

    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(progress, "LOG_SECONDS", float("inf"))
        yield


@pytest.fixture
def service() -> Iterator[Any]:
    """A running stub of a service, for devices that send to it."""
    from tests.campaign.stub_service import running_stub

    with running_stub() as stub:
        yield stub
