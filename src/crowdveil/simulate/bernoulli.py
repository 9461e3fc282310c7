"""Coin flips for cells: which of very many cells come to life, drawn by geometric gaps.

Cells are numbered task * workers + worker, the order in which `Reports` keeps them. Gaps give exactly independent coin
flips, already sorted and without repeats, at a cost that follows the cells that come to life, not the cells that exist.
"""

import math
from collections.abc import Iterator

import numpy as np
from numpy.typing import NDArray

SUCCESSES_PER_CHUNK = 1 << 20
"""Cells that come to life together, on average; bounds the memory of one chunk to tens of megabytes."""
STEPS_AT_ONCE = 1 << 15
"""Numbers worked on together; how many makes no difference to the draws."""
NARROW = 1 << 32
CELLS_AT_ONCE = 1 << 40
"""Cells passed over together at most, so that a sum of clipped gaps cannot overflow 64 bits."""
SPARE_STEPS = 16
"""Steps drawn beyond the expected number, so that short walks end at the first attempt."""
GEOMETRIC_BY_SEARCH = 1 / 3
"""From this probability on, numpy draws geometric numbers by a short search, which is the faster way."""


def bernoulli_indices(generator: np.random.Generator, cells: int, probability: float) -> NDArray[np.int64]:
    """Flip one coin for each of the numbers 0 .. cells-1; return those that came up, ascending."""
    return np.concatenate([found for _, found in bernoulli_chunks(generator, cells, probability)])


def bernoulli_chunks(
    generator: np.random.Generator, cells: int, probability: float
) -> Iterator[tuple[int, NDArray[np.int64]]]:
    """Flip one coin for each of the numbers 0 .. cells-1, chunk by chunk.

    Args:
        generator: of a seeded source.
        cells: how many numbers.
        probability: of coming up, in (0, 1].

    Yields:
        The end of the chunk, and those of its numbers that came up, ascending.
    """
    span = min(CELLS_AT_ONCE, int(SUCCESSES_PER_CHUNK / probability) + 1)
    for first in range(0, cells, span):
        stop = min(first + span, cells)
        yield stop, _gaps(generator, first, stop, probability)


def _gaps(generator: np.random.Generator, first: int, stop: int, probability: float) -> NDArray[np.int64]:
    """Walk over first .. stop-1 in geometric steps; the walk has no memory, so it may stop and start anywhere."""
    if probability >= 1:
        return np.arange(first, stop)
    cells = stop - first
    found: list[NDArray[np.int64]] = []
    at = -1.0
    while at < cells - 1:
        numbers = np.empty(int((cells - 1 - at) * probability) + SPARE_STEPS, dtype=np.int64)
        for part in short_slices(len(numbers)):
            walked = _steps(generator, len(numbers[part]), probability)
            walked[0] += at
            # Sums of whole numbers are exact in floats below 2**53; beyond the last cell nothing is looked at.
            np.cumsum(walked, out=walked)
            at = float(walked[-1])
            if at > cells:
                at = cells
                np.minimum(walked, cells, out=walked)
            numbers[part] = walked
            numbers[part] += first
        found.append(numbers[: np.searchsorted(numbers, stop)])
    return found[0] if len(found) == 1 else np.concatenate(found)


def tasks_and_workers(cell: NDArray[np.int64], workers: int) -> tuple[NDArray[np.int32], NDArray[np.int32]]:
    """Return task and worker of each cell."""
    task, worker = np.empty(len(cell), dtype=np.int32), np.empty(len(cell), dtype=np.int32)
    for part in short_slices(len(cell)):
        first = int(cell[part.start]) // workers
        near = cell[part] - first * workers
        if near[-1] < NARROW:  # cells ascend; numbers of 32 bits are divided twice as fast
            near = near.astype(np.uint32)
        whole = near // near.dtype.type(workers)
        near -= whole * near.dtype.type(workers)
        worker[part] = near
        whole += near.dtype.type(first)
        task[part] = whole
    return task, worker


def short_slices(count: int) -> Iterator[slice]:
    """Yield slices that cover `count` numbers, each short enough to stay in a core's own cache."""
    return (slice(first, first + STEPS_AT_ONCE) for first in range(0, count, STEPS_AT_ONCE))


def _steps(generator: np.random.Generator, count: int, probability: float) -> NDArray[np.float64]:
    """Draw geometric steps, as whole floats."""
    if probability >= GEOMETRIC_BY_SEARCH:
        return generator.geometric(probability, count).astype(float)
    # The same draws as `geometric`, which takes the logarithm again for every one of them.
    steps = generator.standard_exponential(count)
    steps /= -math.log1p(-probability)
    return np.ceil(steps, out=steps)
