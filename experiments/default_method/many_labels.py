"""The default for labels against one-coin where errors are alike: error, abilities and intervals by number of labels.

Simulated crowds of 12 workers, of whom some guess, and 120 tasks. It prints the error of one-coin, of the default
without the worker's own ability in the prior of rows, and of the default; then of the default the mean distance of
abilities from the true ones, the mean ability of workers who guess, the share of intervals that hold the true ability,
and the mean confidence.
"""

import argparse
from typing import NamedTuple
from unittest.mock import patch

import numpy as np
from numpy.typing import NDArray

from crowdveil import Categories, HierarchicalDawidSkene, OneCoin, Reports
from crowdveil.em.estimate import Estimate
from crowdveil.estimators.confusion import own_ability

WORKERS, TASKS = 12, 120
CROWDS: dict[str, tuple[int, float, float, int]] = {
    "2 guess, 10 of .59 to .95": (2, 0.59, 0.95, 5),
    "1 guesses, 11 of .35 to .9": (1, 0.35, 0.9, 5),
    "1 guesses, 11 of .2 to .6": (1, 0.2, 0.6, 12),
    "1 guesses, 11 of .35 to .9, few": (1, 0.35, 0.9, 3),
}
"""Workers who guess, lowest and highest ability of the others, and answers per task."""


class Crowd(NamedTuple):
    """Answers, truths (tasks,) and abilities (workers,)."""

    reports: Reports
    truth: NDArray[np.int64]
    ability: NDArray[np.float64]


def crowd(labels: int, name: str, seed: int) -> Crowd:
    """Return a crowd of `CROWDS` whose wrong answers are uniform."""
    (guessing, low, high, answers), rng = CROWDS[name], np.random.default_rng(seed)
    truth = rng.integers(0, labels, TASKS)
    ability = np.append(np.full(guessing, 1 / labels), np.linspace(low, high, WORKERS - guessing))
    worker = np.argsort(rng.random((TASKS, WORKERS)), axis=1)[:, :answers].ravel()
    task = np.repeat(np.arange(TASKS), answers)
    wrong = (truth[task] + rng.integers(1, labels, len(task))) % labels
    value = np.where(rng.random(len(task)) < ability[worker], truth[task], wrong)
    alphabet = Categories(tuple(f"label {label:02d}" for label in range(labels)))
    return Crowd(Reports(task, worker, value, np.arange(TASKS), np.arange(WORKERS), alphabet), truth, ability)


def error(estimate: Estimate, one: Crowd) -> float:
    """Return the share of wrong truths."""
    return float((estimate.posterior.argmax(axis=1) != one.truth).mean())


def figures(one: Crowd) -> list[float]:
    """Return the figures of one crowd, in the order of the program's docstring."""
    coin, own = OneCoin().fit(one.reports), HierarchicalDawidSkene().fit(one.reports)
    with patch.object(own_ability, "MAX_STRENGTH", 0.0):
        without = HierarchicalDawidSkene().fit(one.reports)
    workers, guessing = own.workers, one.ability <= 1 / one.reports.labels
    assert workers.ability_low is not None
    assert workers.ability_high is not None
    held = (workers.ability_low <= one.ability) & (one.ability <= workers.ability_high)
    distance = np.abs(workers.quality - one.ability).mean()
    abilities = [float(distance), float(workers.quality[guessing].mean()), float(held.mean())]
    return [error(coin, one), error(without, one), error(own, one), *abilities, float(own.confidence.mean())]


def main() -> None:
    """Print a row for every kind of crowd and number of labels."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--seeds", type=int, default=20)
    given = parser.parse_args()
    for name in CROWDS:
        for labels in (2, 8, 15, 30):
            found = np.mean([figures(crowd(labels, name, seed)) for seed in range(given.seeds)], axis=0)
            print(f"{name:32} {labels:3} {' '.join(f'{value:.3f}' for value in found)}", flush=True)


if __name__ == "__main__":
    main()
