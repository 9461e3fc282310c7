"""Names of tasks and workers in code order: a numpy array, or names read or made only where they are looked at.

A hundred million names as Python's texts take eight gigabytes; those of an opened folder stay on disk, and numbered
ones (task-000000123) follow from a rule.


Names in files: an Arrow file with one column, in batches; numbered names as a single row that states the rule."""

from abc import ABC, abstractmethod
from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from itertools import pairwise
from pathlib import Path
from typing import Any, Protocol, Self, final

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
from numpy.typing import NDArray

from crowdveil.channels.alphabet import is_utf8_encodable
from crowdveil.data.ingest.arrow_strings import text_array
from crowdveil.data.store_manifest import ENCODE_AGAIN
from crowdveil.errors import ReportsError, SettingsError

IDENTIFIERS_PER_BATCH = 1 << 18
"""Names made, read or written together."""
NAMES_SHOWN = 3
MAX_DIGITS = 18
"""Digits of the largest numbers in names: they fit into 64 bits."""


class Identifiers(Protocol):
    """What a numpy array of names and `LazyIdentifiers` have in common; `numpy.asarray` makes an array of either."""

    def __len__(self) -> int:
        """Return how many names there are."""
        ...

    def __getitem__(self, key: Any, /) -> Any:
        """Return the name of a code, or those of a slice or an array of codes."""
        ...

    def __iter__(self) -> Iterator[Any]:
        """Yield the names in code order."""
        ...

    def __contains__(self, name: object, /) -> bool:
        """Return whether a name is among them."""
        ...

    def __array__(self, dtype: None = None, /, *, copy: bool | None = None) -> NDArray[Any]:
        """Return all names as an array."""
        ...

    def tolist(self) -> Any:
        """Return all names as a list."""
        ...


class LazyIdentifiers(ABC):
    """Names that take no memory until they are asked for; read-only. A slice of them is lazy too."""

    @abstractmethod
    def __len__(self) -> int:
        """Return how many names there are."""

    @abstractmethod
    def part(self, first: int, stop: int) -> Self:
        """Return the names first .. stop-1."""

    @abstractmethod
    def take(self, codes: NDArray[np.integer]) -> Any:
        """Return the names of these codes, from 0 on, as an Arrow array."""

    def __getitem__(self, key: Any, /) -> Any:
        """Return the name of a code, lazy names of a slice without steps, or an array for anything else."""
        if isinstance(key, slice):
            first, stop, step = key.indices(len(self))
            if step == 1:
                return self.part(first, max(first, stop))
            key = np.arange(first, stop, step)
        codes = np.atleast_1d(np.asarray(key))
        codes = np.flatnonzero(codes) if codes.dtype.kind == "b" else np.where(codes < 0, codes + len(self), codes)
        if codes.size and not (codes.min() >= 0 and codes.max() < len(self)):
            raise IndexError(f"there are {len(self)} names, from 0 on, got {key!r}")
        found = self.take(codes.astype(np.int64)).to_numpy(zero_copy_only=False)
        return found if np.ndim(key) else found[0]

    def pieces(self) -> Iterator[Self]:
        """Yield the names in parts of `IDENTIFIERS_PER_BATCH`, at least one part."""
        for first in range(0, max(len(self), 1), IDENTIFIERS_PER_BATCH):
            yield self.part(first, min(first + IDENTIFIERS_PER_BATCH, len(self)))

    def arrow(self) -> Any:
        """Return all names as an Arrow chunked array."""
        return pa.chunked_array([piece.take(np.arange(len(piece))) for piece in self.pieces()])

    def __iter__(self) -> Iterator[Any]:
        """Yield the names in code order."""
        for piece in self.pieces():
            yield from piece.tolist()

    def __contains__(self, name: object, /) -> bool:
        """Return whether a name is among them."""
        return any(name == one for one in self)

    def __array__(self, dtype: Any = None, /, *, copy: bool | None = None) -> NDArray[Any]:
        """Return all names as an array, which takes memory for each."""
        return np.asarray(self.arrow().to_numpy(), dtype=dtype)

    def tolist(self) -> list[Any]:
        """Return all names as a list, which takes memory for each."""
        return list(self.arrow().to_pylist())


@final
@dataclass(frozen=True, eq=False)
class ArrowIdentifiers(LazyIdentifiers):
    """Names in an Arrow chunked array, such as one that is mapped from a file."""

    column: Any

    def __len__(self) -> int:
        """Return how many names there are."""
        return len(self.column)

    def part(self, first: int, stop: int) -> "ArrowIdentifiers":
        """Return the names first .. stop-1, from the same memory."""
        return ArrowIdentifiers(self.column.slice(first, stop - first))

    def take(self, codes: NDArray[np.integer]) -> Any:
        """Return the names of these codes."""
        return self.column.take(pa.array(codes)).combine_chunks()

    def arrow(self) -> Any:
        """Return the column itself."""
        return self.column


@final
@dataclass(frozen=True, kw_only=True)
class NumberedIdentifiers(LazyIdentifiers):
    """Names of one beginning and digits of one width: task-000000000, task-000000001, ...

    Attributes:
        beginning: what all names begin with.
        digits: how many digits follow; smaller numbers have zeros before them.
        count: how many names.
        first: number of the first.

    Raises:
        SettingsError: numbers that are negative or need more digits, or text that is not UTF-8.
    """

    beginning: str
    digits: int
    count: int
    first: int = 0

    def __post_init__(self) -> None:
        if not (0 < self.digits <= MAX_DIGITS and self.first >= 0 and self.count >= 0):
            raise SettingsError(
                f"names need 1 to {MAX_DIGITS} digits, and numbers that are not negative",
                value=(self.digits, self.first, self.count),
            )
        if self.first + self.count > 10**self.digits:
            raise SettingsError(
                f"the numbers of names must fit into {self.digits} digits", value=self.first + self.count
            )
        if not is_utf8_encodable(self.beginning):
            raise SettingsError("names must be text that can be written in UTF-8", value=self.beginning)

    @classmethod
    def from_count(cls, beginning: str, count: int) -> "NumberedIdentifiers":
        """Return the names of so many, from 0 on, in as many digits as the last one needs."""
        return cls(beginning=beginning, digits=len(str(max(count - 1, 0))), count=count)

    def __len__(self) -> int:
        """Return how many names there are."""
        return self.count

    def part(self, first: int, stop: int) -> "NumberedIdentifiers":
        """Return the names first .. stop-1, by the same rule."""
        return NumberedIdentifiers(
            beginning=self.beginning, digits=self.digits, count=stop - first, first=self.first + first
        )

    def take(self, codes: NDArray[np.integer]) -> Any:
        """Return the names of these codes."""
        prefix = np.frombuffer(self.beginning.encode(), dtype=np.uint8)
        text = np.empty((len(codes), len(prefix) + self.digits), dtype=np.uint8)
        text[:, : len(prefix)] = prefix
        left = codes.astype(np.int64) + self.first
        for column in range(text.shape[1] - 1, len(prefix) - 1, -1):
            tens = left // 10  # faster than divmod
            text[:, column] = left - 10 * tens + ord("0")
            left = tens
        return text_array(text, np.arange(len(codes) + 1) * text.shape[1])

    def place(self, name: str) -> int | None:
        """Return the code of a name, None if there is none."""
        digits = name[len(self.beginning) :]
        written = name.startswith(self.beginning) and len(digits) == self.digits and digits.isascii()
        if not (written and digits.isdigit()):
            return None
        code = int(digits) - self.first
        return code if 0 <= code < self.count else None


def index_of(names: Identifiers, wanted: Iterable[Any]) -> dict[str, int]:
    """Return the code of each wanted name that is among the names, both read as text."""
    texts = {str(name) for name in wanted}
    if isinstance(names, NumberedIdentifiers):
        found = {text: names.place(text) for text in texts}
        return {text: code for text, code in found.items() if code is not None}
    parts = range(0, len(names) if texts else 0, IDENTIFIERS_PER_BATCH)
    listed = ((first, names[first : first + IDENTIFIERS_PER_BATCH].tolist()) for first in parts)
    return {str(name): code for first, part in listed for code, name in enumerate(part, first) if str(name) in texts}


def no_gold_task_found(gold: Iterable[Any], tasks: Identifiers, source: str) -> ReportsError:
    """Return the error for known truths of which none is of a task, with examples of the names on both sides."""
    known = sorted({str(name) for name in gold})
    listed = (", ".join(map(repr, names)) for names in (known[:NAMES_SHOWN], map(str, tasks[:NAMES_SHOWN])))
    return ReportsError(
        f"none of the {len(known):,} gold tasks is among the {len(tasks):,} tasks",
        source=source,
        examples="gold tasks {}; tasks {}".format(*listed),
        hint="Use the same task names in both.",
    )


def as_identifiers(names: Any) -> Identifiers:
    """Return names as they are if they are lazy, else as a read-only array."""
    if isinstance(names, LazyIdentifiers):
        return names
    array = np.asarray(names)
    array.flags.writeable = False
    return array


def as_arrow(names: Identifiers) -> Any:
    """Return names as an Arrow column."""
    return names.arrow() if isinstance(names, LazyIdentifiers) else pa.array(np.asarray(names), from_pandas=True)


COLUMN = "name"
TEXT: Any = pa.large_string()
TEXTS = (pa.string(), TEXT)
COMPARED = 1 << 18
"""Unsorted names that are compared with one another on opening, which takes memory for each."""
RULE = pa.schema([("beginning", TEXT), ("digits", pa.int64()), ("count", pa.int64()), ("first", pa.int64())])


def write_identifiers(path: Path, names: Identifiers) -> None:
    """Write names; memory follows `IDENTIFIERS_PER_BATCH` of them.

    Raises:
        ReportsError: a name is neither a whole number nor text that can be written in UTF-8.
    """
    if isinstance(names, NumberedIdentifiers):
        rule = {"beginning": names.beginning, "digits": names.digits, "count": names.count, "first": names.first}
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
    """Map names from a file, once all of them are checked; they are read again where they are looked at.

    Args:
        path: of the file.
        verify: compare unsorted names with one another however many there are; else only up to `COMPARED` of them.

    Raises:
        ReportsError: the file holds neither names nor a rule for them, offsets that leave the file, text that is not
            UTF-8, or a name that is missing, empty or repeated.
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
    """Return the names of a file; a ValueError says what is wrong with them."""
    reader = pa.ipc.open_file(pa.memory_map(str(path)))
    schema = reader.schema
    listed = schema.names == [COLUMN] and (pa.types.is_integer(schema.types[0]) or schema.types[0] in TEXTS)
    if not listed and not schema.equals(RULE):
        raise ValueError(f"columns {schema.names} of {', '.join(map(str, schema.types))}")
    # A batch is read as its sizes and offsets state: nothing may look at it before they are known to hold.
    batches = [reader.get_batch(number) for number in range(reader.num_record_batches)]
    for batch in batches:
        batch.validate(full=True)
    if listed:
        names = pa.chunked_array([batch[0] for batch in batches], schema.types[0])
        _require_distinct(names, None if verify else COMPARED)
        return ArrowIdentifiers(names)
    rules = [rule for batch in batches for rule in batch.to_pylist()]
    if len(rules) != 1:
        raise ValueError(f"{len(rules)} rules")
    return NumberedIdentifiers(**rules[0])


def _require_distinct(names: Any, most: int | None) -> None:
    """Refuse names that are missing, empty or repeated; more than `most` unsorted ones are not compared."""
    if names.null_count:
        raise ValueError(f"{names.null_count} missing names")
    if names.type in TEXTS and any(pc.min(pc.binary_length(chunk)).as_py() == 0 for chunk in names.chunks):
        raise ValueError("an empty name")
    # Sorted names, as they mostly are, need no memory to be compared.
    if _ascend(names) or (most is not None and len(names) > most):
        return
    distinct = pc.count_distinct(names).as_py()
    if distinct < len(names):
        raise ValueError(f"{len(names) - distinct} repeated names")


def _ascend(names: Any) -> bool:
    """Return whether each name is larger than the one before."""
    chunks = [chunk for chunk in names.chunks if len(chunk)]
    if any(before[-1].as_py() >= after[0].as_py() for before, after in pairwise(chunks)):
        return False
    return all(pc.all(pc.less(chunk[:-1], chunk[1:])).as_py() is not False for chunk in chunks)
