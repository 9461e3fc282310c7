"""Estimators by name; one file or folder per method. The EM algorithm that they share is in `crowdveil.em`."""

from typing import Any

from crowdveil.em.estimator import Estimator as Estimator
from crowdveil.estimators.dawid_skene import DawidSkene as DawidSkene
from crowdveil.estimators.gaussian.estimator import Gaussian as Gaussian
from crowdveil.estimators.hierarchical_dawid_skene import HierarchicalDawidSkene as HierarchicalDawidSkene
from crowdveil.estimators.majority_vote import MajorityVote as MajorityVote
from crowdveil.estimators.numeric.student_t import StudentT as StudentT
from crowdveil.estimators.one_coin import OneCoin as OneCoin
from crowdveil.estimators.ordinal_dawid_skene import OrdinalDawidSkene as OrdinalDawidSkene
from crowdveil.estimators.private_dawid_skene import PrivateDawidSkene as PrivateDawidSkene
from crowdveil.estimators.weighted_mean import WeightedMean as WeightedMean
from crowdveil.estimators.weighted_vote import WeightedVote as WeightedVote
from crowdveil.registry import ESTIMATOR_ENTRIES

ESTIMATORS: dict[str, type[Estimator[Any, Any]]] = {name: entry.load() for name, entry in ESTIMATOR_ENTRIES.items()}
"""Estimators of single reports, in the order of the registry."""
