"""Body of a report: one symbol per cell in a fixed number of bytes, the same length for every worker of a campaign.

Cell j holds the code of the report symbol (its index in the outputs of the cell's channel) of the worker's j-th task.
Cells beyond the load of the slot are 0. With public participation, all bits set means "not answered".
In a campaign with levels the first byte is the level that the worker chose.
"""

from collections.abc import Sequence

from crowdveil.campaign.canonical import refusals_as_campaign_errors
from crowdveil.campaign.document import Campaign
from crowdveil.errors import CampaignError
from crowdveil.standalone.checks import check_level

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
    with refusals_as_campaign_errors():
        check_level(level, campaign.levels)
    return level


def _not_answered_code(campaign: Campaign) -> int | None:
    """Return the code that marks "not answered" in a body; None where participation is protected."""
    return 256**campaign.symbol_bytes - 1 if campaign.participation == "public" else None
