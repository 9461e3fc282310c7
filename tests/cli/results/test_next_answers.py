"""`crowdveil next`: a batch of cells that nobody asked yet, with explicit gains."""

from pathlib import Path

import pandas as pd
import pytest

import crowdveil as cv
from tests.cli.conftest import LISTS, Refusal, Run, RunJson, rows, write

SENT = ("--mechanism", "randomized-response", "--epsilon", 2, "--labels", "no,yes,maybe", "--seed", 1, "--out", "sent")


def test_named_workers_are_asked_up_to_their_bound(folder: Path, run_json: RunJson) -> None:
    """A worker without a report can be asked; nobody is asked more often than the bound."""
    Path("team.csv").write_text("worker\nnew\n1\n")
    words = ("--workers", "team.csv", "--per-worker", 3, "--out", "next.csv")
    data = run_json("next", "labels.csv", "--budget", 9, *words)
    names = [row["worker"] for row in rows("next.csv")]

    assert data["answers"]["of"] == len(names) <= 6
    assert "new" in names
    assert max(names.count(name) for name in names) <= 3


def test_protected_cells_are_asked_within_an_assignment(
    folder: Path, run: Run, run_json: RunJson, refusal: Refusal
) -> None:
    """If everyone has reported on everything nothing is left; with an assignment the other cells are."""
    run("perturb", "labels.csv", *SENT, *LISTS)
    assert "no further answer" in refusal("next", "sent/reports.csv", "--budget", 2)
    cells = "".join(f"{row['task']},{row['worker']}\n" for row in rows("labels.csv"))
    Path("asked.csv").write_text("task,worker\n" + cells)
    run("perturb", "labels.csv", *SENT[:-1], "asked", *LISTS, "--assignment", "asked.csv")
    data = run_json("next", "asked/reports.csv", "--budget", 5, "--out", "next.csv")
    assigned = {(row["task"], row["worker"]) for row in rows("asked.csv")}

    assert 2.0 == pytest.approx(data["epsilon_per_answer"])
    assert set() == assigned & {(row["task"], row["worker"]) for row in rows("next.csv")}


def test_a_worker_who_skipped_a_task_is_not_asked_again(run_json: RunJson) -> None:
    """The only worker without an answer to task a left it out; nobody is proposed for it."""
    answers = ["a,v,yes", "a,w,NULL", "a,x,no", "b,v,no", "b,w,no", "b,x,no", "c,w,yes", "c,v,yes"]
    Path("few.csv").write_text("\n".join(["task,worker,label", *answers]) + "\n", encoding="utf-8")

    data = run_json("next", "few.csv", "--budget", 9)

    assert [("c", "x")] == [(one["task"], one["worker"]) for one in data["answers"]["items"]]


def test_known_truths_of_a_folder_guide_the_fit_and_are_not_asked(
    folder: Path, run: Run, run_json: RunJson, refusal: Refusal
) -> None:
    """Of a folder of results, `next` and `review` fit with its gold, as Python does with gold=; gold is not listed."""
    known = {row["task"]: row["truth"] for row in rows("labels-gold.csv")[:12]}
    write("gold.csv", "task,truth", *map(",".join, known.items()))
    run("infer", "labels.csv", "--gold", "gold.csv", "--out", "found")
    data = run_json("next", "found", "--budget", 20, "--out", "next.csv")
    listed, answers = rows("next.csv"), pd.read_csv("labels.csv", dtype=str)
    called = cv.next_answers(answers, budget=20, gold=known)

    assert (12, 8, 8) == (data["gold"], data["tasks"], len(listed))
    assert not known.keys() & {row["task"] for row in listed}
    assert [row["task"] for row in listed] == called["task"].tolist()
    assert [float(row["information"]) for row in listed] == pytest.approx(called["information"].tolist())
    for verb in ("next", "review"):
        options = ("--budget", 20) if verb == "next" else ("--below", 0.9)
        assert run_json(verb, "found", *options) != run_json(verb, "labels.csv", *options)
    run("infer", "labels.csv", "--gold", "labels-gold.csv", "--out", "all")
    assert "20 of them known" in refusal("next", "all", "--budget", 2)


def test_changed_truths_guide_no_fit(folder: Path, run: Run, refusal: Refusal) -> None:
    """A table of truths that was edited is no gold: `next` and `review` refuse the folder."""
    run("infer", "labels.csv", "--gold", "labels-gold.csv", "--out", "found")
    truths = Path("found/truths.csv")
    truths.write_text(truths.read_text() + "\n")

    assert "unchanged" in refusal("next", "found", "--budget", 2)
    assert "unchanged" in refusal("review", "found")
