"""Truths, errors and weights of a block of reports, and the sums over them, see `student_t`.

h_ij = u_ij w_ij / G_j is the share of an answer in its truth, and o_ij = 1 / (u_ij lam_i) its variance. The sums are
    Q_i = sum_j u_ij (e_ij^2 + max(2 h_ij o_ij - sum_k h_kj^2 o_kj, 0)) and sum_j h_ij;
what is added to e_ij^2 is 1 / G_j where phi is 0, and biases add their variance.
"""

import math
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray
from scipy.special import gammaln

from crowdveil.em.kernels.numpy_backend import weight_totals_by_code
from crowdveil.em.model import GoldBlock
from crowdveil.estimators.numeric.student_parameters import NU_GRID, StudentParameters
from crowdveil.estimators.numeric.task_medians import weighted_medians, with_gold_truths_replaced
from crowdveil.estimators.numeric.task_modes import SEARCH_STEPS, truths_at_better_modes

INNER_STEPS = 2
"""Updates of the weights u and truths mu in an E-step where errors are Student's."""

Array = NDArray[np.float64]


class Errors(NamedTuple):
    """Errors of a block given its truths.

    Attributes:
        task: local task of each report.
        truth, spread: mu_j and 1 / G_j, 0 where the truth is gold; shape (tasks,).
        residual: e_ij, shape (reports,).
        precision, weighted: w_ij and u_ij w_ij, shape (reports,).
        counted: 1 for an answer that counts for its worker, else 0, shape (reports,); None where all do.
    """

    task: NDArray[np.int64]
    truth: Array
    spread: Array
    residual: Array
    precision: Array
    weighted: Array
    counted: Array | None


def unbiased_numbers(block: GoldBlock, parameters: StudentParameters) -> Array:
    """Return the value of each report, less the bias of its worker; shape (reports,)."""
    numbers, biases = block.coded.report_values, parameters.biases
    return numbers if biases is None else numbers - biases.mean[block.block.worker]


def truths_before(block: GoldBlock, numbers: Array, parameters: StudentParameters) -> Array:
    """Return the truths of the step before, or the medians; nan without reports; shape (tasks,)."""
    if block.before is not None:
        return block.before
    medians = weighted_medians(block.block, numbers, np.ones(parameters.summary.workers))
    return with_gold_truths_replaced(medians, block.gold)


def first_modes(block: GoldBlock, parameters: StudentParameters) -> Array:
    """Return the median of each task, or an answer far more likely under Cauchy errors of the first residuals' scale.

    Where most answers of a task are far away in different directions, its median is one of them.
    """
    numbers = unbiased_numbers(block, parameters)
    precision = np.full(len(numbers), 1 / parameters.geometric2)
    median = truths_before(block, numbers, parameters)
    return with_gold_truths_replaced(truths_at_better_modes(block.block, numbers, precision, 1.0, median), block.gold)


def errors_of_block(block: GoldBlock, parameters: StudentParameters) -> Errors:
    """Return the truths of the block and their errors."""
    task, numbers = block.block.task, unbiased_numbers(block, parameters)
    precision = _precisions_of_reports(block, parameters)
    counted = None
    if not parameters.normal:
        truth, spread, weighted = _student_means(block, task, numbers, precision, parameters)
    else:
        weighted = precision
        if math.isfinite(parameters.far2):
            centre = first_modes(block, parameters) if block.before is None else block.before
            counted = near_answers(task, numbers, centre, parameters).astype(float)
            alone = weight_totals_by_code(task, counted, block.block.tasks) == 0
            weighted = precision * np.where(alone[task], 1.0, counted)
        truth, spread = _weighted_means(block, task, numbers, weighted)
    return Errors(task, truth, spread, numbers - truth[task], precision, weighted, counted)


def near_answers(
    task: NDArray[np.int64], numbers: Array, truth: Array, parameters: StudentParameters
) -> NDArray[np.bool_]:
    """Return whether each answer is near the truth, shape (reports,)."""
    near: NDArray[np.bool_] = np.abs(numbers - truth[task]) <= math.sqrt(parameters.far2)
    return near


def squares_and_shares(block: GoldBlock, errors: Errors, parameters: StudentParameters, by_bias: Array) -> list[Array]:
    """Return Q_i, sum_j h_ij and the number of answers that do not count, each of shape (workers,) or (1,)."""
    worker, workers = block.block.worker, parameters.summary.workers
    share = errors.weighted * errors.spread[errors.task]
    uncertain = _variances_of_truths(block, errors, share, parameters)
    # Student weights lower the square of an error; those of normal errors are 1, or 0 for answers that do not count.
    scale = errors.weighted / errors.precision if not parameters.normal else errors.counted
    squares = errors.residual**2 + uncertain + by_bias
    if scale is not None:
        squares *= scale
    dropped = np.zeros(1)
    if errors.counted is not None:
        share = share * errors.counted
        dropped = weight_totals_by_code(worker, 1 - errors.counted, workers)
    return [weight_totals_by_code(worker, squares, workers), weight_totals_by_code(worker, share, workers), dropped]


def log_density_per_nu(errors: Errors, nu: float) -> Array:
    """Return the log-density of the errors for each nu of the grid beside the present one, up to a constant."""
    scaled = (errors.residual**2 + errors.spread[errors.task]) * errors.precision
    place, found = int(np.searchsorted(NU_GRID, nu)), np.full(len(NU_GRID), -math.inf)
    for near in range(max(place - 1, 0), min(place + 2, len(NU_GRID))):
        one = float(NU_GRID[near])
        constant = gammaln((one + 1) / 2) - gammaln(one / 2) - math.log(one) / 2
        found[near] = len(scaled) * constant - (one + 1) / 2 * np.log1p(scaled / one).sum()
    return found


def relative_changes(errors: Errors, before: Array, parameters: StudentParameters) -> Array:
    """Return the change of each truth, in units of an error's deviation or, if smaller, of two standard errors."""
    unit = np.minimum(math.sqrt(parameters.precisions.pooled2), 2 * np.sqrt(errors.spread))
    with np.errstate(invalid="ignore", divide="ignore"):
        return np.nan_to_num(np.abs(errors.truth - before) / unit, posinf=0.0)


def _precisions_of_reports(block: GoldBlock, parameters: StudentParameters) -> Array:
    """Return w_ij, shape (reports,)."""
    precision, phi = parameters.precisions.precision, parameters.share
    if phi:
        precision = 1 / ((1 - phi) / precision + phi * parameters.precisions.usual2)
    return precision[block.block.worker]


def _weighted_means(block: GoldBlock, task: NDArray[np.int64], numbers: Array, weighted: Array) -> tuple[Array, Array]:
    """Return mu_j and 1 / G_j, shape (tasks,)."""
    total = weight_totals_by_code(task, weighted, block.block.tasks)
    with np.errstate(divide="ignore", invalid="ignore"):
        truth = weight_totals_by_code(task, weighted * numbers, block.block.tasks) / total
        spread = np.where((total > 0) & np.isnan(block.gold), 1 / total, 0.0)
    return with_gold_truths_replaced(truth, block.gold), spread


def _student_means(
    block: GoldBlock, task: NDArray[np.int64], numbers: Array, precision: Array, parameters: StudentParameters
) -> tuple[Array, Array, Array]:
    """Return mu_j and 1 / G_j, shape (tasks,), and u_ij w_ij, shape (reports,), where errors are Student's."""
    nu, pointers = parameters.nu, block.block.pointers
    truth, spread, weighted = truths_before(block, numbers, parameters), np.empty(0), precision
    if block.before is None or parameters.steps in SEARCH_STEPS:
        truth = truths_at_better_modes(block.block, numbers, precision, nu, truth)
    two = pointers[:-1][np.diff(pointers) == 2]
    for _ in range(INNER_STEPS):
        away = numbers - with_gold_truths_replaced(truth, block.gold)[task]
        weight = (nu + 1) / (nu + precision * away**2)
        # Two answers have two equal modes: with equal weights no rounding decides.
        weight[two] = weight[two + 1] = (weight[two] + weight[two + 1]) / 2
        weighted = weight * precision
        truth, spread = _weighted_means(block, task, numbers, weighted)
    return truth, spread, weighted


def _variances_of_truths(block: GoldBlock, errors: Errors, share: Array, parameters: StudentParameters) -> Array:
    """Return what the truth adds to the square of each residual, max(2 h o - sum h^2 o, 0), shape (reports,)."""
    if not parameters.share:
        return errors.spread[errors.task]
    by_worker = 1 / parameters.precisions.precision[block.block.worker]
    of_mean = weight_totals_by_code(errors.task, share**2 * by_worker, block.block.tasks)
    return np.maximum(2 * share * by_worker - of_mean[errors.task], 0.0)
