"""`crowdveil campaign answer --spent`: what a computer promised so far."""

from pathlib import Path

import pytest

from crowdveil.standalone.checks import LINE
from crowdveil.standalone.device import add_to_ledger
from tests.cli.conftest import Run, RunJson


@pytest.mark.slow
def test_spent_shows_the_sum_and_the_loss_at_a_delta(run: Run, run_json: RunJson) -> None:
    """Eighty answers of 0.1 to two hosts: the sum is 8, less at delta 1e-6."""
    same = {**dict.fromkeys(LINE, "x"), "cells": 1, "numerator": 1_105_170, "denominator": 1_000_000}
    home = Path("home")
    home.mkdir()
    for number in range(80):
        add_to_ledger(home, [{**same, "campaign": f"{number}", "report": f"{number}", "host": f"host{number % 2}"}])

    data = run_json("campaign", "answer", "--spent", "--delta", 1e-6, "--home", "home")
    text = " ".join(run("campaign", "answer", "--spent", "--home", "home").stdout.split())

    assert pytest.approx(8.0, abs=0.002) == data["epsilon_all_campaigns"]
    assert ["host0", "host1", None] == [row["host"] for row in data["spent"]]
    assert data["spent"][-1]["exact"] < 7
    assert "to all curators epsilon 8.000, the sum" in text or "to all curators epsilon 7.99" in text


def test_nothing_was_promised_yet(run_json: RunJson) -> None:
    """A computer without a ledger has spent nothing."""
    assert (0.0, []) == (
        (data := run_json("campaign", "answer", "--spent", "--delta", 1e-6, "--home", "none"))["epsilon_all_campaigns"],
        data["spent"],
    )
