"""`crowdveil export label-studio`: truths as predictions that belong to the tasks of the project."""

import json
from pathlib import Path

import pytest

from tests.cli.conftest import Refusal, Run, RunJson, rows, write_label_studio

EXPORTS = Path(__file__).parents[2] / "data" / "importers" / "exports"
STUDIO = EXPORTS / "label-studio.json"
NAMES = {"from_name": "sentiment", "to_name": "txt", "type": "choices"}


def test_a_round_trip_gives_each_task_its_truth(run: Run, run_json: RunJson) -> None:
    """Each task comes back with its data, the inferred truth, and the confidence as score; no answer comes back."""
    run("infer", STUDIO, "--question", "sentiment", "--out", "found")

    words = ("export", "label-studio", "found", "--tasks", STUDIO, "--question", "sentiment", "--out", "p.json")
    data = run_json(*words, "--version", "v1")

    text = Path("p.json").read_text()
    truths = {row["task"]: (row["truth"], float(row["confidence"])) for row in rows("found/truths.csv")}
    assert [
        {
            "id": task["id"],
            "data": task["data"],
            "predictions": [
                {
                    "model_version": "v1",
                    "score": pytest.approx(truths[str(task["id"])][1]),
                    "result": [NAMES | {"value": {"choices": [truths[str(task["id"])][0]]}}],
                }
            ],
        }
        for task in json.loads(STUDIO.read_text())
    ] == json.loads(text)
    assert (2, 0) == (data["predictions"], data["missing"])
    assert "completed_by" not in text


def test_ratings_come_back_as_numbers(run: Run) -> None:
    """A truth of a rating is a whole number."""
    run("infer", STUDIO, "--question", "stars", "--kind", "numeric", "--out", "found")
    run("export", "label-studio", "found", "--tasks", STUDIO, "--question", "stars", "--out", "p.json")

    found = [record["predictions"][0]["result"][0]["value"] for record in json.loads(Path("p.json").read_text())]

    assert [{"rating": 5}, {"rating": 1}] == found


def test_several_choices_come_back_together(run: Run, run_json: RunJson) -> None:
    """Yes/no truths of the choices of a task become one prediction with the smallest confidence; none if undecided."""
    export = EXPORTS / "label-studio-several.json"
    run("infer", export, "--out", "found")
    words = ("export", "label-studio", "found/animals", "--tasks", export, "--question", "animals", "--out", "p.json")
    data = run_json(*words)

    found = {record["id"]: record["predictions"][0] for record in json.loads(Path("p.json").read_text())}
    truths = rows("found/animals/truths.csv")
    assert {1: ["cat", "dog"], 2: ["bird"]} == {
        task: one["result"][0]["value"]["choices"] for task, one in found.items()
    }
    assert {
        task: min(float(row["confidence"]) for row in truths if row["task"].startswith(f"{task}|")) for task in found
    } == {task: pytest.approx(one["score"]) for task, one in found.items()}
    assert (2, 0) == (data["predictions"], data["missing"])

    run("infer", export, "--question", "animals", "--abstain-below", 0.9999, "--out", "found/animals")
    run(*words)
    assert [] == json.loads(Path("p.json").read_text())


def test_exports_that_cannot_be_are_refused(run: Run, refusal: Refusal) -> None:
    """The question must be known, the tasks must be the tool's own, and an input is not replaced."""
    run("infer", STUDIO, "--question", "sentiment", "--out", "found")
    words = ("export", "label-studio", "found", "--out", "p.json", "--tasks")

    assert "'sentiment', 'stars'. Choose it with --question" in refusal(*words, STUDIO)
    assert "must be Label Studio's own JSON" in refusal(*words, EXPORTS / "argilla.json")
    assert "must be numbers. Found: 'Positive'" in refusal(*words, STUDIO, "--question", "stars")
    Path("tasks.json").write_bytes(STUDIO.read_bytes())
    assert "must not replace an input" in refusal(*words[:4], "tasks.json", "--tasks", "tasks.json")


def test_tasks_without_a_truth_are_left_out_and_counted(run: Run, run_json: RunJson) -> None:
    """Truths of other tasks are counted."""
    answers = [f"{task},{worker},Positive" for task in range(1, 21) for worker in "ab"]
    Path("more.csv").write_text("\n".join(["task,worker,label", *answers, "1,c,Negative"]))
    run("infer", "more.csv", "--out", "found")

    data = run_json("export", "label-studio", "found", "--tasks", STUDIO, "--question", "sentiment", "--out", "p.json")

    assert (2, 18) == (data["predictions"], data["missing"])


def exported(run: Run) -> dict[int, tuple[object, float | None]]:
    """Content and score by task of the truths in `found`."""
    run("export", "label-studio", "found", "--tasks", "tasks.json", "--out", "p.json")
    predictions = {record["id"]: record["predictions"][0] for record in json.loads(Path("p.json").read_text())}
    return {task: (one["result"][0]["value"], one.get("score")) for task, one in predictions.items()}


LABELS = [
    {worker: [label] for worker, label in enumerate(labels)}
    for labels in (("unknown", "unknown", "unknown"), ("b", "b", "b"), ("b", "unknown", "b"))
]


def test_undecided_tasks_are_left_out(run: Run) -> None:
    """A task below the confidence has no prediction, and a choice called unknown is a choice."""
    write_label_studio("tasks.json", "choices", LABELS)
    run("infer", "tasks.json", "--out", "found")
    assert [{"choices": ["unknown"]}, {"choices": ["b"]}, {"choices": ["b"]}] == [
        one for one, _ in exported(run).values()
    ]

    run("infer", "tasks.json", "--abstain-below", "1", "--out", "found")

    assert {} == exported(run)


def test_the_score_is_that_of_the_decision(run: Run) -> None:
    """A decision by expected cost has its own probability as score, not that of the likeliest label."""
    write_label_studio("tasks.json", "choices", LABELS)
    Path("costs.csv").write_text("truth,decision,cost\nunknown,b,1000000\nb,unknown,1\n")
    run("infer", "tasks.json", "--costs", "costs.csv", "--out", "found")

    truths = {row["task"]: row for row in rows("found/truths.csv")}

    assert "unknown" == truths["2"]["truth"]
    assert pytest.approx(float(truths["2"]["probability_unknown"])) == exported(run)[2][1]


def test_numbers_come_back_with_all_digits(run: Run) -> None:
    """A truth of a number is not rounded."""
    write_label_studio("tasks.json", "number", [dict.fromkeys(range(3), value) for value in (123456.75, 223456.25)])
    run("infer", "tasks.json", "--kind", "numeric", "--method", "weighted-mean", "--out", "found")

    assert pytest.approx([123456.75, 223456.25], rel=1e-9) == [value["number"] for value, _ in exported(run).values()]


def test_truths_of_another_question_are_refused(run: Run, refusal: Refusal) -> None:
    """A truth that no annotation chose for the question is not written as its choice."""
    write_label_studio("tasks.json", "choices", LABELS)
    Path("other.csv").write_text("task,worker,label\n0,a,sport\n0,b,sport\n1,a,news\n")
    run("infer", "other.csv", "--out", "found")

    message = refusal("export", "label-studio", "found", "--tasks", "tasks.json", "--out", "p.json")

    assert "must be choices that annotations made for 'q'. Found: 'news', 'sport'" in message
