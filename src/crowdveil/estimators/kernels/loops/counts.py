"""Counts by worker and symbol, compiled."""

from typing import Any

from crowdveil.compiling.kernel import kernel
from crowdveil.estimators.kernels.loops.layout import INDEX


@kernel()
def count_cells(worker: Any, symbol: Any, symbols: Any, counts: Any) -> None:
    """Add one to counts, flat [worker, symbol], for each report."""
    wide = INDEX(symbols)
    for report in range(INDEX(len(worker))):
        counts[INDEX(worker[report]) * wide + INDEX(symbol[report])] += 1.0
