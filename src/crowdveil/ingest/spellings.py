"""Spellings of a label: texts that agree but for outer spaces, invisible characters, case, Unicode form or the way to
write a number."""

import unicodedata
from collections.abc import Sequence
from decimal import Decimal, InvalidOperation

import numpy as np
from numpy.typing import NDArray

from crowdveil.ingest.coding import MISSING, Coded, distinct

INVISIBLE = "Cf"
"""Unicode category of format characters, such as a space of no width, a soft hyphen and a byte-order mark."""
MOST_DIGITS = 400
"""Longer texts are no numbers."""


def merge_spellings(column: Coded, known: Sequence[str]) -> Coded:
    """Return a column of labels in which the spellings of a label are one.

    Args:
        column: labels.
        known: all labels, where they were given: a text becomes the only one of them that it is a spelling of. Where
            none were given, a label is spelled as in most of its rows (of equally many, the first by letter), in NFC
            and without spaces at its ends.
    """
    column = distinct(column)
    texts = [str(name) for name in column.names.tolist()]
    counts = np.bincount(column.codes[column.codes != MISSING], minlength=len(texts))
    chosen = _as_known(texts, known) if known else _as_most_rows(texts, counts)
    names = sorted(set(chosen))
    place = {name: code for code, name in enumerate(names)}
    codes = np.array([*(place[name] for name in chosen), MISSING], dtype=np.int32)
    return Coded(np.array(names, dtype=object), codes[column.codes])


def spellings(texts: Sequence[str]) -> list[list[int]]:
    """Return the positions of texts that are spellings of one label, for each label that has several."""
    found: dict[str | Decimal, list[int]] = {}
    for position, text in enumerate(texts):
        found.setdefault(_key(text), []).append(position)
    return [positions for positions in found.values() if len(positions) > 1]


def _as_known(texts: list[str], known: Sequence[str]) -> list[str]:
    by_key: dict[str | Decimal, list[str]] = {}
    for name in known:
        by_key.setdefault(_key(name), []).append(name)
    found = [by_key.get(_key(text), []) for text in texts]
    return [own[0] if len(own) == 1 and text not in known else text for text, own in zip(texts, found, strict=True)]


def _as_most_rows(texts: list[str], counts: NDArray[np.int64]) -> list[str]:
    chosen = [_tidy(text) for text in texts]
    for positions in spellings(texts):
        most = min(positions, key=lambda position: (-counts[position], texts[position]))
        for position in positions:
            chosen[position] = _tidy(texts[most])
    return chosen


def _tidy(text: str) -> str:
    return unicodedata.normalize("NFC", text.strip())


def _key(text: str) -> str | Decimal:
    """Return what all spellings of a label have in common: the number that is written, or the text without case."""
    plain = _tidy("".join(sign for sign in text if unicodedata.category(sign) != INVISIBLE))
    # Python reads 1_000 as a thousand; in a data file it is another name.
    if "_" not in plain and len(plain) <= MOST_DIGITS:
        try:
            number = Decimal(plain)
        except InvalidOperation:
            pass
        else:
            if number.is_finite():
                return number
    return unicodedata.normalize("NFC", plain.casefold())
