"""The two-layer mechanism (Li et al. 2018, Algorithm 2, Theorems 6.3 and 6.4), with its exact privacy loss.

Every worker draws one secret flip probability and perturbs all cells with it. The paper's theorem counts one answer;
what k answers with one flip probability really lose is stated here, with the proof in
docs/explanation/mechanisms/two-layer.md.
"""

import math
from dataclasses import dataclass, field, replace
from fractions import Fraction
from typing import ClassVar, Self, final

import numpy as np
from numpy.typing import NDArray

from crowdveil.channels.alphabet import NULL, Alphabet, Categories
from crowdveil.channels.channel import DENOMINATOR, Channel, exp_rounded_down
from crowdveil.channels.guarantee import Guarantee, Participation, require_epsilon
from crowdveil.channels.rounding import log_rounded_up, sum_rounded_up
from crowdveil.errors import SettingsError
from crowdveil.mechanisms.base import Mechanism
from crowdveil.mechanisms.randomized_response import epsilon_for_flip, flip_for_epsilon, symbol_count
from crowdveil.mechanisms.shared_flip import SharedFlipDistribution
from crowdveil.mechanisms.shared_secret import require_answers, require_cells, require_sendable, substitute
from crowdveil.randomness import WORD_BITS, Source

NARROWEST = 1e-6
"""Least `high - low`; below it the mechanism is one-layer."""


@final
@dataclass(frozen=True, slots=True, kw_only=True)
class TwoLayer(Mechanism):
    """Draw p ~ U(low, high) once, then replace every answer with probability p by one of the s - 1 other symbols.

    p is flips * (s - 1) / 2^48 with a uniform integer `flips`, so that every p lies in [low, high] exactly.

    Attributes:
        alphabet: what an answer can be; NULL is one more symbol where participation is protected.
        low, high: ends of the hyper-distribution, the paper's a and b.
        answers: the most cells one worker sends, NULL cells included where protected (more is refused); or None.
        participation: "protected" or "public".
        epsilon: Theorem 6.3's figure, |ln((2 - a - b)(s - 1) / (a + b))|: what is claimed, not what is promised.

    Raises:
        SettingsError: the interval is empty, narrower than 1e-6 or outside [0, 1], or `answers` is not in 1..1,000,000.
    """

    name: ClassVar[str] = "two-layer"
    alphabet: Alphabet
    low: float
    high: float
    answers: int | None = None
    participation: Participation = "protected"
    epsilon: float = field(init=False)

    def __post_init__(self) -> None:
        if not (self.low >= 0 and self.high <= 1 and self.high - self.low >= NARROWEST):
            raise SettingsError(
                f"flip probabilities need 0 <= low < high <= 1, {NARROWEST:g} apart",
                value=(self.low, self.high),
                hint="For one fixed flip probability use one-layer.",
            )
        require_answers(self.answers)
        object.__setattr__(self, "epsilon", epsilon_for_flip((self.low + self.high) / 2, self.symbols))

    @classmethod
    def examples(cls) -> "tuple[TwoLayer, ...]":
        """Return small instances for the contract tests."""
        yes_no, ratings = Categories(("no", "yes")), Categories(("G", "P", "R", "X"), ordered=True)
        return (
            cls.published(alphabet=yes_no, epsilon=1.0, participation="public", answers=40),
            cls.published(alphabet=yes_no, epsilon=1.0, participation="public"),
            cls.calibrated(alphabet=ratings, epsilon=1.0),
            cls.sound(alphabet=ratings, epsilon=2.0),
        )

    @classmethod
    def calibrated(
        cls,
        *,
        alphabet: Alphabet,
        epsilon: float,
        low: float | None = None,
        participation: Participation = "protected",
        answers: int | None = None,
    ) -> Self:
        """Return the mechanism for which Theorem 6.3 claims `epsilon`: (low + high) / 2 is one-layer's flip (6.4).

        The guarantee says what is really lost. By default `low` is halfway from its least value to one-layer's flip.

        Raises:
            SettingsError: no high <= 1 gives that epsilon with this `low`.
        """
        flip = flip_for_epsilon(require_epsilon(epsilon), symbol_count(alphabet, participation))
        least = max(0.0, 2 * flip - 1)
        start = (least + flip) / 2 if low is None else low
        if not least <= start < flip:
            raise SettingsError(
                f"Theorem 6.3 gives epsilon={epsilon:g} only for low in [{least:.6g}, {flip:.6g})",
                value=start,
                hint="Choose low in that interval, or a larger epsilon.",
            )
        high = min(1.0, 2 * flip - start)
        return cls(alphabet=alphabet, low=start, high=high, answers=answers, participation=participation)

    @classmethod
    def published(
        cls,
        *,
        alphabet: Alphabet,
        epsilon: float,
        participation: Participation = "protected",
        answers: int | None = None,
    ) -> Self:
        """Return the paper's setting, low = 0: for reproduction. It is promised nothing unless `answers` is given."""
        return cls.calibrated(alphabet=alphabet, epsilon=epsilon, low=0.0, participation=participation, answers=answers)

    @classmethod
    def sound(cls, *, alphabet: Alphabet, epsilon: float, participation: Participation = "protected") -> Self:
        """Return the widest hyper-distribution that keeps `epsilon` per cell for any number of answers.

        It runs from one-layer's flip probability to the uniform report, so one-layer is at least as informative.
        """
        symbols = symbol_count(alphabet, participation)
        exact = Fraction(symbols - 1) / (exp_rounded_down(require_epsilon(epsilon)) + symbols - 1)
        low = math.nextafter(float(exact), 1.0)
        return cls(alphabet=alphabet, low=low, high=(symbols - 1) / symbols, participation=participation)

    @property
    def symbols(self) -> int:
        """Number s of symbols a cell can hold."""
        return symbol_count(self.alphabet, self.participation)

    @property
    def _grid(self) -> tuple[int, int]:
        """Smallest and largest value of the integer `flips`, the share of 2^48 that each wrong symbol gets."""
        unit = Fraction(DENOMINATOR, self.symbols - 1)
        return math.ceil(Fraction(self.low) * unit), math.floor(Fraction(self.high) * unit)

    @property
    def guarantee(self) -> Guarantee:
        """Exact loss of one cell, Theorem 6.3's claim beside it; infinite where no finite figure is true."""
        return self._guarantee(self.answers)

    def _guarantee(self, cells: int | None) -> Guarantee:
        bound = self._bound_for_any_count()
        if cells is None:
            epsilon = bound
        elif cells == 1:
            epsilon = self.single_cell_channel().epsilon
        else:
            epsilon = min(bound, self._law(cells).cell_loss() + self._rounding(cells))
        reason = _why(cells, epsilon) if epsilon > self.epsilon else ""
        return Guarantee(epsilon=epsilon, participation=self.participation, claimed=self.epsilon, reason=reason)

    def guarantees(self, cells: int) -> tuple[Guarantee, Guarantee]:
        """Return the exact guarantees of one cell and of all cells together when a worker sends `cells` cells.

        Raises:
            SettingsError: that is more than `answers`, or not in 1..1,000,000.
        """
        require_cells(cells, self.answers)
        cell = self._guarantee(cells)
        if cells == 1:
            return cell, cell.per_worker(1)
        exact = self._law(cells).worker_loss() + self._rounding(cells)
        all_cells = sum_rounded_up([(self._bound_for_any_count(), cells)])
        worker = replace(cell.per_worker(cells), epsilon=min(exact, all_cells))
        return cell, worker if worker.epsilon > cells * self.epsilon else replace(worker, reason="")

    def _law(self, cells: int) -> SharedFlipDistribution:
        """Return the law of the reports, for p uniform between the ends of the device's grid."""
        first, last = self._grid
        unit = (self.symbols - 1) / DENOMINATOR
        return SharedFlipDistribution(low=first * unit, high=last * unit, symbols=self.symbols, cells=cells)

    def _bound_for_any_count(self) -> float:
        """Return the largest loss that any p on the grid allows, which bounds every mixture of them."""
        first, last = self._grid
        kept = DENOMINATOR - (self.symbols - 1) * last
        if not first or not kept:
            return math.inf
        return log_rounded_up(max(Fraction(DENOMINATOR - (self.symbols - 1) * first, first), Fraction(last, kept)))

    def _rounding(self, cells: int) -> float:
        """Return what the grid of p and floating-point quadrature can add to a loss, in nats (see the proof page)."""
        first, last = self._grid
        share = 6 * (cells + 1) / (last - first)
        return math.inf if share >= 0.5 else math.log((1 + share) / (1 - share)) + 1e-14 * (cells + 1)

    def channel(self) -> None:
        """Return None: the cells of one worker share a flip probability and are not independent."""
        return None

    def single_cell_channel(self) -> Channel:
        """Return the exact law of one cell alone, over 2^96: for likelihoods that ignore what cells share.

        It is no certificate: its epsilon is that of a worker who sends a single cell.
        """
        first, last = self._grid
        width, symbols = last - first + 1, self.symbols
        drawn = (
            (width - 1) * (DENOMINATOR - 1) + math.gcd(width, DENOMINATOR) - 1
        ) // 2  # sum of floor(w width / 2^48)
        flip = first * DENOMINATOR + drawn
        keep = DENOMINATOR**2 - (symbols - 1) * flip
        rows = tuple(tuple(keep if i == j else flip for j in range(symbols)) for i in range(symbols))
        outputs = self.alphabet.names + ((NULL,) if self.participation == "protected" else ())
        return Channel(self.alphabet, self.participation, outputs, rows, self.name)

    def draw_flip_weights(self, workers: int, source: Source) -> NDArray[np.uint64]:
        """Draw each worker's secret: `flips`, with p = flips * (s - 1) / 2^48; shape (workers,)."""
        first, last = self._grid
        width = last - first + 1
        return np.array([first + (int(w) * width >> WORD_BITS) for w in source.words(workers)], dtype=np.uint64)

    def perturb(self, answers: NDArray[np.integer], source: Source) -> NDArray[np.int64]:
        """Draw one flip probability and one report symbol per task; a public NULL stays NULL, code `alphabet.size`.

        Raises:
            SettingsError: a code outside the alphabet, or more cells than `answers` promised.
        """
        codes = self._checked(answers)
        sent = codes < self.symbols
        require_sendable(int(sent.sum()), self.answers)
        reports = codes.copy()
        reports[sent] = substitute(codes[sent], self.draw_flip_weights(1, source), self.symbols, source)
        return reports


def _why(cells: int | None, epsilon: float) -> str:
    """Return the sentence that says why the exact figure exceeds Theorem 6.3's."""
    if cells == 1:
        return "the flip probability is drawn on a 48-bit grid"
    shared = (
        f"{'all' if cells is None else cells} answers of a worker share one flip probability; Theorem 6.3 counts one"
    )
    if math.isinf(epsilon):
        return f"{shared}, and it may be 0 or 1: say how many answers a worker gives, or choose 0 < low and high < 1"
    return shared
