"""Columns of outputs: one number per draw, such as an entry, a file's size, or the last bits of a float.

Columns are chosen, and those that learn are fitted, on draws of two inputs that serve for nothing else. Every event of
an audit is a set of values of one column.
"""

import math
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from functools import partial
from typing import Generic, TypeVar

import numpy as np

from crowdveil.privacy.audit.likelihood_ratio import (
    SCORED,
    Coding,
    coding_by_differing_positions,
    numbers_at_position,
)
from crowdveil.privacy.audit.outputs import NUMBERS, DrawnOutputs, Part, Values

MOST_POSITIONS, MOST_PIECES = 24, 24
"""Positions, and lines or words, of a part that get columns of their own: those that differ most."""
MANTISSA_BITS = 52
LAST_BITS = np.uint64(0xFF)
Read = TypeVar("Read", DrawnOutputs, Part)


@dataclass(frozen=True, eq=False)
class Column(Generic[Read]):
    """One number per draw.

    Attributes:
        name: what it is, for the report of an audit.
        read: function of outputs, or of one part of them, that returns the numbers, shape (draws,).
        ordered: whether events are intervals too, besides sets of single values.
        hashed: whether the numbers are hashes, without meaning for a reader.
    """

    name: str
    read: Callable[[Read], Values]
    ordered: bool = False
    hashed: bool = False


def _column_of_whole_outputs(column: Column[Part], part: str) -> Column[DrawnOutputs]:
    """Return the column of outputs that a column of a part with this name gives."""
    title = f"{column.name} of {part}" if part not in ("", NUMBERS) else column.name
    return Column(title, lambda outputs: column.read(outputs.part(part)), column.ordered, column.hashed)


def distinguishing_columns(first: DrawnOutputs, second: DrawnOutputs) -> Iterator[Column[DrawnOutputs]]:
    """Yield the columns that can tell the outputs of two inputs apart; those that are easy to explain come first."""
    names = sorted({*first.parts, *second.parts})
    if len(names) > 1:
        yield Column("the set of parts", DrawnOutputs.part_names_hash, hashed=True)
    both = {name: (first.part(name), second.part(name)) for name in names}
    codings = {name: coding_by_differing_positions(*parts) for name, parts in both.items()}
    for columns in (_candidate_columns_in_words, _likelihood_columns_of_whole_part):
        for name in names:
            yield from (_column_of_whole_outputs(column, name) for column in columns(*both[name], codings[name]))


def _candidate_columns_in_words(first: Part, second: Part, coding: Coding) -> Iterator[Column[Part]]:
    """Yield size, form, the lines and words that differ most, and the numbers or bytes that do."""
    yield Column("the length", lambda part: part.size, ordered=True)
    yield Column("type and shape", lambda part: part.form, hashed=True)
    for piece in _lines_and_words_that_differ_most(first, second)[:MOST_PIECES]:
        title = repr(piece.decode("utf-8", "replace"))[:80]
        yield Column(
            f"the place of {title} (-1: absent)", partial(_place_of_piece_in_each_draw, piece=piece), ordered=True
        )
    unit = "byte" if first.raw else "number"
    for position in coding.positions[:MOST_POSITIONS]:
        yield from _audited_columns_at_position(position, f"{unit} {position + 1}", first)


def _audited_columns_at_position(position: int, title: str, part: Part) -> Iterator[Column[Part]]:
    yield Column(title, lambda own: numbers_at_position(own, position), ordered=True)
    if part.numbers.dtype.kind == "f":
        yield Column(f"the size of {title}", lambda own: np.abs(numbers_at_position(own, position)), ordered=True)
        yield Column(
            f"the lowest bit of {title}",
            lambda own: lowest_bit_exponent(numbers_at_position(own, position)),
            ordered=True,
        )
        yield Column(f"the last 8 bits of {title}", lambda own: _last_mantissa_bits(numbers_at_position(own, position)))


def _likelihood_columns_of_whole_part(first: Part, second: Part, coding: Coding) -> Iterator[Column[Part]]:
    """Yield statistics of the whole part."""
    unit = "byte" if first.raw else "number"
    if len(coding.positions) > 1:
        yield Column(f"the likelihood ratio of all {unit}s", coding.summed_log_likelihood_ratio, ordered=True)
        yield Column(f"the agreement of all {unit}s", coding.usual_count_code)
        yield Column(f"the three most different {unit}s", coding.strongest_levels_code)
    if first.raw:
        ratios = _presence_log_odds_ratio_per_piece(first, second)
        yield Column(
            "the likelihood ratio of all words",
            partial(_text_log_ratios, ratios=ratios),
            ordered=True,
        )
    if first.raw or first.numbers.shape[1] != 1:
        yield Column("the whole", lambda part: part.content, hashed=True)


def lowest_bit_exponent(numbers: Values) -> Values:
    """Return the exponent of the lowest set bit of each float, shape (draws,): x is an odd multiple of 2 to it.

    Zero, infinities and NaN have 2000.
    """
    fraction, exponent = np.frexp(np.where(np.isfinite(numbers), numbers, 0.0))
    whole = (np.abs(fraction) * 2.0 ** (MANTISSA_BITS + 1)).astype(np.int64)
    lowest = np.where(whole == 0, 1, whole & -whole)
    place = np.round(np.log2(lowest)).astype(np.int64) + exponent - (MANTISSA_BITS + 1)
    return np.where(whole == 0, 2000, place)


def _last_mantissa_bits(numbers: Values) -> Values:
    bits = np.ascontiguousarray(numbers, dtype=np.float64).view(np.uint64)
    return (bits & LAST_BITS).astype(np.int64)


def _draws_with_each_piece(part: Part) -> dict[bytes, int]:
    counts: dict[bytes, int] = {}
    for pieces in part.text_pieces:
        for piece in pieces:
            counts[piece] = counts.get(piece, 0) + 1
    return counts


def _lines_and_words_that_differ_most(first: Part, second: Part) -> list[bytes]:
    """Return lines and words, those whose presence differs most between the inputs first; at most `SCORED`."""
    counts = [_draws_with_each_piece(part) for part in (first, second)]
    differences = {piece: abs(counts[0].get(piece, 0) - counts[1].get(piece, 0)) for piece in {*counts[0], *counts[1]}}
    return sorted(differences, key=lambda piece: (-differences[piece], piece))[:SCORED]


def _presence_log_odds_ratio_per_piece(first: Part, second: Part) -> dict[bytes, float]:
    """Return the log-likelihood ratio of the presence of each line and word, minus that of its absence."""
    counts = [(_draws_with_each_piece(part), len(part.size)) for part in (first, second)]
    ratios = {}
    for piece in _lines_and_words_that_differ_most(first, second):
        one, two = ((own.get(piece, 0) + 0.5) / (draws + 1) for own, draws in counts)
        ratios[piece] = math.log(one / two) - math.log((1 - one) / (1 - two))
    return ratios


def _text_log_ratios(part: Part, *, ratios: dict[bytes, float]) -> Values:
    scores = [sum(ratios[piece] for piece in pieces if piece in ratios) for pieces in part.text_pieces]
    return np.round(np.array(scores or np.zeros(len(part.size))), 9)


def _place_of_piece_in_each_draw(part: Part, *, piece: bytes) -> Values:
    """Return the place of a line or word in each draw, shape (draws,); -1 where it is absent."""
    if not part.raw:
        return np.full(len(part.size), -1)
    return np.array([pieces.get(piece, -1) for pieces in part.text_pieces], dtype=np.int64)
