"""Importers: small exports, laid out as the tools write them, and what is read of each."""

import json
from collections.abc import Callable
from pathlib import Path

import pytest

from crowdveil.answers.importers.registry import RECOGNISED_TOOLS, TOOLS
from crowdveil.answers.ingest.column_readers import ColumnNames
from crowdveil.answers.reports import Reports
from crowdveil.answers.sources.answer_source import open_source
from crowdveil.answers.sources.location import Layout
from crowdveil.errors import ReportsError

EXPORTS = Path(__file__).parent / "exports"
EXPECTED = json.loads(EXPORTS.with_suffix(".json").read_text("utf-8"))
"""What is read of each export."""
Cell = tuple[str, str, str]
Write = Callable[..., Path]


def imported(*names: str | Path, question: str | None = None, tool: str | None = None):
    """Answers of an export in the folder of exports; the tool is recognised unless it is stated."""
    sources = [str(EXPORTS / name) for name in names]
    with open_source(sources, Layout(question=question, tool=tool)) as source:
        return source.answers_of_tool_export()


def cells(found) -> list[Cell]:
    """Rows of imported answers."""
    return list(zip(*(found.table[name].to_pylist() for name in ("task", "worker", "label")), strict=True))


@pytest.mark.parametrize("case", EXPECTED)
def test_exports_are_recognised_and_read(case: str) -> None:
    """Each export is recognised or stated, and gives answers and "no answer" in file order.

    Each of several choices is a task of its own. What is no answer at all, rejected or a draft, is counted by reason.
    Columns of times, ratings and addresses are named, and none of their contents is kept.
    """
    expected = EXPECTED[case]
    stated = None if expected["tool"] in RECOGNISED_TOOLS else expected["tool"]
    found = imported(expected["file"], question=expected["question"], tool=stated)

    assert expected["tool"] == found.tool
    assert [tuple(row) for row in expected["rows"]] == cells(found)
    assert [label for *_, label in expected["rows"]].count("NULL") == found.no_answer
    assert (expected["left_out"], tuple(expected["choices"])) == (found.left_out, found.choices)
    assert tuple(expected["dropped"]) == found.dropped
    kept = json.dumps(found.table.to_pylist())
    assert not any(secret in kept for secret in ("@", "192.0.2", "2024", "10:00", "100%"))


def test_every_tool_has_an_export() -> None:
    """No importer is without an export in its layout."""
    assert {*TOOLS} == {case["tool"] for case in EXPECTED.values()}


def test_a_column_of_the_flat_label_studio_that_never_differs_is_read_by_its_name(write: Write) -> None:
    """Data and a unanimous question look alike there: the column is read if it is chosen."""
    text = "id,text,sentiment,topic,annotator,annotation_id\n1,x,good,a,u,1\n1,x,good,b,v,2\n"
    path = write(text, "export.csv")

    assert ("topic",) == imported(path).questions
    assert [("1", "u", "good"), ("1", "v", "good")] == cells(imported(path, question="sentiment"))


def test_a_file_is_given_once() -> None:
    """The same export twice would count every answer twice."""
    with pytest.raises(ReportsError, match="must be given once"):
        imported("prodigy.jsonl", "prodigy.jsonl")


def test_all_questions_are_read_but_free_text() -> None:
    """Each question of labels or numbers has its answers; texts and regions are named as not read."""
    with open_source([str(EXPORTS / "label-studio-several.json")]) as source:
        every = source.by_question()
        notes = " ".join(every["animals"].read_columns_and_notes()[1])

    assert ["animals"] == list(every)
    assert "several choices: each choice of a task is read as a yes/no task TASK|CHOICE (cat, dog, bird)" in notes
    assert "Not read (texts, regions, rankings, or no answers): comment." in notes


@pytest.mark.parametrize(("other", "is_refused"), [("1|b", True), ("2", False)])
def test_tasks_of_several_choices_with_one_name_are_refused(tmp_path: Path, other: str, is_refused: bool) -> None:
    """Choice b|c of task 1 and choice c of task 1|b would be one yes/no task."""
    given = [("1", ["b|c", "c"], "ann"), (other, ["c"], "bob")]
    lines = [{"_task_hash": t, "accept": c, "answer": "accept", "_annotator_id": w, "text": "?"} for t, c, w in given]
    path = tmp_path / "choices.jsonl"
    path.write_text("".join(json.dumps(line) + "\n" for line in lines), encoding="utf-8")

    with open_source([str(path)]) as source:
        if is_refused:
            with pytest.raises(ReportsError, match=r"must differ when joined by \|"):
                source.answers_of_tool_export()
        else:
            assert len(source.answers_of_tool_export().table) == 4


def test_several_questions_are_listed() -> None:
    """An export with several questions is refused with their names until one is chosen."""
    with pytest.raises(ReportsError, match=r"one question is read.*'sentiment', 'stars'.*question='sentiment'"):
        imported("label-studio.json")
    with pytest.raises(ReportsError, match=r"no question 'mood'.*'sentiment', 'stars'"):
        imported("label-studio.json", question="mood")


@pytest.fixture
def write(tmp_path: Path) -> Write:
    """Function that writes JSON, or text as it is, to a file, and returns its path."""

    def written(content: object, name: str = "export.json") -> Path:
        path = tmp_path / name
        path.write_text(content if isinstance(content, str) else json.dumps(content), "utf-8")
        return path

    return written


def annotation(value: dict[str, object], kind: str = "choices", worker: object = 1) -> dict[str, object]:
    """An annotation of Label Studio with one result."""
    result = [{"from_name": "q", "to_name": "t", "type": kind, "value": value}]
    return {"id": 1, "completed_by": worker, "was_cancelled": False, "result": result}


REFUSED: dict[str, tuple[object, str, str]] = {
    "several texts": (
        [{"id": 1, "data": {}, "annotations": [annotation({"text": ["a", "b"]}, "textarea")]}],
        "export.json",
        r"submission 1: a worker gives one answer to a question.*\['a', 'b'\]",
    ),
    "regions only": (
        [{"id": 1, "data": {}, "annotations": [annotation({"x": 1}, "rectanglelabels")]}],
        "export.json",
        "there must be a question with one answer per worker",
    ),
    "no worker": (
        [{"id": 1, "data": {}, "annotations": [annotation({"choices": ["a"]}, worker=None)]}],
        "export.json",
        "submission 1: every submission needs a worker",
    ),
    "lists of different lengths": (
        [{"id": 1, "q.responses": ["a"], "q.responses.users": ["u", "v"], "q.responses.status": ["submitted"]}],
        "export.json",
        "must have one user and one status each.*1 responses, 2 users",
    ),
    "not JSON": ('[{"id": 1, ', "export.json", "must be JSON in UTF-8"),
    "no records": ("[1, 2]", "export.json", "must hold at least one record, and records only"),
    "unknown records": (
        [{"id": 1, "verdict": "x"}],
        "export.json",
        "column for the task is needed.*'verdict'.*state them: task; .*No export of label-studio.*recognised",
    ),
    "a wide table that is not stated": (
        "task,ann,bob\n1,a,a\n2,b,a\n",
        "wide.csv",
        "column for the worker is needed.*column for each worker is read by crowdveil import wide",
    ),
    "a spreadsheet": ("PK\x03\x04", "answers.xlsx", "undamaged.*save the sheet as CSV"),
}


@pytest.mark.parametrize("case", REFUSED)
def test_what_cannot_be_read_is_refused_with_the_reason(write: Write, case: str) -> None:
    """An unknown, ambiguous or damaged layout is refused with rule, value and hint."""
    content, name, message = REFUSED[case]

    with pytest.raises(ReportsError, match=message) as caught, open_source([str(write(content, name))]) as source:
        source.read_columns_and_notes()

    assert caught.value.hint


def test_a_question_with_the_name_of_a_time_is_not_dropped(write: Write) -> None:
    """The columns of questions are not named as dropped."""
    header = "INPUT:x\tOUTPUT:rating\tASSIGNMENT:worker_id\tASSIGNMENT:started\n"

    found = imported(write(header + "a\t5\tw\t2024\n", "t.tsv"))

    assert ("rating", ("ASSIGNMENT:started",)) == (found.question, found.dropped)
    assert [("a", "w", "5")] == cells(found)


def test_a_stated_task_column_of_a_wide_table(write: Write) -> None:
    """Workers of a wide table are all columns but the stated one of tasks, times apart."""
    path = write("ann;key;time;bob\nyes;k1;10:00;no\n", "wide.csv")

    with open_source([str(path)], Layout(tool="wide", names=ColumnNames(task="key"), delimiter=";")) as source:
        found = source.answers_of_tool_export()

    assert [("k1", "ann", "yes"), ("k1", "bob", "no")] == cells(found)
    assert ("time",) == found.dropped


def test_a_single_box_is_a_question_of_its_own(write: Write) -> None:
    """A box of Mechanical Turk that is not ticked is an answer; an empty cell is none."""
    path = write("HITId,WorkerId,Answer.agree.on\nH1,a,true\nH1,b,false\nH1,c,\n", "batch.csv")

    assert [("H1", "a", "true"), ("H1", "b", "false"), ("H1", "c", "NULL")] == cells(imported(path))


def test_a_choice_named_null_is_refused(write: Write) -> None:
    """A choice with the name of "no answer" is not read as none."""
    content = [{"id": 1, "data": {}, "annotations": [annotation({"choices": ["NULL"]})]}]

    with pytest.raises(ReportsError, match="the label NULL is reserved for no answer"):
        imported(write(content, "export.json"))


DAMAGED: dict[str, tuple[str, object, str]] = {
    "annotations that are no list": ("label-studio", [{"id": 1, "data": {}, "annotations": 5}], "export.json"),
    "a result that is text": (
        "label-studio",
        [{"id": 1, "data": {}, "annotations": [{"completed_by": 1, "result": ["x"]}]}],
        "export.json",
    ),
    "responses that are numbers": ("argilla", [{"id": 1, "fields": {}, "responses": [5]}], "export.json"),
    "another tool's records": ("mturk", [{"_task_hash": 1, "answer": "accept"}], "export.json"),
}


@pytest.mark.parametrize("case", DAMAGED)
def test_damaged_content_is_refused(write: Write, case: str) -> None:
    """Content of another shape than that of the stated tool is refused by the tool's layout."""
    tool, content, name = DAMAGED[case]

    with pytest.raises(ReportsError) as caught:
        imported(write(content, name), tool=tool)

    assert str(caught.value.hint).startswith(("Label Studio's", "Argilla's", "Mechanical Turk's"))


NOT_WIDE = {
    "one row per worker": ("worker,t1,t2\nann,a,b\nbob,b,b\n", "task names.*'worker'.*transpose it"),
    "two columns of tasks": (
        "task,id,ann\n1,2,b\n",
        "one column of task names.*'task', 'id'.*state it \\(task\\)",
    ),
    "one row per answer": ("task,worker,label\n1,ann,a\n1,bob,b\n", "'worker', 'label'.*needs no import"),
    "comments": ("task,a,b,why\n1,x,y,hard\n2,x,x,so so\n3,y,y,easy\n4,x,x,ok\n5,x,x,no\n", "with labels.*'why'\\."),
    "no answer": ("task,ann,bob\n1,,\n", "one answer per worker.*A wide table has"),
    "a truth": ("task,ann,Ground Truth\n1,a,b\n", "must be a worker.*'Ground Truth'.*a separate file"),
    "a mean": ("task,ann,bob,Mean\n1,1,2,1\n2,3,3,3\n", "must be a worker.*'Mean'.*rename the workers"),
    "a task without a name": ("task,ann,bob\n1,a,a\n,a,a\n", "row 2.*must have a task"),
    "a worker without a name": ("task,ann,\n1,a,a\n", "exactly one column of task names.*'task', ''"),
}


@pytest.mark.parametrize("case", NOT_WIDE)
def test_what_is_no_wide_table_is_refused(write: Write, case: str) -> None:
    """A stated wide table must have tasks in its first column and answers of one worker in each other one."""
    text, message = NOT_WIDE[case]

    with pytest.raises(ReportsError, match=message) as caught:
        imported(write(text, "wide.csv"), tool="wide")

    assert caught.value.hint


def test_stated_columns_of_a_wide_table_are_its_workers(write: Write) -> None:
    """Only stated workers are read, and named; unknown ones, and a column of labels, are refused."""
    path = write("task,ann,bob,note\n" + "".join(f"{row},a,b,n{row}\n" for row in range(9)), "wide.csv")
    with pytest.raises(ReportsError, match=r"'note'.*worker='FIRST,SECOND'"):
        Reports.from_source(path, tool="wide")
    with open_source([str(path)], Layout(tool="wide", names=ColumnNames(worker="ann, bob"))) as source:
        read, notes = source.read_columns_and_notes()

    assert ["ann", "bob"] == read.worker.names.tolist()
    assert "column 'task'; 2 columns are workers: 'ann', 'bob'." in " ".join(notes)
    with pytest.raises(ReportsError, match=r"must be a column.*'cy'"):
        Reports.from_source(path, tool="wide", names=ColumnNames(worker="ann,cy"))
    with pytest.raises(ReportsError, match="worker='FIRST,SECOND'"):
        Reports.from_source(path, tool="wide", names=ColumnNames(label="ann"))


def test_two_columns_of_one_name_are_refused(write: Write) -> None:
    """A name that two columns share tells neither a worker nor a question."""
    with pytest.raises(ReportsError, match="no two columns may have the same name"):
        imported(write("task,ann,ann,bob\n1,a,a,b\n2,b,b,a\n", "export.csv"), tool="wide")


def test_addresses_of_workers_are_not_kept(write: Write) -> None:
    """A worker whose name has a mail address gets a number, and a session that of no other worker's own name."""
    workers = ["worker-1", "Ann Lee <ann@example.org>", "my set-bob@example.org", "cy"]
    records = [{"_task_hash": 1, "answer": "accept", "_session_id": worker} for worker in workers]

    found = imported(write("\n".join(map(json.dumps, records)), "prodigy.jsonl"))

    assert ["worker-1", "worker--1", "worker--2", "cy"] == found.table["worker"].to_pylist()
    assert 2 == found.renamed


def test_every_cell_of_a_wide_table_is_kept(write: Write) -> None:
    """All cells come back, whatever they hold, behind a byte-order mark, too, and from a table with names of rows."""
    text = '\ufeff,ann,bob\r\n"1\n2",1.5,"b\nb"\r\n'

    assert [("1\n2", "ann", "1.5"), ("1\n2", "bob", "b\nb")] == cells(imported(write(text, "wide.csv"), tool="wide"))
