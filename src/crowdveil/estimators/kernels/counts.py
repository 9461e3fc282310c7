"""Counts of reports by worker and symbol, which every fit begins with."""

import numpy as np
from numpy.typing import NDArray

from crowdveil.blocks import Block


def count_symbols(block: Block, counts: NDArray[np.float64], *, compiled: bool) -> None:
    """Add the reports of a block to counts, indexed [worker, symbol].

    Args:
        block: the reports; values are symbols.
        counts: to be added to.
        compiled: from `use_compiled`.
    """
    symbols = counts.shape[1]
    if compiled:
        from crowdveil.estimators.kernels.loops.counts import count_cells

        count_cells(block.worker, block.value, symbols, counts.reshape(-1))
        return
    cells = block.worker.astype(np.int64) * symbols + block.value
    counts += np.bincount(cells, minlength=counts.size).reshape(counts.shape)
