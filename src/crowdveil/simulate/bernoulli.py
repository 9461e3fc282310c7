"""Independent Bernoulli trials over very many cells, drawn by geometric gaps between successes.

Cells are numbered task * workers + worker, the order of `Reports`. The successes are sorted and distinct; the cost
grows with the number of successes, not of cells.
"""

import math
from collections.abc import Iterator

import numpy as np
from numpy.typing import NDArray

SUCCESSES_PER_CHUNK = 1 << 20
"""Expected number of successes of one chunk; bounds its memory to tens of megabytes."""
MAX_CELLS_PER_CHUNK = 1 << 40
"""Largest chunk; a sum of clipped gaps then does not overflow 64 bits."""
SPARE_GAPS = 16
"""Gaps drawn beyond the expected number, so that short chunks need one attempt."""
GEOMETRIC_BY_SEARCH = 1 / 3
"""Probability from which numpy draws geometric numbers by search, which is faster."""


def bernoulli_indices(generator: np.random.Generator, cells: int, probability: float) -> NDArray[np.int64]:
    """Return the successes among the cells 0 .. cells-1, ascending."""
    return np.concatenate([found for _, found in successful_cells_by_chunk(generator, cells, probability)])


def successful_cells_by_chunk(
    generator: np.random.Generator, cells: int, probability: float
) -> Iterator[tuple[int, NDArray[np.int64]]]:
    """Yield the successes among the cells 0 .. cells-1, chunk by chunk.

    Args:
        generator: of a seeded source.
        cells: number of cells.
        probability: probability of success, in (0, 1].

    Yields:
        The end of the chunk, and its successes, ascending.
    """
    span = min(MAX_CELLS_PER_CHUNK, int(SUCCESSES_PER_CHUNK / probability) + 1)
    for first in range(0, cells, span):
        stop = min(first + span, cells)
        yield stop, _successes(generator, first, stop, probability)


def _successes(generator: np.random.Generator, first: int, stop: int, probability: float) -> NDArray[np.int64]:
    """Return the successes among first .. stop-1; gaps are memoryless, so a chunk may begin at any cell."""
    if probability >= 1:
        return np.arange(first, stop)
    found, at = list[NDArray[np.int64]](), first - 1
    while at < stop - 1:
        gaps = _geometric_gaps(generator, int((stop - 1 - at) * probability) + SPARE_GAPS, probability)
        # Sums of integers are exact in floats below 2**53; positions beyond the last cell are not used.
        numbers = np.minimum(np.cumsum(gaps, out=gaps), stop - at).astype(np.int64) + at
        at = int(numbers[-1])
        found.append(numbers[: np.searchsorted(numbers, stop)])
    return np.concatenate(found)


def _geometric_gaps(generator: np.random.Generator, count: int, probability: float) -> NDArray[np.float64]:
    """Return geometric gaps, as integral floats."""
    if probability >= GEOMETRIC_BY_SEARCH:
        return generator.geometric(probability, count).astype(float)
    # The same draws as `geometric`, which computes the logarithm for each of them.
    gaps = generator.standard_exponential(count)
    gaps /= -math.log1p(-probability)
    return np.ceil(gaps, out=gaps)
