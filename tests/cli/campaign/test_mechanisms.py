"""Campaigns of blocks from their settings to the truths without a server: both Python devices, collect, infer."""

import csv
import json
import subprocess
import sys
from collections.abc import Callable
from hashlib import sha256
from pathlib import Path
from typing import Any

import pytest
from click.testing import CliRunner

from crowdveil.campaign.files.folder import CampaignFolder
from crowdveil.campaign.planning import creation
from crowdveil.campaign.settings.settings_file import CampaignSettings
from crowdveil.cli import main
from crowdveil.cli.privacy.verify import NO_PRIOR
from crowdveil.errors import SettingsError
from tests.cli.conftest import Refusal, Run, RunJson

pytestmark = pytest.mark.slow

SETTINGS = """
title = "Rooms"
question = "How warm is the room?"
consent = "Randomized on this device."
open = {{ from = 2026-01-10, until = 2099-12-31 }}
min_reports = 3
participation = "protected"
answers = {{ scale = {{ low = 0, high = 5, step = 1 }} }}
tasks = {{ file = "rooms.csv" }}
workers = {{ count = 8 }}
privacy = {{ {privacy} }}
expected = {{ answered = 0.9, sigmas = [0.5] }}
"""
ANSWERS = {"cold": "0", "warm": "4"}
PRIOR = "label,probability\n0,0.4\n1,0.05\n2,0.05\n3,0.05\n4,0.4\n5,0.05\n"
BUDGET = "budget_per_worker = 16.0"


@pytest.fixture
def settings(folder: Path) -> Callable[[str], Path]:
    """Write the settings of a campaign with this privacy, its tasks, its prior and the answers of a worker."""

    def write(privacy: str) -> Path:
        Path("rooms.csv").write_text("id,text\ncold,The cellar\nwarm,The kitchen\n")
        Path("rooms-prior.csv").write_text(PRIOR)
        Path("mine.csv").write_text("task,label\n" + "".join(f"{task},{label}\n" for task, label in ANSWERS.items()))
        Path("rooms.toml").write_text(SETTINGS.format(privacy=privacy))
        return Path("rooms.toml")

    return write


def answer_all(run: Run, levels: int = 0) -> None:
    """Answer for every worker: the first with the one-file device, the others with the library's, levels in turn."""
    run("campaign", "invite", "rooms")
    run("campaign", "page", "--python", "device.py")
    with Path("rooms/links.csv").open() as stream:
        links = [row["link"] for row in csv.DictReader(stream)]
    words = ["--answers", "mine.csv", "--files", "rooms", "--out", "received"]
    Path("received").mkdir()
    subprocess.run([sys.executable, "device.py", links[0], *words, "--home", "home-0"], check=True, capture_output=True)
    for slot, link in enumerate(links[1:], start=1):
        chosen = ["--level", slot % levels + 1] if levels else []
        run("campaign", "answer", link, *words, *chosen, "--home", f"home-{slot}")


def ask_and_infer(run: Run, run_json: RunJson, path: Path, levels: int = 0) -> tuple[dict[str, Any], dict[str, float]]:
    """Run a campaign from its settings to its truths; return what `campaign new` said, and the truths."""
    made = run_json("campaign", "new", path, "--out", "rooms")
    answer_all(run, levels)
    run("campaign", "close", "rooms/campaign.json", "--reports", "received")
    run("campaign", "collect", "received", "--campaign", "rooms/campaign.json", "--out", "collected")
    found = run_json("infer", "collected/reports.csv", "--out", "found")
    assert (8, True) == (found["workers"], found["channel_used"])
    with Path("found/truths.csv").open() as stream:
        return made, {row["task"]: float(row["truth"]) for row in csv.DictReader(stream)}


@pytest.mark.parametrize(
    ("privacy", "mechanism"),
    [
        (f'mechanism = "quantized-response", {BUDGET}, cuts = [1, 3]', "quantized-response"),
        (f'mechanism = "quantized-response", {BUDGET}, prior = "rooms-prior.csv"', "quantized-response"),
        (f'mechanism = "designed", {BUDGET}, prior = "rooms-prior.csv"', "designed"),
        (f'mechanism = "quantized-response", {BUDGET}, cuts = [[1, 3], [2, 4]]', "quantized-response"),
        (f'mechanism = "two-layer", {BUDGET}', "one-layer"),
        *((f'mechanism = "{name}", {BUDGET}', name) for name in ("piecewise", "ogpm", "square-wave", "staircase")),
        (f'mechanism = "subset-selection", {BUDGET}, prior = "rooms-prior.csv"', "subset-selection"),
        (f'mechanism = "optimized-unary-encoding", {BUDGET}', "optimized-unary-encoding"),
    ],
)
def test_a_campaign_is_asked_collected_and_inferred(
    settings: Callable[[str], Path], run: Run, run_json: RunJson, privacy: str, mechanism: str
) -> None:
    """Both devices accept the campaign, and truths are found through its channel.

    At epsilon 8 a cell differs with probability below 0.002; that three of eight do, which alone could move a number to
    the other side, has probability 1e-6 for both tasks together.
    """
    made, truth = ask_and_infer(run, run_json, settings(privacy))

    prior = Path("rooms/prior.csv")
    assert prior.is_file() == ("prior" in privacy)
    assert "prior" not in privacy or CampaignFolder("rooms").campaign.prior == sha256(prior.read_bytes()).hexdigest()
    assert mechanism == made["mechanism"] == CampaignFolder("rooms").campaign.channels[0].mechanism
    assert made["expected"]["protected"]["error"] < made["expected"]["constant_error"]
    assert made["epsilon_per_worker"] <= 16.0
    assert truth["cold"] < 1.5 < 3 < truth["warm"]


def test_workers_choose_their_level(settings: Callable[[str], Path], run: Run, run_json: RunJson) -> None:
    """Levels are asked, read through the table of each worker, and counted on the page where each has enough workers.

    Eight workers choose in turn, four each.
    """
    made, truth = ask_and_infer(run, run_json, settings('mechanism = "plan", levels = [8, 16]'), levels=2)
    run("report", "found", "--reports", "collected/reports.csv", "--campaign", "rooms/campaign.json")
    page = Path("found/report.html").read_text("utf-8")
    table = json.loads(Path("collected/certificate.json").read_text("utf-8"))

    assert [8.0, 16.0] == pytest.approx(made["epsilon_per_level"], rel=1e-9)
    assert made["epsilon_per_worker"] == made["epsilon_per_level"][-1]
    assert {f"w{slot:04}": slot % 2 for slot in range(8)} == table["workers"]
    assert "Chosen: 4 level 1, 4 level 2." in page
    assert truth["cold"] < 2 < 3 < truth["warm"]


def test_a_changed_prior_is_found(settings: Callable[[str], Path], run: Run, run_json: RunJson) -> None:
    """`verify` compares the file of the prior beside a campaign with the SHA-256 in it."""
    run_json(
        "campaign", "new", settings(f'mechanism = "designed", {BUDGET}, prior = "rooms-prior.csv"'), "--out", "rooms"
    )
    before = run("verify", "rooms/campaign.json")
    Path("rooms/campaign.json").rename("rooms/other.json")
    Path("rooms/prior.csv").write_text(PRIOR.replace("0.05", "0.06"))
    after = CliRunner().invoke(main, ["verify", "rooms/other.json"])
    Path("rooms/prior.csv").unlink()
    without = run_json("verify", "rooms/other.json")

    assert "The file of the public prior is the one that the campaign names." in " ".join(before.stdout.split())
    assert 1 == after.exit_code
    assert NO_PRIOR in without["not_checked"]


def test_a_prior_that_changes_while_the_campaign_is_made_is_refused(
    settings: Callable[[str], Path], monkeypatch: pytest.MonkeyPatch
) -> None:
    """The chances, the SHA-256 and the copy are of the same bytes; nothing is written otherwise."""
    file = settings(f'mechanism = "designed", {BUDGET}, prior = "rooms-prior.csv"')
    choose = creation.mechanism_of_campaign_settings  # type: ignore[attr-defined]

    def changing(source: CampaignSettings) -> Any:
        chosen = choose(source)
        Path("rooms-prior.csv").write_text(PRIOR + "\n")
        return chosen

    monkeypatch.setattr(creation, "mechanism_of_campaign_settings", changing)
    with pytest.raises(SettingsError, match="the prior must not change"):
        creation.create_campaign(file, Path("rooms"))

    assert not Path("rooms/prior.csv").exists()


def test_what_a_plan_recommends_is_asked(settings: Callable[[str], Path], run: Run, run_json: RunJson) -> None:
    """The plan's windows of answers are asked, and the folder says what was chosen with its expected error."""
    made, truth = ask_and_infer(
        run, run_json, settings('mechanism = "plan", epsilon_per_answer = 2, prior = "rooms-prior.csv"')
    )
    chosen = json.loads(Path("rooms/plan.json").read_text("utf-8"))

    assert set(ANSWERS) == set(truth)
    assert made["planned"]
    assert len(made["reports"]) > 6
    assert (made["mechanism"], made["reports"]) == (chosen["mechanism"], chosen["reports"])
    assert made["expected"] == chosen["expected"]


@pytest.mark.parametrize(
    ("prior", "rule"),
    [
        (PRIOR.replace("0.05", "0.15"), "prior probabilities must sum to 1"),
        (PRIOR.replace("0,0.4", "0,0").replace("1,0.05", "1,0.45"), "prior probabilities must be positive"),
        (PRIOR.replace("5,0.05", "6,0.05"), "the prior must give a probability to each of the labels"),
        (PRIOR.replace("5,0.05", "4,0.05"), "a prior has one row per label"),
        (None, "rooms-prior.csv"),
    ],
)
def test_a_prior_that_is_none_is_refused(
    settings: Callable[[str], Path], refusal: Refusal, prior: str | None, rule: str
) -> None:
    """A file that is no prior of the labels is refused with its name, and no folder is written."""
    path = settings(f'mechanism = "designed", {BUDGET}, prior = "rooms-prior.csv"')
    Path("rooms-prior.csv").unlink()
    if prior is not None:
        Path("rooms-prior.csv").write_text(prior)

    text = refusal("campaign", "new", path, "--out", "rooms")

    assert rule in text
    assert "rooms-prior.csv" in text
    assert not Path("rooms").exists()
