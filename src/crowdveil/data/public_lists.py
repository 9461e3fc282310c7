"""Public lists of labels, tasks and workers, as a condition of a privacy guarantee.

A list taken from the answers reveals who answered: without the only answer that contains it, an identifier would be
absent from the output. A guarantee therefore needs lists that were given beforehand.
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
"""Prefixes of a guarantee text that states no guarantee."""
_NUMBER = r"[0-9a-z.+-]+"
_STATED = re.compile(
    rf"(none|unknown): .+|epsilon = (none \(infinite\)|{_NUMBER})( \(claimed {_NUMBER}\))?(, delta = {_NUMBER})?"
    r" per (cell|worker), participation (protected|public)(; .+)?"
)


def missing_lists(public: Collection[ListName], participation: Participation) -> tuple[ListName, ...]:
    """Return the lists that a guarantee needs and that are not public, in the order of `LISTS`.

    Protected participation needs all three. Public participation needs the labels only: everyone may see which worker
    answered which task.
    """
    needed = LISTS if participation == "protected" else ("labels",)
    return tuple(name for name in needed if name not in public)


def why_missing_lists_void_privacy(missing: Sequence[ListName]) -> str:
    """Return the reason why lists taken from the answers leave no guarantee."""
    return f"{join_words(missing)} were taken from the answers, and show who answered and what: no privacy"


def guarantee_or_reason_for_none(
    guarantee: Guarantee, missing: Sequence[ListName], *, simulation: bool, notes: Sequence[str] = ()
) -> str:
    """Return the text of a guarantee with its notes, or "none: " and the reason.

    Args:
        guarantee: guarantee for one unit.
        missing: required lists that are not public.
        simulation: whether the randomness came from a seed.
        notes: further conditions, in words.
    """
    promise = "; ".join((str(guarantee), *notes))
    if simulation:
        lists = ", with public lists" if missing else ""
        return f"none: a simulation carries no privacy; devices would have{lists}: {promise}"
    return f"none: {why_missing_lists_void_privacy(missing)}" if missing else promise


def is_guarantee_text(text: str) -> bool:
    """Return whether a text has the form of `guarantee_or_reason_for_none`, or of an unknown guarantee."""
    return _STATED.fullmatch(text) is not None


def join_words(names: Sequence[str]) -> str:
    """Return names joined for a sentence: "labels, tasks and workers"."""
    return " and ".join(filter(None, (", ".join(names[:-1]), *names[-1:])))


def given_lists(*, labels: object, tasks: object, workers: object) -> frozenset[ListName]:
    """Return the lists that are not None."""
    given = {"labels": labels, "tasks": tasks, "workers": workers}
    return frozenset(name for name in LISTS if given[name] is not None)
