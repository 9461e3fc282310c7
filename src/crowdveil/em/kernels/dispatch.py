"""Choice of the kernels of a fit (numpy or compiled), of its block size and of its number of threads."""

import os
from collections import deque
from collections.abc import Callable, Iterable, Iterator
from concurrent.futures import Future, ThreadPoolExecutor
from contextlib import contextmanager
from functools import partial
from typing import Any

import numpy as np
from numpy.typing import NDArray

from crowdveil.answers.reports import BLOCK_REPORTS, Block
from crowdveil.em.kernels.jit import KERNELS_VARIABLE as KERNELS_VARIABLE
from crowdveil.em.kernels.jit import should_compile
from crowdveil.em.kernels.numpy_backend import EncodedBlock
from crowdveil.errors import SettingsError

THREADS_VARIABLE = "CROWDVEIL_THREADS"
"""Environment variable: number of threads; by default the number of idle cores."""
MIN_COMPILED_REPORTS = 160_000
"""Reports from which compiled code is used; below, loading it costs as much as a fit of labels."""
CELLS_PER_REPORT = 64
"""Cells of tables (confusion matrices, messages to a grid of truths) that take about the time of one report."""
MIN_BLOCK_REPORTS = 1 << 18
"""Lower bound of the reports in a compiled block; a thread costs more than it saves on fewer."""
MAX_BLOCK_REPORTS = 1 << 23
MIN_REPORTS_PER_SUM = 8
"""Reports of a block per number that the block sums up, so that merging sums stays cheap."""
MIN_BLOCKS, MAX_BLOCKS = 2, 8


def use_compiled(reports: int, cells: int = 0) -> bool:
    """Return whether a fit of this many reports, and of this many cells of its tables, runs on compiled code.

    Raises:
        SettingsError: an unknown choice in the environment.
    """
    return should_compile(max(reports, cells // CELLS_PER_REPORT), MIN_COMPILED_REPORTS)


def encoded_block_for_kernels(
    block: Block, workers: int, symbols: int, points: NDArray[np.float64] | None = None, *, compiled: bool
) -> EncodedBlock:
    """Return a block encoded for its sums.

    Args:
        block: the reports.
        workers, symbols: numbers of workers and of symbols.
        points: value of each symbol; None if reports are numbers.
        compiled: from `use_compiled`.
    """
    if not compiled:
        return EncodedBlock(block, workers, symbols, points)
    from crowdveil.em.kernels.numba_backend import NumbaBlock

    return NumbaBlock(block, workers, symbols, points)


def reports_per_reproducible_block(reports: int, sums_per_block: int, *, compiled: bool) -> int:
    """Return the number of reports in a block; it depends on the data alone, so that sums are reproducible bit for bit.

    Compiled fits have two to eight blocks: fewer where a block's sums are large compared with its reports.

    Args:
        reports: number of all reports.
        sums_per_block: numbers in the statistics of a block, without posteriors.
        compiled: from `use_compiled`.
    """
    if not compiled:
        return BLOCK_REPORTS
    blocks = MAX_BLOCKS
    while blocks > MIN_BLOCKS and reports < blocks * MIN_REPORTS_PER_SUM * sums_per_block:
        blocks //= 2
    # Slightly more than an equal share: blocks end with a task, and the remainder must not become an extra block.
    block_size = reports // blocks + reports // 256 + 1
    return max(MIN_BLOCK_REPORTS, min(block_size, MAX_BLOCK_REPORTS))


def thread_count() -> int:
    """Return the number of threads: from the environment, or one per idle core.

    Raises:
        SettingsError: the environment variable is no whole number from 1.
    """
    given = os.environ.get(THREADS_VARIABLE)
    if given is None:
        cores = len(os.sched_getaffinity(0)) if "sched_getaffinity" in dir(os) else os.cpu_count() or 1
        busy = int(os.getloadavg()[0]) if "getloadavg" in dir(os) else 0
        return max(1, cores - busy)
    if not given.isdecimal() or int(given) < 1:
        raise SettingsError(f"{THREADS_VARIABLE} must be a whole number from 1", value=given)
    return int(given)


@contextmanager
def parallel_map(threads: int) -> Iterator[Callable[..., Iterable[Any]]]:
    """Yield a `map` whose calls run in `threads` threads and whose results come in order, at most 2 * threads ahead."""
    if threads == 1:
        yield map
        return
    with ThreadPoolExecutor(threads) as executor:
        yield partial(_ordered_results, executor, 2 * threads)


def _ordered_results(
    executor: ThreadPoolExecutor, limit: int, function: Callable[[Any], Any], arguments: Iterable[Any]
) -> Iterator[Any]:
    """Yield results in the order of the arguments; at most `limit` are running or waiting."""
    pending = deque[Future[Any]]()
    for argument in arguments:
        if len(pending) == limit:
            yield pending.popleft().result()
        pending.append(executor.submit(function, argument))
    while pending:
        yield pending.popleft().result()
