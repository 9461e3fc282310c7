"""Normal approximation of the scores around the mode: covariance, draws, and what follows from them.

Covariance: the inverse of Q - sum over workers of B' M^-1 B, with the information Q of the scores, M of a worker, and B
between them. Above `EXACT` items draws of N(0, Q^-1) stand for it: the solution of Q x = sum of sqrt(k) z (e_left -
e_right) + z / sigma has this distribution (perturb and optimize).
"""

from collections.abc import Iterator
from dataclasses import dataclass
from functools import cached_property
from typing import Any

import numpy as np
from numpy.typing import NDArray

from crowdveil.estimators.ranking.draws import PosteriorDraws, posterior_draws
from crowdveil.estimators.ranking.fit import SLOPE, FittedRanking, Hyperparameters
from crowdveil.estimators.ranking.item_system import weighted_counts
from crowdveil.estimators.ranking.likelihood import Floats, report_probabilities

EXACT = 1500
"""Items up to which the covariance is computed."""
DRAWS, DRAWS_OF_MANY = 1000, 100
"""Draws of the scores, and above `EXACT` items."""
DRAW_TOLERANCE = 1e-3
"""Relative residual of a draw above `EXACT` items: a thousandth of its deviation."""
PREDICTIONS = 200
"""Draws over which the probabilities of answers are averaged."""
DENSE_ENTRIES = 2_000_000
"""Workers times items up to which the information between them is a dense matrix."""
SEED = 20
"""Seed of all draws, so that results repeat."""


@dataclass(frozen=True, eq=False)
class ScorePosterior:
    """Scores with their uncertainty.

    Attributes:
        scores: mode, or mean of draws, shape (items,).
        covariance: shape (items, items); None where draws stand for it.
        draws: draws of all scores, shape (draws, items).
        crowd: draws of the workers and priors that go with them; None where the workers are drawn around their mode.
    """

    scores: Floats
    covariance: Floats | None
    draws: Floats
    crowd: PosteriorDraws | None = None

    @cached_property
    def variances(self) -> Floats:
        """Variance of each score, shape (items,)."""
        return np.diagonal(self.covariance) if self.covariance is not None else self.draws.var(axis=0)

    def difference_variance(self, first: NDArray[np.integer], second: NDArray[np.integer]) -> Floats:
        """Return the variance of the difference of two scores, for arrays of items."""
        if self.covariance is None:
            found: Floats = (self.draws[:, first] - self.draws[:, second]).var(axis=0)
            return found
        return self.variances[first] + self.variances[second] - 2 * self.covariance[first, second]

    def probability(self, first: NDArray[np.integer], second: NDArray[np.integer]) -> Floats:
        """Return P(the first item has the higher score), for arrays of items."""
        from scipy.special import ndtr

        deviation = np.sqrt(np.maximum(self.difference_variance(first, second), np.finfo(float).tiny))
        found: Floats = ndtr((self.scores[first] - self.scores[second]) / deviation)
        return found


def posterior_of(fitted: FittedRanking) -> ScorePosterior:
    """Return the posterior of the scores, workers integrated out up to `EXACT` items."""
    scores, random = fitted.point.scores, np.random.default_rng(SEED)
    if len(scores) <= EXACT:
        return normal_posterior(scores, covariance_of(fitted))
    right = random.standard_normal((len(scores), DRAWS_OF_MANY)) / np.sqrt(fitted.priors.score)
    right += fitted.system.pair_noise(random, DRAWS_OF_MANY)
    return ScorePosterior(scores, None, scores + fitted.system.solve(right, DRAW_TOLERANCE).T)


def drawn_posterior(fitted: FittedRanking) -> ScorePosterior:
    """Return the posterior of the scores as the draws of a chain: their mean and covariance."""
    found = posterior_draws(fitted, SEED)
    return ScorePosterior(found.scores.mean(axis=0), np.cov(found.scores.T), found.scores, found)


def normal_posterior(scores: Floats, covariance: Floats) -> ScorePosterior:
    """Return a posterior with a known covariance, and draws from it."""
    normal = np.random.default_rng(SEED).standard_normal((DRAWS, len(scores)))
    return ScorePosterior(scores, covariance, scores + normal @ np.linalg.cholesky(covariance).T)


def covariance_of(fitted: FittedRanking) -> Floats:
    """Return the covariance of the scores with the workers integrated out, shape (items, items)."""
    information = fitted.system.dense.copy()
    if any(fitted.problem.free):
        information -= _information_lost_to_workers(fitted)
    found = np.linalg.inv(information)
    return (found + found.T) / 2


def evidence_of(fitted: FittedRanking) -> float:
    """Return the Laplace approximation of the log marginal likelihood under the learned priors."""
    priors, free = fitted.priors, np.array(fitted.problem.free)
    workers = np.linalg.slogdet(fitted.worker_information)[1].sum()
    workers += fitted.problem.workers * np.log(priors.variances[free]).sum()
    scores = np.linalg.slogdet(covariance_of(fitted))[1] - len(fitted.point.scores) * np.log(priors.score)
    return float(fitted.point.objective + (scores - workers) / 2)


def _information_lost_to_workers(fitted: FittedRanking) -> Floats:
    """Return the sum over workers of B' M^-1 B, shape (items, items)."""
    problem, terms, rows = fitted.problem, fitted.point.terms, fitted.problem.comparisons
    half_slope = fitted.point.workers[:, SLOPE][problem.worker] / 2
    half = (fitted.point.scores[rows.left] - fitted.point.scores[rows.right]) / 2
    parts = np.stack([half * terms.eta_eta, terms.eta_eta / 2, terms.eta_tie]) * half_slope * problem.mask[:, None]
    # With M^-1 = L L', the sum is (L'B)'(L'B): each row of L'B is a mixture of the three rows of B.
    root = np.linalg.cholesky(np.linalg.inv(fitted.worker_information))
    mixed = np.einsum("rik,ir->kr", root[problem.worker], parts)
    count = len(rows.items)
    sides = np.concatenate([rows.left, rows.right])
    place = (np.tile(problem.worker, 2).astype(np.int64) * count + sides).ravel()
    if problem.workers * count <= DENSE_ENTRIES:
        between = np.stack(
            [weighted_counts(place, np.concatenate([part, -part]), problem.workers * count) for part in mixed]
        ).reshape(-1, count)
        dense: Floats = between.T @ between
        return dense
    from scipy.sparse import csr_array

    used, code = np.unique(place, return_inverse=True)
    found = np.zeros((count, count))
    for part in mixed:
        sums = weighted_counts(code, np.concatenate([part, -part]), len(used))
        sparse: Any = csr_array((sums, (used // count, used % count)), shape=(problem.workers, count))
        found += (sparse.T @ sparse).toarray()
    return found


def predict_answers(
    fitted: FittedRanking,
    posterior: ScorePosterior,
    left: NDArray[np.integer],
    right: NDArray[np.integer],
    worker: NDArray[np.integer],
) -> Floats:
    """Return the probabilities of left, tie and right, averaged over draws, shape (rows, 3).

    Args:
        fitted: the fit.
        posterior: posterior of its scores.
        left, right: items of each row.
        worker: worker of each row, -1 for one who was never seen and is drawn from the priors.
    """
    problem = fitted.problem
    known, seen = (np.zeros_like(worker) if problem.pooled else worker), worker >= 0
    random = np.random.default_rng(SEED + 1)
    total, count = np.zeros((len(left), 3)), 0
    for scores, workers, priors in _joint_draws(fitted, posterior):
        parameters, count = workers[known], count + 1
        if not problem.pooled and not seen.all():
            new = fitted.point.workers[0] * (1 - problem.mask) + priors.means * problem.mask
            spread = np.sqrt(priors.variances) * problem.mask
            parameters[~seen] = new + spread * random.standard_normal((int((~seen).sum()), 3))
        eta = 0.5 * (parameters[:, 0] * (scores[left] - scores[right]) + parameters[:, 1])
        total += report_probabilities(eta, parameters[:, 2], None)
    return total / count


def _joint_draws(fitted: FittedRanking, posterior: ScorePosterior) -> Iterator[tuple[Floats, Floats, Hyperparameters]]:
    """Yield draws of scores, workers and priors: those of a chain, or around the mode under the learned priors."""
    if posterior.crowd is not None:
        chain = posterior.crowd
        for place in range(0, len(chain.scores), max(1, len(chain.scores) // PREDICTIONS)):
            yield chain.scores[place], chain.workers[place], chain.priors[place]
        return
    random, problem = np.random.default_rng(SEED), fitted.problem
    root = np.linalg.cholesky(np.linalg.inv(fitted.worker_information)) * problem.mask[:, None]
    for scores in posterior.draws[:PREDICTIONS]:
        normal = random.standard_normal((problem.workers, 3))
        yield scores, fitted.point.workers + np.einsum("wij,wj->wi", root, normal), fitted.priors
