"""Conclusion of the demo for one crowd: mechanism and epsilon to choose, from the errors of the table.

The rule is fixed: the smallest epsilon per cell, among mechanisms with protected participation whose claim holds, at
which the reported method keeps at least half of the gain of unprotected answers over the best constant.
"""

from collections.abc import Iterable, Sequence

from crowdveil.channels.rounding import format_bound
from crowdveil.comparison.trials import ASSIGNED, CHANNEL_SUFFIX, PROTECTED, Row
from crowdveil.demo.chart import claim_holds, reported_method
from crowdveil.demo.crowds import DemoCrowd

CAVEAT = "The choice uses the known truths of this crowd; for another one, use crowdveil plan."


def conclusion_text(crowd: DemoCrowd, rows: Sequence[Row]) -> str:
    """Return the conclusion in words.

    Args:
        crowd: the crowd.
        rows: rows of this crowd, also those of unprotected answers.
    """
    method = reported_method(crowd) + CHANNEL_SUFFIX
    best = min(row.error for row in rows if row.requested is None)
    constant = rows[0].constant_error
    if best >= constant:
        return "For this crowd even unprotected answers are no better than the best constant: collect more answers."
    enough = (best + constant) / 2
    fitting = [row for row in rows if row.method == method and claim_holds(row)]
    chosen = _row_of_least_epsilon(row for row in fitting if row.participation == PROTECTED and row.error <= enough)
    assigned = _row_of_least_epsilon(row for row in fitting if row.participation == ASSIGNED and row.error <= enough)
    known = f"where the best constant has {constant:.3f} and unprotected answers have {best:.3f}"
    weaker = (
        "" if assigned is None else f"{_at_epsilon(assigned)} among assigned cells only (error {assigned.error:.3f})"
    )
    if chosen is not None:
        earlier = assigned is not None and (assigned.exact or 0.0) < (chosen.exact or 0.0) * (1 - 1e-6)
        instead = f" Where everybody may know who was asked what, {weaker} is enough." if earlier else ""
        return (
            f"For this crowd choose {_at_epsilon(chosen)}, participation protected, with {method}: "
            f"error {chosen.error:.3f}, {known}. It is the smallest epsilon shown that keeps half of that gain."
            f"{instead} {CAVEAT}"
        )
    instead = f"Choose {weaker}, or collect" if weaker else "Collect"
    return (
        f"For this crowd no epsilon shown keeps half of the gain over the constant with participation protected, "
        f"{known}. {instead} more answers for each task. {CAVEAT}"
    )


def _row_of_least_epsilon(rows: Iterable[Row]) -> Row | None:
    """Return the row with the smallest exact epsilon, and of those with the smallest error; None without rows."""
    return min(rows, key=lambda row: (round(row.exact or 0.0, 6), row.error), default=None)


def _at_epsilon(row: Row) -> str:
    """Return mechanism and exact epsilon per cell."""
    return f"{row.mechanism} at epsilon {format_bound(row.exact or 0.0, 4)} per cell"
