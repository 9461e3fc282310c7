"""Coverage of 90 % credible intervals for abilities and 90 % credible sets of labels, by estimator and epsilon.

Abilities uniform on [0.5, 1] (ordered labels: normal errors of deviation 0.3 to 1.5, biases 0.2), truths uniform. Sets
of truths have the most probable labels up to probability 0.9, the last one at random. Errors of the best constant, of
the majority vote and of the unprotected fit are printed too. Each coverage has its standard error between crowds.

Run `python experiments/utility/coverage_labels.py [--seeds N] [--first N] [--sizes N] [--uneven] [--methods M ...]`.
"""

import argparse
import math
from collections.abc import Callable
from typing import Any, NamedTuple

import numpy as np

from crowdveil import Categories, DawidSkene, MajorityVote, OneCoin, OrdinalDawidSkene, RandomizedResponse, Reports
from crowdveil.em.estimate import Estimate
from crowdveil.randomness import seeded
from crowdveil.simulate import categorical_crowd, perturb

LEVEL = 0.9
NAMES = (OneCoin.name, DawidSkene.name, OrdinalDawidSkene.name)
SETTINGS: tuple[tuple[float | None, Any], ...] = (
    (None, "public"),
    (3.0, "public"),
    (1.0, "public"),
    (3.0, "protected"),
    (1.0, "protected"),
)


class Crowd(NamedTuple):
    """Simulated answers, truths as codes, and abilities in worker order."""

    answers: Reports
    truth: np.ndarray
    ability: np.ndarray


class Result(NamedTuple):
    """Coverage and mean width of intervals, coverage of sets, errors; all in [0, 1]."""

    abilities: float
    width: float
    truths: float
    error: float
    vote: float
    constant: float


def one_coin_crowd(labels: int, workers: int, tasks: int, sparsity: float, seed: int) -> Crowd:
    """Return a crowd of the one-coin model."""
    alphabet = Categories(tuple(f"label {k}" for k in range(labels)))
    crowd = categorical_crowd(workers=workers, tasks=tasks, labels=alphabet, sparsity=sparsity, source=seeded(seed))
    code = {name: k for k, name in enumerate(alphabet.names)}
    return Crowd(crowd.answers, np.array([code[name] for name in crowd.truth]), crowd.quality)


def uneven_crowd(labels: int, workers: int, tasks: int, sparsity: float, seed: int) -> Crowd:
    """Return a crowd of the one-coin model with log-normal numbers of answers per worker, deviation 0.7."""
    usual = 0.8 * tasks * (1 - sparsity)

    def numbers(rng: np.random.Generator, count: int) -> np.ndarray:
        return np.clip(np.exp(rng.normal(np.log(usual), 0.7, count)), 5, 0.8 * tasks)

    alphabet = Categories(tuple(f"label {k}" for k in range(labels)))
    crowd = categorical_crowd(
        workers=workers, tasks=tasks, labels=alphabet, answers_per_worker=numbers, source=seeded(seed)
    )
    code = {name: k for k, name in enumerate(alphabet.names)}
    return Crowd(crowd.answers, np.array([code[name] for name in crowd.truth]), crowd.quality)


def ordered_crowd(labels: int, workers: int, tasks: int, sparsity: float, seed: int) -> Crowd:
    """Return a crowd with normal errors on the scale of the labels; abilities are means over truths."""
    rng = np.random.default_rng(seed)
    truth = rng.integers(0, labels, tasks)
    noise, bias = rng.uniform(0.3, 1.5, workers), rng.normal(0.0, 0.2, workers)
    task, worker = np.nonzero(rng.random((tasks, workers)) < 1 - sparsity)
    seen = truth[task] + bias[worker] + noise[worker] * rng.standard_normal(len(task))
    value = np.clip(np.rint(seen), 0, labels - 1).astype(int)
    many = np.arange(labels)[:, None, None] + bias + noise * rng.standard_normal((labels, 4000, workers))
    ability = (np.clip(np.rint(many), 0, labels - 1) == np.arange(labels)[:, None, None]).mean(axis=(0, 1))
    alphabet = Categories(tuple(f"label {k}" for k in range(labels)), ordered=True)
    return Crowd(Reports(task, worker, value, np.arange(tasks), np.arange(workers), alphabet), truth, ability)


def measure(crowd: Crowd, method: Any, epsilon: float | None, participation: Any, seed: int) -> Result:
    """Return the result of one seed."""
    channel, reports = None, crowd.answers
    alphabet = reports.alphabet
    if epsilon is not None:
        mechanism = RandomizedResponse(alphabet=alphabet, epsilon=epsilon, participation=participation)
        channel, reports = mechanism.channel(), perturb(reports, mechanism, seeded(1000 + seed))
    estimate = method.fit(reports, channel=channel)
    vote = MajorityVote().fit(reports, channel=channel)
    low, high = estimate.workers.ability_low, estimate.workers.ability_high
    inside = np.nan if low is None else float(np.mean((low <= crowd.ability) & (crowd.ability <= high)))
    return Result(
        abilities=inside,
        width=np.nan if low is None else float(np.mean(high - low)),
        truths=set_coverage(estimate, crowd.truth),
        error=error(estimate, crowd.truth),
        vote=error(vote, crowd.truth),
        constant=1 - np.bincount(crowd.truth).max() / len(crowd.truth),
    )


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


def row(method: Any, size: tuple[int, int, int, float], crowds: list[Crowd], first: int) -> None:
    """Print the means over crowds of one method and size, one line per epsilon and participation."""
    plain = 0.0
    for epsilon, participation in SETTINGS:
        each = [measure(crowd, method, epsilon, participation, first + k) for k, crowd in enumerate(crowds)]
        mean = Result(*np.mean(each, axis=0).tolist())
        spread = np.std(each, axis=0, ddof=1) / math.sqrt(len(each)) if len(each) > 1 else np.full(len(mean), math.nan)
        bar = Result(*spread.tolist())
        plain = mean.error if epsilon is None else plain
        labels, workers, tasks, sparsity = size
        sent = "- | -" if epsilon is None else f"{epsilon:g} | {participation}"
        print(f"| {method.name} | {labels} | {workers} x {tasks} | {1 - sparsity:.2f} | {sent} |", end=" ")
        print(f"{mean.abilities:.3f} ± {bar.abilities:.3f} | {mean.width:.3f} |", end=" ")
        print(f"{mean.truths:.3f} ± {bar.truths:.3f} | {mean.error:.3f} |", end=" ")
        print(f"{mean.vote:.3f} | {mean.constant:.3f} | {plain:.3f} |", flush=True)


def main() -> None:
    """Print one line per method, size, epsilon and participation."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--seeds", type=int, default=20)
    parser.add_argument("--first", type=int, default=0, help="the first seed")
    parser.add_argument("--sizes", type=int, nargs="+", default=(0, 1, 2, 3), help="which of the four sizes")
    parser.add_argument("--uneven", action="store_true", help="one-coin workers give different numbers of answers")
    parser.add_argument("--methods", nargs="+", default=NAMES, choices=NAMES)
    given = parser.parse_args()
    one_coin: Callable[..., Crowd] = uneven_crowd if given.uneven else one_coin_crowd
    sizes = ((2, 100, 500, 0.8), (5, 100, 500, 0.8), (2, 64, 2134, 0.87), (5, 200, 1000, 0.95))
    levels = tuple((max(size[0], 4), *size[1:]) for size in sizes)
    methods = ((OneCoin, one_coin, sizes), (DawidSkene, one_coin, sizes), (OrdinalDawidSkene, ordered_crowd, levels))
    head = "method | labels | workers x tasks | answered | epsilon | participation | abilities | width | truths | error"
    print(f"| {head} | vote | constant | unprotected |\n|" + "---|" * 13)
    for kind, make, crowd_sizes in (one for one in methods if one[0].name in given.methods):
        for size in (crowd_sizes[k] for k in given.sizes):
            crowds = [make(*size, given.first + seed) for seed in range(given.seeds)]
            row(kind(tolerance=1e-4), size, crowds, given.first)


if __name__ == "__main__":
    main()
