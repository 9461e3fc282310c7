"""Where the blocks of a fit are worked on: threads of this process, other processes, or a cluster.

An engine opens a crew for the work of a fit (`crowdveil.em.executor`): `map` gives what a step makes of each block,
in the order of blocks, so that the sums are the same numbers on every engine.
"""

from typing import Any

from crowdveil.em.threads import Threads
from crowdveil.engines.dask import Dask
from crowdveil.engines.processes import Processes
from crowdveil.engines.spark import Spark

ENGINES: dict[str, type[Any]] = {engine.name: engine for engine in (Threads, Processes, Dask, Spark)}
"""Every engine by its name on the command line."""

__all__ = ["ENGINES", "Dask", "Processes", "Spark", "Threads"]
