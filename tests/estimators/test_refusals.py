"""What estimators refuse: settings out of range, priors they cannot use, numbers and labels they cannot read."""

import math
from typing import Any

import pytest

from crowdveil.answers.reports import Reports
from crowdveil.channels.alphabet import Scale
from crowdveil.errors import ReportsError, SettingsError
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


@pytest.mark.parametrize("cls", [c for c in CLASSES if not c.capabilities.uses_prior])
def test_a_prior_is_refused_by_estimators_without_one(cls: type[Estimator[Any, Any]]) -> None:
    """Votes, means and messages have no place for a prior over labels, and say so."""
    with pytest.raises(SettingsError, match="uses no prior"):
        cls().fit(Reports.from_arrays([1, 2], [1, 1], [1, 2], alphabet=Scale(1, 2)), prior={"1": 0.5, "2": 0.5})


PSEUDO_COUNTS: dict[str, tuple[object, ...]] = {
    "smoothing": (0.0, math.nan),
    "shrinkage": (-1.0,),
    "damping": (-0.1, math.inf),
    "anchor_ability": (1.0, -0.1),
}
OUT_OF_RANGE: dict[str, dict[str, tuple[object, ...]]] = {
    "dawid-skene": PSEUDO_COUNTS,
    "one-coin": PSEUDO_COUNTS,
    "catd": {"alpha": (1.0,)},
    "ebcc": {"subtypes": (-1,), "starts": (-1,), "concentration": (0.0,)},
    "gaussian": {
        **{"smoothing": (0.0,), "sigmas": ((0.0, 1.0), ()), "participations": ((1.5,),), "points_per_step": (0,)},
        **{"prior_mean": (math.nan,), "prior_deviation": (0.0,)},
    },
    "hierarchical-dawid-skene": dict.fromkeys(
        ("crowd_share", "uniform_share", "error_correlation", "vote_share"), (-0.1, math.nan, math.inf)
    ),
    "mace": {"strategy": (0.0,)},
    "ordinal-dawid-skene": {"shrinkage": (0.0,), "pseudo_answers": (-1.0,), "damping": (math.inf,)},
    "pooled-gaussian": {"prior_mean": (0.0,)},
    "private-dawid-skene": {"projection": (0.0, 0.5, -0.1), "shrinkage": (-1.0,)},
    "student-t": {"degrees_of_freedom": (0.5,), "error_correlation": (1.5,)},
    "weighted-mean": {"floor": (0.0,)},
    "weighted-vote": {"clamp": (0.5,)},
    "zero-based-skill": {"halving": (0,)},
}
"""Values of settings by method: pseudo-counts, shares, deviations and numbers that mean nothing."""


@pytest.mark.parametrize(
    ("method", "setting", "value"),
    [(name, *one) for name, all_ in OUT_OF_RANGE.items() for one in ((s, v) for s, vs in all_.items() for v in vs)],
)
def test_settings_out_of_range_are_refused(method: str, setting: str, value: object) -> None:
    """A setting is checked where it is given, and the message names it."""
    with pytest.raises(SettingsError, match=f"{setting} must be" if method != "pooled-gaussian" else "needs both"):
        ESTIMATORS[method](**{setting: value})
