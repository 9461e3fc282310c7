"""One-coin: every worker has one ability, errors are spread evenly (the symmetric Dawid-Skene model)."""

from dataclasses import dataclass
from typing import Any, ClassVar, final

import numpy as np
from numpy.typing import NDArray

from crowdveil.estimators.ability_interval import Path, Spread
from crowdveil.estimators.coin_model import CoinModel
from crowdveil.estimators.confusion_model import ConfusionEstimator, CrowdStatistics, log_dirichlet
from crowdveil.estimators.confusion_parameters import CrowdParameters
from crowdveil.estimators.crowd_ability import best_centre, candidates, log_density
from crowdveil.estimators.fitting import Estimator, Summary


@final
@dataclass(frozen=True, slots=True, kw_only=True)
class OneCoin(ConfusionEstimator):
    """Expectation-maximization over one number per worker, with a fixed class prior.

    The class prior is uniform where reports are answers: learned priors wreck this model, because a common label
    explains disagreement as well as low ability does. Through a channel it is the mixture, in proportion to the noise,
    of the uniform one and the crowd's base rate. A public prior replaces both.
    """

    name: ClassVar[str] = "one-coin"
    max_steps: int = 1000
    tolerance: float = 1e-6
    smoothing: float = 0.01
    shrinkage: float = 5.0
    anchor_ability: float = 0.7
    damping: float = 1.0

    def lean(self, summary: Summary) -> Estimator[Any, Any]:
        """Return the model without tables where reports are answers."""
        if not summary.model.transparent:
            return self
        return CoinModel(
            smoothing=self.smoothing,
            shrinkage=self.shrinkage,
            anchor_ability=self.anchor_ability,
            max_steps=self.max_steps,
            tolerance=self.tolerance,
        )

    def tie(self, answers: NDArray[np.float64], anchor: NDArray[np.float64]) -> NDArray[np.float64]:
        """Return tables with one ability on the diagonal and the rest spread evenly."""
        labels = answers.shape[1]
        counts = answers + anchor
        ability = np.einsum("wzz->w", counts) / counts.sum(axis=(1, 2))
        rest = (1 - ability) / (labels - 1)
        return rest[:, None, None] + (ability - rest)[:, None, None] * np.eye(labels)

    def learn_anchor(self, parameters: CrowdParameters) -> NDArray[np.float64]:
        """Return the anchor of the crowd's likeliest ability, given everybody's own."""
        anchors = np.array([self.anchor(parameters.pool, ability) for ability in candidates(self.anchor_ability)])
        right, wrong = pseudo_answers(anchors)
        best = best_centre(self.anchor_ability, known_abilities(parameters), right[:, None], wrong[:, None])
        return np.asarray(anchors[best])

    def log_tables(self, parameters: CrowdParameters) -> float:
        """Return the Beta log-densities of abilities, and behind a channel that of the crowd's."""
        if not parameters.pool.noise:
            return log_dirichlet(parameters)
        anchors = np.array([self.anchor(parameters.pool, ability) for ability in candidates(self.anchor_ability)])
        current = int(np.abs(anchors - parameters.anchor).sum(axis=(1, 2)).argmin())
        centre = candidates(self.anchor_ability)[current]
        right, wrong = pseudo_answers(parameters.anchor)
        return float(log_density(centre, self.anchor_ability, known_abilities(parameters), right, wrong))

    def spread(self, statistics: CrowdStatistics, parameters: CrowdParameters) -> tuple[Spread, Path]:
        """Return that of tables shrunk in full."""
        return self.shrunk_spread(statistics, parameters)

    def chance(self, parameters: CrowdParameters) -> float:
        """Return the ability of a worker who gives all labels alike."""
        return 1 / parameters.pool.labels

    def path(
        self, right: NDArray[np.float64], total: NDArray[np.float64], parameters: CrowdParameters
    ) -> NDArray[np.float64]:
        """Return ones: the ability is P(right) whatever the truth."""
        return np.ones(right.shape)

    def class_prior(self, by_truth: NDArray[np.float64], parameters: CrowdParameters) -> NDArray[np.float64]:
        """Return the fixed mixture of uniform and base rate."""
        weight = min(1.0, self.damping * parameters.pool.noise)
        return (1 - weight) / parameters.pool.labels + weight * parameters.pool.label_shares

    def log_class_prior(self, parameters: CrowdParameters) -> float:
        """Return 0: the class prior is fixed."""
        return 0.0


def pseudo_answers(anchor: NDArray[np.float64]) -> tuple[NDArray[np.float64], NDArray[np.float64]]:
    """Return how many pseudo-answers of an anchor [..., truth, label] are right, and how many wrong."""
    right = np.einsum("...zz->...", anchor)
    return right, anchor.sum(axis=(-2, -1)) - right


def known_abilities(parameters: CrowdParameters) -> NDArray[np.float64]:
    """Return the abilities of the workers who reported anything: the others' are the anchor's own."""
    return np.asarray(parameters.confusion[parameters.summary.per_worker > 0, 0, 0])
