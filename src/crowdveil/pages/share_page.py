"""Page of the shares of a survey: the sentence for a board first, then bars with intervals by question and group."""

from collections.abc import Iterator
from typing import Any, NamedTuple

import numpy as np

from crowdveil.channels.alphabet import NULL
from crowdveil.display.counts import number_of
from crowdveil.display.quotes import quoted
from crowdveil.pages.sections_page import sections_page
from crowdveil.privacy.statement import PrivacyStatement
from crowdveil.quality.shares.result import Difference, GroupTest, Share, Shares

NO_TITLE = "Shares of a survey"
MAX_TASKS, MAX_LEADS = 50, 5
"""Questions on the page, and sentences of the result."""
AFFIRMATIVE = "yes"
"""Label whose share is shown first, if there are two; otherwise the last one."""
READING = (
    "A share is a share of the answers. It is no truth about a task or a person.",
    "A bar is the best estimate, and the line on it the interval. Compare intervals, not bars.",
    "The people who were asked are read as a random sample of those about whom you conclude.",
)


class _Bar(NamedTuple):
    """Share in per cent with its interval and its texts."""

    name: str
    share: float
    low: float
    high: float
    text: str


def share_page(shares: Shares, statement: PrivacyStatement, *, title: str = NO_TITLE) -> str:
    """Return the page of shares as HTML.

    Args:
        shares: result of `share`.
        statement: checked statement of privacy of the reports.
        title: heading.
    """
    return sections_page(
        "shares.html",
        statement,
        title=title,
        eyebrow=NO_TITLE,
        lead=lead_sentences(shares, statement),
        parts=[_question_part(shares, task) for task in range(min(len(shares.tasks), MAX_TASKS))],
        reading=[*READING, *_level_sentences(shares), *shares.notes],
    )


def lead_sentences(shares: Shares, statement: PrivacyStatement) -> list[str]:
    """Return what a board reads first: the interval of each question for everyone, with its level and its epsilon."""
    rows = [row for row in shares.rows(MAX_LEADS) if not row.by and row.label in _shown_labels(shares)][:MAX_LEADS]
    loss, more = _loss_text(statement), len(shares.tasks) - MAX_LEADS
    found = [f"{_interval_sentence(row)}, at level {100 * shares.level:g} %; {loss}." for row in rows]
    return [*found, f"{number_of(more, 'further question')} below."] if more > 0 else found


def _interval_sentence(row: Share) -> str:
    return (
        f"Between {_percent(row.low)} and {_percent(row.high)} of those who answer say {quoted(row.label)} to "
        f"{quoted(str(row.task))} ({_people(row.asked)} asked)"
    )


def _loss_text(statement: PrivacyStatement) -> str:
    """Return epsilon and participation in a clause; without a checked guarantee that there is none."""
    if statement.status == "simulation":
        return "simulation only, no privacy"
    if statement.per_answer is None:
        return "no privacy guarantee is stated"
    return f"epsilon {statement.answer_epsilon_text} per answer, participation {statement.per_answer.participation}"


def _shown_labels(shares: Shares) -> list[str]:
    """Return the labels that have bars: one of two, since they add up to 100 %; all of more."""
    labels = [symbol for symbol in shares.symbols if symbol != NULL]
    if len(labels) != 2:
        return labels
    return [next((label for label in labels if label.lower() == AFFIRMATIVE), labels[1])]


def _question_part(shares: Shares, task: int) -> dict[str, Any]:
    """Return the section of a question: bars of everyone and of each group, tests and differences."""
    name, shown = str(np.asarray(shares.tasks)[task]), _shown_labels(shares)
    every = [row for row in shares.rows(task + 1) if str(row.task) == name]
    columns = dict.fromkeys(row.by for row in every if row.by)
    groups: list[tuple[str, list[_Bar]]] = [("", [_bar(row, row.label or "no answer, of those asked") for row in every
                                                 if not row.by and (row.label in shown or not row.label)])]  # fmt: skip
    for by in columns:
        for label in shown:
            bars = [_bar(row, row.group) for row in every if row.by == by and row.label == label]
            groups.append((f"{label}, by {by}", bars))
    return {
        "task": name,
        "asked": f"{_people(every[0].asked)} asked. {_answered_text(every)}",
        "groups": groups,
        "sentences": list(_sentences_on_groups(shares, name, shown)),
    }


def _answered_text(every: list[Share]) -> str:
    """Return how many answered, as far as reports tell."""
    missing = [row for row in every if not row.by and not row.label]
    if not missing:
        return f"{number_of(every[0].reports, 'answer')}."
    return f"No answer: {_percent(missing[0].low)} to {_percent(missing[0].high)} of them."


def _bar(row: Share, name: str) -> _Bar:
    value = "not determined" if np.isnan(row.share) else _percent(row.share)
    share = 0.0 if np.isnan(row.share) else row.share
    text = f"{value} ({100 * row.low:.1f} to {100 * row.high:.1f})"
    return _Bar(name, 100 * share, 100 * row.low, 100 * row.high, text)


def _sentences_on_groups(shares: Shares, task: str, shown: list[str]) -> Iterator[str]:
    """Yield tests of no difference, then differences of two groups."""
    for test in shares.tests:
        if str(test.task) == task and test.label in shown:
            yield _test_sentence(test)
    for one in shares.differences:
        if str(one.task) == task and one.label in shown:
            yield _difference_sentence(one)


def _test_sentence(test: GroupTest) -> str:
    about = f"The share of {quoted(test.label)} by {test.by}"
    if np.isnan(test.p_value):
        return f"{about}: a difference cannot be tested with these reports."
    value = "< 0.001" if test.p_value < 0.001 else f"= {test.p_value:.3f}"
    return f"{about}: p {value} for the hypothesis that all groups have the same share."


def _difference_sentence(one: Difference) -> str:
    ends = f"{100 * one.low:+.1f} to {100 * one.high:+.1f} percentage points"
    return f"{quoted(one.label)}, {one.by} {one.first} minus {one.second}: {ends}."


def _level_sentences(shares: Shares) -> Iterator[str]:
    """Yield what the level is, and how the noise was treated."""
    yield (
        f"The intervals of all labels of a row hold together with {100 * shares.level:g} %."
        if shares.simultaneous
        else f"Each interval holds by itself with {100 * shares.level:g} %; of many, some do not hold."
    )
    if len(shares.groups) > 1 or shares.weighted:
        yield "Groups and weights of people are taken to be public: the statement of privacy does not cover them."
    if shares.channel_used:
        yield "Reports are randomized; shares and intervals are corrected for the noise, so the intervals are wider."


def _people(count: int) -> str:
    return "1 person" if count == 1 else f"{count:,} people"


def _percent(share: float) -> str:
    return f"{100 * share:.1f} %"
