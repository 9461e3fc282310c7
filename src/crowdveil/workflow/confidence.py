"""Confidence of inferred labels: known truths, dependence of answers, and truths that differ from the votes."""

from dataclasses import replace
from typing import Any

import numpy as np

from crowdveil.em.estimate import Estimate, winners
from crowdveil.em.estimator import Estimator
from crowdveil.estimators.hierarchical_dawid_skene import HierarchicalDawidSkene
from crowdveil.evaluation.calibration import fit_temperature
from crowdveil.evaluation.dependence import Dependence, measure_dependence
from crowdveil.workflow.evidence import Evidence

COMPARED_TASKS = 100_000
"""Largest number of tasks, the first ones, whose truths are compared with the votes."""
MIN_COMPARED_TASKS, DIFFERENT_SHARE = 50, 0.1
"""Number of tasks with reports, and share of their truths unlike the votes, from which a warning is given."""

DEPENDENT_CORRELATION = 0.35
"""Least error correlation where answers agree more than the model predicts: the best on ten sets by calibration error;
chosen by log-loss with each set left out it is 0.35 to 0.45."""


def calibrated(
    estimator: Estimator[Any, Any], evidence: Evidence, inputs: dict[str, Any]
) -> tuple[Estimator[Any, Any], tuple[str, ...]]:
    """Return the estimator with a temperature fitted to gold, and a note on it; unchanged without enough gold.

    The temperature is that of a fit without gold, so that no known truth is scored by a fit that it guided.

    Args:
        estimator: the estimator of a fit.
        evidence: reports.
        inputs: arguments of `Estimator.fit` other than the reports.
    """
    gold = inputs["gold"]
    if not gold or not isinstance(estimator, HierarchicalDawidSkene):
        return estimator, ()
    temperature = fit_temperature(estimator.fit(evidence.reports, **inputs | {"gold": None}), gold)
    if temperature is None:
        return estimator, ()
    note = f"Confidence is calibrated to the gold tasks: log posteriors are multiplied by {temperature:.2f}."
    return replace(estimator, temperature=temperature), (note,)


def dependence_of(estimator: Estimator[Any, Any], evidence: Evidence, estimate: Estimate) -> Dependence | None:
    """Return the dependence of answers beyond the fitted model; None behind a channel, or for other methods."""
    if not isinstance(estimator, HierarchicalDawidSkene) or evidence.channel is not None or not estimate.state:
        return None
    confusion, class_prior = estimate.workers.confusion, estimate.state.shared.get("class_prior")
    if confusion is None or class_prior is None or evidence.reports.labels != len(class_prior):
        return None
    return measure_dependence(evidence.reports, confusion, class_prior)


def discounted(estimator: Estimator[Any, Any], dependence: Dependence | None) -> Estimator[Any, Any]:
    """Return the estimator with a larger error correlation if answers are dependent and no gold calibrated it."""
    if dependence is None or not isinstance(estimator, HierarchicalDawidSkene) or estimator.temperature != 1:
        return estimator
    least = max(DEPENDENT_CORRELATION, dependence.least_copied) if dependence.least_copied > 0 else 0.0
    return replace(estimator, error_correlation=max(estimator.error_correlation, least))


def confidence_note(estimator: Estimator[Any, Any], dependence: Dependence | None) -> str | None:
    """Return the assumption behind the confidences; None for methods that are not discounted."""
    if not isinstance(estimator, HierarchicalDawidSkene):
        return None
    note = (
        f"errors of two answers to a task have an assumed correlation of {estimator.error_correlation:g}; the true "
        "one is unknown without gold"
    )
    if dependence is None:
        return note
    return (
        f"{note}. {dependence.observed:.1%} of pairs of answers agree, the model predicts {dependence.predicted:.1%}: "
        f"as if {dependence.copied:.1%} (standard error {dependence.standard_error:.1%}) were copies"
        f"{', which lowers the confidence' if dependence.least_copied > 0 else ''}; most shared mistakes do not show"
    )


def vote_note(evidence: Evidence, estimate: Estimate) -> str | None:
    """Return a warning if truths often differ from the plurality of the votes; None behind a channel."""
    reports = evidence.reports
    if evidence.channel is not None or not estimate.categorical or estimate.posterior.shape[1] != reports.labels:
        return None
    stop = min(len(reports.tasks), COMPARED_TASKS)
    block = reports.rows.block(0, stop)
    votes = np.bincount(block.task * reports.labels + block.value, minlength=stop * reports.labels)
    votes = votes.reshape(stop, reports.labels)
    voted = np.flatnonzero(votes.any(axis=1))
    if len(voted) < MIN_COMPARED_TASKS:
        return None
    agree = (winners(votes[voted].astype(float)) & winners(estimate.posterior[voted])).any(axis=1)
    share = 1 - float(agree.mean())
    if share < DIFFERENT_SHARE:
        return None
    return (
        f"{share:.0%} of the truths differ from the plurality of the votes: workers differ much, or share mistakes. "
        "The known truths of about 50 tasks (--score) tell which is right."
    )
