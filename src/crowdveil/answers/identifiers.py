"""Task and worker identifiers in code order: numpy arrays, or Arrow columns, which may be memory-mapped.

A hundred million Python strings take eight gigabytes; identifiers of an opened folder stay on disk, in an Arrow IPC
file with one column.
"""

from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from itertools import pairwise
from pathlib import Path
from typing import Any, TypeAlias, final

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
from numpy.typing import NDArray

from crowdveil.answers.blocks import read_only
from crowdveil.answers.store_manifest import ENCODE_AGAIN
from crowdveil.display.counts import number_of
from crowdveil.errors import ReportsError

IDENTIFIERS_PER_BATCH = 1 << 18
"""Identifiers per batch that is computed, read or written."""
NAMES_SHOWN = 3


@final
@dataclass(frozen=True, eq=False)
class LazyIdentifiers:
    """Read-only identifiers in an Arrow chunked array, such as a memory-mapped one; a slice is lazy too."""

    column: Any

    def __len__(self) -> int:
        """Return the number of identifiers."""
        return len(self.column)

    def __getitem__(self, key: Any, /) -> Any:
        """Return the identifier of a code, lazy identifiers of a contiguous slice, or else an array."""
        if isinstance(key, slice):
            first, stop, step = key.indices(len(self))
            if step == 1:
                return LazyIdentifiers(self.column.slice(first, max(stop - first, 0)))
            key = np.arange(first, stop, step)
        codes = np.atleast_1d(np.asarray(key))
        codes = np.flatnonzero(codes) if codes.dtype.kind == "b" else np.where(codes < 0, codes + len(self), codes)
        if codes.size and not (codes.min() >= 0 and codes.max() < len(self)):
            raise IndexError(f"an identifier code must be in {-len(self)}..{len(self) - 1}, got {key!r}")
        taken = self.column.take(pa.array(codes.astype(np.int64))).to_numpy()
        return taken if np.ndim(key) else taken[0]

    def arrow_batches(self) -> Iterator[Any]:
        """Yield Arrow arrays of `IDENTIFIERS_PER_BATCH` identifiers, at least one."""
        for first in range(0, max(len(self), 1), IDENTIFIERS_PER_BATCH):
            yield self.column.slice(first, IDENTIFIERS_PER_BATCH).combine_chunks()

    def __iter__(self) -> Iterator[Any]:
        """Yield the identifiers in code order."""
        for piece in self.arrow_batches():
            yield from piece.to_pylist()

    def __contains__(self, name: object, /) -> bool:
        """Return whether an identifier occurs."""
        return any(name == one for one in self)

    def __array__(self, dtype: Any = None, /, *, copy: bool | None = None) -> NDArray[Any]:
        """Return all identifiers as an array, in memory."""
        return np.asarray(self.column.to_numpy(), dtype=dtype)

    def tolist(self) -> list[Any]:
        """Return all identifiers as a list, in memory."""
        return list(self.column.to_pylist())


Identifiers: TypeAlias = NDArray[Any] | LazyIdentifiers
"""Task or worker identifiers in code order; `numpy.asarray` reads both."""


def index_of(names: Identifiers, wanted: Iterable[Any]) -> dict[str, int]:
    """Return the code of each wanted identifier that occurs; both sides are compared as text."""
    texts = {str(name) for name in wanted}
    parts = range(0, len(names) if texts else 0, IDENTIFIERS_PER_BATCH)
    listed = ((first, names[first : first + IDENTIFIERS_PER_BATCH].tolist()) for first in parts)
    return {str(name): code for first, part in listed for code, name in enumerate(part, first) if str(name) in texts}


def no_common_task_error(gold: Iterable[Any], tasks: Identifiers, source: str) -> ReportsError:
    """Return the error for known truths without any common task, with examples of both sides."""
    known = sorted({str(name) for name in gold})
    listed = (", ".join(map(repr, names)) for names in (known[:NAMES_SHOWN], map(str, tasks[:NAMES_SHOWN])))
    return ReportsError(
        f"no gold task is among the tasks ({number_of(len(known), 'gold task')}, {number_of(len(tasks), 'task')})",
        source=source,
        examples="gold tasks {}; tasks {}".format(*listed),
        hint="Use the same task names in both.",
    )


def immutable_identifiers(names: Any) -> Identifiers:
    """Return lazy identifiers unchanged, all others as a read-only array."""
    return names if isinstance(names, LazyIdentifiers) else read_only(names)


def identifiers_as_arrow(names: Identifiers) -> Any:
    """Return identifiers as an Arrow array."""
    return names.column if isinstance(names, LazyIdentifiers) else pa.array(np.asarray(names), from_pandas=True)


COLUMN = "name"
TEXT: Any = pa.large_string()
TEXTS = (pa.string(), TEXT)


def write_identifiers(path: Path, names: Identifiers) -> None:
    """Write identifiers to an Arrow file, batch by batch.

    Raises:
        ReportsError: an identifier is neither a whole number nor text in UTF-8.
    """
    try:
        pieces = _arrow_batches(names)
        first = next(pieces)
        with pa.ipc.new_file(str(path), pa.schema([(COLUMN, first.type)])) as writer:
            for piece in (first, *pieces):
                writer.write_batch(pa.record_batch([piece], names=[COLUMN]))
    except (pa.ArrowException, UnicodeEncodeError, TypeError) as error:
        raise ReportsError(
            "names must be whole numbers or text", source=path.name, examples=str(error)[:200]
        ) from error


def _arrow_batches(names: Identifiers) -> Iterator[Any]:
    """Yield Arrow arrays of one type: whole numbers as they are, all else as text."""
    if isinstance(names, LazyIdentifiers):
        yield from names.arrow_batches()
        return
    held = np.asarray(names)
    for first in range(0, max(len(held), 1), IDENTIFIERS_PER_BATCH):
        piece = held[first : first + IDENTIFIERS_PER_BATCH]
        yield pa.array(piece) if held.dtype.kind in "iu" else pa.array(piece.tolist(), pa.large_string())


def read_identifiers(path: Path) -> LazyIdentifiers:
    """Return memory-mapped identifiers after checking all of them.

    Raises:
        ReportsError: the file holds no identifiers, offsets outside the file, text that is not UTF-8, or an identifier
            that is missing, empty or repeated.
    """
    try:
        return _map_file(path)
    except MemoryError:
        raise  # one of Arrow's own errors, but no fault of the file
    except (pa.ArrowException, OSError, TypeError, ValueError) as error:
        raise ReportsError(
            "a file of names must hold distinct names",
            source=str(path),
            examples=str(error)[:200],
            hint=ENCODE_AGAIN,
        ) from error


def _map_file(path: Path) -> LazyIdentifiers:
    """Return the identifiers of a file; raises ValueError with the defect."""
    reader = pa.ipc.open_file(pa.memory_map(str(path)))
    schema = reader.schema
    if schema.names != [COLUMN] or not (pa.types.is_integer(schema.types[0]) or schema.types[0] in TEXTS):
        raise ValueError(f"columns {schema.names} of {', '.join(map(str, schema.types))}")
    # Arrow trusts the sizes and offsets of a batch: they are validated before any other access.
    batches = [reader.get_batch(number) for number in range(reader.num_record_batches)]
    for batch in batches:
        batch.validate(full=True)
    names = pa.chunked_array([batch[0] for batch in batches], schema.types[0])
    _require_distinct_nonempty_names(names)
    return LazyIdentifiers(names)


def _require_distinct_nonempty_names(names: Any) -> None:
    """Refuse identifiers that are missing, empty or repeated."""
    if names.null_count:
        raise ValueError(f"{names.null_count} missing names")
    if names.type in TEXTS and any(pc.min(pc.binary_length(chunk)).as_py() == 0 for chunk in names.chunks):
        raise ValueError("an empty name")
    # Sorted identifiers, the usual case, are compared without extra memory.
    if _are_ascending(names):
        return
    distinct = pc.count_distinct(names).as_py()
    if distinct < len(names):
        raise ValueError(f"{len(names) - distinct} repeated names")


def _are_ascending(names: Any) -> bool:
    """Return whether identifiers ascend strictly."""
    chunks = [chunk for chunk in names.chunks if len(chunk)]
    if any(before[-1].as_py() >= after[0].as_py() for before, after in pairwise(chunks)):
        return False
    return all(pc.all(pc.less(chunk[:-1], chunk[1:])).as_py() is not False for chunk in chunks)
