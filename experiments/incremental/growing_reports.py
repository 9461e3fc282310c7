"""Real and simulated crowds whose reports arrive in parts."""

from collections.abc import Iterator
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from crowdveil import Categories, Channel, RandomizedResponse, Reports
from crowdveil.data import datasets
from crowdveil.randomness import seeded

SETS = {
    "duchenne": "Duchenne",
    "snow_rte": "RTE",
    "adult2": "AdultContent2",
    "bluebird": "Bluebird",
    "d_product": "Products",
    "dog": "Dogs",
}


class Crowd(NamedTuple):
    """Reports, known truths, and the channel."""

    reports: Reports
    gold: dict[str, str]
    channel: Channel | None


def real_crowd(name: str) -> Crowd:
    """Return a public data set."""
    data = datasets.load(name, duplicates="first")
    return Crowd(data.answers, data.gold, None)


def simulated_crowd(seed: int, tasks: int = 2000, workers: int = 100, per_task: int = 10) -> Crowd:
    """Return simulated answers with abilities from 0.5 to 0.95, and three labels."""
    rng = np.random.default_rng(seed)
    labels = Categories(("a", "b", "c"))
    truth = rng.integers(0, 3, tasks)
    task = np.repeat(np.arange(tasks), per_task)
    worker = np.concatenate([rng.permutation(workers)[:per_task] for _ in range(tasks)])
    right = rng.random(len(task)) < rng.uniform(0.5, 0.95, workers)[worker]
    value = np.where(right, truth[task], (truth[task] + rng.integers(1, 3, len(task))) % 3)
    names = [np.array([f"{stem}{k}" for k in range(size)]) for stem, size in (("t", tasks), ("w", workers))]
    gold = {str(name): labels.names[code] for name, code in zip(names[0], truth, strict=True)}
    return Crowd(Reports(task, worker, value, names[0], names[1], labels), gold, None)


def perturbed(crowd: Crowd, epsilon: float, seed: int) -> Crowd:
    """Return the crowd after randomized response with protected participation."""
    answers = crowd.reports
    assert isinstance(answers.alphabet, Categories)
    channel = RandomizedResponse(alphabet=answers.alphabet, epsilon=epsilon, participation="protected").channel()
    table = np.full((len(answers.tasks), len(answers.workers)), answers.labels)
    table[answers.task, answers.worker] = answers.value
    sent = channel.sample(table.ravel(), seeded(seed)).reshape(table.shape)
    task, worker = np.nonzero(sent < answers.labels)
    reports = Reports(task, worker, sent[task, worker], answers.tasks, answers.workers, answers.alphabet)
    return Crowd(reports, crowd.gold, channel)


def subset(reports: Reports, kept: NDArray[np.bool_], tasks: NDArray[np.int64] | None = None) -> Reports:
    """Return the reports of a mask, on the given tasks or those that occur, by the workers that occur."""
    tasks = np.unique(reports.task[kept]) if tasks is None else tasks
    workers = np.unique(reports.worker[kept])
    return Reports(
        np.searchsorted(tasks, reports.task[kept]),
        np.searchsorted(workers, reports.worker[kept]),
        reports.value[kept],
        np.asarray(reports.tasks)[tasks],
        np.asarray(reports.workers)[workers],
        reports.alphabet,
    )


def split(reports: Reports, number: int, seed: int, *, whole_tasks: bool) -> Iterator[Reports]:
    """Yield parts of equal size, of whole tasks or of single reports, in random order."""
    rng = np.random.default_rng(seed)
    if not whole_tasks:
        place = rng.permutation(len(reports)) * number // len(reports)
        yield from (subset(reports, place == one) for one in range(number))
        return
    order = rng.permutation(len(reports.tasks)) * number // len(reports.tasks)
    for one in range(number):
        yield subset(reports, order[reports.task] == one, np.flatnonzero(order == one))
