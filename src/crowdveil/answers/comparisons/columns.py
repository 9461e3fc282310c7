"""Columns of comparisons: which column is which, and what their cells say."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
import pyarrow as pa
from numpy.typing import NDArray

from crowdveil.answers.comparisons.values import ANSWERS, EXAMPLES, LEFT, RIGHT, TIE, Comparisons
from crowdveil.answers.ingest.arrow_columns import encode_arrow_column
from crowdveil.answers.ingest.column_checks import MISSING, CodedColumn, encode_ids
from crowdveil.answers.ingest.column_readers import ANSWERS as OF_ANSWERS
from crowdveil.answers.ingest.column_readers import OTHER_NAMES, normal_name
from crowdveil.answers.ingest.labels import spelling_groups
from crowdveil.answers.ingest.row_sources import source_of_kept_rows
from crowdveil.channels.alphabet import NULL
from crowdveil.display.counts import number_of
from crowdveil.errors import ReportsError
from crowdveil.hints import advice

ACCEPTED: Mapping[str, tuple[str, ...]] = {
    "left": ("left", "left_item", "item_left", "item_a", "option_a", "model_a", "a"),
    "right": ("right", "right_item", "item_right", "item_b", "option_b", "model_b", "b"),
    "worker": (*OF_ANSWERS["worker"], *OTHER_NAMES["worker"], "judge"),
    "label": (*OF_ANSWERS["value"], *OTHER_NAMES["value"], "winner", "preference", "choice"),
    "list": ("list", "list_id"),
}
"""Names of columns by role, in any case; the column of lists may be missing."""
OPTIONAL = "list"
WORDS: Mapping[str, frozenset[str]] = {
    LEFT: frozenset({"left"}),
    TIE: frozenset({"tie", "tied", "draw", "equal", "same", "both", "tie_(bothbad)", "both_bad"}),
    RIGHT: frozenset({"right"}),
}
"""Spellings of the answers, besides the names of the two columns and of the two items."""


@dataclass(frozen=True, slots=True, kw_only=True)
class ComparisonNames:
    """Names of columns that the caller states; None where they follow from the header."""

    left: str | None = None
    right: str | None = None
    worker: str | None = None
    label: str | None = None
    list: str | None = None

    def roles(self, found: Sequence[str], source: str, optional: Sequence[str] = (OPTIONAL,)) -> dict[str, str]:
        """Return the column of each role; those that are `optional` may be missing.

        Raises:
            ReportsError: a role has no column, or more than one; all such roles are named.
        """
        stated = {role: getattr(self, role) for role in ACCEPTED if getattr(self, role) is not None}
        absent = [name for name in stated.values() if name not in found]
        if absent:
            raise ReportsError(
                f"there is no column {', '.join(map(repr, absent))}",
                source=source,
                examples=_columns_text(found),
                hint="State a column that it has.",
            )
        rest = [name for name in found if name not in stated.values()]
        matched = {role: _matching(rest, names) for role, names in ACCEPTED.items() if role not in stated}
        wrong = {
            role: names for role, names in matched.items() if len(names) > 1 or (not names and role not in optional)
        }
        if wrong:
            counts = ", ".join(f"{len(names) or 'none'} for the {role}" for role, names in wrong.items())
            gold = "worker" in optional
            needed = "left, right and label" if gold else "left, right, worker and label"
            raise ReportsError(
                f"{'known orders' if gold else 'comparisons'} need one column each for {needed}; found {counts}",
                source=source,
                examples=_columns_text(found),
                hint=f"Name them {needed} (left, right, tie, or the winner's name)"
                + ("" if gold else advice(", or state them: {left}, {right}, {worker}, {label}", ""))
                + ".",
            )
        return stated | {role: names[0] for role, names in matched.items() if names}


NO_COMPARISON_NAMES = ComparisonNames()


def _matching(found: Sequence[str], names: Sequence[str]) -> list[str]:
    """Return the columns with the exact name of a role, or else with one of its other names."""
    normal = [(name, normal_name(name)) for name in found]
    return [name for name, one in normal if one == names[0]] or [name for name, one in normal if one in names]


def _columns_text(found: Sequence[str]) -> str:
    if not len(found):
        return "no columns"
    return "the columns " + ", ".join(repr(str(name)[:40]) for name in found[:20])


def comparisons_of_table(
    table: pa.Table,
    names: Mapping[str, str],
    source: str,
    outputs: tuple[str, ...] | None = None,
    *,
    every_row: bool = False,
) -> tuple[Comparisons, tuple[str, ...]]:
    """Return the comparisons of a table whose columns are named by role, and notes on rows without an answer.

    Args:
        table: columns left, right, worker, label, and maybe list.
        names: original name of each column, by role; the answer may be the name of the left or right one.
        source: origin of the rows.
        outputs: reports of a channel, which the labels must be; None for answers.
        every_row: whether a row whose answer is NULL is refused, instead of left out.

    Raises:
        ReportsError: a cell is missing, an answer is none of the words and neither item, or as `Comparisons`.
    """
    columns = {role: encode_arrow_column(table[role], source) for role in table.column_names}
    source, columns, null = _without_null(columns, source, outputs)
    if every_row and null:
        raise ReportsError(
            "with public participation, no row may be left out because of its value",
            source=source,
            examples=f"{null:,} without an answer (NULL)",
            hint="Remove these rows, if everyone may know that they had no answer; or protect participation.",
        )
    items, left, right = _item_codes(columns, source)
    workers, worker = encode_ids(columns["worker"], None, "worker", source)
    if outputs is None:
        answer = _answer_codes(columns["label"], items, left, right, names, source)
    else:
        answer = encode_ids(columns["label"], outputs, "report", source)[1]
    lists, of_row = ([""], None) if "list" not in columns else encode_ids(columns["list"], None, "list", source)
    if of_row is not None:
        items, list_of_item, left, right = _items_by_list(items, of_row, left, right)
    else:
        list_of_item = np.zeros(len(items), dtype=np.int32)
    found = Comparisons(
        left=left,
        right=right,
        worker=worker.astype(np.int32),
        answer=answer,
        items=items,
        workers=workers,
        list_of_item=list_of_item,
        lists=tuple(map(str, lists)),
        symbols=ANSWERS if outputs is None else outputs,
        source=source,
    )
    return found, (f"No answer (NULL): {number_of(null, 'comparison')}.",) if null else ()


def _without_null(
    columns: Mapping[str, CodedColumn], source: str, outputs: tuple[str, ...] | None
) -> tuple[str, dict[str, CodedColumn], int]:
    """Return source and columns without the rows whose answer is NULL, and their number."""
    label = columns["label"]
    null = np.array(
        [name == NULL and (outputs is None or NULL not in outputs) for name in label.names.tolist()] + [False]
    )[label.codes]
    if not null.any():
        return source, dict(columns), 0
    kept = np.flatnonzero(~null)
    return (
        source_of_kept_rows(source, kept),
        {role: column.restricted_to_rows(kept) for role, column in columns.items()},
        int(null.sum()),
    )


def _item_codes(
    columns: Mapping[str, CodedColumn], source: str
) -> tuple[NDArray[Any], NDArray[np.int32], NDArray[np.int32]]:
    """Return the names of all items, and the codes of those on the left and right of each row."""
    coded = [encode_ids(columns[role], None, f"{role} item", source) for role in ("left", "right")]
    if len({names.dtype.kind for names, _ in coded}) > 1:
        coded = [(np.array([str(name) for name in names], dtype=object), codes) for names, codes in coded]
    (first, left), (second, right) = coded
    items, place = np.unique(np.concatenate([first, second]), return_inverse=True)
    codes = place.astype(np.int32)
    return items, codes[: len(first)][left], codes[len(first) :][right]


def _items_by_list(
    items: NDArray[Any], of_row: NDArray[np.int32], left: NDArray[np.int32], right: NDArray[np.int32]
) -> tuple[NDArray[Any], NDArray[np.int32], NDArray[np.int32], NDArray[np.int32]]:
    """Return names and lists of the items, an item of each list apart, and the codes of both sides."""
    start = of_row.astype(np.int64) * len(items)
    both, place = np.unique(np.concatenate([start + left, start + right]), return_inverse=True)
    codes = place.astype(np.int32)
    lists = (both // len(items)).astype(np.int32)
    return items[both % len(items)], lists, codes[: len(left)], codes[len(left) :]


def _answer_codes(
    label: CodedColumn,
    items: NDArray[Any],
    left: NDArray[np.int32],
    right: NDArray[np.int32],
    names: Mapping[str, str],
    source: str,
) -> NDArray[np.int32]:
    """Return the code of the answer of each row: 0 left, 1 tie, 2 right.

    Raises:
        ReportsError: an empty answer, one that is no word and neither item of its row, or one that is both.
    """
    texts, codes = encode_ids(label, None, "label", source)
    item_of = {str(name): code for code, name in enumerate(items.tolist())}
    winner = np.array([item_of.get(str(text), MISSING) for text in texts.tolist()])[codes]
    word = np.array([_code_of_word(str(text), names) for text in texts.tolist()])[codes]
    named = np.where(winner == MISSING, MISSING, np.where(winner == left, 0, np.where(winner == right, 2, MISSING)))
    rows = np.flatnonzero((named != MISSING) & (word != MISSING) & (named != word))
    if len(rows):
        raise _answer_error(
            "an answer must not be both a side and the name of an item on the other side",
            texts[codes], rows, source, "Rename the item, or write the winner's name in every row.",
        )  # fmt: skip
    found = np.where(named != MISSING, named, word)
    rows = np.flatnonzero(found == MISSING)
    if len(rows):
        sides = [str(items[code[rows[0]]]) for code in (left, right)]
        raise _answer_error(
            "the answer to a comparison must be left, tie or right, or the name of one of its two items",
            texts[codes], rows, source, _hint_of_answer(str(texts[codes][rows[0]]), sides),
        )  # fmt: skip
    return found.astype(np.int32)


def _hint_of_answer(text: str, sides: Sequence[str]) -> str:
    """Return what to write in place of an answer that is neither a word nor one of the two items."""
    alike = [name for name in sides if spelling_groups([name, text])]
    if alike:
        return f"Spell it as the item {alike[0]!r}: they differ in spaces, case or Unicode form."
    return f"Write in the first of these rows left, tie, right, {sides[0]!r} or {sides[1]!r}."


def _code_of_word(text: str, names: Mapping[str, str]) -> int:
    """Return the code of the answer that a word says; MISSING for none."""
    word = normal_name(text)
    for code, answer in enumerate(ANSWERS):
        if word in WORDS[answer] or (answer in names and text == names[answer]):
            return code
    return MISSING


def _answer_error(rule: str, texts: NDArray[Any], rows: NDArray[np.int64], source: str, hint: str) -> ReportsError:
    shown = ", ".join(repr(str(text)) for text in dict.fromkeys(texts[rows].tolist()))[:200]
    return ReportsError(
        rule, source=source, rows=tuple(int(row) + 1 for row in rows[:EXAMPLES]), examples=shown, hint=hint
    )
