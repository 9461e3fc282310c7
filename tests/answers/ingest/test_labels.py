"""Spellings of a label, and questions of a table: merged or never mixed."""

from collections.abc import Callable, Sequence
from contextlib import nullcontext
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.csv
import pytest
from hypothesis import given
from hypothesis import strategies as st

from crowdveil.answers.ingest.column_readers import ColumnNames
from crowdveil.answers.ingest.labels import spelling_groups
from crowdveil.answers.reports import Reports
from crowdveil.channels.alphabet import Categories
from crowdveil.errors import ReportsError, SettingsError
from tests.answers.test_reports import cells

ACCENT, LETTER_AND_ACCENT = "caf\u00e9", "cafe\u0301"


@pytest.mark.parametrize(
    "texts",
    [
        ["yes", " yes"],
        ["yes", "Yes"],
        ["yes\t", " YES"],
        [ACCENT, LETTER_AND_ACCENT],
        ["straße", "STRASSE"],
        ["1", "1.0"],
        ["01", "1e0"],
        ["-0", "0.00"],
        ["yes", "y\u200bes"],
        ["yes", "\ufeffYes "],
        ["1", "1\u00ad.0"],
    ],
)
def test_spellings_of_a_label_are_found(texts: list[str]) -> None:
    """Outer spaces, invisible characters, case, Unicode form and the way to write a number make no other label."""
    assert [[0, 2]] == spelling_groups([texts[0], "another", texts[1]])


@pytest.mark.parametrize(
    "texts",
    [
        ["yes", "yess"],
        ["a b", "ab"],
        ["1", "-1"],
        ["1_0", "10"],
        ["nan", "NULL"],
        ["12345678901234567890", "12345678901234567891"],
        ["0.1", "0.1000000000000000055"],
        ["1" * 500, "1" * 500 + ".0"],
    ],
)
def test_other_labels_are_no_spellings(texts: list[str]) -> None:
    """Other letters, inner spaces and other numbers, however near, are other labels."""
    assert [] == spelling_groups(texts)


def labels_of(labels: list[str], **options: Any) -> tuple[tuple[str, ...], list[str]]:
    """Return alphabet and labels, row by row, of reports with one task each."""
    names = np.arange(len(labels))
    reports = Reports.from_arrays(names, names, labels, **options)
    return reports.alphabet.names, [reports.alphabet.names[code] for code in reports.value]


def test_labels_stay_different_unless_they_are_merged() -> None:
    """By default every text is a label of its own."""
    assert ((" yes", "Yes", "no", "yes"), ["yes", " yes", "Yes", "no"]) == labels_of(["yes", " yes", "Yes", "no"])


def test_a_merged_label_is_spelled_as_in_most_rows() -> None:
    """The most frequent spelling counts, ties in alphabetical order, without spaces around it, in NFC."""
    rows = [" Yes", " Yes", "yes", "no", "NO", "1", "1.0", "1.0", LETTER_AND_ACCENT]

    names, merged = labels_of(rows, merge_labels=True)

    assert ("1.0", "NO", "Yes", ACCENT) == names
    assert ["Yes", "Yes", "Yes", "NO", "NO", "1.0", "1.0", "1.0", ACCENT] == merged


def test_labels_are_merged_into_the_given_ones() -> None:
    """A spelling of exactly one given label is that label, whatever most rows have."""
    rows = ["YES", "YES", "yes ", "no", "1.0"]

    assert (("yes", "no", "1"), ["yes", "yes", "yes", "no", "1"]) == labels_of(
        rows, merge_labels=True, alphabet=Categories(("yes", "no", "1"))
    )


def test_given_labels_that_differ_in_case_are_not_merged() -> None:
    """Where a text could be either of two given labels, only the exact one is taken, and others are refused."""
    either = Categories(("yes", "Yes"))

    assert ["yes", "Yes"] == labels_of(["yes", "Yes"], merge_labels=True, alphabet=either)[1]
    with pytest.raises(ReportsError, match="row 2: every label must be one of yes, Yes"):
        labels_of(["yes", "YES"], merge_labels=True, alphabet=either)


def test_an_unknown_label_tells_of_merging() -> None:
    """The refusal of a label that is not in the alphabet names the argument."""
    with pytest.raises(ReportsError, match=r"merge spellings \(merge_labels=True\)"):
        labels_of(["yes", " yes"], alphabet=Categories(("yes", "no")))


def test_numbers_are_not_merged() -> None:
    """Merging is for labels: with numbers it is refused."""
    with pytest.raises(SettingsError, match="merge_labels is for label columns"):
        labels_of(["1", "1.0"], numeric=True, merge_labels=True)


@given(st.lists(st.sampled_from(["yes", " yes", "YES", "no", "No", "1", "1.0", "01"]), min_size=2, max_size=9))
def test_the_order_of_rows_makes_no_difference(rows: list[str]) -> None:
    """Merged labels are the same for the rows in any order, and as many as there are groups of spellings."""
    kinds = {row.strip().lower() if row.strip().isalpha() else "1" for row in rows}
    if len(kinds) < 2:
        with pytest.raises(ReportsError, match="there must be 2 to"):
            labels_of(rows, merge_labels=True)
        return
    names, merged = labels_of(rows, merge_labels=True)

    assert (names, merged[::-1]) == labels_of(rows[::-1], merge_labels=True)
    assert len(kinds) == len(names) == len(set(merged))


def test_missing_labels_stay_missing() -> None:
    """A row without a label is refused by its number, merged or not."""
    with pytest.raises(ReportsError, match="row 2: labels must not be empty"):
        labels_of(["yes", None, "YES"], merge_labels=True)


NUMBERS = "task,worker,{}\n" + "".join(f"t{number},w,{number * 7}\n" for number in range(21))


@pytest.mark.parametrize("header", ["label", "answer"])
def test_many_different_numbers_are_asked_about(tmp_path, header: str) -> None:
    """21 different numbers under a header for labels are refused with the question; saying what they are is enough."""
    path = tmp_path / "counts.csv"
    path.write_text(NUMBERS.format(header))

    with pytest.raises(ReportsError, match=r"Found: 21 different numbers from 0 to 140.*kind='numeric'.*kind='cat"):
        Reports.from_csv(path)
    assert 140.0 == Reports.from_csv(path, kind="numeric").value.max()
    assert 21 == Reports.from_csv(path, kind="categorical").labels
    assert 21 == Reports.from_csv(path, alphabet=Categories(tuple(str(number * 7) for number in range(21)))).labels


def test_few_numbers_and_other_labels_are_not_asked_about(tmp_path) -> None:
    """20 different numbers, numbers with a text, and a column of values are accepted."""
    path = tmp_path / "labels.csv"
    found = []
    for text in (NUMBERS.format("label").replace("t20,w,140", "t20,w,0"), NUMBERS.format("label").replace("140", "x")):
        path.write_text(text)
        found.append(Reports.from_csv(path).labels)
    path.write_text(NUMBERS.format("value"))

    assert [20, 21] == found
    assert Reports.from_csv(path).alphabet is None


ROWS = [
    ("a", "v", "red", "colour"),
    ("a", "v", "big", "size"),
    ("b", "v", "small", "size"),
    ("a", "w", "blue", "colour"),
    ("c", "w", "big", "size"),
]
MIXED = "a task's answers must be to one question. Found: the questions 'colour', 'size'."


def table(rows: Sequence[tuple[str, ...]] = ROWS, question: str = "question") -> pa.Table:
    """The rows as a table."""
    names = ("task", "worker", "label", question)
    return pa.table(dict(zip(names, map(list, zip(*rows, strict=True)), strict=True)))


def from_frame(_: Path, **options: object) -> Reports:
    """Reports of the rows in a frame."""
    return Reports.from_frame(table(question="QUESTION"), **options)  # type: ignore[arg-type]


def from_two_files(path: Path, **options: object) -> Reports:
    """Reports of the rows in two files."""
    names = [str(path.with_suffix(end)) for end in (".one.csv", ".two.csv")]
    for name, rows in zip(names, (ROWS[:2], ROWS[2:]), strict=True):
        pyarrow.csv.write_csv(table(rows), name)
    return Reports.from_source(*names, **options)  # type: ignore[arg-type]


@pytest.mark.parametrize("duplicates", ["error", "first", "last", "all"])
@pytest.mark.parametrize("read", [from_frame, from_two_files])
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
