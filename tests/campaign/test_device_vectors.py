"""The shared vectors through the library: bodies, refused campaigns and parts, tokens, links and receipts."""

import numpy as np
import pytest

from crowdveil.campaign.assignment_part import AssignmentPart
from crowdveil.campaign.document import Campaign, digest_of
from crowdveil.campaign.receipt import make_receipt
from crowdveil.campaign.report_body import NOT_ANSWERED, decode, level_of
from crowdveil.campaign.token import Link, Token, token_hash
from crowdveil.errors import CampaignError, CertificateError
from tests.campaign.builders import body_of
from tests.device_vectors import Replayed, read_vectors


def vector_id(vector):
    """Return the name of a vector."""
    return vector["name"]


@pytest.mark.parametrize("vector", read_vectors("campaigns.json"), ids=vector_id)
def test_bodies(vector):
    """The answers and random bytes of each vector give its body through the library's channels."""
    campaign, slot = Campaign.from_bytes(vector["campaign"].encode()), vector["slot"]
    part = AssignmentPart.from_bytes(vector["parts"][slot // 100].encode(), campaign, slot // 100)
    level = vector.get("level")
    source, codes = Replayed(bytearray.fromhex(vector["random"])), []
    for task, answer in zip(part.tasks(slot), vector["answers"], strict=True):
        channel = campaign.channel_of(slot, task, level)
        null = channel.alphabet.size if channel.participation == "protected" else 0
        drawn = int(channel.sample(np.array([null if answer is None else answer]), source)[0])
        codes.append(NOT_ANSWERED if answer is None and channel.participation == "public" else drawn)

    assert vector["campaign_name"] == campaign.name
    assert vector["tasks"] == list(part.tasks(slot))
    assert vector["body"] == body_of(codes, campaign, level).hex()
    assert tuple(codes) == decode(bytes.fromhex(vector["body"]), campaign, slot, vector["tasks"])
    assert level == level_of(bytes.fromhex(vector["body"]), campaign)


@pytest.mark.parametrize("vector", read_vectors("refused_campaigns.json"), ids=vector_id)
def test_campaigns_are_refused(vector):
    """Each altered campaign is refused with one of the stated defects."""
    with pytest.raises((CampaignError, CertificateError)) as refusal:
        Campaign.from_bytes(vector["campaign"].encode())

    assert refusal.value.defect in vector["defects"]


@pytest.mark.parametrize("vector", read_vectors("refused_parts.json"), ids=vector_id)
def test_assignment_parts_are_refused(vector):
    """Each altered assignment part is refused with one of the stated defects."""
    campaign = Campaign.from_bytes(vector["campaign"].encode())

    with pytest.raises(CampaignError) as refusal:
        AssignmentPart.from_bytes(vector["part"].encode(), campaign, 0)

    assert refusal.value.defect in vector["defects"]


@pytest.mark.parametrize("vector", read_vectors("tokens.json"), ids=vector_id)
def test_tokens_links_and_receipts(vector):
    """Token, hash, link and receipt are those of the vector."""
    token, body, key = (
        Token.from_text(vector["token"]),
        bytes.fromhex(vector["body"]),
        bytes.fromhex(vector["receipt_key"]),
    )
    receipt = make_receipt(key, vector["campaign"], vector["report"], body)
    url = vector["link"].partition("/a/")[0]

    assert vector["slot"] == token.slot
    assert vector["token_sha256"] == token_hash(digest_of(vector["campaign"]), token).hex()
    assert vector["link"] == Link(url, vector["campaign"], token).text
    assert vector["link_without_service"].endswith(Link(None, vector["campaign"], token).text)
    assert vector["receipt"].encode() == receipt
