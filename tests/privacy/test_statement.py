"""The statement of privacy of certificates and campaigns names mechanism, parameters, epsilons and exclusions."""

import re

import pytest

from crowdveil.campaign.document import Campaign
from crowdveil.channels.alphabet import Categories
from crowdveil.channels.certificate import simulation_mark
from crowdveil.channels.channel import Channel
from crowdveil.channels.channel_table import ChannelTable
from crowdveil.channels.guarantee import Participation
from crowdveil.mechanisms.randomized_response import RandomizedResponse
from crowdveil.privacy.statement import (
    MARKED,
    UNPROTECTED,
    campaign_statement,
    channel_statement,
    statement_sentences,
    statement_text,
)
from tests.campaign.builders import build_campaign, response

LABELS = Categories(("no", "yes"))


def channel(participation: Participation = "protected") -> Channel:
    """Return a channel of randomized response with epsilon 1."""
    return RandomizedResponse(alphabet=LABELS, epsilon=1.0, participation=participation).channel()


def test_a_certificate_has_no_epsilon_per_worker_without_their_number() -> None:
    """Epsilon per worker needs the number of answers; the text says so."""
    alone, counted = channel_statement(channel()), channel_statement(channel(), answers=7)

    assert None is alone.per_worker
    assert "times the number of asked tasks" in " ".join(statement_sentences(alone))
    assert counted.per_worker is not None
    assert pytest.approx(7.0) == counted.per_worker.epsilon
    assert "7 for all answers of one worker (at most 7)" in " ".join(statement_sentences(counted))


@pytest.mark.parametrize(
    ("participation", "kept", "answers"),
    [("protected", "57.6 %", 'besides "no answer"'), ("public", "73.1 %", "2 possible answers, and 2")],
)
def test_parameters_follow_from_the_table(participation: Participation, kept: str, answers: str) -> None:
    """The probability of the unchanged answer, rounded down, and the sizes stand in the paragraph."""
    text = " ".join(statement_sentences(channel_statement(channel(participation))))

    assert f"reported unchanged with a probability of at least {kept}" in text
    assert answers in text
    assert f"(participation {participation})" in text


def test_a_channel_without_a_guarantee_has_its_reason() -> None:
    """A simulation, and a table with unprotected answers, name no epsilon."""
    marked = Channel(LABELS, "protected", channel().outputs, channel().rows, "laplace" + simulation_mark(3))
    bare = ChannelTable.by_task((channel("public"), Channel.identity(LABELS, "public")), {"a": 0, "b": 1})

    for one, reason in ((marked, MARKED), (bare, UNPROTECTED)):
        statement = channel_statement(one)
        assert ("none", reason) == (statement.status, statement.reason)
        assert None is re.search(r"epsilon\s+[0-9]", statement_text(statement))


def test_a_campaign_has_its_own_guarantee() -> None:
    """Epsilon per worker is that of the campaign, for its number of answers; name and certificate are given."""
    campaign: Campaign = build_campaign(channels=[response(LABELS, 0.5)], tasks=6).campaign
    statement = campaign_statement(campaign)

    assert statement.per_answer is not None
    assert statement.per_worker is not None
    assert (campaign.epsilon, campaign.worker_epsilon) == (statement.per_answer.epsilon, statement.per_worker.epsilon)
    assert (campaign.name, campaign.cells) == (statement.campaign, statement.cells)
    assert "which tasks were assigned" in " ".join(statement.not_covered)
    assert "every further report, in another campaign too, adds" in " ".join(statement.not_covered)


def test_the_paragraph_is_one() -> None:
    """The text has the sentences as one paragraph, then facts, the digest and exclusions."""
    statement = channel_statement(channel(), sha256="ab" * 32)
    parts = statement_text(statement, (("Days (UTC)", "today"),)).split("\n\n")

    assert " ".join(statement_sentences(statement)) == " ".join(parts[1].split())
    assert f"Days (UTC): today\nCertificate, SHA-256: {'ab' * 32}" == parts[2]
    assert parts[3].startswith("Not covered:\n- ")
