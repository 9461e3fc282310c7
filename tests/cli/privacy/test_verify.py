"""`crowdveil verify` prints claims in plain words, and ends with 1 if one is false."""

import json
from pathlib import Path

import pytest

from crowdveil.campaign.document import Relay
from crowdveil.cli.privacy.verify import CURATOR, MAKER, NO_PARTS
from crowdveil.standalone.checks import EVERY_TASK
from tests.campaign.builders import PUBLIC_KEY, build_campaign, response
from tests.cli.conftest import Run

RESPONSE = ("--mechanism", "randomized-response", "--epsilon", 3, "--seed", 1)


@pytest.fixture
def campaign(folder: Path) -> Path:
    """Return the campaign.json of a campaign folder."""
    build_campaign().write(Path("asked"))
    return Path("asked/campaign.json")


def test_a_campaign_is_claimed_by_the_curator(run: Run, campaign: Path) -> None:
    """Claimant, each claim, epsilon per answer and per worker, participation and name are printed."""
    shown = " ".join(run("verify", campaign).stdout.split())

    for text in (CURATOR, "per answer", "per worker, for at most", "participation", "not checked"):
        assert text in shown
    assert "FALSE" not in shown
    assert "No worker is asked more than" in shown


@pytest.mark.parametrize("kind", ["certificate", "campaign"])
def test_epsilon_is_printed_first(run: Run, campaign: Path, kind: str) -> None:
    """The first word of a file that holds is epsilon; a file with a false claim has none."""
    run("perturb", "labels.csv", *RESPONSE, "--lists-from-answers", "--out", "sent")
    file = campaign if kind == "campaign" else Path("sent/certificate.json")
    lines = run("verify", file).stdout.splitlines()
    Path("false.json").write_text(file.read_text("utf-8").replace('"denominator"', '"denominators"'), "utf-8")

    assert "epsilon" == lines[0].split()[0]
    assert "epsilon" not in [line.split()[0] for line in run("verify", "false.json", code=1).stdout.splitlines()]


def test_missing_parts_are_named(run: Run, campaign: Path) -> None:
    """A campaign without its parts is checked, and what is missing is named."""
    Path("alone.json").write_bytes(campaign.read_bytes())

    assert NO_PARTS in json.loads(run("verify", "alone.json", "--json").stdout)["not_checked"]
    assert NO_PARTS not in json.loads(run("verify", campaign, "--json").stdout)["not_checked"]


def test_the_lists_of_a_relay_are_checked_without_the_parts(run: Run, folder: Path) -> None:
    """Through a relay all lists are all tasks, which the SHA-256 of each part shows: nothing on them is left open."""
    relay = Relay("The library", PUBLIC_KEY, 2, "cell")
    Path("alone.json").write_bytes(build_campaign(content={"relay": relay}).campaign.to_bytes())
    checked = json.loads(run("verify", "alone.json", "--json").stdout)

    assert NO_PARTS not in checked["not_checked"]
    assert {"claim": EVERY_TASK, "holds": True, "found": ""} in checked["claims"]


def test_a_marked_certificate_has_no_epsilon(run: Run, folder: Path) -> None:
    """The certificate of a simulation claims no privacy, and that is what is printed."""
    run("perturb", "labels.csv", *RESPONSE, "--lists-from-answers", "--out", "sent")
    shown = " ".join(run("verify", "sent/certificate.json").stdout.split())

    assert MAKER in shown
    assert "none: the file is marked as without privacy" in shown


def test_a_false_claim_ends_with_1(run: Run, folder: Path) -> None:
    """The claim is printed as FALSE, named in the error, and with --json all claims are in the details."""
    run("perturb", "labels.csv", *RESPONSE, "--lists-from-answers", "--out", "sent")
    path = Path("sent/certificate.json")
    path.write_text(json.dumps(json.loads(path.read_text()) | {"ratio": [2, 1]}))
    plain = run("verify", path, code=1)
    error = json.loads(run("verify", path, "--json", code=1).stdout)["error"]

    assert "FALSE" in plain.stdout
    assert "epsilon " not in plain.stdout.partition("FALSE")[0]
    assert ("ClaimError", str(path)) == (error["type"], error["value"])
    assert {False, True} == {claim["holds"] for claim in error["details"]["claims"]}
    assert "2 of" in error["message"]


def test_each_level_is_printed_with_its_epsilon(run: Run, folder: Path) -> None:
    """A campaign with levels has an epsilon for each of them, and says that a worker's level is visible."""
    channels = [response(epsilon=one) for one in (0.25, 0.5, 1.0)]
    Path("levels.json").write_bytes(build_campaign(channels=channels, content={"levels": 3}).campaign.to_bytes())
    printed = " ".join(run("verify", "levels.json").stdout.split())

    assert "a worker's level is visible. Found: epsilon 1, 2, 4 for all answers of a worker." in printed
