"""k-ary randomized response with NULL as one more label (Sun et al. 2018, section IV-B, equation 8).

It includes the one-layer mechanism (Li et al. 2018, Definition 5.1, Algorithm 1 and Theorem 6.2), which has the same
channel and is parameterized by the flip probability.
"""

import math
from dataclasses import dataclass, replace
from functools import cache
from typing import ClassVar, Self, final

from crowdveil.channels.alphabet import Alphabet
from crowdveil.channels.channel import DENOMINATOR, Channel, exp_rounded_down
from crowdveil.channels.guarantee import Participation
from crowdveil.errors import SettingsError
from crowdveil.mechanisms.base import ChannelMechanism


@final
@dataclass(frozen=True, slots=True, kw_only=True)
class RandomizedResponse(ChannelMechanism):
    """Report the answer with probability e^epsilon / (S - 1 + e^epsilon), any other symbol with equal probability.

    The S symbols are the labels and, if participation is protected, NULL. With public participation and two labels
    this is Wang & Xu's equation (9). The integer table keeps `flip` = ceil(2^48 / (S - 1 + e^epsilon)) off the
    diagonal, so its column ratio never exceeds e^epsilon.

    >>> from crowdveil import Categories
    >>> mechanism = RandomizedResponse(alphabet=Categories(("no", "yes")), epsilon=1.0)
    >>> round(mechanism.guarantee.epsilon, 6)
    1.0
    """

    name: ClassVar[str] = "randomized-response"
    alphabet: Alphabet
    epsilon: float
    participation: Participation = "protected"

    def __post_init__(self) -> None:
        self._require_valid_parameters()

    def channel(self) -> Channel:
        """Return the exact channel; inputs and outputs are the same symbols."""
        return _randomized_response_channel(self.alphabet, self.epsilon, self.participation)


@cache
def _randomized_response_channel(alphabet: Alphabet, epsilon: float, participation: Participation) -> Channel:
    symbols = alphabet.names + (("NULL",) if participation == "protected" else ())
    others = len(symbols) - 1
    flip = -(-DENOMINATOR // (others + exp_rounded_down(epsilon)))
    keep = DENOMINATOR - others * flip
    rows = tuple(tuple(keep if i == j else flip for j in range(len(symbols))) for i in range(len(symbols)))
    return Channel(alphabet, participation, symbols, rows, RandomizedResponse.name)


def symbol_count(alphabet: Alphabet, participation: Participation) -> int:
    """Return s, the number of symbols of a cell: the labels, and NULL if participation is protected."""
    return alphabet.size + (participation == "protected")


def flip_probability_for_epsilon(epsilon: float, symbols: int) -> float:
    """Return the flip probability (s - 1) / (e^epsilon + s - 1) of Theorem 6.2."""
    return (symbols - 1) / (math.exp(epsilon) + symbols - 1)


def epsilon_for_flip(flip_probability: float, symbols: int) -> float:
    """Return epsilon = |ln((1 - flip)(s - 1) / flip)| of Theorem 6.2, for a flip probability in (0, 1)."""
    return abs(math.log((1 - flip_probability) * (symbols - 1) / flip_probability))


@final
@dataclass(frozen=True, slots=True, kw_only=True)
class OneLayer(ChannelMechanism):
    """Keep the answer with probability 1 - flip_probability, else send one of the s - 1 other symbols uniformly.

    With flip_probability = (s - 1) / (e^epsilon + s - 1) this is k-ary randomized response, with the same integer
    table. NULL is one of the s symbols if participation is protected (extension of Sun et al.).
    """

    name: ClassVar[str] = "one-layer"
    alphabet: Alphabet
    epsilon: float
    participation: Participation = "protected"

    def __post_init__(self) -> None:
        self._require_valid_parameters()

    @classmethod
    def from_flip_probability(
        cls, *, alphabet: Alphabet, flip_probability: float, participation: Participation = "protected"
    ) -> Self:
        """Return the mechanism with the paper's flip probability p^f instead of epsilon.

        Raises:
            SettingsError: the flip probability is not in (0, (s - 1) / s).
        """
        symbols = symbol_count(alphabet, participation)
        if not 0 < flip_probability < (symbols - 1) / symbols:
            raise SettingsError(
                f"flip_probability must be in (0, {symbols - 1}/{symbols}) with {symbols} symbols",
                value=flip_probability,
                hint="At the upper end reports hold no information, at 0 they are the answers.",
            )
        epsilon = epsilon_for_flip(flip_probability, symbols)
        return cls(alphabet=alphabet, epsilon=epsilon, participation=participation)

    @property
    def flip_probability(self) -> float:
        """Probability p^f that a report differs from the answer."""
        return flip_probability_for_epsilon(self.epsilon, symbol_count(self.alphabet, self.participation))

    def channel(self) -> Channel:
        """Return the exact channel, that of randomized response at the same epsilon."""
        response = RandomizedResponse(alphabet=self.alphabet, epsilon=self.epsilon, participation=self.participation)
        return replace(response.channel(), mechanism=self.name)
