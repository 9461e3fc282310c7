"""Answers of several choices: lists, and texts with a separator, as one yes/no question for each choice of a task."""

import ast
import json
from collections import Counter
from collections.abc import Sequence
from contextlib import suppress
from dataclasses import dataclass, replace
from typing import Any, Literal, get_args

import numpy as np
from numpy.typing import NDArray

from crowdveil.answers.ingest.column_checks import EXAMPLES_SHOWN, MISSING, CodedColumn
from crowdveil.answers.ingest.column_readers import ReportColumns
from crowdveil.arguments import is_number, require_choice
from crowdveil.channels.alphabet import NULL
from crowdveil.display.counts import number_of
from crowdveil.errors import ReportsError, SettingsError
from crowdveil.hints import advice

NothingTicked = Literal["no", "skip"]
MIN_CHOICES = 2
YES, NO = "yes", "no"
CHOICE_MARK = "|"
"""Separator of task and choice."""
NEVER = "none"
"""In place of a separator: no answer has several choices."""
OPENING = ("[", "{", "(")
MAX_LIST_LENGTH = 1 << 16
"""Largest length of a text that is read as a list, in characters."""
MAX_NAMES = 1 << 12
"""Largest number of labels among which shared separators are looked for."""
SEPARATORS = (";", "|", ",")
MAX_CHOICES_SHOWN = 10


@dataclass(frozen=True, slots=True, kw_only=True)
class ChoiceOptions:
    """How answers of several choices are read.

    Attributes:
        multiple: separator of the choices in a text; None if only lists have several, `NEVER` if none has.
        nothing_ticked: whether an answer without a choice says no to each, or is no answer ("skip").
        known: labels that are read as they are.
    """

    multiple: str | None = None
    nothing_ticked: NothingTicked = "no"
    known: frozenset[str] = frozenset()

    def __post_init__(self) -> None:
        if self.multiple is not None and not (isinstance(self.multiple, str) and self.multiple):
            raise SettingsError(
                "the separator of choices must be a text",
                value=self.multiple,
                hint=f"Such as ';', or {NEVER!r} if no answer has several choices.",
            )
        hint = "An answer without a choice counts as no to each choice, or as no answer."
        require_choice("nothing ticked", self.nothing_ticked, get_args(NothingTicked), hint=hint)

    def choices_in(self, content: Any) -> Any:
        """Return the choices in a content as a list if it is one, else the label or None for no answer."""
        if content is None or content in ("", NULL):
            return None
        if self.multiple == NEVER or (isinstance(content, str) and content in self.known):
            return content
        parsed = parsed_cell(content)
        if self.multiple is not None and isinstance(parsed, str):
            return [part.strip() for part in parsed.split(self.multiple) if part.strip()]
        return parsed


NO_CHOICES = ChoiceOptions()


def choice_task(task: str, choice: str) -> str:
    """Return the name of the yes/no question on a choice of a task."""
    return f"{task}{CHOICE_MARK}{choice}"


def parsed_cell(content: Any) -> Any:
    """Return the list or object that a text holds as JSON or Python write it; any other content as it is."""
    if not isinstance(content, str) or len(content) > MAX_LIST_LENGTH:
        return content
    text = content.strip()
    if text.startswith(OPENING[:2]):
        with suppress(ValueError, RecursionError):
            return json.loads(text)
    if text.startswith(OPENING):
        with suppress(ValueError, SyntaxError, RecursionError, MemoryError):
            found = ast.literal_eval(text)
            # Python joins neighbouring texts: the list that numpy writes as ['a' 'b'] is not the one of 'ab'.
            if isinstance(found, list | tuple | set | dict) and sorted(repr(found)) == sorted(text):
                return found if isinstance(found, dict) else list(found)
    return content


def choice_text(choice: Any) -> str | None:
    """Return a choice as text; None for what is no text or number."""
    if isinstance(choice, float) and choice.is_integer():
        choice = int(choice)
    return str(choice) if isinstance(choice, str | int | float) else None


def columns_by_choice(
    columns: ReportColumns, options: ChoiceOptions = NO_CHOICES
) -> tuple[ReportColumns, tuple[str, ...]]:
    """Return the columns with a task for each choice of a task, if answers have several; and notes on it.

    Labels that are lists are choices. Where no list has several, its item is the label.

    Raises:
        ReportsError: a label is an object, or a list of other things than texts and numbers, or two choices would have
            one name.
    """
    if options.multiple == NEVER:
        return columns, ()
    contents = [options.choices_in(str(name)) for name in columns.value.names.tolist()]
    _refuse_other_contents(columns, contents)
    if not any(isinstance(one, list) for one in contents):
        return columns, ()
    lists = [one if isinstance(one, list) else [one] for one in contents]
    if all(len(one) < MIN_CHOICES for one in lists):
        merged = [NULL if one in ([], [None]) else str(choice_text(one[0])) for one in lists]
        notes = (
            ()
            if options.multiple is not None
            else (("Each label is a list of one choice, which is read as the label."),)
        )
        return replace(columns, value=columns.value.with_merged_names(merged)), notes
    return _columns_of_choices(columns, contents, options.nothing_ticked)


def refuse_choices_in_parts(columns: ReportColumns, options: ChoiceOptions) -> None:
    """Refuse answers of several choices, which make more rows, where rows are read in parts.

    Raises:
        SettingsError: an answer is a list.
    """
    names = columns.value.names.tolist() if columns.may_have_choices else []
    found = next((str(name) for name in names if isinstance(options.choices_in(str(name)), list)), None)
    if found is not None:
        raise SettingsError(
            "with a limit of memory, a large file must have one choice in each answer",
            value=found[:80],
            hint=advice("Leave {memory} out; or state {multiple} if each is a label.", multiple="none"),
        )


def _refuse_other_contents(columns: ReportColumns, contents: Sequence[Any]) -> None:
    """Refuse objects, lists of other things than texts and numbers, and texts that look like a list and are none."""
    bad = [not _is_label_or_choices(content) for content in contents]
    if not any(bad):
        return
    rows = np.flatnonzero(np.append(bad, False)[columns.value.codes])
    if len(rows):
        names = columns.value.names[columns.value.codes[rows]]
        raise ReportsError(
            "a label must be a text, a number, or a list of these",
            source=columns.source,
            rows=tuple((rows[:EXAMPLES_SHOWN] + 1).tolist()),
            examples=", ".join(dict.fromkeys(repr(str(name)[:80]) for name in names[:EXAMPLES_SHOWN])),
            hint="Write one label in each row, or the choices of an answer as a list or with a separator between them.",
        )


def _is_label_or_choices(content: Any) -> bool:
    """Return whether a content is a label, no answer, or a list of choices."""
    if isinstance(content, list):
        return all(choice_text(one) not in (None, "", NULL) for one in content)
    return not isinstance(content, dict) and not _is_list_of_numpy(content)


def _is_list_of_numpy(content: Any) -> bool:
    """Return whether a text is a list of texts without commas between them, as numpy prints it."""
    return isinstance(content, str) and content[:2] in ("['", '["') and content[-2:] in ("']", '"]')


def _columns_of_choices(
    columns: ReportColumns, contents: Sequence[Any], nothing_ticked: NothingTicked
) -> tuple[ReportColumns, tuple[str, ...]]:
    """Return one row for each choice of each row, and notes."""
    texts = [
        None if one is None else [str(choice_text(part)) for part in (one if isinstance(one, list) else [one])]
        for one in contents
    ]
    used = set(np.unique(columns.value.codes).tolist())
    choices = sorted({part for code, one in enumerate(texts) if code in used for part in one or ()})
    # Codes of NULL, no and yes, for each name, and for empty cells in the last row.
    answers = np.zeros((len(texts) + 1, len(choices)), dtype=np.int32)
    for code, one in enumerate(texts):
        if one or (one is not None and nothing_ticked == "no"):
            answers[code] = [2 if choice in one else 1 for choice in choices]
    rows = np.repeat(np.arange(len(columns)), len(choices))
    value = CodedColumn(np.array([NULL, NO, YES]), answers[columns.value.codes].ravel())
    parts = columns.only_rows(rows)
    parts = replace(
        parts,
        task=_tasks_by_choice(columns, choices),
        value=value.restricted_to_rows(np.arange(len(rows))),
        value_name="label",
    )
    empty = [code for code, one in enumerate(texts) if one == []]
    return parts, choice_notes(choices, int(np.isin(columns.value.codes, empty).sum()), nothing_ticked)


def _tasks_by_choice(columns: ReportColumns, choices: Sequence[str]) -> CodedColumn:
    """Return the task TASK|CHOICE of each choice of each row; refuse tasks of which two would have one name."""
    tasks = list(map(str, columns.task.names.tolist()))
    names = [choice_task(task, choice) for task in tasks for choice in choices]
    refuse_equal_choice_tasks(names, columns.source)
    codes = columns.task.codes[:, None].astype(np.int64) * len(choices) + np.arange(len(choices))
    unnamed = np.array([*(task == "" for task in tasks), True])  # the last is that of MISSING
    codes[unnamed[columns.task.codes]] = MISSING
    return CodedColumn(np.array(names, dtype=object), codes.ravel().astype(np.int32)).with_merged_names(names)


def refuse_equal_choice_tasks(names: Sequence[str], source: str) -> None:
    """Refuse tasks of which two choices would have one name, such as `1` with `b|c` and `1|b` with `c`."""
    if len(set(names)) == len(names):
        return
    twice = next(name for name, count in Counter(names).items() if count > 1)
    raise ReportsError(
        f"names of tasks and choices must differ when joined by {CHOICE_MARK}",
        source=source,
        examples=repr(twice),
        hint=f"Rename the choice, or the task, that has a {CHOICE_MARK} in its name.",
    )


def choice_notes(choices: Sequence[str], nothing: int, nothing_ticked: NothingTicked) -> tuple[str, ...]:
    """Return notes on answers of several choices, of which some tick nothing."""
    listed = ", ".join(choices[:MAX_CHOICES_SHOWN]) + (", ..." if len(choices) > MAX_CHOICES_SHOWN else "")
    several = f"Answers have several choices: each choice of a task is read as a yes/no task TASK|CHOICE ({listed})."
    if not nothing:
        return (several,)
    ticked = f"{number_of(nothing, 'answer')} with nothing ticked"
    if nothing_ticked == "no":
        other = advice(" ({nothing_ticked} reads it as no answer)", nothing_ticked="skip")
        return several, f"Read as no to every choice: {ticked}{other}."
    other = advice(" ({nothing_ticked} reads it as no to every choice)", nothing_ticked="no")
    return several, f"Read as no answer: {ticked}{other}."


def notes_on_shared_separators(names: NDArray[Any]) -> tuple[str, ...]:
    """Return a note that names labels which share a separator and a part, and so may be several choices."""
    if names.dtype.kind not in "OU" or not 1 < len(names) <= MAX_NAMES:
        return ()
    texts = [str(name) for name in names.tolist()]
    if all(is_number(text.replace(",", ".")) for text in texts):
        return ()
    for separator in SEPARATORS:
        joined = [text for text in texts if separator in text]
        sets = [frozenset(part.strip() for part in text.split(separator)) for text in texts]
        parts = [part for one in sets for part in one]
        # A comma may stand in a sentence: there whole labels must be parts of others, or the same parts in other order.
        again = set(sets) if separator == "," else set(parts)
        whole = any({text} < one for text in texts for one in sets) if separator == "," else False
        if joined and (whole or len(again) < len(sets if separator == "," else parts)):
            shown = ", ".join(map(repr, joined[:3])) + (", ..." if len(joined) > len(joined[:3]) else "")
            stated = advice(", state the separator: {multiple}", multiple=separator)
            return (f"Read as one label each: {shown}. If they are several choices{stated}.",)
    return ()
