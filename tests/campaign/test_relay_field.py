"""Campaigns with a relay: the field is part of the hash; readers refuse one under which a report has a name."""

import json
from dataclasses import asdict, replace
from pathlib import Path
from typing import Any

import pytest
from jsonschema import Draft202012Validator

from crowdveil.campaign.canonical import canonical_bytes
from crowdveil.campaign.document import Campaign, Groups, Relay
from crowdveil.errors import CampaignError
from crowdveil.standalone.checks import Claims, check_campaign
from crowdveil.standalone.verification import verify
from tests.campaign.builders import PUBLIC_KEY, build_campaign, response

RELAY = Relay("The library", PUBLIC_KEY, 2, "report")
SCHEMA = json.loads((Path(__file__).parents[2] / "docs" / "reference" / "schemas" / "campaign.json").read_text("utf-8"))


def fields() -> dict[str, Any]:
    """Return the fields of a campaign with a relay, as JSON values."""
    data: dict[str, Any] = json.loads(build_campaign(content={"relay": RELAY}).campaign.to_bytes())
    return data


def test_the_relay_is_part_of_the_campaign() -> None:
    """It is read back, the schema has it, and another relay is another campaign; the independent check agrees."""
    campaign = build_campaign(content={"relay": RELAY}).campaign
    data = fields()

    assert campaign.relay == RELAY
    assert campaign.body_bytes + 81 == campaign.sent_bytes
    assert 4 * (1 + 81) == build_campaign(content={"relay": replace(RELAY, unit="cell")}).campaign.sent_bytes
    assert [] == list(Draft202012Validator(SCHEMA).iter_errors(data))
    assert verify(campaign.to_bytes()).holds
    assert asdict(RELAY) == check_campaign(campaign.to_bytes(), Claims())[0]["relay"]
    other = {**data, "relay": {**data["relay"], "operator": "Somebody else"}}
    assert Campaign.from_bytes(canonical_bytes(data)).name != Campaign.from_bytes(canonical_bytes(other)).name


def test_a_campaign_without_relay_is_as_before() -> None:
    """Without a relay the document has no such field, and what is sent is the body."""
    campaign = build_campaign().campaign

    assert campaign.relay is None
    assert campaign.body_bytes == campaign.sent_bytes
    assert "relay" not in json.loads(campaign.to_bytes())


DAMAGED = {
    "a batch of one": {"relay": {**asdict(RELAY), "least_batch": 1}},
    "a batch larger than the crowd": {"relay": {**asdict(RELAY), "least_batch": 4}},
    "another unit": {"relay": {**asdict(RELAY), "unit": "pair"}},
    "another suite": {"relay": {**asdict(RELAY), "suite": "none"}},
    "a compressed key": {"relay": {**asdict(RELAY), "public_key": "02" + "ab" * 32}},
    "a further field": {"relay": {**asdict(RELAY), "delay": 1}},
    "no relay": {"relay": None},
    "no address": {"url": None},
    "no deletion": {"purge_after_days": None},
    "fewer cells than tasks": {"cells": 3, "body_bytes": 3},
}


@pytest.mark.parametrize("changed", DAMAGED.values(), ids=DAMAGED)
def test_every_reader_refuses_another_relay(changed: dict[str, Any]) -> None:
    """Library and `verify` refuse what would name the worker of a report; further ones are among the shared vectors."""
    data = canonical_bytes({**fields(), **changed})

    with pytest.raises(CampaignError, match="relay"):
        Campaign.from_bytes(data)
    assert not verify(data).holds


def test_visible_gaps_and_channels_of_workers_are_refused() -> None:
    """Public participation and a channel for each group of workers would link a report to its worker."""
    groups = Groups(choice=((0,), (1,)), task_group=(0,) * 4, slot_group=(0, 1, 0))
    channels = [response(epsilon=1.0), response(epsilon=2.0)]

    with pytest.raises(CampaignError, match="gaps would link"):
        build_campaign(participation="public", content={"relay": RELAY})
    with pytest.raises(CampaignError, match="different channels"):
        build_campaign(channels=channels, groups=groups, content={"relay": RELAY})
