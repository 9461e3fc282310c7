"""CATD: means weighted by confidence bounds of the workers' variances (Li et al., PVLDB 8(4), 2014, equations 5 and 7).

    w_i = quantile of chi-squared(n_i) at alpha / 2  /  sum_j (y_ij - x_j)^2,   x_j = sum_i w_i y_ij / sum_i w_i:
the upper end of the confidence interval of the variance, so that workers with few answers count little.
"""

from dataclasses import dataclass
from typing import ClassVar, final

import numpy as np
from numpy.typing import NDArray
from scipy.special import gammaincinv

from crowdveil.em.model import EStep, GoldBlock, Summary
from crowdveil.errors import SettingsError
from crowdveil.estimators.numeric.medians import weighted_medians
from crowdveil.estimators.numeric.weighted_truths import (
    ROUNDING,
    Distances,
    WeightedTruths,
    WeightParameters,
    by_worker,
    differences,
    numbers_of,
    with_gold,
)
from crowdveil.registry import Capabilities, capabilities_of


@final
@dataclass(frozen=True, slots=True, kw_only=True)
class Catd(WeightedTruths):
    """Alternate weighted means and weights, from the median.

    Attributes:
        alpha: 1 minus the level of the confidence interval.
        floor: lower bound of a worker's mean square, as a share of the median one: weights stay finite.
        max_steps: largest number of steps.
        tolerance: stop when no truth changes by more than this, in units of the values.

    Raises:
        SettingsError: `alpha` or `floor` outside (0, 1).
    """

    name: ClassVar[str] = "catd"
    capabilities: ClassVar[Capabilities] = capabilities_of("catd")
    alpha: float = 0.05
    floor: float = 1e-4
    max_steps: int = 1000
    tolerance: float = 1e-6

    def __post_init__(self) -> None:
        self._require_setting_types()
        if not (0 < self.alpha < 1 and 0 < self.floor < 1):
            raise SettingsError("alpha and floor must be in (0, 1)", value=(self.alpha, self.floor))

    def e_step(self, block: GoldBlock, parameters: WeightParameters) -> EStep[Distances]:
        """Return the medians, then weighted means, and each worker's sum of squares."""
        if parameters.weight is not None:
            step = block.coded.mean_step(parameters.weight, ROUNDING, block.gold, block.before)
            return EStep(Distances(step.squares), step.truth, change=step.change)
        summary = parameters.summary
        numbers = numbers_of(block, summary)
        truth = with_gold(weighted_medians(block.block, numbers, np.ones(summary.workers)), block.gold)
        squares = differences(block, numbers, truth) ** 2
        return EStep(by_worker(block, squares, summary), truth)

    def weights(self, distance: NDArray[np.float64], summary: Summary) -> NDArray[np.float64]:
        """Return quantile / sum of squares, divided by the largest."""
        reports = np.maximum(summary.per_worker, 1)
        mean = distance / reports
        positive = mean[mean > 0]
        smallest = self.floor * float(np.median(positive)) if positive.size else 1.0
        weight = 2 * gammaincinv(reports / 2, self.alpha / 2) / (reports * np.maximum(mean, smallest))
        return np.asarray(weight / weight.max(initial=1e-300))
