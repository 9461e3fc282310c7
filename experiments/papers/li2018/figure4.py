"""Figure 4: utility against privacy on Duchenne smiles, at equal claimed and at equal exact epsilon."""

import math

from experiments.papers.exhibit import Row, Verdict
from experiments.papers.li2018.comparison import FEWER_ANSWERS, ONE_PER_WORKER, TRUTH, TWO, value
from experiments.papers.li2018.tradeoff import Changes, clearly_lower, costs_no_more

from crowdveil.channels.rounding import format_bound


def verdict(rows: list[Row]) -> Verdict:
    """Return that the order of the mechanisms depends on the unit of privacy."""
    found = Changes.of(rows)
    two, answer, worker, fewer, wins = found.two, found.answer, found.worker, found.fewer, found.wins
    exact, total = (
        format_bound(value(rows, name, TWO, TRUTH, 1.0), digits)
        for name, digits in (("exact_epsilon", 3), ("exact_worker_epsilon", 4))
    )
    clear, clear_fewer = clearly_lower(rows, TWO, ONE_PER_WORKER), clearly_lower(rows, FEWER_ANSWERS, TWO)
    sentence = (
        f"the error grows as the claim falls to .1, as printed, but the order of the mechanisms is that of the unit: "
        f"at equal exact epsilon of an answer one-layer is better at every claim ({answer[1.0]:.3f} against "
        f"{two[1.0]:.3f} at claim 1, exact {exact}); at equal exact epsilon of a whole worker "
        f"two-layer is better at claims from {min(wins):g} up, by more than two standard errors from "
        f"{min(clear, default=math.inf):g} ({two[1.0]:.3f} against {worker[1.0]:.3f} at claim 1), "
        f"where the busiest worker loses {total}, and worse at claim 0 ({two[0.0]:.3f} "
        f"against {worker[0.0]:.3f}). One-layer on fewer answers, at the same exact epsilon of a worker, is better "
        f"than two-layer at claims up to {max(found.fewer_wins):g}, by more than two standard errors up to "
        f"{max(clear_fewer, default=-math.inf):g} ({fewer[0.5]:.3f} against {two[0.5]:.3f} at claim "
        ".5)."
    )
    holds = found.order_follows_the_unit and found.fewer_wins_below and 0.5 in found.fewer_wins
    return Verdict("reproduced in part", sentence, holds and costs_no_more(rows))
