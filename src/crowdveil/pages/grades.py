"""Grades: one row for each task and question, rounded to the scale, with an interval, joined to names by a file."""

from collections.abc import Iterator, Mapping, Sequence
from typing import Any

import numpy as np

from crowdveil.channels.alphabet import Scale
from crowdveil.display.counts import number_of
from crowdveil.errors import ReportsError
from crowdveil.pages.results_page import QuestionResults, campaign_task_order
from crowdveil.standalone.checks import visible_form

SCALE_HINT = "Without a certificate, give the scale with which the answers were read."
NEAREST, START, END = 0.5 + 1e-9, 1e-9, 1 - 1e-9
"""Shares of a step that are added before a number is rounded down; it may miss a point by rounding."""


def grade_columns(answered: Sequence[QuestionResults], names: Mapping[str, str] | None) -> dict[str, Any]:
    """Return the columns of a table of grades; the questions of a task stand together.

    A number is rounded to the nearest point of the scale, a half upwards; its interval is rounded outwards. A label has
    a confidence in place of the interval.

    Args:
        answered: results of each question.
        names: name for each task, by the visible form of the task; None without.

    Raises:
        ReportsError: numbers without a scale.
    """
    rows = [(task, one, row) for one in answered for task, row in _rows_of_question(one)]
    places = {task: place for place, task in enumerate(dict.fromkeys(task for task, _, _ in rows))}
    rows.sort(key=lambda found: places[found[0]])  # stable: the questions of a task keep their order
    columns = {"task": [task for task, _, _ in rows]}
    if names is not None:
        columns["name"] = [names.get(visible_form(task), "") for task, _, _ in rows]
    if len(answered) > 1:
        columns["question"] = [one.text.question for _, one, _ in rows]
    for number, name in enumerate(("grade", "low", "high", "confidence", "reports")):
        columns[name] = [row[number] for _, _, row in rows]
    return {name: np.array(cells, dtype=object) for name, cells in columns.items()}


def warnings_of_names(answered: Sequence[QuestionResults], names: Mapping[str, str]) -> list[str]:
    """Return warnings of tasks without a name, and of names without a task."""
    tasks = {visible_form(str(task)) for one in answered for task in one.results.estimate.tasks}
    found = {"a name": sorted(tasks - names.keys()), "a result": sorted(names.keys() - tasks)}
    listed = {what: f"{', '.join(some[:5])}{', ...' * (len(some) > 5)}" for what, some in found.items() if some}
    return [f"{number_of(len(found[what]), 'task')} without {what}: {text}." for what, text in listed.items()]


def _rows_of_question(one: QuestionResults) -> Iterator[tuple[str, tuple[str, ...]]]:
    """Yield each task with its grade, both ends of its interval, its confidence and its number of reports, as text."""
    estimate = one.results.estimate
    tasks, gold, confidence = list(map(str, estimate.tasks)), estimate.gold, estimate.confidence
    for task in campaign_task_order(tasks, one.text):
        known = gold is not None and bool(gold[task])
        sure = "" if known or confidence is None else f"{float(confidence[task]):.3f}"
        label = (str(estimate.truth[task]), "", "") if estimate.categorical else None
        grade = label or _rounded_number(one, task, known=known)
        yield tasks[task], (*grade, sure, str(int(estimate.reports_per_task[task])))


def _rounded_number(one: QuestionResults, task: int, *, known: bool) -> tuple[str, str, str]:
    """Return a number and the ends of its interval as points of the scale; empty where they are unknown."""
    estimate, scale = one.results.estimate, one.scale
    if scale is None:
        raise ReportsError("grades of numbers are rounded to a scale", source="the results", hint=SCALE_HINT)
    ends = (None, None) if known or estimate.low is None or estimate.high is None else (estimate.low, estimate.high)
    below, above = (np.nan if end is None else float(end[task]) for end in ends)
    return (
        point_of_scale(scale, float(estimate.truth[task]), NEAREST),
        point_of_scale(scale, below, START),
        point_of_scale(scale, above, END),
    )


def point_of_scale(scale: Scale, number: float, up: float) -> str:
    """Return the point of a scale at or below a number that is raised by a share of a step; empty for nan.

    The share is `NEAREST` for a grade, `START` and `END` for the ends of an interval.
    """
    if np.isnan(number):
        return ""
    code = np.floor((number - scale.low) / scale.step + up)
    return scale.names[int(np.clip(code, 0, scale.size - 1))]
