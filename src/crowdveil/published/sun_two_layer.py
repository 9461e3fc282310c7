"""Two-layer mechanism with NULL of Sun et al. 2018, section VI: a published reproduction, with its exact privacy loss.

Every worker draws a secret budget with mean epsilon and applies randomized response with it to all answered cells; a
second budget of the same distribution serves the cells without an answer. The paper counts the mean budget; the exact
loss of k cells is computed here. Proof: docs/explanation/mechanisms/sun-two-layer.md.
"""

import math
from dataclasses import dataclass
from fractions import Fraction
from functools import lru_cache
from typing import ClassVar, NamedTuple, Self, final

import numpy as np
from numpy.typing import NDArray

from crowdveil.channels.alphabet import NULL, Alphabet
from crowdveil.channels.channel import DENOMINATOR, Channel
from crowdveil.channels.guarantee import MAX_EPSILON, Participation
from crowdveil.channels.rounding import format_bound
from crowdveil.errors import SettingsError
from crowdveil.mechanisms.base import SharedSecretMechanism, flip_symbols
from crowdveil.mechanisms.settings import Settings
from crowdveil.randomness import WORD_BITS, Source
from crowdveil.standalone.verification import epsilon_of

BUDGET_BITS = 16
BUDGETS = 1 << BUDGET_BITS
"""Number of equally likely budgets: midpoints of equal parts of [low, high]."""


class BudgetDistribution(NamedTuple):
    """Randomized response under each budget, exact as floats; each of shape (BUDGETS,).

    Attributes:
        keep: probability that the report is the cell's own symbol.
        flip: probability of each other symbol.
    """

    keep: NDArray[np.float64]
    flip: NDArray[np.float64]

    def cell_privacy_loss(self, cells: int) -> float:
        """Return the loss of one of k = `cells` cells, ln E[keep^k] - ln E[keep^(k - 1) flip], in nats."""
        return self._log_moment(cells, 0) - self._log_moment(cells - 1, 1)

    def worker_loss(self, cells: int) -> float:
        """Return the loss of `cells` cells together, in nats."""
        half = cells // 2
        return self._log_moment(cells, 0) - self._log_moment(0, half) - self._log_moment(0, cells - half)

    def _log_moment(self, kept: int, flipped: int) -> float:
        """Return ln E[keep^kept flip^flipped] over the budgets."""
        logs = kept * np.log(self.keep) + flipped * np.log(self.flip)
        top = float(logs.max())
        return top + math.log(float(np.exp(logs - top).mean()))


@final
@dataclass(frozen=True, slots=True, kw_only=True)
class SunTwoLayer(SharedSecretMechanism):
    """Draw two budgets ~ U(low, 2 epsilon - low) once, then send each cell through randomized response with one.

    With budget e a cell keeps its symbol with probability exp(e) / (K + exp(e)) and becomes each of the K other symbols
    with probability 1 / (K + exp(e)) (equation 8). The first budget serves the cells with a label, the second the NULL
    cells. A budget is one of 65,536 equally likely values; all figures hold for that finite distribution.

    Attributes:
        alphabet: possible answers; NULL is one more symbol.
        epsilon: mean of the budgets; the paper's privacy budget, not a bound on the loss.
        low: smallest budget; the paper does not print one, 0 gives the widest uniform distribution with that mean.
        answers: largest number of cells one worker sends, NULL cells included; None for any number.
        participation: always "protected": NULL is a symbol like any other.

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
        self._require_valid_parameters()
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
        self._require_answer_count_in_range()

    @classmethod
    def from_settings(cls, settings: Settings, alphabet: Alphabet, *, tasks: int) -> Self:
        """Return the mechanism; by default the smallest budget is 0 and a worker sends a cell for every task."""
        return cls(
            alphabet=alphabet,
            epsilon=settings.required_epsilon(cls.name),
            low=settings.low or 0.0,
            answers=cls._most_cells_of_one_worker(settings, tasks),
            participation=settings.participation,
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
    def flip_weight_by_budget(self) -> NDArray[np.uint64]:
        """Probability of each other symbol, times 2^48, for each budget, decreasing; shape (65536,)."""
        return _flip_weights_by_budget(self.low, self.high, self.alphabet.size)

    @property
    def randomized_response_by_budget(self) -> BudgetDistribution:
        """Randomized response under each budget."""
        flip = self.flip_weight_by_budget.astype(np.float64)
        return BudgetDistribution((DENOMINATOR - self.alphabet.size * flip) / DENOMINATOR, flip / DENOMINATOR)

    def _loss_of_one_of_cells(self, cells: int) -> float:
        return self.randomized_response_by_budget.cell_privacy_loss(cells) + _numerical_error(cells)

    def _worker_loss(self, cells: int) -> float:
        return self.randomized_response_by_budget.worker_loss(cells) + _numerical_error(cells)

    def _upper_bound_of_cell_loss(self) -> float:
        """Return the loss of a device that always draws the largest budget, which bounds every mixture."""
        least = int(self.flip_weight_by_budget[-1])
        return epsilon_of(Fraction(DENOMINATOR - self.alphabet.size * least, least))

    def _reason(self, cells: int | None, epsilon: float) -> str:
        count = "all" if cells is None else cells
        return f"{count} cells of a worker share a budget of at most {format_bound(self.high)}; the claim is its mean"

    def marginal_channel(self) -> Channel:
        """Return the exact marginal channel of one cell, over 2^64; no certificate (see the base class)."""
        flip = sum(self.flip_weight_by_budget.tolist())
        keep = DENOMINATOR * BUDGETS - self.alphabet.size * flip
        rows = tuple(tuple(keep if i == j else flip for j in range(self.symbols)) for i in range(self.symbols))
        return Channel(self.alphabet, "protected", (*self.alphabet.names, NULL), rows, self.name)

    def draw_flip_weights(self, workers: int, source: Source) -> NDArray[np.uint64]:
        """Return each worker's two secrets, entries of `flip_weight_by_budget`; indexed [worker, label 0 or NULL 1]."""
        drawn = source.words(2 * workers) >> np.uint64(WORD_BITS - BUDGET_BITS)
        return self.flip_weight_by_budget[drawn.astype(np.int64)].reshape(workers, 2)

    def perturb(self, answers: NDArray[np.integer], source: Source) -> NDArray[np.int64]:
        """Return one report symbol per task, after one draw of the two budgets; `alphabet.size` is the NULL symbol.

        Raises:
            SettingsError: a code outside the alphabet, or more cells than `answers`.
        """
        codes = self._validated(answers)
        self._require_at_most_allowed_cells(codes.size)
        secrets = self.draw_flip_weights(1, source)[0]
        return flip_symbols(codes, secrets[(codes == self.alphabet.size).astype(np.int64)], self.symbols, source)


@lru_cache(maxsize=16)
def _flip_weights_by_budget(low: float, high: float, labels: int) -> NDArray[np.uint64]:
    """Return 2^48 / (labels + exp(budget)) for each budget, rounded up, at most 2^48 / (labels + 1)."""
    budgets = low + (high - low) * (np.arange(BUDGETS) + 0.5) / BUDGETS
    weights = np.ceil(DENOMINATOR / (labels + np.exp(budgets)))
    table = np.minimum(weights, DENOMINATOR // (labels + 1)).astype(np.uint64)
    table.flags.writeable = False
    return table


def _numerical_error(cells: int) -> float:
    """Return a bound on the floating-point error of a loss, in nats (proof page)."""
    return 1e-14 * (cells + 1)
