"""Figure 3: utility against privacy on simulated peer grading, at equal claimed and at equal exact epsilon."""

from __future__ import annotations

from experiments.papers.exhibit import Exhibit, OpenParameter, Row, Verdict
from experiments.papers.li2018 import comparison, table2
from experiments.papers.li2018.comparison import (
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
    """Return that one-layer is better at equal exact epsilon of an answer, and of a worker at small claims."""
    levels = claims(rows)
    two, answer, worker = (
        {claimed: value(rows, "change", arm, TRUTH, claimed) for claimed in levels}
        for arm in (TWO, ONE_PER_ANSWER, ONE_PER_WORKER)
    )
    noise = max(value(rows, "standard_error", TWO, TRUTH, claimed) for claimed in levels)
    gain = max(worker[claimed] - two[claimed] for claimed in levels)
    total = value(rows, "exact_worker_epsilon", TWO, TRUTH, 0.0)
    sentence = (
        f"the error grows as the claim falls, as printed; at equal exact epsilon of an answer one-layer is better at "
        f"every claim ({answer[1.0]:.3f} against {two[1.0]:.3f} at claim 1); at equal exact epsilon of a whole worker "
        f"two-layer gains at most {gain:.3f} (standard error of a change up to {noise:.3f}) and loses at claim 0 "
        f"({two[0.0]:.3f} against {worker[0.0]:.3f}, exact {total:.2f} for five answers)."
    )
    better = all(answer[claimed] < two[claimed] for claimed in levels)
    holds = better and worker[0.0] < two[0.0] and gain < 3 * noise and two[1.0] < two[0.0]
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
            effect="At equal loss of a worker the mechanisms differ less than at equal loss of an answer.",
        ),
    ),
    notes=(*comparison.NOTES, "The figure draws the numbers of Table 2; the worker model is that of li2018/table1."),
)
