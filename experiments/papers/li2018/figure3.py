"""Figure 3: utility against privacy on simulated peer grading, at equal claimed and at equal exact epsilon."""

import math

from experiments.papers.exhibit import Row, Verdict
from experiments.papers.li2018.comparison import FEWER_ANSWERS, ONE_PER_WORKER, TRUTH, TWO, claims, value
from experiments.papers.li2018.tradeoff import Changes, clearly_lower, costs_no_more

from crowdveil.channels.rounding import format_bound


def verdict(rows: list[Row]) -> Verdict:
    """Return that the order of the mechanisms depends on the unit of privacy, on a simulated crowd."""
    found = Changes.of(rows)
    two, answer, worker, fewer, wins = found.two, found.answer, found.worker, found.fewer, found.wins
    total = {
        claimed: format_bound(value(rows, "exact_worker_epsilon", TWO, TRUTH, claimed), 3) for claimed in (1.0, 0.0)
    }
    worst = max(max(fewer[claimed] - two[claimed] for claimed in two), 0.0)
    noise = max(value(rows, "standard_error", TWO, TRUTH, claimed) for claimed in claims(rows))
    clear, clear_fewer = clearly_lower(rows, TWO, ONE_PER_WORKER), clearly_lower(rows, FEWER_ANSWERS, TWO)
    sentence = (
        f"the data are private, so the figure cannot be judged. On simulated peer grading the error grows as the claim "
        f"falls, as printed, but the order of the mechanisms is that of the unit: at equal exact epsilon of an answer "
        f"one-layer is better at every claim ({answer[1.0]:.3f} against {two[1.0]:.3f} at claim 1); at equal exact "
        f"epsilon of a student, {total[1.0]} for five answers at claim 1, two-layer is better at claims from "
        f"{min(wins):g} up, by more than two standard errors from {min(clear, default=math.inf):g} ({two[1.0]:.3f} "
        f"against {worker[1.0]:.3f} at claim 1), and worse at claim 0, exact {total[0.0]} ({two[0.0]:.3f} against "
        f"{worker[0.0]:.3f}). One-layer on fewer answers, at the same exact epsilon of a student, is better than "
        f"two-layer at claims up to {max(found.fewer_wins, default=0.0):g}, by more than two standard errors up to "
        f"{max(clear_fewer, default=-math.inf):g} ({fewer[0.0]:.3f} against {two[0.0]:.3f} at claim 0), and above by "
        f"at most {worst:.3f} worse (standard error of a change up to {noise:.3f})."
    )
    holds = found.order_follows_the_unit and found.fewer_wins_below and worst < two[0.0] - fewer[0.0]
    return Verdict("cannot be judged", sentence, holds and costs_no_more(rows))
