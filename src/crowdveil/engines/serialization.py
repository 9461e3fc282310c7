"""What is sent to other processes: the constants of a fit once, and in each step only what the step has learned.

Parameters hold references to constants, such as counts of the crowd. Objects that the first parameters hold are sent
with the constants, and later parameters name them in place of sending them again.
"""

import io
import pickle
from dataclasses import fields, is_dataclass
from pathlib import Path
from typing import Any, NamedTuple, Protocol

import numpy as np
from numpy.typing import NDArray

from crowdveil.data.blocks import Block
from crowdveil.data.columnar_store import Stored, open_encoded
from crowdveil.em.executor import FitTask, Source
from crowdveil.em.memory import MemoryPlan
from crowdveil.errors import ReportsError

PROTOCOL = 5
TASK_COUNTS = "per_task"
"""The name of the counts of all tasks, which no block needs: they are sent to nobody."""


class Payload(Protocol):
    """Bytes on their way to a process; they travel, once, when it opens them."""

    @property
    def value(self) -> bytes:
        """The bytes."""
        ...


class Folder(NamedTuple):
    """A folder of encoded blocks, and the checksums of its columns."""

    path: Path
    checksums: tuple[tuple[int, ...], ...]

    @classmethod
    def of(cls, rows: Source) -> "Folder | None":
        """Return where rows are stored; None where they are in memory."""
        if not isinstance(rows, Stored):
            return None
        return cls(rows.index.path.parent.resolve(), _checksums(rows))

    def open(self) -> Source:
        """Open the folder where it must be the same.

        Raises:
            ReportsError: it is not there, or another.
        """
        rows = open_encoded(self.path).rows
        if _checksums(rows) != self.checksums:
            raise ReportsError(
                "all processes must read the same encoded blocks",
                source=str(self.path),
                examples="other checksums than where the fit was begun",
                hint="Share one folder under the same path, or copy it again.",
            )
        return rows


def _checksums(rows: Stored) -> tuple[tuple[int, ...], ...]:
    return tuple(tuple(column.crcs) for column in (rows.index, rows.workers, rows.values))


class ReceivedBlocks:
    """Rows that arrive block by block, each in a letter that is opened when the block is made."""

    def __init__(self) -> None:
        self.letters: dict[int, Payload] = {}

    def block(self, first: int, stop: int) -> Block:
        """Return the block that begins at a task."""
        block: Block = pickle.loads(self.letters[first].value)
        return block


class FitContext(NamedTuple):
    """The constants of a fit: its work, the folder that blocks are in (None where they are sent), a process's room."""

    work: FitTask[Any, Any]
    folder: Folder | None
    room: MemoryPlan


def pack(parcel: FitContext) -> bytes:
    """Return the constants of a fit as bytes."""
    stream = io.BytesIO()
    _Pickler(stream, {id(parcel.work.blocks.summary.per_task): TASK_COUNTS}).dump(parcel)
    return stream.getvalue()


def unpack(data: bytes) -> FitContext:
    """Return the constants of a fit."""
    parcel: FitContext = _Unpickler(io.BytesIO(data), {TASK_COUNTS: np.zeros(0, dtype=np.int64)}).load()
    return parcel


def pack_parameters(parameters: Any, first: Any) -> bytes:
    """Return what parameters do not share with the first ones."""
    stream = io.BytesIO()
    _Pickler(stream, {id(part): name for name, part in _parts(first).items()}).dump(parameters)
    return stream.getvalue()


def unpack_parameters(data: bytes, first: Any) -> Any:
    """Return the parameters, the rest taken from the first ones."""
    return _Unpickler(io.BytesIO(data), _parts(first)).load()


def _parts(first: Any) -> dict[str, Any]:
    """Return the records and arrays that parameters hold, by name: what is small has no identity to know it by."""
    names = [field.name for field in fields(first)] if is_dataclass(first) else first._fields
    parts = {name: getattr(first, name) for name in names}
    return {name: part for name, part in parts.items() if is_dataclass(part) or isinstance(part, np.ndarray)}


class _Pickler(pickle.Pickler):
    """Writes names for objects that are known on the other side."""

    def __init__(self, stream: io.BytesIO, known: dict[int, str]) -> None:
        super().__init__(stream, PROTOCOL)
        self._known = known

    def persistent_id(self, thing: Any) -> str | None:
        """Return the name of an object that is not to be sent."""
        return self._known.get(id(thing))

    def reducer_override(self, thing: Any) -> Any:
        """Send one number for a column that repeats it."""
        if isinstance(thing, np.ndarray) and thing.size and thing.strides == (0,):
            return _repeated, (thing[0], thing.shape)
        return NotImplemented


def _repeated(number: Any, shape: tuple[int, ...]) -> NDArray[Any]:
    return np.broadcast_to(number, shape)


class _Unpickler(pickle.Unpickler):
    """Puts the known objects in for their names."""

    def __init__(self, stream: io.BytesIO, known: dict[str, Any]) -> None:
        super().__init__(stream)
        self._known = known

    def persistent_load(self, name: str) -> Any:
        """Return the object of a name."""
        return self._known[name]
