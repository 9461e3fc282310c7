"""Answers of a frame, by the names of its columns and the options of reading."""

from typing import Any

from crowdveil.answers.answer_confidences import confidences_of_answers
from crowdveil.answers.facts.label_notes import notes_on_unread_columns
from crowdveil.answers.frames import coded_and_original_columns
from crowdveil.answers.ingest.column_readers import ColumnNames
from crowdveil.answers.read_options import ReadKeywords, ReadOptions
from crowdveil.answers.reports import Reports
from crowdveil.arguments import did_you_mean
from crowdveil.errors import SettingsError

PERTURBED = "crowdveil.mechanism"
"""Key of `DataFrame.attrs` under which `perturb` keeps the name of the mechanism."""
OF_ESTIMATOR = "Settings are those of an estimator, such as DawidSkene(max_steps=50): give it as method."
OTHER_NAMES = {
    "labels": "Give alphabet=Categories(('no', 'yes')).",
    "ordered": "Give alphabet=Categories(('low', 'high'), ordered=True).",
    "scale": "Give alphabet=Scale(0, 10, 1).",
    "task_column": "Give task=.",
    "worker_column": "Give worker=.",
    "label_column": "Give label=.",
    "value_column": "Give value=.",
    "max_iter": OF_ESTIMATOR,
    "max_steps": OF_ESTIMATOR,
    "tolerance": OF_ESTIMATOR,
}
"""Arguments of Python for options of the command line that have another name."""
KEYWORDS = (
    *("method", "with_workers", "channel", "assignment", "gold", "public_gold", "truths", "prior", "history"),
    *("start_from", "progress", "engine", "memory", "checkpoint", "weight"),
)
"""Arguments of `infer` and `aggregate` beside those of reading."""
ROLES = ("task", "worker", "label", "value")
"""Options that name columns."""


class ColumnKeywords(ReadKeywords, total=False):
    """Names of columns and options of reading a frame, as of `Reports.from_frame`."""

    task: str | None
    worker: str | None
    label: str | None
    value: str | None


def read_frame_answers(answers: Any, options: ColumnKeywords) -> Reports:
    """Return the answers of a frame.

    Raises:
        SettingsError: an option that does not exist, or as `Reports.from_frame`.
        ReportsError: as `Reports.from_frame`.
    """
    return read_answers_and_confidences(answers, options)[0]


def read_answers_and_confidences(
    answers: Any, options: ColumnKeywords, weight: str | None = None
) -> tuple[Reports, Reports | None, tuple[str, ...]]:
    """Return the answers of a frame, their confidences in a column, and notes on labels, names and choices."""
    unknown = sorted(options.keys() - column_keyword_names())
    if unknown:
        elsewhere = "It is an argument of infer, not of this function." if unknown[0] in KEYWORDS else ""
        every = (*KEYWORDS, *column_keyword_names())
        meant = OTHER_NAMES.get(unknown[0]) or elsewhere or did_you_mean(unknown[0], every)
        hint = meant or (
            f"Besides its own arguments, the function accepts options of reading: {', '.join(column_keyword_names())}."
        )
        raise SettingsError("options must be known", value=unknown[0], hint=hint)
    stated: Any = {name: options.get(name) for name in ROLES}
    reading: Any = {name: value for name, value in options.items() if name not in ROLES}
    coded, original = coded_and_original_columns(answers, ColumnNames(**stated, weight=weight))
    given = ReadOptions(**reading)
    reports, columns, notes = Reports.from_coded_frame(coded, original, given)
    confidences = confidences_of_answers(columns, reports, given.duplicates)
    return reports, confidences, (*notes, *notes_on_unread_columns(original.others))


def column_keyword_names() -> tuple[str, ...]:
    """Return the names of columns and options of reading."""
    return (*ColumnKeywords.__annotations__,)
