"""`crowdveil infer --save-fit` and `--start-from`: a fit is saved, gone on from, and refused where it must be."""

from pathlib import Path

import pytest

from tests.cli.conftest import LABELS, Run, RunJson


@pytest.fixture
def grown(folder: Path) -> tuple[str, str]:
    """Return two files of reports, of which the second holds those of the first and more."""
    rows = (folder / "labels.csv").read_text("utf-8").splitlines(keepends=True)
    (folder / "early.csv").write_text("".join(rows[: len(rows) * 3 // 4]), "utf-8")
    return "early.csv", "labels.csv"


def test_a_fit_goes_on_with_more_reports(run_json: RunJson, grown: tuple[str, str]) -> None:
    """Saved, gone on from and saved again in the same file: the log-likelihood is that of a fit from the start."""
    words = ("--method", "one-coin", "--labels", ",".join(LABELS))
    first = run_json("infer", grown[0], *words, "--out", "a", "--save-fit", "fits/one.fit")
    going_on = ("--start-from", "fits/one.fit", "--save-fit", "fits/one.fit")
    second = run_json("infer", grown[1], *words, "--out", "b", *going_on)
    whole = run_json("infer", grown[1], *words, "--out", "c")

    assert Path("fits/one.fit").is_file()
    assert "fits/one.fit" in first["files"]
    assert second["steps"] < whole["steps"]
    assert whole["log_likelihood"] == pytest.approx(second["log_likelihood"], abs=1e-6)


def test_another_channel_is_refused(run: Run, grown: tuple[str, str]) -> None:
    """A fit of answers is not gone on from with reports that went through a channel."""
    words = ("--mechanism", "randomized-response", "--epsilon", 3, "--labels", ",".join(LABELS), "--seed", 4)
    run("perturb", "labels.csv", *words, "--out", "sent")
    run("infer", "labels.csv", "--labels", ",".join(LABELS), "--save-fit", "one.fit", "--out", "a")

    output = run("infer", "sent/reports.csv", "--start-from", "one.fit", "--out", "b", code=1).output

    assert "cannot resume: the channel" in output
    assert "fit from the start" in output


def test_missing_reports_damage_and_inputs_are_refused(run: Run, grown: tuple[str, str]) -> None:
    """A file that is no fit is refused, and so is a fit that would replace the reports."""
    assert "a saved fit must be whole" in run("infer", grown[1], "--start-from", grown[0], code=1).output
    assert "must not replace an input" in run("infer", grown[1], "--save-fit", grown[1], code=1).output
