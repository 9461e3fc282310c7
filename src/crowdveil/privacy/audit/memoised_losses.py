"""Exact losses of memoised reports, for ever and in one report, each with its claim.

All reports of a permanent answer together lose at most the worst ratio of its table, and come near it with their number
if reports tell permanent answers apart. One report loses that of the product of both tables. Proof:
docs/explanation/mechanisms/memoised.md.
"""

from collections.abc import Sequence
from dataclasses import dataclass
from fractions import Fraction
from typing import Literal

from crowdveil.channels.channel import Channel
from crowdveil.channels.guarantee import Unit
from crowdveil.channels.rounding import format_bound, log_rounded_up, sum_rounded_up
from crowdveil.mechanisms.memoised import MemoisedTables
from crowdveil.privacy.audit.finite import ExactLoss, Neighbours, exact_loss

Reports = Literal["for ever", "one report"]
TOLERANCE = 1e-12
"""Relative excess of an exact loss, which is rounded up, over a claim that it meets."""


@dataclass(frozen=True, slots=True, kw_only=True)
class MemoisedLoss:
    """Exact loss of one table between one kind of neighbours, and its claim.

    Attributes:
        reports: "for ever": all reports of an answer, by the table of the permanent answer; "one report".
        neighbours: what differs between the inputs.
        unit: "cell" or "worker".
        claimed: claimed epsilon of the unit, in nats.
        exact: worst pair of inputs; its epsilon is that of the unit.
        refuted: whether the exact loss exceeds the claim; a stated ratio is compared in integers.
    """

    reports: Reports
    neighbours: Neighbours
    unit: Unit
    claimed: float
    exact: ExactLoss
    refuted: bool

    def __str__(self) -> str:
        claim = f"exact epsilon {format_bound(self.exact.epsilon)}, claimed {format_bound(self.claimed)}"
        kind = "" if self.unit == "worker" else f", {self.neighbours}"
        return f"{claim}, per {self.unit}{kind} ({self.exact})"


def memoised_losses(
    tables: MemoisedTables, claims: tuple[Fraction | float, Fraction | float], kinds: Sequence[Neighbours], cells: int
) -> tuple[MemoisedLoss, ...]:
    """Return the losses for ever, then those of one report.

    Args:
        tables: exact tables.
        claims: for ever, and of one report: the ratio of a cell, or the epsilon of the unit in nats.
        kinds: what differs between the inputs.
        cells: cells of one worker, for the neighbours "worker".

    Raises:
        SettingsError: neighbours in participation where it is public.
    """
    named: tuple[tuple[Reports, Channel], ...] = (("for ever", tables.permanent), ("one report", tables.report))
    return tuple(
        _loss(reports, exact_loss(table, kind, cells), kind, claim)
        for (reports, table), claim in zip(named, claims, strict=True)
        for kind in kinds
    )


def _loss(reports: Reports, exact: ExactLoss, kind: Neighbours, claim: Fraction | float) -> MemoisedLoss:
    if isinstance(claim, Fraction):
        claimed = sum_rounded_up([(log_rounded_up(max(claim, Fraction(1))), exact.cells)])
        refuted = exact.ratio is None or exact.ratio > claim
    else:
        claimed, refuted = claim, exact.epsilon > claim * (1 + TOLERANCE)
    return MemoisedLoss(
        reports=reports,
        neighbours=kind,
        unit="worker" if kind == "worker" else "cell",
        claimed=claimed,
        exact=exact,
        refuted=refuted,
    )
