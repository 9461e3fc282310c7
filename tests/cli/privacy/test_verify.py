"""`crowdveil verify` prints claims in plain words, and ends with 1 if one is false."""

import json
from pathlib import Path

import pytest

from crowdveil.channels.alphabet import Categories
from crowdveil.cli.privacy.verify import (
    CURATOR,
    MAKER,
    NO_PARTS,
    NOT_CHECKED_OF_MEMOISED,
    NOT_CHECKED_OF_ONE_REPORT,
)
from crowdveil.mechanisms.memoised import Memoised
from tests.campaign.builders import build_campaign
from tests.cli.conftest import LABELS, LISTS, Run

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


def test_missing_parts_are_named(run: Run, campaign: Path) -> None:
    """A campaign without its parts is checked, and what is missing is named."""
    Path("alone.json").write_bytes(campaign.read_bytes())

    assert NO_PARTS in json.loads(run("verify", "alone.json", "--json").stdout)["not_checked"]
    assert NO_PARTS not in json.loads(run("verify", campaign, "--json").stdout)["not_checked"]


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


def test_memoised_reports_have_two_losses(run: Run, folder: Path) -> None:
    """Epsilon per report and for ever, unit and participation are printed; a false claim ends with 1."""
    tables = Memoised(alphabet=Categories(("no", "yes")), epsilon=2.0, report_epsilon=1.0).tables
    Path("memoised.json").write_text(json.dumps(tables.certificate()))
    Path("false.json").write_text(json.dumps(tables.certificate() | {"report": tables.permanent.certificate()}))
    shown = " ".join(run("verify", "memoised.json").stdout.split())
    data = json.loads(run("verify", "memoised.json", "--json").stdout)

    for text in ("1 per report of an answer", "2 per answer for ever", "protected: whether a worker answered"):
        assert text in shown
    assert NOT_CHECKED_OF_MEMOISED[1] in shown
    assert data["epsilon_per_report"] < data["epsilon_per_answer"] <= 2
    refuted = " ".join(run("verify", "false.json", code=1).stdout.split())
    assert "FALSE" in refuted
    assert NOT_CHECKED_OF_MEMOISED[1] in refuted


def test_one_memoised_report_says_that_further_ones_can_lose_more(run: Run, folder: Path) -> None:
    """The certificate that `perturb` writes is of one report; others have no such sentence."""
    run("perturb", "labels.csv", "--mechanism", "memoised", *RESPONSE[2:4], *LISTS, "--labels", ",".join(LABELS),
        "--out", "sent")  # fmt: skip
    shown = " ".join(run("verify", "sent/certificate.json").stdout.split())

    assert "1.5 per answer, for one report of it" in shown
    assert NOT_CHECKED_OF_ONE_REPORT[2] in shown
