"""How steeply the likelihood of reports climbs with the ability of those who sent them, compiled."""

from functools import cache
from typing import Any

from crowdveil.compiling.kernel import kernel
from crowdveil.estimators.kernels.loops.layout import INDEX
from crowdveil.estimators.kernels.loops.prefetch import AHEAD, ask_for
from crowdveil.estimators.kernels.loops.softmax import FAST


@cache
def squares_of_slopes(fixed: int) -> Any:
    """Return the compiled sums for that number of labels, 0 for any."""

    @kernel(fastmath=FAST)
    def add_up(columns: Any, posterior: Any, rows: Any, labels: Any, first: Any, stop: Any, squares: Any) -> None:
        """Add the squared slopes of the reports on tasks first .. stop-1 to `squares`, shape (workers,).

        Args:
            columns: where each task's reports begin, and worker and label of each report.
            posterior: flat [task, label].
            rows: what each label takes from the slope if it is the truth, and what it adds to that if it is the
                report too; flat [worker, 2, label].
            labels: how many there are.
        """
        pointers, worker, label = columns
        width, last = INDEX(fixed if fixed > 0 else labels), INDEX(len(worker) - 1)
        for task in range(INDEX(first), INDEX(stop)):
            own = task * width
            for report in range(INDEX(pointers[task]), INDEX(pointers[task + INDEX(1)])):
                ask_for(rows, INDEX(worker[min(report + INDEX(AHEAD), last)]) * INDEX(2) * width)
                row, said = INDEX(worker[report]) * INDEX(2) * width, INDEX(label[report])
                slope = posterior[own + said] * rows[row + width + said]
                for k in range(width):
                    slope -= posterior[own + k] * rows[row + k]
                squares[INDEX(worker[report])] += slope * slope

    return add_up
