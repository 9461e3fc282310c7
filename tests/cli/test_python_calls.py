"""Calls of the library beside the commands of the same name: equal numbers."""

import csv
from pathlib import Path

import pandas as pd
import pytest

import crowdveil
from crowdveil import Categories
from tests.cli.conftest import Run, RunJson


@pytest.mark.parametrize(("command", "options"), [("agreement", []), ("review", ["--below", ".9"]), ("next", [])])
def test_tables_agree(command: str, options: list[str], folder: Path, run: Run) -> None:
    """A frame gives the table that the command writes for the same file."""
    answers = pd.read_csv("labels.csv", dtype=str)
    options = ["--budget", "5"] if command == "next" else options
    run(command, "labels.csv", *options, "--out", "found.csv")
    with open("found.csv", newline="") as file:
        written = list(csv.reader(file))
    made = {
        "agreement": lambda: crowdveil.agreement(answers, with_workers=True)[1],
        "review": lambda: crowdveil.review(answers, below=0.9),
        "next": lambda: crowdveil.next_answers(answers, budget=5),
    }[command]()

    assert len(written) > 2
    assert list(made.columns) == written[0]
    for row, found in zip(written[1:], made.itertuples(index=False), strict=True):
        for text, value in zip(row, found, strict=True):
            assert str(value) == text if isinstance(value, str) else float(text) == pytest.approx(value, rel=1e-9)


@pytest.mark.slow
def test_plans_agree(run_json: RunJson) -> None:
    """The expected errors are those that `crowdveil plan` prints."""
    size = ("--labels", "no,yes", "--workers", 30, "--tasks", 60, "--participation-rate", 0.5, "--target-error", 0.1)
    said = run_json("plan", *size, "--epsilon", "1,2", "--ability", 0.8)
    asked = {"workers": 30, "tasks": 60, "participation_rate": 0.5, "epsilons": [1, 2], "ability": 0.8, "target": 0.1}
    found = crowdveil.plan(Categories(("no", "yes")), **asked).to_arrow().to_pydict()  # type: ignore[arg-type]

    assert [one["error"] for one in said["candidates"]] == found["error"]
    assert [one["epsilon_per_worker"] for one in said["candidates"]] == found["epsilon_per_worker"]
