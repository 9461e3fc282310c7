"""Algorithm 1 of Wang & Xu on dense crowds: every worker answers every task, as the paper assumes.

Reports are signs, shape (workers, tasks): 1 for the label 1, -1 for the label 0. A worker's ability p_i is the
probability of a right answer on every task. Every answer is reported by randomized response, equation (9).
"""

import math
from dataclasses import dataclass

import numpy as np
from experiments.papers.exhibit import standard_error
from numpy.typing import NDArray

from crowdveil import Categories, Reports
from crowdveil.channels.guarantee import Participation
from crowdveil.em.estimate import Estimate
from crowdveil.estimators import HierarchicalDawidSkene
from crowdveil.mechanisms import RandomizedResponse

Signs = NDArray[np.float32]
Numbers = NDArray[np.float64]
LABELS = Categories(("0", "1"))
ITERATIONS = 20
"""T of Algorithm 1, which the paper leaves open."""


@dataclass(frozen=True, slots=True, eq=False)
class DenseCrowd:
    """Truths, abilities, answers and reports of a simulated crowd.

    Attributes:
        truth: -1 or 1, shape (tasks,).
        abilities: shape (workers,), or (workers, tasks) where they differ by task.
        answers: unprotected, shape (workers, tasks).
        reports: randomized, shape (workers, tasks).
        epsilon: of one answer.
    """

    truth: Numbers
    abilities: Numbers
    answers: Signs
    reports: Signs
    epsilon: float

    @property
    def report_accuracy(self) -> Numbers:
        """P(report right), equation (19), in the shape of `abilities`."""
        gain = math.tanh(self.epsilon / 2)
        return gain * self.abilities + (1 - gain) / 2

    @property
    def constant_error(self) -> float:
        """Share of wrong truths of the best constant, chosen with knowledge of the truths."""
        return float(min((self.truth > 0).mean(), (self.truth < 0).mean()))

    def error(self, truths: Numbers) -> float:
        """Return the share of wrong truths; numbers >= 0 are the label 1 (step 8 of Algorithm 1)."""
        return float(((truths >= 0) != (self.truth > 0)).mean())


def draw_crowd(abilities: Numbers, tasks: int, epsilon: float, generator: np.random.Generator) -> DenseCrowd:
    """Return a crowd with uniform truths; `abilities` has shape (workers,) or (workers, tasks)."""
    truth = generator.choice((-1.0, 1.0), tasks)
    shape = (len(abilities), tasks)
    right = generator.random(shape, dtype=np.float32) < abilities.reshape(len(abilities), -1)
    signs = truth.astype(np.float32)
    answers = np.where(right, signs, -signs)
    kept = generator.random(shape, dtype=np.float32) < math.exp(epsilon) / (1 + math.exp(epsilon))
    return DenseCrowd(truth, abilities, answers, np.where(kept, answers, -answers), epsilon)


def majority_vote(reports: Signs) -> Numbers:
    """Return the sum of the signs of each task; at least 0 is the label 1 (equation 33)."""
    return reports.sum(axis=0, dtype=np.float64)


def channel_projection(epsilon: float) -> float:
    """Return lambda = 1 / (e^epsilon + 1): no report is right less often, or more often than 1 - lambda."""
    return 1 / (1 + math.exp(epsilon))


def start_of_condition_15(crowd: DenseCrowd, generator: np.random.Generator) -> Numbers:
    """Return y(0) in [-1, 1] with the largest mean error that (15) allows: that share of the truths is inverted."""
    tasks = len(crowd.truth)
    wrong = generator.permutation(tasks)[: int(tasks * math.sqrt(math.log(tasks) / tasks))]
    start = crowd.truth.copy()
    start[wrong] *= -1
    return start


def private_dawid_skene(
    reports: Signs, start: Numbers, projection: float, iterations: int = ITERATIONS
) -> tuple[Numbers, Numbers]:
    """Return the log-odds of the truths and P(report right) after `iterations` of Algorithm 1, steps 4 to 6.

    With signs s and z = 2 y - 1 the update (10) is the projection of (1 + s z / m) / 2, and (7) and (8) are the sum of
    s log(p / (1 - p)).

    Args:
        reports: shape (workers, tasks).
        start: 2 y(0) - 1, shape (tasks,), in [-1, 1].
        projection: lambda.
        iterations: T.
    """
    soft, log_odds, right = start, start, np.empty(0)
    for _ in range(iterations):
        agreement = (1 + (reports @ soft.astype(np.float32)).astype(np.float64) / reports.shape[1]) / 2
        right = np.clip(agreement, projection, 1 - projection)
        log_odds = (np.log(right / (1 - right)).astype(np.float32) @ reports).astype(np.float64)
        soft = np.tanh(log_odds / 2)
    return log_odds, right


def known_abilities(crowd: DenseCrowd) -> Numbers:
    """Return the log-odds of the truths if the abilities are known: no method has a smaller expected error."""
    accuracy = np.clip(crowd.report_accuracy, 1e-12, 1 - 1e-12)
    weights = np.log(accuracy / (1 - accuracy)).astype(np.float32)
    if weights.ndim == 2:
        return (weights * crowd.reports).sum(axis=0, dtype=np.float64)
    return (weights @ crowd.reports).astype(np.float64)


def unbiased_abilities(right: Numbers, epsilon: float) -> Numbers:
    """Return the abilities of step 7 from P(report right), not clipped, as printed."""
    return ((math.exp(epsilon) + 1) * right - 1) / (math.exp(epsilon) - 1)


def errors_of(crowd: DenseCrowd, projection: float, largest_fit: int, iterations: int = ITERATIONS) -> dict[str, float]:
    """Return the shares of wrong truths by column: Algorithm 1 from the vote, and what it is compared with.

    Args:
        crowd: the crowd.
        projection: lambda.
        largest_fit: cells from which the default inference is not run.
        iterations: T.
    """
    votes, workers = majority_vote(crowd.reports), len(crowd.reports)
    fitted, _ = private_dawid_skene(crowd.reports, votes / workers, projection, iterations)
    clean, _ = private_dawid_skene(crowd.answers, majority_vote(crowd.answers) / workers, 0.001)
    fits = crowd.reports.size <= largest_fit
    return {
        "error": crowd.error(fitted),
        "vote": crowd.error(votes),
        "known_abilities": crowd.error(known_abilities(crowd)),
        "default_inference": crowd.error(default_inference(crowd)[0]) if fits else math.nan,
        "unprotected": crowd.error(clean),
        "constant": crowd.constant_error,
    }


def error_from_15(
    crowd: DenseCrowd, projection: float, generator: np.random.Generator, iterations: int = ITERATIONS
) -> float:
    """Return the share of wrong truths of Algorithm 1 from the worst start that (15) allows."""
    start = start_of_condition_15(crowd, generator)
    return crowd.error(private_dawid_skene(crowd.reports, start, projection, iterations)[0])


def mean_row(runs: list[dict[str, float]]) -> dict[str, float]:
    """Return the mean of every column over runs, the standard error of the first one, and the number of runs."""
    table = np.array([list(run.values()) for run in runs])
    return dict(zip(runs[0], table.mean(axis=0).tolist(), strict=True)) | {
        "standard_error": standard_error(table[:, 0]),
        "repeats": len(runs),
    }


def private_mechanism(epsilon: float, participation: Participation = "public") -> RandomizedResponse:
    """Return the mechanism of equation (9); with protected participation it has NULL as a third symbol."""
    return RandomizedResponse(alphabet=LABELS, epsilon=epsilon, participation=participation)


def as_reports(signs: Signs) -> Reports:
    """Return signs as reports of the library."""
    workers, tasks = signs.shape
    task, worker = np.divmod(np.arange(signs.size), workers)
    return Reports(
        task.astype(np.int32),
        worker.astype(np.int32),
        (signs.T.ravel() > 0).astype(np.int16),
        np.arange(tasks),
        np.arange(workers),
        LABELS,
    )


def default_inference(crowd: DenseCrowd) -> tuple[Numbers, Estimate]:
    """Return the log-odds of the truths by the default method of `crowdveil infer`, which reads the channel."""
    channel = private_mechanism(crowd.epsilon).channel()
    estimate = HierarchicalDawidSkene().fit(as_reports(crowd.reports), channel=channel)
    return log_odds_of(estimate), estimate


def log_odds_of(estimate: Estimate) -> Numbers:
    """Return the posterior log-odds of the label 1, clipped to [-50, 50]."""
    posterior = np.clip(estimate.posterior, 1e-22, 1)
    return np.log(posterior[:, 1] / posterior[:, 0])
