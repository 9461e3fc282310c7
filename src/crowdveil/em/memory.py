"""Memory budget of a fit: working set, cache of encoded blocks, and posteriors in memory or in a temporary file.

The limit is on the memory that the fit adds to the process. It decides the number of threads, the cached blocks, and
the place of posteriors; results do not depend on it.
"""

import math
import os
import tempfile
from dataclasses import dataclass
from threading import Lock
from typing import Any, NamedTuple, Self

import numpy as np
from numpy.typing import NDArray

from crowdveil.display.counts import size_text
from crowdveil.em.model import EStep, MemoryUse
from crowdveil.errors import SettingsError

FLOAT_BYTES = 8
BYTES_PER_REPORT, NUMPY_BYTES_PER_REPORT = 24, 96
"""Upper bound of bytes allocated for a block per report, with compiled kernels and with numpy."""
BYTES_PER_COLUMN = 32
"""Upper bound of bytes allocated for a block per task and column of the posterior: four copies."""
BYTES_PER_STATISTIC = 24
"""Upper bound of bytes per number of the statistics: three copies in each thread, and six of the shared parameters."""
BYTES_PER_WORKER, CONFUSION_COPIES = 128, 2
"""Upper bound of bytes per worker of shared parameters and worker table, and number of extra confusion matrices."""


class MemoryNeeds(NamedTuple):
    """Sizes of a fit that its memory depends on.

    Attributes:
        reports, tasks: largest number in one block; reports are also counted in blocks before the fit.
        blocks, all_tasks: number of blocks and of tasks.
        columns: numbers that are stored per task.
        workers, labels: number of workers, and of labels (0 for numbers).
        counts: bytes of the report counts by task and by worker.
        compiled: whether compiled kernels are used.
        extra: memory that the model needs beyond these.
    """

    reports: int
    tasks: int
    blocks: int
    all_tasks: int
    columns: int
    workers: int
    labels: int
    counts: int
    compiled: bool
    extra: MemoryUse

    @property
    def bytes_per_thread(self) -> int:
        """Bytes that one thread needs to work on a block."""
        per_report = BYTES_PER_REPORT if self.compiled else NUMPY_BYTES_PER_REPORT
        posterior = BYTES_PER_COLUMN * (self.columns + 1) * self.tasks
        statistics = BYTES_PER_STATISTIC * (self.extra.statistics + self.workers)
        return per_report * self.reports + posterior + statistics + self.extra.per_thread

    @property
    def posterior_bytes(self) -> int:
        """Bytes of all posteriors."""
        return FLOAT_BYTES * self.columns * self.all_tasks

    def working_set_bytes(self, threads: int) -> int:
        """Return the bytes of a fit without posteriors and cached blocks."""
        unmerged = FLOAT_BYTES * self.extra.statistics * min(2 * threads, self.blocks)
        parameters = 2 * BYTES_PER_STATISTIC * self.extra.statistics
        table = (BYTES_PER_WORKER + CONFUSION_COPIES * FLOAT_BYTES * self.labels**2) * self.workers
        fit = self.extra.shared + threads * self.bytes_per_thread + unmerged + parameters + table
        return self.counts + max(fit, self.extra.preparation)


@dataclass(frozen=True, slots=True)
class MemoryPlan:
    """Use of the memory of one process.

    Attributes:
        threads: number of blocks processed at once.
        kept: bytes of encoded blocks that may be kept between steps.
        scratch: whether posteriors are stored in a temporary file.
    """

    threads: int
    kept: float = math.inf
    scratch: bool = False

    @classmethod
    def for_limit(cls, memory: int | None, threads: int, needs: MemoryNeeds) -> Self:
        """Return the plan for a limit in bytes, None for none: working set first, then posteriors, then the cache.

        Raises:
            TooLittleMemory: the working set of one thread does not fit.
        """
        if memory is None:
            return cls(threads)
        while threads > 1 and needs.working_set_bytes(threads) > memory:
            threads -= 1
        left = memory - needs.working_set_bytes(threads)
        if left < 0:
            raise TooLittleMemory(needs.working_set_bytes(1), memory)
        scratch = needs.posterior_bytes > left
        return cls(threads, left - (0 if scratch else needs.posterior_bytes), scratch)


class TooLittleMemory(SettingsError):
    """Memory limit below the working set of one thread.

    Args:
        least: smallest limit that is accepted, in bytes.
        memory: the limit.
    """

    def __init__(self, least: int, memory: int) -> None:
        self.least = least
        super().__init__(
            f"memory must be at least {size_text(least)} for one block of these reports and the parameters of all "
            f"workers, got {size_text(memory)}",
            value=memory,
            hint="Raise the limit.",
            value_in_rule=True,
        )


class PosteriorStore:
    """Last posterior of each block with its interval and task parameters, kept in arrays of all tasks.

    The arrays are in memory, or in temporary files that disappear with their last reader.

    Args:
        tasks: number of all tasks; None if only some blocks are stored, each in arrays of its own.
        scratch: whether to use temporary files.
    """

    def __init__(self, tasks: int | None, *, scratch: bool) -> None:
        self._tasks, self._make = tasks, temporary_file_array if scratch else np.empty
        self._held: dict[int, tuple[int, EStep[Any]]] = {}
        self._arrays: dict[int, list[NDArray[np.float64]]] = {}
        self._lock = Lock()

    def stored_step_of_block(self, first: int, step: int) -> EStep[Any] | None:
        """Return the result of a step for the block that starts at task `first`; None if its last step was another."""
        number, found = self._held.get(first, (0, None))
        return found if number == step else None

    def pop_block_step(self, first: int, step: int) -> EStep[Any] | None:
        """Return and remove the same, so that it may be overwritten.

        If the caller fails afterwards, no partly overwritten posterior is left in the store.
        """
        number, found = self._held.pop(first, (0, None))
        return found if number == step else None

    def store(self, first: int, step: int, found: EStep[Any]) -> None:
        """Store the result of a step for the block that starts at task `first`, in place of any earlier one."""
        self._held[first] = step, self._copied(first, found)

    def assemble_all_blocks(self) -> EStep[Any]:
        """Return the stored results of all blocks as one; the blocks must cover the tasks."""
        held = next(iter(self._held.values()))[1]
        return _with_task_arrays_replaced(held, self._arrays[0])

    def _copied(self, first: int, found: EStep[Any]) -> EStep[Any]:
        """Copy the columns of a block to their rows of the arrays; return the result with these."""
        columns = _arrays_indexed_by_task(found)
        begin, rows = (0, len(found.posterior)) if self._tasks is None else (first, self._tasks)
        with self._lock:
            key = first - begin
            if key not in self._arrays:
                self._arrays[key] = [self._make((rows, *column.shape[1:])) for column in columns]
        own = [array[begin : begin + len(found.posterior)] for array in self._arrays[key]]
        for target, column in zip(own, columns, strict=True):
            if not np.may_share_memory(target, column):
                target[...] = column
        return _with_task_arrays_replaced(found, own)


def _arrays_indexed_by_task(found: EStep[Any]) -> list[NDArray[np.float64]]:
    """Return the arrays of a result that are indexed by task."""
    return [column for column in (found.posterior, found.interval, found.task_parameters) if column is not None]


def _with_task_arrays_replaced(found: EStep[Any], columns: list[NDArray[np.float64]]) -> EStep[Any]:
    """Return a result without statistics whose arrays by task are replaced by others."""
    rest = iter(columns[1:])
    interval = None if found.interval is None else next(rest)
    own = None if found.task_parameters is None else next(rest)
    return EStep(None, columns[0], interval=interval, task_parameters=own)


def temporary_file_array(shape: tuple[int, ...]) -> NDArray[np.float64]:
    """Return an uninitialized array in an unnamed file of the folder for temporary files.

    Raises:
        SettingsError: the file cannot be made, or the disk is full.
    """
    size = FLOAT_BYTES * math.prod(shape)
    try:
        with tempfile.TemporaryFile(prefix="crowdveil-") as file:
            # Disk space is reserved now: writing to a mapped file on a full disk ends the process by a signal.
            if "posix_fallocate" in dir(os):
                os.posix_fallocate(file.fileno(), 0, size)
            file.truncate(size)
            mapped: Any = np.memmap(file, np.float64, "r+", shape=shape)
    except OSError as error:
        raise SettingsError(
            f"posteriors need {size:,} bytes in the folder for temporary files ({error})",
            value=tempfile.gettempdir(),
            hint="Set TMPDIR to a folder on a larger disk, or raise the memory limit.",
        ) from error
    return mapped.view(np.ndarray)
