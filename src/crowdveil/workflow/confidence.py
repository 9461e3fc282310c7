"""Confidence of inferred labels: a temperature from known truths, and truths that differ from the votes."""

from dataclasses import replace
from typing import Any

import numpy as np

from crowdveil.em.estimate import Estimate, winners
from crowdveil.estimators import Estimator, HierarchicalDawidSkene
from crowdveil.evaluation.calibration import fit_temperature
from crowdveil.workflow.evidence import Evidence

COMPARED_TASKS = 100_000
"""Largest number of tasks, the first ones, whose truths are compared with the votes."""
MIN_COMPARED_TASKS, DIFFERENT_SHARE = 50, 0.1
"""Number of tasks with reports, and share of their truths unlike the votes, from which a warning is given."""


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


def confidence_note(estimator: Estimator[Any, Any]) -> str | None:
    """Return the assumption behind the confidences; None for methods that are not discounted."""
    if not isinstance(estimator, HierarchicalDawidSkene):
        return None
    return (
        f"errors of two answers to a task have an assumed correlation of {estimator.error_correlation:g}; the true "
        "one is unknown without gold"
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
