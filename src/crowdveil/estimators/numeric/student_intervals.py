"""Intervals of truths where errors are normal or Student's and depend on one another, see `student_t`.

A truth has the variance f D_j ((1 - rho) / G_j + rho c), and what biases add: rho is the correlation of two errors, c
the squared scale of the crowd's errors from the first residuals, which no weight touches, D_j = (10 + sum u w e^2) /
(9 + n_j) the task's own squared scale, and f = (nu + 3) / (nu + 1) the information of a Student location.
"""

import numpy as np
from numpy.typing import NDArray
from scipy.special import stdtrit

from crowdveil.em.kernels.numpy_backend import weight_totals_by_code
from crowdveil.em.model import GoldBlock
from crowdveil.estimators.numeric.student_errors import Errors
from crowdveil.estimators.numeric.student_parameters import StudentParameters

TASK_PRIOR = 10.0
"""Weight of 1 in the squared scale of a task, in answers."""
UPPER_LEVEL = 0.95
"""Level of the upper end of an interval."""


def half_widths(
    block: GoldBlock, errors: Errors, parameters: StudentParameters, rho: float, of_truth: NDArray[np.float64]
) -> NDArray[np.float64]:
    """Return half the length of each task's 90 % interval, shape (tasks,).

    0 for gold; nan without reports, and if all answers to each task are equal, so that errors have no scale.

    Args:
        block: the reports.
        errors: of the block.
        parameters: of the errors.
        rho: correlation of two errors on one task.
        of_truth: variance of each truth by biases, shape (tasks,) or (1,).
    """
    tasks, nu = block.block.tasks, parameters.nu
    count = np.diff(block.block.pointers).astype(float)
    known = (count > 0) & (parameters.geometric2 > 0)
    if errors.counted is not None:
        count = weight_totals_by_code(errors.task, errors.counted, tasks)
    freedom = TASK_PRIOR + np.maximum(count - 1, 0)
    weighted = errors.weighted if errors.counted is None else errors.weighted * errors.counted
    own = (TASK_PRIOR + weight_totals_by_code(errors.task, weighted * errors.residual**2, tasks)) / freedom
    location = 1.0 if parameters.normal else (nu + 3) / (nu + 1)
    variance = location * own * ((1 - rho) * errors.spread + rho * parameters.crowd2)
    if parameters.biases is not None:
        variance = variance + of_truth + parameters.biases.level
    half = stdtrit(freedom, UPPER_LEVEL) * np.sqrt(variance)
    return np.where(np.isnan(block.gold), np.where(known, half, np.nan), 0.0)
