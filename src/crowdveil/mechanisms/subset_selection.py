"""Reports that are sets of labels: subset selection, and optimized unary encoding as subset selection of random size.

Subset selection (Ye and Barg 2018; Wang et al. 2016) sends one of all sets of d labels, e^epsilon times as often if it
holds the answer. Optimized unary encoding (Wang et al. 2017) keeps the answer's bit with 1/2 and sets every other bit
with q = 1 / (e^epsilon + 1): given the number of set bits it is subset selection, and that number does not depend on
the answer. Sets of no and of all labels hold no information and are one symbol.

A designed table that merges labels is best for one report, but the labels stay merged however many workers report.
Under all permutations of the labels, public and drawn without the answer, it becomes subset selection of its sizes.
"""

from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from fractions import Fraction
from functools import cache
from hashlib import sha256
from itertools import combinations, pairwise
from math import ceil, comb, exp, floor
from typing import ClassVar, Self, final

from crowdveil.channels.alphabet import MAX_LABELS, NULL, Alphabet
from crowdveil.channels.channel import DENOMINATOR, Channel, exp_rounded_down
from crowdveil.channels.guarantee import Participation, require_epsilon
from crowdveil.errors import SettingsError
from crowdveil.mechanisms.base import ChannelMechanism
from crowdveil.mechanisms.design_objective import DesignObjective
from crowdveil.mechanisms.quantized_response import block_names
from crowdveil.mechanisms.randomized_response import RandomizedResponse
from crowdveil.mechanisms.settings import Settings

MAX_PARTITIONS = 64
"""Largest number of partitions of labels whose blocks are symbols."""
MAX_SIZES = 16
"""Largest number of sizes of sets that are compared."""
LEAST_ENTRY = 1 << 10
"""Smallest integer of a set in a table; sizes with smaller ones join the symbol of no and of all labels."""
BLANK = "no label or all"
"""Name of the symbol of no and of all labels."""


@final
@dataclass(frozen=True, slots=True, kw_only=True)
class SubsetSelection(ChannelMechanism):
    """Report a set of labels, with weight e^epsilon if it holds the answer and 1 if not.

    All sets of `size` labels are symbols, or where these are more than 1,024, the blocks of public partitions of the
    labels, see `symbol_sets`. With size 1 this is randomized response. A protected NULL is a symbol of its own.

    Attributes:
        alphabet: possible answers.
        epsilon: privacy loss of one cell, in nats.
        participation: "protected" or "public".
        size: number of labels in a report; None for that of Ye and Barg, K / (e^epsilon + 1) rounded, and at least 1:
            the best one for shares. Public.

    Raises:
        SettingsError: a size outside 1..K - 1.

    >>> from crowdveil import Categories
    >>> mechanism = SubsetSelection(alphabet=Categories(tuple("abcd")), epsilon=0.5)
    >>> mechanism.labels_per_report, mechanism.channel().outputs[:2]
    (2, ('a|b', 'a|c'))
    """

    name: ClassVar[str] = "subset-selection"
    alphabet: Alphabet
    epsilon: float
    participation: Participation = "protected"
    size: int | None = None

    def __post_init__(self) -> None:
        self._require_valid_parameters()
        whole = isinstance(self.size, int) and not isinstance(self.size, bool)
        if self.size is not None and not (whole and 1 <= self.size < self.alphabet.size):
            raise SettingsError(
                f"the size of sets must be a whole number in 1..{self.alphabet.size - 1}",
                value=self.size,
                hint="Leave it out: then it follows from epsilon.",
            )

    @classmethod
    def from_settings(cls, settings: Settings, alphabet: Alphabet, *, tasks: int) -> Self:
        """Return the mechanism with the best size for the settings' objective."""
        return cls.for_objective(settings.objective(alphabet), settings.required_epsilon(cls.name))

    @classmethod
    def for_objective(cls, objective: DesignObjective, epsilon: float) -> Self:
        """Return the mechanism with the size of the largest objective; of equal ones, the smallest.

        Sizes from K / (e^epsilon + 1), the best one for precise answers, to K / (e^(epsilon / 2) + 1), the best one for
        random answers, are compared, and 1; at most `MAX_SIZES` of them, evenly spaced.
        """
        require_epsilon(epsilon)
        labels = objective.alphabet.size
        least, most = floor(labels / (exp(epsilon) + 1)), ceil(labels / (exp(epsilon / 2) + 1))
        between = range(max(least, 1), min(most, labels - 1) + 1)
        sizes = between[:: ceil(len(between) / MAX_SIZES)]
        mechanisms = [
            cls(alphabet=objective.alphabet, epsilon=epsilon, participation=objective.participation, size=size)
            for size in sorted({1, *sizes})
        ]
        return max(mechanisms, key=lambda one: objective.objective_of_channel(one.channel().probabilities))

    @property
    def labels_per_report(self) -> int:
        """Number of labels in a report."""
        return self.size or max(1, round(self.alphabet.size / (exp(self.epsilon) + 1)))

    def channel(self) -> Channel:
        """Return the exact table; outputs are the sets, then NULL where protected."""
        return _subset_channel(self.alphabet, self.epsilon, self.participation, self.labels_per_report)


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


@cache
def symbol_sets(labels: int, size: int) -> Mapping[tuple[int, ...], int]:
    """Return the sets of label codes that are symbols, with weights; each label is in sets of the same total weight.

    All sets of the size, if these are at most 1,024. Else the blocks of up to 64 public partitions of the labels into
    labels / size blocks, rounded; a set's weight is the number of its partitions. A partition cuts an order of the
    labels, that by the SHA-256 of "partition/label": it depends on no answer, and nobody chooses it.
    """
    if comb(labels, size) <= MAX_LABELS:
        return dict.fromkeys(combinations(range(labels), size), 1)
    blocks = max(2, round(labels / size))
    ends = [labels * block // blocks for block in range(blocks + 1)]
    found: Counter[tuple[int, ...]] = Counter()
    for number in range(min(MAX_PARTITIONS, MAX_LABELS // blocks)):
        order = sorted(range(labels), key=lambda code: sha256(f"{number}/{code}".encode()).digest())
        found.update(tuple(sorted(order[first:end])) for first, end in pairwise(ends))
    return found


@cache
def _subset_channel(alphabet: Alphabet, epsilon: float, participation: Participation, size: int) -> Channel:
    """Return the table over `symbol_sets`, whose rows are balanced by NULL or by single units."""
    if size == 1:
        response = RandomizedResponse(alphabet=alphabet, epsilon=epsilon, participation=participation)
        return replace(response.channel(), mechanism=SubsetSelection.name)
    ratio, sets = exp_rounded_down(epsilon), symbol_sets(alphabet.size, size)
    holding = sum(weight for members, weight in sets.items() if 0 in members)
    others = sum(sets.values()) - holding
    if participation == "protected":
        unit = 1 / (holding * ratio + others)
        low = floor(_share_beside_null(unit * (holding + others), ratio) * unit * DENOMINATOR)
        entries = [(members, weight * floor(ratio * low), weight * low) for members, weight in sets.items()]
        return _channel_of_sets(alphabet, participation, SubsetSelection.name, entries, ratio)
    low = -(-(DENOMINATOR + holding) // (holding * ratio + others))
    high, left = divmod(DENOMINATOR - others * low, holding)
    rows = []
    for code in range(alphabet.size):
        row, rest = [], left
        for members, weight in sets.items():
            added = min(rest, weight) if code in members else 0
            row.append(weight * (high if code in members else low) + added)
            rest -= added
        rows.append(tuple(row))
    return Channel(alphabet, participation, block_names(alphabet, tuple(sets)), tuple(rows), SubsetSelection.name)


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
    entries = [
        (members, floor(ratio * low), low)
        for size, low in ((size, floor(share * unit * DENOMINATOR)) for size, unit in units.items())
        for members in combinations(range(labels), size)
    ]
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


def _channel_of_sets(
    alphabet: Alphabet,
    participation: Participation,
    mechanism: str,
    entries: Sequence[tuple[tuple[int, ...], int, int]],
    ratio: Fraction,
    *,
    blank: int | None = None,
) -> Channel:
    """Return the table in which all answers have the same rest: that of NULL if it is protected, else of the blank.

    Args:
        alphabet, participation, mechanism: of the channel.
        entries: each set with the integer of answers in it, and that of others and NULL.
        ratio: at most e^epsilon.
        blank: integer of the symbol of no or all labels where NULL is protected; None if there is none.
    """
    protected = participation == "protected"
    rows = [[high if code in members else low for members, high, low in entries] for code in range(alphabet.size)]
    rest = DENOMINATOR - sum(rows[0])
    of_answer, of_null = [], []
    if blank is not None:
        of_answer.append(blank if protected else rest)
        of_null.append(-(-blank // ratio))
    if protected:
        of_answer.append(rest - sum(of_answer))
        of_null.append(DENOMINATOR - sum(low for _, _, low in entries) - sum(of_null))
    table = [(*row, *of_answer) for row in rows]
    if protected:
        table.append((*(low for _, _, low in entries), *of_null))
    names = block_names(alphabet, [members for members, _, _ in entries])
    blank_name = BLANK
    while blank_name in (*names, *alphabet.names):
        blank_name += "'"
    outputs = (*names, *((blank_name,) if blank is not None else ()), *((NULL,) if protected else ()))
    return Channel(alphabet, participation, outputs, tuple(table), mechanism)
