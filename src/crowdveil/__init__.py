"""crowdveil: truth from crowds, without seeing anyone's answers.

The names of `__all__` are the stable interface. They are imported on first use, so that a worker's device that asks for
a mechanism loads the standard library and numpy only.
"""

from importlib import import_module
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from crowdveil.channels.alphabet import Categories, Scale
    from crowdveil.channels.channel import Channel
    from crowdveil.channels.channel_table import ChannelTable
    from crowdveil.channels.guarantee import Guarantee
    from crowdveil.data.assignment import Assignment
    from crowdveil.data.reports import Reports
    from crowdveil.em.estimate import Estimate
    from crowdveil.errors import CrowdveilError
    from crowdveil.estimators import (
        DawidSkene,
        Gaussian,
        MajorityVote,
        OneCoin,
        OrdinalDawidSkene,
        PrivateDawidSkene,
        WeightedMean,
        WeightedVote,
    )
    from crowdveil.estimators.factorization_mean import FactorizationMean
    from crowdveil.incremental.saved_fit import SavedFit
    from crowdveil.incremental.stream import Stream
    from crowdveil.incremental.warm_start import fit_on
    from crowdveil.mechanisms import (
        Designed,
        DesignObjective,
        Laplace,
        MatrixFactorization,
        MatrixFactorizationPublished,
        OneLayer,
        QuantizedResponse,
        RandomizedResponse,
        SunTwoLayer,
        TwoLayer,
    )

    __version__: str

__all__ = [
    "Assignment",
    "Categories",
    "Channel",
    "ChannelTable",
    "CrowdveilError",
    "DawidSkene",
    "DesignObjective",
    "Designed",
    "Estimate",
    "FactorizationMean",
    "Gaussian",
    "Guarantee",
    "Laplace",
    "MajorityVote",
    "MatrixFactorization",
    "MatrixFactorizationPublished",
    "OneCoin",
    "OneLayer",
    "OrdinalDawidSkene",
    "PrivateDawidSkene",
    "QuantizedResponse",
    "RandomizedResponse",
    "Reports",
    "SavedFit",
    "Scale",
    "Stream",
    "SunTwoLayer",
    "TwoLayer",
    "WeightedMean",
    "WeightedVote",
    "__version__",
    "fit_on",
]

_HOMES = {
    "Assignment": "data.assignment",
    "Categories": "channels.alphabet",
    "Channel": "channels.channel",
    "ChannelTable": "channels.channel_table",
    "CrowdveilError": "errors",
    "DawidSkene": "estimators",
    "Designed": "mechanisms",
    "Estimate": "em.estimate",
    "Gaussian": "estimators",
    "Guarantee": "channels.guarantee",
    "Laplace": "mechanisms",
    "MajorityVote": "estimators",
    "MatrixFactorization": "mechanisms",
    "MatrixFactorizationPublished": "mechanisms",
    "OneCoin": "estimators",
    "OrdinalDawidSkene": "estimators",
    "OneLayer": "mechanisms",
    "PrivateDawidSkene": "estimators",
    "FactorizationMean": "estimators.factorization_mean",
    "QuantizedResponse": "mechanisms",
    "DesignObjective": "mechanisms",
    "RandomizedResponse": "mechanisms",
    "Reports": "data.reports",
    "SavedFit": "incremental.saved_fit",
    "Scale": "channels.alphabet",
    "Stream": "incremental.stream",
    "SunTwoLayer": "mechanisms",
    "TwoLayer": "mechanisms",
    "WeightedMean": "estimators",
    "WeightedVote": "estimators",
    "fit_on": "incremental.warm_start",
}

# Hidden from type checkers, which would otherwise accept any attribute of the package.
if not TYPE_CHECKING:

    def __getattr__(name: str) -> object:
        """Import a public name when it is first used (PEP 562)."""
        if name == "__version__":
            from importlib.metadata import version

            return version("crowdveil")
        if name not in _HOMES:
            raise AttributeError(f"module 'crowdveil' has no attribute {name!r}; public names: {', '.join(__all__)}.")
        return getattr(import_module(f"crowdveil.{_HOMES[name]}"), name)

    def __dir__() -> list[str]:
        """Return the public names."""
        return list(__all__)
