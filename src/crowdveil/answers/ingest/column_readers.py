"""Readers of coded columns of text files, and the names of columns by their roles.

Columns are identified by name. Other columns, which no guarantee covers (times, addresses), are not read.
"""

import re
from collections.abc import Callable, Iterable, Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass, replace
from functools import partial
from os import PathLike
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from crowdveil.answers.facts.inputs import Input
from crowdveil.answers.facts.prior import Prior
from crowdveil.answers.ingest.column_checks import (
    COMMA_NUMBER,
    MISSING,
    CodedColumn,
    encode_ids,
    parse_number_column,
)
from crowdveil.answers.ingest.csv_errors import COMMA, DELIMITERS
from crowdveil.answers.ingest.csv_files import (
    Header,
    Headers,
    Progress,
    content_digest,
    find_defects,
    header_or_raise,
    headers_by_delimiter,
    read_csv_batches,
    read_text_start,
    text_source,
)
from crowdveil.answers.ingest.dictionary_encoding import encode_batches
from crowdveil.answers.ingest.mapped_codes import code_parts
from crowdveil.answers.ingest.row_sources import source_of_kept_rows
from crowdveil.channels.alphabet import NULL
from crowdveil.errors import ReportsError, SettingsError, join_errors
from crowdveil.hints import advice

Accepted = Mapping[str, tuple[str, ...]]
ANSWERS: Accepted = {
    "task": ("task", "item"),
    "worker": ("worker", "performer", "annotator"),
    "value": ("label", "value", "answer"),
}
OTHER_NAMES: Accepted = {
    "task": ("task_id", "item_id", "question_id"),
    "worker": ("worker_id", "annotator_id", "performer_id", "user", "user_id", "rater"),
    "value": ("response", "annotation", "vote"),
}
"""Names that are accepted where no column has one of `ANSWERS`."""
VALUE_NAMES = {*ANSWERS["value"], *OTHER_NAMES["value"]}
GOLD: Accepted = {"task": ("task", "item"), "truth": ("truth", "label", "value", "answer")}
QUESTION = "question"
"""Name, in any case, of the column that says which question an answer is to."""
WEIGHT = "weight"
"""Role of the column of confidences."""
PRIOR: Accepted = {"label": ("label",), "probability": ("probability",)}
ROWS_SHOWN = 5
"""Rows per error message."""
ROWS_CHECKED = 100_000
"""Rows of a file with unknown columns in which other defects are looked for."""
NO_ANSWER = (NULL, "", " ", "nan", "NaN")
"""Answers that are none, where empty ones are skipped."""
LIKE_CHOICES = re.compile(r"^\s*[\[{(]|[;|,]")
"""Labels that may be several choices: lists, objects, and texts with a separator."""
Match = Callable[[Sequence[str], str], dict[str, str]]


@dataclass(frozen=True, slots=True, eq=False)
class ReportColumns:
    """Coded columns of reports, not yet validated.

    Attributes:
        task, worker, value: the columns, of equal length.
        value_name: header of the value column.
        source: origin of the rows, for error messages.
        question: the question that each row answers; None without such a column.
        skip_empty: whether an empty answer is no answer, as NULL is; otherwise it is refused.
        labels: known labels, which are answers even if they read as none.
        weight: how sure the worker of each row was; None unless its column is stated.
    """

    task: CodedColumn
    worker: CodedColumn
    value: CodedColumn
    value_name: str
    source: str
    question: CodedColumn | None = None
    skip_empty: bool = False
    labels: frozenset[str] = frozenset()
    weight: CodedColumn | None = None

    def __len__(self) -> int:
        """Number of rows."""
        return len(self.task)

    @property
    def no_answer_names(self) -> NDArray[np.bool_]:
        """Whether each name of the value column is "no answer", then whether empty cells are, shape (names + 1,)."""
        names = self.value.names
        if names.dtype.kind == "f":
            return np.append(np.isnan(names) & self.skip_empty, self.skip_empty)
        null = [one for one in NO_ANSWER if one not in self.labels] if self.skip_empty else [NULL]
        text = names.dtype.kind in "OU"
        return np.append(np.isin(names, null) if text else np.zeros(len(names), dtype=bool), self.skip_empty)

    @property
    def null_rows(self) -> NDArray[np.int64]:
        """Positions of the rows without an answer."""
        null = self.no_answer_names
        if not null.any():
            return np.empty(0, dtype=np.int64)
        found = (first + np.flatnonzero(null[codes]) for first, (codes,) in code_parts(self.value.codes))
        return np.concatenate([np.empty(0, dtype=np.int64), *found])

    def without_null(self) -> tuple["ReportColumns", NDArray[np.int64]]:
        """Return the columns without the rows and labels of no answer, and the rows that are kept."""
        rows = np.delete(np.arange(len(self)), self.null_rows)
        kept = np.flatnonzero(~self.no_answer_names[:-1])
        place = np.full(len(self.value.names) + 1, MISSING, dtype=np.int32)
        place[kept] = np.arange(len(kept))
        columns = self.only_rows(rows)
        return replace(columns, value=CodedColumn(self.value.names[kept], place[columns.value.codes])), rows

    @property
    def may_have_choices(self) -> bool:
        """Whether a label may be several choices: it begins as a list or object, or has a separator."""
        names = self.value.names
        return names.dtype.kind in "OU" and any(map(LIKE_CHOICES.search, names.tolist()))

    def only_rows(self, rows: NDArray[Any]) -> "ReportColumns":
        """Return the given rows only."""
        question, weight = (None if one is None else one.keep(rows) for one in (self.question, self.weight))
        task, worker, value = (column.keep(rows) for column in (self.task, self.worker, self.value))
        fields = (task, worker, value, self.value_name, source_of_kept_rows(self.source, rows), question)
        return ReportColumns(*fields, skip_empty=self.skip_empty, labels=self.labels, weight=weight)


@dataclass(frozen=True, slots=True, kw_only=True)
class ColumnNames:
    """Names of columns that the caller states; None where they follow from the header.

    Attributes:
        task, worker: columns of identifiers.
        label, value: column of labels, or of numbers; at most one of the two.
        weight: column of the confidence of answers, which is read only if it is stated.
    """

    task: str | None = None
    worker: str | None = None
    label: str | None = None
    value: str | None = None
    weight: str | None = None

    def __post_init__(self) -> None:
        if self.label is not None and self.value is not None:
            raise SettingsError(
                "answers must be in one column: give label= for labels or value= for numbers, not both",
                value=(self.label, self.value),
            )
        given = [name for name in (self.task, self.worker, self.label, self.value, self.weight) if name is not None]
        if not all(isinstance(name, str) for name in given):
            raise SettingsError("names of columns must be text", value=given, hint="Rename the columns first.")
        if len(set(given)) < len(given):
            several = "task, worker and label are three columns" if self.weight is None else "each column has one role"
            raise SettingsError(several, value=given)

    def resolve_columns(self, found: Sequence[str], source: str) -> dict[str, str]:
        """Return the column of each role: the stated one, else the one that the header names.

        A column `question` besides these has the role `question`, and that of confidences the role `weight`.

        Raises:
            ReportsError: a role has no column, or more than one.
        """
        stated = {"task": self.task, "worker": self.worker, "value": self.value or self.label, WEIGHT: self.weight}
        absent = [name for name in stated.values() if name is not None and name not in found]
        if absent:
            raise ReportsError(
                f"there is no column {', '.join(map(repr, absent))}",
                source=source,
                examples=_list_of_columns(found),
                hint=f"State {'a column' if len(absent) == 1 else 'columns'} that it has.",
            )
        open_roles = {role: names for role, names in ANSWERS.items() if stated[role] is None}
        rest = [name for name in found if name not in stated.values()]
        matched = match_answer_columns(rest, open_roles, source)
        roles = {role: stated[role] or matched[role] for role in ANSWERS}
        questions = [name for name in rest if normal_name(name) == QUESTION and name not in roles.values()]
        if len(questions) > 1:
            raise ReportsError(
                "at most one column of questions is read",
                source=source,
                examples=_list_of_columns(questions),
                hint="Rename the others.",
            )
        weight = {} if self.weight is None else {WEIGHT: self.weight}
        return roles | ({QUESTION: questions[0]} if questions else {}) | weight

    @property
    def stated_value_kind(self) -> str | None:
        """`value` or `label`, where one is stated."""
        return "value" if self.value is not None else "label" if self.label is not None else None

    def answer_name(self, columns: Iterable[str]) -> str:
        """Return `value` or `label`: the stated one, else `value` if all these columns of answers are named so."""
        numeric = all(normal_name(name) == "value" for name in columns)
        return self.stated_value_kind or ("value" if numeric else "label")


NO_NAMES = ColumnNames()


def read_columns(
    path: str | PathLike[str],
    names: ColumnNames = NO_NAMES,
    delimiter: str | None = None,
    progress: Progress | None = None,
    encoding: str | None = None,
    headers: Headers | None = None,
) -> ReportColumns:
    """Return the columns of a CSV file of answers or reports; all cells are text.

    Args:
        path: a file with a header.
        names: columns that do not follow from the header.
        delimiter: character between cells; by default the one that separates the columns in the header.
        progress: called with the bytes read so far and the size of the file.
        encoding: encoding of a text without byte-order mark; by default UTF-8.
        headers: headers of the file, if its start was read.

    Raises:
        ReportsError: no such file, damaged, or without the columns.
    """
    path, match = Path(path), names.resolve_columns
    headers = headers or _headers_of_file(path, delimiter, encoding)
    delimiter, roles = delimiter_and_roles(path, match, delimiter, encoding, headers=headers)
    coded = read_csv_batches(
        path,
        list(roles.values()),
        partial(encode_batches, names=list(roles.values())),
        delimiter,
        progress,
        encoding,
        header_or_raise(headers, delimiter),
    )
    source = text_source(path, delimiter, encoding)
    by_role = {role: coded[name] for role, name in roles.items()}
    return report_columns(by_role, roles, source, names.stated_value_kind)


def _headers_of_file(path: Path, delimiter: str | None, encoding: str | None) -> Headers:
    return headers_by_delimiter(read_text_start(path, encoding), [delimiter] if delimiter else DELIMITERS)


def delimiter_and_roles(
    path: Path,
    match: Match,
    delimiter: str | None = None,
    encoding: str | None = None,
    *,
    by_header: bool = False,
    headers: Headers | None = None,
) -> tuple[str, dict[str, str]]:
    """Return the delimiter of a text file and the column of each role.

    Args:
        path: a file with a header.
        match: returns the column of each role from the names of columns and the name of the file, or refuses them.
        delimiter: character between cells; by default the first one by which the columns match.
        encoding: as in `read_columns`.
        by_header: whether a refusal must not depend on the rows, which are private.
        headers: headers of the file, if its start was read.

    Raises:
        ReportsError: no columns match by any delimiter: all defects of the file (`by_header`: of its header) are named,
            and the columns are those of the delimiter that gives the most.
    """
    refused: dict[str, tuple[Header, ReportsError]] = {}
    headers = headers or _headers_of_file(path, delimiter, encoding)
    for one in [delimiter] if delimiter else DELIMITERS:
        header = header_or_raise(headers, one)
        try:
            roles = match(header.names, str(path))
        except ReportsError as error:
            refused[one] = header, error
        else:
            if not header.defects:
                return one, roles
            raise join_errors(header.defects if by_header else find_defects(path, one, encoding, ROWS_CHECKED))
    widest = max(refused, key=lambda one: len(refused[one][0].names))
    header, refusal = refused[widest]
    defects = header.defects if by_header else find_defects(path, widest, encoding, ROWS_CHECKED)
    refusal = _add_text_hints(
        refusal,
        widest,
        header.names,
        _hint_on_header_or_decimal_commas("" if by_header else header.start, widest, match),
    )
    raise join_errors([*defects, refusal] if header.defects else [refusal, *defects])


def _add_text_hints(refusal: ReportsError, delimiter: str, names: Sequence[str], hints: str) -> ReportsError:
    """Return the refusal of the columns of a text file with its delimiter and more hints."""
    found = str(refusal.value or "") if delimiter == COMMA else f"{refusal.value}, with the delimiter {delimiter!r}"
    if len(names) == 1:
        hints += advice(" Answers: if cells are separated by another character, state it ({delimiter}).")
    return refusal.changed(examples=found, hint=refusal.hint + hints)


def _hint_on_header_or_decimal_commas(start: str, delimiter: str, match: Match) -> str:
    """Return hints on lines above the header, none of it, and decimal commas, in the start of a text."""
    for number, line in enumerate(start.splitlines()[1:], 2):
        for one in DELIMITERS:
            with suppress(ReportsError):
                match([cell.strip('"') for cell in line.split(one)], "")
                return f" Line {number} has such names: remove the lines above it."
    first, *rows = [line.split(delimiter) for line in start.splitlines()] or [[]]
    if any(cell and cell == row[place] for row in rows if len(row) == len(first) for place, cell in enumerate(first)):
        return " The first row looks like an answer: add a row with the names of the columns above it."
    values = {place for place, name in enumerate(first) if normal_name(name.strip('"')) in VALUE_NAMES}
    cells = [cell.strip('"') for row in rows for place, cell in enumerate(row) if not values or place in values]
    decimal = delimiter != COMMA and any(COMMA_NUMBER.fullmatch(cell) for cell in cells)
    return advice(" Answers: some numbers have a comma, state it ({decimal}).", decimal=",") if decimal else ""


def load_prior(path: str | PathLike[str]) -> Prior:
    """Return the public prior in a file with the columns `label,probability`.

    Raises:
        ReportsError: the file is damaged, a label is missing or repeated, or as `Prior`.
    """
    source = text_source(Path(path))
    _, columns = read_csv_by_role(Path(path), PRIOR)
    names, codes = encode_ids(columns["label"], None, "label", source)
    numbers = parse_number_column(columns["probability"], source)
    if len(names) != len(codes) or not len(names):
        raise ReportsError(
            "a prior has one row per label",
            source=source,
            examples=f"{len(codes)} rows, {len(names)} labels",
            hint="Give each label once.",
        )
    shares = dict(zip(names[codes].tolist(), numbers.tolist(), strict=True))
    own = Input(role="prior", sha256=content_digest(path), public=True)
    return Prior(probabilities=shares, source=source, inputs=(own,))


def match_columns(found: Sequence[str], accepted: Accepted, source: str) -> dict[str, str]:
    """Return the column name of each role.

    Raises:
        ReportsError: a role has no column, or more than one.
    """
    roles = {role: [name for name in found if name in names] for role, names in accepted.items()}
    for role, names in roles.items():
        if len(names) != 1:
            wanted = "; ".join(" or ".join(options) for options in accepted.values())
            raise ReportsError(
                f"exactly one column for the {role} is needed, {len(names)} were found",
                source=source,
                examples=_list_of_columns(names or found, cut=not names),
                hint=f"Name the columns, separated by commas: {wanted}.",
            )
    return {role: names[0] for role, names in roles.items()}


def match_answer_columns(found: Sequence[str], accepted: Accepted, source: str) -> dict[str, str]:
    """Return the column of each role of answers: by its exact name, else in any case, else by a name like `task_id`.

    Raises:
        ReportsError: a role has no column, or more than one.
    """
    chosen: dict[str, tuple[str, ...]] = {}
    for role, names in accepted.items():
        plain = [name for name in found if name in names]
        spelt = plain or [name for name in found if normal_name(name) in names]
        chosen[role] = tuple(spelt or [name for name in found if normal_name(name) in OTHER_NAMES[role]])
    wrong = [role for role, names in chosen.items() if len(names) != 1]
    if wrong:
        more = "".join(f"; for the {role}, {len(chosen[role])}" for role in wrong[1:])
        them = "them" if more else "it"
        several = [name for role in wrong for name in chosen[role]] if all(map(chosen.get, wrong)) else []
        stated = _column_arguments(wrong) or advice("{names}=ColumnNames(...)")
        raise ReportsError(
            f"exactly one column for the {wrong[0]} is needed, {len(chosen[wrong[0]])} were found{more}",
            source=source,
            examples=_list_of_columns(several or found, cut=not several),
            hint=f"Name {them} {'; '.join(' or '.join(ANSWERS[role]) for role in wrong)}"
            f"{stated and f', or state {them}: {stated}'}.{_on_comparisons(found)}",
            code="no worker or answer column" if "worker" in wrong and not chosen.get("value", True) else "",
        )
    return {role: names[0] for role, names in chosen.items()}


def _on_comparisons(found: Sequence[str]) -> str:
    """Return a sentence for columns that are those of comparisons of two items; empty for others."""
    return " Comparisons of two items are read by rank." if {"left", "right"} <= {*map(normal_name, found)} else ""


def _column_arguments(roles: Sequence[str]) -> str:
    """Return the arguments that state the columns of roles; empty if there are none."""
    stated = {
        "task": advice("{task}"),
        "worker": advice("{worker}"),
        "value": advice("{label} or, for numbers, {value}"),
    }
    return "; ".join(filter(None, map(stated.__getitem__, roles)))


def normal_name(name: str) -> str:
    """Return a column's name in lower case, with `_` for spaces, hyphens and points."""
    return re.sub(r"[\s.\-]+", "_", str(name).strip()).lower()


def _list_of_columns(found: Sequence[str], *, cut: bool = True) -> str:
    """Return the names of columns; with `cut`, of a wide table the first ones, and of long names the start."""
    shown = [str(name)[:40] for name in found[:20]] if cut else list(map(str, found))
    return "the columns " + ", ".join(map(repr, shown)) if shown else "no columns"


def report_columns(
    coded: Mapping[str, CodedColumn], roles: Mapping[str, str], source: str, value_name: str | None = None
) -> ReportColumns:
    """Return coded columns by role as columns of reports; a column named `value`, in any case, holds numbers.

    Where a space stands before the name of a column, as after each comma, spaces around its cells are not part of them.
    """
    coded = {
        role: _stripped_names(column) if roles[role] != roles[role].strip() else column
        for role, column in coded.items()
    }
    name = value_name or normal_name(roles["value"])
    fields = coded["task"], coded["worker"], coded["value"], name, source, coded.get(QUESTION)
    return ReportColumns(*fields, weight=coded.get(WEIGHT))


def _stripped_names(column: CodedColumn) -> CodedColumn:
    """Return a column of text without spaces around its names."""
    if column.names.dtype.kind not in "OU":
        return column
    return column.with_merged_names([str(name).strip() for name in column.names])


def read_csv_by_role(
    path: Path, accepted: Accepted, optional: Sequence[str] = ()
) -> tuple[dict[str, str], dict[str, CodedColumn]]:
    """Return column name and coded column of each role of a file that is no answers; errors as `delimiter_and_roles`.

    Columns with a name in `optional` are roles of this name if they are there.
    """

    def match(found: Sequence[str], source: str) -> dict[str, str]:
        return match_columns(found, accepted, source) | {name: name for name in optional if name in found}

    headers = _headers_of_file(path, None, None)
    delimiter, roles = delimiter_and_roles(path, match, headers=headers)
    names, header = list(roles.values()), header_or_raise(headers, delimiter)
    coded = read_csv_batches(path, names, partial(encode_batches, names=names), delimiter, header=header)
    return roles, {role: coded[name] for role, name in roles.items()}
