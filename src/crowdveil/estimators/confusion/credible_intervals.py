"""Credible intervals for worker abilities from the observed information of the reports.

Louis (1982): the information of a report about ability a is (d/da log P(report))^2 under the posterior of its truth.
It is converted to a number of binomial answers, and combined with a Beta prior fitted to all workers (empirical Bayes).
With protected participation s, s is integrated out to second order: I_aa - I_as^2 / I_ss (Schur complement).
"""

from collections.abc import Iterable
from dataclasses import dataclass, replace
from functools import partial
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray
from scipy.special import betaincinv, gammaln

from crowdveil.em.estimate import WorkerTable
from crowdveil.em.kernels.reductions import Slopes, for_row_ranges, squared_derivative_sums
from crowdveil.em.model import FitResult, GoldBlock, Summary
from crowdveil.em.worker_history import EarlierAnswers
from crowdveil.estimators.confusion.model import (
    M_STEPS,
    ConfusionEstimator,
    CrowdStatistics,
    expected_worker_answers,
    full_report_sums,
)
from crowdveil.estimators.confusion.parameters import TINY, CrowdParameters

CHUNK_TASKS = 1 << 20
"""Tasks whose posteriors are copied together, to bound memory."""
CHUNK_REPORTS = 1 << 18
MAX_PRIOR_WORKERS = 2000
"""Upper bound of the workers, evenly spaced, that the Beta prior is fitted to."""
MIN_WORKERS_PER_THREAD = 1 << 12
"""Lower bound of the workers per thread."""
LOW, HIGH = 0.05, 0.95
MIN_PARTICIPATION = 1e-6
"""Lower bound of the distance of participation from 0 and 1, where the slope of its Beta density is infinite."""
MAX_CONCENTRATION = 3.0
"""Upper bound of the Beta prior's concentration; larger values under-cover in simulations."""
MEANS = np.linspace(0.02, 0.98, 49)
CONCENTRATIONS = np.geomspace(1 / 16, 1.0, 9)
"""Candidate means of the Beta prior, and concentrations relative to the largest."""
FLAT = 1e-11
"""Relative change of the evidence below which it is rounding: reports that tie say nothing about abilities."""
EXPECTED_CONCENTRATION = 8.0
"""Median of the log-normal hyperprior (deviation 1) of the concentration: abilities uniform on [1/2, 1]."""
MIN_CURVATURE = 12.0
"""Precision of the hyperprior of the mean: that of a uniform number in [0, 1]."""
MIN_CONCENTRATION = 0.5
"""Lower bound of the concentration of a moment-matched Beta distribution, which turns U-shaped below."""


@dataclass(frozen=True, eq=False)
class CompleteDataSummary:
    """Summary of abilities from complete data: expected answers, without the information lost by noise.

    Attributes:
        ability: under a proper prior, shape (workers,).
        answers_per_information: binomial answers per unit of information along the tangent, shape (workers,).
        excess: score of the reports at `ability`, in answers; positive if they support a higher one, shape (workers,).
        prior_information: information about the ability that is not in the reports, shape (workers,), or 0.
    """

    ability: NDArray[np.float64]
    answers_per_information: NDArray[np.float64]
    excess: NDArray[np.float64]
    prior_information: NDArray[np.float64] | float = 0.0


@dataclass(frozen=True, eq=False)
class AbilityTangent:
    """Derivative of a worker's parameters with respect to the ability.

    Attributes:
        right: P(right answer | truth), indexed [worker, truth].
        direction: derivative of `right`, indexed alike; wrong answers decrease in proportion.
        confusion: P(answer | truth), indexed [worker, truth, label]; None if reports are answers, since all wrong
            answers then have the same slope.
        participation: derivative of P(answered), shape (workers,); None for 0.
    """

    right: NDArray[np.float64]
    direction: NDArray[np.float64]
    confusion: NDArray[np.float64] | None
    participation: NDArray[np.float64] | None = None


def confusion_intervals(
    estimator: ConfusionEstimator,
    blocks: Iterable[GoldBlock],
    posterior: NDArray[np.float64],
    result: FitResult[CrowdParameters, CrowdStatistics],
    *,
    one_ability: bool,
    **priors: Any,
) -> WorkerTable:
    """Return the worker table with 90 % credible intervals of abilities.

    Args:
        estimator: estimator of confusion matrices from complete data, with their Dirichlet prior.
        blocks, posterior, result: as in `Model.credible_intervals`.
        one_ability: whether the rows of a matrix share one ability; else each changes in proportion to its variance.
        priors: options of `with_intervals`.
    """
    parameters = result.parameters
    complete, tangent = summarize_complete_data(estimator, result.statistics, parameters, one_ability=one_ability)
    information = observed_information(tangent, parameters, blocks, posterior)
    summary = parameters.summary
    return with_intervals(result.workers, complete, information, summary.per_worker, summary.history, **priors)


def summarize_complete_data(
    estimator: ConfusionEstimator, statistics: CrowdStatistics, parameters: CrowdParameters, *, one_ability: bool
) -> tuple[CompleteDataSummary, AbilityTangent]:
    """Return the summary of abilities and their tangent, with confusion matrices fully shrunk to the mean ability."""
    pool, reports = parameters.pool, full_report_sums(statistics, parameters)
    answers, _ = expected_worker_answers(reports, parameters)
    right, total = right_answer_counts(answers)
    mean = float(right.sum() / total.sum()) if total.sum() > TINY else 1 / answers.shape[1]
    guessing = 1 / pool.labels if one_ability else float(parameters.class_prior @ pool.label_shares)
    prior = estimator.dirichlet_prior(pool, max((mean - guessing) / (1 - guessing), 0.0), full=True)
    for _ in range(M_STEPS if pool.noise else 1):
        confusion = estimator.estimate_confusions(
            answers, prior, compiled=parameters.summary.uses_compiled_confusion_fit
        )
        if not pool.model.is_identity:
            answers, _ = expected_worker_answers(reports, replace(parameters, confusion=confusion))
            right, total = right_answer_counts(answers)
    direction = np.ones(right.shape)
    if not one_ability:
        share = (right + np.diag(prior)) / (total + prior.sum(axis=1))
        variance = share * (1 - share) / (total + prior.sum(axis=1)) * parameters.class_prior
        direction = variance / (variance @ parameters.class_prior)[:, None]
    given = None if pool.model.is_identity else confusion
    tangent = AbilityTangent(np.einsum("wzz->wz", confusion).copy(), direction, given)
    complete = binomial_abilities(right, total, tangent, parameters.class_prior)
    if not (pool.protected and pool.noise):
        return complete, tangent
    return marginalize_participation(complete, tangent, parameters, reports)


def right_answer_counts(
    answers: NDArray[np.float64],
) -> tuple[NDArray[np.float64], NDArray[np.float64]]:
    """Return the numbers of right answers and of all answers, both [worker, truth], from [worker, truth, label]."""
    total = np.zeros(answers.shape[:2])
    # Label by label, so that the memory layout of the answers does not change a bit.
    for label in range(answers.shape[2]):
        total += answers[:, :, label]
    return np.einsum("wzz->wz", answers), total


def binomial_abilities(
    correct: NDArray[np.float64], total: NDArray[np.float64], tangent: AbilityTangent, prior: NDArray[np.float64]
) -> CompleteDataSummary:
    """Return abilities and their binomial uncertainty from expected answers.

    Args:
        correct, total: expected right answers, and all expected answers, indexed [worker, truth].
        tangent: confusion matrices of complete data, and their derivative.
        prior: P(truth), shape (labels,).
    """
    right, direction = tangent.right, tangent.direction
    ability = right @ prior
    complete = (direction**2 * (correct / right**2 + (total - correct) / (1 - right) ** 2)).sum(axis=1)
    slope = (direction * (correct / right - (total - correct) / (1 - right))).sum(axis=1)
    # The expected information of complete answers; all of them count if rows change alike.
    number = ability * (1 - ability) * (direction**2 * total / (right * (1 - right))).sum(axis=1)
    per_information = np.divide(number, complete, out=np.zeros_like(number), where=complete > 0)
    return CompleteDataSummary(ability, per_information, ability * (1 - ability) * slope)


def with_intervals(
    table: WorkerTable,
    complete: CompleteDataSummary,
    information: NDArray[np.float64],
    reports: NDArray[np.int64],
    earlier: EarlierAnswers | None = None,
    *,
    max_concentration: float = MAX_CONCENTRATION,
    average_priors_by_evidence: bool = False,
    use_posterior_mean: bool = False,
) -> WorkerTable:
    """Return the worker table with the 5 % and 95 % posterior quantiles of abilities, and abilities within them.

    A worker's information counts as binomial answers under a Beta prior that is fitted to all workers.

    Args:
        table: abilities without intervals.
        complete: summary of abilities from complete data.
        information: of the reports about each worker's ability, shape (workers,).
        reports: number of each worker's reports, shape (workers,).
        earlier: answers of a history, to which the Beta prior is not fitted; None for none.
        max_concentration: upper bound of the Beta prior's concentration, in answers. With scarce information, shrinkage
            makes abilities similar, which is no evidence of a concentrated prior.
        average_priors_by_evidence: whether priors are averaged by their evidence; else the best one is used.
        use_posterior_mean: whether the posterior mean replaces the ability of the worker table.
    """
    answers = (information + complete.prior_information) * complete.answers_per_information
    right = np.maximum(answers * complete.ability + complete.excess, 0.0)
    wrong = np.maximum(answers * (1 - complete.ability) - complete.excess, 0.0)
    known = np.flatnonzero(reports)
    some = known[:: max(1, len(known) // MAX_PRIOR_WORKERS)]
    before = (0.0, 0.0) if earlier is None else (earlier.right, earlier.wrong)
    if average_priors_by_evidence:
        priors = weighted_beta_priors(right[some], wrong[some], max_concentration)
        alpha, beta = averaged_beta_posteriors(right + before[0], wrong + before[1], priors)
    else:
        prior = fit_beta_prior(right[some], wrong[some], max_concentration)
        alpha, beta = right + before[0] + prior[0], wrong + before[1] + prior[1]
    low, high = np.empty((2, len(alpha)))

    def quantiles(some: slice) -> None:
        for level, ends in ((LOW, low), (HIGH, high)):
            betaincinv(alpha[some], beta[some], level, out=ends[some])

    for_row_ranges(quantiles, len(alpha), MIN_WORKERS_PER_THREAD)
    # A mode that pseudo-counts of many labels move to an edge of the interval, or beyond, gives way to the mean.
    inside = (low < table.quality) & (table.quality < high) & (not use_posterior_mean)
    ability = np.where(inside, table.quality, alpha / (alpha + beta))
    return replace(table, quality=ability, ability_low=np.minimum(low, ability), ability_high=np.maximum(high, ability))


def fit_beta_prior(
    right: NDArray[np.float64], wrong: NDArray[np.float64], max_concentration: float
) -> tuple[float, float]:
    """Return the pseudo-counts (right, wrong) of the Beta prior with the highest evidence for answers (workers,)."""
    concentration = max_concentration * CONCENTRATIONS
    index, evidence = _best_mean_index_and_log_evidence(right, wrong, concentration)
    best = int(evidence.argmax())
    return float(MEANS[index[best]] * concentration[best]), float((1 - MEANS[index[best]]) * concentration[best])


class BetaPriors(NamedTuple):
    """Beta priors of several concentrations, shapes (priors,): posterior mean and variance of the prior's mean,
    concentration in answers, and posterior weight, sum 1."""

    mean: NDArray[np.float64]
    variance: NDArray[np.float64]
    concentration: NDArray[np.float64]
    weight: NDArray[np.float64]


def weighted_beta_priors(
    right: NDArray[np.float64], wrong: NDArray[np.float64], max_concentration: float
) -> BetaPriors:
    """Return Beta priors weighted by their evidence (Laplace approximation in the mean); see `fit_beta_prior`."""
    concentration = max_concentration * CONCENTRATIONS
    index, evidence = _best_mean_index_and_log_evidence(right, wrong, concentration)
    evidence_at = partial(_log_evidence_of_beta_priors, right, wrong)
    inner = np.clip(index, 1, len(MEANS) - 2)
    below, at, above = (evidence_at(MEANS[inner + move], concentration) for move in (-1, 0, 1))
    bend = np.maximum(2 * at - below - above, 0.0) / (MEANS[1] - MEANS[0]) ** 2
    variance = 1 / (bend + MIN_CURVATURE)
    scores = evidence + 0.5 * np.log(variance)
    weight = np.exp(scores - scores.max())
    return BetaPriors(MEANS[index], variance, concentration, weight / weight.sum())


def averaged_beta_posteriors(
    right: NDArray[np.float64], wrong: NDArray[np.float64], priors: BetaPriors
) -> tuple[NDArray[np.float64], NDArray[np.float64]]:
    """Return the Beta parameters that match mean and variance of each worker's posterior, averaged over priors."""
    first, second = np.zeros(len(right)), np.zeros(len(right))
    for mean, variance, concentration, weight in zip(*priors, strict=True):
        total = right + wrong + concentration
        posterior_mean = (right + mean * concentration) / total
        first += weight * posterior_mean
        second += weight * (
            posterior_mean**2
            + posterior_mean * (1 - posterior_mean) / (total + 1)
            + (concentration / total) ** 2 * variance
        )
    total = np.maximum(first * (1 - first) / np.maximum(second - first**2, TINY) - 1, MIN_CONCENTRATION)
    return first * total, (1 - first) * total


def _best_mean_index_and_log_evidence(
    right: NDArray[np.float64], wrong: NDArray[np.float64], concentration: NDArray[np.float64]
) -> tuple[NDArray[np.int64], NDArray[np.float64]]:
    """Return the index in `MEANS` of each concentration's best mean, and the log-evidence; shapes (priors,)."""
    evidence_at = partial(_log_evidence_of_beta_priors, right, wrong)
    # The evidence is concave in the mean, since trigamma decreases: bisection. Without evidence the mean is 1/2.
    low, high = np.zeros(len(concentration), dtype=np.int64), np.full(len(concentration), len(MEANS) - 1)
    while (low < high).any():
        middle = (low + high) // 2
        after = np.minimum(middle + 1, high)
        at = evidence_at(MEANS[middle], concentration)
        change = evidence_at(MEANS[after], concentration) - at
        rises = np.where(np.abs(change) > FLAT * (1 + np.abs(at)), change > 0, MEANS[after] <= 1 / 2)
        low, high = np.where(rises, after, low), np.where(rises, high, middle)
    constant = len(right) * gammaln(concentration) - gammaln((right + wrong)[:, None] + concentration).sum(axis=0)
    evidence = evidence_at(MEANS[low], concentration) + constant
    return low, evidence - 0.5 * np.log(concentration / EXPECTED_CONCENTRATION) ** 2


def _log_evidence_of_beta_priors(
    right: NDArray[np.float64],
    wrong: NDArray[np.float64],
    mean: NDArray[np.float64],
    concentration: NDArray[np.float64],
) -> NDArray[np.float64]:
    """Return the log-evidence of Beta priors up to terms of the concentration alone, shape (priors,)."""
    total = np.zeros(len(mean))
    for answers, pseudo in ((right, mean * concentration), (wrong, (1 - mean) * concentration)):
        total += gammaln(answers[:, None] + pseudo).sum(axis=0) - len(answers) * gammaln(pseudo)
    return total


def observed_information(
    tangent: AbilityTangent, parameters: CrowdParameters, blocks: Iterable[GoldBlock], posterior: NDArray[np.float64]
) -> NDArray[np.float64]:
    """Return the observed information of all reports, NULL included, about each worker's ability; shape (workers,)."""
    model, workers = parameters.pool.model, parameters.summary.workers
    if tangent.confusion is None:
        return plain_ability_information(tangent, parameters.summary, blocks, posterior)
    slopes = log_report_derivative(tangent.confusion, tangent.direction, parameters, tangent.participation)
    listed = np.ascontiguousarray(slopes[:, :, : model.listed_symbol_count].transpose(0, 2, 1)).reshape(
        -1, model.labels
    )
    null = slopes[:, :, model.listed_symbol_count :].transpose(0, 2, 1)
    total = np.zeros(workers)
    for block in blocks:
        if not model.implicit_null_count:
            total += block.coded.squared_scores(listed, posterior[block.block.first : block.block.stop])
            continue
        task = block.block.task + block.block.first
        for first in range(0, len(task), CHUNK_REPORTS):
            part = slice(first, first + CHUNK_REPORTS)
            worker, symbol, truths = block.block.worker[part], block.block.value[part], posterior[task[part]]
            index = worker.astype(np.int64) * model.listed_symbol_count + symbol
            squares = np.einsum("rz,rz->r", listed[index], truths) ** 2
            replaced = model.implicit_null_of[symbol]
            replacing = np.flatnonzero(replaced >= 0)
            null_squares = np.einsum("rz,rz->r", null[worker[replacing], replaced[replacing]], truths[replacing]) ** 2
            total += np.bincount(worker, squares, workers) - np.bincount(worker[replacing], null_squares, workers)
    for group in range(model.task_groups if model.implicit_null_count else 0):
        pairs = np.zeros((posterior.shape[1], posterior.shape[1]))
        for first in range(0, len(posterior), CHUNK_TASKS):
            part = slice(first, first + CHUNK_TASKS)
            truths = posterior[part][model.task_group[part] == group]
            pairs += truths.T @ truths
        total += (model.implicit_null_of_worker(group) * np.einsum("wsz,zv,wsv->ws", null, pairs, null)).sum(axis=1)
    return np.maximum(total, 0.0)


def plain_ability_information(
    tangent: AbilityTangent, summary: Summary, blocks: Iterable[GoldBlock], posterior: NDArray[np.float64]
) -> NDArray[np.float64]:
    """Return the observed information about each worker's ability if reports are answers, shape (workers,)."""
    right, direction = tangent.right, tangent.direction
    slopes = Slopes(direction / np.maximum(right, TINY), direction / np.maximum(1 - right, TINY))
    compiled, total = summary.uses_compiled_confusion_fit, np.zeros(len(right))
    for block in blocks:
        own = posterior[block.block.first : block.block.stop]
        total += squared_derivative_sums(block.block, own, slopes, compiled=compiled)
    return total


def log_report_derivative(
    confusion: NDArray[np.float64],
    direction: NDArray[np.float64],
    parameters: CrowdParameters,
    participation: NDArray[np.float64] | None = None,
) -> NDArray[np.float64]:
    """Return the derivative of log R[z, y] along the tangent, indexed [worker, truth, report].

    Wrong answers decrease in proportion as right ones increase. Arguments as in `AbilityTangent`.
    """
    right = np.einsum("wzz->wz", confusion)
    wrong = np.maximum(1 - right, TINY)
    change = -confusion / wrong[:, :, None]
    np.einsum("wzz->wz", change)[...] = 1.0
    change = change * direction[:, :, None]
    model = parameters.pool.model
    probability = replace(parameters, confusion=confusion).input_symbol_probabilities() @ model.full_table
    slope = parameters.participation[:, None, None] * (change @ model.full_table[: model.labels])
    if participation is not None:
        participation_slope = confusion @ model.full_table[: model.labels] - model.full_table[model.labels]
        slope = slope + participation[:, None, None] * participation_slope
    return np.asarray(slope / np.maximum(probability, TINY))


def marginalize_participation(
    complete: CompleteDataSummary, tangent: AbilityTangent, parameters: CrowdParameters, reports: NDArray[np.float64]
) -> tuple[CompleteDataSummary, AbilityTangent]:
    """Return summary and tangent with participation integrated out (Schur complement of the joint information).

    Args:
        complete, tangent: at fixed participation.
        parameters: of the last step; participation is protected.
        reports: posterior sums over all reports, indexed [worker, truth, report].
    """
    assert tangent.confusion is not None
    pool, pseudo_counts = parameters.pool, parameters.participation_pseudo_counts
    fixed = np.zeros_like(tangent.direction)
    share_scores = log_report_derivative(tangent.confusion, fixed, parameters, np.ones(len(fixed)))
    ability_scores = log_report_derivative(tangent.confusion, tangent.direction, parameters)
    share = np.clip(parameters.participation, MIN_PARTICIPATION, 1 - MIN_PARTICIPATION)
    answered, unanswered = pool.participation / share, (1 - pool.participation) / (1 - share)
    curvature = pseudo_counts * (answered / share + unanswered / (1 - share))
    slope = (reports * share_scores).sum(axis=(1, 2)) + pseudo_counts * (answered - unanswered)
    cross = (reports * ability_scores * share_scores).sum(axis=(1, 2))
    change = -cross / ((reports * share_scores**2).sum(axis=(1, 2)) + curvature)
    excess = complete.excess + complete.ability * (1 - complete.ability) * change * slope
    complete = replace(complete, excess=excess, prior_information=change**2 * curvature)
    return complete, replace(tangent, participation=change)
