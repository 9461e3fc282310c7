"""Rater biases: the constant that a worker adds to every answer, with a learned normal prior.

y_ij = mu_j + b_i + e_ij, b_i ~ N(0, tau^2 / z_i), e_ij with precision w_ij, and a flat prior for mu_j. z_i is 1 but for
workers whose bias is far from the others', such as one who always gives one number: with the median m of the biases and
r^2 = (1.48 median |b_i - m|)^2 + median V_i,
    z_i = min(1, 16 r^2 / (b_i - m)^2).
With W_j = sum_i w_ij and the truths marginalized, the precision of the biases is M + diag(z) / tau^2, where
    M_ii = sum_j w_ij (1 - w_ij / W_j),   M_ik = -sum_j w_ij w_kj / W_j.
Truths and biases are updated in turn, which solves the normal equations in O(answers) per step; V is from the diagonal:
    mu_j = sum_i w_ij (y_ij - b_i) / W_j,   b_i = sum_j w_ij (y_ij - mu_j) / (sum_j w_ij + z_i / tau^2),
    V_i = 1 / (M_ii + z_i / tau^2),   tau^2 = (sum_i z_i (b_i^2 + V_i) + n L) / (n + 5),   n = sum_i z_i.
A constant added to all biases and taken from all truths changes no answer. Only the prior and gold fix this level:
sum_i z_i b_i is 0 in every group of workers that common tasks connect, unless there is gold. A step of its own sets the
level; L = 1 / (n / tau^2 + sum of w_ij over gold tasks) is its variance.
"""

from dataclasses import dataclass
from typing import Self

import numpy as np
from numpy.typing import NDArray

from crowdveil.em.kernels.numpy_backend import weight_totals_by_code
from crowdveil.em.model import GoldBlock

LEAST_RATIO = 0.4
"""Least tau / s at which biases are fitted: below it, they cost real sets accuracy."""
FAR, DEVIATIONS_PER_MEDIAN = 4.0, 1.4826
"""Deviations from which a bias is far from the others, and deviation of a normal, in medians of its absolute values."""
PRIOR_WORKERS = 5.0
"""Workers without bias that the variance of biases counts in addition."""
FEWEST_WORKERS = 3
"""Workers below which no biases are fitted: of two, nobody knows which is biased."""
SUMS = 4
"""Sums over reports that each worker has, see `worker_residual_sums`."""


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

    def posterior_from_sums(self, sums: NDArray[np.float64], answered: NDArray[np.bool_]) -> Self:
        """Return the posterior and tau^2 from the sums of `worker_residual_sums`.

        `answered` are the workers with reports.
        """
        residuals, precision, marginal, gold = sums
        near = self._nearness(answered)
        prior, count = near / self.tau2, float(near[answered].sum())
        level = 1 / (count / self.tau2 + float(gold.sum()))
        shift = level * float(residuals.sum() - (prior * self.mean)[answered].sum())
        before = np.where(answered, self.mean + shift, 0.0)
        mean = (residuals - gold * shift + precision * before) / (precision + prior)
        variance = 1 / (marginal + prior)
        squares = float((near * (mean**2 + variance))[answered].sum()) + count * level
        return type(self)(mean, variance, squares / (count + PRIOR_WORKERS), level)

    def _nearness(self, answered: NDArray[np.bool_]) -> NDArray[np.float64]:
        """Return z_i, 1 for workers without reports; shape (workers,)."""
        away = self.mean - np.median(self.mean[answered])
        unit = DEVIATIONS_PER_MEDIAN * float(np.median(np.abs(away[answered])))
        usual2 = FAR**2 * (unit**2 + float(np.median(self.variance[answered])))
        return np.where(answered, usual2 / np.maximum(away**2, usual2), 1.0)


def worker_residual_sums(
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


def bias_variances(
    block: GoldBlock, biases: RaterBiases, precision: NDArray[np.float64], spread: NDArray[np.float64]
) -> tuple[NDArray[np.float64], NDArray[np.float64]]:
    """Return the variance of mu_j + b_i by the biases, shape (reports,), and that of mu_j, shape (tasks,).

    Arguments as in `worker_residual_sums`. Biases count as independent but for their
    level, which is in neither.
    """
    task, variance = block.block.task, biases.variance[block.block.worker]
    share = precision * spread[task]
    of_truth = weight_totals_by_code(task, share**2 * variance, block.block.tasks)
    return variance * (1 - 2 * share) + of_truth[task], of_truth


def bias_variance_by_moments(sums: NDArray[np.float64], pooled2: float) -> float:
    """Return tau^2 from the sums of a fit without biases; 0 for fewer than 3 workers.

    With S_i = sum_j w e and M_i = sum_j w (1 - w / W_j), S_i^2 / M_i has the mean 1 without biases:
        tau^2 = max(sum_i (S_i^2 / M_i - 1), 0) / (sum_i M_i n / (n - 1)) n / (n + 5).

    Args:
        sums: of `worker_residual_sums`.
        pooled2: mean squared error of an answer.
    """
    residuals, _, marginal, _ = sums
    compared = marginal * pooled2 > 1e-9
    workers = int(compared.sum())
    if workers < FEWEST_WORKERS:
        return 0.0
    excess = float((residuals[compared] ** 2 / marginal[compared] - 1).sum())
    expected = float(marginal[compared].sum()) * workers / (workers - 1)
    return max(excess, 0.0) / expected * workers / (workers + PRIOR_WORKERS)
