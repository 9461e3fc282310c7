"""Reductions over worker tables and reports: confusion normalization, soft-max, logarithms, squared slopes.

Most have a numpy form and a compiled one (`compiled`, from `use_compiled`). Processor time of the first over the
second, one thread, 10,000 workers with five and with two labels: `normalize_confusion` 3.2 and 3.5,
`confusion_from_unnormalized_logs` 3.6 with five; for half a million answers
`squared_derivative_sums` 14 and 22.
Row-wise work goes in chunks that stay in a core's own cache, which is three times faster than whole columns.
"""

from collections.abc import Callable, Iterator
from functools import partial, reduce
from itertools import pairwise
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray
from scipy.special import softmax

from crowdveil.answers.blocks import Block
from crowdveil.em.kernels.dispatch import parallel_map, thread_count

CHUNK_NUMBERS = 1 << 15
"""Numbers in a chunk of rows."""
MIN_NUMBERS_PER_THREAD = 1 << 18
"""Lower bound of the numbers per thread."""
CHUNK_REPORTS = 1 << 18
"""Reports whose slopes are computed together; also the smallest chunk of a thread."""
MAX_CHUNKS = 8
FEW_LABELS = 8


class Slopes(NamedTuple):
    """Derivatives of log P(answer | truth), [worker, truth] each: of the right answer, and minus that of a wrong one.

    The derivative for answer y on a task with posterior gamma is
    gamma(y) right[w, y] - sum over z != y of gamma(z) wrong[w, z].
    """

    right: NDArray[np.float64]
    wrong: NDArray[np.float64]


def map_row_chunks(
    function: Callable[[NDArray[np.float64]], NDArray[np.float64]], rows: NDArray[np.float64], out: NDArray[np.float64]
) -> NDArray[np.float64]:
    """Fill `out` with function(rows), computed in chunks, and return it; the function must be row-wise."""
    for some in row_chunks(rows):
        out[some] = function(rows[some])
    return out


def row_chunks(rows: NDArray[np.float64]) -> Iterator[slice]:
    """Yield ranges of rows whose numbers stay in a core's cache."""
    step = max(1, CHUNK_NUMBERS // max(rows[:1].size, 1))
    return (slice(start, start + step) for start in range(0, len(rows), step))


def normalize_confusion(
    counts: NDArray[np.float64],
    pseudo_counts: NDArray[np.float64],
    own: tuple[NDArray[np.float64], NDArray[np.float64]] | None = None,
    *,
    compiled: bool = False,
) -> NDArray[np.float64]:
    """Return counts, [worker, truth, label], plus pseudo-counts, [truth, label], over their sums by label.

    Pseudo-counts of each worker, `own`, are for compiled code only: sums of two matrices, [matrix, truth, label], with
    weights, [worker, matrix], which come first.
    """
    if not compiled:
        return map_row_chunks(partial(_smoothed_rows, pseudo_counts), counts, np.empty_like(counts))
    from crowdveil.em.kernels.numba_backend import UNROLLED_LABELS
    from crowdveil.em.kernels.numba_loops import confusion

    # [worker, label, truth] is the order in which sums of reports lie in memory.
    by_label = np.ascontiguousarray(counts.transpose(0, 2, 1))
    shares, size = np.empty_like(by_label), by_label.shape[1:]
    pseudo = np.ascontiguousarray(pseudo_counts.T).ravel()
    weights, parts = own or (np.empty((len(counts), 0)), np.empty((2, *pseudo_counts.shape)))
    parts = parts.transpose(0, 2, 1).reshape(2, -1)
    normalize = confusion.normalize_confusion(size[0] if size[0] == size[1] <= UNROLLED_LABELS else 0)

    def work(rows: slice) -> None:
        normalize(by_label[rows].ravel(), pseudo, weights[rows].ravel(), parts, size, shares[rows].ravel())

    for_row_ranges(work, len(counts), _fewest_rows_worth_a_thread(counts))
    return shares.transpose(0, 2, 1)


def confusion_from_unnormalized_logs(scores: NDArray[np.float64], *, compiled: bool = False) -> NDArray[np.float64]:
    """Return probabilities, [worker, truth, label], from their logarithms up to a constant, [worker, label, truth].

    Args:
        scores: C-contiguous, which the memory of the result is as well.
        compiled: from `use_compiled`.
    """
    shares, size = np.empty_like(scores), scores.shape[1:]
    if not compiled:
        return map_row_chunks(_softmax_over_labels, scores, shares).transpose(0, 2, 1)
    from crowdveil.em.kernels.numba_backend import UNROLLED_LABELS
    from crowdveil.em.kernels.numba_loops import confusion

    fill = confusion.softmax_by_label(size[0] if size[0] == size[1] <= UNROLLED_LABELS else 0)

    def work(rows: slice) -> None:
        fill(scores[rows].ravel(), size, shares[rows].ravel())

    for_row_ranges(work, len(scores), _fewest_rows_worth_a_thread(scores))
    return shares.transpose(0, 2, 1)


def _softmax_over_labels(scores: NDArray[np.float64]) -> NDArray[np.float64]:
    """Return the soft-max over axis 1; few labels are three times faster label by label."""
    if scores.shape[1] > FEW_LABELS:
        return np.asarray(softmax(scores, axis=1))
    shares = np.exp(scores - reduce(np.maximum, scores.swapaxes(0, 1))[:, None])
    shares /= reduce(np.add, shares.swapaxes(0, 1))[:, None]
    return shares


def floored_log(rows: NDArray[np.float64], least: float, *, compiled: bool = False) -> NDArray[np.float64]:
    """Return log(max(rows, least)) in the memory order of `rows`; compiled code takes a sixth of the time."""
    logs = np.empty_like(rows)
    if not compiled:
        return map_row_chunks(lambda some: np.log(np.maximum(some, least)), rows, logs)
    from crowdveil.em.kernels.numba_loops.special_functions import fill_floored_logs

    given, found = rows.ravel("K"), logs.ravel("K")
    for_row_ranges(lambda some: fill_floored_logs(given[some], least, found[some]), len(given), MIN_NUMBERS_PER_THREAD)
    return logs


def for_row_ranges(work: Callable[[slice], None], rows: int, least: int) -> None:
    """Call `work` on ranges that cover `rows` rows, in threads of at least `least` rows each."""
    threads = max(1, min(thread_count(), rows // least))
    if threads == 1:
        work(slice(0, rows))
        return
    ends = np.linspace(0, rows, threads + 1, dtype=int).tolist()
    with parallel_map(threads) as each:
        for _ in each(work, [slice(*ends_of) for ends_of in pairwise(ends)]):
            pass


def squared_derivative_sums(
    block: Block, posterior: NDArray[np.float64], slopes: Slopes, *, compiled: bool
) -> NDArray[np.float64]:
    """Return each worker's sum of squared derivatives over a block's answers, given posteriors [task, label]."""
    if not compiled:
        return _squared_derivative_sums_by_numpy(block, posterior, slopes)
    from crowdveil.em.kernels.numba_backend import UNROLLED_LABELS
    from crowdveil.em.kernels.numba_loops import confusion

    workers, labels = slopes.right.shape
    rows = np.stack((slopes.wrong, slopes.right + slopes.wrong), axis=1).ravel()
    columns, flat = (block.pointers, block.worker, block.value), np.ascontiguousarray(posterior).ravel()
    add_up = confusion.compiled_squared_derivative_sums(labels if labels <= UNROLLED_LABELS else 0)

    def sums_of(tasks: tuple[int, int]) -> NDArray[np.float64]:
        squares = np.zeros(workers)
        add_up(columns, flat, rows, labels, *tasks, squares)
        return squares

    chunks = _task_ranges_of_equal_reports(block)
    with parallel_map(min(thread_count(), len(chunks))) as each:
        return np.asarray(sum(each(sums_of, chunks)))


def _squared_derivative_sums_by_numpy(
    block: Block, posterior: NDArray[np.float64], slopes: Slopes
) -> NDArray[np.float64]:
    task, squares = block.task, np.zeros(len(slopes.right))
    for start in range(0, len(task), CHUNK_REPORTS):
        rows = slice(start, start + CHUNK_REPORTS)
        worker, label, truths = block.worker[rows], block.value[rows], posterior[task[rows]]
        both = slopes.right[worker, label] + slopes.wrong[worker, label]
        slope = truths[np.arange(len(worker)), label] * both - np.einsum("rz,rz->r", truths, slopes.wrong[worker])
        squares += np.bincount(worker, slope**2, len(squares))
    return squares


def _task_ranges_of_equal_reports(block: Block) -> list[tuple[int, int]]:
    """Return ranges of tasks with about equally many reports each; the number of threads has no influence."""
    chunks = max(1, min(MAX_CHUNKS, len(block.worker) // CHUNK_REPORTS))
    wanted = np.arange(1, chunks) * (len(block.worker) // chunks)
    return list(pairwise([0, *np.searchsorted(block.pointers, wanted).tolist(), block.tasks]))


def _fewest_rows_worth_a_thread(rows: NDArray[np.float64]) -> int:
    return max(1, MIN_NUMBERS_PER_THREAD // max(rows[:1].size, 1))


def _smoothed_rows(pseudo_counts: NDArray[np.float64], counts: NDArray[np.float64]) -> NDArray[np.float64]:
    total = counts + pseudo_counts
    return total / np.einsum("wzx->wz", total)[:, :, None]
