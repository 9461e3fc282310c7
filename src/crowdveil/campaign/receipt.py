"""Receipts of stored reports: canonical JSON with the SHA-256 of the stored body and a message authentication code.

A receipt holds no date: the reply to every retry is the same.
"""

import hmac
import re
from hashlib import sha256

from crowdveil.campaign.canonical import canonical_bytes

FORMAT = "crowdveil-receipt/1"
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
    mac = hmac.new(key, canonical_bytes(fields), sha256).hexdigest()
    return canonical_bytes({**fields, "mac": mac})
