"""Two-layer as extended to NULL by Sun et al. 2018, section VI: a published reproduction, with its exact privacy loss.

Every worker draws a secret budget with mean epsilon and applies randomized response with it to all answered cells; a
second budget of the same distribution serves the cells without an answer. The paper compares it at epsilon; what k
cells really lose is stated here, with the proof in docs/explanation/mechanisms/sun-two-layer.md.
"""

import math
from dataclasses import dataclass, replace
from fractions import Fraction
from functools import lru_cache
from typing import ClassVar, NamedTuple, final

import numpy as np
from numpy.typing import NDArray

from crowdveil.channels.alphabet import NULL, Alphabet, Categories, Scale
from crowdveil.channels.channel import DENOMINATOR, Channel
from crowdveil.channels.guarantee import MAX_EPSILON, Guarantee, Participation, require_epsilon
from crowdveil.channels.rounding import format_bound, log_rounded_up, sum_rounded_up
from crowdveil.errors import SettingsError
from crowdveil.mechanisms.base import Mechanism
from crowdveil.mechanisms.shared_secret import require_answers, require_cells, require_sendable, substitute
from crowdveil.randomness import WORD_BITS, Source

BUDGET_BITS = 16
BUDGETS = 1 << BUDGET_BITS
"""Equally likely values of a worker's budget: midpoints of equal parts of [low, high]."""


class Law(NamedTuple):
    """What a device with each budget does with a cell, exact as floats; each of shape (BUDGETS,).

    Attributes:
        keep: probability that the report is the cell's own symbol.
        flip: probability of each other symbol.
    """

    keep: NDArray[np.float64]
    flip: NDArray[np.float64]

    def cell_loss(self, cells: int) -> float:
        """Return the largest loss of one of `cells` cells, in nats: ln E[keep^k] - ln E[keep^(k - 1) flip]."""
        return self._log_moment(cells, 0) - self._log_moment(cells - 1, 1)

    def worker_loss(self, cells: int) -> float:
        """Return the largest loss of `cells` cells together, in nats."""
        half = cells // 2
        return self._log_moment(cells, 0) - self._log_moment(0, half) - self._log_moment(0, cells - half)

    def _log_moment(self, kept: int, flipped: int) -> float:
        """Return ln E[keep^kept flip^flipped] over the budgets."""
        logs = kept * np.log(self.keep) + flipped * np.log(self.flip)
        top = float(logs.max())
        return top + math.log(float(np.exp(logs - top).mean()))


@final
@dataclass(frozen=True, slots=True, kw_only=True)
class SunTwoLayer(Mechanism):
    """Draw two budgets ~ U(low, 2 epsilon - low) once, then send each cell through randomized response with one.

    With budget e a cell keeps its symbol with probability exp(e) / (K + exp(e)) and becomes each of the K other symbols
    with probability 1 / (K + exp(e)) (equation 8). The first budget serves the cells with a label, the second those
    without. A budget is one of 65,536 equally likely values; all figures are those of that finite law.

    Attributes:
        alphabet: what an answer can be; NULL is one more symbol.
        epsilon: mean of the budgets: what the paper calls the privacy budget, and no bound of the loss.
        low: smallest budget; the paper does not print one, 0 gives the widest uniform distribution with that mean.
        answers: the most cells one worker sends, NULL cells included (more is refused); or None for any number.
        participation: "protected": NULL is a symbol like any other.

    Raises:
        SettingsError: participation is public, `low` is not in [0, epsilon), the largest budget exceeds 20, or
            `answers` is not in 1..1,000,000.
    """

    name: ClassVar[str] = "sun-two-layer"
    alphabet: Alphabet
    epsilon: float
    low: float = 0.0
    answers: int | None = None
    participation: Participation = "protected"

    def __post_init__(self) -> None:
        require_epsilon(self.epsilon)
        if self.participation != "protected":
            raise SettingsError(
                f"{self.name} has no public participation: NULL is one of its symbols",
                value=self.participation,
                hint="Use two-layer.",
            )
        if not 0 <= self.low < self.epsilon:
            raise SettingsError(
                "the smallest budget must be in [0, epsilon)",
                value=self.low,
                hint="For one fixed budget use randomized-response.",
            )
        if self.high > MAX_EPSILON:
            raise SettingsError(
                f"the largest budget, 2 epsilon - low, must be at most {MAX_EPSILON:g}",
                value=self.high,
                hint="Choose a smaller epsilon, or a larger low.",
            )
        require_answers(self.answers)

    @classmethod
    def examples(cls) -> "tuple[SunTwoLayer, ...]":
        """Return small instances for the contract tests."""
        ratings = Categories(("G", "P", "R", "X"), ordered=True)
        return (
            cls(alphabet=ratings, epsilon=1.0),
            cls(alphabet=Scale(0, 9), epsilon=3.0, answers=40),
            cls(alphabet=Categories(("no", "yes")), epsilon=2.0, low=1.5),
        )

    @property
    def high(self) -> float:
        """Largest budget, 2 epsilon - low."""
        return 2 * self.epsilon - self.low

    @property
    def symbols(self) -> int:
        """Number of symbols a cell can hold: the labels and NULL."""
        return self.alphabet.size + 1

    @property
    def shares(self) -> NDArray[np.uint64]:
        """Probability of each other symbol, times 2^48, for each budget, falling; shape (65536,)."""
        return _shares(self.low, self.high, self.alphabet.size)

    @property
    def law(self) -> Law:
        """What a device with each budget does with a cell."""
        flip = self.shares.astype(np.float64)
        return Law((DENOMINATOR - self.alphabet.size * flip) / DENOMINATOR, flip / DENOMINATOR)

    @property
    def guarantee(self) -> Guarantee:
        """Exact loss of one cell, the mean budget as the claim; for any number of cells where `answers` is None."""
        return self._guarantee(self.answers)

    def _guarantee(self, cells: int | None) -> Guarantee:
        if cells == 1:
            epsilon = self.single_cell_channel().epsilon
        else:
            bound = self._bound_for_any_count()
            epsilon = bound if cells is None else min(bound, self.law.cell_loss(cells) + _rounding(cells))
        count = "all" if cells is None else f"{cells}"
        shared = f"{count} cells of a worker share a budget of at most {format_bound(self.high)}; the claim is its mean"
        reason = shared if epsilon > self.epsilon else ""
        return Guarantee(epsilon=epsilon, participation="protected", claimed=self.epsilon, reason=reason)

    def guarantees(self, cells: int) -> tuple[Guarantee, Guarantee]:
        """Return the exact guarantees of one cell and of all cells together when a worker sends `cells` cells.

        Raises:
            SettingsError: that is more than `answers`, or not in 1..1,000,000.
        """
        require_cells(cells, self.answers)
        cell = self._guarantee(cells)
        if cells == 1:
            return cell, cell.per_worker(1)
        all_cells = sum_rounded_up([(self._bound_for_any_count(), cells)])
        exact = min(self.law.worker_loss(cells) + _rounding(cells), all_cells)
        worker = replace(cell.per_worker(cells), epsilon=exact)
        return cell, worker if exact > cells * self.epsilon else replace(worker, reason="")

    def _bound_for_any_count(self) -> float:
        """Return the loss of a device that always draws the largest budget, which bounds every mixture."""
        least = int(self.shares[-1])
        return log_rounded_up(Fraction(DENOMINATOR - self.alphabet.size * least, least))

    def channel(self) -> None:
        """Return None: the cells of one worker share a budget and are not independent."""
        return None

    def single_cell_channel(self) -> Channel:
        """Return the exact law of one cell alone, over 2^64: for likelihoods that ignore what cells share.

        It is no certificate: its epsilon is that of a worker who sends a single cell.
        """
        flip = sum(self.shares.tolist())
        keep = DENOMINATOR * BUDGETS - self.alphabet.size * flip
        rows = tuple(tuple(keep if i == j else flip for j in range(self.symbols)) for i in range(self.symbols))
        return Channel(self.alphabet, "protected", (*self.alphabet.names, NULL), rows, self.name)

    def draw_flip_weights(self, workers: int, source: Source) -> NDArray[np.uint64]:
        """Draw each worker's two secrets, as entries of `shares`; indexed [worker, label 0 or NULL 1]."""
        drawn = source.words(2 * workers) >> np.uint64(WORD_BITS - BUDGET_BITS)
        return self.shares[drawn.astype(np.int64)].reshape(workers, 2)

    def perturb(self, answers: NDArray[np.integer], source: Source) -> NDArray[np.int64]:
        """Draw two budgets and one report symbol per task; `alphabet.size` is the NULL symbol.

        Raises:
            SettingsError: a code outside the alphabet, or more cells than `answers` promised.
        """
        codes = self._checked(answers)
        require_sendable(codes.size, self.answers)
        secret = self.draw_flip_weights(1, source)[0]
        return substitute(codes, secret[(codes == self.alphabet.size).astype(np.int64)], self.symbols, source)


@lru_cache(maxsize=16)
def _shares(low: float, high: float, labels: int) -> NDArray[np.uint64]:
    """Return 2^48 / (labels + exp(budget)) for each budget, rounded up, never above 2^48 / (labels + 1)."""
    budgets = low + (high - low) * (np.arange(BUDGETS) + 0.5) / BUDGETS
    shares = np.ceil(DENOMINATOR / (labels + np.exp(budgets)))
    table = np.minimum(shares, DENOMINATOR // (labels + 1)).astype(np.uint64)
    table.flags.writeable = False
    return table


def _rounding(cells: int) -> float:
    """Return what floating-point sums over the budgets can add to a loss, in nats (see the proof page)."""
    return 1e-14 * (cells + 1)
