"""Keys of folders such as day=2026-01-01: columns that the files below do not have, or named as not read."""

import os
from dataclasses import replace
from io import BytesIO, TextIOWrapper
from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.dataset as ds
import pytest

from crowdveil.answers.ingest.column_readers import ColumnNames
from crowdveil.answers.ingest.mapped_codes import ReadingLimit
from crowdveil.answers.reports import Reports
from crowdveil.answers.sources.answer_source import open_source
from crowdveil.answers.sources.location import Layout
from crowdveil.errors import ReportsError
from tests.answers.sources.test_answer_source import ROWS, TABLE, read, write
from tests.answers.test_reports import cells

DAYS = ("2026-01-01", "2026-01-02")


def notes(*sources: object, layout: Layout | None = None) -> tuple[str, ...]:
    """Return the notes on the reading of sources."""
    with open_source([str(source) for source in sources], layout) as source:
        return source.read_columns_and_notes()[1]


@pytest.fixture
def by_day(tmp_path: Path) -> Path:
    """Return a folder with answers of two days, each in a folder of its own."""
    for day, part in zip(DAYS, (TABLE.slice(0, 2), TABLE.slice(2)), strict=True):
        write(part, tmp_path / "answers" / f"day={day}" / "part.parquet")
    return tmp_path / "answers"


@pytest.mark.parametrize("form", ["parquet", "csv", "json", "arrow"])
@pytest.mark.parametrize("role", ["task", "worker", "label"])
def test_a_key_is_a_column_in_every_form(tmp_path: Path, form: str, role: str) -> None:
    """Answers in folders by task, worker or label are those of one table, whatever the form of the files."""
    for number, (name, group) in enumerate(by(TABLE, role).items()):
        write(group.drop_columns([role]), tmp_path / "answers" / f"{role}={name}" / f"{number}.{form}")

    assert ROWS == read(tmp_path / "answers") == read(f"{tmp_path}/answers/*/*.{form}")
    assert ROWS == read(*sorted((tmp_path / "answers").rglob(f"*.{form}")))
    assert () == notes(tmp_path / "answers")


def by(table: pa.Table, role: str) -> dict[str, pa.Table]:
    """Return the rows of a table by the value of a column."""
    names = table[role].to_pylist()
    return {
        name: table.take([row for row, other in enumerate(names) if other == name]) for name in dict.fromkeys(names)
    }


def test_folders_that_arrow_writes_are_read(tmp_path: Path) -> None:
    """Values with a slash are escaped in names of folders, and come back."""
    rows = {"task": ["a/1", "a/1", "b c"], "worker": ["u", "v", "u"], "label": ["x", "y", "y"]}
    layout = ds.partitioning(pa.schema([("task", pa.string())]), flavor="hive")
    ds.write_dataset(pa.table(rows), tmp_path / "answers", format="parquet", partitioning=layout)

    assert sorted(zip(*rows.values(), strict=True)) == cells(Reports.from_source(tmp_path / "answers"))


def test_a_key_can_be_stated_as_a_column(by_day: Path) -> None:
    """A key with another name is a column like any other: the task, in the options that state it."""
    days = Layout(names=ColumnNames(task="day", worker="task", label="label"))

    assert set(DAYS) == {task for task, _, _ in read(by_day, layout=days, duplicates="all")}
    assert () == notes(by_day, layout=days)


def test_a_key_question_separates_questions(tmp_path: Path) -> None:
    """Folders by question are a column of questions: one is chosen, and two are never mixed in silence."""
    for question, label in (("mood", "x"), ("colour", "y")):
        table = TABLE.set_column(2, "label", pa.array([label, "x", "y", "x"]))
        write(table, tmp_path / "answers" / f"question={question}" / "part.csv")

    assert "x" == read(tmp_path / "answers", layout=Layout(question="mood"))[0][2]
    assert "y" == read(tmp_path / "answers", layout=Layout(question="colour"))[0][2]
    with pytest.raises(ReportsError, match="question"):
        read(tmp_path / "answers", duplicates="all")


def test_keys_that_are_not_read_are_named(by_day: Path) -> None:
    """A note names the keys that are no column of the answers, of every folder in a path as it is given."""
    note = "Not read: 'day', in the names of folders."
    files = sorted(by_day.rglob("*.parquet"))

    assert (note,) == notes(by_day) == notes(f"{by_day}/*/*.parquet") == notes(*files)
    assert (note,) == notes(files[0]) == notes(by_day / f"day={DAYS[0]}") == notes(f"{by_day}/day={DAYS[0]}/*.parquet")
    assert ROWS == read(by_day) == read(*files)


@pytest.mark.parametrize(
    ("column", "agrees"),
    [
        (pa.array(["2026-01-02"] * 2), True),
        (pa.array(["2026-01-02"] * 2).dictionary_encode(), True),
        (pa.array([20455] * 2, pa.date32()), True),
        (pa.array(["2026-01-02", "2026-01-03"]), False),
        (pa.array(["2026-01-02", None]), False),
        (pa.array([7, 7]), False),
    ],
)
def test_a_column_agrees_with_the_key_of_its_name(by_day: Path, column: Any, agrees: bool) -> None:
    """A file whose column says another day than its folder is refused by row, read or not; types do not matter."""
    path = write(TABLE.slice(2).append_column("day", column), by_day / f"day={DAYS[1]}" / "part.parquet")
    if agrees:
        assert ROWS == read(by_day)
        return
    with pytest.raises(ReportsError, match=r"the value of the folder's key.*in a folder day=2026-01-02") as caught:
        read(by_day)
    assert str(path) == caught.value.source
    assert caught.value.rows


def test_a_text_column_that_disagrees_is_refused_by_line(by_day: Path) -> None:
    """For CSV the line is named."""
    for path in by_day.rglob("*.parquet"):
        path.unlink()
    table = TABLE.append_column("day", pa.array(["2026-01-01"] * 3 + ["2026-01-02"]))
    write(table, by_day / f"day={DAYS[0]}" / "part.csv")

    with pytest.raises(ReportsError, match=r"part\.csv, line 5.*day 2026-01-02, in a folder day=2026-01-01"):
        read(by_day)


WORKER = (("a", "ann", "x"), ("b", "ann", "y"))


@pytest.fixture
def of_ann(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """Stand in a folder day=1, above answers of one worker in a folder of her own."""
    top = tmp_path / "day=1"
    table = pa.table({"task": ["a", "b"], "label": ["x", "y"]})
    write(table, top / "answers" / "worker=ann" / "x.csv")
    monkeypatch.chdir(top)
    return Path("answers/worker=ann")


@pytest.mark.parametrize("given", ["x.csv", "", "*.csv", "../worker=ann", "../worker=bob/../*/x.csv"])
def test_every_folder_of_a_given_path_has_a_key(of_ann: Path, given: str) -> None:
    """A file, a folder and a pattern inside a folder worker=ann have that worker."""
    Path("answers/worker=bob").mkdir()
    assert WORKER == tuple(read(f"{of_ann}/{given}".rstrip("/")))
    assert () == notes(f"{of_ann}/{given}".rstrip("/"))


def test_folders_above_the_given_path_have_no_keys(of_ann: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """From inside its folder a file has no worker, alone or beside another one in the same folder."""
    other = write(pa.table({"task": ["c"], "label": ["x"]}), of_ann / "y.csv")
    assert 3 == len(read(of_ann / "x.csv", other))
    monkeypatch.chdir(of_ann)
    for given in (["x.csv"], ["x.csv", "y.csv"], ["."], ["*.csv"]):
        with pytest.raises(ReportsError, match="column for the worker"):
            read(*given)


def test_a_url_has_the_keys_of_its_folders(of_ann: Path) -> None:
    """The copy of a remote file, folder or pattern has the keys of the URL and below it, and none of its own place."""
    url = f"file://{Path.cwd()}/answers"
    day = ("Not read: 'day', in the names of folders.",)
    for given in (f"{url}/worker=ann/x.csv", f"{url}/worker=ann", url, f"{url}/*/*.csv", f"{url}/worker=ann/*.csv"):
        assert WORKER == tuple(read(given))
        assert day == notes(given)


def test_copies_of_other_sources_have_no_keys(of_ann: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Standard input beside a file, and temporary files below a folder with a key, have no column of it."""
    temporary = Path("worker=eve").absolute()
    temporary.mkdir()
    monkeypatch.setattr("crowdveil.answers.sources.answer_source.gettempdir", lambda: str(temporary))
    full = write(TABLE, Path("full.csv"))
    for given in (["-"], ["-", str(full)]):
        monkeypatch.setattr("sys.stdin", TextIOWrapper(BytesIO((of_ann / "x.csv").read_bytes())))
        with pytest.raises(ReportsError, match="column for the worker"):
            read(*given)


@pytest.mark.parametrize("folder", ["worker=%E9", "worker=%C3", "worker=%ff%fe", "worker=a%00b", "work%E9r=ann"])
def test_keys_that_are_not_utf_8_are_refused(tmp_path: Path, folder: str) -> None:
    """Two workers whose bytes are no UTF-8 would become one; the folder is named, and what to write."""
    for name in (folder, "worker=ann"):
        write(TABLE.drop_columns(["worker"]), tmp_path / "answers" / name / "1.csv")

    with pytest.raises(ReportsError, match=rf"{folder}: .* UTF-8 without NUL.*Rename") as caught:
        read(tmp_path / "answers")
    assert folder == caught.value.source


def test_a_folder_name_of_other_bytes_is_refused(tmp_path: Path) -> None:
    """A value that was never escaped follows the same rule, and the message can be printed."""
    folder = Path(os.fsdecode(os.fsencode(tmp_path / "worker=") + b"\xe9"))
    try:
        write(TABLE.drop_columns(["worker"]), tmp_path / "1.csv")
        folder.mkdir()
        (tmp_path / "1.csv").rename(folder / "1.csv")
    except OSError:
        pytest.skip("this file system has UTF-8 names only")

    with pytest.raises(ReportsError, match=r"worker=\\udce9: .* UTF-8 without NUL"):
        read(tmp_path)


def test_escaped_values_stay_apart(tmp_path: Path) -> None:
    """Letters with accents, spaces and signs come back as they were."""
    names = {"%C3%A9": "é", "%C3%A8": "è", "a%20b": "a b", "50%25": "50%"}
    for folder in names:
        write(TABLE.slice(0, 2).drop_columns(["worker"]), tmp_path / "answers" / f"worker={folder}" / "1.csv")

    assert set(names.values()) == {worker for _, worker, _ in read(tmp_path / "answers")}


@pytest.mark.parametrize("form", ["parquet", "csv", "json", "arrow"])
@pytest.mark.parametrize("key", ["Worker", "WORKER"])
def test_a_key_and_a_column_in_other_cases_are_one(tmp_path: Path, form: str, key: str) -> None:
    """A folder Worker=v is compared with a column worker; a row that disagrees is refused."""
    for name, group in by(TABLE, "worker").items():
        write(group, tmp_path / "answers" / f"{key}={name}" / f"1.{form}")
    assert ROWS == read(tmp_path / "answers")
    assert () == notes(tmp_path / "answers")

    write(TABLE, tmp_path / "answers" / f"{key}=v" / f"1.{form}")
    for given in (tmp_path / "answers", tmp_path / "answers" / f"{key}=v" / f"1.{form}"):
        with pytest.raises(ReportsError, match=r"the value of the folder's key.*worker w, in a folder worker=v"):
            read(given)

    with open_source([str(tmp_path / "answers")]) as source:
        limited = replace(source, limit=ReadingLimit(tmp_path, 1 << 26))
        if form != "json":
            with pytest.raises(ReportsError, match="the value of the folder's key"):
                limited.read_columns_and_notes()


@pytest.mark.parametrize("inner", ["worker=bob", "Worker=bob", "day=1/worker=Ann", "worker=__HIVE_DEFAULT_PARTITION__"])
def test_a_key_with_two_values_is_refused(tmp_path: Path, monkeypatch: pytest.MonkeyPatch, inner: str) -> None:
    """No folder wins over another one; from below the outer folder there is one value, and twice the same is one."""
    table = TABLE.drop_columns(["worker"]).slice(0, 2)
    write(table, tmp_path / "answers" / "worker=ann" / inner / "1.csv")
    with pytest.raises(ReportsError, match=rf"worker=ann/.../{Path(inner).name}: .* one value.*Rename"):
        read(tmp_path / "answers")
    monkeypatch.chdir(tmp_path / "answers" / "worker=ann")
    if not inner.endswith("__"):
        assert {inner.rpartition("=")[2]} == {worker for _, worker, _ in read(Path(inner).parts[0])}
    monkeypatch.chdir(tmp_path)
    write(table, tmp_path / "same" / "worker=ann" / "worker=ann" / "1.csv")
    assert {"ann"} == {worker for _, worker, _ in read("same")}


def test_rows_without_a_value_are_missing(tmp_path: Path) -> None:
    """The folder that Hive writes for rows without a label holds empty answers: refused, or skipped."""
    write(TABLE.slice(0, 2).drop_columns(["label"]), tmp_path / "answers" / "label=x" / "1.parquet")
    write(
        TABLE.slice(2).drop_columns(["label"]), tmp_path / "answers" / "label=__HIVE_DEFAULT_PARTITION__" / "2.parquet"
    )
    with open_source([str(tmp_path / "answers")], Layout(missing="skip")) as source:
        columns, found = source.read_columns_and_notes()

    assert [0, 1] == columns.null_rows.tolist()
    assert ("No answer (NULL): 2 records.",) == found
    with pytest.raises(ReportsError, match="labels must not be empty"):
        read(tmp_path / "answers")
