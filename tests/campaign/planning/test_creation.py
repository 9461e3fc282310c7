"""Creation of campaign folders: all files or none, closed to others, nothing replaced."""

import json
import re
import stat
from datetime import UTC, datetime, timedelta
from pathlib import Path

import pytest

from crowdveil.campaign.files.folder import CampaignFolder
from crowdveil.campaign.planning.alternatives import nearest_alternatives
from crowdveil.campaign.planning.creation import create_campaign, write_new_campaign_folder
from crowdveil.campaign.planning.expected_error import planned_campaign
from crowdveil.campaign.settings.settings_file import read_settings
from crowdveil.campaign.statement.collection import statement_of_source
from crowdveil.campaign.statement.source import read_stated_source
from crowdveil.errors import SettingsError
from tests.campaign.builders import build_campaign

pytestmark = pytest.mark.slow

SETTINGS = Path(__file__).parents[3] / "docs" / "samples" / "campaign.toml"


def test_a_campaign_is_written_and_read_back(tmp_path):
    """The folder holds campaign, parts and names; only its owner may enter, and only the owner reads the names."""
    created = create_campaign(SETTINGS, tmp_path / "essays")
    folder = CampaignFolder(tmp_path / "essays")

    assert created.campaign.name == folder.campaign.name
    assert (2, 2) == created.loads
    assert all(slot not in folder.tasks(slot) for slot in range(12))
    assert "slot,name\n0,Ada\n" == (folder.path / "workers.csv").read_text("utf-8")[:16]
    assert 0o700 == stat.S_IMODE(folder.path.stat().st_mode)
    assert 0o600 == stat.S_IMODE((folder.path / "workers.csv").stat().st_mode)
    assert ["essays"] == [path.name for path in tmp_path.iterdir()]


def test_pictures_are_named_by_their_hash(tmp_path):
    """A picture lies under its SHA-256."""
    built = build_campaign()

    write_new_campaign_folder(tmp_path / "new", built.campaign, built.parts, pictures={"ab" * 32: b"x"})

    assert b"x" == (tmp_path / "new" / "pictures" / ("ab" * 32)).read_bytes()


def test_an_empty_folder_is_filled(tmp_path):
    """An empty folder counts as new."""
    created = create_campaign(SETTINGS, tmp_path)

    assert (tmp_path / "campaign.json").read_bytes() == created.campaign.to_bytes()


def test_nothing_is_replaced(tmp_path):
    """A folder with a file, a file and a link are refused and stay as they are."""
    (tmp_path / "full").mkdir()
    (tmp_path / "full" / "notes.txt").write_text("mine")
    (tmp_path / "link").symlink_to(tmp_path / "nowhere")
    for name in ("full", "full/notes.txt", "link"):
        with pytest.raises(SettingsError, match="new folder"):
            create_campaign(SETTINGS, tmp_path / name)

    assert ["notes.txt"] == [path.name for path in (tmp_path / "full").iterdir()]
    assert {"full", "link"} == {path.name for path in tmp_path.iterdir()}


def test_what_a_person_may_have_overlooked_is_said(tmp_path):
    """No promise for a whole person, results of single workers, public participation: warnings."""
    text = elsewhere(min_reports="1", participation='"public"', language='"fr"')
    path = tmp_path / "campaign.toml"
    path.write_text(text.replace("budget_per_worker = 5.0", "budget_per_worker = 90.0"), "utf-8")

    created = create_campaign(path, tmp_path / "essays")

    assert created.warnings[0].startswith("Someone who thought two sets of all answers of a worker equally likely")
    assert [
        "The page has no messages in 'fr': they are shown in English.",
        "With min_reports = 1 results of a single worker are released.",
        "Participation is public: who skips which task is visible to the curator.",
    ] == list(created.warnings[1:])


@pytest.mark.parametrize(("days", "made"), [(-1, False), (0, True)])
def test_a_campaign_has_a_day_left(tmp_path, days, made):
    """A campaign whose last day is past in UTC is refused, with both days, and nothing is written; today is a day."""
    last = datetime.now(UTC).date() + timedelta(days=days)
    path = tmp_path / "campaign.toml"
    path.write_text(elsewhere(open=f"{{ from = 2026-01-10, until = {last} }}"), "utf-8")
    if made:
        assert last == create_campaign(path, tmp_path / "essays").campaign.closes
        return

    with pytest.raises(SettingsError, match=rf"before today, .* in UTC, got '{last}'"):
        create_campaign(path, tmp_path / "essays")
    assert not (tmp_path / "essays").exists()


def test_a_refused_expectation_leaves_no_folder(tmp_path):
    """The error is predicted before anything is written."""
    path = tmp_path / "campaign.toml"
    path.write_text(elsewhere() + "expected = { ability = 0.8 }\n", "utf-8")

    with pytest.raises(SettingsError, match="ability"):
        create_campaign(path, tmp_path / "essays")

    assert not (tmp_path / "essays").exists()


def elsewhere(**changes):
    """Return the sample's text with the paths of its tables, and with other values."""
    text = re.sub(r'"(essays|students)\.csv"', rf'"{SETTINGS.parent}/\1.csv"', SETTINGS.read_text("utf-8"))
    for key, value in changes.items():
        text = re.sub(rf"^{key} = .*$", f"{key} = {value}", text, flags=re.MULTILINE)
    return text


@pytest.mark.parametrize(("budget", "warned"), [("0.01", True), ("2.0", True), ("90.0", False)])
def test_a_budget_that_tells_nothing_is_warned_of(tmp_path, budget, warned):
    """A warning is given if the expected error is hardly below that of the best constant, or above in real crowds."""
    settings = tmp_path / "campaign.toml"
    settings.write_text(elsewhere(**former(f"budget_per_worker = {budget}")), "utf-8")

    created = create_campaign(settings, tmp_path / "new", anyway=True)

    assert warned == any("the same answer for every task has an error" in text for text in created.warnings)


@pytest.mark.parametrize("epsilon", ["budget_per_worker = 2.0", "epsilon_per_answer = 0.3"])
def test_a_campaign_that_is_not_worth_asking_is_refused(tmp_path, epsilon):
    """Above nine tenths of the constant's error nothing is written; the hint names campaigns that are accepted."""
    settings = tmp_path / "campaign.toml"
    settings.write_text(elsewhere(**former(epsilon)), "utf-8")

    with pytest.raises(
        SettingsError, match=r"at most 0\.9 times that of the same answer for every task, 2\.74"
    ) as refused:
        create_campaign(settings, tmp_path / "new")

    assert not (tmp_path / "new").exists()
    assert re.search(r"privacy\.\w+ = [\d.]+ \(expected [\d.]+\)", refused.value.hint)
    assert ("tasks.per_worker" in refused.value.hint) == epsilon.startswith("budget")
    assert "anyway=True" in refused.value.hint


def former(epsilon):
    """Return settings of five essays each with laplace noise, as keywords of `elsewhere`."""
    tasks = f'{{ file = "{SETTINGS.parent}/essays.csv", per_worker = 5 }}'
    return {"tasks": tasks, "privacy": f'{{ mechanism = "laplace", {epsilon} }}'}


def test_a_named_alternative_is_worth_asking(tmp_path):
    """The settings of every alternative become a campaign that is not refused."""
    settings = tmp_path / "campaign.toml"
    settings.write_text(elsewhere(**former("budget_per_worker = 2.0")), "utf-8")

    found = nearest_alternatives(read_settings(settings))

    assert {"privacy.mechanism", "tasks.per_worker", "36 workers", "privacy.budget_per_worker"} == {
        one.change.partition(" =")[0] for one in found
    }
    assert all(one.prediction.error <= 0.9 * planned_campaign(one.source).crowd.constant_error for one in found)


def test_an_impossible_crowd_has_no_alternative(tmp_path):
    """Where the answers themselves tell nothing, the hint says so and names no number."""
    settings = tmp_path / "campaign.toml"
    text = elsewhere(**former("budget_per_worker = 2.0")) + "expected = { sigmas = [10_000.0] }\n"
    settings.write_text(text, "utf-8")

    with pytest.raises(SettingsError, match="Even 10 times as many workers"):
        create_campaign(settings, tmp_path / "new")


def test_several_questions_have_an_error_each_and_one_promise(tmp_path):
    """Each question is planned by itself with its part of the budget, which the promise over all of them keeps."""
    created = create_campaign(SETTINGS.parent / "questions.toml", tmp_path / "both")
    plan = json.loads((tmp_path / "both" / "plan.json").read_text("utf-8"))

    assert ["mean absolute error", "share of wrong labels"] == [one.expected.error_name for one in created.questions]
    assert created.campaign.worker_epsilon == plan["epsilon_per_worker"]
    assert 7.99 < created.campaign.worker_epsilon <= 8
    assert ["ogpm", "randomized-response"] == [one["mechanism"] for one in plan["questions"]]
    assert (4, 4) == created.loads
    facts = dict(statement_of_source(read_stated_source(tmp_path / "both" / "campaign.json"))[1])
    assert "'How good is this essay?'; 'Does it name its sources?'" == facts["Question"]
    for number, one in enumerate(created.questions, start=1):
        text = f"{one.expected.error_name} {one.expected.protected.error:.2g}"
        assert facts[f"Expected usefulness of question {number}"].startswith(text)


def test_a_question_that_is_not_worth_asking_is_named(tmp_path):
    """The refusal names the question whose error is hardly below the constant's, and nothing is written."""
    text = (SETTINGS.parent / "questions.toml").read_text("utf-8")
    text = re.sub(r'"(essays|students)\.csv"', rf'"{SETTINGS.parent}/\1.csv"', text).replace("8.0", "1.0")
    settings = tmp_path / "campaign.toml"
    settings.write_text(text, "utf-8")

    with pytest.raises(SettingsError, match="question 'How good is this essay"):
        create_campaign(settings, tmp_path / "new")

    assert not (tmp_path / "new").exists()
