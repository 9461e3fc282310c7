"""Two-layer mechanism of Li et al. 2018 (Algorithm 2, Theorems 6.3 and 6.4), with its exact privacy loss.

Every worker draws one secret flip probability and perturbs all cells with it. The paper's epsilon holds for one answer
per worker; the exact loss of k answers is computed here. Proof: docs/explanation/mechanisms/two-layer.md.
"""

import math
from bisect import bisect_left
from dataclasses import dataclass, field
from fractions import Fraction
from typing import ClassVar, Self, final

import numpy as np
from numpy.typing import NDArray

from crowdveil.arguments import require_number
from crowdveil.channels.alphabet import NULL, Alphabet
from crowdveil.channels.channel import DENOMINATOR, Channel, exp_rounded_down
from crowdveil.channels.guarantee import Participation, require_epsilon
from crowdveil.errors import SettingsError
from crowdveil.mechanisms.base import SharedSecretMechanism, flip_symbols
from crowdveil.mechanisms.randomized_response import epsilon_for_flip, flip_probability_for_epsilon, symbol_count
from crowdveil.mechanisms.settings import Settings
from crowdveil.randomness import WORD_BITS, Source
from crowdveil.standalone.verification import epsilon_of

MIN_WIDTH = 1e-6
"""Smallest `high - low`; narrower intervals are the one-layer mechanism."""

NODES, WEIGHTS = np.polynomial.legendre.leggauss(32)
"""Gauss-Legendre nodes and weights on [-1, 1]."""

MIN_PANEL_WIDTH = 2.0**-60
"""Smallest first panel of the quadrature."""


@dataclass(frozen=True, slots=True, kw_only=True)
class SharedFlipDistribution:
    """Distribution of k cells that share one secret flip probability p ~ U(low, high).

    A report that differs from the answers in h of k cells has probability g(h) = E[(p / (s-1))^h (1-p)^(k-h)]. The
    logarithm of g is convex in h. So the worst ratio of neighbours is at the first or the last step, and the worst
    ratio of any two is between an end and the minimum. Proofs: docs/explanation/mechanisms/two-layer.md.

    Attributes:
        low, high: ends of the interval of p, 0 <= low < high <= 1.
        symbols: s, number of symbols a cell can hold.
        cells: k, number of cells that share one p.
    """

    low: float
    high: float
    symbols: int
    cells: int

    def cell_loss(self) -> float:
        """Return max |ln ratio| over reports and pairs of answers that differ in one cell, in nats."""
        first = self.log_report_probability(0) - self.log_report_probability(1)
        last = self.log_report_probability(self.cells - 1) - self.log_report_probability(self.cells)
        return max(abs(first), abs(last))

    def worker_privacy_loss(self) -> float:
        """Return max |ln ratio| over reports and pairs of answer vectors, in nats."""
        rises_at = bisect_left(
            range(self.cells),
            0.0,
            key=lambda h: self.log_report_probability(h + 1) - self.log_report_probability(h),
        )
        top = max(self.log_report_probability(0), self.log_report_probability(self.cells))
        return top - self.log_report_probability(rises_at)

    def log_report_probability(self, differing: int) -> float:
        """Return ln g(h), the log-probability of one report that differs from the answers in h = `differing` cells."""
        return self._log_mean_likelihood_of_flips(differing) - differing * math.log(self.symbols - 1)

    def _log_mean_likelihood_of_flips(self, flips: int) -> float:
        """Return ln E[p^flips (1-p)^(cells - flips)], by Gauss-Legendre panels that widen away from the peak."""
        kept = self.cells - flips
        peak = min(max(flips / self.cells, self.low), self.high)
        edges = self._integration_panel_ends(peak, flips, kept)
        half = np.diff(edges)[:, None] / 2
        points = edges[:-1, None] + half * (1 + NODES)
        height = float(_log_integrand(np.array([peak]), flips, kept)[0])
        area = float((half * WEIGHTS * np.exp(_log_integrand(points, flips, kept) - height)).sum())
        return height + math.log(area / (self.high - self.low))

    def _integration_panel_ends(self, peak: float, flips: int, kept: int) -> NDArray[np.float64]:
        """Return the ends of the panels; over the first panel the integrand falls by a factor of about e."""
        left, right = (flips / peak if flips else 0.0), (kept / (1 - peak) if kept else 0.0)
        curvature = left * left / max(flips, 1) + right * right / max(kept, 1)
        width = max(min(1.0, 1 / max(abs(left - right), math.sqrt(curvature))), MIN_PANEL_WIDTH)
        steps = width * (2.0 ** np.arange(1, 2 + math.ceil(-math.log2(width))) - 1)
        return np.unique(np.clip(np.concatenate((peak - steps, [peak], peak + steps)), self.low, self.high))


def _log_integrand(p: NDArray[np.float64], flips: int, kept: int) -> NDArray[np.float64]:
    """Return flips ln p + kept ln(1 - p), with 0 ln 0 = 0."""
    terms = np.zeros_like(p)
    if flips:
        terms += flips * np.log(p)
    if kept:
        terms += kept * np.log1p(-p)
    return terms


@final
@dataclass(frozen=True, slots=True, kw_only=True)
class TwoLayer(SharedSecretMechanism):
    """Draw p ~ U(low, high) once, then replace every answer with probability p by one of the s - 1 other symbols.

    p is w (s - 1) / 2^48 with a uniform integer weight w, so that every p lies in [low, high] exactly.

    Attributes:
        alphabet: possible answers; NULL is one more symbol where participation is protected.
        low, high: ends of the hyper-distribution, the paper's a and b.
        answers: largest number of cells one worker sends, NULL cells included where protected; None for any number.
        participation: "protected" or "public".
        epsilon: claim of Theorem 6.3, |ln((2 - a - b)(s - 1) / (a + b))|; `guarantee` has the exact figure.

    Raises:
        SettingsError: the interval is empty, narrower than 1e-6 or outside [0, 1], or `answers` is not in 1..1,000,000.

    >>> from crowdveil import Categories
    >>> TwoLayer(alphabet=Categories(("no", "yes")), low=0.1, high=0.4).guarantee.unit
    'cell'
    """

    name: ClassVar[str] = "two-layer"
    alphabet: Alphabet
    low: float
    high: float
    answers: int | None = None
    participation: Participation = "protected"
    epsilon: float = field(init=False)

    def __post_init__(self) -> None:
        self._require_valid_alphabet()
        require_number("low", self.low)
        require_number("high", self.high)
        if not (self.low >= 0 and self.high <= 1 and self.high - self.low >= MIN_WIDTH):
            raise SettingsError(
                f"flip probabilities need 0 <= low < high <= 1, {MIN_WIDTH:g} apart",
                value=(self.low, self.high),
                hint="For one fixed flip probability use one-layer.",
            )
        self._require_answer_count_in_range()
        object.__setattr__(self, "epsilon", epsilon_for_flip((self.low + self.high) / 2, self.symbols))

    @classmethod
    def from_settings(cls, settings: Settings, alphabet: Alphabet, *, tasks: int) -> Self:
        """Return the mechanism with the interval `low` to `high`, or `calibrated` to epsilon (and `low`, if given)."""
        epsilon, low, high = settings.epsilon, settings.low, settings.high
        answers, participation = cls._most_cells_of_one_worker(settings, tasks), settings.participation
        if epsilon is None and low is not None and high is not None:
            return cls(alphabet=alphabet, low=low, high=high, answers=answers, participation=participation)
        if epsilon is None or high is not None:
            raise SettingsError(
                "two-layer needs either epsilon (and perhaps low), or both low and high",
                value={"epsilon": epsilon, "low": low, "high": high},
            )
        return cls.calibrated(alphabet=alphabet, epsilon=epsilon, low=low, participation=participation, answers=answers)

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
        """Return the mechanism whose claim by Theorem 6.3 is `epsilon`: (low + high) / 2 is one-layer's flip (6.4).

        `guarantee` has the exact loss. By default `low` is halfway from its smallest value to one-layer's flip.

        Raises:
            SettingsError: no high <= 1 gives that epsilon with this `low`.
        """
        flip = flip_probability_for_epsilon(require_epsilon(epsilon), symbol_count(alphabet, participation))
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
    def as_published(
        cls,
        *,
        alphabet: Alphabet,
        epsilon: float,
        participation: Participation = "protected",
        answers: int | None = None,
    ) -> Self:
        """Return the paper's setting, low = 0, for reproduction; without `answers` its exact epsilon is infinite."""
        return cls.calibrated(alphabet=alphabet, epsilon=epsilon, low=0.0, participation=participation, answers=answers)

    @classmethod
    def widest_for_cell_epsilon(
        cls, *, alphabet: Alphabet, epsilon: float, participation: Participation = "protected"
    ) -> Self:
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
    def _smallest_and_largest_weight(self) -> tuple[int, int]:
        """Smallest and largest weight w, the share of 2^48 of each wrong symbol."""
        unit = Fraction(DENOMINATOR, self.symbols - 1)
        return math.ceil(Fraction(self.low) * unit), math.floor(Fraction(self.high) * unit)

    def distribution_of_shared_flips(self, cells: int) -> SharedFlipDistribution:
        """Return the distribution of `cells` reports for p uniform between the ends of the device's grid."""
        first, last = self._smallest_and_largest_weight
        unit = (self.symbols - 1) / DENOMINATOR
        return SharedFlipDistribution(low=first * unit, high=last * unit, symbols=self.symbols, cells=cells)

    def _loss_of_one_of_cells(self, cells: int) -> float:
        return self.distribution_of_shared_flips(cells).cell_loss() + self.numerical_error(cells)

    def _worker_loss(self, cells: int) -> float:
        return self.distribution_of_shared_flips(cells).worker_privacy_loss() + self.numerical_error(cells)

    def _upper_bound_of_cell_loss(self) -> float:
        """Return the largest loss of any p on the grid, which bounds every mixture of them."""
        first, last = self._smallest_and_largest_weight
        kept = DENOMINATOR - (self.symbols - 1) * last
        if not first or not kept:
            return math.inf
        return epsilon_of(max(Fraction(DENOMINATOR - (self.symbols - 1) * first, first), Fraction(last, kept)))

    def numerical_error(self, cells: int) -> float:
        """Return a bound on the error of a loss by the grid of p and by quadrature, in nats (proof page)."""
        first, last = self._smallest_and_largest_weight
        share = 6 * (cells + 1) / (last - first)
        return math.inf if share >= 0.5 else math.log((1 + share) / (1 - share)) + 1e-14 * (cells + 1)

    def _reason(self, cells: int | None, epsilon: float) -> str:
        if cells == 1:
            return "the flip probability is drawn on a 48-bit grid"
        count = "all" if cells is None else cells
        shared = f"{count} answers of a worker share one flip probability; Theorem 6.3 counts one"
        if math.isinf(epsilon):
            shared += ", and it may be 0 or 1: set the number of answers per worker, or choose 0 < low and high < 1"
        return shared

    def marginal_channel(self) -> Channel:
        """Return the exact marginal channel of one cell, over 2^96; no certificate (see the base class)."""
        first, last = self._smallest_and_largest_weight
        width, symbols = last - first + 1, self.symbols
        # Sum over words w of floor(w width / 2^48).
        drawn = ((width - 1) * (DENOMINATOR - 1) + math.gcd(width, DENOMINATOR) - 1) // 2
        flip = first * DENOMINATOR + drawn
        keep = DENOMINATOR**2 - (symbols - 1) * flip
        rows = tuple(tuple(keep if i == j else flip for j in range(symbols)) for i in range(symbols))
        outputs = self.alphabet.names + ((NULL,) if self.participation == "protected" else ())
        return Channel(self.alphabet, self.participation, outputs, rows, self.name)

    def draw_flip_weights(self, workers: int, source: Source) -> NDArray[np.uint64]:
        """Return each worker's secret weight w, with p = w (s - 1) / 2^48, shape (workers,)."""
        first, last = self._smallest_and_largest_weight
        width = last - first + 1
        return np.array([first + (int(w) * width >> WORD_BITS) for w in source.words(workers)], dtype=np.uint64)

    def perturb(self, answers: NDArray[np.integer], source: Source) -> NDArray[np.int64]:
        """Return one report symbol per task, after one draw of p; a public NULL stays NULL, code `alphabet.size`.

        Raises:
            SettingsError: a code outside the alphabet, or more cells than `answers`.
        """
        codes = self._validated(answers)
        sent = codes < self.symbols
        self._require_at_most_allowed_cells(int(sent.sum()))
        reports = codes.copy()
        reports[sent] = flip_symbols(codes[sent], self.draw_flip_weights(1, source), self.symbols, source)
        return reports
