"""Answers of several choices in every form: exports, tables, and frames; an empty list says no to each choice."""

import csv
import io
import json
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pandas as pd
import polars as pl
import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from crowdveil.answers.ingest.choices import parsed_cell
from crowdveil.answers.reports import Reports
from crowdveil.answers.sources.answer_source import open_source
from crowdveil.answers.sources.location import Layout
from crowdveil.errors import ReportsError, SettingsError
from crowdveil.inference.aggregation import aggregate

TICKED = [
    ("1", "a", ["spam", "ad"]),
    ("1", "b", []),
    ("2", "a", ["ad"]),
    ("2", "b", ["ad"]),
    ("3", "a", []),
    ("3", "b", ["spam"]),
]
"""Tasks, workers, and what they ticked."""
CELLS = {
    (f"{task}|{choice}", worker): "yes" if choice in ticked else "no"
    for task, worker, ticked in TICKED
    for choice in ("ad", "spam")
}


def as_csv(columns: list[str], rows: list[list[str]], delimiter: str = ",") -> str:
    """Return a table as text."""
    text = io.StringIO()
    csv.writer(text, delimiter=delimiter, lineterminator="\n").writerows([columns, *rows])
    return text.getvalue()


def label_studio() -> str:
    """The nested JSON: an annotation without a result ticks nothing."""
    tasks: dict[str, Any] = {task: {"id": int(task), "data": {"text": "?"}, "annotations": []} for task, *_ in TICKED}
    for task, worker, ticked in TICKED:
        part = {"from_name": "tags", "to_name": "text", "type": "choices", "value": {"choices": ticked}}
        result = [part] if ticked else []
        tasks[task]["annotations"].append({"completed_by": worker, "was_cancelled": False, "result": result})
    return json.dumps(list(tasks.values()))


def label_studio_flat() -> str:
    """The CSV: several choices are an object, one is a text, none an empty cell."""
    cells = [json.dumps({"choices": one}) if len(one) > 1 else "".join(one) for *_, one in TICKED]
    rows = [
        [task, "?", worker, cell, str(n)] for n, ((task, worker, _), cell) in enumerate(zip(TICKED, cells, strict=True))
    ]
    return as_csv(["id", "text", "annotator", "tags", "annotation_id"], rows)


def label_studio_min() -> str:
    """The JSON_MIN: a record has no key of a question without a result."""
    records = []
    for number, (task, worker, ticked) in enumerate(TICKED):
        tags = {"tags": ticked[0] if len(ticked) == 1 else {"choices": ticked}} if ticked else {}
        records.append({"id": int(task), "text": "?", "annotator": worker, "annotation_id": number} | tags)
    return json.dumps(records)


def mturk_columns(chosen: str, other: str) -> Callable[[], str]:
    """One column for each option, with the words of a form for ticked and not ticked."""
    return lambda: as_csv(
        ["HITId", "WorkerId", "Answer.tags.spam", "Answer.tags.ad"],
        [
            [task, worker, *(chosen if one in tick else other for one in ("spam", "ad"))]
            for task, worker, tick in TICKED
        ],
    )


def mturk_json() -> str:
    """All answers as JSON, with true and false for each option."""
    rows = [
        [task, worker, json.dumps([{"tags": {one: one in ticked for one in ("spam", "ad")}}])]
        for task, worker, ticked in TICKED
    ]
    return as_csv(["HITId", "WorkerId", "Answer.taskAnswers"], rows)


def argilla(*, flat: bool) -> str:
    """Records of responses that were submitted, with an empty list where nothing was ticked."""
    records = []
    for task in "123":
        own = [(worker, ticked) for one, worker, ticked in TICKED if one == task]
        if flat:
            ends = {"": [ticked for _, ticked in own], ".users": [worker for worker, _ in own]}
            ends[".status"] = ["submitted"] * len(own)
            records.append({"id": task, "text": "?"} | {f"tags.responses{end}": values for end, values in ends.items()})
        else:
            given = [{"user_id": worker, "value": ticked, "status": "submitted"} for worker, ticked in own]
            records.append({"id": task, "fields": {}, "responses": {"tags": given}})
    return json.dumps(records)


def prodigy() -> str:
    """JSON lines of choices that were accepted."""
    return "\n".join(
        json.dumps(
            {"_task_hash": int(task), "_annotator_id": worker, "options": [], "accept": ticked, "answer": "accept"}
        )
        for task, worker, ticked in TICKED
    )


def toloka(write: Callable[[list[str]], str]) -> Callable[[], str]:
    """Assignments as TSV, with a list in a cell."""
    columns = ["INPUT:image", "OUTPUT:tags", "ASSIGNMENT:task_id", "ASSIGNMENT:worker_id", "ASSIGNMENT:status"]
    return lambda: as_csv(
        columns, [["x.jpg", write(ticked), task, worker, "APPROVED"] for task, worker, ticked in TICKED], "\t"
    )


def json_lines() -> str:
    """Plain records with a list as label."""
    return "\n".join(json.dumps({"task": t, "worker": w, "label": ticked}) for t, w, ticked in TICKED)


def table(write: Callable[[list[str]], str]) -> Callable[[], str]:
    """Plain CSV with a list as the text of a cell."""
    return lambda: as_csv(["task", "worker", "label"], [[t, w, write(ticked)] for t, w, ticked in TICKED])


def shuffled(ticked: list[str]) -> str:
    """A list in another order, which says nothing."""
    return json.dumps(ticked[::-1])


FORMS: dict[str, tuple[str, Callable[[], str]]] = {
    "label studio": ("export.json", label_studio),
    "label studio, flat": ("export.csv", label_studio_flat),
    "label studio, JSON_MIN": ("export.json", label_studio_min),
    "mturk, true and false": ("batch.csv", mturk_columns("true", "false")),
    "mturk, on and empty": ("batch.csv", mturk_columns("on", "")),
    "mturk, JSON": ("batch.csv", mturk_json),
    "mturk, one cell": (
        "batch.csv",
        lambda: as_csv(["HITId", "WorkerId", "Answer.tags"], [[t, w, "|".join(one)] for t, w, one in TICKED]),
    ),
    "argilla, flat": ("records.json", lambda: argilla(flat=True)),
    "argilla": ("records.json", lambda: argilla(flat=False)),
    "prodigy": ("choices.jsonl", prodigy),
    "toloka, JSON": ("assignments.tsv", toloka(json.dumps)),
    "toloka, Python": ("assignments.tsv", toloka(repr)),
    "toloka, empty cells": ("assignments.tsv", toloka(lambda ticked: json.dumps(ticked) if ticked else "")),
    "JSON lines": ("answers.jsonl", json_lines),
    "CSV of JSON": ("answers.csv", table(shuffled)),
    "CSV of Python lists": ("answers.csv", table(repr)),
    "CSV of Python tuples": ("answers.csv", table(lambda ticked: repr(tuple(ticked)))),
    "semicolons": ("answers.txt", lambda: table(json.dumps)().replace(",", ";").replace('""; ""', '"", ""')),
}


def read(path: Path, **stated: Any) -> tuple[dict[tuple[str, str], str], str]:
    """Return label by task and worker, NULL for no answer, and the notes."""
    with open_source([str(path)], Layout(**stated)) as source:
        columns, notes = source.read_columns_and_notes()
    cells = zip(columns.task.cells, columns.worker.cells, columns.value.cells, strict=True)
    return {(str(task), str(worker)): str(label) for task, worker, label in cells}, " ".join(notes)


@pytest.mark.parametrize("form", FORMS)
def test_nothing_ticked_is_no_to_every_choice(tmp_path: Path, form: str) -> None:
    """Every export and table of the same answers gives the same yes and no; the other reading is an option."""
    name, write = FORMS[form]
    path = tmp_path / name
    path.write_text(write(), "utf-8")

    found, notes = read(path)
    skipped, other_notes = read(path, nothing_ticked="skip")

    none = {(f"{t}|{choice}", w) for t, w, ticked in TICKED if not ticked for choice in ("ad", "spam")}
    assert found == CELLS
    assert skipped == CELLS | dict.fromkeys(none, "NULL")
    assert "Read as no to every choice: 2 answers with nothing ticked (nothing_ticked='skip'" in notes
    assert "Read as no answer: 2 answers with nothing ticked (nothing_ticked='no'" in other_notes


@pytest.mark.parametrize("form", ["pandas", "polars", "arrow", "dict", "parquet"])
def test_lists_in_frames_are_choices(tmp_path: Path, form: str) -> None:
    """A column of lists is read as that of a file is, in a Parquet file, too."""
    columns = {name: [row[place] for row in TICKED] for place, name in enumerate(("task", "worker", "label"))}
    if form == "parquet":
        pq.write_table(pa.table(columns), tmp_path / "answers.parquet")
        assert read(tmp_path / "answers.parquet")[0] == CELLS
        return
    frame = {"pandas": pd.DataFrame, "polars": pl.DataFrame, "arrow": pa.table, "dict": dict}[form](columns)

    reports = Reports.from_frame(frame)
    with pytest.warns(UserWarning, match="several choices|Read as no answer: 2 answers with nothing ticked") as warned:
        truths = aggregate(frame, "majority-vote", nothing_ticked="skip")

    assert len(warned) == 2
    assert reports.alphabet.names == ("no", "yes")
    assert len(reports) == len(CELLS)
    assert sorted(map(str, truths["task"].to_list() if form == "polars" else truths["task"])) == [
        f"{task}|{choice}" for task in "123" for choice in ("ad", "spam")
    ]


@pytest.mark.parametrize("separator", [";", "; ", "|", "#"])
def test_a_stated_separator_reads_choices(tmp_path: Path, separator: str) -> None:
    """`cat;dog` and `dog;cat` are the same two choices once the separator is stated."""
    path = tmp_path / "answers.csv"
    path.write_text(table(lambda ticked: separator.join(ticked[::-1]) or "[]")(), "utf-8")

    assert read(path, multiple=separator)[0] == CELLS
    assert len(Reports.from_csv(path, multiple=separator)) == len(CELLS)


@pytest.mark.parametrize(
    ("labels", "note"),
    [
        (["cat;dog", "dog;cat", "cat"], "multiple=';'"),
        (["cat|dog", "bird|dog"], "multiple='|'"),
        (["cat,dog", "dog,cat"], "multiple=','"),
        (["cat,dog", "dog"], "multiple=','"),
        (["agree, partly", "disagree, partly"], ""),
        (["1,5", "1,7"], ""),
        (["x;y", "z"], ""),
    ],
)
def test_labels_that_share_a_separator_are_named(tmp_path: Path, labels: list[str], note: str) -> None:
    """A note names labels that may be several choices, and the separator to state; sentences and numbers have none."""
    path = tmp_path / "answers.csv"
    path.write_text(as_csv(["task", "worker", "label"], [["1", str(n), label] for n, label in enumerate(labels)]))

    notes = read(path)[1]

    assert note in notes
    assert bool(note) == ("Read as one label each" in notes)
    assert "Read as one label each" not in read(path, multiple="none")[1]


REFUSED = {
    "an object": (
        '{"task": 1, "worker": "a", "label": {"x": 1}}',
        "row 1: a label must be a text, a number",
    ),
    "a list of objects": ('{"task": 1, "worker": "a", "label": [{"x": 1}]}', "row 1: a label must be"),
    "a list of lists": ('{"task": 1, "worker": "a", "label": [["x"]]}', "row 1: a label must be"),
    "an empty choice": ('{"task": 1, "worker": "a", "label": ["x", ""]}', "row 1: a label must be"),
    "a list as task": ('{"task": [1], "worker": "a", "label": "x"}', "row 1: a task must be a text or a number"),
    "an object as worker": ('{"task": 1, "worker": {"id": 1}, "label": "x"}', "row 1: a worker must be a text"),
    "one name": (
        '{"task": "1", "worker": "a", "label": ["b|c", "d"]}\n{"task": "1|b", "worker": "a", "label": ["c", "d"]}',
        r"must differ when joined by \|. Found: '1\|b\|c'",
    ),
}


@pytest.mark.parametrize("case", REFUSED)
def test_other_contents_are_refused(tmp_path: Path, case: str) -> None:
    """Objects, lists in lists and lists as names are refused with the row, in JSON and in a cell of text."""
    lines, message = REFUSED[case]
    path = tmp_path / "answers.jsonl"
    path.write_text(lines + "\n", "utf-8")

    with pytest.raises(ReportsError, match=message):
        read(path)
    if "label" in message:
        record = json.loads(lines)
        path.write_text(as_csv(["task", "worker", "label"], [["1", "a", json.dumps(record["label"])]]), "utf-8")
        with pytest.raises(ReportsError, match="line 2: a label must be"):
            read(path)


def test_the_text_of_a_numpy_list_is_refused(tmp_path: Path) -> None:
    """['a' 'b'] has no commas: Python would read it as one text."""
    path = tmp_path / "answers.csv"
    path.write_text("task,worker,label\n1,a,['a' 'b']\n", "utf-8")

    assert parsed_cell("['a' 'b']") == "['a' 'b']"
    with pytest.raises(ReportsError, match="line 2: a label must be"):
        read(path)


def test_texts_that_only_begin_like_lists_are_labels(tmp_path: Path) -> None:
    """[inaudible] and (none) are labels; known labels and those of a stated `none` are never split."""
    path = tmp_path / "answers.csv"
    path.write_text('task,worker,label\n1,a,[inaudible]\n1,b,(none)\n2,a,"[0, 10]"\n', "utf-8")
    frame = pd.DataFrame({"task": [1, 1], "worker": ["a", "b"], "label": ["[0, 10]", "[10, 20]"]})

    assert sorted(set(read(path, multiple="none")[0].values())) == ["(none)", "[0, 10]", "[inaudible]"]
    assert Reports.from_frame(frame, multiple="none").alphabet.names == ("[0, 10]", "[10, 20]")
    assert Reports.from_frame(frame).alphabet.names == ("no", "yes")


def test_lists_of_one_item_are_labels(tmp_path: Path) -> None:
    """Where no answer has several choices, the item is the label, and an empty list is no answer."""
    path = tmp_path / "answers.jsonl"
    labels = [["x"], ["y"], []]
    path.write_text("\n".join(json.dumps({"task": 1, "worker": n, "label": one}) for n, one in enumerate(labels)))

    assert list(read(path)[0].values()) == ["x", "y", "NULL"]


def test_errors_name_the_row_of_the_file(tmp_path: Path) -> None:
    """A row that became several still is named by its own line."""
    path = tmp_path / "answers.csv"
    path.write_text("task,worker,label\n1,a,x;y\n1,b,y\n1,a,x\n", "utf-8")

    for read_file in (Reports.from_source, Reports.from_csv):
        with pytest.raises(ReportsError, match=r"lines? 4: a worker answers a task once"):
            read_file(path, multiple=";")


def test_private_answers_are_of_one_choice(tmp_path: Path) -> None:
    """What the choices are would follow from the answers: with public lists a separator is refused."""
    from crowdveil.storage.answers import read_answers

    path = tmp_path / "answers.csv"
    path.write_text("task,worker,label\n1,a,x;y\n1,b,y\n", "utf-8")

    with (
        open_source([str(path)], Layout(multiple=";")) as source,
        pytest.raises(ReportsError, match="private answers must be of one choice each"),
    ):
        read_answers(source, tasks=["1"], workers=["a", "b"])


@pytest.mark.parametrize("stated", [{"multiple": ""}, {"nothing_ticked": "yes"}])
def test_settings_of_choices_are_checked(stated: dict[str, Any]) -> None:
    """An empty separator and another meaning of nothing ticked are refused."""
    with pytest.raises(SettingsError):
        Layout(**stated)
