"""Accuracy, calibration and log-loss of methods on simulated crowds, beside the best constant and the oracle."""

import zlib
from collections.abc import Iterable, Iterator
from dataclasses import dataclass

import numpy as np
from experiments.utility.crowds.crowd import Crowd
from experiments.utility.crowds.kinds import Kind
from numpy.typing import NDArray

from crowdveil import infer

METHODS = ("hierarchical-dawid-skene", "dawid-skene", "majority-vote", "one-coin", "mace")
CROWD_KIT = ("Wawa", "DawidSkene")
"""Of crowd-kit 1.4.2 with scikit-learn below 1.6; its others take seconds a crowd, and are asked for by name."""
CONSTANT, ORACLE = "best constant", "oracle"
SMALLEST, SURE, BINS = 1e-3, 0.99, 10


@dataclass(frozen=True, slots=True, kw_only=True)
class Row:
    """One method on one kind of crowd, means over seeds.

    Attributes:
        family, crowd, method: names.
        seeds: number of crowds.
        accuracy: ties split.
        calibration_error: expected calibration error of the confidence; None without probabilities.
        log_loss: each probability at least .001; None without probabilities.
        sure, sure_right: tasks with a confidence of .99 or more, and those of them that are right.
    """

    family: str
    crowd: str
    method: str
    seeds: int
    accuracy: float
    calibration_error: float | None
    log_loss: float | None
    sure: int
    sure_right: int


def crowd_of(kind: Kind, seed: int) -> Crowd:
    """Return the crowd of a kind with a seed; crowds of different kinds are independent."""
    return kind.make(np.random.default_rng([seed, zlib.crc32(f"{kind.family}/{kind.name}".encode())]))


def measured(kinds: Iterable[Kind], seeds: Iterable[int], methods: Iterable[str]) -> Iterator[Row]:
    """Yield the row of each method, of the best constant and of the oracle, on each kind of crowd."""
    seeds, methods = tuple(seeds), tuple(methods)
    for kind in kinds:
        crowds = [crowd_of(kind, seed) for seed in seeds]
        for method in (*methods, CONSTANT, ORACLE):
            yield _row(kind, method, [_scores(crowd, posterior_of(crowd, method)) for crowd in crowds])


def posterior_of(crowd: Crowd, method: str) -> NDArray[np.float64]:
    """Return the posterior of a method, of crowd-kit's where it begins with `crowd-kit `; [task, label]."""
    if method == ORACLE:
        return crowd.oracle_posterior()
    if method == CONSTANT:
        best = np.bincount(crowd.truth, minlength=len(crowd.shares)).argmax()
        return np.eye(len(crowd.shares))[np.full(len(crowd.truth), best)]
    if method.startswith("crowd-kit "):
        return _crowd_kit_posterior(crowd, method.removeprefix("crowd-kit "))
    return infer(crowd.reports, method).estimate.posterior


def _crowd_kit_posterior(crowd: Crowd, method: str) -> NDArray[np.float64]:
    import pandas
    from crowdkit import aggregation

    frame = pandas.DataFrame({"task": crowd.task, "worker": crowd.worker, "label": crowd.label})
    found = getattr(aggregation, method)().fit_predict(frame)
    labels = found.reindex(range(len(crowd.truth))).fillna(0).to_numpy(dtype=int)
    return np.eye(len(crowd.shares))[labels]


def _scores(crowd: Crowd, posterior: NDArray[np.float64]) -> tuple[float, float, float, int, int]:
    """Return accuracy, calibration error, log-loss, sure tasks and those of them that are right."""
    best = posterior >= posterior.max(axis=1, keepdims=True) - 1e-9
    right = (best / best.sum(axis=1, keepdims=True))[np.arange(len(crowd.truth)), crowd.truth]
    confidence = posterior.max(axis=1)
    loss = -np.log(np.maximum(posterior[np.arange(len(crowd.truth)), crowd.truth], SMALLEST)).mean()
    sure = confidence >= SURE
    place = np.minimum((confidence * BINS).astype(int), BINS - 1)
    error = np.abs(np.bincount(place, right - confidence, BINS)).sum() / len(right)
    return float(right.mean()), float(error), float(loss), int(sure.sum()), round(float(right[sure].sum()))


def _row(kind: Kind, method: str, scores: list[tuple[float, float, float, int, int]]) -> Row:
    accuracy, error, loss, _, _ = np.mean(scores, axis=0).tolist()
    certain = method == CONSTANT or method == "majority-vote" or method.startswith("crowd-kit ")
    return Row(
        family=kind.family,
        crowd=kind.name,
        method=method,
        seeds=len(scores),
        accuracy=accuracy,
        calibration_error=None if certain else error,
        log_loss=None if certain else loss,
        sure=sum(one[3] for one in scores),
        sure_right=sum(one[4] for one in scores),
    )
