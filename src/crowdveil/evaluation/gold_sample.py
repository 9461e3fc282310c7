"""Whether gold looks like a random sample of the tasks: means of gold tasks against those of all tasks."""

import math
from statistics import NormalDist

import numpy as np
from numpy.typing import NDArray

from crowdveil.em.estimate import Estimate

LEVEL = 0.001
"""Probability that a random sample is called none."""


def unlike_random(estimate: Estimate, at: NDArray[np.int64]) -> tuple[str, ...]:
    """Return a warning if gold tasks are visibly no random sample of the tasks with reports; empty if none is seen.

    Compared are the mean number of reports, the mean confidence and the mean probability of each label, by a normal
    test with the variance of a sample without replacement and a Bonferroni bound.

    Args:
        estimate: labels with probabilities, not guided by gold.
        at: codes of the gold tasks with reports.
    """
    reports = np.asarray(estimate.reports_per_task, dtype=float)
    posterior, everywhere = estimate.posterior, np.flatnonzero(reports)
    assert estimate.alphabet is not None
    names = ["reports", "confidence", *(f"probability of {name}" for name in estimate.alphabet.names)]
    columns = [reports, posterior.max(axis=1), *posterior.T]
    bound = NormalDist().inv_cdf(1 - LEVEL / (2 * len(names)))
    found = [
        (name, column[at].mean(), column[everywhere].mean())
        for name, column in zip(names, columns, strict=True)
        if _distance(column[everywhere], column[at]) > bound
    ]
    if not found:
        return ()
    shown = "; ".join(f"mean {name} {gold:.2f}, of all tasks {every:.2f}" for name, gold, every in found[:3])
    return (
        f"The gold tasks are no random sample of the tasks ({shown}): what they teach may not hold for the others. "
        "Draw them at random.",
    )


def _distance(every: NDArray[np.float64], sample: NDArray[np.float64]) -> float:
    """Return the distance of a sample's mean from that of all, in its standard deviations under random draws."""
    left = (len(every) - len(sample)) / max(1, len(every) - 1)
    deviation = float(every.std()) * math.sqrt(left / len(sample))
    away = abs(float(sample.mean() - every.mean()))
    return away / deviation if deviation > 1e-12 else 0.0
