"""Closing of a campaign without a service: the hashes of the reports that counted, in `closed.json`.

Reports that arrive later are named and left.
"""

from dataclasses import dataclass
from hashlib import sha256
from pathlib import Path
from typing import Self

from crowdveil.campaign.canonical import canonical_bytes, parse_canonical
from crowdveil.campaign.document import Campaign
from crowdveil.campaign.folder import CampaignFolder
from crowdveil.errors import CampaignError
from crowdveil.files.atomic_write import write_files
from crowdveil.standalone.checks import HEX, MAX_SLOTS, fits

CLOSED_FILE = "closed.json"
FORMAT = "crowdveil-closed/1"
KIND = "closing of a campaign"
MAX_BYTES = 70 * MAX_SLOTS


@dataclass(frozen=True)
class Closing:
    """SHA-256 of each report that counted, hexadecimal and ascending."""

    reports: tuple[str, ...]

    @property
    def digest(self) -> str:
        """SHA-256 of the reports' SHA-256, in hexadecimal."""
        return sha256(b"".join(map(bytes.fromhex, self.reports))).hexdigest()

    @classmethod
    def read(cls, folder: CampaignFolder) -> Self | None:
        """Return the closing of a campaign; None while it is open.

        Raises:
            CampaignError: `closed.json` is damaged, or of another campaign.
        """
        try:
            with (folder.path / CLOSED_FILE).open("rb") as stream:
                fields = parse_canonical(stream.read(MAX_BYTES + 1), MAX_BYTES)
        except FileNotFoundError:
            return None
        except OSError as error:
            raise CampaignError("file", f"{CLOSED_FILE} cannot be read: {error.strerror or error}.") from error
        form = {"format": FORMAT, "campaign": folder.campaign.name, "reports": [HEX]}
        if not fits(fields, form) or fields["reports"] != sorted(set(fields["reports"])):
            raise CampaignError("closed", f"{CLOSED_FILE} is not the closing of this campaign.")
        return cls(tuple(fields["reports"]))

    def write(self, folder: CampaignFolder) -> Path:
        """Write `closed.json` beside the campaign; return its path.

        Raises:
            SettingsError: the folder holds another file of this name, or cannot be written.
        """
        write_files(folder.path, {CLOSED_FILE: self._to_bytes(folder.campaign)}, kind=KIND)
        return folder.path / CLOSED_FILE

    def _to_bytes(self, campaign: Campaign) -> bytes:
        return canonical_bytes({"format": FORMAT, "campaign": campaign.name, "reports": list(self.reports)})
