"""Crowds that break the assumptions of the default: mistakes that workers share, and truths of another standard."""

from collections.abc import Iterator
from functools import partial
from itertools import product
from typing import Any

import numpy as np
from experiments.utility.crowds.crowd import (
    Crowd,
    Random,
    coin_tables,
    drawn_labels,
    drawn_truths,
    pairs_of_tasks,
)
from experiments.utility.crowds.kinds import TASKS, WORKERS, Kind, by_abilities, even
from numpy.typing import NDArray


def decoys(rng: Random, *, labels: int, answers: int, share: float, follow: float) -> Crowd:
    """Return tasks of which a share has a decoy, a wrong label that each worker follows with a probability."""
    truth, has = drawn_truths(rng, TASKS, even(labels)), rng.random(TASKS) < share
    decoy = np.eye(labels)[_other_label(rng, truth, labels)]
    task, worker = pairs_of_tasks(rng, TASKS, WORKERS, answers)
    followed = (follow * has)[task, None, None]
    tables = (1 - followed) * coin_tables(rng.uniform(0.6, 0.95, WORKERS), labels)[worker]
    return _answered(rng, task, worker, tables + followed * decoy[task][:, None, :], truth, even(labels))


def conventions(rng: Random, *, labels: int, answers: int, share: float = 0.2, group: float = 0.6) -> Crowd:
    """Return a group of workers who name a share of the tasks by the next label."""
    truth, odd = drawn_truths(rng, TASKS, even(labels)), rng.random(TASKS) < share
    task, worker = pairs_of_tasks(rng, TASKS, WORKERS, answers)
    tables = coin_tables(rng.uniform(0.7, 0.95, WORKERS), labels)[worker]
    other = odd[task] & (worker < group * WORKERS)
    tables[other] = np.roll(tables[other], 1, axis=2)
    return _answered(rng, task, worker, tables, truth, even(labels))


def hard_tasks(rng: Random, *, labels: int, answers: int, deviation: float, decoy: bool = False) -> Crowd:
    """Return tasks whose difficulty is normal in log-odds; mistakes are even, or all the same label of the task."""
    truth = drawn_truths(rng, TASKS, even(labels))
    task, worker = pairs_of_tasks(rng, TASKS, WORKERS, answers)
    odds = rng.normal(1.5, 0.5, WORKERS)[worker] - rng.normal(0, deviation, TASKS)[task]
    knows = 1 / (1 + np.exp(-odds))
    if not decoy:
        return _answered(
            rng, task, worker, coin_tables(1 / labels + (1 - 1 / labels) * knows, labels), truth, even(labels)
        )
    wrong = np.eye(labels)[_other_label(rng, truth, labels)][task]
    rows = knows[:, None] * np.eye(labels)[truth[task]] + (1 - knows)[:, None] * wrong
    return _answered(rng, task, worker, np.repeat(rows[:, None], labels, axis=1), truth, even(labels))


def ambiguous_negatives(rng: Random, *, answers: int, called: float, positive: float = 0.1) -> Crowd:
    """Return two labels, the second one rare; 15 % of the tasks are negatives that most workers call positive."""
    shares = np.array([1 - positive, positive])
    truth = drawn_truths(rng, TASKS, shares)
    task, worker = pairs_of_tasks(rng, TASKS, WORKERS, answers)
    tables = coin_tables(rng.uniform(0.75, 0.95, WORKERS), 2)[worker]
    looks = (truth == 0) & (rng.random(TASKS) < 0.15 / (1 - positive))
    tables[looks[task]] = [1 - called, called]
    return _answered(rng, task, worker, tables, truth, shares)


def another_standard(rng: Random, *, labels: int, answers: int, share: float) -> Crowd:
    """Return honest workers, and truths of which a share is another label than theirs."""
    crowd = by_abilities(rng, labels=labels, answers=answers)
    other = rng.random(TASKS) < share
    truth = np.where(other, _other_label(rng, crowd.truth, labels), crowd.truth)
    return Crowd(crowd.task, crowd.worker, crowd.label, crowd.likelihood, truth, crowd.shares, crowd.workers)


def followers(rng: Random, *, labels: int, answers: int, share: float) -> Crowd:
    """Return workers who repeat the first answer to the task in a share of their answers."""
    crowd = by_abilities(rng, labels=labels, answers=answers, low=0.55)
    first = np.unique(crowd.task, return_index=True)[1][crowd.task]
    follows = (np.arange(len(first)) > first) & (rng.random(len(first)) < share)
    label = np.where(follows, crowd.label[first], crowd.label)
    return Crowd(crowd.task, crowd.worker, label, crowd.likelihood, crowd.truth, crowd.shares, crowd.workers)


def _other_label(rng: Random, truth: NDArray[np.int64], labels: int) -> NDArray[np.int64]:
    """Return a random label of each task that is not its truth."""
    return np.asarray((truth + rng.integers(1, labels, len(truth))) % labels)


def _answered(
    rng: Random,
    task: NDArray[np.int64],
    worker: NDArray[np.int64],
    tables: NDArray[np.float64],
    truth: NDArray[np.int64],
    shares: NDArray[np.float64],
) -> Crowd:
    """Return the crowd with labels by a table for each answer, [answer, truth, label]."""
    rows = np.arange(len(task))
    label = drawn_labels(rng, tables[rows, truth[task]])
    return Crowd(task, worker, label, tables[rows, :, label], truth, shares, WORKERS)


def broken_kinds() -> Iterator[Kind]:
    """Yield honest crowds, and all kinds that break an assumption."""
    for labels, answers in product((2, 4), (3, 5, 10)):
        size: dict[str, Any] = {"labels": labels, "answers": answers}
        makes = {
            "honest": [partial(by_abilities, **size)],
            "decoys": [
                partial(decoys, share=share, follow=follow, **size)
                for share, follow in ((0.05, 0.9), (0.1, 0.7), (0.2, 0.6), (0.3, 0.5))
            ],
            "truths of another standard": [partial(another_standard, share=share, **size) for share in (0.04, 0.1)],
            "answers that follow the first": [partial(followers, share=share, **size) for share in (0.2, 0.4)],
            "hard tasks": [partial(hard_tasks, deviation=deviation, **size) for deviation in (1.0, 2.0)],
            "hard tasks with a decoy": [partial(hard_tasks, deviation=1.2, decoy=True, **size)],
            "conventions": [partial(conventions, **size)],
        }
        for family, each in makes.items():
            for make in each:
                settings = ", ".join(f"{name} {value}" for name, value in make.keywords.items())
                yield Kind(family, settings, make)
    for answers, called in product((3, 5, 10), (0.5, 0.7)):
        make = partial(ambiguous_negatives, answers=answers, called=called)
        yield Kind("ambiguous negatives", f"answers {answers}, called {called}", make)
