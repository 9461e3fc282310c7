"""Levels in the library: bodies, channels and epsilons of a campaign whose workers choose."""

import json
import math
from fractions import Fraction

import pytest

from crowdveil.campaign.report_body import decode, level_of
from crowdveil.channels.alphabet import Scale
from crowdveil.errors import CampaignError
from crowdveil.mechanisms import QuantizedResponse
from crowdveil.privacy.levels import level_guarantees
from tests.campaign.builders import LABELS, build_campaign, response

CAMPAIGN = build_campaign(channels=[response(epsilon=one) for one in (0.5, 1.0, 2.0)], content={"levels": 3}).campaign
BLOCKS = [QuantizedResponse(alphabet=Scale(0, 9), epsilon=one, cuts=cuts) for one, cuts in ((1, (5,)), (2, (2, 4, 6)))]
UNLIKE = build_campaign(channels=[one.channel() for one in BLOCKS], content={"levels": 2}).campaign
"""Levels of three and of five symbols."""


@pytest.mark.parametrize(
    ("body", "defect"),
    [
        ("01020301", "length"),
        ("0102030100", None),
        ("010203010001", "length"),
        ("0302030100", "level"),
        ("ff02030100", "level"),
        ("0104030100", "symbol"),
        ("", "length"),
    ],
    ids=["no level", "sound", "a byte too many", "too high", "255", "no symbol", "nothing"],
)
def test_other_bodies_are_refused(body, defect):
    """A body without the level, with a level outside the campaign, or with another symbol has a named defect."""
    data = bytes.fromhex(body)
    if defect is None:
        assert (2, 3, 1, 0) == decode(data, CAMPAIGN, 0, range(4))
        return
    with pytest.raises(CampaignError) as refusal:
        decode(data, CAMPAIGN, 0, range(4))

    assert defect == refusal.value.defect


@pytest.mark.parametrize("level", [3, -1, True, 1.0, "1", None])
def test_other_levels_have_no_channel(level):
    """A level outside the campaign, or of another type, has no channel."""
    with pytest.raises(CampaignError) as refusal:
        CAMPAIGN.channel_of(0, 0, level)

    assert "level" == refusal.value.defect


def test_a_symbol_of_another_level_is_refused():
    """Symbol 4 exists at the second level only."""
    assert (4, 0, 0, 0) == decode(bytes([1, 4, 0, 0, 0]), UNLIKE, 0, range(4))
    with pytest.raises(CampaignError, match="no report symbol"):
        decode(bytes([0, 4, 0, 0, 0]), UNLIKE, 0, range(4))


def test_a_campaign_without_levels_has_no_level():
    """The first byte of a report without levels is a symbol, and a level is refused."""
    plain = build_campaign().campaign

    assert level_of(bytes(4), plain) is None
    assert "levels" not in json.loads(plain.to_bytes())
    with pytest.raises(CampaignError, match="no levels"):
        plain.channel_of(0, 0, 0)


def test_the_campaign_promises_the_last_level_and_a_worker_the_own():
    """Epsilons are computed from the integer tables: the largest for the campaign, and one for each level."""
    for level, certificate in enumerate(CAMPAIGN.certificates):
        ratio = max(Fraction(max(column), min(column)) for column in zip(*certificate["rows"], strict=True))
        assert 0 <= level_guarantees(CAMPAIGN)[level].epsilon - 4 * math.log(ratio) < 1e-12

    assert CAMPAIGN.worker_epsilon == level_guarantees(CAMPAIGN)[2].epsilon
    assert CAMPAIGN.epsilon == CAMPAIGN.channels[2].epsilon
    assert LABELS.names == CAMPAIGN.labels
