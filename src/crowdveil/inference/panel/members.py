"""A panel of workers: how many independent ones it is worth, who answers alike, and what its best member reaches.

The error of worker w on task t with truth z is e_tw(z) = 1 - P(z | answer), by the worker's table and the class prior.
Its correlation for two workers, r_ij, is that within truths, on their common tasks, sums weighted by q_t(z). With the
mean r of the r_ij, weighted by common tasks, W workers are worth W / (1 + (W - 1) r) independent ones: the design
effect of a cluster (Kish, Survey Sampling, 1965, section 5.4). Without gold, q is inferred, and moves to where answers
look independent: the number is then too high.
"""

from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from crowdveil.em.gold import NO_GOLD
from crowdveil.estimators.confusion.truth_tables import Answers, tables_from_gold

MAX_WORKERS, MAX_TASKS = 200, 20_000
"""Largest numbers of workers, those with the most answers, and of tasks, the first ones, that are compared."""
MIN_COMMON = 20
"""Smallest number of common tasks of two workers who are compared."""
ALIKE, ALIKE_DEVIATIONS = 0.5, 4.0
"""Least correlation of errors of two workers who answer alike, by this many standard errors, (1 - r^2) / sqrt(n)."""
SHOWN_PAIRS = 10
FOLDS = 5


@dataclass(frozen=True, slots=True)
class AlikeWorkers:
    """Two workers whose errors are alike.

    Attributes:
        workers: their names.
        common: common tasks.
        correlation: r_ij of their errors.
    """

    workers: tuple[str, str]
    common: int
    correlation: float


@dataclass(frozen=True, slots=True)
class Panel:
    """Dependence of the workers, and what gold did.

    Attributes:
        workers: number of compared workers.
        effective: number of independent workers that they are worth; None without pairs with common tasks.
        correlation: mean correlation of errors.
        from_gold: whether known truths tell the errors; else inferred ones.
        alike: number of pairs that answer alike.
        pairs: the first of them, by correlation.
        best_worker: the most accurate worker on gold; None without enough.
        best_accuracy: cross-validated: chosen and read on the other folds.
        stacked_accuracy: cross-validated accuracy of the result on the same gold tasks.
    """

    workers: int
    effective: float | None
    correlation: float | None
    from_gold: bool
    alike: int
    pairs: tuple[AlikeWorkers, ...]
    best_worker: str | None = None
    best_accuracy: float | None = None
    stacked_accuracy: float | None = None

    @property
    def sentences(self) -> tuple[str, ...]:
        """The panel in a sentence each on independence, pairs, and accuracy on gold."""
        independent = "The number of independent workers is unknown: too few common tasks."
        if self.effective is not None:
            told = "known truths" if self.from_gold else "inferred truths, too high where mistakes are shared"
            independent = (
                f"{self.workers:,} workers are worth {self.effective:.1f} independent ones: errors correlate by "
                f"{self.correlation:.2f} ({told})."
            )
        shown = ", ".join(f"{' and '.join(pair.workers)} ({pair.correlation:.2f})" for pair in self.pairs)
        pairs = f"{self.alike:,} pairs of workers answer alike{f': {shown}' if shown else ''}."
        if self.stacked_accuracy is None:
            return independent, pairs
        single = "" if self.best_worker is None else f"{self.best_worker} alone {self.best_accuracy:.3f}, "
        return (
            independent,
            pairs,
            f"Accuracy on gold, cross-validated: {single}all together {self.stacked_accuracy:.3f}.",
        )


def answer_error_probability(
    answers: Answers, tables: NDArray[np.float64], prior: NDArray[np.float64]
) -> NDArray[np.float64]:
    """Return e(z) = 1 - P(z | answer) of every worker, indexed [worker, truth, answer]."""
    joint = answers.report_probabilities(tables) * prior[:, None]
    return np.asarray(1 - joint / joint.sum(axis=1, keepdims=True))


def error_correlations(
    codes: NDArray[np.int64], errors: NDArray[np.float64], posterior: NDArray[np.float64]
) -> tuple[NDArray[np.float64], NDArray[np.float64]]:
    """Return r_ij and the numbers of common tasks, both [worker, worker]; r is 0 where a worker never varies.

    Args:
        codes: answers, -1 for none, indexed [task, worker].
        errors: indexed [worker, truth, answer].
        posterior: q_t(z), indexed [task, truth]; rows of zeros do not count.
    """
    given, places = codes >= 0, np.arange(codes.shape[1])
    products = np.zeros((2, len(places), len(places)))
    for z, weight in enumerate(posterior.T):
        error = np.where(given, errors[places, z, codes], 0.0)
        share = weight[:, None] * given
        mean = (share * error).sum(axis=0) / np.maximum(share.sum(axis=0), 1e-12)
        centred = np.where(given, error - mean, 0.0)
        products[0] += (weight[:, None] * centred).T @ centred
        products[1] += (weight[:, None] * centred**2).T @ given
    size = np.sqrt(products[1] * products[1].T)
    common = (posterior.sum(axis=1)[:, None] * given).T @ given
    return np.divide(products[0], size, out=np.zeros_like(size), where=size > 1e-12), common


def effective_workers(
    correlation: NDArray[np.float64], common: NDArray[np.float64]
) -> tuple[float | None, float | None]:
    """Return Kish's number of independent workers, at most that of workers, and the mean correlation; None unknown."""
    workers = len(common)
    weight = np.triu(np.where(common >= MIN_COMMON, common, 0.0), 1)
    if not weight.any():
        return None, None
    mean = float((weight * correlation).sum() / weight.sum())
    return workers / (1 + (workers - 1) * min(max(mean, 0.0), 1.0)), mean


def alike_pairs(correlation: NDArray[np.float64], common: NDArray[np.float64], names: list[str]) -> list[AlikeWorkers]:
    """Return the pairs of workers whose errors are alike, the most correlated first; arguments [worker, worker]."""
    least = correlation - ALIKE_DEVIATIONS * (1 - correlation**2) / np.sqrt(np.maximum(common, 1))
    alike = np.triu((common >= MIN_COMMON) & (least >= ALIKE), 1)
    found = [
        AlikeWorkers((names[one], names[other]), round(common[one, other]), float(correlation[one, other]))
        for one, other in np.argwhere(alike)
    ]
    return sorted(found, key=lambda pair: -pair.correlation)


def best_worker_cross_validated(
    answers: Answers, gold: NDArray[np.int64], fold: NDArray[np.int64], truths: int
) -> tuple[int, float] | None:
    """Return the worker whom gold chooses, and the accuracy of that choice on the folds that it has not seen.

    A worker's answer is read as its most probable truth by the table of the other folds; a task that the chosen worker
    did not answer has the most frequent truth. None if no worker answered half of the gold tasks.

    Args:
        answers: codes.
        gold: truth codes, NO_GOLD where unknown, shape (tasks,).
        fold: fold of each task, shape (tasks,).
        truths: number of truths.
    """
    tasks = np.flatnonzero(gold != NO_GOLD)
    counts = np.bincount(answers.worker[gold[answers.task] != NO_GOLD], minlength=answers.shape[1])
    able = np.flatnonzero(counts >= len(tasks) / 2)
    if not len(able):
        return None
    answers = answers.of_workers(able)
    codes, right = answer_codes_of_workers(answers, np.arange(len(able))), 0.0
    for held in range(FOLDS):
        train, test = tasks[fold[tasks] != held], tasks[fold[tasks] == held]
        _, chosen, reading = _best_worker_on_gold(answers, np.where(fold == held, NO_GOLD, gold), codes, train, truths)
        right += float((reading[codes[test, chosen]] == gold[test]).sum())
    return int(able[_best_worker_on_gold(answers, gold, codes, tasks, truths)[1]]), right / len(tasks)


def _best_worker_on_gold(
    answers: Answers, gold: NDArray[np.int64], codes: NDArray[np.int64], tasks: NDArray[np.int64], truths: int
) -> tuple[float, int, NDArray[np.int64]]:
    """Return the accuracy of the best worker on these gold tasks, its code, and its truth by answer (last: none)."""
    tables, prior = tables_from_gold(answers, gold, truths)
    joint = answers.report_probabilities(tables) * prior[:, None]
    constant = np.full((len(joint), 1), prior.argmax())
    reading = np.concatenate((joint.argmax(axis=1), constant), axis=1)
    read = reading[np.arange(len(joint)), codes[tasks]]
    accuracy = (read == gold[tasks, None]).mean(axis=0)
    chosen = int(accuracy.argmax())
    return float(accuracy[chosen]), chosen, reading[chosen]


def answer_codes_of_workers(answers: Answers, workers: NDArray[np.int64]) -> NDArray[np.int64]:
    """Return the answers of some workers as codes, -1 for none, indexed [task, worker]."""
    column = np.full(answers.shape[1], -1)
    column[workers] = np.arange(len(workers))
    listed = column[answers.worker] >= 0
    codes = np.full((answers.shape[0], len(workers)), -1)
    codes[answers.task[listed], column[answers.worker[listed]]] = answers.answer[listed]
    return codes
