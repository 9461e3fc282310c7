"""Worker side of a distributed fit: what it gets of a fit, E-steps on blocks, and a cache per fit.

Constants are sent once, then per step only the parameters that changed. Objects held by the initial parameters, such as
report counts, travel with the constants; later parameters refer to them by field name instead of carrying them again.
The cache may be lost at any time. Every task carries the data to rebuild it, so results do not depend on failures.
"""

import io
import pickle
from collections import OrderedDict
from collections.abc import Mapping
from dataclasses import fields, is_dataclass, replace
from functools import partial
from pathlib import Path
from threading import Lock
from typing import Any, NamedTuple

import numpy as np

from crowdveil.answers.columnar_store import MappedRows, open_encoded
from crowdveil.em.engines.executor import BlockSource, BlockWorker, FitTask, Step
from crowdveil.em.kernels.jit import kernels_choice, kernels_of_fit
from crowdveil.em.memory import MemoryPlan
from crowdveil.em.model import EStep
from crowdveil.errors import EngineError, ReportsError

TASK_COUNTS = "per_task"
"""Name of the report counts of all tasks. No block needs them, so they are not sent."""
MAX_CACHED_FITS = 4
"""Fits cached by one process; several drivers may share its workers."""
MAX_CACHED_STEPS = 2
"""Steps cached per fit: the current one and the one before."""
_CACHES: OrderedDict[str, "WorkerCache"] = OrderedDict()
_LOCK = Lock()


class StoredFolder(NamedTuple):
    """Folder of encoded blocks, and the checksums of its columns."""

    path: Path
    checksums: tuple[tuple[int, ...], ...]

    @classmethod
    def of(cls, rows: BlockSource) -> "StoredFolder":
        """Return the folder that rows are stored in.

        Raises:
            EngineError: they are in memory.
        """
        if not isinstance(rows, MappedRows):
            raise EngineError(
                "The engine dask reads encoded blocks, and the reports are in memory",
                hint="Save them (Reports.save, crowdveil data encode), and fit Reports.open(folder).",
            )
        return cls(rows.index.path.parent.resolve(), _checksums(rows))

    def open(self) -> BlockSource:
        """Return the rows of the folder.

        Raises:
            ReportsError: the folder is missing, or its checksums differ.
        """
        rows = open_encoded(self.path).rows
        if _checksums(rows) != self.checksums:
            raise ReportsError(
                "all processes must read the same encoded blocks",
                source=str(self.path),
                examples="its checksums differ from those at the start of the fit",
                hint="Share one folder under the same path, or copy it again.",
            )
        return rows


def _checksums(rows: MappedRows) -> tuple[tuple[int, ...], ...]:
    return tuple(tuple(column.crcs) for column in (rows.index, rows.workers, rows.values))


def dump_context(work: FitTask[Any, Any], plan: MemoryPlan) -> bytes:
    """Return the pickled constants of a fit, whose blocks are in a `StoredFolder`, the memory of one process, and the
    choice of kernels, which the environment of a worker does not change.

    The report counts of all tasks are left out.
    """
    return dump((work, plan, kernels_choice()), {TASK_COUNTS: work.blocks.summary.per_task})


def load_context(data: bytes) -> tuple[FitTask[Any, Any], MemoryPlan, str]:
    """Return the constants of a fit, whose blocks are read from the folder, the memory of this process and kernels."""
    work, plan, kernels = load(data, {TASK_COUNTS: np.zeros(0, dtype=np.int64)})
    return replace(work, blocks=replace(work.blocks, rows=work.blocks.rows.open())), plan, kernels


def shared_parts(first: Any) -> dict[str, Any]:
    """Return records and arrays held by parameters, by field name; small values have no stable identity."""
    names = [field.name for field in fields(first)] if is_dataclass(first) else first._fields
    parts = {name: getattr(first, name) for name in names}
    return {name: part for name, part in parts.items() if is_dataclass(part) or isinstance(part, np.ndarray)}


def dump(value: Any, known: Mapping[str, Any]) -> bytes:
    """Return a pickled value, with names in place of objects that the receiver knows."""
    stream = io.BytesIO()
    _Pickler(stream, {id(part): name for name, part in known.items()}).dump(value)
    return stream.getvalue()


def load(data: bytes, known: Mapping[str, Any]) -> Any:
    """Return a value that was pickled with names of known objects."""
    return _Unpickler(io.BytesIO(data), known).load()


class _Pickler(pickle.Pickler):
    def __init__(self, stream: io.BytesIO, names: dict[int, str]) -> None:
        super().__init__(stream, protocol=5)
        self._names = names

    def persistent_id(self, value: Any) -> str | None:
        """Return the name of a known object, else None."""
        return self._names.get(id(value))

    def reducer_override(self, value: Any) -> Any:
        """Return a reduction to one number for a broadcast array, which repeats it."""
        if isinstance(value, np.ndarray) and value.size and value.strides == (0,):
            return np.broadcast_to, (value[0], value.shape)
        return NotImplemented


class _Unpickler(pickle.Unpickler):
    def __init__(self, stream: io.BytesIO, known: Mapping[str, Any]) -> None:
        super().__init__(stream)
        self._known = known

    def persistent_load(self, name: str) -> Any:
        """Return the known object of a name."""
        return self._known[name]


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

    def __init__(self, work: FitTask[Any, Any], plan: MemoryPlan, kernels: str) -> None:
        self.kernels = kernels
        self.block_worker = BlockWorker(work, plan, part=True)
        self._steps: OrderedDict[int, Step[Any, Any]] = OrderedDict()
        self._lock = Lock()

    def prepared_step(self, number: int, parameters: bytes) -> Step[Any, Any]:
        """Return a step with its parameters loaded and prepared once."""
        work = self.block_worker.work
        with self._lock:
            if number not in self._steps:
                step = Step(work.model, number, load(parameters, shared_parts(work.initial)))
                step.precomputed_parameters  # noqa: B018  prepared once, before threads ask for it
                self._steps[number] = step
                while len(self._steps) > MAX_CACHED_STEPS:
                    self._steps.popitem(last=False)
            return self._steps[number]


def block_statistics(at: BlockStep, context: bytes, parameters: bytes, previous: bytes | None) -> tuple[Any, float]:
    """Return the statistics of a block in a step.

    Args:
        at: the block and the step.
        context: constants of the fit.
        parameters, previous: parameters of this step, and of the one before; None in the first.
    """
    cache = _cache_of_fit(at, context)
    before = None if previous is None else partial(cache.prepared_step, at.step - 1, previous)
    with kernels_of_fit(cache.kernels):
        return cache.block_worker.run_step_on_block(at.block, cache.prepared_step(at.step, parameters), before)


def block_posterior(at: BlockStep, context: bytes, parameters: bytes, previous: bytes | None) -> EStep[Any]:
    """Return the posterior of a block after the last step; arguments as `block_statistics`."""
    cache = _cache_of_fit(at, context)
    with kernels_of_fit(cache.kernels):
        return cache.block_worker.last_block_result(at.block, cache.prepared_step(at.step, parameters))


def _cache_of_fit(at: BlockStep, context: bytes) -> WorkerCache:
    """Return the cache of a fit, made anew if it was lost."""
    with _LOCK:
        cache = _CACHES.pop(at.fit_id, None) or WorkerCache(*load_context(context))
        _CACHES[at.fit_id] = cache
        while len(_CACHES) > MAX_CACHED_FITS:
            _CACHES.popitem(last=False)
        return cache


def drop_cache(fit_id: str) -> None:
    """Remove the cache of a fit that has ended."""
    with _LOCK:
        _CACHES.pop(fit_id, None)
