"""Awkward text in files: what is written as CSV is read back as it was."""

import csv
import io

import numpy as np
import pytest
from hypothesis import assume, example, given
from hypothesis import strategies as st

from crowdveil.cli.options import _words
from crowdveil.data.assignment import Assignment
from crowdveil.data.ingest.csv_reader import read_header
from crowdveil.data.ingest.label_spellings import NOT_LABELS
from crowdveil.data.ingest.readers import load_gold
from crowdveil.data.reports import Reports
from crowdveil.estimators import MajorityVote
from crowdveil.files.csv_line import csv_line
from crowdveil.workflow.export import write_estimate, write_report_files
from crowdveil.workflow.rounds import cuts_text
from tests.data.test_reports import cells

SIGNS = [*"\"',;\r\n\t \\ab01.-#=é本😀\ufeff\u2028\x0b\x85\x1c"]
NAMES = st.text(st.sampled_from(SIGNS), min_size=1, max_size=6)
LABELS = NAMES.filter(lambda name: name.strip() not in NOT_LABELS)


def two(names: st.SearchStrategy[str]) -> st.SearchStrategy[list[str]]:
    """Draw two different names."""
    return st.lists(names, min_size=2, max_size=2, unique=True)


@pytest.fixture(scope="module")
def folder(tmp_path_factory):
    """Return one folder for all examples of a property."""
    return tmp_path_factory.mktemp("written")


@given(st.lists(st.one_of(NAMES, st.just("")), min_size=1, max_size=4))
@example(["a\rb", " a", "a ", '"', ""])
@example([""])
def test_a_line_is_read_back_by_any_reader(row: list[str]) -> None:
    """A strict reader, also one that skips spaces after commas, gets the same cells."""
    for skip in (False, True):
        read = csv.reader(io.StringIO(csv_line(row) + "\n", newline=""), strict=True, skipinitialspace=skip)
        assert [row] == list(read)


@given(two(NAMES), two(NAMES), two(LABELS))
@example(["a\rb", "c"], ["v", "w"], ["x\ry", "z"])
def test_reports_come_back(folder, tasks: list[str], workers: list[str], labels: list[str]) -> None:
    """Tasks, workers and labels of any text are the same after reports.csv was written and read."""
    reports = Reports.from_arrays(tasks, workers, labels)
    write_report_files(folder, reports, "csv")
    read = Reports.from_csv(folder / "reports.csv")

    assert cells(reports) == cells(read)
    assert reports.alphabet == read.alphabet


@given(two(NAMES), two(NAMES), two(LABELS))
@example(["a", "b"], ["v", "w"], ["x\ry", "z"])
def test_truths_come_back(folder, tasks: list[str], workers: list[str], labels: list[str]) -> None:
    """truths.csv has one column for each label under its name, and the truths of the tasks."""
    estimate = MajorityVote().fit(Reports.from_arrays(tasks, workers, labels))
    write_estimate(folder, estimate)

    assert estimate.tasks_frame().column_names == read_header(folder / "truths.csv")
    assert dict(zip(tasks, labels, strict=True)) == load_gold(folder / "truths.csv", kind="categorical")


@given(two(NAMES), two(NAMES))
@example(["a\rb", "c"], [" v", "w"])
def test_assignments_and_cuts_come_back(folder, tasks: list[str], workers: list[str]) -> None:
    """assignment.csv and the cuts of a next round hold the names as they are."""
    (folder / "assignment.csv").write_bytes(Assignment.from_arrays(tasks, workers).to_csv().encode())
    again = Assignment.from_csv(folder / "assignment.csv")
    rows = csv.reader(io.StringIO(cuts_text(dict(zip(tasks, workers, strict=True))), newline=""), strict=True)

    assert {*zip(tasks, workers, strict=True)} == {
        *zip(again.tasks[again.task], again.workers[again.worker], strict=True)
    }
    assert [["task", "cuts"], *map(list, zip(tasks, workers, strict=True))] == list(rows)


@given(two(LABELS))
@example([" yes", "a\rb"])
def test_labels_listed_for_a_command_are_read_back(labels: list[str]) -> None:
    """`--labels` reads the list that `plan` prints."""
    assert tuple(labels) == _words(csv_line(labels))


@given(st.lists(st.floats(-1e100, 1e100), min_size=1, max_size=5))
def test_numbers_come_back_to_the_bit(folder, numbers: list[float]) -> None:
    """Values of reports.csv are written with the digits that tell them apart."""
    assume(all(number == 0 or abs(number) >= 1e-100 for number in numbers))
    names = np.arange(len(numbers))
    write_report_files(folder, Reports.from_arrays(names, names, numbers, numeric=True), "csv")

    assert numbers == Reports.from_csv(folder / "reports.csv").value.tolist()
