"""Task and worker identifiers in code order: numpy arrays, memory-mapped Arrow columns, or numbered rules.

A hundred million Python strings take eight gigabytes. Identifiers of an opened folder stay on disk, and numbered ones
(task-000000123) are computed. In files: an Arrow IPC file with one column, or one row with the numbering rule.
"""

from abc import ABC, abstractmethod
from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from itertools import pairwise
from pathlib import Path
from typing import Any, Self, TypeAlias, final

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
from numpy.typing import NDArray

from crowdveil.channels.alphabet import is_utf8_encodable
from crowdveil.data.ingest.arrow_strings import text_array
from crowdveil.data.store_manifest import ENCODE_AGAIN
from crowdveil.errors import ReportsError, SettingsError

IDENTIFIERS_PER_BATCH = 1 << 18
"""Identifiers per batch that is computed, read or written."""
NAMES_SHOWN = 3
MAX_DIGITS = 18
"""Largest number of digits in numbered identifiers; the numbers fit into 64 bits."""


class LazyIdentifiers(ABC):
    """Read-only identifiers that are read or computed on access; a slice is lazy too."""

    @abstractmethod
    def __len__(self) -> int:
        """Return the number of identifiers."""

    @abstractmethod
    def slice_codes(self, first: int, stop: int) -> Self:
        """Return identifiers first .. stop-1."""

    @abstractmethod
    def take(self, codes: NDArray[np.integer]) -> Any:
        """Return the identifiers of non-negative codes as an Arrow array."""

    def __getitem__(self, key: Any, /) -> Any:
        """Return the identifier of a code, lazy identifiers of a contiguous slice, or else an array."""
        if isinstance(key, slice):
            first, stop, step = key.indices(len(self))
            if step == 1:
                return self.slice_codes(first, max(first, stop))
            key = np.arange(first, stop, step)
        codes = np.atleast_1d(np.asarray(key))
        codes = np.flatnonzero(codes) if codes.dtype.kind == "b" else np.where(codes < 0, codes + len(self), codes)
        if codes.size and not (codes.min() >= 0 and codes.max() < len(self)):
            raise IndexError(f"an identifier code must be in {-len(self)}..{len(self) - 1}, got {key!r}")
        found = self.take(codes.astype(np.int64)).to_numpy(zero_copy_only=False)
        return found if np.ndim(key) else found[0]

    def pieces(self) -> Iterator[Self]:
        """Yield the identifiers in batches of `IDENTIFIERS_PER_BATCH`, at least one batch."""
        for first in range(0, max(len(self), 1), IDENTIFIERS_PER_BATCH):
            yield self.slice_codes(first, min(first + IDENTIFIERS_PER_BATCH, len(self)))

    def arrow(self) -> Any:
        """Return all identifiers as an Arrow chunked array."""
        return pa.chunked_array([piece.take(np.arange(len(piece))) for piece in self.pieces()])

    def __iter__(self) -> Iterator[Any]:
        """Yield the identifiers in code order."""
        for piece in self.pieces():
            yield from piece.tolist()

    def __contains__(self, name: object, /) -> bool:
        """Return whether an identifier occurs."""
        return any(name == one for one in self)

    def __array__(self, dtype: Any = None, /, *, copy: bool | None = None) -> NDArray[Any]:
        """Return all identifiers as an array, in memory."""
        return np.asarray(self.arrow().to_numpy(), dtype=dtype)

    def tolist(self) -> list[Any]:
        """Return all identifiers as a list, in memory."""
        return list(self.arrow().to_pylist())


Identifiers: TypeAlias = NDArray[Any] | LazyIdentifiers
"""Task or worker identifiers in code order; `numpy.asarray` reads both."""


@final
@dataclass(frozen=True, eq=False)
class ArrowIdentifiers(LazyIdentifiers):
    """Identifiers in an Arrow chunked array, for example a memory-mapped one."""

    column: Any

    def __len__(self) -> int:
        """Return the number of identifiers."""
        return len(self.column)

    def slice_codes(self, first: int, stop: int) -> "ArrowIdentifiers":
        """Return identifiers first .. stop-1, without a copy."""
        return ArrowIdentifiers(self.column.slice(first, stop - first))

    def take(self, codes: NDArray[np.integer]) -> Any:
        """Return the identifiers of these codes as an Arrow array."""
        return self.column.take(pa.array(codes)).combine_chunks()

    def arrow(self) -> Any:
        """Return the column itself."""
        return self.column


@final
@dataclass(frozen=True, kw_only=True)
class NumberedIdentifiers(LazyIdentifiers):
    """Identifiers of one prefix and zero-padded numbers: task-000000000, task-000000001, ...

    Attributes:
        prefix: text before the number.
        digits: width of the number.
        count: number of identifiers.
        first: number of the first identifier.

    Raises:
        SettingsError: a negative number, a number with more digits, or a prefix that is not UTF-8.
    """

    prefix: str
    digits: int
    count: int
    first: int = 0

    def __post_init__(self) -> None:
        if not (0 < self.digits <= MAX_DIGITS and self.first >= 0 and self.count >= 0):
            raise SettingsError(
                f"numbered identifiers need 1 to {MAX_DIGITS} digits and non-negative numbers",
                value=(self.digits, self.first, self.count),
            )
        if self.first + self.count > 10**self.digits:
            raise SettingsError(
                f"the numbers of identifiers must fit into {self.digits} digits", value=self.first + self.count
            )
        if not is_utf8_encodable(self.prefix):
            raise SettingsError("names must be text that can be written in UTF-8", value=self.prefix)

    @classmethod
    def from_count(cls, prefix: str, count: int) -> "NumberedIdentifiers":
        """Return `count` identifiers numbered from 0, with as many digits as the last number needs."""
        return cls(prefix=prefix, digits=len(str(max(count - 1, 0))), count=count)

    def __len__(self) -> int:
        """Return the number of identifiers."""
        return self.count

    def slice_codes(self, first: int, stop: int) -> "NumberedIdentifiers":
        """Return identifiers first .. stop-1."""
        return NumberedIdentifiers(prefix=self.prefix, digits=self.digits, count=stop - first, first=self.first + first)

    def take(self, codes: NDArray[np.integer]) -> Any:
        """Return the identifiers of these codes as an Arrow array."""
        prefix = np.frombuffer(self.prefix.encode(), dtype=np.uint8)
        text = np.empty((len(codes), len(prefix) + self.digits), dtype=np.uint8)
        text[:, : len(prefix)] = prefix
        left = codes.astype(np.int64) + self.first
        for column in range(text.shape[1] - 1, len(prefix) - 1, -1):
            tens = left // 10  # faster than divmod
            text[:, column] = left - 10 * tens + ord("0")
            left = tens
        return text_array(text, np.arange(len(codes) + 1) * text.shape[1])

    def code(self, name: str) -> int | None:
        """Return the code of an identifier; None if it does not occur."""
        digits = name[len(self.prefix) :]
        written = name.startswith(self.prefix) and len(digits) == self.digits and digits.isascii()
        if not (written and digits.isdigit()):
            return None
        code = int(digits) - self.first
        return code if 0 <= code < self.count else None


def index_of(names: Identifiers, wanted: Iterable[Any]) -> dict[str, int]:
    """Return the code of each wanted identifier that occurs; both sides are compared as text."""
    texts = {str(name) for name in wanted}
    if isinstance(names, NumberedIdentifiers):
        found = {text: names.code(text) for text in texts}
        return {text: code for text, code in found.items() if code is not None}
    parts = range(0, len(names) if texts else 0, IDENTIFIERS_PER_BATCH)
    listed = ((first, names[first : first + IDENTIFIERS_PER_BATCH].tolist()) for first in parts)
    return {str(name): code for first, part in listed for code, name in enumerate(part, first) if str(name) in texts}


def no_gold_task_found(gold: Iterable[Any], tasks: Identifiers, source: str) -> ReportsError:
    """Return the error for known truths without any common task, with examples of both sides."""
    known = sorted({str(name) for name in gold})
    listed = (", ".join(map(repr, names)) for names in (known[:NAMES_SHOWN], map(str, tasks[:NAMES_SHOWN])))
    return ReportsError(
        f"none of the {len(known):,} gold tasks is among the {len(tasks):,} tasks",
        source=source,
        examples="gold tasks {}; tasks {}".format(*listed),
        hint="Use the same task names in both.",
    )


def as_identifiers(names: Any) -> Identifiers:
    """Return lazy identifiers unchanged, all others as a read-only array."""
    if isinstance(names, LazyIdentifiers):
        return names
    array = np.asarray(names)
    array.flags.writeable = False
    return array


def as_arrow(names: Identifiers) -> Any:
    """Return identifiers as an Arrow array."""
    return names.arrow() if isinstance(names, LazyIdentifiers) else pa.array(np.asarray(names), from_pandas=True)


COLUMN = "name"
TEXT: Any = pa.large_string()
TEXTS = (pa.string(), TEXT)
MAX_COMPARED = 1 << 18
"""Largest number of unsorted identifiers that are checked for repeats on opening; the check holds all in memory."""
RULE = pa.schema([("beginning", TEXT), ("digits", pa.int64()), ("count", pa.int64()), ("first", pa.int64())])


def write_identifiers(path: Path, names: Identifiers) -> None:
    """Write identifiers to an Arrow file, batch by batch.

    Raises:
        ReportsError: an identifier is neither a whole number nor text in UTF-8.
    """
    if isinstance(names, NumberedIdentifiers):
        rule = {"beginning": names.prefix, "digits": names.digits, "count": names.count, "first": names.first}
        with pa.ipc.new_file(str(path), RULE) as writer:
            writer.write_batch(pa.RecordBatch.from_pylist([rule], RULE))
        return
    try:
        pieces = _pieces(names)
        first = next(pieces)
        with pa.ipc.new_file(str(path), pa.schema([(COLUMN, first.type)])) as writer:
            for piece in (first, *pieces):
                writer.write_batch(pa.record_batch([piece], names=[COLUMN]))
    except (pa.ArrowException, UnicodeEncodeError, TypeError) as error:
        raise ReportsError(
            "names must be whole numbers or text", source=path.name, examples=str(error)[:200]
        ) from error


def _pieces(names: Identifiers) -> Iterator[Any]:
    """Yield Arrow arrays of one type: whole numbers as they are, all else as text."""
    if isinstance(names, LazyIdentifiers):
        yield from (piece.take(np.arange(len(piece))) for piece in names.pieces())
        return
    held = np.asarray(names)
    for first in range(0, max(len(held), 1), IDENTIFIERS_PER_BATCH):
        piece = held[first : first + IDENTIFIERS_PER_BATCH]
        yield pa.array(piece) if held.dtype.kind in "iu" else pa.array(piece.tolist(), pa.large_string())


def read_identifiers(path: Path, *, verify: bool = False) -> LazyIdentifiers:
    """Return memory-mapped identifiers after checking all of them.

    Args:
        path: Arrow file.
        verify: compare unsorted identifiers however many there are, not only up to `MAX_COMPARED`.

    Raises:
        ReportsError: the file holds neither identifiers nor a numbering rule, offsets outside the file, text that is
            not UTF-8, or an identifier that is missing, empty or repeated.
    """
    try:
        return _read(path, verify)
    except MemoryError:
        raise  # one of Arrow's own errors, but no fault of the file
    except (pa.ArrowException, OSError, TypeError, ValueError) as error:
        raise ReportsError(
            "a file of names must hold distinct names, or one rule for them",
            source=str(path),
            examples=str(error)[:200],
            hint=ENCODE_AGAIN,
        ) from error


def _read(path: Path, verify: bool) -> LazyIdentifiers:
    """Return the identifiers of a file; raises ValueError with the defect."""
    reader = pa.ipc.open_file(pa.memory_map(str(path)))
    schema = reader.schema
    listed = schema.names == [COLUMN] and (pa.types.is_integer(schema.types[0]) or schema.types[0] in TEXTS)
    if not listed and not schema.equals(RULE):
        raise ValueError(f"columns {schema.names} of {', '.join(map(str, schema.types))}")
    # Arrow trusts the sizes and offsets of a batch: they are validated before any other access.
    batches = [reader.get_batch(number) for number in range(reader.num_record_batches)]
    for batch in batches:
        batch.validate(full=True)
    if listed:
        names = pa.chunked_array([batch[0] for batch in batches], schema.types[0])
        _require_distinct(names, None if verify else MAX_COMPARED)
        return ArrowIdentifiers(names)
    rules = [rule for batch in batches for rule in batch.to_pylist()]
    if len(rules) != 1:
        raise ValueError(f"{len(rules)} rules")
    rule = rules[0]
    return NumberedIdentifiers(
        prefix=rule["beginning"], digits=rule["digits"], count=rule["count"], first=rule["first"]
    )


def _require_distinct(names: Any, most: int | None) -> None:
    """Refuse identifiers that are missing, empty or repeated; more than `most` unsorted ones are not compared."""
    if names.null_count:
        raise ValueError(f"{names.null_count} missing names")
    if names.type in TEXTS and any(pc.min(pc.binary_length(chunk)).as_py() == 0 for chunk in names.chunks):
        raise ValueError("an empty name")
    # Sorted identifiers, the usual case, are compared without extra memory.
    if _ascend(names) or (most is not None and len(names) > most):
        return
    distinct = pc.count_distinct(names).as_py()
    if distinct < len(names):
        raise ValueError(f"{len(names) - distinct} repeated names")


def _ascend(names: Any) -> bool:
    """Return whether identifiers ascend strictly."""
    chunks = [chunk for chunk in names.chunks if len(chunk)]
    if any(before[-1].as_py() >= after[0].as_py() for before, after in pairwise(chunks)):
        return False
    return all(pc.all(pc.less(chunk[:-1], chunk[1:])).as_py() is not False for chunk in chunks)
