"""Engines by name: executors of the E-step over blocks in threads or on a Dask cluster.

An engine opens an executor for one fit (`crowdveil.em.engines.executor`). The executor returns block statistics in
block order, so sums are the same bits on every engine.
"""

from typing import Any

from crowdveil.em.engines.dask import Dask as Dask
from crowdveil.em.engines.executor import Threads as Threads
from crowdveil.registry import ENGINE_ENTRIES

ENGINES: dict[str, type[Any]] = {name: entry.import_class() for name, entry in ENGINE_ENTRIES.items()}
"""Engines, in the order of the registry."""
