"""Which of the two kinds of kernel a fit uses, in how large blocks, and in how many threads."""

import os
from collections import deque
from collections.abc import Callable, Iterable, Iterator
from concurrent.futures import Future, ThreadPoolExecutor
from contextlib import contextmanager
from functools import partial
from typing import Any

import numpy as np
from numpy.typing import NDArray

from crowdveil.data.reports import BLOCK_REPORTS, Block
from crowdveil.em.kernels.interface import CodedBlock
from crowdveil.em.kernels.numpy_backend import PlainBlock
from crowdveil.errors import SettingsError
from crowdveil.jit.dispatch import KERNELS as KERNELS
from crowdveil.jit.dispatch import compiled_pays

THREADS = "CROWDVEIL_THREADS"
"""Environment variable: number of threads; by default the cores that nobody else uses."""
COMPILED_FROM = 1 << 16
"""Reports from which on compiled code is loaded: below it, loading it takes as long as the whole fit."""
SMALLEST_BLOCK = 1 << 18
"""Reports of a compiled block at least, so that a thread has something to do."""
LARGEST_BLOCK = 1 << 23
REPORTS_PER_CELL = 8
LEAST_BLOCKS, MOST_BLOCKS = 2, 8


def use_compiled(reports: int) -> bool:
    """Return whether a fit of so many reports runs on compiled code.

    Raises:
        SettingsError: an unknown choice in the environment.
    """
    return compiled_pays(reports, COMPILED_FROM)


def encode(
    block: Block, workers: int, symbols: int, points: NDArray[np.float64] | None = None, *, compiled: bool
) -> CodedBlock:
    """Return a block in the form that its sums need.

    Args:
        block: the reports.
        workers, symbols: how many there are.
        points: the number of each symbol, None where reports are numbers themselves.
        compiled: from `use_compiled`.
    """
    if not compiled:
        return PlainBlock(block, workers, symbols, points)
    from crowdveil.em.kernels.numba_backend import CompiledBlock

    return CompiledBlock(block, workers, symbols, points)


def block_reports(reports: int, cells: int, *, compiled: bool) -> int:
    """Return how many reports a block should have: never a matter of threads, so that the sums are always the same.

    Compiled blocks are large beside the sums that each of them yields, but there are two at least, for the threads, and
    eight where sums are few.

    Args:
        reports: how many there are in all.
        cells: numbers that a block adds up beside the posteriors.
        compiled: from `use_compiled`.
    """
    if not compiled:
        return BLOCK_REPORTS
    blocks = MOST_BLOCKS
    while blocks > LEAST_BLOCKS and reports < blocks * REPORTS_PER_CELL * cells:
        blocks //= 2
    # A little more than a share: blocks end where a task does, and the rest should not make a block of its own.
    share = reports // blocks + reports // 256 + 1
    return max(SMALLEST_BLOCK, min(share, LARGEST_BLOCK))


def thread_count() -> int:
    """Return how many threads to use: as the environment says, or one per core that is free.

    Raises:
        SettingsError: the environment says something else than a whole number from 1.
    """
    given = os.environ.get(THREADS)
    if given is None:
        cores = len(os.sched_getaffinity(0)) if "sched_getaffinity" in dir(os) else os.cpu_count() or 1
        busy = int(os.getloadavg()[0]) if "getloadavg" in dir(os) else 0
        return max(1, cores - busy)
    if not given.isdecimal() or int(given) < 1:
        raise SettingsError(f"{THREADS} must be a whole number from 1", value=given)
    return int(given)


@contextmanager
def side_by_side(threads: int) -> Iterator[Callable[..., Iterable[Any]]]:
    """Give a `map` whose calls run in so many threads and whose results come in order, few of them waiting."""
    if threads == 1:
        yield map
        return
    with ThreadPoolExecutor(threads) as pool:
        yield partial(_in_order, pool, 2 * threads)


def _in_order(
    pool: ThreadPoolExecutor, ahead: int, function: Callable[[Any], Any], arguments: Iterable[Any]
) -> Iterator[Any]:
    """Yield the results in the order of the arguments; at most so many are under way or waiting to be taken."""
    under_way = deque[Future[Any]]()
    for argument in arguments:
        if len(under_way) == ahead:
            yield under_way.popleft().result()
        under_way.append(pool.submit(function, argument))
    while under_way:
        yield under_way.popleft().result()
