"""Page of the shares of a survey: the sentence for a board first, then bars with intervals by question and group."""

from collections.abc import Iterator, Mapping, Sequence
from typing import Any, NamedTuple, TypeVar

import numpy as np

from crowdveil.channels.alphabet import NULL
from crowdveil.display.counts import number_of
from crowdveil.display.quotes import isolated
from crowdveil.errors import SettingsError
from crowdveil.hints import advice
from crowdveil.pages.sections_page import sections_page
from crowdveil.privacy.statement import PrivacyStatement
from crowdveil.quality.shares.result import Difference, GroupTest, Share, Shares, public_note

Compared = TypeVar("Compared", GroupTest, Difference)
NO_TITLE = "Shares of a survey"
MAX_TASKS, MAX_LEADS, MAX_OPEN = 50, 5, 6
"""Questions on the page, sentences of the result, and differences of a question that are not folded."""
READING = (
    "A share is a share of the answers. It is no truth about a task or a person.",
    "A bar is the best estimate, from 0 to 100 %, and the line on it the interval. Compare intervals, not bars.",
    "The people who were asked are read as a random sample of those about whom you conclude.",
)
OF_EVERYONE = "all people of the population, if in each group those without an answer would answer like the others,"
OF_ANSWERING = "those in the population who would answer"


class _Bar(NamedTuple):
    """Share in per cent with its interval and its texts; `named` if the name is a word of others."""

    name: str
    named: bool
    share: float
    low: float
    high: float
    text: str


class _Bars(NamedTuple):
    """Bars of one label by one column of groups, or those of everyone, whose label and column are empty."""

    label: str
    by: str
    rows: list[_Bar]


def share_page(
    shares: Shares,
    statement: PrivacyStatement,
    *,
    title: str = NO_TITLE,
    lead: str | None = None,
    questions: Mapping[str, str] | None = None,
    sent_of: tuple[int, int] | None = None,
) -> str:
    """Return the page of shares as HTML.

    Args:
        shares: result of `share`.
        statement: checked statement of privacy of the reports.
        title: heading.
        questions: what was asked, by the name of the task; tasks without a text have their name.
        sent_of: of a campaign, the number of people who sent a report, and of those with a link; else None.
        lead: label whose share is read first; by default the second of two labels, else all in their order.

    Raises:
        SettingsError: `lead` is no label.
    """
    shown, texts = shown_labels(shares, lead), questions or {}
    return sections_page(
        "shares.html",
        statement,
        title=title,
        eyebrow=NO_TITLE,
        most_open=MAX_OPEN,
        lead=[*lead_sentences(shares, statement, lead, texts), *_sent_sentences(sent_of)],
        parts=[_question_part(shares, task, shown, texts) for task in range(min(len(shares.tasks), MAX_TASKS))],
        reading=[*READING, *_level_sentences(shares), *shares.notes],
    )


def shown_labels(shares: Shares, lead: str | None = None) -> list[str]:
    """Return the labels that have bars: one of two, since they add up to 100 %; all of more, the lead first.

    Raises:
        SettingsError: the lead is no label.
    """
    labels = [symbol for symbol in shares.symbols if symbol != NULL]
    if lead is not None and lead not in labels:
        hint = f"Labels are {', '.join(labels)}: {advice('{lead}', lead=labels[-1])}."
        raise SettingsError("the label that is read first is one of the answers", value=lead, hint=hint)
    if len(labels) == 2:
        return [lead or labels[-1]]
    return labels if lead is None else [lead, *(label for label in labels if label != lead)]


def lead_sentences(
    shares: Shares, statement: PrivacyStatement, lead: str | None = None, questions: Mapping[str, str] | None = None
) -> list[str]:
    """Return what a board reads first: the interval of each question for everyone, with its level and its epsilon."""
    labels = shown_labels(shares, lead)
    labels = labels if lead is None else labels[:1]
    every = [row for row in shares.rows(MAX_LEADS) if not row.by]
    rows = sorted((row for row in every if row.label in labels), key=lambda row: labels.index(row.label))
    names = list(map(str, np.asarray(shares.tasks[:MAX_LEADS])))
    rows.sort(key=lambda row: names.index(str(row.task)))
    loss, more = _loss_text(statement), len(shares.tasks) * len(labels) - MAX_LEADS
    found = [
        f"{_interval_sentence(row, shares, questions or {})}, at level {100 * shares.level:g} %; {loss}."
        for row in rows
    ]
    return [*found[:MAX_LEADS], *([f"{number_of(more, 'further share')} below."] if more > 0 else [])]


def _sent_sentences(sent_of: tuple[int, int] | None) -> list[str]:
    """Return how many of those with a link sent a report; empty if all did."""
    if sent_of is None or sent_of[0] >= sent_of[1]:
        return []
    sent, invited = sent_of
    return [
        f"{sent:,} of the {_people(invited)} with a link sent a report. These shares are of those {sent:,}; nothing is "
        "known of the others."
    ]


def _interval_sentence(row: Share, shares: Shares, questions: Mapping[str, str]) -> str:
    question = str(row.task)
    said = f"{isolated(row.label)} to {isolated(questions.get(question, question))} ({_asked_text(row, shares)})"
    answering = "the answers" if shares.pooled else "those who answer"
    among = {"everyone": OF_EVERYONE, "answers": OF_ANSWERING}.get(shares.totals, answering)
    if np.isnan(row.share):
        return f"The reports do not tell what share of {among.rstrip(',')} say {said}"
    return f"Between {_percent(row.low)} and {_percent(row.high)} of {among} say {said}"


def _loss_text(statement: PrivacyStatement) -> str:
    """Return epsilon and participation in a clause; without a checked guarantee that there is none."""
    if statement.status == "simulation":
        return "simulation only, no privacy"
    if statement.per_answer is None:
        return "no privacy guarantee is stated"
    return f"epsilon {statement.answer_epsilon_text} per answer, participation {statement.per_answer.participation}"


def _question_part(shares: Shares, task: int, shown: list[str], questions: Mapping[str, str]) -> dict[str, Any]:
    """Return the section of a question: bars of everyone and of each group, tests and differences."""
    name = str(np.asarray(shares.tasks)[task])
    every = list(shares.rows_of_task(task))
    of_label = {label: [row for row in every if row.label == label] for label in [*shown, ""]}
    total = [_bar(row, row.label) for label in shown for row in of_label[label] if not row.by]
    none = [_bar(row, "no answer, of those asked", named=False) for row in of_label[""] if not row.by]
    groups = [_Bars("", "", [*total, *none])]
    for by in dict.fromkeys(row.by for row in every if row.by):
        for label in shown:
            groups.append(_Bars(label, by, [_bar(row, row.group) for row in of_label[label] if row.by == by]))
    return {
        "task": questions.get(name, name),
        "asked": f"{_asked_text(every[0], shares)}. {_answered_text(every)}",
        "groups": groups,
        "tests": [_test_sentence(one, len(shares.tests)) for one in _of_question(shares.tests, name, shown)],
        "differences": [_difference_sentence(one) for one in _of_question(shares.differences, name, shown)],
    }


def _asked_text(row: Share, shares: Shares) -> str:
    """Return how many people were asked; of pooled tasks, for how many answers."""
    return f"{number_of(row.asked, 'answer')} asked for" if shares.pooled else f"{_people(row.asked)} asked"


def _answered_text(every: list[Share]) -> str:
    """Return how many answered, as far as reports tell."""
    missing = [row for row in every if not row.by and not row.label]
    if not missing:
        return f"{number_of(every[0].reports, 'answer')}."
    return f"No answer: {_percent(missing[0].low)} to {_percent(missing[0].high)} of them."


def _bar(row: Share, name: str, *, named: bool = True) -> _Bar:
    value = "not determined" if np.isnan(row.share) else _percent(row.share)
    share = 0.0 if np.isnan(row.share) else row.share
    text = f"{value} ({100 * row.low:.1f} to {100 * row.high:.1f})"
    return _Bar(name, named, 100 * share, 100 * row.low, 100 * row.high, text)


def _of_question(rows: Sequence[Compared], task: str, shown: list[str]) -> list[Compared]:
    """Return the rows of a task and the labels that are shown; of all labels, if there are none of these."""
    own = [row for row in rows if str(row.task) == task]
    return [row for row in own if row.label in shown] or own


def _test_sentence(test: GroupTest, tests: int) -> str:
    about = f"The share of {isolated(test.label)} by {isolated(test.by)}"
    if np.isnan(test.p_value):
        return f"{about}: a difference cannot be tested with these reports."
    adjusted = f" ({_p_text(test.adjusted)} adjusted for the {tests} tests of this result)" if tests > 1 else ""
    return f"{about}: {_p_text(test.p_value)} for the hypothesis that all groups have the same share{adjusted}."


def _p_text(value: float) -> str:
    return "p < 0.001" if value < 0.001 else f"p = {value:.3f}"


def _difference_sentence(one: Difference) -> str:
    ends = f"{100 * one.low:+.1f} to {100 * one.high:+.1f} percentage points"
    return f"{isolated(one.label)}, {isolated(one.by)} {isolated(one.first)} minus {isolated(one.second)}: {ends}."


def _level_sentences(shares: Shares) -> Iterator[str]:
    """Yield how many questions are here, what the level is, and how the noise was treated."""
    if len(shares.tasks) > MAX_TASKS:
        yield f"The page has the first {MAX_TASKS} of {len(shares.tasks):,} questions; the table has all."
    yield (
        f"The intervals of all labels of a row hold together with {100 * shares.level:g} %, and so do those of all"
        " differences of a question and column."
        if shares.simultaneous
        else f"Each interval holds by itself with {100 * shares.level:g} %; of many, some do not hold."
    )
    yield from public_note(shares.public_inputs)
    if shares.channel_used:
        yield "Reports are randomized; shares and intervals are corrected for the noise, so the intervals are wider."


def _people(count: int) -> str:
    return "1 person" if count == 1 else f"{count:,} people"


def _percent(share: float) -> str:
    return f"{100 * share:.1f} %"
