"""What an adversary can learn, as a probability: from even odds to the largest posterior that a guarantee allows.

Someone holds two answers, or two sets of answers of one worker, to be equally likely. After an (epsilon, delta)-private
report a guess between them is right with probability at most (e^epsilon + delta) / (1 + e^epsilon): the errors a, b of
any test satisfy e^epsilon a + b >= 1 - delta and a + e^epsilon b >= 1 - delta (Wasserman and Zhou 2010; Kairouz, Oh and
Viswanath 2015), and their sum bounds a + b. At delta 0 this bounds the posterior after every single report as well.
"""

import math
from decimal import ROUND_CEILING, Decimal

from crowdveil.channels.guarantee import Guarantee
from crowdveil.channels.rounding import format_delta

EVEN = 0.5
"""Probability of each of two answers before the report."""
MARGIN = 1e-12
"""Relative error of the floating-point bound, added to it."""


def largest_posterior(guarantee: Guarantee) -> float:
    """Return the largest probability of a right guess between two answers, from even odds; rounded up, at most 1."""
    bound = (1 + guarantee.delta * math.exp(-guarantee.epsilon)) / (1 + math.exp(-guarantee.epsilon))
    return min(1.0, bound * (1 + MARGIN))


def percent(probability: float) -> str:
    """Return a probability in percent with one decimal, rounded up."""
    return f"{(100 * Decimal(probability)).quantize(Decimal('0.1'), ROUND_CEILING)} %"


def posterior_sentences(answer: Guarantee, worker: Guarantee | None, *, shuffled: bool = False) -> tuple[str, ...]:
    """Return what an adversary can learn about one answer and about a whole person, in plain words.

    Args:
        answer: guarantee of a single answer.
        worker: guarantee of all answers of one worker; None if their number is unknown.
        shuffled: whether the guarantees are those of shuffled reports.
    """
    setting = "If the reports are shuffled and nobody colludes, someone" if shuffled else "Someone"
    first = (
        f"{setting} who held two possible answers of a worker to be equally likely (50 %) can be at most "
        f"{percent(largest_posterior(answer))} sure of either after the report, whatever else is known{_slack(answer)}."
    )
    if worker is None:
        return (first,)
    most = largest_posterior(worker)
    certain = "; this promises nothing for the whole person" if percent(most) == "100.0 %" else ""
    return (
        first,
        "Between two sets of all answers of that worker: at most "
        f"{percent(most)} after all reports{_slack(worker)}{certain}.",
    )


def posterior_rows(answer: Guarantee, worker: Guarantee | None) -> list[tuple[str, float, str]]:
    """Return the rows of a picture: name, largest posterior, and its text; the first row is the even odds."""
    rows = [("before", EVEN), ("one answer", largest_posterior(answer))]
    rows += [] if worker is None else [("whole person", largest_posterior(worker))]
    return [(name, value, percent(value)) for name, value in rows]


def _slack(guarantee: Guarantee) -> str:
    return f", on average over reports (delta {format_delta(guarantee.delta)})" if guarantee.delta else ""
