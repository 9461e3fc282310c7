"""Questions of a table: answers to several are never mixed, and one is read as if its rows were alone in a file."""

from collections.abc import Callable
from contextlib import nullcontext
from pathlib import Path

import pyarrow as pa
import pyarrow.csv
import pyarrow.parquet as pq
import pytest
from hypothesis import given
from hypothesis import strategies as st

from crowdveil.channels.alphabet import Categories
from crowdveil.data.ingest.readers import ColumnNames
from crowdveil.data.reports import Reports
from crowdveil.errors import ReportsError
from tests.data.test_reports import cells

ROWS = [
    ("a", "v", "red", "colour"),
    ("a", "v", "big", "size"),
    ("b", "v", "small", "size"),
    ("a", "w", "blue", "colour"),
    ("c", "w", "big", "size"),
]
MIXED = "a task's answers must be to one question. Found: the questions 'colour', 'size'. Choose one with --question"


def table(rows: list[tuple[str, ...]] = ROWS, question: str = "question") -> pa.Table:
    """The rows as a table."""
    names = ("task", "worker", "label", question)
    return pa.table(dict(zip(names, map(list, zip(*rows, strict=True)), strict=True)))


def from_csv(path: Path, **options: object) -> Reports:
    """Reports of the rows in a CSV file."""
    pyarrow.csv.write_csv(table(question="Question"), path)
    return Reports.from_csv(path, **options)  # type: ignore[arg-type]


def from_parquet(path: Path, **options: object) -> Reports:
    """Reports of the rows in a Parquet file."""
    pq.write_table(table(question="QUESTION"), path)
    return Reports.from_parquet(path, **options)  # type: ignore[arg-type]


def from_frame(_: Path, **options: object) -> Reports:
    """Reports of the rows in a frame."""
    return Reports.from_frame(table(), **options)  # type: ignore[arg-type]


def from_two_files(path: Path, **options: object) -> Reports:
    """Reports of the rows in two files."""
    names = [str(path.with_suffix(end)) for end in (".one.csv", ".two.csv")]
    for name, rows in zip(names, (ROWS[:2], ROWS[2:]), strict=True):
        pyarrow.csv.write_csv(table(rows), name)
    return Reports.from_source(*names, **options)  # type: ignore[arg-type]


@pytest.mark.parametrize("duplicates", ["error", "first", "last", "all"])
@pytest.mark.parametrize("read", [from_csv, from_parquet, from_frame, from_two_files])
def test_questions_are_never_mixed(tmp_path: Path, read: Callable[..., Reports], duplicates: str) -> None:
    """Every reader refuses answers of one task to two questions, under every policy for duplicates."""
    with pytest.raises(ReportsError) as refused:
        read(tmp_path / "answers", duplicates=duplicates)

    assert MIXED in str(refused.value)


@pytest.mark.parametrize(("question", "chosen"), [("colour", [0, 3]), ("size", [1, 2, 4])])
def test_a_question_is_read_as_if_alone(tmp_path: Path, question: str, chosen: list[int]) -> None:
    """Tasks, workers, labels and rows are those of a file that holds the answers to this question only."""
    path = tmp_path / "answers.csv"
    pyarrow.csv.write_csv(table(), path)
    alone = Reports.from_frame(table([ROWS[row] for row in chosen]))

    found = Reports.from_source(path, question=question)

    assert cells(alone) == cells(found)
    assert (list(alone.tasks), list(alone.workers)) == (list(found.tasks), list(found.workers))
    assert alone.alphabet == found.alphabet


def test_a_question_for_each_task_is_no_obstacle() -> None:
    """A column that tells each task's only question, such as its text, is read over."""
    rows = [("a", "v", "yes", "Is it a cat?"), ("b", "v", "no", "Is it a dog?"), ("a", "w", "no", "Is it a cat?")]

    assert 3 == len(cells(Reports.from_frame(table(rows))))


def test_a_stated_column_is_not_the_question() -> None:
    """A column that is stated as that of the tasks is nothing else."""
    frame = table([("1", "v", "yes", "p"), ("1", "v", "no", "q")])

    assert ["p", "q"] == list(Reports.from_frame(frame, task="question").tasks)


@pytest.mark.parametrize(
    ("asked", "words"), [("smell", "Found: the questions 'colour', 'size'"), ("", "there is no question ''")]
)
def test_an_unknown_question_is_named(tmp_path: Path, asked: str, words: str) -> None:
    """The refusal of a question that the column does not have lists those that it has."""
    pyarrow.csv.write_csv(table(), tmp_path / "answers.csv")

    with pytest.raises(ReportsError, match=words):
        Reports.from_source(tmp_path / "answers.csv", question=asked)


def test_files_with_and_without_questions_do_not_go_together(tmp_path: Path) -> None:
    """A file without the column would be answers to an unknown question."""
    for name, one in (("one.csv", table()), ("two.csv", table().drop_columns(["question"]))):
        pyarrow.csv.write_csv(one, tmp_path / name)

    with pytest.raises(ReportsError, match="all files must have a column 'question', or none"):
        Reports.from_source(str(tmp_path / "*.csv"), names=ColumnNames(label="label"))


@pytest.mark.slow
@given(st.lists(st.tuples(*(st.sampled_from("abc") for _ in range(4))), min_size=1, unique_by=lambda row: row[:2]))
def test_no_task_is_read_under_two_questions(rows: list[tuple[str, ...]]) -> None:
    """Reports are refused exactly if a task occurs with more than one question."""
    mixed = any(len({row[3] for row in rows if row[0] == task}) > 1 for task in "abc")

    with pytest.raises(ReportsError, match="to one question") if mixed else nullcontext():
        assert len(rows) == len(cells(Reports.from_frame(table(rows), alphabet=Categories(("a", "b", "c")))))


@pytest.mark.parametrize("last", ["question,QUESTION", "QUESTION,question"])
def test_two_columns_of_questions_are_refused(tmp_path: Path, last: str) -> None:
    """The order of the columns does not say which of two columns has the questions."""
    path = tmp_path / "answers.csv"
    path.write_text(f"task,worker,label,{last}\na,v,x,p,q\n", "utf-8")

    with pytest.raises(ReportsError, match=r"at most one column of questions.*'question'"):
        Reports.from_csv(path)
