"""Squared slopes of reports that are answers: what intervals of abilities read from single reports."""

from itertools import pairwise
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from crowdveil.blocks import Block
from crowdveil.estimators.kernels.choice import side_by_side, thread_count

REPORTS_AT_ONCE = 1 << 18
"""Reports whose slopes are worked out together; and those of the smallest part that a thread works on."""
MOST_PARTS = 8


class Slopes(NamedTuple):
    """Slopes of log P(answer | truth), [worker, truth] each: of the right answer, and minus that of a wrong one.

    The likelihood of answer y on a task with posterior gamma climbs by
    gamma(y) right[w, y] - sum over z other than y of gamma(z) wrong[w, z].
    """

    right: NDArray[np.float64]
    wrong: NDArray[np.float64]


def squared_slopes(
    block: Block, posterior: NDArray[np.float64], slopes: Slopes, *, compiled: bool
) -> NDArray[np.float64]:
    """Add up, for each worker, the squared slopes of the answers of a block; shape (workers,).

    Args:
        block: the answers.
        posterior: of its tasks, indexed [task, label].
        slopes: of the workers.
        compiled: from `use_compiled`.
    """
    if not compiled:
        return _plain(block, posterior, slopes)
    from crowdveil.estimators.kernels.compiled import UNROLLED_LABELS
    from crowdveil.estimators.kernels.loops.slopes import squares_of_slopes

    workers, labels = slopes.right.shape
    rows = np.stack((slopes.wrong, slopes.right + slopes.wrong), axis=1).ravel()
    columns, flat = (block.pointers, block.worker, block.value), np.ascontiguousarray(posterior).ravel()
    add_up = squares_of_slopes(labels if labels <= UNROLLED_LABELS else 0)

    def part(tasks: tuple[int, int]) -> NDArray[np.float64]:
        squares = np.zeros(workers)
        add_up(columns, flat, rows, labels, *tasks, squares)
        return squares

    parts = _parts(block)
    with side_by_side(min(thread_count(), len(parts))) as each:
        return np.asarray(sum(each(part, parts)))


def _parts(block: Block) -> list[tuple[int, int]]:
    """Return ranges of tasks with about as many reports each; never a matter of threads."""
    parts = max(1, min(MOST_PARTS, len(block.worker) // REPORTS_AT_ONCE))
    wanted = np.arange(1, parts) * (len(block.worker) // parts)
    cuts = [0, *np.searchsorted(block.pointers, wanted).tolist(), block.tasks]
    return list(pairwise(cuts))


def _plain(block: Block, posterior: NDArray[np.float64], slopes: Slopes) -> NDArray[np.float64]:
    """Do the same by numpy, some reports at a time."""
    task, squares = block.task, np.zeros(len(slopes.right))
    for begin in range(0, len(task), REPORTS_AT_ONCE):
        rows = slice(begin, begin + REPORTS_AT_ONCE)
        worker, label, truths = block.worker[rows], block.value[rows], posterior[task[rows]]
        both = slopes.right[worker, label] + slopes.wrong[worker, label]
        slope = truths[np.arange(len(worker)), label] * both - np.einsum("rz,rz->r", truths, slopes.wrong[worker])
        squares += np.bincount(worker, slope**2, len(squares))
    return squares
