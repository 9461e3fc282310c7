"""Worker side of a distributed fit: E-steps on blocks, with a cache per fit.

The cache may be lost at any time. Every task carries the data to rebuild it, so results do not depend on
failures.
"""

from collections import OrderedDict
from functools import partial
from threading import Lock
from typing import Any, NamedTuple

from crowdveil.em.executor import BlockWorker, Step
from crowdveil.em.model import EStep
from crowdveil.engines.serialization import FitContext, load_context, load_parameters

MAX_CACHED_FITS = 4
"""Fits cached by one process; several drivers may share its workers."""
MAX_CACHED_STEPS = 2
"""Steps cached per fit: the current one and the one before."""
_CACHES: OrderedDict[str, "WorkerCache"] = OrderedDict()
_LOCK = Lock()


class BlockStep(NamedTuple):
    """One block in one step.

    Attributes:
        fit_id: unique name of the fit.
        step: number of the step, from 1.
        block: number of the block, from 0.
    """

    fit_id: str
    step: int
    block: int


class WorkerCache:
    """Coded blocks, posteriors and parameters that a process keeps of one fit."""

    def __init__(self, context: FitContext) -> None:
        self.block_worker = BlockWorker(context.work, context.plan, part=True)
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


def run_step(at: BlockStep, context: bytes, parameters: bytes, previous: bytes | None) -> tuple[Any, float]:
    """Return the statistics of a block in a step.

    Args:
        at: the block and the step.
        context: constants of the fit.
        parameters, previous: parameters of this step, and of the one before; None in the first.
    """
    cache = _cache_of(at, context)
    before = None if previous is None else partial(cache.step, at.step - 1, previous)
    return cache.block_worker.step(at.block, cache.step(at.step, parameters), before)


def read_posterior(at: BlockStep, context: bytes, parameters: bytes, previous: bytes | None) -> EStep[Any]:
    """Return the posterior of a block after the last step; arguments as `run_step`."""
    cache = _cache_of(at, context)
    return cache.block_worker.result(at.block, cache.step(at.step, parameters))


def _cache_of(at: BlockStep, context: bytes) -> WorkerCache:
    """Return the cache of a fit, made anew if it was lost."""
    with _LOCK:
        cache = _CACHES.pop(at.fit_id, None) or WorkerCache(load_context(context))
        _CACHES[at.fit_id] = cache
        while len(_CACHES) > MAX_CACHED_FITS:
            _CACHES.popitem(last=False)
        return cache


def drop_cache(fit_id: str) -> None:
    """Remove the cache of a fit that has ended."""
    with _LOCK:
        _CACHES.pop(fit_id, None)
