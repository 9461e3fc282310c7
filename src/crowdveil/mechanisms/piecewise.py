"""Mechanisms for numbers from three papers by one formula, and the staircase mechanism, as exact integer channels.

An answer is a number x in [0, 1]. The published report is a number with a density that is e^epsilon times as high on a
window around x as elsewhere. All inputs that a report can have come from a finite scale, so the line of reports is cut
at the ends of all windows. Pieces that lie in the same windows are one symbol: nothing is lost, and no ratio changes.
Proof, and the papers: docs/explanation/mechanisms/piecewise.md.
"""

from collections.abc import Callable
from dataclasses import dataclass, replace
from fractions import Fraction
from functools import cache
from itertools import pairwise
from typing import Any, ClassVar, Self, cast, final

import numpy as np
from numpy.typing import NDArray

from crowdveil.channels.alphabet import NULL, Alphabet
from crowdveil.channels.channel import DENOMINATOR, Channel, exp_rounded_down
from crowdveil.channels.guarantee import Participation
from crowdveil.errors import SettingsError
from crowdveil.mechanisms.base import ChannelMechanism
from crowdveil.mechanisms.quantized_response import block_names

MAX_ANSWERS = 512
"""Largest number of answers: a certificate holds 1,025 symbols, and these mechanisms have up to two for each answer."""
SLIVER = Fraction(1, 1 << 16)
"""Smallest length of a piece, in lengths of a window: entries of shorter ones are too small to be rounded well."""
ROUNDING = 1e-14
"""Bound on the relative error of the ratio of two entries in floating point."""

Window = tuple[Fraction, Fraction]
"""Start and end of the reports that an answer makes more likely, in [0, 1]."""


@dataclass(frozen=True, slots=True, kw_only=True)
class NumberMechanism(ChannelMechanism):
    """Mechanism for a number or an ordered label; a protected NULL has a symbol of its own.

    Attributes:
        alphabet: a `Scale`, or ordered `Categories`.
        epsilon: privacy loss of one cell, in nats.
        participation: "protected" or "public".

    Raises:
        SettingsError: the alphabet has no order or more than `MAX_ANSWERS` answers, or epsilon is not accepted.
    """

    alphabet: Alphabet
    epsilon: float
    participation: Participation = "protected"

    def __post_init__(self) -> None:
        self._require_valid_parameters()

    def on_scale(self, alphabet: Alphabet) -> Self:
        """Return the mechanism with the same epsilon for other answers."""
        return replace(cast(Any, self), alphabet=alphabet)

    def _require_valid_parameters(self) -> None:
        ChannelMechanism._require_valid_parameters(self)
        if not self.alphabet.ordered:
            raise SettingsError(
                f"{self.name} needs numbers or ordered labels",
                value=self.alphabet.names,
                hint="Use randomized-response, or declare the labels ordered.",
            )
        if self.alphabet.size > MAX_ANSWERS:
            raise SettingsError(
                f"{self.name} has at most {MAX_ANSWERS} answers", value=self.alphabet.size, hint="Use a coarser step."
            )


@dataclass(frozen=True, slots=True, kw_only=True)
class WindowMechanism(NumberMechanism):
    """Mechanism whose report is e^epsilon times as likely from a window around the answer as from elsewhere.

    Attributes:
        alphabet, epsilon, participation: as `NumberMechanism`.
    """

    @staticmethod
    def window_width(epsilon: float) -> Fraction:
        """Return the width of the windows, 1 / (e^(epsilon/2) + 1), within 1e-40 relatively."""
        return 1 / (exp_rounded_down(epsilon / 2) + 1)

    @staticmethod
    def window_start(position: Fraction, width: Fraction) -> Fraction:
        """Return where the window of an answer begins, for positions and reports in [0, 1]."""
        return position * (1 - width)

    def channel(self) -> Channel:
        """Return the exact channel; a symbol is named by the answers that it is most likely from."""
        return _window_channel(type(self), self.alphabet, self.epsilon, self.participation)


@final
@dataclass(frozen=True, slots=True, kw_only=True)
class Piecewise(WindowMechanism):
    """Piecewise mechanism of Wang et al. (ICDE 2019): windows of width 1 / (e^(epsilon/2) + 1).

    Attributes:
        alphabet: a `Scale`, or ordered `Categories`.
        epsilon: privacy loss of one cell, in nats.
        participation: "protected" or "public".

    >>> from crowdveil import Scale
    >>> len(Piecewise(alphabet=Scale(0, 10), epsilon=1.0, participation="public").channel().outputs)
    21
    """

    name: ClassVar[str] = "piecewise"


@final
@dataclass(frozen=True, slots=True, kw_only=True)
class Ogpm(WindowMechanism):
    """Optimal generalized piecewise mechanism of Zheng, Mishra and Hu (PETS 2025): windows around the answer itself.

    A window has the width of `Piecewise`. Answers within half of it of an end of the scale have the same window.

    Attributes:
        alphabet, epsilon, participation: as `Piecewise`.

    >>> from crowdveil import Scale
    >>> Ogpm(alphabet=Scale(0, 10), epsilon=1.0).guarantee.epsilon <= 1.0
    True
    """

    name: ClassVar[str] = "ogpm"

    @staticmethod
    def window_start(position: Fraction, width: Fraction) -> Fraction:
        """Return where the window of an answer begins, for positions and reports in [0, 1]."""
        return min(max(position - width / 2, Fraction(0)), 1 - width)


@final
@dataclass(frozen=True, slots=True, kw_only=True)
class SquareWave(WindowMechanism):
    """Square wave mechanism of Li et al. (SIGMOD 2020): wide windows, for many answers to a task.

    Attributes:
        alphabet, epsilon, participation: as `Piecewise`.

    >>> from crowdveil import Scale
    >>> SquareWave(alphabet=Scale(0, 10), epsilon=1.0).guarantee.epsilon <= 1.0
    True
    """

    name: ClassVar[str] = "square-wave"

    @staticmethod
    def window_width(epsilon: float) -> Fraction:
        """Return the width of the windows, within 1e-40 relatively."""
        ratio, exact = exp_rounded_down(epsilon), Fraction(epsilon)
        half = (exact * ratio - ratio + 1) / (2 * ratio * (ratio - 1 - exact))
        return 2 * half / (1 + 2 * half)


@final
@dataclass(frozen=True, slots=True, kw_only=True)
class Staircase(NumberMechanism):
    """Staircase mechanism of Geng and Viswanath: noise on the grid, equally likely in steps, clamped to the scale.

    With D = answers - 1 and r = ceil(D / (1 + e^(epsilon/2))), the noise z has a probability proportional to
    e^(-epsilon k), k = floor((|z| + D - r) / D).

    Attributes:
        alphabet, epsilon, participation: as `Piecewise`.

    >>> from crowdveil import Scale
    >>> Staircase(alphabet=Scale(0, 3), epsilon=4.0).channel().outputs
    ('0', '1', '2', '3', 'NULL')
    """

    name: ClassVar[str] = "staircase"

    def channel(self) -> Channel:
        """Return the exact channel; outputs are the labels, then NULL where protected."""
        return _staircase_channel(self.alphabet, self.epsilon, self.participation)


def windows_of_answers(kind: type[WindowMechanism], answers: int, width: Fraction) -> list[Window]:
    """Return the window of each of some equally spaced answers from 0 to 1."""
    starts = [kind.window_start(Fraction(code, answers - 1), width) for code in range(answers)]
    return [(start, start + width) for start in starts]


def with_null_symbol(table: NDArray[np.float64], ratio: float) -> NDArray[np.float64]:
    """Return a table [answer, report] with a last row and a last column for NULL, of the same ratio.

    NULL is reported as an answer with the least probability that the ratio allows.

    Args:
        table: probabilities; rows sum to 1.
        ratio: largest ratio of two entries of a column, above 1.
    """
    least = table.max(axis=0) / ratio
    share = (1 - least.sum()) / (ratio - least.sum())
    answers = np.column_stack(((1 - share) * table, np.full(len(table), share)))
    return np.vstack((answers, np.append((1 - share) * least, share * ratio)))


def _cut_at_window_ends(windows: list[Window]) -> dict[tuple[int, ...], float]:
    """Return the lengths of the pieces of the line of reports, by the answers whose windows hold them, ascending."""
    lengths: dict[tuple[int, ...], Fraction] = {}
    for low, high in pairwise(_ends_of_pieces(windows)):
        inside = tuple(code for code, (start, end) in enumerate(windows) if start <= low and high <= end)
        lengths[inside] = lengths.get(inside, Fraction(0)) + high - low
    return {inside: float(length) for inside, length in lengths.items()}


def _ends_of_pieces(windows: list[Window]) -> list[Fraction]:
    return sorted({Fraction(0), Fraction(1), *(end for window in windows for end in window)})


def _windows_without_slivers(kind: type[WindowMechanism], answers: int, epsilon: float) -> list[Window]:
    """Return the windows of the answers; they are narrower by a small share where ends of two would nearly meet."""
    width = kind.window_width(epsilon)
    while True:
        windows = windows_of_answers(kind, answers, width)
        if min(high - low for low, high in pairwise(_ends_of_pieces(windows))) >= SLIVER * width:
            return windows
        width *= 1 - SLIVER


@cache
def _window_channel(
    kind: type[WindowMechanism], alphabet: Alphabet, epsilon: float, participation: Participation
) -> Channel:
    windows = _windows_without_slivers(kind, alphabet.size, epsilon)
    lengths, width = _cut_at_window_ends(windows), float(windows[0][1] - windows[0][0])
    inside = np.array([[code in piece for piece in map(set, lengths)] for code in range(alphabet.size)])

    def table(ratio: float) -> NDArray[np.float64]:
        return np.where(inside, ratio, 1.0) * list(lengths.values()) / (width * ratio + 1 - width)

    # A piece that is in no window says as much as one in all of them: nothing.
    names = block_names(alphabet, [piece or tuple(range(alphabet.size)) for piece in lengths])
    return _integer_channel(kind.name, alphabet, epsilon, participation, names, table)


@cache
def _staircase_channel(alphabet: Alphabet, epsilon: float, participation: Participation) -> Channel:
    farthest, distance = alphabet.size - 1, np.arange(alphabet.size)
    near = -int(-farthest // (1 + exp_rounded_down(epsilon / 2)))

    def table(ratio: float) -> NDArray[np.float64]:
        weights = np.where(distance < near, 1.0, 1 / ratio)
        found = weights[np.abs(distance[:, None] - distance)]
        # Noise that leads beyond an end is reported as the end.
        tails = np.cumsum(weights[::-1])[::-1] + (farthest / (ratio - 1) + near - 1) / ratio
        found[:, 0], found[:, -1] = tails, tails[::-1]
        return found / (2 * near - 1 + 2 * farthest / (ratio - 1))

    return _integer_channel(Staircase.name, alphabet, epsilon, participation, alphabet.names, table)


def _integer_channel(
    mechanism: str,
    alphabet: Alphabet,
    epsilon: float,
    participation: Participation,
    outputs: tuple[str, ...],
    table_of_ratio: Callable[[float], NDArray[np.float64]],
) -> Channel:
    """Return the integer channel of a table [answer, report], with a symbol for NULL where it is protected.

    The table is computed for a ratio that is smaller by what rounding to integers can add.
    """

    def table(ratio: float) -> NDArray[np.float64]:
        found = table_of_ratio(ratio)
        return with_null_symbol(found, ratio) if participation == "protected" else found

    claim = exp_rounded_down(epsilon)
    rounding = 2 / (DENOMINATOR * float(table(float(claim)).min())) + ROUNDING
    ratio = 1 + (float(claim) - 1) * max(0.5, 1 - rounding * float(claim) / (float(claim) - 1))
    names = (*outputs, NULL) if participation == "protected" else outputs
    return Channel.from_probabilities(alphabet, participation, names, table(ratio), claim, mechanism)
