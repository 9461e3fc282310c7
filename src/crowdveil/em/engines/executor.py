"""Executors of the E-step: blocks of a fit, the part of one process, and the default executor with threads.

Blocks are ranges of tasks that depend on the reports alone, not on memory, threads or executors. Their statistics are
merged in the order of blocks, so that sums are the same bits on every executor.
"""

from collections.abc import Callable, Iterator
from contextlib import AbstractContextManager, contextmanager
from dataclasses import dataclass, replace
from functools import cached_property, partial
from threading import Lock
from typing import Any, ClassVar, Generic, Protocol, final

import numpy as np

from crowdveil.answers.blocks import Block
from crowdveil.em.gold import Gold
from crowdveil.em.kernels.dispatch import encoded_block_for_kernels, parallel_map, thread_count
from crowdveil.em.kernels.numpy_backend import largest_change
from crowdveil.em.memory import MemoryNeeds, MemoryPlan, PosteriorStore
from crowdveil.em.model import EStep, GoldBlock, Model, P, S, Summary


class BlockSource(Protocol):
    """Reports that can be read block by block."""

    def block(self, first: int, stop: int) -> Block:
        """Return the tasks first .. stop-1 with their reports; reads no others."""
        ...


@dataclass(frozen=True, eq=False)
class Blocks:
    """All blocks of a fit, created on request.

    Attributes:
        summary: counts of the reports.
        rows: source of the reports.
        ranges: first task of each block and the task after its last, in order.
        gold: known truths.
        compiled: whether compiled kernels are used.
    """

    summary: Summary
    rows: BlockSource
    ranges: tuple[tuple[int, int], ...]
    gold: Gold
    compiled: bool

    def __len__(self) -> int:
        """Number of blocks."""
        return len(self.ranges)

    def __getitem__(self, index: int) -> GoldBlock:
        """Return a block; its coded form is computed on first use."""
        first, stop = self.ranges[index]
        block = self.rows.block(first, stop)
        alphabet = self.summary.alphabet
        points = None if alphabet is None else alphabet.values
        coded = encoded_block_for_kernels(
            block, self.summary.workers, self.summary.symbols, points, compiled=self.compiled
        )
        if self.summary.copies is not None:
            coded = replace(coded, weights=self.summary.copies.weights(block))
        return GoldBlock(block, self.gold.truths_of_tasks(first, stop), coded)

    def __iter__(self) -> Iterator[GoldBlock]:
        """Yield one block after the other."""
        return map(self.__getitem__, range(len(self)))


@dataclass(frozen=True, eq=False)
class FitTask(Generic[P, S]):
    """Constants of a fit.

    Attributes:
        model: the model that is fitted.
        initial: initial parameters.
        blocks: the data.
        needs: memory that the fit needs.
        memory: limit in bytes; None for none.
    """

    model: Model[P, S]
    initial: P
    blocks: Blocks
    needs: MemoryNeeds
    memory: int | None


@dataclass(frozen=True, eq=False)
class Step(Generic[P, S]):
    """One step of a fit: its number, from 1, and its parameters."""

    model: Model[P, S]
    number: int
    parameters: P

    @cached_property
    def precomputed_parameters(self) -> P:
        """The parameters with the cached values that all blocks share."""
        return self.model.precompute(self.parameters)


class ActiveExecutor(Protocol[P, S]):
    """Executor that is open for one fit."""

    def map(self, step: Step[P, S]) -> Iterator[tuple[S, float]]:
        """Yield each block's statistics and largest change of a posterior (infinite in the first step), in order."""
        ...

    def collect_last_step(self) -> EStep[Any]:
        """Return posterior, interval and task parameters of the last step, of all tasks in order."""
        ...

    def blocks(self) -> Iterator[GoldBlock]:
        """Yield every block, in order, in this process."""
        ...


class Engine(Protocol):
    """Factory of executors."""

    def open(self, work: FitTask[Any, Any]) -> AbstractContextManager[ActiveExecutor[Any, Any]]:
        """Return an executor for a fit; the end of the context closes it.

        Raises:
            SettingsError: too little memory.
            EngineError: the engine cannot be reached, or is not installed.
        """
        ...


class BlockWorker(Generic[P, S]):
    """Part of a fit in one process: cached blocks, as far as memory allows, and the last posteriors.

    Args:
        work: the fit.
        plan: memory that may be used.
        part: True if other processes have other blocks.
    """

    def __init__(self, work: FitTask[P, S], plan: MemoryPlan, *, part: bool = False) -> None:
        self.work, self._free = work, plan.kept
        self.posteriors = PosteriorStore(None if part else work.needs.all_tasks, scratch=plan.scratch)
        self._cache: dict[int, tuple[GoldBlock, int]] = {}
        self._lock = Lock()

    def run_step_on_block(
        self, index: int, step: Step[P, S], before: Callable[[], Step[P, S]] | None = None
    ) -> tuple[S, float]:
        """Return the statistics of a block and the largest change of its posterior and of its task parameters.

        Args:
            index: number of the block.
            step: the step.
            before: returns the previous step; called if the block's posterior was lost.
        """
        model, first = self.work.model, self.work.blocks.ranges[index][0]
        block = self._cached_else_stored_block(index)
        old = self.posteriors.pop_block_step(first, step.number - 1)
        if old is None and step.number > 1 and before is not None:
            old = model.e_step(block, before().precomputed_parameters)
        found = model.e_step(
            block if old is None else replace(block, before=old.posterior), step.precomputed_parameters
        )
        change = np.inf if old is None else found.change
        if change is None:
            assert old is not None
            change = largest_change(found.posterior, old.posterior)
        if old is not None and found.task_parameters is not None:
            assert old.task_parameters is not None
            change = max(change, float(np.abs(found.task_parameters - old.task_parameters).max(initial=0)))
        self.posteriors.store(first, step.number, found)
        self._cache_block_if_memory_allows(index, block)
        return found.statistics, change

    def last_block_result(self, index: int, step: Step[P, S]) -> EStep[Any]:
        """Return the last step's result for a block, without statistics; it is computed again if it was lost."""
        held = self.posteriors.stored_step_of_block(self.work.blocks.ranges[index][0], step.number)
        if held is not None:
            return held
        found: EStep[Any] = self.work.model.e_step(self._cached_else_stored_block(index), step.precomputed_parameters)
        return found._replace(statistics=None)

    def blocks(self) -> Iterator[GoldBlock]:
        """Yield every block, in order."""
        return map(self._cached_else_stored_block, range(len(self.work.blocks)))

    def _cached_else_stored_block(self, index: int) -> GoldBlock:
        cached = self._cache.get(index)
        return self.work.blocks[index] if cached is None else cached[0]

    def _cache_block_if_memory_allows(self, index: int, block: GoldBlock) -> None:
        """Cache the block for the next step if memory allows; its coded form may have grown."""
        if self._free == np.inf:
            self._cache[index] = (block, 0)
            return
        size = _bytes_besides_columns(block)
        with self._lock:
            before = self._cache.pop(index, (block, 0))[1]
            self._free += before
            if size <= self._free:
                self._free -= size
                self._cache[index] = (block, size)


def _bytes_besides_columns(block: GoldBlock) -> int:
    """Return the bytes of a block without its columns, which are in a file or belong to the reports."""
    return block.block.pointers.nbytes + block.gold.nbytes + _allocated_bytes(block.coded)


def _allocated_bytes(held: Any) -> int:
    """Return the bytes of all arrays that an object allocated itself."""
    if isinstance(held, np.ndarray):
        # A view of an array counts too, one of a mapped file does not.
        owner = held if held.base is None else held.base
        return held.nbytes if isinstance(owner, np.ndarray) and owner.base is None else 0
    parts = held if isinstance(held, tuple) else getattr(held, "__dict__", {}).values()
    return sum(_allocated_bytes(part) for part in parts)


@final
@dataclass(frozen=True, slots=True)
class Threads:
    """Threads of this process: `CROWDVEIL_THREADS` of them, or one per free core; one if blocks are small."""

    name: ClassVar[str] = "threads"

    @contextmanager
    def open(self, work: FitTask[Any, Any]) -> Iterator[ActiveExecutor[Any, Any]]:
        """Return the running threads as an executor; the end of the context stops them."""
        threads = min(thread_count(), len(work.blocks)) if work.blocks.compiled else 1
        plan = MemoryPlan.for_limit(work.memory, threads, work.needs)
        with parallel_map(plan.threads) as each:
            yield _ThreadExecutor(BlockWorker(work, plan), each)


@dataclass(frozen=True, slots=True)
class _ThreadExecutor(Generic[P, S]):
    worker: BlockWorker[P, S]
    each: Any

    def map(self, step: Step[P, S]) -> Iterator[tuple[S, float]]:
        step.precomputed_parameters  # noqa: B018  computed once, before threads need it
        indices = range(len(self.worker.work.blocks))
        parts: Iterator[tuple[S, float]] = iter(self.each(partial(self.worker.run_step_on_block, step=step), indices))
        return parts

    def collect_last_step(self) -> EStep[Any]:
        return self.worker.posteriors.assemble_all_blocks()

    def blocks(self) -> Iterator[GoldBlock]:
        return self.worker.blocks()
