"""The driver's side of a fit on other processes: orders for them, and what comes back."""

import pickle
from collections.abc import Iterable, Iterator
from dataclasses import replace
from typing import Any, Protocol
from uuid import uuid4

from crowdveil.em.executor import FitTask, Step
from crowdveil.em.memory import MemoryPlan, Posterior, PosteriorStore
from crowdveil.em.model import GoldBlock
from crowdveil.engines.serialization import PROTOCOL, FitContext, Folder, Payload, ReceivedBlocks, pack, pack_parameters
from crowdveil.engines.worker import BlockTask


class Transport(Protocol):
    """How an engine brings bytes to its processes."""

    def send(self, data: bytes, *, to_all: bool) -> Payload:
        """Return a letter that any process can open; `to_all` says that every process will."""
        ...

    def discard(self, letter: Payload) -> None:
        """Forget a letter that nobody will open any more."""
        ...


class Dispatch:
    """Makes the orders of one fit.

    Args:
        work: the work of the fit.
        post: how letters travel.
        memory: limit of each process, in bytes; None for none.

    Raises:
        SettingsError: the limit is below what one block takes.
    """

    def __init__(self, work: FitTask[Any, Any], post: Transport, memory: int | None) -> None:
        self.work, self.fit, self._post = work, uuid4().hex, post
        folder, room = Folder.of(work.blocks.rows), MemoryPlan.under(memory, 1, work.load)
        self._posteriors = PosteriorStore(work.load.all_tasks, scratch=room.scratch)
        without = replace(work, blocks=replace(work.blocks, rows=ReceivedBlocks()))
        self._parcel = post.send(pack(FitContext(without, folder, room)), to_all=True)
        shipped = () if folder is not None else map(work.blocks.rows.block, *zip(*work.blocks.ranges, strict=True))
        self._blocks = [post.send(pickle.dumps(block, PROTOCOL), to_all=False) for block in shipped]
        self._number = 0
        self._letters: list[Payload] = []

    @property
    def indices(self) -> range:
        """Numbers of all blocks."""
        return range(len(self.work.blocks))

    def begin(self, step: Step[Any, Any]) -> None:
        """Send the parameters of a step; those of the step before stay at hand."""
        self._number = step.number
        self._letters.append(self._post.send(pack_parameters(step.parameters, self.work.first), to_all=True))
        if len(self._letters) > 2:
            self._post.discard(self._letters.pop(0))

    def order(self, index: int) -> BlockTask:
        """Return the order for a block in the current step."""
        return BlockTask(
            fit=self.fit,
            index=index,
            number=self._number,
            parcel=self._parcel,
            now=self._letters[-1],
            before=self._letters[0] if len(self._letters) > 1 else None,
            block=self._blocks[index] if self._blocks else None,
        )

    def together(self, found: Iterable[Posterior]) -> Posterior:
        """Return the posteriors of all blocks, which come in order, as one."""
        for (first, _), part in zip(self.work.blocks.ranges, found, strict=True):
            self._posteriors.put(first, self._number, part)
        return self._posteriors.whole()

    def blocks(self) -> Iterator[GoldBlock]:
        """Yield every block in this process."""
        return iter(self.work.blocks)
