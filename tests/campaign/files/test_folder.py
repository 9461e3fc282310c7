"""Campaign folders, parts of the assignment, relays, and their batches."""

import json
from collections import Counter
from dataclasses import asdict, replace
from itertools import permutations
from pathlib import Path
from typing import Any

import pytest
from jsonschema import Draft202012Validator

from crowdveil.campaign.files.folder import CampaignFolder, TokenEntry, parse_tokens, tokens_bytes
from crowdveil.campaign.rules import report as module
from crowdveil.campaign.rules.assignment_part import AssignmentPart, split_assignment
from crowdveil.campaign.rules.canonical_json import canonical_bytes
from crowdveil.campaign.rules.document import Campaign, Groups, Relay
from crowdveil.campaign.rules.report import make_batches, parse_batch, part_bytes
from crowdveil.campaign.rules.token import token_hash
from crowdveil.errors import CampaignError
from crowdveil.standalone.checks import ClaimLog, check_campaign
from crowdveil.standalone.verification import verify
from tests.campaign.builders import PUBLIC_KEY, build_campaign, response
from tests.chi_square import chi_square_p_value

BUILT = build_campaign(assignment=[[slot % 4] for slot in range(150)])
ENTRIES = [TokenEntry(token.slot, token_hash(BUILT.campaign.digest, token)) for token in BUILT.tokens]


@pytest.fixture
def folder(tmp_path):
    """Folder of a campaign of 150 slots."""
    return CampaignFolder(BUILT.write(tmp_path))


def test_a_folder_gives_back_the_campaign(folder):
    """Campaign, parts, tasks and tokens are those that were written."""
    assert BUILT.campaign.name == folder.campaign.name
    assert BUILT.parts[1].to_bytes() == folder.checked_part_bytes(1)
    assert BUILT.parts[1] == folder.part(1)
    assert (149 % 4,) == folder.tasks(149)
    assert tuple(ENTRIES) == folder.tokens


def test_a_changed_part_is_refused(folder):
    """A part of a folder that is not the campaign's is refused."""
    (folder.path / "parts" / "0001.json").write_bytes(BUILT.parts[0].to_bytes())
    with pytest.raises(CampaignError, match="hash"):
        folder.checked_part_bytes(1)


def test_a_missing_file_is_named(tmp_path):
    """A folder without a campaign is refused with the name of the file."""
    with pytest.raises(CampaignError, match=r"campaign\.json"):
        _ = CampaignFolder(tmp_path).campaign


def test_a_picture_is_checked(folder):
    """A picture is read by its hash; another content or name is refused."""
    digest = "e3b0c44298fc1c149afbf4c8996fb92427ae41e4649b934ca495991b7852b855"
    path = folder.path / "pictures" / digest
    path.parent.mkdir()
    path.write_bytes(b"")

    assert b"" == folder.picture(digest)
    path.write_bytes(b"x")
    for name in (digest, "../campaign.json"):
        with pytest.raises(CampaignError, match="picture"):
            folder.picture(name)


@pytest.mark.parametrize(
    "changes",
    [
        {"format": "crowdveil-tokens/2"},
        {"campaign": "A" * 43},
        {"tokens": 1},
        {"tokens": [{"slot": 0, "hash": "0" * 64}]},
        {"tokens": [{"slot": True, "hash": "0" * 64, "revoked": False}]},
        {"tokens": [{"slot": 150, "hash": "0" * 64, "revoked": False}]},
        {"tokens": [{"slot": 0, "hash": "0" * 63, "revoked": False}]},
        {"tokens": [{"slot": 0, "hash": digit * 64, "revoked": False} for digit in "01"]},
        {"tokens": [{"slot": slot, "hash": "0" * 64, "revoked": False} for slot in (0, 1)]},
    ],
)
def test_malformed_tokens_are_refused(changes):
    """Tokens of another form, another campaign, or two valid ones of one slot, are refused."""
    fields = json.loads(tokens_bytes(ENTRIES, BUILT.campaign))
    with pytest.raises(CampaignError) as caught:
        parse_tokens(canonical_bytes({**fields, **changes}), BUILT.campaign)

    assert "tokens" == caught.value.defect


def test_a_slot_may_have_revoked_tokens():
    """Besides its valid token a slot may have revoked ones."""
    entries = (TokenEntry(0, bytes(32), revoked=True), *ENTRIES)

    assert entries == parse_tokens(tokens_bytes(entries, BUILT.campaign), BUILT.campaign)


def test_parts_cover_all_slots():
    """250 slots make three parts; each slot's tasks are ascending and found by its number."""
    lists = [[slot % 4, (slot + 1) % 4] for slot in range(250)]

    built = build_campaign(assignment=lists)

    assert [100, 100, 50] == [len(part.lists) for part in built.parts]
    assert list(built.parts) == [
        AssignmentPart.from_bytes(part.to_bytes(), built.campaign, number) for number, part in enumerate(built.parts)
    ]
    assert [tuple(sorted(tasks)) for tasks in lists] == [built.tasks(slot) for slot in range(250)]


def test_a_part_knows_its_own_slots_only():
    """A slot of another part is refused."""
    (part,) = split_assignment([[0], [1]])
    for slot in (-1, 2):
        with pytest.raises(CampaignError, match="slot"):
            part.tasks(slot)


def test_another_part_is_refused():
    """A part of another campaign, another number, or a number that does not exist, is refused."""
    built = build_campaign(assignment=[[slot % 4] for slot in range(101)])
    data = built.parts[0].to_bytes()
    for number, changed, defect in ((0, data + b" ", "hash"), (1, data, "hash"), (2, data, "part"), (-1, data, "part")):
        with pytest.raises(CampaignError) as caught:
            AssignmentPart.from_bytes(changed, built.campaign, number)

        assert defect == caught.value.defect


RELAY = Relay("The library", PUBLIC_KEY, 2, "report")
SCHEMA = json.loads((Path(__file__).parents[3] / "docs" / "reference" / "schemas" / "campaign.json").read_text("utf-8"))


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
    assert asdict(RELAY) == check_campaign(campaign.to_bytes(), ClaimLog())[0]["relay"]
    other = {**data, "relay": {**data["relay"], "operator": "Somebody else"}}
    assert Campaign.from_bytes(canonical_bytes(data)).name != Campaign.from_bytes(canonical_bytes(other)).name


DAMAGED: dict[str, dict[str, Any]] = {
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


DRAWS = 6_000
FALSE_ALARM = 1e-6
"""Probability that a right shuffle fails the test of orders."""


def relayed(unit: str, *, least_batch: int = 2, slots: int = 6, tasks: int = 2) -> Campaign:
    """Return a campaign with a relay whose key nobody has."""
    relay = Relay("The library", PUBLIC_KEY, least_batch, unit)  # type: ignore[arg-type]
    return build_campaign(slots=slots, tasks=tasks, content={"relay": relay}).campaign


def sealed(campaign: Campaign, count: int) -> list[bytes]:
    """Return bytes in place of sealed reports, each part of which names its worker and task."""
    size = part_bytes(campaign)
    parts = range(campaign.sent_bytes // size)
    return [b"".join((bytes((worker, part)) * size)[:size] for part in parts) for worker in range(count)]


@pytest.mark.parametrize("unit", ["report", "cell"])
def test_a_batch_has_every_report_once(unit: str) -> None:
    """The parts of each task are those of all reports; the header has the number of reports and no more."""
    campaign = relayed(unit)
    (data,) = make_batches(campaign, sealed(campaign, 5))
    columns = parse_batch(campaign, data)

    head = b'{"campaign":"%s","format":"crowdveil-batch/1","reports":5}' % campaign.name.encode()
    assert head == data.split(b"\n")[0]
    assert (1 if unit == "report" else 2) == len(columns)
    for task, column in enumerate(columns):
        assert [(worker, task) for worker in range(5)] == sorted((part[0], part[1]) for part in column)


@pytest.mark.slow
@pytest.mark.parametrize("unit", ["report", "cell"])
def test_orders_are_uniform_and_independent_by_task(unit: str) -> None:
    """Over 6,000 batches of 3 reports, all orders of the last task given those of the first are equally frequent."""
    campaign = relayed(unit)
    reports = sealed(campaign, 3)
    seen: Counter[tuple[tuple[int, ...], ...]] = Counter()
    for _ in range(DRAWS):
        columns = parse_batch(campaign, make_batches(campaign, reports)[0])
        seen[tuple(tuple(part[0] for part in column) for column in columns)] += 1
    orders = list(permutations(range(3)))
    cases = [(one,) for one in orders] if unit == "report" else [(one, other) for one in orders for other in orders]

    assert chi_square_p_value([seen[case] for case in cases], [1 / len(cases)] * len(cases)) > FALSE_ALARM
    assert DRAWS == sum(seen[case] for case in cases)


def test_a_shuffler_that_keeps_the_order_is_caught(monkeypatch: pytest.MonkeyPatch) -> None:
    """The test of orders rejects a relay that forwards reports as they came."""
    campaign = relayed("report")

    class Keeping:
        def shuffle(self, _: list[bytes]) -> None:
            """Leave the order as it is."""

    monkeypatch.setattr("secrets.SystemRandom", Keeping)
    first = Counter(parse_batch(campaign, make_batches(campaign, sealed(campaign, 3))[0])[0][0][0] for _ in range(200))

    assert chi_square_p_value([first[worker] for worker in range(3)], [1 / 3] * 3) < FALSE_ALARM


def test_fewer_reports_than_the_least_batch_are_held_back() -> None:
    """Below the least batch there is no batch, whatever the campaign's other least number."""
    campaign = relayed("report", least_batch=4)

    assert [] == make_batches(campaign, sealed(campaign, 3))
    assert 1 == len(make_batches(campaign, sealed(campaign, 4)))


def test_large_campaigns_are_spread_over_batches_that_keep_the_least_number(monkeypatch: pytest.MonkeyPatch) -> None:
    """Above the largest size there are several batches, and each has the least number of reports."""
    campaign = relayed("report", least_batch=2)
    monkeypatch.setattr(module, "MAX_BATCH_BYTES", campaign.sent_bytes)
    found = [parse_batch(campaign, data) for data in make_batches(campaign, sealed(campaign, 5))]

    assert [2, 3] == sorted(len(columns[0]) for columns in found)
    assert list(range(5)) == sorted(part[0] for columns in found for part in columns[0])


def test_other_batches_are_refused() -> None:
    """A batch of one, of another campaign, of another length, or with another header is refused."""
    campaign, other = relayed("report"), relayed("report")
    (data,) = make_batches(campaign, sealed(campaign, 2))
    head, _, parts = data.partition(b"\n")
    one = head.replace(b'"reports":2', b'"reports":1') + b"\n" + parts[: campaign.sent_bytes]

    foreign = make_batches(other, sealed(other, 2))[0]
    for damaged in (one, data[:-1], data + b"\0", parts, head, b"{}\n" + parts, b"", foreign):
        with pytest.raises(CampaignError):
            parse_batch(campaign, damaged)
