"""Sheets of forms, with one row for each respondent: refused as wide tables, and read transposed."""

import csv
import gzip
import io
import json
from pathlib import Path

import pandas as pd
import pytest

from crowdveil.answers.importers.imported_answers import ImportedAnswers
from crowdveil.answers.ingest.column_readers import ColumnNames
from crowdveil.answers.reports import Reports
from crowdveil.answers.sources.answer_source import open_source
from crowdveil.answers.sources.location import Layout
from crowdveil.errors import ReportsError, SettingsError

GOOGLE = """Timestamp,Email Address,Score,Is this spam?,Which city is shown?,Photo 3
2024/01/01 10:00:00 AM GMT+1,a@example.org,0 / 3,Yes,Rome,Yes
2024/01/01 10:01:00 AM GMT+1,b@example.org,0 / 3,No,Rome,No
2024/01/01 10:02:00 AM GMT+1,c@example.org,0 / 3,Yes,,Yes
"""
MICROSOFT = """ID;Start time;Completion time;Email;Name;First;Second;Any remarks?
1;4/1/24 9:00;4/1/24 9:05;anonymous;;Yes;No;one
2;4/1/24 9:01;4/1/24 9:06;anonymous;;No;No;two
3;4/1/24 9:02;4/1/24 9:07;anonymous;;No;Yes;three
4;4/1/24 9:03;4/1/24 9:08;anonymous;;Yes;No;four
5;4/1/24 9:04;4/1/24 9:09;anonymous;;Yes;Yes;five
"""
QUALTRICS = """StartDate,Status,IPAddress,Progress,Finished,ResponseId,Q1,Q2
2024-01-01 09:00:00,0,192.0.2.1,100,1,R_1,Yes,No
2024-01-01 09:01:00,0,192.0.2.1,100,1,R_2,No,No
"""
FORMS = {
    "google": (GOOGLE, ["worker-1", "worker-2", "worker-3"], ["Is this spam?", "Which city is shown?", "Photo 3"]),
    "microsoft": (MICROSOFT, [f"worker-{number}" for number in range(1, 6)], ["First", "Second"]),
    "qualtrics": (QUALTRICS, ["R_1", "R_2"], ["Q1", "Q2"]),
}


def imported(path: Path, layout: Layout) -> ImportedAnswers:
    """Return the answers of one file as an import reads them."""
    with open_source([str(path)], layout) as source:
        return source.answers_of_tool_export()


def written(folder: Path, text: str, form: str = "csv") -> Path:
    """Write a sheet as text, gzipped text, JSON or Parquet; return its path."""
    rows = list(csv.DictReader(io.StringIO(text), delimiter=";" if text.startswith("ID;") else ","))
    path = folder / f"form.{form}"
    match form:
        case "csv":
            path.write_text("\ufeff" + text, encoding="utf-8")
        case "csv.gz":
            path.write_bytes(gzip.compress(text.encode()))
        case "json":
            path.write_text(json.dumps(rows), encoding="utf-8")
        case "parquet":
            pd.DataFrame(rows).to_parquet(path)
    return path


@pytest.mark.parametrize("tool", FORMS)
@pytest.mark.parametrize("form", ["csv", "csv.gz", "json", "parquet"])
def test_a_form_is_refused_as_a_wide_table_and_read_transposed(tmp_path: Path, tool: str, form: str) -> None:
    """The refusal names the way out; transposed, respondents are workers, and only the questions are tasks."""
    text, workers, tasks = FORMS[tool]
    path = written(tmp_path, text, form)

    with pytest.raises(ReportsError, match=r"ranspose (it|the table): transpose=True"):
        Reports.from_source(path, tool="wide")
    found = imported(path, Layout(tool="wide", transpose=True))

    assert workers == list(dict.fromkeys(found.table["worker"].to_pylist()))
    assert tasks == list(dict.fromkeys(found.table["task"].to_pylist()))
    assert {name: text.partition("\n")[0].count(name) for name in found.dropped} == dict.fromkeys(found.dropped, 1)


@pytest.mark.parametrize("column", ["Email Address", "Timestamp", "Photo 3"])
def test_a_stated_column_does_not_turn_respondents_into_tasks(tmp_path: Path, column: str) -> None:
    """A table with addresses of respondents is refused whichever column is stated to be the tasks'."""
    path = written(tmp_path, GOOGLE)

    with pytest.raises(ReportsError, match=r"must be tasks, and these are respondents.*transpose=True.*worker='FIRST"):
        Reports.from_source(path, tool="wide", names=ColumnNames(task=column))


def test_columns_are_named_by_what_happens_to_them(tmp_path: Path) -> None:
    """Personal columns are not kept, figures and texts not read, and the addresses of respondents become numbers."""
    found = imported(written(tmp_path, GOOGLE), Layout(tool="wide", transpose=True))
    other = imported(written(tmp_path, MICROSOFT), Layout(tool="wide", transpose=True))

    assert (("Timestamp",), 3, {"empty cells": 1}) == (found.dropped, found.renamed, found.left_out)
    assert "Respondents are in the column 'Email Address'; 3 columns are tasks" in found.columns[0]
    assert found.columns[1].startswith("Not read (texts, names, or figures about respondents): 'Score'. If they are")
    assert ("Start time", "Completion time", "Email") == other.dropped
    assert "Respondents are numbered in the order of the rows; 2 columns are tasks" in other.columns[0]
    assert "respondents): 'ID', 'Name', 'Any remarks?'. If they are tasks, state all tasks" in other.columns[1]


@pytest.mark.parametrize(
    "column", ["What is your name?", "Ihr Name", "Nombre", "Name of participant", "Wie heißt du?", "Student ID", "Zeit"]
)
@pytest.mark.parametrize("people", [3, 12])
def test_what_names_respondents_is_no_task(tmp_path: Path, column: str, people: int) -> None:
    """Names, numbers of students and times are left out in every language, twice given and repeated, and are named."""
    cells = {
        "Student ID": [f"{100200 + number}" for number in range(people)],
        "Zeit": ["24.12.2023 09:00:00"] * people,
    }.get(column, [f"Person {number % max(people - 1, 3)}" for number in range(people)])
    rows = [(cell, cell, number + 3, "AB"[number % 2], "B") for number, cell in enumerate(cells)]
    with (tmp_path / "form.csv").open("w", newline="") as file:
        csv.writer(file).writerows([(column, f"{column} again", "How many?", "First", "Second"), *rows])

    found = imported(tmp_path / "form.csv", Layout(tool="wide", transpose=True))

    assert {"How many?", "First", "Second"} == set(found.table["task"].to_pylist())
    assert f"respondents): {column!r}, '{column} again'. If they are tasks, state all tasks" in found.columns[1]
    assert not set(cells) & set(found.table["label"].to_pylist())


def test_stated_columns_of_a_form_are_read(tmp_path: Path) -> None:
    """Columns of tasks and of respondents that are stated are those, and are not said to be left out."""
    names = ColumnNames(task="Score,Photo 3", worker="Timestamp")
    found = imported(written(tmp_path, GOOGLE), Layout(tool="wide", transpose=True, names=names))

    assert {"Score", "Photo 3"} == set(found.table["task"].to_pylist())
    assert (("Email Address", "Which city is shown?"), 1) == (found.dropped, len(found.columns))
    with pytest.raises(ReportsError, match=r"a stated task must be a column.*'Photo 9'"):
        Reports.from_source(tmp_path / "form.csv", tool="wide", transpose=True, names=ColumnNames(task="Photo 9"))


def test_what_is_no_form_is_refused(tmp_path: Path) -> None:
    """Rows that describe columns, respondents without a name, two columns of names and no column of tasks are named."""
    described = QUALTRICS.replace("\n", '\nStart,Type,IP,Progress,x,ID,"{""ImportId"":""QID1""}",y\n', 1)
    for text, said in (
        (described, "row 1.*must be a respondent.*Remove the rows between the header"),
        (QUALTRICS.replace("R_2", ""), "row 2.*every row must have a respondent"),
        (QUALTRICS.replace("Status", "worker"), "one column must name the respondents.*state it in names"),
        ("Timestamp,Email Address\n2024,a@b.org\n", "must have a column of labels for each task"),
        (GOOGLE.replace("Photo 3", "Is this spam?"), "no two columns may have the same name"),
    ):
        with pytest.raises(ReportsError, match=said) as caught:
            Reports.from_source(written(tmp_path, text), tool="wide", transpose=True)
        assert caught.value.hint
    with pytest.raises(SettingsError, match="only a wide table can be transposed"):
        Reports.from_source(tmp_path / "form.csv", tool="mturk", transpose=True)


def test_tables_of_tasks_are_still_wide(tmp_path: Path) -> None:
    """Times beside tasks, tasks named by addresses, and workers with personal names are read as before."""
    path = tmp_path / "wide.csv"
    for text, names in (
        ("task,created_at,ann,bob\n1,2024-01-01,a,b\n2,2024-01-01,b,b\n", ColumnNames()),
        ("task,ann,bob\n192.0.2.1,a,b\n192.0.2.2,b,b\n", ColumnNames()),
        ("ip,ann,bob\n192.0.2.1,a,b\n192.0.2.2,b,b\n", ColumnNames(task="ip", worker="ann,bob")),
        ("task,email,ann,bob\n1,x@b.org,a,b\n2,x@b.org,b,b\n", ColumnNames()),
        ("task,April Time,bob\n1,a,b\n2,b,b\n", ColumnNames(worker="April Time,bob")),
    ):
        path.write_text(text)

        assert 4 == len(Reports.from_source(path, tool="wide", names=names)), text


def test_answers_are_not_said_to_be_dropped(tmp_path: Path) -> None:
    """A rating in a flat export of Label Studio is kept, and so is a question with a personal name."""
    rows = [
        {
            "id": task,
            "annotator": worker,
            "annotation_id": f"{task}{worker}",
            "lead_time": 3,
            "stars": [{"rating": task}],
        }
        for task in (1, 2)
        for worker in (1, 2)
    ]
    (tmp_path / "min.json").write_text(json.dumps(rows))
    (tmp_path / "toloka.tsv").write_text(
        "OUTPUT:rating\tASSIGNMENT:task_id\tASSIGNMENT:worker_id\tASSIGNMENT:status\tASSIGNMENT:started\n"
        "3\tt1\tw1\tAPPROVED\t2024\n4\tt1\tw2\tAPPROVED\t2024\n"
    )

    stars = imported(tmp_path / "min.json", Layout(question="stars"))

    assert ("lead_time",) == stars.dropped
    assert ("ASSIGNMENT:started",) == imported(tmp_path / "toloka.tsv", Layout()).dropped
