"""Truths that may follow workers whom the answers do not tell from careful ones: each gives one label to all tasks."""

import numpy as np
from numpy.typing import NDArray

from crowdveil.answers.evidence import Evidence
from crowdveil.answers.reports import Reports
from crowdveil.channels.alphabet import Categories
from crowdveil.display.counts import number_of, verb_of
from crowdveil.em.estimate import Estimate
from crowdveil.inference.gold_stack import MIN_GOLD
from crowdveil.quality.review.label_patterns import LabelPatterns
from crowdveil.quality.review.label_reasons import why_repeaters_are_hidden

DECIDING_SHARE = 1 / 3
"""Share of all answers from which workers with one label each may decide the truths."""
MIN_ANSWERS = 2
"""Answers from which one label counts as repeated."""
REPORTS_AT_ONCE = 1 << 20


def sentence_on_unclear_workers(estimate: Estimate, evidence: Evidence | None) -> str | None:
    """Return a sentence if workers who may repeat one label may have decided the truths; None otherwise.

    It is None for reports, numbers and panels, and where at least `MIN_GOLD` known truths guided the fit.
    """
    if evidence is None or evidence.channel is not None or evidence.collection is not None:
        return None
    if evidence.sums is not None or evidence.truths or estimate.gold_used >= MIN_GOLD:
        return None
    reports = evidence.reports
    if not isinstance(reports.alphabet, Categories):
        return None
    answers = np.asarray(reports.per_worker)
    one = (_label_counts(reports).max(axis=1) == answers) & (answers >= MIN_ANSWERS)
    if not _may_decide(one, answers):
        return None
    patterns = LabelPatterns.of_reports(reports)
    one &= ~patterns.repeats
    hidden = why_repeaters_are_hidden(reports, patterns) if _may_decide(one, answers) else None
    if hidden is None:
        return None
    count, workers = int(one.sum()), int((answers > 0).sum())
    gave = verb_of(count, "gives", "give", whole=workers)
    return (
        f"{hidden.why}: {count:,} of {number_of(workers, 'worker')} {gave} one label to all tasks, and the truths may "
        f"follow such workers.{hidden.advice}"
    )


def _label_counts(reports: Reports) -> NDArray[np.int64]:
    """Return the number of answers, [worker, label]."""
    workers, labels = len(reports.workers), reports.labels
    counts = np.zeros(workers * labels, dtype=np.int64)
    for block in reports.blocks(REPORTS_AT_ONCE):
        counts += np.bincount(block.worker.astype(np.int64) * labels + block.value, minlength=len(counts))
    return counts.reshape(workers, labels)


def _may_decide(workers: NDArray[np.bool_], answers: NDArray[np.int64]) -> bool:
    return bool(workers.any() and answers[workers].sum() >= DECIDING_SHARE * answers.sum())
