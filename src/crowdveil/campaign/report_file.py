"""Report of one worker as a file, for campaigns without a service.

Canonical JSON `{campaign, format, report, symbols, token}`; symbols are the body in hexadecimal. The file holds the
token, so it is for the curator only.
"""

import re
from dataclasses import dataclass
from typing import Self

from crowdveil.campaign.canonical import canonical_bytes, parse_canonical
from crowdveil.campaign.document import Campaign
from crowdveil.campaign.receipt import REPORT_ID
from crowdveil.campaign.token import Token
from crowdveil.errors import CampaignError

FORMAT = "crowdveil-report/1"
FIELDS = {"campaign", "format", "report", "symbols", "token"}
MAX_OVERHEAD = 400
"""Bytes of a file besides its symbols."""
_HEX = re.compile("([0-9a-f]{2})*")


@dataclass(frozen=True, slots=True)
class ReportFile:
    """Checked report file: token, report id (32 hexadecimal characters) and body of a report to one campaign."""

    token: Token
    report: str
    body: bytes

    @classmethod
    def from_bytes(cls, data: bytes, campaign: Campaign) -> Self:
        """Return the report in a file; length and symbols of the body are checked by `report_body.decode`.

        Raises:
            CampaignError: oversize, not json, not canonical, key, text, number, report file, foreign, token.
        """
        fields = parse_canonical(data, 2 * campaign.body_bytes + MAX_OVERHEAD)
        if not isinstance(fields, dict) or set(fields) != FIELDS or fields["format"] != FORMAT:
            raise CampaignError("report file", f"expected an object of format {FORMAT!r} with fields {sorted(FIELDS)}.")
        if not all(isinstance(value, str) for value in fields.values()):
            raise CampaignError("report file", "every field of a report file is a text.")
        if fields["campaign"] != campaign.name:
            raise CampaignError("foreign", "the report is of another campaign.")
        if not (REPORT_ID.fullmatch(fields["report"]) and _HEX.fullmatch(fields["symbols"])):
            raise CampaignError("report file", "report and symbols are lower-case hexadecimal.")
        return cls(Token.from_text(fields["token"]), fields["report"], bytes.fromhex(fields["symbols"]))

    def to_bytes(self, campaign: Campaign) -> bytes:
        """Return the content of the file."""
        named = {"campaign": campaign.name, "format": FORMAT, "report": self.report}
        return canonical_bytes({**named, "symbols": self.body.hex(), "token": self.token.text})
