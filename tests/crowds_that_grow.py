"""Crowds of which a part has reported so far, for tests of fits that go on."""

from typing import Any

import numpy as np
from numpy.typing import NDArray

from crowdveil.answers.reports import Reports
from crowdveil.channels.alphabet import Alphabet, Categories
from crowdveil.channels.channel import Channel
from crowdveil.randomness import seeded

LABELS = Categories(("no", "yes", "maybe"), ordered=True)


def crowd(
    seed: int = 0, tasks: int = 400, workers: int = 30, per_task: int = 6, alphabet: Alphabet | None = LABELS
) -> Reports:
    """Make reports of workers who are right with probability 0.55 to 0.95; without an alphabet, numbers near 0 .. 9.

    Names sort in another order than codes, so that workers and tasks who come later do not come last.
    """
    rng = np.random.default_rng(seed)
    names = [
        np.array([f"{stem}{(37 * k) % 1009}" for k in range(size)]) for stem, size in (("t", tasks), ("w", workers))
    ]
    task = np.repeat(np.arange(tasks), per_task)
    worker = np.concatenate([rng.permutation(workers)[:per_task] for _ in range(tasks)])
    if alphabet is None:
        deviation = rng.uniform(0.2, 3, workers)
        value: NDArray[Any] = rng.integers(0, 10, tasks)[task] + rng.normal(0, deviation[worker])
    else:
        labels = alphabet.size
        right = rng.random(len(task)) < rng.uniform(0.55, 0.95, workers)[worker]
        truth = rng.integers(0, labels, tasks)[task]
        value = np.where(right, truth, (truth + rng.integers(1, labels, len(task))) % labels)
    return Reports(task, worker, value, names[0], names[1], alphabet)


def part(reports: Reports, kept: NDArray[np.bool_]) -> Reports:
    """Return some of the rows, with their own tasks and workers only, in sorted order of names."""
    value = reports.value[kept]
    return Reports.from_arrays(
        reports.tasks[reports.task[kept]],
        reports.workers[reports.worker[kept]],
        value if reports.alphabet is None else np.array(reports.alphabet.names)[value],
        alphabet=reports.alphabet,
        numeric=reports.alphabet is None,
    )


def through(reports: Reports, channel: Channel, seed: int) -> Reports:
    """Send every cell, blank or not, through a channel with protected participation."""
    assert reports.alphabet is not None
    table = np.full((len(reports.tasks), len(reports.workers)), reports.alphabet.size)
    table[reports.task, reports.worker] = reports.value
    sent = channel.sample(table.ravel(), seeded(seed)).reshape(table.shape)
    task, worker = np.nonzero(sent < reports.alphabet.size)
    return Reports(task, worker, sent[task, worker], reports.tasks, reports.workers, reports.alphabet)
