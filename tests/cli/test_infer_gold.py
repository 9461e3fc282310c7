"""`crowdveil infer --gold --score`: known truths that guide a fit, and known truths that only measure it."""

from pathlib import Path

import pytest

from tests.cli.conftest import LISTS, Refusal, RunJson, rows

SENT = ("sent/reports.csv", "--out", "found")


def test_gold_guides_and_score_only_measures(sent: Path, run_json: RunJson) -> None:
    """Gold fixes its tasks; gold of unknown tasks is counted; a score on the same tasks is called flattering."""
    wrong = {row["task"]: "yes" if row["truth"] == "no" else "no" for row in rows("labels-gold.csv")[:3]}
    Path("gold.csv").write_text(
        "task,truth\n" + "".join(f"{task},{label}\n" for task, label in wrong.items()) + "z,no\n"
    )
    data = run_json("infer", *SENT, "--gold", "gold.csv", "--score", "labels-gold.csv")
    truths = {row["task"]: row["truth"] for row in rows("found/truths.csv")}

    assert (3, 1) == (data["gold_used"], data["gold_unknown"])
    assert wrong == {task: truths[task] for task in wrong}
    assert data["score"]["error"] >= 3 / 20
    assert any("3 of the scored tasks also guided" in text for text in data["warnings"])


@pytest.mark.slow
def test_numeric_gold_may_lie_off_the_grid(run_json: RunJson) -> None:
    """Gold numbers between grid points guide methods for numbers as they are."""
    run_json(
        "perturb", "numbers.csv", "--mechanism", "laplace", "--scale", "-2:7", "--epsilon", 8, *LISTS, "--out", "sent"
    )
    Path("gold.csv").write_text("task,truth\n1,0.25\n2,3\n")
    run_json("infer", *SENT, "--gold", "gold.csv")
    truths = {row["task"]: float(row["truth"]) for row in rows("found/truths.csv")}

    assert (0.25, 3.0) == (truths["1"], truths["2"])


def test_grid_gold_guides_a_fit_of_labels(run_json: RunJson, refusal: Refusal) -> None:
    """For methods that see grid points as labels, gold numbers must be grid points, however they are written."""
    run_json(
        "perturb", "numbers.csv", "--mechanism", "one-layer", "--scale", "-2:7", "--epsilon", 8, *LISTS, "--out", "sent"
    )
    Path("gold.csv").write_text("task,truth\n1,7.0\n")
    Path("off.csv").write_text("task,truth\n1,0.25\n")
    run_json("infer", *SENT, "--method", "dawid-skene", "--gold", "gold.csv")

    assert "7" == {row["task"]: row["truth"] for row in rows("found/truths.csv")}["1"]
    assert "gold of task '1' must be among" in refusal("infer", *SENT, "--method", "dawid-skene", "--gold", "off.csv")


def test_a_worse_result_than_a_constant_is_called_that(run_json: RunJson) -> None:
    """Where the best constant would have scored as well, a warning says so."""
    Path("noise.csv").write_text("task,worker,label\na,u,x\nb,u,y\n")
    Path("gold.csv").write_text("task,truth\na,y\nb,y\n")
    data = run_json("infer", "noise.csv", "--method", "majority-vote", "--score", "gold.csv")

    assert "The constant y for every task scores as well or better." in data["warnings"]


@pytest.mark.parametrize("option", ["--gold", "--score"])
def test_known_truths_of_other_tasks_are_refused_before_the_fit(option: str, sent: Path, refusal: Refusal) -> None:
    """Where no name matches, nothing is fitted or written, and the error shows names of both sides."""
    Path("other.csv").write_text("task,truth\n" + "".join(f"task {number},no\n" for number in range(1, 61)))
    line = refusal("infer", *SENT, option, "other.csv", "--max-steps", 1)

    assert "other.csv: none of the 60 gold tasks is among the 20 tasks" in line
    assert "gold tasks 'task 1', 'task 10', 'task 11'; tasks '1', '10', '11'" in line
    assert not Path("found").exists()


def test_known_truths_that_match_in_part_are_counted(sent: Path, run_json: RunJson) -> None:
    """A warning says how many of the known truths are of tasks, for guiding and for scoring."""
    Path("part.csv").write_text("task,truth\n1,no\n2,no\nx,no\ny,no\nz,no\n")
    guided = run_json("infer", *SENT, "--gold", "part.csv")
    scored = run_json("infer", *SENT, "--score", "part.csv")

    assert "2 of 5 gold tasks are among the tasks; 3 were skipped." in guided["warnings"]
    assert "2 of 5 tasks to score are among the tasks; 3 were skipped." in scored["warnings"]
