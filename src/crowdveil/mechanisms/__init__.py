"""The worker's side: one file per mechanism. This package imports the standard library and numpy only.

A new mechanism is one file and one entry of the tuple below.
"""

from crowdveil.mechanisms.base import ChannelMechanism, Mechanism
from crowdveil.mechanisms.design_objective import DesignObjective
from crowdveil.mechanisms.designed import Designed
from crowdveil.mechanisms.laplace import Laplace
from crowdveil.mechanisms.matrix_factorization import MatrixFactorization
from crowdveil.mechanisms.matrix_factorization_published import MatrixFactorizationPublished
from crowdveil.mechanisms.quantized_response import QuantizedResponse
from crowdveil.mechanisms.randomized_response import OneLayer, RandomizedResponse
from crowdveil.mechanisms.sun_two_layer import SunTwoLayer
from crowdveil.mechanisms.two_layer import TwoLayer

MECHANISMS: dict[str, type[Mechanism]] = {
    m.name: m
    for m in (
        Laplace,
        RandomizedResponse,
        OneLayer,
        TwoLayer,
        SunTwoLayer,
        MatrixFactorization,
        MatrixFactorizationPublished,
        QuantizedResponse,
        Designed,
    )
}

__all__ = [
    "MECHANISMS",
    "ChannelMechanism",
    "DesignObjective",
    "Designed",
    "Laplace",
    "MatrixFactorization",
    "MatrixFactorizationPublished",
    "Mechanism",
    "OneLayer",
    "QuantizedResponse",
    "RandomizedResponse",
    "SunTwoLayer",
    "TwoLayer",
]
