"""`crowdveil share`: proportions of opinions in a table, a file and JSON; unknown channels fail closed."""

from pathlib import Path

import pytest

from tests.cli.conftest import LISTS, Refusal, Run, RunJson, rows

PERTURB = ("perturb", "labels.csv", "--mechanism", "randomized-response", "--epsilon", 3, *LISTS, "--out", "sent")


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
    assert "yes 30.0% (22." in " ".join(run("share", "opinions.csv").stdout.split())


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


@pytest.mark.parametrize("mechanism", ["two-layer", "matrix-factorization"])
def test_reports_without_a_channel_are_refused(folder: Path, run: Run, refusal: Refusal, mechanism: str) -> None:
    """Without a certificate of protected reports, and from sums, nothing is shown."""
    source, lists = ("labels.csv", ()) if mechanism == "two-layer" else ("numbers.csv", ("--scale", "-2:7", *LISTS))
    run("perturb", source, "--mechanism", mechanism, "--epsilon", 1, "--seed", 1, *lists, "--out", "sent")
    made = "sent/reports.csv" if mechanism == "two-layer" else "sent/sums.json"

    assert ("measures the noise" if mechanism == "two-layer" else "belongs to sums") in refusal("share", made)
