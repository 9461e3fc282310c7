"""Names in files: an Arrow file with one column, in batches; numbered names as a single row that states the rule."""

from collections.abc import Iterator
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa

from crowdveil.errors import ReportsError, SettingsError
from crowdveil.storage.names import NAMES_AT_ONCE, ArrowNames, LazyNames, NameList, NumberedNames

COLUMN = "name"
TEXT: Any = pa.large_string()
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


def read_names(path: Path) -> LazyNames:
    """Map names from a file; they are read where they are looked at.

    Raises:
        ReportsError: the file holds neither names nor a rule for them.
    """
    try:
        table = pa.ipc.open_file(pa.memory_map(str(path))).read_all()
        if table.schema.names == [COLUMN]:
            return ArrowNames(table[COLUMN])
        if table.schema.equals(RULE) and table.num_rows == 1:
            return NumberedNames(**table.to_pylist()[0])
    except (pa.ArrowException, SettingsError, TypeError) as error:
        raise _no_names(path, str(error)[:200]) from error
    raise _no_names(path, f"columns {table.schema.names}, {table.num_rows} rows")


def _no_names(path: Path, found: str) -> ReportsError:
    return ReportsError("a file of names must hold names, or one rule for them", source=str(path), examples=found)
