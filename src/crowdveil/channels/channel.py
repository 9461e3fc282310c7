"""Exact integer channels P(report | answer), which devices sample and curators invert.

A channel is a table of non-negative integers, one row per input symbol (the labels, then NULL if participation is
protected) and one column per report symbol. All rows have the same sum, the denominator, a power of two; on devices it
is 2^48. P(report | answer) = rows[answer][report] / denominator.

Privacy: epsilon = ln of the largest ratio of two entries in one column, rounded up. It is computed from the integers
that are sampled, so the certified epsilon is exact.

Sampling: one uniform 48-bit word per cell is compared with the whole cumulative row; the report is the number of
cumulative sums (without the last) that do not exceed the word. There is no rejection and no branch on the answer.
"""

import math
from collections.abc import Mapping
from dataclasses import dataclass
from decimal import ROUND_FLOOR, Context, Decimal
from fractions import Fraction
from functools import cached_property
from typing import Any, Self

import numpy as np
from numpy.typing import NDArray

from crowdveil.channels.alphabet import (
    NULL,
    Alphabet,
    Categories,
    abbreviate_names,
    alphabet_from_json,
    alphabet_to_json,
)
from crowdveil.channels.certificate import DESIGNED, parse_certificate, with_format_and_checksum
from crowdveil.channels.guarantee import Guarantee, Participation
from crowdveil.display.html import Html, notebook_card
from crowdveil.display.quotes import quoted
from crowdveil.display.svg_pictures import table_shaded_by_probability
from crowdveil.errors import CertificateError, SettingsError
from crowdveil.randomness import WORD_BITS, Source
from crowdveil.standalone.checks import marks_no_privacy
from crowdveil.standalone.verification import epsilon_of

DENOMINATOR = 1 << WORD_BITS
CELLS_PER_BATCH = 1 << 16
"""Cells sampled together; bounds memory."""
MAX_DRAWN = 12
"""Largest number of symbols in a picture."""


def exp_rounded_down(epsilon: float) -> Fraction:
    """Return a rational at most exp(epsilon), within 1e-55 of it relatively."""
    power = Context(prec=60, rounding=ROUND_FLOOR).exp(Decimal(epsilon))
    return Fraction(power) * (1 - Fraction(1, 10**55))


@dataclass(frozen=True, eq=False, match_args=False)
class Channel:
    """Exact randomized map from one answer symbol to one report symbol.

    Attributes:
        alphabet: possible answers.
        participation: "protected" if NULL is an input like any other, "public" if unanswered cells send nothing.
        outputs: names of the report symbols; `"NULL"` means "no answer" and is sent like the others.
        rows: integers indexed [input, output]; inputs are the labels in alphabet order, then NULL if protected.
        mechanism: name of the mechanism; in a certificate one of `checks.CERTIFIED`.

    Raises:
        CertificateError: duplicate symbols, a ragged table, negative or non-integer entries, unequal row sums, a
            denominator that is not a power of two, or an output that never occurs.

    >>> from crowdveil import Categories, RandomizedResponse
    >>> RandomizedResponse(alphabet=Categories(("no", "yes")), epsilon=1.0).channel().outputs
    ('no', 'yes', 'NULL')
    """

    alphabet: Alphabet
    participation: Participation
    outputs: tuple[str, ...]
    rows: tuple[tuple[int, ...], ...]
    mechanism: str = DESIGNED

    def __post_init__(self) -> None:
        if len(set(self.outputs)) != len(self.outputs):
            raise CertificateError("duplicate symbols", f"report symbols {self.outputs} repeat.")
        if len(self.rows) != len(self.inputs) or any(len(row) != len(self.outputs) for row in self.rows):
            raise CertificateError("shape", f"expected {len(self.inputs)} rows of {len(self.outputs)} entries.")
        if any(type(entry) is not int for row in self.rows for entry in row):
            raise CertificateError("non-integer", "every entry must be an integer.")
        if any(entry < 0 for row in self.rows for entry in row):
            raise CertificateError("negative entry", "every entry must be at least 0.")
        for symbol, row in zip(self.inputs, self.rows, strict=True):
            if sum(row) != self.denominator:
                raise CertificateError("row sum", f"row {symbol!r} sums to {sum(row)}, row one to {self.denominator}.")
        if self.denominator < 2 or self.denominator & (self.denominator - 1):
            raise CertificateError("denominator", f"{self.denominator} is not a power of two.")
        if not all(any(column) for column in zip(*self.rows, strict=True)):
            raise CertificateError("empty column", "an output that no input can produce must be left out.")

    @property
    def inputs(self) -> tuple[str, ...]:
        """Names of the input symbols, one per row."""
        return self.alphabet.names + ((NULL,) if self.participation == "protected" else ())

    @property
    def denominator(self) -> int:
        """Sum of every row."""
        return sum(self.rows[0])

    @property
    def report_alphabet(self) -> Alphabet:
        """Alphabet of non-NULL reports: that of the answers if they have the same symbols, else the outputs."""
        names = tuple(name for name in self.outputs if name != NULL)
        return self.alphabet if names == self.alphabet.names else Categories(names, self.alphabet.ordered)

    @cached_property
    def ratio(self) -> Fraction | None:
        """Largest ratio of two entries in one column, exact; None (infinite) if an entry is 0."""
        columns = list(zip(*self.rows, strict=True))
        if any(min(column) == 0 for column in columns):
            return None
        return max(Fraction(max(column), min(column)) for column in columns)

    @property
    def epsilon(self) -> float:
        """ln(ratio), the privacy loss of one cell in nats, rounded up; infinite if an entry is 0."""
        return math.inf if self.ratio is None else epsilon_of(self.ratio)

    @property
    def protects_participation(self) -> bool:
        """Whether NULL is an input."""
        return self.participation == "protected"

    @property
    def voids_privacy(self) -> bool:
        """Whether the mechanism is marked as without privacy, as of a simulation."""
        return marks_no_privacy(self.mechanism)

    @property
    def guarantee(self) -> Guarantee:
        """Guarantee of one cell sent through this channel."""
        return Guarantee(epsilon=self.epsilon, participation=self.participation)

    @cached_property
    def probabilities(self) -> NDArray[np.float64]:
        """P(report | answer), indexed [input, output]; rows sum to 1. For likelihoods, never for sampling."""
        # The denominator is a power of two, so only the integers are rounded.
        table = np.array([[float(entry) for entry in row] for row in self.rows]) / float(self.denominator)
        table.flags.writeable = False
        return table

    @property
    def null_output(self) -> int | None:
        """Index of the NULL report symbol; None if there is none."""
        return self.outputs.index(NULL) if NULL in self.outputs else None

    @cached_property
    def is_identity(self) -> bool:
        """Whether every report is the answer itself."""
        square = self.outputs == self.inputs
        return square and all(row[k] == self.denominator for k, row in enumerate(self.rows))

    def sample(self, answers: NDArray[np.integer], source: Source) -> NDArray[np.int64]:
        """Return one independent report per answer, as output codes, shape (cells,).

        Args:
            answers: input codes, shape (cells,).
            source: secure on a device; seeded in a simulation.

        Raises:
            SettingsError: a code outside the inputs, an infinite epsilon, or another denominator than 2^48.
        """
        codes = np.asarray(answers)
        if self.ratio is None:
            raise SettingsError("a channel is sampled only if its epsilon is finite", value=self.epsilon)
        if self.denominator != DENOMINATOR:
            raise SettingsError(
                f"a channel is sampled with denominator 2**{WORD_BITS}",
                value=self.denominator,
                hint="Channel.from_probabilities rounds a table to it.",
            )
        if codes.size and not (codes.min() >= 0 and codes.max() < len(self.inputs)):
            raise SettingsError(f"answer codes must be in 0..{len(self.inputs) - 1}", value=(codes.min(), codes.max()))
        reports = np.empty(codes.size, dtype=np.int64)
        for first in range(0, codes.size, CELLS_PER_BATCH):
            part = slice(first, first + CELLS_PER_BATCH)
            words = source.words(codes[part].size)
            reports[part] = (words[:, None] >= self._cumulative[codes[part], :-1]).sum(axis=1)
        return reports

    @cached_property
    def _cumulative(self) -> NDArray[np.uint64]:
        return np.cumsum(np.array(self.rows, dtype=np.uint64), axis=1)

    @classmethod
    def from_probabilities(
        cls,
        alphabet: Alphabet,
        participation: Participation,
        outputs: tuple[str, ...],
        probabilities: NDArray[np.float64],
        claim: Fraction | None,
        mechanism: str = DESIGNED,
    ) -> Self:
        """Return the integer channel nearest to a real table [input, output] whose ratio is at most `claim`.

        Rows are rounded to the denominator. While the ratio exceeds `claim`, all rows are blended more with their
        average, which reduces every ratio; equal rows have ratio 1.

        Raises:
            SettingsError: the claim is below 1.
        """
        if claim is not None and claim < 1:
            raise SettingsError("a claimed column ratio must be at least 1", value=claim)
        average = probabilities.mean(axis=0)
        share = 0.0
        while True:
            blended = (1 - share) * probabilities + share * average
            rows = tuple(_integer_row(row) for row in blended)
            channel = cls(alphabet, participation, outputs, rows, mechanism)
            if claim is None or (channel.ratio is not None and channel.ratio <= claim):
                return channel
            share = min(1.0, max(2.0 * share, 2.0**-WORD_BITS))

    @classmethod
    def identity(cls, alphabet: Alphabet, participation: Participation) -> Self:
        """Return the identity channel (epsilon infinite), for likelihoods; it cannot be sampled."""
        outputs = alphabet.names + ((NULL,) if participation == "protected" else ())
        rows = tuple(tuple(DENOMINATOR if i == j else 0 for j in range(len(outputs))) for i in range(len(outputs)))
        return cls(alphabet, participation, outputs, rows, "identity")

    def certificate(self) -> dict[str, object]:
        """Return the certificate, as JSON values with a SHA-256; `from_certificate` is the inverse.

        Raises:
            CertificateError: infinite epsilon, another denominator than 2^48, an invalid name, or a mechanism that a
                certificate cannot name.
        """
        if self.ratio is None:
            raise CertificateError("zero entry", "a channel with infinite epsilon cannot be certified.")
        if self.denominator != DENOMINATOR:
            raise CertificateError("denominator", f"only channels over 2**{WORD_BITS} are certified.")
        return with_format_and_checksum(
            {
                "mechanism": self.mechanism,
                "alphabet": alphabet_to_json(self.alphabet),
                "participation": self.participation,
                "outputs": list(self.outputs),
                "denominator": DENOMINATOR,
                "rows": [list(row) for row in self.rows],
                "ratio": [self.ratio.numerator, self.ratio.denominator],
            }
        )

    @staticmethod
    def from_certificate(text: str | bytes) -> "Channel":
        """Return the channel of a certificate's JSON text, after checking every field.

        Raises:
            CertificateError: `defect` is one of oversize, not json, format, hash, alphabet, text,
                mechanism, shape, duplicate symbols, non-integer, negative entry, empty column, zero entry, row sum,
                denominator, ratio.
        """
        return checked_channel(parse_certificate(text))

    def picture(self, name: str | None = None) -> Html:
        """Return P(report | answer) as inline SVG: a table of shaded cells, in per cent; `name` prefixes its ids."""
        shown = {symbol: "no answer" if symbol == NULL else quoted(symbol) for symbol in (*self.inputs, *self.outputs)}
        rows = [(shown[answer], row.tolist()) for answer, row in zip(self.inputs, self.probabilities, strict=True)]
        kept = "; ".join(
            f"the answer {label} is reported as {label} with {100 * row[self.outputs.index(answer)]:.1f} %"
            for answer, (label, row) in zip(self.inputs, rows, strict=True)
            if answer in self.outputs
        )
        title = "Percentage of each report (column) for each answer (row)"
        return table_shaded_by_probability(name, title, kept, rows, [shown[symbol] for symbol in self.outputs])

    def __repr__(self) -> str:
        """Return mechanism, alphabets and guarantee."""
        symbols = f"{abbreviate_names(self.inputs)} to {abbreviate_names(self.outputs)}"
        return f"<Channel of {self.mechanism}: {symbols}; {self.guarantee}>"

    def _repr_html_(self) -> str:
        """Return the channel for a notebook: its guarantee, and its table if that is small."""
        few = max(len(self.inputs), len(self.outputs)) <= MAX_DRAWN
        facts = [str(self.guarantee), f"{len(self.inputs)} answers, {len(self.outputs)} reports"]
        return notebook_card(f"Channel of {self.mechanism}", facts, self.picture() if few else None)


def checked_channel(data: Mapping[str, Any]) -> Channel:
    """Return the channel of the fields of a certificate that `checks.check_certificate` accepts."""
    rows = tuple(map(tuple, data["rows"]))
    alphabet = alphabet_from_json(data["alphabet"])
    return Channel(alphabet, data["participation"], tuple(data["outputs"]), rows, data["mechanism"])


def retained_share(channel: Channel) -> float:
    """Return the smallest total-variation distance between two rows, in [0, 1].

    1 for the identity, 0 if two answers are indistinguishable. For k-ary randomized response it is the probability
    of sending the answer rather than a uniform symbol.
    """
    table = channel.probabilities
    return min(
        0.5 * float(np.abs(table[i] - table[j]).sum()) for i in range(len(table)) for j in range(i + 1, len(table))
    )


def _integer_row(row: NDArray[np.float64]) -> tuple[int, ...]:
    """Return a row as integers that sum to the denominator; the largest remainders are rounded up."""
    exact = [int(entry) for entry in np.ldexp(row, 300)]  # a float is an integer multiple of 2^-300, or nothing
    total = sum(exact)
    parts = [divmod(entry * DENOMINATOR, total) for entry in exact]
    floors = [whole for whole, _ in parts]
    by_remainder = sorted(range(len(row)), key=lambda k: (-parts[k][1], k))
    for k in by_remainder[: DENOMINATOR - sum(floors)]:
        floors[k] += 1
    return tuple(floors)
