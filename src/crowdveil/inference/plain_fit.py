"""The fit of the answers' own labels, or of numbers: copies count once, dependent answers lower the confidence."""

from dataclasses import dataclass, replace
from typing import Any

import numpy as np

from crowdveil.answers.evidence import Evidence
from crowdveil.em.estimate import Estimate, winners
from crowdveil.em.estimator import Estimator
from crowdveil.em.kernels.dispatch import encoded_block_for_kernels, use_compiled
from crowdveil.em.kernels.numpy_backend import row_maxima
from crowdveil.em.model import Checkpoint
from crowdveil.estimators.hierarchical_dawid_skene import HierarchicalDawidSkene
from crowdveil.hints import command_advice
from crowdveil.inference.dependence import Dependence, measure_dependence
from crowdveil.inference.gold_stack import MIN_GOLD, estimate_stacked_with_gold

COMPARED_TASKS = 100_000
"""Largest number of tasks, the first ones, whose truths are compared with the votes."""
MIN_COMPARED_TASKS, DIFFERENT_SHARE = 50, 0.1
"""Number of tasks with reports, and share of their truths unlike the votes, from which a warning is given."""

COPIES = (
    "{:,} of {:,} workers answer more alike than independent work explains: their shared answers count "
    "once. `crowdveil review` names them."
)
DEPENDENT_CORRELATION = 0.35
"""Least error correlation where answers agree more than the model predicts: the best on ten sets by calibration error;
chosen by log-loss with each set left out it is 0.35 to 0.45."""


SHOWN_COPIES = 0.0005
"""Least share of copies that is named: a smaller one would be printed as 0.0 %."""


@dataclass(frozen=True, kw_only=True, eq=False)
class Fit:
    """Estimator and its estimate.

    Attributes:
        estimator: with the error correlation that its answers ask for.
        estimate: truths and workers; with enough gold, truths are those of the stack.
        dependence: of the answers, beyond the fitted model; None if it is not measured.
        gold_line: what gold did; None if it only guided the fit.
        notes: warnings about gold.
        steps_before: steps of earlier fits, which the stack and the dependence of answers asked for.
    """

    estimator: Estimator[Any, Any]
    estimate: Estimate
    dependence: Dependence | None = None
    gold_line: str | None = None
    notes: tuple[str, ...] = ()
    steps_before: int = 0

    @property
    def copied(self) -> bool:
        """Whether workers answer as others do; what they have in common counts once."""
        return self.estimate.workers.copied is not None


def fit(
    estimator: Estimator[Any, Any], evidence: Evidence, inputs: dict[str, Any], checkpoint: Checkpoint | None = None
) -> Fit:
    """Return the fit of an estimator to reports; `inputs` are the other arguments of `Estimator.fit`, errors too.

    `checkpoint` has the states of this estimator, and of no other that gold combines.
    """
    estimate = estimator.fit(evidence.reports, **inputs, checkpoint=checkpoint)
    dependence, steps = dependence_beyond_fitted_model(estimator, evidence, estimate), 0
    careful = with_larger_correlation(estimator, dependence)
    if careful != estimator:
        estimator, steps = careful, estimate.steps
        estimate = careful.fit(evidence.reports, **inputs, checkpoint=checkpoint)
    done = Fit(estimator=estimator, estimate=estimate, dependence=dependence, steps_before=steps)
    found = estimate_stacked_with_gold(estimator, evidence.reports, inputs, estimate)
    if found is not None:
        before = steps + found.steps
        done = replace(done, estimate=found.estimate, gold_line=found.line, notes=found.notes, steps_before=before)
    if estimate.workers.copied is None:
        return done
    copied = int(np.count_nonzero(estimate.workers.copied))
    return replace(done, notes=(*done.notes, COPIES.format(copied, len(estimate.workers.copied))))


def dependence_beyond_fitted_model(
    estimator: Estimator[Any, Any], evidence: Evidence, estimate: Estimate
) -> Dependence | None:
    """Return the dependence of answers beyond the fitted model; None behind a channel, or for other methods."""
    if not isinstance(estimator, HierarchicalDawidSkene) or evidence.channel is not None or not estimate.state:
        return None
    confusion, class_prior = estimate.workers.confusion, estimate.state.shared.get("class_prior")
    if confusion is None or class_prior is None or evidence.reports.labels != len(class_prior):
        return None
    return measure_dependence(evidence.reports, confusion, class_prior)


def with_larger_correlation(estimator: Estimator[Any, Any], dependence: Dependence | None) -> Estimator[Any, Any]:
    """Return the estimator with a larger error correlation if answers are dependent, unless one was set."""
    if dependence is None or not isinstance(estimator, HierarchicalDawidSkene):
        return estimator
    if estimator.error_correlation != HierarchicalDawidSkene().error_correlation:
        return estimator
    least = max(DEPENDENT_CORRELATION, dependence.copied_lower_bound) if dependence.copied_lower_bound > 0 else 0.0
    return replace(estimator, error_correlation=max(estimator.error_correlation, least))


def assumption_behind_confidence(estimator: Estimator[Any, Any], dependence: Dependence | None) -> str | None:
    """Return the assumption behind the confidences; None for methods that are not discounted."""
    if not isinstance(estimator, HierarchicalDawidSkene):
        return None
    note = (
        "the errors of two answers to a task are assumed to have a correlation of "
        f"{estimator.error_correlation:g}; only known truths (gold) can measure it"
    )
    if dependence is None:
        return note
    error = _percent(dependence.standard_error)
    copies = f": as if {_percent(dependence.copied)} (standard error {error}) were copies"
    return (
        f"{note}. {_percent(dependence.observed)} of pairs of answers agree, the model predicts "
        f"{_percent(dependence.predicted)}{copies if dependence.copied >= SHOWN_COPIES else ''}"
        f"{', which lowers the confidence' if dependence.copied_lower_bound > 0 else ''}; "
        "most shared mistakes do not show"
    )


def _percent(share: float) -> str:
    return f"{100 * share:.1f} %"


def warning_if_unlike_votes(evidence: Evidence, estimate: Estimate) -> str | None:
    """Return a warning if truths often differ from the plurality of the votes; None behind a channel, or with gold."""
    reports = evidence.reports
    if (
        evidence.channel is not None
        or estimate.gold_used >= MIN_GOLD
        or not estimate.categorical
        or estimate.posterior.shape[1] != reports.labels
    ):
        return None
    stop = min(len(reports.tasks), COMPARED_TASKS)
    block, workers = reports.rows.block(0, stop), len(reports.workers)
    coded = encoded_block_for_kernels(block, workers, reports.labels, compiled=use_compiled(len(reports)))
    votes = coded.symbol_weights(np.ones(workers))
    known = np.zeros(stop, dtype=bool) if estimate.gold is None else estimate.gold[:stop]
    voted = (row_maxima(votes) > 0) & ~known
    if np.count_nonzero(voted) < MIN_COMPARED_TASKS:
        return None
    agree = row_maxima(winners(votes) & winners(estimate.posterior[:stop]))
    share = 1 - float(agree[voted].mean())
    if share < DIFFERENT_SHARE:
        return None
    return (
        f"{share:.0%} of the truths differ from the plurality of the votes: workers differ a lot, or share mistakes. "
        f"The known truths of about 50 tasks{command_advice(' ({score})')} tell which is right."
    )
