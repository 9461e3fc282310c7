"""Cohen's kappa of two workers and Fleiss' kappa of more, in time linear in the number of answers.

Cohen (1960, 1968): 1 - D_o / D_e. D_o is the mean weight d(a, b) over the tasks that both answered; D_e is that of
independent answers with each worker's own shares. Weights: [a != b]; |a - b| (linear) and (a - b)^2 (quadratic) between
the positions of ordered labels.

Fleiss (1971): (P - E) / (1 - E). P is the mean over tasks of the share of equal pairs of answers, E the sum of p_c^2
over the shares p_c of all labels. It is defined for equal numbers of answers; where they differ, each task has the same
weight in P.

Intervals: infinitesimal jackknife over tasks, as of `measure_agreement`; for Cohen's kappa it is the asymptotic
variance of Fleiss, Cohen and Everitt (1969), times tasks / (tasks - 1).
"""

from collections.abc import Callable

import numpy as np
from numpy.typing import NDArray

from crowdveil.answers.reports import Reports
from crowdveil.channels.alphabet import Categories
from crowdveil.quality.agreement.alpha import (
    LEVEL,
    MIN_TASKS,
    NOT_KNOWN,
    Interval,
    comparable_answers,
    equal_answers_within_tasks,
    interval_from_slope_moments,
    without_rounding,
)

Distance = Callable[[NDArray[np.int64], NDArray[np.int64]], NDArray[np.float64]]
NOMINAL: dict[str, Distance] = {"Cohen": lambda a, b: np.asarray(a != b, dtype=float)}
ORDINAL: dict[str, Distance] = {
    "Cohen, linear": lambda a, b: np.abs(a - b).astype(float),
    "Cohen, quadratic": lambda a, b: ((a - b) ** 2).astype(float),
}


def kappas(reports: Reports, level: float = LEVEL) -> dict[str, Interval]:
    """Return Cohen's kappa, by weights, if two workers can be compared, else Fleiss' kappa; empty for free numbers.

    A value is nan if all compared answers are equal.
    """
    if reports.alphabet is None:
        return {}
    compared = np.zeros(len(reports.workers), dtype=bool)
    for part in comparable_answers(reports):
        compared[part.worker] = True
    if np.count_nonzero(compared) != 2:
        return {"Fleiss": _fleiss(reports, level)}
    ordered = not isinstance(reports.alphabet, Categories) or reports.alphabet.ordered
    pairs = _counts_of_pairs(reports)
    return {name: _cohen(pairs, distance, level) for name, distance in (NOMINAL | (ORDINAL if ordered else {})).items()}


def _counts_of_pairs(reports: Reports) -> NDArray[np.float64]:
    """Return the number of tasks by the answers of two workers, indexed [label of the first, label of the second]."""
    counts = np.zeros((reports.labels, reports.labels))
    for part in comparable_answers(reports):
        # A task's answers are in the order of workers.
        np.add.at(counts, (part.value[part.starts], part.value[part.starts + 1]), 1)
    return counts


def _cohen(counts: NDArray[np.float64], distance: Distance, level: float) -> Interval:
    tasks, codes = int(counts.sum()), np.arange(len(counts), dtype=np.int64)
    weights = distance(codes[:, None], codes[None, :])
    first, second = counts.sum(axis=1) / tasks, counts.sum(axis=0) / tasks
    observed, expected = float((weights * counts).sum()) / tasks, float(first @ weights @ second)
    if not expected > 0:
        return NOT_KNOWN
    value = 1 - observed / expected
    by_first, by_second = weights @ second, first @ weights
    # Slope of a task with the answers a and b, times the number of tasks; all slopes sum to 0.
    slopes = (observed / expected * (by_first[:, None] + by_second - 2 * expected) - (weights - observed)) / expected
    return _interval(value, float((counts * slopes**2).sum()) / tasks**2, tasks, level)


def _fleiss(reports: Reports, level: float) -> Interval:
    tasks, equal, counts = 0, 0.0, np.zeros(reports.labels)
    for part in comparable_answers(reports):
        tasks += len(part.sizes)
        pairs = part.sums_by_task(equal_answers_within_tasks(part, reports.labels) - 1.0)
        equal += float((pairs / (part.sizes * (part.sizes - 1))).sum())
        counts += np.bincount(part.value, minlength=reports.labels)
    share, answers = counts / counts.sum(), counts.sum()
    mean, chance = equal / tasks, float(share @ share)
    if not chance < 1:
        return NOT_KNOWN
    squares = 0.0
    for part in comparable_answers(reports):
        pairs = part.sums_by_task(equal_answers_within_tasks(part, reports.labels) - 1.0)
        own = (pairs / (part.sizes * (part.sizes - 1)) - mean) / tasks
        moved = 2 * (part.sums_by_task(share[part.value]) - part.sizes * chance) / answers
        slope = own / (1 - chance) - (1 - mean) / (1 - chance) ** 2 * moved
        squares += float(slope @ slope)
    return _interval((mean - chance) / (1 - chance), squares, tasks, level)


def _interval(value: float, squares: float, tasks: int, level: float) -> Interval:
    """Return a value with its interval, from the sum of squares of slopes that sum to 0."""
    if tasks < MIN_TASKS:
        return Interval(without_rounding(value), np.nan, np.nan)
    return interval_from_slope_moments(value, np.array([0.0, squares]), tasks, level)
