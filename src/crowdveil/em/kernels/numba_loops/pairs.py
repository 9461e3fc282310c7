"""Compiled loops over pairs of answers to one task: their predicted agreement, and counts of equal answers."""

from functools import cache
from typing import Any

import numpy as np

from crowdveil.em.kernels.jit import compile_with_numba
from crowdveil.em.kernels.numba_loops.layout import INDEX, add_product, prefetch
from crowdveil.em.kernels.numba_loops.special_functions import FAST, UNCHECKED_DIVISION

TABLES_AHEAD = 16
"""Answers between the one whose table is prefetched and the one that is read."""
CACHE_LINE_NUMBERS = 8


@cache
def compiled_pair_agreement_sums(static_labels: int) -> Any:
    """Return the compiled loop for `static_labels` labels, or for any number if that is 0."""
    lanes = (0,) * static_labels

    @compile_with_numba(fastmath=FAST, error_model=UNCHECKED_DIVISION)
    def add_up(columns: Any, tables: Any, prior: Any, least: Any, lags: Any, sums: Any) -> None:
        """Fill `sums`, [task, 3], with the numbers of pairs of answers, of equal pairs, and of those predicted.

        Args:
            columns: pointers, shape (tasks + 1,), and worker and label of each answer.
            tables: P(label | truth), flat [worker, label, truth].
            prior: P(truth).
            least: lower bound of a probability, and of the largest product that is not divided by itself.
            lags: largest distance of two answers of a pair in the order of a task's answers.
            sums: replaced.
        """
        pointers, worker, label = columns
        width = INDEX(static_labels if static_labels > 0 else len(prior))
        cells, last = width * width, INDEX(len(worker) - 1)
        inverse = np.empty(INDEX(np.diff(pointers).max()) * width)
        given, agree = np.empty(width), np.empty(width)
        for task in range(INDEX(len(pointers) - 1)):
            first, stop = INDEX(pointers[task]), INDEX(pointers[task + INDEX(1)])
            for k in range(width):
                given[k] = prior[k]
            for one in range(first, stop):
                ahead = INDEX(worker[min(one + INDEX(TABLES_AHEAD), last)]) * cells
                for cell in range(INDEX(0), cells, INDEX(CACHE_LINE_NUMBERS)):
                    prefetch(tables, ahead + cell)
                row, own, top = INDEX(worker[one]) * cells + INDEX(label[one]) * width, (one - first) * width, 0.0
                for k in range(width):
                    probability = max(tables[row + k], least)
                    inverse[own + k] = 1 / probability
                    given[k] *= probability
                    top = max(top, given[k])
                for k in range(width if top < least else INDEX(0)):
                    given[k] /= top
            pairs, equal, predicted = 0.0, 0.0, 0.0
            for one in range(first, stop):
                for other in range(one + INDEX(1), min(one + INDEX(lags + 1), stop)):
                    table, second = INDEX(worker[one]) * cells, INDEX(worker[other]) * cells
                    own, others, both, total = (one - first) * width, (other - first) * width, 0.0, 0.0
                    for k in range(width):
                        agree[k] = 0.0
                    for answer in range(INDEX(0), cells, width):
                        add_product(agree, INDEX(0), tables, table + answer, tables, second + answer, width, lanes)
                    for k in range(width):
                        weight = given[k] * inverse[own + k] * inverse[others + k]
                        both += weight * agree[k]
                        total += weight
                    pairs += 1
                    equal += label[one] == label[other]
                    predicted += both / total
            sums[task, 0], sums[task, 1], sums[task, 2] = pairs, equal, predicted

    return add_up


@compile_with_numba()
def count_hashed_pairs(pointers: Any, worker: Any, label: Any, workers: Any, counts: Any) -> None:
    """Count pairs of workers with equal answers to a task by the last bits of first * workers + second.

    Args:
        pointers, worker, label: of the answers, shapes (tasks + 1,), and twice (answers,).
        workers: number of workers.
        counts: as many as a power of two, added to, up to the largest number of their type.
    """
    mask, highest = INDEX(len(counts) - 1), np.iinfo(counts.dtype).max
    for task in range(len(pointers) - 1):
        for one in range(INDEX(pointers[task]), INDEX(pointers[task + 1])):
            row = INDEX(worker[one]) * INDEX(workers)
            for other in range(one + INDEX(1), INDEX(pointers[task + 1])):
                bucket = (row + INDEX(worker[other])) & mask
                if label[one] == label[other] and worker[one] != worker[other] and counts[bucket] < highest:
                    counts[bucket] += 1
