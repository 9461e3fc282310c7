"""crowdveil: truth inference from crowds under local differential privacy.

The names of `__all__` are the stable interface. They are imported on first use, so that a worker's device which needs a
mechanism loads the standard library and numpy only.
"""

from importlib import import_module
from typing import TYPE_CHECKING

from crowdveil.arguments import did_you_mean
from crowdveil.registry import PACKAGES, PUBLIC_MODULES

if TYPE_CHECKING:
    from crowdveil.answers.assignment import Assignment as Assignment
    from crowdveil.answers.reports import Reports as Reports
    from crowdveil.channels.alphabet import Categories as Categories
    from crowdveil.channels.alphabet import Scale as Scale
    from crowdveil.channels.channel import Channel as Channel
    from crowdveil.channels.channel_table import ChannelTable as ChannelTable
    from crowdveil.channels.guarantee import Guarantee as Guarantee
    from crowdveil.comparison.compare import compare as compare
    from crowdveil.em.estimate import Estimate as Estimate
    from crowdveil.errors import CrowdveilError as CrowdveilError
    from crowdveil.estimators import DawidSkene as DawidSkene
    from crowdveil.estimators import Gaussian as Gaussian
    from crowdveil.estimators import HierarchicalDawidSkene as HierarchicalDawidSkene
    from crowdveil.estimators import MajorityVote as MajorityVote
    from crowdveil.estimators import OneCoin as OneCoin
    from crowdveil.estimators import OrdinalDawidSkene as OrdinalDawidSkene
    from crowdveil.estimators import StudentT as StudentT
    from crowdveil.estimators import WeightedMean as WeightedMean
    from crowdveil.inference.aggregation import aggregate as aggregate
    from crowdveil.inference.infer import Inference as Inference
    from crowdveil.inference.infer import infer as infer
    from crowdveil.inference.ranking.rank import rank as rank
    from crowdveil.inference.ranking.ranking import Ranking as Ranking
    from crowdveil.mechanisms import Designed as Designed
    from crowdveil.mechanisms import Laplace as Laplace
    from crowdveil.mechanisms import MatrixFactorization as MatrixFactorization
    from crowdveil.mechanisms import QuantizedResponse as QuantizedResponse
    from crowdveil.mechanisms import RandomizedResponse as RandomizedResponse
    from crowdveil.mechanisms import TwoLayer as TwoLayer
    from crowdveil.planning.plan_function import plan as plan
    from crowdveil.planning.ranking_plan import plan_ranking as plan_ranking
    from crowdveil.planning.share_plan import plan_share as plan_share
    from crowdveil.quality.frames import agreement as agreement
    from crowdveil.quality.frames import conclude as conclude
    from crowdveil.quality.frames import draw_gold as draw_gold
    from crowdveil.quality.frames import next_answers as next_answers
    from crowdveil.quality.frames import review as review
    from crowdveil.quality.next_comparisons import NextComparisons as NextComparisons
    from crowdveil.quality.next_comparisons import next_comparisons as next_comparisons
    from crowdveil.quality.shares.joint import joint_share as joint_share
    from crowdveil.quality.shares.regression import share_regression as share_regression
    from crowdveil.quality.shares.result import Shares as Shares
    from crowdveil.quality.shares.share_function import share as share
    from crowdveil.randomness import seeded as seeded
    from crowdveil.simulate.frames import perturb as perturb

    __version__: str
    __all__: list[str]
else:
    __all__ = sorted((*PUBLIC_MODULES, "__version__"))

    # Hidden from type checkers, which would otherwise accept any attribute of the package.
    def __getattr__(name: str) -> object:
        """Import a public name when it is first used (PEP 562)."""
        if name == "__version__":
            from importlib.metadata import version

            return version("crowdveil")
        if name not in PUBLIC_MODULES:
            raise AttributeError(_unknown(name), name=name)
        return getattr(import_module(f"crowdveil.{PUBLIC_MODULES[name]}"), name)

    def _unknown(name: str) -> str:
        """Return the message about a name that is not public: where it is, or which one was meant."""
        package = next((package for package in PACKAGES if name in PACKAGES[package]), None)
        hint = did_you_mean(name, __all__) if package is None else f"It is {package}.{name}."
        return f"module 'crowdveil' has no attribute {name!r}. {hint or 'Its names are ' + ', '.join(__all__) + '.'}"

    def __dir__() -> list[str]:
        """Return the public names."""
        return list(__all__)
