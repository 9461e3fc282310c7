"""Batch of sealed reports that a relay forwards: a header, and the sealed parts in random order.

The header is canonical JSON `{campaign, format, reports}` and a line end; `reports` is the number of workers. Whole
reports are shuffled. Single cells stand task by task, and the cells of each task are shuffled independently, so that no
two cells of a worker can be linked. A batch holds no time, token, slot, report id or order. Its name is its SHA-256.
"""

import re
import secrets
from collections.abc import Sequence

from crowdveil.campaign.canonical import canonical_bytes, parse_canonical
from crowdveil.campaign.document import Campaign
from crowdveil.campaign.sealed_body import part_bytes, relay_of, sealed_parts
from crowdveil.errors import CampaignError
from crowdveil.standalone.checks import fits

FORMAT = "crowdveil-batch/1"
SUFFIX = ".batch"
NAME = re.compile("[0-9a-f]{64}")
MAX_HEADER_BYTES = 200
MAX_BATCH_BYTES = 64_000_000
"""Size above which reports are spread over several batches, as far as each keeps the least number."""


def make_batches(campaign: Campaign, sealed: Sequence[bytes]) -> list[bytes]:
    """Return the batches of sealed reports, in random order; none below the relay's least number of reports.

    Raises:
        CampaignError: relay, length.
    """
    least = relay_of(campaign).least_batch
    if len(sealed) < least:
        return []
    drawn = list(sealed)
    randomness = secrets.SystemRandom()
    randomness.shuffle(drawn)
    count = max(1, min(len(drawn) // least, len(drawn) * campaign.sent_bytes // MAX_BATCH_BYTES))
    return [_shuffled_batch(campaign, drawn[first::count], randomness) for first in range(count)]


def _shuffled_batch(campaign: Campaign, sealed: Sequence[bytes], randomness: secrets.SystemRandom) -> bytes:
    header = {"campaign": campaign.name, "format": FORMAT, "reports": len(sealed)}
    parts = bytearray(canonical_bytes(header) + b"\n")
    split = [[part for _, part in sealed_parts(campaign, one)] for one in sealed]
    for column in map(list, zip(*split, strict=True)):
        randomness.shuffle(column)
        parts += b"".join(column)
    return bytes(parts)


def parse_batch(campaign: Campaign, data: bytes) -> list[tuple[bytes, ...]]:
    """Return the sealed parts of each task, or one tuple of sealed reports.

    Raises:
        CampaignError: batch, if it is of another campaign, has another length, or fewer reports than the least batch.
    """
    head, end, parts = data.partition(b"\n")
    fields = parse_canonical(head, MAX_HEADER_BYTES)
    least, most = relay_of(campaign).least_batch, campaign.slots
    if not end or not fits(fields, {"campaign": campaign.name, "format": FORMAT, "reports": range(least, most + 1)}):
        raise CampaignError("batch", f"a batch of this campaign has format {FORMAT!r} and {least} to {most} reports.")
    count = fields["reports"]
    if len(parts) != count * campaign.sent_bytes:
        raise CampaignError("batch", "the batch has another length than its header says.")
    size = part_bytes(campaign)
    cells = [parts[first : first + size] for first in range(0, len(parts), size)]
    return [tuple(cells[first : first + count]) for first in range(0, len(cells), count)]


def reports_in_batch(data: bytes) -> int:
    """Return the number of workers that the header of a batch states."""
    return int(parse_canonical(data.partition(b"\n")[0], MAX_HEADER_BYTES)["reports"])


def most_batch_bytes(campaign: Campaign) -> int:
    """Return the largest length of a batch of a campaign."""
    return MAX_HEADER_BYTES + campaign.slots * campaign.sent_bytes
