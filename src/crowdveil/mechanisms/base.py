"""Mechanisms: the contract of the worker's device, for independent cells and for cells that share a secret.

A cell is one worker's single answer to one task, or NULL where the worker gives no answer. A mechanism states its
privacy guarantee and turns one worker's answers into that worker's report.
"""

from abc import ABCMeta, abstractmethod
from collections.abc import Iterable
from dataclasses import replace
from inspect import isabstract
from typing import Any, ClassVar, Literal, Self

import numpy as np
from numpy.typing import NDArray

from crowdveil.arguments import KnownArguments, require_instance
from crowdveil.channels.alphabet import Alphabet, Categories, Scale
from crowdveil.channels.channel import Channel
from crowdveil.channels.guarantee import Guarantee, Participation, require_epsilon, require_participation
from crowdveil.channels.rounding import sum_rounded_up
from crowdveil.errors import SettingsError
from crowdveil.mechanisms.settings import Settings
from crowdveil.randomness import Source

MAX_ANSWERS = 1_000_000
"""Largest number of cells of one worker for which the loss under a shared secret is computed."""


class MechanismType(ABCMeta):
    """Type of mechanisms: `dir`, and so `help`, lists public names; those of an abstract class are complete."""

    def __dir__(cls) -> Iterable[str]:
        """Return the names for users."""
        return [name for name in super().__dir__() if isabstract(cls) or not name.startswith("_")]


class Mechanism(KnownArguments, metaclass=MechanismType):
    """Randomizer of one worker's answers; subclasses are frozen dataclasses.

    Answers are codes, one per task of the campaign and in its order; `alphabet.size` is NULL. Protected participation
    perturbs NULL cells like all others; public participation passes them on unchanged.

    Attributes:
        name: name on the command line.
        sends: what a device sends: one symbol for each cell, one number for each task, or a vector that is summed.
        alphabet: possible answers.
        epsilon: requested privacy loss of one cell, in nats.
        participation: "protected" or "public".
    """

    name: ClassVar[str]
    sends: ClassVar[Literal["symbols", "numbers", "sum"]] = "symbols"
    alphabet: Alphabet
    epsilon: float
    participation: Participation

    def _require_valid_parameters(self) -> None:
        """Refuse what `_require_valid_alphabet` refuses, and an epsilon out of range."""
        self._require_valid_alphabet()
        require_epsilon(self.epsilon)

    def _require_valid_alphabet(self) -> None:
        """Refuse another type of alphabet, and an unknown participation."""
        hint = "Labels are Categories(('no', 'yes')), numbers Scale(0, 10)."
        require_instance("alphabet", self.alphabet, (Categories, Scale), what="Categories or a Scale", hint=hint)
        require_participation(self.participation)

    @classmethod
    def from_settings(cls, settings: Settings, alphabet: Alphabet, *, tasks: int) -> Self:
        """Return the mechanism with these settings; a mechanism with own settings overrides it.

        Args:
            settings: requested settings.
            alphabet: possible answers.
            tasks: number of tasks of the campaign.

        Raises:
            SettingsError: a setting is missing, or the mechanism refuses a setting or the alphabet.
        """
        constructor: Any = cls
        epsilon = settings.required_epsilon(cls.name)
        mechanism: Self = constructor(alphabet=alphabet, epsilon=epsilon, participation=settings.participation)
        return mechanism

    @property
    @abstractmethod
    def guarantee(self) -> Guarantee:
        """Guarantee of one cell: exact epsilon, and the claimed epsilon where the source states another one."""

    def guarantees(self, cells: int) -> tuple[Guarantee, Guarantee]:
        """Return the guarantees of one cell and of a whole worker who sends `cells` cells, NULL cells included.

        Basic composition over independent cells; mechanisms with dependent cells override it.
        """
        return self.guarantee, self.guarantee.per_worker(cells)

    def guarantees_over(self, cells: int, rounds: int) -> tuple[Guarantee, Guarantee]:
        """Return the guarantees of one cell and of a whole worker over `rounds` campaigns on the same cells."""
        cell, worker = self.guarantees(cells)
        return cell.times(rounds), worker.times(rounds)

    @abstractmethod
    def channel(self) -> Channel | None:
        """Return the channel of each cell; None if the cells of one worker are not perturbed independently."""

    def marginal_channel(self) -> Channel | None:
        """Return the marginal channel of one cell; None if the report does not consist of cells."""
        return self.channel()

    @abstractmethod
    def perturb(self, answers: NDArray[np.integer], source: Source) -> NDArray[Any]:
        """Return the report of one worker; its length depends on the mechanism and the number of tasks only.

        Args:
            answers: codes, shape (tasks,), `alphabet.size` where NULL.
            source: `randomness.secure()` on a device.

        Raises:
            SettingsError: a code outside the alphabet.
        """

    def _validated(self, answers: NDArray[np.integer]) -> NDArray[np.int64]:
        """Return the answers as int64 codes of labels or NULL; raise SettingsError for any other code."""
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
    """Mechanism that perturbs every cell independently through one channel."""

    @abstractmethod
    def channel(self) -> Channel:
        """Return the exact integer channel of every cell."""

    @property
    def guarantee(self) -> Guarantee:
        """Guarantee of one cell, with the exact epsilon of the integer channel."""
        return self.channel().guarantee

    def perturb(self, answers: NDArray[np.integer], source: Source) -> NDArray[np.int64]:
        """Return one report per task, as codes into `channel().outputs`; a public NULL is `len(channel().outputs)`."""
        codes, channel = self._validated(answers), self.channel()
        if self.participation == "protected":
            return channel.sample(codes, source)
        reports = np.full(codes.shape, len(channel.outputs), dtype=np.int64)
        given = codes < self.alphabet.size
        reports[given] = channel.sample(codes[given], source)
        return reports


class SharedSecretMechanism(Mechanism):
    """Mechanism that draws one secret parameter per worker and perturbs all of the worker's cells with it.

    The cells of one worker are dependent, so the loss of one cell grows with the number k of cells.

    Attributes:
        answers: largest number of cells one worker sends, NULL cells included where protected; None for any number.
    """

    answers: int | None

    @abstractmethod
    def marginal_channel(self) -> Channel:
        """Return the exact marginal channel of one cell, for likelihoods that ignore the dependence.

        It is no certificate: its epsilon holds for a worker who sends a single cell.
        """

    @abstractmethod
    def _loss_of_one_of_cells(self, cells: int) -> float:
        """Return the privacy loss of one of `cells` cells, numerical error included, in nats."""

    @abstractmethod
    def _worker_loss(self, cells: int) -> float:
        """Return the privacy loss of `cells` cells together, numerical error included, in nats."""

    @abstractmethod
    def _upper_bound_of_cell_loss(self) -> float:
        """Return an upper bound on the loss of one cell for any number of cells, in nats; may be infinite."""

    @abstractmethod
    def _reason(self, cells: int | None, epsilon: float) -> str:
        """Return the sentence that explains an exact epsilon above the claim; `cells` is None for any number."""

    def channel(self) -> None:
        """Return None: the cells of one worker share a secret and are not independent."""
        return None

    @property
    def guarantee(self) -> Guarantee:
        """Exact guarantee of one of `answers` cells, with the paper's epsilon as the claim."""
        return self._cell_guarantee(self.answers)

    def guarantees(self, cells: int) -> tuple[Guarantee, Guarantee]:
        """Return the exact guarantees of one cell and of all cells of a worker who sends `cells` cells.

        Raises:
            SettingsError: `cells` is above `answers`, or outside 1..1,000,000.
        """
        most = self.answers or MAX_ANSWERS
        if not 1 <= cells <= most:
            raise SettingsError(
                f"a worker sends 1 to {most:,} cells",
                value=cells,
                hint="Raise the largest number of cells of a worker.",
            )
        cell = self._cell_guarantee(cells)
        if cells == 1:
            return cell, cell.per_worker(1)
        composed = sum_rounded_up([(self._upper_bound_of_cell_loss(), cells)])
        worker = replace(cell.per_worker(cells), epsilon=min(self._worker_loss(cells), composed))
        return cell, worker if worker.epsilon > cells * self.epsilon else replace(worker, reason="")

    def _cell_guarantee(self, cells_per_worker: int | None) -> Guarantee:
        if cells_per_worker == 1:
            epsilon = self.marginal_channel().epsilon
        else:
            bound = self._upper_bound_of_cell_loss()
            epsilon = bound if cells_per_worker is None else min(bound, self._loss_of_one_of_cells(cells_per_worker))
        reason = self._reason(cells_per_worker, epsilon) if epsilon > self.epsilon else ""
        return Guarantee(epsilon=epsilon, participation=self.participation, claimed=self.epsilon, reason=reason)

    def _require_answer_count_in_range(self) -> None:
        if self.answers is not None and not 1 <= self.answers <= MAX_ANSWERS:
            raise SettingsError(f"answers must be in 1..{MAX_ANSWERS}", value=self.answers)

    @staticmethod
    def _most_cells_of_one_worker(settings: Settings, tasks: int) -> int:
        """Return the largest number of cells of one worker; by default the number of tasks."""
        return min(tasks, MAX_ANSWERS) if settings.answers is None else settings.answers

    def _require_at_most_allowed_cells(self, cells: int) -> None:
        """Raise SettingsError if a device is about to send more cells than `answers`."""
        if self.answers is not None and cells > self.answers:
            raise SettingsError(
                f"the guarantee holds for at most {self.answers} cells of one worker",
                value=cells,
                hint="Set answers to the number of tasks (NULL cells count where participation is protected).",
            )


def flip_symbols(
    codes: NDArray[np.integer], weights: NDArray[np.uint64], symbols: int, source: Source
) -> NDArray[np.int64]:
    """Return the symbols after independent replacement, shape (cells,).

    Each cell reads one word; the operations do not depend on its answer.

    Args:
        codes: symbols, shape (cells,).
        weights: probability of each other symbol, times 2^48, shape (cells,) or (1,); at most 2^48 / (symbols - 1).
        symbols: number of symbols a cell can hold.
    """
    words = source.words(codes.size)
    shift = 1 + words // np.maximum(weights, np.uint64(1))
    replaced = words < np.uint64(symbols - 1) * weights
    return np.where(replaced, codes + shift.astype(np.int64), codes) % symbols
