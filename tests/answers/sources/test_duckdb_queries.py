"""Queries on DuckDB files: one SELECT that reads its database and nothing else."""

from pathlib import Path

import duckdb
import pytest

from crowdveil.answers.reports import Reports
from crowdveil.answers.sources.location import Layout
from crowdveil.errors import ReportsError
from crowdveil.files.filesystem import PREFIX
from crowdveil.storage.evidence import NO_OPTIONS
from crowdveil.storage.recorded_reading_options import NamedReports
from tests.answers.test_reports import cells

ROWS = [("a", "u", "no"), ("a", "v", "yes"), ("b", "u", "yes")]
LOCAL = "a frame of this process"
"""Name that no query finds, although this module has it."""


@pytest.fixture
def database(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> str:
    """Stand in a folder with a file of DuckDB, a table of answers in it, and a file beside it."""
    monkeypatch.chdir(tmp_path)
    Path("secret.csv").write_text("task,worker,label\na,u,no\nb,v,yes\n")
    with duckdb.connect("a.duckdb") as connection:
        connection.execute("CREATE TABLE votes (task TEXT, worker TEXT, label TEXT, day DATE)")
        connection.executemany("INSERT INTO votes VALUES (?, ?, ?, '2026-01-01')", ROWS)
        connection.execute("INSERT INTO votes VALUES ('c', 'w', 'no', '2026-01-02')")
        connection.execute("CREATE VIEW outside AS SELECT * FROM read_csv('secret.csv')")
    return "a.duckdb"


@pytest.mark.parametrize(
    "query",
    [
        "select task, worker, label from votes where day = '2026-01-01'",
        " SELECT\n*\nFROM votes WHERE task < 'c';",
        "with days as (select * from votes where day < '2026-01-02') select * from days",
        "select task as item, worker as annotator, label as answer from main.votes where task in ('a', 'b')",
        "select * from votes where task != 'c' and label != 'b.duckdb?votes'",
        "from votes where task < 'c'",
        "(select * from votes where task < 'c')",
        "-- of the first day\nselect * from votes where task < 'c'",
        "/* of the\nfirst day */ from votes select task, worker, label where task < 'c'",
        "select * from (values ('a', 'u', 'no'), ('a', 'v', 'yes'), ('b', 'u', 'yes')) as rows(task, worker, label)",
    ],
)
def test_the_rows_of_a_query_are_answers(database: str, query: str) -> None:
    """Columns are found by their names as in a table, over lines and with a semicolon at the end."""
    assert ROWS == cells(Reports.from_source(f"{database}?{query}"))


REFUSED = {
    "two statements": ("select 1; select 2", "one SELECT. Found: 2 statements"),
    "a write after a select": ("select 1; drop table votes", "one SELECT. Found: 2 statements"),
    "a write in a query": ("with one as (select 1) insert into votes select 'a', 'b', 'c', null", "statement INSERT"),
    "a write after a comment": ("-- select\ninsert into votes select 'a', 'b', 'c', null", "begins with SELECT"),
    "a write in parentheses": ("(select 1); drop table votes", "one SELECT. Found: 2 statements"),
    "a file after from": ("from 'secret.csv'", "by itself.*Permission Error.*and no files"),
    "rows without names": ("values ('a', 'u', 'no')", "column for the task"),
    "a write": ("insert into votes values ('a', 'b', 'c', null)", "begins with SELECT or WITH"),
    "a copy": ("copy votes to 'made.csv'", "begins with SELECT or WITH"),
    "an attached database": ("attach 'other.duckdb'", "begins with SELECT or WITH"),
    "a pragma": ("pragma database_list", "begins with SELECT or WITH"),
    "a file by function": ("select * from read_csv('secret.csv')", "by itself.*Permission Error.*and no files"),
    "a file by name": ("select * from 'secret.csv'", "by itself.*Permission Error.*and no files"),
    "a file in a view": ("select * from outside", "by itself.*Permission Error.*and no files"),
    "a text": ("select * from read_text('secret.csv')", "by itself.*Permission Error.*and no files"),
    "names of files": ("select * from glob('*')", "by itself.*Permission Error.*and no files"),
    "an extension": ("select * from sqlite_scan('a', 'b')", "by itself.*sqlite_scanner"),
    "a variable of Python": ("select * from LOCAL", "by itself.*LOCAL does not exist"),
    "no such table": ("select * from voices", "by itself.*voices does not exist"),
    "a wrong word": ("select task worker label from votes", "by itself.*Parser Error"),
    "a type that Parquet does not have": (
        "select task, worker, label, interval 1 day as took from votes",
        r"type that Parquet has. Found: 'took' \(month_day_nano_interval\).*cast\(NAME as text\)",
    ),
    "no columns of answers": ("select day from votes", "exactly one column for the task.*'day'"),
}


@pytest.mark.parametrize("case", REFUSED)
def test_other_queries_are_refused(database: str, case: str) -> None:
    """What is no single SELECT, or reads more than its database, is refused in words, and nothing is written."""
    query, message = REFUSED[case]
    before = Path(database).read_bytes()
    with pytest.raises(ReportsError, match=message) as caught:
        Reports.from_source(f"{database}?{query}")

    assert f"{database}?{query}" in str(caught.value)
    assert PREFIX not in str(caught.value)
    assert before == Path(database).read_bytes()
    assert {database, "secret.csv"} == {path.name for path in Path().iterdir()}


def test_names_like_the_word_select_stay_names(database: str) -> None:
    """A table is no query because its name begins with the letters of one."""
    for name in ("selected", "select", "with_names", "from", "from_ann", "values"):
        with duckdb.connect(database) as connection:
            connection.execute(f"CREATE TABLE \"{name}\" AS SELECT * FROM votes WHERE task < 'c'")

        assert ROWS == cells(Reports.from_source(f"{database}?{name}"))


def test_a_record_keeps_a_query_as_it_is(tmp_path: Path) -> None:
    """Only the path of the database is relative to the folder of results; the query is text, and no path."""
    query = "select task, worker, label from votes where label != '../a//b' and 4 // 2 = 2"
    given = NamedReports(sources=(f"{tmp_path}/data/a.duckdb?{query}",), layout=Layout(), options=NO_OPTIONS)
    text = given.portable_json(tmp_path / "found")

    assert f"../data/a.duckdb?{query}" in text
    assert given.sources == NamedReports.from_json(text, tmp_path / "found", "").sources
