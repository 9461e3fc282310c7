"""DuckDB relations are read like the tables they stand for."""

import pytest

from crowdveil.answers.reports import Reports
from crowdveil.channels.alphabet import Categories
from crowdveil.errors import ReportsError
from tests.answers.test_reports import cells

duckdb = pytest.importorskip("duckdb", reason="the extra crowdveil[duckdb] is not installed")


@pytest.mark.parametrize("kind", ["VARCHAR", "ENUM ('unused', 'y', 'x')"])
def test_a_relation_is_read_like_a_table(kind) -> None:
    """Rows of a query, text or enumeration, give the same reports as a table; other columns are not read."""
    with duckdb.connect() as connection:
        connection.sql(f"CREATE TABLE t (task VARCHAR, worker INTEGER, label {kind}, note VARCHAR)")
        connection.sql("INSERT INTO t VALUES ('b', 2, 'y', 'n'), ('a', 1, 'x', 'n')")

        assert [("a", 1, "x"), ("b", 2, "y")] == cells(Reports.from_frame(connection.table("t")))
        assert [("b", 2, "y")] == cells(
            Reports.from_frame(connection.sql("SELECT * FROM t WHERE worker = 2"), alphabet=Categories(("x", "y")))
        )


def test_a_relation_without_the_columns_is_refused() -> None:
    """What is missing is named, as for a file."""
    with duckdb.connect() as connection, pytest.raises(ReportsError, match="column for the task is needed"):
        Reports.from_frame(connection.sql("SELECT 1 AS worker, 'x' AS label"))
