"""Matrix factorization as published (Sun et al. 2018, section V, Algorithm 2). Simulation only: no privacy.

The minimiser of the perturbed loss reveals which tasks a worker answered, so Theorem 4 is false as stated; see
docs/explanation/mechanisms/matrix-factorization-published.md. Secure randomness is refused, so no device can use it.
"""

import math
from dataclasses import dataclass
from functools import lru_cache
from typing import ClassVar, Literal, Self, final

import numpy as np
from numpy.typing import NDArray

from crowdveil.channels.alphabet import Alphabet, Scale
from crowdveil.channels.guarantee import Guarantee, Participation
from crowdveil.channels.rounding import float_rounded_up, format_bound, lower_exact_value
from crowdveil.errors import NoMinimiserError, SettingsError
from crowdveil.mechanisms.base import Mechanism
from crowdveil.mechanisms.matrix_factorization import require_numeric_and_protected
from crowdveil.mechanisms.settings import Settings
from crowdveil.randomness import WORD_BITS, Source, seeded

Profiles = Literal["gaussian", "uniform"]


@final
@dataclass(frozen=True, slots=True, kw_only=True)
class MatrixFactorizationPublished(Mechanism):
    """Send u V, where u minimises sum_j (a_j - u v_j)^2 + 2 u eta over answered j, eta_k ~ Laplace(|Gamma| / epsilon).

    The published loop descends "until the gradient is zero"; here its equation is solved: (A + ridge I) u = b - eta
    with A = sum v_j v_j^T and b = sum a_j v_j over the answered tasks.

    Attributes:
        alphabet: the grid of answers; |Gamma| is its number of points, as in the paper, not its range.
        epsilon: the paper's claim.
        tasks, dimensions: numbers n of tasks and d of dimensions of the public profiles V, indexed [dimension, task].
        profiles: distribution of V before its columns are scaled to L1 norm 1; the paper says only "randomly".
        profile_seed: public seed of V.
        ridge: weight of an added ridge |u|^2, which the paper does not have; without it there is often no minimiser.
        participation: "protected", as claimed; `guarantee` has the exact figure.
    """

    name: ClassVar[str] = "matrix-factorization-published"
    sends: ClassVar[Literal["symbols", "numbers", "sum"]] = "numbers"
    alphabet: Scale
    epsilon: float
    tasks: int
    dimensions: int
    profiles: Profiles = "gaussian"
    profile_seed: int = 0
    ridge: float = 0.0
    participation: Participation = "protected"

    def __post_init__(self) -> None:
        self._require_valid_parameters()
        require_numeric_and_protected(self.name, self.alphabet, self.participation)
        if not (self.tasks >= 1 and self.dimensions >= 1):
            raise SettingsError("tasks and dimensions must be at least 1", value=(self.tasks, self.dimensions))
        if self.profiles not in ("gaussian", "uniform"):
            raise SettingsError("profiles must be 'gaussian' or 'uniform'", value=self.profiles)
        if not 0 <= self.ridge < math.inf:
            raise SettingsError("ridge must be finite and not negative", value=self.ridge)

    @classmethod
    def from_settings(cls, settings: Settings, alphabet: Alphabet, *, tasks: int) -> Self:
        """Return the mechanism with Gaussian profiles; `dimensions` is required."""
        epsilon = settings.required_epsilon(cls.name)
        scale = require_numeric_and_protected(cls.name, alphabet, settings.participation)
        if settings.dimensions is None:
            raise SettingsError(
                f"{cls.name} needs a number of dimensions", value=None, hint="The paper uses a small number."
            )
        ridge = settings.ridge or 0.0
        return cls(alphabet=scale, epsilon=epsilon, tasks=tasks, dimensions=settings.dimensions, ridge=ridge)

    @property
    def guarantee(self) -> Guarantee:
        """Guarantee of one cell: the claimed epsilon; the exact one is infinite."""
        return Guarantee(
            epsilon=math.inf,
            claimed=self.epsilon,
            reason="the size of the minimiser shows which tasks were answered (participation attack); "
            f"only values, for a known set of answered tasks, are protected, at {format_bound(self.value_epsilon)}",
        )

    @property
    def value_epsilon(self) -> float:
        """Epsilon of value against value for known answered tasks, range / |Gamma| * epsilon (part of Theorem 4)."""
        return float_rounded_up(
            lower_exact_value(self.alphabet.range) / self.alphabet.size * lower_exact_value(self.epsilon)
        )

    def channel(self) -> None:
        """Return None: a report combines all cells."""
        return None

    @property
    def profile_table(self) -> NDArray[np.float64]:
        """Public profiles V, indexed [dimension, task]; every column has L1 norm 1."""
        return _profiles(self.tasks, self.dimensions, self.profiles, self.profile_seed)

    def perturb(self, answers: NDArray[np.integer], source: Source) -> NDArray[np.float64]:
        """Return u V, one number for every task, answered or not, shape (tasks,).

        Raises:
            SettingsError: the source is secure, or the answers have the wrong form.
            NoMinimiserError: without ridge, the answered profiles do not span all dimensions.
        """
        return self.noisy_worker_profile(answers, source) @ self.profile_table

    def noisy_worker_profile(self, answers: NDArray[np.integer], source: Source) -> NDArray[np.float64]:
        """Return the minimiser u, shape (dimensions,); raises as `perturb` does."""
        codes = self._validated(answers)
        if len(codes) != self.tasks:
            raise SettingsError(f"answers must cover the {self.tasks} tasks", value=len(codes))
        eta = self.noise(source)
        answered = np.flatnonzero(codes < self.alphabet.size)
        profiles = self.profile_table[:, answered]
        rank = int(np.linalg.matrix_rank(profiles)) if answered.size else 0
        if self.ridge == 0 and rank < self.dimensions:
            raise NoMinimiserError(answers=rank, dimensions=self.dimensions)
        matrix = profiles @ profiles.T + self.ridge * np.eye(self.dimensions)
        wanted = profiles @ self.alphabet.values[codes[answered]] - eta
        return np.asarray(np.linalg.solve(matrix, wanted), dtype=np.float64)

    def noise(self, source: Source) -> NDArray[np.float64]:
        """Return eta, shape (dimensions,), as `noisy_worker_profile` draws it.

        Raises:
            SettingsError: the source is secure.
        """
        if not source.simulation:
            raise SettingsError(
                f"{self.name} is for simulations only, without privacy",
                value="secure randomness",
                hint="Use matrix-factorization on a device.",
            )
        centred = (source.words(self.dimensions) + 0.5) / 2.0**WORD_BITS - 0.5
        scale = self.alphabet.size / self.epsilon
        return np.multiply(-scale * np.sign(centred), np.log1p(-2 * np.abs(centred)), dtype=np.float64)


@lru_cache(maxsize=4)
def _profiles(tasks: int, dimensions: int, distribution: Profiles, seed: int) -> NDArray[np.float64]:
    generator = seeded(seed).generator
    shape = (dimensions, tasks)
    drawn = generator.standard_normal(shape) if distribution == "gaussian" else generator.random(shape)
    table = drawn / np.abs(drawn).sum(axis=0)
    table.flags.writeable = False
    return table
