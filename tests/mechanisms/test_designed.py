"""A device trusts the integers of the channel it was given, and nothing else."""

import json

import pytest

from crowdveil.channels.alphabet import Categories, Scale
from crowdveil.channels.channel import Channel
from crowdveil.errors import CertificateError, SettingsError
from crowdveil.mechanisms import Designed, QuantizedResponse

BLOCKS = QuantizedResponse(alphabet=Scale(0, 9), epsilon=1.0, cuts=(1,)).channel()


def test_it_sends_through_the_channel_it_was_given():
    """Table, symbols, alphabet, participation and epsilon are the channel's; only the name is its own."""
    mechanism = Designed.from_channel(BLOCKS)
    channel = mechanism.channel()

    assert (BLOCKS.rows, BLOCKS.outputs, BLOCKS.inputs) == (channel.rows, channel.outputs, channel.inputs)
    assert BLOCKS.epsilon == mechanism.epsilon == mechanism.guarantee.epsilon
    assert "designed" == channel.mechanism


def test_mechanisms_of_the_same_integers_are_equal():
    """A certificate that was written and read again makes an equal mechanism, and the text keeps out the integers."""
    mechanism = Designed.from_channel(BLOCKS)
    again = Designed.from_certificate(json.dumps(mechanism.channel().certificate()))

    assert mechanism == again
    assert str(BLOCKS.rows[0][0]) not in repr(mechanism)


def test_a_damaged_certificate_is_refused():
    """A device that is handed a changed table does not use it."""
    sealed = Designed.from_channel(BLOCKS).channel().certificate()
    sealed["rows"][0][0] += 1

    with pytest.raises(CertificateError, match="hash"):
        Designed.from_certificate(json.dumps(sealed))


def test_a_table_of_another_denominator_is_refused():
    """Devices sample tables over 2^48 only; the hint names what rounds another one."""
    coin = Channel(Categories(("no", "yes")), "public", ("no", "yes"), ((3, 1), (1, 3)))

    with pytest.raises(SettingsError, match="from_probabilities"):
        Designed.from_channel(coin)


def test_a_channel_without_protection_is_refused():
    """A table with a zero, or with a huge ratio, has an epsilon that no mechanism accepts."""
    labels = Categories(("no", "yes"))
    half = 1 << 47
    skewed = ((2 * half - 1, 1), (half, half))

    with pytest.raises(SettingsError, match="epsilon must be in"):
        Designed.from_channel(Channel.identity(labels, "public"))
    with pytest.raises(SettingsError, match="epsilon must be in"):
        Designed(alphabet=labels, participation="public", outputs=("no", "yes"), rows=skewed)


def test_a_table_that_is_no_channel_is_refused():
    """Rows must fit inputs and outputs."""
    with pytest.raises(CertificateError, match="shape"):
        Designed(alphabet=Scale(0, 3), outputs=BLOCKS.outputs, rows=BLOCKS.rows)
