"""The order of rows within a task: workers ascend, and one comes again only where repeated pairs were kept."""

import numpy as np
from numpy.typing import NDArray

from crowdveil.errors import SettingsError


def workers_ascend(worker: NDArray[np.integer], starts: NDArray[np.integer], *, repeats: bool) -> bool:
    """Return whether workers ascend within every task.

    Args:
        worker: codes of contiguous rows, shape (rows,).
        starts: rows at which a later task begins, each in 1 .. rows - 1.
        repeats: whether a worker may have several rows on a task.
    """
    follows = worker[1:] >= worker[:-1] if repeats else worker[1:] > worker[:-1]
    follows[starts - 1] = True
    return bool(follows.all())


class PairsWritten:
    """(task, worker) pairs that are written, part after part.

    Attributes:
        repeats: whether a pair came again.
    """

    def __init__(self) -> None:
        self.repeats = False
        self._last: tuple[int, int] | None = None

    def add(self, task: NDArray[np.integer], worker: NDArray[np.integer]) -> None:
        """Take the pairs of a part that is not empty.

        Raises:
            SettingsError: workers do not ascend within a task.
        """
        same, first = task[1:] == task[:-1], (int(task[0]), int(worker[0]))
        unordered = bool((same & (worker[1:] < worker[:-1])).any())
        if self._last is not None and self._last[0] == first[0]:
            unordered |= first < self._last
            self.repeats |= first == self._last
        if unordered:
            raise SettingsError("parts must be written in the order of workers within a task", value=first)
        self.repeats |= bool((same & (worker[1:] == worker[:-1])).any())
        self._last = int(task[-1]), int(worker[-1])
