"""Reports that are sets of labels: subset selection, and optimized unary encoding as subset selection of random size.

Subset selection (Ye and Barg 2018; Wang et al. 2016) sends one of all sets of d labels, e^epsilon times as often if it
holds the answer. Optimized unary encoding (Wang et al. 2017) keeps the answer's bit with 1/2 and sets every other bit
with q = 1 / (e^epsilon + 1): given the number of set bits it is subset selection, and that number does not depend on
the answer. Sets of no and of all labels hold no information and are one symbol.
"""

from collections.abc import Iterator
from dataclasses import dataclass
from fractions import Fraction
from functools import cache
from itertools import combinations
from math import comb, exp, floor
from typing import ClassVar, NamedTuple, final

from crowdveil.channels.alphabet import MAX_LABELS, NULL, Alphabet
from crowdveil.channels.channel import DENOMINATOR, Channel, exp_rounded_down
from crowdveil.channels.guarantee import Participation
from crowdveil.errors import SettingsError
from crowdveil.mechanisms.base import ChannelMechanism
from crowdveil.mechanisms.quantized_response import block_names

LEAST_ENTRY = 1 << 10
"""Smallest integer of a set in a table; sizes with smaller ones join the symbol of no and of all labels."""
BLANK = "no label or all"
"""Name of the symbol of no and of all labels."""


@final
@dataclass(frozen=True, slots=True, kw_only=True)
class SubsetSelection(ChannelMechanism):
    """Report a set of d labels, with weight e^epsilon if it holds the answer and 1 if not.

    `size` d is K / (e^epsilon + 1) for K labels, rounded, at least 1, and at most the largest for which the sets are
    1,024 symbols. With d = 1 this is randomized response. A protected NULL is a symbol of its own.

    >>> from crowdveil import Categories
    >>> mechanism = SubsetSelection(alphabet=Categories(tuple("abcd")), epsilon=0.5)
    >>> mechanism.size, mechanism.channel().outputs[:2]
    (2, ('a|b', 'a|c'))
    """

    name: ClassVar[str] = "subset-selection"
    alphabet: Alphabet
    epsilon: float
    participation: Participation = "protected"

    def __post_init__(self) -> None:
        self._require_valid_parameters()

    @property
    def size(self) -> int:
        """Number of labels in a report."""
        labels = self.alphabet.size
        best = max(1, round(labels / (exp(self.epsilon) + 1)))
        return next(size for size in range(best, 0, -1) if comb(labels, size) <= MAX_LABELS)

    def channel(self) -> Channel:
        """Return the exact table; outputs are the sets, then NULL where protected."""
        return _subset_channel(self.alphabet, self.epsilon, self.participation, self.size)


@final
@dataclass(frozen=True, slots=True, kw_only=True)
class OptimizedUnaryEncoding(ChannelMechanism):
    """Report a set of labels: the answer is in it with probability 1/2, any other label with 1 / (e^epsilon + 1).

    Sizes that are hardly ever drawn are sent as the symbol of no and of all labels. A protected NULL is a symbol of its
    own.

    Raises:
        SettingsError: more than 10 labels, whose sets are more than 1,024 symbols.

    >>> from crowdveil import Categories
    >>> len(OptimizedUnaryEncoding(alphabet=Categories(tuple("abcd")), epsilon=0.5).channel().outputs)
    16
    """

    name: ClassVar[str] = "optimized-unary-encoding"
    alphabet: Alphabet
    epsilon: float
    participation: Participation = "protected"

    def __post_init__(self) -> None:
        self._require_valid_parameters()
        most = MAX_LABELS.bit_length() - 1
        if self.alphabet.size > most:
            raise SettingsError(
                f"sets of any number of labels need an alphabet of at most {most}",
                value=self.alphabet.size,
                hint="Use subset-selection.",
            )

    def channel(self) -> Channel:
        """Return the exact table; outputs are the sets, the symbol of no or all labels, then NULL where protected."""
        return _unary_channel(self.alphabet, self.epsilon, self.participation)


class _Entries(NamedTuple):
    """Integers of the columns of all sets of one size: of an answer in the set, and of others and NULL."""

    size: int
    high: int
    low: int

    def total(self, labels: int) -> int:
        """Return the sum over all sets, for one answer."""
        return comb(labels - 1, self.size - 1) * self.high + comb(labels - 1, self.size) * self.low


@cache
def _subset_channel(alphabet: Alphabet, epsilon: float, participation: Participation, size: int) -> Channel:
    """Return the table of sets of one size, whose rows are balanced by NULL or by single units."""
    labels, ratio = alphabet.size, exp_rounded_down(epsilon)
    holding, others = comb(labels - 1, size - 1), comb(labels - 1, size)
    if participation == "protected":
        unit = 1 / (holding * ratio + others)
        entries = (_entries_of(size, _share_beside_null(unit * comb(labels, size), ratio) * unit, ratio),)
        return _channel_of_sets(alphabet, participation, SubsetSelection.name, entries, ratio)
    low = -(-(DENOMINATOR + holding) // (holding * ratio + others))
    high, left = divmod(DENOMINATOR - others * low, holding)
    sets = tuple(combinations(range(labels), size))
    rows = []
    for code in range(labels):
        row = [high if code in members else low for members in sets]
        for place in [place for place, members in enumerate(sets) if code in members][:left]:
            row[place] += 1
        rows.append(tuple(row))
    return Channel(alphabet, participation, block_names(alphabet, sets), tuple(rows), SubsetSelection.name)


@cache
def _unary_channel(alphabet: Alphabet, epsilon: float, participation: Participation) -> Channel:
    """Return the table of sets of random size, whose rows are balanced by NULL or by the symbol of no or all labels."""
    labels, ratio = alphabet.size, exp_rounded_down(epsilon)
    units = dict(_column_units(labels, ratio))
    blank = 1 - sum(
        unit * (comb(labels - 1, size - 1) * ratio + comb(labels - 1, size)) for size, unit in units.items()
    )
    share = Fraction(1)
    if participation == "protected":
        least = sum(comb(labels, size) * unit for size, unit in units.items()) + blank / ratio
        share = _share_beside_null(least, ratio)
    entries = tuple(_entries_of(size, share * unit, ratio) for size, unit in units.items())
    name = OptimizedUnaryEncoding.name
    return _channel_of_sets(alphabet, participation, name, entries, ratio, blank=floor(share * blank * DENOMINATOR))


def _column_units(labels: int, ratio: Fraction) -> Iterator[tuple[int, Fraction]]:
    """Yield each number of set bits that is drawn often enough, and the probability of one set without the answer."""
    flip = 1 / (ratio + 1)
    for size in range(1, labels):
        unit = flip**size * (1 - flip) ** (labels - 1 - size) / 2
        if unit * DENOMINATOR >= 2 * LEAST_ENTRY:
            yield size, unit


def _share_beside_null(least: Fraction, ratio: Fraction) -> Fraction:
    """Return 1 - a, the probability that an answer is not sent as NULL.

    NULL sends every symbol with the largest probability that an answer sends it with, divided by the ratio. With the
    sum `least` of these, a = (1 - least) / (ratio - least) makes NULL the ratio times as likely for NULL.
    """
    return 1 - (1 - least) / (ratio - least)


def _entries_of(size: int, unit: Fraction, ratio: Fraction) -> _Entries:
    low = floor(unit * DENOMINATOR)
    return _Entries(size, floor(ratio * low), low)


def _channel_of_sets(
    alphabet: Alphabet,
    participation: Participation,
    mechanism: str,
    entries: tuple[_Entries, ...],
    ratio: Fraction,
    *,
    blank: int | None = None,
) -> Channel:
    """Return the table in which all answers have the same rest: that of NULL if it is protected, else of the blank.

    Args:
        alphabet, participation, mechanism: of the channel.
        entries: of each size of sets.
        ratio: at most e^epsilon.
        blank: integer of the symbol of no or all labels where NULL is protected; None if there is none.
    """
    labels, protected = alphabet.size, participation == "protected"
    sets = [(one, members) for one in entries for members in combinations(range(labels), one.size)]
    rest = DENOMINATOR - sum(one.total(labels) for one in entries)
    of_answer, of_null = [], []
    if blank is not None:
        of_answer.append(blank if protected else rest)
        of_null.append(-(-blank // ratio))
    if protected:
        of_answer.append(rest - sum(of_answer))
        of_null.append(DENOMINATOR - sum(one.low for one, _ in sets) - sum(of_null))
    rows = [
        (*(one.high if code in members else one.low for one, members in sets), *of_answer) for code in range(labels)
    ]
    if protected:
        rows.append((*(one.low for one, _ in sets), *of_null))
    names = block_names(alphabet, tuple(members for _, members in sets))
    blank_name = BLANK
    while blank_name in (*names, *alphabet.names):
        blank_name += "'"
    outputs = (*names, *((blank_name,) if blank is not None else ()), *((NULL,) if protected else ()))
    return Channel(alphabet, participation, outputs, tuple(rows), mechanism)
