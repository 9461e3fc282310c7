"""Dependence of answers to one task: agreement beyond the prediction of a fitted Dawid-Skene model.

Answers of workers i and j to a task agree, given the other answers, with the probability
    p_ij = sum_z g(z) sum_x C_i[z, x] C_j[z, x],   g(z) ~ pi_z prod_{k not i, j} C_k[z, y_k],
if errors are independent. If a share c of pairs are copies, they agree with c + (1 - c) p_ij, so that
    c = sum (agree_ij - p_ij) / sum (1 - p_ij).
Its standard error treats tasks as independent and the fitted model as known. A fit moves the truths to where answers
look independent: mistakes that most workers share become truths and do not show.
"""

from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from crowdveil.data.reports import Block, Reports
from crowdveil.em.kernels.numpy_backend import softmax

MAX_TASKS, MAX_NUMBERS, CHUNK_NUMBERS = 100_000, 1 << 24, 1 << 20
"""Largest numbers of tasks, the first ones, of confusion matrices' cells of all their answers, and of those of pairs
that are read together."""
MIN_TASKS = 50
"""Smallest number of tasks with two answers that agreement is measured on."""
LAGS = (1, 2, 3)
"""Distances of the two answers of a pair in the order of a task's answers."""
TINY = 1e-300


@dataclass(frozen=True, slots=True)
class Dependence:
    """Agreement of pairs of answers to one task, and its excess.

    Attributes:
        pairs: number of pairs.
        observed, predicted: share of pairs that agree, and its expected value under the model.
        copied: share of copies that explains the difference; negative if answers agree less than predicted.
        standard_error: of `copied`.
    """

    pairs: int
    observed: float
    predicted: float
    copied: float
    standard_error: float

    @property
    def least_copied(self) -> float:
        """Lower end of the 95 % interval of `copied` (two standard errors), in [0, 1]."""
        return min(1.0, max(0.0, self.copied - 2 * self.standard_error))


def measure_dependence(
    reports: Reports, confusion: NDArray[np.float64], class_prior: NDArray[np.float64]
) -> Dependence | None:
    """Return the dependence of answers; None if fewer than `MIN_TASKS` tasks have two.

    Args:
        reports: answers, unperturbed.
        confusion: P(answer | truth), indexed [worker, truth, label].
        class_prior: P(truth), shape (labels,).
    """
    answers = np.cumsum(reports.per_task[:MAX_TASKS])
    block = reports.rows.block(0, max(1, int(np.searchsorted(answers, MAX_NUMBERS // reports.labels**2, "right"))))
    first, second = _pairs(block.task)
    task = block.task[first]
    predicted = _predicted(block, first, second, confusion, class_prior)
    agree = block.value[first] == block.value[second]
    excess, room = np.bincount(task, agree - predicted), np.bincount(task, 1 - predicted)
    if np.count_nonzero(np.bincount(task)) < MIN_TASKS or room.sum() <= 0:
        return None
    copied = excess.sum() / room.sum()
    error = float(np.sqrt(np.square(excess - copied * room).sum()) / room.sum())
    return Dependence(len(task), float(agree.mean()), float(predicted.mean()), float(copied), error)


def _pairs(task: NDArray[np.integer]) -> tuple[NDArray[np.int64], NDArray[np.int64]]:
    """Return the places of the first and of the second answer of each pair, from the sorted tasks of answers."""
    found = [np.flatnonzero(task[lag:] == task[:-lag]) for lag in LAGS]
    first = np.concatenate(found)
    return first, first + np.repeat(LAGS, [len(places) for places in found])


def _predicted(
    block: Block,
    first: NDArray[np.int64],
    second: NDArray[np.int64],
    confusion: NDArray[np.float64],
    class_prior: NDArray[np.float64],
) -> NDArray[np.float64]:
    """Return the probability that both answers of each pair agree, given the other answers to the task."""
    own = np.log(np.maximum(confusion[block.worker, :, block.value], TINY))
    scores = np.tile(np.log(np.maximum(class_prior, TINY)), (block.tasks, 1))
    np.add.at(scores, block.task, own)
    predicted = np.empty(len(first))
    step = max(1, CHUNK_NUMBERS // confusion[0].size)
    for part in (slice(start, start + step) for start in range(0, len(first), step)):
        one, other = first[part], second[part]
        truth = softmax(scores[block.task[one]] - own[one] - own[other])[0]
        agree = np.einsum("pzx,pzx->pz", confusion[block.worker[one]], confusion[block.worker[other]])
        predicted[part] = (truth * agree).sum(axis=1)
    return predicted
