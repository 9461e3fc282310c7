"""Figure 3: utility against privacy on simulated peer grading, at equal claimed and at equal exact epsilon."""

from __future__ import annotations

from experiments.papers.exhibit import Row, Verdict
from experiments.papers.li2018.comparison import TRUTH, TWO, claims, value
from experiments.papers.li2018.crowds import PEER
from experiments.papers.li2018.table2 import PAPER
from experiments.papers.li2018.tradeoff import Changes, tradeoff_exhibit


def verdict(rows: list[Row]) -> Verdict:
    """Return that the order of the mechanisms depends on the unit of privacy."""
    found = Changes.of(rows)
    two, answer, worker, fewer, wins = found.two, found.answer, found.worker, found.fewer, found.wins
    total = {claimed: value(rows, "exact_worker_epsilon", TWO, TRUTH, claimed) for claimed in (1.0, 0.0)}
    worst = max(max(fewer[claimed] - two[claimed] for claimed in two), 0.0)
    noise = max(value(rows, "standard_error", TWO, TRUTH, claimed) for claimed in claims(rows))
    sentence = (
        f"the error grows as the claim falls, as printed, but the order of the mechanisms is that of the unit: at "
        f"equal exact epsilon of an answer one-layer is better at every claim ({answer[1.0]:.3f} against "
        f"{two[1.0]:.3f} at claim 1); at equal exact epsilon of a student, {total[1.0]:.2f} for five answers at "
        f"claim 1, two-layer is better at claims from {min(wins):g} up ({two[1.0]:.3f} against {worker[1.0]:.3f} at "
        f"claim 1) and worse at claim 0, exact {total[0.0]:.2f} ({two[0.0]:.3f} against {worker[0.0]:.3f}). "
        f"One-layer on fewer answers, at the same exact epsilon of a student, is at no claim worse than two-layer by "
        f"more than the standard error of a change, {noise:.3f} ({fewer[1.0]:.3f} at claim 1, {fewer[0.0]:.3f} at "
        f"claim 0)."
    )
    return Verdict("reproduced in part", sentence, found.order_follows_the_unit and worst < noise)


EXHIBIT = tradeoff_exhibit(
    name="li2018/figure3",
    title="Utility and privacy on peer grading (simulated)",
    source="Li et al. 2018, Figure 3",
    crowd=PEER,
    paper=PAPER,
    verdict=verdict,
    note="The figure draws the numbers of Table 2; the worker model is that of li2018/table1.",
)
