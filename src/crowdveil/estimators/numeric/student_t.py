"""Truth inference for numbers with normal or Student errors, worker variances and dependent errors.

y_ij = mu_j + b_i + e_ij, where e_ij is normal, or Student's t with nu degrees of freedom, with squared scale s^2 v_i.
The truths mu_j have a flat prior; the relative variances v_i have the prior of c = `worker_prior` answers with v = 1.
The biases b_i are 0 unless they differ much, see `rater_bias`.

Each Student error is normal given its weight u_ij (Dempster, Laird and Rubin 1977; Lange, Little and Taylor 1989); it
is 1 for normal errors. The updates of v_i and s^2 add the variance of mu_j + b_i to e_ij^2:
    u_ij = (nu + 1) / (nu + e_ij^2 / (s^2 v_i)),   mu_j = sum_i (u_ij / v_i) (y_ij - b_i) / sum_i (u_ij / v_i),
    v_i = (sum_j u_ij e_ij^2 / s^2 + c) / (n_i + c),   s^2 = mean of u_ij e_ij^2 / v_i;   nu on a grid.
Two workers' errors on one task have the correlation rho, see `correlation_of`. For intervals, n answers of squared
scale V have a mean of variance V (rho + (1 - rho) / n), n = sum_i 1 / v_i. V is the task's own, with the weights u_ij
of that scale (Kent, Tyler and Vardi 1994): V_j = (sum_i u_ij e_ij^2 / v_i + 10 s^2) / ((1 - 1 / n_j) sum_i u_ij + 10).
"""

import math
from collections.abc import Mapping
from dataclasses import dataclass, replace
from typing import ClassVar, NamedTuple, final

import numpy as np
from numpy.typing import NDArray
from scipy.special import gammaln, stdtrit

from crowdveil.em.estimate import WorkerTable
from crowdveil.em.estimator import Estimator
from crowdveil.em.fit_state import FitState, StateField
from crowdveil.em.kernels.numpy_backend import weight_totals_by_code
from crowdveil.em.model import EStep, GoldBlock, MemoryUse, Summary
from crowdveil.estimators.numeric.rater_bias import (
    LEAST_RATIO,
    SUMS,
    RaterBiases,
    bias_variances_of_reports_and_truths,
    ratio_of_bias_to_error_deviation,
    weighted_residual_sums_per_worker,
)
from crowdveil.estimators.numeric.task_medians import weighted_medians, with_gold_truths_replaced

LARGEST_NORMAL_KURTOSIS = 15.0
"""Kurtosis of the residuals above which errors are Student's; real sets have 3 to 7 or more than 100."""
NU_GRID = np.array([1.0, 1.5, 2.0, 3.0, 4.0, 6.0, 10.0, 30.0])
"""Degrees of freedom to choose from."""
INITIAL_NU = 4.0
INNER_STEPS = 2
"""Updates of the weights u and truths mu in an E-step."""
SMALLEST_SCALE = 1e-3
"""Lower bound of s, as a share of the geometric mean of the first residuals: repeated values do not drive s to 0."""
SMALLEST_SQUARE = 1e-200
"""Lower bound of s^2 where all first residuals are 0: the square of the smallest number."""
TASK_PRIOR = 10.0
"""Weight of s^2 in the variance of a task, in answers."""
TASK_STEPS = 10
"""Updates of a task's squared scale, whose weights depend on it, where errors are Student's."""
BYTES_PER_REPORT, MAX_BLOCK_REPORTS = 96, 1 << 23
"""Bytes that an E-step allocates per report, and largest number of reports of a block."""
UPPER_LEVEL = 0.95
"""Level of the upper end of an interval."""
FEWEST_ANSWERS = 3
"""Answers of a task from which it counts: the variances of pairs do not depend on q."""
CORRELATION_PER_Q, LARGEST_CORRELATION = 1.75, 0.7
"""Factor on q, and upper bound of the product, chosen on public sets and simulated panels."""
PRIOR_CORRELATION, PRIOR_TASKS = 0.55, 5.0
"""Correlation without evidence, and its weight in tasks."""
SQUARE_SUMS = 4
"""Sums over tasks, see `square_sums`."""


@dataclass(frozen=True, eq=False)
class StudentParameters:
    """Parameters of the errors.

    Attributes:
        summary: counts of the reports.
        variance: v_i, shape (workers,).
        scale2: s^2, in squared units of the answers; nan before the first step.
        nu: degrees of freedom; infinity for normal errors.
        floor2: lower bound of s^2; 0 if all first residuals are 0, so that s is unknown.
        correlation: rho.
        biases: of the workers; None where they are not fitted.
    """

    summary: Summary
    variance: NDArray[np.float64]
    scale2: float
    nu: float
    floor2: float
    correlation: float
    biases: RaterBiases | None = None


class StudentStatistics(NamedTuple):
    """Sums over reports.

    Attributes:
        squares: sum of u_ij e_ij^2 of each worker, shape (workers,).
        log_densities: log-density of the residuals for each nu of the grid.
        moments: number of residuals about the means of tasks with two reports or more, sums of their second and fourth
            powers; number of residuals about the medians that are not 0, and the sum of their logarithms. First step
            only, zeros later.
        bias_sums: see `rater_bias.weighted_residual_sums_per_worker`, indexed [sum, worker]; zeros in the first step.
        square_sums: see `square_sums`.
    """

    squares: NDArray[np.float64]
    log_densities: NDArray[np.float64]
    moments: NDArray[np.float64]
    bias_sums: NDArray[np.float64]
    square_sums: NDArray[np.float64]


@final
@dataclass(frozen=True, slots=True, kw_only=True)
class StudentT(Estimator[StudentParameters, StudentStatistics]):
    """Means of numbers with learned weights of workers, robust where the answers have outliers.

    Works on free numbers, on a `Scale` (its grid points) and on ordered labels (their positions 0 .. K - 1). Errors are
    normal unless the kurtosis of the residuals exceeds 15. A task without reports has truth nan. Intervals
    are nan if all answers to each task are equal.

    Attributes:
        degrees_of_freedom: nu; infinity for normal errors; None to decide by the kurtosis, and learn nu.
        worker_prior: weight of the crowd in a worker's variance, in answers.
        error_correlation: rho, the correlation of two workers' errors on one task, for the intervals only; None to
            estimate it.
        max_steps: largest number of steps.
        tolerance: stop when no truth changes by more than this share of s, nor of two of its standard errors.

    Raises:
        SettingsError: a setting out of range.

    >>> answers = {"task": [1, 1, 1, 2, 2, 2], "worker": [*"abcabc"], "value": [1, 2, 9, 5, 5, 6]}
    >>> StudentT().fit(answers).truth.round(1).tolist()
    [4.0, 5.3]
    """

    name: ClassVar[str] = "student-t"
    ranges: ClassVar[Mapping[str, str]] = {
        "degrees_of_freedom": "[1, inf]",
        "worker_prior": "(0, inf)",
        "error_correlation": "[0, 1]",
    }
    state_fields: ClassVar[Mapping[str, StateField]] = {
        "variance": StateField("real"),
        "shared": StateField("real", by_worker=False),
        "bias": StateField("real"),
    }
    degrees_of_freedom: float | None = None
    worker_prior: float = 100.0
    error_correlation: float | None = None
    max_steps: int = 300
    tolerance: float = 0.05

    def initialize(self, summary: Summary) -> StudentParameters:
        """Return equal variances and an unknown scale."""
        return StudentParameters(summary, np.ones(summary.workers), math.nan, math.inf, 0.0, math.nan)

    def e_step(self, block: GoldBlock, parameters: StudentParameters) -> EStep[StudentStatistics]:
        """Return the truths of the block, their intervals, and the sums for the M-step."""
        first = math.isnan(parameters.scale2)
        truth, weight, spread = _truths_weights_and_variances(block, parameters, first=first)
        residual = _residuals(block, truth, parameters)
        scale = _squared_scales(block, parameters)
        precision = weight / scale
        by_bias, of_truth = np.zeros(1), np.zeros(1)
        if parameters.biases is not None:
            by_bias, of_truth = bias_variances_of_reports_and_truths(block, parameters.biases, precision, spread)
        squares = weight * (residual**2 + spread[block.block.task] + by_bias)
        by_worker = weight_totals_by_code(block.block.worker, squares, parameters.summary.workers)
        densities = np.zeros(len(NU_GRID)) if first else _log_density_per_nu(squares / (weight * scale))
        moments = _residual_moments_over_tasks(block, truth) if first else np.zeros(5)
        scaled = residual**2 / parameters.variance[block.block.worker]
        half = _half_widths(block, scaled, parameters, of_truth)
        interval = np.stack([truth - half, truth + half], axis=1)
        change = None
        if block.before is not None and not first:
            change = _largest_relative_truth_change(truth, block.before, spread, parameters)
            block.before[:] = truth
            truth = block.before
        sums = np.zeros((SUMS, parameters.summary.workers))
        if not first:
            sums = weighted_residual_sums_per_worker(block, residual, precision, spread, parameters.summary.workers)
        statistics = StudentStatistics(by_worker, densities, moments, sums, square_sums(block, scaled))
        return EStep(statistics, truth, interval, change)

    def larger_model_parameters(
        self, statistics: StudentStatistics, parameters: StudentParameters
    ) -> StudentParameters | None:
        """Return the parameters with biases if tau / s is `LEAST_RATIO` or more in a fit without them."""
        if parameters.biases is not None or math.isnan(parameters.scale2):
            return None
        ratio = ratio_of_bias_to_error_deviation(statistics.bias_sums, parameters.scale2)
        if ratio < LEAST_RATIO:
            return None
        scale2 = max(parameters.scale2 / (1 + ratio**2), parameters.floor2, SMALLEST_SQUARE)
        prior = RaterBiases.unknown(parameters.summary.workers, scale2 * ratio**2)
        sums = statistics.bias_sums * (parameters.scale2 / scale2)
        biases = prior.posterior_and_tau2_from_sums(sums, parameters.summary.per_worker > 0)
        # The variances counted biases as errors: they start again, which also keeps the fit from ending here.
        return replace(parameters, variance=np.ones_like(parameters.variance), scale2=scale2, biases=biases)

    def m_step(self, statistics: StudentStatistics, parameters: StudentParameters) -> StudentParameters:
        """Return variances, scale and degrees of freedom."""
        if math.isnan(parameters.scale2):
            first = self._degrees_and_scale_of_first_residuals(statistics.moments, parameters)
            return replace(first, correlation=self._given_or_estimated_error_correlation(statistics))
        reports, prior = parameters.summary.per_worker, self.worker_prior
        variance = (statistics.squares / parameters.scale2 + prior) / (reports + prior)
        scale2 = float((statistics.squares / variance).sum() / max(int(reports.sum()), 1))
        learned = self.degrees_of_freedom is None and not math.isinf(parameters.nu)
        nu = float(NU_GRID[int(statistics.log_densities.argmax())]) if learned else parameters.nu
        scale2 = max(scale2, parameters.floor2, SMALLEST_SQUARE)
        biases = parameters.biases and parameters.biases.posterior_and_tau2_from_sums(statistics.bias_sums, reports > 0)
        rho = self._given_or_estimated_error_correlation(statistics)
        return replace(parameters, variance=variance, scale2=scale2, nu=nu, correlation=rho, biases=biases)

    def _given_or_estimated_error_correlation(self, statistics: StudentStatistics) -> float:
        """Return rho: the given one, or that of the answers."""
        return correlation_of(statistics.square_sums) if self.error_correlation is None else self.error_correlation

    def worker_table(self, statistics: StudentStatistics, parameters: StudentParameters) -> WorkerTable:
        """Return the weights 1 / v_i, which sum to 1, the standard deviations of normal errors, and fitted biases."""
        precision = 1 / parameters.variance
        normal = math.isinf(parameters.nu) and not math.isnan(parameters.scale2)
        sigma = np.sqrt(parameters.scale2 * parameters.variance) if normal else None
        bias = None if parameters.biases is None else parameters.biases.mean
        return WorkerTable(precision / (precision.sum() or 1.0), "weight", sigma=sigma, bias=bias)

    def memory(self, summary: Summary, parameters: StudentParameters) -> MemoryUse:
        """Return the size of the statistics, and of the numbers, weights and residuals of a block."""
        reports = min(int(summary.per_worker.sum()), MAX_BLOCK_REPORTS)
        return MemoryUse(
            (1 + SUMS) * summary.workers + len(NU_GRID) + SQUARE_SUMS, per_thread=BYTES_PER_REPORT * reports
        )

    def to_state(self, parameters: StudentParameters) -> Mapping[str, NDArray[np.float64]]:
        """Return the variances; s^2, nu (0 for infinity), the lower bound of s^2, and rho. Empty before the first step.

        Where biases are fitted, also their means and variances, indexed [worker, moment], and tau^2 after the others.
        """
        if math.isnan(parameters.scale2):
            return {}
        nu = 0.0 if math.isinf(parameters.nu) else parameters.nu
        shared, biases = [parameters.scale2, nu, parameters.floor2, parameters.correlation], parameters.biases
        if biases is None:
            return {"variance": parameters.variance, "shared": np.array(shared)}
        moments = np.stack([biases.mean, biases.variance], axis=1)
        return {"variance": parameters.variance, "shared": np.array([*shared, biases.tau2]), "bias": moments}

    def from_state(self, initial: StudentParameters, state: FitState) -> StudentParameters:
        """Return the parameters of the state; new workers have variance 1 and the prior of biases."""
        scale2, nu, floor2, rho, *tau2 = state.shared["shared"].tolist()
        variance, biases = state.worker_rows_or_default("variance", initial.variance), None
        if tau2:
            prior = RaterBiases.unknown(len(variance), tau2[0])
            mean, spread = state.worker_rows_or_default("bias", np.stack([prior.mean, prior.variance], axis=1)).T
            biases = replace(prior, mean=mean, variance=spread)
        return StudentParameters(initial.summary, variance, scale2, nu or math.inf, floor2, rho, biases)

    def _degrees_and_scale_of_first_residuals(
        self, moments: NDArray[np.float64], initial: StudentParameters
    ) -> StudentParameters:
        """Return the kind of errors by the kurtosis, and s^2 from the first residuals; s^2 = 1 if all are 0."""
        count, second, fourth, nonzero, logarithms = moments.tolist()
        geometric = math.exp(2 * logarithms / nonzero) if nonzero else 1.0
        heavy = count > 0 and second > 0 and fourth * count > LARGEST_NORMAL_KURTOSIS * second * second
        nu = self.degrees_of_freedom or (INITIAL_NU if heavy else math.inf)
        scale2 = second / count if math.isinf(nu) and second > 0 else geometric
        floor2 = SMALLEST_SCALE**2 * geometric if nonzero else 0.0
        return replace(initial, scale2=scale2, nu=nu, floor2=floor2)


def _half_widths(
    block: GoldBlock, squares: NDArray[np.float64], parameters: StudentParameters, of_truth: NDArray[np.float64]
) -> NDArray[np.float64]:
    """Return half the length of each task's 90 % interval, shape (tasks,).

    0 for gold; nan without reports, and if s is unknown because all answers to each task are equal.

    Args:
        block: the reports.
        squares: e_ij^2 / v_i, shape (reports,).
        parameters: of the errors.
        of_truth: variance of each truth by biases, shape (tasks,).
    """
    count, task = np.diff(block.block.pointers).astype(float), block.block.task
    variance = _task_variances(task, squares, count, parameters)
    answers = weight_totals_by_code(task, 1 / parameters.variance[block.block.worker], block.block.tasks)
    freedom = np.maximum(count - 1, 0) + TASK_PRIOR if math.isinf(parameters.nu) else parameters.nu
    rho, known = parameters.correlation, parameters.floor2 > 0
    with np.errstate(divide="ignore", invalid="ignore"):
        total = variance * (rho + (1 - rho) / answers)
        if parameters.biases is not None:
            total += of_truth + parameters.biases.level
        half = stdtrit(freedom, UPPER_LEVEL) * np.sqrt(total)
    return np.where(np.isnan(block.gold), np.where((count > 0) & known, half, np.nan), 0.0)


def _task_variances(
    task: NDArray[np.integer], squares: NDArray[np.float64], count: NDArray[np.float64], parameters: StudentParameters
) -> NDArray[np.float64]:
    """Return the squared scale of each task's errors, shape (tasks,).

    Args:
        task, squares: local task of each report, and e_ij^2 / v_i, shape (reports,).
        count: reports of each task.
        parameters: s^2 and nu.
    """
    others, scale2, nu = np.maximum(count - 1, 0), parameters.scale2, parameters.nu
    if math.isinf(nu):
        return (weight_totals_by_code(task, squares, len(count)) + TASK_PRIOR * scale2) / (others + TASK_PRIOR)
    variance = np.full(len(count), scale2)
    for _ in range(TASK_STEPS):
        weight = (nu + 1) / (nu + squares / variance[task])
        counted = weight_totals_by_code(task, weight, len(count)) * others / np.maximum(count, 1)
        variance = (weight_totals_by_code(task, weight * squares, len(count)) + TASK_PRIOR * scale2) / (
            counted + TASK_PRIOR
        )
    return variance


def _truths_weights_and_variances(
    block: GoldBlock, parameters: StudentParameters, *, first: bool
) -> tuple[NDArray[np.float64], NDArray[np.float64], NDArray[np.float64]]:
    """Return truths and their posterior variances, shape (tasks,), and the weights u, shape (reports,).

    Truths are medians in the first step; later steps update those of the step before.
    """
    task, numbers, nu = block.block.task, _unbiased_numbers(block, parameters), parameters.nu
    weight, tasks = np.ones(len(numbers)), block.block.tasks
    if first:
        return with_gold_truths_replaced(_unbiased_task_medians(block, parameters), block.gold), weight, np.zeros(tasks)
    scale = _squared_scales(block, parameters)
    truth = _unbiased_task_medians(block, parameters) if block.before is None else block.before
    spread = np.zeros(tasks)
    for _ in range(INNER_STEPS if math.isfinite(nu) else 1):
        if math.isfinite(nu):
            weight = (nu + 1) / (
                nu + _residuals(block, with_gold_truths_replaced(truth, block.gold), parameters) ** 2 / scale
            )
        total = weight_totals_by_code(task, weight / scale, tasks)
        with np.errstate(divide="ignore", invalid="ignore"):
            truth = weight_totals_by_code(task, weight / scale * numbers, tasks) / total
            spread = np.where((total > 0) & np.isnan(block.gold), 1 / total, 0.0)
    return with_gold_truths_replaced(truth, block.gold), weight, spread


def _largest_relative_truth_change(
    truth: NDArray[np.float64], before: NDArray[np.float64], spread: NDArray[np.float64], parameters: StudentParameters
) -> float:
    """Return the largest change of a truth, in units of s or, if smaller, of two standard errors sqrt(`spread`).

    With many answers to a task the standard error is far below s.
    """
    unit = np.minimum(math.sqrt(parameters.scale2), 2 * np.sqrt(spread))
    with np.errstate(invalid="ignore", divide="ignore"):
        return float(np.nan_to_num(np.abs(truth - before) / unit).max())


def _unbiased_task_medians(block: GoldBlock, parameters: StudentParameters) -> NDArray[np.float64]:
    """Return the median report of each task, nan without reports; shape (tasks,)."""
    return weighted_medians(block.block, _unbiased_numbers(block, parameters), np.ones(parameters.summary.workers))


def _unbiased_numbers(block: GoldBlock, parameters: StudentParameters) -> NDArray[np.float64]:
    """Return the value of each report, less the bias of its worker; shape (reports,)."""
    numbers, biases = block.coded.numeric_value_of_each_report, parameters.biases
    return numbers if biases is None else numbers - biases.mean[block.block.worker]


def _residuals(block: GoldBlock, truth: NDArray[np.float64], parameters: StudentParameters) -> NDArray[np.float64]:
    """Return the residual of each report, shape (reports,)."""
    difference: NDArray[np.float64] = _unbiased_numbers(block, parameters) - truth[block.block.task]
    return difference


def _squared_scales(block: GoldBlock, parameters: StudentParameters) -> NDArray[np.float64]:
    """Return s^2 v_i of each report, shape (reports,)."""
    return parameters.scale2 * parameters.variance[block.block.worker]


def _residual_moments_over_tasks(block: GoldBlock, median: NDArray[np.float64]) -> NDArray[np.float64]:
    """Return the sums of `StudentStatistics.moments`; residuals about a mean are scaled by sqrt(n / (n - 1))."""
    numbers, task = block.coded.numeric_value_of_each_report, block.block.task
    count = np.diff(block.block.pointers).astype(float)
    mean = weight_totals_by_code(task, numbers, block.block.tasks) / np.maximum(count, 1)
    squares = ((numbers - mean[task]) ** 2 * (count / np.maximum(count - 1, 1))[task])[count[task] > 1]
    about_median = np.abs(numbers - median[task])
    positive = about_median[about_median > 0]
    return np.array([len(squares), squares.sum(), (squares**2).sum(), len(positive), np.log(positive).sum()])


def _log_density_per_nu(scaled: NDArray[np.float64]) -> NDArray[np.float64]:
    """Return the log-density of residuals, given as e^2 / (s^2 v), for each nu of the grid, up to a constant."""
    return np.array(
        [
            len(scaled) * (gammaln((nu + 1) / 2) - gammaln(nu / 2) - math.log(nu) / 2)
            - (nu + 1) / 2 * np.log1p(scaled / nu).sum()
            for nu in NU_GRID
        ]
    )


def square_sums(block: GoldBlock, squares: NDArray[np.float64]) -> NDArray[np.float64]:
    """Return T, N, sum S_j and sum S_j^2 / (n_j - 1) over tasks without gold that count, shape (4,).

    Args:
        block: the reports.
        squares: e_ij^2 / v_i of each report, shape (reports,).
    """
    count = np.diff(block.block.pointers)
    used = (count >= FEWEST_ANSWERS) & np.isnan(block.gold)
    others, sums = count[used] - 1.0, weight_totals_by_code(block.block.task, squares, block.block.tasks)[used]
    return np.array([len(others), others.sum(), sums.sum(), (sums**2 / others).sum()])


def correlation_of(sums: NDArray[np.float64]) -> float:
    """Return rho from the sums of `square_sums`, by how much the variances of tasks differ.

    The sum of squares S_j of n answers about their mean has V (n - 1) degrees of freedom if errors are independent.
    With correlations r_ik of their deviations, its squared relative variance is 2 (1 + (n - 2) q) / (n - 1), where q is
    the mean of r_ik^2 (Satterthwaite 1946). Tasks of unequal difficulty raise it too. By moments over T tasks of three
    answers or more, with N = sum_j (n_j - 1):
        q = (N^2 sum_j (S_j^2 / (n_j - 1)) / (sum_j S_j)^2 - N - 2 T) / (2 (N - T)),
        rho = (T min(1.75 q, 0.7) + 5 * 0.55) / (T + 5).
    q is 0 where a worker copies nobody. Where pairs either copy, with correlation 4 / 7, or not, the mean correlation
    is 1.75 q. Errors that all workers share do not show: 0.55 is a prior opinion, with the weight of five tasks.
    """
    tasks, others, first, second = sums.tolist()
    if not (others > tasks and first > 0):
        return PRIOR_CORRELATION
    q = (others * (others * second / first**2 - 1) - 2 * tasks) / (2 * (others - tasks))
    found = min(max(CORRELATION_PER_Q * q, 0.0), LARGEST_CORRELATION)
    return (tasks * found + PRIOR_TASKS * PRIOR_CORRELATION) / (tasks + PRIOR_TASKS)
