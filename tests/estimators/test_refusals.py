"""Numbers without a scale, and labels without an order, are refused by estimators that need them."""

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


@pytest.mark.parametrize("cls", [c for c in CLASSES if c.capabilities.kind == "numeric"])
def test_labels_without_an_order_are_refused_by_estimators_of_numbers(cls: type[Estimator[Any, Any]]) -> None:
    """The position of a label among the sorted names is no number, also if the labels are written as numbers."""
    with pytest.raises(ReportsError, match="no order"):
        cls().fit(Reports.from_arrays([1, 1], [1, 2], [0.5, 1.5]))
