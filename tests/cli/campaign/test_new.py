"""`crowdveil campaign new`: the promise per answer and in all, and the expected error."""

import re
import shutil
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from crowdveil.campaign.files.folder import CampaignFolder
from crowdveil.campaign.rules.document import spaced_name_to_compare
from tests.cli.conftest import Run

pytestmark = pytest.mark.slow

SAMPLES = Path(__file__).parents[3] / "docs" / "samples"


@pytest.fixture(autouse=True)
def settings(folder: Path) -> None:
    """Put the sample campaign into the folder, with a mechanism that needs no plan."""
    for name in ("essays.csv", "students.csv"):
        shutil.copy(SAMPLES / name, name)
    text = (SAMPLES / "campaign.toml").read_text("utf-8")
    stated = 'mechanism = "quantized-response", cuts = [3, 6, 8]'
    Path("campaign.toml").write_text(text.replace('mechanism = "plan"', stated), "utf-8")


def test_the_promise_is_printed(run: Run) -> None:
    """Epsilon is printed per answer and in all, rounded up, with participation; the error beside the constant."""
    text = run("campaign", "new", "campaign.toml", "--out", "essays").stdout

    assert f"to compare   {spaced_name_to_compare(CampaignFolder(Path('essays')).campaign.name)}\n" in text
    assert "epsilon 2.500 for a single answer (participation protected)" in text
    assert "epsilon 5.000 for all 2 answers of one worker (participation protected)" in text
    assert "24 workers, 12 tasks, 2 tasks to a worker" in text
    assert re.search(r"^service +https://grades\.example\.org$", text, re.MULTILINE)
    assert re.search(r"^expected +mean absolute error \d", text, re.MULTILINE)
    assert re.search(r"^constant +\d", text, re.MULTILINE)
    assert "100% of the assigned tasks are answered" in text


def test_the_odds_are_said_as_devices_say_them(run: Run, run_json: Callable[..., dict[str, Any]]) -> None:
    """The sentences are those of the page, rounded up, in the language of the campaign; share is named, too."""
    text = " ".join(run("campaign", "new", "campaign.toml", "--out", "essays").stdout.split())
    odds = run_json("campaign", "new", "campaign.toml", "--out", "again")["odds"]

    assert "at most 12.2 times as likely with one answer to a task as with another (epsilon 2.500" in odds["en"]
    assert "All your answers together (2): at most 148.5 times (epsilon 5.000), so up to 99.4 % sure" in odds["en"]
    assert "höchstens 12,2-mal so wahrscheinlich" in odds["de"]
    assert ["de", "en"] == sorted(odds)
    assert [True, False] == [odds[language] in text for language in ("en", "de")]
    assert "crowdveil share estimates their shares" in text


def test_a_budget_that_promises_nothing_is_warned_of(run_json: Callable[..., dict[str, Any]]) -> None:
    """A budget of 20 is warned of, in the words of the statement; its odds have no decimals and are never certain."""
    Path("tasks.csv").write_text("id,text\n" + "".join(f"{k},Task\n" for k in range(60)))
    run_json("campaign", "init", "--out", "mine.toml")
    settings = Path("mine.toml").read_text("utf-8").replace("budget_per_worker = 5.0", "budget_per_worker = 20.0")
    Path("mine.toml").write_text(settings, "utf-8")

    made = run_json("campaign", "new", "mine.toml", "--out", "made")

    assert "this promises nothing for the whole person" in made["warnings"][0]
    assert "at most 485,165,196 times (epsilon 20.000), so up to more than 99.9 % sure" in made["odds"]["en"]
    assert "höchstens 485.165.196-mal (Epsilon 20,000)" in made["odds"]["de"]
    assert "bis zu mehr als 99,9 % sicher" in made["odds"]["de"]


def test_a_template_is_a_valid_campaign_and_stays(run: Run, refusal: Callable[..., str]) -> None:
    """A campaign is made from the template of init and a table of tasks; a second init changes nothing."""
    Path("tasks.csv").write_text("id,text\na,First\nb,Second\n")
    run("campaign", "init", "--out", "mine.toml")
    before = Path("mine.toml").read_bytes()

    assert "Choose another name" in refusal("campaign", "init", "--out", "mine.toml")
    assert before == Path("mine.toml").read_bytes()
    assert "30 workers, 2 tasks" in run("campaign", "new", "mine.toml", "--out", "made").stdout


def test_a_campaign_that_tells_nothing_is_asked_anyway_only(
    run_json: Callable[..., dict[str, Any]], refusal: Callable[..., str]
) -> None:
    """At a budget of 0.2 the error is that of the constant: --anyway makes the campaign, with a warning."""
    text = Path("campaign.toml").read_text("utf-8").replace("budget_per_worker = 5.0", "budget_per_worker = 0.2")
    Path("campaign.toml").write_text(text, "utf-8")
    words = ("campaign", "new", "campaign.toml", "--out", "essays")

    assert "must be at most 0.9 times that of the same answer for every task" in refusal(*words)
    assert not Path("essays").exists()
    assert "the same answer for every task has an error of" in run_json(*words, "--anyway")["warnings"][0]


RELAY = 'relay = { operator = "The library", least_batch = 5, unit = "report" }\n'


def relay_settings(**changed: str) -> None:
    """Turn the sample campaign into one with a relay."""
    text = Path("campaign.toml").read_text("utf-8")
    text = re.sub(r", per_worker = \d+", "", text)
    Path("essays.csv").write_text("id,text\ne1,First\ne2,Second\n", "utf-8")
    service = 'service = { url = "https://relay.example.org", purge_after_days = 30 }\n'
    lines = [line for line in text.splitlines(keepends=True) if not line.startswith("service")]
    lines.insert(0, RELAY + service)
    text = "".join(lines)
    for old, new in changed.items():
        text = text.replace(old, new)
    Path("campaign.toml").write_text(text, "utf-8")


def test_a_relay_has_the_curators_key_apart_from_the_folder(run_json: Callable[..., dict[str, Any]]) -> None:
    """The private key lies beside the folder, readable by its owner alone; the folder holds the public one only."""
    from crowdveil.campaign.files.folder import CampaignFolder
    from crowdveil.campaign.relay.sealing import read_key, uncompressed_public_key_hex

    relay_settings()
    found = run_json("campaign", "new", "campaign.toml", "--out", "essays")
    key = Path(found["curator_key"])
    relay = CampaignFolder("essays").campaign.relay

    assert relay is not None
    assert ("The library", 5, "report") == (relay.operator, relay.least_batch, relay.unit)
    assert uncompressed_public_key_hex(read_key(key.read_bytes())) == relay.public_key
    assert 0o600 == key.stat().st_mode & 0o777
    assert Path("essays.key.pem") == key
    assert not [path for path in Path("essays").rglob("*") if path.is_file() and b"PRIVATE" in path.read_bytes()]


@pytest.mark.parametrize(
    ("changed", "rule"),
    [
        ({"least_batch = 5": "least_batch = 1"}, "relay.least_batch must be a whole number from 2"),
        ({", purge_after_days = 30": ""}, "service.purge_after_days"),
        ({'participation = "protected"': 'participation = "public"'}, "participation must be"),
        ({'"essays.csv"': '"essays.csv", per_worker = 1'}, "asked every task"),
    ],
)
def test_settings_that_name_the_worker_of_a_report_are_refused(
    changed: dict[str, str], rule: str, refusal: Callable[..., str]
) -> None:
    """A batch of one, gaps, an assignment, or a relay that never deletes are refused, and no key is left behind."""
    relay_settings(**changed)

    assert rule in refusal("campaign", "new", "campaign.toml", "--out", "essays")
    assert not Path("essays.key.pem").exists()
