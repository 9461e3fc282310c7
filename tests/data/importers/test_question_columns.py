"""Columns of an export that may be questions or data of the tasks: the user says which one is the question."""

import pytest

from crowdveil.data.sources.answer_source import open_source
from crowdveil.errors import ReportsError
from tests.data.importers.test_importers import Write, cells, imported
from tests.data.importers.test_importers import write as write

ROWS = [(task, worker, "gb"[worker - 1]) for task in (1, 2) for worker in (1, 2)]
EXPORTS: dict[str, tuple[str, object]] = {
    "label-studio": (
        "min.json",
        [
            {"text": task, "item": f"i{task}", "label": "dog", "id": task, "mood": mood, "annotator": worker}
            | {"annotation_id": 10 * task + worker}
            for task, worker, mood in ROWS
        ],
    ),
    "mturk": (
        "batch.csv",
        "HITId,WorkerId,Answer.url,Answer.mood\n"
        + "".join(f"{task},{who},{task}.org,{mood}\n" for task, who, mood in ROWS),
    ),
    "pybossa": (
        "runs.json",
        [{"task_id": task, "user_id": who, "info": {"url": f"{task}.org", "mood": mood}} for task, who, mood in ROWS],
    ),
}


@pytest.mark.parametrize("tool", EXPORTS)
def test_one_of_several_columns_is_the_question_that_is_stated(write: Write, tool: str) -> None:
    """Without a statement the columns are listed; the chosen one is read, and the others are named."""
    name, content = EXPORTS[tool]
    path = write(content, name)

    with pytest.raises(ReportsError, match=r"must be stated.*'mood'.*--question.*--label-column"):
        imported(path)
    found = imported(path, question="mood")
    with open_source([str(path)]) as source:
        assert {} == source.by_question()

    assert (tool, ("mood",)) == (found.tool, found.questions)
    assert [(str(task), str(worker), mood) for task, worker, mood in ROWS] == cells(found)
    assert found.data
    assert "mood" not in found.data


@pytest.mark.parametrize("prefix", ["", "taskrun__", "task_run__"])
@pytest.mark.parametrize("mark", ["_", "__"])
def test_the_only_column_is_the_question(write: Write, prefix: str, mark: str) -> None:
    """Each key of a content of PyBossa has a column of its own; a single one needs no statement."""
    header = ",".join(prefix + name for name in ("task_id", "user_id", f"info{mark}animal"))
    found = imported(write("\n".join([header, "1,1,d", "1,2,c"]), "runs.csv"))

    assert "animal" == found.question
    assert [("1", "1", "d"), ("1", "2", "c")] == cells(found)


@pytest.mark.parametrize("order", ["AB", "BA"])
def test_a_task_of_toloka_is_named_alike_in_any_order_of_its_inputs(write: Write, order: str) -> None:
    """A task without an id is named by its inputs, in the order of their names."""
    header = [f"INPUT:{letter}" for letter in order] + ["OUTPUT:x", "ASSIGNMENT:worker_id"]
    path = write("\t".join(header) + "\n" + "\t".join([*order.lower(), "yes", "w"]) + "\n", "t.tsv")

    assert [("a | b", "w", "yes")] == cells(imported(path))
