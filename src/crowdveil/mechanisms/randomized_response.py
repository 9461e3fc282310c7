"""k-ary randomized response with NULL as one more label (Sun et al. 2018, section IV-B, equation 8)."""

from dataclasses import dataclass
from functools import cache
from typing import ClassVar, final

from crowdveil.channel import DENOMINATOR, Channel, ratio_at_most
from crowdveil.guarantee import Participation, require_epsilon
from crowdveil.labels import Alphabet, Categories, Scale
from crowdveil.mechanisms.mechanism import ChannelMechanism


@final
@dataclass(frozen=True, slots=True, kw_only=True)
class RandomizedResponse(ChannelMechanism):
    """Report the answer with probability e^epsilon / (S - 1 + e^epsilon), any other symbol with equal probability.

    The S symbols are the labels and, where participation is protected, NULL. With public participation and two labels
    this is Wang & Xu's equation (9). The integer table keeps `flip` = ceil(2^48 / (S - 1 + e^epsilon)) off the
    diagonal, so its column ratio never exceeds e^epsilon.
    """

    name: ClassVar[str] = "randomized-response"
    alphabet: Alphabet
    epsilon: float
    participation: Participation = "protected"

    def __post_init__(self) -> None:
        require_epsilon(self.epsilon)

    @classmethod
    def examples(cls) -> "tuple[RandomizedResponse, ...]":
        """Return small instances for the contract tests."""
        ratings = Categories(("G", "P", "R", "X"), ordered=True)
        return (
            cls(alphabet=ratings, epsilon=1.0),
            cls(alphabet=Categories(("no", "yes")), epsilon=0.5, participation="public"),
            cls(alphabet=Scale(0, 9), epsilon=3.0),
        )

    def channel(self) -> Channel:
        """Return the exact table; inputs and outputs are the same symbols."""
        return _channel(self.alphabet, self.epsilon, self.participation)


@cache
def _channel(alphabet: Alphabet, epsilon: float, participation: Participation) -> Channel:
    symbols = alphabet.names + (("NULL",) if participation == "protected" else ())
    others = len(symbols) - 1
    flip = -(-DENOMINATOR // (others + ratio_at_most(epsilon)))
    keep = DENOMINATOR - others * flip
    rows = tuple(tuple(keep if i == j else flip for j in range(len(symbols))) for i in range(len(symbols)))
    return Channel(alphabet, participation, symbols, rows, RandomizedResponse.name)
