"""Exact worst ratio of channels, against enumeration."""

import math
from fractions import Fraction

import pytest

from crowdveil.channels.alphabet import Categories, Scale
from crowdveil.channels.channel import Channel
from crowdveil.errors import SettingsError
from crowdveil.mechanisms import Laplace, RandomizedResponse
from crowdveil.privacy.audit.exact_loss import exact_loss, worst_loss
from tests.mechanisms.examples import EXAMPLES

CHANNELS = [channel for one in EXAMPLES if (channel := one.channel()) is not None]


@pytest.mark.parametrize("channel", CHANNELS, ids=lambda channel: f"{channel.mechanism}-{channel.participation}")
def test_the_worst_pair_has_the_worst_ratio_of_the_table(channel):
    """Over values and participation the exact loss is the channel's epsilon, and the named pair attains it."""
    losses = [exact_loss(channel, "value")]
    if channel.protects_participation:
        losses.append(exact_loss(channel, "participation"))
    worst = max(losses, key=lambda loss: loss.epsilon)
    rows = [channel.rows[channel.inputs.index(name)] for name in (worst.first, worst.second)]
    report = channel.outputs.index(worst.report)

    assert channel.epsilon == worst.epsilon
    assert channel.ratio == Fraction(rows[0][report], rows[1][report])


def test_neighbours_restrict_the_pairs():
    """A laplace channel with a public replacement of NULL in the middle loses half as much about participation."""
    channel = Laplace(alphabet=Scale(0, 4), epsilon=2.0, null_value=2.0).channel()

    assert exact_loss(channel, "value").epsilon == pytest.approx(2.0, rel=1e-9)
    assert exact_loss(channel, "participation").epsilon == pytest.approx(1.0, rel=1e-9)


def test_a_worker_loses_the_sum_of_the_cells():
    """All cells can have their worst report at once."""
    channel = RandomizedResponse(alphabet=Categories(("no", "yes")), epsilon=1.0).channel()

    assert exact_loss(channel, "worker", 7).epsilon == pytest.approx(7.0, rel=1e-9)
    assert worst_loss([channel, channel], "worker", 7).epsilon == exact_loss(channel, "worker", 7).epsilon


def test_a_report_that_rules_an_answer_out_has_infinite_loss():
    """The identity channel."""
    loss = exact_loss(Channel.identity(Categories(("no", "yes")), "public"))

    assert math.isinf(loss.epsilon)
    assert {loss.first, loss.second} == {"no", "yes"}


def test_public_participation_has_no_neighbours_in_participation():
    """Nothing is claimed, so nothing is compared."""
    channel = RandomizedResponse(alphabet=Categories(("no", "yes")), epsilon=1.0, participation="public").channel()

    with pytest.raises(SettingsError, match="participation is public"):
        exact_loss(channel, "participation")
