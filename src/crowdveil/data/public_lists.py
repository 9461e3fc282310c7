"""Lists of labels, tasks and workers that a guarantee needs to be public: given beforehand, not taken from answers.

A name that stands in a list because somebody answered shows that somebody answered: remove the only answer, and the
name vanishes from whatever is written.
"""

import re
from collections.abc import Collection, Sequence
from typing import Literal

from crowdveil.channels.guarantee import Guarantee, Participation

ListName = Literal["labels", "tasks", "workers"]
LISTS: tuple[ListName, ...] = ("labels", "tasks", "workers")
NO_LISTS: frozenset[ListName] = frozenset()
ALL_LISTS: frozenset[ListName] = frozenset(LISTS)
NO_GUARANTEE_PREFIXES = ("none: ", "unknown: ")
"""Beginnings of a text that promises nothing."""
_NUMBER = r"[0-9a-z.+-]+"
_STATED = re.compile(
    rf"(none|unknown): .+|epsilon = (none \(infinite\)|{_NUMBER})( \(claimed {_NUMBER}\))?(, delta = {_NUMBER})?"
    r" per (cell|worker), participation (protected|public)(; .+)?"
)


def missing_lists(public: Collection[ListName], participation: Participation) -> tuple[ListName, ...]:
    """Return the lists that a guarantee needs and that are not public, in the order of `LISTS`.

    Where participation is protected, all three must be public. Where it is public, everyone may see who answered what,
    so tasks and workers follow from public facts, and only the labels must be given.
    """
    needed = LISTS if participation == "protected" else ("labels",)
    return tuple(name for name in needed if name not in public)


def not_public_text(missing: Sequence[ListName]) -> str:
    """Return why lists that were taken from the answers leave no guarantee."""
    return f"{join_words(missing)} were taken from the answers, and show who answered and what: no privacy"


def guarantee_text(
    guarantee: Guarantee, missing: Sequence[ListName], *, simulation: bool, notes: Sequence[str] = ()
) -> str:
    """Return what is written of a guarantee: itself with its notes, or "none: " and the reason why there is none.

    Args:
        guarantee: of one unit.
        missing: lists that it needs to be public and that are not.
        simulation: whether the randomness followed from a seed.
        notes: what is hidden from whom, in words.
    """
    promise = "; ".join((str(guarantee), *notes))
    if simulation:
        lists = ", with public lists" if missing else ""
        return f"none: a simulation carries no privacy; devices would have{lists}: {promise}"
    return f"none: {not_public_text(missing)}" if missing else promise


def is_guarantee_text(text: str) -> bool:
    """Return whether a text has the form of `guarantee_text`, or says that a guarantee is unknown."""
    return _STATED.fullmatch(text) is not None


def join_words(names: Sequence[str]) -> str:
    """Return names as a list in a sentence: "labels, tasks and workers"."""
    return " and ".join(filter(None, (", ".join(names[:-1]), *names[-1:])))


def given_lists(*, labels: object, tasks: object, workers: object) -> frozenset[ListName]:
    """Return which lists were given: those that are not None."""
    given = {"labels": labels, "tasks": tasks, "workers": workers}
    return frozenset(name for name in LISTS if given[name] is not None)
