"""Dawid-Skene model: one confusion matrix per worker (Dawid and Skene 1979), through any channel."""

from collections.abc import Iterable
from dataclasses import dataclass
from typing import ClassVar, final

import numpy as np
from numpy.typing import NDArray

from crowdveil.em.estimate import WorkerTable
from crowdveil.em.model import FitResult, GoldBlock
from crowdveil.estimators.confusion.credible_intervals import confusion_intervals
from crowdveil.estimators.confusion.model import CrowdStatistics, DirichletEstimator
from crowdveil.estimators.confusion.parameters import CrowdParameters
from crowdveil.estimators.one_coin import OneCoin


@final
@dataclass(frozen=True, slots=True, kw_only=True)
class DawidSkene(DirichletEstimator):
    """EM from the (deconvolved) majority vote, with a learned or public class prior.

    Without a channel: confusion = (sums + smoothing) / row total, class prior = mean posterior. Behind a channel the
    same steps use expected answers, with Dirichlet priors in proportion to the noise.

    Attributes:
        max_steps, tolerance: most steps, and the largest change of a posterior at which EM stops before.
        smoothing: pseudo-counts per cell of a confusion matrix, with or without a channel.
        shrinkage: pseudo-counts per row of a confusion matrix, and least pseudo-counts of the participation, multiplied
            by the noise.
        anchor_ability: prior mean of the ability: a worker who is right with this probability and otherwise guesses.
        damping: prior weight of answer frequencies in the class prior, in campaigns; multiplied by the noise.

    >>> DawidSkene().fit({"task": [1, 1, 1, 2, 2], "worker": [*"abcab"], "label": [*"yynnn"]}).truth.tolist()
    ['y', 'n']
    """

    name: ClassVar[str] = "dawid-skene"
    max_steps: int = 1000
    tolerance: float = 1e-6
    smoothing: float = 0.01
    shrinkage: float = 5.0
    anchor_ability: float = 0.7
    damping: float = 0.1

    def credible_intervals(
        self,
        blocks: Iterable[GoldBlock],
        posterior: NDArray[np.float64],
        result: FitResult[CrowdParameters, CrowdStatistics],
    ) -> WorkerTable:
        """Return the worker table with intervals; behind noise those of one ability for all rows.

        Noise biases the rows of a matrix towards the prior, and the diagonal with them. One ability for all rows is
        estimated from more reports, with little bias.
        """
        if not result.parameters.pool.noise:
            return confusion_intervals(self, blocks, posterior, result, one_ability=False)
        coin = OneCoin(smoothing=self.smoothing, shrinkage=self.shrinkage, anchor_ability=self.anchor_ability)
        return confusion_intervals(coin, blocks, posterior, result, one_ability=True)
