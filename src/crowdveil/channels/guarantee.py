"""Privacy guarantees: (epsilon, delta)-local differential privacy with its unit, participation and composition.

A cell is one worker's single answer to one task. `epsilon` is the exact loss or a sound upper bound; sums and printed
values are rounded up. If the source claims another value, `claimed` holds it and `reason` explains the difference.
"""

import math
from dataclasses import dataclass, replace
from typing import Literal

from crowdveil.arguments import require_number, require_whole_number
from crowdveil.channels.rounding import format_bound, format_delta, percent_rounded_up, sum_rounded_up
from crowdveil.display.html import notebook_card
from crowdveil.display.svg_pictures import bar_chart
from crowdveil.errors import SettingsError

Unit = Literal["cell", "worker"]
Participation = Literal["protected", "public"]

MIN_EPSILON = 1e-6
"""Smallest epsilon a mechanism accepts; below it, integer rounding could exceed epsilon."""

FLOAT_MARGIN = 1e-12
"""Relative error of a bound in floating point, added to it."""
MAX_EPSILON = 20.0
"""Largest epsilon a mechanism accepts; above it a report is in practice the answer."""
ONE_RUN = (
    "one run: the epsilons of several runs on the same answers add up, whichever is published; a "
    "choice among them that depends on the answers has no guarantee"
)
"""What a guarantee holds for where a program can be run again."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Guarantee:
    """(epsilon, delta)-local differential privacy of one unit.

    Attributes:
        epsilon: bound on the privacy loss, in nats; infinity is no guarantee.
        delta: additive slack: P(report | a) <= exp(epsilon) P(report | b) + delta.
        unit: "cell": a, b differ in one worker's answer to one task; "worker": in any of one worker's answers.
        participation: "protected": answer and NULL are neighbours; "public": which tasks a worker answered is visible.
        claimed: epsilon that the source claims, rounded to nearest, if it differs from `epsilon`; else None.
        reason: why they differ, or a note; may be empty.

    >>> print(Guarantee(epsilon=1.0).per_worker(3))
    epsilon = 3 per worker, participation protected
    """

    epsilon: float
    delta: float = 0.0
    unit: Unit = "cell"
    participation: Participation = "protected"
    claimed: float | None = None
    reason: str = ""

    def __post_init__(self) -> None:
        if not self.epsilon >= 0:
            raise SettingsError("epsilon must be non-negative", value=self.epsilon)
        if not 0 <= self.delta <= 1:
            raise SettingsError("delta must be in [0, 1]", value=self.delta)
        if self.claimed is not None and not self.claimed >= 0:
            raise SettingsError("a claimed epsilon must be non-negative", value=self.claimed)

    def times(self, count: int) -> "Guarantee":
        """Return the guarantee of `count` independent releases about the same unit."""
        require_whole_number("the number of releases", count, least=1)
        return replace(
            self,
            epsilon=sum_rounded_up([(self.epsilon, count)]),
            delta=min(1.0, sum_rounded_up([(self.delta, count)])),
            claimed=None if self.claimed is None else self.claimed * count,
        )

    def per_worker(self, cells: int) -> "Guarantee":
        """Return the guarantee of a whole worker who sends `cells` cells, NULL cells included."""
        return replace(self.times(cells), unit="worker")

    @property
    def largest_guess_probability(self) -> float:
        """Largest probability of a right guess between two equally probable inputs, rounded up.

        It is (e^epsilon + delta) / (1 + e^epsilon): the errors a, b of any test satisfy e^epsilon a + b >= 1 - delta
        and a + e^epsilon b >= 1 - delta (Wasserman and Zhou 2010; Kairouz, Oh and Viswanath 2015), and their sum bounds
        a + b. At delta 0 it bounds the posterior after every single report as well.
        """
        share = 1 / (1 + math.exp(-self.epsilon))
        return min(1.0, (share + self.delta * (1 - share)) * (1 + FLOAT_MARGIN))

    def _repr_html_(self) -> str:
        """Return the guarantee for a notebook, with the probability of a right guess before and after."""
        after = self.largest_guess_probability
        rows = [("before", 0.5, "50 %"), ("after, at most", after, percent_rounded_up(after))]
        unit = "two answers of a cell" if self.unit == "cell" else "two sets of answers of a worker"
        return notebook_card("Guarantee", [str(self)], bar_chart(None, f"Right guesses between {unit}", rows, strong=1))

    def __str__(self) -> str:
        claim = "" if self.claimed is None else f" (claimed {self.claimed:.6g})"
        delta = f", delta = {format_delta(self.delta)}" if self.delta else ""
        reason = f"; {self.reason}" if self.reason else ""
        unit = f"per {self.unit}, participation {self.participation}"
        return f"epsilon = {format_bound(self.epsilon)}{claim}{delta} {unit}{reason}"


def require_epsilon(epsilon: float) -> float:
    """Return `epsilon` if it is in [MIN_EPSILON, MAX_EPSILON].

    Raises:
        SettingsError: epsilon is no number, or outside this interval.
    """
    require_number("epsilon", epsilon)
    if not MIN_EPSILON <= epsilon <= MAX_EPSILON:
        raise SettingsError(
            f"epsilon must be in [{MIN_EPSILON:g}, {MAX_EPSILON:g}]",
            value=epsilon,
            hint="Useful values lie between 0.1 and 8.",
        )
    return float(epsilon)


def require_participation(participation: object) -> None:
    """Refuse other values than "protected" and "public"."""
    if participation not in ("protected", "public"):
        hint = "Protected participation hides who answered."
        raise SettingsError("participation must be 'protected' or 'public'", value=participation, hint=hint)
