"""Rankings, spans and consolidated labels are named; classifications of Zooniverse and files of doccano are read."""

import json
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import pytest

from crowdveil.answers.sources.answer_source import open_source
from crowdveil.answers.sources.location import Layout
from crowdveil.errors import ReportsError

ORDERS = [["x", "y", "z"], ["x", "z", "y"], ["y", "x", "z"]]


def write(path: Path, content: object) -> str:
    """Write JSON, lines of JSON for a tuple, or text; return the name."""
    if isinstance(content, tuple):
        content = "".join(json.dumps(one) + "\n" for one in content)
    path.write_text(content if isinstance(content, str) else json.dumps(content), "utf-8")
    return str(path)


def read(*paths: str, **stated: Any):
    """Cells of the answers of an export, and the notes."""
    with open_source(paths, Layout(**stated)) as source:
        columns, notes = source.read_columns_and_notes()
    cells = zip(columns.task.cells, columns.worker.cells, columns.value.cells, strict=True)
    return [tuple(map(str, one)) for one in cells], " ".join(notes)


def argilla(values: Sequence[object], *, flat: bool) -> list[Any]:
    """A record of Argilla with the responses of users to a question."""
    users = [f"u{number}" for number in range(len(values))]
    if flat:
        status = ["submitted"] * len(values)
        return [{"id": 1, "q.responses": values, "q.responses.users": users, "q.responses.status": status}]
    given = [{"user_id": u, "value": v, "status": "submitted"} for u, v in zip(users, values, strict=True)]
    return [{"id": 1, "fields": {}, "responses": {"q": given}}]


@pytest.mark.parametrize("flat", [True, False])
def test_rankings_are_named_and_not_read_as_choices(tmp_path: Path, flat: bool) -> None:
    """Lists that all hold the same options in several orders are rankings; objects with ranks are, too."""
    ranks = [[{"value": one, "rank": place} for place, one in enumerate(order)] for order in ORDERS]
    for values in (ORDERS, ranks):
        with pytest.raises(ReportsError, match="Regions, rankings"):
            read(write(tmp_path / "a.json", argilla(values, flat=flat)))


@pytest.mark.parametrize("values", [[["x", "y"], ["x", "y"]], [["x", "y"], ["y"]], [["x", "y"], ["y", "z"]]])
def test_choices_are_no_rankings(tmp_path: Path, values: list[object]) -> None:
    """Choices of which somebody leaves one out, or all in one order, are read."""
    cells, _ = read(write(tmp_path / "a.json", argilla(values, flat=True)))

    assert ("1|y", "u0", "yes") in cells


def test_a_ranking_beside_labels_is_left_out_by_name(tmp_path: Path) -> None:
    """The other questions of the records are read."""
    ranked, label = argilla(ORDERS, flat=True), argilla(["a", "b", "a"], flat=True)
    also = argilla(["c", "c", "d"], flat=True)
    record = ranked[0] | {key.replace("q.", "l."): value for key, value in label[0].items()}
    record |= {key.replace("q.", "m."): value for key, value in also[0].items()}

    with open_source([write(tmp_path / "a.json", [record])]) as source:
        questions = source.by_question()
        notes = questions["l"].read_columns_and_notes()[1]

    assert set(questions) == {"l", "m"}
    assert any(note.startswith("Not read (") and note.endswith(": q.") for note in notes)


def zooniverse(*rows: tuple[str, object]) -> str:
    """Classifications of two workflows by worker, with annotations."""
    head = "classification_id,user_name,user_id,workflow_id,annotations,subject_ids\n"
    text = [json.dumps(annotations).replace('"', '""') for _, annotations in rows]
    return head + "".join(
        f'{n},{w},,{n % 2},"{cell}",5\n' for n, ((w, _), cell) in enumerate(zip(rows, text, strict=True))
    )


def test_questions_of_several_workflows_are_not_mixed(tmp_path: Path) -> None:
    """T0 of one workflow is another question than T0 of another."""
    text = zooniverse(*((worker, [{"task": "T0", "value": "Yes"}]) for worker in "abcd"))

    with open_source([write(tmp_path / "z.csv", text)]) as source:
        assert set(source.by_question()) == {"0 T0", "1 T0"}


@pytest.mark.parametrize("annotations", [{"task": "T0"}, [1], "x", [{"value": 1}]])
def test_damaged_classifications_are_refused(tmp_path: Path, annotations: object) -> None:
    """Annotations are a list of answers with their tasks."""
    with pytest.raises(ReportsError, match=r"must be a list in JSON|layout of Zooniverse"):
        read(write(tmp_path / "z.csv", zooniverse(("a", annotations))))


def test_the_column_of_workers_is_not_said_to_be_dropped(tmp_path: Path) -> None:
    """A name of a user is the worker, and kept."""
    _, notes = read(write(tmp_path / "z.csv", zooniverse(("a", [{"task": "T0", "value": "x"}]))))

    assert "Not kept" not in notes


def test_files_of_annotators_are_one_worker_each(tmp_path: Path) -> None:
    """Each file of doccano is a worker; a label-free document has no answer, and the file is named."""
    ann = write(tmp_path / "ann.jsonl", ({"id": 1, "text": "t", "label": ["x"]}, {"id": 2, "text": "t", "label": []}))
    bob = write(tmp_path / "bob.csv", "id,text,label\n1,t,x#y\n2,t,y\n")

    cells, notes = read(ann, bob, tool="doccano", multiple="#")

    assert cells == [
        ("1|x", "ann", "yes"), ("1|y", "ann", "no"), ("2|x", "ann", "NULL"), ("2|y", "ann", "NULL"),
        ("1|x", "bob", "yes"), ("1|y", "bob", "yes"), ("2|x", "bob", "no"), ("2|y", "bob", "yes"),
    ]  # fmt: skip
    assert "bob.csv is read as the answers of 'bob'" in notes
    with pytest.raises(ReportsError, match="crowdveil import doccano FILES"):
        read(ann)


@pytest.mark.parametrize("label", [[[0, 3, "PER"]], [{"start_offset": 0, "end_offset": 3, "label": "PER"}]])
def test_regions_of_doccano_are_refused(tmp_path: Path, label: object) -> None:
    """Spans are no labels of the document."""
    path = write(tmp_path / "ann.jsonl", ({"id": 1, "text": "t", "label": label},))

    with pytest.raises(ReportsError, match="a worker gives one answer"):
        read(path, tool="doccano")


def test_outputs_of_sagemaker_are_named(tmp_path: Path) -> None:
    """A manifest has no answers of workers; a worker response has no name of its object."""
    manifest = ({"source": "t", "class": 1, "class-metadata": {"class-name": "x", "human-annotated": "yes"}},)
    response = {"answers": [{"workerId": "w", "answerContent": {"class": {"label": "x"}}}]}

    with pytest.raises(ReportsError, match=r"consolidated label.*Found: class-metadata.*worker-response"):
        read(write(tmp_path / "output.manifest", manifest))
    with pytest.raises(ReportsError, match="worker response of SageMaker"):
        read(write(tmp_path / "response.json", response))


def test_spans_of_prodigy_are_named(tmp_path: Path) -> None:
    """The answers of a task with spans say what was accepted, and a note says that spans are not read."""
    lines = tuple(
        {"_task_hash": task, "_annotator_id": worker, "answer": answer, "spans": [{"start": 0, "end": 1, "label": "X"}]}
        for task, worker, answer in ((1, "a", "accept"), (1, "b", "reject"))
    )

    cells, notes = read(write(tmp_path / "ner.jsonl", lines))

    assert cells == [("1", "a", "accept"), ("1", "b", "reject")]
    assert "Not read: spans, which are regions." in notes


def test_a_stated_column_of_tasks_is_not_said_to_be_dropped(tmp_path: Path) -> None:
    """A wide table whose tasks are named by an address keeps them, as its user states."""
    from crowdveil.answers.ingest.column_readers import ColumnNames

    path = write(tmp_path / "wide.csv", "Timestamp,Email Address,ann,bob\n2024-01-01,a@b.org,x,y\n")

    _, notes = read(path, tool="wide", names=ColumnNames(task="Email Address", worker="ann,bob"))

    assert "Not kept (times, ratings or addresses): Timestamp." in notes
