"""Truth inference for numbers: normal or Student errors, learned precisions of workers, biases and dependent errors.

y_ij = mu_j + b_i + e_ij, where e_ij is normal, or Student's t with nu degrees of freedom, with precision lam_i. The
truths mu_j have a flat prior; the precisions have a learned Gamma prior, see `worker_precisions`. The biases b_i are 0
unless they differ much, see `rater_bias`.

Each Student error is normal given its weight u_ij (Dempster, Laird and Rubin 1977; Lange, Little and Taylor 1989); it
is 1 for normal errors. With w_ij = 1 / ((1 - phi) / lam_i + phi M), where M is the median of 1 / lam_i:
    u_ij = (nu + 1) / (nu + w_ij e_ij^2),   mu_j = sum_i u_ij w_ij (y_ij - b_i) / G_j,   G_j = sum_i u_ij w_ij.
phi is 0 unless pairs of workers show dependence (`dependent_errors`): workers who agree for another reason than the
truth then look precise, and weights are pulled together. Student errors are used where residuals have heavy tails;
where a few answers are so far away that the others have normal errors without them, those answers count for nothing.
"""

import math
from collections.abc import Mapping
from dataclasses import dataclass, replace
from typing import ClassVar, final

import numpy as np
from numpy.typing import NDArray

from crowdveil.em.estimate import WorkerTable
from crowdveil.em.estimator import Estimator
from crowdveil.em.fit_state import FitState, StateField
from crowdveil.em.model import EStep, GoldBlock, MemoryUse, Summary
from crowdveil.estimators.numeric.dependent_errors import (
    INDEPENDENT_SO_FAR,
    PRODUCTS,
    Dependence,
    busiest_workers,
    dependence_of,
    products_of_pairs,
    squared_correlation,
)
from crowdveil.estimators.numeric.first_residuals import (
    FAR,
    GAPS,
    LARGEST_FAR_SHARE,
    LARGEST_NEAR_KURTOSIS,
    MOMENTS,
    Moments,
    residual_moments,
    rounding_of,
    sampled_gaps,
)
from crowdveil.estimators.numeric.rater_bias import (
    LEAST_RATIO,
    SUMS,
    RaterBiases,
    bias_variance_by_moments,
    bias_variances,
    worker_residual_sums,
)
from crowdveil.estimators.numeric.student_errors import (
    Errors,
    errors_of_block,
    first_modes,
    log_density_per_nu,
    near_answers,
    relative_changes,
    squares_and_shares,
    truths_before,
)
from crowdveil.estimators.numeric.student_intervals import half_widths
from crowdveil.estimators.numeric.student_parameters import NU_GRID, StudentParameters, StudentStatistics
from crowdveil.estimators.numeric.worker_precisions import WorkerPrecisions

INITIAL_NU = 4.0
SMALLEST_SHARE = 1e-6
"""Lower bound of s^2, as a share of the squared geometric mean of the first residuals."""
PRECISION_OF_ROUNDING = 12.0
"""Upper bound of a precision, times the squared steps in which answers are given: the variance of rounding."""
STUDENT_STEPS, STUDENT_TOLERANCE = 100, 0.1
"""Steps after which a fit of Student errors ends: later, rounding breaks the ties of tasks with two answers; and root
mean square change of truths, in units of the tolerance, at which it ends."""
FEWEST_STEPS = 5
"""Steps before which no fit has converged: the mean of two answers stays while their precisions are learned."""
SMALLEST_BIASED_SHAPE = 2.0
"""Lower bound of a where biases begin."""
BYTES_PER_REPORT, MAX_BLOCK_REPORTS = 96, 1 << 23
"""Bytes that an E-step allocates per report, and largest number of reports of a block."""
BYTES_PER_PRODUCT, BYTES_PER_GAP = 100, 48
"""Bytes allocated for each product of a pair of errors, and for each compared gap."""


@final
@dataclass(frozen=True, slots=True, kw_only=True)
class StudentT(Estimator[StudentParameters, StudentStatistics]):
    """Means of numbers with learned weights of workers, robust where the answers have outliers.

    Works on free numbers, on a `Scale` (its grid points) and on ordered labels (their positions 0 .. K - 1). Errors are
    normal unless the residuals have heavy tails. A task without reports has truth nan. Intervals are nan if all answers
    to each task are equal.

    Attributes:
        degrees_of_freedom: nu; infinity for normal errors; None to decide by the residuals, and learn nu.
        error_correlation: rho, the correlation of two workers' errors on one task, for the intervals only; None to
            estimate it.
        max_steps: largest number of steps; Student errors take at most 100.
        tolerance: stop when no truth changes by more than this share of an error's deviation, nor of two of its
            standard errors; Student errors: root mean square of a tenth of it.

    Raises:
        SettingsError: a setting out of range.

    >>> answers = {"task": [1, 1, 1, 2, 2, 2], "worker": [*"abcabc"], "value": [1, 2, 9, 5, 5, 6]}
    >>> StudentT().fit(answers).truth.round(1).tolist()
    [3.4, 5.2]
    """

    name: ClassVar[str] = "student-t"
    ranges: ClassVar[Mapping[str, str]] = {"degrees_of_freedom": "[1, inf]", "error_correlation": "[0, 1]"}
    state_fields: ClassVar[Mapping[str, StateField]] = {
        "precision": StateField("real"),
        "shared": StateField("real", by_worker=False),
        "bias": StateField("real"),
    }
    degrees_of_freedom: float | None = None
    error_correlation: float | None = None
    max_steps: int = 300
    tolerance: float = 0.005

    def initialize(self, summary: Summary) -> StudentParameters:
        """Return equal precisions and an unknown scale."""
        return StudentParameters(summary, busiest_workers(summary), WorkerPrecisions.equal(summary.workers, 1.0))

    def e_step(self, block: GoldBlock, parameters: StudentParameters) -> EStep[StudentStatistics]:
        """Return the truths of the block, their intervals, and the sums for the M-step."""
        if parameters.phase in ("scale", "gate"):
            return _first_step(block, parameters)
        errors, by_bias, of_truth = errors_of_block(block, parameters), np.zeros(1), np.zeros(1)
        if parameters.biases is not None:
            by_bias, of_truth = bias_variances(block, parameters.biases, errors.weighted, errors.spread)
        statistics = _sums_of_errors(block, errors, parameters, by_bias)
        half = np.full(block.block.tasks, np.nan)
        if parameters.intervals:
            half = half_widths(block, errors, parameters, self._correlation(parameters), of_truth)
        interval = np.stack([errors.truth - half, errors.truth + half], axis=1)
        if block.before is None:
            return EStep(statistics, errors.truth, interval)
        changes = relative_changes(errors, block.before, parameters)
        block.before[:] = errors.truth
        if not parameters.normal:
            statistics = statistics._replace(changes=np.array([len(changes), float((changes**2).sum())]))
        change = float(changes.max(initial=0.0))
        if parameters.phase == "pairs" or parameters.settled:
            change = min(change, self.tolerance)
        elif parameters.steps < FEWEST_STEPS:
            change = max(change, 2 * self.tolerance)
        return EStep(statistics, block.before, interval, change)

    def larger_model_parameters(
        self, statistics: StudentStatistics, parameters: StudentParameters
    ) -> StudentParameters | None:
        """Return the parameters with biases, or else with the dependence of errors, once a fit without has converged.

        Biases are fitted if their deviation is `LEAST_RATIO` of that of an error or more.
        """
        if parameters.dependence is not None or parameters.phase in ("scale", "gate"):
            return None
        if parameters.phase == "fit":
            return replace(parameters, phase="pairs")
        workers, precisions = parameters.summary.workers, parameters.precisions
        variance = bias_variance_by_moments(statistics.bias_sums, precisions.pooled2)
        if parameters.biases is None and variance >= LEAST_RATIO**2 * precisions.pooled2:
            # The precisions counted biases as errors: they start again.
            shape = max(precisions.shape, SMALLEST_BIASED_SHAPE)
            equal = WorkerPrecisions.equal(workers, precisions.pooled2, shape)
            biases = RaterBiases.unknown(workers, variance)
            return replace(parameters, phase="fit", precisions=equal, biases=biases, steps=0, settled=False)
        normal = parameters.normal
        found = squared_correlation(statistics.products, parameters.ranks, precisions.precision, bounded=normal)
        return replace(parameters, phase="fit", dependence=dependence_of(*found, normal=normal))

    def last_e_step_parameters(self, parameters: StudentParameters) -> StudentParameters:
        """Return the parameters with which the intervals are made."""
        return replace(parameters, intervals=True)

    def m_step(self, statistics: StudentStatistics, parameters: StudentParameters) -> StudentParameters:
        """Return precisions, degrees of freedom and biases; of the first residuals, the kind of errors."""
        if parameters.phase == "scale":
            return self._after_first_residuals(statistics, parameters)
        if parameters.phase == "gate":
            return _after_gate(statistics, parameters)
        reports = parameters.summary.per_worker - statistics.dropped
        precisions = parameters.precisions.learned(
            reports,
            statistics.squares,
            reports - statistics.shares,
            least2=SMALLEST_SHARE * parameters.geometric2,
            largest=parameters.largest,
        )
        learned = self.degrees_of_freedom is None and not parameters.normal
        nu = float(NU_GRID[int(statistics.log_densities.argmax())]) if learned else parameters.nu
        biases = parameters.biases and parameters.biases.posterior_from_sums(
            statistics.bias_sums, parameters.summary.per_worker > 0
        )
        steps, (tasks, squares) = parameters.steps + 1, statistics.changes.tolist()
        small = 0 < tasks * (STUDENT_TOLERANCE * self.tolerance) ** 2 >= squares
        settled = not parameters.normal and (small or steps >= STUDENT_STEPS)
        return replace(parameters, precisions=precisions, nu=nu, biases=biases, steps=steps, settled=settled)

    def worker_table(self, statistics: StudentStatistics, parameters: StudentParameters) -> WorkerTable:
        """Return the weights lam_i, which sum to 1, the standard deviations of normal errors, and fitted biases."""
        precision = parameters.precisions.precision
        sigma = 1 / np.sqrt(precision) if parameters.normal and parameters.geometric2 > 0 else None
        bias = None if parameters.biases is None else parameters.biases.mean
        return WorkerTable(precision / (precision.sum() or 1.0), "weight", sigma=sigma, bias=bias)

    def memory(self, summary: Summary, parameters: StudentParameters) -> MemoryUse:
        """Return the size of the statistics, and of the numbers, weights, residuals and pairs of a block."""
        reports = min(int(summary.per_worker.sum()), MAX_BLOCK_REPORTS)
        counts = np.asarray(summary.per_task, dtype=float)
        products = min(float((counts * (counts - 1) / 2).sum()), 3 * PRODUCTS)
        return MemoryUse(
            (3 + SUMS) * summary.workers + len(NU_GRID) + 2 * MOMENTS,
            shared=int(BYTES_PER_PRODUCT * products) + BYTES_PER_GAP * min(reports, 2 * GAPS),
            per_thread=BYTES_PER_REPORT * reports,
        )

    def to_state(self, parameters: StudentParameters) -> Mapping[str, NDArray[np.float64]]:
        """Return the precisions, and what all workers share: s^2, a, H, the squared geometric mean, nu, the squared
        distance of answers far away, the upper bound of a precision (0 for infinity), phi and rho (-1 where unknown).

        Empty before the first fit. Where biases are fitted, also their means and variances, [worker, moment], and
        tau^2 after the others.
        """
        if parameters.phase in ("scale", "gate"):
            return {}
        known, biases, dependence = parameters.precisions, parameters.biases, parameters.dependence or (0.0, -1.0)
        finite = [0.0 if math.isinf(x) else x for x in (parameters.nu, parameters.far2, parameters.largest)]
        shared = [known.scale2, known.shape, known.pooled2, parameters.geometric2, *finite, *dependence]
        if biases is None:
            return {"precision": known.precision, "shared": np.array(shared)}
        moments = np.stack([biases.mean, biases.variance], axis=1)
        return {"precision": known.precision, "shared": np.array([*shared, biases.tau2]), "bias": moments}

    def from_state(self, initial: StudentParameters, state: FitState) -> StudentParameters:
        """Return the parameters of the state; new workers have precision 1 / s^2 and the prior of biases."""
        scale2, shape, pooled2, geometric2, nu, far2, largest, phi, rho, *tau2 = state.shared["shared"].tolist()
        prior = np.full(initial.summary.workers, 1 / scale2)
        precision, biases = state.worker_rows_or_default("precision", prior), None
        answered = initial.summary.per_worker > 0
        usual2 = float(np.median(1 / precision[answered])) if answered.any() else scale2
        if tau2:
            unknown = RaterBiases.unknown(len(precision), tau2[0])
            moments = np.stack([unknown.mean, unknown.variance], axis=1)
            mean, spread = state.worker_rows_or_default("bias", moments).T
            biases = replace(unknown, mean=mean, variance=spread)
        return replace(
            initial,
            phase="fit",
            steps=FEWEST_STEPS,
            precisions=WorkerPrecisions(precision, scale2, shape, pooled2, usual2),
            geometric2=geometric2,
            nu=nu or math.inf,
            far2=far2 or math.inf,
            largest=largest or math.inf,
            dependence=None if rho < 0 else Dependence(phi, rho),
            biases=biases,
        )

    def _correlation(self, parameters: StudentParameters) -> float:
        """Return rho: the given one, or that of the answers."""
        found = (parameters.dependence or INDEPENDENT_SO_FAR).correlation
        return found if self.error_correlation is None else self.error_correlation

    def _after_first_residuals(self, statistics: StudentStatistics, initial: StudentParameters) -> StudentParameters:
        """Return the start of a fit; unchanged parameters where no answer differs from its task's median."""
        found = Moments(*statistics.moments[0].tolist())
        if not found.nonzero:
            return initial
        rounding = rounding_of(statistics.gaps)
        largest = PRECISION_OF_ROUNDING / rounding**2 if rounding else math.inf
        known = replace(initial, geometric2=found.geometric2, largest=largest)
        if self.degrees_of_freedom is None and found.heavy():
            return replace(known, phase="gate", far2=FAR**2 * found.geometric2)
        nu = self.degrees_of_freedom or math.inf
        return _with_start(known, found.scale2 if math.isinf(nu) else found.geometric2, nu)


def _first_step(block: GoldBlock, parameters: StudentParameters) -> EStep[StudentStatistics]:
    """Return the medians, and the moments of residuals about them: of all, or also without answers far away."""
    numbers = block.coded.report_values
    truth = truths_before(block, numbers, parameters)
    interval = np.full((block.block.tasks, 2), np.nan)
    everyone, none = np.ones(len(numbers), dtype=bool), _no_statistics()
    if parameters.phase == "scale":
        moments = np.stack([residual_moments(block.block, numbers, truth, everyone), np.zeros(MOMENTS)])
        gaps = sampled_gaps(block.block, numbers, int(parameters.summary.per_worker.sum()))
        return EStep(none._replace(moments=moments, gaps=gaps), truth, interval)
    truth = first_modes(block, parameters)
    near = near_answers(block.block.task, numbers, truth, parameters)
    moments = np.stack([residual_moments(block.block, numbers, truth, some) for some in (everyone, near)])
    dropped = np.array([float((~near).sum())])
    return EStep(none._replace(moments=moments, dropped=dropped), truth, interval, math.inf)


def _no_statistics() -> StudentStatistics:
    """Return sums over no reports."""
    zeros, nothing = np.zeros(1), np.zeros((2, MOMENTS))
    return StudentStatistics(
        nothing, (), zeros, zeros, zeros, np.zeros(len(NU_GRID)), np.zeros(2), np.zeros((SUMS, 1)), ()
    )


def _sums_of_errors(
    block: GoldBlock, errors: Errors, parameters: StudentParameters, by_bias: NDArray[np.float64]
) -> StudentStatistics:
    """Return the sums that a step of the fit needs."""
    squares, shares, dropped = squares_and_shares(block, errors, parameters, by_bias)
    found = _no_statistics()._replace(squares=squares, shares=shares, dropped=dropped)
    if not parameters.normal:
        found = found._replace(log_densities=log_density_per_nu(errors, parameters.nu))
    if parameters.biases is None and parameters.phase != "pairs":
        return found
    counted = errors.weighted if errors.counted is None else errors.weighted * errors.counted
    workers, reports = parameters.summary.workers, int(parameters.summary.per_worker.sum())
    sums = worker_residual_sums(block, errors.residual, counted, errors.spread, workers)
    found = found._replace(bias_sums=sums)
    if parameters.phase != "pairs":
        return found
    used = (counted > 0) & np.isnan(block.gold)[errors.task]
    scaled, share = errors.residual * np.sqrt(counted), len(counted) / max(reports, 1)
    products = products_of_pairs(block.block, used, scaled, errors.precision, errors.spread, parameters.ranks, share)
    return found._replace(products=products)


def _after_gate(statistics: StudentStatistics, parameters: StudentParameters) -> StudentParameters:
    """Return the start of a fit: normal errors where few answers are far away and the others have no heavy tails."""
    near = Moments(*statistics.moments[1].tolist())
    few = float(statistics.dropped.sum()) <= LARGEST_FAR_SHARE * int(parameters.summary.per_worker.sum())
    if few and near.nonzero and not near.heavy(LARGEST_NEAR_KURTOSIS):
        return _with_start(replace(parameters, geometric2=near.geometric2), near.scale2, math.inf)
    return _with_start(replace(parameters, far2=math.inf), parameters.geometric2, INITIAL_NU)


def _with_start(parameters: StudentParameters, scale2: float, nu: float) -> StudentParameters:
    """Return the parameters of the first step of a fit: equal precisions."""
    equal = WorkerPrecisions.equal(parameters.summary.workers, scale2)
    return replace(parameters, phase="fit", precisions=equal, nu=nu)
