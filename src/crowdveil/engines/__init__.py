"""Engines: executors of the E-step over blocks in threads, local processes, or a Dask cluster.

An engine opens an executor for one fit (`crowdveil.em.executor`). The executor returns block statistics in block order,
so sums are the same bits on every engine.
"""

from typing import Any

from crowdveil.em.threads import Threads
from crowdveil.engines.dask import Dask
from crowdveil.engines.processes import Processes

ENGINES: dict[str, type[Any]] = {engine.name: engine for engine in (Threads, Processes, Dask)}
"""Engines by command-line name."""

__all__ = ["ENGINES", "Dask", "Processes", "Threads"]
