"""Receipts: the same bytes for the same report, bound to campaign, report and body."""

import json

import pytest

from crowdveil.campaign.canonical import canonical_bytes
from crowdveil.campaign.receipt import check_receipt, is_authentic, make_receipt
from crowdveil.errors import CampaignError

KEY, NAME, REPORT, BODY = bytes(32), "A" * 43, "0f" * 16, b"\1\2\3"
RECEIPT = make_receipt(KEY, NAME, REPORT, BODY)


def test_a_receipt_is_repeatable_and_checked():
    """Two receipts of one report are equal, pass the check, and name no date."""
    check_receipt(RECEIPT, NAME, REPORT, BODY)

    assert RECEIPT == make_receipt(KEY, NAME, REPORT, BODY)
    assert {"campaign", "format", "mac", "report", "stored_sha256"} == set(json.loads(RECEIPT))
    assert is_authentic(KEY, RECEIPT)


@pytest.mark.parametrize(
    ("name", "report", "body"), [("B" * 43, REPORT, BODY), (NAME, "1f" * 16, BODY), (NAME, REPORT, b"\1\2\4")]
)
def test_a_receipt_of_another_report_is_refused(name, report, body):
    """Another campaign, report or body does not pass the check."""
    with pytest.raises(CampaignError, match="receipt"):
        check_receipt(RECEIPT, name, report, body)


def test_a_receipt_of_another_key_is_not_authentic():
    """A receipt made with another key, or altered, is not the service's own."""
    altered = canonical_bytes({**json.loads(RECEIPT), "report": "1f" * 16})

    assert not is_authentic(b"\1" * 32, RECEIPT)
    assert not is_authentic(KEY, altered)


@pytest.mark.parametrize("receipt", [b"{}", b"[]", b"", RECEIPT + b" ", b" " * 2_000, RECEIPT.replace(b"/1", b"/2")])
def test_a_malformed_receipt_is_refused(receipt):
    """A receipt of another form is refused."""
    with pytest.raises(CampaignError):
        check_receipt(receipt, NAME, REPORT, BODY)
