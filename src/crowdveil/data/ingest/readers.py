"""Readers of coded columns: CSV and Parquet files, Arrow columns.

Columns are identified by name. Other columns, which no guarantee covers (times, addresses), are not read.
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
"""Names of Arrow's text types; not all supported versions have the views."""
ROWS_AT_ONCE = 1 << 16
"""Rows per batch of a Parquet file."""
ROWS_SHOWN = 5
"""Rows per error message."""


@dataclass(frozen=True, slots=True, eq=False)
class ReportColumns:
    """Coded columns of reports, not yet validated; `value_name` is the header of the value column."""

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
    """Return the columns of a CSV file of answers or reports; all cells are text.

    Raises:
        ReportsError: no such file, damaged, or without the columns.
    """
    roles, coded = _read_csv_roles(Path(path), ANSWERS)
    return _columns_of(coded, roles, str(path))


def read_parquet_columns(path: str | PathLike[str]) -> ReportColumns:
    """Return the columns of a Parquet file of answers or reports; errors as `read_columns`."""
    source = str(path)
    try:
        with pq.ParquetFile(Path(path)) as file:
            schema = file.schema_arrow
            roles = match_columns(schema.names, ANSWERS, source)
            names = list(roles.values())
            if all(pa.types.is_string(schema.field(name).type) for name in names):
                # Streaming: a group of rows is encoded while the next is read.
                batches = file.iter_batches(batch_size=ROWS_AT_ONCE, columns=names)
                coded = encode_batches(batches, names, GROUP_BYTES)
                return _columns_of({role: coded[name] for role, name in roles.items()}, roles, source)
        return encode_columns(roles, pq.read_table(Path(path), columns=names, partitioning=None), source)
    except MemoryError:
        raise  # also an Arrow error, but not a defect of the file
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


def load_gold(
    path: str | PathLike[str],
    *,
    kind: Literal["categorical", "numeric"] | None = None,
    conflicts: Literal["error", "first"] = "error",
) -> dict[str, Any]:
    """Return known truths by task: labels (text), or numbers if `kind` is numeric or the column is `value`.

    Raises:
        ReportsError: a damaged file, a missing task or truth, an invalid number, or two truths of one task (under
            conflicts="first" the first is used).
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
    """Return a public prior, probability by label, from the columns `label,probability`.

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
    """Return the column name of each role.

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
    """Return the coded column of an Arrow column of text or numbers; null is missing, bytes are UTF-8.

    Dictionary-encoded columns (Categorical, Enum) are not hashed again.

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
    """Return the type of a column's cells, or of its dictionary."""
    return column.type.value_type if pa.types.is_dictionary(column.type) else column.type


def _plain_text(column: Any) -> Any:
    """Return text of any Arrow type as contiguous text, inside a dictionary too."""
    if pa.types.is_string(_kind(column)) or pa.types.is_large_string(_kind(column)):
        return column
    if not pa.types.is_dictionary(column.type):
        return column.cast(pa.large_string())
    plain: Any = pa.dictionary(column.type.index_type, pa.large_string())
    chunks = [(chunk.indices, chunk.dictionary.cast(pa.large_string())) for chunk in column.chunks]
    return pa.chunked_array([pa.DictionaryArray.from_arrays(*chunk) for chunk in chunks], plain)


def encode_columns(
    roles: Mapping[str, str], table: pa.Table, source: str, *, value_name: str | None = None
) -> ReportColumns:
    """Return the columns, encoded in one thread each; the first error in the order of roles is raised.

    Args:
        roles: column name of each role.
        table: has these columns.
        source: for error messages.
        value_name: header of the value column; by default its name.
    """
    with ThreadPoolExecutor(len(roles)) as threads:
        waiting = {role: threads.submit(encode_arrow_column, table[name], source) for role, name in roles.items()}
        del table  # frees each column once it is encoded
        coded = {role: column.result() for role, column in waiting.items()}
    return _columns_of(coded, {**roles, "value": value_name or roles["value"]}, source)


def _columns_of(coded: Mapping[str, CodedColumn], roles: Mapping[str, str], source: str) -> ReportColumns:
    return ReportColumns(coded["task"], coded["worker"], coded["value"], roles["value"], source)


def _read_csv_roles(path: Path, accepted: Accepted) -> tuple[dict[str, str], dict[str, CodedColumn]]:
    """Return the column name and the coded column of each role."""
    roles = match_columns(read_header(path), accepted, str(path))
    coded = read_csv_coded(path, list(roles.values()))
    return roles, {role: coded[name] for role, name in roles.items()}
