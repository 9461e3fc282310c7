"""Facts on the truths of an estimate that pages show: which there are, how wrong they may be, and the doubtful ones."""

import numpy as np
from numpy.typing import NDArray

from crowdveil.display.counts import number_of
from crowdveil.em.estimate import Estimate


def has_truth(estimate: Estimate) -> NDArray[np.bool_]:
    """Return whether each task has a truth, shape (tasks,): a label, or a finite number."""
    if not estimate.categorical:
        return np.isfinite(estimate.posterior)
    return np.ones(len(estimate.tasks), dtype=bool) if estimate.undecided is None else ~estimate.undecided


def expected_error_without_gold(estimate: Estimate) -> float | None:
    """Return the expected share of wrong labels among decided tasks without gold; that of `Baseline` for numbers."""
    if not estimate.categorical:
        return estimate.baseline.estimate_error
    rest = estimate.without_gold
    known = has_truth(rest)
    return None if rest.confidence is None or not known.any() else 1 - float(rest.confidence[known].mean())


def known_interval_widths(estimate: Estimate) -> NDArray[np.float64]:
    """Return the widths of the intervals of numbers that are known; empty without any."""
    if estimate.low is None or estimate.high is None:
        return np.zeros(0)
    widths = estimate.high - estimate.low
    return widths[np.isfinite(widths)]


def tasks_without_gold_text(estimate: Estimate) -> str:
    """Return the number of tasks to which errors belong, in words: those without gold."""
    tasks = len(estimate.without_gold.tasks)
    return f"{number_of(tasks, 'task')}{'' if estimate.gold is None else ' without gold'}"


def truth_texts(estimate: Estimate) -> list[str]:
    """Return the truths as text, numbers with four digits."""
    if estimate.categorical:
        return [str(truth) or "undecided" for truth in estimate.truth]
    return ["unknown" if np.isnan(value) else f"{value:.4g}" for value in estimate.truth]


def least_certain_tasks(estimate: Estimate, count: int) -> list[int]:
    """Return the tasks with the least certain truths, at most `count`, the least certain first.

    Order: the smallest confidence, the widest interval, or the fewest reports, as far as the estimate has them.
    """
    reports = np.asarray(estimate.reports_per_task)
    if estimate.confidence is not None:
        doubt = 1 - estimate.confidence
    elif estimate.low is not None and estimate.high is not None:
        doubt = estimate.high - estimate.low
    else:
        doubt = -reports.astype(float)
    order = np.lexsort((reports, -np.nan_to_num(doubt, nan=np.inf)))
    return [int(task) for task in order[:count]]
