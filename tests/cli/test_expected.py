"""Options of expected answers, for the design of quantized-response and designed."""

import json
from pathlib import Path

import pytest

from tests.cli.conftest import RunJson

SKEWED = ("--prior", "prior.csv", "--participation-rate", 0.1, "--sigmas", "1,5")
NUMBERS = ("numbers.csv", "--scale", "-2:7", "--epsilon", 1, "--seed", 1, "--out", "sent")


@pytest.fixture(autouse=True)
def prior(folder: Path) -> None:
    """Write the public prior: seven truths in ten are -2."""
    others = "".join(f"{number},0.001\n" for number in range(1, 8))
    (folder / "prior.csv").write_text(f"label,probability\n-2,0.693\n-1,0.24\n0,0.06\n{others}", "utf-8")


@pytest.mark.parametrize("mechanism", ["quantized-response", "designed"])
def test_the_channel_is_chosen_for_the_prior(mechanism: str, run_json: RunJson) -> None:
    """At epsilon 1 both ask whether the answer is -2; the certificate holds the channel."""
    made = run_json("perturb", *NUMBERS, "--mechanism", mechanism, *SKEWED)
    certificate = json.loads(Path("sent/certificate.json").read_text("utf-8"))

    assert ["-2", "-1..7", "NULL"] == certificate["outputs"]
    assert mechanism == made["mechanism"]
    assert f"{mechanism}, SIMULATION from seed 1: no privacy" == certificate["mechanism"]
    assert max(row["exact"] for row in made["accounts"] if row["unit"] == "cell") <= 1.0


def test_cuts_are_taken_as_they_are(run_json: RunJson) -> None:
    """The words of --cuts are labels: the first of each block after the first."""
    made = run_json("perturb", *NUMBERS, "--mechanism", "quantized-response", "--cuts", "-1,3")

    assert [1, 5] == made["parameters"]["cuts"]
