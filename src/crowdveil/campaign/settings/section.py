"""Tables of a settings file: typed access by name, with the rule, the value found and a hint in every error."""

import unicodedata
from collections.abc import Mapping, Sequence
from datetime import date, datetime
from difflib import get_close_matches
from math import nextafter
from typing import Any

from crowdveil.errors import SettingsError
from crowdveil.standalone.checks import MAX_CHANNELS, text_defect


class Section:
    """One table of the file. Values are taken by name; `close` refuses what was not taken.

    Args:
        name: name of the table for error messages; empty for the whole file.
        values: the table.
    """

    def __init__(self, name: str, values: object) -> None:
        if not isinstance(values, Mapping):
            raise SettingsError(f"{name} must be a table such as {name} = {{ ... }}", value=values)
        self.name, self._values, self._known = name, dict(values), list[str]()

    def __contains__(self, key: str) -> bool:
        self._known.append(key)
        return key in self._values

    def all(self) -> dict[str, Any]:
        """Return all values by name."""
        return dict(self._values)

    def merge_shared_values(self, values: Mapping[str, Any]) -> None:
        """Add values; one that the table has is kept, but for `privacy`, which is replaced."""
        self._values = {**values, **self._values, **{key: values[key] for key in ("privacy",) if key in values}}

    def title(self, key: str) -> str:
        """Return the full name of a key: `tasks.file`."""
        return f"{self.name}.{key}" if self.name else key

    def take_required_value(self, key: str, hint: str = "") -> Any:
        """Return a value and mark it as known; a missing one is refused."""
        if key in self:
            return self._values[key]
        self._refuse_similar(key)
        raise SettingsError(f"{self.title(key)} is needed", value=None, hint=hint)

    def close(self) -> None:
        """Refuse keys that were not asked for."""
        unknown = sorted(self._values.keys() - set(self._known))
        if unknown:
            near = get_close_matches(unknown[0], self._known, n=1)
            known = f"Known: {', '.join(dict.fromkeys(self._known))}."
            raise self._unknown_setting_error(unknown[0], f"Did you mean {near[0]!r}?" if near else known)

    def _refuse_similar(self, key: str) -> None:
        """Refuse a key that may be a misspelling of a known one."""
        similar = get_close_matches(key, self._values.keys() - set(self._known), n=1)
        if similar:
            raise self._unknown_setting_error(similar[0], f"Did you mean {key!r}?")

    def _unknown_setting_error(self, key: str, hint: str) -> SettingsError:
        rule = f"{self.name or 'the file'} has no setting {key!r}"
        return SettingsError(rule, value=key, hint=hint, value_in_rule=True)

    def section(self, key: str, hint: str = "") -> "Section":
        """Return an inner table."""
        return Section(self.title(key), self.take_required_value(key, hint))

    def text(self, key: str, most: int, hint: str = "") -> str:
        """Return a text of 1 to `most` characters, as `checked_and_normalized_text`."""
        return checked_and_normalized_text(self.title(key), self.take_required_value(key, hint), most)

    def integer(self, key: str, least: int, most: int, hint: str = "") -> int:
        """Return an integer in a range."""
        value = self.take_required_value(key, hint)
        if type(value) is not int or not least <= value <= most:
            raise SettingsError(
                f"{self.title(key)} must be a whole number from {least} to {most}",
                value=value,
                hint="Write it without quotes and decimals.",
            )
        return value

    def number(self, key: str, hint: str = "") -> float:
        """Return a number."""
        value = self.take_required_value(key, hint)
        if type(value) not in (int, float):
            raise SettingsError(
                f"{self.title(key)} must be a number", value=value, hint="Write it without quotes, such as 0.5."
            )
        return float(value)

    def day(self, key: str) -> date:
        """Return a day, written without quotes."""
        value = self.take_required_value(key, "Write a day: 2027-01-10.")
        if not isinstance(value, date) or isinstance(value, datetime):
            raise SettingsError(
                f"{self.title(key)} must be a day",
                value=str(value),
                hint="Write it without quotes and without a time: 2027-01-10.",
            )
        return value

    def choice(self, key: str, choices: tuple[str, ...]) -> str:
        """Return one of several words."""
        value = self.take_required_value(key, f"Choose {' or '.join(choices)}.")
        if value not in choices:
            near = get_close_matches(str(value), choices, n=1)
            hint = f"Did you mean {near[0]!r}?" if near else ""
            raise SettingsError(f"{self.title(key)} must be one of {', '.join(choices)}", value=value, hint=hint)
        return str(value)

    def which_of_two_keys(self, first: str, second: str) -> str:
        """Return which of two keys is given; both or none is refused."""
        given = [key for key in (first, second) if key in self]
        if not given:
            for key in (first, second):
                self._refuse_similar(key)
        if len(given) != 1:
            names = f"{self.title(first)} or {self.title(second)}"
            raise SettingsError(f"exactly one is needed: {names}", value=given, hint="Leave the others out.")
        return given[0]


def checked_and_normalized_text(name: str, value: object, most: int) -> str:
    """Return a text of 1 to `most` characters in normal form C, with \\n as line end.

    Raises:
        SettingsError: another type or length, or a character that is not printable.
    """
    if not isinstance(value, str) or not value.strip():
        raise SettingsError(f"{name} must be a text", value=value)
    text = unicodedata.normalize("NFC", value.replace("\r\n", "\n").strip())
    if len(text) > most:
        raise SettingsError(f"{name} has at most {most:,} characters", value=len(text), hint="Shorten it.")
    defect = text_defect(text.replace("\n", " "))
    if defect:
        raise SettingsError(f"{name} must be printable", value=text[:50], hint=f"{defect.capitalize()}. Remove it.")
    return text


BUDGETS = ("budget_per_worker", "epsilon_per_answer")
OF_ONE = ("levels", "prior")
"""Settings of privacy for one question."""
OF_A_MECHANISM = ("cuts", "null_value")
SHARED = ("answers", "tasks", "expected")
"""Tables of a question, which those of the whole file stand for."""


def question_sections(root: Section) -> list[Section]:
    """Return a table with the settings of each question; the whole file with one question.

    A table of a question stands before that of the whole file. The budget of a worker is divided equally, unless each
    question names its own.

    Raises:
        SettingsError: fewer than two tables, or more than there can be channels; levels or a prior; a budget of some
            questions only.
    """
    found = root.take_required_value(
        "question", "The question of every task, or a table [[question]] for each of several."
    )
    if not isinstance(found, list):
        return [root]
    if not 2 <= len(found) <= MAX_CHANNELS:
        raise SettingsError(f"[[question]] is given 2 to {MAX_CHANNELS} times", value=len(found))
    tables = [Section(f"question {number}", table) for number, table in enumerate(found, start=1)]
    common = Section("privacy", root.take_required_value("privacy")) if "privacy" in root else Section("privacy", {})
    own = [table.section("privacy").all() if "privacy" in table else {} for table in tables]
    _check_budgets(common, own)
    shared = {name: root.take_required_value(name) for name in SHARED if name in root}
    for table, privacy in zip(tables, own, strict=True):
        table.merge_shared_values(shared | {"privacy": _privacy_of_question(common, privacy, len(tables))})
    return tables


def _privacy_of_question(common: Section, own: Mapping[str, Any], count: int) -> dict[str, Any]:
    """Return the privacy of a question: its own settings before the common ones, which give it a part of the budget."""
    left_out = {*(BUDGETS if any(name in own for name in BUDGETS) else ())}
    left_out |= {*(OF_A_MECHANISM if "mechanism" in own else ())}
    kept = {name: value for name, value in common.all().items() if name not in left_out}
    budget: Any = kept.get(BUDGETS[0])
    if type(budget) in (int, float):
        kept[BUDGETS[0]] = nextafter(budget / count, 0.0)
    return kept | dict(own)


def _check_budgets(common: Section, own: Sequence[Mapping[str, Any]]) -> None:
    """Refuse settings of one question, and budgets of some questions only."""
    given = [any(name in privacy for name in BUDGETS) for privacy in own]
    if any(given) and not all(given):
        raise SettingsError(
            "every question must have its own budget or epsilon, or none may have one",
            value=[number for number, there in enumerate(given, start=1) if there],
            hint="Give budget_per_worker in the privacy of every [[question]], or of the whole file only.",
        )
    for name in OF_ONE:
        if any(name in privacy for privacy in (common.all(), *own)):
            raise SettingsError(
                f"a campaign with privacy.{name} can have only one question",
                value=name,
                hint="Make a campaign of each question.",
            )
