"""Sources of answers: several files, folders, patterns, streams, URLs and tables in DuckDB, read alike."""

import gzip
import io
import json
import sys
from collections.abc import Callable
from pathlib import Path

import duckdb
import fsspec
import pyarrow as pa
import pyarrow.csv
import pyarrow.parquet as pq
import pytest

from crowdveil.answers.ingest.column_readers import ColumnNames
from crowdveil.answers.read_options import ReadOptions
from crowdveil.answers.reports import Reports
from crowdveil.answers.sources.answer_source import open_source
from crowdveil.answers.sources.location import Layout
from crowdveil.errors import ReportsError, SettingsError
from tests.answers.test_reports import cells

SAMPLES = Path(__file__).parents[3] / "docs" / "samples"

ROWS = [("a", "v", "x"), ("b", "w", "y"), ("c", "v", "y"), ("c", "w", "x")]
TABLE = pa.table(dict(zip(("task", "worker", "label"), map(list, zip(*ROWS, strict=True)), strict=True)))
HALVES = TABLE.slice(0, 2), TABLE.slice(2)


def read(*sources: str | Path, layout: Layout | None = None, **options: object) -> list[tuple]:
    """Rows of the reports of a source."""
    with open_source([str(source) for source in sources], layout) as source:
        columns, _ = source.read_columns_and_notes()
    return cells(Reports.from_columns(columns, ReadOptions(**options)))  # type: ignore[arg-type]


def write(table: pa.Table, path: Path) -> Path:
    """Write a table in the form of a file's name."""
    path.parent.mkdir(parents=True, exist_ok=True)
    if path.suffix == ".parquet":
        pq.write_table(table, path)
    elif path.suffix == ".arrow":
        with pa.OSFile(str(path), "wb") as file, pa.ipc.new_file(file, table.schema) as writer:
            writer.write_table(table)
    elif path.suffix == ".json":
        path.write_text(json.dumps(table.to_pylist()))
    elif path.suffix == ".jsonl":
        path.write_text("".join(json.dumps(row) + "\n" for row in table.to_pylist()))
    else:
        options = pa.csv.WriteOptions(delimiter="\t" if path.suffix == ".tsv" else ",", quoting_style="none")
        pa.csv.write_csv(table, path, options)
    return path


@pytest.mark.parametrize("end", ["csv", "tsv", "parquet", "arrow", "json", "jsonl"])
def test_one_file_of_every_form(tmp_path: Path, end: str) -> None:
    """A file is read alike in every form, whatever its name ends in."""
    path = write(TABLE, tmp_path / f"answers.{end}")

    assert ROWS == read(path)
    assert ROWS == read(path.rename(tmp_path / "answers"))


@pytest.mark.parametrize("end", ["csv", "parquet", "arrow", "jsonl"])
def test_several_files_a_folder_and_a_pattern(tmp_path: Path, end: str) -> None:
    """Several files, the folder that holds them and a pattern give the rows of all, in any order of files."""
    first, second = (write(half, tmp_path / "parts" / f"{name}.{end}") for half, name in zip(HALVES, "12", strict=True))
    (tmp_path / "parts" / "_SUCCESS").touch()

    assert ROWS == read(first, second) == read(second, first)
    assert ROWS == read(tmp_path / "parts") == read(tmp_path / "*" / f"?.{end}")


def test_files_of_several_forms_and_types(tmp_path: Path) -> None:
    """Files may differ in form, in the names of columns and in the type of identifiers."""
    numbers = pa.table({"Task": [1, 2], "annotator": ["v", "w"], "Answer": ["x", "y"]})
    first = write(numbers, tmp_path / "1.parquet")
    second = write(TABLE, tmp_path / "2.tsv")

    assert [("1", "v", "x"), ("2", "w", "y"), *ROWS] == read(first, second)


def test_integers_stay_integers(tmp_path: Path) -> None:
    """Integer identifiers of several Parquet files stay integers, and a column `value` holds numbers."""
    for number in (1, 2):
        write(pa.table({"task": [number], "worker": [7], "value": [0.5]}), tmp_path / "parts" / f"{number}.parquet")

    assert [(1, 7, 0.5), (2, 7, 0.5)] == read(tmp_path / "parts")


def test_null_is_no_answer(tmp_path: Path) -> None:
    """The label NULL is no report, but its task and worker are known."""
    path = tmp_path / "answers.csv"
    path.write_text("task,worker,label\na,v,x\nb,w,NULL\na,w,y\n")

    with open_source([str(path)]) as source:
        columns, notes = source.read_columns_and_notes()
    found = Reports.from_columns(columns, ReadOptions())

    assert [("a", "v", "x"), ("a", "w", "y")] == cells(found)
    assert (["a", "b"], ["v", "w"]) == (list(found.tasks), list(found.workers))
    assert ("No answer (NULL): 1 record.",) == notes


def test_standard_input(monkeypatch: pytest.MonkeyPatch) -> None:
    """`-` reads standard input, whatever its form."""
    text = "".join(json.dumps(row) + "\n" for row in TABLE.to_pylist()).encode()
    for data in (
        text,
        gzip.compress(text),
        b"task,worker,label\n" + b"".join(f"{t},{w},{x}\n".encode() for t, w, x in ROWS),
    ):
        monkeypatch.setattr(sys, "stdin", io.TextIOWrapper(io.BytesIO(data)))

        assert ROWS == read("-")


@pytest.fixture
def bucket(tmp_path: Path) -> Callable[[str], str]:
    """Function from the name of a file system to the URL of a folder with two Parquet files in `parts`."""

    def filled(scheme: str) -> str:
        local = tmp_path / "bucket"
        for half, name in zip(HALVES, "12", strict=True):
            write(half, local / "parts" / f"{name}.parquet")
        if scheme == "file":
            return local.as_uri()
        memory = fsspec.filesystem("memory")
        memory.put(str(local), "/bucket", recursive=True)
        return "memory://bucket"

    return filled


@pytest.mark.parametrize("scheme", ["file", "memory"])
def test_urls_of_remote_file_systems(bucket, scheme: str) -> None:
    """URLs of pyarrow's and fsspec's file systems name files, folders and patterns."""
    url = bucket(scheme)

    assert ROWS == read(f"{url}/parts") == read(f"{url}/parts/*.parquet")
    assert ROWS[:2] == read(f"{url}/parts/1.parquet")
    assert ROWS == read(f"{url}/parts/1.parquet", f"{url}/parts/2.parquet")


def test_a_remote_collection_stays_whole(tmp_path: Path) -> None:
    """With remote reports come the certificate and crowd.json beside them; the copies are removed at the end."""
    remote = tmp_path / "remote"
    write(TABLE, remote / "reports.csv")
    for name in ("certificate.json", "crowd.json", "other.json"):
        (remote / name).write_text("{}")

    with open_source([(remote / "reports.csv").as_uri()]) as source:
        folder = source.path.parent
        assert {"reports.csv", "certificate.json", "crowd.json"} == {path.name for path in folder.iterdir()}
    assert not folder.exists()


def test_a_pattern_does_not_lose_the_collection(tmp_path: Path) -> None:
    """Remote files that match a pattern bring the certificate beside them: one is read with it, several are refused."""
    remote = tmp_path / "remote"
    write(TABLE, remote / "part1.csv")
    (remote / "certificate.json").write_text("{}")

    with open_source([f"{remote.as_uri()}/part*.csv"]) as source:
        assert source.collection_path is not None
        assert (source.collection_path.parent / "certificate.json").is_file()
    write(TABLE, remote / "part2.csv")
    for sources in (f"{remote.as_uri()}/part*.csv", str(remote), str(remote / "part*.csv")):
        with pytest.raises(ReportsError, match="read one by one"):
            read(sources)


@pytest.mark.parametrize(
    ("url", "message"),
    [
        ("memory://nowhere/x.csv", "remote file must exist"),
        ("nosuch://user:secret@host/x.csv", "remote file must exist"),
        ("postgresql://user:secret@host/base?votes", "Rows of other databases come as CSV"),
        ("file:///no/such/file.csv", "remote file must exist"),
    ],
)
def test_a_url_that_cannot_be_read(url: str, message: str) -> None:
    """A remote file that cannot be read is named, without password."""
    with pytest.raises(ReportsError, match=message) as caught:
        read(url)

    assert "secret" not in str(caught.value)


@pytest.fixture
def database(tmp_path: Path) -> str:
    """A DuckDB file with the table `votes`, a view of it, and a column that is not read."""
    path = str(tmp_path / "a.duckdb")
    with duckdb.connect(path) as connection:
        connection.execute("CREATE TABLE votes (task TEXT, worker TEXT, label TEXT, ip TEXT)")
        connection.executemany("INSERT INTO votes VALUES (?, ?, ?, '192.0.2.1')", ROWS)
        connection.execute('CREATE VIEW "odd ""name" AS SELECT * FROM votes')
    return path


def test_tables_in_duckdb(database: str) -> None:
    """A table is read by its columns' names, stated or not; its name is a name, never a part of a query."""
    swapped = Layout(names=ColumnNames(task="worker", worker="task"))

    assert ROWS == read(f"{database}?votes") == read(f"{database}?main.votes") == read(f'{database}?odd "name')
    assert sorted((w, t, label) for t, w, label in ROWS) == read(f"{database}?votes", layout=swapped)
    for name in ("nothing", "votes; DROP TABLE votes"):
        with pytest.raises(ReportsError, match="database and its table must exist and be readable"):
            read(f"{database}?{name}")
    assert ROWS == read(f"{database}?votes")


REFUSED: dict[str, tuple[tuple[str, ...], str]] = {
    "no match": (("*.nothing",), "must match at least one file"),
    "a mixed folder": (("mixed",), r"files of one form.*1 of \.parquet, 1 of \.csv"),
    "an empty folder": (("empty",), "files of one form.*none of them"),
    "a folder of two reports": (("both",), "one file of reports.*reports.csv, both/reports.parquet"),
    "collections": (("sent/reports.csv", "mixed/a.csv"), "read one by one.*Infer each collection by itself"),
    "two layouts": (("mixed/a.csv", "export.jsonl"), "same layout.*plain columns, Prodigy"),
    "a dataset among files": (("dataset:dog", "mixed/a.csv"), "must be files of answers"),
    "no such file": (("absent.csv",), "must exist and be readable"),
}


@pytest.mark.parametrize("case", REFUSED)
def test_sources_that_do_not_go_together_are_refused(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, case: str
) -> None:
    """Sources that are unclear, or belong to a collection, are refused with the way out."""
    monkeypatch.chdir(tmp_path)
    write(TABLE, Path("mixed/a.csv"))
    write(TABLE, Path("mixed/b.parquet"))
    write(TABLE, Path("sent/reports.csv"))
    Path("sent/crowd.json").write_text("{}")
    write(TABLE, Path("both/reports.csv"))
    write(TABLE, Path("both/reports.parquet"))
    Path("empty").mkdir()
    Path("export.jsonl").write_text('{"_task_hash": 1, "answer": "accept", "_annotator_id": "ann"}\n')
    sources, message = REFUSED[case]

    with pytest.raises(ReportsError, match=message):
        read(*sources)


def test_settings_of_a_layout_are_checked() -> None:
    """A delimiter is one character, a tool is known, and answers are labels or numbers."""
    with pytest.raises(SettingsError, match="one ASCII character"):
        Layout(delimiter=";;")
    with pytest.raises(SettingsError, match=r"must be 'label-studio', "):
        Layout(tool="excel")
    with pytest.raises(SettingsError, match="answers must be in one column"):
        ColumnNames(label="a", value="b")


@pytest.mark.parametrize(
    ("source", "question", "message"),
    [
        ("answers.duckdb", None, r"needs the name of a table.*answers\.duckdb\?answers"),
        ("dataset:dog", "breed", r"has one question.*the question 'breed'"),
    ],
)
def test_what_is_missing_or_too_much_is_named(source: str, question: str | None, message: str) -> None:
    """A database needs its table; a data set has one question, so that none is ignored in silence."""
    with pytest.raises(ReportsError, match=message), open_source([source], Layout(question=question)):
        pass


def test_empty_standard_input_is_named_as_such(monkeypatch: pytest.MonkeyPatch) -> None:
    """The message names standard input, not its temporary copy."""
    monkeypatch.setattr("sys.stdin", io.TextIOWrapper(io.BytesIO(b"")))

    with pytest.raises(ReportsError, match="standard input: the input must not be empty"), open_source(["-"]) as source:
        source.read_columns_and_notes()


@pytest.mark.parametrize("name", ["label-studio.json", "labels.csv"])
@pytest.mark.parametrize("way", ["read_columns_and_notes", "answers_of_tool_export", "by_question"])
def test_progress_is_in_bytes_of_all_files_from_the_first_call(name: str, way: str) -> None:
    """A bar has its total before a file is parsed, JSON too, and is full at the end."""
    path, calls = SAMPLES / name, list[tuple[int, int]]()
    if way == "answers_of_tool_export" and path.suffix == ".csv":
        pytest.skip("plain columns are not imported")
    question = None if way == "by_question" or path.suffix == ".csv" else "sentiment"
    with open_source([str(path)], Layout(question=question)) as source:
        getattr(source, way)(progress=lambda done, of: calls.append((done, of)))

    size = path.stat().st_size
    assert ((0, size), (size, size)) == (calls[0], calls[-1])
    assert {size} == {of for _, of in calls}


def test_labels_and_numbers_are_not_read_as_one_table(tmp_path: Path) -> None:
    """A file with a column label and one with a column value are answers to different questions."""
    first, second = write(TABLE, tmp_path / "1.csv"), tmp_path / "2.csv"
    second.write_text("task,worker,value\na,v,1\n", "utf-8")

    with pytest.raises(ReportsError, match="all files must have labels, or all must have numbers"):
        read(first, second)
