"""Refusal of files that encoded blocks hold, and of answers to another question or in another column."""

from collections.abc import Sequence
from pathlib import Path

from crowdveil.answers.ingest.column_readers import VALUE_NAMES, normal_name
from crowdveil.answers.sources.answer_source import AnswerSource
from crowdveil.answers.store_manifest import EncodedFile, History
from crowdveil.errors import ReportsError
from crowdveil.storage.encoded.inputs import SEVERAL

SEPARATE = "Encode the answers to each question into blocks of their own."


def check_new_inputs(
    source: AnswerSource, folder: Path, history: History, inputs: Sequence[EncodedFile]
) -> tuple[str, ...]:
    """Return warnings on what the manifest does not say; `inputs` are those of the source.

    Raises:
        ReportsError: the blocks hold these answers of a file, or answers to another question or in another column.
    """
    notes = _refuse_held_files(source, folder, history, inputs)
    return (
        *notes,
        *_refuse_other_question(source, folder, history, inputs),
        *_refuse_other_column(source, folder, history, inputs),
    )


def _refuse_held_files(
    source: AnswerSource, folder: Path, history: History, inputs: Sequence[EncodedFile]
) -> tuple[str, ...]:
    """Refuse the same answers of the same content; return warnings on the same content read in an unknown way."""
    held, notes = list(history.inputs), list[str]()
    for one, file in zip(inputs, source.files, strict=True):
        for other in (other for other in held if other.sha256 == one.sha256):
            if other.reading == one.reading:
                raise ReportsError(
                    "a file is encoded once",
                    source=file.name,
                    examples=f"the blocks in {folder} hold its content, as {other.name}",
                    hint="Leave it out: its answers are there.",
                )
            if other.reading is None:
                notes.append(
                    f"The blocks hold the content of {file.name}, as {other.name}; which answers of it is not recorded."
                )
        held.append(one)
    return tuple(notes)


def _refuse_other_question(
    source: AnswerSource, folder: Path, history: History, inputs: Sequence[EncodedFile]
) -> tuple[str, ...]:
    """Refuse answers to a question that the blocks do not hold; return a warning if it is not known on one side."""
    held, given = (
        [one.reading.question if one.reading else None for one in files] for files in (history.inputs, inputs)
    )
    known = {question for question in held if question is not None}
    other = [question for question in given if question is not None and question not in known]
    if not known and not other:
        return ()
    if None in held or not held:
        return (f"To which question the answers in {folder} are is not recorded. {SEPARATE}",) if other else ()
    if None in given:
        return (f"To which question the answers in {source.name} are is not known. {SEPARATE}",)
    if other and SEVERAL not in known:
        raise ReportsError(
            f"the answers must be to the question of the blocks, {', '.join(map(repr, sorted(known)))}",
            source=source.name,
            examples=", ".join(repr(question) if question != SEVERAL else "several" for question in other),
            hint=SEPARATE,
        )
    return ()


def _refuse_other_column(
    source: AnswerSource, folder: Path, history: History, inputs: Sequence[EncodedFile]
) -> tuple[str, ...]:
    """Refuse answers in another column than those of the blocks; return a warning if theirs is not recorded.

    The usual names of this column mean the same, unless a file has the column of the blocks, too.
    """
    held = {one.reading.columns["value"] for one in history.inputs if one.reading and one.reading.columns}
    for one, file in zip(inputs, source.files, strict=True):
        column = one.reading.columns.get("value") if one.reading else None
        if column is None or not held or column in held:
            continue
        beside = held.intersection(file.with_delimiter(file.delimiter_and_column_roles()[0]).columns)
        usual = {normal_name(name) in VALUE_NAMES for name in (column, *held)}
        if beside or (False in usual and normal_name(column) not in map(normal_name, held)):
            raise ReportsError(
                f"the answers must be in the column of those of the blocks, {', '.join(map(repr, sorted(held)))}",
                source=file.name,
                examples=f"the column {column!r}",
                hint="State that column, rename it, or encode these answers into blocks of their own.",
            )
    unknown = any(one.reading is None for one in history.inputs) or not history.inputs
    column_is_stated = (source.layout.names.label or source.layout.names.value) is not None
    if unknown and column_is_stated and not held:
        return (f"From which column the answers in {folder} are is not recorded.",)
    return ()
