"""GTM: normal truths and errors, one variance per worker (Zhao and Han, QDB 2012, equations 2 to 7).

In units of each task, (y_ij - median_j) / deviation_j, truths are N(0, truth_deviation^2) and errors N(0, sigma_i^2),
with sigma_i^2 ~ inverse gamma(shape, rate). The joint density is maximized in turn over
    truth_j = sum_i y_ij / sigma_i^2 / (1 / truth_deviation^2 + sum_i 1 / sigma_i^2),
    sigma_i^2 = (2 rate + sum_j (y_ij - truth_j)^2) / (2 (shape + 1) + n_i).
"""

from dataclasses import dataclass
from typing import ClassVar, final

import numpy as np
from numpy.typing import NDArray

from crowdveil.em.model import EStep, GoldBlock, Summary
from crowdveil.errors import SettingsError
from crowdveil.estimators.numeric.medians import deviations, weighted_medians
from crowdveil.estimators.numeric.weighted_truths import (
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
class Gtm(WeightedTruths):
    """Alternate truths and variances, from the median; the weight of a worker is 1 / sigma^2.

    The paper's removal of outliers, which needs thresholds in units of the answers, is left to the user.

    Attributes:
        shape, rate: of the inverse gamma prior of the variances.
        truth_deviation: standard deviation of the normal prior of the truths, in deviations of the task's answers.
        max_steps: largest number of steps.
        tolerance: stop when no truth changes by more than this, in units of the values.

    Raises:
        SettingsError: a setting that is not positive.
    """

    name: ClassVar[str] = "gtm"
    capabilities: ClassVar[Capabilities] = capabilities_of("gtm")
    shape: float = 10.0
    rate: float = 10.0
    truth_deviation: float = 1.0
    max_steps: int = 1000
    tolerance: float = 1e-6

    def __post_init__(self) -> None:
        self._require_setting_types()
        settings = (self.shape, self.rate, self.truth_deviation)
        if not all(0 < setting < np.inf for setting in settings):
            raise SettingsError("shape, rate and truth_deviation must be positive and finite", value=settings)

    def e_step(self, block: GoldBlock, parameters: WeightParameters) -> EStep[Distances]:
        """Return the truths, and each worker's sum of squares in units of the tasks."""
        summary, tasks = parameters.summary, block.block.tasks
        numbers = numbers_of(block, summary)
        median = weighted_medians(block.block, numbers, np.ones(summary.workers))
        deviation = deviations(block.block, numbers)
        unit = np.where(deviation > 0, deviation, 1.0)
        own = differences(block, numbers, median) / unit[block.block.task]
        truth = np.zeros(tasks)
        if parameters.weight is not None:
            precision = parameters.weight[block.block.worker]
            total = 1 / self.truth_deviation**2 + np.bincount(block.block.task, precision, tasks)
            truth = np.bincount(block.block.task, precision * own, tasks) / total
        found = with_gold(median + unit * truth, block.gold)
        away = differences(block, numbers, found) / unit[block.block.task]
        return EStep(by_worker(block, away**2, summary), found)

    def weights(self, distance: NDArray[np.float64], summary: Summary) -> NDArray[np.float64]:
        """Return 1 / sigma^2."""
        return (2 * (self.shape + 1) + summary.per_worker) / (2 * self.rate + distance)
