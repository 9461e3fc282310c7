"""Figure 3: utility against privacy on simulated peer grading, at equal claimed and at equal exact epsilon."""

from experiments.papers.exhibit import Row, Verdict
from experiments.papers.li2018.comparison import FEWER_ANSWERS, ONE_PER_ANSWER, ONE_PER_WORKER, TRUTH, TWO, value
from experiments.papers.li2018.tradeoff import Tradeoff

from crowdveil.channels.rounding import format_bound


def verdict(rows: list[Row]) -> Verdict:
    """Return that the order of the mechanisms depends on the unit of privacy, on a simulated crowd."""
    found = Tradeoff.of(rows)
    two, answer, worker, fewer = (
        {claimed: found.change(arm, claimed) for claimed in (1.0, 0.0)}
        for arm in (TWO, ONE_PER_ANSWER, ONE_PER_WORKER, FEWER_ANSWERS)
    )
    total = {
        claimed: format_bound(value(found.rows, "exact_worker_epsilon", TWO, TRUTH, claimed), 3)
        for claimed in (1.0, 0.0)
    }
    sentence = (
        f"the data are private, so the figure cannot be judged. On simulated peer grading the error grows as the claim "
        f"falls, as printed, but the order of the mechanisms is that of the unit: at equal exact epsilon of an answer "
        f"one-layer is better at every claim ({answer[1.0]:.3f} against {two[1.0]:.3f} at claim 1). At equal exact "
        f"epsilon of a student, {total[1.0]} for five answers at claim 1 and {total[0.0]} at claim 0, "
        f"{found.worker.text('one-layer')} ({two[1.0]:.3f} against {worker[1.0]:.3f} at claim 1, {two[0.0]:.3f} "
        f"against {worker[0.0]:.3f} at claim 0); of one-layer on fewer answers, at the same exact epsilon of a "
        f"student, {found.fewer.text('one-layer')} ({two[0.0]:.3f} against {fewer[0.0]:.3f} at claim 0). Both by more "
        f"than two standard errors of {found.repeats} trials (a change has up to {found.noise:.4f}), in this order "
        f"under every seed; at other claims the two are not told apart."
    )
    return Verdict("cannot be judged", sentence, found.holds(rows))
