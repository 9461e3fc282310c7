"""Draws of scores, workers and priors from their joint posterior, by Markov chain Monte Carlo.

The normal approximation around the mode takes slopes and variances as known. Where many workers guess, slopes are
uncertain and scores are told apart too readily. Each step of the chain draws all scores by Hamiltonian dynamics that
are exact for the normal approximation (Shahbaba, Lan, Johnson and Neal 2014), then each worker by Metropolis with a
Fisher scoring step as proposal (Gamerman 1997), then the priors, which are conjugate (Gibbs). The chain starts at the
mode and keeps the scale mean(a^2) = 1. Without known orders, a draw and its mirror image are equally likely: that with
a positive mean slope is kept, as the majority decides the direction.
"""

from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from crowdveil.estimators.ranking.fit import (
    SIDE,
    SLOPE,
    TIE,
    FittedRanking,
    Hyperparameters,
    Point,
    Problem,
    item_gradient,
    point_at,
    worker_step,
)
from crowdveil.estimators.ranking.item_system import weighted_counts
from crowdveil.estimators.ranking.likelihood import Floats

BURN_IN, KEPT = 150, 600
"""Steps of the chain that are left out at its start, and those that are kept."""
ROTATIONS = 3
"""Rotations of a Hamiltonian trajectory."""


class PosteriorDraws(NamedTuple):
    """Draws in the order of the chain.

    Attributes:
        scores: shape (draws, items).
        workers: slope, side and tie, shape (draws, workers, 3).
        priors: priors of each draw.
        accepted: share of the trajectories that were accepted.
    """

    scores: Floats
    workers: Floats
    priors: list[Hyperparameters]
    accepted: float


def posterior_draws(fitted: FittedRanking, seed: int) -> PosteriorDraws:
    """Return draws from the posterior around a fitted mode."""
    random, problem, priors = np.random.default_rng(seed), fitted.problem, fitted.priors
    factor: Floats = np.linalg.cholesky(fitted.system.dense).astype(np.float64, copy=False)
    spread: Floats = np.linalg.inv(factor).T.astype(np.float64, copy=False)
    trajectory = _Trajectory(problem, fitted.point.scores, factor, spread)
    point = point_at(problem, fitted.point.scores, fitted.point.workers, priors)
    kept, accepted = list[tuple[Floats, Floats, Hyperparameters]](), 0
    for step in range(BURN_IN + KEPT):
        moved = trajectory.moved(point, priors, random)
        accepted += moved is not point
        workers = _moved_workers(problem, moved, priors, random)
        scale = _scale(problem, workers)
        workers[:, SLOPE] /= scale
        scores = moved.scores * scale
        priors = _drawn_priors(problem, scores, workers, priors, random)
        point = point_at(problem, scores, workers, priors)
        if step >= BURN_IN:
            kept.append((scores, workers, priors))
    drawn = [_of_majority(*one) for one in kept] if problem.free[SLOPE] and not len(problem.known) else kept
    every, crowds, learned = zip(*drawn, strict=True)
    return PosteriorDraws(np.array(every), np.array(crowds), list(learned), accepted / (BURN_IN + KEPT))


def _scale(problem: Problem, workers: Floats) -> float:
    """Return the root mean square of the slopes, in which the scores are measured."""
    return float(np.sqrt((workers[:, SLOPE] ** 2).mean())) if problem.free[SLOPE] else 1.0


def _of_majority(scores: Floats, workers: Floats, priors: Hyperparameters) -> tuple[Floats, Floats, Hyperparameters]:
    """Return a draw, or its mirror image if its mean slope is negative."""
    if workers[:, SLOPE].mean() >= 0:
        return scores, workers, priors
    return -scores, workers * np.array([-1.0, 1.0, 1.0]), priors._replace(slope_mean=-priors.slope_mean)


class _Trajectory(NamedTuple):
    """Hamiltonian steps of the scores s = centre + L'^-1 z, where z is about standard normal.

    Attributes:
        problem: what is fitted.
        centre: mode of the scores.
        factor: Cholesky factor L of their information there.
        spread: L'^-1.
    """

    problem: Problem
    centre: Floats
    factor: Floats
    spread: Floats

    def moved(self, point: Point, priors: Hyperparameters, random: np.random.Generator) -> Point:
        """Return the end of a trajectory, or the same point if it is not accepted."""

        def force(at: Point, place: Floats) -> Floats:
            gradient = item_gradient(self.problem, at, priors)
            return self.spread.T @ gradient + place

        place = self.factor.T @ (point.scores - self.centre)
        momentum = random.standard_normal(len(place))
        before, now = point.objective - momentum @ momentum / 2, point
        angle = random.uniform(0.75, 1.5) * np.pi / 2 / ROTATIONS
        cosine, sine = np.cos(angle), np.sin(angle)
        momentum = momentum + angle / 2 * force(now, place)
        for rotation in range(ROTATIONS):
            place, momentum = cosine * place + sine * momentum, cosine * momentum - sine * place
            now = point_at(self.problem, self.centre + self.spread @ place, point.workers, priors)
            momentum = momentum + (angle if rotation < ROTATIONS - 1 else angle / 2) * force(now, place)
        after = now.objective - momentum @ momentum / 2
        return now if np.log(random.random()) < after - before else point


def _moved_workers(problem: Problem, point: Point, priors: Hyperparameters, random: np.random.Generator) -> Floats:
    """Return the workers after a Metropolis step of each; the proposal is one step of Fisher scoring and its spread."""
    free = np.array(problem.free)
    root, mean = _proposal(problem, point, priors)
    normal = random.standard_normal(point.workers.shape) * free
    proposed = np.where(free, mean + np.linalg.solve(root.swapaxes(1, 2), normal[..., None])[..., 0], point.workers)
    other = point_at(problem, point.scores, proposed, priors)
    back_root, back_mean = _proposal(problem, other, priors)
    back = np.einsum("wji,wj->wi", back_root, point.workers - back_mean) * free
    gain = _log_density(problem, other, priors) - _log_density(problem, point, priors)
    gain += _log_normal(back_root, back) - _log_normal(root, normal)
    accepted = np.log(random.random(problem.workers)) < gain
    found: Floats = np.where(accepted[:, None], proposed, point.workers)
    return found


def _proposal(problem: Problem, point: Point, priors: Hyperparameters) -> tuple[Floats, Floats]:
    """Return the factor of the precision of each worker's proposal, and its mean."""
    gradient, information = worker_step(problem, point, priors)
    root: Floats = np.linalg.cholesky(information).astype(np.float64, copy=False)
    mean: Floats = point.workers + np.linalg.solve(information, gradient[..., None])[..., 0]
    return root, mean


def _log_density(problem: Problem, point: Point, priors: Hyperparameters) -> Floats:
    """Return the log density of each worker's parameters given the scores, up to a constant."""
    fit = weighted_counts(problem.worker, point.terms.log_likelihood, problem.workers)
    deviation = (point.workers - priors.means) ** 2 / priors.variances * problem.mask
    found: Floats = fit - deviation.sum(axis=1) / 2
    return found


def _log_normal(root: Floats, standard: Floats) -> Floats:
    found: Floats = np.log(np.diagonal(root, axis1=1, axis2=2)).sum(axis=1) - (standard**2).sum(axis=1) / 2
    return found


def _drawn_priors(
    problem: Problem, scores: Floats, workers: Floats, priors: Hyperparameters, random: np.random.Generator
) -> Hyperparameters:
    """Return a draw of the priors: inverse gamma variances and normal means, whose modes the fit takes."""
    if not problem.learned:
        return priors
    count = len(workers)

    def variance(values: NDArray[np.float64], mean: float, added: float) -> float:
        return (float(((values - mean) ** 2).sum()) + added) / random.chisquare(len(values))

    slope, side, tie = workers.T
    priors = priors._replace(score=variance(scores, 0.0, 2.0))
    if problem.free[SLOPE]:
        mean = float(slope.mean()) + np.sqrt(priors.slope / count) * random.standard_normal()
        priors = priors._replace(slope_mean=mean, slope=variance(slope, mean, 0.2))
    if problem.free[SIDE]:
        precision = count / priors.side + 1
        mean = float(side.sum()) / priors.side / precision + random.standard_normal() / np.sqrt(precision)
        priors = priors._replace(side_mean=mean, side=variance(side, mean, 0.1))
    if problem.free[TIE]:
        precision = count / priors.tie + 1
        mean = (float(tie.sum()) / priors.tie - 0.5) / precision + random.standard_normal() / np.sqrt(precision)
        priors = priors._replace(tie_mean=mean, tie=variance(tie, mean, 0.5))
    return priors
