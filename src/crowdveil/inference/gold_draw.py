"""Tasks drawn at random to be answered by people who know, in an order that anybody can check.

Tasks are in the order of SHA-256("SEED, line feed, TASK"); the first n are a simple random sample of the tasks with
reports, and the next ones extend it. So a file of gold needs its seed only: the gold tasks must be the first ones.
Gold whose seed is not known is compared with all tasks by means.
"""

import hashlib
import math
from collections.abc import Iterable, Mapping
from statistics import NormalDist
from typing import Any

import numpy as np
from numpy.typing import NDArray

from crowdveil.answers.identifiers import Identifiers
from crowdveil.em.estimate import Estimate
from crowdveil.errors import ReportsError

MAX_SEED = 2**31
SHOWN = 3

LEVEL = 0.001
"""Probability that a random sample is called none."""


def seeded_order_of_tasks(tasks: Iterable[Any], seed: int) -> NDArray[np.int64]:
    """Return the positions of tasks in the order of their draw, shape (tasks,)."""
    keys = [hashlib.sha256(f"{seed}\n{task}".encode()).digest() for task in tasks]
    return np.array(sorted(range(len(keys)), key=keys.__getitem__), dtype=np.int64)


def tasks_in_draw_order(tasks: Identifiers, reports: NDArray[np.integer], seed: int) -> list[str]:
    """Return the names of the tasks with reports in the order of their draw.

    Args:
        tasks: names of tasks.
        reports: their numbers of reports, shape (tasks,).
        seed: of the draw.
    """
    names = [str(tasks[code]) for code in np.flatnonzero(reports).tolist()]
    return [names[place] for place in seeded_order_of_tasks(names, seed).tolist()]


def require_draw_start(gold: Mapping[str, Any], order: list[str], seed: int) -> None:
    """Check that the gold tasks with reports are the first ones of the order of their seed.

    Raises:
        ReportsError: a task that was drawn before one of them has no known truth.
    """
    wanted = set(order).intersection(gold)
    missing = [task for task in order[: len(wanted)] if task not in wanted]
    if missing:
        raise ReportsError(
            f"gold must be the first tasks of the draw with seed {seed}, without gaps: {len(missing):,} are missing",
            source="gold",
            examples=", ".join(map(repr, missing[:SHOWN])),
            hint="Find the truths of these tasks too, or draw with `crowdveil data draw-gold` and keep its order. "
            "Tasks that are left out because they are hard or were added later make the sample unlike the others.",
        )


def nonrandom_gold_warnings(estimate: Estimate, at: NDArray[np.int64]) -> tuple[str, ...]:
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
        if _standard_deviations_between_means(column[everywhere], column[at]) > bound
    ]
    if not found:
        return ()
    shown = "; ".join(f"mean {name} {gold:.2f}, of all tasks {every:.2f}" for name, gold, every in found[:3])
    return (
        (
            f"The gold tasks are not a random sample of the tasks ({shown}), so they may say little about the "
            "others. Draw them at random."
        ),
    )


def _standard_deviations_between_means(every: NDArray[np.float64], sample: NDArray[np.float64]) -> float:
    """Return the distance of a sample's mean from that of all, in its standard deviations under random draws."""
    left = (len(every) - len(sample)) / max(1, len(every) - 1)
    deviation = float(every.std()) * math.sqrt(left / len(sample))
    away = abs(float(sample.mean() - every.mean()))
    return away / deviation if deviation > 1e-12 else 0.0
