"""Validation of JSON text and names: strict JSON, printable names in Unicode normal form C, no confusable names.

Labels and report symbols must be printable, in normal form C, without surrounding white space. Names of tasks and
workers may be any text, but visually equal names are refused: a worker with two names would send two reports on one
cell.
"""

import json
import math
import unicodedata
from collections.abc import Iterable
from typing import Any

NON_PRINTING_CATEGORIES = frozenset({"Cc", "Cf", "Cs", "Co", "Cn", "Zl", "Zp"})
"""Unicode categories: control, format, surrogate, private use, unassigned, line separator and paragraph separator.

What is unassigned depends on the reader's Unicode version: an older reader refuses what a newer one accepts, and no
reader accepts what it cannot name."""
IGNORABLE_RANGES = (
    (0x00AD, 0x00AD),
    (0x034F, 0x034F),
    (0x061C, 0x061C),
    (0x115F, 0x1160),
    (0x17B4, 0x17B5),
    (0x180B, 0x180F),
    (0x200B, 0x200F),
    (0x202A, 0x202E),
    (0x2060, 0x206F),
    (0x3164, 0x3164),
    (0xFE00, 0xFE0F),
    (0xFEFF, 0xFEFF),
    (0xFFA0, 0xFFA0),
    (0xFFF0, 0xFFF8),
    (0x1BCA0, 0x1BCA3),
    (0x1D173, 0x1D17A),
    (0xE0000, 0xE0FFF),
)
"""Default_Ignorable_Code_Point of the Unicode character database (DerivedCoreProperties.txt, version 16.0): first and
last code of each range. These characters are invisible; some have the category of letters or marks."""
INVISIBLE = frozenset(chr(code) for first, last in IGNORABLE_RANGES for code in range(first, last + 1))
BLANKS = "\u2800\ufffc\U00016fe4\U0001d159"
"""Braille pattern without dots, object replacement, Khitan filler and null notehead: they look like a space, but have
the categories of symbols and marks."""
JOINERS = "\u200c\u200d"
"""Format characters that spelling needs: zero-width non-joiner and joiner."""
VARIATION_SELECTORS = "\ufe0e\ufe0f"
"""Variation selectors after a symbol: text style, emoji style."""


def parse_json(text: str | bytes) -> Any:
    """Return the value of a JSON text.

    Raises:
        ValueError: not JSON, a repeated key, a number that is not finite, or too deep nesting.
    """
    try:
        return json.loads(
            text, object_pairs_hook=_distinct_keys, parse_float=_finite_number, parse_constant=_finite_number
        )
    except RecursionError as error:
        raise ValueError("objects or lists are nested too deeply") from error


def text_defect(text: str) -> str:
    """Return why a text is not printable, empty if it is."""
    if text.isascii() and text.isprintable():
        return ""
    for index, character in enumerate(text):
        if _is_invisible(character) and not _is_needed(text, index):
            return f"character U+{ord(character):04X} is not printable"
    return ""


def name_defect(name: str) -> str:
    """Return why a text is not a valid name, empty if it is."""
    if not name:
        return "it is empty"
    if name != name.strip():
        return "it has leading or trailing white space"
    if defect := text_defect(name):
        return defect
    if not any(unicodedata.category(character)[0] in "LNPS" for character in name):
        return "it has no letter, digit or sign"
    return "" if unicodedata.is_normalized("NFC", name) else "it is not in normal form C"


def first_confusable_pair(names: Iterable[str]) -> tuple[str, str] | None:
    """Return the first two of the distinct texts that have the same `visible_form`, or None.

    Case, letters of other scripts and full-width forms are visible, so they distinguish names.
    """
    seen: dict[str, str] = {}
    for name in names:
        other = seen.setdefault(visible_form(name), name)
        if other != name:
            return other, name
    return None


def visible_form(name: str) -> str:
    """Return a name in normal form C, without invisible characters, with single spaces inside and none around."""
    if not (name.isascii() and name.isprintable()):
        spaced = (" " if character.isspace() or character in BLANKS else character for character in name)
        kept = (character for character in spaced if not _is_invisible(character))
        name = unicodedata.normalize("NFC", "".join(kept))
    return " ".join(name.split())


def _is_invisible(character: str) -> bool:
    """Return whether a character has no visible sign."""
    return character in INVISIBLE or character in BLANKS or unicodedata.category(character) in NON_PRINTING_CATEGORIES


def _is_needed(text: str, index: int) -> bool:
    """Return whether a joiner is between two non-ASCII characters, or a variation selector after a symbol."""
    if text[index] in VARIATION_SELECTORS:
        return index > 0 and unicodedata.category(text[index - 1]) == "So"
    around = text[index - 1 : index] + text[index + 1 : index + 2]
    return text[index] in JOINERS and len(around) == 2 and not any(character.isascii() for character in around)


def _distinct_keys(pairs: list[tuple[str, Any]]) -> dict[str, Any]:
    found: dict[str, Any] = {}
    for key, value in pairs:
        if key in found:
            raise ValueError(f"key {key[:50]!r} is repeated in one object")
        found[key] = value
    return found


def _finite_number(text: str) -> float:
    number = float(text)
    if not math.isfinite(number):
        raise ValueError(f"{text[:50]} is not a finite number")
    return number
