"""Advice of errors and warnings that names an argument as its reader writes it.

The library writes `advice("Choose one, such as {question}.", question="mood")`: the text is ours; a value may be of a
user and is never interpreted. Python reads `question='mood'`; the command line sets its own way to name arguments by
`arguments_named_by`. Advice on an argument that the called function or the running command does not have is left out,
or replaced.
"""

import inspect
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from contextvars import ContextVar
from functools import cache, wraps
from string import Formatter
from typing import Any, ParamSpec, TypeVar, get_args

P = ParamSpec("P")
T = TypeVar("T")

Naming = Callable[..., str | None]
"""Function of the name of an argument, and its value if one is stated: how the reader writes it; None without it."""


def python_argument(name: str, *value: Any) -> str:
    """Return an argument as in a call of Python.

    >>> python_argument("decimal", ","), python_argument("decimal")
    ("decimal=','", 'decimal')
    """
    return f"{name}={value[0]!r}" if value else name


_naming: ContextVar[Naming] = ContextVar("naming", default=python_argument)


def advice(template: str, otherwise: str = "", /, **values: Any) -> str:
    """Return a literal text whose arguments in braces are named for the reader, with the given values.

    Args:
        template: text such as "Give {decimal}."
        otherwise: text for a reader who lacks one of the arguments.
        values: values of arguments, by name.

    >>> advice("Write a point, or state the comma: {decimal}.", decimal=",")
    "Write a point, or state the comma: decimal=','."
    """
    parts = list[str]()
    for text, name, _, _ in Formatter().parse(template):
        parts.append(text)
        if name is not None:
            named = _naming.get()(name, *([values[name]] if name in values else []))
            if named is None:
                return otherwise
            parts.append(named)
    return "".join(parts)


def command_advice(template: str, otherwise: str = "", /, **values: Any) -> str:
    """Return `advice` on an option that no function of Python has as an argument."""
    return otherwise if _naming.get() is python_argument else advice(template, otherwise, **values)


def one_of(*ways: str) -> str:
    """Return the ways that are not empty as one sentence of alternatives.

    >>> one_of("correct the rows", "", "leave them out")
    'Correct the rows, or leave them out.'
    """
    *first, last = [way for way in ways if way]
    text = f"{', '.join(first)}, or {last}" if first else last
    return f"{text[0].upper()}{text[1:]}."


@contextmanager
def arguments_named_by(naming: Naming) -> Iterator[None]:
    """Context in which advice names arguments by a function."""
    token = _naming.set(naming)
    try:
        yield
    finally:
        _naming.reset(token)


def advising_own_arguments(function: Callable[P, T]) -> Callable[P, T]:
    """Return the function, whose advice names its own arguments only; a command that calls it names its options."""

    @cache
    def accepted() -> frozenset[str] | None:
        return _accepted_arguments(function)

    def own(name: str, *value: Any) -> str | None:
        known = accepted()
        return python_argument(name, *value) if known is None or name in known else None

    @wraps(function)
    def call(*arguments: P.args, **given: P.kwargs) -> T:
        if _naming.get() is not python_argument:
            return function(*arguments, **given)
        with arguments_named_by(own):
            return function(*arguments, **given)

    return call


def _accepted_arguments(function: Callable[..., Any]) -> frozenset[str] | None:
    """Return the names of arguments, those of a typed `**options` too; None if it accepts any name."""
    names = set[str]()
    for name, parameter in inspect.signature(function).parameters.items():
        if parameter.kind is not inspect.Parameter.VAR_KEYWORD:
            names.add(name)
            continue
        typed = get_args(parameter.annotation)
        if not typed:
            return None
        names.update(*(keywords.__annotations__ for keywords in typed))
    return frozenset(names)
