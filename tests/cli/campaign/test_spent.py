"""`crowdveil answer --spent`: what a computer promised so far."""

from pathlib import Path

import pytest

from crowdveil.campaign.permanent_answers import PermanentAnswers
from crowdveil.channels.alphabet import Categories
from crowdveil.mechanisms import Memoised
from crowdveil.randomness import seeded
from tests.cli.conftest import Run, RunJson


def test_spent_shows_the_sum_and_the_loss_at_a_delta(run: Run, run_json: RunJson) -> None:
    """Forty permanent answers of 0.2, each reported twice, to two hosts: the sum is 8, less at delta 1e-6."""
    tables = Memoised(alphabet=Categories(("no", "yes")), epsilon=0.2, report_epsilon=0.1).tables
    device = PermanentAnswers(Path("home"), seeded(1))
    for number in range(80):
        device.report(tables, host=f"host{number % 2}", question=f"{number % 40}", title="Q", answer=0)

    data = run_json("answer", "--spent", "--delta", 1e-6, "--home", "home")
    text = " ".join(run("answer", "--spent", "--home", "home").stdout.split())

    assert pytest.approx(8.0, abs=0.002) == data["epsilon_all_campaigns"]
    assert ["host0", "host1", None] == [row["host"] for row in data["spent"]]
    assert data["spent"][-1]["exact"] < 7
    assert "to all curators epsilon 8.000, the sum" in text or "to all curators epsilon 7.99" in text


def test_nothing_was_promised_yet(run_json: RunJson) -> None:
    """A computer without a ledger has spent nothing."""
    assert (0.0, []) == (
        (data := run_json("answer", "--spent", "--delta", 1e-6, "--home", "none"))["epsilon_all_campaigns"],
        data["spent"],
    )
