"""Tables of SQL databases: DuckDB files, and databases with a SQLAlchemy URL, read in parts."""

import re
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from importlib import import_module
from pathlib import Path
from typing import Any

import pyarrow as pa

from crowdveil.data.ingest.readers import NO_NAMES, ColumnNames, ReportColumns, encode_columns
from crowdveil.errors import ReportsError

ROWS_AT_ONCE = 1 << 16
DUCKDB = (".duckdb", ".ddb")
POSTGRESQL = re.compile(r"^postgres(ql)?://")
"""Beginning of a URL without a driver; psycopg 3 is the one of the extra `sql`."""


@dataclass(frozen=True)
class SqlTable:
    """One table or view.

    Attributes:
        database: path of a DuckDB file, or SQLAlchemy URL.
        table: name, with its schema before a point if it has one.
    """

    database: str
    table: str

    @property
    def name(self) -> str:
        """Name for messages; a password in the URL is hidden."""
        head, at, rest = self.database.rpartition("@")
        user = head.rpartition(":")[0] + ":***" if at and head.count(":") > 1 else head
        return f"{user}{at}{rest}?{self.table}"

    @property
    def column_names(self) -> list[str]:
        """Names of the columns; errors as `read`."""
        with self._opened() as (names, _):
            return names

    def read(self, names: ColumnNames = NO_NAMES) -> ReportColumns:
        """Return the columns of answers; all others stay in the database.

        Raises:
            ReportsError: the package is missing, the database or table cannot be read, or it lacks a column.
        """
        with self._opened() as (found, parts):
            roles = names.roles(found, self.name)
            empty = pa.table({name: pa.array([], pa.string()) for name in roles.values()})
            tables = list(parts(list(roles.values()))) or [empty]
        joined = pa.concat_tables(tables, promote_options="permissive").rename_columns(list(roles))
        return encode_columns(
            {role: role for role in roles}, joined, self.name, value_name=names.answer_name([roles["value"]])
        )

    @contextmanager
    def _opened(self) -> Iterator[tuple[list[str], Any]]:
        """Yield the names of the columns, and a function from names to tables of parts of the rows."""
        try:
            with self._duckdb() if self.database.lower().endswith(DUCKDB) else self._sqlalchemy() as opened:
                yield opened
        except (ReportsError, MemoryError):
            raise
        except ImportError as error:
            extra = "duckdb" if self.database.lower().endswith(DUCKDB) else "sql"
            raise ReportsError(
                f"the Python package {error.name} is needed to read this database",
                source=self.name,
                hint=f"pip install 'crowdveil[{extra}]', and the driver of the database.",
            ) from error
        except Exception as error:  # the drivers' errors have no common class
            raise ReportsError(
                "the database and its table must exist and be readable",
                source=self.name,
                examples=str(error).partition("\n")[0][:200],
                hint="Name it as file.duckdb?table, or as URL?table, such as postgresql://host/name?table.",
            ) from error

    @contextmanager
    def _duckdb(self) -> Iterator[tuple[list[str], Any]]:
        duckdb: Any = import_module("duckdb")
        if not Path(self.database).is_file():
            raise FileNotFoundError(f"no file {self.database}")
        table = ".".join(map(_quoted, self.table.split(".")))
        with duckdb.connect(self.database, read_only=True) as connection:
            found = connection.sql(f"SELECT * FROM {table} LIMIT 0").columns

            def parts(columns: list[str]) -> Iterator[pa.Table]:
                chosen = ", ".join(map(_quoted, columns))
                yield connection.sql(f"SELECT {chosen} FROM {table}").to_arrow_table()

            yield found, parts

    @contextmanager
    def _sqlalchemy(self) -> Iterator[tuple[list[str], Any]]:
        sql: Any = import_module("sqlalchemy")
        schema, _, name = self.table.rpartition(".")
        engine = sql.create_engine(POSTGRESQL.sub("postgresql+psycopg://", self.database))
        try:
            found = [column["name"] for column in sql.inspect(engine).get_columns(name, schema=schema or None)]
            table = sql.table(name, *map(sql.column, found), schema=schema or None)

            def parts(columns: list[str]) -> Iterator[pa.Table]:
                query = sql.select(*(table.c[column] for column in columns))
                with engine.connect().execution_options(stream_results=True) as connection:
                    for rows in connection.execute(query).partitions(ROWS_AT_ONCE):
                        yield pa.table([pa.array(cells) for cells in zip(*rows, strict=True)], names=columns)

            yield found, parts
        finally:
            engine.dispose()


def _quoted(name: str) -> str:
    doubled = name.replace('"', '""')
    return f'"{doubled}"'
