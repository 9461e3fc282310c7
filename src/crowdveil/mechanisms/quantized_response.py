"""Randomized response over public blocks of labels: the report names a block, not a label.

Fewer symbols are kept with a higher probability. Blocks are chosen for a public design objective (`for_objective`),
never from answers. Report symbols are named by their labels: `0`, `1..9`, `no|maybe`, `8..9|NULL`.
"""

import math
from collections.abc import Sequence
from dataclasses import dataclass
from functools import cache
from itertools import chain, pairwise
from typing import ClassVar, Self, final

import numpy as np
from numpy.typing import NDArray

from crowdveil.arguments import require_list, require_whole_number
from crowdveil.channels.alphabet import NULL, Alphabet
from crowdveil.channels.channel import DENOMINATOR, Channel, exp_rounded_down
from crowdveil.channels.guarantee import Participation, require_epsilon
from crowdveil.errors import SettingsError
from crowdveil.mechanisms.base import ChannelMechanism
from crowdveil.mechanisms.design_objective import DesignObjective
from crowdveil.mechanisms.settings import Settings


def block_names(alphabet: Alphabet, blocks: Sequence[tuple[int, ...]]) -> tuple[str, ...]:
    """Return one distinct name per block; a block of one label has the label's name.

    Runs of an ordered alphabet are written `low..high` and joined by `|`. A composed name that equals another name
    (labels may contain dots and bars) gets a prime.

    Args:
        alphabet: possible answers.
        blocks: distinct sets of input codes, each ascending; `alphabet.size` is NULL.
    """
    symbols = (*alphabet.names, NULL)
    taken = set(symbols)
    names = []
    for block in blocks:
        name = symbols[block[0]]
        if len(block) > 1:
            name = "|".join(_text_of_each_label_run(alphabet, block))
            while name in taken:
                name += "'"
            taken.add(name)
        names.append(name)
    return tuple(names)


def _text_of_each_label_run(alphabet: Alphabet, block: tuple[int, ...]) -> list[str]:
    """Return the text of each unbroken run of ordered labels; NULL belongs to no run."""
    symbols = (*alphabet.names, NULL)
    joined = [alphabet.ordered and b == a + 1 and b < alphabet.size for a, b in pairwise(block)]
    starts = [k for k in range(len(block)) if k == 0 or not joined[k - 1]]
    ends = [*(k - 1 for k in starts[1:]), len(block) - 1]
    words = zip((symbols[block[k]] for k in starts), (symbols[block[k]] for k in ends), strict=True)
    return [first if first == last else f"{first}..{last}" for first, last in words]


Blocks = tuple[tuple[int, ...], ...]


@final
@dataclass(frozen=True, slots=True, kw_only=True)
class QuantizedResponse(ChannelMechanism):
    """Report the answer's block with probability e^epsilon / (S - 1 + e^epsilon), any other symbol uniformly.

    The S symbols are the blocks and, if participation is protected, NULL. The integer table is
    that of randomized response over S symbols, with the row of a block repeated for each of its labels.

    Attributes:
        alphabet: possible answers.
        epsilon: privacy loss of one cell, in nats.
        participation: "protected" or "public".
        cuts: thresholds of an ordered alphabet, as the ascending first codes of the blocks after the first: (1,) on a
            scale 0..9 gives the blocks 0 and 1..9. Public.
        blocks: codes of each block, instead of `cuts`, for labels without an order. Public.

    Raises:
        SettingsError: both or neither of `cuts` and `blocks`; cuts that are not ascending codes of an ordered alphabet;
            blocks that are not a partition of the codes into two or more sets.

    >>> from crowdveil import Scale
    >>> QuantizedResponse(alphabet=Scale(0, 10), epsilon=1.0, cuts=(5,)).channel().outputs
    ('0..4', '5..10', 'NULL')
    """

    name: ClassVar[str] = "quantized-response"
    alphabet: Alphabet
    epsilon: float
    participation: Participation = "protected"
    cuts: tuple[int, ...] = ()
    blocks: Blocks = ()

    def __post_init__(self) -> None:
        self._require_valid_parameters()
        if bool(self.cuts) == bool(self.blocks):
            raise SettingsError("give either cuts or blocks", value=(self.cuts, self.blocks))
        if self.cuts:
            _require_cuts(self.cuts, self.alphabet)
        else:
            _require_partition(self.blocks, self.alphabet.size)

    @classmethod
    def from_settings(cls, settings: Settings, alphabet: Alphabet, *, tasks: int) -> Self:
        """Return the mechanism with cuts at the named labels; without any, with the best cuts for the objective."""
        epsilon = settings.required_epsilon(cls.name)
        if not settings.cuts:
            return cls.for_objective(settings.objective(alphabet), epsilon)
        unknown = [name for name in settings.cuts if name not in alphabet.names]
        if unknown:
            raise SettingsError("a cut is the first label of a block", value=unknown[0], hint="Name one of the labels.")
        cuts = tuple(alphabet.names.index(name) for name in settings.cuts)
        return cls(alphabet=alphabet, epsilon=epsilon, participation=settings.participation, cuts=cuts)

    @classmethod
    def for_objective(cls, objective: DesignObjective, epsilon: float) -> Self:
        """Return the mechanism with the blocks of the largest objective.

        Ordered alphabets: the exact optimum over all cuts. Others: the optimum over all cuts of the labels sorted by
        decreasing expected frequency.
        """
        require_epsilon(epsilon)
        alphabet, line = objective.alphabet, np.arange(objective.alphabet.size)
        if not alphabet.ordered:
            line = np.argsort(-objective.marginal_answer_distribution, kind="stable")
        cuts = _best_cuts(objective, math.exp(epsilon), line)
        if alphabet.ordered:
            return cls(alphabet=alphabet, epsilon=epsilon, participation=objective.participation, cuts=cuts)
        blocks = tuple(tuple(sorted(line[a:b].tolist())) for a, b in pairwise((0, *cuts, alphabet.size)))
        return cls(alphabet=alphabet, epsilon=epsilon, participation=objective.participation, blocks=blocks)

    @property
    def partition(self) -> Blocks:
        """Codes of every block, from `cuts` or `blocks`."""
        if self.blocks:
            return self.blocks
        return tuple(tuple(range(a, b)) for a, b in pairwise((0, *self.cuts, self.alphabet.size)))

    def channel(self) -> Channel:
        """Return the exact table; outputs are the blocks' names, then NULL where protected."""
        return _channel_of_blocks(self.alphabet, self.epsilon, self.participation, self.partition)


@cache
def _channel_of_blocks(alphabet: Alphabet, epsilon: float, participation: Participation, blocks: Blocks) -> Channel:
    null = participation == "protected"
    others = len(blocks) - 1 + null
    flip = -(-DENOMINATOR // (others + exp_rounded_down(epsilon)))
    keep = DENOMINATOR - others * flip
    symbol_of = {code: symbol for symbol, block in enumerate(blocks) for code in block} | {alphabet.size: len(blocks)}
    rows = tuple(
        tuple(keep if symbol_of[code] == symbol else flip for symbol in range(others + 1))
        for code in range(alphabet.size + null)
    )
    outputs = block_names(alphabet, blocks) + ((NULL,) if null else ())
    return Channel(alphabet, participation, outputs, rows, QuantizedResponse.name)


def _require_cuts(cuts: tuple[int, ...], alphabet: Alphabet) -> None:
    require_list("cuts", cuts, example="(5,)")
    for cut in cuts:
        require_whole_number("a cut", cut, least=0)
    if not alphabet.ordered:
        raise SettingsError(
            "cuts need numbers or ordered labels",
            value=alphabet.names,
            hint="Give blocks, or declare the labels ordered.",
        )
    if list(cuts) != sorted(set(cuts)) or not (cuts[0] >= 1 and cuts[-1] < alphabet.size):
        raise SettingsError(
            f"cuts must be ascending codes in 1..{alphabet.size - 1}",
            value=cuts,
            hint="Leave them out: then they are chosen for the expected answers.",
        )


def _require_partition(blocks: Blocks, size: int) -> None:
    if sorted(chain.from_iterable(blocks)) != list(range(size)) or len(blocks) < 2 or not all(blocks):
        raise SettingsError(f"blocks must hold every code of 0..{size - 1} once, in two or more sets", value=blocks)
    if any(list(block) != sorted(block) for block in blocks):
        raise SettingsError("the codes of a block must ascend", value=blocks)


def _best_cuts(objective: DesignObjective, ratio: float, order: NDArray[np.integer]) -> tuple[int, ...]:
    """Return the cuts of the sequence `order` with the largest objective of randomized response over blocks and NULL.

    The objective is the sum of one gain per block, divided by S - 1 + ratio. For each number of blocks the largest sum
    is found by dynamic programming.
    """
    size, null = len(order), objective.participation == "protected"
    gain = _gain_of_each_contiguous_block(objective, ratio, order)
    none = (
        float(objective.column_objective_terms(_ones_with_ratio_at_slice(size + 1, slice(size, None), ratio)).sum())
        if null
        else 0.0
    )
    best, back = gain[0].copy(), []  # best[b]: largest sum over the first b labels
    winner, score = 0, -math.inf
    for blocks in range(2, size + 1):
        sums = best[:, None] + gain
        back.append(sums.argmax(axis=0))
        best = sums.max(axis=0)
        value = (best[size] + none) / (blocks - 1 + null + ratio)
        if value > score * (1 + 1e-12):  # among equals, the fewest blocks
            winner, score = blocks, value
    ends = [size]
    for previous in reversed(back[: winner - 1]):
        ends.append(int(previous[ends[-1]]))
    return tuple(reversed(ends[1:]))


def _gain_of_each_contiguous_block(
    objective: DesignObjective, ratio: float, order: NDArray[np.integer]
) -> NDArray[np.float64]:
    """Return the gain of each block [first, end) of the sequence, by an unnormalised column; -inf if it is empty."""
    size, inputs = len(order), objective.input_count
    gain = np.full((size + 1, size + 1), -math.inf)
    for first in range(size):
        columns = np.ones((inputs, size - first))
        columns[order[first:]] += (ratio - 1) * np.triu(np.ones((size - first, size - first)))
        gain[first, first + 1 :] = objective.column_objective_terms(columns)
    return gain


def _ones_with_ratio_at_slice(inputs: int, where: slice, ratio: float) -> NDArray[np.float64]:
    """Return a column that is `ratio` at some inputs and 1 at the others, shape (inputs, 1)."""
    column = np.ones((inputs, 1))
    column[where] = ratio
    return column
