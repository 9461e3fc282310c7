"""Dependence of answers to one task: agreement beyond the prediction of a fitted Dawid-Skene model.

Answers of workers i and j to a task agree, given the other answers, with the probability
    p_ij = sum_z g(z) sum_x C_i[z, x] C_j[z, x],   g(z) ~ pi_z prod_{k not i, j} C_k[z, y_k],
if errors are independent. If a share c of pairs are copies, they agree with c + (1 - c) p_ij, so that
    c = sum (agree_ij - p_ij) / sum (1 - p_ij).
Its standard error treats tasks as independent and the fitted model as known. A fit moves the truths to where answers
look independent: mistakes that most workers share become truths and do not show.
"""

from dataclasses import dataclass
from functools import partial
from itertools import takewhile

import numpy as np
from numpy.typing import NDArray

from crowdveil.answers.reports import Block, Reports
from crowdveil.em.kernels.dispatch import parallel_map, thread_count, use_compiled

MAX_TASKS, MAX_NUMBERS, CHUNK_NUMBERS = 100_000, 1 << 24, 1 << 20
"""Largest numbers of tasks, the first ones, of confusion matrices' cells of all their answers, and of those that are
read together."""
MIN_TASKS = 50
"""Smallest number of tasks with two answers that agreement is measured on."""
LAGS = (1, 2, 3)
"""Distances of the two answers of a pair in the order of a task's answers."""
TINY = 1e-100
"""Least probability of an answer: those of two can be divided out of a product without an overflow."""


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
    def copied_lower_bound(self) -> float:
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
    answers, cells = np.cumsum(reports.per_task[:MAX_TASKS]), reports.labels**2
    last = max(1, int(np.searchsorted(answers, MAX_NUMBERS // cells, "right")))
    blocks = takewhile(lambda block: block.first < last, reports.blocks(max(1, CHUNK_NUMBERS // cells)))
    tables, compiled = np.ascontiguousarray(confusion.swapaxes(1, 2)), use_compiled(len(reports))
    add_up = partial(
        _pair_agreement_sums_compiled if compiled else _pairs_equal_pairs_and_predicted,
        tables=tables,
        prior=np.maximum(class_prior, TINY),
    )
    with parallel_map(thread_count() if compiled else 1) as each:
        sums = list(each(add_up, (block.slice_tasks(slice(last - block.first)) for block in blocks)))
    pairs, agree, predicted = np.concatenate(sums).T
    excess, room = agree - predicted, pairs - predicted
    if np.count_nonzero(pairs) < MIN_TASKS or room.sum() <= 0:
        return None
    copied = excess.sum() / room.sum()
    error = float(np.sqrt(np.square(excess - copied * room).sum()) / room.sum())
    number = int(pairs.sum())
    return Dependence(number, float(agree.sum() / number), float(predicted.sum() / number), float(copied), error)


def _pairs_equal_pairs_and_predicted(
    block: Block, tables: NDArray[np.float64], prior: NDArray[np.float64]
) -> NDArray[np.float64]:
    """Return the numbers of pairs, of equal pairs, and of those predicted, indexed [task, 3].

    Args:
        block: answers.
        tables: P(answer | truth), indexed [worker, label, truth].
        prior: P(truth), at least `TINY`.
    """
    task, likelihood = block.task, tables[block.worker]
    own = np.maximum(likelihood[np.arange(len(task)), block.value], TINY)
    scores = np.tile(np.log(prior), (block.tasks, 1))
    np.add.at(scores, task, np.log(own))
    others = np.exp(scores - scores.max(axis=1, keepdims=True))[task] / own
    sums = np.zeros((3, block.tasks))
    for lag in LAGS:
        truth, same = others[:-lag] / own[lag:], block.value[:-lag] == block.value[lag:]
        agree = np.einsum("pxz,pxz->pz", likelihood[:-lag], likelihood[lag:])
        predicted = np.einsum("pz,pz->p", truth, agree) / truth.sum(axis=1)
        first = np.flatnonzero(task[:-lag] == task[lag:])
        for row, number in enumerate((np.ones(len(first)), same[first], predicted[first])):
            sums[row] += np.bincount(task[first], number, block.tasks)
    return sums.T


def _pair_agreement_sums_compiled(
    block: Block, tables: NDArray[np.float64], prior: NDArray[np.float64]
) -> NDArray[np.float64]:
    """Return `_pairs_equal_pairs_and_predicted` by a compiled loop, which takes a tenth of its time."""
    from crowdveil.em.kernels.numba_backend import UNROLLED_LABELS
    from crowdveil.em.kernels.numba_loops.pairs import compiled_pair_agreement_sums

    sums, columns = np.empty((block.tasks, 3)), (block.pointers, block.worker, block.value)
    labels = len(prior) if len(prior) <= UNROLLED_LABELS else 0
    compiled_pair_agreement_sums(labels)(columns, tables.ravel(), prior, TINY, max(LAGS), sums)
    return sums
