"""Majority vote and truth discovery of Li et al. for two labels (equations 1 to 3), and perturbation (Definition 5.1).

Labels are -1 and +1, a tie is 0. A tied task agrees half with every answer and counts as half an error, the expected
value of a fair coin.
"""

from collections.abc import Callable
from dataclasses import dataclass
from functools import cached_property

import numpy as np
from numpy.typing import NDArray

Numbers = NDArray[np.float64]
CLAMP = 0.01
"""Shares of agreement are kept in [CLAMP, 1 - CLAMP], so that weights are finite."""
MAX_STEPS = 200
"""Largest number of steps; Duchenne at claim 0 needs up to 50."""


@dataclass(frozen=True, eq=False)
class Crowd:
    """Binary answers and known truths.

    Attributes:
        task, worker: codes of each answer, shape (answers,).
        answer: -1 or +1, shape (answers,).
        tasks, workers: numbers of tasks and workers.
        gold: codes of the tasks with known truth, shape (gold,).
        truth: their truths, -1 or +1, shape (gold,).
    """

    task: NDArray[np.int64]
    worker: NDArray[np.int64]
    answer: Numbers
    tasks: int
    workers: int
    gold: NDArray[np.int64]
    truth: Numbers

    @cached_property
    def per_worker(self) -> NDArray[np.int64]:
        """Answers of each worker, shape (workers,)."""
        return np.bincount(self.worker, minlength=self.workers)

    @property
    def constant(self) -> float:
        """Error rate of the better of the two constant labels on the known truths."""
        return float(min(np.mean(self.truth > 0), np.mean(self.truth < 0)))

    def error_rate(self, labels: Numbers) -> float:
        """Return the share of wrong labels of all tasks, shape (tasks,), on the known truths; a tie counts half."""
        return float(np.mean(1 - self.truth * labels[self.gold]) / 2)


def perturbed(crowd: Crowd, flip: Numbers, uniforms: Numbers) -> Numbers:
    """Return the reports: an answer is flipped where its uniform number is below its worker's flip probability.

    Args:
        crowd: unprotected answers.
        flip: flip probability of each worker, shape (workers,).
        uniforms: one number in [0, 1) per answer, shape (answers,).
    """
    return np.where(uniforms < flip[crowd.worker], -crowd.answer, crowd.answer)


def weighted_vote(crowd: Crowd, reports: Numbers, weight: Numbers) -> Numbers:
    """Return the label of each task (equation 2), 0 for a tie, shape (tasks,); equal weights give equation 1."""
    votes = np.bincount(crowd.task, weight[crowd.worker] * reports, minlength=crowd.tasks)
    # Sums of equal terms of both signs differ from 0 by rounding only.
    return np.sign(np.where(np.abs(votes) < 1e-9, 0.0, votes))


def agreement(crowd: Crowd, reports: Numbers, labels: Numbers) -> Numbers:
    """Return the share of each worker's reports that agree with the labels (equation 3), 1/2 without any."""
    agreed = np.bincount(crowd.worker, labels[crowd.task] * reports, minlength=crowd.workers)
    return (1 + agreed / np.maximum(crowd.per_worker, 1)) / 2


def log_odds(share: Numbers) -> Numbers:
    """Return g(p) = ln(p / (1 - p)), the choice of section 6.2; negative below 1/2."""
    kept = np.clip(share, CLAMP, 1 - CLAMP)
    return np.log(kept / (1 - kept))


def linear(share: Numbers) -> Numbers:
    """Return g(p) = p."""
    return np.maximum(share, CLAMP)


def negative_log_error(share: Numbers) -> Numbers:
    """Return g(p) = -ln(1 - p), the weight of CRH up to a constant factor; never negative."""
    return -np.log(1 - np.clip(share, CLAMP, 1 - CLAMP))


WEIGHT_FUNCTIONS: dict[str, Callable[[Numbers], Numbers]] = {
    "ln(p / (1 - p))": log_odds,
    "p": linear,
    "-ln(1 - p)": negative_log_error,
}
"""Increasing functions g; the paper names the first one in its analysis and none in its experiments."""


def majority_vote(crowd: Crowd, reports: Numbers) -> Numbers:
    """Return the label with most reports of each task (equation 1), 0 for a tie, shape (tasks,)."""
    return weighted_vote(crowd, reports, np.ones(crowd.workers))


def truth_discovery(
    crowd: Crowd, reports: Numbers, weight: Callable[[Numbers], Numbers] = log_odds
) -> tuple[Numbers, Numbers]:
    """Return labels and weights after alternating equations 2 and 3 from equal weights until the labels are stable."""
    weights = np.ones(crowd.workers)
    labels = weighted_vote(crowd, reports, weights)
    for _ in range(MAX_STEPS):
        weights = weight(agreement(crowd, reports, labels))
        found = weighted_vote(crowd, reports, weights)
        if np.array_equal(found, labels):
            break
        labels = found
    return labels, weights
