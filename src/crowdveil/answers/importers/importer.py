"""Interface of importers: what a worker sent in for a task, in the layout of one tool."""

from abc import ABC, abstractmethod
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any, ClassVar

from crowdveil.answers.importers.export_file import ExportFile


@dataclass(frozen=True, slots=True)
class Submission:
    """One worker's submission for one task.

    Attributes:
        task, worker: identifiers; None if the export lacks them, which is refused.
        answers: content by question; a question without an entry, or with None, is "no answer".
        left_out: reason why the submission is not an answer at all, such as "rejected"; empty for answers.
        unsure: contents of columns that are data of the task or questions. Those that differ between answers to a task
            are questions; another is read only if it is chosen by name.
        ticks_nothing_if_empty: whether a question without content was shown and left without a choice, so that it says
            no to each if others have several; otherwise it is "no answer".
        file, number: position of its file among those of the export, and its number in the file, from 1.
    """

    task: Any
    worker: Any
    answers: Mapping[str, Any] = field(default_factory=dict)
    left_out: str = ""
    unsure: Mapping[str, Any] = field(default_factory=dict)
    ticks_nothing_if_empty: bool = False
    file: int = 0
    number: int = 0


class Importer(ABC):
    """Layout of one tool's exports.

    Attributes:
        tool: name on the command line.
        title: the tool's own name.
        expected: columns or keys by which the layout is recognised, for error messages.
        question: the only question of every export; None where the content names the questions.
        kept: columns with names of workers that look like personal data.
        mixes_data: whether data of the tasks always stand among the unsure columns, so that none may be a question.
        one_per_row: whether each row of a table is one submission.
    """

    tool: ClassVar[str]
    title: ClassVar[str]
    expected: ClassVar[str]
    question: ClassVar[str | None] = None
    mixes_data: ClassVar[bool] = False
    one_per_row: ClassVar[bool] = True
    kept: ClassVar[tuple[str, ...]] = ()

    @abstractmethod
    def recognises(self, columns: Sequence[str]) -> bool:
        """Return whether columns of a table, or keys of records, are those of this layout."""

    def notes(self, export: ExportFile) -> tuple[str, ...]:
        """Return sentences on how the columns of a file are read, where its user may have meant others."""
        return ()

    def task_data(self, export: ExportFile) -> Iterator[tuple[Any, Mapping[str, Any]]]:
        """Yield each task with its data, such as the two items of a comparison; nothing if the export has none."""
        return iter(())

    def kept_columns(self, export: ExportFile) -> tuple[str, ...]:
        """Return the columns that are kept although their names may look like personal data."""
        stated = export.names.task, export.names.worker
        return (*self.kept, *(name for name in stated if name is not None))

    @abstractmethod
    def submissions(self, export: ExportFile) -> Iterator[Submission]:
        """Yield the submissions of one file in file order.

        Raises:
            ReportsError: the file breaks the layout.
        """
