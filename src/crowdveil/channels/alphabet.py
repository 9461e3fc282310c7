"""What an answer can be: `Categories` or `Scale`; NULL, "no answer given", is one more member of the alphabet.

Codes: label number `k` of `names` has code `k`; NULL has the code after the last label, `size`.
"""

import math
from dataclasses import dataclass
from fractions import Fraction
from functools import lru_cache

import numpy as np
from numpy.typing import ArrayLike, NDArray

from crowdveil.errors import SettingsError

NULL = "NULL"
MAX_LABELS = 1024
MAX_MAGNITUDE, MIN_MAGNITUDE = 1e100, 1e-100
"""Sizes of numbers other than 0: squares of their differences, summed over any number of reports, stay numbers."""
MAGNITUDE_RULE = f"must be 0, or between {MIN_MAGNITUDE:g} and {MAX_MAGNITUDE:g} in size: their squares are summed"
MAGNITUDE_HINT = "Choose another unit; write numbers that are nearly 0 as 0."
_WHOLE = 1 << 53
"""Integers up to here are exact as floats."""


@dataclass(frozen=True, slots=True)
class Categories:
    """A finite set of labels, `ordered` when neighbours in `names` are neighbours in meaning."""

    names: tuple[str, ...]
    ordered: bool = False

    def __post_init__(self) -> None:
        if not 2 <= len(self.names) <= MAX_LABELS:
            raise SettingsError(f"an alphabet needs 2 to {MAX_LABELS} labels", value=len(self.names))
        if len(set(self.names)) != len(self.names):
            raise SettingsError("labels must be distinct", value=self.names)
        if NULL in self.names or "" in self.names:
            raise SettingsError(
                f"{NULL!r} and the empty string cannot be labels", value=self.names, hint="Rename the label."
            )
        if not all(map(is_utf8_encodable, self.names)):
            raise SettingsError("labels must be text that can be written in UTF-8", value=self.names)

    @property
    def size(self) -> int:
        """Number of labels, NULL not counted."""
        return len(self.names)

    @property
    def values(self) -> NDArray[np.float64]:
        """Position of each label, 0 .. size-1: the number that stands for it where arithmetic is asked for."""
        return np.arange(self.size, dtype=float)


@dataclass(frozen=True, slots=True)
class Scale:
    """The finite grid low, low + step, ..., high of numeric answers."""

    low: float
    high: float
    step: float = 1.0

    def __post_init__(self) -> None:
        if not (all(map(math.isfinite, (self.low, self.high, self.step))) and self.low < self.high and self.step > 0):
            raise SettingsError("a scale needs finite low < high and step > 0", value=(self.low, self.high, self.step))
        if not has_valid_magnitude((self.low, self.high, self.step)).all():
            raise SettingsError(f"the numbers of a scale {MAGNITUDE_RULE}", value=(self.low, self.high, self.step))
        points = (_exact(self.high) - _exact(self.low)) / _exact(self.step) + 1
        if points.denominator != 1:
            raise SettingsError("high - low must be a whole number of steps", value=(self.low, self.high, self.step))
        if points > MAX_LABELS:
            raise SettingsError(
                f"a scale has at most {MAX_LABELS} points", value=int(points), hint="Use a coarser step."
            )

    @property
    def size(self) -> int:
        """Number of grid points, NULL not counted."""
        return len(self.names)

    @property
    def names(self) -> tuple[str, ...]:
        """The grid points as text, shortest decimal form."""
        return _grid_names(self.low, self.high, self.step)

    @property
    def values(self) -> NDArray[np.float64]:
        """The grid points as numbers, ascending; shape (size,)."""
        return np.add(self.low, self.step * np.arange(self.size), dtype=np.float64)

    @property
    def range(self) -> float:
        """Distance between the extreme answers, `high - low`: the sensitivity of one cell."""
        return self.high - self.low

    @property
    def ordered(self) -> bool:
        """Return True: numbers are ordered."""
        return True

    def encode(self, answers: ArrayLike) -> NDArray[np.int64]:
        """Clip numbers into [low, high] and round each to its nearest grid point; returns codes of the same shape.

        Raises:
            SettingsError: an answer is NaN (an absent answer is NULL, not NaN).
        """
        numbers = np.asarray(answers, dtype=float)
        if np.isnan(numbers).any():
            raise SettingsError("answers must be numbers", value=math.nan, hint="Leave absent answers out.")
        return np.rint((np.clip(numbers, self.low, self.high) - self.low) / self.step).astype(np.int64)


Alphabet = Categories | Scale


def has_valid_magnitude(numbers: ArrayLike) -> NDArray[np.bool_]:
    """Mark the numbers that are 0, or of a size that can be computed with; shape as `numbers`."""
    size = np.abs(np.asarray(numbers, dtype=float))
    return (size == 0) | ((size >= MIN_MAGNITUDE) & (size <= MAX_MAGNITUDE))


def is_utf8_encodable(text: str) -> bool:
    """Return whether a text can be written in UTF-8: half a surrogate pair, which JSON can hold, cannot."""
    try:
        text.encode("utf-8")
    except UnicodeEncodeError:
        return False
    return True


def _exact(number: float) -> Fraction:
    """The decimal a person wrote, not the binary float behind it: 0.1 is one tenth."""
    return Fraction(repr(float(number)))


@lru_cache(maxsize=64)
def _grid_names(low: float, high: float, step: float) -> tuple[str, ...]:
    """Return `Scale.names`; kept, since fractions are slow and the names are asked for again and again."""
    first, apart = _exact(low), _exact(step)
    exact = (first + k * apart for k in range(int((_exact(high) - first) / apart) + 1))
    return tuple(repr(float(x)) if x.denominator != 1 else str(int(x)) for x in exact)


def _plain(number: float) -> float:
    """Whole numbers as integers, spelled alike by every JSON writer (0, never 0.0): a certificate's hash needs that."""
    return int(number) if float(number).is_integer() and abs(number) <= _WHOLE else float(number)


def _is_number(value: object) -> bool:
    return type(value) is float or (type(value) is int and abs(value) <= _WHOLE)


def alphabet_to_json(alphabet: Alphabet) -> dict[str, object]:
    """Describe an alphabet by JSON values; `alphabet_from_json` is its inverse."""
    if isinstance(alphabet, Scale):
        low, high, step = map(_plain, (alphabet.low, alphabet.high, alphabet.step))
        return {"kind": "scale", "low": low, "high": high, "step": step}
    return {"kind": "categories", "names": list(alphabet.names), "ordered": alphabet.ordered}


def alphabet_from_json(data: object) -> Alphabet:
    """Rebuild an alphabet from `alphabet_to_json`'s form.

    Raises:
        SettingsError: the description is malformed.
    """
    match data:
        case {"kind": "scale", "low": low, "high": high, "step": step, **unknown} if not unknown and all(
            map(_is_number, (low, high, step))
        ):
            return Scale(float(low), float(high), float(step))
        case {"kind": "categories", "names": list(names), "ordered": bool(ordered), **unknown} if not unknown and all(
            isinstance(name, str) for name in names
        ):
            return Categories(tuple(names), ordered)
    raise SettingsError("an alphabet must be described as a scale or as categories", value=data)
