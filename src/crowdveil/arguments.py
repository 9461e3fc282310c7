"""Types of arguments, checked where they are given; a device loads this file, so it imports errors only."""

import inspect
from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import fields
from difflib import get_close_matches
from functools import wraps
from numbers import Integral, Real
from typing import Any, ParamSpec, Self, TypeVar

from crowdveil.errors import SettingsError

P = ParamSpec("P")
T = TypeVar("T")

SAME = {
    "max_iter": "max_steps",
    "n_iter": "max_steps",
    "tol": "tolerance",
    "eps": "epsilon",
    "random_state": "seed",
    "target_error": "target",
    "n_workers": "workers",
    "labels": "alphabet",
    "scale": "alphabet",
    "n_tasks": "tasks",
}
"""Names of arguments by those that other libraries and the command line have for them."""


class KnownArguments:
    """Base of frozen dataclasses that refuse an unknown setting with the name that is meant."""

    def __new__(cls, *_: Any, **settings: Any) -> Self:
        """Return the value, before its settings are read.

        Raises:
            SettingsError: an unknown setting.
        """
        own: Any = cls
        require_known(cls.__name__, settings, [field.name for field in fields(own)])
        return super().__new__(cls)


def require_known(owner: str, given: Iterable[str], known: Iterable[str]) -> None:
    """Refuse arguments whose name is not known, with the name that is meant, or all names."""
    names = list(known)
    for name in given:
        if name not in names:
            hint = did_you_mean(name, names) or f"Its arguments are {', '.join(names)}."
            raise SettingsError(f"{owner} has no argument {name!r}", value=name, hint=hint, value_in_rule=True)


def with_known_arguments(example: str) -> Callable[[Callable[P, T]], Callable[P, T]]:
    """Return a decorator of a function that refuses unknown and missing arguments; `example` is a call."""

    def decorate(function: Callable[P, T]) -> Callable[P, T]:
        signature = inspect.signature(function)

        @wraps(function)
        def call(*arguments: P.args, **given: P.kwargs) -> T:
            require_known(function.__name__, given, signature.parameters)
            try:
                signature.bind(*arguments, **given)
            except TypeError as error:
                rule = f"{function.__name__} needs its arguments"
                raise SettingsError(rule, value=str(error), hint=f"Such as {example}.") from None
            return function(*arguments, **given)

        return call

    return decorate


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


def require_choice(name: str, value: Any, choices: Sequence[Any], *, hint: str = "") -> None:
    """Refuse what is not one of a few values."""
    if value not in choices:
        listed = [repr(choice) for choice in choices if choice is not None]
        raise SettingsError(f"{name} must be {', '.join(listed[:-1])} or {listed[-1]}", value=value, hint=hint)


def require_bool(name: str, value: Any) -> None:
    """Refuse what is neither True nor False, such as a text."""
    if not isinstance(value, bool):
        raise SettingsError(f"{name} must be True or False", value=value, hint=f"Such as {name}=True.")


def require_instance(name: str, value: Any, kinds: type | tuple[type, ...], *, what: str, hint: str) -> None:
    """Refuse a value of another class; `what` describes the expected one in words."""
    if not isinstance(value, kinds):
        found = value if isinstance(value, str | int | float) else type(value).__name__
        raise SettingsError(f"{name} must be {what}", value=found, hint=hint)


def require_list(name: str, value: Any, *, example: str) -> None:
    """Refuse a text or number in place of a list, a set, whose order differs from run to run, and what is read once."""
    if isinstance(value, str | bytes | set | frozenset | Iterator) or not isinstance(value, Iterable):
        found = value if isinstance(value, str | int | float) else type(value).__name__
        raise SettingsError(f"{name} must be a list", value=found, hint=f"Such as {name}={example}.")


def did_you_mean(name: object, known: Iterable[str]) -> str:
    """Return the question whether a known name was meant, also by its initials, or an empty text if none is near."""
    by_key = {_without_case_and_separators(one): one for one in known}
    if SAME.get(str(name)) in by_key.values():
        return f"Did you mean {SAME[str(name)]!r}?"
    initials = {"".join(part[:1] for part in one.lower().split("-")): one for one in by_key.values()}
    near = get_close_matches(_without_case_and_separators(str(name)), by_key, n=1)
    meant = by_key[near[0]] if near else initials.get(_without_case_and_separators(str(name)))
    return f"Did you mean {meant!r}?" if meant else ""


def _without_case_and_separators(name: str) -> str:
    """Return a name without case, hyphens and underscores."""
    return name.lower().replace("-", "").replace("_", "")


def is_number(text: str) -> bool:
    """Return whether a text is a number."""
    try:
        float(text)
    except ValueError:
        return False
    return True
