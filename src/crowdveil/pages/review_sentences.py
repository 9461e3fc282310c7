"""Sentences of the page of results on agreement, on tasks that need answers, and on workers to review."""

from functools import partial

import numpy as np

from crowdveil.answers.evidence import Evidence
from crowdveil.channels.alphabet import Scale
from crowdveil.display.counts import number_of, verb_of
from crowdveil.display.quotes import quoted
from crowdveil.em.estimate import Estimate
from crowdveil.errors import CrowdveilError
from crowdveil.pages.truth_facts import tasks_without_gold_text
from crowdveil.quality.agreement.alpha import NOT_KNOWN, Agreement, Interval
from crowdveil.quality.agreement.measured import agreement_corrected_for_channel
from crowdveil.quality.next_answers import require_next_answer
from crowdveil.quality.review.listing import Kind
from crowdveil.quality.review.workers import ability_bound, listing_of_answers

UNSURE = 0.8
"""Confidence below which a task counts as unsure."""
FEW = 2
MEANING = "; 1 is full agreement, 0 is chance"
PATTERNS: tuple[tuple[Kind, str, str], ...] = (
    ("repeats", "repeats answers that others contradict", "repeat answers that others contradict"),
    ("copies", "copies another worker", "copy another worker"),
    (
        "unclear",
        "gives one answer to all tasks, which may be careful work",
        "give one answer to all tasks, which may be careful work",
    ),
)
"""Kinds of workers who are counted, with their verbs."""
SHOWN_GROUPS = 5


def crowd_review_sentences(estimate: Estimate, evidence: Evidence | None, *, with_workers: bool) -> tuple[str, ...]:
    """Return the sentences; agreement needs the reports, and is left out without them.

    Args:
        estimate: truths and workers.
        evidence: reports or answers from which they were inferred; None without them.
        with_workers: whether workers are named.
    """
    return (
        *_agreement_sentences(evidence),
        *_task_sentences(estimate, evidence),
        *_sentences_on_patterns(evidence, with_workers=with_workers),
        *_sentence_on_low_abilities(estimate, with_workers=with_workers),
    )


def _agreement_sentences(evidence: Evidence | None) -> list[str]:
    if evidence is None:
        return []
    try:
        found = agreement_corrected_for_channel(evidence)
    except CrowdveilError as error:
        return [f"Agreement is not stated: {error.rule}."]
    noise = ", corrected for the noise of the channel" if found.channel_used else ""
    alphas = [
        f"Krippendorff's alpha ({metric}) is {_interval_text(alpha)}{noise}{'' if np.isnan(alpha.value) else MEANING}."
        for metric, alpha in found.alphas.items()
    ]
    channel = evidence.channel
    scale = evidence.reports.alphabet if channel is None else channel.alphabet
    return [*alphas, _agreement_or_difference_sentence(found, scale.range if isinstance(scale, Scale) else np.inf)]


def _agreement_or_difference_sentence(found: Agreement, largest: float) -> str:
    if found.pairwise_name == "agreement":
        return f"The share of equal answers, of two to the same task, is {_interval_text(found.pairwise)}."
    # Corrected for noise, it can exceed every possible difference.
    known = found.pairwise if found.pairwise.value <= largest else NOT_KNOWN
    return f"The root mean squared difference of two answers to the same task is {_interval_text(known)}."


def _interval_text(found: Interval) -> str:
    if np.isnan(found.value):
        return "not estimable from these reports"
    known = "" if np.isnan(found.low) else f" (90 % interval {found.low:z.2f} to {found.high:z.2f})"
    return f"{found.value:z.2f}{known}"


def _task_sentences(estimate: Estimate, evidence: Evidence | None) -> list[str]:
    rest, tasks, lines = estimate.without_gold, tasks_without_gold_text(estimate), list[str]()
    have = partial(verb_of, singular="has", plural="have", whole=len(rest.tasks))
    few = int((np.asarray(rest.reports_per_task) < FEW).sum())
    if few:
        lines.append(f"{few:,} of {tasks} {have(few)} fewer than two reports: ask for more answers there.")
    if rest.confidence is not None:
        unsure = int((rest.confidence < UNSURE).sum())
        advice = (
            "; `crowdveil next` lists the answers that help most"
            if unsure and _next_answers_can_be_chosen(evidence, estimate)
            else ""
        )
        lines.append(f"{unsure:,} of {tasks} {have(unsure)} a confidence below {UNSURE * 100:.0f} %{advice}.")
    return lines


def _next_answers_can_be_chosen(evidence: Evidence | None, estimate: Estimate) -> bool:
    """Return whether `crowdveil next` chooses answers after these reports."""
    if evidence is None:
        return False
    try:
        require_next_answer(evidence, estimate.known_truths)
    except CrowdveilError:
        return False
    return True


def _sentences_on_patterns(evidence: Evidence | None, *, with_workers: bool) -> list[str]:
    """Return who repeats answers or answers alike, by the answers alone, and what the answers do not tell."""
    if evidence is None:
        return []
    listing, lines = listing_of_answers(evidence), list[str]()
    for kind, singular, plural in PATTERNS:
        workers = [worker for worker in listing.ordered() if listing.kinds[worker] == kind]
        names = ", ".join(quoted(str(evidence.reports.workers[worker])) for worker in workers)
        if workers:
            of_workers = f"{len(workers):,} of {number_of(len(evidence.reports.workers), 'worker')}"
            verb = verb_of(len(workers), singular, plural, whole=len(evidence.reports.workers))
            lines.append(f"{of_workers} {verb}{f': {names}' if with_workers else ''}.")
    for group in listing.groups[:SHOWN_GROUPS]:
        count = group.weights.sum()
        if np.isfinite(count):
            lines.append(f"{number_of(len(group.workers), 'worker')} who answer alike count as {count:.1f}.")
    return [*lines, *(listing.notes if lines else [])]


def _sentence_on_low_abilities(estimate: Estimate, *, with_workers: bool) -> list[str]:
    workers, reports, alphabet = estimate.workers, estimate.reports_per_worker, estimate.alphabet
    if not estimate.categorical or alphabet is None or workers.ability_high is None:
        return []
    bound = ability_bound(workers.quality, reports, alphabet.size)
    listed = np.flatnonzero((workers.ability_high < bound) & (reports > 0))
    names = ", ".join(quoted(str(estimate.worker_names[worker])) for worker in listed.tolist())
    named = f": {names}" if with_workers and len(listed) else ""
    have = verb_of(len(listed), "has", "have", whole=len(reports))
    of_workers = f"{len(listed):,} of {number_of(len(reports), 'worker')}"
    text = f"{of_workers} {have} an ability below {bound:.2f} with 95 % certainty"
    return [f"{text}{named}."]
