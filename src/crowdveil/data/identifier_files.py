"""Names in files: an Arrow file with one column, in batches; numbered names as a single row that states the rule."""

from collections.abc import Iterator
from itertools import pairwise
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from crowdveil.data.identifiers import NAMES_AT_ONCE, ArrowNames, LazyNames, NameList, NumberedNames
from crowdveil.data.store_manifest import WAY_OUT
from crowdveil.errors import ReportsError

COLUMN = "name"
TEXT: Any = pa.large_string()
TEXTS = (pa.string(), TEXT)
COMPARED = 1 << 18
"""Unsorted names that are compared with one another on opening, which takes memory for each."""
RULE = pa.schema([("beginning", TEXT), ("digits", pa.int64()), ("count", pa.int64()), ("first", pa.int64())])


def write_names(path: Path, names: NameList) -> None:
    """Write names; memory follows `NAMES_AT_ONCE` of them.

    Raises:
        ReportsError: a name is neither a whole number nor text that can be written in UTF-8.
    """
    if isinstance(names, NumberedNames):
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


def _pieces(names: NameList) -> Iterator[Any]:
    """Yield Arrow arrays of one type: whole numbers as they are, all else as text."""
    if isinstance(names, LazyNames):
        yield from (piece.take(np.arange(len(piece))) for piece in names.pieces())
        return
    held = np.asarray(names)
    for first in range(0, max(len(held), 1), NAMES_AT_ONCE):
        piece = held[first : first + NAMES_AT_ONCE]
        yield pa.array(piece) if held.dtype.kind in "iu" else pa.array(piece.tolist(), pa.large_string())


def read_names(path: Path, *, verify: bool = False) -> LazyNames:
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
            hint=WAY_OUT,
        ) from error


def _read(path: Path, verify: bool) -> LazyNames:
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
        return ArrowNames(names)
    rules = [rule for batch in batches for rule in batch.to_pylist()]
    if len(rules) != 1:
        raise ValueError(f"{len(rules)} rules")
    return NumberedNames(**rules[0])


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
