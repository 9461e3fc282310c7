"""Facts on a campaign for its statement of privacy, as pairs of name and text."""

from collections.abc import Mapping
from typing import Any

from crowdveil.campaign.rules.document import Campaign
from crowdveil.channels.guarantee import Guarantee
from crowdveil.channels.rounding import percent_rounded_up
from crowdveil.display.quotes import quoted
from crowdveil.pages.results_page import PageText
from crowdveil.standalone.verification import parse_json

Facts = tuple[tuple[str, str], ...]
MAX_CONSENT = 600
"""Largest number of characters of a consent on the page of a statement."""
YARDSTICK: Facts = (
    (
        "What an epsilon means",
        "how sure anyone can be, at most, starting from 50 %: "
        + ", ".join(
            f"{percent_rounded_up(Guarantee(epsilon=epsilon).largest_guess_probability)} at {epsilon:g}"
            for epsilon in (0.5, 1.0, 2.0, 4.0, 8.0)
        ),
    ),
)


def campaign_facts(campaign: Campaign) -> Facts:
    """Return further lines of the statement of a campaign, as pairs of name and text."""
    operators, deleted = [] if campaign.relay is None else [campaign.relay.operator], campaign.purge_day
    return (
        *(("Relay, as the curator names it", quoted(operator)) for operator in operators),
        ("Campaign", campaign.name),
        ("Days (UTC)", f"{campaign.opens.isoformat()} to {campaign.closes.isoformat()}"),
        ("Workers asked", f"{campaign.slots:,}"),
        (
            "Least number of reports",
            f"{campaign.min_reports:,}; not checked: the curator promises to release nothing below it",
        ),
        (
            "Reports deleted (UTC)",
            "no day is promised" if deleted is None else f"from {deleted.isoformat()} on; promised, not checked",
        ),
    )


def campaign_text(campaign: Campaign, *, with_workers: bool = False) -> PageText:
    """Return the text of the page of a campaign; several questions have texts of their own."""
    return PageText(
        title=campaign.title,
        question="" if campaign.questions else campaign.question,
        language=campaign.language,
        with_workers=with_workers,
        task_texts={task.id: task.text for task in campaign.tasks},
        facts=campaign_facts(campaign),
    )


def facts_for_ethics_board(campaign: Campaign, plan: bytes) -> Facts:
    """Return what a board asks of a campaign first: texts, expected error beside the best constant, and its facts.

    Args:
        campaign: to be stated.
        plan: contents of its plan.json; empty without one.
    """
    questions = [one.text for one in campaign.questions] or [campaign.question]
    long = len(campaign.consent) > MAX_CONSENT
    return (
        ("Title", quoted(campaign.title)),
        ("Question", "; ".join(map(quoted, questions))),
        (
            "Consent, in the curator's words",
            "too long for this page: see the file" if long else quoted(campaign.consent),
        ),
        *_expected_error_facts_of_plan(campaign, plan),
        *campaign_facts(campaign),
    )


def _expected_error_facts_of_plan(campaign: Campaign, plan: bytes) -> Facts:
    """Return the error that the plan expects for each question, and that of the best constant; nothing without it."""
    try:
        made = parse_json(plan)
        plans = made["questions"] if campaign.questions else [made]
        texts = [_expected_error_text(one, each) for one, each in zip(campaign.by_question, plans, strict=True)]
    except (ValueError, KeyError, TypeError):
        return ()
    names = [f" of question {number}" for number in range(1, len(texts) + 1)] if len(texts) > 1 else [""]
    return tuple((f"Expected usefulness{name}", text) for name, text in zip(names, texts, strict=True))


def _expected_error_text(asked: Campaign, plan: Mapping[str, Any]) -> str:
    """Return the expected error in the plan of a question; ValueError if the plan is of another campaign."""
    if (plan["epsilon_per_worker"], plan["tasks_per_worker"]) != (asked.worker_epsilon, asked.cells):
        raise ValueError("the plan has other figures than the campaign")
    expected, level = plan["expected"], " at the first level" if asked.levels else ""
    error, constant = float(expected["protected"]["error"]), float(expected["constant_error"])
    name = str(expected["error_name"])
    return f"{name} {error:.2g}{level}; {constant:.2g} for the same answer to every task; planned for an assumed crowd"
