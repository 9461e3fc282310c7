"""Receipts of stored reports: canonical JSON with the SHA-256 of the stored body and a message authentication code.

A receipt holds no date: the reply to every retry is the same.
"""

import hmac
import re
from hashlib import sha256
from typing import Any

from crowdveil.campaign.canonical import canonical_bytes, parse_canonical
from crowdveil.errors import CampaignError

FORMAT = "crowdveil-receipt/1"
FIELDS = {"campaign", "format", "mac", "report", "stored_sha256"}
MAX_RECEIPT_BYTES = 1_000
REPORT_ID = re.compile("[0-9a-f]{32}")


def make_receipt(key: bytes, campaign_name: str, report_id: str, body: bytes) -> bytes:
    """Return the receipt of a stored report.

    Args:
        key: secret key of the campaign at the service.
        campaign_name: 43 characters.
        report_id: 32 lower-case hexadecimal characters.
        body: the stored body.
    """
    fields = {
        "campaign": campaign_name,
        "format": FORMAT,
        "report": report_id,
        "stored_sha256": sha256(body).hexdigest(),
    }
    return canonical_bytes({**fields, "mac": _mac(key, fields)})


def check_receipt(receipt: bytes, campaign_name: str, report_id: str, body: bytes) -> None:
    """Check that a receipt is about this report with exactly this body; the code is for the service alone.

    Raises:
        CampaignError: receipt, oversize, not json, not canonical, key, text, number.
    """
    fields = _fields(receipt)
    if (fields["campaign"], fields["report"]) != (campaign_name, report_id):
        raise CampaignError("receipt", "the receipt is about another report.")
    if fields["stored_sha256"] != sha256(body).hexdigest():
        raise CampaignError("receipt", "the service stored other bytes than this device sent.")


def is_authentic(key: bytes, receipt: bytes) -> bool:
    """Return whether a receipt was made with this key.

    Raises:
        CampaignError: receipt, oversize, not json, not canonical, key, text, number.
    """
    fields = _fields(receipt)
    mac = fields.pop("mac")
    return hmac.compare_digest(mac.encode(), _mac(key, fields).encode())


def _mac(key: bytes, fields: dict[str, Any]) -> str:
    return hmac.new(key, canonical_bytes(fields), sha256).hexdigest()


def _fields(receipt: bytes) -> dict[str, Any]:
    fields = parse_canonical(receipt, MAX_RECEIPT_BYTES)
    if not isinstance(fields, dict) or set(fields) != FIELDS or fields["format"] != FORMAT:
        raise CampaignError("receipt", f"expected an object of format {FORMAT!r} with fields {sorted(FIELDS)}.")
    if not all(isinstance(value, str) for value in fields.values()):
        raise CampaignError("receipt", "every field of a receipt is a text.")
    return fields
