"""Matrix factorization, corrected: a noisy vector of integers per worker, with exact epsilon.

Sun et al. 2018, section V, send the minimiser of a perturbed loss, which does not protect participation (see
`published.matrix_factorization`). Here the worker sends the sufficient statistic b = sum_j v_j (a_j - c), which has
bounded sensitivity, with discrete Laplace noise. All numbers are integers: answers in half steps of the scale from its
midpoint c. The public profile v_j of a task is a unit vector. Proof:
docs/explanation/mechanisms/matrix-factorization.md.
"""

from dataclasses import dataclass
from fractions import Fraction
from typing import ClassVar, Literal, Self, final

import numpy as np
from numpy.typing import NDArray

from crowdveil.channels.alphabet import Alphabet, Scale
from crowdveil.channels.guarantee import Guarantee, Participation
from crowdveil.channels.profile_totals import ProfileTotals
from crowdveil.channels.rounding import float_rounded_up
from crowdveil.errors import SettingsError
from crowdveil.mechanisms.base import Mechanism
from crowdveil.mechanisms.discrete_laplace import (
    discrete_laplace_variance,
    sample_discrete_laplace,
    simulate_discrete_laplace_sum,
)
from crowdveil.mechanisms.settings import Settings
from crowdveil.randomness import Seeded, Source

MARGIN = Fraction(1, 10**12)
"""Relative reduction of the noise's epsilon for decimals such as 0.1, so that rounded-up sums stay below 0.1 n."""


@final
@dataclass(frozen=True, slots=True, kw_only=True)
class MatrixFactorization(Mechanism):
    """Send sum_j v_j (a_j - c) and sum_j v_j g [j answered], both with discrete Laplace noise of scale W / epsilon.

    W = high - low; c is the midpoint, and g = W / 2 costs nothing (see the theorem). Task j adds to bucket j mod d.

    Attributes:
        alphabet: the grid of answers.
        epsilon: exact privacy loss of one cell, in nats.
        dimensions: length d of each of the two sums; None for one bucket per task (d = number of tasks).
        participation: always "protected".

    >>> from crowdveil import Scale
    >>> MatrixFactorization(alphabet=Scale(0, 10), epsilon=2.0, dimensions=4).guarantee.unit
    'cell'
    """

    name: ClassVar[str] = "matrix-factorization"
    sends: ClassVar[Literal["symbols", "numbers", "sum"]] = "sum"
    alphabet: Scale
    epsilon: float
    dimensions: int | None = None
    participation: Participation = "protected"

    def __post_init__(self) -> None:
        self._require_valid_parameters()
        require_numeric_and_protected(self.name, self.alphabet, self.participation)
        if self.dimensions is not None and self.dimensions < 1:
            raise SettingsError("dimensions must be at least 1", value=self.dimensions)

    @classmethod
    def from_settings(cls, settings: Settings, alphabet: Alphabet, *, tasks: int) -> Self:
        """Return the mechanism; by default every task has a bucket of its own."""
        epsilon = settings.required_epsilon(cls.name)
        scale = require_numeric_and_protected(cls.name, alphabet, settings.participation)
        return cls(alphabet=scale, epsilon=epsilon, dimensions=settings.dimensions)

    @property
    def guarantee(self) -> Guarantee:
        """Guarantee of one cell, value against value and value against NULL."""
        return Guarantee(epsilon=float_rounded_up(self._noise_epsilon_rounded_down))

    def channel(self) -> None:
        """Return None: a report combines all cells."""
        return None

    def perturb(self, answers: NDArray[np.integer], source: Source) -> NDArray[np.int64]:
        """Return one worker's report: the noisy sum of values, then that of participation; shape (2 * dimensions,).

        Units: half a step of the scale; `totals` turns sums back into answers.
        """
        codes = self._validated(answers)
        answered = codes < self.alphabet.size
        values = np.where(answered, 2 * codes - self._scale_step_count, 0)
        exact = self._value_and_count_sums_by_bucket(values, np.where(answered, self._scale_step_count, 0))
        return exact + np.array(sample_discrete_laplace(self.noise_scale, len(exact), source), dtype=np.int64)

    def simulate_sum_of_reports(
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
        np.add.at(values, task, 2 * np.asarray(code, dtype=np.int64) - self._scale_step_count)
        np.add.at(counts, task, self._scale_step_count)
        exact = self._value_and_count_sums_by_bucket(values, counts)
        return exact + simulate_discrete_laplace_sum(self.noise_scale, workers, len(exact), source)

    def totals_in_answer_units(self, summed: NDArray[np.integer], *, tasks: int, workers: int) -> ProfileTotals:
        """Return the sum of `workers` reports in the units of the answers.

        Args:
            summed: sum over workers of their reports, shape (2 * dimensions,).
            tasks: number of tasks of the campaign.
            workers: number of reports in the sum.

        Raises:
            SettingsError: the sum has the wrong length.
        """
        length = self._bucket_count(tasks)
        if summed.shape != (2 * length,):
            raise SettingsError(f"a sum of reports about {tasks} tasks has {2 * length} numbers", value=summed.shape)
        unit, share = self.alphabet.step / 2, 1.0 / self._scale_step_count
        deviation = (workers * discrete_laplace_variance(self.noise_scale)) ** 0.5
        return ProfileTotals(
            numerators=np.multiply(summed[:length], unit, dtype=np.float64),
            counts=np.multiply(summed[length:], share, dtype=np.float64),
            numerator_deviation=deviation * unit,
            count_deviation=deviation * share,
            buckets=np.arange(tasks) % length,
            low=self.alphabet.low,
            high=self.alphabet.high,
            workers=workers,
        )

    @property
    def noise_scale(self) -> Fraction:
        """Scale of the noise in the units of the report: sensitivity over epsilon, an exact rational."""
        return Fraction(2 * self._scale_step_count) / self._noise_epsilon_rounded_down

    @property
    def _noise_epsilon_rounded_down(self) -> Fraction:
        """Epsilon of the noise: the requested one, or just below it if binary and decimal value of the float differ."""
        binary, decimal = Fraction(self.epsilon), Fraction(repr(float(self.epsilon)))
        return binary if binary == decimal else min(binary, decimal) * (1 - MARGIN)

    @property
    def _scale_step_count(self) -> int:
        """Steps of the scale: half its range in half steps, the midpoint c and the weight g of an answer."""
        return self.alphabet.size - 1

    def _bucket_count(self, tasks: int) -> int:
        return tasks if self.dimensions is None else self.dimensions

    def _value_and_count_sums_by_bucket(
        self, values: NDArray[np.int64], counts: NDArray[np.int64]
    ) -> NDArray[np.int64]:
        """Return the sums of two columns of shape (tasks,) over each bucket, concatenated; shape (2 * dimensions,)."""
        both = np.stack([values, counts])
        length = self._bucket_count(len(values))
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
