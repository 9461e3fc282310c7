"""Receipts: the same bytes for the same report, bound to key, campaign, report and body."""

import json

import pytest

from crowdveil.campaign.receipt import make_receipt

KEY, NAME, REPORT, BODY = bytes(32), "A" * 43, "0f" * 16, b"\1\2\3"
RECEIPT = make_receipt(KEY, NAME, REPORT, BODY)


def test_a_receipt_is_repeatable():
    """Two receipts of one report are equal, and name no date."""
    assert RECEIPT == make_receipt(KEY, NAME, REPORT, BODY)
    assert {"campaign", "format", "mac", "report", "stored_sha256"} == set(json.loads(RECEIPT))


@pytest.mark.parametrize(
    "other",
    [
        (b"\1" * 32, NAME, REPORT, BODY),
        (KEY, "B" * 43, REPORT, BODY),
        (KEY, NAME, "1f" * 16, BODY),
        (KEY, NAME, REPORT, b"\1\2\4"),
    ],
)
def test_a_receipt_is_bound_to_its_report(other):
    """Another key, campaign, report or body gives another code."""
    assert json.loads(make_receipt(*other))["mac"] != json.loads(RECEIPT)["mac"]
