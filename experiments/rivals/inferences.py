"""Rivals of inference for numbers behind noise, as arrays: the reports and workers of each task.

`crh` is the weighting that arXiv 1810.04760 names; of its text the abstract and the introduction were read. MOON,
TESLA and PDPTD were rebuilt from their abstracts, and are named "like" them: what is measured is the idea of an
abstract, not the published method.
"""

import math
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray
from scipy.special import erfcx

Numbers = NDArray[np.float64]
STEPS, SMALLEST = 50, 1e-9
TRUTHS, DEVIATIONS = 101, np.geomspace(0.1, 5.0, 14)
"""Points of truth, and standard deviations of workers, of the mixture."""


@dataclass(frozen=True, eq=False)
class Sent:
    """Numbers sent by workers, shapes (reports,); `low` and `high` are the ends of the answers' scale."""

    task: NDArray[np.int64]
    worker: NDArray[np.int64]
    value: Numbers
    tasks: int
    workers: int
    low: float
    high: float

    def clipped(self) -> "Sent":
        """Return the numbers moved into the scale."""
        value = np.clip(self.value, self.low, self.high)
        return Sent(self.task, self.worker, value, self.tasks, self.workers, self.low, self.high)

    def weighted_means(self, weight: Numbers) -> Numbers:
        """Return the mean of each task with a weight for each report."""
        total = np.bincount(self.task, weight, self.tasks)
        return np.bincount(self.task, weight * self.value, self.tasks) / np.maximum(total, SMALLEST)

    def mean_squares(self, truth: Numbers) -> Numbers:
        """Return the mean squared distance of each worker's numbers from the truths."""
        squares = np.bincount(self.worker, (self.value - truth[self.task]) ** 2, self.workers)
        return squares / np.maximum(np.bincount(self.worker, minlength=self.workers), 1)


def mean(sent: Sent) -> Numbers:
    """Return the mean of each task."""
    return sent.weighted_means(np.ones(len(sent.task)))


def crh(sent: Sent) -> Numbers:
    """Return the truths with weights -ln(share of the loss), the loss a worker's squared distance from the truths."""
    truth = mean(sent)
    for _ in range(STEPS):
        loss = np.maximum(np.bincount(sent.worker, (sent.value - truth[sent.task]) ** 2, sent.workers), SMALLEST)
        weight = np.maximum(-np.log(loss / loss.sum()), SMALLEST)
        truth = sent.weighted_means(weight[sent.worker])
    return truth


def noise_aware_weights(sent: Sent, noise_variance: Numbers) -> Numbers:
    """Return the truths with weights 1 / (worker's own variance, by moments, and the noise variance); MOON-like.

    Args:
        sent: the numbers.
        noise_variance: known variance of the noise of each worker, shape (workers,).
    """
    truth, least = mean(sent), ((sent.high - sent.low) / 100) ** 2
    for _ in range(STEPS):
        own = np.maximum(sent.mean_squares(truth) - noise_variance, least)
        truth = sent.weighted_means(1 / (own + noise_variance)[sent.worker])
    return truth


def bounded_crh(sent: Sent) -> Numbers:
    """Return the truths by CRH of numbers moved into the scale; the bounds are all that is kept of TESLA."""
    return crh(sent.clipped())


def log_mixture_density(distance: Numbers, deviation: float, scale: float) -> Numbers:
    """Return the log-density of the sum of a normal error and Laplace noise, at a distance from the truth."""
    ratio, far = deviation / scale, np.abs(distance) / deviation
    inner = np.log(erfcx((ratio - far) / math.sqrt(2)).clip(max=1e300)) - far**2 / 2
    outer = np.log(erfcx((ratio + far) / math.sqrt(2))) - far**2 / 2
    return np.logaddexp(inner, outer) - math.log(4 * scale)


def mixture_posterior_medians(sent: Sent, scale: float, log_prior: Numbers | None = None) -> Numbers:
    """Return posterior medians under the mixture of normal errors and Laplace noise; MOON-like.

    Mean-field EM over truths on a grid of the scale and over classes of workers, whose shares are learned.

    Args:
        sent: the numbers.
        scale: of the Laplace noise.
        log_prior: of the truths on the grid; None for a uniform one.
    """
    points = np.linspace(sent.low, sent.high, TRUTHS)
    distance = sent.value[:, None] - points
    tables = np.stack([log_mixture_density(distance, one, scale) for one in DEVIATIONS], axis=1)
    classes = np.full((sent.workers, len(DEVIATIONS)), 1 / len(DEVIATIONS))
    prior = np.zeros(TRUTHS) if log_prior is None else log_prior
    for _ in range(STEPS):
        scores = np.tile(prior, (sent.tasks, 1))
        np.add.at(scores, sent.task, np.einsum("rc,rct->rt", classes[sent.worker], tables))
        truths = _softmax(scores)
        logs = np.tile(np.log(np.maximum(classes.mean(axis=0), SMALLEST)), (sent.workers, 1))
        np.add.at(logs, sent.worker, np.einsum("rt,rct->rc", truths[sent.task], tables))
        classes = _softmax(logs)
    return points[(truths.cumsum(axis=1) >= 0.5).argmax(axis=1)]


def _softmax(scores: Numbers) -> Numbers:
    found = np.exp(scores - scores.max(axis=1, keepdims=True))
    return np.asarray(found / found.sum(axis=1, keepdims=True))
