"""GLAD: worker ability and task difficulty (Whitehill et al., NIPS 2009).

P(y_ij = z_j) = sigma(alpha_i beta_j) with the logistic function sigma; wrong labels are uniform over the other K - 1.
Priors: alpha_i ~ N(1, 1); log beta_j ~ N(0, 1) on a grid, independent of the truth z_j.

The E-step is exact over truth and grid point. With p_j(b, z) = P(beta_j = b, z_j = z | reports),
    log p_j(b, z) = const + log prior(b, z) + sum_i log sigma(-alpha_i b) + sum_{i: y_ij = z} (log(K - 1) + alpha_i b).
The M-step is one gradient step per worker with Boehning and Lindsay's (1988) bound 1/4 of the logistic slope, which
never lowers the log-posterior:
    g_i = sum_j sum_b b (p_j(b, y_ij) - sigma(alpha_i b) p_j(b)),   h_i = sum_j sum_b b^2 p_j(b) / 4,
    alpha_i <- alpha_i + (g_i - (alpha_i - 1)) / (h_i + 1).
"""

from collections.abc import Mapping
from dataclasses import dataclass, replace
from typing import ClassVar, NamedTuple, final

import numpy as np
from numpy.typing import NDArray
from scipy.special import expit

from crowdveil.em.estimate import WorkerTable
from crowdveil.em.estimator import Estimator
from crowdveil.em.fit_state import StateField
from crowdveil.em.gold import one_hot_gold
from crowdveil.em.kernels.numpy_backend import softmax
from crowdveil.em.model import EStep, GoldBlock, MemoryUse, Summary
from crowdveil.em.saddle_points import jittered_table

LOG_BETA = np.linspace(-2.5, 2.5, 11)
"""Grid of log beta; large beta are easy tasks."""
BETA = np.exp(LOG_BETA)
LOG_BETA_PRIOR = -0.5 * LOG_BETA**2 - np.log(np.exp(-0.5 * LOG_BETA**2).sum())


@dataclass(frozen=True, eq=False)
class GladParameters:
    """Abilities alpha, shape (workers,), and the fixed class prior, shape (labels,)."""

    summary: Summary
    alpha: NDArray[np.float64]
    class_prior: NDArray[np.float64]


class GladStatistics(NamedTuple):
    """Gradient and curvature bound of each worker's alpha, shapes (workers,); marginal log-likelihood."""

    gradient: NDArray[np.float64]
    curvature: NDArray[np.float64]
    log_likelihood: float


@final
@dataclass(frozen=True, slots=True, kw_only=True)
class Glad(Estimator[GladParameters, GladStatistics]):
    """Generalized EM over abilities, with truth and difficulty of each task as latent variables.

    The estimate has the posterior mean of the difficulty 1 / beta of each task in `task_parameters`.
    The ability of a worker is sigma(alpha): the probability of a right answer to a task with difficulty 1.

    Attributes:
        max_steps: largest number of steps.
        tolerance: stop when no posterior and no difficulty changes by more than this.
    """

    name: ClassVar[str] = "glad"
    state_fields: ClassVar[Mapping[str, StateField]] = {"alpha": StateField("real")}
    task_parameters: ClassVar[tuple[str, ...]] = ("difficulty",)
    max_steps: int = 1000
    tolerance: float = 1e-6

    def initialize(self, summary: Summary) -> GladParameters:
        """Return alpha 1 for all workers, and the uniform or public class prior."""
        prior = np.full(summary.labels, 1 / summary.labels) if summary.prior is None else summary.prior
        return GladParameters(summary, np.ones(summary.workers), prior)

    def e_step(self, block: GoldBlock, parameters: GladParameters) -> EStep[GladStatistics]:
        """Return posteriors and expected difficulties of the block's tasks, and the sums for the M-step."""
        alpha, coded, labels = parameters.alpha, block.coded, parameters.summary.labels
        initial = np.log(parameters.class_prior) + np.log(labels - 1) * coded.symbol_weights(np.ones_like(alpha))
        scores = initial[:, None] + LOG_BETA_PRIOR[:, None] + BETA[:, None] * coded.symbol_weights(alpha)[:, None]
        for grid, beta in enumerate(BETA):
            wrong = -np.logaddexp(0, alpha * beta) - np.log(labels - 1)
            scores[:, grid] += coded.symbol_weights(wrong).sum(axis=1)[:, None]
        known = np.flatnonzero(block.gold >= 0)
        excluded = np.arange(labels) != block.gold[known, None]
        scores[known] = np.where(excluded[:, None], -np.inf, scores[known])
        joint, normalizer = softmax(scores.reshape(len(scores), -1))
        joint = joint.reshape(scores.shape)
        by_beta = joint.sum(axis=2)
        gradient, curvature = np.zeros_like(alpha), np.zeros_like(alpha)
        for grid, beta in enumerate(BETA):
            total = coded.agreement_sums(np.repeat(by_beta[:, grid, None], labels, axis=1))
            gradient += beta * (coded.agreement_sums(joint[:, grid]) - expit(alpha * beta) * total)
            curvature += beta**2 / 4 * total
        statistics = GladStatistics(gradient, curvature, float(normalizer.sum()))
        posterior = one_hot_gold(joint.sum(axis=1), block.gold)
        return EStep(statistics, posterior, task_parameters=(by_beta @ (1 / BETA))[:, None])

    def m_step(self, statistics: GladStatistics, parameters: GladParameters) -> GladParameters:
        """Return the abilities after one bounded gradient step."""
        step = (statistics.gradient - (parameters.alpha - 1)) / (statistics.curvature + 1)
        return replace(parameters, alpha=parameters.alpha + step)

    def worker_table(self, statistics: GladStatistics, parameters: GladParameters) -> WorkerTable:
        """Return sigma(alpha) as the ability of each worker."""
        return WorkerTable(expit(parameters.alpha), "ability")

    def log_prior(self, parameters: GladParameters) -> float:
        """Return the log-density of the abilities up to a constant."""
        return -0.5 * float(((parameters.alpha - 1) ** 2).sum())

    def memory(self, summary: Summary, parameters: GladParameters) -> MemoryUse:
        """Return the size of the statistics, and of a block's joint posteriors over grid and labels."""
        return MemoryUse(2 * summary.workers, per_thread=32 * len(BETA) * summary.labels * summary.tasks)

    def jitter_parameters(self, parameters: GladParameters, direction: float, seed: int) -> GladParameters:
        """Return the parameters with slightly changed abilities."""
        return replace(parameters, alpha=jittered_table(parameters.alpha, direction, seed))
