"""The warning before a fit that takes long."""

from typing import Any

import pytest

from crowdveil.inference.methods import SLOW_WORK, slow_fit
from crowdveil.registry import ESTIMATOR_ENTRIES


def sized(reports: int, labels: int) -> Any:
    """Reports of which only the size is known."""
    return type("Sized", (), {"__len__": lambda _: reports, "labels": labels})()


@pytest.mark.parametrize("method", ["ebcc", "ordinal-dawid-skene", "gaussian", "glad"])
def test_slow_methods_say_so_before_they_start(method: str) -> None:
    """A hundred thousand reports of fifty labels are announced, a thousand of two are not."""
    assert (slow_fit(sized(100_000, 50), method) or "").startswith(f"{method} takes more than ten seconds")
    assert slow_fit(sized(1_000, 2), method) is None


def test_other_methods_say_nothing() -> None:
    """The default stays quiet, and every announced method is registered."""
    assert slow_fit(sized(100_000, 200), "hierarchical-dawid-skene") is None
    assert SLOW_WORK.keys() <= ESTIMATOR_ENTRIES.keys()
