"""Labels: an alphabet and codes in it, and the rules that labels must meet, checked on the distinct ones."""

import numpy as np
from numpy.typing import NDArray

from crowdveil.errors import ReportsError
from crowdveil.ingest.coding import MISSING, TEXT_RULE, Coded, distinct, half_surrogates, parse_numbers, refuse
from crowdveil.labels import MAX_LABELS, NULL, Categories

NOT_LABELS = frozenset({"", NULL, "nan", "NaN"})
MOST_NUMBER_LABELS = 20
"""Most different numbers in a column of unstated kind: grades and ratings have fewer, counts soon have more."""


def code_labels(column: Coded, alphabet: Categories | None, source: str) -> tuple[Categories, NDArray[np.int16]]:
    """Return the alphabet (by default the labels that occur, numbers by size, text by letter) and the codes in it.

    Raises:
        ReportsError: a label is empty, NaN, NULL or not in the alphabet, or there are too few or too many of them.
    """
    column = distinct(column)
    texts = [str(name) for name in column.names.tolist()]
    known = () if alphabet is None else alphabet.names
    absent = np.array([text.strip() in NOT_LABELS and text not in known for text in texts], dtype=bool)
    refuse(
        column,
        absent,
        "labels must not be empty, NaN or NULL",
        source=source,
        way_out="Leave these rows out: NULL reports are not stored, they follow from the lists of tasks and workers.",
    )
    refuse(column, half_surrogates(column.names), TEXT_RULE, source=source, way_out="Correct the rows.")
    if alphabet is None:
        _require_alphabet_size(len(texts), source)
        alphabet = Categories(_label_order(texts))
    place = {name: code for code, name in enumerate(alphabet.names)}
    codes = np.array([place.get(text, MISSING) for text in texts], dtype=np.int16)
    refuse(
        column,
        codes == MISSING,
        f"every label must be one of {_shown(alphabet.names)}",
        source=source,
        way_out="Correct the rows, give an alphabet that holds their labels, or merge spellings (merge_labels=True in "
        "Python, --merge-labels on the command line).",
    )
    return alphabet, codes[column.codes]


def ask_for_kind(column: Coded, source: str) -> None:
    """Refuse many different numbers under a header for labels, which may be counts or measurements.

    Raises:
        ReportsError: asking which they are.
    """
    names = distinct(column).names
    numbers = parse_numbers(names) if len(names) > MOST_NUMBER_LABELS else np.array([np.nan])
    if np.isfinite(numbers).all():
        raise ReportsError(
            f"a column of more than {MOST_NUMBER_LABELS} different numbers must be said to hold labels or numbers",
            source=source,
            examples=f"{len(names):,} different numbers from {numbers.min():g} to {numbers.max():g}",
            way_out="Say kind='numeric' or kind='categorical' (infer and encode: --kind), or give the scale or labels.",
        )


def _require_alphabet_size(size: int, source: str) -> None:
    if not 2 <= size <= MAX_LABELS:
        raise ReportsError(
            f"labels must be of 2 to {MAX_LABELS} kinds",
            source=source,
            examples=f"{size} different labels",
            way_out="Give the whole alphabet (alphabet=), or say kind='numeric' if these are numbers.",
        )


def _label_order(texts: list[str]) -> tuple[str, ...]:
    """Sort labels as numbers where all are numbers, else as text."""
    try:
        return tuple(sorted(sorted(texts), key=float))
    except ValueError:
        return tuple(sorted(texts))


def _shown(names: tuple[str, ...]) -> str:
    listed = ", ".join(names[:10])
    return listed if len(names) <= 10 else f"{listed}, ... ({len(names)} labels)"
