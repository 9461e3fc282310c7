"""The contract of the worker's half: a mechanism states its guarantee and perturbs one worker's answers."""

from abc import ABC, abstractmethod
from typing import Any, ClassVar

import numpy as np
from numpy.typing import NDArray

from crowdveil.channels.alphabet import Alphabet
from crowdveil.channels.channel import Channel
from crowdveil.channels.guarantee import Guarantee, Participation
from crowdveil.errors import SettingsError
from crowdveil.randomness import Source


class Mechanism(ABC):
    """Randomizes answers on the worker's device.

    Answers are codes, one per task of the campaign and in its order; `alphabet.size` stands for NULL. Where
    participation is public, NULL cells are passed on as they are; where it is protected they are perturbed like others.

    Subclasses are frozen dataclasses with at least the attributes below.

    Attributes:
        name: the word on the command line.
        examples: values for the contract tests, at least one with each participation the mechanism supports.
        alphabet: what an answer can be.
        epsilon: the privacy loss asked for, in nats, per cell.
        participation: "protected" or "public".
    """

    name: ClassVar[str]
    alphabet: Alphabet
    epsilon: float
    participation: Participation

    @classmethod
    @abstractmethod
    def examples(cls) -> "tuple[Mechanism, ...]":
        """Return small instances on which every promise is tested."""

    @property
    @abstractmethod
    def guarantee(self) -> Guarantee:
        """What one cell is promised: the exact epsilon, and the claimed one where a paper claims another."""

    def guarantees(self, cells: int) -> tuple[Guarantee, Guarantee]:
        """Return what one cell, and a whole worker, is promised when a worker sends `cells` cells, NULL cells included.

        Basic composition over independent cells; a mechanism whose cells depend on one another says it better.
        """
        return self.guarantee, self.guarantee.per_worker(cells)

    @abstractmethod
    def channel(self) -> Channel | None:
        """Return the per-cell channel, or None where cells are not perturbed independently of one another."""

    def single_cell_channel(self) -> Channel | None:
        """Return the law of one cell alone, whatever cells share; None where a report is not made of cells."""
        return self.channel()

    @abstractmethod
    def perturb(self, answers: NDArray[np.integer], source: Source) -> NDArray[Any]:
        """Return the report of one worker: its length depends on the mechanism and the number of tasks only.

        Args:
            answers: codes, shape (tasks,), `alphabet.size` where NULL.
            source: `randomness.secure()` on a device.

        Raises:
            SettingsError: a code outside the alphabet.
        """

    def _checked(self, answers: NDArray[np.integer]) -> NDArray[np.int64]:
        """Return the codes as int64 if every one is a label's or NULL's."""
        codes = np.asarray(answers)
        if codes.ndim != 1 or codes.dtype.kind not in "iu":
            raise SettingsError("answers must be one integer code per task", value=(codes.shape, str(codes.dtype)))
        if codes.size and not (codes.min() >= 0 and codes.max() <= self.alphabet.size):
            raise SettingsError(
                f"answer codes must be in 0..{self.alphabet.size} ({self.alphabet.size} is NULL)",
                value=(int(codes.min()), int(codes.max())),
            )
        return codes.astype(np.int64)


class ChannelMechanism(Mechanism):
    """A mechanism that perturbs every cell independently through one channel."""

    @abstractmethod
    def channel(self) -> Channel:
        """Return the exact integer channel that every cell passes through."""

    @property
    def guarantee(self) -> Guarantee:
        """Exact epsilon of the integer channel, per cell."""
        return self.channel().guarantee

    def perturb(self, answers: NDArray[np.integer], source: Source) -> NDArray[np.int64]:
        """Draw one report symbol per task, as codes into `channel().outputs`; a public NULL stays NULL.

        Where participation is public and a cell is NULL, the report's code is `len(channel().outputs)`.
        """
        codes, channel = self._checked(answers), self.channel()
        if self.participation == "protected":
            return channel.sample(codes, source)
        reports = np.full(codes.shape, len(channel.outputs), dtype=np.int64)
        given = codes < self.alphabet.size
        reports[given] = channel.sample(codes[given], source)
        return reports
