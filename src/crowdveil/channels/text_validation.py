"""Well-formed JSON and names: what is demanded of every file of a collection before anything else is read in it.

Labels and report symbols are agreed on beforehand, so they must be printing text in normal form C without white space
around it. Tasks and workers bear the names that people gave them; two of them that look alike are refused, since a
worker under two names sends two reports on one cell.
"""

import json
import math
import unicodedata
from collections.abc import Iterable
from typing import Any

NOT_PRINTING = frozenset({"Cc", "Cf", "Cs", "Co", "Zl", "Zp"})
"""Unicode categories of control, format, surrogate and private characters, and of line and paragraph separators."""
IGNORABLE = (
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
"""Default_Ignorable_Code_Point of the Unicode character database (DerivedCoreProperties.txt, version 16.0), first and
last of each range: characters without a sign of their own, some of which Unicode counts among letters and marks."""
INVISIBLE = frozenset(chr(code) for first, last in IGNORABLE for code in range(first, last + 1))
BLANK = "\u2800"
"""Braille pattern without a dot: it looks like a space, and Unicode counts it among the symbols."""
JOINERS = "\u200c\u200d"
"""Format characters that spelling needs: they join or part the letters and pictures on both sides of them."""
PRESENTATION = "\ufe0e\ufe0f"
"""Variation selectors that keyboards write after a picture: as text, as an emoji."""


def parse_json(text: str | bytes) -> Any:
    """Return the value of a JSON text in which no object repeats a key and every number is finite.

    Raises:
        ValueError: it is none; the message says what was found.
    """
    try:
        return json.loads(text, object_pairs_hook=_distinct, parse_float=_finite, parse_constant=_finite)
    except RecursionError as error:
        raise ValueError("objects or lists are nested too deeply") from error


def text_defect(text: str) -> str:
    """Return why a text is not printing text, empty if it is."""
    if text.isascii() and text.isprintable():
        return ""
    for place, sign in enumerate(text):
        if _is_unseen(sign) and not _joins(text, place):
            return f"character U+{ord(sign):04X} does not print"
    return ""


def name_defect(name: str) -> str:
    """Return why a text is not a name, empty if it is one."""
    if not name:
        return "it is empty"
    if name != name.strip():
        return "white space stands around it"
    return text_defect(name) or ("" if unicodedata.is_normalized("NFC", name) else "it is not in normal form C")


def first_confusable_pair(names: Iterable[str]) -> tuple[str, str] | None:
    """Return the first two of some distinct texts that look alike: the same but for what does not print.

    White space around them, the kind and the number of white space inside, characters that do not print and the normal
    form C are left out of the comparison. Case, letters of other scripts and full-width forms can be seen and are not.
    """
    seen: dict[str, str] = {}
    for name in names:
        other = seen.setdefault(visible_form(name), name)
        if other != name:
            return other, name
    return None


def visible_form(name: str) -> str:
    """Return a name without what does not print, in form C, each white space inside as one space and none around."""
    if not (name.isascii() and name.isprintable()):
        spaced = (" " if sign.isspace() or sign == BLANK else sign for sign in name)
        spaced = (sign for sign in spaced if not _is_unseen(sign))
        name = unicodedata.normalize("NFC", "".join(spaced))
    return " ".join(name.split())


def _is_unseen(sign: str) -> bool:
    """Return whether nothing shows a character."""
    return sign in INVISIBLE or sign == BLANK or unicodedata.category(sign) in NOT_PRINTING


def _joins(text: str, place: int) -> bool:
    """Return whether a joiner stands between two characters beyond ASCII, or a presentation after a picture."""
    if text[place] in PRESENTATION:
        return place > 0 and unicodedata.category(text[place - 1]) == "So"
    around = text[place - 1 : place] + text[place + 1 : place + 2]
    return text[place] in JOINERS and len(around) == 2 and not any(sign.isascii() for sign in around)


def _distinct(pairs: list[tuple[str, Any]]) -> dict[str, Any]:
    found: dict[str, Any] = {}
    for key, value in pairs:
        if key in found:
            raise ValueError(f"key {key[:50]!r} stands twice in one object")
        found[key] = value
    return found


def _finite(text: str) -> float:
    number = float(text)
    if not math.isfinite(number):
        raise ValueError(f"{text[:50]} is not a finite number")
    return number
