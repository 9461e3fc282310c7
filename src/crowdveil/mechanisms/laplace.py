"""Laplace perturbation with NULL replaced by a public value (Sun et al. 2018, section IV-A, equations 6-7).

On a device the noise is the two-sided geometric law on the answer grid, folded into the domain: a finite table like any
other. `simulate_continuous_laplace` is the published real-valued form, for simulations only.
"""

import math
from dataclasses import dataclass
from functools import cache
from typing import ClassVar, Literal, final

import numpy as np
from numpy.typing import ArrayLike, NDArray

from crowdveil.channels.alphabet import Alphabet, Categories, Scale
from crowdveil.channels.certificate import REAL_VALUED
from crowdveil.channels.channel import DENOMINATOR, Channel, exp_rounded_down
from crowdveil.channels.guarantee import Participation, require_epsilon
from crowdveil.errors import SettingsError
from crowdveil.mechanisms.base import ChannelMechanism
from crowdveil.randomness import Seeded, Source

NullValue = float | Literal["uniform"]


@final
@dataclass(frozen=True, slots=True, kw_only=True)
class Laplace(ChannelMechanism):
    """Add two-sided geometric noise of scale range / epsilon to the answer and fold it back into the domain.

    With decay = exp(-epsilon * step / range), a report y of an answer x has probability proportional to
    decay ** (|x - y| / step); what falls outside is sent as the nearest end of the domain. NULL is replaced by
    `null_value` first, so no report is NULL.

    Attributes:
        alphabet: a `Scale`, or ordered `Categories`, whose positions 0, 1, ... are then the numbers.
        epsilon: privacy loss of one cell, in nats.
        participation: "public" leaves NULL cells visibly absent.
        null_value: what a protected NULL is replaced by: a value of the domain (public, chosen without looking at
            answers; the centre of the prior is a good one), or "uniform" for a uniform draw from the domain. Not used
            where participation is public.

    Raises:
        SettingsError: the alphabet has no order, epsilon is not accepted, or `null_value` is outside the domain.
    """

    name: ClassVar[str] = "laplace"
    alphabet: Alphabet
    epsilon: float
    participation: Participation = "protected"
    null_value: NullValue = "uniform"

    def __post_init__(self) -> None:
        require_epsilon(self.epsilon)
        if not self.alphabet.ordered:
            raise SettingsError(
                "laplace needs numbers or ordered labels",
                value=self.alphabet.names,
                hint="Use randomized-response, or say that the labels are ordered.",
            )
        if self.null_value != "uniform":
            _position(self.alphabet.values, self.null_value)

    @classmethod
    def examples(cls) -> "tuple[Laplace, ...]":
        """Return small instances for the contract tests."""
        return (
            cls(alphabet=Scale(0, 9), epsilon=1.0),
            cls(alphabet=Scale(-1, 1, 0.25), epsilon=3.0, null_value=0.0),
            cls(alphabet=Categories(("G", "P", "R", "X"), ordered=True), epsilon=0.5, participation="public"),
        )

    def channel(self) -> Channel:
        """Return the exact table; outputs are the values of the domain, NULL is never sent."""
        return _channel(self.alphabet, self.epsilon, self.participation, self.null_value)


def folded_geometric(size: int, epsilon: float) -> NDArray[np.float64]:
    """Return P(report | answer) of geometric noise on `size` grid points, folded into them; indexed [answer, report].

    Neighbouring points differ by a factor exp(epsilon / (size - 1)), so the two ends differ by exp(epsilon).
    """
    decay = math.exp(-epsilon / (size - 1))
    points = np.arange(size)
    weight = np.full(size, -math.expm1(-epsilon / (size - 1)))
    weight[[0, -1]] = 1.0
    return weight * decay ** np.abs(points[:, None] - points) / (1 + decay)


@cache
def _channel(alphabet: Alphabet, epsilon: float, participation: Participation, null_value: NullValue) -> Channel:
    table = folded_geometric(alphabet.size, epsilon - _rounding_room(epsilon))
    if participation == "protected":
        table = np.vstack((table, _null_row(table, alphabet, null_value)))
    claim = exp_rounded_down(epsilon)
    return Channel.from_probabilities(alphabet, participation, alphabet.names, table, claim, Laplace.name)


def _rounding_room(epsilon: float) -> float:
    """Return by how much a table's epsilon must be smaller, so that its integers keep what is claimed."""
    rounding = (1 + math.exp(epsilon)) / DENOMINATOR  # share of the rarest entry that rounding can take, at most
    return min(2 * rounding + 2e-14, epsilon / 2)


def _null_row(table: NDArray[np.float64], alphabet: Alphabet, null_value: NullValue) -> NDArray[np.float64]:
    """Return the row of NULL, which is replaced first; shape (outputs,)."""
    if null_value == "uniform":
        return np.asarray(table.mean(axis=0))
    return np.asarray(table[_position(alphabet.values, float(null_value))])


def _position(values: NDArray[np.float64], wanted: float) -> int:
    """Return the code of a value of the domain."""
    nearest = int(np.abs(values - wanted).argmin())
    if not abs(values[nearest] - wanted) <= 1e-9 * (values[1] - values[0]):
        raise SettingsError(
            "null_value must be 'uniform' or a value of the domain",
            value=wanted,
            hint=f"The nearest value is {values[nearest]:g}.",
        )
    return nearest


def binned_laplace_channel(
    domain: Scale, *, epsilon: float, participation: Participation = "protected", null_value: NullValue = "uniform"
) -> Channel:
    """Return P(bin | answer) of `simulate_continuous_laplace` reports that `domain.encode` clips and rounds.

    Estimators that use a channel can then read simulated real-valued reports. Clipping loses no information, because
    the likelihood ratio of two answers is constant beyond the domain. Binning is post-processing: epsilon is an upper
    bound.

    Args:
        domain, epsilon, null_value: as in `simulate_continuous_laplace`.
        participation: "public" where NULL cells sent nothing.

    Returns:
        Outputs are the values of the domain, NULL is never sent.

    Raises:
        SettingsError: a bad epsilon or `null_value`.
    """
    require_epsilon(epsilon)
    table = _binned_laplace(domain.size, epsilon - _rounding_room(epsilon))
    if participation == "protected":
        table = np.vstack((table, _null_row(table, domain, null_value)))
    return Channel.from_probabilities(
        domain, participation, domain.names, table, exp_rounded_down(epsilon), REAL_VALUED
    )


def _binned_laplace(size: int, epsilon: float) -> NDArray[np.float64]:
    """Return P(bin | answer) of Laplace noise on `size` points, ends taking the tails; indexed [answer, bin]."""
    # Tails are taken from the side where they are small, so that far bins keep their digits.
    cuts = (np.arange(size - 1) + 0.5 - np.arange(size)[:, None]) * epsilon / (size - 1)
    tail = 0.5 * np.exp(-np.abs(cuts))
    below, above = np.where(cuts < 0, tail, 1 - tail), np.where(cuts < 0, 1 - tail, tail)
    inner = np.where(cuts[:, 1:] < 0, np.diff(below, axis=1), -np.diff(above, axis=1))
    return np.column_stack((below[:, 0], inner, above[:, -1]))


def simulate_continuous_laplace(
    values: ArrayLike, *, domain: Scale, epsilon: float, source: Source, null_value: NullValue = "uniform"
) -> NDArray[np.float64]:
    """Add real-valued Laplace noise of scale range / epsilon, as published: FOR SIMULATIONS ONLY.

    Floating-point noise leaks the answer through its last bits, so this form protects nobody on a real device; it
    exists to reproduce the paper. Use `Laplace` on devices.

    Args:
        values: answers of any shape, clipped into the domain first; NaN stands for NULL.
        domain: the answers' domain; only its range sets the scale, its points are what "uniform" draws from.
        epsilon: privacy loss of one cell in exact real arithmetic, in nats.
        source: must be seeded.
        null_value: what NULL is replaced by.

    Returns:
        Perturbed numbers, same shape; unbounded.

    Raises:
        SettingsError: a secure source (which would make the result look private), or a bad epsilon or `null_value`.
    """
    if not isinstance(source, Seeded):
        raise SettingsError(
            "simulate_continuous_laplace is for simulations and takes a seeded source",
            value=type(source).__name__,
            hint="Use the mechanism laplace for real answers.",
        )
    require_epsilon(epsilon)
    numbers = np.clip(np.asarray(values, dtype=float), domain.low, domain.high)
    if null_value == "uniform":
        replacement = source.generator.choice(domain.values, size=numbers.shape)
    else:
        replacement = np.full(numbers.shape, domain.values[_position(domain.values, null_value)])
    noise = source.generator.laplace(scale=domain.range / epsilon, size=numbers.shape)
    return np.where(np.isnan(numbers), replacement, numbers) + noise
