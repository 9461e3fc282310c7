"""Coverage of 90 % credible intervals for abilities and 90 % credible sets of labels, by estimator and epsilon.

Abilities are uniform on [0.5, 1] (ordered labels: normal errors of deviation 0.3 to 1.5, biases 0.2), truths uniform.
Sets of truths have the most probable labels up to probability 0.9, the last one at random. Means over crowds, with
standard errors between crowds. `python -m experiments.utility.coverage_labels` writes `results/coverage_labels.csv`.
"""

import math
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np
from experiments.rows import write_rows

from crowdveil import Categories, DawidSkene, MajorityVote, OneCoin, OrdinalDawidSkene, RandomizedResponse, Reports
from crowdveil.channels.guarantee import Participation
from crowdveil.em.estimate import Estimate
from crowdveil.randomness import seeded
from crowdveil.simulate import categorical_crowd, perturb_reports

RESULTS = Path(__file__).parent / "results" / "coverage_labels.csv"
LEVEL, SEEDS = 0.9, 20
SETTINGS: tuple[tuple[float, Participation], ...] = (
    (math.inf, "public"), (3.0, "public"), (1.0, "public"), (3.0, "protected"), (1.0, "protected")
)  # fmt: skip
"""Epsilon, infinite for unprotected answers, and participation."""
SIZES = ((2, 100, 500, 0.8), (5, 100, 500, 0.8), (2, 64, 2134, 0.87), (5, 200, 1000, 0.95))
"""Labels (four or more if they are ordered), workers, tasks and share of cells without answers."""


class Crowd(NamedTuple):
    """Simulated answers, truths as codes, and abilities in worker order."""

    answers: Reports
    truth: np.ndarray
    ability: np.ndarray


@dataclass(frozen=True, slots=True)
class Row:
    """One method on one kind of crowd; coverages, widths and error rates are in [0, 1]."""

    method: str
    labels: int
    workers: int
    tasks: int
    sparsity: float
    epsilon: float
    participation: str
    abilities: float
    abilities_standard_error: float
    width: float
    truths: float
    truths_standard_error: float
    error: float
    vote: float
    constant: float


def one_coin_crowd(labels: int, workers: int, tasks: int, sparsity: float, seed: int) -> Crowd:
    """Return a crowd of the one-coin model."""
    alphabet = Categories(tuple(f"label {k}" for k in range(labels)))
    crowd = categorical_crowd(workers=workers, tasks=tasks, labels=alphabet, sparsity=sparsity, source=seeded(seed))
    return Crowd(crowd.answers, np.array([alphabet.names.index(name) for name in crowd.truth]), crowd.quality)


def ordered_crowd(labels: int, workers: int, tasks: int, sparsity: float, seed: int) -> Crowd:
    """Return a crowd with normal errors on the scale of the labels; abilities are means over truths."""
    rng, labels = np.random.default_rng(seed), max(labels, 4)
    truth = rng.integers(0, labels, tasks)
    noise, bias = rng.uniform(0.3, 1.5, workers), rng.normal(0.0, 0.2, workers)
    task, worker = np.nonzero(rng.random((tasks, workers)) < 1 - sparsity)
    seen = truth[task] + bias[worker] + noise[worker] * rng.standard_normal(len(task))
    value = np.clip(np.rint(seen), 0, labels - 1).astype(int)
    many = np.arange(labels)[:, None, None] + bias + noise * rng.standard_normal((labels, 4000, workers))
    ability = (np.clip(np.rint(many), 0, labels - 1) == np.arange(labels)[:, None, None]).mean(axis=(0, 1))
    alphabet = Categories(tuple(f"label {k}" for k in range(labels)), ordered=True)
    return Crowd(Reports(task, worker, value, np.arange(tasks), np.arange(workers), alphabet), truth, ability)


Method = OneCoin | DawidSkene | OrdinalDawidSkene
METHODS: tuple[tuple[type[Method], Callable[..., Crowd]], ...] = (
    (OneCoin, one_coin_crowd), (DawidSkene, one_coin_crowd), (OrdinalDawidSkene, ordered_crowd)
)  # fmt: skip


def figures(crowd: Crowd, method: Method, epsilon: float, participation: Participation, seed: int) -> tuple[float, ...]:
    """Return covered abilities and their width, covered truths, and the errors of fit, vote and constant."""
    channel, reports = None, crowd.answers
    if math.isfinite(epsilon):
        mechanism = RandomizedResponse(alphabet=reports.alphabet, epsilon=epsilon, participation=participation)
        channel, reports = mechanism.channel(), perturb_reports(reports, mechanism, seeded(1000 + seed))
    estimate, vote = method.fit(reports, channel=channel), MajorityVote().fit(reports, channel=channel)
    low, high = estimate.workers.ability_low, estimate.workers.ability_high
    assert low is not None
    assert high is not None
    held, width = np.mean((low <= crowd.ability) & (crowd.ability <= high)), np.mean(high - low)
    constant = 1 - np.bincount(crowd.truth).max() / len(crowd.truth)
    errors = error(estimate, crowd.truth), error(vote, crowd.truth), float(constant)
    return float(held), float(width), set_coverage(estimate, crowd.truth), *errors


def set_coverage(estimate: Estimate, truth: np.ndarray) -> float:
    """Return the probability that 90 % credible sets have the truth, with the last label included at random."""
    order = np.argsort(-estimate.posterior, axis=1, kind="stable")
    sorted_ = np.take_along_axis(estimate.posterior, order, axis=1)
    before = np.cumsum(sorted_, axis=1) - sorted_
    inside = np.clip((LEVEL - before) / np.maximum(sorted_, 1e-12), 0.0, 1.0)
    rank = (order == truth[:, None]).argmax(axis=1)
    return float(inside[np.arange(len(truth)), rank].mean())


def error(estimate: Estimate, truth: np.ndarray) -> float:
    """Return the share of wrong truths, ties split."""
    winners = estimate.winners
    return float(1 - (winners[np.arange(len(truth)), truth] / winners.sum(axis=1)).mean())


def rows() -> Iterator[Row]:
    """Yield the row of each method, size, epsilon and participation."""
    for kind, crowd_of in METHODS:
        for size in SIZES:
            crowds = [crowd_of(*size, seed) for seed in range(SEEDS)]
            labels, *sizes = crowds[0].answers.labels, *size[1:]
            for setting in SETTINGS:
                each = [figures(crowd, kind(tolerance=1e-4), *setting, seed) for seed, crowd in enumerate(crowds)]
                held, width, truths, *errors = np.mean(each, axis=0).round(3).tolist()
                spread = (np.std(each, axis=0, ddof=1) / math.sqrt(SEEDS)).round(3).tolist()
                found = held, spread[0], width, truths, spread[2], *errors
                values: list[Any] = [kind.name, labels, *sizes, *setting, *found]
                yield Row(*values)


if __name__ == "__main__":
    with RESULTS.open("w", newline="", encoding="utf-8") as stream:
        write_rows(stream, Row, rows())
