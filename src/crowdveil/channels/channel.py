"""The channel P(report | answer): the one object that devices sample, curators invert and auditors attack.

A channel is a table of integers, one row per input symbol (the labels, then NULL where participation is protected), one
column per output symbol, every row summing to one power-of-two denominator. Its epsilon is the logarithm of the worst
column ratio *of that table*, rounded up: what is certified is what is sampled.
"""

import math
from dataclasses import dataclass
from decimal import ROUND_FLOOR, Context, Decimal
from fractions import Fraction
from functools import cached_property
from typing import Self

import numpy as np
from numpy.typing import NDArray

from crowdveil.channels.alphabet import NULL, Alphabet, Categories, alphabet_from_json, alphabet_to_json
from crowdveil.channels.certificate import DESIGNED, parse_certificate, with_checksum
from crowdveil.channels.guarantee import Guarantee, Participation
from crowdveil.channels.rounding import log_rounded_up
from crowdveil.errors import CertificateError, SettingsError
from crowdveil.randomness import WORD_BITS, Source

DENOMINATOR = 1 << WORD_BITS
CELLS_AT_ONCE = 1 << 16
"""Cells sampled together, so that a full-row scan of a wide alphabet stays small in memory."""


def exp_rounded_down(epsilon: float) -> Fraction:
    """Return a rational just below exp(epsilon) (within 1e-55 of it, relatively)."""
    power = Context(prec=60, rounding=ROUND_FLOOR).exp(Decimal(epsilon))
    return Fraction(power) * (1 - Fraction(1, 10**55))


@dataclass(frozen=True, eq=False)
class Channel:
    """An exact randomized map from one answer symbol to one report symbol.

    Attributes:
        alphabet: what a worker's answer can be.
        participation: "protected" if NULL is an input like any other, "public" if unanswered cells are visibly absent.
        outputs: names of the report symbols; `"NULL"` among them means "nothing to see" and is sent like the others.
        rows: integers indexed [input, output]; inputs are the labels in alphabet order, then NULL if protected.
        mechanism: name of what made the table; for a certificate one of `certificate.CERTIFIED`.

    Raises:
        CertificateError: duplicate symbols, a ragged table, negative or non-integer entries, unequal row sums, a
            denominator that is not a power of two, or an output that never occurs.
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
        """What every row sums to."""
        return sum(self.rows[0])

    @property
    def report_alphabet(self) -> Alphabet:
        """What a non-NULL report can be: the answers' own alphabet, or categories named by the outputs."""
        names = tuple(name for name in self.outputs if name != NULL)
        return self.alphabet if names == self.alphabet.names else Categories(names, self.alphabet.ordered)

    @cached_property
    def ratio(self) -> Fraction | None:
        """Worst ratio of two entries in one column, exact; None where a zero stands under a positive entry."""
        columns = list(zip(*self.rows, strict=True))
        if any(min(column) == 0 for column in columns):
            return None
        return max(Fraction(max(column), min(column)) for column in columns)

    @property
    def epsilon(self) -> float:
        """Privacy loss of one cell in nats, rounded up from the integers; infinite if a report rules out an answer."""
        return math.inf if self.ratio is None else log_rounded_up(self.ratio)

    @property
    def guarantee(self) -> Guarantee:
        """What one cell sent through this channel is promised."""
        return Guarantee(epsilon=self.epsilon, participation=self.participation)

    @cached_property
    def probabilities(self) -> NDArray[np.float64]:
        """P(report | answer), indexed [input, output]; rows sum to 1. For likelihoods, never for sampling."""
        # Exact up to the rounding of one integer to a float: the denominator is a power of two.
        table = np.array([[float(entry) for entry in row] for row in self.rows]) / float(self.denominator)
        table.flags.writeable = False
        return table

    @property
    def null_output(self) -> int | None:
        """Index of the NULL report symbol, None if every report is a label."""
        return self.outputs.index(NULL) if NULL in self.outputs else None

    @cached_property
    def is_identity(self) -> bool:
        """Whether a report is the answer itself."""
        square = self.outputs == self.inputs
        return square and all(row[k] == self.denominator for k, row in enumerate(self.rows))

    @property
    def retention(self) -> float:
        """Share of the answer that survives, in [0, 1]: the smallest total-variation distance of two input rows.

        1 for the identity, 0 where some two answers cannot be told apart; for k-ary randomized response it is the
        probability of sending the truth rather than a uniform symbol.
        """
        table = self.probabilities
        return min(
            0.5 * float(np.abs(table[i] - table[j]).sum()) for i in range(len(table)) for j in range(i + 1, len(table))
        )

    def sample(self, answers: NDArray[np.integer], source: Source) -> NDArray[np.int64]:
        """Draw one report per answer, independently: what a device does.

        One 48-bit word per cell is compared with the whole cumulative row, whatever it is: no loop depends on the
        answer.

        Args:
            answers: input codes, shape (cells,).
            source: secure on a device; seeded in a simulation.

        Returns:
            Output codes, shape (cells,).

        Raises:
            SettingsError: a code outside the inputs, a channel without finite epsilon, or one that is not in 48-bit
                form.
        """
        codes = np.asarray(answers)
        if self.ratio is None:
            raise SettingsError("a channel is sampled only if its epsilon is finite", value=self.epsilon)
        if self.denominator != DENOMINATOR:
            raise SettingsError(
                f"a channel is sampled with denominator 2**{WORD_BITS}",
                value=self.denominator,
                hint="Use rounded().",
            )
        if codes.size and not (codes.min() >= 0 and codes.max() < len(self.inputs)):
            raise SettingsError(f"answer codes must be in 0..{len(self.inputs) - 1}", value=(codes.min(), codes.max()))
        reports = np.empty(codes.size, dtype=np.int64)
        for first in range(0, codes.size, CELLS_AT_ONCE):
            part = slice(first, first + CELLS_AT_ONCE)
            words = source.words(codes[part].size)
            reports[part] = (words[:, None] >= self._cumulative[codes[part], :-1]).sum(axis=1)
        return reports

    @cached_property
    def _cumulative(self) -> NDArray[np.uint64]:
        return np.cumsum(np.array(self.rows, dtype=np.uint64), axis=1)

    def compose(self, second: "Channel") -> "Channel":
        """Return the exact channel of sending this channel's report through `second` (integer product of the tables).

        Raises:
            SettingsError: `second` does not accept exactly the symbols this channel sends.
        """
        if second.inputs != self.outputs:
            raise SettingsError("the second channel must accept the first one's reports", value=second.inputs)
        columns = list(zip(*second.rows, strict=True))
        rows = tuple(
            tuple(sum(a * b for a, b in zip(row, column, strict=True)) for column in columns) for row in self.rows
        )
        return Channel(self.alphabet, self.participation, second.outputs, rows, f"{self.mechanism}+{second.mechanism}")

    def rounded(self) -> "Channel":
        """Return the nearest channel with the device's denominator whose epsilon is no larger."""
        return Channel.from_probabilities(
            self.alphabet, self.participation, self.outputs, self.probabilities, self.ratio, self.mechanism
        )

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
        """Round a real table [input, output] to integers without ever exceeding the claimed column ratio.

        Rows are rounded to the denominator; while the integer table's worst ratio exceeds `claim`, all rows are blended
        a little more with their average, which shrinks every ratio (the last resort, all rows equal, has ratio 1).

        Raises:
            SettingsError: the claim is below 1, which no table can keep.
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
        """Return the channel that changes nothing (epsilon infinite): for likelihoods only, it cannot be sampled."""
        outputs = alphabet.names + ((NULL,) if participation == "protected" else ())
        rows = tuple(tuple(DENOMINATOR if i == j else 0 for j in range(len(outputs))) for i in range(len(outputs)))
        return cls(alphabet, participation, outputs, rows, "identity")

    def certificate(self) -> dict[str, object]:
        """Return a JSON-ready description with its SHA-256, which anyone can check with `from_certificate`.

        Raises:
            CertificateError: the channel's epsilon is infinite, its denominator is not the device's, a name does not
                print or looks like another, or the mechanism is none that a certificate can name.
        """
        if self.ratio is None:
            raise CertificateError("zero entry", "a channel with infinite epsilon cannot be certified.")
        if self.denominator != DENOMINATOR:
            raise CertificateError("denominator", f"only channels over 2**{WORD_BITS} are certified; use rounded().")
        return with_checksum(
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

    @classmethod
    def from_certificate(cls, text: str | bytes) -> Self:
        """Rebuild a channel from a certificate's JSON text, checking everything it says.

        Raises:
            CertificateError: with the `defect` that was found: oversize, not json, format, hash, alphabet, text,
                mechanism, shape, duplicate symbols, non-integer, negative entry, empty column, zero entry, row sum,
                denominator, ratio.
        """
        data = parse_certificate(text)
        try:
            alphabet = alphabet_from_json(data["alphabet"])
        except SettingsError as error:
            defect = "duplicate symbols" if "distinct" in error.rule else "alphabet"
            raise CertificateError(defect, str(error)) from error
        rows = tuple(tuple(row) for row in data["rows"])
        channel = cls(alphabet, data["participation"], tuple(data["outputs"]), rows, data["mechanism"])
        if data["denominator"] != DENOMINATOR:
            raise CertificateError("denominator", f"must be 2**{WORD_BITS}, is said to be {data['denominator']}.")
        if channel.denominator != DENOMINATOR:
            raise CertificateError("row sum", f"rows must sum to 2**{WORD_BITS}, not to {channel.denominator}.")
        if channel.ratio is None:
            raise CertificateError("zero entry", "an entry of 0 lets a report rule out an answer.")
        numerator, denominator = data["ratio"]
        if channel.ratio.numerator * denominator > numerator * channel.ratio.denominator:
            raise CertificateError("ratio", f"the table's worst ratio {channel.ratio} exceeds {data['ratio']}.")
        return channel


def _integer_row(row: NDArray[np.float64]) -> tuple[int, ...]:
    """Round one row to integers summing to the denominator; the largest remainders are rounded up."""
    exact = [int(entry) for entry in np.ldexp(row, 300)]  # a float is an integer multiple of 2^-300, or nothing
    total = sum(exact)
    parts = [divmod(entry * DENOMINATOR, total) for entry in exact]
    floors = [whole for whole, _ in parts]
    by_remainder = sorted(range(len(row)), key=lambda k: (-parts[k][1], k))
    for k in by_remainder[: DENOMINATOR - sum(floors)]:
        floors[k] += 1
    return tuple(floors)
