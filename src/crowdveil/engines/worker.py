"""Worker side of a distributed fit: E-steps on blocks, with a cache per fit.

The cache may be lost at any time. Every task carries the data to rebuild it, so results do not depend on
failures.
"""

from collections import OrderedDict
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import replace
from functools import partial
from threading import Lock
from typing import Any, NamedTuple

from crowdveil.em.executor import BlockWorker, Step
from crowdveil.em.model import EStep
from crowdveil.engines.serialization import FitContext, ReceivedBlocks, load_context, load_parameters

MAX_CACHED_FITS = 4
"""Fits cached by one process; several drivers may share its workers."""
MAX_CACHED_STEPS = 2
"""Steps cached per fit: the current one and the one before."""
_CACHES: OrderedDict[str, "WorkerCache"] = OrderedDict()
_LOCK = Lock()


class Bundle(NamedTuple):
    """Blocks that a worker processes in one step.

    Attributes:
        fit_id: unique name of the fit.
        step: number of the step, from 1.
        indices: numbers of the blocks, from 0.
    """

    fit_id: str
    step: int
    indices: list[int]


class WorkerCache:
    """Coded blocks, posteriors and parameters that a process keeps of one fit."""

    def __init__(self, context: FitContext) -> None:
        work = context.work
        self.received = ReceivedBlocks()
        rows = self.received if context.folder is None else context.folder.open()
        self.block_worker = BlockWorker(replace(work, blocks=replace(work.blocks, rows=rows)), context.plan, part=True)
        self._steps: OrderedDict[int, Step[Any, Any]] = OrderedDict()
        self._lock = Lock()

    def step(self, number: int, parameters: bytes) -> Step[Any, Any]:
        """Return a step with its parameters loaded and prepared once."""
        work = self.block_worker.work
        with self._lock:
            if number not in self._steps:
                step = Step(work.model, number, load_parameters(parameters, work.initial))
                step.ready  # noqa: B018  prepared once, before threads ask for it
                self._steps[number] = step
                while len(self._steps) > MAX_CACHED_STEPS:
                    self._steps.popitem(last=False)
            return self._steps[number]


def run_steps(
    bundle: Bundle, context: bytes, parameters: bytes, previous: bytes | None, blocks: list[bytes]
) -> list[tuple[Any, float]]:
    """Return the statistics of each block in a step.

    Args:
        bundle: the blocks.
        context: constants of the fit.
        parameters, previous: parameters of this step, and of the one before; None in the first.
        blocks: the pickled reports of each block; empty if they are read from a folder.
    """
    with _acquire_cache(bundle, context, blocks) as cache:
        step = cache.step(bundle.step, parameters)
        before = None if previous is None else partial(cache.step, bundle.step - 1, previous)
        return [cache.block_worker.step(index, step, before) for index in bundle.indices]


def read_posteriors(
    bundle: Bundle, context: bytes, parameters: bytes, previous: bytes | None, blocks: list[bytes]
) -> list[EStep[Any]]:
    """Return the posterior of each block after the last step; arguments as `run_steps`."""
    with _acquire_cache(bundle, context, blocks) as cache:
        step = cache.step(bundle.step, parameters)
        return [cache.block_worker.result(index, step) for index in bundle.indices]


@contextmanager
def _acquire_cache(bundle: Bundle, context: bytes, blocks: list[bytes]) -> Iterator[WorkerCache]:
    """Give the cache of a fit, which holds the reports of the blocks for this time."""
    with _LOCK:
        cache = _CACHES.pop(bundle.fit_id, None) or WorkerCache(load_context(context))
        _CACHES[bundle.fit_id] = cache
        while len(_CACHES) > MAX_CACHED_FITS:
            _CACHES.popitem(last=False)
    ranges = cache.block_worker.work.blocks.ranges
    firsts = [ranges[index][0] for index in bundle.indices] if blocks else []
    cache.received.payloads |= zip(firsts, blocks, strict=True)
    try:
        yield cache
    finally:
        for first in firsts:
            cache.received.payloads.pop(first, None)


def drop_cache(fit_id: str) -> None:
    """Remove the cache of a fit that has ended."""
    with _LOCK:
        _CACHES.pop(fit_id, None)
