"""CRH for numbers: weighted medians and logarithmic weights (Li, Li, Gao, Zhao, Fan and Han, SIGMOD 2014, section 2).

truth x_j = weighted median of the task's answers;
d_i = sum_j |y_ij - x_j| / deviation of the task's answers;   w_i = -log(d_i / max_i' d_i').
"""

from dataclasses import dataclass
from typing import ClassVar, final

import numpy as np
from numpy.typing import NDArray

from crowdveil.em.model import EStep, GoldBlock, Summary
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

SMALLEST_SHARE = 1e-7
"""Lower bound of d / max d: it bounds the weights; added to each, it keeps the worst worker's above 0."""


@final
@dataclass(frozen=True, slots=True, kw_only=True)
class Crh(WeightedTruths):
    """Alternate weighted medians and weights from the normalized absolute loss, from the plain median.

    The sum of weights at exactly one half averages the two medians.

    Attributes:
        max_steps: largest number of steps.
        tolerance: stop when no truth changes by more than this, in units of the values.
    """

    name: ClassVar[str] = "crh"
    capabilities: ClassVar[Capabilities] = capabilities_of("crh")
    max_steps: int = 100
    tolerance: float = 1e-6

    def e_step(self, block: GoldBlock, parameters: WeightParameters) -> EStep[Distances]:
        """Return the medians, and each worker's normalized absolute distance from them."""
        summary = parameters.summary
        numbers = numbers_of(block, summary)
        weight = np.ones(summary.workers) if parameters.weight is None else parameters.weight
        truth = with_gold(weighted_medians(block.block, numbers, weight), block.gold)
        unit = deviations(block.block, numbers)[block.block.task]
        away = np.abs(differences(block, numbers, truth)) / np.where(unit > 0, unit, 1.0)
        return EStep(by_worker(block, away, summary), truth)

    def weights(self, distance: NDArray[np.float64], summary: Summary) -> NDArray[np.float64]:
        """Return -log of the distances relative to the largest."""
        share = distance / (distance.max(initial=0.0) or 1.0)
        return SMALLEST_SHARE - np.log(np.maximum(share, SMALLEST_SHARE))
