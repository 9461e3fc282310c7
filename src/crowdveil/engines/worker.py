"""Worker side of a distributed fit: E-steps on single blocks, with a cache per fit.

The cache may be lost at any time. Every task carries the data to rebuild it, so results do not depend on
failures.
"""

from collections import OrderedDict
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass, replace
from functools import partial
from threading import Lock
from typing import Any

from crowdveil.em.executor import BlockWorker, Step
from crowdveil.em.model import EStep
from crowdveil.engines.serialization import FitContext, Payload, ReceivedBlocks, load_context, load_parameters

MAX_CACHED_FITS = 4
"""Fits cached by one process; several drivers may share its workers."""
MAX_CACHED_STEPS = 2
"""Steps cached per fit: the current one and the one before."""
_CACHES: OrderedDict[str, "WorkerCache"] = OrderedDict()
_LOCK = Lock()


@dataclass(frozen=True, slots=True, kw_only=True)
class BlockTask:
    """Request for one block in one step.

    Attributes:
        fit_id: unique name of the fit.
        index: number of the block, from 0.
        step: number of the step, from 1.
        context: constants of the fit.
        parameters: parameters of this step.
        previous: parameters of the step before; None in the first.
        block: the reports; None if they are read from a folder.
    """

    fit_id: str
    index: int
    step: int
    context: Payload
    parameters: Payload
    previous: Payload | None
    block: Payload | None


class WorkerCache:
    """Coded blocks, posteriors and parameters that a process keeps of one fit."""

    def __init__(self, context: FitContext) -> None:
        work = context.work
        self.received = ReceivedBlocks()
        rows = self.received if context.folder is None else context.folder.open()
        self.block_worker = BlockWorker(replace(work, blocks=replace(work.blocks, rows=rows)), context.plan, part=True)
        self._steps: OrderedDict[int, Step[Any, Any]] = OrderedDict()
        self._lock = Lock()

    def step(self, number: int, parameters: Payload) -> Step[Any, Any]:
        """Return a step with its parameters loaded and prepared once."""
        work = self.block_worker.work
        with self._lock:
            if number not in self._steps:
                step = Step(work.model, number, load_parameters(parameters.value, work.initial))
                step.ready  # noqa: B018  prepared once, before threads ask for it
                self._steps[number] = step
                while len(self._steps) > MAX_CACHED_STEPS:
                    self._steps.popitem(last=False)
            return self._steps[number]


def run_step(task: BlockTask) -> tuple[Any, float]:
    """Return the statistics of a block in a step."""
    with _acquire_cache(task) as (cache, step):
        previous = None if task.previous is None else partial(cache.step, task.step - 1, task.previous)
        return cache.block_worker.step(task.index, step, previous)


def read_posterior(task: BlockTask) -> EStep[Any]:
    """Return the posterior of a block after its last step."""
    with _acquire_cache(task) as (cache, step):
        return cache.block_worker.result(task.index, step)


@contextmanager
def _acquire_cache(task: BlockTask) -> Iterator[tuple[WorkerCache, Step[Any, Any]]]:
    """Give the cache of a task's fit, holding the task's payloads, and the step."""
    with _LOCK:
        cache = _CACHES.pop(task.fit_id, None) or WorkerCache(load_context(task.context.value))
        _CACHES[task.fit_id] = cache
        while len(_CACHES) > MAX_CACHED_FITS:
            _CACHES.popitem(last=False)
    first = cache.block_worker.work.blocks.ranges[task.index][0]
    if task.block is not None:
        cache.received.payloads[first] = task.block
    try:
        yield cache, cache.step(task.step, task.parameters)
    finally:
        cache.received.payloads.pop(first, None)


def drop_cache(fit_id: str) -> None:
    """Remove the cache of a fit that has ended."""
    with _LOCK:
        _CACHES.pop(fit_id, None)
