"""Loss of one person over all campaigns in the ledger of a device: the sum of epsilons, advanced, and exact at a delta.

A line holds cells and the exact ratio of their table, so each cell has the profile of randomized response over two
answers with that epsilon, which dominates it. Later campaigns may depend on earlier reports (Zhu, Dong, Wang 2022,
theorem 10).
"""

from collections import Counter
from collections.abc import Sequence
from dataclasses import dataclass
from fractions import Fraction

from crowdveil.channels.rounding import float_rounded_up
from crowdveil.privacy.composition import pure_profile
from crowdveil.privacy.loss_distribution import ComposedBounds, composed_bounds, require_delta
from crowdveil.standalone.checks import Line, epsilon
from crowdveil.standalone.verification import epsilon_of


@dataclass(frozen=True, slots=True, kw_only=True)
class LedgerLoss(ComposedBounds):
    """Loss of a person to one host, or to all; bounds as `ComposedBounds`.

    Attributes:
        host: receiver of the reports; None for all together.
        cells: cells of all campaigns.
    """

    host: str | None
    cells: int


def ledger_losses(lines: Sequence[Line], delta: float) -> tuple[LedgerLoss, ...]:
    """Return the loss to each host, and to all together; empty without lines.

    Raises:
        SettingsError: delta is outside [1e-15, 0.5].
        Refused: a line with a ratio below 1.
    """
    require_delta(delta)
    hosts = sorted({str(line["host"]) for line in lines})
    groups = [(host, [line for line in lines if line["host"] == host]) for host in hosts]
    return tuple(_loss(host, some, delta) for host, some in [*groups, *([(None, list(lines))] if lines else [])])


def _loss(host: str | None, lines: list[Line], delta: float) -> LedgerLoss:
    pure = float_rounded_up(Fraction(epsilon(lines)))  # first: it refuses a ratio below 1
    counts = Counter[Fraction]()
    for line in lines:
        counts[Fraction(line["numerator"], line["denominator"])] += line["cells"]
    cells = [(pure_profile(epsilon_of(ratio)), count) for ratio, count in counts.items()]
    return LedgerLoss(host=host, cells=counts.total(), **composed_bounds(cells, delta, pure))
