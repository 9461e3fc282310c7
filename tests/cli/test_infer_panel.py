"""`crowdveil infer --truths`: scores of judges give truths of their own, with what the panel is worth."""

from pathlib import Path

import pytest

from tests.cli.conftest import Refusal, Run, RunJson, rows, write


def lines(path: str) -> list[str]:
    """Lines of a text file."""
    return Path(path).read_text("utf-8").splitlines()


@pytest.fixture
def scores(run: Run) -> None:
    """Write scores 0..10 of three judges, two of whom are copies, on 60 tasks, and gold of 40."""
    answers, gold = ["task,worker,value"], ["task,truth"]
    for task in range(60):
        good = task % 2
        for worker, shift in (("ann", 0), ("bob", 0), ("cy", 3)):
            answers.append(
                f"t{task:02},{worker},{2 + 5 * good + (task // 2 + shift) * 7 % 4 - 2 * (task % 7 == shift)}"
            )
        if task < 40:
            gold.append(f"t{task:02},{('no', 'yes')[good]}")
    Path("scores.csv").write_text("\n".join(answers) + "\n")
    Path("gold.csv").write_text("\n".join(gold) + "\n")


def test_scores_give_truths_with_what_the_panel_is_worth(run_json: RunJson, scores: None) -> None:
    """Truths have their own labels, and JSON says how many judges are independent and what the best one reaches."""
    found = run_json("infer", "scores.csv", "--truths", "no,yes", "--scale", "0:10", "--gold", "gold.csv")
    panel = found["panel"]

    assert {"no", "yes"} == {row["truth"] for row in rows("truths.csv")}
    assert ("stacked-truth-tables", 40) == (found["method"], found["gold_used"])
    assert 1 < panel["effective"] < 3
    assert [["ann", "bob"]] == [pair["workers"] for pair in panel["pairs"]]
    assert panel["stacked_accuracy"] >= panel["best_accuracy"] - 0.1
    assert 3 == len(panel["sentences"])


def test_scores_off_the_scale_are_refused(refusal: Refusal, scores: None) -> None:
    """Scores are on the stated scale, and not clipped to it."""
    line = refusal("infer", "scores.csv", "--truths", "no,yes", "--scale", "0:5")

    assert "scores must be on the scale from 0 to 5" in line


def test_a_truth_that_no_gold_has_is_named(run_json: RunJson, scores: None) -> None:
    """A misspelt truth is no error where the answers have an order, so that it is named beside the gold."""
    found = run_json("infer", "scores.csv", "--truths", "no,yess,yes", "--scale", "0:10", "--gold", "gold.csv")

    assert any("No gold task has the truth 'yess'" in text for text in found["warnings"])


def test_a_folder_of_a_panel_says_which_truths_its_scores_have(run: Run, run_json: RunJson, scores: None) -> None:
    """Verbs on results read the truths from the record, as with --truths, and the page sends to `next`."""
    run("infer", "scores.csv", "--truths", "no,yes", "--scale", "0:10", "--gold", "gold.csv", "--out", "found")
    Path("new.csv").write_text("worker\ndora\n")
    asked = ("--budget", "3", "--workers", "new.csv", "--per-worker", "3")

    named = run_json("next", "scores.csv", "--truths", "no,yes", *asked)
    run("infer", "scores.csv", "--truths", "no,yes", "--scale", "0:10", "--out", "plain")
    assert named["answers"] == run_json("next", "plain", *asked)["answers"]
    assert 3 == named["answers"]["of"]
    assert "name others with --workers" in " ".join(run("next", "found", "--budget", "3").stdout.split())
    assert ["ann", "bob"] == sorted(one["worker"] for one in run_json("review", "found")["review"]["items"])
    concluded = run_json("conclude", "found", "--gold", "gold.csv", "--random")
    assert ["no", "yes"] == [one["name"] for one in concluded["conclusions"]["items"]]
    run("report", "found")


def test_truths_in_reverse_order_are_named(run_json: RunJson, scores: None) -> None:
    """Gold, scored truths and gold of `conclude` say that low scores mean the last truth; in order they say nothing."""
    for truths, expected in (("no,yes", []), ("yes,no", ["State --truths no,yes"] * 4)):
        words = ("infer", "scores.csv", "--truths", truths)
        guided = run_json(*words, "--gold", "gold.csv", "--out", "found")
        found = [
            guided,
            run_json(*words, "--gold", write("few.csv", *lines("gold.csv")[:13]), "--out", "few"),
            run_json(*words, "--score", "gold.csv", "--out", "scored"),
            run_json("conclude", "scored", "--gold", "gold.csv", "--random"),
        ]
        said = [text for one in found for text in one["warnings"] if "looks reversed" in text]
        assert len(expected) == len(said)
        assert all(hint in text for hint, text in zip(expected, said, strict=True))
        assert bool(expected) == guided["cross_validation"]["order_reversed"]
        assert bool(expected) == ("looks reversed" in guided["cross_validation"]["sentence"])


def test_gold_of_a_folder_corrects_a_reversed_order(run: Run, run_json: RunJson, scores: None) -> None:
    """`next` and `review` work with the gold of the folder, so that they see the truths of its file."""
    run("infer", "scores.csv", "--truths", "yes,no", "--gold", "gold.csv", "--out", "found")
    write("new.csv", "worker", "dora")
    asked = run_json("next", "found", "--budget", 60, "--workers", "new.csv", "--per-worker", 60, "--out", "next.csv")
    probable = {row["task"]: row["reason"].split()[0] for row in rows("next.csv")}

    assert (40, 20) == (asked["gold"], len(probable))
    assert {row["task"]: row["truth"] for row in rows("found/truths.csv") if row["task"] in probable} == probable


def test_labels_without_order_are_read_by_gold(run: Run, run_json: RunJson, refusal: Refusal, scores: None) -> None:
    """`next` reads labels without order by the gold of the folder; without gold it says how truths are mapped."""
    lines = Path("scores.csv").read_text().splitlines()
    grades = [f"{line.rpartition(',')[0]},{'abc'[int(line.rpartition(',')[2]) % 3]}" for line in lines[1:]]
    Path("grades.csv").write_text("\n".join(["task,worker,label", *grades]) + "\n")
    run("infer", "grades.csv", "--truths", "no,yes", "--gold", "gold.csv", "--out", "found")
    run("report", "found")
    write("new.csv", "worker", "dora")

    assert "crowdveil next" in Path("found/report.html").read_text("utf-8")
    assert 1 == run_json("next", "found", "--budget", 1, "--workers", "new.csv")["answers"]["of"]
    assert "give the order of the answers" in refusal("next", "grades.csv", "--truths", "no,yes", "--budget", 3)
