"""Campaign folder of the curator: document, assignment parts, pictures, hashes of tokens.

`campaign.json`, `parts/0000.json`, `pictures/<sha256>` are public. `tokens.json` holds the hash and slot of each token;
`links.csv`, `links.html` and `workers.csv` (slot,name) stay with the curator.
"""

from collections.abc import Iterable
from dataclasses import dataclass
from functools import cached_property
from hashlib import sha256
from os import PathLike
from pathlib import Path

from crowdveil.campaign.rules.assignment_part import AssignmentPart
from crowdveil.campaign.rules.canonical_json import canonical_bytes, parse_canonical
from crowdveil.campaign.rules.document import Campaign
from crowdveil.errors import CampaignError
from crowdveil.standalone.checks import HEX, MAX_BYTES, MAX_PICTURE_BYTES, SLOTS_PER_PART, fits

CAMPAIGN_FILE, PARTS_FOLDER, PICTURES_FOLDER = "campaign.json", "parts", "pictures"
TOKENS_FILE, LINKS_FILE, SHEET_FILE, WORKERS_FILE = "tokens.json", "links.csv", "links.html", "workers.csv"
PLAN_FILE = "plan.json"
PRIOR_FILE = "prior.csv"
"""Public prior that the channels were chosen for; the campaign names its SHA-256."""
TOKENS_FORMAT = "crowdveil-tokens/1"
MAX_TOKENS_BYTES = 500_000_000


@dataclass(frozen=True, slots=True)
class TokenEntry:
    """Hash of one token (32 bytes), its slot, and whether it was revoked."""

    slot: int
    hash: bytes
    revoked: bool = False


class CampaignFolder:
    """Folder that `crowdveil campaign new` wrote; every file is checked when it is read.

    Attributes:
        path: path of the folder.
    """

    def __init__(self, path: str | PathLike[str]) -> None:
        self.path = Path(path)

    @cached_property
    def campaign(self) -> Campaign:
        """The campaign; raises CampaignError or CertificateError if `campaign.json` is missing or invalid."""
        return Campaign.from_bytes(self._read(CAMPAIGN_FILE, MAX_BYTES))

    def checked_part_bytes(self, number: int) -> bytes:
        """Return the bytes of an assignment part; raises CampaignError if it is not the campaign's."""
        return self.part(number).to_bytes()

    def part(self, number: int) -> AssignmentPart:
        """Return an assignment part; raises CampaignError if it is not the campaign's."""
        data = self._read(f"{PARTS_FOLDER}/{number:04}.json", MAX_BYTES)
        return AssignmentPart.from_bytes(data, self.campaign, number)

    def tasks(self, slot: int) -> tuple[int, ...]:
        """Return the task indices of a slot, ascending."""
        return self.part(slot // SLOTS_PER_PART).tasks(slot)

    def picture(self, digest: str) -> bytes:
        """Return the bytes of a picture by its SHA-256 in hexadecimal.

        Raises:
            CampaignError: picture.
        """
        if not fits(digest, HEX):
            raise CampaignError("picture", "a picture is named by its SHA-256.")
        data = self._read(f"{PICTURES_FOLDER}/{digest}", MAX_PICTURE_BYTES)
        if sha256(data).hexdigest() != digest:
            raise CampaignError("picture", f"the file {digest} has another content.")
        return data

    @cached_property
    def tokens(self) -> tuple[TokenEntry, ...]:
        """Tokens, in the order of the file; raises CampaignError if there are none, or of another campaign."""
        return parse_tokens(self._read(TOKENS_FILE, MAX_TOKENS_BYTES), self.campaign)

    def _read(self, name: str, most: int) -> bytes:
        return _read_at_most_one_byte_more(self.path / name, most)


def find_campaign(folder: Path) -> Path | None:
    """Return the path of the `campaign.json` of a folder; None without one."""
    path = folder / CAMPAIGN_FILE
    return path if path.is_file() else None


def read_campaign(path: Path) -> Campaign:
    """Return the campaign of a `campaign.json`; raises CampaignError or CertificateError if it is invalid."""
    return Campaign.from_bytes(_read_at_most_one_byte_more(path, MAX_BYTES))


def _read_at_most_one_byte_more(path: Path, most: int) -> bytes:
    """Return the content of a file, at most one byte more than `most`."""
    try:
        with path.open("rb") as stream:
            return stream.read(most + 1)
    except OSError as error:
        hint = f"Give the folder that `crowdveil campaign new` wrote, or its {CAMPAIGN_FILE}."
        raise CampaignError("file", f"{path} cannot be read: {error.strerror or error}.", hint=hint) from error


def tokens_bytes(entries: Iterable[TokenEntry], campaign: Campaign) -> bytes:
    """Return the content of `tokens.json`."""
    tokens = [{"slot": entry.slot, "hash": entry.hash.hex(), "revoked": entry.revoked} for entry in entries]
    return canonical_bytes({"format": TOKENS_FORMAT, "campaign": campaign.name, "tokens": tokens})


def parse_tokens(data: bytes, campaign: Campaign) -> tuple[TokenEntry, ...]:
    """Return the entries of `tokens.json`.

    Raises:
        CampaignError: tokens, oversize, not json, not canonical, number.
    """
    fields = parse_canonical(data, MAX_TOKENS_BYTES)
    entry = {"slot": range(campaign.slots), "hash": HEX, "revoked": bool}
    if not fits(fields, {"format": TOKENS_FORMAT, "campaign": str, "tokens": [entry]}):
        hint = f"a token has a slot below {campaign.slots}, a SHA-256 and a mark"
        raise CampaignError("tokens", f"expected the tokens of a campaign, of format {TOKENS_FORMAT!r}; {hint}.")
    if fields["campaign"] != campaign.name:
        raise CampaignError("tokens", "the tokens are of another campaign.")
    entries = tuple(TokenEntry(one["slot"], bytes.fromhex(one["hash"]), one["revoked"]) for one in fields["tokens"])
    valid = [entry.slot for entry in entries if not entry.revoked]
    if len({entry.hash for entry in entries}) != len(entries) or len(set(valid)) != len(valid):
        raise CampaignError("tokens", "hashes must differ, and a slot has one token that is not revoked.")
    return entries
