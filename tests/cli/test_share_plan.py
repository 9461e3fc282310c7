"""Tests of `crowdveil plan --share`."""

import json
from pathlib import Path

import pytest

from tests.campaign.planning.test_expected_share import survey_file
from tests.cli.conftest import Run
from tests.cli.test_json_output import check

ASKED = ("plan", "--share", 0.1, "--response", 0.8, "--epsilon", "1,2")


def test_plan_of_a_share_is_one_document(run: Run) -> None:
    """--json prints the document of the schema, which plan.json repeats; the picture is beside it."""
    words = (*ASKED, "--workers", 400, "--half-width", 0.05, "--out", "planned", "--json")
    printed = run(*words).stdout
    document = json.loads(printed)

    check(document, "plan-share")
    assert printed == Path("planned", "plan.json").read_text("utf-8")
    assert Path("planned", "plan.svg").read_text("utf-8").startswith("<svg")
    assert [one["people"] for one in document["needed"]] == [3101, 670, 173]


def test_plan_of_a_share_as_text(run: Run) -> None:
    """The table has a row for each number of people, and a column for each epsilon and for none."""
    printed = run(*ASKED).stdout

    assert "share 10 % of the answers, 80 % of those asked answer" in printed
    assert printed.split("\n\n")[1].splitlines()[0].split() == ["people", "1", "2", "none"]
    assert len(printed.split("\n\n")[1].splitlines()) == 7


@pytest.mark.parametrize(
    ("words", "message"),
    [
        (("--share", 0.1, "--tasks", 3), "leave out --tasks"),
        (("--share", 0.1, "--target-error", 0.1), "leave out --target-error"),
        (("--half-width", 0.1), "--half-width requires --share"),
    ],
)
def test_options_that_do_not_go_with_a_share(run: Run, words: tuple[object, ...], message: str) -> None:
    """Options of truths are refused with --share, and those of a share without it."""
    assert message in run("plan", *words, code=2).stderr


def test_surveys_are_planned_by_their_settings(run: Run) -> None:
    """`plan --campaign` and `campaign new` of a survey say the half-width of a share, and no error of truths."""
    path = survey_file(Path())
    planned = json.loads(run("plan", "--campaign", path, "--json").stdout)
    made = run("campaign", "new", path, "--out", "made").stdout

    check(planned, "plan-share")
    assert [one["people"] for one in planned["expected"]] == [400, 400]
    assert "points for a share of 50 %; without protection ± " in " ".join(made.split())
    assert "crowdveil share estimates what share gave each answer" in " ".join(made.split())
    assert "crowdveil infer" not in made
    assert "wrong labels" not in made


def test_json_of_a_new_survey(run: Run) -> None:
    """The JSON document of a new survey has the expected intervals."""
    document = json.loads(run("campaign", "new", survey_file(Path()), "--out", "made", "--json").stdout)

    check(document, "campaign-new")
    assert [one["share"] for one in document["survey"]["shares"]] == [0.1, 0.5]


def test_a_long_questionnaire_is_planned_by_its_guessed_share(run: Run) -> None:
    """`plan --campaign` and `campaign new` of nine questions plan the guessed share; without it they name the setting.

    The plan says that the epsilons of a person add up.
    """
    path = survey_file(Path(), tasks=9, share=0.2)
    planned = " ".join(run("plan", "--campaign", path).stdout.split())
    made = " ".join(run("campaign", "new", path, "--out", "made").stdout.split())
    other = run("campaign", "new", survey_file(Path(), tasks=9), "--out", "other", "--anyway").stdout

    assert "share 20 % of the answers, 85 % of those asked answer" in planned
    assert "9 answers per person, whose epsilons add up" in planned
    assert "points for a share of 20 %; without protection ± " in made
    assert "wrong labels" not in made
    assert "add expected = { share = 0.5 } to the settings" in " ".join(other.split())


def test_options_replace_settings_of_a_survey(run: Run) -> None:
    """People and epsilons on the command line replace those of the settings; a target error asks for truths."""
    words = ("plan", "--campaign", survey_file(Path()))
    planned = json.loads(run(*words, "--workers", 100, "--epsilon", "1,3", "--json").stdout)

    assert [(one["people"], one["epsilon"]) for one in planned["expected"]] == [(100, 1.0), (100, 3.0), (100, None)]
    assert "share of wrong labels" in run(*words, "--target-error", 0.2).stdout


EIGHT = '{ labels = ["a", "b", "c", "d", "e", "f", "g", "h"] }'


@pytest.mark.parametrize("share", [None, 0.2])
@pytest.mark.parametrize(
    ("mechanism", "planned"),
    [
        ("randomized-response", "randomized-response"),
        ("subset-selection", "subset-selection"),
        ("plan", "subset-selection"),
    ],
)
def test_a_campaign_is_planned_with_its_own_mechanism(
    run: Run, mechanism: str, planned: str, share: float | None
) -> None:
    """`plan --campaign` has the half-width that `campaign new` expects, by the mechanism of the settings."""
    path = survey_file(Path(), answers=EIGHT, epsilon=0.5, mechanism=mechanism, share=share)
    found = json.loads(run("plan", "--campaign", path, "--json").stdout)
    made = json.loads(run("campaign", "new", path, "--out", "made", "--anyway", "--json").stdout)
    (expected,) = [one for one in made["survey"]["shares"] if one["share"] == found["share"]]

    assert planned == found["needed"][0]["mechanism"]
    assert found["expected"][0]["half_width"] == pytest.approx(expected["half_width"], abs=1e-9)
