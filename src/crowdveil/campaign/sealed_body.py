"""Layout of a sealed report: the parts of a body that are encrypted to the curator, and what each seal is bound to.

The suite is HPKE (RFC 9180) with DHKEM(P-256, HKDF-SHA256), HKDF-SHA256 and AES-128-GCM. A sealed part is the ephemeral
public key (65 bytes) and the ciphertext with its tag (16 bytes more than the text). Its info is "crowdveil-relay/1",
the campaign's digest (32 bytes) and the task index (4 bytes, big endian; 2^32 - 1 for a whole report).
"""

from crowdveil.campaign.document import Campaign, Relay
from crowdveil.errors import CampaignError
from crowdveil.standalone.checks import SEAL_BYTES

LABEL = b"crowdveil-relay/1"
WHOLE_REPORT = 2**32 - 1


def relay_of(campaign: Campaign) -> Relay:
    """Return the relay of a campaign.

    Raises:
        CampaignError: the campaign names none.
    """
    if campaign.relay is None:
        raise CampaignError(
            "relay",
            "the campaign names no relay.",
            hint="Give campaign.toml the setting relay, or use crowdveil campaign serve.",
        )
    return campaign.relay


def body_parts(campaign: Campaign, body: bytes) -> list[tuple[bytes, bytes]]:
    """Return (info, text) of each part of a body: the whole body, or the symbol of each task."""
    if relay_of(campaign).unit == "report":
        return [(_seal_info(campaign, WHOLE_REPORT), body)]
    width = campaign.symbol_bytes
    return [(_seal_info(campaign, task), body[width * task : width * (task + 1)]) for task in range(campaign.cells)]


def sealed_parts(campaign: Campaign, sealed: bytes) -> list[tuple[bytes, bytes]]:
    """Return (info, sealed part) of each part of a sealed report.

    Raises:
        CampaignError: length.
    """
    if len(sealed) != campaign.sent_bytes:
        raise CampaignError("length", f"a sealed report has {campaign.sent_bytes} bytes, not {len(sealed)}.")
    infos = [info for info, _ in body_parts(campaign, bytes(campaign.body_bytes))]
    size = len(sealed) // len(infos)
    return [(info, sealed[size * k : size * (k + 1)]) for k, info in enumerate(infos)]


def part_bytes(campaign: Campaign) -> int:
    """Return the length of a sealed part."""
    whole = relay_of(campaign).unit == "report"
    return SEAL_BYTES + (campaign.body_bytes if whole else campaign.symbol_bytes)


def _seal_info(campaign: Campaign, part: int) -> bytes:
    return LABEL + campaign.digest + part.to_bytes(4, "big")
