"""Mechanism of a given integer channel, for example one designed for an objective (`crowdveil.design.channel_design`).

The device holds the integers and computes epsilon from them.
"""

from dataclasses import dataclass, field
from functools import cache
from typing import ClassVar, Self, final

from crowdveil.channels.alphabet import Alphabet
from crowdveil.channels.certificate import DESIGNED
from crowdveil.channels.channel import DENOMINATOR, Channel
from crowdveil.channels.guarantee import Participation, require_epsilon
from crowdveil.errors import SettingsError
from crowdveil.mechanisms.base import ChannelMechanism
from crowdveil.mechanisms.settings import Settings
from crowdveil.randomness import WORD_BITS

Rows = tuple[tuple[int, ...], ...]


@final
@dataclass(frozen=True, slots=True, kw_only=True)
class Designed(ChannelMechanism):
    """Sample a given integer channel.

    Attributes:
        alphabet: possible answers.
        participation: "protected" or "public".
        outputs: names of the report symbols, often sets of labels: `0`, `1..9`, `NULL`.
        rows: integers indexed [input, output], every row summing to 2**48.
        epsilon: exact privacy loss of one cell in nats, computed from the integers.

    Raises:
        CertificateError: the table is not a channel.
        SettingsError: its denominator is not 2^48, or its epsilon is outside the accepted range.

    >>> from crowdveil import Categories
    >>> from crowdveil.mechanisms import RandomizedResponse
    >>> channel = RandomizedResponse(alphabet=Categories(("no", "yes")), epsilon=1.0).channel()
    >>> round(Designed.from_channel(channel).guarantee.epsilon, 6)
    1.0
    """

    name: ClassVar[str] = DESIGNED
    alphabet: Alphabet
    epsilon: float = field(init=False)
    participation: Participation = "protected"
    outputs: tuple[str, ...]
    rows: Rows = field(repr=False)

    def __post_init__(self) -> None:
        self._require_valid_alphabet()
        channel = self.channel()
        if channel.denominator != DENOMINATOR:
            raise SettingsError(
                f"a designed channel needs the denominator 2**{WORD_BITS}",
                value=channel.denominator,
                hint="Channel.from_probabilities rounds a table to it.",
            )
        object.__setattr__(self, "epsilon", require_epsilon(channel.epsilon))

    @classmethod
    def from_settings(cls, settings: Settings, alphabet: Alphabet, *, tasks: int) -> Self:
        """Return the mechanism of the channel designed for the settings' objective."""
        return cls.from_channel(settings.designed_channel(alphabet, settings.required_epsilon(cls.name)))

    @classmethod
    def from_channel(cls, channel: Channel) -> Self:
        """Return the mechanism of `channel`."""
        return cls(
            alphabet=channel.alphabet, participation=channel.participation, outputs=channel.outputs, rows=channel.rows
        )

    @classmethod
    def from_certificate(cls, text: str | bytes) -> Self:
        """Return the mechanism of a channel's certificate, after all checks of `Channel.from_certificate`.

        Raises:
            CertificateError: a check failed.
        """
        return cls.from_channel(Channel.from_certificate(text))

    def channel(self) -> Channel:
        """Return the channel of the table, under this mechanism's name."""
        return _channel(self.alphabet, self.participation, self.outputs, self.rows)


@cache
def _channel(alphabet: Alphabet, participation: Participation, outputs: tuple[str, ...], rows: Rows) -> Channel:
    return Channel(alphabet, participation, outputs, rows, Designed.name)
