"""Figure 4: utility against privacy on Duchenne smiles, at equal claimed and at equal exact epsilon."""

from __future__ import annotations

from experiments.papers.exhibit import Exhibit, OpenParameter, Row, Verdict
from experiments.papers.li2018 import comparison, table3
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
from experiments.papers.li2018.crowds import DUCHENNE


def verdict(rows: list[Row]) -> Verdict:
    """Return that the order of the mechanisms depends on the unit of privacy."""
    levels = claims(rows)
    two, answer, worker, fewer = (
        {claimed: value(rows, "change", arm, TRUTH, claimed) for claimed in levels}
        for arm in (TWO, ONE_PER_ANSWER, ONE_PER_WORKER, FEWER_ANSWERS)
    )
    wins = [claimed for claimed in levels if two[claimed] < worker[claimed]]
    losses = {name: value(rows, name, TWO, TRUTH, 1.0) for name in ("exact_epsilon", "exact_worker_epsilon")}
    fewer_wins = [claimed for claimed in levels if fewer[claimed] < two[claimed]]
    sentence = (
        f"the error grows as the claim falls, as printed, but the order of the mechanisms is that of the unit: at "
        f"equal exact epsilon of an answer one-layer is better at every claim ({answer[1.0]:.3f} against "
        f"{two[1.0]:.3f} at claim 1, exact {losses['exact_epsilon']:.2f}); at equal exact epsilon of a whole worker "
        f"two-layer is better at claims from {min(wins):g} up ({two[1.0]:.3f} against {worker[1.0]:.3f} at claim 1), "
        f"where the busiest worker loses {losses['exact_worker_epsilon']:.0f}, and worse at claim 0 ({two[0.0]:.3f} "
        f"against {worker[0.0]:.3f}). One-layer on fewer answers, at the same exact epsilon of a worker, is better "
        f"than two-layer at claims up to {max(fewer_wins):g} ({fewer[0.5]:.3f} against {two[0.5]:.3f} at claim .5)."
    )
    ordered = wins == [claimed for claimed in levels if claimed >= min(wins)]
    better = all(answer[claimed] < two[claimed] for claimed in levels)
    holds = better and ordered and 1.0 in wins and 0.0 not in wins and two[1.0] < two[0.0]
    holds = holds and fewer_wins == [claimed for claimed in levels if claimed <= max(fewer_wins)] and 0.5 in fewer_wins
    return Verdict("reproduced in part", sentence, holds)


EXHIBIT = Exhibit(
    name="li2018/figure4",
    title="Utility and privacy on Duchenne smiles",
    source="Li et al. 2018, Figure 4",
    columns=comparison.COLUMNS,
    configurations=comparison.configurations(DUCHENNE, tuple(comparison.ARMS.values()), (MAIN_WEIGHT,)),
    measure=lambda configuration: comparison.measure(configuration, table3.PAPER),
    paper=table3.PAPER,
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
    notes=(*comparison.NOTES, "The figure draws the numbers of Table 3."),
    data=("duchenne",),
)
