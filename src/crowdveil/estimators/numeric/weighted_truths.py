"""Truths of numbers from one weight per worker: CRH and CATD.

Each alternates truths given weights with weights given the workers' distances from the truths, from the median.
"""

from abc import abstractmethod
from collections.abc import Mapping
from dataclasses import dataclass, replace
from typing import ClassVar, NamedTuple, final

import numpy as np
from numpy.typing import NDArray
from scipy.special import gammaincinv

from crowdveil.em.estimate import WorkerTable
from crowdveil.em.estimator import Estimator
from crowdveil.em.fit_state import FitState, StateField
from crowdveil.em.model import EStep, GoldBlock, MemoryUse, Summary
from crowdveil.estimators.numeric.task_medians import (
    standard_deviation_per_task,
    weighted_medians,
    with_gold_truths_replaced,
)

ROUNDING = 1e-12
"""Differences up to this share of the number count as 0."""
SMALLEST_SHARE = 1e-7
"""Lower bound of d / max d in CRH: it bounds the weights; added to each, it keeps the worst worker's above 0."""
BYTES_PER_REPORT, MAX_BLOCK_REPORTS = 64, 1 << 23
"""Bytes that an E-step allocates per report, and largest number of reports of a block."""


@dataclass(frozen=True, eq=False)
class WeightParameters:
    """Counts of the reports, and weights, shape (workers,); None before the first step."""

    summary: Summary
    weight: NDArray[np.float64] | None


class Distances(NamedTuple):
    """Each worker's distance from the truths, summed over reports, shape (workers,)."""

    distance: NDArray[np.float64]


class WeightedTruths(Estimator[WeightParameters, Distances]):
    """Start, worker table and state of the methods; subclasses define `weights` and the E-step."""

    state_fields: ClassVar[Mapping[str, StateField]] = {"weight": StateField("real")}

    @abstractmethod
    def weights(self, distance: NDArray[np.float64], summary: Summary) -> NDArray[np.float64]:
        """Return the weights from the distances, shape (workers,); those without reports are not used."""

    def initialize(self, summary: Summary) -> WeightParameters:
        """Return no weights."""
        return WeightParameters(summary, None)

    def m_step(self, statistics: Distances, parameters: WeightParameters) -> WeightParameters:
        """Return the weights from the distances, 0 for a worker without reports."""
        summary = parameters.summary
        weight = self.weights(statistics.distance, summary)
        return replace(parameters, weight=np.where(summary.per_worker > 0, weight, 0.0))

    def worker_table(self, statistics: Distances, parameters: WeightParameters) -> WorkerTable:
        """Return the weights that follow from the last truths; they sum to 1."""
        weight = self.m_step(statistics, parameters).weight
        assert weight is not None
        return WorkerTable(weight / (weight.sum() or 1.0), "weight")

    def memory(self, summary: Summary, parameters: WeightParameters) -> MemoryUse:
        """Return the size of the distances, and of the numbers and distances of a block."""
        reports = min(int(summary.per_worker.sum()), MAX_BLOCK_REPORTS)
        return MemoryUse(summary.workers, per_thread=BYTES_PER_REPORT * reports)

    def from_state(self, initial: WeightParameters, state: FitState) -> WeightParameters:
        """Return the weights of the state, their mean for new workers."""
        mean = float(np.nanmean(state.by_worker["weight"]))
        return replace(initial, weight=state.worker_rows_or_default("weight", np.full(initial.summary.workers, mean)))


@final
@dataclass(frozen=True, slots=True, kw_only=True)
class Crh(WeightedTruths):
    """CRH for numbers: weighted medians and logarithmic weights (Li, Li, Gao, Zhao, Fan, Han, SIGMOD 2014, section 2).

    truth x_j = weighted median of the task's answers;
    d_i = sum_j |y_ij - x_j| / deviation of the task's answers;   w_i = -log(d_i / max_i' d_i').
    The sum of weights at exactly one half averages the two medians.

    Attributes:
        max_steps: largest number of steps.
        tolerance: stop when no truth changes by more than this, in units of the values.
    """

    name: ClassVar[str] = "crh"
    max_steps: int = 100
    tolerance: float = 1e-6

    def e_step(self, block: GoldBlock, parameters: WeightParameters) -> EStep[Distances]:
        """Return the medians, and each worker's normalized absolute distance from them."""
        summary = parameters.summary
        numbers = block.coded.report_values
        weight = np.ones(summary.workers) if parameters.weight is None else parameters.weight
        truth = with_gold_truths_replaced(weighted_medians(block.block, numbers, weight), block.gold)
        unit = standard_deviation_per_task(block.block, numbers)[block.block.task]
        away = np.abs(report_residuals(block, numbers, truth)) / np.where(unit > 0, unit, 1.0)
        return EStep(distances_summed_by_worker(block, away, summary), truth)

    def weights(self, distance: NDArray[np.float64], summary: Summary) -> NDArray[np.float64]:
        """Return -log of the distances relative to the largest."""
        share = distance / (distance.max(initial=0.0) or 1.0)
        return SMALLEST_SHARE - np.log(np.maximum(share, SMALLEST_SHARE))


@final
@dataclass(frozen=True, slots=True, kw_only=True)
class Catd(WeightedTruths):
    """CATD: means weighted by confidence bounds of variances (Li et al., PVLDB 8(4), 2014, equations 5 and 7).

    w_i = quantile of chi-squared(n_i) at alpha / 2  /  sum_j (y_ij - x_j)^2,   x_j = sum_i w_i y_ij / sum_i w_i:
    the upper end of the confidence interval of the variance, so that workers with few answers count little.

    Attributes:
        alpha: 1 minus the level of the confidence interval.
        floor: lower bound of a worker's mean square, as a share of the median one: weights stay finite.
        max_steps: largest number of steps.
        tolerance: stop when no truth changes by more than this, in units of the values.

    Raises:
        SettingsError: `alpha` or `floor` outside (0, 1).
    """

    name: ClassVar[str] = "catd"
    ranges: ClassVar[Mapping[str, str]] = {"alpha": "(0, 1)", "floor": "(0, 1)"}
    alpha: float = 0.05
    floor: float = 1e-4
    max_steps: int = 1000
    tolerance: float = 1e-6

    def e_step(self, block: GoldBlock, parameters: WeightParameters) -> EStep[Distances]:
        """Return the medians, then weighted means, and each worker's sum of squares."""
        if parameters.weight is not None:
            step = block.coded.reduce_weighted_means(parameters.weight, ROUNDING, block.gold, block.before)
            return EStep(Distances(step.squares), step.truth, change=step.change)
        summary = parameters.summary
        numbers = block.coded.report_values
        truth = with_gold_truths_replaced(weighted_medians(block.block, numbers, np.ones(summary.workers)), block.gold)
        squares = report_residuals(block, numbers, truth) ** 2
        return EStep(distances_summed_by_worker(block, squares, summary), truth)

    def weights(self, distance: NDArray[np.float64], summary: Summary) -> NDArray[np.float64]:
        """Return quantile / sum of squares, divided by the largest."""
        reports = np.maximum(summary.per_worker, 1)
        mean = distance / reports
        positive = mean[mean > 0]
        smallest = self.floor * float(np.median(positive)) if positive.size else 1.0
        weight = 2 * gammaincinv(reports / 2, self.alpha / 2) / (reports * np.maximum(mean, smallest))
        return np.asarray(weight / weight.max(initial=1e-300))


def distances_summed_by_worker(block: GoldBlock, distance: NDArray[np.float64], summary: Summary) -> Distances:
    """Return the distances of the reports, shape (reports,), summed by worker."""
    return Distances(np.bincount(block.block.worker, distance, summary.workers).astype(float))


def report_residuals(block: GoldBlock, numbers: NDArray[np.float64], truth: NDArray[np.float64]) -> NDArray[np.float64]:
    """Return number minus truth of each report, 0 where only rounding differs; shape (reports,)."""
    found = numbers - truth[block.block.task]
    found[np.abs(found) <= ROUNDING * np.abs(numbers)] = 0.0
    return found
