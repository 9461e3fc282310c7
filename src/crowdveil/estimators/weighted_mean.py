"""Truth inference for numbers by weighted means (Sun et al. 2018, Algorithm 1, equations 1 and 2)."""

import math
from collections.abc import Mapping
from dataclasses import dataclass, replace
from typing import ClassVar, NamedTuple, final

import numpy as np
from numpy.typing import NDArray

from crowdveil.em.estimate import WorkerTable
from crowdveil.em.estimator import Estimator
from crowdveil.em.fit_state import FitState, StateField
from crowdveil.em.model import EStep, GoldBlock, Summary

ROUNDING = 1e-12
"""Residuals up to this share of the reported number count as 0."""
SMALLEST_FLOOR = 1e-150
"""Lower bound of sigma, in units of the values; 1 / sigma and its square are finite."""


@dataclass(frozen=True, eq=False)
class MeanParameters:
    """Counts of the reports, worker qualities, and the lower bound of sigma.

    Attributes:
        summary: counts of the reports.
        quality: weight of each worker, sums to 1; shape (workers,).
        floor: lower bound of sigma, in units of the values; infinity before the first step.
    """

    summary: Summary
    quality: NDArray[np.float64]
    floor: float


class MeanStatistics(NamedTuple):
    """Squared differences between each worker's reports and the current truths, summed; shape (workers,)."""

    squares: NDArray[np.float64]


@final
@dataclass(frozen=True, slots=True, kw_only=True)
class WeightedMean(Estimator[MeanParameters, MeanStatistics]):
    """Weighted means of numbers; the weight of a worker is the quality 1 / sigma.

    Sigma is the root mean square difference between a worker's reports and the truths. Works on free numbers, on a
    `Scale` (its grid points) and on ordered labels (their positions 0 .. K - 1). A task without reports has truth nan.

    Attributes:
        floor: lower bound of sigma, as a share of the median positive sigma: weights are at most 1 / floor times
            that of the median worker. The bound decreases with the sigmas and never increases again, so that it follows
            the unit of the values but not early outliers.
        max_steps: largest number of steps.
        tolerance: stop when no truth changes by more than this, in units of the values.

    Raises:
        SettingsError: `floor` outside (0, 1].

    >>> answers = {"task": [1, 1, 1, 2, 2, 2], "worker": [*"abcabc"], "value": [1, 2, 9, 5, 5, 6]}
    >>> WeightedMean().fit(answers).truth.round(2).tolist()
    [2.0, 5.0]
    """

    name: ClassVar[str] = "weighted-mean"
    ranges: ClassVar[Mapping[str, str]] = {"floor": "(0, 1]"}
    state_fields: ClassVar[Mapping[str, StateField]] = {"quality": StateField("distribution")}
    floor: float = 0.01
    max_steps: int = 1000
    tolerance: float = 1e-6

    def initialize(self, summary: Summary) -> MeanParameters:
        """Return equal qualities, 1 / workers each."""
        return MeanParameters(summary, np.full(summary.workers, 1.0 / max(summary.workers, 1)), math.inf)

    def e_step(self, block: GoldBlock, parameters: MeanParameters) -> EStep[MeanStatistics]:
        """Return the truths of equation (1), shape (tasks,), and the squares that equation (2) averages."""
        step = block.coded.reduce_weighted_means(parameters.quality, ROUNDING, block.gold, block.before)
        return EStep(MeanStatistics(step.squares), step.truth, change=step.change)

    def m_step(self, statistics: MeanStatistics, parameters: MeanParameters) -> MeanParameters:
        """Return the qualities of equation (2), with the floor; 0 for a worker without reports."""
        reports = parameters.summary.per_worker
        sigma = np.sqrt(statistics.squares / np.maximum(reports, 1))
        floor = self._lower_bound_of_sigma(sigma, parameters.floor)
        quality = np.where(reports > 0, 1.0 / np.maximum(sigma, floor), 0.0)
        return MeanParameters(parameters.summary, quality / (quality.sum() or 1.0), floor)

    def worker_table(self, statistics: MeanStatistics, parameters: MeanParameters) -> WorkerTable:
        """Return the qualities that follow from the last truths; they sum to 1."""
        return WorkerTable(self.m_step(statistics, parameters).quality, "weight")

    def from_state(self, initial: MeanParameters, state: FitState) -> MeanParameters:
        """Return the qualities of the state, their mean for new workers, rescaled to sum to 1."""
        default = np.full(initial.summary.workers, np.nanmean(state.by_worker["quality"]))
        quality = state.worker_rows_or_default("quality", default)
        return replace(initial, quality=quality / quality.sum())

    def _lower_bound_of_sigma(self, sigma: NDArray[np.float64], before: float) -> float:
        """Return the lower bound of sigma, in units of the values; 1 if all reports agree from the start."""
        positive = sigma[sigma > 0]
        if positive.size:
            return min(before, max(self.floor * float(np.median(positive)), SMALLEST_FLOOR))
        return before if math.isfinite(before) else 1.0
