"""Questions of a settings file: one, or a table for each of several, with the shares of the budget."""

from collections.abc import Mapping
from math import nextafter
from typing import Any

from crowdveil.campaign.settings.section import Section
from crowdveil.errors import SettingsError
from crowdveil.standalone.checks import MAX_CHANNELS, first_confusable_pair

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
    found = root.take("question", "The question of every task, or a table [[question]] for each of several.")
    if not isinstance(found, list):
        return [root]
    if not 2 <= len(found) <= MAX_CHANNELS:
        raise SettingsError(f"[[question]] is given 2 to {MAX_CHANNELS} times", value=len(found))
    tables = [Section(f"question {number}", table) for number, table in enumerate(found, start=1)]
    common = Section("privacy", root.take("privacy")) if "privacy" in root else Section("privacy", {})
    own = [table.values("privacy") if "privacy" in table else {} for table in tables]
    _check_budgets(common, own)
    shared = {name: root.take(name) for name in SHARED if name in root}
    for table, privacy in zip(tables, own, strict=True):
        table.fill(shared | {"privacy": _privacy_of_question(common, privacy, len(tables))})
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


def _check_budgets(common: Section, own: list[Mapping[str, Any]]) -> None:
    """Refuse settings of one question, and budgets of some questions only."""
    given = [any(name in privacy for name in BUDGETS) for privacy in own]
    if any(given) and not all(given):
        raise SettingsError(
            "each question has a budget or an epsilon of its own, or none has one",
            value=[number for number, there in enumerate(given, start=1) if there],
            hint="Give budget_per_worker in the privacy of every [[question]], or of the whole file only.",
        )
    for name in OF_ONE:
        if any(name in privacy for privacy in (common.all(), *own)):
            raise SettingsError(
                f"privacy.{name} goes with one question", value=name, hint="Make a campaign of each question."
            )


def require_distinguishable_questions(texts: list[str]) -> None:
    """Refuse questions that look alike."""
    pair = first_confusable_pair(texts)
    if pair or len(set(texts)) < len(texts):
        raise SettingsError("no two questions look alike", value=pair[0] if pair else texts)
