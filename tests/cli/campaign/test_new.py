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
