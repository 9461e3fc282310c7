"""`crowdveil plan`: what to expect, as a table, as JSON and as files."""

import json
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from crowdveil.cli.plan import PLAN_METHODS
from crowdveil.planning import METHODS
from tests.cli.conftest import Run

RunJson = Callable[..., dict[str, Any]]
SIZE = ("plan", "--tasks", 40, "--workers", 30, "--participation-rate", 0.5)
LABELS = (*SIZE, "--labels", "no,yes,maybe", "--target-error", 0.2)


def test_table_and_json_tell_the_same(run: Run, run_json: RunJson) -> None:
    """Every epsilon and line stands in both; each error is beside the constant and the unprotected error."""
    words = (*LABELS, "--epsilon", "1,4", "--epsilon", 2)
    table, data = " ".join(run(*words).stdout.split()), run_json(*words)

    assert [1, 2, 4] == sorted({row["epsilon"] for row in data["candidates"]})
    for row in data["candidates"]:
        shown = f"{row['line']} {row['error']:.3g} {row['low']:.3g} to {row['high']:.3g}"
        assert (f"{row['line']} = {row['same_as']}" if row["same_as"] else shown) in table
    assert f"constant {data['constant_error']:.3g}" in table
    assert f"unprotected {data['unprotected']['error']:.3g}" in table
    assert all(" ".join(sentence.split()) in table for sentence in data["verdict"])
    assert 40 == data["candidates"][0]["cells_per_worker"]
    assert data["recommended"]["error"] <= 0.2


def test_files_are_written(run_json: RunJson) -> None:
    """--out gets the plan as JSON, and its picture as SVG and PNG."""
    data = run_json(*LABELS, "--epsilon", 3, "--out", "planned")

    assert ["plan.json", "plan.svg", "plan.png"] == [Path(path).name for path in data["files"]]
    assert data["verdict"] == json.loads(Path("planned/plan.json").read_text("utf-8"))["verdict"]
    assert "<svg" in Path("planned/plan.svg").read_text("utf-8")


def test_numbers_are_planned_for_gaussian(run_json: RunJson) -> None:
    """On a scale the error is a mean absolute one, and workers err by a tenth and by half of the range by default."""
    data = run_json(*SIZE, "--scale", "0:4", "--target-error", 0.3, "--epsilon", 4)

    assert ("mae", "gaussian") == (data["error_name"], data["method"])
    assert [0.4, 2.0] == data["worker_qualities"]
    assert data["prior_known_to_inference"] is False
    assert data["merged_labels"] is None


def test_a_long_scale_is_planned_on_a_coarser_one_and_says_so(run: Run, run_json: RunJson) -> None:
    """41 labels become 21, the prior with them; the table says so, and JSON has the number and the labels."""
    rows = "".join(f"{label},{0.305 if label < 2 else 0.01}\n" for label in range(41))
    Path("prior.csv").write_text("label,probability\n" + rows, "utf-8")
    sized = ("plan", "--tasks", 10, "--workers", 9, "--participation-rate", 0.5, "--target-error", 40)
    words = (*sized, "--scale", "0:40", "--prior", "prior.csv", "--epsilon", 4)
    data = run_json(*words)

    assert (41, [str(label) for label in range(0, 41, 2)]) == (data["merged_labels"], data["labels"])
    assert 7 < data["constant_error"] < 9  # 10 if every label were alike
    assert "41 labels were merged to 21 to plan: 0, 2..40" in " ".join(run(*words).stdout.split())


def test_the_prior_is_read_and_known_to_inference(run: Run, run_json: RunJson) -> None:
    """A prior file makes the constant, and the command to infer with names it."""
    Path("prior.csv").write_text("label,probability\nno,0.6\nyes,0.3\nmaybe,0.1\n", "utf-8")
    words = (*LABELS, "--prior", "prior.csv", "--epsilon", 4, "--participation", "public", "--ability", 0.8)

    assert run_json(*words)["constant_error"] == pytest.approx(0.4)
    assert "infer REPORTS --method dawid-skene --prior FILE" in run(*words).stdout


def test_assignment_shrinks_a_workers_share(run_json: RunJson) -> None:
    """With 15 of 30 workers per task a worker has half of the tasks, and answers all of them."""
    data = run_json(*LABELS, "--epsilon", 2, "--assigned-per-task", 15, "--method", "one-coin")

    assert (20, "one-coin") == (data["tasks_per_worker"], data["method"])
    assert 20 == data["candidates"][0]["cells_per_worker"]


@pytest.mark.parametrize(
    ("words", "said"),
    [
        ((*SIZE, "--target-error", 0.1), "Say what an answer can be"),
        ((*SIZE, "--scale", "0:4", "--target-error", 0.1, "--ability", 0.8), "by --sigmas, not by --ability"),
        ((*LABELS, "--epsilon", "one"), "not a list of numbers"),
    ],
)
def test_wrong_usage(words: tuple[object, ...], said: str, run: Run) -> None:
    """What cannot be understood is wrong usage, and the message says what is missing."""
    assert said in run(*words, code=2).stderr


@pytest.mark.parametrize(
    ("words", "said"),
    [
        (("--assigned-per-task", 31), "a task is assigned to 1 to 30 workers"),
        (("--epsilon", 30), "epsilon"),
        (("--sigmas", "1,2"), "sigmas describe workers on a scale"),
        (("--method", "gaussian"), "made for dawid-skene or one-coin"),
    ],
)
def test_what_cannot_be_met_is_refused(words: tuple[object, ...], said: str, refusal: Callable[..., str]) -> None:
    """A request out of range ends with one line that names the rule."""
    assert said in refusal(*LABELS, *words)


def test_methods_are_those_of_the_planner() -> None:
    """The names on the command line are the planner's."""
    assert METHODS == PLAN_METHODS
