"""Tests of `crowdveil share --page`."""

import json
from pathlib import Path

import pytest

from tests.cli.conftest import Run


@pytest.fixture
def survey(folder: Path) -> None:
    """Write the answers of a survey, and the list of those asked."""
    rows = [f"cheated,p{number},{'yes' if number < 30 else 'no'}" for number in range(90)]
    Path("answers.csv").write_text("\n".join(["task,worker,label", *rows, ""]), "utf-8")
    Path("asked.csv").write_text("\n".join(["worker", *(f"p{number}" for number in range(100)), ""]), "utf-8")
    Path("tasks.csv").write_text("task\ncheated\n", "utf-8")


def test_page_of_protected_reports(run: Run, survey: None) -> None:
    """The command writes the page with the epsilon of the certificate, names it, and replaces an earlier one."""
    lists = ("--labels", "no,yes", "--tasks", "tasks.csv", "--workers", "asked.csv")
    run("perturb", "answers.csv", "--mechanism", "randomized-response", "--epsilon", 2, *lists, "--out", "sent")
    words = ("share", "sent/reports.csv", "--page", "shares.html", "--title", "Exams", "--json")
    first = json.loads(run(*words).stdout)
    again = json.loads(run(*words).stdout)
    texts = Path("shares.html").read_text("utf-8")

    assert (first["files"], again["replaced"]) == (["shares.html"], ["shares.html"])
    assert "epsilon 2 per answer, participation protected" in texts
    assert "no answer, of those asked" in texts


def test_a_title_needs_a_page(run: Run, survey: None) -> None:
    """A title without a page is refused."""
    assert "--title requires --page" in run("share", "answers.csv", "--title", "Exams", code=2).stderr
