"""Cells that were asked: which lists were stated before anyone answered, and who is known to have been asked.

A list taken from the answers reveals who answered: without the only answer that contains it, an identifier would be
absent from the output. A guarantee therefore needs lists that were stated beforehand. An estimate through a channel
with NULL reports needs all who were asked: cells without a report count as NULL, and those of nobody are missing.
"""

from collections.abc import Collection, Iterable, Sequence
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Literal, Self

from crowdveil.channels.guarantee import Participation
from crowdveil.errors import ReportsError, SettingsError
from crowdveil.hints import advice
from crowdveil.standalone.checks import first_confusable_pair

if TYPE_CHECKING:
    from crowdveil.answers.assignment import Assignment

ListName = Literal["labels", "tasks", "workers"]
LISTS: tuple[ListName, ...] = ("labels", "tasks", "workers")


@dataclass(frozen=True, kw_only=True)
class Asked:
    """Lists of those asked, as far as they are known; the names are those of the reports. By default unknown.

    Attributes:
        stated: lists that were stated before anyone answered; only these can be public under a guarantee.
        complete: whether the tasks and workers of the reports are all that were asked, although they may have been
            taken from the answers.
        assignment: the cells that report; None if every worker reports on every task.
    """

    stated: frozenset[ListName] = frozenset()
    complete: bool = False
    assignment: "Assignment | None" = None

    @classmethod
    def of_given(cls, *, labels: object = None, tasks: object = None, workers: object = None) -> Self:
        """Return the lists that are not None as stated."""
        given = {"labels": labels, "tasks": tasks, "workers": workers}
        return cls(stated=frozenset(name for name in LISTS if given[name] is not None))

    @property
    def cells_known(self) -> bool:
        """Whether it is known which cells were asked, so that those without a report can count as NULL."""
        return self.complete or self.assignment is not None or self.stated.issuperset(("tasks", "workers"))

    @property
    def of_reports(self) -> "Asked":
        """The same for reports that the devices of all listed workers sent."""
        return replace(self, complete=True)

    def missing_lists(self, participation: Participation) -> tuple[ListName, ...]:
        """Return the lists that a guarantee needs and that were not stated, in the order of `LISTS`.

        Protected participation needs all three. Public participation needs the labels only: everyone may see which
        worker answered which task.
        """
        needed = LISTS if participation == "protected" else ("labels",)
        return tuple(name for name in needed if name not in self.stated)

    def require_cells(self) -> None:
        """Refuse unknown cells where absent reports count as NULL.

        Raises:
            ReportsError: those asked are unknown.
        """
        if not self.cells_known:
            raise ReportsError(
                "protected reports need the lists of all tasks and workers that were asked: those without a report "
                "count as no answer",
                source="reports",
                examples="the lists are unknown",
                hint="Put the crowd.json of the collection next to the reports"
                + advice(", or give the lists of all who were asked: {tasks} and {workers}")
                + ".",
            )


STATED = Asked(stated=frozenset(LISTS), complete=True)
"""All lists were stated before anyone answered."""
LISTED = Asked(complete=True)
"""Tasks and workers are all that were asked; nothing is known to have been stated beforehand."""
UNKNOWN = Asked()
"""Nothing is known of those asked."""


def missing_lists_reason(missing: Collection[ListName]) -> str:
    """Return the reason why lists taken from the answers leave no guarantee."""
    return f"{join_words([*missing])} were taken from the answers, and show who answered and what: no privacy"


def join_words(names: Sequence[str]) -> str:
    """Return names joined for a sentence: "labels, tasks and workers"."""
    return " and ".join(filter(None, (", ".join(names[:-1]), *names[-1:])))


def require_distinguishable(field: str, names: Iterable[str]) -> None:
    """Check that no two names of tasks or workers are confusable.

    Raises:
        SettingsError: two names differ only in surrounding spaces, Unicode form or invisible characters.
    """
    pair = first_confusable_pair(names)
    if pair is not None:
        raise SettingsError(
            f"{field!r} of a crowd must be distinguishable without spaces, Unicode forms and invisible characters",
            value=pair,
            hint="Rename one of them, or give both the same spelling.",
        )
