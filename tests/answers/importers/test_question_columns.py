"""Columns of an export that may be questions or data of the tasks: their contents tell, and no order of columns."""

from collections.abc import Sequence

import pytest

from crowdveil.answers.sources.answer_source import open_source
from crowdveil.errors import ReportsError
from tests.answers.importers.test_importers import Write, cells, imported
from tests.answers.importers.test_importers import write as write


def json_min(order: Sequence[str], *, moods: str = "gb") -> list[dict[str, object]]:
    """Flat records of two workers on two tasks: data `text` and `ticket_id`, the question `mood`, keys in an order."""
    cells = [
        {
            "text": {"a": task, "b": 0} if worker == 1 else {"b": 0, "a": task},
            "ticket_id": f"T-{task}",
            "id": task,
            "mood": mood,
            "sure": "yes",
            "annotator": worker,
            "annotation_id": 10 * task + worker,
        }
        for task in (1, 2)
        for worker, mood in enumerate(moods, 1)
    ]
    return [{name: one[name] for name in order} for one in cells]


KEYS = ("text", "ticket_id", "id", "mood", "sure", "annotator", "annotation_id")
ORDERS = [KEYS, KEYS[::-1], sorted(KEYS), ("mood", "id", "text", "ticket_id", "annotator", "annotation_id", "sure")]


def test_data_named_like_answers_are_not_the_answers(write: Write) -> None:
    """Beside `annotation_id`, task data named item and label make no plain table of an export."""
    records = [one | {"item": f"i{one['id']}", "label": "dog"} for one in json_min(KEYS)]

    assert "mood" == imported(write(records)).question


@pytest.mark.parametrize("order", ORDERS, ids=" ".join)
def test_the_order_of_keys_does_not_say_what_is_a_question(write: Write, order: Sequence[str]) -> None:
    """What differs between two answers to a task is the question; all else is named, and read if it is chosen."""
    path = write(json_min(order))
    found = imported(path)
    with open_source([str(path)]) as source:
        assert {} == source.by_question()
        notes = " ".join(source.read_columns_and_notes()[1])

    assert (("mood",), {"text", "ticket_id", "sure"}) == (found.questions, {*found.data})
    assert [("1", "1", "g"), ("1", "2", "b"), ("2", "1", "g"), ("2", "2", "b")] == cells(found)
    assert {"yes"} == {label for _, _, label in cells(imported(path, question="sure"))}
    assert f"no two answers to a task differ in them: {', '.join(found.data)} (read one with question)" in notes


def test_answers_to_a_task_in_several_files_tell_its_questions(write: Write) -> None:
    """A question is found in all files of an export together, where each file has one worker."""
    rows = json_min(KEYS)
    parts = [write([row for row in rows if row["annotator"] == worker], f"{worker}.json") for worker in (1, 2)]

    assert ("mood",) == imported(*parts).questions


@pytest.mark.parametrize("moods", ["g", "gg"], ids=["one answer per task", "all agree"])
def test_an_export_without_a_column_that_differs_is_refused(write: Write, moods: str) -> None:
    """Nothing tells data from answers there: the columns are listed, with the options that state them."""
    with pytest.raises(ReportsError, match=r"answers to a task differ.*'ticket_id', 'mood'.*question='sure'.*label"):
        imported(write(json_min(KEYS, moods=moods)))


def test_data_that_a_form_repeats_among_the_answers_are_no_question(write: Write) -> None:
    """What is the same in all answers to each task is named, and the question is read without a choice."""
    rows = "1,a,x.org,g\n1,b,x.org,b\n2,a,y.org,g\n2,b,y.org,b\n"
    found = imported(write("HITId,WorkerId,Answer.url,Answer.mood\n" + rows, "batch.csv"))

    assert ("mturk", ("mood",), ("url",)) == (found.tool, found.questions, found.data)


@pytest.mark.parametrize("order", ["AB", "BA"])
def test_a_task_of_toloka_is_named_alike_in_any_order_of_its_inputs(write: Write, order: str) -> None:
    """A task without an id is named by its inputs, in the order of their names."""
    header = [f"INPUT:{letter}" for letter in order] + ["OUTPUT:x", "ASSIGNMENT:worker_id"]
    path = write("\t".join(header) + "\n" + "\t".join([*order.lower(), "yes", "w"]) + "\n", "t.tsv")

    assert [("a | b", "w", "yes")] == cells(imported(path))


@pytest.mark.parametrize(("name", "form"), [("startTime", "10:0{}"), ("words", "so {} as ever")])
def test_times_and_texts_are_not_taken_for_the_question_on_which_all_agree(write: Write, name: str, form: str) -> None:
    """A column that differs, and holds no answers, is refused beside others, until the question is chosen."""
    rows = [f"{task},u{user},{'gb'[task % 2]},{form.format(6 * user + task)}" for task in range(6) for user in range(3)]
    path = write("\n".join([f"HITId,WorkerId,Answer.mood,Answer.{name}", *rows]), "batch.csv")

    with pytest.raises(ReportsError, match=f"must hold answers. Found: '{name}'.*others: 'mood'.*question='mood'"):
        imported(path)
    assert {"g", "b"} == {label for _, _, label in cells(imported(path, question="mood"))}
