"""`crowdveil campaign new`: the promise per answer and in all, and the expected error."""

import re
import shutil
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from tests.cli.conftest import Run

SAMPLES = Path(__file__).parents[3] / "docs" / "samples"


@pytest.fixture(autouse=True)
def settings(folder: Path) -> None:
    """Put the sample campaign into the folder."""
    for name in ("campaign.toml", "essays.csv", "students.csv"):
        shutil.copy(SAMPLES / name, name)


def test_the_promise_is_printed(run: Run) -> None:
    """Epsilon is printed per answer and in all, rounded up, with participation; the error beside the constant."""
    text = run("campaign", "new", "campaign.toml", "--out", "essays").stdout

    assert "epsilon 1.000 for a single answer (participation protected)" in text
    assert "epsilon 5.000 for all 5 answers of one worker (participation protected)" in text
    assert "12 workers, 12 tasks, 5 tasks to a worker" in text
    assert re.search(r"^expected +mean absolute error \d", text, re.MULTILINE)
    assert re.search(r"^constant +\d", text, re.MULTILINE)
    assert "100% of the assigned tasks are answered" in text


def test_the_promise_in_json_is_the_certified_one(run_json: Callable[..., dict[str, Any]]) -> None:
    """The epsilons are those of the document; the files are those of the folder."""
    from crowdveil.campaign.folder import CampaignFolder

    found = run_json("campaign", "new", "campaign.toml", "--out", "essays")
    campaign = CampaignFolder("essays").campaign

    assert (campaign.name, campaign.epsilon) == (found["campaign"], found["epsilon_per_answer"])
    assert campaign.worker_epsilon == found["epsilon_per_worker"] <= 5.0
    assert ["essays/campaign.json", "essays/parts/0000.json", "essays/workers.csv"] == found["files"]


def test_a_second_campaign_needs_a_second_folder(run: Run, refusal: Callable[..., str]) -> None:
    """A campaign is never written over another one."""
    run("campaign", "new", "campaign.toml", "--out", "essays")
    before = Path("essays/campaign.json").read_bytes()

    assert "Choose another name with --out" in refusal("campaign", "new", "campaign.toml", "--out", "essays")
    assert before == Path("essays/campaign.json").read_bytes()


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
    from crowdveil.campaign.folder import CampaignFolder
    from crowdveil.sealing import public_text, read_key

    relay_settings()
    found = run_json("campaign", "new", "campaign.toml", "--out", "essays")
    key = Path(found["curator_key"])
    relay = CampaignFolder("essays").campaign.relay

    assert relay is not None
    assert ("The library", 5, "report") == (relay.operator, relay.least_batch, relay.unit)
    assert public_text(read_key(key.read_bytes())) == relay.public_key
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
