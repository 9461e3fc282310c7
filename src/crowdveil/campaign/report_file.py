"""Report of one worker as a file, for campaigns without a service.

Canonical JSON `{campaign, format, report, symbols, token}`; symbols are the body in hexadecimal. The file holds the
token, so it is for the curator only.
"""

from dataclasses import dataclass
from typing import Self

from crowdveil.campaign.canonical import canonical_bytes, parse_canonical
from crowdveil.campaign.document import Campaign
from crowdveil.campaign.token import Token
from crowdveil.errors import CampaignError
from crowdveil.standalone.checks import fits

FORMAT = "crowdveil-report/1"
FIELDS = {"campaign": str, "format": FORMAT, "report": "[0-9a-f]{32}", "symbols": "([0-9a-f]{2})*", "token": str}
MAX_OVERHEAD = 400
"""Bytes of a file besides its symbols."""


@dataclass(frozen=True, slots=True)
class ReportFile:
    """Checked report file: token, report id (32 hexadecimal characters) and body of a report to one campaign."""

    token: Token
    report: str
    body: bytes

    @classmethod
    def from_bytes(cls, data: bytes, campaign: Campaign) -> Self:
        """Return the report in a file; length and symbols of the body are checked by `report_body.decode_body`.

        Raises:
            CampaignError: oversize, not json, not canonical, key, text, number, report file, foreign, token.
        """
        fields = parse_canonical(data, 2 * campaign.body_bytes + MAX_OVERHEAD)
        if not fits(fields, FIELDS):
            raise CampaignError("report file", f"expected texts {', '.join(FIELDS)}, of format {FORMAT!r}.")
        if fields["campaign"] != campaign.name:
            raise CampaignError("foreign", "the report is of another campaign.")
        return cls(Token.from_text(fields["token"]), fields["report"], bytes.fromhex(fields["symbols"]))

    def to_bytes(self, campaign: Campaign) -> bytes:
        """Return the content of the file."""
        named = {"campaign": campaign.name, "format": FORMAT, "report": self.report}
        return canonical_bytes({**named, "symbols": self.body.hex(), "token": self.token.text})
