"""Driver side of a distributed fit: block tasks for other processes, and assembly of their results."""

import pickle
from collections.abc import Iterable, Iterator
from dataclasses import replace
from typing import Any, Protocol
from uuid import uuid4

from crowdveil.em.executor import FitTask, Step
from crowdveil.em.memory import MemoryPlan, PosteriorStore
from crowdveil.em.model import EStep, GoldBlock
from crowdveil.engines.serialization import (
    PROTOCOL,
    FitContext,
    Payload,
    ReceivedBlocks,
    StoredFolder,
    dump_context,
    dump_parameters,
)
from crowdveil.engines.worker import BlockTask


class Transport(Protocol):
    """Transfer of bytes from the driver to an engine's processes."""

    def send(self, data: bytes) -> Payload:
        """Return a payload that every process can read."""
        ...

    def discard(self, payload: Payload) -> None:
        """Release a payload that is no longer read."""
        ...


class FitDriver:
    """Block tasks of one fit.

    Args:
        work: the fit.
        transport: transfer of payloads to the processes.
        memory: limit of each process, in bytes; None for no limit.

    Raises:
        SettingsError: the limit is too small for one block.
    """

    def __init__(self, work: FitTask[Any, Any], transport: Transport, memory: int | None) -> None:
        self.work, self.fit_id, self._transport = work, uuid4().hex, transport
        folder, plan = StoredFolder.of(work.blocks.rows), MemoryPlan.for_limit(memory, 1, work.needs)
        self._posteriors = PosteriorStore(work.needs.all_tasks, scratch=plan.scratch)
        without_rows = replace(work, blocks=replace(work.blocks, rows=ReceivedBlocks()))
        self._context = transport.send(dump_context(FitContext(without_rows, folder, plan)))
        sent = () if folder is not None else map(work.blocks.rows.block, *zip(*work.blocks.ranges, strict=True))
        self._blocks = [transport.send(pickle.dumps(block, PROTOCOL)) for block in sent]
        self._step = 0
        self._parameters: list[Payload] = []

    @property
    def indices(self) -> range:
        """Numbers of all blocks."""
        return range(len(self.work.blocks))

    def begin_step(self, step: Step[Any, Any]) -> None:
        """Send the parameters of a step; those of the step before stay available."""
        self._step = step.number
        self._parameters.append(self._transport.send(dump_parameters(step.parameters, self.work.initial)))
        if len(self._parameters) > 2:
            self._transport.discard(self._parameters.pop(0))

    def task(self, index: int) -> BlockTask:
        """Return the task of a block in the current step."""
        return BlockTask(
            fit_id=self.fit_id,
            index=index,
            step=self._step,
            context=self._context,
            parameters=self._parameters[-1],
            previous=self._parameters[0] if len(self._parameters) > 1 else None,
            block=self._blocks[index] if self._blocks else None,
        )

    def assemble(self, posteriors: Iterable[EStep[Any]]) -> EStep[Any]:
        """Return the posterior of all tasks from those of the blocks, given in order."""
        for (first, _), part in zip(self.work.blocks.ranges, posteriors, strict=True):
            self._posteriors.store(first, self._step, part)
        return self._posteriors.assemble()

    def blocks(self) -> Iterator[GoldBlock]:
        """Yield every block in this process."""
        return iter(self.work.blocks)
