"""Fit of Davidson's model with a slope, side bias and tie parameter for each worker: Fisher scoring and Laplace EM.

Penalized log-likelihood: sum of log q over rows, minus half of sum s^2 / sigma^2 and, for each worker's slope a, side b
and tie theta, half of (value - mean)^2 / variance. Scores and workers are updated in turn; each step is halved until
the objective does not fall. Variances then follow from modes and posterior variances (Laplace EM). The scale of the
scores is fixed by mean(a^2) = 1.
"""

from dataclasses import dataclass, field, replace
from functools import cached_property
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from crowdveil.answers.comparisons.values import Comparisons
from crowdveil.estimators.ranking.item_system import ItemGraph, ItemSystem, weighted_counts
from crowdveil.estimators.ranking.likelihood import NO_TIES, Floats, RowTerms, row_terms

SLOPE, SIDE, TIE = range(3)
"""Columns of a worker's parameters."""
HALVINGS = 20
SLACK = 1e-10
"""Relative fall of the objective that is rounding."""
LARGE = 100_000
"""Rows from which the looser tolerance is used."""
TOLERANCES = 1e-4, 1e-3
"""Largest change of a score, in standard deviations of the scores, at which the fit ends: small data, and large."""
MAX_SWEEPS = 500
KNOWN_SLOPE = 4.0
"""Slope of a known order in the likelihood, logistic in the difference over the standard deviation of the scores."""


class Hyperparameters(NamedTuple):
    """Prior variance of the scores, and mean and variance of slopes, sides and ties."""

    score: float = 1.0
    slope_mean: float = 0.8
    slope: float = 10.0
    side_mean: float = 0.0
    side: float = 0.05
    tie_mean: float = -0.5
    tie: float = 0.25

    @property
    def means(self) -> Floats:
        """Prior means of a worker's parameters, shape (3,)."""
        return np.array([self.slope_mean, self.side_mean, self.tie_mean])

    @property
    def variances(self) -> Floats:
        """Prior variances of a worker's parameters, shape (3,)."""
        return np.array([self.slope, self.side, self.tie])


@dataclass(frozen=True, kw_only=True)
class Known:
    """Known orders of pairs (gold): the item `better` is better than the item `worse`."""

    better: NDArray[np.int32] = field(default_factory=lambda: np.empty(0, dtype=np.int32))
    worse: NDArray[np.int32] = field(default_factory=lambda: np.empty(0, dtype=np.int32))

    def __len__(self) -> int:
        """Number of known orders."""
        return len(self.better)


NOTHING_KNOWN = Known()
FIRST_PRIORS = Hyperparameters()


@dataclass(frozen=True, eq=False, kw_only=True)
class Problem:
    """Rows, channel, known orders, and what is fitted.

    Attributes:
        comparisons: the rows.
        table: P(report | answer), shape (3, reports); None if the answers are known.
        known: known orders.
        free: whether slope, side and tie of the workers are fitted; others stay at their prior mean.
        pooled: whether all workers share one set of parameters.
        learned: whether variances and means of the priors are learned.
        start: priors at the start; for good if not learned.
    """

    comparisons: Comparisons
    table: Floats | None = None
    known: Known = NOTHING_KNOWN
    free: tuple[bool, bool, bool] = (True, True, True)
    pooled: bool = False
    learned: bool = True
    start: Hyperparameters = FIRST_PRIORS

    @property
    def workers(self) -> int:
        """Number of sets of parameters."""
        return 1 if self.pooled else len(self.comparisons.workers)

    @cached_property
    def worker(self) -> NDArray[np.int32]:
        """Set of parameters of each row."""
        return np.zeros(len(self.comparisons), dtype=np.int32) if self.pooled else self.comparisons.worker

    @cached_property
    def graph(self) -> ItemGraph:
        """Pairs of the rows, then of the known orders."""
        rows, known = self.comparisons, self.known
        left, right = np.concatenate([rows.left, known.better]), np.concatenate([rows.right, known.worse])
        return ItemGraph(left, right, len(rows.items))

    @property
    def mask(self) -> Floats:
        """1 for each parameter of workers that is fitted, else 0."""
        return np.array(self.free, dtype=np.float64)


class Point(NamedTuple):
    """Scores, parameters of workers, their terms and the objective there.

    Attributes:
        scores: shape (items,).
        workers: slope, side and tie of each, shape (workers, 3).
        terms: terms of the rows.
        known: probability of each known order.
        objective: penalized log-likelihood.
    """

    scores: Floats
    workers: Floats
    terms: RowTerms
    known: Floats
    objective: float


@dataclass(frozen=True, eq=False, kw_only=True)
class FittedRanking:
    """Mode of scores and workers, with the priors that were learned.

    Attributes:
        problem: what was fitted.
        point: the mode.
        priors: learned priors.
        sweeps: number of sweeps.
        converged: whether the scores stopped to change within the sweeps allowed.
        objectives: objective after each sweep.
    """

    problem: Problem
    point: Point
    priors: Hyperparameters
    sweeps: int
    converged: bool
    objectives: tuple[float, ...]

    @cached_property
    def system(self) -> ItemSystem:
        """Information of the scores with workers held fixed."""
        return item_step(self.problem, self.point, self.priors)[1]

    @cached_property
    def worker_information(self) -> Floats:
        """Information of each worker's parameters with scores held fixed, shape (workers, 3, 3)."""
        return worker_step(self.problem, self.point, self.priors)[1]


def point_at(problem: Problem, scores: Floats, workers: Floats, priors: Hyperparameters) -> Point:
    """Return scores and workers with terms and objective."""
    rows = problem.comparisons
    slope, side, tie = (workers[:, column][problem.worker] for column in range(3))
    eta = 0.5 * (slope * (scores[rows.left] - scores[rows.right]) + side)
    terms = row_terms(eta, tie, rows.answer, problem.table)
    if rows.weight is not None:
        terms = RowTerms(*(rows.weight * part for part in terms))
    margin = scores[problem.known.better] - scores[problem.known.worse]
    known = 1 / (1 + np.exp(-np.clip(KNOWN_SLOPE * margin / np.sqrt(priors.score), -700, 700)))
    return _with_objective(Point(scores, workers, terms, known, 0.0), problem, priors)


def _with_objective(point: Point, problem: Problem, priors: Hyperparameters) -> Point:
    deviation = (point.workers - priors.means) ** 2 / priors.variances
    penalty = float((point.scores**2).sum()) / priors.score + float((deviation * problem.mask).sum())
    fit = float(point.terms.log_likelihood.sum()) + float(np.log(point.known).sum())
    return point._replace(objective=fit - penalty / 2)


def item_gradient(problem: Problem, point: Point, priors: Hyperparameters) -> Floats:
    """Return the gradient of the objective by the scores."""
    slope, known = point.workers[:, SLOPE][problem.worker], KNOWN_SLOPE / np.sqrt(priors.score)
    first = np.concatenate([slope * point.terms.eta / 2, known * (1 - point.known)])
    return problem.graph.difference_sums(first) - point.scores / priors.score


def item_step(problem: Problem, point: Point, priors: Hyperparameters) -> tuple[Floats, ItemSystem]:
    """Return gradient and expected information of the scores."""
    slope, known = point.workers[:, SLOPE][problem.worker], KNOWN_SLOPE / np.sqrt(priors.score)
    second = np.concatenate([slope**2 * point.terms.eta_eta / 4, known**2 * point.known * (1 - point.known)])
    return item_gradient(problem, point, priors), problem.graph.system(second, 1 / priors.score)


def worker_step(problem: Problem, point: Point, priors: Hyperparameters) -> tuple[Floats, Floats]:
    """Return gradient, shape (workers, 3), and expected information, shape (workers, 3, 3), of the workers."""
    rows, terms, count = problem.comparisons, point.terms, problem.workers

    def sums(values: Floats) -> Floats:
        return weighted_counts(problem.worker, values, count)

    half = (point.scores[rows.left] - point.scores[rows.right]) / 2
    gradient = np.stack([sums(half * terms.eta), sums(terms.eta) / 2, sums(terms.tie)], axis=1)
    gradient -= (point.workers - priors.means) / priors.variances
    weighted = half * terms.eta_eta
    slope_side, slope_tie, side_tie = sums(weighted) / 2, sums(half * terms.eta_tie), sums(terms.eta_tie) / 2
    information = np.stack(
        [
            *(sums(half * weighted), slope_side, slope_tie),
            *(slope_side, sums(terms.eta_eta) / 4, side_tie),
            *(slope_tie, side_tie, sums(terms.tie_tie)),
        ],
        axis=1,
    ).reshape(-1, 3, 3)
    mask = problem.mask
    information = (information + np.diag(1 / priors.variances)) * np.outer(mask, mask) + np.diag(1 - mask)
    return gradient * mask, information


def _updated(
    problem: Problem, point: Point, priors: Hyperparameters, move_scores: Floats | float, move_workers: Floats | float
) -> Point:
    """Return the point after a step, halved until the objective does not fall; the same point if it always does."""
    for halving in range(HALVINGS + 1):
        size = 0.5**halving
        found = point_at(problem, point.scores + size * move_scores, point.workers + size * move_workers, priors)
        if found.objective >= point.objective - SLACK * (1 + abs(point.objective)):
            return found
    return point


def sweep(problem: Problem, point: Point, priors: Hyperparameters) -> Point:
    """Return the point after one step of the scores and one of the workers."""
    gradient, system = item_step(problem, point, priors)
    point = _updated(problem, point, priors, system.solve(gradient), 0.0)
    if not any(problem.free):
        return point
    gradient, information = worker_step(problem, point, priors)
    move: Floats = np.linalg.solve(information, gradient[..., None])[..., 0].astype(np.float64, copy=False)
    return _updated(problem, point, priors, 0.0, move)


def _with_learned_priors(problem: Problem, point: Point, priors: Hyperparameters) -> tuple[Point, Hyperparameters]:
    """Return the point in the scale mean(a^2) = 1, and the priors that follow from it."""
    variances = item_step(problem, point, priors)[1].variances()
    workers, scores = point.workers.copy(), point.scores
    if not problem.pooled:
        _, information = worker_step(problem, point, priors)
        spread = np.diagonal(np.linalg.inv(information), axis1=1, axis2=2) * problem.mask
        scale = float(np.mean(workers[:, SLOPE] ** 2 + spread[:, SLOPE])) if problem.free[SLOPE] else 1.0
        workers[:, SLOPE] /= np.sqrt(scale)
        spread[:, SLOPE] /= scale
        scores, variances = scores * np.sqrt(scale), variances * scale
        priors = _worker_priors(problem, workers, spread, priors)
    score = (float((scores**2 + variances).sum()) + 2) / (len(scores) + 2)
    priors = priors._replace(score=score)
    if len(problem.known):
        return point_at(problem, scores, workers, priors), priors
    return _with_objective(point._replace(scores=scores, workers=workers), problem, priors), priors


def _worker_priors(problem: Problem, workers: Floats, spread: Floats, priors: Hyperparameters) -> Hyperparameters:
    """Return learned means and variances of slope, side and tie; those that are not fitted stay."""
    count = len(workers)
    slope, side, tie = workers.T
    if problem.free[SLOPE]:
        mean = float(slope.mean())
        total = float(((slope - mean) ** 2 + spread[:, SLOPE]).sum())
        priors = priors._replace(slope_mean=mean, slope=(total + 0.2) / (count + 2))
    if problem.free[SIDE]:
        mean = float(side.sum() / priors.side) / (count / priors.side + 1)
        total = float(((side - mean) ** 2 + spread[:, SIDE]).sum())
        priors = priors._replace(side_mean=mean, side=(total + 0.1) / (count + 2))
    if problem.free[TIE]:
        mean = (float(tie.sum() / priors.tie) - 0.5) / (count / priors.tie + 1)
        total = float(((tie - mean) ** 2 + spread[:, TIE]).sum())
        priors = priors._replace(tie_mean=mean, tie=(total + 0.5) / (count + 2))
    return priors


def start_of(problem: Problem) -> tuple[Point, Hyperparameters]:
    """Return equal scores and average workers, with the priors of the start."""
    priors, rows = problem.start, problem.comparisons
    if problem.learned and problem.free[TIE] and problem.table is None and not problem.pooled:
        share = (float((rows.answer == 1).sum()) + 0.5) / (len(rows) + 1)
        priors = priors._replace(tie_mean=float(np.log(2 * share / (1 - share))))
    first = np.array([1.0, 0.0, priors.tie_mean if problem.free[TIE] else NO_TIES])
    workers = np.tile(first, (problem.workers, 1))
    return point_at(problem, np.zeros(len(rows.items)), workers, priors), priors


def fit(problem: Problem, tolerance: float | None = None, max_sweeps: int = MAX_SWEEPS) -> FittedRanking:
    """Return the mode; with learned priors that of the penalized likelihood under them.

    With known orders, the fit is repeated from its mirror image where that explains the known orders better: negating
    all scores and slopes leaves every answer as likely as before.
    """
    tolerance = TOLERANCES[len(problem.comparisons) >= LARGE] if tolerance is None else tolerance
    found = _fit_from(problem, *start_of(problem), tolerance, max_sweeps)
    if not len(problem.known) or not problem.free[SLOPE]:
        return found
    unguided = replace(problem, known=NOTHING_KNOWN)
    alone = _fit_from(unguided, *start_of(unguided), tolerance, max_sweeps)
    return _best_of(found, _mirrored(problem, alone, tolerance, max_sweeps))


def _mirrored(problem: Problem, found: FittedRanking, tolerance: float, max_sweeps: int) -> FittedRanking:
    """Return the fit that starts from the negated scores and slopes of another."""
    priors = found.priors._replace(slope_mean=-found.priors.slope_mean)
    workers = found.point.workers * np.array([-1.0, 1.0, 1.0])
    return _fit_from(problem, point_at(problem, -found.point.scores, workers, priors), priors, tolerance, max_sweeps)


def _best_of(found: FittedRanking, other: FittedRanking) -> FittedRanking:
    """Return the fit with the higher log-likelihood of answers and known orders."""

    def fit_of(one: FittedRanking) -> float:
        return float(one.point.terms.log_likelihood.sum() + np.log(one.point.known).sum())

    return other if fit_of(other) > fit_of(found) else found


def _fit_from(
    problem: Problem, point: Point, priors: Hyperparameters, tolerance: float, max_sweeps: int
) -> FittedRanking:
    """Return the fit from a start."""
    objectives: list[float] = []
    converged = False
    while not converged and len(objectives) < max_sweeps:
        before = point.scores
        point = sweep(problem, point, priors)
        objectives.append(point.objective)
        if problem.learned:
            point, priors = _with_learned_priors(problem, point, priors)
        converged = bool(np.abs(point.scores - before).max() < tolerance * np.sqrt(priors.score))
    return FittedRanking(
        problem=problem,
        point=point,
        priors=priors,
        sweeps=len(objectives),
        converged=converged,
        objectives=tuple(objectives),
    )
