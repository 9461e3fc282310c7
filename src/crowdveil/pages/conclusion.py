"""Conclusion of the page of results: whether to use the truths, which tasks need more answers, and what to check.

Labels: the expected share of wrong truths is compared with that of the best constant. Numbers: half of the median 90 %
interval is compared with the mean distance of the numbers from the best constant. Both follow from the fitted model.
Workers who give one label to all tasks, and whom the answers do not tell from careful ones, are named first.
Fewer reports than tasks, or half of the tasks without one, are never enough: there the truths rest on the model alone.

What would be enough, more workers with as many tasks each or randomized response with more epsilon, follows from the
Bayes error for the crowd that `crowdveil plan` assumes by default: the real workers may need more.
"""

import math
from collections.abc import Iterator
from typing import Literal, NamedTuple

import numpy as np
from numpy.typing import NDArray

from crowdveil.answers.evidence import Evidence
from crowdveil.channels.alphabet import Alphabet, Scale
from crowdveil.channels.channel import Channel
from crowdveil.channels.channel_table import ChannelTable
from crowdveil.channels.rounding import format_bound
from crowdveil.design.mechanism_from_settings import Expectation
from crowdveil.display.counts import number_of
from crowdveil.display.quotes import quoted
from crowdveil.em.estimate import Estimate, error_percent
from crowdveil.mechanisms import Designed, RandomizedResponse
from crowdveil.pages.truth_facts import (
    expected_error_without_gold,
    has_truth,
    known_interval_widths,
    tasks_without_gold_text,
)
from crowdveil.planning import PlannedCampaign
from crowdveil.planning.bayes_error import SEARCH_CROWDS
from crowdveil.planning.expected_campaign import expected_campaign, mechanism_on_plan_scale
from crowdveil.planning.plan import WORTH_ASKING
from crowdveil.planning.prediction import predict_from_bayes_errors
from crowdveil.planning.worker_budget import LARGEST_CELL_EPSILON, RANKING_EXCESS
from crowdveil.privacy.statement import PrivacyStatement
from crowdveil.quality.prediction_powered import binary_wilson_interval
from crowdveil.quality.review.unclear_workers import sentence_on_unclear_workers

Verdict = Literal["use", "care", "not enough", "unknown"]
USEFUL, USELESS = 0.5, WORTH_ASKING
"""Shares of the constant's error: up to the first the truths are useful, from the second on they are not."""
SMALL_ERROR = 0.05
"""Expected share of wrong truths up to which they are not called too little, however small the constant's error is."""
CONFIDENT = 0.9
"""Confidence below which a task is counted as doubtful."""
CHECK = "These figures follow from the model. Compare some tasks whose truth you know before you rely on them."
SHARES = "A truth is one answer to a task, not the share of the people who gave it: `crowdveil share` estimates shares."
GUIDED = "These figures follow from the model. {} with a known truth guided it and {} left out of them."
UNCHECKED = "Known truths are cross-validated with the default method, from 20 tasks on."
MORE_WRONG = "More gold tasks are wrong than the model expects: the advice follows the gold tasks."
AS_GOOD = "One label for every task is as good: the answers add little to it."
ALL_GOLD = "The truth of every task was known: nothing was inferred."
INSTEAD = "Infer again with a method that has them, or compare tasks whose truth you know."
NO_PROBABILITIES = f"The method gives no probabilities, so the error of the truths is unknown. {INSTEAD}"
NO_INTERVALS = f"The method gives no intervals, so the error of the numbers is unknown. {INSTEAD}"
NO_DIFFERENCES = (
    "The error of the numbers is unknown: no two answers to a task differ. Ask several workers, or compare tasks whose "
    "truth you know."
)
SPARSE = "Ask for reports on every task first."
ALONE = ", by the model alone: no task has two reports that could be compared"
UNDECIDED = "No task is decided: the confidence of each is too small. Collect more answers."
NO_NUMBERS = "No task has a number: there is too little information in the reports."


class Conclusion(NamedTuple):
    """Whether the truths can be used, and sentences, of which the first says so."""

    verdict: Verdict
    sentences: tuple[str, ...]


def assess_truths(estimate: Estimate, statement: PrivacyStatement, evidence: Evidence | None = None) -> Conclusion:
    """Return the conclusion; epsilon stands in it only with a checked guarantee.

    With evidence, the conclusion on truths that cannot be used says what would be enough.
    """
    source, rest = _privacy_clause(statement), estimate.without_gold
    if not len(rest.tasks):
        return Conclusion("unknown", (ALL_GOLD,))
    if not estimate.categorical:
        return _conclude_numbers(estimate, source, evidence)
    base, own, known = estimate.baseline, expected_error_without_gold(estimate), has_truth(rest)
    if not known.any():
        return Conclusion("unknown", (UNDECIDED,))
    if rest.confidence is None or own is None:
        return Conclusion("unknown", (NO_PROBABILITIES,))
    constant, least = base.expected_error, max(own, _lower_end_of_gold_error(estimate))
    small, as_good = least <= SMALL_ERROR, least >= USELESS * constant
    ratio = (USEFUL + USELESS) / 2 if small and as_good else 0.0 if small else least / constant
    against = f"{error_percent(constant)} with {quoted(str(base.constant))} for every task"
    of = "" if estimate.gold is None else f" of the {tasks_without_gold_text(estimate)}"
    compared = f"{error_percent(own)}{of} are expected to be wrong, against {against}"
    unclear = sentence_on_unclear_workers(estimate, evidence)
    verdict, first = _verdict_on_few_reports(rest, source, compared) or _relative_error_verdict(
        ratio, rest, source, compared, evidence, unclear=unclear is not None
    )
    notes = [AS_GOOD] * (small and as_good) + [MORE_WRONG] * (least > max(own, SMALL_ERROR))
    open_tasks = _sentence_on_tasks_without_truth(known, "stay undecided and are not counted as wrong")
    doubts = _low_confidence_sentence(rest.confidence[known])
    return Conclusion(
        verdict,
        (
            *([] if unclear is None else [unclear]),
            first,
            *notes,
            *open_tasks,
            *_tasks_without_reports_sentence(rest),
            doubts,
            SHARES,
            *_sentences_on_model_or_gold_check(estimate),
        ),
    )


def verdict(estimate: Estimate, evidence: Evidence) -> Verdict:
    """Return the verdict on truths, which does not depend on the statement of privacy."""
    return assess_truths(estimate, PrivacyStatement(status="none"), evidence).verdict


def _conclude_numbers(estimate: Estimate, source: str, evidence: Evidence | None) -> Conclusion:
    rest = estimate.without_gold
    known = has_truth(rest)
    if not known.any():
        return Conclusion("unknown", (NO_NUMBERS,))
    if rest.low is None or rest.high is None:
        return Conclusion("unknown", (NO_INTERVALS,))
    widths = known_interval_widths(rest)
    if not widths.size:
        return Conclusion("unknown", (NO_DIFFERENCES,))
    base, width = estimate.baseline, float(np.median(widths)) / 2
    spread = float(np.nanmean(np.abs(rest.truth - float(base.constant))))
    ratio = width / spread if spread > 0 else np.inf
    apart = f"{spread:.3g}" if spread >= width / 100 else f"less than {width / 100:.1g}"
    compared = (
        f"the median 90 % interval is ± {width:.3g}, and the numbers differ from the best constant, "
        f"{float(base.constant):.4g}, by {apart} on average"
    )
    # An interval as wide as the scale says nothing, however far the numbers are apart.
    share = max(ratio / 2, 2 * width / _scale_range_or_infinity(evidence))
    verdict, first = _verdict_on_few_reports(rest, source, compared) or _relative_error_verdict(
        share, rest, source, compared, evidence
    )
    open_tasks = _sentence_on_tasks_without_truth(
        known, "have no number: there is too little information in their reports"
    )
    return Conclusion(
        verdict,
        (first, *open_tasks, *_tasks_without_reports_sentence(rest), *_sentences_on_model_or_gold_check(estimate)),
    )


def _lower_end_of_gold_error(estimate: Estimate) -> float:
    """Return the lower end of the error on gold tasks, 90 % interval; 0 if they say nothing of the other tasks."""
    check = estimate.cross_validation
    if check is None or check.random is False:
        return 0.0
    return binary_wilson_interval(
        np.repeat([1.0, 0.0], [check.tasks - check.right, check.right]), len(estimate.tasks)
    ).low


def _sentences_on_model_or_gold_check(estimate: Estimate) -> tuple[str, ...]:
    """Return what the figures rest on: the model, and known truths where there are any."""
    if estimate.gold is None:
        return (CHECK,)
    count, check = estimate.gold_used, estimate.cross_validation
    guided = GUIDED.format(number_of(count, "task"), "is" if count == 1 else "are")
    return guided, UNCHECKED if check is None else str(check)


def _privacy_clause(statement: PrivacyStatement) -> str:
    """Return the privacy of the reports, to which the errors belong; empty without any."""
    if statement.status == "simulation":
        return "in this simulation, which has no privacy,"
    if statement.per_answer is None:
        return ""
    answer = f"at epsilon {statement.answer_epsilon_text} per answer{statement.clause_on_levels}"
    return f"{answer} (participation {statement.per_answer.participation})"


def _relative_error_verdict(
    share_of_constant_error: float,
    rest: Estimate,
    source: str,
    compared: str,
    evidence: Evidence | None,
    *,
    unclear: bool = False,
) -> tuple[Verdict, str]:
    """Return the verdict on an error as a share of that of the constant, and its sentence.

    Where no two reports were compared, or unclear workers may have decided the truths, it is at best "care".
    """
    alone = max(rest.reports_per_task) < 2
    compared = f"{source} {compared}{ALONE if alone else ''}".lstrip()
    if share_of_constant_error <= USEFUL and not alone and not unclear:
        return "use", f"Use these truths: {compared}."
    if share_of_constant_error < USELESS:
        return "care", f"Use these truths with care: {compared}."
    enough = sufficiency_sentence(evidence, USEFUL) or "Collect more answers."
    return "not enough", f"These answers are not enough: {compared}. {enough}"


def _verdict_on_few_reports(rest: Estimate, source: str, compared: str) -> tuple[Verdict, str] | None:
    """Return the verdict on tasks of which half or more have no report, or with fewer reports; None for others."""
    reports, tasks = np.asarray(rest.reports_per_task), len(rest.tasks)
    if reports.sum() >= tasks and 2 * np.count_nonzero(reports) > tasks:
        return None
    sent = number_of(int(reports.sum()), "report")
    found = f"{sent} on {number_of(tasks, 'task')}, {np.count_nonzero(reports == 0):,} without any"
    return "not enough", f"These answers are not enough: {found}; {f'{source} {compared}'.lstrip()}. {SPARSE}"


def _scale_range_or_infinity(evidence: Evidence | None) -> float:
    """Return the range of the scale of the answers; infinite without a scale."""
    alphabet: Alphabet | None = None
    if evidence is not None:
        alphabet = evidence.reports.alphabet if evidence.channel is None else evidence.channel.alphabet
    return alphabet.range if isinstance(alphabet, Scale) else np.inf


def _sentence_on_tasks_without_truth(known: NDArray[np.bool_], why: str) -> tuple[str, ...]:
    """Return a sentence on the tasks without a truth; none if all have one."""
    count = int((~known).sum())
    return (f"{count:,} of {len(known):,} tasks {why}.",) if count else ()


def _tasks_without_reports_sentence(estimate: Estimate) -> tuple[str, ...]:
    """Return a sentence on the tasks without a report whose truth is the model's guess; none if there are none."""
    count = int((has_truth(estimate) & (np.asarray(estimate.reports_per_task) == 0)).sum())
    have = "1 task has no reports: its truth is" if count == 1 else f"{count:,} tasks have no reports: their truths are"
    return (f"{have} only the most probable truth of any task.",) if count else ()


def _low_confidence_sentence(confidence: NDArray[np.float64]) -> str:
    """Return a sentence on the tasks with little confidence."""
    count = int((confidence < CONFIDENT).sum())
    if not count:
        return "Every truth has a confidence of at least 90 %."
    have = "1 truth has" if count == 1 else f"{count:,} truths have"
    return f"{have} a confidence below 90 %: ask for more answers on the doubtful tasks first."


FACTORS = (1.5, 2.0, 3.0, 5.0, 10.0, 20.0, 50.0, 100.0)
"""Factors on workers and on epsilon that are tried."""
AS_ASSUMED = (
    "Workers as `crowdveil plan` assumes them would have been enough. These workers are less accurate, "
    "or the question is harder. Compare some tasks whose truth you know."
)


def sufficiency_sentence(evidence: Evidence | None, share: float) -> str:
    """Return a sentence on what would bring the error to a share of that of the best constant.

    Args:
        evidence: reports that are not enough; None if they are unknown.
        share: of the constant's error.

    Returns:
        The sentence; empty without reports over a stated alphabet, or with several channels.
    """
    if evidence is None or isinstance(evidence.channel, ChannelTable):
        return ""
    alphabet = evidence.reports.alphabet if evidence.channel is None else evidence.channel.alphabet
    if alphabet is None:
        return ""
    channel = evidence.channel
    campaign = _planned_campaign(evidence, alphabet, channel)
    if channel is not None:
        channel = mechanism_on_plan_scale(campaign.crowd.alphabet, Designed.from_channel(channel)).channel()
    if _reaches_share(campaign, channel, share):
        return AS_ASSUMED
    found = [*_more_workers(campaign, channel, share), *_more_epsilon(campaign, evidence.channel, share)]
    if not found:
        return f"Even {FACTORS[-1]:g} times as many workers would not be enough."
    return f"With workers as `crowdveil plan` assumes them, this would be enough: {', or '.join(found)}."


def _planned_campaign(evidence: Evidence, alphabet: Alphabet, channel: Channel | None) -> PlannedCampaign:
    """Return the collection as the planner sees it: its size, its assignment, and the share of cells with an answer."""
    reports, assignment = evidence.reports, evidence.assignment
    tasks, workers = len(reports.tasks), len(reports.workers)
    cells = tasks * workers if assignment is None else len(assignment)
    assigned = max(-(-workers // tasks), round(cells / tasks))
    rate = _answered_share(len(reports) / max(cells, 1), channel) * assigned / workers
    return expected_campaign(
        alphabet,
        Expectation(participation_rate=max(rate, 1 / (tasks * workers))),
        "public" if channel is None else channel.participation,
        tasks=tasks,
        workers=workers,
        assigned_per_task=None if assigned >= workers else assigned,
    )


def _answered_share(reported: float, channel: Channel | None) -> float:
    """Return the share of cells with an answer from that with a report that is not NULL."""
    if channel is None or channel.null_output is None or not channel.protects_participation:
        return min(reported, 1.0)
    given = 1 - channel.probabilities[:, channel.null_output]
    answer, none = float(given[:-1].mean()), float(given[-1])
    return float(np.clip((reported - none) / (answer - none), 0.0, 1.0)) if answer > none else 1.0


def _reaches_share(campaign: PlannedCampaign, channel: Channel | None, share: float) -> bool:
    found = predict_from_bayes_errors(campaign, channel, RANKING_EXCESS, crowds=SEARCH_CROWDS)
    return found.error <= share * campaign.crowd.constant_error


def _more_workers(campaign: PlannedCampaign, channel: Channel | None, share: float) -> Iterator[str]:
    for factor in FACTORS:
        more = campaign.with_worker_count(math.ceil(factor * campaign.workers))
        if _reaches_share(more, channel, share):
            yield f"about {more.workers:,} workers instead of {campaign.workers:,}"
            return


def _more_epsilon(campaign: PlannedCampaign, channel: Channel | None, share: float) -> Iterator[str]:
    """Yield the epsilon of a single answer at which randomized response is enough, if any is."""
    present = math.inf if channel is None else channel.guarantee.epsilon
    if channel is None or not (0 < present < LARGEST_CELL_EPSILON):
        return
    for epsilon in (min(factor * present, LARGEST_CELL_EPSILON) for factor in FACTORS):
        mechanism = RandomizedResponse(
            alphabet=campaign.crowd.alphabet, epsilon=epsilon, participation=channel.participation
        )
        if _reaches_share(campaign, mechanism.channel(), share):
            scope = f"per answer (participation {channel.participation})"
            yield f"epsilon {format_bound(epsilon, 2)} {scope} instead of {format_bound(present, 4)}"
            return
