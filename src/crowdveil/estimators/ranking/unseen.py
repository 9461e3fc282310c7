"""Answers of workers who were never seen: the model's prediction, corrected by the answers of others to the pair.

A worker from the priors knows nothing of what is special about a pair. The prediction q of a pair with n_y answers y is
therefore shrunk: (n_y + c q_y) / (n + c), the posterior mean under a Dirichlet prior with mean q. Its concentration c
best predicts the answers of workers who are left out of a fit, in five folds of workers.
"""

from collections.abc import Callable
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from crowdveil.answers.comparisons.values import ANSWERS, Comparisons
from crowdveil.estimators.ranking.likelihood import Floats

FOLDS = 5
CONCENTRATIONS = np.geomspace(0.5, 1e4, 40)
"""Concentrations that are tried; the largest leaves the prediction as it is."""
Predict = Callable[[Comparisons, NDArray[np.integer], NDArray[np.integer]], Floats]
"""Function from the comparisons of a fit, and left and right items, to the answers of a worker from the priors."""


@dataclass(frozen=True, eq=False)
class PairAnswers:
    """Number of answers to each pair, from the side of its item of the smaller code.

    Attributes:
        keys: sorted codes of the pairs, shape (pairs,).
        counts: left, tie and right, shape (pairs, 3).
        items: number of items.
    """

    keys: NDArray[np.int64]
    counts: Floats
    items: int

    @classmethod
    def of(cls, comparisons: Comparisons) -> "PairAnswers":
        """Return the counts of comparisons."""
        items = len(comparisons.items)
        keys, place = np.unique(_keys(comparisons.left, comparisons.right, items), return_inverse=True)
        answer = np.where(comparisons.left > comparisons.right, 2 - comparisons.answer, comparisons.answer)
        weight = comparisons.weight
        counts = np.bincount(place * len(ANSWERS) + answer, weight, len(keys) * len(ANSWERS))
        return cls(keys, counts.reshape(-1, len(ANSWERS)).astype(np.float64), items)

    def of_pairs(self, left: NDArray[np.integer], right: NDArray[np.integer]) -> Floats:
        """Return the counts of pairs as they are shown, shape (rows, 3); 0 for pairs without answers."""
        keys = _keys(left, right, self.items)
        place = np.minimum(np.searchsorted(self.keys, keys), len(self.keys) - 1)
        found = np.where((self.keys[place] == keys)[:, None], self.counts[place], 0.0)
        return np.where((left > right)[:, None], found[:, ::-1], found)


def _keys(left: NDArray[np.integer], right: NDArray[np.integer], items: int) -> NDArray[np.int64]:
    return np.minimum(left, right).astype(np.int64) * items + np.maximum(left, right)


def shrunk(prediction: Floats, counts: Floats, concentration: float) -> Floats:
    """Return predictions shrunk towards the answers to each pair, shape (rows, 3)."""
    return (counts + concentration * prediction) / (counts.sum(axis=1, keepdims=True) + concentration)


def concentration_of(comparisons: Comparisons, predict: Predict) -> float:
    """Return the concentration that best predicts workers who are left out; the largest with fewer than two workers."""
    folds = min(FOLDS, len(comparisons.workers))
    if folds < 2:
        return float(CONCENTRATIONS[-1])
    fold = np.random.default_rng(0).permutation(len(comparisons.workers))[comparisons.worker] % folds
    losses = np.zeros(len(CONCENTRATIONS))
    for one in range(folds):
        left_out = fold == one
        if left_out.all() or not left_out.any():
            continue
        inside, outside = comparisons.only_rows(~left_out), comparisons.only_rows(left_out)
        prediction = predict(inside, outside.left, outside.right)
        counts, rows = PairAnswers.of(inside).of_pairs(outside.left, outside.right), np.arange(len(outside))
        for place, concentration in enumerate(CONCENTRATIONS):
            found = shrunk(prediction, counts, float(concentration))[rows, outside.answer]
            losses[place] -= float(np.log(np.maximum(found, np.finfo(float).tiny)).sum())
    return float(CONCENTRATIONS[np.argmin(losses)])
