"""Correlation of workers' errors on one task, from how much the variances of tasks differ.

The sum of squares S_j of n answers about their mean has V (n - 1) degrees of freedom if errors are independent. With
correlations r_ik of their deviations, its squared relative variance is 2 (1 + (n - 2) q) / (n - 1), where q is the mean
of r_ik^2 (Satterthwaite 1946). Tasks of unequal difficulty raise it too. By moments over T tasks of three answers or
more, with N = sum_j (n_j - 1):
    q = (N^2 sum_j (S_j^2 / (n_j - 1)) / (sum_j S_j)^2 - N - 2 T) / (2 (N - T)),
    rho = (T min(1.75 q, 0.7) + 5 * 0.55) / (T + 5).
q is 0 where a worker copies nobody. Where pairs either copy, with correlation 4 / 7, or not, the mean correlation is
1.75 q. Errors that all workers share do not show: 0.55 is a prior opinion, with the weight of five tasks.
"""

import numpy as np
from numpy.typing import NDArray

from crowdveil.em.kernels.numpy_backend import totals
from crowdveil.em.model import GoldBlock

FEWEST_ANSWERS = 3
"""Answers of a task from which it counts: the variances of pairs do not depend on q."""
CORRELATION_PER_Q, LARGEST_CORRELATION = 1.75, 0.7
"""Factor on q, and upper bound of the product, chosen on public sets and simulated panels."""
PRIOR_CORRELATION, PRIOR_TASKS = 0.55, 5.0
"""Correlation without evidence, and its weight in tasks."""
SUMS = 4
"""Sums over tasks, see `square_sums`."""


def square_sums(block: GoldBlock, squares: NDArray[np.float64]) -> NDArray[np.float64]:
    """Return T, N, sum S_j and sum S_j^2 / (n_j - 1) over tasks without gold that count, shape (4,).

    Args:
        block: the reports.
        squares: e_ij^2 / v_i of each report, shape (reports,).
    """
    count = np.diff(block.block.pointers)
    used = (count >= FEWEST_ANSWERS) & np.isnan(block.gold)
    others, sums = count[used] - 1.0, totals(block.block.task, squares, block.block.tasks)[used]
    return np.array([len(others), others.sum(), sums.sum(), (sums**2 / others).sum()])


def correlation_of(sums: NDArray[np.float64]) -> float:
    """Return rho from the sums of `square_sums`."""
    tasks, others, first, second = sums.tolist()
    if not (others > tasks and first > 0):
        return PRIOR_CORRELATION
    q = (others * (others * second / first**2 - 1) - 2 * tasks) / (2 * (others - tasks))
    found = min(max(CORRELATION_PER_Q * q, 0.0), LARGEST_CORRELATION)
    return (tasks * found + PRIOR_TASKS * PRIOR_CORRELATION) / (tasks + PRIOR_TASKS)
