"""Channel of comparisons of two items: reports of two symbols or of three, by the information that is expected.

With three symbols a report is left, tie or right (and NULL), by randomized response. With two it is left or right: a
tie, and a protected "no answer", are tossed by the same table. Fewer symbols are kept with a higher probability, so two
are better at a small epsilon, and three where ties are frequent or epsilon is large. With NULL apart, "no answer" has a
symbol beside the two as well, so that the reports show how many comparisons are answered.
"""

import math
from dataclasses import dataclass
from functools import cached_property

import numpy as np
from numpy.typing import NDArray

from crowdveil.arguments import require_number
from crowdveil.channels.alphabet import NULL
from crowdveil.channels.channel import DENOMINATOR, Channel, exp_rounded_down
from crowdveil.channels.compared_pairs import COMPARISON_ANSWERS
from crowdveil.channels.guarantee import Participation, require_epsilon, require_participation
from crowdveil.errors import SettingsError
from crowdveil.mechanisms.designed import Designed
from crowdveil.mechanisms.randomized_response import RandomizedResponse

TIES, SPREAD, ANSWERED = 0.175, 1.5, 1.0
"""Expected share of ties, standard deviation of scores, and share of comparisons that are answered, by default."""
MAX_TIES, MAX_SPREAD = 0.95, 5.0
STEPS, LARGEST_WEIGHT = 60, 12.0
"""Steps, and largest logarithm, of the search for the weight of ties."""
NODES, WEIGHTS = np.polynomial.hermite_e.hermegauss(61)
WEIGHTS = WEIGHTS / WEIGHTS.sum()
"""Nodes and weights of the mean over a standard normal variable."""


@dataclass(frozen=True, kw_only=True)
class ExpectedComparisons:
    """Public expectation of comparisons by Davidson's model, stated before anyone answers.

    Attributes:
        ties: share of ties among the answers, over random pairs.
        spread: standard deviation of the scores of the items, in units of the logit of the answers.
        answered: share of the comparisons asked that are answered.

    Raises:
        SettingsError: a number out of range.
    """

    ties: float = TIES
    spread: float = SPREAD
    answered: float = ANSWERED

    def __post_init__(self) -> None:
        for name, value, most in (("ties", self.ties, MAX_TIES), ("spread", self.spread, MAX_SPREAD)):
            require_number(name, value)
            if not 0 < value <= most:
                raise SettingsError(f"{name} must be above 0 and at most {most:g}", value=value, hint="Such as 0.2.")
        require_number("answered", self.answered)
        if not 0 < self.answered <= 1:
            raise SettingsError("answered must be above 0 and at most 1", value=self.answered, hint="Such as 0.8.")

    @cached_property
    def tie_weight(self) -> float:
        """Logarithm of the weight of a tie, at which the expected share of ties is `ties`."""
        low, high = -LARGEST_WEIGHT, LARGEST_WEIGHT
        for _ in range(STEPS):
            middle = (low + high) / 2
            share = float(WEIGHTS @ _answers(math.sqrt(2) * self.spread * NODES, middle)[:, 1])
            low, high = (middle, high) if share < self.ties else (low, middle)
        return (low + high) / 2

    @property
    def guessed(self) -> NDArray[np.float64]:
        """Probabilities of the answers of a worker who guesses, who says tie as often as others between equals."""
        odds = np.exp([0.0, self.tie_weight, 0.0])
        found: NDArray[np.float64] = odds / odds.sum()
        return found

    def reports(self, channel: Channel | None) -> NDArray[np.float64]:
        """Return P(report | left, tie, right) with the expected participation; without a channel, of the answers."""
        if channel is None:
            return np.eye(3)
        table = channel.probabilities
        if not channel.protects_participation:
            return table
        return np.asarray(self.answered * table[:3] + (1 - self.answered) * table[3])

    def information(self, channel: Channel | None, guessing: float = 0.0, unknown: float = 0.0) -> float:
        """Return the expected information of one comparison asked, on the difference of the two scores.

        With scores that are known it is Fisher's information, over random pairs. With scores of which the variance
        `unknown` is still to be found, it is that of the best linear estimate of the difference: the derivatives of
        the probabilities are averaged before they are squared.

        Args:
            channel: through which it is reported; None for answers.
            guessing: share of the workers who guess, and are not known to.
            unknown: variance of a score that is unknown, at most that of all scores.
        """
        known = math.sqrt(max(2 * (self.spread**2 - unknown), 0)) * NODES
        differences = known[:, None] + math.sqrt(2 * unknown) * NODES
        answers = _answers(differences, self.tie_weight)
        lead = (answers[..., :1] - answers[..., 2:]) / 2
        slopes = WEIGHTS @ (answers * (np.array([0.5, 0.0, -0.5]) - lead))
        table = self.reports(channel)
        shown = ((1 - guessing) * (WEIGHTS @ answers) + guessing * self.guessed) @ table
        squares = ((1 - guessing) * slopes @ table) ** 2
        found = (WEIGHTS @ np.divide(squares, shown, out=np.zeros_like(shown), where=shown > 0)).sum()
        sent = self.answered if channel is None or not channel.protects_participation else 1.0
        return float(sent * found)


def _answers(differences: NDArray[np.float64], tie_weight: float) -> NDArray[np.float64]:
    """Return the probabilities of left, tie and right by the difference of the scores; the last axis is the answer."""
    half = differences / 2
    logits = np.stack([half, np.full_like(half, tie_weight), -half], axis=-1)
    odds = np.exp(logits - logits.max(axis=-1, keepdims=True))
    found: NDArray[np.float64] = odds / odds.sum(axis=-1, keepdims=True)
    return found


def comparison_channel(
    epsilon: float, participation: Participation, symbols: int, *, null_apart: bool = False
) -> Channel:
    """Return the channel of comparisons whose reports are left and right (two symbols), or also tie (three).

    If participation is protected, "no answer" is one more with three symbols, and with two that have `null_apart`; else
    it is tossed, like a tie.

    Raises:
        SettingsError: epsilon, participation or the number of symbols are out of range.
    """
    require_epsilon(epsilon)
    require_participation(participation)
    if symbols not in (2, 3):
        raise SettingsError("a comparison is reported by 2 or 3 symbols", value=symbols, hint="2: ties are tossed.")
    if symbols == 3:
        response = RandomizedResponse(alphabet=COMPARISON_ANSWERS, epsilon=epsilon, participation=participation)
        return response.channel()
    if null_apart and participation == "protected":
        return _tossed_ties_with_null(epsilon)
    flip = -(-DENOMINATOR // (1 + exp_rounded_down(epsilon)))
    kept, half = DENOMINATOR - flip, DENOMINATOR // 2
    tossed = ((half, half),) * (1 + (participation == "protected"))
    rows = ((kept, flip), tossed[0], (flip, kept), *tossed[1:])
    return Channel(COMPARISON_ANSWERS, participation, ("left", "right"), rows, Designed.name)


def _tossed_ties_with_null(epsilon: float) -> Channel:
    """Return randomized response over left, right and NULL, in which a tie is tossed; flips are even, for the toss."""
    flip = 2 * -(-DENOMINATOR // (2 * (2 + exp_rounded_down(epsilon))))
    kept, half = DENOMINATOR - 2 * flip, (DENOMINATOR - flip) // 2
    rows = ((kept, flip, flip), (half, half, flip), (flip, kept, flip), (flip, flip, kept))
    return Channel(COMPARISON_ANSWERS, "protected", ("left", "right", NULL), rows, Designed.name)


def best_comparison_channel(
    expected: ExpectedComparisons, epsilon: float, participation: Participation, *, null_apart: bool = False
) -> Channel:
    """Return the channel with two or three symbols of which a report has the larger expected information."""
    channels = [comparison_channel(epsilon, participation, symbols, null_apart=null_apart) for symbols in (2, 3)]
    return max(channels, key=expected.information)
