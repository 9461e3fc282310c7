"""The one-layer mechanism (Li et al. 2018, Definition 5.1, Algorithm 1 and Theorem 6.2)."""

import math
from dataclasses import dataclass, replace
from typing import ClassVar, Self, final

from crowdveil.channel import Channel
from crowdveil.errors import SettingsError
from crowdveil.guarantee import Participation, require_epsilon
from crowdveil.labels import Alphabet, Categories
from crowdveil.mechanisms.mechanism import ChannelMechanism
from crowdveil.mechanisms.randomized_response import RandomizedResponse


def symbol_count(alphabet: Alphabet, participation: Participation) -> int:
    """Return s, the number of symbols a cell can hold: the labels, and NULL where participation is protected."""
    return alphabet.size + (participation == "protected")


def flip_for_epsilon(epsilon: float, symbols: int) -> float:
    """Return the flip probability (s - 1) / (e^epsilon + s - 1) that Theorem 6.2 gives `epsilon`."""
    return (symbols - 1) / (math.exp(epsilon) + symbols - 1)


def epsilon_of_flip(flip_probability: float, symbols: int) -> float:
    """Return Theorem 6.2's epsilon, |ln((1 - flip)(s - 1) / flip)|, for a flip probability inside (0, 1)."""
    return abs(math.log((1 - flip_probability) * (symbols - 1) / flip_probability))


@final
@dataclass(frozen=True, slots=True, kw_only=True)
class OneLayer(ChannelMechanism):
    """Keep the answer with probability 1 - flip_probability, else send one of the s - 1 other symbols, each as likely.

    With flip_probability = (s - 1) / (e^epsilon + s - 1) this is k-ary randomized response, and its integer table is
    the same one. NULL is one of the s symbols where participation is protected (Sun et al.'s extension).
    """

    name: ClassVar[str] = "one-layer"
    alphabet: Alphabet
    epsilon: float
    participation: Participation = "protected"

    def __post_init__(self) -> None:
        require_epsilon(self.epsilon)

    @classmethod
    def examples(cls) -> "tuple[OneLayer, ...]":
        """Return small instances for the contract tests."""
        yes_no = Categories(("no", "yes"))
        return (
            cls(alphabet=yes_no, epsilon=1.0, participation="public"),
            cls.from_flip_probability(alphabet=yes_no, flip_probability=0.4),
        )

    @classmethod
    def from_flip_probability(
        cls, *, alphabet: Alphabet, flip_probability: float, participation: Participation = "protected"
    ) -> Self:
        """Return the mechanism with the paper's parameter p^f instead of epsilon.

        Raises:
            SettingsError: the flip probability is not in (0, (s - 1) / s), where reports still favour the answer.
        """
        symbols = symbol_count(alphabet, participation)
        if not 0 < flip_probability < (symbols - 1) / symbols:
            raise SettingsError(
                f"flip_probability must be in (0, {symbols - 1}/{symbols}) with {symbols} symbols",
                value=flip_probability,
                way_out="At the upper end reports hold no information, at 0 they are the answers.",
            )
        epsilon = epsilon_of_flip(flip_probability, symbols)
        return cls(alphabet=alphabet, epsilon=epsilon, participation=participation)

    @property
    def flip_probability(self) -> float:
        """Probability p^f that the report differs from the answer."""
        return flip_for_epsilon(self.epsilon, symbol_count(self.alphabet, self.participation))

    def channel(self) -> Channel:
        """Return the exact table: that of randomized response at the same epsilon."""
        response = RandomizedResponse(alphabet=self.alphabet, epsilon=self.epsilon, participation=self.participation)
        return replace(response.channel(), mechanism=self.name)
