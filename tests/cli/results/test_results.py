"""`agreement`, `conclude`, `next`, `share` and decisions of `infer`: values in tables, files and JSON."""

import csv
from pathlib import Path

import pandas as pd
import pytest

import crowdveil as cv
from tests.cli.conftest import LISTS, Refusal, Run, RunJson, rows, write

PERTURB = ("perturb", "labels.csv", "--mechanism", "randomized-response", "--epsilon", 3, *LISTS, "--out", "sent")


def test_ordered_labels_and_numbers_have_their_metrics(folder: Path, run_json: RunJson) -> None:
    """Ordered labels add the ordinal alpha; numbers have the interval one and a difference."""
    ordered = run_json("agreement", "labels.csv", "--labels", "no,maybe,yes", "--ordered")
    numbers = run_json("agreement", "numbers.csv")

    assert ["nominal", "ordinal"] == list(ordered["alpha"])
    assert (["interval"], "difference") == (list(numbers["alpha"]), numbers["pairwise"]["name"])


def test_protected_reports_are_corrected_or_refused(
    folder: Path, run: Run, run_json: RunJson, refusal: Refusal
) -> None:
    """With a certificate workers are not compared; they have no table, and without one nothing is shown."""
    run(*PERTURB, "--labels", "no,yes,maybe", "--seed", 1)
    data = run_json("agreement", "sent/reports.csv")

    assert (True, None) == (data["channel_used"], data["workers"])
    assert "cannot be compared through a channel" in refusal("agreement", "sent/reports.csv", "--out", "agreement.csv")
    Path("sent/certificate.json").unlink()
    assert "Certificate refused (missing)" in refusal("agreement", "sent/reports.csv")
    assert not Path("agreement.csv").exists()


def test_reports_of_a_mechanism_without_a_certificate_are_refused(folder: Path, run: Run, refusal: Refusal) -> None:
    """Raw agreement of such reports would measure the noise."""
    run("perturb", "labels.csv", "--mechanism", "two-layer", "--epsilon", 1, "--seed", 1, "--out", "sent")

    assert "measures the noise" in refusal("agreement", "sent/reports.csv")


@pytest.fixture
def drawn(folder: Path, run: Run) -> list[dict[str, str]]:
    """Write 60 tasks of three workers, draw 20 of them, and write their truths into gold.csv."""
    lines = [
        f"t{task},{who},{'yes' if (task + (who == 'c' and task % 5 == 0)) % 2 else 'no'}"
        for task in range(60)
        for who in "abc"
    ]
    Path("many.csv").write_text("task,worker,label\n" + "\n".join(lines) + "\n")
    run("data", "draw-gold", "many.csv", "--number", 20, "--seed", 3, "--out", "drawn.csv")
    found = rows("drawn.csv")
    with Path("gold.csv").open("w", newline="") as stream:
        writer = csv.DictWriter(stream, ["task", "truth", "seed"])
        writer.writeheader()
        writer.writerows(row | {"truth": "yes" if int(row["task"][1:]) % 2 else "no"} for row in found)
    return found


def test_the_next_tasks_extend_the_draw(drawn: list[dict[str, str]], run: Run) -> None:
    """`next --gold` lists the tasks after those of the file: together they are one larger draw."""
    run("next", "many.csv", "--gold", "gold.csv", "--budget", 5, "--out", "more.csv")
    run("data", "draw-gold", "many.csv", "--number", 25, "--seed", 3, "--out", "all.csv")

    assert rows("all.csv") == drawn + rows("more.csv")


def test_conclusions_are_printed_and_written(drawn: list[dict[str, str]], run: Run, run_json: RunJson) -> None:
    """Prevalences, the difference asked for and accuracies are in table, file and JSON, from 20 known truths."""
    words = ("conclude", "many.csv", "--gold", "gold.csv", "--compare", "a,c", "--out", "conclusions.csv")
    shown, data, found = run(*words).stdout, run_json(*words), rows("conclusions.csv")

    assert ["prevalence"] * 2 + ["difference"] + ["accuracy"] * 3 == [row["quantity"] for row in found]
    assert "20 of 60 tasks, the first tasks of the draw with seed 3" in shown
    assert "difference of a less c, on the 60 tasks of both: " in shown
    assert "accuracy of c, on its 60 tasks: " in shown
    assert ["60"] * 6 == [row["tasks"] for row in found]
    assert data["conclusions"]["of"] == len(found)


def test_gold_with_a_gap_is_refused(drawn: list[dict[str, str]], refusal: Refusal) -> None:
    """A hard task that was left out is named; without a seed the draw must be stated."""
    lines = Path("gold.csv").read_text().splitlines(keepends=True)
    Path("gold.csv").write_text("".join(lines[:3] + lines[4:]))
    assert drawn[2]["task"] in refusal("conclude", "many.csv", "--gold", "gold.csv")

    Path("gold.csv").write_text("task,truth\n" + "".join(line.rsplit(",", 1)[0] + "\n" for line in lines[1:]))
    assert "--random" in refusal("conclude", "many.csv", "--gold", "gold.csv")


def test_unsure_truths_are_empty_and_counted(folder: Path, run: Run, run_json: RunJson) -> None:
    """The file has empty truths below the confidence only, JSON has their number, and a report can be made of it."""
    assert run_json("infer", "labels.csv", "--out", "found")["decisions"] is None
    bound = sorted(float(row["confidence"]) for row in rows("found/truths.csv"))[10]
    data = run_json("infer", "labels.csv", "--abstain-below", bound, "--score", "labels-gold.csv", "--out", "found")
    found = rows("found/truths.csv")
    empty = [row for row in found if not row["truth"]]

    assert len(empty) == data["decisions"]["undecided"] > 0
    assert [float(row["confidence"]) < bound for row in found] == [not row["truth"] for row in found]
    assert any(f"{len(empty)} of 20 tasks stay undecided" in text for text in data["warnings"])
    run("report", "found")
    assert "undecided" in Path("found/report.html").read_text("utf-8")


def test_costs_move_decisions(folder: Path, run_json: RunJson, refusal: Refusal) -> None:
    """Where every decision but "yes" is expensive, every truth is "yes"; JSON has the mean expected cost."""
    labels = ("no", "yes", "maybe")
    cost = {"yes": 1, "no": 1000, "maybe": 1000}
    text = "".join(f"{z},{d},{cost[d]}\n" for z in labels for d in labels)
    Path("costs.csv").write_text("truth,decision,cost\n" + text)
    data = run_json("infer", "labels.csv", "--costs", "costs.csv", "--score", "labels-gold.csv", "--out", "found")

    assert any(text.startswith("Their mean cost is 1;") for text in data["warnings"])
    assert {"yes"} == {row["truth"] for row in rows("found/truths.csv")}
    assert 1.0 == data["decisions"]["expected_cost"]
    assert "need labels" in refusal("infer", "numbers.csv", "--costs", "costs.csv")


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


def test_a_minority_of_a_third_is_a_third(folder: Path, run: Run, run_json: RunJson) -> None:
    """30 of 100 yes are 30 % in table, file and JSON, where infer says no."""
    answers = "".join(f"q2,{k},{'yes' if k < 30 else 'no'}\n" for k in range(100))
    Path("opinions.csv").write_text("task,worker,label\n" + answers)
    data = run_json("share", "opinions.csv", "--out", "shares.csv")
    (task,) = data["shares"]["items"]
    written = rows("shares.csv")

    assert [("no", 0.7), ("yes", 0.3)] == [(one["label"], one["share"]) for one in task["symbols"]]
    assert [("no", "0.7", "answers"), ("yes", "0.3", "answers")] == [
        (row["label"], row["share"], row["of"]) for row in written
    ]
    assert "yes 30.0% (21.9% to 39.6%)" in " ".join(run("share", "opinions.csv").stdout.split())


@pytest.mark.slow
def test_protected_reports_have_a_share_of_no_answer(folder: Path, run: Run, run_json: RunJson) -> None:
    """The row of no answer is of those asked."""
    run(*PERTURB, "--labels", "no,yes,maybe", "--seed", 1)
    data = run_json("share", "sent/reports.csv")
    symbols = data["shares"]["items"][0]["symbols"]

    assert data["channel_used"]
    assert [("no", "answers"), ("yes", "answers"), ("maybe", "answers"), ("", "asked")] == [
        (one["label"], one["of"]) for one in symbols
    ]
    assert "no answer, of those asked" in " ".join(run("share", "sent/reports.csv").stdout.split())


@pytest.mark.usefixtures("folder")
def test_answers_of_one_label_agree_in_each_form(run: Run, run_json: RunJson, refusal: Refusal) -> None:
    """`agreement` says that all agree, from text, JSON, Parquet and standard input; `infer` still needs two labels."""
    answers = pd.DataFrame({"task": [1, 1, 2, 2], "worker": [*"abab"], "label": ["x"] * 4})
    answers.to_csv("one.csv", index=False)
    answers.to_json("one.json", orient="records")
    answers.to_parquet("one.parquet")
    for name in ("one.csv", "one.json", "one.parquet"):
        data = run_json("agreement", name)

        assert (True, 1.0, None) == (data["all_agree"], data["pairwise"]["value"], data["kappa"]["Cohen"]["value"])
        assert "all agree      all compared answers are equal" in run("agreement", name).stdout
        assert "there must be 2 to 1024 different labels. Found: 1 label." in refusal("infer", name, "--out", "none")


@pytest.mark.usefixtures("folder")
def test_intervals_of_agreement_have_a_level(run: Run, run_json: RunJson) -> None:
    """`--level .95` widens every interval, and is printed; two workers have Cohen's kappa, more have Fleiss'."""
    usual, wide = run_json("agreement", "labels.csv"), run_json("agreement", "labels.csv", "--level", ".95")

    assert (0.9, 0.95, ["Fleiss"]) == (usual["level"], wide["level"], list(wide["kappa"]))
    for kind, name in (("alpha", "nominal"), ("kappa", "Fleiss")):
        one, other = usual[kind][name], wide[kind][name]
        assert other["low"] < one["low"] < one["value"] < one["high"] < other["high"]
    assert "(95 % interval " in run("agreement", "labels.csv", "--level", ".95").stdout
    write("two.csv", "task,worker,label", *(f"{task},{who},{task % 3}" for task in range(12) for who in "ab"))
    ordered = run_json("agreement", "two.csv", "--labels", "0,1,2", "--ordered")
    assert {"Cohen": 1.0, "Cohen, linear": 1.0, "Cohen, quadratic": 1.0} == {
        name: value["value"] for name, value in ordered["kappa"].items()
    }
    run("agreement", "two.csv", "--level", "95", code=2)
