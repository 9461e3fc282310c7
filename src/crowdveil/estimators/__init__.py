"""Estimators by name: a file for each method, or for methods with one base. Their EM algorithm is in `crowdveil.em`.

A method is loaded when it is first used, so that a fit loads its own file only.
"""

from collections.abc import Mapping
from typing import TYPE_CHECKING, Any

from crowdveil.registry import ESTIMATOR_ENTRIES, LazyClasses, class_of_package

if TYPE_CHECKING:
    from crowdveil.em.estimator import Estimator as Estimator
    from crowdveil.estimators.dawid_skene import DawidSkene as DawidSkene
    from crowdveil.estimators.ebcc import Ebcc as Ebcc
    from crowdveil.estimators.gaussian.estimator import Gaussian as Gaussian
    from crowdveil.estimators.glad import Glad as Glad
    from crowdveil.estimators.hierarchical_dawid_skene import HierarchicalDawidSkene as HierarchicalDawidSkene
    from crowdveil.estimators.lfc import Lfc as Lfc
    from crowdveil.estimators.mace import Mace as Mace
    from crowdveil.estimators.majority_vote import MajorityVote as MajorityVote
    from crowdveil.estimators.numeric.student_t import StudentT as StudentT
    from crowdveil.estimators.numeric.weighted_truths import Catd as Catd
    from crowdveil.estimators.numeric.weighted_truths import Crh as Crh
    from crowdveil.estimators.one_coin import OneCoin as OneCoin
    from crowdveil.estimators.ordinal_dawid_skene import OrdinalDawidSkene as OrdinalDawidSkene
    from crowdveil.estimators.unlinked.pooled_dawid_skene import PooledDawidSkene as PooledDawidSkene
    from crowdveil.estimators.unlinked.pooled_gaussian import PooledGaussian as PooledGaussian
    from crowdveil.estimators.voting.kos import Kos as Kos
    from crowdveil.estimators.voting.skill_votes import GoldMajorityVote as GoldMajorityVote
    from crowdveil.estimators.voting.skill_votes import Wawa as Wawa
    from crowdveil.estimators.voting.skill_votes import ZeroBasedSkill as ZeroBasedSkill
    from crowdveil.estimators.weighted_mean import WeightedMean as WeightedMean
    from crowdveil.estimators.weighted_vote import WeightedVote as WeightedVote


ESTIMATORS: "Mapping[str, type[Estimator[Any, Any]]]" = LazyClasses(ESTIMATOR_ENTRIES)
"""Estimators of single reports, in the order of the registry."""

if not TYPE_CHECKING:

    def __getattr__(name: str) -> object:
        """Import a class when it is first used (PEP 562)."""
        if name == "Estimator":
            from crowdveil.em.estimator import Estimator

            return Estimator
        return class_of_package("crowdveil.estimators", name)
