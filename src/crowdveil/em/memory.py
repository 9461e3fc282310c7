"""How the memory of a fit is shared out between blocks at work, coded blocks that are kept, and posteriors."""

import math
import os
import tempfile
from dataclasses import dataclass
from threading import Lock
from typing import Any, NamedTuple, Self

import numpy as np
from numpy.typing import NDArray

from crowdveil.em.model import EStep, MemoryUse
from crowdveil.errors import SettingsError

NUMBER = 8
"""Bytes of a number."""
PER_REPORT, PER_PLAIN_REPORT, PER_PLAIN_LOOK = 16, 40, 56
"""Bytes that work on a block takes for each of its reports, by compiled code, and by numpy and scipy; and how much more
it takes these to look back at it for the table of workers."""
PER_TASK, PER_POSTERIOR, PER_CELL, PER_SHARE = 24, 32, 24, 24
"""And for each of its tasks, numbers of its posteriors and of its sums, and each worker of the crowd."""
KEPT_PER_CELL, KEPT_PER_WORKER = 48, 40
"""Bytes of what steps know of the crowd, beside blocks at work: for each number of its sums, and each worker."""
TOLD_PER_CELL, TOLD_PER_WORKER, TOLD_TABLES = 36, 128, 2
"""The same while the table of workers is made, and how often their confusions are held."""
PER_COUNTED = 24
"""Bytes that counting takes for each report of a block."""


class MemoryNeeds(NamedTuple):
    """What a fit has to hold.

    Attributes:
        reports, tasks: of its largest block.
        counted: most reports that are counted together, before there are blocks.
        blocks, all_tasks: how many there are.
        columns: numbers that are inferred of one task.
        workers, labels: how many there are, no label for numbers.
        counts: bytes of the counts of reports, by task and by worker.
        compiled: whether blocks are worked on by compiled code.
        extra: memory that the model needs beyond these.
    """

    reports: int
    tasks: int
    counted: int
    blocks: int
    all_tasks: int
    columns: int
    workers: int
    labels: int
    counts: int
    compiled: bool
    extra: MemoryUse

    @property
    def at_work(self) -> int:
        """Bytes that one thread needs to work on a block."""
        per_report = PER_REPORT if self.compiled else PER_PLAIN_REPORT
        per_task = PER_TASK + PER_POSTERIOR * self.columns
        of_crowd = PER_CELL * self.extra.statistics + PER_SHARE * self.workers
        return per_report * self.reports + per_task * self.tasks + of_crowd + self.extra.per_thread

    @property
    def posteriors(self) -> int:
        """Bytes of all posteriors."""
        return NUMBER * self.columns * self.all_tasks

    def working_set(self, threads: int) -> int:
        """Return the bytes that all takes which is neither posteriors nor kept from step to step.

        It is the largest of three: counting reports, steps in so many threads, and the table of workers in the end.
        """
        waiting = NUMBER * self.extra.statistics * min(2 * threads, self.blocks)
        steps = (
            threads * self.at_work + waiting + KEPT_PER_CELL * self.extra.statistics + KEPT_PER_WORKER * self.workers
        )
        of_worker = TOLD_PER_WORKER + TOLD_TABLES * NUMBER * self.labels**2
        look = 0 if self.compiled else PER_PLAIN_LOOK * self.reports
        end = self.at_work + look + TOLD_PER_CELL * self.extra.statistics + of_worker * self.workers
        return self.counts + max(PER_COUNTED * self.counted, self.extra.shared + max(steps, end))


@dataclass(frozen=True, slots=True)
class MemoryPlan:
    """What a fit may use.

    Attributes:
        threads: how many blocks are worked on at once.
        kept: bytes of coded blocks that may be kept from step to step.
        scratch: whether posteriors lie in a temporary file.
    """

    threads: int
    kept: float = math.inf
    scratch: bool = False

    @classmethod
    def for_limit(cls, memory: int | None, threads: int, load: MemoryNeeds) -> Self:
        """Share out so many bytes: to blocks at work first, then to posteriors, and what is left to coded blocks.

        Raises:
            TooLittleMemory: one block, with what is known of the crowd, does not fit.
        """
        if memory is None:
            return cls(threads)
        while threads > 1 and load.working_set(threads) > memory:
            threads -= 1
        left = memory - load.working_set(threads)
        if left < 0:
            raise TooLittleMemory(load.working_set(1), memory)
        scratch = load.posteriors > left
        return cls(threads, left - (0 if scratch else load.posteriors), scratch)


class TooLittleMemory(SettingsError):
    """A limit below what a fit takes when it holds no more than one block.

    Args:
        least: bytes that would be enough.
        memory: the limit.
    """

    def __init__(self, least: int, memory: int) -> None:
        self.least = least
        super().__init__(
            f"memory must be at least {least:,} bytes, which one block of these reports and what is known of the crowd "
            "take",
            value=memory,
            hint="Raise the limit.",
        )


class PosteriorStore:
    """Last posterior of each block with its interval and task parameters, kept in arrays of all tasks.

    The arrays are in memory, or in temporary files that disappear with their last reader.

    Args:
        tasks: number of all tasks; None if only some blocks are stored, each in arrays of its own.
        scratch: whether to use temporary files.
    """

    def __init__(self, tasks: int | None, *, scratch: bool) -> None:
        self._tasks, self._make = tasks, scratch_array if scratch else np.empty
        self._held: dict[int, tuple[int, EStep[Any]]] = {}
        self._arrays: dict[int, list[NDArray[np.float64]]] = {}
        self._lock = Lock()

    def get(self, first: int, step: int) -> EStep[Any] | None:
        """Return the result of a step for the block that starts at task `first`; None if its last step was another."""
        number, found = self._held.get(first, (0, None))
        return found if number == step else None

    def pop(self, first: int, step: int) -> EStep[Any] | None:
        """Return the same and forget it, so that it may be overwritten.

        A caller that fails afterwards leaves nothing that could be mistaken for the posterior of a step.
        """
        number, found = self._held.pop(first, (0, None))
        return found if number == step else None

    def store(self, first: int, step: int, found: EStep[Any]) -> None:
        """Store the result of a step for the block that starts at task `first`, in place of any earlier one."""
        self._held[first] = step, self._copied(first, found)

    def assemble(self) -> EStep[Any]:
        """Return the stored results of all blocks as one; the blocks must cover the tasks."""
        held = next(iter(self._held.values()))[1]
        return _with_columns(held, self._arrays[0])

    def _copied(self, first: int, found: EStep[Any]) -> EStep[Any]:
        """Copy the columns of a block to their rows of the arrays; return the result with these."""
        columns = _columns(found)
        begin, rows = (0, len(found.posterior)) if self._tasks is None else (first, self._tasks)
        with self._lock:
            key = first - begin
            if key not in self._arrays:
                self._arrays[key] = [self._make((rows, *column.shape[1:])) for column in columns]
        own = [array[begin : begin + len(found.posterior)] for array in self._arrays[key]]
        for target, column in zip(own, columns, strict=True):
            if not np.may_share_memory(target, column):
                target[...] = column
        return _with_columns(found, own)


def _columns(found: EStep[Any]) -> list[NDArray[np.float64]]:
    """Return the arrays of a result that are indexed by task."""
    return [column for column in (found.posterior, found.interval, found.task_parameters) if column is not None]


def _with_columns(found: EStep[Any], columns: list[NDArray[np.float64]]) -> EStep[Any]:
    """Return a result without statistics whose arrays by task are replaced by others."""
    rest = iter(columns[1:])
    interval = None if found.interval is None else next(rest)
    own = None if found.task_parameters is None else next(rest)
    return EStep(None, columns[0], interval=interval, task_parameters=own)


def scratch_array(shape: tuple[int, ...]) -> NDArray[np.float64]:
    """Return numbers that lie in a file without a name, in the folder for temporary files.

    Raises:
        SettingsError: the system has no place for it there.
    """
    size = NUMBER * math.prod(shape)
    try:
        with tempfile.TemporaryFile(prefix="crowdveil-") as file:
            # Reserved now: a disk that is full later would end the process by a signal.
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
