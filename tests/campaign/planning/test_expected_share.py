"""Tests of the expected interval of a share, for campaigns that are surveys."""

from pathlib import Path

import pytest

from crowdveil.campaign.planning.chosen_mechanism import mechanism_of_campaign_settings
from crowdveil.campaign.planning.creation import create_campaign
from crowdveil.campaign.planning.expected_share import ExpectedSurvey, expected_survey, people_of_survey
from crowdveil.campaign.settings.settings_file import read_settings

SETTINGS = """title = "Exams"
question = "Have you ever cheated in an exam?"
language = "en"
consent = "Your answer is randomized on this device before it is sent."
open = {{ from = 2026-01-10, until = 2099-12-31 }}
min_reports = 8
participation = "protected"
answers = {answers}
tasks = {{ file = "tasks.csv" }}
workers = {{ count = {workers} }}
privacy = {{ mechanism = "randomized-response", epsilon_per_answer = {epsilon} }}
expected = {{ answered = 0.85 }}
"""
YES_NO, GRADES = '{ labels = ["no", "yes"] }', "{ scale = { low = 0, high = 4, step = 1 } }"


def survey_file(
    folder: Path, *, answers: str = YES_NO, workers: int = 400, epsilon: float = 2.0, tasks: int = 1
) -> Path:
    """Write the settings of a campaign, and its tasks."""
    rows = [f"q{number},Question {number}" for number in range(tasks)]
    (folder / "tasks.csv").write_text("\n".join(["id,text", *rows, ""]), "utf-8")
    path = folder / "survey.toml"
    path.write_text(SETTINGS.format(answers=answers, workers=workers, epsilon=epsilon), "utf-8")
    return path


def survey_of(path: Path) -> ExpectedSurvey | None:
    """Return the expected intervals of a settings file."""
    source = read_settings(path)
    return expected_survey(source, mechanism_of_campaign_settings(source).device_mechanism)


def test_half_widths_depend_on_epsilon_and_people(tmp_path: Path) -> None:
    """The interval of a share is narrower with more epsilon and more people, and narrowest without protection."""
    weak, strong = survey_of(survey_file(tmp_path, epsilon=3.0)), survey_of(survey_file(tmp_path, epsilon=1.0))
    many = survey_of(survey_file(tmp_path, epsilon=1.0, workers=1_600))
    assert weak is not None
    assert strong is not None
    assert many is not None
    widths = [one.protected[1].half_width for one in (strong, many, weak)]

    assert widths == sorted(widths, reverse=True)
    assert many.protected[1].half_width == pytest.approx(strong.protected[1].half_width / 2, rel=0.05)
    assert weak.unprotected[1].half_width < weak.protected[1].half_width


@pytest.mark.parametrize(
    "other", [{"answers": GRADES}, {"workers": 20}, {"tasks": 9}], ids=["grades", "few people", "many tasks"]
)
def test_other_campaigns_are_no_surveys(tmp_path: Path, other: dict[str, object]) -> None:
    """Grades, few people for a task, and many tasks have an error of truths."""
    assert people_of_survey(read_settings(survey_file(tmp_path, **other))) is None  # type: ignore[arg-type]


def test_a_survey_with_wide_intervals_is_made_with_a_warning(tmp_path: Path) -> None:
    """A survey is never refused for its error of truths; where its intervals are wide, a warning says so."""
    made = create_campaign(survey_file(tmp_path, workers=60, epsilon=0.5), tmp_path / "made")
    (warning,) = [text for text in made.warnings if "interval" in text]

    assert "Raise epsilon, or ask more people." in warning
    assert not any("fewer tasks" in text for text in made.warnings)
