"""Privacy amplification by shuffling, computed from the integer table of any certified channel.

n reports on one task arrive in random order without names. The privacy blanket (Balle, Bell, Gascon, Nissim 2019) is
omega(y) = min over all inputs x of R_x(y). With u = R_a / omega and v = R_b / omega,
delta(epsilon) <= E[max(0, X_1 + ... + X_n)] / n, X_i independent: u(y) - e^epsilon v(y) with probability omega(y),
else 0.
Proof, conditions and errors: docs/explanation/shuffling.md.
"""

import math
from collections.abc import Iterable
from dataclasses import dataclass, replace
from functools import lru_cache
from itertools import combinations_with_replacement

import numpy as np
from numpy.typing import NDArray

from crowdveil.channels.channel import Channel
from crowdveil.channels.guarantee import Guarantee
from crowdveil.channels.rounding import format_bound, format_delta, sum_rounded_up
from crowdveil.errors import SettingsError
from crowdveil.mechanisms import ChannelMechanism, Mechanism
from crowdveil.privacy.largest_posterior import sentences_on_adversary_certainty
from crowdveil.privacy.lattice_convolution import LatticeMeasure, bernstein_tail_distance, tilted_sum
from crowdveil.privacy.loss_distribution import MAX_TILT, PrivacyProfile, composed_epsilon, require_delta

POINTS = 1 << 14
"""Least number of lattice points of a sum over reports."""
PROFILE_POINTS, PROFILE_LATTICE = 256, 1 << 13
"""Points at which a profile is computed, between which chords bound it, and lattice points of each."""
MANTISSA_BITS = 30
"""Precision of likelihood ratios; values that agree to it share a class."""
GUARD = 2.0**-44
"""Relative margin for the rounding of quotients, products and sums of classes."""
MAX_PAIRS, MAX_CLASSES = 3000, 5000
MAX_REPORTS = 10**8
LOST = 1e-4
"""Share of delta that is spent on losses beyond the reach of a profile."""


@dataclass(frozen=True, slots=True, eq=False)
class BlanketPair:
    """Two neighbouring answers against the reports that hide them; report symbols with equal ratios are one class.

    Attributes:
        omega: lower bounds of the probability that another report is of each class, whatever its answer.
        first, second: upper bounds of R_a / omega and lower bounds of R_b / omega, shape (classes,).
    """

    omega: NDArray[np.float64]
    first: NDArray[np.float64]
    second: NDArray[np.float64]

    def classes_key(self) -> bytes:
        """Return a text that is equal for pairs with the same classes."""
        return np.stack((self.first, self.second, self.omega)).tobytes()

    def product_of_two_cells(self, other: "BlanketPair") -> "BlanketPair":
        """Return the pair of two cells in one message."""
        parts = (
            np.outer(mine, theirs).ravel()
            for mine, theirs in ((self.omega, other.omega), (self.first, other.first), (self.second, other.second))
        )
        return _pair_with_equal_ratios_merged(*parts)


def _rounded_to_short_mantissa(values: NDArray[np.float64], up: bool) -> NDArray[np.float64]:
    """Return positive values with a short mantissa, rounded up or down, `GUARD` included."""
    mantissa, exponent = np.frexp(values * (1 + (1 if up else -1) * GUARD))
    whole = (np.ceil if up else np.floor)(np.ldexp(mantissa, MANTISSA_BITS))
    return np.ldexp(whole, exponent - MANTISSA_BITS)


def _pair_with_equal_ratios_merged(
    omega: NDArray[np.float64], first: NDArray[np.float64], second: NDArray[np.float64]
) -> BlanketPair:
    """Return the pair with one class for each (first, second), sorted, ratios rounded to the safe side.

    Omega keeps its values: a smaller one would need larger ratios.
    """
    ratios = np.stack((_rounded_to_short_mantissa(first, up=True), _rounded_to_short_mantissa(second, up=False)))
    classes, place = np.unique(ratios, axis=1, return_inverse=True)
    if classes.shape[1] > MAX_CLASSES:
        raise SettingsError(
            f"linked reports have at most {MAX_CLASSES} classes", value=classes.shape[1], hint="Link fewer reports."
        )
    sums = np.bincount(place.ravel(), weights=omega, minlength=classes.shape[1])
    return BlanketPair(np.asarray(sums, dtype=np.float64), classes[0], classes[1])


def _pairs_of_different_and_equal_rows(
    rows: NDArray[np.float64], omega: NDArray[np.float64]
) -> tuple[list[BlanketPair], list[BlanketPair]]:
    """Return the distinct pairs of different rows, and of equal rows."""
    low = _rounded_to_short_mantissa(omega, up=False)
    different: dict[bytes, BlanketPair] = {}
    equal: dict[bytes, BlanketPair] = {}
    for a, first in enumerate(rows):
        for b, second in enumerate(rows):
            pair = _pair_with_equal_ratios_merged(low, first / low, second / low)
            (equal if a == b else different)[pair.classes_key()] = pair
    return list(different.values()), list(equal.values())


@lru_cache(maxsize=64)
def blanket_pairs(channel: Channel, linked: int = 1, differing: int = 1) -> tuple[BlanketPair, ...]:
    """Return the distinct pairs of one message with `linked` reports of a worker, of which `differing` may change.

    Raises:
        SettingsError: infinite epsilon, or too many pairs or classes.
    """
    if channel.ratio is None:
        raise SettingsError("shuffling needs a channel with finite epsilon", value=channel.epsilon)
    rows = np.unique(channel.probabilities, axis=0)
    return _distinct_pairs_of_linked_messages(
        *_pairs_of_different_and_equal_rows(rows, rows.min(axis=0)), linked, differing
    )


def _distinct_pairs_of_linked_messages(
    different: list[BlanketPair], equal: list[BlanketPair], linked: int, differing: int
) -> tuple[BlanketPair, ...]:
    total = math.comb(len(different) + len(equal) + linked - 1, linked)
    if linked > 1 and total > MAX_PAIRS:
        raise SettingsError(
            f"linked reports are certified for at most {MAX_PAIRS} pairs of answers", value=total, hint="Link fewer."
        )
    found = {}
    for changed in range(1, differing + 1):
        for some in combinations_with_replacement(different, changed):
            for rest in combinations_with_replacement(equal, linked - changed):
                pair = some[0]
                for factor in (*some[1:], *rest):
                    pair = pair.product_of_two_cells(factor)
                found[pair.classes_key()] = pair
    return tuple(found.values())


def blanket_delta(pair: BlanketPair, reports: int, epsilon: float, points: int = POINTS) -> float:
    """Return an upper bound on delta at `epsilon` of one pair among `reports` reports, the worker's included.

    Args:
        pair: of `blanket_pairs`.
        reports: number n of reports.
        epsilon: at least 0.
        points: least number of lattice points; more points are tighter.
    """
    values = np.append(pair.first - math.exp(epsilon) * (1 - 1e-15) * pair.second * (1 - 2.0**-52), 0.0)
    masses = np.append(pair.omega, max(0.0, 1 - float(pair.omega.sum())))
    top = float(values.max())
    if top <= 0:
        return 0.0
    tilt, variance, excess = _centring_tilt_variance_and_excess(values, masses, MAX_TILT / float(np.abs(values).max()))
    width = 2 * bernstein_tail_distance(reports * variance, excess)
    step = width / points
    # A report that falls below the window is raised to its end: the bound can only grow.
    measure = _split_on_lattice_with_same_mean(np.maximum(values, -width), masses, step)
    total = tilted_sum([(measure, reports)], tilt * step)
    places = total.first + np.arange(len(total.masses), dtype=np.float64)
    above = places[places > 0]
    largest = min(reports * (top + step), 1 / (math.e * tilt) if tilt else math.inf)
    return min(1.0, total.upper_bound_of_mean(above, above * step / reports, math.log(largest / reports)))


def _centring_tilt_variance_and_excess(
    values: NDArray[np.float64], masses: NDArray[np.float64], largest: float
) -> tuple[float, float, float]:
    """Return the tilt in [0, largest] that centres a variable at 0, its variance and its largest excess there."""
    low, high = 0.0, largest
    for _ in range(40):
        tilt = (low + high) / 2
        weights = masses * np.exp(tilt * (values - values.max()))
        mean = float(weights @ values) / float(weights.sum())
        low, high = (tilt, high) if mean < 0 else (low, tilt)
    weights = weights / weights.sum()
    return tilt, float(weights @ (values - mean) ** 2), float(values.max() - mean)


def _split_on_lattice_with_same_mean(
    values: NDArray[np.float64], masses: NDArray[np.float64], step: float
) -> LatticeMeasure:
    """Return a variable on multiples of `step`: each mass is split over its two neighbours, with the same mean."""
    scaled = values / step
    below = np.floor(scaled)
    share = np.clip(scaled - below, 0.0, 1.0)
    first = int(below.min())
    places = (below - first).astype(np.int64)
    found = np.zeros(int(places.max()) + 2)
    np.add.at(found, places, masses * (1 - share))
    np.add.at(found, places + 1, masses * share)
    return LatticeMeasure(first, found)


def largest_shuffled_epsilon(
    pairs: Iterable[BlanketPair], reports: int, delta: float, most: float, points: int = POINTS
) -> float:
    """Return the largest epsilon of any pair at `delta`, in [0, most], rounded up."""
    found = 0.0
    for pair in pairs:
        if found < most and blanket_delta(pair, reports, found, points) > delta:
            low, high = found, most
            while high - low > 1e-7 * most:
                middle = (low + high) / 2
                low, high = (low, middle) if blanket_delta(pair, reports, middle, points) <= delta else (middle, high)
            found = high
    return found


def shuffled_cell_guarantee(channel: Channel, *, reports: int, delta: float, linked: int = 1) -> Guarantee:
    """Return the central guarantee, against the curator alone, of one cell whose report is shuffled.

    Neighbours: the answer is replaced; the other workers' answers are arbitrary.

    Args:
        channel: certified table of the cell.
        reports: least number of honest reports in a batch on the same task, the worker's own included.
        delta: in [1e-15, 0.5]; far below 1 / reports.
        linked: number of the worker's reports in the same message; the others of the message stay as they are.

    Raises:
        SettingsError: a setting outside its limits, or too many linked reports to certify.
    """
    _require_valid_shuffle_sizes(reports, linked, linked)
    epsilon = largest_shuffled_epsilon(
        blanket_pairs(channel, linked, 1), reports, require_delta(delta), channel.epsilon
    )
    return Guarantee(epsilon=epsilon, delta=delta, participation=channel.participation)


def shuffled_worker_guarantee(
    channel: Channel, *, reports: int, cells: int, delta: float, linked: int = 1
) -> Guarantee:
    """Return the central guarantee of all cells of a worker; messages cannot be linked with one another.

    Args:
        channel, reports, delta: as for `shuffled_cell_guarantee`; delta is that of all cells together.
        cells: number of cells of the worker; every task is one where participation is protected.
        linked: number of reports that stay together in one message, on the same tasks for all workers.

    Raises:
        SettingsError: a setting outside its limits, or too many linked reports to certify.
    """
    require_delta(delta)
    _require_valid_shuffle_sizes(reports, cells, linked)
    parts = message_sizes_and_counts(cells, linked)
    lost = LOST * delta / sum(count for _, count in parts)
    profiles = [(shuffled_profile(channel, reports, together, lost), count) for together, count in parts]
    epsilon = composed_epsilon(profiles, delta)
    return Guarantee(epsilon=epsilon, delta=delta, unit="worker", participation=channel.participation)


def message_sizes_and_counts(cells: int, linked: int) -> list[tuple[int, int]]:
    """Return pairs (reports in a message, number of such messages) of a worker; a remainder is a message of its own."""
    whole, rest = divmod(cells, linked)
    return [(linked, whole), (rest, 1)] if rest else [(linked, whole)]


def _require_valid_shuffle_sizes(reports: int, cells: int, linked: int) -> None:
    if not 1 <= reports <= MAX_REPORTS:
        raise SettingsError(f"shuffled reports must be from 1 to {MAX_REPORTS:,}", value=reports)
    if not 1 <= linked <= cells:
        raise SettingsError("linked reports are from 1 to the number of cells", value=(linked, cells))


@lru_cache(maxsize=64)
def shuffled_profile(channel: Channel, reports: int, linked: int, delta_beyond_reach: float) -> PrivacyProfile:
    """Return the profile of one shuffled message, all of whose linked answers may change.

    Args:
        channel: certified channel.
        reports: number of shuffled messages.
        linked: reports in a message.
        lost: delta beyond the reach of the profile.
    """
    pairs = blanket_pairs(channel, linked, linked)
    epsilon = sum_rounded_up([(channel.epsilon, linked)])
    reach = largest_shuffled_epsilon(pairs, reports, delta_beyond_reach, epsilon)
    grid = np.linspace(0, reach, PROFILE_POINTS + 1)
    worst = np.zeros(len(grid))
    for pair in pairs:
        worst = _larger_of_worst_and_pair_delta(pair, reports, grid, worst)

    def delta(epsilons: NDArray[np.float64]) -> NDArray[np.float64]:
        # The profile is convex in e^epsilon, so chords bound it.
        bound = np.interp(np.exp(epsilons), np.exp(grid), worst) * (1 + 1e-12)
        return np.where(epsilons < epsilon, bound, 0.0)

    return PrivacyProfile(epsilon, delta, reach)


def _larger_of_worst_and_pair_delta(
    pair: BlanketPair, reports: int, grid: NDArray[np.float64], worst: NDArray[np.float64]
) -> NDArray[np.float64]:
    """Return the larger of `worst` and the pair's delta at the points of the grid, shape (points,).

    Every stride of points is halved until chords prove that the pair does not exceed `worst`.
    """
    known: dict[int, float] = {}
    stride = len(grid) - 1 if worst.any() else 1
    while True:
        places = np.arange(0, len(grid), stride)
        for place in places:
            known.setdefault(int(place), blanket_delta(pair, reports, float(grid[place]), PROFILE_LATTICE))
        bound = np.interp(np.exp(grid), np.exp(grid[places]), [known[int(place)] for place in places])
        if stride == 1 or (bound <= worst).all():
            return np.maximum(bound, worst)
        stride //= 2


@dataclass(frozen=True, slots=True, kw_only=True)
class ShuffledGuarantees:
    """Central guarantees against a curator who does not work with the shuffler.

    Attributes:
        reports: least number of honest reports on the same task in a batch.
        linked: reports of a worker that stay together in one message.
        cells: cells of one worker in a round.
        per_answer, per_worker: guarantees of one answer and of all answers of one worker, over all rounds.
    """

    reports: int
    linked: int
    cells: int
    per_answer: Guarantee
    per_worker: Guarantee

    @property
    def sentences(self) -> tuple[str, ...]:
        """What holds, on which condition, and what an adversary can learn, in plain words; the worker first."""
        answer, worker = self.per_answer, self.per_worker
        each = f"epsilon {format_bound(answer.epsilon, 4)} per single answer"
        whole = f"epsilon {format_bound(worker.epsilon, 4)} for all answers of one worker, "
        apart = f"in messages of {self.linked} reports" if self.linked > 1 else "each report apart from the others"
        return (
            f"If a party that does not work with the curator mixes at least {self.reports:,} honest reports on each "
            f"task and removes what identifies their senders, {apart}, the curator's loss is smaller: {whole}{each}, "
            f"at delta {format_delta(answer.delta)}. If the two work together, only the figures without mixing hold.",
            *sentences_on_adversary_certainty(answer, worker, shuffled=True),
        )


def shuffled_guarantees(
    mechanism: Mechanism, *, tasks: int, rounds: int = 1, reports: int, delta: float, linked: int = 1
) -> ShuffledGuarantees:
    """Return the guarantees of a mechanism's reports that are shuffled on each task, each round on its own.

    Args:
        mechanism: of every worker's device.
        tasks: cells of one worker in a round.
        rounds: number of campaigns with the same tasks.
        reports: least number of honest reports in a batch, the worker's own included.
        delta: below 1 / reports, for all cells together.
        linked: reports of a worker that stay together in one message.

    Raises:
        SettingsError: a mechanism whose cells are dependent, delta that is not below 1 / reports (a scheme that
            publishes one whole answer at random would pass), a number outside its limits, or more linked reports than
            cells.
    """
    if not isinstance(mechanism, ChannelMechanism):
        raise SettingsError(
            "shuffling is computed for mechanisms with a channel per cell",
            value=mechanism.name,
            hint="The cells of one worker share a secret, which links them.",
        )
    if not delta * reports < 1:
        raise SettingsError(
            f"delta must be below 1/{reports}: else publishing one whole answer at random would pass",
            value=delta,
            hint="1e-6 is usual.",
        )
    channel, batch = mechanism.channel(), {"reports": reports, "linked": linked}
    worker = shuffled_worker_guarantee(channel, cells=tasks * rounds, delta=delta, **batch)
    answer = shuffled_cell_guarantee(channel, delta=delta, **batch)
    if rounds > 1:
        answer = replace(shuffled_worker_guarantee(channel, cells=rounds * linked, delta=delta, **batch), unit="cell")
    return ShuffledGuarantees(reports=reports, linked=linked, cells=tasks, per_answer=answer, per_worker=worker)
