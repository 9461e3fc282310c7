"""Laplace perturbation with NULL replaced by a public value (Sun et al. 2018, section IV-A, equations 6-7).

The noise is two-sided geometric on the answer grid, clipped to the domain: an exact integer channel.
"""

import math
from dataclasses import dataclass
from functools import cache
from typing import ClassVar, Literal, Self, final

import numpy as np
from numpy.typing import NDArray

from crowdveil.channels.alphabet import Alphabet
from crowdveil.channels.channel import DENOMINATOR, Channel, exp_rounded_down
from crowdveil.channels.guarantee import Participation
from crowdveil.errors import SettingsError
from crowdveil.mechanisms.base import ChannelMechanism
from crowdveil.mechanisms.settings import Settings

NullValue = float | Literal["uniform"]


@final
@dataclass(frozen=True, slots=True, kw_only=True)
class Laplace(ChannelMechanism):
    """Add two-sided geometric noise of scale range / epsilon to the answer and clip the sum to the domain.

    With decay = exp(-epsilon * step / range), the noise z has probability proportional to decay ** (|z| / step). NULL
    is replaced by `null_value` first, so no report is NULL.

    Attributes:
        alphabet: a `Scale`, or ordered `Categories` with positions 0, 1, ... as numbers.
        epsilon: privacy loss of one cell, in nats.
        participation: "protected" or "public".
        null_value: replacement of a protected NULL: a public value of the domain, chosen independently of answers (for
            example the prior mean), or "uniform" for a uniform draw from the domain.

    Raises:
        SettingsError: the alphabet has no order, epsilon is not accepted, or `null_value` is outside the domain.

    >>> from crowdveil import Scale
    >>> Laplace(alphabet=Scale(0, 10), epsilon=2.0).guarantee.epsilon <= 2.0
    True
    """

    name: ClassVar[str] = "laplace"
    alphabet: Alphabet
    epsilon: float
    participation: Participation = "protected"
    null_value: NullValue = "uniform"

    def __post_init__(self) -> None:
        self._require_valid_parameters()
        if not self.alphabet.ordered:
            raise SettingsError(
                "laplace needs numbers or ordered labels",
                value=self.alphabet.names,
                hint="Use randomized-response, or declare the labels ordered.",
            )
        if self.null_value != "uniform":
            _code_of_domain_value(self.alphabet.values, self.null_value)

    @classmethod
    def from_settings(cls, settings: Settings, alphabet: Alphabet, *, tasks: int) -> Self:
        """Return the mechanism; `null_value` is read as "uniform", an ordered label, or a number of the scale."""
        epsilon = settings.required_epsilon(cls.name)
        null_value = _read_null_value(settings.null_value, alphabet)
        return cls(alphabet=alphabet, epsilon=epsilon, participation=settings.participation, null_value=null_value)

    def channel(self) -> Channel:
        """Return the exact channel; outputs are the values of the domain, without NULL."""
        return _laplace_channel(self.alphabet, self.epsilon, self.participation, self.null_value)


def clipped_geometric_channel(size: int, epsilon: float) -> NDArray[np.float64]:
    """Return P(report | answer) of geometric noise clipped to `size` grid points, indexed [answer, report].

    Neighbouring points differ by a factor exp(epsilon / (size - 1)), so the two ends differ by exp(epsilon).
    """
    decay = math.exp(-epsilon / (size - 1))
    points = np.arange(size)
    weight = np.full(size, -math.expm1(-epsilon / (size - 1)))
    weight[[0, -1]] = 1.0
    return weight * decay ** np.abs(points[:, None] - points) / (1 + decay)


@cache
def _laplace_channel(
    alphabet: Alphabet, epsilon: float, participation: Participation, null_value: NullValue
) -> Channel:
    table = clipped_geometric_channel(alphabet.size, epsilon - _epsilon_reduction_for_rounding(epsilon))
    if participation == "protected":
        table = np.vstack((table, _null_row(table, alphabet, null_value)))
    claim = exp_rounded_down(epsilon)
    return Channel.from_probabilities(alphabet, participation, alphabet.names, table, claim, Laplace.name)


def _epsilon_reduction_for_rounding(epsilon: float) -> float:
    """Return the reduction of the real table's epsilon that keeps the rounded integer table within the claim."""
    rounding = (1 + math.exp(epsilon)) / DENOMINATOR  # largest relative rounding of the smallest entry
    return min(2 * rounding + 2e-14, epsilon / 2)


def _null_row(table: NDArray[np.float64], alphabet: Alphabet, null_value: NullValue) -> NDArray[np.float64]:
    """Return P(report | NULL), shape (outputs,); NULL is replaced before the noise is added."""
    if null_value == "uniform":
        return np.asarray(table.mean(axis=0))
    return np.asarray(table[_code_of_domain_value(alphabet.values, float(null_value))])


def _read_null_value(text: str | None, alphabet: Alphabet) -> NullValue:
    """Return the value of a text: "uniform" (also for None), the position of an ordered label, or a number."""
    if text is None or text == "uniform":
        return "uniform"
    if text in alphabet.names:
        return float(alphabet.values[alphabet.names.index(text)])
    try:
        return float(text)
    except ValueError as error:
        raise SettingsError(
            "null_value must be 'uniform' or a value of the domain", value=text, hint=f"Use one of {alphabet.names}."
        ) from error


def _code_of_domain_value(values: NDArray[np.float64], wanted: float) -> int:
    """Return the code of a value of the domain; raise SettingsError if it is none."""
    nearest = int(np.abs(values - wanted).argmin())
    if not abs(values[nearest] - wanted) <= 1e-9 * (values[1] - values[0]):
        raise SettingsError(
            "null_value must be 'uniform' or a value of the domain",
            value=wanted,
            hint=f"The nearest value is {values[nearest]:g}.",
        )
    return nearest
