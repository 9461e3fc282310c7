"""Figure 3: utility against privacy on simulated peer grading, at equal claimed and at equal exact epsilon."""

from __future__ import annotations

from experiments.papers.exhibit import Exhibit, OpenParameter, Row, Verdict
from experiments.papers.li2018 import comparison, table2
from experiments.papers.li2018.comparison import (
    FEWER_ANSWERS,
    MAIN_WEIGHT,
    ONE_PER_ANSWER,
    ONE_PER_WORKER,
    TRUTH,
    TWO,
    claims,
    value,
)
from experiments.papers.li2018.crowds import PEER


def verdict(rows: list[Row]) -> Verdict:
    """Return that the order of the mechanisms depends on the unit of privacy."""
    levels = claims(rows)
    two, answer, worker, fewer = (
        {claimed: value(rows, "change", arm, TRUTH, claimed) for claimed in levels}
        for arm in (TWO, ONE_PER_ANSWER, ONE_PER_WORKER, FEWER_ANSWERS)
    )
    wins = [claimed for claimed in levels if two[claimed] < worker[claimed]]
    total = {claimed: value(rows, "exact_worker_epsilon", TWO, TRUTH, claimed) for claimed in (1.0, 0.0)}
    worst = max(max(fewer[claimed] - two[claimed] for claimed in levels), 0.0)
    noise = max(value(rows, "standard_error", TWO, TRUTH, claimed) for claimed in levels)
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
    ordered = wins == [claimed for claimed in levels if claimed >= min(wins)]
    better = all(answer[claimed] < two[claimed] for claimed in levels)
    holds = better and ordered and 1.0 in wins and 0.0 not in wins and two[1.0] < two[0.0] and worst < noise
    return Verdict("reproduced in part", sentence, holds)


EXHIBIT = Exhibit(
    name="li2018/figure3",
    title="Utility and privacy on peer grading (simulated)",
    source="Li et al. 2018, Figure 3",
    columns=comparison.COLUMNS,
    configurations=comparison.configurations(PEER, tuple(comparison.ARMS.values()), (MAIN_WEIGHT,)),
    measure=lambda configuration: comparison.measure(configuration, table2.PAPER),
    paper=table2.PAPER,
    draw=comparison.draw_tradeoff,
    verdict=verdict,
    open_parameters=(
        OpenParameter(
            name="unit of privacy",
            used="one answer (Definition 6.1)",
            swept="one answer; all answers of a worker",
            effect="It decides which mechanism is better at equal privacy.",
        ),
    ),
    notes=(*comparison.NOTES, "The figure draws the numbers of Table 2; the worker model is that of li2018/table1."),
)
