"""Body of a report: one symbol per cell in a fixed number of bytes, the same length for every worker of a campaign.

Cell j holds the code of the report symbol (its index in the outputs of the cell's channel) of the worker's j-th task.
Cells beyond the load of the slot are 0. With public participation, all bits set means "not answered".
In a campaign with levels the first byte is the level that the worker chose.
"""

from collections.abc import Sequence

from crowdveil.campaign.canonical import refusals
from crowdveil.campaign.document import Campaign
from crowdveil.errors import CampaignError
from crowdveil.standalone.checks import check_level

NOT_ANSWERED = -1
"""Code of a cell without an answer; public participation only."""


def encode(codes: Sequence[int], campaign: Campaign, level: int | None = None) -> bytes:
    """Return the body of a report.

    Args:
        codes: code of the report symbol of each cell, or `NOT_ANSWERED` where participation is public.
        campaign: campaign of the report.
        level: that the worker chose; None in a campaign without levels.

    Raises:
        CampaignError: length, symbol, level.
    """
    if not 1 <= len(codes) <= campaign.cells:
        raise CampaignError("length", f"a report has 1 to {campaign.cells} cells, not {len(codes)}.")
    with refusals():
        check_level(level, campaign.levels)
    channels = campaign.channels if level is None else campaign.channels[level : level + 1]
    width, most = campaign.symbol_bytes, max(len(channel.outputs) for channel in channels)
    mark = _mark(campaign)
    body = bytearray([] if level is None else [level])
    for code in map(int, codes):
        if code == NOT_ANSWERED and mark is not None:
            body += mark.to_bytes(width, "big")
        elif 0 <= code < most:
            body += code.to_bytes(width, "big")
        else:
            raise CampaignError("symbol", "a code is no report symbol of the campaign.")
    return bytes(body).ljust(campaign.body_bytes, b"\0")


def decode(body: bytes, campaign: Campaign, slot: int, tasks: Sequence[int]) -> tuple[int, ...]:
    """Return the code of the report symbol of each of the slot's tasks; `NOT_ANSWERED` where there is none.

    The messages of errors do not repeat the body.

    Raises:
        CampaignError: length, symbol, level.
    """
    width, level = campaign.symbol_bytes, level_of(body, campaign)
    if level is not None:
        body = body[1:]
    if any(body[len(tasks) * width :]):
        raise CampaignError("symbol", "cells beyond the tasks of the slot must be 0.")
    mark = _mark(campaign)
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


def level_of(body: bytes, campaign: Campaign) -> int | None:
    """Return the level that the worker chose, the first byte of a body; None in a campaign without levels.

    Raises:
        CampaignError: length, level.
    """
    if len(body) != campaign.body_bytes:
        raise CampaignError("length", f"a body has {campaign.body_bytes} bytes, not {len(body)}.")
    level = None if campaign.levels is None else body[0]
    with refusals():
        check_level(level, campaign.levels)
    return level


def _mark(campaign: Campaign) -> int | None:
    """Return the code that marks "not answered" in a body; None where participation is protected."""
    return 256**campaign.symbol_bytes - 1 if campaign.participation == "public" else None
