"""What a fit has learned, apart from what it counted: named arrays, by worker or shared, for another fit to start from.

Parameters hold counts, pools and channels beside what was learned; those follow anew from the reports of each fit. New
workers keep what `start` gives them.
"""

from dataclasses import replace
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from crowdveil.em.model import Model
from crowdveil.errors import SettingsError
from crowdveil.estimators.confusion.model import ConfusionEstimator
from crowdveil.estimators.confusion.parameters import CrowdParameters
from crowdveil.estimators.gaussian.estimator import GaussianParameters
from crowdveil.estimators.one_coin import CoinModel, CoinParameters, CoinStatistics
from crowdveil.estimators.private_dawid_skene import DawidSkeneParameters
from crowdveil.estimators.weighted_mean import MeanParameters
from crowdveil.estimators.weighted_vote import VoteParameters

NEW = -1
"""Instead of a position among the workers of a fit: it did not know this one."""
SUMS_BY_WORKER = frozenset({"by_report", "right", "agreement", "squares", "worker_scores"})
"""Fields of statistics whose first axis is workers."""

AnyModel = Model[Any, Any]


class Learned(NamedTuple):
    """What was learned, by name; nothing where no step was taken, or the method has nothing to learn.

    The first axis of arrays in `by_worker` is workers.
    """

    by_worker: dict[str, NDArray[Any]]
    shared: dict[str, NDArray[Any]]


NOTHING = Learned({}, {})


def learned_from(parameters: Any) -> Learned:
    """Return what parameters hold beyond counts."""
    match parameters:
        case CrowdParameters(at_start=False):
            return _crowd_learned(parameters)
        case CoinParameters(ability=ability) if ability is not None:
            return Learned({"ability": ability}, {})
        case DawidSkeneParameters(right=right) if right is not None:
            return Learned({"right": right}, {"centre": np.array(parameters.centre)})
        case VoteParameters():
            return Learned({"weight": parameters.weight}, {})
        case MeanParameters():
            return Learned({"quality": parameters.quality}, {})
        case GaussianParameters(learned=True):
            shared = {"sigma_shares": parameters.sigma_shares, "participation_shares": parameters.participation_shares}
            return Learned({"q": parameters.q}, shared)
    return NOTHING


def resume(model: AnyModel, start: Any, learned: Learned, position: NDArray[np.int64]) -> Any:
    """Return the parameters of `start` with what was learned.

    Args:
        model: whose parameters these are.
        start: from the reports of the new fit.
        learned: from another fit of the same method.
        position: each worker's place in that fit, or NEW; shape (workers,).

    Raises:
        SettingsError: the arrays do not fit the method.
    """
    if not learned.by_worker:
        return start
    try:
        return _resumed(model, start, learned, position)
    except (LookupError, TypeError, ValueError) as error:
        raise SettingsError(
            f"what was learned must be that of {model.name}",
            value=sorted({*learned.by_worker, *learned.shared}),
            hint="Fit from the start.",
        ) from error


def _resumed(model: AnyModel, start: Any, learned: Learned, position: NDArray[np.int64]) -> Any:
    own = learned.by_worker
    match start:
        case CrowdParameters():
            return _crowd_resumed(model, start, learned, position)
        case CoinParameters():
            assert isinstance(model, CoinModel)
            prior = start.class_prior if start.summary.prior is not None else _uniform(start.summary.labels)
            nothing = CoinStatistics(np.zeros(start.summary.workers), np.nan)
            ability = place(model.workers(nothing, start).quality, own["ability"], position)
            return replace(start, ability=ability, class_prior=prior)
        case DawidSkeneParameters():
            centre = float(learned.shared["centre"])
            usual = start.reading.base + start.reading.gain * (centre + (1 - centre) / start.summary.labels)
            return replace(start, right=place(usual, own["right"], position), centre=centre)
        case VoteParameters():
            return replace(start, weight=place(start.weight, own["weight"], position))
        case MeanParameters():
            quality = place(np.full(start.summary.workers, own["quality"].mean()), own["quality"], position)
            return replace(start, quality=quality / quality.sum())
        case GaussianParameters():
            if start.q.shape[1:] != own["q"].shape[1:]:
                return start  # Another number of classes of participation: nothing can be carried over.
            return replace(
                start,
                q=place(start.q, own["q"], position),
                sigma_shares=learned.shared["sigma_shares"],
                participation_shares=learned.shared["participation_shares"],
                learned=True,
            )
    return start


def place(usual: NDArray[np.float64], found: NDArray[np.float64], position: NDArray[np.int64]) -> NDArray[np.float64]:
    """Return `usual` with the rows of workers who were known before; indexed [worker, ...]."""
    known = position != NEW
    mixed = np.array(usual, dtype=float)
    if found.shape[1:] != mixed.shape[1:]:
        raise ValueError(found.shape)
    mixed[known] = found[position[known]]
    return mixed


def pad_workers(name: str, sums: NDArray[np.float64], workers: int) -> NDArray[np.float64]:
    """Return a field of statistics with zeros for workers who came later; others as they are."""
    if name not in SUMS_BY_WORKER:
        return sums
    return np.concatenate((sums, np.zeros((workers - len(sums), *sums.shape[1:]))))


def _uniform(labels: int) -> NDArray[np.float64]:
    return np.full(labels, 1 / labels)


def _crowd_learned(parameters: CrowdParameters) -> Learned:
    mixture = parameters.mixture
    by_worker = {"participation": parameters.participation}
    shared = {"class_prior": parameters.class_prior}
    if mixture is None:
        return Learned(by_worker | {"confusion": parameters.confusion}, shared)
    return Learned(by_worker | {"responsibility": mixture.responsibility}, shared | {"kinds": mixture.shares})


def _crowd_resumed(
    model: AnyModel, start: CrowdParameters, learned: Learned, position: NDArray[np.int64]
) -> CrowdParameters:
    own, shared = learned
    parameters = replace(
        start, participation=place(start.participation, own["participation"], position), at_start=False
    )
    if start.summary.prior is None:
        parameters = replace(parameters, class_prior=shared["class_prior"])
    if start.mixture is not None:
        responsibility = place(start.mixture.responsibility, own["responsibility"], position)
        mixture = replace(start.mixture, responsibility=responsibility, shares=shared["kinds"])
        return replace(parameters, mixture=mixture, confusion=mixture.confusion())
    parameters = replace(parameters, confusion=place(start.confusion, own["confusion"], position))
    if start.pool.noise and isinstance(model, ConfusionEstimator):
        return replace(parameters, anchor=model.update_prior(parameters))
    return parameters
