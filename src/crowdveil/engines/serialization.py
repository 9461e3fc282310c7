"""Pickle format of a distributed fit: constants once, then per step only the parameters that changed.

Parameters refer to constants, such as report counts. Objects held by the initial parameters travel with the constants;
later parameters refer to them by field name instead of carrying them again.
"""

import io
import pickle
from dataclasses import fields, is_dataclass, replace
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from crowdveil.data.columnar_store import MappedRows, open_encoded
from crowdveil.em.executor import FitTask, Source
from crowdveil.em.memory import MemoryPlan
from crowdveil.errors import EngineError, ReportsError

PROTOCOL = 5
"""Pickle protocol of all messages."""
TASK_COUNTS = "per_task"
"""Name of the report counts of all tasks. No block needs them, so they are not sent."""


class StoredFolder(NamedTuple):
    """Folder of encoded blocks, and the checksums of its columns."""

    path: Path
    checksums: tuple[tuple[int, ...], ...]

    @classmethod
    def of(cls, rows: Source) -> "StoredFolder":
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

    def open(self) -> Source:
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


class FitContext(NamedTuple):
    """Constants of a fit, whose blocks are in a `StoredFolder`, and the memory budget of one process."""

    work: FitTask[Any, Any]
    plan: MemoryPlan


def dump_context(work: FitTask[Any, Any], plan: MemoryPlan) -> bytes:
    """Return the pickled constants of a fit, without the report counts of all tasks."""
    stream = io.BytesIO()
    _Pickler(stream, {id(work.blocks.summary.per_task): TASK_COUNTS}).dump(FitContext(work, plan))
    return stream.getvalue()


def load_context(data: bytes) -> FitContext:
    """Return the constants of a fit, whose blocks are read from the folder."""
    found: FitContext = _Unpickler(io.BytesIO(data), {TASK_COUNTS: np.zeros(0, dtype=np.int64)}).load()
    folder: Any = found.work.blocks.rows
    return found._replace(work=replace(found.work, blocks=replace(found.work.blocks, rows=folder.open())))


def dump_parameters(parameters: Any, first: Any) -> bytes:
    """Return pickled parameters, without the objects that they share with the initial ones."""
    stream = io.BytesIO()
    _Pickler(stream, {id(part): name for name, part in _shared_fields(first).items()}).dump(parameters)
    return stream.getvalue()


def load_parameters(data: bytes, first: Any) -> Any:
    """Return parameters; shared objects come from the initial ones."""
    return _Unpickler(io.BytesIO(data), _shared_fields(first)).load()


def _shared_fields(first: Any) -> dict[str, Any]:
    """Return records and arrays held by parameters, by field name; small values have no stable identity."""
    names = [field.name for field in fields(first)] if is_dataclass(first) else first._fields
    parts = {name: getattr(first, name) for name in names}
    return {name: part for name, part in parts.items() if is_dataclass(part) or isinstance(part, np.ndarray)}


class _Pickler(pickle.Pickler):
    """Pickler that writes names for objects known to the receiver; `known` maps their ids to names."""

    def __init__(self, stream: io.BytesIO, known: dict[int, str]) -> None:
        super().__init__(stream, PROTOCOL)
        self._known = known

    def persistent_id(self, value: Any) -> str | None:
        """Return the name of a known object, else None."""
        return self._known.get(id(value))

    def reducer_override(self, value: Any) -> Any:
        """Return a reduction to one number for a broadcast array, which repeats it."""
        if isinstance(value, np.ndarray) and value.size and value.strides == (0,):
            return _broadcast, (value[0], value.shape)
        return NotImplemented


def _broadcast(number: Any, shape: tuple[int, ...]) -> NDArray[Any]:
    return np.broadcast_to(number, shape)


class _Unpickler(pickle.Unpickler):
    """Unpickler that replaces names by known objects."""

    def __init__(self, stream: io.BytesIO, known: dict[str, Any]) -> None:
        super().__init__(stream)
        self._known = known

    def persistent_load(self, name: str) -> Any:
        """Return the known object of a name."""
        return self._known[name]
