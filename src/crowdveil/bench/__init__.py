"""Speed of crowdveil compared with crowd-kit and plain numpy, in turn, on one machine in one run."""

from crowdveil.bench.contest import METHODS, Setup, race
from crowdveil.bench.peer import Peer, find_peer, install_peer, peer_home
from crowdveil.bench.picture import growth
from crowdveil.bench.results import HEADINGS, Bench, Line, cells, markdown

__all__ = [
    "HEADINGS",
    "METHODS",
    "Bench",
    "Line",
    "Peer",
    "Setup",
    "cells",
    "find_peer",
    "growth",
    "install_peer",
    "markdown",
    "peer_home",
    "race",
]
