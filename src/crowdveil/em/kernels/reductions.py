"""Squared slopes of reports that are answers: what intervals of abilities read from single reports.

Sums of log-gamma functions: the evidence of Beta laws.

Counts of reports by worker and symbol, which every fit begins with.

Work on tables row by row, in pieces that stay in a core's own cache: three times faster than whole columns.
"""

from collections.abc import Callable
from functools import partial
from itertools import pairwise
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray
from scipy.special import gammaln

from crowdveil.data.blocks import Block
from crowdveil.em.kernels.dispatch import side_by_side, thread_count


def log_gamma_sums(
    numbers: NDArray[np.float64], more: NDArray[np.float64], *, compiled: bool = False
) -> NDArray[np.float64]:
    """Return the sum of log-gamma over all numbers, each of `more` added to them; shape (added,).

    Args:
        numbers: not negative.
        more: positive, shape (added,).
        compiled: from `use_compiled`.
    """
    if not compiled:
        return np.asarray(gammaln(numbers[:, None] + more).sum(axis=0))
    from crowdveil.em.kernels.numba_loops.logarithm import sums_of_log_gamma

    sums = np.empty(len(more))
    sums_of_log_gamma(np.ascontiguousarray(numbers), np.ascontiguousarray(more), sums)
    return sums


def count_symbols(block: Block, counts: NDArray[np.float64], *, compiled: bool) -> None:
    """Add the reports of a block to counts, indexed [worker, symbol].

    Args:
        block: the reports; values are symbols.
        counts: to be added to.
        compiled: from `use_compiled`.
    """
    symbols = counts.shape[1]
    if compiled:
        from crowdveil.em.kernels.numba_loops.confusion import count_cells

        count_cells(block.worker, block.value, symbols, counts.reshape(-1))
        return
    cells = block.worker.astype(np.int64) * symbols + block.value
    counts += np.bincount(cells, minlength=counts.size).reshape(counts.shape)


PIECE = 1 << 15
"""Numbers worked on together."""
FOR_A_THREAD = 1 << 18
"""Numbers for which a thread is worth its while."""


def in_pieces(
    function: Callable[[NDArray[np.float64]], NDArray[np.float64]], rows: NDArray[np.float64], out: NDArray[np.float64]
) -> NDArray[np.float64]:
    """Fill `out` with function(rows), which must treat every row alike and by itself; return it.

    Args:
        function: takes some rows and returns as many.
        rows: indexed [row, ...].
        out: indexed [row, ...].
    """
    step = max(1, PIECE // max(rows[:1].size, 1))
    for begin in range(0, len(rows), step):
        out[begin : begin + step] = function(rows[begin : begin + step])
    return out


def shares_of_rows(
    counts: NDArray[np.float64], pseudo: NDArray[np.float64], *, compiled: bool = False
) -> NDArray[np.float64]:
    """Return counts, [worker, truth, label], and pseudo-counts, [truth, label], over their sums by label."""
    if not compiled:
        return in_pieces(partial(_shares, pseudo), counts, np.empty_like(counts))
    from crowdveil.em.kernels.numba_backend import UNROLLED_LABELS
    from crowdveil.em.kernels.numba_loops.rows import share_rows

    # Labels outside, truths inside: the order in which sums of reports lie in memory.
    inside_out = np.ascontiguousarray(counts.transpose(0, 2, 1))
    shares, size = np.empty_like(inside_out), inside_out.shape[1:]
    more = np.ascontiguousarray(pseudo.T).ravel()
    share = share_rows(size[0] if size[0] == size[1] <= UNROLLED_LABELS else 0)
    on_rows(lambda rows: share(inside_out[rows].ravel(), more, size, shares[rows].ravel()), len(counts), _least(counts))
    return shares.transpose(0, 2, 1)


def logs_of_rows(rows: NDArray[np.float64], least: float, *, compiled: bool = False) -> NDArray[np.float64]:
    """Return logarithms, of `least` (a normal number) where numbers are smaller; in memory as the numbers are."""
    logs = np.empty_like(rows)
    if not compiled:
        return in_pieces(lambda some: np.log(np.maximum(some, least)), rows, logs)
    from crowdveil.em.kernels.numba_loops.rows import logarithms

    on_rows(lambda some: logarithms(rows[some].ravel("K"), least, logs[some].ravel("K")), len(rows), _least(rows))
    return logs


def on_rows(work: Callable[[slice], None], rows: int, least: int) -> None:
    """Do the work on ranges of rows, each by itself, in threads where each of these has so many rows at least."""
    threads = max(1, min(thread_count(), rows // least))
    ends = np.linspace(0, rows, threads + 1, dtype=int).tolist()
    with side_by_side(threads) as each:
        for _ in each(work, [slice(*ends_of) for ends_of in pairwise(ends)]):
            pass


def _least(rows: NDArray[np.float64]) -> int:
    """Return for how many of these rows a thread is worth its while."""
    return max(1, FOR_A_THREAD // max(rows[:1].size, 1))


def _shares(pseudo: NDArray[np.float64], counts: NDArray[np.float64]) -> NDArray[np.float64]:
    more = counts + pseudo
    return more / np.einsum("wzx->wz", more)[:, :, None]


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
    from crowdveil.em.kernels.numba_backend import UNROLLED_LABELS
    from crowdveil.em.kernels.numba_loops.confusion import squares_of_slopes

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
