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
JOINERS = "\u200c\u200d"
"""Format characters that spelling needs: they join or part the letters and pictures on both sides of them."""


def parse_json(text: str | bytes) -> Any:
    """Return the value of a JSON text in which no object repeats a key and every number is finite.

    Raises:
        ValueError: it is none; the message says what was found.
    """
    try:
        return json.loads(text, object_pairs_hook=_distinct, parse_float=_finite, parse_constant=_finite)
    except RecursionError as error:
        raise ValueError("objects or lists are nested too deeply") from error


def fault_of_text(text: str) -> str:
    """Return why a text is not printing text, empty if it is."""
    if text.isprintable():
        return ""
    for place, sign in enumerate(text):
        if unicodedata.category(sign) in NOT_PRINTING and not _joins(text, place):
            return f"character U+{ord(sign):04X} does not print"
    return ""


def fault_of_name(name: str) -> str:
    """Return why a text is not a name, empty if it is one."""
    if not name:
        return "it is empty"
    if name != name.strip():
        return "white space stands around it"
    return fault_of_text(name) or ("" if unicodedata.is_normalized("NFC", name) else "it is not in normal form C")


def first_alike(names: Iterable[str]) -> tuple[str, str] | None:
    """Return the first two of some distinct texts that look alike: the same but for what does not print.

    White space around them, characters that do not print and the normal form are left out of the comparison; upper and
    lower case are not.
    """
    seen: dict[str, str] = {}
    for name in names:
        other = seen.setdefault(visible(name), name)
        if other != name:
            return other, name
    return None


def visible(name: str) -> str:
    """Return what is left of a name without surrounding white space and characters that do not print, in form C."""
    if name.isascii() and name.isprintable():
        return name.strip()
    kept = "".join(sign for sign in name if unicodedata.category(sign) not in NOT_PRINTING)
    return unicodedata.normalize("NFC", kept).strip()


def _joins(text: str, place: int) -> bool:
    """Return whether a joiner stands between two characters beyond ASCII."""
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
