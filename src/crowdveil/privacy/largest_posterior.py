"""Largest posterior probability of an answer that a guarantee allows, from even odds, in words and as picture rows.

Someone holds two answers, or two sets of answers of one worker, to be equally likely; `Guarantee` has the bound.
"""

from crowdveil.channels.guarantee import Guarantee
from crowdveil.channels.rounding import CERTAIN, format_delta, percent_rounded_up

EVEN = 0.5
"""Probability of each of two answers before the report."""
SURER = "Someone who was surer before can be surer after."
"""What the bound from even odds does not say."""


def sentences_on_adversary_certainty(
    answer: Guarantee, worker: Guarantee | None, *, shuffled: bool = False
) -> tuple[str, ...]:
    """Return what an adversary can learn about a whole person and about one answer, in plain words: the worst first.

    Args:
        answer: guarantee of a single answer.
        worker: guarantee of all answers of one worker; None if their number is unknown.
        shuffled: whether the guarantees are those of shuffled reports.
    """
    setting = "If the reports are shuffled and nobody colludes, someone" if shuffled else "Someone"
    after = percent_rounded_up(answer.largest_guess_probability)
    if worker is None:
        return (
            f"{setting} who thought two possible answers of a worker to one task equally likely (50 %) can be "
            f"{certainty_text(after)} of either after the report, whatever else is known"
            f"{_average_and_delta_clause(answer)}. {SURER}",
        )
    most = percent_rounded_up(worker.largest_guess_probability)
    certain = "; this promises nothing for the whole person" if most == CERTAIN else ""
    return (
        f"{setting} who thought two sets of all answers of a worker equally likely (50 %) can be "
        f"{certainty_text(most)} of either after all reports, whatever else is known"
        f"{_average_and_delta_clause(worker)}{certain}. {SURER}",
        f"Between two possible answers to one task: {certainty_text(after)}{_average_and_delta_clause(answer)}.",
    )


def largest_posterior_rows(answer: Guarantee, worker: Guarantee | None) -> list[tuple[str, float, str]]:
    """Return the rows of a picture: name, largest posterior, and its text; the first row is the even odds.

    Args:
        answer, worker: as `sentences_on_adversary_certainty`.
    """
    rows = [("before", EVEN), ("one answer", answer.largest_guess_probability)]
    rows += [] if worker is None else [("whole person", worker.largest_guess_probability)]
    return [(name, value, percent_rounded_up(value)) for name, value in rows]


def certainty_text(percent: str) -> str:
    """Return how sure anyone can be, by a largest posterior in percent."""
    return "practically certain" if percent == CERTAIN else f"at most {percent} sure"


def _average_and_delta_clause(guarantee: Guarantee) -> str:
    return f", on average over reports (delta {format_delta(guarantee.delta)})" if guarantee.delta else ""
