"""Frames of the caller, read as Arrow and returned in kind: pandas, Polars, Arrow, Dask, DuckDB, dicts of columns.

Integers, truth values, categories and enumerations are text inside; `OriginalColumns` turns them back.
"""

from abc import ABC, abstractmethod
from collections import Counter
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager, suppress
from dataclasses import dataclass, replace
from importlib import import_module
from os import PathLike
from typing import TYPE_CHECKING, Any, Literal

import pyarrow as pa
import pyarrow.compute as pc

from crowdveil.answers.importers.export_file import integers_if_whole
from crowdveil.answers.ingest.arrow_columns import encode_arrow_column, encode_columns
from crowdveil.answers.ingest.column_readers import ColumnNames, ReportColumns
from crowdveil.answers.ingest.gold_files import DrawnGold, gold_of_columns, gold_roles
from crowdveil.errors import ReportsError, SettingsError

if TYPE_CHECKING:
    import pandas
    import polars

SOURCE = "frame"
FrameKind = Literal["pandas", "polars", "arrow", "dask", "duckdb", "dict"]


@dataclass(frozen=True, slots=True, eq=False)
class OriginalColumns:
    """Names and types of the columns that reports were read from.

    Attributes:
        task, worker: names of the columns.
        task_type, worker_type: Arrow types of their cells.
        label: the column of labels or numbers with no row; its type holds the values of a dictionary.
        label_name: its name.
        others: names of the columns that are not read.
    """

    task: str
    worker: str
    task_type: Any
    worker_type: Any
    label: Any
    label_name: str
    others: tuple[str, ...] = ()

    @property
    def ordered_labels(self) -> tuple[str, ...] | None:
        """All values of an ordered categorical column, as text; None for other columns."""
        if not pa.types.is_dictionary(self.label.type) or not self.label.type.ordered:
            return None
        return tuple(str(value) for value in self.label.dictionary.to_pylist())

    @property
    def holds_decimals(self) -> bool:
        """Whether the column of answers is of floating-point numbers."""
        return bool(pa.types.is_floating(self.label.type))

    def label_values(self, names: Sequence[str]) -> Any:
        """Return labels as an Arrow array of the original type; None if one of them has no such value."""
        text = pa.array(names, pa.string())
        kind = self.label.type
        try:
            if not pa.types.is_dictionary(kind):
                return text.cast(kind)
            values = self.label.dictionary
            codes = pc.index_in(text.cast(values.type), values)
        except pa.ArrowException:
            return None
        if codes.null_count:
            return None
        # Unsigned codes, as Polars has, are not read by every pandas.
        signed = kind.index_type if pa.types.is_signed_integer(kind.index_type) else pa.int32()
        return pa.DictionaryArray.from_arrays(codes.cast(signed), values, ordered=kind.ordered)

    def restore_identifiers(self, table: pa.Table) -> tuple[pa.Table, dict[str, str]]:
        """Return a table whose columns "task" and "worker" have their original types, and names unless one is taken.

        The names that were given are returned too, each with the column of the answers that it is.
        """
        own = {"task": (self.task, self.task_type), "worker": (self.worker, self.worker_type)}
        own = {role: named for role, named in own.items() if role in table.column_names}
        taken = set(table.column_names) - set(own)
        names = {role: role if name in taken else name for role, (name, _) in own.items()}
        if len(set(names.values())) < len(names):
            names = {role: role for role in names}
        for role, (_, kind) in own.items():
            table = table.set_column(table.column_names.index(role), role, _cast_identifiers(table.column(role), kind))
        given = {name: name for role, name in names.items() if name == own[role][0]}
        return table.rename_columns([names.get(name, name) for name in table.column_names]), given


def _cast_identifiers(column: Any, kind: Any) -> Any:
    """Return identifiers in a type; integers that it cannot hold in 64 bits, others unchanged."""
    for wider in (kind, *((pa.int64(),) if pa.types.is_integer(kind) else ())):
        with suppress(pa.ArrowException):
            return column.cast(wider)
    return column


class ArrowRows(ABC):
    """Result with rows, as a frame of each kind."""

    @abstractmethod
    def to_arrow(self) -> pa.Table:
        """Return the rows as an Arrow table."""

    def to_pandas(self) -> "pandas.DataFrame":
        """Return `to_arrow` as a pandas frame; raises SettingsError without pandas."""
        return as_pandas(self.to_arrow())

    def to_polars(self) -> "polars.DataFrame":
        """Return `to_arrow` as a Polars frame; raises SettingsError without Polars."""
        return as_polars(self.to_arrow())


def coded_and_original_columns(frame: Any, names: ColumnNames) -> tuple[ReportColumns, OriginalColumns]:
    """Return the coded columns of a frame, and their original names and types.

    Raises:
        ReportsError: not a frame, a missing column, or a column of mixed kinds.
    """
    with _errors_as_report_errors(frame):
        columns = list[str]()

        def choose(found: list[str]) -> dict[str, str]:
            columns.extend(found)
            return _answer_roles(names, found)

        roles, table = _arrow_by_role(frame, choose)
        others = tuple(name for name in columns if name not in roles.values())
        original = replace(_original_columns(table, roles), others=others)
        return encode_columns(roles, table, SOURCE, value_name=names.answer_name([roles["value"]])), original


def read_gold_frame(frame: Any) -> DrawnGold:
    """Return known truths by task, and the seed of their draw.

    Errors are those of `coded_and_original_columns` and `gold_of_columns`. The columns are those of a file
    of gold: task, truth (or label, value), and seed if it was drawn.
    """
    with _errors_as_report_errors(frame):
        roles, table = _arrow_by_role(frame, lambda columns: gold_roles(columns, "gold"))
        columns = {role: integers_if_whole(table[name]) for role, name in roles.items()}
        return gold_of_columns({role: encode_arrow_column(column, "gold") for role, column in columns.items()}, "gold")


def _answer_roles(names: ColumnNames, columns: list[str]) -> dict[str, str]:
    """Return the column of each role of answers; where workers may be columns, the hint says so."""
    try:
        return names.resolve_columns(columns, SOURCE)
    except ReportsError as error:
        raise error.changed(hint=error.hint + _wide_hint(error, columns)) from error


def _wide_hint(error: ReportsError, columns: Sequence[str]) -> str:
    """Return what helps where the workers may be columns; empty where they are not."""
    return WIDE if error.code == "no worker or answer column" and len(columns) > 2 else ""


MIXED_COLUMNS = "Give each column its own name, and turn mixed columns into text."
NO_FRAME = "Such as {'task': [1, 1], 'worker': ['ann', 'bob'], 'label': ['no', 'yes']}, a row for each answer."


@contextmanager
def _errors_as_report_errors(frame: Any, source: str = SOURCE) -> Iterator[None]:
    """Turn errors on what is no frame, or has columns of mixed kinds, into ReportsError."""
    import narwhals as nw

    _refuse_if_without_column_names(frame, source)
    try:
        yield
    except MemoryError:
        raise
    except (TypeError, ValueError, pa.ArrowException, UnicodeError, nw.exceptions.NarwhalsError) as error:
        if isinstance(error, ReportsError | SettingsError):
            raise
        raise ReportsError(
            "a frame must be a pandas, Polars, Arrow or Dask table, a DuckDB relation or a dict of columns; each "
            "column must hold one kind of value, and text must be UTF-8",
            source=source,
            examples=str(error).partition("\n")[0][:200] if _has_columns(frame) else type(frame).__name__,
            hint=MIXED_COLUMNS if _has_columns(frame) else NO_FRAME,
        ) from error


def _has_columns(frame: Any) -> bool:
    return isinstance(frame, Mapping) or hasattr(frame, "columns")


WITHOUT_NAMES = (
    "A list of rows becomes a frame by pandas.DataFrame(rows), a series by .reset_index(); arrays go into "
    "Reports.from_arrays(...)."
)


def _refuse_if_without_column_names(frame: Any, source: str) -> None:
    """Refuse a series, an array, a list, a path: what has no named columns."""
    import narwhals as nw

    is_path = isinstance(frame, str | PathLike)
    if (
        is_path
        or isinstance(frame, Sequence)
        or nw.dependencies.is_into_series(frame)
        or hasattr(frame, "__array_interface__")
    ):
        hint = "Read files with Reports.from_source(...)." if is_path else WITHOUT_NAMES
        raise ReportsError("a frame must have named columns", source=source, examples=type(frame).__name__, hint=hint)


def is_frame(frame: Any) -> bool:
    """Return whether a frame of some kind was given."""
    import narwhals as nw

    return isinstance(frame, Mapping) or isinstance(
        nw.from_native(frame, pass_through=True), nw.DataFrame | nw.LazyFrame
    )


def as_table(frame: Any, *, source: str = SOURCE) -> pa.Table:
    """Return all columns of a frame as an Arrow table.

    Raises:
        ReportsError: not a frame, or columns of different lengths or of mixed kinds.
    """
    with _errors_as_report_errors(frame, source):
        return _arrow_by_role(frame, lambda columns: {name: name for name in columns})[1]


def kind_of_frame(frame: Any) -> FrameKind:
    """Return the kind of a frame; "arrow" for all that are none of the others."""
    import narwhals as nw

    if isinstance(frame, Mapping):
        return "dict"
    if nw.dependencies.is_duckdb_relation(frame):
        return "duckdb"
    if "dask" in type(frame).__module__:
        return "dask"
    if nw.dependencies.is_pandas_dataframe(frame):
        return "pandas"
    if nw.dependencies.is_polars_dataframe(frame) or nw.dependencies.is_polars_lazyframe(frame):
        return "polars"
    return "arrow"


WIDE = (
    " A table with a column for each worker becomes one with a row for each answer by "
    "frame.melt('task', var_name='worker', value_name='label') in pandas."
)
Choose = Callable[[list[str]], dict[str, str]]
"""Function from the names of all columns to that of each role."""


def _arrow_by_role(frame: Any, choose: Choose) -> tuple[dict[str, str], pa.Table]:
    """Return the column of each role, and an Arrow table of these columns."""
    import narwhals as nw

    kind = kind_of_frame(frame)
    if not nw.dependencies.is_polars_lazyframe(frame):
        _refuse_repeated_columns(frame)
    if kind == "dict":
        roles = choose(list(frame))
        return roles, pa.table({name: frame[name] for name in roles.values()})
    if kind == "duckdb":
        roles = choose(list(frame.columns))
        chosen = frame.project(", ".join(map(_quoted_for_sql, roles.values())))
        return roles, chosen.to_arrow_table()
    if kind == "dask":
        roles = choose(list(frame.columns))
        frame = frame[list(roles.values())].compute()
    if nw.dependencies.is_polars_lazyframe(frame):
        roles = choose(frame.collect_schema().names())
        frame = frame.select(list(roles.values())).collect()
    table = nw.from_native(frame, eager_only=True)
    roles = _columns_by_role_or_index_hint(choose, frame, table.columns)
    return roles, table.select(list(roles.values())).to_arrow()


def _refuse_repeated_columns(frame: Any) -> None:
    """Refuse a frame in which several columns have one name."""
    named: Any = getattr(frame, "column_names", None) or getattr(frame, "columns", ())
    counts = Counter(name for name in named if isinstance(name, str))
    repeated = [f"{count} columns {name!r}" for name, count in counts.items() if count > 1]
    if repeated:
        raise ReportsError(
            "no two columns may have the same name",
            source=SOURCE,
            examples=", ".join(repeated),
            hint="Rename or remove one of them.",
        )


def _columns_by_role_or_index_hint(choose: Choose, frame: Any, columns: list[str]) -> dict[str, str]:
    """Return the column of each role; where one is missing that may be in the index, the hint says so."""
    try:
        return choose(columns)
    except ReportsError as error:
        index = [str(name) for name in getattr(getattr(frame, "index", None), "names", ()) if name is not None]
        if not index:
            raise
        found = f"the columns {', '.join(map(repr, columns))}, and the index {', '.join(map(repr, index))}"
        hint = f"An index is not read: give frame.reset_index().{_wide_hint(error, columns)}"
        raise error.changed(examples=found, hint=hint) from error


def _original_columns(table: pa.Table, roles: Mapping[str, str]) -> OriginalColumns:
    types = {role: table.schema.field(name).type for role, name in roles.items()}
    cells = {role: kind.value_type if pa.types.is_dictionary(kind) else kind for role, kind in types.items()}
    label: Any = pa.array([], cells["value"])
    if pa.types.is_dictionary(types["value"]):
        column = table[roles["value"]].unify_dictionaries()
        values = column.chunk(0).dictionary if column.num_chunks else label
        nothing: Any = pa.array([], types["value"].index_type)
        label = pa.DictionaryArray.from_arrays(nothing, values, ordered=types["value"].ordered)
    return OriginalColumns(roles["task"], roles["worker"], cells["task"], cells["worker"], label, roles["value"])


def as_same_kind(frame: Any, table: pa.Table, type_source_columns: Mapping[str, str]) -> Any:
    """Return an Arrow table as the same kind of frame as another.

    Args:
        frame: frame of the caller.
        table: result.
        sources: for columns of the result, the column of `frame` whose type they get.
    """
    match kind_of_frame(frame):
        case "dict":
            lists = all(isinstance(column, list | tuple) for column in frame.values())
            columns = {name: table[name] for name in table.column_names}
            return {name: column.to_pylist() if lists else column.to_numpy() for name, column in columns.items()}
        case "duckdb":
            return _as_duckdb_relation(frame, table, type_source_columns)
        case "polars":
            return _as_polars_with_source_types(frame, table, type_source_columns)
        case "pandas":
            return _with_pandas_types(table.to_pandas(), frame.dtypes, type_source_columns)
        case "dask":
            import dask.dataframe

            frames: Any = dask.dataframe
            return frames.from_pandas(table.to_pandas(), npartitions=frame.npartitions)
    return table


def _as_duckdb_relation(relation: Any, crowdveil_result: pa.Table, sources: Mapping[str, str]) -> Any:
    """Return a relation on the same connection; DuckDB finds the table by the name of the argument."""
    types, chosen = dict(zip(relation.columns, relation.types, strict=True)), []
    for name in crowdveil_result.column_names:
        column = _quoted_for_sql(name)
        if name in sources:
            kind = types[sources[name]]  # which may not hold names that were given beside the answers
            lost = f"{column} IS NOT NULL AND TRY_CAST({column} AS {kind}) IS NULL"
            count = relation.query("crowdveil_answers", f"SELECT count(*) FROM crowdveil_result WHERE {lost}")
            column = column if count.fetchall()[0][0] else f"CAST({column} AS {kind}) AS {column}"
        chosen.append(column)
    found = relation.query("crowdveil_answers", f"SELECT {', '.join(chosen)} FROM crowdveil_result")
    return found.set_alias("crowdveil_result")


def _as_polars_with_source_types(frame: Any, table: pa.Table, source_column_of: Mapping[str, str]) -> Any:
    types = frame.collect_schema()
    found: Any = as_polars(table)
    import narwhals as nw
    import polars

    for name, source in source_column_of.items():
        with suppress(polars.exceptions.PolarsError):  # such as a given identifier outside an enumeration
            found = found.with_columns(found[name].cast(types[source]))
    return found.lazy() if nw.dependencies.is_polars_lazyframe(frame) else found


def _with_pandas_types(found: Any, types: Any, sources: Mapping[str, str]) -> Any:
    for name, source in sources.items():
        kind, column = types[source], found[name]
        if hasattr(kind, "categories") and not column.dropna().isin(kind.categories).all():
            continue  # a label or name outside the original type, such as a given one
        with suppress(TypeError, ValueError, OverflowError):
            cast = column.astype(kind)
            if hasattr(kind, "categories") or (cast.astype(column.dtype) == column).all():
                found[name] = cast
    return found


def as_polars(table: pa.Table) -> "polars.DataFrame":
    """Return an Arrow table as a Polars frame.

    Raises:
        SettingsError: Polars is not installed.
    """
    return _with_package("Polars", lambda: import_module("polars").from_arrow(table))


def as_pandas(table: pa.Table) -> "pandas.DataFrame":
    """Return an Arrow table as a pandas frame.

    Raises:
        SettingsError: pandas is not installed.
    """
    return _with_package("pandas", table.to_pandas)


def _with_package(package: str, convert: Callable[[], Any]) -> Any:
    """Return a conversion that needs a package, or say how it is installed."""
    try:
        return convert()
    except ImportError as error:
        hint = f"pip install 'crowdveil[{package.lower()}]'"
        raise SettingsError(f"this needs {package}", value="no such package", hint=hint) from error


def _quoted_for_sql(name: str) -> str:
    """Return the name of a column in SQL."""
    return '"' + name.replace('"', '""') + '"'
