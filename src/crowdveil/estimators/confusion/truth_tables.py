"""Truths whose labels are not those of the answers: EM with a table P(answer | truth) of every worker, K answers wide.

With q_t(z) = P(truth z of task t) and expected answers n_w(z, k), sums of q_t(z) over the answers k of worker w:
    C_w(z, .) ~ n_w(z, .) + SMOOTHING + SHRINKAGE m(z, .),   m = the same sums over all workers, as shares,
    q_t(z) ~ pi(z) prod_w C_w(z, answer),                    pi(z) ~ 1 + sum_t q_t(z),
(Dawid and Skene 1979, with as many rows as truths). Through a channel M the table of the reports is C_w M, and answers
are expected ones. The posterior counts n answers of a task as n / (1 + (n - 1) r) independent ones.
"""

from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from crowdveil.em.gold import one_hot_gold
from crowdveil.em.kernels.numpy_backend import softmax

SMOOTHING, SHRINKAGE = 0.01, 5.0
"""Pseudo-answers of each cell, and of each row at the shares of all workers."""
ERROR_CORRELATION = 0.25
"""Assumed correlation r of the errors of two answers to a task, as of the default method for labels."""
MAX_STEPS, TOLERANCE = 100, 1e-5
CHANNEL_STEPS = 20
"""Steps to the tables of known truths through a channel."""
TINY = 1e-300


@dataclass(frozen=True, eq=False)
class Answers:
    """Answers, or reports of a channel, as codes.

    Attributes:
        task, worker, answer: codes, shape (answers,).
        shape: numbers of tasks, workers, and answer labels.
        channel: P(report | answer), indexed [answer, report]; None for answers.
    """

    task: NDArray[np.int64]
    worker: NDArray[np.int64]
    answer: NDArray[np.int64]
    shape: tuple[int, int, int]
    channel: NDArray[np.float64] | None = None

    def of_workers(self, workers: NDArray[np.int64]) -> "Answers":
        """Return the answers of some workers, ascending codes, numbered anew."""
        listed = np.isin(self.worker, workers)
        shape = (self.shape[0], len(workers), self.shape[2])
        worker = np.searchsorted(workers, self.worker[listed])
        return Answers(self.task[listed], worker, self.answer[listed], shape, self.channel)

    def posterior_sums_by_answer(self, posterior: NDArray[np.float64]) -> NDArray[np.float64]:
        """Return the sums of posteriors, [task, truth], over answers; indexed [worker, truth, answer]."""
        _, workers, labels = self.shape
        cell = self.worker * labels + self.answer
        sums = [np.bincount(cell, column[self.task], workers * labels) for column in posterior.T]
        stacked = np.stack(sums, axis=1).astype(float)
        return stacked.reshape(workers, labels, -1).swapaxes(1, 2)

    def report_probabilities(self, tables: NDArray[np.float64]) -> NDArray[np.float64]:
        """Return P(report | truth), [worker, truth, report], from P(answer | truth)."""
        return tables if self.channel is None else tables @ self.channel

    def log_likelihood(self, tables: NDArray[np.float64]) -> NDArray[np.float64]:
        """Return the log-probability of the answers of each task given each truth, [task, truth]."""
        logs = np.log(np.maximum(self.report_probabilities(tables), TINY))
        truths = range(logs.shape[1])
        return np.stack(
            [np.bincount(self.task, logs[self.worker, z, self.answer], self.shape[0]) for z in truths], axis=1
        )

    def expected_answer_counts(self, counts: NDArray[np.float64], tables: NDArray[np.float64]) -> NDArray[np.float64]:
        """Return expected answers from sums over reports, [worker, truth, report], and the tables of the answers."""
        if self.channel is None:
            return counts
        return np.asarray(tables * ((counts / np.maximum(self.report_probabilities(tables), TINY)) @ self.channel.T))


@dataclass(frozen=True, eq=False)
class TruthTables:
    """Fit of the tables.

    Attributes:
        posterior: P(truth), indexed [task, truth], after the discount for shared errors.
        tables: P(answer | truth), indexed [worker, truth, answer].
        class_prior: P(truth), shape (truths,).
        steps, converged: number of steps, and whether the last one changed no posterior by more than `TOLERANCE`.
    """

    posterior: NDArray[np.float64]
    tables: NDArray[np.float64]
    class_prior: NDArray[np.float64]
    steps: int
    converged: bool


def fit_truth_tables(answers: Answers, start: NDArray[np.float64], gold: NDArray[np.int64]) -> TruthTables:
    """Return the fit from a first posterior.

    Args:
        answers: codes.
        start: first posterior, indexed [task, truth]; rows of zeros do not count.
        gold: truth codes, NO_GOLD where unknown, shape (tasks,).

    >>> import numpy as np
    >>> scores = np.array([[0, 1], [1, 2], [9, 8], [10, 7]])
    >>> task, worker = np.indices(scores.shape).reshape(2, -1)
    >>> answers = Answers(task, worker, scores.ravel(), (4, 2, 11))
    >>> fit = fit_truth_tables(answers, start_from_order(answers, 2), np.full(4, -1))
    >>> fit.posterior.argmax(axis=1).tolist()
    [0, 0, 1, 1]
    """
    truths, labels = start.shape[1], answers.shape[2]
    tables = np.full((answers.shape[1], truths, labels), 1 / labels)
    posterior, step, change = one_hot_gold(start, gold), 0, np.inf
    while step < MAX_STEPS and change > TOLERANCE:
        tables = _confusion_tables_shrunk_to_crowd(
            answers.expected_answer_counts(answers.posterior_sums_by_answer(posterior), tables)
        )
        prior = (1 + posterior.sum(axis=0)) / (posterior.shape[1] + posterior.sum())
        evidence = answers.log_likelihood(tables) + np.log(prior)
        before, posterior = posterior, one_hot_gold(softmax(evidence)[0], gold)
        step, change = step + 1, float(np.abs(posterior - before).max())
    discounted = one_hot_gold(_discounted_posterior(answers, tables, prior), gold)
    return TruthTables(discounted, tables, prior, step, change <= TOLERANCE)


def _confusion_tables_shrunk_to_crowd(counts: NDArray[np.float64]) -> NDArray[np.float64]:
    """Return the tables, whose rows are shrunk to the shares of all workers, from expected answers."""
    pooled = counts.sum(axis=0) + 0.5 / counts.shape[2]
    shrunk = counts + SMOOTHING + SHRINKAGE * pooled / pooled.sum(axis=1, keepdims=True)
    return np.asarray(shrunk / shrunk.sum(axis=2, keepdims=True))


def posterior_by_ranks(answers: Answers, truths: int) -> NDArray[np.float64]:
    """Return a first posterior, [task, truth]: tasks in the order of their answers, in as many equal parts as truths.

    An answer counts as its mid-rank among the worker's answers, so that harsh and mild workers count alike.
    """
    tasks = answers.shape[0]
    totals = answers.posterior_sums_by_answer(np.ones((tasks, 1)))[:, 0]
    middle = (np.cumsum(totals, axis=1) - totals / 2) / np.maximum(totals.sum(axis=1, keepdims=True), 1)
    number = np.bincount(answers.task, minlength=tasks)
    ranks = np.bincount(answers.task, middle[answers.worker, answers.answer], tasks) / np.maximum(number, 1)
    known, start = number > 0, np.full((tasks, truths), 1 / truths)
    order = np.unique(ranks[known], return_inverse=True)[1]
    below = np.cumsum(np.bincount(order)) - np.bincount(order) / 2
    place = below[order] / known.sum() * truths
    near = np.maximum(1 - np.abs(place[:, None] - 0.5 - np.arange(truths)), 0) + 0.05
    start[known] = near / near.sum(axis=1, keepdims=True)
    return start


def tables_from_posterior(
    answers: Answers, posterior: NDArray[np.float64]
) -> tuple[NDArray[np.float64], NDArray[np.float64]]:
    """Return the tables and the class prior of known posteriors, [task, truth]; rows of zeros do not count."""
    tables = np.full((answers.shape[1], posterior.shape[1], answers.shape[2]), 1 / answers.shape[2])
    counts = answers.posterior_sums_by_answer(posterior)
    for _ in range(1 if answers.channel is None else CHANNEL_STEPS):
        tables = _confusion_tables_shrunk_to_crowd(answers.expected_answer_counts(counts, tables))
    prior = 1 + posterior.sum(axis=0)
    return tables, prior / prior.sum()


def tables_from_gold(
    answers: Answers, gold: NDArray[np.int64], truths: int
) -> tuple[NDArray[np.float64], NDArray[np.float64]]:
    """Return tables and class prior from gold tasks alone; truth codes, NO_GOLD where unknown, shape (tasks,)."""
    return tables_from_posterior(answers, one_hot_gold(np.zeros((answers.shape[0], truths)), gold))


def posterior_from_gold(answers: Answers, gold: NDArray[np.int64], truths: int) -> NDArray[np.float64]:
    """Return a first posterior, [task, truth], by the tables of gold tasks alone."""
    return _discounted_posterior(answers, *tables_from_gold(answers, gold, truths))


def _discounted_posterior(
    answers: Answers, tables: NDArray[np.float64], prior: NDArray[np.float64]
) -> NDArray[np.float64]:
    """Return the posterior, [task, truth], that counts n answers as n / (1 + (n - 1) ERROR_CORRELATION)."""
    number = np.bincount(answers.task, minlength=answers.shape[0])
    weight = 1 / (1 + np.maximum(number - 1, 0) * ERROR_CORRELATION)
    return softmax((answers.log_likelihood(tables) + np.log(prior)) * weight[:, None])[0]
