"""Requested settings of a mechanism, as read from a command line; each mechanism builds itself from them."""

from abc import ABC, abstractmethod
from dataclasses import dataclass

from crowdveil.channels.alphabet import Alphabet
from crowdveil.channels.channel import Channel
from crowdveil.channels.guarantee import Participation
from crowdveil.errors import SettingsError
from crowdveil.mechanisms.design_objective import DesignObjective


@dataclass(frozen=True, slots=True, kw_only=True)
class Settings(ABC):
    """Settings that have not been checked against each other; None is the default of the mechanism.

    Attributes:
        epsilon: privacy loss of one cell, in nats; None only where `low` and `high` determine it.
        participation: "protected" or "public".
        null_value: laplace: "uniform", a number of the scale, or an ordered label.
        low, high: two-layer: ends of the interval of flip probabilities; sun-two-layer: `low` is the smallest budget.
        answers: two-layer, sun-two-layer: largest number of cells of one worker.
        dimensions: matrix factorization: length of the sums.
        ridge: matrix-factorization-published: weight of the squared profile in its loss.
        cuts: quantized-response: first label of each block after the first; empty: chosen for the objective.
    """

    epsilon: float | None = None
    participation: Participation = "protected"
    null_value: str | None = None
    low: float | None = None
    high: float | None = None
    answers: int | None = None
    dimensions: int | None = None
    ridge: float | None = None
    cuts: tuple[str, ...] = ()

    @abstractmethod
    def objective(self, alphabet: Alphabet) -> DesignObjective:
        """Return the design objective under the public model of the answers."""

    @abstractmethod
    def designed_channel(self, alphabet: Alphabet, epsilon: float) -> Channel:
        """Return the channel designed for the objective; computed by the curator, before the campaign."""

    def required_epsilon(self, mechanism: str) -> float:
        """Return epsilon; raise SettingsError, which names the mechanism, if it is missing."""
        if self.epsilon is None:
            raise SettingsError(f"{mechanism} needs an epsilon", value=None)
        return self.epsilon
