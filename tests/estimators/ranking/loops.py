"""Davidson's model with workers as plain loops: the reference of the vectorized fit."""

from math import exp, log
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from crowdveil.answers.comparisons.values import Comparisons
from crowdveil.estimators.ranking.fit import Hyperparameters, Point

Floats = NDArray[np.float64]


class Terms(NamedTuple):
    """Derivatives of log q of a row by eta and theta, and their expected information."""

    eta: float
    tie: float
    eta_eta: float
    eta_tie: float
    tie_tie: float


def answer_probabilities(eta: float, theta: float) -> list[float]:
    """Return the probabilities of left, tie and right."""
    top = max(abs(eta), theta)
    parts = [exp(eta - top), exp(theta - top), exp(-eta - top)]
    return [part / sum(parts) for part in parts]


def row(eta: float, theta: float, report: int, table: Floats) -> Terms:
    """Return the terms of a row."""
    p = answer_probabilities(eta, theta)
    joint = [p[answer] * table[answer, report] for answer in range(3)]
    u = [part / sum(joint) for part in joint]
    both = mixed = tied = 0.0
    for column in table.T:
        q = sum(p[answer] * column[answer] for answer in range(3))
        if q > 0:
            e = (p[0] * column[0] - p[2] * column[2]) / q - (p[0] - p[2])
            f = p[1] * column[1] / q - p[1]
            both, mixed, tied = both + q * e * e, mixed + q * e * f, tied + q * f * f
    return Terms((u[0] - p[0]) - (u[2] - p[2]), u[1] - p[1], both, mixed, tied)


def log_likelihood(rows: Comparisons, scores: Floats, workers: Floats, table: Floats) -> float:
    """Return the sum of log q."""
    total = 0.0
    for left, right, worker, report in zip(rows.left, rows.right, rows.worker, rows.answer, strict=True):
        slope, side, theta = workers[worker]
        p = answer_probabilities((slope * (scores[left] - scores[right]) + side) / 2, theta)
        total += log(sum(p[answer] * table[answer, report] for answer in range(3)))
    return total


def penalized(rows: Comparisons, scores: Floats, workers: Floats, table: Floats, priors: Hyperparameters) -> float:
    """Return the objective."""
    penalty = sum(score**2 for score in scores) / priors.score
    for parameters in workers:
        penalty += sum((parameters - priors.means) ** 2 / priors.variances)
    return log_likelihood(rows, scores, workers, table) - penalty / 2


def full_sweep(rows: Comparisons, point: Point, table: Floats, priors: Hyperparameters) -> tuple[Floats, Floats]:
    """Return scores and workers after one full step of each."""
    scores, workers = point.scores, point.workers
    gradient, system = -scores / priors.score, np.eye(len(scores)) / priors.score
    triples = list(zip(rows.left, rows.right, rows.worker, rows.answer, strict=True))
    for left, right, worker, report in triples:
        slope, side, theta = workers[worker]
        terms = row((slope * (scores[left] - scores[right]) + side) / 2, theta, report, table)
        gradient[left] += slope * terms.eta / 2
        gradient[right] -= slope * terms.eta / 2
        k = slope**2 * terms.eta_eta / 4
        system[left, left] += k
        system[right, right] += k
        system[left, right] -= k
        system[right, left] -= k
    scores = scores + np.linalg.solve(system, gradient)
    own = -(workers - priors.means) / priors.variances
    information = np.array([np.diag(1 / priors.variances) for _ in workers])
    for left, right, worker, report in triples:
        slope, side, theta = workers[worker]
        d = scores[left] - scores[right]
        terms = row((slope * d + side) / 2, theta, report, table)
        jacobian = np.array([[d / 2, 0], [0.5, 0], [0, 1]])
        own[worker] += jacobian @ [terms.eta, terms.tie]
        middle = np.array([[terms.eta_eta, terms.eta_tie], [terms.eta_tie, terms.tie_tie]])
        information[worker] += jacobian @ middle @ jacobian.T
    return scores, workers + np.linalg.solve(information, own[..., None])[..., 0]
