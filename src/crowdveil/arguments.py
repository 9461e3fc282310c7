"""Types of arguments, checked where they are given; a device loads this file, so it imports errors only."""

from collections.abc import Iterable
from difflib import get_close_matches
from numbers import Integral, Real
from typing import Any

from crowdveil.errors import SettingsError


def require_number(name: str, value: Any) -> None:
    """Refuse what is no real number; truth values and texts of digits are none."""
    if isinstance(value, bool) or not isinstance(value, Real):
        quoted = isinstance(value, str) and is_number(value)
        hint = f"Write it without quotes: {name}={value}." if quoted else "Give a number, such as 1.5."
        raise SettingsError(f"{name} must be a number", value=value, hint=hint)


def require_whole_number(name: str, value: Any, *, least: int, example: str = "") -> None:
    """Refuse what is no whole number, and smaller ones than `least`; `example` is one, by default the smallest."""
    such = f"Such as {name}={example or max(least, 1)}."
    if isinstance(value, bool) or not isinstance(value, Integral):
        quoted = isinstance(value, str) and value.isdecimal()
        hint = f"Write it without quotes: {name}={value}." if quoted else such
        raise SettingsError(f"{name} must be a whole number", value=value, hint=hint)
    if value < least:
        raise SettingsError(f"{name} must be at least {least}", value=int(value), hint=such)


def require_truth_value(name: str, value: Any) -> None:
    """Refuse what is neither True nor False, such as a text."""
    if not isinstance(value, bool):
        raise SettingsError(f"{name} must be True or False", value=value, hint=f"Such as {name}=True.")


def require_instance(name: str, value: Any, kinds: type | tuple[type, ...], *, what: str, hint: str) -> None:
    """Refuse a value of another class; `what` describes the expected one in words."""
    if not isinstance(value, kinds):
        found = value if isinstance(value, str | int | float) else type(value).__name__
        raise SettingsError(f"{name} must be {what}", value=found, hint=hint)


def require_list(name: str, value: Any, *, example: str) -> None:
    """Refuse a single text or number where a list is expected."""
    if isinstance(value, str | bytes) or not isinstance(value, Iterable):
        found = value if isinstance(value, str | int | float) else type(value).__name__
        raise SettingsError(f"{name} must be a list", value=found, hint=f"Such as {name}={example}.")


def nearest(name: object, known: Iterable[str]) -> str:
    """Return the question whether a known name was meant, also by its initials, or an empty text if none is near."""
    by_key = {_key(one): one for one in known}
    initials = {"".join(part[:1] for part in one.lower().split("-")): one for one in by_key.values()}
    near = get_close_matches(_key(str(name)), by_key, n=1)
    meant = by_key[near[0]] if near else initials.get(_key(str(name)))
    return f"Did you mean {meant!r}?" if meant else ""


def _key(name: str) -> str:
    """Return a name without case, hyphens and underscores."""
    return name.lower().replace("-", "").replace("_", "")


def is_number(text: str) -> bool:
    """Return whether a text is a number."""
    try:
        float(text)
    except ValueError:
        return False
    return True
