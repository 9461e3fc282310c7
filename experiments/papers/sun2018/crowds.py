"""Crowds of section VI: synthetic answers 0 to 9, and the two real sets with their labels as scores 0, 1, ..."""

from dataclasses import dataclass
from functools import lru_cache

import numpy as np
from numpy.typing import NDArray

from crowdveil import Reports, Scale
from crowdveil.answers.datasets import load
from crowdveil.randomness import seeded
from crowdveil.simulate import numeric_crowd

REAL = {"Web": "snow_wsd", "AdultContent": "adult2"}
"""The paper's name of a real set to ours; "Web" is word senses, see the verdicts."""
ROUNDINGS = {"nearest": 0.0, "down": 0.5}
"""Rule for answers off the grid, to what is subtracted before rounding to the nearest integer."""


@dataclass(frozen=True, eq=False)
class SunCrowd:
    """Answers on a scale with the known truths.

    Attributes:
        answers: unprotected answers.
        truth: true numbers; nan where they are unknown; shape (tasks,).
        prior: public normal prior of the truths, mean and deviation; None if there is none.
    """

    answers: Reports
    truth: NDArray[np.float64]
    prior: tuple[float, float] | None

    @property
    def constant(self) -> float:
        """Mean absolute error of the best constant: the median of the known truths."""
        known = self.truth[np.isfinite(self.truth)]
        return float(np.abs(known - np.median(known)).mean()) if self.prior is None else float(np.abs(known).mean())

    def error(self, estimate: NDArray[np.float64]) -> float:
        """Return the mean absolute error; a task without an estimate has the median of the estimates."""
        filled = np.where(np.isnan(estimate), np.nanmedian(estimate), estimate)
        return float(np.nanmean(np.abs(filled - self.truth)))

    def correlation(self, estimate: NDArray[np.float64]) -> float:
        """Return the correlation of estimates and truths; 0 for a constant estimate."""
        known = np.isfinite(self.truth) & np.isfinite(estimate)
        found, truth = estimate[known], self.truth[known]
        return float(np.corrcoef(found, truth)[0, 1]) if found.std() > 0 else 0.0


def synthetic(
    workers: int, tasks: int, sparsity: float, seed: int, *, rounding: str = "nearest", scored: str = "clipped"
) -> SunCrowd:
    """Return a crowd of section VI-A: truths N(0, 1), half of the workers with sigma 1, half with sigma 5.

    Args:
        workers, tasks, sparsity, seed: of the crowd.
        rounding: rule for answers between two integers; answers outside 0 to 9 are clipped.
        scored: "clipped" truths lie in 0 to 9, "raw" ones are those drawn.
    """
    shift, drawn = ROUNDINGS[rounding], []

    def truths(generator: np.random.Generator, count: int) -> NDArray[np.float64]:
        drawn.append(generator.standard_normal(count))
        return drawn[0] - shift

    crowd = numeric_crowd(workers=workers, tasks=tasks, sparsity=sparsity, truth=truths, source=seeded(seed))
    truth = drawn[0] if scored == "raw" else np.clip(drawn[0], 0, 9)
    return SunCrowd(crowd.answers, truth, (0.0, 1.0))


@lru_cache(maxsize=4)
def real(name: str, scores: int | None = None) -> SunCrowd:
    """Return a real set by its name in the paper, over `scores` scores (by default as many as it has labels)."""
    data = load(REAL[name])
    answers, names = data.answers, data.answers.alphabet.names
    gold = {task: names.index(label) for task, label in data.gold.items()}
    truth = np.array([gold.get(task, np.nan) for task in answers.tasks.tolist()], dtype=float)
    scale = Scale(0, (scores or len(names)) - 1)
    return SunCrowd(Reports.from_rows(answers.rows, answers.tasks, answers.workers, scale), truth, None)
