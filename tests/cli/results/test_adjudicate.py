"""`next --adjudicate`: the tasks that a person should decide, and the way of their truths back through --gold."""

import csv
import random
from pathlib import Path

import pandas as pd
import pytest

import crowdveil as cv
from crowdveil.answers.frames import read_gold_frame
from crowdveil.errors import ReportsError
from tests.cli.conftest import Refusal, Run, RunJson, rows, write

GOOD = [f"t{task},{who},{'yes' if task % 2 else 'no'}" for task in range(20) for who in "abc"]


@pytest.fixture
def table(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> str:
    """Write answers: 20 clear tasks, a tied one, one with a single answer, one decided against two bad workers."""
    monkeypatch.chdir(tmp_path)
    bad = [f"t{task},{who},{'no' if task % 2 and task % 4 == 1 else 'yes'}" for task in range(20) for who in "de"]
    odd = ["tied,a,yes", "tied,b,no", "single,d,yes", "=against,a,no", "=against,d,yes", "=against,e,yes"]
    return write("answers.csv", "task,worker,label", *GOOD, *bad, *odd)


def test_uncertain_and_outvoted_tasks_are_listed_with_reasons_and_answers(table: str, run_json: RunJson) -> None:
    """A tie, a single weak answer and a truth against the votes are listed, the least certain first; clear ones not."""
    data = run_json("next", table, "--adjudicate", "--out", "decide.csv")
    listed = {row["task"]: row for row in rows("decide.csv")}

    assert {"tied", "single", "=against"} == set(listed)
    assert (3, 23) == (data["to_decide"], data["tasks"])
    assert {""} == {row["truth"] for row in listed.values()}
    assert "the votes are tied: no 1, yes 1" in listed["tied"]["reason"]
    assert ("uncertain", "one answer") == (listed["single"]["reason"][:9], listed["single"]["reason"][-10:])
    assert ("no", "no (a); yes (d, e)") == (listed["=against"]["proposed"], listed["=against"]["answers"])
    assert "against the votes: no 1, yes 2" in listed["=against"]["reason"]
    shares = [float(row["confidence"]) for row in rows("decide.csv")]
    assert shares == sorted(shares)


@pytest.mark.parametrize("name", ["decide.csv", "decide.xlsx"])
def test_truths_that_are_written_in_are_read_as_gold(table: str, name: str, run: Run, run_json: RunJson) -> None:
    """--gold reads the list back: truths that are there guide the fit, empty ones are left out; of a workbook, too."""
    run("next", table, "--adjudicate", "--out", name)
    if name.endswith(".csv"):
        filled = [row | {"truth": "yes" if row["task"] == "tied" else ""} for row in rows(name)]
        with open(name, "w", newline="", encoding="utf-8") as stream:
            writer = csv.DictWriter(stream, list(filled[0]))
            writer.writeheader()
            writer.writerows(filled)
    else:
        import openpyxl

        book = openpyxl.load_workbook(name)
        for row in book.active.iter_rows(min_row=2):
            row[1].value = "yes" if row[0].value == "tied" else None
        book.save(name)

    run_json("infer", table, "--gold", name, "--out", "found")
    truths = {row["task"]: row for row in rows("found/truths.csv")}
    assert ("yes", "true") == (truths["tied"]["truth"], truths["tied"]["gold"].lower())
    again = run_json("next", "found", "--adjudicate", "--out", "again.csv")
    assert "tied" not in {row["task"] for row in rows("again.csv")}
    assert (1, 2) == (again["gold"], again["to_decide"])


def test_an_empty_list_and_a_frame_of_it(table: str, run: Run, refusal: Refusal) -> None:
    """Without any truth the list is refused; a frame with its columns is read by the same rule."""
    run("next", table, "--adjudicate", "--out", "decide.csv")

    assert "Write the truths into the column truth." in refusal("infer", table, "--gold", "decide.csv", "--out", "x")
    assert not Path("x").exists()
    frame = {"task": ["a", "b"], "truth": ["x", ""], "proposed": ["y", "y"]}
    assert {"a": "x"} == read_gold_frame(frame).truths


def test_the_bound_and_the_number_are_options(table: str, run_json: RunJson) -> None:
    """--below 0 leaves the votes; --budget the least certain."""
    votes = run_json("next", table, "--adjudicate", "--below", 0)
    first = run_json("next", table, "--adjudicate", "--budget", 1)

    assert {"tied", "=against"} == {one["task"] for one in votes["first"]["items"]}
    assert (1, 3) == (first["first"]["of"], first["to_decide"])


def test_protected_reports_have_no_votes(table: str, run: Run, run_json: RunJson) -> None:
    """Reports of a channel are listed as reports, by their probabilities alone."""
    words = ("--mechanism", "randomized-response", "--epsilon", 3, "--labels", "no,yes", "--participation", "public")
    run("perturb", table, *words, "--seed", 1, "--out", "sent")

    data = run_json("next", "sent/reports.csv", "--adjudicate", "--below", 0.9, "--out", "decide.csv")

    assert data["to_decide"] > 0
    assert ["task", "truth", "proposed", "confidence", "reason", "reports"] == list(rows("decide.csv")[0])
    assert not any("votes" in row["reason"] for row in rows("decide.csv"))


def test_what_does_not_go_together_is_refused(table: str, run: Run, refusal: Refusal) -> None:
    """Numbers, methods without probabilities, and options of the other lists have a way out."""
    numbers = write("numbers.csv", "task,worker,value", *(f"t{n},{w},{n}.5" for n in range(9) for w in "ab"))

    assert "need labels" in refusal("next", numbers, "--adjudicate")
    assert "hierarchical-dawid-skene" in refusal("next", table, "--adjudicate", "--method", "kos")
    for rule, words in {
        "--workers cannot be used with --adjudicate": ("--adjudicate", "--workers", table),
        "--adjudicate cannot be used with --gold": ("--adjudicate", "--gold", table),
        "--below requires --adjudicate": ("--below", 0.5, "--budget", 3),
        "Missing option '--budget'": (),
    }.items():
        assert rule in run("next", table, *words, code=2).stderr


def test_tasks_that_were_chosen_score_none_of_the_others(
    table: str, run: Run, run_json: RunJson, refusal: Refusal
) -> None:
    """A score by a list of tasks to decide says so; conclusions refuse it, and so do they in frames."""
    rng = random.Random(1)
    answers = [f"t{task},w{worker},{'xxy'[rng.randrange(3)]}" for task in range(30) for worker in range(3)]
    write("many.csv", "task,worker,label", *answers)
    run("next", "many.csv", "--adjudicate", "--below", ".999", "--out", "decide.csv")
    decided = [f"{row['task']},{'xy'[number % 2]},x" for number, row in enumerate(rows("decide.csv"))]
    write("decided.csv", "task,truth,proposed", *decided)
    frame = pd.read_csv("decided.csv")

    found = run_json("infer", "many.csv", "--score", "decided.csv", "--out", "found")

    said = "were chosen for a person to decide"
    assert [note for note in found["warnings"] if said in note]
    assert said in refusal("conclude", "many.csv", "--gold", "decided.csv", "--random")
    with pytest.raises(ReportsError, match=said):
        cv.conclude(pd.read_csv("many.csv"), frame, random=True)


def test_a_misspelt_truth_names_its_file(table: str, refusal: Refusal) -> None:
    """An error of a known truth that guides or scores names the file in which it stands."""
    write("gold.csv", "task,truth", "tied,yse")

    for use in ("--gold", "--score"):
        assert "Error: gold.csv: gold " in refusal("infer", table, use, "gold.csv", "--out", "x")
