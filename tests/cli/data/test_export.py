"""`crowdveil export label-studio`: truths as predictions that belong to the tasks of the project."""

import json
from pathlib import Path

import pytest

from tests.cli.conftest import Refusal, Run, RunJson, rows

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
    run("infer", "labels.csv", "--out", "found")

    data = run_json("export", "label-studio", "found", "--tasks", STUDIO, "--question", "sentiment", "--out", "p.json")

    assert (2, 18) == (data["predictions"], data["missing"])
