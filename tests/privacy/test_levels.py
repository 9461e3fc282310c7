"""Sentences on the levels that workers choose from."""

from dataclasses import replace

import pytest

from crowdveil.privacy.levels import level_guarantees, level_sentences
from crowdveil.privacy.statement import campaign_statement, statement_sentences
from tests.campaign.builders import build_campaign, response

CHANNELS = [response(epsilon=one) for one in (0.25, 0.5)]
CAMPAIGN = build_campaign(channels=CHANNELS, slots=20, content={"levels": 2, "min_reports": 5}).campaign


def test_each_level_is_stated_with_its_own_epsilon():
    """For four tasks the levels have epsilon 1 and 2, each with how sure anyone can be, and the level is visible."""
    first, visible = level_sentences(CAMPAIGN)

    assert "level 1: epsilon 1, at most 73.2 % sure" in first
    assert "level 2: epsilon 2, at most 88.1 % sure" in first
    assert "The level that a worker chose is visible." == visible
    assert {("worker", "protected")} == {(one.unit, one.participation) for one in level_guarantees(CAMPAIGN)}


@pytest.mark.parametrize(
    ("chosen", "said"),
    [
        ((9, 5), "Chosen: 9 level 1, 5 level 2."),
        ((16, 4), "How many chose which level is not stated: fewer than 5 chose one of them."),
        ((20, 0), "How many chose which level is not stated: fewer than 5 chose one of them."),
    ],
)
def test_numbers_are_stated_only_if_each_level_has_enough(chosen, said):
    """Of all numbers but one the last would follow, so all or none are stated; 0 is not told from 4."""
    assert said == level_sentences(CAMPAIGN, chosen)[-1]


def test_a_statement_promises_the_last_level_and_names_the_choice_as_not_covered():
    """The figures for everybody are those of the last level; the choice itself is listed as not covered."""
    statement = campaign_statement(CAMPAIGN)

    assert statement.per_worker is not None
    assert CAMPAIGN.worker_epsilon == statement.per_worker.epsilon
    assert set(statement.levels) <= set(statement_sentences(statement))
    assert "The level of privacy that a worker chose: it is sent as it is." in statement.not_covered


def test_a_campaign_without_levels_says_nothing_of_them():
    """Without levels there are no sentences, no guarantees and nothing more that is not covered."""
    statement = campaign_statement(build_campaign().campaign)

    assert ((), ()) == (statement.levels, level_sentences(build_campaign().campaign))
    assert not any("level" in sentence for sentence in statement.not_covered)
    assert replace(statement, levels=()).levels == ()
