"""Mechanisms by name; one file per mechanism. They run on workers' devices: standard library and numpy only."""

from collections.abc import Mapping

from crowdveil.mechanisms.base import ChannelMechanism as ChannelMechanism
from crowdveil.mechanisms.base import Mechanism as Mechanism
from crowdveil.mechanisms.design_objective import DesignObjective as DesignObjective
from crowdveil.mechanisms.designed import Designed as Designed
from crowdveil.mechanisms.laplace import Laplace as Laplace
from crowdveil.mechanisms.matrix_factorization import MatrixFactorization as MatrixFactorization
from crowdveil.mechanisms.piecewise import Ogpm as Ogpm
from crowdveil.mechanisms.piecewise import Piecewise as Piecewise
from crowdveil.mechanisms.piecewise import SquareWave as SquareWave
from crowdveil.mechanisms.piecewise import Staircase as Staircase
from crowdveil.mechanisms.quantized_response import QuantizedResponse as QuantizedResponse
from crowdveil.mechanisms.randomized_response import OneLayer as OneLayer
from crowdveil.mechanisms.randomized_response import RandomizedResponse as RandomizedResponse
from crowdveil.mechanisms.subset_selection import OptimizedUnaryEncoding as OptimizedUnaryEncoding
from crowdveil.mechanisms.subset_selection import SubsetSelection as SubsetSelection
from crowdveil.mechanisms.two_layer import TwoLayer as TwoLayer
from crowdveil.registry import MECHANISM_ENTRIES, LazyClasses

MECHANISMS: Mapping[str, type[Mechanism]] = LazyClasses(MECHANISM_ENTRIES)
"""Mechanisms, in the order of the registry; each is imported when it is looked up."""
