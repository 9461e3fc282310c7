"""Reports of a campaign: body, file without a service, receipt, seals, and batches of a relay.

Cell j of a body holds the code of the report symbol (its index in the outputs of the cell's channel) of the worker's
j-th task. A report file is canonical JSON `{campaign, format, report, symbols, token}` with the body in hexadecimal;
it holds the token. A receipt confirms what the service stored; it holds no date, so that every retry has one reply. A
batch of a relay holds sealed bodies, or single cells, in random order, without time, token, slot or report id; its name
is its SHA-256.
"""

import hmac
import re
import secrets
from collections.abc import Sequence
from dataclasses import dataclass
from hashlib import sha256
from typing import Self

from crowdveil.campaign.rules.canonical_json import canonical_bytes, parse_canonical
from crowdveil.campaign.rules.document import Campaign, Relay
from crowdveil.campaign.rules.token import Token
from crowdveil.channels.certificate import refusals_as
from crowdveil.errors import CampaignError
from crowdveil.standalone.checks import SEAL_BYTES, check_level, fits

NOT_ANSWERED = -1
"""Code of a cell without an answer; public participation only."""


def decode_body(body: bytes, campaign: Campaign, slot: int, tasks: Sequence[int]) -> tuple[int, ...]:
    """Return the code of the report symbol of each of the slot's tasks; `NOT_ANSWERED` where there is none.

    The messages of errors do not repeat the body.

    Raises:
        CampaignError: length, symbol, level.
    """
    width, level = campaign.symbol_bytes, level_in_body(body, campaign)
    if level is not None:
        body = body[1:]
    if any(body[len(tasks) * width :]):
        raise CampaignError("symbol", "cells beyond the tasks of the slot must be 0.")
    mark = _not_answered_code(campaign)
    cells = body[: len(tasks) * width]
    codes = cells if width == 1 else [int.from_bytes(cells[at : at + 2], "big") for at in range(0, len(cells), 2)]
    if campaign.groups is None:
        valid = max(set(codes) - {mark}, default=0) < len(campaign.channels[level or 0].outputs)
    else:
        limits = (len(campaign.channel_of(slot, task).outputs) for task in tasks)
        valid = all(code < limit or code == mark for code, limit in zip(codes, limits, strict=True))
    if not valid:
        raise CampaignError("symbol", "a code is no report symbol of its channel.")
    return tuple(NOT_ANSWERED if code == mark else code for code in codes)


def level_in_body(body: bytes, campaign: Campaign) -> int | None:
    """Return the level that the worker chose, the first byte of a body; None in a campaign without levels.

    Raises:
        CampaignError: length, level.
    """
    if len(body) != campaign.body_bytes:
        raise CampaignError("length", f"a body has {campaign.body_bytes} bytes, not {len(body)}.")
    level = None if campaign.levels is None else body[0]
    with refusals_as(CampaignError):
        check_level(level, campaign.levels)
    return level


def _not_answered_code(campaign: Campaign) -> int | None:
    """Return the code that marks "not answered" in a body; None where participation is protected."""
    return 256**campaign.symbol_bytes - 1 if campaign.participation == "public" else None


REPORT_FORMAT = "crowdveil-report/1"
FIELDS = {"campaign": str, "format": REPORT_FORMAT, "report": "[0-9a-f]{32}", "symbols": "([0-9a-f]{2})*", "token": str}
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
        """Return the report in a file; length and symbols of the body are checked by `decode_body`.

        Raises:
            CampaignError: oversize, not json, not canonical, number, report file, foreign, token.
        """
        fields = parse_canonical(data, 2 * campaign.body_bytes + MAX_OVERHEAD)
        if not fits(fields, FIELDS):
            raise CampaignError("report file", f"expected texts {', '.join(FIELDS)}, of format {REPORT_FORMAT!r}.")
        if fields["campaign"] != campaign.name:
            raise CampaignError("foreign", "the report is of another campaign.")
        return cls(Token.from_text(fields["token"]), fields["report"], bytes.fromhex(fields["symbols"]))

    def to_bytes(self, campaign: Campaign) -> bytes:
        """Return the content of the file."""
        named = {"campaign": campaign.name, "format": REPORT_FORMAT, "report": self.report}
        return canonical_bytes({**named, "symbols": self.body.hex(), "token": self.token.text})


RECEIPT_FORMAT = "crowdveil-receipt/1"
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
        "format": RECEIPT_FORMAT,
        "report": report_id,
        "stored_sha256": sha256(body).hexdigest(),
    }
    mac = hmac.new(key, canonical_bytes(fields), sha256).hexdigest()
    return canonical_bytes({**fields, "mac": mac})


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


BATCH_FORMAT = "crowdveil-batch/1"
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
    header = {"campaign": campaign.name, "format": BATCH_FORMAT, "reports": len(sealed)}
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
    if not end or not fits(
        fields, {"campaign": campaign.name, "format": BATCH_FORMAT, "reports": range(least, most + 1)}
    ):
        raise CampaignError(
            "batch", f"a batch of this campaign has format {BATCH_FORMAT!r} and {least} to {most} reports."
        )
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
