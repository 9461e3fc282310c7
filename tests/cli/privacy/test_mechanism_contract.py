"""Every registered mechanism through every command on privacy: one loss everywhere, or a refusal that the docs name."""

import json
import math
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from crowdveil.mechanisms import MECHANISMS, ChannelMechanism
from crowdveil.registry import MECHANISM_NAMES
from tests.cli.conftest import Refusal, Run, RunJson

CATALOGUE = (Path(__file__).parents[3] / "docs" / "reference" / "catalogue.md").read_text("utf-8")
WITH_CHANNEL = [name for name in MECHANISM_NAMES if issubclass(MECHANISMS[name], ChannelMechanism)]
WITHOUT_CHANNEL = [name for name in MECHANISM_NAMES if name not in WITH_CHANNEL]
SIMULATION_ONLY = "matrix-factorization-published"
OWN: dict[str, tuple[object, ...]] = {SIMULATION_ONLY: ("--dimensions", 1, "--ridge", 0.1)}
TASKS = 3
LISTS = ("--tasks", "three.csv", "--workers", "two.csv")


def words(name: str) -> tuple[object, ...]:
    """Return the settings of a small instance."""
    return ("--epsilon", 2, "--scale", "0:2", *OWN.get(name, ()))


def accounted(run_json: RunJson, name: str) -> dict[str, Any]:
    """Return the row of a single cell in the account."""
    rows = run_json("account", "--mechanism", name, *words(name), "--tasks", TASKS)["accounts"]
    return dict(next(row for row in rows if row["unit"] == "cell"))


def number(value: object) -> float:
    """Return the number of a JSON value, in which infinity is a word."""
    return math.inf if value == "infinity" else float(str(value))


@pytest.fixture
def send(run: Run) -> Callable[[str], Path]:
    """Return a function that randomizes the answers of two workers by a mechanism, into a folder."""
    Path("answers.csv").write_text("task,worker,value\na,u,1\na,v,2\nb,u,0\nc,v,2\n")
    Path("three.csv").write_text("task\na\nb\nc\n")
    Path("two.csv").write_text("worker\nu\nv\n")

    def perturb(name: str) -> Path:
        run("perturb", "answers.csv", "--mechanism", name, *words(name), *LISTS, "--out", "sent")
        return Path("sent")

    return perturb


@pytest.mark.slow
@pytest.mark.parametrize("name", MECHANISM_NAMES)
def test_account_and_audit_state_one_loss(run: Run, run_json: RunJson, name: str) -> None:
    """The exact loss of a cell is that of the account; the claim is refuted exactly if it is above the claim."""
    row = accounted(run_json, name)
    code = int(number(row["exact"]) > number(row["claimed"]) * (1 + 1e-12))
    shown = run("audit", name, *words(name), "--tasks", TASKS, "--draws", 100, "--json", code=code).stdout
    found = json.loads(shown)

    assert row["exact"] == found["exact"]
    assert found["claimed_epsilon"] in (row["claimed"], row["exact"])  # that of the source, or else the exact one
    assert bool(code) == found["refuted"]
    assert row["unit"] == found["unit"]
    assert bool(row["reason"]) >= bool(code)


@pytest.mark.parametrize("name", WITH_CHANNEL)
def test_a_certificate_has_one_loss_in_every_command(
    run: Run, run_json: RunJson, send: Callable[[str], Path], name: str
) -> None:
    """Verify, statement and audit of the file and of its folder agree with the account."""
    loss, folder = number(accounted(run_json, name)["exact"]), send(name)
    for source in (folder, folder / "certificate.json"):
        checked, audited = run_json("verify", source), run_json("audit", source)
        stated = run_json("statement", source)

        assert [loss] * 3 == pytest.approx(
            [checked["epsilon_per_answer"], stated["epsilon_per_answer"], audited["exact"]], rel=1e-12
        )
        assert not audited["refuted"]
        assert name in checked["mechanism"] == stated["mechanism"]
    assert pytest.approx(TASKS * loss) == run_json("statement", folder)["epsilon_per_worker"]


@pytest.mark.parametrize("name", WITHOUT_CHANNEL)
def test_a_mechanism_without_a_certificate_is_refused_by_name(
    run: Run, refusal: Refusal, run_json: RunJson, send: Callable[[str], Path], name: str
) -> None:
    """Its folder has nothing to verify or audit, states no epsilon, and has no budget or shuffled figure."""
    section = CATALOGUE.partition(f"### `{name}`")[2].partition("###")[0]
    account = ("account", "--mechanism", name, "--scale", "0:2", *OWN.get(name, ()), "--tasks", TASKS)

    assert "No certificate." in section
    assert "with a channel per cell" in refusal(*account, "--budget", 2)
    assert "with a channel per cell" in refusal(*account, "--epsilon", 2, "--shuffled", 50, "--delta", 1e-6)
    if name == SIMULATION_ONLY:
        refused = refusal("perturb", "answers.csv", "--mechanism", name, *words(name), *LISTS, "--out", "sent")
        assert "for simulations only, without privacy" in refused
        return
    folder = send(name)
    for verb in ("verify", "audit"):
        assert "have no certificate; crowdveil account states their loss" in refusal(verb, folder, code=3)
    stated = run_json("statement", folder)
    assert ("none", None) == (stated["privacy"], stated["epsilon_per_answer"])
    assert "has no certificate" in stated["text"].replace("\n", " ")


@pytest.mark.parametrize("name", MECHANISM_NAMES)
def test_no_bound_at_a_delta_is_above_the_sum(run_json: RunJson, name: str) -> None:
    """The least bound is named for every mechanism, and is never above the loss at delta 0."""
    data = run_json("account", "--mechanism", name, *words(name), "--tasks", TASKS, "--rounds", 2, "--delta", 1e-6)
    for row in data["compositions"]:
        if row["least"] is None:
            assert "infinity" == row["pure"]
        else:
            assert number(row[row["least"]]) == min(number(row[key]) for key in ("pure", "exact", "advanced"))
