"""Encoding of label columns, and merging of label spellings.

Spellings of one label agree up to outer spaces, invisible characters, case, Unicode form and number format.
"""

import unicodedata
from collections.abc import Mapping, Sequence
from dataclasses import replace
from decimal import Decimal, InvalidOperation
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
from numpy.typing import NDArray

from crowdveil.answers.ingest.choices import ChoiceOptions, columns_by_choice, notes_on_shared_separators
from crowdveil.answers.ingest.column_checks import (
    MISSING,
    TEXT_RULE,
    CodedColumn,
    has_lone_surrogate,
    parse_numbers,
    refuse_invalid_rows,
    with_sorted_distinct_numbers,
)
from crowdveil.answers.ingest.column_readers import ReportColumns
from crowdveil.answers.ingest.mapped_codes import code_parts, place_of_codes
from crowdveil.channels.alphabet import MAX_LABELS, NULL, Categories, abbreviate_names
from crowdveil.display.counts import number_of
from crowdveil.errors import ReportsError
from crowdveil.hints import advice, one_of

LabelMap = tuple[tuple[str, str], ...]
"""Pairs of a label and the one that replaces it."""
LABELS_SHOWN, NAMES_SHOWN = 10, 3
INVISIBLE = "Cf"
"""Unicode category of format characters: zero-width space, soft hyphen, byte-order mark."""
MAX_NUMBER_LENGTH = 400
"""Largest length of a text that is parsed as a number, in characters."""


def merge_spellings(column: CodedColumn, known: Sequence[str], counts: NDArray[np.int64] | None = None) -> CodedColumn:
    """Return a label column with merged spellings.

    Args:
        column: labels.
        known: the alphabet, if given: a text is replaced by the only label that it is a spelling of. Otherwise by the
            most frequent spelling (ties: the first in code-point order), in NFC and without outer spaces.
        counts: number of answers with each name; by default that of the rows.
    """
    column = with_sorted_distinct_numbers(column)
    texts = [str(name) for name in column.names.tolist()]
    counts = column.counts if counts is None else counts
    chosen = _replaced_by_known_labels(texts, known) if known else _replaced_by_most_frequent(texts, counts)
    return column.with_merged_names(chosen)


def mapped_label(text: str, given: Mapping[str, str]) -> str:
    """Return the label that replaces a label by a map: as it is written, else without outer spaces."""
    return given.get(text, given.get(text.strip(), text))


def map_labels(column: CodedColumn, given: LabelMap) -> tuple[CodedColumn, tuple[str, ...]]:
    """Return a column of labels that are replaced by a map, and notes on the labels that remain."""
    texts, known = [str(name) for name in column.names.tolist()], dict(given)
    mapped = column.with_merged_names([mapped_label(text, known) for text in texts])
    counts = mapped.counts[:-1]
    absent = [repr(name) for name in known if name not in {*texts, *map(str.strip, texts)}]
    unused = (f"No answer has these labels of the map: {', '.join(absent)}.",) if absent else ()
    return mapped, (f"Labels after the map: {labels_with_counts(mapped.names.tolist(), counts)}.", *unused)


def labels_with_counts(names: Sequence[Any], counts: NDArray[np.integer]) -> str:
    """Return the first labels with their numbers of answers, and how many more there are; without NULL."""
    given = [(name, count) for name, count in zip(names, counts.tolist(), strict=True) if name != NULL]
    more = f" and {len(given) - LABELS_SHOWN} more" if len(given) > LABELS_SHOWN else ""
    return ", ".join(f"{str(name)!r} ({number_of(count, 'answer')})" for name, count in given[:LABELS_SHOWN]) + more


def columns_as_stated(
    columns: ReportColumns, choices: ChoiceOptions, label_map: LabelMap
) -> tuple[ReportColumns, tuple[str, ...]]:
    """Return the columns with mapped labels and a task for each choice, and notes on labels, names and choices.

    Raises:
        ReportsError: as `columns_by_choice`.
    """
    notes: tuple[str, ...] = ()
    if label_map:
        value, notes = map_labels(columns.value, label_map)
        columns = replace(columns, value=value)
    notes += notes_on_similar_names(columns.task, columns.worker)
    if choices.multiple is not None or columns.may_have_choices:
        columns, more = columns_by_choice(columns, choices)
        shared = () if columns.value_name == "value" else notes_on_shared_separators(columns.value.names)
        notes += more + (shared if choices.multiple is None else ())
    return columns, notes


def notes_on_similar_names(task: CodedColumn, worker: CodedColumn) -> tuple[str, ...]:
    """Return notes on names of tasks, and of workers, that differ only as the spellings of a label do.

    Numbers are not compared. The last note counts the answers of a worker to a task that are repeated under such names.
    """
    merged, notes = list[CodedColumn](), list[str]()
    for role, column in (("task", task), ("worker", worker)):
        textual = column.names.dtype.kind in "OU"
        place = places_of_similar_names(pa.array(column.names, pa.large_string())) if textual else None
        merged.append(column if place is None else _with_places(column, place))
        notes += () if place is None else [note_on_similar_names(role, column.names, column.counts, place)]
    if not notes:
        return ()
    codes = [one.codes for one in (*merged, task, worker)]
    pairs: set[tuple[int, int]] = set()
    for _, (place, other, own, by) in code_parts(*codes):
        changed = (place != own) | (other != by)
        pairs.update(zip(place[changed].tolist(), other[changed].tolist(), strict=True))
    seen: dict[tuple[int, int], set[tuple[int, int]]] = {}
    for _, (place, other, own, by) in code_parts(*codes):
        in_pair = np.isin(place, [one for one, _ in pairs]) & np.isin(other, [one for _, one in pairs])
        rows = zip(*(part[in_pair].tolist() for part in (place, other, own, by)), strict=True)
        for first, second, *spelt in rows:
            seen.setdefault((first, second), set()).add((spelt[0], spelt[1]))
    repeated = [pair for pair in pairs if len(seen[pair]) > 1]
    if repeated:
        first = min(repeated)
        notes.append(
            f"If these names mean the same, {number_of(len(repeated), 'answer')} of a worker to a task would be "
            f"repeated, such as ({task.names[first[0]]}, {worker.names[first[1]]})."
        )
    return tuple(notes)


def _with_places(column: CodedColumn, place: NDArray[np.int32]) -> CodedColumn:
    """Return a column with the code `place[code]` in place of each code."""
    return CodedColumn(column.names, place_of_codes(np.append(place, np.int32(MISSING)), column.codes))


def places_of_similar_names(texts: Any) -> NDArray[np.int32] | None:
    """Return for each name of an Arrow array the position of the first with the same spelling; None if all differ."""
    plain = texts
    if not pc.all(pc.string_is_ascii(texts)).as_py():
        plain = pc.utf8_normalize(pc.replace_substring_regex(texts, r"\p{Cf}", ""), "NFC")
    plain = pc.utf8_lower(pc.utf8_trim_whitespace(plain))
    if plain.equals(texts) or pc.count_distinct(plain).as_py() == len(texts):
        return None
    coded = plain.dictionary_encode().indices.to_numpy()
    _, first, place = np.unique(coded, return_index=True, return_inverse=True)
    return np.asarray(first[place], dtype=np.int32)


def note_on_similar_names(role: str, names: Any, counts: NDArray[np.integer], place: NDArray[np.int32]) -> str:
    """Return a note with the first groups of similar names, and their numbers of answers.

    Args:
        role: "task" or "worker".
        names: all names, by position.
        counts: their numbers of answers.
        place: as `places_of_similar_names`.
    """
    firsts = np.unique(place[np.flatnonzero(place != np.arange(len(place)))])
    groups = "; ".join(
        ", ".join(
            f"{str(names[int(code)])!r} ({number_of(int(counts[code]), 'answer')})"
            for code in np.flatnonzero(place == first)[:NAMES_SHOWN]
        )
        for first in firsts[:NAMES_SHOWN]
    )
    more = f"; and {len(firsts) - NAMES_SHOWN} more" if len(firsts) > NAMES_SHOWN else ""
    return f"These are read as different {role}s: {groups}{more}. Use one spelling for each {role}."


def spelling_groups(texts: Sequence[str]) -> list[list[int]]:
    """Return groups of positions of texts that are spellings of one label; single spellings are omitted."""
    found: dict[str | Decimal, list[int]] = {}
    for position, text in enumerate(texts):
        found.setdefault(_spelling_key(text), []).append(position)
    return [positions for positions in found.values() if len(positions) > 1]


def with_known_spellings(gold: Mapping[Any, Any], known: Sequence[str]) -> dict[Any, Any]:
    """Return known truths by task, each replaced by the only known label that it is a spelling of, if there is one."""
    return dict(zip(gold, _replaced_by_known_labels(list(map(str, gold.values())), known), strict=True))


def _replaced_by_known_labels(texts: Sequence[str], known: Sequence[str]) -> list[str]:
    by_key: dict[str | Decimal, list[str]] = {}
    for name in known:
        by_key.setdefault(_spelling_key(name), []).append(name)
    found = [by_key.get(_spelling_key(text), []) for text in texts]
    return [own[0] if len(own) == 1 and text not in known else text for text, own in zip(texts, found, strict=True)]


def _replaced_by_most_frequent(texts: list[str], counts: NDArray[np.int64]) -> list[str]:
    chosen = [_stripped_nfc(text) for text in texts]
    for positions in spelling_groups(texts):
        most = min(positions, key=lambda position: (-counts[position], texts[position]))
        for position in positions:
            chosen[position] = _stripped_nfc(texts[most])
    return chosen


def _stripped_nfc(text: str) -> str:
    return unicodedata.normalize("NFC", text.strip())


def _spelling_key(text: str) -> str | Decimal:
    """Return the common key of all spellings of a label: its number, or the case-folded text."""
    plain = _stripped_nfc("".join(sign for sign in text if unicodedata.category(sign) != INVISIBLE))
    # Python parses 1_000 as 1000; in a data file it is a text.
    if "_" not in plain and len(plain) <= MAX_NUMBER_LENGTH:
        try:
            number = Decimal(plain)
        except InvalidOperation:
            pass
        else:
            if number.is_finite():
                return number
    return unicodedata.normalize("NFC", plain.casefold())


RESERVED_LABELS = frozenset({"", NULL, "nan", "NaN"})
MAX_NUMBER_LABELS = 20
"""Largest number of distinct numbers in a label column of unstated kind: ratings have fewer, counts more."""


def alphabet_and_label_codes(
    column: CodedColumn, alphabet: Categories | None, source: str, *, merged: bool = False
) -> tuple[Categories, NDArray[np.int16]]:
    """Return the alphabet (by default the sorted labels that occur) and int16 codes, shape (rows,).

    `merged`: whether spellings were merged before, so that a refusal does not propose it.

    Raises:
        ReportsError: a label is empty, NaN, NULL or not in the alphabet, or there are too few or too many labels.
    """
    column = with_sorted_distinct_numbers(column)
    texts = [str(name) for name in column.names.tolist()]
    known = () if alphabet is None else alphabet.names
    absent = np.array([text.strip() in RESERVED_LABELS and text not in known for text in texts], dtype=bool)
    refuse_invalid_rows(
        column,
        absent,
        "labels must not be empty, NaN or NULL",
        source=source,
        hint=advice("If they mean no answer, skip them: {missing}.", "Remove these rows.", missing="skip"),
    )
    refuse_invalid_rows(column, has_lone_surrogate(column.names), TEXT_RULE, source=source, hint="Correct the rows.")
    if alphabet is None:
        _require_alphabet_size(texts, source)
        alphabet = Categories(_sorted_labels(texts))
    place = {name: code for code, name in enumerate(alphabet.names)}
    codes = np.array([place.get(text, MISSING) for text in texts], dtype=np.int16)
    refuse_invalid_rows(
        column,
        codes == MISSING,
        f"every label must be one of {abbreviate_names(alphabet.names)}",
        source=source,
        hint=one_of(
            "correct the rows",
            "write NULL for no answer",
            advice("give all labels ({alphabet})"),
            "" if merged else advice("merge spellings ({merge_labels})", merge_labels=True),
            advice("map the labels ({map_labels})"),
        ),
        code="unknown label",
    )
    return alphabet, codes[column.codes]


def refuse_unstated_numbers(column: CodedColumn, source: str) -> None:
    """Refuse a label column of unstated kind with many distinct numbers, or some with a decimal comma.

    These may be counts or measurements.

    Raises:
        ReportsError: more than `MAX_NUMBER_LABELS` distinct values, or one with a comma; all of them are numbers.
    """
    names = with_sorted_distinct_numbers(column).names
    texts = names.tolist() if names.dtype.kind in "OU" else []
    commas = any("," in name for name in texts)
    if len(names) <= MAX_NUMBER_LABELS and not commas:
        return
    numbers = parse_numbers(np.array([name.replace(",", ".") for name in texts]) if commas else names)
    if np.isfinite(numbers).all():
        many = "a decimal comma" if commas else f"more than {MAX_NUMBER_LABELS} different numbers"
        raise ReportsError(
            f"the kind of a label column with {many} must be stated",
            source=source,
            examples=f"{len(names):,} different numbers from {numbers.min():g} to {numbers.max():g}",
            hint=advice("Write decimals with a point, or state the comma ({decimal}). ", decimal=",") * commas
            + one_of(
                advice("state {kind} if they are numbers", kind="numeric"),
                advice("state {kind} if they are labels", kind="categorical"),
                advice("give their scale or labels ({alphabet})", "give their scale or labels"),
            ),
        )


def _require_alphabet_size(texts: Sequence[str], source: str) -> None:
    size = len(texts)
    if not 2 <= size <= MAX_LABELS:
        raise ReportsError(
            f"there must be 2 to {MAX_LABELS} different labels",
            source=source,
            examples="1 label" if size == 1 else f"{size} different labels",
            hint=one_of(
                advice("give all labels ({alphabet})", "give answers with two labels or more"),
                advice("state {kind} if these are numbers", advice("state {numeric}", numeric=True), kind="numeric"),
                advice("choose another question, if there are several ({question})"),
            ),
            code="one label" if size == 1 else "",
            values={"label": texts[0]} if size == 1 else None,
        )


def _sorted_labels(texts: list[str]) -> tuple[str, ...]:
    """Return labels sorted as numbers if all are numbers, else as text."""
    try:
        return tuple(sorted(sorted(texts), key=float))
    except ValueError:
        return tuple(sorted(texts))
