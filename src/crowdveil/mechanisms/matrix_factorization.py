"""Matrix factorization, corrected: a noisy vector of integers per worker, with exact epsilon.

Sun et al. 2018, section V, send the minimiser of a perturbed loss, which does not protect participation (see
`matrix_factorization_published`). Here the worker sends the sufficient statistic b = sum_j v_j (a_j - c), which has
bounded sensitivity, with discrete Laplace noise. All numbers are integers: answers in half steps of the scale from the
centre c, public profiles v_j in multiples of 1 / RESOLUTION. Proof:
docs/explanation/mechanisms/matrix-factorization.md.
"""

import hashlib
import math
from dataclasses import dataclass
from fractions import Fraction
from functools import lru_cache
from typing import ClassVar, Literal, Self, final

import numpy as np
from numpy.typing import NDArray

from crowdveil.channels.alphabet import Alphabet, Scale
from crowdveil.channels.guarantee import Guarantee, Participation
from crowdveil.channels.rounding import float_rounded_up
from crowdveil.errors import SettingsError
from crowdveil.mechanisms.base import Mechanism
from crowdveil.mechanisms.discrete_laplace import (
    discrete_laplace_variance,
    require_scale,
    sample_discrete_laplace,
    simulate_discrete_laplace_sum,
)
from crowdveil.mechanisms.settings import Settings
from crowdveil.randomness import Seeded, Source

RESOLUTION = 1 << 16
"""Denominator of dense profiles, whose L1 norm is exactly 1."""
MAX_DENSE_DIMENSIONS = 1 << 12
MARGIN = Fraction(1, 10**12)
"""Relative reduction of the noise's epsilon for decimals such as 0.1, so that rounded-up sums stay below 0.1 n."""


@dataclass(frozen=True, slots=True, eq=False, kw_only=True)
class ProfileTotals:
    """Sum of all workers' reports, in the units of the answers.

    Attributes:
        numerators: estimates of sum_j v_j (sum of a_j - c over those who answered j), shape (dimensions,).
        counts: estimates of sum_j v_j (number who answered j), shape (dimensions,).
        numerator_deviation, count_deviation: standard deviation of the noise in each number; infinite without signal.
        profiles: the bucket of each task, integers of shape (tasks,), for unit profiles; else numbers indexed
            [dimension, task].
        low, high, centre: range of the answers and the public centre c.
        workers: number of reports in the sum.
    """

    numerators: NDArray[np.float64]
    counts: NDArray[np.float64]
    numerator_deviation: float
    count_deviation: float
    profiles: NDArray[np.int64] | NDArray[np.float64]
    low: float
    high: float
    centre: float
    workers: int


@final
@dataclass(frozen=True, slots=True, kw_only=True)
class MatrixFactorization(Mechanism):
    """Send sum_j v_j (a_j - c) and sum_j v_j g [j answered], both with discrete Laplace noise of scale W / epsilon.

    W = high - low; g = W - max(high - c, c - low) is W / 2 at the midpoint, and costs nothing (see the theorem).

    Attributes:
        alphabet: the grid of answers.
        epsilon: exact privacy loss of one cell, in nats.
        dimensions: length d of each of the two sums; None for one bucket per task (d = number of tasks).
        centre: public number c that replaces NULL, on the half-step grid; None for the midpoint.
        profiles: "unit": task j adds to bucket j mod d, the most signal per task; "dense": signed numbers from
            `profile_seed`.
        profile_seed: public seed of dense profiles.
        participation: always "protected".

    >>> from crowdveil import Scale
    >>> MatrixFactorization(alphabet=Scale(0, 10), epsilon=2.0, dimensions=4).guarantee.unit
    'cell'
    """

    name: ClassVar[str] = "matrix-factorization"
    alphabet: Scale
    epsilon: float
    dimensions: int | None = None
    centre: float | None = None
    profiles: Literal["unit", "dense"] = "unit"
    profile_seed: int = 0
    participation: Participation = "protected"

    def __post_init__(self) -> None:
        self._require_settings()
        require_numeric_and_protected(self.name, self.alphabet, self.participation)
        most = MAX_DENSE_DIMENSIONS
        if self.profiles not in ("unit", "dense"):
            raise SettingsError("profiles must be 'unit' or 'dense'", value=self.profiles)
        if self.dimensions is not None and self.dimensions < 1:
            raise SettingsError("dimensions must be at least 1", value=self.dimensions)
        if self.profiles == "dense" and not (self.dimensions is not None and self.dimensions <= most):
            raise SettingsError(f"dense profiles need dimensions in 1..{most}", value=self.dimensions)
        if self.centre is not None and not math.isfinite(self.centre):
            raise SettingsError("the centre must be finite", value=self.centre)
        half_steps = self._centre_in_half_steps
        if not (0 <= half_steps <= 2 * self._levels and half_steps.denominator == 1):
            raise SettingsError("the centre must be in the domain, a whole number of half steps", value=self.centre)
        require_scale(self.noise_scale)

    @classmethod
    def examples(cls) -> "tuple[MatrixFactorization, ...]":
        """Return small instances for the contract tests."""
        return (
            cls(alphabet=Scale(0, 4), epsilon=1.0),
            cls(alphabet=Scale(0, 9), epsilon=0.5, dimensions=2, centre=3.5),
            cls(alphabet=Scale(0, 1, 0.5), epsilon=3.0, dimensions=3, profiles="dense", profile_seed=7),
        )

    @classmethod
    def from_settings(cls, settings: Settings, alphabet: Alphabet, *, tasks: int) -> Self:
        """Return the mechanism with the default profiles and centre."""
        epsilon = settings.required_epsilon(cls.name)
        scale = require_numeric_and_protected(cls.name, alphabet, settings.participation)
        return cls(alphabet=scale, epsilon=epsilon, dimensions=settings.dimensions)

    @property
    def guarantee(self) -> Guarantee:
        """Guarantee of one cell, value against value and value against NULL."""
        return Guarantee(epsilon=float_rounded_up(self._noise_epsilon))

    def channel(self) -> None:
        """Return None: a report combines all cells."""
        return None

    def perturb(self, answers: NDArray[np.integer], source: Source) -> NDArray[np.int64]:
        """Return one worker's report: the noisy sum of values, then that of participation; shape (2 * dimensions,).

        Units: half a step of the scale (divided by RESOLUTION for dense profiles); `totals` turns sums back into
        answers.
        """
        codes = self._validated(answers)
        answered = codes < self.alphabet.size
        values = np.where(answered, 2 * codes - int(self._centre_in_half_steps), 0)
        exact = self._project(values, np.where(answered, self._gain, 0))
        return exact + np.array(sample_discrete_laplace(self.noise_scale, len(exact), source), dtype=np.int64)

    def simulate_sum(
        self, task: NDArray[np.integer], code: NDArray[np.integer], tasks: int, workers: int, source: Seeded
    ) -> NDArray[np.int64]:
        """Return the sum of all workers' reports, shape (2 * dimensions,). Simulation only: no privacy.

        The noise of all workers is drawn at once, in floating point.

        Args:
            task, code: task and label code of every non-NULL answer of the crowd, shape (answers,).
            tasks: number of tasks.
            workers: number of workers, including those without an answer.
            source: seeded.

        The units are those of `perturb`.
        """
        values, counts = np.zeros(tasks, dtype=np.int64), np.zeros(tasks, dtype=np.int64)
        np.add.at(values, task, 2 * np.asarray(code, dtype=np.int64) - int(self._centre_in_half_steps))
        np.add.at(counts, task, self._gain)
        exact = self._project(values, counts)
        return exact + simulate_discrete_laplace_sum(self.noise_scale, workers, len(exact), source)

    def totals(self, summed: NDArray[np.integer], *, tasks: int, workers: int) -> ProfileTotals:
        """Return the sum of `workers` reports in the units of the answers.

        Args:
            summed: sum over workers of their reports, shape (2 * dimensions,).
            tasks: number of tasks of the campaign.
            workers: number of reports in the sum.

        Raises:
            SettingsError: the sum has the wrong length.
        """
        length = self._length(tasks)
        if summed.shape != (2 * length,):
            raise SettingsError(f"a sum of reports about {tasks} tasks has {2 * length} numbers", value=summed.shape)
        unit = self.alphabet.step / 2 / self._resolution
        share = 0.0 if self._gain == 0 else 1.0 / (self._gain * self._resolution)
        deviation = (workers * discrete_laplace_variance(self.noise_scale)) ** 0.5
        low = self.alphabet.low
        return ProfileTotals(
            numerators=np.multiply(summed[:length], unit, dtype=np.float64),
            counts=np.multiply(summed[length:], share, dtype=np.float64),
            numerator_deviation=deviation * unit,
            count_deviation=deviation * share if share else float("inf"),
            profiles=self.profile_table(tasks) / RESOLUTION if self.profiles == "dense" else np.arange(tasks) % length,
            low=low,
            high=self.alphabet.high,
            centre=low + float(self._centre_in_half_steps) * self.alphabet.step / 2,
            workers=workers,
        )

    def profile_table(self, tasks: int) -> NDArray[np.int64]:
        """Return the public profiles times the resolution, as integers [dimension, task]; columns have L1 norm 1."""
        if self.profiles == "dense":
            return _dense_profiles(tasks, self._length(tasks), self.profile_seed)
        table = np.zeros((self._length(tasks), tasks), dtype=np.int64)
        table[np.arange(tasks) % len(table), np.arange(tasks)] = 1
        return table

    @property
    def noise_scale(self) -> Fraction:
        """Scale of the noise in the units of the report: sensitivity over epsilon, an exact rational."""
        return Fraction(2 * self._levels * self._resolution) / self._noise_epsilon

    @property
    def _noise_epsilon(self) -> Fraction:
        """Epsilon of the noise: the requested one, or just below it if binary and decimal value of the float differ."""
        binary, decimal = Fraction(self.epsilon), Fraction(repr(float(self.epsilon)))
        return binary if binary == decimal else min(binary, decimal) * (1 - MARGIN)

    @property
    def _levels(self) -> int:
        return self.alphabet.size - 1

    @property
    def _resolution(self) -> int:
        return RESOLUTION if self.profiles == "dense" else 1

    @property
    def _centre_in_half_steps(self) -> Fraction:
        if self.centre is None:
            return Fraction(self._levels)
        low, step, centre = (Fraction(repr(float(x))) for x in (self.alphabet.low, self.alphabet.step, self.centre))
        return 2 * (centre - low) / step

    @property
    def _gain(self) -> int:
        """Weight g of an answered cell in the participation sum, in half steps: sensitivity not used by values."""
        centre = int(self._centre_in_half_steps)
        return 2 * self._levels - max(centre, 2 * self._levels - centre)

    def _length(self, tasks: int) -> int:
        return tasks if self.dimensions is None else self.dimensions

    def _project(self, values: NDArray[np.int64], counts: NDArray[np.int64]) -> NDArray[np.int64]:
        """Return the profiles times each of the two columns, concatenated; shape (2 * dimensions,)."""
        both = np.stack([values, counts])
        if self.profiles == "dense":
            return (both @ self.profile_table(len(values)).T).ravel()
        length = self._length(len(values))
        sums = np.zeros((length, 2), dtype=np.int64)
        np.add.at(sums, np.arange(len(values)) % length, both.T)
        return sums.T.ravel()


def require_numeric_and_protected(name: str, alphabet: Alphabet, participation: Participation) -> Scale:
    """Return the alphabet of a matrix-factorization mechanism, which must be a `Scale`.

    Raises:
        SettingsError: the alphabet is not a `Scale`, or participation is public.
    """
    if not isinstance(alphabet, Scale):
        rule = f"{name} needs numeric answers on a scale"
        raise SettingsError(rule, value=alphabet, hint="Use randomized-response.")
    if participation != "protected":
        raise SettingsError(f"{name} has no public participation", value=participation, hint="Use laplace.")
    return alphabet


@lru_cache(maxsize=4)
def _dense_profiles(tasks: int, dimensions: int, seed: int) -> NDArray[np.int64]:
    """Return signed profiles from a public seed by SHAKE-256, indexed [dimension, task], with L1 norm RESOLUTION."""
    text = f"crowdveil-profiles/1:{seed}:{dimensions}:{tasks}".encode()
    raw = np.frombuffer(hashlib.shake_256(text).digest(4 * dimensions * tasks), dtype="<i4").astype(np.int64)
    drawn = 2 * raw.reshape(tasks, dimensions).T + 1  # odd, so that no column is all zero
    table = np.sign(drawn) * (np.abs(drawn) * RESOLUTION // np.abs(drawn).sum(axis=0))
    # The truncated remainder is added to the largest entry, so the L1 norm and epsilon are exact.
    largest, column = np.abs(drawn).argmax(axis=0), np.arange(tasks)
    table[largest, column] += np.sign(drawn[largest, column]) * (RESOLUTION - np.abs(table).sum(axis=0))
    table.flags.writeable = False
    return table
