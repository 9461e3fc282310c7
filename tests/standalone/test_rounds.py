"""A later round on the device of one file: it says the sum over rounds, and refuses rounds of another campaign."""

from dataclasses import replace
from datetime import date
from decimal import Decimal

import pytest

from crowdveil.campaign.canonical import canonical_bytes
from crowdveil.campaign.document import EarlierRound, Groups
from crowdveil.channels.alphabet import Categories
from crowdveil.standalone import device as one_file
from crowdveil.standalone.checks import Claims, Refused, check_campaign, epsilon, require_earlier, shown
from crowdveil.standalone.device import Device, read_ledger
from crowdveil.standalone.verification import verify
from tests.campaign.builders import build_campaign, response
from tests.device_vectors import read_vectors

ANSWERS = Categories(("no", "yes"))
FIRST = build_campaign(channels=[response(ANSWERS, 1.0)], url=None, assignment=[[0, 1], [2, 3], [0, 3]])
BEFORE = FIRST.campaign.channels[0].ratio
assert BEFORE is not None
STATED = EarlierRound(FIRST.campaign.name, 2, *BEFORE.as_integer_ratio())


def later(*earlier):
    """Return a second round with two groups of tasks of epsilon 0.5 and 0.25."""
    groups = Groups(((0, 1),), (0, 1, 0, 1), (0, 0, 0))
    channels = [response(ANSWERS, 0.5), response(ANSWERS, 0.25)]
    lists = [[2, 3], [0, 1], [1, 2]]
    return build_campaign(
        channels=channels, url=None, assignment=lists, groups=groups, content={"earlier": earlier or (STATED,)}
    )


def answered(built, slot, folder):
    """Answer a campaign with "yes" throughout, and keep the report as a file."""
    with Device(built.link(slot).text, folder / "home", built.write(folder / built.campaign.name)) as device:
        device.open()
        text = one_file.promise(device)
        for cell in range(len(device.tasks)):
            device.answer(cell, "yes")
        device.sample()
        device.save_report(folder)
    return text


def test_a_later_round_says_the_sum_and_the_ledger_holds_both(tmp_path):
    """The device says the bound over both rounds; the ledger's exact sum is below it only by what was not asked."""
    answered(FIRST, 0, tmp_path)
    text = answered(later(), 0, tmp_path)
    lines = read_ledger(tmp_path / "home")
    tables = [response(ANSWERS, one).ratio.as_integer_ratio() for one in (0.5, 0.25)]
    exact = epsilon({"cells": 1, "numerator": a, "denominator": b} for a, b in tables)

    assert "This is round 2" in text
    assert "With all answers to those: epsilon at most 2.750." in text
    assert "epsilon 0.500 for a single answer, 0.750 for all of yours" in text
    assert "With all that this computer promised before: 2.750 to curators without a service" in text
    assert abs(epsilon(lines) - epsilon([line for line in lines if line["cells"] == 2]) - exact) < Decimal("1e-25")
    assert Decimal("2.749") < epsilon(lines) <= Decimal("2.75")


def test_a_worker_who_answers_only_the_later_round_loses_that_round_alone(tmp_path):
    """Without an earlier report on this computer the ledger holds the later round only."""
    answered(later(), 1, tmp_path)

    assert "0.750" == shown(epsilon(read_ledger(tmp_path / "home")))


@pytest.mark.parametrize(
    "stated",
    [
        EarlierRound(FIRST.campaign.name, 1, STATED.numerator, STATED.denominator),
        EarlierRound(FIRST.campaign.name, 2, STATED.numerator - 1, STATED.denominator),
    ],
)
def test_a_later_round_that_states_less_than_was_promised_is_refused(tmp_path, stated):
    """A device that answered the round before refuses a later one that hides some of its loss, before it asks."""
    answered(FIRST, 0, tmp_path)
    before = read_ledger(tmp_path / "home")

    with pytest.raises(Refused, match="not a later round of the campaign that it names") as refusal:
        answered(later(stated), 0, tmp_path)

    assert "earlier" == refusal.value.name
    assert before == read_ledger(tmp_path / "home")


@pytest.mark.parametrize("vector", read_vectors("rounds.json"), ids=lambda vector: vector["name"])
def test_the_ledger_decides_on_a_later_round(vector):
    """The earlier rounds of a later one went to the same host, and cost at most what the later one states."""
    fields, _ = check_campaign(vector["campaign"].encode(), Claims())
    if vector["accepted"]:
        require_earlier(fields, vector["lines"], vector["host"])
        return
    with pytest.raises(Refused) as refusal:
        require_earlier(fields, vector["lines"], vector["host"])

    assert "earlier" == refusal.value.name


@pytest.mark.parametrize("earlier", [[], [{}], [1], None])
def test_a_broken_list_of_rounds_is_false_beside_any_campaign(earlier):
    """The check of a file names the defect, whatever lies in the folder of the round before."""
    data = canonical_bytes({**later().campaign.fields, "earlier": earlier})

    assert not verify(data, earlier=FIRST.campaign.to_bytes()).holds


@pytest.mark.parametrize(("tasks", "epsilon", "holds"), [(4, 1.0, True), (5, 1.0, False), (4, 0.9, False)])
def test_the_round_before_has_the_same_tasks_and_the_stated_loss(tasks, epsilon, holds):
    """A campaign that a later round names as the one before is compared with what the later one says of it."""
    before = build_campaign(
        channels=[response(ANSWERS, epsilon)], url=None, tasks=tasks, assignment=[[0, 1], [2, 3], [0, 3]]
    ).campaign
    named = later(replace(STATED, campaign=before.name)).campaign.to_bytes()

    assert holds == verify(named, earlier=before.to_bytes()).holds
    assert not verify(named, earlier=FIRST.campaign.to_bytes()).holds


def test_the_round_before_protects_participation_alike():
    """A protected round after one with public participation would promise too much of both."""
    before = build_campaign(
        channels=[response(ANSWERS, 1.0, "public")], url=None, assignment=[[0, 1], [2, 3], [0, 3]]
    ).campaign
    named = EarlierRound(before.name, 2, *before.channels[0].ratio.as_integer_ratio())

    assert not verify(later(named).campaign.to_bytes(), earlier=before.to_bytes()).holds


def test_a_campaign_in_one_round_has_the_same_bytes_as_before():
    """The field is absent from a first round."""
    assert b"earlier" not in canonical_bytes(build_campaign(closes=date(2099, 1, 1)).campaign.fields)
