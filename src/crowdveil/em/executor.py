"""What a fit works on, block by block; and one process's part of it.

Blocks are ranges of tasks that follow from the reports alone: never from memory, threads or engines, so that the sums
of all blocks, merged in their order, are the same numbers wherever they were worked out.
"""

from collections.abc import Callable, Iterator
from contextlib import AbstractContextManager
from dataclasses import dataclass, replace
from functools import cached_property
from threading import Lock
from typing import Any, Generic, NamedTuple, Protocol

import numpy as np

from crowdveil.data.blocks import Block
from crowdveil.em.gold import Gold
from crowdveil.em.kernels import encode
from crowdveil.em.memory import MemoryNeeds, MemoryPlan, Posterior, PosteriorStore
from crowdveil.em.model import EStep, GoldBlock, Model, P, S, Summary


class Source(Protocol):
    """Where blocks of reports are read from."""

    def block(self, first: int, stop: int) -> Block:
        """Return the tasks first .. stop-1 with their reports; costs no more than these."""
        ...


@dataclass(frozen=True, eq=False)
class Blocks:
    """All blocks of a fit, each made when it is asked for.

    Attributes:
        summary: counts of the reports.
        rows: where they are read from.
        ranges: first task of each block and the task after its last, in order.
        gold: known truths.
        compiled: whether blocks are worked on by compiled code.
    """

    summary: Summary
    rows: Source
    ranges: tuple[tuple[int, int], ...]
    gold: Gold
    compiled: bool

    def __len__(self) -> int:
        """Number of blocks."""
        return len(self.ranges)

    def __getitem__(self, index: int) -> GoldBlock:
        """Return a block as models read it; its coded form is worked out when it is first used."""
        first, stop = self.ranges[index]
        block = self.rows.block(first, stop)
        alphabet = self.summary.alphabet
        points = None if alphabet is None else alphabet.values
        coded = encode(block, self.summary.workers, self.summary.symbols, points, compiled=self.compiled)
        return GoldBlock(block, self.gold.of(first, stop), coded)

    def __iter__(self) -> Iterator[GoldBlock]:
        """Make one block after the other."""
        return map(self.__getitem__, range(len(self)))


@dataclass(frozen=True, eq=False)
class FitTask(Generic[P, S]):
    """All that stays the same throughout a fit.

    Attributes:
        model: what is fitted.
        first: the parameters that the fit begins with.
        blocks: what it is fitted to.
        load: what all this takes.
        memory: limit in bytes; None for none.
    """

    model: Model[P, S]
    first: P
    blocks: Blocks
    load: MemoryNeeds
    memory: int | None


@dataclass(frozen=True, eq=False)
class Step(Generic[P, S]):
    """One step of a fit: its number, from 1, and the parameters that it begins with."""

    model: Model[P, S]
    number: int
    parameters: P

    @cached_property
    def ready(self) -> P:
        """The parameters with whatever all blocks share."""
        return self.model.prepare(self.parameters)


class Part(NamedTuple, Generic[S]):
    """What a step made of a block: its sums, and the largest change of a posterior (infinite in the first step)."""

    statistics: S
    moved: float


class ActiveExecutor(Protocol[P, S]):
    """Whoever works on the blocks of one fit."""

    def map(self, step: Step[P, S]) -> Iterator[Part[S]]:
        """Yield what a step makes of each block, in the order of blocks."""
        ...

    def collect(self) -> Posterior:
        """Return the posteriors of the last step, of all tasks in order."""
        ...

    def blocks(self) -> Iterator[GoldBlock]:
        """Yield every block, in order, in this process."""
        ...


class Engine(Protocol):
    """Where blocks are worked on."""

    def open(self, work: FitTask[Any, Any]) -> AbstractContextManager[ActiveExecutor[Any, Any]]:
        """Give a crew for a fit; it is dismissed at the end of the context.

        Raises:
            SettingsError: too little memory.
            EngineError: the engine cannot be reached, or is not installed.
        """
        ...


class Bench(Generic[P, S]):
    """One process's part of a fit: coded blocks, as far as there is room to keep them, and the last posteriors.

    Args:
        work: the fit.
        room: for it.
        part: whether other processes have other blocks.
    """

    def __init__(self, work: FitTask[P, S], room: MemoryPlan, *, part: bool = False) -> None:
        self.work, self._left = work, room.kept
        self.posteriors = PosteriorStore(None if part else work.load.all_tasks, scratch=room.scratch)
        self._kept: dict[int, tuple[GoldBlock, int]] = {}
        self._lock = Lock()

    def found(self, index: int, step: Step[P, S]) -> Posterior:
        """Return the posterior of a block's last step; if it was lost, it is worked out from that step again."""
        held = self.posteriors.get(self.work.blocks.ranges[index][0], step.number)
        if held is not None:
            return held
        expected = self.work.model.e_step(self._take(index), step.ready)
        return Posterior(expected.posterior, expected.interval)

    def step(self, index: int, step: Step[P, S], before: Callable[[], Step[P, S]] | None = None) -> Part[S]:
        """Return what a step makes of a block.

        Args:
            index: which block.
            step: the step.
            before: gives the step before; it is asked for if the block's posterior was lost.
        """
        model, first = self.work.model, self.work.blocks.ranges[index][0]
        block = self._take(index)
        old = self.posteriors.take(first, step.number - 1)
        if old is None and step.number > 1 and before is not None:
            old = Posterior(model.e_step(block, before().ready).posterior, None)
        expected = model.e_step(block if old is None else replace(block, before=old.posterior), step.ready)
        moved = np.inf if old is None else _moved(block, expected, old)
        self.posteriors.put(first, step.number, Posterior(expected.posterior, expected.interval))
        self._lay_back(index, block)
        return Part(expected.statistics, moved)

    def blocks(self) -> Iterator[GoldBlock]:
        """Yield every block, in order."""
        return map(self._take, range(len(self.work.blocks)))

    def _take(self, index: int) -> GoldBlock:
        kept = self._kept.get(index)
        return self.work.blocks[index] if kept is None else kept[0]

    def _lay_back(self, index: int, block: GoldBlock) -> None:
        """Keep the block for the next step if there is room; it may have grown."""
        if self._left == np.inf:
            self._kept[index] = (block, 0)
            return
        size = _bytes_held(block)
        with self._lock:
            before = self._kept.pop(index, (block, 0))[1]
            self._left += before
            if size <= self._left:
                self._left -= size
                self._kept[index] = (block, size)


def _moved(block: GoldBlock, expected: EStep[Any], old: Posterior) -> float:
    """Return the largest change of a posterior, which whoever wrote it over the old one has seen."""
    if expected.moved is not None:
        return expected.moved
    return block.coded.largest_change(expected.posterior, old.posterior)


def _bytes_held(block: GoldBlock) -> int:
    """Return the bytes that a block takes beside its columns, which lie in a file or belong to the reports."""
    return block.block.pointers.nbytes + block.gold.nbytes + _own_bytes(block.coded)


def _own_bytes(held: Any) -> int:
    """Return the bytes of all arrays that an object made for itself."""
    if isinstance(held, np.ndarray):
        # A view of an array counts too, one of a mapped file does not.
        owner = held if held.base is None else held.base
        return held.nbytes if isinstance(owner, np.ndarray) and owner.base is None else 0
    parts = held if isinstance(held, tuple) else getattr(held, "__dict__", {}).values()
    return sum(_own_bytes(part) for part in parts)
