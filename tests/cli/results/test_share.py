"""`crowdveil share`: groups, weights, joint tables and regressions in table, file and JSON, and refusals."""

import csv
from pathlib import Path

import pytest

from tests.cli.conftest import Refusal, Run, RunJson, write
from tests.cli.test_json_output import check


@pytest.fixture
def survey(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """Stand in a folder with answers of 100 people to two questions, their groups, weights and totals."""
    monkeypatch.chdir(tmp_path)
    people = range(100)
    rows = [f"drugs,p{k},{'yes' if k < 30 else 'no'}" for k in people]
    rows += [f"theft,p{k},{'yes' if k % 7 == 0 else 'no'}" for k in people]
    write("answers.csv", "task,worker,label", *rows)
    write("groups.csv", "worker,sex,age", *(f"p{k},{'fm'[k % 2]},{'young' if k < 60 else 'old'}" for k in people))
    write("weights.csv", "worker,weight", *(f"p{k},{1 + k % 3}" for k in people))
    write("totals.csv", "group,total", "f,300", "m,700")
    write("sex.csv", "worker,sex", *(f"p{k},{'fm'[k % 2]}" for k in people))
    return tmp_path


def test_groups_have_rows_differences_and_tests(survey: Path, run: Run, run_json: RunJson) -> None:
    """Each column of groups has its rows, beside everyone; table, file and JSON agree."""
    data = run_json("share", "answers.csv", "--by", "groups.csv", "--level", 0.9, "--out", "shares.csv")
    text = " ".join(run("share", "answers.csv", "--by", "groups.csv").stdout.split())
    with Path("shares.csv").open() as stream:
        rows = list(csv.DictReader(stream))
    items = data["shares"]["items"]

    assert ["", "f", "m", "old", "young"] == [one["group"] for one in items[:5]]
    assert len(rows) == 2 * 5 * 2
    assert float(rows[0]["share"]) == items[0]["symbols"][0]["share"]
    assert 4 == data["differences"]["of"] == data["tests"]["of"]
    assert 0.9 == data["level"]
    assert "drugs, yes: no difference by age: chi-squared" in text
    assert "drugs, yes: age old minus young -50.0 (-6" in text


def test_weights_and_totals_change_the_shares(survey: Path, run_json: RunJson) -> None:
    """Files of weights and totals are read as their values in Python."""
    weighted = run_json("share", "answers.csv", "--weights", "weights.csv")
    totals = run_json("share", "answers.csv", "--by", "sex.csv", "--totals", "totals.csv")
    check(totals, "share")

    assert (None, "everyone") == (weighted["totals"], totals["totals"])
    assert "sums" == weighted["method"] == totals["method"]
    yes = sum(1 + k % 3 for k in range(30)) / sum(1 + k % 3 for k in range(100))
    assert weighted["shares"]["items"][0]["symbols"][1]["unclipped"] == pytest.approx(yes, abs=1e-6)
    assert totals["shares"]["items"][3]["symbols"][1]["unclipped"] == pytest.approx(0.3 * 0.16 + 0.7 * 0.14, abs=1e-6)


def test_two_questions_and_covariates(survey: Path, run: Run, run_json: RunJson) -> None:
    """The joint table has its odds ratio, and the regression its coefficients."""
    words = ("--joint", "drugs,theft", "--regress", "groups.csv", "--outcome", "yes", "--regress-task", "theft")
    data = run_json("share", "answers.csv", *words)
    text = " ".join(run("share", "answers.csv", *words).stdout.split())
    both = [one for one in data["joint"]["cells"] if (one["first"], one["second"]) == ("yes", "yes")]

    assert 0.05 == both[0]["share"]
    assert data["joint"]["odds_ratio"] == pytest.approx(1.2)
    assert "epsilon" not in data["joint"]  # a statement names it, with unit and participation
    assert ["(intercept)", "sex: m", "age: young"] == [one["name"] for one in data["regression"]["coefficients"]]
    assert "odds ratio 1.2 (" in text
    assert "answer, age: young:" in text


def test_a_combined_question_needs_the_meaning_of_its_labels(
    survey: Path, run: Run, run_json: RunJson, refusal: Refusal
) -> None:
    """Without --cells the table is refused; with it each row has its label."""
    labels = ["both", "drugs", "theft", "neither"]
    write("combined.csv", "task,worker,label", *(f"habits,p{k},{labels[k % 4]}" for k in range(100)))
    words = ("share", "combined.csv", "--joint", "habits")
    refused = " ".join(refusal(*words).split())
    data = run_json(*words, "--cells", ",".join(labels))
    check(data, "share")

    assert "got 'no order of its labels'. Its labels are both, drugs, neither, theft; name each once" in refused
    assert "--cells" in refused
    assert labels == [one["label"] for one in data["joint"]["cells"]]
    assert "yes, no (drugs): 25.0%" in " ".join(run(*words, "--cells", ",".join(labels)).stdout.split())


def test_what_is_taken_to_be_public_is_named(survey: Path, run: Run, run_json: RunJson) -> None:
    """A warning in text and JSON names groups, clusters and covariates; without them there is none."""
    write("clusters.csv", "worker,cluster", *(f"p{k},{k % 20}" for k in range(100)))
    words = ("share", "answers.csv", "--by", "groups.csv", "--clusters", "clusters.csv")
    note = "Groups and clusters of people are taken to be public: the statement of privacy does not cover them."
    regressed = run_json("share", "answers.csv", "--regress", "sex.csv", "--outcome", "yes", "--regress-task", "theft")

    assert [note] == run_json(*words)["warnings"]
    assert note in " ".join(run(*words).stdout.split())
    assert ["Covariates of people are taken to be public"] == [one.split(":")[0] for one in regressed["warnings"]]
    assert [] == run_json("share", "answers.csv")["warnings"]


REFUSED = {
    "an unknown worker": (("--by", "strangers.csv"), "groups must be of workers who were asked"),
    "a level of 95": (("--level", 95), "level must be above 0 and below 1, got 95.0. Such as --level 0.95."),
    "a level of 0": (("--level", 0), "level must be above 0 and below 1, got 0.0. Such as --level 0.95."),
    "a level that is no number": (("--level", "nan"), "level must be"),
    "a weight of 0": (("--weights", "zero.csv"), "weights must be positive numbers"),
    "no column of workers": (("--by", "totals.csv"), "worker"),
    "totals without groups": (("--totals", "totals.csv"), "Give --by with one column"),
    "totals of other groups": (
        ("--by", "sex.csv", "--min-group", 60, "--totals", "totals.csv"),
        "got \"no total of 'others (f, m)'; no group 'f'; no group 'm'\". Join small groups in the table, or lower "
        "--min-group.",
    ),
    "totals and clusters": (
        ("--by", "sex.csv", "--totals", "totals.csv", "--clusters", "sex.csv"),
        "Leave --totals or --clusters out.",
    ),
    "a joint table of no task": (("--joint", "drugs,crime"), "got 'crime'. Tasks are drugs, theft. Name two"),
    "a joint table of one question": (("--joint", "drugs"), "Name two, or one with four labels: --joint drugs,theft."),
    "a question twice": (("--joint", "drugs,drugs"), "Name another question."),
    "a regression of several tasks": (
        ("--regress", "sex.csv", "--outcome", "yes"),
        "got 'none of 2 tasks'. Tasks are drugs, theft. Name one: --regress-task theft.",
    ),
    "a regression of no task": (
        ("--regress", "sex.csv", "--outcome", "yes", "--regress-task", "crime"),
        "got 'crime'. Tasks are drugs, theft. Name one: --regress-task theft.",
    ),
    "an outcome that is no label": (
        ("--regress", "sex.csv", "--outcome", "maybe", "--regress-task", "theft"),
        "got 'maybe'. Labels are no, yes: --outcome yes.",
    ),
    "a column without a name": (("--by", "frame.csv"), "each column of groups must have a name"),
    "a weight with a comma": (("--weights", "comma.csv"), "Write decimals with a point."),
}
MISUSED = {
    "a regression without a label": (("--regress", "groups.csv"), "--regress and --outcome go together"),
    "three questions": (("--joint", "a,b,c"), "--joint names two tasks"),
    "cells without a table": (("--cells", "a,b,c,d"), "--cells goes with --joint"),
    "a page of a joint table": (("--joint", "drugs,theft", "--page", "p.html"), "leave --page or --joint out"),
    "a page of a regression": (
        ("--regress", "sex.csv", "--outcome", "yes", "--page", "p.html"),
        "The page has no --regress: leave --page or --regress out.",
    ),
    "a weighted joint table": (("--joint", "a,b", "--weights", "weights.csv"), "--joint does not use --weights"),
}


@pytest.mark.parametrize("name", REFUSED)
def test_bad_input_is_refused(name: str, survey: Path, refusal: Refusal) -> None:
    """Each bad option is refused in words of the command."""
    write("strangers.csv", "worker,sex", "q1,f")
    write("zero.csv", "worker,weight", *(f"p{k},{k}" for k in range(100)))
    write("comma.csv", "worker;weight", *(f"p{k};1,5" for k in range(100)))
    write("frame.csv", ",worker,sex", *(f"{k},p{k},f" for k in range(100)))
    words, message = REFUSED[name]

    assert message in " ".join(refusal("share", "answers.csv", *words).split())


@pytest.mark.parametrize("name", MISUSED)
def test_options_that_do_not_go_together_are_refused(name: str, survey: Path, run: Run) -> None:
    """Each combination of options is refused as wrong usage."""
    words, message = MISUSED[name]

    assert message in " ".join(run("share", "answers.csv", *words, code=2).stderr.split())


def test_edited_reports_are_refused_without_an_option_that_is_not_there(
    survey: Path, run: Run, refusal: Refusal
) -> None:
    """The hint on edited reports names only what `share` has."""
    write("people.csv", "worker", *(f"p{k}" for k in range(100)))
    write("tasks.csv", "task", "drugs", "theft")
    lists = ("--tasks", "tasks.csv", "--workers", "people.csv", "--labels", "no,yes")
    run("perturb", "answers.csv", "--mechanism", "randomized-response", "--epsilon", 2, *lists, "--out", "sent")
    path = Path("sent/reports.csv")
    path.write_text("\n".join(path.read_text().splitlines()[:-1]) + "\n")
    refused = refusal("share", "sent/reports.csv")

    assert "crowd.json" in refused
    assert "--accept-edited" not in refused


def test_an_unknown_worker_of_a_complete_list_has_no_other_list(survey: Path, run: Run, refusal: Refusal) -> None:
    """Where crowd.json lists all who were asked, the hint does not propose lists, which would be refused."""
    write("people.csv", "worker", *(f"p{k}" for k in range(100)))
    write("tasks.csv", "task", "drugs", "theft")
    lists = ("--tasks", "tasks.csv", "--workers", "people.csv", "--labels", "no,yes")
    run("perturb", "answers.csv", "--mechanism", "randomized-response", "--epsilon", 2, *lists, "--out", "sent")
    write("strangers.csv", "worker,sex", "q1,f")

    assert "1 worker is unknown: leave them out.\n" in refusal("share", "sent", "--by", "strangers.csv")
    assert "--workers" in refusal("share", "answers.csv", "--by", "strangers.csv")
