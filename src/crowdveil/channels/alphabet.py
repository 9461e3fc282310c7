"""Answer alphabets: `Categories` (labels) and `Scale` (numbers on a grid).

Codes: label number k of `names` has code k. NULL ("no answer") has the code after the last label, `size`.
"""

import math
from collections.abc import Collection
from dataclasses import dataclass
from functools import lru_cache
from itertools import islice

import numpy as np
from numpy.typing import ArrayLike, NDArray

from crowdveil.arguments import require_instance, require_number
from crowdveil.errors import SettingsError
from crowdveil.standalone.checks import ALPHABET, decimal_value, fits, grid_names

NULL = "NULL"
MAX_LABELS = 1024
MAX_MAGNITUDE, MIN_MAGNITUDE = 1e100, 1e-100
"""Range of |x| for numbers x other than 0; sums of their squared differences neither overflow nor underflow."""
MAGNITUDE_RULE = f"must be 0, or between {MIN_MAGNITUDE:g} and {MAX_MAGNITUDE:g} in size: their squares are summed"
MAGNITUDE_HINT = "Choose another unit; write numbers that are nearly 0 as 0."
SHOWN_NAMES = 5
MAX_EXACT_INTEGER = 1 << 53
"""Largest integer up to which all integers are exact as floats."""


@dataclass(frozen=True, slots=True)
class Categories:
    """Finite set of labels; `ordered` if the order of `names` has a meaning.

    >>> Categories(("no", "yes")).size
    2
    """

    names: tuple[str, ...]
    ordered: bool = False

    def __post_init__(self) -> None:
        hint = "Such as 'no' and 'yes'; numbers are labels as text, such as '1'."
        require_instance("names", self.names, (tuple, list), what="a tuple of labels", hint=hint)
        object.__setattr__(self, "names", tuple(self.names))
        if not all(isinstance(name, str) for name in self.names):
            raise SettingsError("labels must be texts", value=self.names, hint=hint)
        require_instance("ordered", self.ordered, bool, what="True or False", hint="Without quotes.")
        if not 2 <= len(self.names) <= MAX_LABELS:
            raise SettingsError(f"an alphabet needs 2 to {MAX_LABELS} labels", value=len(self.names), hint=hint)
        if len(set(self.names)) != len(self.names):
            raise SettingsError("labels must be distinct", value=self.names, hint="Leave the second one out.")
        if NULL in self.names or "" in self.names:
            raise SettingsError(
                f"{NULL!r} and the empty string cannot be labels", value=self.names, hint="Rename the label."
            )
        if not all(map(is_utf8_encodable, self.names)):
            raise SettingsError("labels must be text that can be written in UTF-8", value=self.names)

    @property
    def size(self) -> int:
        """Number of labels, without NULL."""
        return len(self.names)

    @property
    def values(self) -> NDArray[np.float64]:
        """Position of each label, 0 .. size-1, its number in arithmetic; shape (size,)."""
        return np.arange(self.size, dtype=float)


@dataclass(frozen=True, slots=True)
class Scale:
    """Finite grid low, low + step, ..., high of numeric answers.

    >>> Scale(0, 1, 0.25).names
    ('0', '0.25', '0.5', '0.75', '1')
    """

    low: float
    high: float
    step: float = 1.0

    def __post_init__(self) -> None:
        for name in ("low", "high", "step"):
            require_number(name, getattr(self, name))
        if not (all(map(math.isfinite, (self.low, self.high, self.step))) and self.low < self.high and self.step > 0):
            found = (self.low, self.high, self.step)
            raise SettingsError(
                "a scale needs finite low < high and step > 0", value=found, hint="Such as low 0 and high 10."
            )
        if not squares_safely((self.low, self.high, self.step)).all():
            raise SettingsError(f"the numbers of a scale {MAGNITUDE_RULE}", value=(self.low, self.high, self.step))
        points = (decimal_value(self.high) - decimal_value(self.low)) / decimal_value(self.step) + 1
        if points.denominator != 1:
            raise SettingsError(
                "high - low must be a whole number of steps",
                value=(self.low, self.high, self.step),
                hint="Choose another step, or move one end to a point of the grid.",
            )
        if points > MAX_LABELS:
            raise SettingsError(
                f"a scale has at most {MAX_LABELS} points", value=int(points), hint="Use a coarser step."
            )

    @property
    def size(self) -> int:
        """Number of grid points, without NULL."""
        return len(self.names)

    @property
    def names(self) -> tuple[str, ...]:
        """Grid points as text, in shortest decimal form."""
        return _cached_grid_names(self.low, self.high, self.step)

    @property
    def values(self) -> NDArray[np.float64]:
        """Grid points as numbers, ascending; shape (size,)."""
        return np.add(self.low, self.step * np.arange(self.size), dtype=np.float64)

    @property
    def range(self) -> float:
        """`high - low`, the sensitivity of one cell."""
        return self.high - self.low

    @property
    def ordered(self) -> bool:
        """Return True: numbers are ordered."""
        return True

    def encode(self, answers: ArrayLike) -> NDArray[np.int64]:
        """Return the codes of the nearest grid points, same shape; numbers are clipped into [low, high] first.

        Raises:
            SettingsError: an answer is NaN; a missing answer is NULL, not NaN.
        """
        numbers = np.asarray(answers, dtype=float)
        if np.isnan(numbers).any():
            raise SettingsError("answers must be numbers", value=math.nan, hint="Leave missing answers out.")
        return np.rint((np.clip(numbers, self.low, self.high) - self.low) / self.step).astype(np.int64)


Alphabet = Categories | Scale


def squares_safely(numbers: ArrayLike) -> NDArray[np.bool_]:
    """Return whether each number is 0 or of a magnitude that squares safely; shape as `numbers`."""
    magnitude = np.abs(np.asarray(numbers, dtype=float))
    return (magnitude == 0) | ((magnitude >= MIN_MAGNITUDE) & (magnitude <= MAX_MAGNITUDE))


def is_utf8_encodable(text: str) -> bool:
    """Return whether a text has a UTF-8 encoding; lone surrogates, which JSON allows, have none."""
    try:
        text.encode("utf-8")
    except UnicodeEncodeError:
        return False
    return True


@lru_cache(maxsize=64)
def _cached_grid_names(low: float, high: float, step: float) -> tuple[str, ...]:
    """Return `Scale.names`; cached, since fractions are slow."""
    return tuple(grid_names(low, high, step))


def _integer_if_whole(number: float) -> float:
    """Return integral numbers as int: their JSON text is then the same in all writers, as the checksum requires."""
    return int(number) if float(number).is_integer() and abs(number) <= MAX_EXACT_INTEGER else float(number)


def abbreviate_names(names: Collection[str]) -> str:
    """Return the first names as text, and the number of the others."""
    rest = len(names) - SHOWN_NAMES
    return ", ".join(islice(names, SHOWN_NAMES)) + (f" and {rest:,} others" if rest > 0 else "")


def alphabet_to_json(alphabet: Alphabet) -> dict[str, object]:
    """Return an alphabet as JSON values; `alphabet_from_json` is the inverse."""
    if isinstance(alphabet, Scale):
        low, high, step = map(_integer_if_whole, (alphabet.low, alphabet.high, alphabet.step))
        return {"kind": "scale", "low": low, "high": high, "step": step}
    return {"kind": "categories", "names": list(alphabet.names), "ordered": alphabet.ordered}


def alphabet_from_json(data: object) -> Alphabet:
    """Return the alphabet that `alphabet_to_json` wrote.

    Raises:
        SettingsError: it is malformed.
    """
    if isinstance(data, dict) and fits(data, ALPHABET):
        if data["kind"] == "categories":
            return Categories(tuple(data["names"]), data["ordered"])
        numbers = [data[name] for name in ("low", "high", "step")]
        if all(type(number) is float or abs(number) <= MAX_EXACT_INTEGER for number in numbers):
            return Scale(*map(float, numbers))
    raise SettingsError("an alphabet must be described as a scale or as categories", value=data)
