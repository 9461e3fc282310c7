"""Memoised randomized response: one permanent answer per cell, and a fresh report of it each time (RAPPOR).

Erlingsson, Pihur and Korolova 2014, with k-ary randomized response for both steps: the device draws the permanent
answer once and keeps it; every report randomizes the permanent answer anew. Two guarantees follow from two integer
tables: that of one report, and that of any number of reports on a cell, for ever. Both tables have entries in
multiples of 2^24, so their product is a table over 2^48, exact like every other.
"""

import json
import math
from collections import Counter
from collections.abc import Callable
from dataclasses import dataclass, replace
from fractions import Fraction
from functools import cache
from itertools import combinations_with_replacement
from typing import Any, ClassVar, Self, final

import numpy as np
from numpy.typing import NDArray

from crowdveil.channels.alphabet import NULL, Alphabet, Categories
from crowdveil.channels.certificate import (
    MAX_SYMBOLS,
    MEMOISED_FORMAT,
    canonical,
    digest,
    has_format,
    is_ratio,
    parse_document,
    verify_checksum,
)
from crowdveil.channels.channel import DENOMINATOR, Channel, exp_rounded_down
from crowdveil.channels.guarantee import Guarantee, Participation, require_epsilon
from crowdveil.channels.rounding import format_bound
from crowdveil.errors import CertificateError, SettingsError
from crowdveil.mechanisms.base import ChannelMechanism
from crowdveil.mechanisms.settings import Settings
from crowdveil.randomness import WORD_BITS, Source

UNIT = 1 << (WORD_BITS // 2)
"""Denominator of each of the two tables, and the unit of their entries over 2^48."""
MAX_JOINT = 40
"""Largest number of reports on one cell whose joint table is computed; the permanent epsilon bounds more."""
FIELDS = {"format", "permanent", "instantaneous", "report", "claims", "sha256"}
CLAIMS = ("for_ever", "per_report")


@final
@dataclass(frozen=True, eq=False)
class MemoisedTables:
    """Exact tables of memoised reports.

    Attributes:
        permanent: table of the permanent answer, drawn once per cell and kept by the device.
        instantaneous: table of every report, whose inputs are the permanent answers.
        report: table of one report given the answer, the product of both.

    Raises:
        CertificateError: tables over different symbols, or a report's table that is not the product.
    """

    permanent: Channel
    instantaneous: Channel
    report: Channel

    def __post_init__(self) -> None:
        inputs = {(one.inputs, one.alphabet, one.participation) for one in (self.permanent, self.instantaneous)}
        inputs.add((self.permanent.outputs, self.report.alphabet, self.report.participation))
        if len(inputs) > 1 or self.instantaneous.outputs != self.report.outputs:
            raise CertificateError("shape", "the tables of memoised reports must have the same symbols.")
        if any(NULL in one.outputs and not one.protects_participation for one in (self.permanent, self.report)):
            raise CertificateError("shape", "where participation is public, no report is NULL.")
        exact = _product(self.permanent.rows, self.instantaneous.rows)
        if exact != tuple(tuple(entry * self.permanent.denominator for entry in row) for row in self.report.rows):
            raise CertificateError("product", "the table of one report must be the product of the two others.")

    @classmethod
    def of(cls, permanent: Channel, instantaneous: Channel, mechanism: str) -> Self:
        """Return the tables with their product.

        Raises:
            CertificateError: the product is not a table over 2^48.
        """
        rows = tuple(
            tuple(entry // DENOMINATOR for entry in row) for row in _product(permanent.rows, instantaneous.rows)
        )
        outputs = instantaneous.outputs
        return cls(
            permanent, instantaneous, Channel(permanent.alphabet, permanent.participation, outputs, rows, mechanism)
        )

    def joint(self, reports: int) -> Channel | None:
        """Return the exact table of `reports` reports on one cell, as counts of their symbols; None if it is too large.

        The order of the reports holds no further information. Output symbols are named by the JSON list of the
        reports in the order of the table's symbols; if all are NULL, NULL.
        """
        if reports == 1:
            return self.report
        outputs = len(self.report.outputs)
        if reports > MAX_JOINT or math.comb(outputs + reports - 1, reports) > MAX_SYMBOLS:
            return None
        return _joint(self, reports)

    def codes(self, rounds: NDArray[np.integer]) -> NDArray[np.int64]:
        """Return the symbols of the joint table, shape (cells,).

        Args:
            rounds: codes of `report.outputs`, shape (reports, cells); a cell without reports has
                `len(report.outputs)` in all rounds, and that of the joint table in the result.
        """
        reports, symbols = len(rounds), len(self.report.outputs)
        if reports == 1:
            return np.asarray(rounds[0], dtype=np.int64)
        places = {counts: code for code, counts in enumerate(_multisets(symbols, reports))}
        places[(symbols,) * reports] = len(places)
        distinct, at = np.unique(np.sort(rounds, axis=0), axis=1, return_inverse=True)
        return np.array([places[tuple(map(int, column))] for column in distinct.T])[at.ravel()]

    def certificate(self) -> dict[str, object]:
        """Return the certificate: both tables, their product, and the ratios claimed for ever and per report.

        Raises:
            CertificateError: as `Channel.certificate`.
        """
        parts = {name: getattr(self, name).certificate() for name in ("permanent", "instantaneous", "report")}
        claims = dict(zip(CLAIMS, (parts["permanent"]["ratio"], parts["report"]["ratio"]), strict=True))
        data = {"format": MEMOISED_FORMAT, **parts, "claims": claims}
        return {**data, "sha256": digest(data)}

    @classmethod
    def from_certificate(cls, text: str | bytes) -> Self:
        """Return the tables of a certificate after checking every field, both claims and the product.

        Raises:
            CertificateError: as `Channel.from_certificate`; product, ratio.
        """
        data = parse_document(text, MEMOISED_FORMAT, FIELDS)
        tables = cls._of_document(data)
        for claim, name in zip(CLAIMS, ("permanent", "report"), strict=True):
            if data["claims"][claim] != data[name]["ratio"]:
                raise CertificateError("ratio", f"the claim {claim} must be the ratio of the table {name}.")
        return tables

    @classmethod
    def with_claims(cls, text: str | bytes) -> tuple[Self, tuple[Fraction, Fraction]]:
        """Return the tables of a certificate and its claims, the ratios for ever and per report.

        The claims are not compared with the tables: an audit does it.

        Raises:
            CertificateError: as `from_certificate`, except for a claim that is not the ratio of its table.
        """
        data = parse_document(text, MEMOISED_FORMAT, FIELDS)
        tables, claims = cls._of_document(data), data["claims"]
        return tables, (Fraction(*claims["for_ever"]), Fraction(*claims["per_report"]))

    @classmethod
    def _of_document(cls, data: dict[str, Any]) -> Self:
        """Return the tables after every check but the comparison of the claims with them."""
        verify_checksum(data)
        parts = [Channel.from_certificate(_text(data[name])) for name in ("permanent", "instantaneous", "report")]
        tables, claims = cls(*parts), data["claims"]
        if not isinstance(claims, dict) or set(claims) != set(CLAIMS):
            raise CertificateError("format", f"the claims must be {' and '.join(CLAIMS)}.")
        if not all(map(is_ratio, claims.values())):
            raise CertificateError("ratio", "each of the claims must be two positive integers.")
        return tables


def is_memoised(text: str | bytes) -> bool:
    """Return whether a certificate's text has the format of memoised reports; its content is not checked."""
    return has_format(text, MEMOISED_FORMAT)


def _text(part: object) -> bytes:
    if not isinstance(part, dict):
        raise CertificateError("format", "a table must be an object.")
    return canonical(part)


def _product(first: tuple[tuple[int, ...], ...], second: tuple[tuple[int, ...], ...]) -> tuple[tuple[int, ...], ...]:
    columns = list(zip(*second, strict=True))
    return tuple(tuple(sum(a * b for a, b in zip(row, column, strict=True)) for column in columns) for row in first)


def _multisets(symbols: int, reports: int) -> list[tuple[int, ...]]:
    return list(combinations_with_replacement(range(symbols), reports))


@cache
def _joint(tables: MemoisedTables, reports: int) -> Channel:
    names, factor = tables.report.outputs, math.factorial(reports)
    multisets = _multisets(len(names), reports)
    ways = [factor // math.prod(map(math.factorial, Counter(one).values())) for one in multisets]
    fresh = [[math.prod(row[y] for y in one) for one in multisets] for row in tables.instantaneous.rows]
    rows = tuple(
        tuple(
            many * sum(weight * part[at] for weight, part in zip(row, fresh, strict=True))
            for at, many in enumerate(ways)
        )
        for row in tables.permanent.rows
    )
    found = [[names[y] for y in one] for one in multisets]
    outputs = tuple(NULL if set(one) == {NULL} else json.dumps(one, ensure_ascii=False) for one in found)
    return Channel(tables.report.alphabet, tables.report.participation, outputs, rows, tables.report.mechanism)


@final
@dataclass(frozen=True, slots=True, kw_only=True)
class Memoised(ChannelMechanism):
    """Report a fresh randomization of a permanent answer, which is itself randomized and drawn once per cell.

    `guarantee` and `channel()` are those of one report. `over_rounds` gives the table of several reports on the same
    cell, which loses at most `epsilon` for ever, if the device keeps its permanent answer.

    Attributes:
        alphabet: possible answers.
        epsilon: loss of one cell for ever, whatever the number of reports, in nats.
        report_epsilon: loss of one report alone, in nats; below `epsilon`.
        participation: "protected" or "public".

    Raises:
        SettingsError: an epsilon outside its limits, `report_epsilon` not below `epsilon`, or one that tables with
            24-bit probabilities cannot keep over so many symbols.
    """

    name: ClassVar[str] = "memoised"
    alphabet: Alphabet
    epsilon: float
    report_epsilon: float
    participation: Participation = "protected"

    def __post_init__(self) -> None:
        require_epsilon(self.epsilon)
        require_epsilon(self.report_epsilon)
        if not self.report_epsilon < self.epsilon:
            raise SettingsError(
                "report_epsilon, the loss of one report, must be below epsilon, the loss for ever",
                value=(self.report_epsilon, self.epsilon),
                hint="Half of epsilon is usual.",
            )
        _ = self.tables

    @classmethod
    def examples(cls) -> "tuple[Memoised, ...]":
        """Return small instances for the contract tests."""
        yes_no = Categories(("no", "yes"))
        return (
            cls(alphabet=yes_no, epsilon=2.0, report_epsilon=1.0),
            cls(alphabet=Categories(("G", "P", "R", "X"), ordered=True), epsilon=4.0, report_epsilon=1.5),
            cls(alphabet=yes_no, epsilon=1.0, report_epsilon=0.5, participation="public"),
        )

    @classmethod
    def from_settings(cls, settings: Settings, alphabet: Alphabet, *, tasks: int) -> Self:
        """Return the mechanism; without `report_epsilon` one report loses at most half of epsilon."""
        epsilon = settings.required_epsilon(cls.name)
        report = epsilon / 2 if settings.report_epsilon is None else settings.report_epsilon
        return cls(alphabet=alphabet, epsilon=epsilon, report_epsilon=report, participation=settings.participation)

    @property
    def tables(self) -> MemoisedTables:
        """Both tables, and their product."""
        return _tables(self)

    def channel(self) -> Channel:
        """Return the exact channel of one report."""
        return self.tables.report

    @property
    def lasting_channel(self) -> Channel:
        """Table of the permanent answer, whose loss is never exceeded."""
        return self.tables.permanent

    def over_rounds(self, rounds: int) -> tuple[Channel, int]:
        """Return the joint table of `rounds` reports on a cell, once; that of the permanent answer if it is too large.

        The device keeps one permanent answer per cell.
        """
        joint = self.tables.joint(rounds)
        return (self.lasting_channel if joint is None else joint), 1

    def guarantees_over(self, cells: int, rounds: int) -> tuple[Guarantee, Guarantee]:
        """Return the guarantees of one cell and of a whole worker over `rounds` reports on the same cells."""
        cell = self.over_rounds(rounds)[0].guarantee
        lasting = format_bound(self.lasting_channel.epsilon)
        if rounds == 1:
            once = f"this is one report per cell; all reports of a permanent answer lose at most epsilon {lasting}"
            cell = replace(cell, claimed=self.report_epsilon, reason=f"{once} per cell for ever")
        else:
            kept = f"the device keeps one permanent answer per cell: at most epsilon {lasting} per cell for ever"
            cell = replace(cell, claimed=self.epsilon, reason=kept)
        return cell, cell.per_worker(cells)

    def perturb(self, answers: NDArray[np.integer], source: Source) -> NDArray[np.int64]:
        """Return one report per task; its permanent answers are drawn and forgotten."""
        return self.perturb_rounds(answers, 1, source)[0]

    def perturb_rounds(self, answers: NDArray[np.integer], rounds: int, source: Source) -> NDArray[np.int64]:
        """Return the reports of several rounds, shape (rounds, tasks), all of the same permanent answers."""
        codes = self._validated(answers)
        sent = codes < len(self.tables.permanent.inputs)
        kept = self.tables.permanent.sample(codes[sent], source)
        reports = np.full((rounds, len(codes)), len(self.channel().outputs), dtype=np.int64)
        for report in reports:
            report[sent] = self.tables.instantaneous.sample(kept, source)
        return reports


@cache
def _tables(mechanism: Memoised) -> MemoisedTables:
    symbols = mechanism.alphabet.names + ((NULL,) if mechanism.participation == "protected" else ())
    once = _least_flip(len(symbols), lambda flip: _ratio(len(symbols), flip), mechanism.epsilon)
    each = _least_flip(len(symbols), lambda flip: _ratio(len(symbols), once, flip), mechanism.report_epsilon)

    def table(flip: int) -> Channel:
        keep = UNIT - (len(symbols) - 1) * flip
        shape = range(len(symbols))
        rows = tuple(tuple((keep if i == j else flip) * UNIT for j in shape) for i in shape)
        return Channel(mechanism.alphabet, mechanism.participation, symbols, rows, "randomized-response")

    return MemoisedTables.of(table(once), table(each), mechanism.name)


def _ratio(symbols: int, once: int, each: int = 0) -> Fraction:
    """Return the worst column ratio of two steps with these chances of each other symbol, in units of 2^-24."""
    kept, fresh = UNIT - (symbols - 1) * once, UNIT - (symbols - 1) * each
    same = kept * fresh + (symbols - 1) * once * each
    other = once * fresh + kept * each + (symbols - 2) * once * each
    return Fraction(same, other)


def _least_flip(symbols: int, ratio: Callable[[int], Fraction], epsilon: float) -> int:
    """Return the smallest chance of each other symbol whose ratio is at most e^epsilon; the ratio falls with it."""
    limit = exp_rounded_down(epsilon)
    low, high = 1, UNIT // symbols
    if high < 1 or ratio(high) > limit:
        raise SettingsError(
            f"memoised tables of 24 bits cannot keep so small an epsilon over {symbols} symbols",
            value=epsilon,
            hint="Use a larger epsilon or fewer labels.",
        )
    while low < high:
        middle = (low + high) // 2
        low, high = (low, middle) if ratio(middle) <= limit else (middle + 1, high)
    return low
