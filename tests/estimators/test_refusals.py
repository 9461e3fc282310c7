"""Numbers without an alphabet are refused by estimators that need one."""

from typing import Any

import pytest

from crowdveil.data.reports import Reports
from crowdveil.errors import ReportsError
from crowdveil.estimators import ESTIMATORS, Estimator

CLASSES = list(ESTIMATORS.values())


@pytest.mark.parametrize(
    "cls", [c for c in CLASSES if c.capabilities.kind == "categorical" or c.capabilities.needs_alphabet]
)
def test_numbers_are_refused_by_estimators_of_labels(cls: type[Estimator[Any, Any]]) -> None:
    """Free numbers have no labels, and no scale, to infer on."""
    with pytest.raises(ReportsError, match="labels" if cls.capabilities.kind == "categorical" else "scale"):
        cls().fit(Reports.from_arrays([1, 2], [1, 1], [0.5, 1.5], numeric=True))
