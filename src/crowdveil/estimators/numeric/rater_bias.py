"""Rater biases: the constant that a worker adds to every answer, with a learned normal prior.

y_ij = mu_j + b_i + e_ij, b_i ~ N(0, tau^2), e_ij with precision w_ij = u_ij / (s^2 v_i), and a flat prior for mu_j.
With W_j = sum_i w_ij and the truths marginalized, the precision of the biases is M + 1 / tau^2, where
    M_ii = sum_j w_ij (1 - w_ij / W_j),   M_ik = -sum_j w_ij w_kj / W_j.
Truths and biases are updated in turn, which solves the normal equations in O(answers) per step; V is from the diagonal:
    mu_j = sum_i w_ij (y_ij - b_i) / W_j,   b_i = sum_j w_ij (y_ij - mu_j) / (sum_j w_ij + 1 / tau^2),
    V_i = 1 / (M_ii + 1 / tau^2),   tau^2 = (sum_i (b_i^2 + V_i) + n L) / (n + 5) for n workers.
A constant added to all biases and taken from all truths changes no answer. Only the prior and gold fix this level:
biases sum to 0 in every group of workers that common tasks connect, unless there is gold. A step of its own sets the
level; L = 1 / (n / tau^2 + sum of w_ij over gold tasks) is its variance.

In a fit without biases, the sum G_i = sum_j w_ij e_ij of a worker has the variance M_ii (1 - r) + r s^2 sum_k M_ik^2,
where s^2 counts biases as errors and r is their share of it. Solved for r, by moments, this gives tau / s.
"""

import math
from dataclasses import dataclass
from typing import Self

import numpy as np
from numpy.typing import NDArray

from crowdveil.em.kernels.numpy_backend import weight_totals_by_code
from crowdveil.em.model import GoldBlock

LEAST_RATIO = 0.4
"""Least tau / s at which biases are fitted: below it, they cost real sets accuracy."""
PRIOR_WORKERS = 5.0
"""Workers without bias that the variance of biases counts in addition."""
LARGEST_SHARE = 0.99
"""Upper bound of the first estimate of the share of biases in the variance of the errors."""
FEWEST_WORKERS = 3
"""Workers below which no biases are fitted: of two, nobody knows which is biased."""
SUMS = 4
"""Sums over reports that each worker has, see `weighted_residual_sums_per_worker`."""


@dataclass(frozen=True, eq=False)
class RaterBiases:
    """Posterior of the biases.

    Attributes:
        mean, variance: b_i and V_i, in units of the answers and squared, shape (workers,).
        tau2, level: tau^2 and L, in squared units of the answers.
    """

    mean: NDArray[np.float64]
    variance: NDArray[np.float64]
    tau2: float
    level: float

    @classmethod
    def unknown(cls, workers: int, tau2: float) -> Self:
        """Return the prior: every mean is 0, every variance tau^2."""
        return cls(np.zeros(workers), np.full(workers, tau2), tau2, tau2 / max(workers, 1))

    def posterior_and_tau2_from_sums(self, sums: NDArray[np.float64], answered: NDArray[np.bool_]) -> Self:
        """Return the posterior and tau^2 from the sums of `weighted_residual_sums_per_worker`.

        `answered` are the workers with reports.
        """
        residuals, precision, marginal, gold = sums
        count = int(answered.sum())
        level = 1 / (count / self.tau2 + float(gold.sum()))
        shift = level * (float(residuals.sum()) - float(self.mean[answered].sum()) / self.tau2)
        before = np.where(answered, self.mean + shift, 0.0)
        mean = (residuals - gold * shift + precision * before) / (precision + 1 / self.tau2)
        variance = 1 / (marginal + 1 / self.tau2)
        squares = float((mean**2 + variance)[answered].sum()) + count * level
        return type(self)(mean, variance, squares / (count + PRIOR_WORKERS), level)


def weighted_residual_sums_per_worker(
    block: GoldBlock,
    residual: NDArray[np.float64],
    precision: NDArray[np.float64],
    spread: NDArray[np.float64],
    workers: int,
) -> NDArray[np.float64]:
    """Return sums over the reports of every worker: of w e, w, w (1 - w / W), and w on gold; indexed [sum, worker].

    Args:
        block: the reports.
        residual, precision: e_ij and w_ij, shape (reports,).
        spread: 1 / W_j, 0 where the truth is gold; shape (tasks,).
        workers: number of workers.
    """
    share = precision * spread[block.block.task]
    gold = np.where(share > 0, 0.0, precision)
    columns = (precision * residual, precision, precision * (1 - share), gold)
    return np.stack([weight_totals_by_code(block.block.worker, column, workers) for column in columns])


def bias_variances_of_reports_and_truths(
    block: GoldBlock, biases: RaterBiases, precision: NDArray[np.float64], spread: NDArray[np.float64]
) -> tuple[NDArray[np.float64], NDArray[np.float64]]:
    """Return the variance of mu_j + b_i by the biases, shape (reports,), and that of mu_j, shape (tasks,).

    Arguments as in `weighted_residual_sums_per_worker`. Biases count as independent but for their
    level, which is in neither.
    """
    task, variance = block.block.task, biases.variance[block.block.worker]
    share = precision * spread[task]
    of_truth = weight_totals_by_code(task, share**2 * variance, block.block.tasks)
    return variance * (1 - 2 * share) + of_truth[task], of_truth


def ratio_of_bias_to_error_deviation(sums: NDArray[np.float64], scale2: float) -> float:
    """Return tau / s by moments, from the sums of a fit without biases whose squared scale is `scale2`.

    sum_k M_ik^2 counts as M_ii^2 n / (n - 1), its value where all n workers answer all tasks. 0 for fewer than 3
    workers.
    """
    residuals, precision, marginal, _ = sums
    answered = int((precision > 0).sum())
    compared = marginal * scale2 > 1e-9
    if answered < FEWEST_WORKERS or not compared.any():
        return 0.0
    excess = float((residuals[compared] ** 2 / marginal[compared] - 1).sum())
    expected = float((marginal[compared] * scale2 * answered / (answered - 1) - 1).sum())
    share = min(excess / expected, LARGEST_SHARE) if excess > 0 and expected > 0 else 0.0
    return math.sqrt(share / (1 - share) * answered / (answered + PRIOR_WORKERS))
