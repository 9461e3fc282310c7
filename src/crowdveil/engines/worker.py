"""What a process of an engine does: it keeps a desk for each fit, and works on the blocks that it is asked for.

A desk is only a memory. A process that was started in the place of another has none; whatever it lacks it finds in the
letters of the order, so that nobody's death changes a number.
"""

from collections import OrderedDict
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass, replace
from functools import partial
from threading import Lock
from typing import Any

from crowdveil.em.executor import Bench, Part, Step
from crowdveil.em.memory import Posterior
from crowdveil.engines.serialization import FitContext, Payload, ReceivedBlocks, unpack, unpack_parameters

MOST_DESKS = 4
"""Fits that a process remembers at once: others may use the same workers."""
STEPS_KEPT = 2
_DESKS: OrderedDict[str, "WorkerCache"] = OrderedDict()
_LOCK = Lock()


@dataclass(frozen=True, slots=True, kw_only=True)
class BlockTask:
    """A block to work on.

    Attributes:
        fit: names the fit.
        index: which block.
        number: which step.
        parcel: the constants of the fit.
        now, before: the parameters of this step and of the one before; None in the first.
        block: the reports, where they are in no folder.
    """

    fit: str
    index: int
    number: int
    parcel: Payload
    now: Payload
    before: Payload | None
    block: Payload | None


class WorkerCache:
    """What a process remembers of a fit."""

    def __init__(self, parcel: FitContext) -> None:
        work = parcel.work
        self.sent = ReceivedBlocks()
        rows = self.sent if parcel.folder is None else parcel.folder.open()
        self.bench = Bench(replace(work, blocks=replace(work.blocks, rows=rows)), parcel.room, part=True)
        self._steps: OrderedDict[int, Step[Any, Any]] = OrderedDict()
        self._lock = Lock()

    def step(self, number: int, letter: Payload) -> Step[Any, Any]:
        """Return a step, its parameters made ready once."""
        work = self.bench.work
        with self._lock:
            if number not in self._steps:
                step = Step(work.model, number, unpack_parameters(letter.value, work.first))
                step.ready  # noqa: B018  worked out once, before threads ask for it
                self._steps[number] = step
                while len(self._steps) > STEPS_KEPT:
                    self._steps.popitem(last=False)
            return self._steps[number]


def work_on(order: BlockTask) -> Part[Any]:
    """Return what a step makes of a block."""
    with acquire_cache(order) as (desk, step):
        letter = order.before
        before = None if letter is None else partial(desk.step, order.number - 1, letter)
        return desk.bench.step(order.index, step, before)


def report(order: BlockTask) -> Posterior:
    """Return the posterior of a block after its last step."""
    with acquire_cache(order) as (desk, step):
        return desk.bench.found(order.index, step)


@contextmanager
def acquire_cache(order: BlockTask) -> Iterator[tuple[WorkerCache, Step[Any, Any]]]:
    """Give the desk of the order's fit, with the order's letters on it, and the step."""
    with _LOCK:
        desk = _DESKS.pop(order.fit, None) or WorkerCache(unpack(order.parcel.value))
        _DESKS[order.fit] = desk
        while len(_DESKS) > MOST_DESKS:
            _DESKS.popitem(last=False)
    first = desk.bench.work.blocks.ranges[order.index][0]
    if order.block is not None:
        desk.sent.letters[first] = order.block
    try:
        yield desk, desk.step(order.number, order.now)
    finally:
        desk.sent.letters.pop(first, None)


def forget(fit: str) -> None:
    """Clear the desk of a fit that has ended."""
    with _LOCK:
        _DESKS.pop(fit, None)
