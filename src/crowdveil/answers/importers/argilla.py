"""Argilla: records in flat form (`to_list(flatten=True)`, `to_datasets`), and as `to_json` writes them."""

from collections import defaultdict
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import replace
from typing import Any, final

from crowdveil.answers.importers.export_file import ExportFile
from crowdveil.answers.importers.importer import Importer, Submission
from crowdveil.answers.ingest.choices import parsed_cell
from crowdveil.errors import ReportsError

RESPONSES, USERS, STATUS = ".responses", ".responses.users", ".responses.status"
DRAFT, DISCARDED = "draft", "discarded"
RANKING = "ranking"
"""Key of a ranking among the answers, which is no answer of labels."""


@final
class Argilla(Importer):
    """Argilla's exports."""

    tool = "argilla"
    title = "Argilla"
    expected = "Argilla's flat records have '<question>.responses' and '<question>.responses.users'."
    one_per_row = False

    def recognises(self, columns: Sequence[str]) -> bool:
        """Return whether there are responses of users to some question."""
        names = set(columns)
        return bool(_question_names(columns)) or {"responses", "fields"} <= names

    def submissions(self, export: ExportFile) -> Iterator[Submission]:
        """Yield the responses of each user; discarded ones have no answers, and drafts are left out."""
        found = list(self._submissions_with_lists(export))
        names = dict.fromkeys(name for one in found for name in one.answers)
        ranked = {name for name in names if _is_ranking([one.answers.get(name) for one in found])}
        for one in found:
            answers = {name: {RANKING: value} if name in ranked else value for name, value in one.answers.items()}
            yield replace(one, answers=answers)

    def _submissions_with_lists(self, export: ExportFile) -> Iterator[Submission]:
        questions = _question_names(export.columns)
        for record in export.rows_as_mappings:
            responses = (
                _responses_of_flat_record(record, questions, export.name)
                if questions
                else _responses_of_nested_record(record.get("responses"))
            )
            gathered: dict[tuple[Any, Any], dict[str, Any]] = defaultdict(dict)
            for question, user, status, value in responses:
                gathered[user, status][question] = None if status == DISCARDED else value
            for (user, status), answers in gathered.items():
                yield Submission(record.get("id"), user, answers, DRAFT if status == DRAFT else "")


def _is_ranking(values: Sequence[Any]) -> bool:
    """Return whether lists are orders of the same options, and not choices: each has all of them, and orders differ."""
    lists = [tuple(map(str, value)) for value in values if isinstance(value, list) and value]
    options = set(lists[0]) if lists else set()
    return len(set(lists)) > 1 and all(set(one) == options and len(one) == len(options) for one in lists)


Response = tuple[str, Any, Any, Any]
"""Question, user, status and value."""


def _question_names(columns: Sequence[str]) -> list[str]:
    return [name.removesuffix(USERS) for name in columns if name.endswith(USERS)]


def _responses_of_flat_record(record: Mapping[str, Any], questions: Sequence[str], source: str) -> Iterator[Response]:
    for question in questions:
        values, users = (_list_in_cell(record.get(question + end), source) for end in (RESPONSES, USERS))
        status = _list_in_cell(record.get(question + STATUS), source) or [None] * len(users)
        if not len(values) == len(users) == len(status):
            raise ReportsError(
                f"the responses to {question!r} must have one user and one status each",
                source=source,
                examples=f"{len(values)} responses, {len(users)} users, {len(status)} of status",
                hint="Export the records again.",
            )
        yield from zip([question] * len(users), users, status, values, strict=True)


def _list_in_cell(cell: Any, source: str) -> list[Any]:
    """Return the list in a cell; in a CSV file it is text."""
    if cell is None or cell == "":
        return []
    cell = parsed_cell(cell)
    if not isinstance(cell, list):
        raise ReportsError("responses must be lists", source=source, examples=repr(cell)[:80], hint="Export again.")
    return cell


def _responses_of_nested_record(responses: Any) -> Iterator[Response]:
    """Yield responses by question, or (in version 1) by user with values by question."""
    if isinstance(responses, Mapping):
        for question, given in responses.items():
            for one in given or ():
                yield question, one.get("user_id"), one.get("status"), one.get("value")
        return
    for one in responses or ():
        for question, content in (one.get("values") or {}).items():
            value = content.get("value") if isinstance(content, Mapping) else content
            yield question, one.get("user_id"), one.get("status"), value
