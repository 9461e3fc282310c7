"""Label Studio's flat exports hold what its JSON holds, and truths of every question go back as predictions."""

import csv
import json
from pathlib import Path
from typing import Any

import pytest

from tests.cli.conftest import Refusal, Run, RunJson, rows, write

GIVEN: dict[str, tuple[str, list[list[Any]]]] = {
    "stars": ("rating", [[4, 5, 4], [1, 2, 1], [5, 5, 4]]),
    "num": ("number", [[40, 50, 40], [10, 20.5, 10], [50, 50, 40]]),
    "pref": ("selected", [["left", "left", "right"], ["right", "right", "right"], ["left", "right", "left"]]),
    "kind": (
        "taxonomy",
        [[[["A", "dog"]], [["A", "dog"]], [["A", "cat"]]], [[["B"]], [["B"]], [["B"]]], [[["B"]]] * 3],
    ),
}
"""Key of the content, and contents of three workers for each of three tasks, by question."""
TYPES = {"stars": "rating", "num": "number", "pref": "pairwise", "kind": "taxonomy"}


@pytest.fixture
def nested(folder: Path) -> str:
    """The project as JSON."""
    tasks = []
    for task in range(3):
        annotations = []
        for worker in range(3):
            result = [
                {"from_name": name, "to_name": "text", "type": TYPES[name], "value": {key: given[task][worker]}}
                for name, (key, given) in GIVEN.items()
            ]
            annotations.append({"id": 3 * task + worker, "completed_by": 7 + worker, "result": result})
        tasks.append({"id": task + 1, "data": {"text": f"t{task}"}, "annotations": annotations})
    return write("project.json", json.dumps(tasks))


@pytest.fixture(params=["csv", "json"])
def flat(folder: Path, request: pytest.FixtureRequest) -> str:
    """The same as CSV or JSON_MIN: a list of one object in each cell."""
    records = [
        {"id": task + 1, "text": f"t{task}", "annotator": 7 + worker, "annotation_id": 3 * task + worker}
        | {name: [{key: given[task][worker]}] for name, (key, given) in GIVEN.items()}
        for task in range(3)
        for worker in range(3)
    ]
    if request.param == "json":
        return write("flat.json", json.dumps(records))
    with open("flat.csv", "w", newline="", encoding="utf-8") as stream:
        writer = csv.DictWriter(stream, records[0].keys())
        writer.writeheader()
        writer.writerows({n: json.dumps(c) if isinstance(c, list) else c for n, c in one.items()} for one in records)
    return "flat.csv"


@pytest.mark.parametrize("question", GIVEN)
def test_a_flat_cell_is_read_as_the_result_in_the_json(run: Run, nested: str, flat: str, question: str) -> None:
    """Ratings, numbers, pairs and paths of a taxonomy are the same answers in both forms."""
    for source, out in ((nested, "a.csv"), (flat, "b.csv")):
        run("import", "label-studio", source, "--question", question, "--out", out)

    assert rows("a.csv") == rows("b.csv")
    assert {row["label"] for row in rows("a.csv")} == {
        "stars": {"1", "2", "4", "5"},
        "num": {"10", "20.5", "40", "50"},
        "pref": {"left", "right"},
        "kind": {"A > dog", "A > cat", "B"},
    }[question]


def test_every_question_of_a_flat_export_is_read(run_json: RunJson, flat: str) -> None:
    """All questions are inferred beside one another, and none is said to hold no labels."""
    found = run_json("infer", flat, "--out", "found")

    assert {one["question"] for one in found["questions"]} == set(GIVEN)
    assert not any("Not read (" in text for text in found["warnings"])


@pytest.mark.parametrize(
    ("cell", "read"),
    [
        ('["cat", "dog"]', ""),
        ('[{"choices": ["cat"], "start": 1}]', ""),
        ('[{"choices": ["cat"]}, {"choices": ["dog"]}]', ""),
        ('[{"text": "a comment"}]', ""),
        ('{"choices": ["cat", "dog"]}', "yes"),
        ('[{"choices": ["cat", "dog"]}]', "yes"),
        ('[{"taxonomy": [["A", "cat"], ["B"]]}]', "yes"),
    ],
)
def test_choices_of_regions_are_not_those_of_the_task(run: Run, folder: Path, cell: str, read: str) -> None:
    """A bare list has the choices of several regions, or texts, and is refused; an object has those of the task."""
    quoted = '"' + cell.replace('"', '""') + '"'
    write("flat.csv", "id,annotator,annotation_id,q", f"1,7,1,{quoted}", f"1,8,2,{quoted}", "1,9,3,x")

    result = run("import", "label-studio", "flat.csv", "--question", "q", "--out", "a.csv", code=0 if read else 1)

    assert Path("a.csv").exists() == bool(read)
    if read:
        assert read in {row["label"] for row in rows("a.csv")}
    else:
        assert "a worker gives one answer to a question" in " ".join(result.output.split())


@pytest.mark.parametrize("question", GIVEN)
def test_truths_of_every_question_go_back(run: Run, nested: str, flat: str, question: str) -> None:
    """What was inferred from a flat export becomes predictions for the project, in the form of its question."""
    kind = ("--kind", "numeric") if question in ("stars", "num") else ()
    run("infer", flat, "--question", question, *kind, "--out", "found")
    run("data", "export", "label-studio", "found", "--tasks", nested, "--question", question, "--out", "p.json")

    results = [one["predictions"][0]["result"][0] for one in json.loads(Path("p.json").read_text("utf-8"))]

    assert {result["type"] for result in results} == {TYPES[question]}
    first = results[0]["value"]
    assert list(first) == [GIVEN[question][0]]
    if question == "kind":
        assert first == {"taxonomy": [["A", "dog"]]}
    elif question == "pref":
        assert first == {"selected": "left"}


def test_an_export_without_a_task_of_the_truths_is_refused(
    run: Run, refusal: Refusal, nested: str, folder: Path
) -> None:
    """Truths of another project are no empty file of predictions."""
    run("infer", "labels.csv", "--out", "found")
    project = [task | {"id": task["id"] + 1000} for task in json.loads(Path(nested).read_text("utf-8"))]
    other = write("other.json", json.dumps(project))

    asked = ("data", "export", "label-studio", "found", "--tasks", other, "--question", "stars", "--out", "p.json")

    assert "a task of the truths must be in the export" in refusal(*asked)
    assert not Path("p.json").exists()
