"""What a respondent of a survey is promised and can check: the worst case first, and no word of truths or errors."""

from pathlib import Path

import pytest

from tests.cli.conftest import Run, write

SETTINGS = """
title = "Exams"
question = "Please answer for yourself."
consent = "Your answers are randomized on this device."
open = {{ from = 2026-11-01, until = 2099-12-31 }}
min_reports = 10
participation = "{participation}"
answers = {{ labels = ["no", "yes"] }}
tasks = {{ file = "ask.csv" }}
workers = {{ count = 60 }}
privacy = {{ mechanism = "randomized-response", epsilon_per_answer = 1.0 }}
"""
SURE = {1: "73.2 %", 3: "95.3 %"}
"""How sure anyone can become of all answers to one and to three questions at epsilon 1."""


def survey(run: Run, questions: int, participation: str) -> str:
    """Make the campaign and return what is printed, in one line."""
    write("ask.csv", "id,text", *(f"q{number},Have you ever done {number}?" for number in range(questions)))
    Path("survey.toml").write_text(SETTINGS.format(participation=participation), "utf-8")
    return " ".join(run("campaign", "new", "survey.toml", "--out", "survey").stdout.split())


@pytest.mark.parametrize("participation", ["protected", "public"])
@pytest.mark.parametrize("questions", [1, 3])
def test_the_worst_case_comes_first(run: Run, questions: int, participation: str) -> None:
    """The statement begins with how sure anyone can be of all answers, as devices and `campaign new` say it."""
    made = survey(run, questions, participation)
    statement = " ".join(run("statement", "survey").stdout.split())
    checked = run("verify", "survey/campaign.json").stdout
    first = statement.partition("(--responsible NAME) ")[2]

    assert first.startswith("Someone who thought two sets of all answers of a worker equally likely (50 %)")
    assert SURE[questions] in first[:200]
    assert f"so up to {SURE[questions]} sure between two sets of answers" in made
    assert SURE[questions] in " ".join(checked.split())
    for text in (first, made.partition("odds ")[2].partition("mechanism ")[0], checked):
        assert "truth" not in text
        assert "expected error" not in text
    assert ("Whether a worker answered an asked task is protected too" in first) == (participation == "protected")


def test_the_page_of_a_respondent_holds_the_campaign(run: Run) -> None:
    """The page that needs no service has the sentence on certainty, and nothing on truths in what it shows."""
    survey(run, 1, "protected")
    run("campaign", "page", "survey", "--out", "device.html")
    page = Path("device.html").read_text("utf-8")

    assert "is how sure anyone can be, at most, which of two sets of answers is yours, starting from 50 %." in page
    assert "truth" not in page.lower().partition("<script")[0]
