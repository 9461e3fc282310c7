"""Tables of workers between two steps, compiled: shares of counts, and their logarithms."""

from functools import cache
from typing import Any

import numpy as np

from crowdveil.em.kernels.numba_loops.layout import INDEX
from crowdveil.em.kernels.numba_loops.logarithm import NUMPY, positive_log
from crowdveil.em.kernels.numba_loops.softmax import FAST
from crowdveil.jit.kernel import kernel


@cache
def share_rows(fixed: int) -> Any:
    """Return the compiled shares for that number of labels and of truths, 0 for any."""

    @kernel(error_model=NUMPY)
    def share(counts: Any, pseudo: Any, size: Any, shares: Any) -> None:
        """Fill shares with counts and pseudo-counts over their sum by label; flat [worker, label, truth]."""
        labels, truths = INDEX(fixed if fixed > 0 else size[0]), INDEX(fixed if fixed > 0 else size[1])
        inverse = np.empty(truths)
        for row in range(INDEX(0), INDEX(len(counts)), labels * truths):
            for truth in range(truths):
                inverse[truth] = 0.0
            for label in range(labels):
                for truth in range(truths):
                    cell = label * truths + truth
                    count = counts[row + cell] + pseudo[cell]
                    shares[row + cell] = count
                    inverse[truth] += count
            for truth in range(truths):
                inverse[truth] = 1 / inverse[truth]
            for label in range(labels):
                for truth in range(truths):
                    shares[row + label * truths + truth] *= inverse[truth]

    return share


@kernel(fastmath=FAST, error_model=NUMPY)
def logarithms(numbers: Any, least: Any, logs: Any) -> None:
    """Fill logs with the logarithms of numbers, or of the least, a normal number, where they are smaller; flat."""
    for at in range(len(numbers)):
        number = numbers[at]
        logs[at] = positive_log(number if number > least else least)
