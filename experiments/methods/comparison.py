"""Accuracy, calibration, log-loss and seconds of every method for labels on ten public data sets.

The first of repeated answers counts; tied labels share the point; gold tasks without answers are left out.
Nothing is fitted to gold. All methods run with their default settings.
"""

import time
from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np

from crowdveil.answers import datasets
from crowdveil.estimators import ESTIMATORS
from crowdveil.inference.scores.gold_errors import AlignedGold, align_gold, gold_codes
from crowdveil.inference.scores.metrics import score
from crowdveil.registry import estimators_with

RESULTS = Path(__file__).parent / "results" / "methods.csv"
SETS = ("d_product", "d_possent", "s_rel", "adult2", "bluebird", "dog", "snow_rte", "web_zhou", "duchenne", "snow_wsd")
NEEDS_GOLD = ("gold-majority-vote",)
METHODS = tuple(
    name for name in estimators_with(kind="categorical", needs_ordered_labels=False) if name not in NEEDS_GOLD
)
CONSTANT = "best constant"
SMALLEST_PROBABILITY = 1e-3
"""Lower bound of probabilities in the log-loss."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Row:
    """One method on one data set.

    Attributes:
        data, method: names.
        scored: gold tasks with answers.
        accuracy: ties split.
        calibration_error: expected calibration error of the confidence; None without probabilities.
        log_loss: mean negative log-probability of gold, in nats; None without probabilities.
        seconds: of the fit.
        steps, converged: of the fit; None for the constant.
    """

    data: str
    method: str
    scored: int
    accuracy: float
    calibration_error: float | None = None
    log_loss: float | None = None
    seconds: float | None = None
    steps: int | None = None
    converged: bool | None = None


def log_loss(aligned: AlignedGold) -> float:
    """Return the mean negative log-probability of gold, each probability at least `SMALLEST_PROBABILITY`."""
    given = aligned.estimate.posterior[aligned.at, gold_codes(aligned)]
    return float(-np.log(np.maximum(given, SMALLEST_PROBABILITY)).mean())


def reported_gold(data: datasets.Dataset) -> dict[str, Any]:
    """Return the known truths of tasks with answers."""
    reported = {str(task) for task, count in zip(data.answers.tasks, data.answers.per_task, strict=True) if count}
    return {task: truth for task, truth in data.gold.items() if str(task) in reported}


def measured(name: str, methods: Iterable[str]) -> Iterator[Row]:
    """Yield the rows of a data set: the best constant, then each method (fitted once before, which loads code)."""
    data = datasets.load(name, duplicates="first")
    gold = reported_gold(data)
    for place, method in enumerate(methods):
        start = time.perf_counter()
        estimate = ESTIMATORS[method]().fit(data.answers)
        seconds = time.perf_counter() - start
        found, aligned = score(estimate, gold), align_gold(estimate, gold)
        if not place:
            yield Row(data=name, method=CONSTANT, scored=found.scored, accuracy=1 - found.baseline)
        yield Row(
            data=name,
            method=method,
            scored=found.scored,
            accuracy=1 - found.error,
            calibration_error=found.calibration_error if estimate.probabilistic else None,
            log_loss=log_loss(aligned) if estimate.probabilistic else None,
            seconds=seconds,
            steps=estimate.steps,
            converged=estimate.converged,
        )


def warm_up(methods: Iterable[str]) -> None:
    """Fit every method to the largest set for two steps, so that no measured fit compiles code."""
    data = datasets.load("s_rel", duplicates="first")
    for method in methods:
        ESTIMATORS[method](max_steps=min(2, ESTIMATORS[method]().max_steps)).fit(data.answers)
