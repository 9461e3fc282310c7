"""Settings of the stack of methods by gold (`inference/gold_stack.py`), chosen with each public set left out.

The members are fitted once for each of 8 draws of gold tasks. Every setting of the grid is then scored on the other
tasks, and for each set the setting that is best on the other nine. The last number of a row is the calibration error
that confidences of these sizes have where they are exact, from 20 simulated draws of what is right.
"""

import argparse
from itertools import product
from typing import Any

import numpy as np
from ablation import DRAWS, SETS, SMALLEST, scored_gold
from numpy.typing import NDArray

from crowdveil import HierarchicalDawidSkene, MajorityVote, OneCoin, Reports
from crowdveil.data import datasets
from crowdveil.estimators.ebcc import Ebcc
from crowdveil.evaluation.gold import gold_codes
from crowdveil.evaluation.stacking import by_label, fit_regression
from crowdveil.inference.gold_stack import FOLDS

GRID = list(product(("all members", "default alone", "mean of both"), (1e-4, 1e-3, 1e-2), (0.3, 0.6), (0.5, 1.0)))
"""Members, smallest probability, deviation of weights and deviation of biases."""
NOW = ("mean of both", 1e-3, 0.3, 0.5)

Array = NDArray[np.float64]
Draw = tuple[Array, NDArray[np.int64], Array, NDArray[np.int64]]
"""Posteriors [task, label, member] and truths of the gold tasks, then of the others."""


def draws_of(name: str, known: int) -> list[Draw]:
    """Return the members of a set for every draw of `known` gold tasks; the guided default is the first member."""
    data, own = datasets.load(name), HierarchicalDawidSkene(vote_share=0.0)
    fits = [method.fit(data.answers) for method in (Ebcc(), OneCoin(), MajorityVote())]
    aligned = scored_gold(fits[0], data.gold)
    others, truths = np.stack([fit.posterior[aligned.at] for fit in fits], axis=2), gold_codes(aligned)
    found = []
    for seed in range(DRAWS):
        order = np.random.default_rng(seed).permutation(len(truths))
        shown, rest = order[:known], order[known:]
        guided = guided_posterior(own, data.answers, aligned.at, truths, shown)
        posteriors = np.concatenate([guided[:, :, None], others], axis=2)
        found.append((posteriors[shown], truths[shown], posteriors[rest], truths[rest]))
    return found


def guided_posterior(
    method: HierarchicalDawidSkene,
    answers: Reports,
    at: NDArray[np.int64],
    truths: NDArray[np.int64],
    shown: NDArray[np.int64],
) -> Array:
    """Return the posterior of the tasks `at`: of gold tasks from a fit without their fold, of others from all gold."""
    labels = answers.alphabet.names  # type: ignore[union-attr]
    gold = {str(answers.tasks[at[place]]): labels[truths[place]] for place in shown}
    fold = np.random.default_rng(0).permutation(len(shown)) % FOLDS
    posterior = method.fit(answers, gold=gold).posterior[at].copy()
    for number in range(FOLDS):
        held = shown[fold == number]
        names = {str(answers.tasks[at[place]]) for place in held}
        rest = {task: truth for task, truth in gold.items() if task not in names}
        posterior[held] = method.fit(answers, gold=rest).posterior[at[held]]
    return posterior


def stacked_posterior(draw: Draw, setting: tuple[str, float, float, float]) -> Array:
    """Return the stacked posterior of the tasks that are not gold, [task, label]."""
    members, floor, weight, bias = setting
    known, truths, rest, _ = draw
    labels = known.shape[1]
    found = []
    for kind, count in (("all members", known.shape[2]), ("default alone", 1)):
        if members in (kind, "mean of both"):
            means = [0.5] + [0.5 / (count - 1)] * (count - 1) if count > 1 else [1.0]
            prior = np.concatenate([means, np.zeros(labels)]), np.repeat([weight, bias], [count, labels])
            fit = fit_regression(features(known[:, :, :count], floor), truths, mean=prior[0], deviation=prior[1])
            found.append(fit.probabilities(features(rest[:, :, :count], floor)))
    return np.mean(found, axis=0)


def features(posteriors: Array, floor: float) -> Array:
    """Return log posteriors and class biases, [task, label, feature]."""
    biases = by_label(np.ones((len(posteriors), 1)), posteriors.shape[1])
    return np.concatenate([np.log(np.maximum(posteriors, floor)), biases], axis=2)


def scores(posterior: Array, truths: NDArray[np.int64]) -> Array:
    """Return accuracy (ties are split), calibration error, log-loss and the calibration error of exact confidences."""
    confidence = posterior.max(axis=1)
    best = posterior == confidence[:, None]
    places = np.arange(len(truths))
    right = best[places, truths] / best.sum(axis=1)
    loss = -np.log(np.maximum(posterior[places, truths], SMALLEST)).mean()
    chance = np.random.default_rng(1).random((20, len(truths))) < confidence
    exact = np.mean([calibration(confidence, row) for row in chance])
    return np.array([right.mean(), calibration(confidence, right), loss, exact])


def calibration(confidence: Array, right: NDArray[Any]) -> float:
    """Return the expected calibration error in ten equal bins."""
    bins = np.minimum((confidence * 10).astype(int), 9)
    gaps = np.bincount(bins, confidence, 10) - np.bincount(bins, right, 10)
    return float(np.abs(gaps).sum() / len(confidence))


def main() -> None:
    """Print the shipped setting by set, and the settings chosen with each set left out."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--gold", type=int, default=50)
    known = parser.parse_args().gold
    sets = [draws_of(name, known) for name in SETS]
    table = np.array(
        [
            [np.mean([scores(stacked_posterior(draw, one), draw[3]) for draw in draws], axis=0) for draws in sets]
            for one in GRID
        ]
    )
    for name, row in zip(SETS, table[GRID.index(NOW)], strict=True):
        print(f"{name:12}", row.round(3))
    print(f"{'mean':12}", table[GRID.index(NOW)].mean(axis=0).round(3))
    for place, name, sign in ((0, "accuracy", -1), (1, "calibration error", 1), (2, "log-loss", 1)):
        best = [
            int((sign * np.delete(table[:, :, place], left, axis=1).mean(axis=1)).argmin()) for left in range(len(SETS))
        ]
        means = np.mean([table[choice, left] for left, choice in enumerate(best)], axis=0)
        print(f"chosen by {name} on nine sets", means.round(3), {GRID[choice] for choice in best})


if __name__ == "__main__":
    main()
