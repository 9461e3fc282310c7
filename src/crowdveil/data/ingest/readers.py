"""Files and frames of strangers become coded columns: CSV, Parquet, pandas, Polars and Arrow tables, DuckDB relations.

Which column is which follows from its name. Only the columns that are needed are read: times, addresses and other
columns, which no epsilon covers, never enter.
"""

from collections.abc import Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass
from os import PathLike
from pathlib import Path
from typing import Any, Literal

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
import pyarrow.parquet as pq
from numpy.typing import NDArray

from crowdveil.data.ingest.csv_files import GROUP_BYTES, read_csv_coded, read_header
from crowdveil.data.ingest.dictionary_encoding import encode_batches, encode_integers, encode_sorted, encode_text
from crowdveil.data.ingest.validation import CodedColumn, encode_ids, parse_number_column, reject_rows
from crowdveil.errors import ReportsError

Accepted = Mapping[str, tuple[str, ...]]
ANSWERS: Accepted = {
    "task": ("task", "item"),
    "worker": ("worker", "performer", "annotator"),
    "value": ("label", "value", "answer"),
}
GOLD: Accepted = {"task": ("task", "item"), "truth": ("truth", "label", "value", "answer")}
PRIOR: Accepted = {"label": ("label",), "probability": ("probability",)}
TEXT_KINDS = {"string", "large_string", "string_view", "binary", "large_binary", "binary_view"}
"""Arrow's types of text; the views are not in every version that is supported."""
ROWS_AT_ONCE = 1 << 16
ROWS_SHOWN = 5
"""Rows of a Parquet file that are read together."""


@dataclass(frozen=True, slots=True, eq=False)
class ReportColumns:
    """Three columns of equal length, checked for nothing yet; `value_name` is the header the values stood under."""

    task: CodedColumn
    worker: CodedColumn
    value: CodedColumn
    value_name: str
    source: str

    def __len__(self) -> int:
        """Number of rows."""
        return len(self.task)

    def keep(self, rows: NDArray[Any]) -> "ReportColumns":
        """Return the given rows only."""
        return ReportColumns(
            self.task.keep(rows), self.worker.keep(rows), self.value.keep(rows), self.value_name, self.source
        )


def read_columns(path: str | PathLike[str]) -> ReportColumns:
    """Read the answers or reports of a CSV file; all cells are text.

    Raises:
        ReportsError: no such file, damaged, or without the columns.
    """
    roles, coded = _read_csv_roles(Path(path), ANSWERS)
    return _columns_of(coded, roles, str(path))


def read_parquet_columns(path: str | PathLike[str]) -> ReportColumns:
    """Read the answers or reports of a Parquet file; errors as `read_columns`."""
    source = str(path)
    try:
        with pq.ParquetFile(Path(path)) as file:
            schema = file.schema_arrow
            roles = match_columns(schema.names, ANSWERS, source)
            names = list(roles.values())
            if all(pa.types.is_string(schema.field(name).type) for name in names):
                # Text is not held as a whole: a group of rows is coded while the next is read.
                batches = file.iter_batches(batch_size=ROWS_AT_ONCE, columns=names)
                coded = encode_batches(batches, names, GROUP_BYTES)
                return _columns_of({role: coded[name] for role, name in roles.items()}, roles, source)
        return _columns(roles, pq.read_table(Path(path), columns=names, partitioning=None), source)
    except MemoryError:
        raise  # one of Arrow's own errors, but no fault of the file
    except (OSError, pa.ArrowException, UnicodeDecodeError) as error:
        raise _not_parquet(source, error) from error


def read_column_names(path: Path) -> list[str]:
    """Return the names of all columns of a CSV or Parquet file; errors as `read_columns`."""
    if path.suffix != ".parquet":
        return read_header(path)
    try:
        return list(pq.read_schema(path).names)
    except (OSError, pa.ArrowException, UnicodeDecodeError) as error:
        raise _not_parquet(str(path), error) from error


def _not_parquet(source: str, error: Exception) -> ReportsError:
    return ReportsError(
        "the file must be readable Parquet, with names and text in UTF-8",
        source=source,
        examples=str(error)[:200],
        hint="Write the file again.",
    )


def read_frame_columns(frame: object) -> ReportColumns:
    """Take the answers or reports of a pandas, Polars or Arrow table, or of a DuckDB relation.

    Raises:
        ReportsError: not such a table, or without the columns.
    """
    import narwhals as nw

    try:
        if nw.dependencies.is_duckdb_relation(frame):
            relation: Any = frame
            roles = match_columns(relation.columns, ANSWERS, "frame")
            arrow = pa.RecordBatchReader.from_stream(relation.project(", ".join(roles.values()))).read_all()
        else:
            table = nw.from_native(frame, eager_only=True)  # type: ignore[call-overload]
            roles = match_columns(table.columns, ANSWERS, "frame")
            arrow = table.select(list(roles.values())).to_arrow()
        return _columns(roles, arrow, "frame")
    except MemoryError:
        raise
    except (TypeError, pa.ArrowException, UnicodeError, nw.exceptions.NarwhalsError) as error:
        raise ReportsError(
            "a frame must be a pandas, Polars or Arrow table whose columns hold one kind of value each, text in UTF-8",
            source="frame",
            examples=str(error).partition("\n")[0][:200],
            hint="Collect a lazy frame first; turn mixed columns into text.",
        ) from error


def load_gold(
    path: str | PathLike[str],
    *,
    kind: Literal["categorical", "numeric"] | None = None,
    conflicts: Literal["error", "first"] = "error",
) -> dict[str, Any]:
    """Read known truths: task name -> label (text), or number if `kind` is numeric or the column is `value`.

    Raises:
        ReportsError: the file is damaged, a task or truth is missing, a number is none, or a task has two truths
            (under conflicts="first" the first one counts).
    """
    source = str(path)
    roles, columns = _read_csv_roles(Path(path), GOLD)
    task, truth = columns["task"], columns["truth"]
    names, codes = encode_ids(task, None, "task", source)
    reject_rows(truth, truth.names == "", "every gold task needs a truth", source=source, hint="Leave the row out.")
    truths: NDArray[Any] = truth.names[truth.codes]
    if kind == "numeric" or (kind is None and roles["truth"] == "value"):
        truths = parse_number_column(truth, source)
    first = np.unique(codes, return_index=True)[1]
    differs = truths != truths[first][codes]
    if conflicts == "error" and differs.any():
        other = CodedColumn(names, codes.astype(np.int32)).keep(differs)
        raise ReportsError(
            f"a gold task has one truth, but {int(differs.sum())} rows contradict an earlier one",
            source=source,
            rows=tuple(int(row) + 1 for row in np.flatnonzero(differs)[:5]),
            examples=", ".join(repr(str(name)) for name in names[other.codes[:5]]),
            hint="Keep one row per task.",
        )
    return dict(zip(names.tolist(), truths[first].tolist(), strict=True))


def load_prior(path: str | PathLike[str]) -> dict[str, float]:
    """Read a public prior: label -> probability, from the columns `label,probability`.

    Raises:
        ReportsError: the file is damaged, a label is missing or repeated, or the probabilities are not positive numbers
            that sum to 1.
    """
    source = str(path)
    _, columns = _read_csv_roles(Path(path), PRIOR)
    label, probability = columns["label"], columns["probability"]
    names, codes = encode_ids(label, None, "label", source)
    numbers = parse_number_column(probability, source)
    if len(names) != len(codes) or not len(names):
        raise ReportsError(
            "a prior has one row per label", source=source, examples=f"{len(codes)} rows, {len(names)} labels"
        )
    wrong = np.flatnonzero(~(numbers > 0))
    if len(wrong):
        raise ReportsError(
            "prior probabilities must be positive: a report can contradict a 0",
            source=source,
            rows=tuple(int(row) + 1 for row in wrong[:ROWS_SHOWN]),
            examples=", ".join(f"{names[codes[row]]!r} has {numbers[row]:g}" for row in wrong[:ROWS_SHOWN]),
            hint="Give a label that hardly occurs a small probability, such as 1e-6.",
        )
    if not abs(numbers.sum() - 1) < 1e-6:
        raise ReportsError("prior probabilities must sum to 1", source=source, examples=f"sum {numbers.sum():.9g}")
    return dict(zip(names[codes].tolist(), numbers.tolist(), strict=True))


def match_columns(found: Sequence[str], accepted: Accepted, source: str) -> dict[str, str]:
    """Return role -> column name.

    Raises:
        ReportsError: a role has no column, or more than one.
    """
    roles = {role: [name for name in found if name in names] for role, names in accepted.items()}
    for role, names in roles.items():
        if len(names) != 1:
            wanted = "; ".join(" or ".join(options) for options in accepted.values())
            raise ReportsError(
                f"exactly one column for the {role} is needed, {len(names)} were found",
                source=source,
                examples="the columns " + ", ".join(repr(str(name)[:40]) for name in found[:20]),
                hint=f"Name the columns, separated by commas: {wanted}.",
            )
    return {role: names[0] for role, names in roles.items()}


def encode_arrow_column(column: Any, source: str) -> CodedColumn:
    """Code an Arrow column: whole numbers and text by their sorted names, floats by themselves; null is missing.

    Columns that are dictionary-encoded already (Categorical, Enum) are not hashed again. Bytes are read as UTF-8.

    Raises:
        ReportsError: the column holds neither text nor numbers.
    """
    kind = _kind(column)
    if pa.types.is_floating(kind) or pa.types.is_decimal(kind):
        numbers = column.cast(pa.float64()).to_numpy()
        return CodedColumn(numbers, np.arange(len(numbers), dtype=np.int32))
    if pa.types.is_boolean(kind):
        column = pc.if_else(column.cast(kind), "True", "False")
    elif pa.types.is_null(kind):
        column = column.cast(pa.string())
    elif str(kind) in TEXT_KINDS:
        column = _plain_text(column)
    elif not pa.types.is_integer(kind):
        raise ReportsError("columns must hold text or numbers", source=source, examples=f"a column of {kind}")
    if pa.types.is_dictionary(column.type):
        return encode_sorted(column)
    if not pa.types.is_integer(kind):
        return encode_text(column)
    counted = encode_integers(column)
    return CodedColumn(*counted) if counted is not None else encode_sorted(column.dictionary_encode())


def _kind(column: Any) -> Any:
    """Return the type of a column's cells, which a dictionary may hold."""
    return column.type.value_type if pa.types.is_dictionary(column.type) else column.type


def _plain_text(column: Any) -> Any:
    """Return text with the bytes of each cell behind those of the last, also where a dictionary holds it."""
    if pa.types.is_string(_kind(column)) or pa.types.is_large_string(_kind(column)):
        return column
    if not pa.types.is_dictionary(column.type):
        return column.cast(pa.large_string())
    plain: Any = pa.dictionary(column.type.index_type, pa.large_string())
    chunks = [(chunk.indices, chunk.dictionary.cast(pa.large_string())) for chunk in column.chunks]
    return pa.chunked_array([pa.DictionaryArray.from_arrays(*chunk) for chunk in chunks], plain)


def _columns(roles: dict[str, str], table: pa.Table, source: str) -> ReportColumns:
    """Code the columns in threads of their own; errors as they come first in the order of the roles."""
    with ThreadPoolExecutor(len(roles)) as threads:
        waiting = {role: threads.submit(encode_arrow_column, table[name], source) for role, name in roles.items()}
        del table  # each column gives its memory back when it is coded
        coded = {role: column.result() for role, column in waiting.items()}
    return _columns_of(coded, roles, source)


def _columns_of(coded: Mapping[str, CodedColumn], roles: Mapping[str, str], source: str) -> ReportColumns:
    return ReportColumns(coded["task"], coded["worker"], coded["value"], roles["value"], source)


def _read_csv_roles(path: Path, accepted: Accepted) -> tuple[dict[str, str], dict[str, CodedColumn]]:
    """Return the column name and the coded column of each role."""
    roles = match_columns(read_header(path), accepted, str(path))
    coded = read_csv_coded(path, list(roles.values()))
    return roles, {role: coded[name] for role, name in roles.items()}
