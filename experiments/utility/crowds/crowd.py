"""Simulated crowds: tasks, workers, answers with their true probabilities, and the posterior of the oracle."""

from collections.abc import Callable
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from crowdveil import Categories, Reports
from crowdveil.em.kernels.numpy_backend import softmax

Random = np.random.Generator


@dataclass(frozen=True, eq=False)
class Crowd:
    """Answers to simulated tasks.

    Attributes:
        task, worker, label: of each answer.
        likelihood: P(label | truth) of each answer, [answer, truth]; 1 for an answer that is copied.
        truth: of each task.
        shares: P(truth).
        workers: number of workers.
    """

    task: NDArray[np.int64]
    worker: NDArray[np.int64]
    label: NDArray[np.int64]
    likelihood: NDArray[np.float64]
    truth: NDArray[np.int64]
    shares: NDArray[np.float64]
    workers: int

    @property
    def reports(self) -> Reports:
        """The answers as reports."""
        order = np.lexsort((self.worker, self.task))
        names = Categories(tuple(f"label{k}" for k in range(len(self.shares))))
        task, worker, label = (column[order] for column in (self.task, self.worker, self.label))
        return Reports(task, worker, label, np.arange(len(self.truth)), np.arange(self.workers), names)

    def oracle_posterior(self) -> NDArray[np.float64]:
        """Return the posterior that knows all probabilities and all copies, [task, label]."""
        scores = np.tile(np.log(np.maximum(self.shares, 1e-12)), (len(self.truth), 1))
        np.add.at(scores, self.task, np.log(np.maximum(self.likelihood, 1e-12)))
        return softmax(scores)[0]

    def joined(self, other: "Crowd") -> "Crowd":
        """Return the crowd with the answers of further workers to the same tasks."""
        worker = np.append(self.worker, other.worker + self.workers)
        pairs = (self.task, other.task), (self.label, other.label)
        task, label = map(np.concatenate, pairs)
        likelihood = np.concatenate((self.likelihood, other.likelihood))
        return Crowd(task, worker, label, likelihood, self.truth, self.shares, self.workers + other.workers)


Make = Callable[[Random], Crowd]


def drawn_truths(rng: Random, tasks: int, shares: NDArray[np.float64]) -> NDArray[np.int64]:
    """Return truths with these shares."""
    return rng.choice(len(shares), tasks, p=shares)


def pairs_of_tasks(rng: Random, tasks: int, workers: int, answers: int) -> tuple[NDArray[np.int64], NDArray[np.int64]]:
    """Return task and worker of each answer: so many random workers for each task."""
    worker = np.argsort(rng.random((tasks, workers)), axis=1)[:, : min(answers, workers)]
    return np.repeat(np.arange(tasks), worker.shape[1]), worker.ravel()


def crowd_by_tables(
    rng: Random, truth: NDArray[np.int64], shares: NDArray[np.float64], tables: NDArray[np.float64], answers: int
) -> Crowd:
    """Return a crowd whose workers have tables P(answer | truth), [worker, truth, label]."""
    task, worker = pairs_of_tasks(rng, len(truth), len(tables), answers)
    label = drawn_labels(rng, tables[worker, truth[task]])
    return Crowd(task, worker, label, tables[worker, :, label], truth, shares, len(tables))


def drawn_labels(rng: Random, probabilities: NDArray[np.float64]) -> NDArray[np.int64]:
    """Return a label for each row of probabilities."""
    places = rng.random((len(probabilities), 1)) > np.cumsum(probabilities, axis=1)
    return np.minimum(places.sum(axis=1), probabilities.shape[1] - 1)


def coin_tables(ability: NDArray[np.float64], labels: int) -> NDArray[np.float64]:
    """Return the tables of workers with one ability, whose errors are even; [worker, truth, label]."""
    wrong = (1 - ability) / (labels - 1)
    return wrong[:, None, None] + (ability - wrong)[:, None, None] * np.eye(labels)


def repeated_tables(shares: NDArray[np.float64], labels: int) -> NDArray[np.float64]:
    """Return the tables of workers whose answers have these shares, [worker, label], whatever the truth."""
    return np.repeat(shares[:, None, :], labels, axis=1)
