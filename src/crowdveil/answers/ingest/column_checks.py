"""Validation of coded columns: identifiers, numbers, grids and duplicates.

Rules are checked on the distinct values; rows are looked up only for error messages.
"""

import re
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any, Literal, NamedTuple

import numpy as np
from numpy.typing import ArrayLike, NDArray

from crowdveil.answers.identifiers import Identifiers
from crowdveil.answers.ingest.mapped_codes import code_parts, place_of_codes
from crowdveil.arguments import is_number
from crowdveil.channels.alphabet import MAGNITUDE_HINT, MAGNITUDE_RULE, Scale, squares_safely
from crowdveil.display.counts import repeated_pairs_text
from crowdveil.errors import Code, ReportsError
from crowdveil.hints import advice, one_of

Duplicates = Literal["error", "first", "last", "all"]
Missing = Literal["error", "skip"]
Grid = Literal["round", "exact"]
EXAMPLES_SHOWN = 5
MISSING = -1
SURROGATES = 0xD800 >> 11
"""First bits of U+D800 to U+DFFF."""
COMMA_NUMBER, POINT_NUMBER = re.compile(r"\s*[+-]?\d*,\d+\s*"), re.compile(r"\s*[+-]?\d*\.[\d.,]*\s*")
"""Numbers with a decimal comma, and numbers with a point."""
TEXT_RULE = "names must be text that can be written in UTF-8"


@dataclass(frozen=True, slots=True, eq=False)
class CodedColumn:
    """Dictionary-encoded column.

    Attributes:
        names: sorted distinct values, shape (names,); for floats the cells themselves, one per row.
        codes: int32 positions in `names`, MISSING for empty cells, shape (rows,).
    """

    names: NDArray[Any]
    codes: NDArray[np.int32]

    def __len__(self) -> int:
        """Number of rows."""
        return len(self.codes)

    @property
    def counts(self) -> NDArray[np.int64]:
        """Number of rows with each name, then of rows with an empty cell, shape (names + 1,)."""
        counts = np.zeros(len(self.names) + 1, dtype=np.int64)
        for _, (codes,) in code_parts(self.codes):
            np.add.at(counts, codes, 1)
        return counts

    @property
    def cells(self) -> NDArray[Any]:
        """The content of each row of a column without empty cells, shape (rows,)."""
        return self.names[self.codes]

    def invalid_positions(self, bad_names: NDArray[np.bool_]) -> NDArray[np.int64]:
        """Return the positions of rows that are empty or hold a marked value."""
        return np.flatnonzero(np.append(bad_names, True)[self.codes])

    def keep(self, rows: NDArray[Any]) -> "CodedColumn":
        """Return the column restricted to some rows."""
        return CodedColumn(self.names, self.codes[rows])

    def restricted_to_rows(self, rows: NDArray[Any]) -> "CodedColumn":
        """Return the column restricted to some rows, and to the names that occur in them."""
        used, codes = np.unique(self.codes[rows], return_inverse=True)
        known = used[used != MISSING]
        return CodedColumn(self.names[known], (codes - (len(used) - len(known))).astype(np.int32))

    def with_merged_names(self, names: Sequence[str]) -> "CodedColumn":
        """Return the column with `names[code]` in place of each name; equal names become one."""
        found, place = np.unique(np.array(names, dtype=object), return_inverse=True)
        return CodedColumn(found, place_of_codes(np.append(place, MISSING).astype(np.int32), self.codes))


def encode_array(column: ArrayLike, source: str) -> CodedColumn:
    """Return the coded column of a one-dimensional array of text, integers or floats; None and NaN are missing.

    Raises:
        ReportsError: not one-dimensional, or text and numbers mixed.
    """
    array = np.asarray(column)
    if array.ndim != 1:
        raise ReportsError("every column must be one-dimensional", source=source, examples=f"shape {array.shape}")
    if array.dtype.kind == "f":
        return CodedColumn(array, np.arange(len(array), dtype=np.int32))
    codes = np.full(len(array), MISSING, dtype=np.int32)
    given = np.ones(len(array), dtype=bool)
    if array.dtype.kind == "O":
        given = np.equal(array, array).astype(bool) & np.not_equal(array, np.array(None)).astype(bool)
    try:
        names, codes[given] = np.unique(array[given], return_inverse=True)
    except TypeError as error:
        raise ReportsError(
            "a column must hold only text or only numbers",
            source=source,
            examples=str(error),
            hint="Turn the whole column into text.",
        ) from error
    return CodedColumn(np.array(names.tolist()) if array.dtype.kind == "O" else names, codes)


def encode_ids(
    column: CodedColumn, listed: Sequence[Any] | Identifiers | None, kind_of_identifier: str, source: str
) -> tuple[NDArray[Any], NDArray[np.int32]]:
    """Return identifiers and codes: the sorted ones that occur, or `listed`, compared as text.

    Raises:
        ReportsError: an identifier is missing, not listed, a fraction or not UTF-8 text, or the list repeats one.
    """
    column = with_sorted_distinct_numbers(column)
    refuse_invalid_rows(
        column,
        column.names == "",
        f"every row needs a {kind_of_identifier}",
        source=source,
        hint="Remove or complete the rows.",
    )
    if column.names.dtype.kind == "f":
        refuse_invalid_rows(
            column, column.names % 1 != 0, f"{kind_of_identifier} ids must be text or whole numbers", source=source
        )
    refuse_invalid_rows(column, has_lone_surrogate(column.names), TEXT_RULE, source=source, hint="Correct the rows.")
    if listed is None:
        return column.names, column.codes
    if has_lone_surrogate(np.asarray(listed)).any():
        raise ReportsError(
            f"the list of {kind_of_identifier}s must hold text that can be written in UTF-8", source=source
        )
    place = {str(name): code for code, name in enumerate(listed)}
    if len(place) != len(listed):
        raise ReportsError(
            f"the list of {kind_of_identifier}s must not repeat a name",
            source=source,
            hint="Give a list with one row for each, or leave repeated rows out.",
        )
    codes = np.array([place.get(str(name), MISSING) for name in column.names], dtype=np.int32)
    refuse_invalid_rows(
        column,
        codes == MISSING,
        f"every {kind_of_identifier} must be in the given list of {len(listed)} {kind_of_identifier}s",
        source=source,
        hint=f"Complete the list of {kind_of_identifier}s, or the assignment that names them.",
    )
    return np.asarray(listed), codes[column.codes]


def parse_number_column(column: CodedColumn, source: str) -> NDArray[np.float64]:
    """Return each row's number, shape (rows,).

    Raises:
        ReportsError: a value is empty, not finite, or outside the valid magnitude.
    """
    numbers = parse_numbers(column.names)
    refuse_invalid_rows(
        column,
        ~np.isfinite(numbers),
        "values must be finite numbers",
        source=source,
        hint=f"{_hint_for_no_number(column.names[~np.isfinite(numbers)])} If these are labels, "
        f"choose a method for labels{advice(', or {kind}', kind='categorical')}.",
    )
    refuse_invalid_rows(
        column,
        ~squares_safely(numbers),
        f"values {MAGNITUDE_RULE}",
        source=source,
        hint=MAGNITUDE_HINT,
    )
    return numbers[column.codes]


def _hint_for_no_number(names: NDArray[Any]) -> str:
    """Return what helps where these names are no numbers."""
    texts = [str(name).strip() for name in names.tolist()]
    if any("," in text and is_number(text.replace(",", ".")) for text in texts):
        stated = advice(", or state the comma ({decimal})", " (pandas.read_csv(..., decimal=',') does)", decimal=",")
        return f"Write decimals with a point{stated}."
    if all(text in ("", "nan", "NaN") for text in texts):
        return advice("Skip absent answers ({missing}).", "Remove absent answers.", missing="skip")
    return "Correct these cells; where there is no answer, write NULL or leave the row out."


def with_decimal_points(column: CodedColumn, source: str) -> CodedColumn:
    """Return a column of text whose numbers have a decimal comma with points in their place; other names stay.

    Raises:
        ReportsError: a number has a point, which could be a decimal one or separate thousands.
    """
    names = column.names
    if names.dtype.kind not in "OU":
        return column
    doubtful = [POINT_NUMBER.fullmatch(name) is not None for name in names]
    if any(doubtful):
        # An empty cell is not refused here: it has the last place, as a name without defects.
        refuse_invalid_rows(
            CodedColumn(np.append(names, ""), np.where(column.codes == MISSING, len(names), column.codes)),
            np.array([*doubtful, False]),
            "numbers with a decimal comma must have no point",
            source=source,
            hint=advice("Remove separators of thousands; leave {decimal} out if the point is the decimal one."),
        )
    points = [name.replace(",", ".") if COMMA_NUMBER.fullmatch(name) else name for name in names.tolist()]
    return column.with_merged_names(points)


def parse_numbers(names: NDArray[Any]) -> NDArray[np.float64]:
    """Return the numbers of texts, NaN for texts that are no number; shape as `names`."""
    if names.dtype.kind in "fiub":
        return names.astype(float)
    # Python parses 1_000 as 1000; in a data file it is an error.
    if not any("_" in name for name in names):
        try:
            return names.astype(float)
        except ValueError:
            pass
    return np.array([number_or_nan(name) for name in names])


def encode_on_scale(numbers: NDArray[np.float64], scale: Scale, grid: Grid, source: str) -> NDArray[np.int16]:
    """Return codes of numbers on a scale, clipped and rounded, or under "exact" only its points.

    Raises:
        ReportsError: under "exact", a number is not a point of the scale.
    """
    codes = scale.encode(numbers)
    off = np.abs(scale.values[codes] - numbers) > 1e-6 * scale.step
    if grid == "exact" and off.any():
        rows = np.flatnonzero(off)[:EXAMPLES_SHOWN]
        raise ReportsError(
            f"every value must be a point of the scale {scale.low:g} to {scale.high:g} in steps of {scale.step:g}",
            source=source,
            rows=tuple(int(row) + 1 for row in rows),
            examples=", ".join(f"{numbers[row]:g}" for row in rows),
            hint="Give the scale or certificate that belongs to these reports.",
        )
    return codes.astype(np.int16)


class RepeatedPairs(NamedTuple):
    """Rows of pairs that an earlier row has.

    Attributes:
        number: how many there are.
        first: row and text of the first ones, rows counted from 0.
    """

    number: int
    first: list[tuple[int, str]]

    def error(self, source: str) -> ReportsError:
        """Return the refusal of these rows."""
        return ReportsError(
            f"a worker answers a task once, but {repeated_pairs_text(self.number, 'row')}",
            source=source,
            rows=tuple(row + 1 for row, _ in self.first),
            examples=", ".join(text for _, text in self.first),
            hint=one_of(
                "correct the rows",
                advice("choose {duplicates}", duplicates="first"),
                advice("{duplicates}", duplicates="last"),
                advice("{duplicates} (`infer` and `next` read these)", duplicates="all"),
            ),
        )


def _pair_order(task: CodedColumn, worker: CodedColumn) -> tuple[NDArray[np.int64], NDArray[np.bool_]]:
    """Return the rows sorted by pair, and whether each but the first has the pair of the one before."""
    pair = task.codes.astype(np.int64) * len(worker.names) + worker.codes
    order = np.argsort(pair, kind="stable")
    ordered = pair[order]
    return order, ordered[1:] == ordered[:-1]


def repeated_pairs(task: CodedColumn, worker: CodedColumn, rows: NDArray[np.int64] | None = None) -> RepeatedPairs:
    """Return the rows whose pair an earlier row has; `rows` as in `resolve_duplicates`."""
    order, repeats = _pair_order(task, worker)
    repeated = np.sort(order[1:][repeats])
    shown = repeated[:EXAMPLES_SHOWN]
    places = (shown if rows is None else rows[shown]).tolist()
    texts = [f"({task.names[task.codes[r]]}, {worker.names[worker.codes[r]]})" for r in shown]
    return RepeatedPairs(len(repeated), list(zip(places, texts, strict=True)))


def resolve_duplicates(
    task: CodedColumn, worker: CodedColumn, policy: Duplicates, source: str, rows: NDArray[np.int64] | None = None
) -> NDArray[np.int64]:
    """Return the rows to keep, sorted by (task, worker) pair; under "all", every row in row order.

    `rows` are the rows of the source, counted from 0, that the columns hold; None for all of them.

    Raises:
        ReportsError: a pair is repeated and the policy is "error".
    """
    if policy == "all":
        return np.arange(len(task))
    order, repeats = _pair_order(task, worker)
    if policy == "error" and repeats.any():
        raise repeated_pairs(task, worker, rows).error(source)
    keep = np.ones(len(order), dtype=bool)
    if policy == "last":
        keep[:-1] = ~repeats
    else:
        keep[1:] = ~repeats
    return order[keep]


def refuse_invalid_rows(
    column: CodedColumn,
    bad_names: NDArray[np.bool_] | bool,
    rule: str,
    *,
    source: str,
    hint: str = "",
    code: Code = "",
) -> None:
    """Raise a ReportsError with the first rows that are empty or hold a marked value, if there are any."""
    marked = np.broadcast_to(np.asarray(bad_names), column.names.shape)
    if not marked.any() and not (column.codes == MISSING).any():
        return
    rows = column.invalid_positions(marked)
    if not len(rows):
        return
    found, first, counts = np.unique(column.codes[rows], return_index=True, return_counts=True)
    values = [
        ("nothing" if found[place] == MISSING else repr(str(column.names[found[place]])))
        + (f" in {counts[place]:,} rows" if counts[place] > 1 else "")
        for place in np.argsort(first)[:EXAMPLES_SHOWN]
    ]
    others = len(found) - EXAMPLES_SHOWN
    more = f" and {others:,} other value{'s' * (others > 1)}" if others > 0 else ""
    raise ReportsError(
        rule,
        source=source,
        rows=tuple(int(row) + 1 for row in rows[:EXAMPLES_SHOWN]),
        examples=", ".join(values) + more,
        hint=hint,
        code=code,
    )


def has_lone_surrogate(names: NDArray[Any]) -> NDArray[np.bool_]:
    """Return whether each text holds a lone surrogate, which UTF-8 cannot encode; object arrays come from UTF-8."""
    if names.dtype.kind != "U" or not names.size:
        return np.zeros(names.shape, dtype=bool)
    letters = np.ascontiguousarray(names, dtype=names.dtype.newbyteorder("="))
    halves = letters.view(np.uint32).reshape(len(names), -1) >> 11 == SURROGATES
    return np.asarray(halves.any(axis=1))


def with_sorted_distinct_numbers(column: CodedColumn) -> CodedColumn:
    """Return a column of floats with sorted distinct values, as integers if all are whole; others unchanged."""
    if column.names.dtype.kind != "f":
        return column
    cells = column.names[column.codes]
    given = ~np.isnan(cells) & (column.codes != MISSING)
    found, inverse = np.unique(cells[given], return_inverse=True)
    whole = np.isfinite(found) & (found == np.rint(found)) & (np.abs(found) < 2**53)
    codes = np.full(len(column), MISSING, dtype=np.int32)
    codes[given] = inverse
    return CodedColumn(found.astype(np.int64) if whole.all() else found, codes)


def number_or_nan(name: Any) -> float:
    """Return the number of a text, NaN for a text that is no number."""
    try:
        return float("nan") if "_" in str(name) else float(name)
    except (TypeError, ValueError):
        return float("nan")
