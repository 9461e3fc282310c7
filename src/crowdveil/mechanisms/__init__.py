"""The worker's side: one file per mechanism. This package imports the standard library and numpy only.

A new mechanism is one file and one entry of the tuple below.
"""

from crowdveil.mechanisms.mechanism import ChannelMechanism, Mechanism
from crowdveil.mechanisms.randomized_response import RandomizedResponse

MECHANISMS: dict[str, type[Mechanism]] = {m.name: m for m in (RandomizedResponse,)}

__all__ = ["MECHANISMS", "ChannelMechanism", "Mechanism", "RandomizedResponse"]
