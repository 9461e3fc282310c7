"""The curator's side: one file per estimator, one loop in `fitting`, the heavy sums in `kernels`.

A new estimator is one file and one entry of the tuple below.
"""

from typing import Any

from crowdveil.em.estimator import Estimator
from crowdveil.estimators.dawid_skene import DawidSkene
from crowdveil.estimators.gaussian.estimator import Gaussian
from crowdveil.estimators.majority_vote import MajorityVote
from crowdveil.estimators.one_coin import OneCoin
from crowdveil.estimators.ordinal_dawid_skene import OrdinalDawidSkene
from crowdveil.estimators.private_dawid_skene import PrivateDawidSkene
from crowdveil.estimators.weighted_mean import WeightedMean
from crowdveil.estimators.weighted_vote import WeightedVote

ESTIMATORS: dict[str, type[Estimator[Any, Any]]] = {
    e.name: e
    for e in (
        MajorityVote,
        WeightedVote,
        DawidSkene,
        OrdinalDawidSkene,
        OneCoin,
        PrivateDawidSkene,
        WeightedMean,
        Gaussian,
    )
}

__all__ = [
    "ESTIMATORS",
    "DawidSkene",
    "Estimator",
    "Gaussian",
    "MajorityVote",
    "OneCoin",
    "OrdinalDawidSkene",
    "PrivateDawidSkene",
    "WeightedMean",
    "WeightedVote",
]
